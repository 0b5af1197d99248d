"""params.yaml as one record: experiments, reviewers, and owners of GPU work pools."""

from typing import Annotated

from pydantic import Field

from fitladder.errors import RegistrationError
from fitladder.frozen import Frozen, Identifier
from fitladder.records.experiment import Experiment

__all__ = ["Registry", "Reviewer"]


class Reviewer(Frozen):
    """Somebody whose signed GO counts. The key is one line of OpenSSH public-key text."""

    name: str = Field(min_length=1)
    ssh_public_key: Annotated[str, Field(pattern=r"^(ssh-ed25519|ecdsa-sha2-nistp256|ssh-rsa) [\w+/=]+")]


class Registry(Frozen):
    """params.yaml: experiments in written order, reviewers, and who owns each GPU work pool."""

    experiments: dict[Identifier, Experiment]
    reviewers: tuple[Reviewer, ...]
    gpu_owners: dict[str, str]

    def experiment(self, experiment_id: str) -> Experiment:
        """The registered experiment. Raises RegistrationError naming those that are."""
        try:
            return self.experiments[experiment_id]
        except KeyError:
            raise RegistrationError(
                "no such experiment in params.yaml",
                got=repr(experiment_id),
                need=" or ".join(sorted(self.experiments)) or "one registered",
            ) from None

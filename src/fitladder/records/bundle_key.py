"""Which phase, at which rung, of which experiment? The one name of a bundle, a GO and an outcome."""

from typing import Annotated

from pydantic import Field

from fitladder.frozen import Frozen, Identifier
from fitladder.records.experiment import ARM_OF_PHASE, Arm, Phase

__all__ = ["BundleKey"]


class BundleKey(Frozen):
    """(experiment, thinking budget in tokens, phase). Equal keys mean the same place in one ladder."""

    experiment_id: Identifier
    thinking_budget_tokens: Annotated[int, Field(gt=0)]
    phase: Phase

    @property
    def arm(self) -> Arm:
        """The arm that this phase samples."""
        return ARM_OF_PHASE[self.phase]

    @property
    def relative_path(self) -> str:
        """Folder of the bundle below the experiment's root, POSIX style: `think_49152/probe`."""
        return f"think_{self.thinking_budget_tokens}/{self.phase}"

    def __str__(self) -> str:
        return f"{self.experiment_id} {self.phase}@{self.thinking_budget_tokens}"

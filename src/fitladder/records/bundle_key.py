"""BundleKey: experiment, rung and phase, the name that a bundle, a GO and an outcome share."""

from typing import Annotated

from pydantic import Field

from fitladder.frozen import Frozen, Identifier
from fitladder.records.experiment import ARM_OF_PHASE, Arm, Phase

__all__ = ["BundleKey"]


class BundleKey(Frozen):
    """(experiment, thinking budget in tokens, phase). Equal keys are the same step of one ladder."""

    experiment_id: Identifier
    thinking_budget_tokens: Annotated[int, Field(gt=0)]
    phase: Phase

    @property
    def arm(self) -> Arm:
        """The arm that this phase samples."""
        return ARM_OF_PHASE[self.phase]

    def __str__(self) -> str:
        return f"{self.experiment_id} {self.phase}@{self.thinking_budget_tokens}"

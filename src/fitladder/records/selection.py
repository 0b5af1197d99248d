"""Selection: the end of a ladder, either one adequate rung or an explicit none."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from fitladder.frozen import Frozen, Identifier, Sha256
from fitladder.records.outcome import PhaseOutcome

__all__ = ["Budget", "RungResult", "RungStatus", "Selection"]

RungStatus = Literal["selected", "rejected", "begun", "not_reached"]


Budget = Annotated[int, Field(gt=0)]


class RungResult(Frozen):
    """One rung as the ladder left it, with every phase it ran, in order."""

    thinking_budget_tokens: Budget
    status: RungStatus
    phases: tuple[PhaseOutcome, ...]


class Selection(Frozen):
    """The end of a ladder; in JSON `pass` and `selected`."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True, validate_by_alias=True)

    schema_version: Literal[1]
    experiment_id: Identifier
    passed: bool = Field(alias="pass")
    selected: Budget | None
    reason: str
    rungs: tuple[RungResult, ...]
    history_sha256: Sha256
    selection_uses_decoded_or_scored_content: Literal[False]
    selection_uses_token_identity_for_periodicity: Literal[True]
    probes_excluded_from_promotion_scoring_and_pooling: Literal[True]

    @model_validator(mode="after")
    def _explicit(self) -> Self:
        chosen = [rung.thinking_budget_tokens for rung in self.rungs if rung.status == "selected"]
        if self.passed != (self.selected is not None) or chosen != [self.selected] * self.passed:
            raise ValueError(f"selected: got {self.selected} with pass {self.passed} and rungs {chosen}")
        return self

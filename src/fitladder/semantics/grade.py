"""How good is the frozen choice on the hidden examples, and could any sample have done better?

The only consumer of the sealed half. It re-checks that half against the open one: a sealed program that
does not reproduce the visible examples belongs to another task set.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fitladder.domains.macros.tasks import HiddenTask, HiddenTasks, VisibleTask
from fitladder.errors import InputRefused
from fitladder.semantics.choose import Choice, ScoredSample, count_right
from fitladder.semantics.parse import Candidate

__all__ = ["Grade", "check_hidden", "grade"]


@dataclass(frozen=True)
class Grade:
    """`is_solved`: the chosen program is right on every visible and hidden example. `is_oracle_solved`: some
    sample's is, chosen with the answers in hand; a bound, not a result."""

    hidden_right: int
    hidden_total: int
    is_solved: bool
    is_oracle_solved: bool


def check_hidden(hidden: HiddenTasks, tasks: Sequence[VisibleTask]) -> tuple[HiddenTask, ...]:
    """The sealed tasks in the open order. Raises InputRefused unless they are the same tasks."""
    sealed = hidden.for_ids(tuple(task.id for task in tasks))
    for task, secret in zip(tasks, sealed, strict=True):
        examples = (*task.visible, *secret.hidden)
        if count_right(secret.program, examples) != len(examples):
            raise InputRefused(f"sealed program of {task.id}", got="other outputs", need="its own examples")
    return sealed


def grade(choice: Choice, judged: Sequence[ScoredSample], task: VisibleTask, sealed: HiddenTask) -> Grade:
    """Grade one task of one arm."""
    total = len(sealed.hidden)
    right = count_right(choice.expansion, sealed.hidden) if choice.expansion is not None else 0
    solvers = {
        one.result.expansion
        for one in judged
        if isinstance(one.result, Candidate) and one.visible_right == len(task.visible)
    }
    return Grade(
        hidden_right=right,
        hidden_total=total,
        is_solved=choice.expansion is not None
        and right == total
        and choice.visible_right == len(task.visible),
        is_oracle_solved=any(count_right(program, sealed.hidden) == total for program in solvers),
    )

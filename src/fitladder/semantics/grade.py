"""Grade of a frozen choice on the hidden examples, and whether any sample would have solved the task.

The only module that reads hidden tasks. It first checks them against the visible ones: a hidden program that
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
    """Outcome of one task in one arm.

    is_solved: the chosen program is right on every visible and every hidden example.
    is_oracle_solved: the program of some sample is; an upper bound, since it picks by the hidden examples.
    """

    hidden_right: int
    hidden_total: int
    is_solved: bool
    is_oracle_solved: bool


def check_hidden(hidden: HiddenTasks, tasks: Sequence[VisibleTask]) -> tuple[HiddenTask, ...]:
    """The hidden tasks, in the order of the visible ones.

    Raises InputRefused unless they have the same ids and programs that reproduce all their examples.
    """
    hidden_tasks = hidden.for_ids(tuple(task.id for task in tasks))
    for task, hidden_task in zip(tasks, hidden_tasks, strict=True):
        examples = (*task.visible, *hidden_task.hidden)
        if count_right(hidden_task.program, examples) != len(examples):
            raise InputRefused(f"hidden program of {task.id}", got="other outputs", need="its own examples")
    return hidden_tasks


def grade(choice: Choice, scored: Sequence[ScoredSample], task: VisibleTask, hidden: HiddenTask) -> Grade:
    """Grade one task of one arm.

    Args:
        choice: the frozen choice of the task.
        scored: all samples of the task, for the oracle.
        task, hidden: both halves of the task.
    """
    total = len(hidden.hidden)
    right = count_right(choice.expansion, hidden.hidden) if choice.expansion is not None else 0
    solvers = {
        one.result.expansion
        for one in scored
        if isinstance(one.result, Candidate) and one.visible_right == len(task.visible)
    }
    return Grade(
        hidden_right=right,
        hidden_total=total,
        is_solved=choice.expansion is not None
        and right == total
        and choice.visible_right == len(task.visible),
        is_oracle_solved=any(count_right(program, hidden.hidden) == total for program in solvers),
    )

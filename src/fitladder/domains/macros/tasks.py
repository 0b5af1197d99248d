"""Task set, in two files: visible tasks that prompts are made of, and hidden tasks that only grading reads.

The visible file has no program, no motif and no hidden example; it names the hidden file by SHA-256.
"""

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from fitladder.domains.macros.primitives import NAMES, Values, check_values
from fitladder.errors import InputRefused
from fitladder.frozen import Frozen, Sha256

__all__ = [
    "MAX_PRIMITIVES",
    "MAX_SURFACE_CALLS",
    "Demonstration",
    "Demonstrations",
    "Example",
    "HiddenTask",
    "HiddenTasks",
    "Split",
    "TaskShape",
    "VisibleTask",
    "VisibleTasks",
    "columns",
]

MAX_SURFACE_CALLS: Final = 5
MAX_PRIMITIVES: Final = 5
_Value = Annotated[int, Field(ge=0, le=16)]
_List = Annotated[tuple[_Value, ...], Field(min_length=5, max_length=5)]
_Count = Annotated[int, Field(ge=1, le=64)]
Split = Literal["reuse", "no_reuse"]


class Example(Frozen):
    """One input list with its output."""

    input: _List
    output: _List


class TaskShape(Frozen):
    """Counts of a task set and the wording of its prompts: `full`, or `compact` for a small model."""

    records: Annotated[int, Field(ge=2, le=1000, multiple_of=2)] = 12
    visible: _Count = 8
    hidden: _Count = 8
    probe: _Count = 8
    demonstrations: Annotated[int, Field(ge=1, le=8)] = 3
    demonstration_examples: Annotated[int, Field(ge=1, le=8)] = 2
    macros: Annotated[int, Field(ge=3, le=8)] = 8
    wording: Literal["full", "compact"] = "full"


class VisibleTask(Frozen):
    """One task as prompts may show it: its examples, its split and the task it is paired with."""

    id: str
    split: Split
    paired_task_id: str
    visible: Annotated[tuple[Example, ...], Field(min_length=1)]


class Demonstration(Frozen):
    """A solved example for prompts. `split` and `verified` are as the file claims; records.py checks them."""

    id: str
    split: str
    verified: bool
    program: Annotated[tuple[str, ...], Field(min_length=1, max_length=5)]
    io: Annotated[tuple[Example, ...], Field(min_length=1)]


class Demonstrations(Frozen):
    """demonstrations.json: solved train programs that every prompt shows."""

    schema_version: Literal[1]
    demonstrations: tuple[Demonstration, ...]


class HiddenTask(Frozen):
    """One task as only grading sees it: its program and its hidden examples."""

    id: str
    program: Annotated[tuple[str, ...], Field(min_length=1, max_length=5)]
    program_signature: Sha256
    min_depth: int
    motif_names: tuple[str, ...]
    hidden: Annotated[tuple[Example, ...], Field(min_length=1)]
    probe: tuple[Example, ...]

    @model_validator(mode="after")
    def _known(self) -> "HiddenTask":
        if not set(self.program) <= set(NAMES):
            raise ValueError("a program of primitives")
        return self


class VisibleTasks(Frozen):
    """tasks.json: tasks in pairs of the two splits, and the SHA-256 of hidden.json."""

    schema_version: Annotated[int, Field(ge=1, le=1)]
    seed: int
    shape: TaskShape
    hidden_sha256: Sha256
    tasks: tuple[VisibleTask, ...]

    @model_validator(mode="after")
    def _paired(self) -> "VisibleTasks":
        by_id = {task.id: task for task in self.tasks}
        if len(by_id) != len(self.tasks) or len(self.tasks) != self.shape.records:
            raise ValueError(
                f"{self.shape.records} tasks with unique ids, got {len(self.tasks)} with {len(by_id)}"
            )
        for task in self.tasks:
            other = by_id.get(task.paired_task_id)
            if other is None or other.paired_task_id != task.id or other.split == task.split:
                raise ValueError(f"task {task.id[:40]!a} needs a pair of the other split that names it back")
        return self


class HiddenTasks(Frozen):
    """hidden.json: the tasks of tasks.json, in the same order."""

    schema_version: Annotated[int, Field(ge=1, le=1)]
    seed: int
    tasks: tuple[HiddenTask, ...]

    def for_ids(self, ids: tuple[str, ...]) -> tuple[HiddenTask, ...]:
        """All tasks. Raises InputRefused unless their ids are these, in order."""
        have = tuple(task.id for task in self.tasks)
        if have != ids:
            raise InputRefused(
                "hidden.json holds other tasks",
                got=f"{len(have)} tasks",
                need=f"the {len(ids)} of tasks.json",
            )
        return self.tasks


def columns(examples: tuple[Example, ...]) -> tuple[Values, Values]:
    """Inputs and outputs of examples, each int8 (n, 5)."""
    return (
        check_values([example.input for example in examples], where="example inputs"),
        check_values([example.output for example in examples], where="example outputs"),
    )

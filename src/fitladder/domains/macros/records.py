"""Prompt records of each arm, made from the visible part of a task set.

A demonstration must come from the train split, be marked verified, give the outputs that it shows, and solve
no evaluation task.
"""

from collections.abc import Sequence

from fitladder.canonical import canonical_bytes
from fitladder.domains.macros.files import TaskInputs
from fitladder.domains.macros.library import Library
from fitladder.domains.macros.primitives import NAMES
from fitladder.domains.macros.program import execute
from fitladder.domains.macros.tasks import (
    MAX_PRIMITIVES,
    MAX_SURFACE_CALLS,
    Demonstration,
    VisibleTask,
    columns,
)
from fitladder.domains.macros.wording import render_system, render_user
from fitladder.errors import InputRefused
from fitladder.prompts.messages import Record, parse_records
from fitladder.records.experiment import ARMS

__all__ = ["build_records", "check_demonstrations", "render_records"]


def check_demonstrations(demonstrations: Sequence[Demonstration], tasks: Sequence[VisibleTask]) -> None:
    """Refuse a demonstration that is not of the train split, not verified, or wrong, or that solves a task.

    Raises InputRefused naming the demonstration and, where it solves the visible examples of one, the task.
    """
    task_ids = {task.id for task in tasks}
    for one in demonstrations:
        what = f"demonstration {ascii(one.id)[:60]}"
        if one.split != "train" or one.id in task_ids:
            raise InputRefused(
                what, got=f"split {ascii(one.split)[:40]}", need="split train; evaluation tasks never leak"
            )
        if not one.verified:
            raise InputRefused(what, got="unverified", need="a verified program")
        if not set(one.program) <= set(NAMES):
            raise InputRefused(what, got="a call that is no primitive")
        inputs, outputs = columns(one.io)
        if not (execute(one.program, inputs) == outputs).all():
            raise InputRefused(what, got="outputs its program does not give", need="an executed example")
        for task in tasks:
            inputs, outputs = columns(task.visible)
            if (execute(one.program, inputs) == outputs).all():
                raise InputRefused(
                    what, got=f"a solution of evaluation task {task.id}", need="disjoint behaviour"
                )


def build_records(inputs: TaskInputs, arm: str) -> tuple[Record, ...]:
    """Records of one arm, in task order. Raises InputRefused on an unknown arm or an unfit demonstration."""
    library = inputs.libraries.libraries.get(arm)
    if library is None or arm not in ARMS:
        raise InputRefused("no such arm", got=ascii(arm)[:40], need=" or ".join(ARMS))
    check_demonstrations(inputs.demonstrations.demonstrations, inputs.visible.tasks)
    rows = [_row(inputs, task, library) for task in inputs.visible.tasks]
    return parse_records(rows, where=f"arm {arm}")


def render_records(inputs: TaskInputs) -> dict[str, bytes]:
    """Canonical JSON of each arm's records by file name, `records_<arm>.json`. Raises as `build_records`."""
    return {
        f"records_{arm}.json": canonical_bytes(
            [record.model_dump(mode="json") for record in build_records(inputs, arm)]
        )
        for arm in ARMS
    }


def _row(inputs: TaskInputs, task: VisibleTask, library: Library) -> dict[str, object]:
    wording = inputs.visible.shape.wording
    user = render_user(
        wording,
        library,
        inputs.demonstrations.demonstrations,
        task.visible,
        max_surface_calls=MAX_SURFACE_CALLS,
        max_primitives=MAX_PRIMITIVES,
    )
    return {
        "id": f"{task.id}::{library.arm}",
        "messages": [
            {"role": "system", "content": render_system(wording, has_macros=bool(library.macros))},
            {"role": "user", "content": user},
        ],
        "meta": {
            "arm": library.arm,
            "library_id": library.id,
            "max_primitives": MAX_PRIMITIVES,
            "max_surface_calls": MAX_SURFACE_CALLS,
            "split": task.split,
            "task_id": task.id,
            "wording": wording,
        },
    }

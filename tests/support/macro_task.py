"""One generated task with its hidden half, and parsed answers that solve it, do not, or are rejected."""

from fitladder.domains.macros.files import parse_hidden, parse_inputs
from fitladder.domains.macros.tasks import TaskShape
from fitladder.domains.macros.taskset import render_task_set
from fitladder.semantics.parse import Candidate, Reason, Rejection

FILES = render_task_set(8, TaskShape(records=2))
INPUTS = parse_inputs(FILES)
HIDDEN = parse_hidden(FILES["hidden.json"], INPUTS.visible.hidden_sha256)
TASK, SECRET = INPUTS.visible.tasks[1], HIDDEN.tasks[1]
RIGHT = Candidate(SECRET.program, SECRET.program)
WRONG = Candidate(("REV",), ("REV",))
NONE = Rejection(Reason.EMPTY)


def half_right():
    """Visible examples of which TASK's program gets four right and REV the other four."""
    shown = list(TASK.visible)
    for at in range(4):
        shown[at] = shown[at].model_copy(update={"output": shown[at].input[::-1]})
    return tuple(shown)

"""Hidden examples grade the choice; hidden tasks of another task set are refused."""

import pytest
from support.macro_task import HIDDEN, INPUTS, NONE, RIGHT, SECRET, TASK, WRONG, half_right

from fitladder.domains.macros.files import parse_hidden, parse_inputs
from fitladder.domains.macros.tasks import TaskShape
from fitladder.domains.macros.taskset import render_task_set
from fitladder.errors import InputRefused
from fitladder.semantics.choose import choose, score_samples
from fitladder.semantics.grade import check_hidden, grade


def test_hidden_examples_grade_the_choice_and_the_oracle_looks_at_all():
    judged = score_samples([WRONG, RIGHT], half_right())
    graded = grade(choose("r", judged), judged, TASK, SECRET)
    assert (graded.hidden_right, graded.hidden_total, graded.is_solved) == (0, 8, False)
    judged = score_samples([WRONG, RIGHT], TASK.visible)
    graded = grade(choose("r", judged), judged, TASK, SECRET)
    assert (graded.hidden_right, graded.is_solved, graded.is_oracle_solved) == (8, True, True)
    judged = score_samples([NONE], TASK.visible)
    graded = grade(choose("r", judged), judged, TASK, SECRET)
    assert (graded.hidden_right, graded.is_solved, graded.is_oracle_solved) == (0, False, False)


def test_right_on_hidden_but_not_on_visible_examples_solves_nothing():
    task = TASK.model_copy(update={"visible": half_right()})
    judged = score_samples([RIGHT], task.visible)
    graded = grade(choose("r", judged), judged, task, SECRET)
    assert (graded.hidden_right, graded.is_solved, graded.is_oracle_solved) == (8, False, False)


def test_hidden_tasks_of_another_set_are_refused():
    assert check_hidden(HIDDEN, INPUTS.visible.tasks) == HIDDEN.tasks
    other = render_task_set(9, TaskShape(records=2))
    stranger = parse_hidden(other["hidden.json"], parse_inputs(other).visible.hidden_sha256)
    with pytest.raises(InputRefused, match="hidden program"):  # same ids, other programs
        check_hidden(stranger, INPUTS.visible.tasks)

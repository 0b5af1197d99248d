import dataclasses

import pytest

from fitladder.domains.macros.files import parse_hidden, parse_inputs
from fitladder.domains.macros.tasks import TaskShape
from fitladder.domains.macros.taskset import render_task_set
from fitladder.errors import BundleError, InputRefused
from fitladder.semantics.choose import choices_sha256, choose, count_right, score_samples
from fitladder.semantics.grade import check_hidden, grade
from fitladder.semantics.parse import Candidate, Reason, Rejection
from fitladder.semantics.selected_samples import AnswerRow, SelectedSamples, check_rows

FILES = render_task_set(8, TaskShape(records=2))
INPUTS = parse_inputs(FILES)
HIDDEN = parse_hidden(FILES["hidden.json"], INPUTS.visible.hidden_sha256)
TASK, SECRET = INPUTS.visible.tasks[1], HIDDEN.tasks[1]
RIGHT = Candidate(SECRET.program, SECRET.program)
WRONG = Candidate(("REV",), ("REV",))
NONE = Rejection(Reason.EMPTY)


def half_right():
    """A program right on some visible examples only cannot be had by hand; make the examples instead."""
    shown = list(TASK.visible)
    for at in range(4):
        shown[at] = shown[at].model_copy(update={"output": shown[at].input[::-1]})
    return tuple(shown)


def test_earliest_among_the_best_by_visible_examples():
    assert choose("r", score_samples([NONE, WRONG, RIGHT, RIGHT], TASK.visible)).sample_index == 2
    assert choose("r", score_samples([RIGHT, WRONG, RIGHT], TASK.visible)).sample_index == 0
    assert choose("r", score_samples([NONE, WRONG, WRONG], TASK.visible)).sample_index == 1
    tied = score_samples([WRONG, RIGHT], half_right())  # four right each
    assert [one.visible_right for one in tied] == [4, 4]
    assert choose("r", tied).sample_index == 0
    nothing = choose("r", score_samples([NONE, NONE], TASK.visible))
    assert (nothing.sample_index, nothing.expansion, nothing.visible_right) == (None, None, 0)


def test_digest_holds_every_choice():
    one = choose("r", score_samples([RIGHT], TASK.visible))
    digests = {choices_sha256([one]), choices_sha256([]), choices_sha256([one, one])}
    digests |= {
        choices_sha256([dataclasses.replace(one, **change)])
        for change in ({"sample_index": 1}, {"record_id": "q"}, {"expansion": ("REV",)}, {"visible_right": 0})
    }
    assert len(digests) == 7


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


def test_count_right():
    assert count_right(SECRET.program, TASK.visible) == 8
    assert count_right((), TASK.visible) == 0


ROWS = tuple(AnswerRow(name, index, (1,)) for name in ("a", "b") for index in range(2))


def history(rows):
    return SelectedSamples("e", 1, 2, "0" * 64, tuple(rows))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (ROWS[:-1], "missing.*'b' sample 1"),
        ((*ROWS, ROWS[0]), "twice.*'a' sample 0"),
        ((*ROWS, AnswerRow("a", 0, (2,))), "twice"),
        ((*ROWS, AnswerRow("a", 2, ())), "not expected.*'a' sample 2"),
        ((*ROWS, AnswerRow("c", 0, ())), "not expected.*'c' sample 0"),
        ((*ROWS[:-1], AnswerRow("b", -1, ())), "missing"),
        ((), "missing"),
    ],
)
def test_expected_rows_are_found_rows_both_ways(rows, words):
    with pytest.raises(BundleError, match=words):
        check_rows(history(rows), ["a", "b"])


def test_rows_come_back_in_sample_order():
    assert check_rows(history(ROWS[::-1]), ["a", "b"]) == {"a": ROWS[:2], "b": ROWS[2:]}
    with pytest.raises(BundleError, match="empty matrix"):
        check_rows(history(()), [])

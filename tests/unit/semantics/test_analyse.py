import dataclasses
import json
import sys

import pytest
from support.compress import compress

from fitladder.canonical import Rate, canonical_bytes
from fitladder.domains.macros.files import load_hidden, load_inputs, parse_hidden, write_files
from fitladder.domains.macros.tasks import TaskShape
from fitladder.domains.macros.taskset import render_task_set
from fitladder.errors import BundleError, InputRefused
from fitladder.records.experiment import ARMS
from fitladder.records.settings import Semantics
from fitladder.semantics.analyse import analyse
from fitladder.semantics.parse import Limits
from fitladder.semantics.selected_samples import AnswerRow, NothingSelected, SelectedSamples

REGISTERED = Semantics(
    min_parse_rate=Rate.parse("0.5"), min_macro_reuse_tasks=2, designed_reuse_oracle_not_below_base=True
)
FILES = render_task_set(21, TaskShape(records=4))
K = 3
OPENED: list[str] = []


def _watch(event, args):
    if event == "open" and isinstance(args[0], str) and args[0].endswith(("hidden.json", "answers.json")):
        OPENED.append(args[0])


sys.addaudithook(_watch)  # cannot be taken off again; it only notes these two names


class World:
    """A task folder, an answers file, and the three callables over them."""

    def __init__(self, folder):
        self.folder = folder
        self.calls = []
        write_files(folder, FILES)
        self.inputs = load_inputs(folder)
        tasks = parse_hidden(FILES["hidden.json"], self.inputs.visible.hidden_sha256).tasks
        designed = self.inputs.libraries.libraries["designed_ceiling"]
        self.answers = {}
        for arm in ARMS:
            for task in tasks:
                surface = compress(task.program, designed) if arm == "designed_ceiling" else task.program
                texts = ["no idea", "PROGRAM: REV", f"PROGRAM: {' | '.join(surface)}<|im_end|>"]
                for index, text in enumerate(texts):
                    self.answers[f"{task.id}::{arm}", index] = text
        self.save()

    def save(self):
        texts = list(self.answers.values())
        (self.folder / "answers.json").write_text(json.dumps(texts))

    def history(self, **changes):
        rows = tuple(AnswerRow(name, index, (at + 1,)) for at, (name, index) in enumerate(self.answers))
        return dataclasses.replace(SelectedSamples("exp", 49_152, K, "e" * 64, rows), **changes)

    def load_inputs(self):
        self.calls.append("inputs")
        return load_inputs(self.folder)

    def decode(self, ids):
        self.calls.append("decode")
        return json.loads((self.folder / "answers.json").read_text())[ids[0] - 1]

    def load_hidden(self, frozen):
        self.calls.append(f"hidden {frozen}")
        return load_hidden(self.folder / "hidden.json", self.inputs.visible.hidden_sha256)

    def run(self, history):
        return analyse(
            history, REGISTERED, Limits(),
            load_inputs=self.load_inputs, decode=self.decode, load_hidden=self.load_hidden,
        )  # fmt: skip


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path / "set")
    OPENED.clear()
    return made


def test_a_whole_matrix(world):
    report = world.run(world.history())
    assert report.eligible
    assert report.is_passed
    for arm in ARMS:
        figures = report.arms[arm]
        assert (figures.samples, figures.parsed_samples, figures.valid_samples) == (12, 8, 8)
        assert figures.rejections == {"no_program_line": 4}
        assert (figures.reuse.solved_tasks, figures.no_reuse.solved_tasks) == (2, 2)
    assert report.arms["designed_ceiling"].reuse.tasks_with_macro_candidate == 2
    assert report.arms["base"].macro_samples == 0
    assert {row.chosen_sample for row in report.tasks} == {2}
    assert len(report.samples) == 24
    assert report.hidden_sha256 == world.inputs.visible.hidden_sha256
    # JSON, and no answer text in it
    plain = json.loads(canonical_bytes(report))
    assert plain["eligible"] is True
    assert "no idea" not in json.dumps(plain)


def test_choices_are_frozen_before_the_hidden_file_opens(world):
    report = world.run(world.history())
    assert world.calls[0] == "inputs"
    assert world.calls[-1] == f"hidden {report.choices_sha256}"
    assert world.calls.count("decode") == 24
    assert [name.rpartition("/")[2] for name in OPENED] == ["answers.json"] * 24 + ["hidden.json"]


def test_nothing_selected_calls_nothing_and_opens_nothing(world):
    def explode(*_):
        raise AssertionError("called before eligibility")

    report = analyse(
        NothingSelected("rung 49152 not adequate"), REGISTERED, Limits(),
        load_inputs=explode, decode=explode, load_hidden=explode,
    )  # fmt: skip
    assert json.loads(canonical_bytes(report)) == {"eligible": False, "reason": "rung 49152 not adequate"}
    assert OPENED == []


def test_a_library_file_without_an_arm_is_refused_before_anything_is_decoded(world):
    libraries = world.inputs.libraries
    less = {name: one for name, one in libraries.libraries.items() if name != "designed_ceiling"}
    inputs = dataclasses.replace(world.inputs, libraries=libraries.model_copy(update={"libraries": less}))
    world.load_inputs = lambda: inputs
    with pytest.raises(InputRefused, match="lacks an arm: need designed_ceiling"):
        world.run(world.history())
    assert world.calls == []


@pytest.mark.parametrize(
    "mutation", ["swap answers", "correct answers", "swap hidden", "delete both", "garbage"]
)
def test_mutations_before_eligibility_change_nothing_and_open_nothing(world, mutation):
    before = canonical_bytes(world.run(NothingSelected("selected: null")))
    hidden, answers = world.folder / "hidden.json", world.folder / "answers.json"
    if mutation == "swap answers":
        world.answers = dict(zip(world.answers, reversed(world.answers.values()), strict=True))
        world.save()
    elif mutation == "correct answers":
        world.answers = dict.fromkeys(world.answers, "PROGRAM: REV")
        world.save()
    elif mutation == "swap hidden":
        hidden.write_bytes(render_task_set(22, TaskShape(records=4))["hidden.json"])
    elif mutation == "delete both":
        hidden.unlink()
        answers.unlink()
    else:
        hidden.write_bytes(b"\xff")
        answers.write_bytes(b"\xff")
    OPENED.clear()
    assert canonical_bytes(world.run(NothingSelected("selected: null"))) == before
    assert OPENED == []
    assert world.calls == []


def test_a_swapped_hidden_file_cannot_move_the_choice_and_is_refused(world):
    frozen = world.run(world.history()).choices_sha256
    (world.folder / "hidden.json").write_bytes(render_task_set(22, TaskShape(records=4))["hidden.json"])
    world.calls.clear()
    with pytest.raises(InputRefused, match=r"not the file that tasks\.json names"):
        world.run(world.history())
    assert world.calls[-1] == f"hidden {frozen}"


def test_row_order_does_not_matter(world):
    forward = world.run(world.history())
    backward = world.run(world.history(rows=world.history().rows[::-1]))
    assert forward == backward


def test_incomplete_matrix_is_refused_before_anything_is_decoded(world):
    for rows in (world.history().rows[1:], (), world.history().rows[:12]):
        world.calls.clear()
        with pytest.raises(BundleError):
            world.run(world.history(rows=rows))
        assert world.calls == ["inputs"]
    assert OPENED == []


@pytest.mark.parametrize(("has_ids", "reason"), [(False, "empty"), (True, "no_program_line")])
def test_only_the_answer_region_is_graded(world, has_ids, reason):
    # The thinking held the right program; stage 2 gave (A, B) nothing, or (C) ids without a program.
    world.answers = dict.fromkeys(world.answers, "so the list is reversed and then " * 20)
    world.save()
    rows = world.history().rows
    if not has_ids:
        rows = tuple(dataclasses.replace(row, answer_token_ids=()) for row in rows)
    report = world.run(world.history(rows=rows))
    for figures in report.arms.values():
        assert (figures.samples, figures.parsed_samples, figures.reuse.solved_tasks) == (12, 0, 0)
        assert figures.rejections == {reason: 12}
    assert not report.is_passed
    assert ("decode" in world.calls) == has_ids


def test_attacks_leave_the_other_samples_graded(world):
    names = list(world.answers)
    attacks = ["9" * 4301, "PROGRAM: " + "M0 | " * 10_000 + "M0", "PROGRAM: \ud835", "\x00", "(" * 60_000]
    for name, text in zip([name for name in names if name[1] == 0], attacks, strict=False):
        world.answers[name] = text
    world.save()
    report = world.run(world.history())
    assert report.is_passed
    assert sum(row.rejected is not None for row in report.samples) == 8
    canonical_bytes(report).decode("ascii")


def test_a_decoder_that_breaks_loses_one_sample(world):
    def decode(ids):
        if ids == (1,):
            raise OverflowError("can't convert negative int \ud835")
        return World.decode(world, ids)

    report = analyse(
        world.history(), REGISTERED, Limits(),
        load_inputs=world.load_inputs, decode=decode, load_hidden=world.load_hidden,
    )  # fmt: skip
    first = report.samples[0]
    assert first.rejected == "undecodable"
    assert "OverflowError" in first.detail
    assert report.arms["base"].rejections == {"no_program_line": 3, "undecodable": 1}

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fitladder.canonical import canonical_bytes, sha256_bytes
from fitladder.domains.macros.depth import DepthIndex, program_signature
from fitladder.domains.macros.files import (
    FILES,
    load_hidden,
    load_inputs,
    parse_hidden,
    parse_inputs,
    write_files,
)
from fitladder.domains.macros.mining import motif_occurrences
from fitladder.domains.macros.program import execute
from fitladder.domains.macros.tasks import TaskShape, columns
from fitladder.domains.macros.taskset import load_excluded, render_task_set
from fitladder.errors import InputRefused

REHEARSAL = TaskShape(records=6, visible=4, hidden=4, demonstrations=1, macros=4, wording="compact")
COMMITTED = Path(__file__).parents[3] / "data/inputs/smollm2_135m_cpu_rehearsal"


@pytest.fixture(scope="module")
def files():
    return render_task_set(11, TaskShape())


@pytest.fixture(scope="module")
def halves(files):
    inputs = parse_inputs(files)
    return inputs, parse_hidden(files["hidden.json"], inputs.visible.hidden_sha256)


def motifs(inputs):
    macros = inputs.libraries.libraries["designed_ceiling"].macros
    return {one.source_name: one.expansion for one in macros if not one.source_name.startswith("DECOY")}


def test_pairs_are_controls_of_each_other(halves):
    inputs, hidden = halves
    sealed = {task.id: task for task in hidden.tasks}
    designed = motifs(inputs)
    assert len(designed) == 3
    assert [task.split for task in inputs.visible.tasks] == ["no_reuse"] * 6 + ["reuse"] * 6
    for task in inputs.visible.tasks:
        program = sealed[task.id].program
        pair = sealed[task.paired_task_id].program
        assert sorted(program) == sorted(pair)
        assert program != pair
        present = {name for name, chunk in designed.items() if motif_occurrences(program, chunk)}
        assert present == set(sealed[task.id].motif_names)
        assert len(present) == (2 if task.split == "reuse" else 0)


def test_every_depth_is_truly_five_even_on_the_visible_examples(halves):
    inputs, hidden = halves
    index = DepthIndex.build()
    for task, sealed in zip(inputs.visible.tasks, hidden.tasks, strict=True):
        assert index.min_depth(sealed.program) is None
        shown = columns(task.visible)[0]
        assert DepthIndex.build(shown).min_depth(sealed.program) is None


def test_examples_execute_and_never_share_an_input(halves):
    inputs, hidden = halves
    for task, sealed in zip(inputs.visible.tasks, hidden.tasks, strict=True):
        examples = (*task.visible, *sealed.hidden, *sealed.probe)
        given, wanted = columns(examples)
        assert (execute(sealed.program, given) == wanted).all()
        assert len({one.input for one in examples}) == len(examples) == 24


def test_no_behaviour_comes_twice_nor_from_training(halves):
    inputs, hidden = halves
    signatures = [task.program_signature for task in hidden.tasks]
    assert signatures == [program_signature(task.program) for task in hidden.tasks]
    shown = [program_signature(one.program) for one in inputs.demonstrations.demonstrations]
    assert len(set(signatures + shown)) == 12 + 3


def test_visible_half_holds_nothing_sealed(files, halves):
    _, hidden = halves
    text = files["tasks.json"].decode()
    for task in hidden.tasks:
        for example in (*task.hidden, *task.probe):
            assert json.dumps(example.input, separators=(",", ":")) not in text
    tasks = text[text.index('"tasks":') :]
    for word in ("program", "motif", "probe", "depth", "signature", "REV", "ADD1"):
        assert word not in tasks


def test_same_bytes_under_another_hash_seed(files):
    code = (
        "from fitladder.domains.macros.taskset import render_task_set;"
        "from fitladder.domains.macros.tasks import TaskShape;"
        "from fitladder.canonical import sha256_bytes;"
        "print(*[sha256_bytes(x) for x in render_task_set(11, TaskShape()).values()])"
    )
    want = [sha256_bytes(data) for data in files.values()]
    other = "4242" if os.environ.get("PYTHONHASHSEED") != "4242" else "0"  # than this process's own
    out = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": other},
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.split() == want


def test_a_larger_set_begins_with_the_smaller():
    small = json.loads(render_task_set(3, TaskShape(records=4))["hidden.json"])["tasks"]
    large = json.loads(render_task_set(3, TaskShape(records=8))["hidden.json"])["tasks"]
    assert small == large[:2] + large[4:6]


def test_committed_rehearsal_is_what_its_seed_makes():
    for name, data in render_task_set(2701, REHEARSAL).items():
        assert (COMMITTED / name).read_bytes() == data


def test_excluded_sets_share_nothing(tmp_path, files):
    write_files(tmp_path / "old", files)
    excluded = load_excluded([tmp_path / "old"])
    assert len(excluded.programs) == 12
    kept = (set(excluded.programs), set(excluded.signatures))
    new = render_task_set(11, TaskShape(), excluded)  # the same seed would otherwise repeat itself
    assert (excluded.programs, excluded.signatures) == kept
    inputs = parse_inputs(new)
    programs = [task.program for task in parse_hidden(new["hidden.json"], inputs.visible.hidden_sha256).tasks]
    programs += [one.program for one in inputs.demonstrations.demonstrations]
    assert not {program_signature(one) for one in programs} & excluded.signatures


def test_files_are_read_back_and_never_overwritten(tmp_path, files, halves):
    write_files(tmp_path, files)
    write_files(tmp_path, files)
    assert load_inputs(tmp_path) == halves[0]
    (tmp_path / "hidden.json").write_bytes(files["hidden.json"] + b" ")
    with pytest.raises(InputRefused, match="other bytes"):
        write_files(tmp_path, files)
    with pytest.raises(InputRefused, match=r"not the file that tasks\.json names"):
        load_hidden(tmp_path / "hidden.json", halves[0].visible.hidden_sha256)
    (tmp_path / "hidden.json").unlink()
    assert load_inputs(tmp_path) == halves[0]  # the open half needs no sealed file
    with pytest.raises(InputRefused, match="cannot be read"):
        load_hidden(tmp_path / "hidden.json", halves[0].visible.hidden_sha256)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("tasks.json", lambda d: d["tasks"].pop()),
        ("tasks.json", lambda d: d["tasks"][0].update(paired_task_id=d["tasks"][0]["id"])),
        ("tasks.json", lambda d: d["tasks"][0].update(program=["ADD1"])),
        ("tasks.json", lambda d: d["tasks"][0]["visible"][0].update(input=[1, 2, 3, 4, 17])),
        ("tasks.json", lambda d: d["tasks"][0]["visible"][0].update(input=[1, 2, 3, 4])),
        ("tasks.json", lambda d: d["tasks"][0]["visible"][0].update(input=[1, 2, 3, 4, True])),
        ("tasks.json", lambda d: d.update(schema_version=2)),
        ("demonstrations.json", lambda d: d["demonstrations"][0].pop("verified")),
        ("libraries.json", lambda d: d["libraries"].update(mined=d["libraries"]["base"])),
    ],
)
def test_malformed_open_halves_are_refused(files, name, change):
    data = json.loads(files[name])
    change(data)
    with pytest.raises(InputRefused):
        parse_inputs(files | {name: canonical_bytes(data)})


def test_sealed_tasks_must_be_those_of_the_open_half(files, halves):
    inputs, hidden = halves
    ids = tuple(task.id for task in inputs.visible.tasks)
    assert hidden.for_ids(ids) == hidden.tasks
    with pytest.raises(InputRefused, match="other tasks"):
        hidden.for_ids(ids[::-1])
    data = json.loads(files["hidden.json"])
    data["tasks"][0]["program"][0] = "EVAL"
    raw = canonical_bytes(data)
    with pytest.raises(InputRefused, match="primitives"):
        parse_hidden(raw, sha256_bytes(raw))


def test_file_names():
    assert FILES == ("tasks.json", "hidden.json", "libraries.json", "demonstrations.json")

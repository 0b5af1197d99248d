"""Engine processes that die, hang, lie or are left alone: one line each, and nothing survives."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.sample_rows import read_rows

from fitladder.canonical import sha256_file
from fitladder.engine.parent.process import EngineProcess, engine_command
from fitladder.engine.request import load_request, write_request
from fitladder.errors import EngineFailed, EnvironmentNotReady

SCRIPTED = Path(__file__).parents[1] / "scripted"


@pytest.fixture
def start(tmp_path):
    request = load_request(SCRIPTED / "request.json").model_copy(
        update={"samples_path": str(tmp_path / "samples.parquet")}
    )

    def started(**script):
        path = tmp_path / "script.json"
        path.write_text(json.dumps(script))
        command = [sys.executable, str(SCRIPTED / "engine.py"), str(path)]
        return EngineProcess.start(request, command=command, log_path=tmp_path / "engine.log")

    return started


def run(engine, *, build_s=30, generate_s=30, on_progress=lambda *_: None):
    facts, runtime = engine.wait_facts(build_s)
    return facts, runtime, engine.generate(on_progress, generate_s)


def gone(pid: int) -> bool:
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":  # dead, and only not yet reaped by init
            return True
        time.sleep(0.05)
    return False


def test_facts_then_rows_then_a_clean_end(start, tmp_path):
    seen = []
    with start() as engine:
        facts, runtime, result = run(engine, on_progress=lambda stage, counts: seen.append((stage, counts)))
    assert engine.stop() == 0
    assert (facts.num_blocks, facts.max_num_seqs) == (110, 12)
    assert runtime.environment == {"OMP_WAIT_POLICY": "PASSIVE"}
    assert {stage for stage, _ in seen} == {1, 2}
    assert result.samples_sha256 == sha256_file(result.samples_path)
    assert result.rows == 12
    rows = read_rows(result.samples_path.read_bytes())
    assert [(row.record_id, row.sample_index) for row in rows] == [
        (f"r{r}", i) for r in range(3) for i in range(4)
    ]
    assert sum(row.forced_close for row in rows) == 9
    counters = result.metadata.counters
    assert counters["sampled_tokens"] == sum(
        len(row.stage1_token_ids) + len(row.stage2_token_ids) for row in rows
    )
    assert counters["repeated_samples"] == counters["preemptions"] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "engine.log", "engine.request.json", "samples.parquet", "script.json",
    ]  # fmt: skip


@pytest.mark.parametrize("place", ["facts", "stage1", "stage2"])
def test_a_crash_is_one_line_with_its_cause_and_the_log(start, place, tmp_path):
    with start(crash=place) as engine, pytest.raises(EngineFailed) as caught:
        run(engine)
    line = str(caught.value)
    assert "killed by SIGKILL" in line
    assert f"ScriptedError: torn down in {place}" in line
    assert str(tmp_path / "engine.log") in line
    assert "\n" not in line
    assert not (tmp_path / "samples.parquet").exists()


@pytest.mark.parametrize("place", ["facts", "stage1"])
def test_a_hang_ends_at_the_deadline_with_everything_it_started(start, place, tmp_path):
    started = time.monotonic()
    with (
        start(hang=place, spawn=str(tmp_path / "pid")) as engine,
        pytest.raises(EngineFailed, match="deadline"),
    ):
        run(engine, build_s=3 if place == "facts" else 30, generate_s=0.8)
    assert time.monotonic() - started < 15
    assert engine.stop() < 0
    assert gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ({"nonsense": "facts"}, "reported nonsense"),
        ({"refuse": "stage1"}, "RuntimeError: scripted refusal in stage1"),
    ],
    ids=["nonsense", "refusal"],
)
def test_what_the_engine_says_becomes_the_line(start, script, message):
    with start(**script) as engine, pytest.raises(EngineFailed, match=message):
        run(engine)
    assert engine.stop() != 0


def test_rows_that_are_not_the_bytes_reported_are_no_result(start, tmp_path):
    tampering = [sys.executable, "-c", TAMPERING, str(SCRIPTED)]
    request = load_request(SCRIPTED / "request.json").model_copy(
        update={"samples_path": str(tmp_path / "samples.parquet")}
    )
    with (
        EngineProcess.start(request, command=tampering, log_path=tmp_path / "engine.log") as engine,
        pytest.raises(
            EngineFailed,
            match=r"rows are not the bytes that it reported: got [0-9a-f]{64}, need [0-9a-f]{64}",
        ),
    ):
        run(engine)


TAMPERING = """
import sys
sys.path.insert(0, sys.argv[1])
from engine import Script, ScriptedEngine
from fitladder.engine.child import main as child
write = child.replace_file
child.replace_file = lambda path, data, **named: write(path, data[:-1], **named)
sys.exit(child.serve(lambda request: ScriptedEngine(request, Script()), sys.argv[-2:]))
"""


def test_facts_of_another_shape_are_refused(start):
    with start(facts={"num_blocks": 7}) as engine:
        assert engine.wait_facts(30)[0].num_blocks == 7
    with start(facts={"surprise": 1}) as engine, pytest.raises(EngineFailed, match="surprise"):
        engine.wait_facts(30)


def test_an_engine_that_is_not_told_to_generate_samples_nothing(start, tmp_path):
    with start() as engine:
        engine.wait_facts(30)
    assert engine.stop() == 0
    assert not (tmp_path / "samples.parquet").exists()


def test_an_interrupt_kills_the_whole_group(start, tmp_path):
    def interrupted(*_):
        raise KeyboardInterrupt

    engine = start(delay_s=0.2, spawn=str(tmp_path / "pid"))
    with pytest.raises(KeyboardInterrupt), engine:
        run(engine, on_progress=interrupted)
    assert gone(int((tmp_path / "pid").read_text()))
    with pytest.raises(EngineFailed, match="died before it was told"):
        engine.generate(lambda *_: None, 1)


PARENT = """
import sys, time
from pathlib import Path
from fitladder.engine.parent.process import EngineProcess
from fitladder.engine.request import load_request
engine = EngineProcess.start(
    load_request(Path(sys.argv[1])),
    command=[sys.executable, sys.argv[2], sys.argv[3]],
    log_path=Path(sys.argv[4]),
)
engine.wait_facts(30)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_dead_parent_leaves_no_engine_behind(tmp_path, number):
    script, pid_file = tmp_path / "script.json", tmp_path / "pid"
    script.write_text(json.dumps({"spawn": str(pid_file)}))
    request = tmp_path / "given.json"
    write_request(request, load_request(SCRIPTED / "request.json"))
    words = [str(request), str(SCRIPTED / "engine.py"), str(script), str(tmp_path / "engine.log")]
    parent = subprocess.Popen([sys.executable, "-c", PARENT, *words], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ready\n"
    grandchild = int(pid_file.read_text())
    engine = os.getpgid(grandchild)
    parent.send_signal(number)
    parent.communicate(timeout=10)
    assert gone(engine)
    assert gone(grandchild)


def test_a_missing_engine_is_named(start, tmp_path):
    with pytest.raises(EnvironmentNotReady, match="make setup"):
        engine_command(tmp_path / "python")
    request = load_request(SCRIPTED / "request.json")
    with pytest.raises(EngineFailed, match="did not start"):
        EngineProcess.start(request, command=[str(tmp_path / "none")], log_path=tmp_path / "engine.log")


def test_the_engine_module_answers_wrong_words_with_its_usage():
    run = subprocess.run(
        [sys.executable, str(SCRIPTED / "engine.py")], capture_output=True, text=True, check=False, timeout=30
    )
    assert run.returncode == 9
    assert "started by fitladder" in run.stderr

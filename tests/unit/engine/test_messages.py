"""Events cross the descriptor unchanged; a parent that gets anything else ends the process and says why."""

import sys
from pathlib import Path

import pytest

from fitladder.engine.messages import (
    Event,
    Failed,
    GenerationMetadata,
    GenerationResult,
    LiveCounts,
    render_event,
)
from fitladder.engine.parent.process import EngineProcess
from fitladder.engine.request import load_request
from fitladder.errors import EngineFailed
from fitladder.sampling.engine_protocol import Progress

REQUEST = Path(__file__).parents[2] / "scripted" / "request.json"
SAYS = "import os, sys; os.write(int(sys.argv[-1]), sys.argv[1].encode()); sys.stdin.read()"
LIVE = LiveCounts(
    stage=2,
    progress=Progress(
        sampled_tokens=7, elapsed_s=0.5, running_seqs=1, waiting_seqs=0, kv_used_blocks=3, preemptions=0
    ),
)


@pytest.mark.parametrize(
    "event",
    [
        LIVE,
        Failed(kind="ValueError", message="a \u2028 and a\nnew line"),
        GenerationResult(
            samples_path=Path("/x/samples.parquet"),
            samples_sha256="a" * 64,
            rows=2,
            metadata=GenerationMetadata(
                engine_load_us=1,
                stage1_generation_us=2,
                stage2_generation_us=0,
                counters={"preemptions": 0},
                warnings=("jit",),
            ),
        ),
    ],
    ids=lambda event: event.event,
)
def test_an_event_is_one_line_and_reads_back_equal(event: Event) -> None:
    line = render_event(event)
    assert line.isascii()
    assert line.index("\n") == len(line) - 1
    assert type(event).model_validate_json(line) == event


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("no JSON", "reported nonsense while building the engine: 'no JSON'"),
        ("[]", r"reported nonsense while building the engine: '\[\]'"),
        ("{}", "reported nonsense while building the engine"),
        ('{"event": "facts"}', "reported nonsense while building the engine: event facts: field facts"),
        ('{"event": "facts", "facts": {}, "runtime": {}, "more": 1}', "event facts: field more"),
        ('{"event": "done"}', "said 'done' while building the engine"),
        (render_event(LIVE), "said 'progress' while building the engine"),
        (
            '{"event": "failed", "kind": "X", "message": "no room"}',
            "failed while building the engine: no room",
        ),
    ],
)
def test_an_event_out_of_place_or_of_another_form_ends_the_process(
    line: str, message: str, tmp_path: Path
) -> None:
    with (
        EngineProcess.start(
            load_request(REQUEST),
            command=[sys.executable, "-c", SAYS, line.removesuffix("\n") + "\n"],
            log_path=tmp_path / "engine.log",
        ) as engine,
        pytest.raises(EngineFailed, match=message),
    ):
        engine.wait_facts(30)
    assert engine.stop() != 0

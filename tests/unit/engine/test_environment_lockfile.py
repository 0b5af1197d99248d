"""Each kind of engine has its own lock; an environment that is not what the lock names is told apart."""

from pathlib import Path

import pytest

from fitladder.engine.environment_lockfile import audit_lockfile, engine_lockfile, parse_pins
from fitladder.registry.load import load_registry
from fitladder.workspace import Workspace

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("backend", "name"), [("vllm-cuda", "engine-gpu.txt"), ("vllm-cpu", "engine-cpu.txt")]
)
def test_a_lock_for_each_kind_of_engine(tmp_path, backend, name):
    assert engine_lockfile(tmp_path, backend) is None
    (tmp_path / name).write_text("")
    assert engine_lockfile(tmp_path, backend) == tmp_path / name


def test_the_workspace_names_the_lock_of_the_registered_engine():
    workspace, registry = Workspace(ROOT, {}), load_registry(ROOT / "params.yaml")
    names = {
        name: workspace.engine_lockfile(registry.experiment(name).engine).name
        for name in ("qwen35_4b_verified_macro_exact_cudagraph_rerun", "smollm2_135m_cpu_rehearsal")
    }
    assert list(names.values()) == ["engine-gpu.txt", "engine-cpu.txt"]


def test_locks_are_whole_and_name_their_engine():
    for name, engine, torch in (
        ("engine-gpu.txt", ("vllm", "0.24.0"), "2.11.0"),
        ("engine-cpu.txt", ("vllm-cpu", "0.32.0"), "2.13.0"),
    ):
        text = (ROOT / "locks" / name).read_text()
        pins = parse_pins(text)
        assert (pins[engine[0]], pins["torch"]) == (engine[1], torch)
        assert {"pydantic", "numpy", "pyarrow", "tokenizers", "matplotlib"} <= set(pins)  # the core's
        blocks = [line for line in text.replace(" \\\n", " ").splitlines() if line and line[0] != "#"]
        assert len(blocks) == len(pins)
        assert all("--hash=sha256:" in block for block in blocks)


def test_differences_are_named_and_local_versions_play_no_part():
    pins = parse_pins("torch==2.13.0 \\\n    --hash=sha256:00\nhf_xet==1.2\nx.y==1 ; python_version > '3'\n")
    assert pins == {"torch": "2.13.0", "hf-xet": "1.2", "x-y": "1"}
    assert audit_lockfile(pins, {"torch": "2.13.0+cpu", "hf-xet": "1.2", "X_Y": "1", "more": "9"}) == ()
    assert audit_lockfile(pins, {"torch": "2.12.0", "x-y": "1"}) == (
        "engine lock: hf-xet got none, need 1.2",
        "engine lock: torch got 2.12.0, need 2.13.0",
    )

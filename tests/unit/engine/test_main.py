"""An engine process that would run other code than what was bound says so before it builds anything."""

import os
import sys
from pathlib import Path

import pytest

from fitladder.engine.parent.process import EngineProcess
from fitladder.engine.request import EngineRequest, load_request
from fitladder.errors import EngineFailed
from fitladder.registry.binding import PACKAGE, generation_code_sha256

SCRIPTED = Path(__file__).parents[2] / "scripted"
COMMAND = [sys.executable, str(SCRIPTED / "engine.py")]


@pytest.fixture
def request_here(tmp_path: Path) -> EngineRequest:
    return load_request(SCRIPTED / "request.json").model_copy(
        update={
            "samples_path": str(tmp_path / "samples.parquet"),
            "generation_code_sha256": generation_code_sha256(),
        }
    )


def built(request: EngineRequest, folder: Path, **variables: str) -> dict[str, str]:
    """Start a scripted engine as a phase does; what it reports of its environment."""
    inherited = {**os.environ, **variables}
    with EngineProcess.start(
        request, command=COMMAND, log_path=folder / "engine.log", inherited=inherited
    ) as engine:
        _, runtime = engine.wait_facts(30)
    return runtime.environment


def test_a_child_of_the_bound_code_builds(request_here: EngineRequest, tmp_path: Path) -> None:
    assert built(request_here, tmp_path) == {"OMP_WAIT_POLICY": "PASSIVE"}


def test_a_child_of_other_code_is_refused(request_here: EngineRequest, tmp_path: Path) -> None:
    """The engine's environment has this package too, but one constant of it is another."""
    copy = tmp_path / "elsewhere" / "fitladder"
    copy.mkdir(parents=True)
    for path in PACKAGE.rglob("*.py"):
        target = copy / path.relative_to(PACKAGE)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    environment = copy / "sampling" / "parameters.py"
    environment.write_bytes(environment.read_bytes() + b"\nTEMPERATURE_FACTOR = 1.1\n")
    with pytest.raises(EngineFailed, match=r"imports other code, from .*elsewhere") as refused:
        built(request_here, tmp_path, PYTHONPATH=str(copy.parent))
    assert generation_code_sha256() in str(refused.value)


def test_a_startup_hook_is_refused(request_here: EngineRequest, tmp_path: Path) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(
        "import fitladder.sampling.seeds as s\ns.stage1_seed = lambda *_: 1\n"
    )
    with pytest.raises(EngineFailed, match=rf"a sitecustomize ran before the engine: got {hooks}"):
        built(request_here, tmp_path, PYTHONPATH=str(hooks))

"""A small study, and a host that runs it on scripted cells."""

import functools
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.study_text import study_text

from fitladder.study.plan import Study, parse_study
from fitladder.study.run import StudyHost, run_study

TEXT = study_text(
    "small_study",
    """
cells:
  - {width: [4, 12], capture: none, pool_blocks: 14, admission: worst_case, samples: 12}
  - {width: 12, capture: none, pool_blocks: 14, admission: spaced, samples: 12}
  - {width: 4, capture: exact, pool_blocks: 14, admission: worst_case, samples: 12, bare: true}
""",
    """
comparisons:
  - numerator: w12-none-p14-spaced-n12
    denominator: w12-none-p14-worst_case-n12
    shows: Spaced against overcommitted
""",
    engines_at_once=2,
)


@pytest.fixture
def text() -> str:
    """The small study's own text, to be changed."""
    return TEXT


@pytest.fixture
def study() -> Study:
    return parse_study(TEXT, where="small")


@pytest.fixture
def study_file(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(TEXT)
    return path


def scripted_host(
    folder: Path, script: dict[str, Any] | None = None, stop_after_s: float | None = None
) -> StudyHost:
    script_path = folder / "script.json"
    script_path.write_text(json.dumps(script or {}))
    here = Path(__file__).with_name("scripted_cell.py")
    return StudyHost(
        out=folder / "out",
        work=folder / "work",
        models=folder / "models",
        command=lambda: [sys.executable, str(here), str(folder / "runs.log"), str(script_path)],
        stop_after_s=stop_after_s,
        say=lambda _: None,
    )


@pytest.fixture
def host(tmp_path: Path) -> Callable[..., StudyHost]:
    """A host in tmp_path whose cells do what the script says."""
    return functools.partial(scripted_host, tmp_path)


@pytest.fixture(scope="session")
def _finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    (folder / "study.yaml").write_text(TEXT)
    run_study(folder / "study.yaml", scripted_host(folder))
    return folder


@pytest.fixture
def finished(_finished: Path, tmp_path: Path) -> Path:
    """A copy of a study that ran to its end: study.yaml, out, work, runs.log."""
    shutil.copytree(_finished, tmp_path, dirs_exist_ok=True)
    return tmp_path

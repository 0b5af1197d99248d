"""The committed dvc.lock: whole, of one piece; what it says of prompts and history comes out here, too."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fitladder.dvc_api.check import check_chain, check_output_paths
from fitladder.dvc_files.experiment_lists import load_lists
from fitladder.dvc_files.graph import load_outputs
from fitladder.dvc_files.lock_file import LockedStage, load_lock
from fitladder.dvc_files.md5 import raw_md5
from fitladder.records.registry import Registry
from fitladder.registry.load import load_registry
from fitladder.stages.history import make_history
from fitladder.stages.prompts import make_prompts

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def lock() -> dict[str, LockedStage]:
    return load_lock(ROOT / "dvc.lock")


def test_every_stage_of_the_graph_is_recorded_where_the_graph_puts_it(lock: dict[str, LockedStage]) -> None:
    promised = load_outputs(ROOT / "dvc.yaml", list(load_registry(ROOT / "params.yaml").experiments))
    assert lock.keys() == promised.keys()
    check_output_paths(lock, promised)
    check_chain(lock)


def test_no_path_of_a_machine_is_in_it(lock: dict[str, LockedStage]) -> None:
    paths = [path for stage in lock.values() for path in (*stage.deps, *stage.outs)]
    assert len(paths) > 50
    assert not [path for path in paths if path.startswith(("/", "..", "~"))]


@pytest.mark.parametrize(("stage", "kind"), [("prompts", "carried"), ("history", "recorded")])
def test_what_needs_no_gpu_comes_out_byte_for_byte(
    lock: dict[str, LockedStage], tmp_path: Path, stage: str, kind: str
) -> None:
    make: Callable[[Registry, str, Path], str] = {"prompts": make_prompts, "history": make_history}[stage]
    registry = load_registry(ROOT / "params.yaml")
    for name in ("inputs", "history"):
        shutil.copytree(ROOT / "data" / name, tmp_path / "data" / name)
    for experiment_id in load_lists(ROOT / "dvc.yaml")[kind]:
        make(registry, experiment_id, tmp_path / "data")
        outs = lock[f"{stage}@{experiment_id}"].outs.values()
        assert {out.path: raw_md5(tmp_path / out.path) for out in outs} == {out.path: out.md5 for out in outs}

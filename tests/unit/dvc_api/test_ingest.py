"""Bundles come in whole or not at all, whatever step dies; nothing that was carried disappears."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import bundles as make

import fitladder.dvc_api.ingest as module
from fitladder.dvc_api.ingest import Ingested, ingest
from fitladder.errors import BundleError, BundlePartial, BundleTampered, LineageError, RootRefused
from fitladder.records.experiment import Experiment
from fitladder.records.registry import Registry
from fitladder.store.verify_root import verify_root

ID = make.ID
Bring = Callable[[], Ingested]


@pytest.fixture(autouse=True)
def _binding_of_the_factory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "bind", make.binding)


def _registry(*experiments: Experiment) -> Registry:
    return Registry(experiments={one.experiment_id: one for one in experiments}, reviewers=(), gpu_owners={})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make.make_root(tmp_path / "root")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def bring(root: Path, data: Path) -> Bring:
    return lambda: ingest(_registry(make.experiment()), ID, root, data, {})


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _more(root: Path) -> None:
    make.make_root(root, done=((96, "probe"),))


def test_the_copy_is_the_root_without_its_lock_and_owner(bring: Bring, root: Path, data: Path) -> None:
    done = bring()
    assert (done.bundles, done.is_new) == (1, True)
    need = {name: data for name, data in _files(root).items() if not name.startswith(".")}
    assert _files(done.folder) == need
    assert not (data / ".incoming" / ID).exists()
    assert [path.name for path in (data / "bundles").iterdir()] == [ID]  # verify takes nothing else for one
    again = bring()
    assert (again.is_new, again.tree_sha256) == (False, done.tree_sha256)


def test_a_later_state_replaces_an_earlier_one_and_never_the_other_way(
    bring: Bring, root: Path, data: Path
) -> None:
    earlier = Path(shutil.copytree(root, root.with_name("earlier")))
    bring()
    _more(root)
    assert bring().bundles == 2
    with pytest.raises(LineageError, match=r"is no earlier state of .*earlier: got checkpoint 4, 2 bundles"):
        ingest(_registry(make.experiment()), ID, earlier, data, {})
    assert len(verify_root(data / "bundles" / ID, ID).bundles) == 2


def test_another_root_of_the_same_experiment_is_refused(bring: Bring, tmp_path: Path, data: Path) -> None:
    bring()
    other = make.make_root(tmp_path / "other")
    with pytest.raises(LineageError, match="is no earlier state of"):
        ingest(_registry(make.experiment()), ID, other, data, {})


STEPS = ("verify_root", "_holds", "_copy", "_exchange", "sync_folder", "_done", "read_plain")


@pytest.mark.parametrize("when", range(4))
@pytest.mark.parametrize("step", STEPS)
def test_interrupted_at_any_step_it_goes_on_and_is_never_half_in(  # noqa: PLR0917 - fixtures come by name
    bring: Bring, root: Path, data: Path, monkeypatch: pytest.MonkeyPatch, step: str, when: int
) -> None:
    """`when`: at which call of the step the process dies; before it, as after a kill."""
    bring()
    target = data / "bundles" / ID
    before = _files(target)
    _more(root)
    after = {name: data for name, data in _files(root).items() if not name.startswith(".")}
    real, calls = getattr(module, step), iter(range(1_000))

    def die(*words: Any, **named: Any) -> Any:
        if next(calls) == when:
            raise KeyboardInterrupt
        return real(*words, **named)

    with monkeypatch.context() as patch:
        patch.setattr(module, step, die)
        try:
            bring()
        except KeyboardInterrupt:
            assert _files(target) in (before, after)
    assert bring().bundles == 2
    assert _files(target) == after
    assert sorted(path.name for path in target.parent.iterdir() if any(path.iterdir())) == [ID]


@pytest.mark.parametrize("between", ["target moved out", "copy moved in"])
def test_killed_between_the_two_renames_nothing_is_lost(
    bring: Bring, root: Path, data: Path, monkeypatch: pytest.MonkeyPatch, between: str
) -> None:
    bring()
    _more(root)
    rename, calls = Path.rename, iter(range(1_000))

    def die(self: Path, target: Path) -> Path:
        made = rename(self, target)
        if next(calls) == (0 if between == "target moved out" else 1):
            raise KeyboardInterrupt
        return made

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", die)
        with pytest.raises(KeyboardInterrupt):
            bring()
    assert bring().bundles == 2
    verify_root(data / "bundles" / ID, ID)


def test_a_root_that_cannot_be_believed_leaves_the_copy_as_it_was(
    bring: Bring, root: Path, data: Path
) -> None:
    bring()
    before = _files(data / "bundles" / ID)
    _more(root)
    samples = root / "think_96/probe/samples.parquet"
    whole = samples.read_bytes()
    samples.write_bytes(whole[:-1])
    with pytest.raises(BundleTampered, match=r"think_96/probe/samples\.parquet"):
        bring()
    samples.write_bytes(whole)
    (root / "think_96/probe/receipt.json").unlink()
    with pytest.raises(BundleError, match="think_96/probe"):
        bring()
    assert _files(data / "bundles" / ID) == before


def test_a_tampered_copy_is_refused_not_replaced(bring: Bring, data: Path) -> None:
    bring()
    path = data / "bundles" / ID / "think_64/probe/engine.json"
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(BundleTampered, match=r"engine\.json"):
        bring()


def test_a_phase_that_was_only_begun_comes_along_as_that(tmp_path: Path, data: Path) -> None:
    root = make.make_root(tmp_path / "root", begun=((96, "probe"),))
    assert ingest(_registry(make.experiment()), ID, root, data, {}).bundles == 1
    assert len(verify_root(data / "bundles" / ID, ID).preflights) == 1


def test_a_write_that_is_under_way_is_not_carried(bring: Bring, root: Path) -> None:
    (root / "think_96/probe").mkdir(parents=True)
    (root / "think_96/probe/samples.parquet").write_bytes(b"")
    with pytest.raises(BundlePartial):
        bring()


@pytest.mark.parametrize("what", ["forbidden", "registered", "override", "inside"])
def test_roots_of_others_are_no_source(root: Path, data: Path, what: str) -> None:
    mine = make.experiment(forbidden=[str(root)] if what == "forbidden" else [])
    other = make.experiment("other_experiment", root=str(root) if what == "registered" else None)
    other = other.model_copy(
        update={"artifacts": other.artifacts.model_copy(update={"environment_override": "OTHER_ROOT"})}
    )
    environment = {"OTHER_ROOT": str(root)} if what == "override" else {}
    environment |= {"OTHER_ROOT": str(root.parent)} if what == "inside" else {}
    with pytest.raises(RootRefused, match="overlaps"):
        ingest(_registry(mine, other), ID, root, data, environment)
    assert not data.exists()


def test_a_root_that_is_not_there_or_a_link_is_no_source(root: Path, data: Path) -> None:
    registry = _registry(make.experiment())
    with pytest.raises(RootRefused, match="is absent"):
        ingest(registry, ID, root.with_name("nowhere"), data, {})
    link = root.with_name("link")
    link.symlink_to(root)
    with pytest.raises(RootRefused, match="symbolic link"):
        ingest(registry, ID, link, data, {})


def test_a_link_in_the_copys_place_is_refused(bring: Bring, root: Path, data: Path) -> None:
    (data / "bundles").mkdir(parents=True)
    (data / "bundles" / ID).symlink_to(root)
    with pytest.raises(LineageError, match="no folder of its own"):
        bring()

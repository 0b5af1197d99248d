"""A root belongs to one experiment from its first day on, and one process writes to it."""

import json
import shutil
from pathlib import Path

import pytest
from support import bundles as make

from fitladder.errors import BundleTampered, RootBusy, RootRefused
from fitladder.store.held_root import ensure_root, hold_root


def test_a_fresh_root_is_created_claimed_and_known_again(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "root"
    root_id = ensure_root(root, make.ID)
    assert ensure_root(root, make.ID) == root_id
    assert sorted(path.name for path in root.iterdir()) == [".lock", ".owner.json", "catalog.json"]
    assert ensure_root(tmp_path / "second", make.ID) != root_id
    with hold_root(root, make.ID, "generation") as held:
        assert (held.root_id, held.experiment_id) == (root_id, make.ID)


def test_another_experiments_root_is_refused_untouched(tmp_path: Path) -> None:
    root = tmp_path / "root"
    ensure_root(root, make.ID)
    before = {path.name: path.read_bytes() for path in root.iterdir()}
    with pytest.raises(RootRefused, match=f"got {make.ID}, need another_experiment"):
        ensure_root(root, "another_experiment")
    assert {path.name: path.read_bytes() for path in root.iterdir()} == before


def test_a_folder_with_other_things_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "photos.txt").write_text("x")
    with pytest.raises(RootRefused, match=r"holds other things: got photos\.txt"):
        ensure_root(tmp_path, make.ID)
    assert [path.name for path in tmp_path.iterdir()] == ["photos.txt"]


def test_a_claim_that_died_early_is_taken_up(tmp_path: Path) -> None:
    for number, rests in enumerate(([], [".lock"], [".lock", "..owner.json.tmp"])):
        root = tmp_path / str(number)
        root.mkdir()
        for name in rests:
            (root / name).write_bytes(b"")
        assert ensure_root(root, make.ID)
    owned = tmp_path / "1"
    (owned / "catalog.json").unlink()
    assert ensure_root(owned, make.ID)


def test_a_lost_catalog_or_owner_is_not_made_anew(root: Path) -> None:
    copy = Path(shutil.copytree(root, root.parent / "copy"))
    (root / "catalog.json").unlink()
    with pytest.raises(RootRefused, match="has lost its catalog"):
        ensure_root(root, make.ID)
    (copy / ".owner.json").unlink()
    with pytest.raises(RootRefused, match="no owner"):
        ensure_root(copy, make.ID)


def test_the_catalog_of_another_root_is_refused(root: Path, tmp_path: Path) -> None:
    ensure_root(tmp_path / "second", make.ID)
    shutil.copy(tmp_path / "second" / ".owner.json", root / ".owner.json")
    with pytest.raises(RootRefused, match="catalog is of another root"):
        ensure_root(root, make.ID)


def test_an_edited_owner_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    ensure_root(root, make.ID)
    text = (root / ".owner.json").read_text()
    (root / ".owner.json").write_text(text.replace(make.ID, "other_experiment"))
    with pytest.raises(BundleTampered, match="seal"):
        ensure_root(root, "other_experiment")
    assert json.loads((root / "catalog.json").read_bytes())["experiment_id"] == make.ID


def test_the_second_writer_is_refused_and_told_who(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with hold_root(root, make.ID, "generation", flow_run_id="run-1"):
        for again in (ensure_root, lambda path, name: hold_root(path, name, "second").__enter__()):
            with pytest.raises(RootBusy, match=r"generation, flow run run-1"):
                again(root, make.ID)

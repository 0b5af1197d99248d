"""Disk and catalog must agree both ways; a write that died is owed, everything else says no."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import bundles as make

from fitladder.errors import BindingChanged, BundleError, BundlePartial, BundleTampered, RootRefused
from fitladder.files.file_record import FileRecord
from fitladder.files.sealed_json import render_sealed
from fitladder.files.tree_digest import tree_of
from fitladder.store.catalog_chain import load_chain
from fitladder.store.held_root import hold_root
from fitladder.store.verify_root import inspect_root, verify_root
from fitladder.store.write_bundle import reconcile


def roll_back(root: Path, steps: int) -> None:
    """The catalog as it was some checkpoints ago, as a crash before writing them would have left it."""
    current = load_chain(root).checkpoint
    for number in range(current - steps, current):
        path = root / "checkpoints" / f"{number:06d}.json"
        if number == current - steps:
            shutil.copy(path, root / "catalog.json")
        path.unlink()


def test_a_whole_root_is_listed_in_sequence(root: Path) -> None:
    found = verify_root(root, make.ID)
    assert [one.key for one in found.bundles] == [make.key()]
    assert [one.key for one in found.preflights] == [make.key(64, "base")]
    assert found.used_go_sha256s == {make.sha(f"GO {make.key()}"), make.sha(f"GO {make.key(64, 'base')}")}
    assert found.pending_entries == ()
    assert verify_root(root, make.ID, make.binding(make.experiment())).catalog == found.catalog


def test_the_copy_without_dot_files_verifies_too(root: Path) -> None:
    for name in (".lock", ".owner.json"):
        (root / name).unlink()
    assert len(verify_root(root, make.ID).bundles) == 1


def _link_to_a_copy(path: Path) -> None:
    path.rename(path.parent.parent / "copy.json")
    path.symlink_to(path.parent.parent / "copy.json")


def _dangle(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent.parent / "nothing")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _second_name(path: Path) -> None:
    (path.parent.parent / "second").hardlink_to(path)


def _another(path: Path) -> None:
    other = make.make_root(path.parent.parent / "other", done=[(64, "probe")])
    shutil.copy(other / ".owner.json", path)


@pytest.mark.parametrize("damage", [_link_to_a_copy, _dangle, _folder, _second_name, _another])
def test_an_owner_file_is_read_as_strictly_as_by_a_writer(root: Path, damage: Callable[[Path], None]) -> None:
    damage(root / ".owner.json")
    with pytest.raises(RootRefused) as reading:
        verify_root(root, make.ID)
    with pytest.raises(RootRefused) as writing, hold_root(root, make.ID, "test"):
        pass
    assert str(reading.value) == str(writing.value)


def test_an_owed_catalog_step_is_named_by_readers_and_written_by_the_holder(tmp_path: Path) -> None:
    for number, (done, begun, state) in enumerate(
        (([(64, "probe")], [], "complete"), ([], [(64, "probe")], "preflight_only"))
    ):
        root = make.make_root(tmp_path / str(number), done=done, begun=begun)
        whole = (root / "catalog.json").read_bytes()
        roll_back(root, 1)
        assert [entry.state for entry in inspect_root(root, make.ID).pending_entries] == [state]
        with pytest.raises(BundlePartial, match=rf"lags behind.*is {state} on disk"):
            verify_root(root, make.ID)
        with hold_root(root, make.ID, "test") as held:
            reconcile(held)
        assert (root / "catalog.json").read_bytes() == whole
        assert verify_root(root, make.ID).pending_entries == ()


def test_a_complete_bundle_without_any_entry_is_no_crash(tmp_path: Path) -> None:
    root = make.make_root(tmp_path / "root", done=[(64, "probe")])
    roll_back(root, 2)
    with pytest.raises(BundleTampered, match="is not in the catalog"):
        inspect_root(root, make.ID)


def test_rests_of_a_killed_writer(root: Path) -> None:
    base = root / "think_64" / "base"
    (base / ".preflight.json.tmp").write_bytes(b"torn")  # a record that had not taken effect
    (root / ".catalog.json.tmp").write_bytes(b"torn")
    (root / "checkpoints" / ".000009.json.tmp").write_bytes(b"torn")
    (base.parent / "probe" / ".receipt.json.tmp").hardlink_to(base.parent / "probe" / "receipt.json")
    with pytest.raises(BundleError):
        verify_root(root, make.ID)
    with hold_root(root, make.ID, "test") as held:
        reconcile(held)
    assert not list(root.rglob("*.tmp"))
    (base / ".samples.parquet.tmp").write_bytes(b"rows that cost a night")
    with (
        hold_root(root, make.ID, "test") as held,
        pytest.raises(BundlePartial, match=r"\.samples\.parquet\.tmp"),
    ):
        reconcile(held)
    assert (base / ".samples.parquet.tmp").read_bytes() == b"rows that cost a night"


def _swap_phases(root: Path) -> None:
    probe, base, rest = root / "think_64/probe", root / "think_64/base", root / "rest"
    probe.rename(rest), base.rename(probe), rest.rename(base)  # type: ignore[func-returns-value]


def _downgrade(root: Path) -> None:
    for name in ("samples.parquet", "engine.json", "receipt.json"):
        (root / "think_64" / "probe" / name).unlink()


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (lambda root: shutil.rmtree(root / "think_64" / "probe"), "probe has vanished"),
        (lambda root: shutil.rmtree(root / "think_64"), "has vanished"),
        (_downgrade, "probe fell back: got preflight_only, need complete"),
        (_swap_phases, "another bundle"),
        (lambda root: (root / "think_64" / "probe" / "receipt.json").unlink(), "no receipt"),
        (lambda root: (root / "think_64" / "base" / "samples.parquet").write_bytes(b"x"), "no receipt"),
        (lambda root: (root / "notes.txt").write_text("x"), r"notes\.txt belongs to no experiment"),
        (lambda root: (root / "think_64" / "notes").mkdir(), "no bundle can have"),
        (lambda root: (root / "think_64" / "notes").write_text("x"), "no bundle can have"),
        (lambda root: (root / "think_96").write_text("x"), "need a folder"),
        (lambda root: (root / "think_96").symlink_to(root / "think_64"), "need a folder"),
        (lambda root: shutil.copytree(root / "think_64", root / "think_96"), "another bundle"),
        (lambda root: (root / "catalog.json").unlink(), r"catalog\.json"),
        (lambda root: (root / "catalog.json").rename(root / "catalog.bak"), "catalog"),
    ],
)
def test_unknown_partial_vanished_changed_downgraded(
    root: Path, break_it: Callable[[Path], Any], words: str
) -> None:
    break_it(root)
    with pytest.raises(BundleError, match=words):
        verify_root(root, make.ID)


def test_a_whole_other_preflight_in_place_of_the_registered_one(root: Path) -> None:
    base = root / "think_64" / "base" / "preflight.json"
    found = verify_root(root, make.ID).preflights[0].preflight
    base.write_bytes(render_sealed(found.model_copy(update={"noted_at_s": 5})))
    with pytest.raises(BundleTampered, match=r"preflight\.json is not the catalog's"):
        verify_root(root, make.ID)


def test_another_experiments_root_and_an_empty_one(root: Path, tmp_path: Path) -> None:
    with pytest.raises(BundleTampered, match=f"got {make.ID}, need another_experiment"):
        verify_root(root, "another_experiment")
    with hold_root(tmp_path / "empty", make.ID, "test"):
        pass
    assert verify_root(tmp_path / "empty", make.ID).bundles == ()
    with pytest.raises(BundleTampered, match="nowhere"):
        verify_root(tmp_path / "nowhere", make.ID)


def test_an_empty_folder_of_a_crash_before_the_preflight_holds_no_bundle(root: Path) -> None:
    (root / "think_96" / "probe").mkdir(parents=True)
    assert len(verify_root(root, make.ID).bundles) == 1
    with hold_root(root, make.ID, "test") as held:
        make.begin(held, make.experiment(), make.key(96))


def test_bundles_under_two_bindings_are_not_one_experiment(root: Path) -> None:
    of = make.experiment()
    with hold_root(root, make.ID, "test") as held:
        make.begin(held, of, make.key(96), binding=make.binding(of, code="edited"))
    with pytest.raises(BundleError, match="different bindings"):
        verify_root(root, make.ID)
    with pytest.raises(BindingChanged):
        verify_root(root, make.ID, make.binding(of))


def test_the_catalogs_tree_is_that_of_its_bundles_files(root: Path) -> None:
    catalog = verify_root(root, make.ID).catalog
    found = {
        path.relative_to(root).as_posix(): FileRecord(
            bytes=path.stat().st_size, sha256=hashlib.sha256(path.read_bytes()).hexdigest()
        )
        for path in root.rglob("think_*/*/*")
        if path.is_file()
    }
    assert catalog.tree == tree_of(found)
    assert catalog.tree.files == 5

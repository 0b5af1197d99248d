"""The catalog: one legal transition, an unbroken chain, nothing else believed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import bundles as make

from fitladder.errors import BundleError, BundleTampered
from fitladder.files.file_record import FileRecord
from fitladder.files.sealed_json import render_sealed
from fitladder.records.catalog import CatalogEntry
from fitladder.store.catalog import advance, first_catalog
from fitladder.store.catalog_chain import load_chain, write_catalog

ROOT_ID = make.sha("root")


def record(name: str) -> FileRecord:
    return FileRecord(bytes=len(name), sha256=make.sha(name))


def begun(budget: int = 64, sequence: int = 0, go: str = "GO", **changed: Any) -> CatalogEntry:
    values: dict[str, Any] = {
        "key": make.key(budget),
        "sequence": sequence,
        "state": "preflight_only",
        "go_sha256": make.sha(go),
        "files": {"preflight.json": record(f"preflight {budget}")},
    }
    return CatalogEntry(**{**values, **changed})


def done(entry: CatalogEntry, **changed: Any) -> CatalogEntry:
    files = {
        **entry.files,
        **{name: record(name) for name in ("samples.parquet", "engine.json", "receipt.json")},
    }
    return CatalogEntry(**{**dict(entry), "state": "complete", "files": files, **changed})


EMPTY = first_catalog(make.ID, ROOT_ID)
ONE = advance(EMPTY, begun())
FULL = advance(ONE, done(begun()))


def test_begun_then_complete_then_the_next() -> None:
    two = advance(FULL, begun(96, 1, "another GO"))
    assert [(entry.key.thinking_budget_tokens, entry.state) for entry in two.entries] == [
        (64, "complete"),
        (96, "preflight_only"),
    ]
    assert two.checkpoint == 3
    assert (two.tree.files, FULL.tree.files, EMPTY.tree.files) == (5, 4, 0)
    assert two.next_sequence == 2


@pytest.mark.parametrize(
    ("catalog", "entry", "words"),
    [
        (EMPTY, done(begun()), "appears as complete"),
        (ONE, begun(), "preflight_only -> preflight_only"),
        (FULL, begun(), "complete -> preflight_only"),
        (FULL, done(begun()), "complete -> complete"),
        (ONE, done(begun(go="other")), "another preflight"),
        (ONE, done(begun(files={"preflight.json": record("forged")})), "another preflight"),
        (ONE, begun(96, 2, "new"), "sequence"),
        (ONE, begun(96, 0, "new"), "sequence"),
        (ONE, begun(96, 1, "GO"), "GO of .* is used"),
        (
            ONE,
            begun(96, 1, "new", key=make.key(96, experiment_id="another_one")),
            "bundle of another experiment",
        ),
    ],
)
def test_every_other_change_is_refused(catalog: Any, entry: CatalogEntry, words: str) -> None:
    with pytest.raises(BundleError, match=words):
        advance(catalog, entry)


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    for catalog in (EMPTY, ONE, FULL):
        write_catalog(tmp_path, catalog)
    return tmp_path


def test_the_chain_is_kept_and_read_back(chain: Path) -> None:
    assert load_chain(chain) == FULL
    assert sorted(path.name for path in (chain / "checkpoints").iterdir()) == ["000000.json", "000001.json"]


def test_a_write_that_died_before_the_exchange_reads_as_the_catalog_before(chain: Path) -> None:
    shutil.copy(chain / "catalog.json", chain / "checkpoints" / "000002.json")
    assert load_chain(chain) == FULL
    write_catalog(chain, advance(FULL, begun(96, 1, "another GO")))
    assert load_chain(chain).checkpoint == 3


def _edit(path: Path, **changed: Any) -> None:
    """As a careful forger: canonical bytes under a fitting seal."""
    from fitladder.canonical import canonical_bytes, canonical_sha256
    from fitladder.files.sealed_json import SEAL

    plain = {**json.loads(path.read_bytes()), **changed}
    plain.pop(SEAL)
    path.write_bytes(canonical_bytes({**plain, SEAL: canonical_sha256(plain)}) + b"\n")


@pytest.mark.parametrize(
    ("name", "break_it"),
    [
        ("000001.json", lambda root: (root / "catalog.json").write_bytes(render_sealed(EMPTY))),
        ("catalog.json", lambda root: (root / "catalog.json").unlink()),
        ("catalog.json", lambda root: _edit(root / "catalog.json", previous_sha256=make.sha("x"))),
        ("catalog.json", lambda root: _edit(root / "catalog.json", root_id=make.sha("x"))),
        ("000002.json", lambda root: _edit(root / "catalog.json", checkpoint=3)),
        (
            "catalog.json",
            lambda root: _edit(root / "catalog.json", tree={"files": 4, "bytes": 1, "sha256": ROOT_ID}),
        ),
        ("catalog.json", lambda root: _edit(root / "catalog.json", entries=[])),
        ("000000.json", lambda root: (root / "checkpoints" / "000000.json").unlink()),
        ("000001.json", lambda root: _edit(root / "checkpoints" / "000000.json", root_id=make.sha("x"))),
        ("000001.json", lambda root: _edit(root / "checkpoints" / "000001.json", entries=[])),
        ("000002.json", lambda root: (root / "checkpoints" / "000002.json").write_bytes(render_sealed(ONE))),
        ("000003.json", lambda root: (root / "checkpoints" / "000003.json").write_bytes(render_sealed(FULL))),
        ("notes.txt", lambda root: (root / "checkpoints" / "notes.txt").write_text("hello")),
        ("000000.json", lambda root: shutil.rmtree(root / "checkpoints")),
    ],
)
def test_a_broken_chain_is_refused_by_file(chain: Path, name: str, break_it: Callable[[Path], Any]) -> None:
    break_it(chain)
    with pytest.raises(BundleTampered) as refusal:
        load_chain(chain)
    assert name in str(refusal.value)


def test_a_forged_step_is_refused(chain: Path) -> None:
    forged = FULL.model_copy(update={"checkpoint": 1, "previous_sha256": ONE.previous_sha256})
    for path in (chain / "checkpoints").iterdir():
        path.unlink()
    (chain / "checkpoints" / "000000.json").write_bytes(render_sealed(EMPTY))
    (chain / "catalog.json").write_bytes(render_sealed(forged))
    with pytest.raises(BundleTampered, match="not one legal step"):
        load_chain(chain)


def test_a_catalog_that_moved_is_not_overwritten(chain: Path) -> None:
    before = (chain / "catalog.json").read_bytes()
    with pytest.raises(BundleTampered, match="moved meanwhile"):
        write_catalog(chain, advance(ONE, begun(96, 1, "another GO")))
    assert (chain / "catalog.json").read_bytes() == before

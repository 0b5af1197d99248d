"""A copy of a verified root is its bytes, all of them and no other."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support import bundles as make

from fitladder.errors import BundleError, BundleTampered
from fitladder.records.catalog import Catalog
from fitladder.records.layout import OWNER
from fitladder.store.check_copy import check_copy
from fitladder.store.verify_root import verify_root

PROBE = "think_64/probe"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make.make_root(tmp_path_factory.mktemp("source") / "root", done=((64, "probe"), (64, "base")))
    for name in (OWNER, ".lock"):
        (root / name).unlink(missing_ok=True)
    return root


@pytest.fixture
def copy(source: Path, tmp_path: Path) -> tuple[Path, Catalog]:
    return Path(shutil.copytree(source, tmp_path / "copy")), verify_root(source, make.ID).catalog


def _flip(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:40] + bytes([data[40] ^ 1]) + data[41:])


DEFECTS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "flipped byte": (f"{PROBE}/samples.parquet: SHA-256", lambda at: _flip(at / PROBE / "samples.parquet")),
    "shortened file": (
        f"{PROBE}/receipt.json: size",
        lambda at: (at / PROBE / "receipt.json").write_bytes(b"{}"),
    ),
    "missing file": (f"{PROBE}/engine.json is missing", lambda at: (at / PROBE / "engine.json").unlink()),
    "additional file": (
        "think_64/notes belongs to no",
        lambda at: (at / "think_64" / "notes").write_text("x"),
    ),
    "dangling link": (
        "think_64/link belongs to no",
        lambda at: (at / "think_64" / "link").symlink_to("nowhere"),
    ),
    "missing checkpoint": ("missing", lambda at: next((at / "checkpoints").iterdir()).unlink()),
}


def test_an_exact_copy_passes(copy: tuple[Path, Catalog]) -> None:
    check_copy(*copy)


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_copy_with_a_defect_is_refused_naming_the_file(copy: tuple[Path, Catalog], defect: str) -> None:
    folder, catalog = copy
    words, spoil = DEFECTS[defect]
    spoil(folder)
    with pytest.raises(BundleError, match=words):
        check_copy(folder, catalog)


def test_a_file_exchanged_for_a_link_to_the_same_bytes_is_refused(
    copy: tuple[Path, Catalog], source: Path
) -> None:
    folder, catalog = copy
    path = folder / PROBE / "samples.parquet"
    path.unlink()
    path.symlink_to(source / PROBE / "samples.parquet")
    with pytest.raises(BundleError):
        check_copy(folder, catalog)


def test_a_copy_of_another_state_is_refused(tmp_path: Path, copy: tuple[Path, Catalog]) -> None:
    other = make.make_root(tmp_path / "other")
    with pytest.raises(BundleTampered, match="is not the verified root's"):
        check_copy(copy[0], verify_root(other, make.ID).catalog)

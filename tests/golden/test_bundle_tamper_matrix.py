"""Every file kind of a root x every way to tamper with it: all refused, the file named, nothing changed."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support import bundles as make

from fitladder.errors import BundleError
from fitladder.store.verify_root import verify_root

FILES = (
    "think_64/probe/preflight.json",
    "think_64/probe/samples.parquet",
    "think_64/probe/engine.json",
    "think_64/probe/receipt.json",
    "think_64/designed/preflight.json",  # begun, not complete
    "catalog.json",
    "checkpoints/000000.json",
    "checkpoints/000003.json",
)
PARTNERS = {  # what each is swapped with: the same kind of another bundle, or another checkpoint
    "think_64/probe/preflight.json": "think_64/base/preflight.json",
    "think_64/probe/samples.parquet": "think_64/base/samples.parquet",
    "think_64/probe/engine.json": "think_64/base/engine.json",
    "think_64/probe/receipt.json": "think_64/base/receipt.json",
    "think_64/designed/preflight.json": "think_64/base/preflight.json",
    "catalog.json": "checkpoints/000003.json",
    "checkpoints/000000.json": "checkpoints/000001.json",
    "checkpoints/000003.json": "checkpoints/000002.json",
}


def flip(path: Path, _: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0x10
    path.write_bytes(bytes(data))


def flip_last(path: Path, _: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 0x01
    path.write_bytes(bytes(data))


def truncate(path: Path, _: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path, _: Path) -> None:
    path.write_bytes(b"")


def append(path: Path, _: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def crlf(path: Path, _: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n") + b"\r\n")


def delete(path: Path, _: Path) -> None:
    path.unlink()


def swap(path: Path, partner: Path) -> None:
    mine, other = path.read_bytes(), partner.read_bytes()
    assert mine != other
    path.write_bytes(other)
    partner.write_bytes(mine)


def copy_of_the_other(path: Path, partner: Path) -> None:
    path.write_bytes(partner.read_bytes())


def _moved_outside(path: Path) -> Path:
    root = next(above for above in path.parents if above.name == "root")
    return Path(shutil.move(path, root.with_name("outside")))


def link_to_the_same_bytes(path: Path, _: Path) -> None:
    path.symlink_to(_moved_outside(path))


def hard_link_to_the_same_bytes(path: Path, _: Path) -> None:
    path.hardlink_to(_moved_outside(path))


def dangling_link(path: Path, _: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def a_folder_in_its_place(path: Path, _: Path) -> None:
    path.unlink()
    path.mkdir()


def renamed(path: Path, _: Path) -> None:
    path.rename(path.with_name(f"old-{path.name}"))


WAYS = (
    flip, flip_last, truncate, empty, append, crlf, delete, swap, copy_of_the_other, link_to_the_same_bytes,
    hard_link_to_the_same_bytes, dangling_link, a_folder_in_its_place, renamed,
)  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make.make_root(
        tmp_path_factory.mktemp("matrix") / "root",
        done=[(64, "probe"), (64, "base")],
        begun=[(64, "designed")],
    )


@pytest.mark.parametrize("way", WAYS, ids=lambda way: str(way.__name__))
@pytest.mark.parametrize("file", FILES)
def test_all_are_refused(whole: Path, tmp_path: Path, file: str, way: Callable[[Path, Path], None]) -> None:
    root = Path(shutil.copytree(whole, tmp_path / "root"))
    verify_root(root, make.ID)
    way(root / file, root / PARTNERS[file])
    after = sorted((str(path), path.lstat().st_mtime_ns) for path in root.rglob("*"))
    with pytest.raises(BundleError) as refusal:
        verify_root(root, make.ID)
    assert str(root) in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert sorted((str(path), path.lstat().st_mtime_ns) for path in root.rglob("*")) == after

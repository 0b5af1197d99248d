"""Every object by name, wherever it should be; missing and corrupt ones are named with where and what."""

import json
from pathlib import Path

import pytest

from fitladder.dvc_api.objects import Store, check_objects, read_listing
from fitladder.dvc_files.md5 import listing_md5, raw_md5
from fitladder.errors import LineageError


def _put(store: Store, data: bytes, folder: Path, suffix: str = "") -> str:
    (folder / "tmp").write_bytes(data)
    md5 = raw_md5(folder / "tmp") + suffix
    store.path(md5).parent.mkdir(parents=True, exist_ok=True)
    store.path(md5).write_bytes(data)
    return md5


@pytest.fixture
def stores(tmp_path: Path) -> tuple[Store, Store]:
    return Store("the cache", tmp_path / "cache"), Store("remote here", tmp_path / "remote")


def test_a_missing_object_is_named_with_every_place(tmp_path: Path, stores: tuple[Store, Store]) -> None:
    cache, remote = stores
    md5 = _put(cache, b"rows", tmp_path)
    check_objects([(md5, "rows.parquet")], [cache], [remote])
    with pytest.raises(LineageError) as refused:
        check_objects([(md5, "rows.parquet")], [cache, remote])
    said = str(refused.value)
    assert f"object {md5} of rows.parquet is missing" in said
    assert f"there in the cache at {cache.path(md5)}" in said
    assert f"nothing in remote here at {remote.path(md5)}" in said
    cache.path(md5).unlink()
    with pytest.raises(LineageError, match=r"nothing in the cache at .*; nothing in remote here at "):
        check_objects([(md5, "rows.parquet")], [cache], [remote])


def test_a_corrupt_object_shows_both_hashes(tmp_path: Path, stores: tuple[Store, Store]) -> None:
    cache, remote = stores
    md5 = _put(cache, b"rows", tmp_path)
    _put(remote, b"rows", tmp_path)
    remote.path(md5).write_bytes(b"cows")
    with pytest.raises(
        LineageError, match=f"remote here: object .* is corrupt: got MD5 [0-9a-f]{{32}}, need {md5}"
    ):
        check_objects([(md5, "rows.parquet")], [cache], [remote])


def test_only_the_listing_is_gone(tmp_path: Path, stores: tuple[Store, Store]) -> None:
    cache, remote = stores
    rows = [{"md5": "a" * 32, "relpath": "x.json"}]
    md5 = _put(remote, json.dumps(rows, sort_keys=True).encode(), tmp_path, ".dir")
    assert md5 == listing_md5({"x.json": "a" * 32})
    assert read_listing([cache, remote], md5, where="data/x") == {"x.json": "a" * 32}
    remote.path(md5).unlink()
    with pytest.raises(LineageError, match=r"object .*\.dir of the listing of data/x is missing"):
        read_listing([cache, remote], md5, where="data/x")


def test_a_link_is_no_object(tmp_path: Path, stores: tuple[Store, Store]) -> None:
    cache, _ = stores
    md5 = _put(cache, b"rows", tmp_path)
    path = cache.path(md5)
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    with pytest.raises(LineageError, match="got a link to"):
        check_objects([(md5, "rows.parquet")], [cache])

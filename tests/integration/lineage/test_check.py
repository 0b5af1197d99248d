"""Damaged and moved files of a carried checkout: what `fitladder lineage check` says to each."""

import os
import re
from pathlib import Path

import pytest
import yaml
from support import dvc_checkout as make

from fitladder.dvc_api.check import check_lineage
from fitladder.dvc_api.objects import Store
from fitladder.dvc_files.lock_file import load_lock
from fitladder.dvc_files.md5 import raw_md5
from fitladder.errors import LineageError

ID = make.ID
PROBE = f"data/bundles/{ID}/think_384/probe"


def _edit_lock(checkout: Path, old: str, new: str, count: int = -1) -> None:
    path = checkout / "dvc.lock"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))


def _stores(checkout: Path) -> tuple[Store, Store]:
    return Store("cache", checkout / ".dvc/cache"), Store("remote", checkout / ".dvc-remote")


def test_a_carried_checkout_agrees(checkout: Path) -> None:
    assert check_lineage(checkout, ID, with_remotes=True) > 20
    said = make.fitladder(checkout, "lineage", "check", ID, "--remotes")
    assert said.returncode == 0, said.stderr


def test_forced_repro_of_a_moved_input_shows_as_recorded_after_generation(checkout: Path) -> None:
    """The lock shows the new dependency beside the old output, as a forced run or `dvc commit` leaves it."""
    old = f"experiments.{ID}"
    lock = yaml.safe_load((checkout / "dvc.lock").read_text())
    lock["stages"][f"bundles@{ID}"]["params"]["params.yaml"][old]["sampling"]["temperature"] = 0.7
    (checkout / "dvc.lock").write_text(yaml.safe_dump(lock, sort_keys=False))
    with pytest.raises(
        LineageError, match=r"inputs recorded after generation of .*think_384/probe: sampling"
    ):
        check_lineage(checkout, ID)


def test_dvc_commit_cannot_hide_code_that_moved_after_generation(checkout: Path) -> None:
    """`dvc commit --force` records today's code beside old bundles; the receipts know better."""
    with (checkout / "src/fitladder/sampling/two_stage.py").open("a") as stream:
        stream.write("# moved\n")
    make.dvc(checkout).run("commit", "--force", f"bundles@{ID}")
    said = make.fitladder(checkout, "lineage", "check", ID)
    assert said.returncode == LineageError.exit_code
    assert "inputs recorded after generation" in said.stderr
    assert said.stderr.count("\n") == 1


@pytest.mark.parametrize("marker", ["<<<<<<< HEAD", "=======", ">>>>>>> branch"])
def test_conflict_markers_are_refused_with_their_line(checkout: Path, marker: str) -> None:
    lines = (checkout / "dvc.lock").read_text().splitlines()
    (checkout / "dvc.lock").write_text("\n".join([*lines[:6], marker, *lines[6:]]) + "\n")
    with pytest.raises(LineageError, match=r"dvc\.lock line 7: merge conflict marker"):
        check_lineage(checkout, ID)


def test_inputs_of_one_branch_with_outputs_of_another_are_named(checkout: Path) -> None:
    lock = yaml.safe_load((checkout / "dvc.lock").read_text())
    deps = lock["stages"][f"audit@{ID}"]["deps"]
    next(dep for dep in deps if dep["path"] == f"data/bundles/{ID}")["md5"] = "0" * 32 + ".dir"
    (checkout / "dvc.lock").write_text(yaml.safe_dump(lock, sort_keys=False))
    with pytest.raises(
        LineageError, match=f"dvc.lock is mixed: audit@{ID} read another data/bundles/{ID} than"
    ):
        check_lineage(checkout, ID)


def test_an_output_renamed_in_dvc_yaml_only_is_missing_not_made_again(checkout: Path) -> None:
    path = checkout / "dvc.yaml"
    path.write_text(
        path.read_text().replace("        - data/bundles/${item}:\n", "        - data/kept/${item}:\n")
    )
    with pytest.raises(LineageError, match=f"output data/bundles/{ID} is not in dvc.yaml"):
        check_lineage(checkout, ID)
    with pytest.raises(LineageError):
        make.dvc(checkout).run("repro", f"bundles@{ID}")
    assert not (checkout / "data/kept").exists()
    assert (checkout / PROBE / "receipt.json").is_file()


def test_a_moved_folder_is_missing_at_its_recorded_path_and_not_made_again(checkout: Path) -> None:
    before = (checkout / "dvc.lock").read_bytes()
    (checkout / f"data/bundles/{ID}").rename(checkout / "data/elsewhere")
    with pytest.raises(LineageError, match=f"data/bundles/{ID} is missing at its recorded path"):
        check_lineage(checkout, ID)
    with pytest.raises(LineageError, match=f"data/bundles/{ID} is missing at its recorded path: got nothing"):
        make.dvc(checkout).run("repro", f"bundles@{ID}")
    assert not (checkout / f"data/bundles/{ID}").exists()
    assert (checkout / "dvc.lock").read_bytes() == before


def test_an_edited_dvc_lock_is_refused_with_both_digests(checkout: Path) -> None:
    stage = load_lock(checkout / "dvc.lock")[f"report@{ID}"]
    md5 = stage.outs[f"data/reports/{ID}.md"].md5
    _edit_lock(checkout, md5, "f" * 32)
    with pytest.raises(
        LineageError, match=rf"{ID}\.md is not what dvc.lock records: got MD5 {md5}, need {'f' * 32}"
    ):
        check_lineage(checkout, ID)


@pytest.mark.parametrize("which", ["samples.parquet", "listing"])
def test_an_object_that_is_gone_from_cache_and_remote(checkout: Path, which: str) -> None:
    """DVC says "up to date" and exits 0; the check names the object and where it looked."""
    cache, remote = _stores(checkout)
    out = load_lock(checkout / "dvc.lock")[f"bundles@{ID}"].outs[f"data/bundles/{ID}"]
    md5 = out.md5 if which == "listing" else raw_md5(checkout / PROBE / which)
    cache.path(md5).chmod(0o644)
    cache.path(md5).unlink()
    with pytest.raises(LineageError, match=f"object {re.escape(md5)} of .* is missing") as first:
        check_lineage(checkout, ID)
    assert f"nothing in the cache at {cache.path(md5)}" in str(first.value)
    assert f"there in remote here at {remote.path(md5)}" in str(first.value)
    remote.path(md5).unlink()
    with pytest.raises(LineageError) as second:
        check_lineage(checkout, ID)
    assert f"nothing in remote here at {remote.path(md5)}" in str(second.value)
    said = make.fitladder(checkout, "lineage", "check", ID)
    assert said.returncode == LineageError.exit_code
    assert md5 in said.stderr


@pytest.mark.parametrize("place", [0, 1], ids=["cache", "remote"])
@pytest.mark.parametrize("fault", ["flip", "crlf", "truncate", "link"])
def test_a_corrupt_object_shows_both_hashes(checkout: Path, place: int, fault: str) -> None:
    store = _stores(checkout)[place]
    path = store.path(raw_md5(checkout / PROBE / "receipt.json"))
    path.chmod(0o644)
    _spoil(path, fault)
    with pytest.raises(LineageError, match=r"got (MD5|a dangling link)"):
        check_lineage(checkout, ID)


def test_a_crlf_copy_is_a_mismatch_even_with_the_old_time(checkout: Path) -> None:
    path = checkout / f"data/reports/{ID}.md"
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(LineageError, match=r"\.md is not what dvc.lock records: only its line ends differ"):
        check_lineage(checkout, ID)


def _spoil(path: Path, fault: str) -> None:
    data = path.read_bytes()
    if fault == "flip":
        path.write_bytes(data[:-5] + bytes([data[-5] ^ 1]) + data[-4:])
    elif fault == "truncate":
        path.write_bytes(data[:-1])
    elif fault == "crlf":
        path.write_bytes(data.replace(b"\n", b"\r\n") if b"\n" in data else data + b"\r\n")
    elif fault == "link":
        path.unlink()
        path.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("type = copy", "type = hardlink", "cache.type: got hardlink, need copy"),
        ("verify = true", "verify = false", "remote here does not verify"),
        ("    verify = true\n", "", "remote here does not verify"),
    ],
)
def test_settings_under_which_tampering_passes_are_refused(
    checkout: Path, old: str, new: str, said: str
) -> None:
    path = checkout / ".dvc/config"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(LineageError, match=said):
        check_lineage(checkout, ID)

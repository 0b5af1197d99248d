"""A bundle is believed only as the phase at the rung of the experiment that it was made as."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import bundles as make

from fitladder.canonical import canonical_bytes, canonical_sha256, sha256_bytes
from fitladder.errors import BindingChanged, BundleError, BundlePartial, BundleTampered
from fitladder.files.sealed_json import SEAL
from fitladder.records.layout import BUNDLE_FILES
from fitladder.store.held_root import hold_root
from fitladder.store.verify_bundle import check_distinct, recorded_binding, verify_bundle, verify_preflight

KEY = make.key()


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "think_64" / "probe"


def forge(folder: Path, **files: Callable[[dict[str, Any]], None]) -> None:
    """Edit records as a careful forger: canonical bytes, fitting seals, and a receipt that binds them."""
    for name, edit in files.items():
        path = folder / f"{name}.json"
        plain = json.loads(path.read_bytes())
        edit(plain)
        plain.pop(SEAL)
        path.write_bytes(canonical_bytes({**plain, SEAL: canonical_sha256(plain)}) + b"\n")
        if name != "receipt":
            forge(folder, receipt=lambda receipt: bind(folder, receipt))


def bind(folder: Path, receipt: dict[str, Any]) -> None:
    for name in receipt["files"]:
        data = (folder / name).read_bytes()
        receipt["files"][name] = {"bytes": len(data), "sha256": sha256_bytes(data)}
    receipt["preflight_sha256"] = receipt["files"]["preflight.json"]["sha256"]


def test_a_true_bundle_is_believed(folder: Path) -> None:
    bundle = verify_bundle(folder, KEY)
    assert bundle.key == bundle.preflight.key == bundle.receipt.key == bundle.engine.key == KEY
    assert sorted(bundle.files) == sorted(BUNDLE_FILES)
    assert bundle.columns(["stage1_token_ids"]).table.column_names == ["stage1_token_ids"]
    assert verify_bundle(folder, KEY, make.binding(make.experiment())).receipt == bundle.receipt
    assert recorded_binding(folder) == bundle.preflight.binding


def test_what_was_verified_is_what_is_read(folder: Path) -> None:
    bundle = verify_bundle(folder, KEY)
    before = bundle.columns(["thinking_tokens"]).integers("thinking_tokens").tolist()
    (folder / "samples.parquet").write_bytes(b"exchanged afterwards")
    assert bundle.columns(["thinking_tokens"]).integers("thinking_tokens").tolist() == before


def test_no_receipt_is_incomplete_and_left_as_it_is(folder: Path) -> None:
    (folder / "receipt.json").unlink()
    torn = (folder / "samples.parquet").read_bytes()[:-7]
    (folder / "samples.parquet").write_bytes(torn)
    with pytest.raises(BundlePartial, match=r"think_64/probe has no receipt"):
        verify_bundle(folder, KEY)
    assert (folder / "samples.parquet").read_bytes() == torn


@pytest.mark.parametrize("cut", [1, 3, 500])
def test_a_torn_file_under_a_receipt_is_refused_by_size(folder: Path, cut: int) -> None:
    path = folder / "samples.parquet"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(BundleTampered, match=rf"samples\.parquet: size: got {size - cut} bytes, need {size}"):
        verify_bundle(folder, KEY)
    path.write_bytes(b"")
    with pytest.raises(BundleTampered, match="got 0 bytes"):
        verify_bundle(folder, KEY)


def test_one_byte_at_the_same_size_shows_both_hashes(folder: Path) -> None:
    path = folder / "samples.parquet"
    data = bytearray(path.read_bytes())
    need = sha256_bytes(bytes(data))
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(BundleTampered, match=rf"SHA-256: got {sha256_bytes(bytes(data))}, need {need}"):
        verify_bundle(folder, KEY)


@pytest.mark.parametrize("name", ["preflight.json", "engine.json", "receipt.json"])
def test_the_crlf_copy_of_a_record_is_another_file(folder: Path, name: str) -> None:
    path = folder / name
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    with pytest.raises(BundleTampered, match=name):
        verify_bundle(folder, KEY)


def test_a_bundle_that_was_moved_is_missing_where_it_is_looked_for(folder: Path) -> None:
    moved = folder.rename(folder.parent / "base_old")
    with pytest.raises(BundleTampered, match=r"think_64/probe"):
        verify_bundle(folder, KEY)
    with pytest.raises(BundleError, match="no bundle can have"):
        verify_bundle(moved, KEY)


@pytest.mark.parametrize("name", BUNDLE_FILES)
def test_a_file_that_is_missing_or_too_much_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    words = "no receipt" if name == "receipt.json" else f"{name} is missing"
    with pytest.raises(BundleError, match=words):
        verify_bundle(folder, KEY)


@pytest.mark.parametrize("name", ["decoded.txt", "samples.jsonl", ".hidden", "receipt.json~", "sub"])
def test_a_further_file_is_refused(folder: Path, name: str) -> None:
    (folder / name).mkdir() if name == "sub" else (folder / name).write_text("x")
    with pytest.raises(BundleTampered, match=f"{name} belongs to no bundle"):
        verify_bundle(folder, KEY)


@pytest.mark.parametrize("target", ["folder", "rung"])
def test_a_linked_folder_is_refused(root: Path, target: str) -> None:
    folder = root / "think_64" / "probe" if target == "folder" else root / "think_64"
    real = folder.rename(root.parent / "elsewhere")
    folder.symlink_to(real)
    with pytest.raises(BundleTampered, match="a symbolic link, need a folder"):
        verify_bundle(root / "think_64" / "probe", KEY)


@pytest.mark.parametrize(
    ("place", "key"),
    [
        ("think_64/base", make.key(64, "base")),
        ("think_96/probe", make.key(96)),
        ("think_64/probe", make.key(64, "probe", "another_experiment")),
    ],
)
def test_a_bundle_copied_to_another_key_is_refused(
    folder: Path, tmp_path: Path, place: str, key: Any
) -> None:
    copy = tmp_path / "elsewhere" / place
    copy.parent.mkdir(parents=True)
    shutil.copytree(folder, copy)
    with pytest.raises(BundleTampered, match=r"receipt\.json belongs to another bundle"):
        verify_bundle(copy, key)
    with pytest.raises(BundleTampered, match="belongs to another bundle"):
        verify_preflight(copy, key)


def test_a_re_receipted_bundle_is_refused_file_by_file(folder: Path, tmp_path: Path) -> None:
    """Records rewritten for another experiment one after the other: the samples still name their own."""
    copy = tmp_path / "elsewhere" / "think_64" / "probe"
    copy.parent.mkdir(parents=True)
    shutil.copytree(folder, copy)
    other = "another_experiment"

    def rename(record: dict[str, Any]) -> None:
        record["key"]["experiment_id"] = other

    def rename_binding(record: dict[str, Any]) -> None:
        body = {k: v for k, v in record["binding"].items() if not k.endswith("_sha256")} | {
            "experiment_id": other
        }
        body["section"]["experiment_id"] = other
        body["generation_sha256"] = canonical_sha256({k: v for k, v in body.items() if k != "decision_code"})
        record["binding"] = {**body, "binding_sha256": canonical_sha256(body)}

    def rebind(record: dict[str, Any]) -> None:
        binding = json.loads((copy / "preflight.json").read_bytes())["binding"]
        record["binding_sha256"] = binding["binding_sha256"]
        record["generation_sha256"] = binding["generation_sha256"]

    key = make.key(64, "probe", other)
    for step, words in (
        ({"receipt": rename}, r"preflight\.json belongs to another bundle"),
        ({"preflight": rename}, r"preflight\.json: binding of another experiment"),
        ({"preflight": rename_binding}, r"engine\.json belongs to another bundle"),
        ({"engine": rename}, r"samples\.parquet belongs to another bundle"),
    ):
        forge(copy, **step)
        with pytest.raises(BundleTampered, match=words):
            verify_bundle(copy, key)
    forge(copy, receipt=rebind)
    with pytest.raises(BundleTampered, match=r"samples\.parquet belongs to another bundle"):
        verify_bundle(copy, key)


@pytest.mark.parametrize(
    ("name", "edit", "words"),
    [
        ("receipt", lambda r: r["totals"].update(sampled_tokens=1), "field totals"),
        ("receipt", lambda r: r["counters"].update(preemptions=1), "field counters"),
        ("receipt", lambda r: r.update(flags=["preempted"]), "field flags"),
        ("receipt", lambda r: r.update(max_num_seqs=8), "field max_num_seqs"),
        ("receipt", lambda r: r.update(capture_resolved=[1, 2]), "field capture_resolved"),
        ("receipt", lambda r: r.update(go_sha256=make.sha("x")), "field go_sha256"),
        ("receipt", lambda r: r.update(binding_sha256=make.sha("x")), "field binding_sha256"),
        ("receipt", lambda r: r.update(rows=6, k=3), "field (rows|k)"),
        ("receipt", lambda r: r.update(rows=5), "rows: got 5"),
        ("receipt", lambda r: r.update(noted_at_s=1), "field flags"),
        ("receipt", lambda r: r["files"].update(extra=r["files"]["engine.json"]), "files"),
        ("receipt", lambda r: r["files"].pop("engine.json"), "files"),
        ("preflight", lambda p: p.update(seeds_sha256=make.sha("x")), "digest of the seeds"),
        ("preflight", lambda p: p["binding"]["section"].update(kv_rule="token"), "does not fit its parts"),
        ("preflight", lambda p: p["prompts"].reverse(), "out of order"),
        ("preflight", lambda p: p["prompts"][0].update(record_id="other"), "other samples"),
        ("preflight", lambda p: p["sampling"].update(run_seed=1), "sampling"),
        ("engine", lambda e: e.update(stage1_generation_us=1), "field totals"),
    ],
)
def test_a_forged_record_contradicts_the_others(
    folder: Path, name: str, edit: Callable[[dict[str, Any]], Any], words: str
) -> None:
    forge(folder, **{name: edit})
    with pytest.raises(BundleTampered, match=words):
        verify_bundle(folder, KEY)


def test_another_binding_is_refused_and_names_what_moved(folder: Path, root: Path) -> None:
    now = make.binding(make.experiment(), code="edited")
    with pytest.raises(BindingChanged, match=r"generation_code\.engine/parent/process\.py moved"):
        verify_bundle(folder, KEY, now)
    with pytest.raises(BindingChanged, match="another binding"):
        verify_preflight(root / "think_64" / "base", make.key(64, "base"), now)


def test_one_go_or_one_samples_file_at_two_places_is_refused(root: Path, tmp_path: Path) -> None:
    second = make.make_root(tmp_path / "second", make.experiment("another_experiment"), done=[(64, "probe")])
    here = verify_bundle(root / "think_64" / "probe", KEY)
    there = verify_bundle(second / "think_64" / "probe", make.key(64, "probe", "another_experiment"))
    check_distinct([here, there])
    for stolen, words in (
        (
            {"files": {**there.files, "samples.parquet": here.files["samples.parquet"]}},
            "the samples of another",
        ),
        (
            {"preflight": there.preflight.model_copy(update={"go_sha256": here.preflight.go_sha256})},
            "the GO of",
        ),
    ):
        import dataclasses

        with pytest.raises(BundleTampered, match=words):
            check_distinct([here, dataclasses.replace(there, **stolen)])


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads what it may not")
def test_an_unreadable_file_is_refused(folder: Path) -> None:
    (folder / "engine.json").chmod(0)
    with pytest.raises(BundleTampered, match=r"engine\.json cannot be read"):
        verify_bundle(folder, KEY)


def test_verification_changes_nothing(root: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    verify_bundle(root / "think_64" / "probe", KEY)
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_a_bundle_of_another_root_of_the_same_experiment_is_refused(root: Path, tmp_path: Path) -> None:
    """Run twice, keep the nicer one: the second root has another id."""
    from fitladder.store.verify_root import verify_root

    second = make.make_root(tmp_path / "second", done=[(64, "probe")])
    shutil.rmtree(root / "think_64" / "probe")
    shutil.copytree(second / "think_64" / "probe", root / "think_64" / "probe")
    verify_bundle(root / "think_64" / "probe", KEY)
    with pytest.raises(BundleTampered, match="was made in another root"):
        verify_root(root, make.ID)
    with hold_root(root, make.ID, "test") as held, pytest.raises(BundleTampered, match="another root"):
        make.begin(held, make.experiment(), make.key(96))


def test_every_file_is_opened_where_an_audit_hook_sees_it(root: Path) -> None:
    """A content-blind pass is guarded by such a hook; Parquet is decoded from bytes, never from a path."""
    code = (
        "import sys; from pathlib import Path; opened = []\n"
        "from fitladder.store.verify_root import verify_root\n"
        "sys.addaudithook(lambda event, words: opened.append(str(words[0])) if event == 'open' else None)\n"
        "found = verify_root(Path(sys.argv[1]), sys.argv[2])\n"
        "before, name = len(opened), 'stage1_token_ids'\n"
        "assert found.bundles[0].columns([name]).token_lists(name)\n"
        "assert len(opened) == before\n"
        "print('\\n'.join(opened))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(root), make.ID],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    opened = {
        line.removeprefix(f"{root}/") for line in done.stdout.splitlines() if line.startswith(str(root))
    }
    assert opened == {
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and (path.name[0] != "." or path.name == ".owner.json")
    }

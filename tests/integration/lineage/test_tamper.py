"""Every kind of file, every fault: all refused by name, and the undamaged checkout passes at the end.

Faults of one file, of a store's object, of dvc.lock, of the approval chain; a whole bundle put elsewhere; one
that is written anew, with true receipts. The counts are printed.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import dvc_checkout as make

from fitladder.approval.chain import append, chain_path, load_chain
from fitladder.canonical import sha256_bytes
from fitladder.dvc_api.check import check_lineage
from fitladder.dvc_api.objects import Store
from fitladder.dvc_files.lock_file import load_lock
from fitladder.dvc_files.md5 import raw_md5
from fitladder.errors import FitladderError
from fitladder.evidence.checkout_bundles import load_bundles
from fitladder.records.approval import Ask
from fitladder.records.approval_entry import Draft
from fitladder.stages.selection import recompute_ladder

ID = make.ID
PROBE = f"data/bundles/{ID}/think_384/probe"
KINDS = {
    "preflight": f"{PROBE}/preflight.json",
    "samples": f"{PROBE}/samples.parquet",
    "engine": f"{PROBE}/engine.json",
    "receipt": f"{PROBE}/receipt.json",
    "catalog": f"data/bundles/{ID}/catalog.json",
    "checkpoint": f"data/bundles/{ID}/checkpoints/000001.json",
    "prompts": f"data/prompts/{ID}/base.json",
    "prompt summary": f"data/prompts/{ID}/manifest.json",
    "audit": f"data/audits/{ID}/phases/think_384_probe.json",
    "audit code": f"data/audits/{ID}/code.json",
    "audit receipts": f"data/audits/{ID}/receipts.json",
    "metrics": f"data/audits/{ID}/metrics.json",
    "plot": f"data/audits/{ID}/rates.csv",
    "selection": f"data/selection/{ID}.json",
    "semantics": f"data/semantics/{ID}.json",
    "report": f"data/reports/{ID}.html",
    "report twin": f"data/reports/{ID}.md",
}
SWAPS = {"think_384": "think_576", "000001": "000002", "base.json": "designed_ceiling.json"}
FAULTS = ("flip", "truncate", "empty", "delete", "crlf", "link", "outside", "hard link", "swap", "rename")
OBJECT_FAULTS = ("flip", "truncate", "delete", "link")


def _spoil(path: Path, fault: str, aside: Path) -> None:
    data, status = path.read_bytes(), path.stat()
    kept = aside / path.name
    if fault == "flip":
        path.write_bytes(data[:-5] + bytes([data[-5] ^ 1]) + data[-4:])
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    elif fault == "truncate":
        path.write_bytes(data[:-1])
    elif fault == "empty":
        path.write_bytes(b"")
    elif fault == "delete":
        path.unlink()
    elif fault == "crlf":
        path.write_bytes(data.replace(b"\n", b"\r\n") if b"\n" in data else data + b"\r\n")
    elif fault == "link":
        path.unlink()
        path.symlink_to("nowhere")
    elif fault == "outside":
        kept.write_bytes(data)
        path.unlink()
        path.symlink_to(kept)
    elif fault == "hard link":
        kept.unlink(missing_ok=True)
        os.link(path, kept)
    elif fault == "swap":
        other = next((str(path).replace(a, b) for a, b in SWAPS.items() if a in str(path)), None)
        path.write_bytes(Path(other).read_bytes() if other else b"{}")
    elif fault == "rename":
        path.rename(path.with_name(f"{path.name}.bak"))


@contextmanager
def _spoiled(path: Path, fault: str, aside: Path) -> Iterator[None]:
    whole, mode = path.read_bytes(), path.stat().st_mode
    path.chmod(0o644)
    _spoil(path, fault, aside)
    yield
    path.unlink(missing_ok=True)
    path.with_name(f"{path.name}.bak").unlink(missing_ok=True)
    path.write_bytes(whole)
    path.chmod(mode)


def _refused(what: str, judge: Callable[[], object], name: str) -> list[str]:
    """Empty where `judge` refuses by this name; else what went wrong."""
    try:
        judge()
    except FitladderError as refusal:
        return [] if name in str(refusal) else [f"{what}: {refusal}"]
    return [f"{what}: passed"]


def _count(missed: list[str], tried: int, what: str) -> None:
    print(f"tamper matrix, {what}: {tried - len(missed)} of {tried} refused")
    assert missed == []


def test_every_file_kind_and_fault_is_refused(checkout: Path, tmp_path: Path) -> None:
    missed: list[str] = []
    for place in KINDS.values():
        path = checkout / place
        for fault in FAULTS:
            with _spoiled(path, fault, tmp_path):
                missed += _refused(f"{fault} of {place}", lambda: check_lineage(checkout, ID), path.name)
    _count(missed, len(KINDS) * len(FAULTS), "files")
    check_lineage(checkout, ID)


def test_every_bundle_file_and_fault_is_refused_without_dvc(checkout: Path, tmp_path: Path) -> None:
    """The receipts alone: dvc.lock is away, as in an external root."""
    (checkout / "dvc.lock").unlink()
    of = make.registered(checkout)
    bound = {kind: place for kind, place in KINDS.items() if place.startswith("data/bundles/")}
    missed: list[str] = []
    for place in bound.values():
        path = checkout / place
        for fault in FAULTS:
            with _spoiled(path, fault, tmp_path):
                judge = lambda: load_bundles(checkout / "data", of)  # noqa: E731 - named for the loop
                missed += _refused(f"{fault} of {place}", judge, path.parent.name)
    _count(missed, len(bound) * len(FAULTS), "bundles by their receipts")
    assert load_bundles(checkout / "data", of) is not None


def test_every_object_of_cache_and_remote_and_fault_is_refused(checkout: Path, tmp_path: Path) -> None:
    outs = [
        out
        for name, one in load_lock(checkout / "dvc.lock").items()
        for out in one.outs.values()
        if ID in name
    ]
    md5s = {out.md5 for out in outs} | {raw_md5(checkout / place) for place in KINDS.values()}
    tried, missed = 0, list[str]()
    for store in (Store("cache", checkout / ".dvc/cache"), Store("remote", checkout / ".dvc-remote")):
        for md5 in sorted(md5s):
            for fault in OBJECT_FAULTS:
                with _spoiled(store.path(md5), fault, tmp_path):
                    tried += 1
                    judge = lambda: check_lineage(checkout, ID, with_remotes=True)  # noqa: E731 - as above
                    missed += _refused(f"{fault} of {store.name} {md5}", judge, md5.removesuffix(".dir")[2:])
    _count(missed, tried, "objects of cache and remote")
    assert tried > 120
    check_lineage(checkout, ID, with_remotes=True)


def test_every_record_of_dvc_lock_and_fault_is_refused(checkout: Path) -> None:
    path = checkout / "dvc.lock"
    whole = path.read_text()
    own = {name: one for name, one in load_lock(path).items() if name.endswith(f"@{ID}")}
    texts: dict[str, str] = {"deleted": "", "truncated": whole[: len(whole) // 2] + "\n  x: ["}
    for name, stage in own.items():
        start = whole.index(f"  {name}:\n")
        end = next(
            (at.start() for at in re.finditer(r"^  \S", whole, re.M) if at.start() > start), len(whole)
        )
        for out in stage.outs.values():
            outs = whole.rindex("    outs:\n", start, end)
            at = whole.index(f"    - path: {out.path}\n", outs)
            entry = whole[at : whole.index("      size:", at)]
            changes = {
                "md5": entry.replace(out.md5, "0" * 32 + out.md5[32:]),
                "path": entry.replace(out.path, f"{out.path}.other"),
                "no md5": entry.replace(f"      md5: {out.md5}\n", ""),
                "twice": entry + entry,
                "marker": "<<<<<<< HEAD\n" + entry,
            }
            for fault, new in changes.items():
                texts[f"{fault} of {out.path}"] = whole[:at] + new + whole[at + len(entry) :]
    missed: list[str] = []
    for what, text in texts.items():
        path.write_text(text)
        missed += _refused(what, lambda: check_lineage(checkout, ID), "")
    path.write_text(whole)
    _count(missed, len(texts), "dvc.lock")
    assert len(texts) > 60
    check_lineage(checkout, ID)


def test_every_line_of_the_approval_chain_and_fault_is_refused(tmp_path: Path) -> None:
    path = chain_path(tmp_path, ID)
    for ask in ("one", "two", "three"):
        statement = Ask(
            schema_version=1,
            ask_id=ask,
            experiment_id=ID,
            binding_sha256=sha256_bytes(b"binding"),
            thinking_budget_tokens=384,
            phase="probe",
            requester="rosa",
            asked="2026-01-02T03:00:00Z",
            deadline="2026-01-02T04:00:00Z",
        )
        draft = Draft(
            kind="asked",
            recorded="2026-01-02T03:00:00Z",
            statement=statement.model_dump(mode="json"),
            signature=None,
            identity="self-asserted",
        )
        append(path, ID, lambda _, draft=draft: draft)
    lines = path.read_bytes().splitlines(keepends=True)
    damaged: dict[str, bytes] = {"crlf": b"".join(lines).replace(b"\n", b"\r\n"), "cut": b"".join(lines)[:-1]}
    for at in range(len(lines) - 1):  # nothing binds the last line yet; the preflight that uses it will
        rest = lines[:at] + lines[at + 1 :]
        swapped = [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]
        damaged |= {f"drop {at}": b"".join(rest), f"swap {at}": b"".join(swapped)}
        damaged[f"twice {at}"] = b"".join([*lines[: at + 1], *lines[at:]])
        for byte in range(0, len(lines[at]), 9):
            flipped = bytearray(lines[at])
            flipped[byte] ^= 1
            damaged[f"flip {at}.{byte}"] = b"".join([*lines[:at], bytes(flipped), *lines[at + 1 :]])
    missed: list[str] = []
    for what, data in damaged.items():
        path.write_bytes(data)
        missed += _refused(what, lambda: load_chain(path, ID), f"{ID}.jsonl line")
    path.write_bytes(b"".join(lines))
    other = chain_path(tmp_path, "another_experiment")
    shutil.copyfile(path, other)
    missed += _refused("renamed", lambda: load_chain(other, "another_experiment"), "line 1")
    _count(missed, len(damaged) + 1, "approvals")
    assert len(load_chain(path, ID)) == 3


PLACES = {
    "another phase": "think_384/base",
    "another rung": "think_576/base",
    "an unregistered rung": "think_999/probe",
    "another attempt": "think_384/probe.attempt_2",
    "no rung at all": "think_kept/probe",
}


@pytest.mark.parametrize("how", ["copy", "move", "link", "hard links"])
def test_a_bundle_put_elsewhere_is_refused(checkout: Path, how: str) -> None:
    base, of = checkout / f"data/bundles/{ID}", make.registered(checkout)
    (checkout / "dvc.lock").unlink()
    missed: list[str] = []
    for what, place in PLACES.items():
        source, target = base / "think_384/probe", base / place
        had = target.parent.exists()
        target.parent.mkdir(exist_ok=True)
        if how == "copy":
            shutil.copytree(source, target)
        elif how == "move":
            source.rename(target)
        elif how == "link":
            target.symlink_to(source)
        else:
            shutil.copytree(source, target, copy_function=os.link)
        missed += _refused(f"{how} to {what}", lambda: load_bundles(checkout / "data", of), "think_")
        missed += _refused(f"audit of {what}", lambda: recompute_ladder(checkout / "data", of), "think_")
        if how == "move":
            target.rename(source)
        elif how == "link":
            target.unlink()
        else:
            shutil.rmtree(target)
        if not had:
            target.parent.rmdir()
    _count(missed, 2 * len(PLACES), f"bundles put elsewhere, {how}")
    assert load_bundles(checkout / "data", of) is not None


def test_a_bundle_written_anew_with_true_receipts_is_refused(checkout: Path, tmp_path: Path) -> None:
    """Somebody with the code makes receipts for the very same rows: catalog and root do not know them."""
    base, of = checkout / f"data/bundles/{ID}", make.registered(checkout)
    (checkout / "dvc.lock").unlink()
    forged = make.make_root(checkout, tmp_path / "forged", ((384, "probe"), (576, "probe"), (384, "base")))
    same = [folder / "think_384/probe/samples.parquet" for folder in (forged, base)]
    assert same[0].read_bytes() == same[1].read_bytes()
    missed: list[str] = []
    kept = tmp_path / "kept"
    for place in ("think_384/probe", "think_576/probe", "think_384/base"):
        there = base / place
        if there.exists():
            there.rename(kept)
        shutil.copytree(forged / place, there)
        missed += _refused(f"{place} of a twin root", lambda: load_bundles(checkout / "data", of), place)
        shutil.rmtree(there)
        if kept.exists():
            kept.rename(there)
    _count(missed, 3, "re-receipted bundles")

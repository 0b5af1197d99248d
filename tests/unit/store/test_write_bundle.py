"""Preflight, samples, engine metadata, receipt, catalog: in this order, by the holder, once."""

import dataclasses
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import bundles as make

from fitladder.errors import BundleError, BundleTampered, EngineFailed, RootBusy
from fitladder.files import atomic as files
from fitladder.records.layout import bundle_folder
from fitladder.records.preflight import EngineMeta, Preflight
from fitladder.records.sample import SampleRow
from fitladder.sampling.parquet import render_samples
from fitladder.store import write_bundle as writer
from fitladder.store.held_root import HeldRoot, hold_root
from fitladder.store.verify_bundle import VerifiedBundle
from fitladder.store.verify_root import verify_root
from fitladder.store.write_bundle import commit_bundle, reconcile, write_preflight

OF = make.experiment()
KEY = make.key()


@pytest.fixture
def held(tmp_path: Path) -> Iterator[HeldRoot]:
    with hold_root(tmp_path / "root", make.ID, "test") as root:
        yield root


def source(held: HeldRoot, rows: list[SampleRow], key: Any = KEY) -> Path:
    path = held.path.parent / "child.parquet"
    path.write_bytes(render_samples(rows, key))
    return path


def commit(held: HeldRoot, path: Path, meta: EngineMeta) -> VerifiedBundle:
    """Complete KEY with the bytes in `path`, told by their own digest."""
    return commit_bundle(held, KEY, path, meta, samples_sha256=make.sha256_file(path), noted_at_s=make.NOON_S)


def test_the_receipt_is_written_last_and_binds_the_rest(
    held: HeldRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    def noting(path: Path, data: bytes) -> None:
        written.append(path.name)
        files.write_new(path, data)

    monkeypatch.setattr(writer, "write_new", noting)
    bundle = make.complete(held, make.begin(held, OF, KEY))
    assert written == ["preflight.json", "samples.parquet", "engine.json", "receipt.json"]
    receipt = json.loads((bundle.folder / "receipt.json").read_bytes())
    for name, record in receipt["files"].items():
        data = (bundle.folder / name).read_bytes()
        assert record == {"bytes": len(data), "sha256": make.sha256_bytes(data)}
    assert sorted(receipt["files"]) == ["engine.json", "preflight.json", "samples.parquet"]
    entry = verify_root(held.path, make.ID).catalog.entries[0]
    assert (entry.state, entry.files) == ("complete", bundle.files)


def test_totals_are_counted_apart(held: HeldRoot) -> None:
    preflight = make.begin(held, OF, KEY)
    rows = make.rows(preflight)
    receipt = make.complete(held, preflight).receipt
    assert receipt.totals.sampled_tokens == sum(
        len(row.stage1_token_ids) + len(row.stage2_token_ids) for row in rows
    )
    assert receipt.totals.trimmed_tokens == sum(
        row.stage1_trimmed_tokens + row.stage2_trimmed_tokens for row in rows
    )
    assert (
        receipt.totals.injected_tokens == 5
    )  # two forced closes and what a restarted answer's marker lacked
    assert receipt.totals.logical_prompt_tokens == sum(
        row.prompt_tokens + row.stage2_prompt_tokens for row in rows
    )
    assert (receipt.totals.stage1_generation_us, receipt.totals.stage2_generation_us) == (1_000_000, 200_000)
    assert (receipt.rows, receipt.records, receipt.k, receipt.arm) == (4, 2, 2, "base")


def test_width_capture_and_seeds_stand_in_the_receipt(held: HeldRoot) -> None:
    changed = {"capture_requested": (1, 2, 3), "capture_resolved": (1, 2), "capture_max_requested": 3}
    preflight = make.begin(held, OF, KEY, engine=make.facts(3, **changed))
    receipt = make.complete(held, preflight).receipt
    assert (receipt.max_num_seqs, receipt.capture_requested, receipt.capture_resolved) == (
        3,
        (1, 2, 3),
        (1, 2),
    )
    assert receipt.seeds_sha256 == preflight.seeds_sha256
    assert receipt.engine_lock_sha256 == make.sha("lock")


def test_preemptions_are_counted_and_flag_the_rung(held: HeldRoot) -> None:
    preflight = make.begin(held, OF, KEY)
    meta = make.engine_meta(KEY, counters={"preemptions": 37, "recomputed_tokens": 9})
    receipt = commit(held, source(held, make.rows(preflight)), meta).receipt
    assert receipt.counters["preemptions"] == 37
    assert receipt.flags == ("preempted",)


def test_a_clock_that_goes_back_is_noted_and_orders_nothing(held: HeldRoot) -> None:
    first = make.complete(held, make.begin(held, OF, KEY), noted_at_s=make.NOON_S - 3_600)
    assert first.receipt.flags == ("clock_went_back",)
    second = make.begin(held, OF, make.key(64, "base"), noted_at_s=make.NOON_S - 7_200)
    make.complete(held, second, noted_at_s=make.NOON_S - 7_200)
    assert [bundle.key.phase for bundle in verify_root(held.path, make.ID).bundles] == ["probe", "base"]


def test_nothing_is_written_without_the_lock(tmp_path: Path) -> None:
    with hold_root(tmp_path / "root", make.ID, "test") as held:
        preflight = make.preflight(OF, KEY, root_id=held.root_id, sequence=0)
    with pytest.raises(RootBusy, match="held no more"):
        write_preflight(held, preflight)
    assert not (tmp_path / "root" / "think_64").exists()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"root_id": make.sha("another root")}, "root_id"),
        ({"sequence": 1}, "sequence"),
        ({"go_sha256": make.sha(f"GO {KEY}")}, "GO of .* is used"),
    ],
)
def test_a_preflight_out_of_place_is_refused(held: HeldRoot, changed: dict[str, Any], words: str) -> None:
    at, sequence = KEY, 0
    if "go_sha256" in changed:
        make.begin(held, OF, KEY)
        at, sequence = make.key(96), 1
    before = sorted(held.path.rglob("*"))
    preflight = make.preflight(OF, at, root_id=held.root_id, sequence=sequence)
    with pytest.raises(BundleError, match=words):
        write_preflight(held, Preflight(**{**dict(preflight), **changed}))
    assert sorted(held.path.rglob("*")) == before


def test_a_phase_is_begun_and_completed_once(held: HeldRoot) -> None:
    preflight = make.begin(held, OF, KEY)
    again = preflight.model_copy(update={"sequence": 1, "go_sha256": make.sha("second GO")})
    with pytest.raises(BundleError, match="has a preflight already"):
        write_preflight(held, again)
    bundle = make.complete(held, preflight)
    before = {name: (bundle.folder / name).read_bytes() for name in os.listdir(bundle.folder)}
    with pytest.raises(BundleError, match="got complete, need preflight_only"):
        make.complete(held, preflight, seed=1)
    with pytest.raises(BundleError, match="got nothing, need preflight_only"):
        make.complete(held, make.preflight(OF, make.key(96), root_id=held.root_id, sequence=1))
    assert {name: (bundle.folder / name).read_bytes() for name in os.listdir(bundle.folder)} == before


def _swap(rows: list[SampleRow]) -> list[SampleRow]:
    return [rows[1], rows[0], *rows[2:]]


def _with(**changed: Any) -> Callable[[list[SampleRow]], list[SampleRow]]:
    return lambda rows: [dataclasses.replace(rows[0], **changed), *rows[1:]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: [*rows, rows[0]], "stands twice"),
        (lambda rows: [*rows[:-1], rows[0]], "stands twice"),
        (
            lambda rows: [
                *rows[:-1],
                dataclasses.replace(rows[0], stage1_token_ids=rows[1].stage1_token_ids),
            ],
            "stands twice",
        ),
        (lambda rows: rows[:-1], "got 3 rows, need 4 rows"),
        (lambda rows: [], "got 0 rows"),
        (_with(record_id="task-009::base"), "'task-009::base' #0 among them"),
        (_with(sample_index=7), "#7 among them"),
        (_swap, "out of order"),
        (_with(stage1_seed=1), "digest of the seeds"),
        (_with(prompt_tokens=1), "prompt_tokens differ"),
        (_with(thinking_tokens=65), "more thinking than"),
        (_with(thinking_tokens=-1), "thinking_tokens below 0"),
        (_with(stage1_token_ids=np.arange(65, dtype=np.int32)), "more stage-1 ids than the thinking budget"),
        (_with(stage2_token_ids=np.arange(17, dtype=np.int32)), "more stage-2 ids than answer_max_tokens"),
        (_with(natural_close=True), "both a forced and a natural close"),
        (_with(forced_close=False), "thinking that never ended"),
        (_with(stage2_seed=None), "stage 2 must run exactly"),
        (_with(stage2_prompt_tokens=0), "stage2_prompt_tokens"),
    ],
)
def test_other_rows_than_announced_are_refused_before_a_byte_is_written(
    held: HeldRoot, change: Callable[[list[SampleRow]], list[SampleRow]], words: str
) -> None:
    preflight = make.begin(held, OF, KEY)
    path = source(held, change(make.rows(preflight)))
    with pytest.raises(BundleTampered, match=words):
        commit(held, path, make.engine_meta(KEY))
    assert os.listdir(held.path / bundle_folder(KEY)) == ["preflight.json"]
    assert path.exists()  # what the engine left is not lost
    assert reconcile(held).entries[0].state == "preflight_only"


def test_samples_and_metadata_of_another_bundle_are_refused(held: HeldRoot) -> None:
    preflight = make.begin(held, OF, KEY)
    rows, other = make.rows(preflight), make.key(96)
    with pytest.raises(BundleError, match="samples of another bundle"):
        commit(held, source(held, rows, other), make.engine_meta(KEY))
    with pytest.raises(BundleError, match="engine metadata of another bundle"):
        commit(held, source(held, rows), make.engine_meta(other))


def test_bytes_that_the_engine_did_not_report_are_refused_by_both_digests(held: HeldRoot) -> None:
    preflight = make.begin(held, OF, KEY)
    told = make.sha256_file(source(held, make.rows(preflight, seed=1)))
    path = source(held, make.rows(preflight))  # as valid as those that the engine told
    with pytest.raises(EngineFailed, match=f"got SHA-256 {make.sha256_file(path)}, need the engine's {told}"):
        commit_bundle(held, KEY, path, make.engine_meta(KEY), samples_sha256=told, noted_at_s=make.NOON_S)
    assert os.listdir(held.path / bundle_folder(KEY)) == ["preflight.json"]
    assert path.exists()


def test_a_torn_source_is_refused(held: HeldRoot) -> None:
    preflight = make.begin(held, OF, KEY)
    path = source(held, make.rows(preflight))
    whole = path.read_bytes()
    for torn in (b"", whole[:100], whole[:-1], whole[: len(whole) // 2]):
        path.write_bytes(torn)
        with pytest.raises(BundleTampered, match="not readable Parquet"):
            commit(held, path, make.engine_meta(KEY))
    assert os.listdir(held.path / bundle_folder(KEY)) == ["preflight.json"]


def test_a_full_disk_in_the_middle_leaves_a_partial_bundle_that_stops_everything(
    held: HeldRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    preflight = make.begin(held, OF, KEY)

    def full(path: Path, data: bytes) -> None:
        if path.name == "engine.json":
            raise BundleError(f"{path} cannot be written", got="No space left on device")
        files.write_new(path, data)

    monkeypatch.setattr(writer, "write_new", full)
    with pytest.raises(BundleError, match="No space left"):
        make.complete(held, preflight)
    monkeypatch.undo()
    for again in (lambda: make.complete(held, preflight), lambda: make.begin(held, OF, make.key(96))):
        with pytest.raises(BundleError, match="no receipt: incomplete"):
            again()

"""How fast is a content-blind audit from disk, verification included? Figures only; `pytest -s` shows them.

48 samples of 49,152 ids: 38 loop at the periods that a published probe had, 10 never do. The naive reader is
the obvious one: a JSON line a sample with its ids three times and its text, all lines loaded, every lag tried
in Python, a lag left as soon as its mismatches exceed the allowance. It hashes its file once, as ours does.
"""

import gc
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import bundles as make
from support.sample_rows import columns_of, cut_row

from fitladder.audit.periodicity import best_lag, find_loop
from fitladder.audit.termination import audit_termination
from fitladder.canonical import sha256_file
from fitladder.evidence.audit_bundle import audit_bundle
from fitladder.records.audit import TerminationAudit
from fitladder.records.experiment import Experiment
from fitladder.records.sample import SampleRow
from fitladder.records.settings import LoopRule, Rung
from fitladder.sampling.parquet import render_samples
from fitladder.sampling.seeds import stage1_seed, stage2_seed
from fitladder.store.held_root import hold_root
from fitladder.store.verify_bundle import verify_bundle
from fitladder.store.write_bundle import commit_bundle

BUDGET = 49_152
PERIODS = (
    *(5, 5, 5, 5, 5, 10, 10, 14, 20, 31, 84, 143, 234, 243, 299, 303, 307, 455, 498, 505, 510, 548, 564, 624),
    *(663, 693, 710, 771, 797, 992, 1066, 1089, 1195, 1264, 1291, 1437, 1663, 1909),
)
RULE = LoopRule(tail_tokens=8_192, max_period_tokens=2_048, min_match_rate="0.99", min_budget_tokens=16_384)


def _experiment() -> Experiment:
    rung = Rung(thinking_budget_tokens=BUDGET, max_num_seqs=19, capture_sizes=None, deadline_s=60)
    small = make.experiment(records=12, k=(4, 12))
    return small.model_copy(update={"rungs": (rung,), "loop_rule": RULE})


def _streams() -> list[Any]:
    random = np.random.default_rng(49)
    streams = []
    for period in (*PERIODS, *(None,) * 10):
        ids = random.integers(10, 248_000, BUDGET, dtype=np.int32)
        if period is not None:
            onset = int(random.integers(1_000, BUDGET // 2))
            ids[onset:] = np.resize(ids[onset : onset + period], BUDGET - onset)
        streams.append(ids)
    return streams


def _rows(preflight: Any, streams: list[Any]) -> list[SampleRow]:
    seed, rows = preflight.sampling.run_seed, []
    for place, ids in enumerate(streams):
        prompt, index = preflight.prompts[place // 4], place % 4
        rows.append(
            cut_row(
                ids,
                prompt.record_id,
                index,
                prompt_tokens=prompt.prompt_tokens,
                stage1_seed=stage1_seed(seed, prompt.record_id) + index,
                stage2_seed=stage2_seed(seed, prompt.record_id, index),
                stage2_prompt_tokens=prompt.prompt_tokens + BUDGET + 2,
                stage2_token_ids=np.arange(10, 15),
                stage2_stop_reason="9",
            )
        )
    return rows


def _write_naive(path: Path, streams: list[Any]) -> None:
    with path.open("w") as out:
        for place, ids in enumerate(streams):
            listed = ids.tolist()
            text = "".join("abcdefgh"[token % 7 :][:2] for token in listed)
            record = {
                "id": place,
                "token_ids": listed,
                "stage1_token_ids": listed,
                "thinking_token_ids": listed,
                "text": text,
            }
            out.write(json.dumps(record, separators=(",", ":")) + "\n")


def _naive_lag(tail: list[int]) -> int | None:
    best: tuple[float, int] | None = None
    for lag in range(1, 2_049):
        allowed, missed = int((8_192 - lag) * 0.01 + 1e-12), 0
        for at in range(lag, 8_192):
            if tail[at] != tail[at - lag]:
                missed += 1
                if missed > allowed:
                    break
        else:
            rate = missed / (8_192 - lag)
            if best is None or rate < best[0]:
                best = (rate, lag)
            if missed == 0:
                break
    return best[1] if best else None


def _naive(path: Path, sha256: str) -> list[int | None]:
    if sha256_file(path) != sha256:
        raise ValueError("tampered with")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [_naive_lag(row["thinking_token_ids"][-8_192:]) for row in rows]


def _timed(work: Callable[[], Any], repeats: int) -> tuple[float, float, Any]:
    """Least wall and least CPU seconds over the repeats: other work on the machine only ever adds."""
    wall, cpu, found = [], [], None
    for _ in range(repeats):
        gc.collect()
        began, began_cpu = time.perf_counter(), time.process_time()
        found = work()
        cpu.append(time.process_time() - began_cpu)
        wall.append(time.perf_counter() - began)
    return min(wall), min(cpu), found


@pytest.mark.timeout(300)
def test_content_blind_audit_from_disk(tmp_path: Path) -> None:
    experiment, streams = _experiment(), _streams()
    at = make.key(BUDGET)
    with hold_root(tmp_path / "root", experiment.experiment_id, "bench") as held:
        preflight = make.begin(held, experiment, at)
        source = tmp_path / "samples.parquet"
        source.write_bytes(render_samples(_rows(preflight, streams), at))
        folder = commit_bundle(
            held,
            at,
            source,
            make.engine_meta(at),
            samples_sha256=sha256_file(source),
            noted_at_s=make.NOON_S + 60,
        ).folder
    naive_path = tmp_path / "naive.jsonl"
    _write_naive(naive_path, streams)
    bundle_bytes = sum(path.stat().st_size for path in folder.iterdir())
    naive_sha256 = sha256_file(naive_path)
    naive_bytes = naive_path.stat().st_size

    def content_blind() -> TerminationAudit:
        return audit_bundle(verify_bundle(folder, at), experiment)

    naive_s, naive_cpu_s, naive_found = _timed(lambda: _naive(naive_path, naive_sha256), 2)
    verify_s, verify_cpu_s, bundle = _timed(lambda: verify_bundle(folder, at), 30)
    audit_s, audit_cpu_s, _ = _timed(lambda: audit_bundle(bundle, experiment), 30)
    whole_s, whole_cpu_s, audit = _timed(content_blind, 60)
    assert [row.period_tokens for row in audit.rows] == naive_found
    share = f"1/{naive_bytes / bundle_bytes:.1f}"
    print(f"\n bundle {bundle_bytes / 1e6:.2f} MB, naive {naive_bytes / 1e6:.2f} MB: {share}")
    for name, ours, naive, verify, audited in (
        ("wall", whole_s, naive_s, verify_s, audit_s),
        ("CPU", whole_cpu_s, naive_cpu_s, verify_cpu_s, audit_cpu_s),
    ):
        print(
            f" {name:4} verify {verify * 1e3:.1f} ms, audit {audited * 1e3:.1f} ms, both {ours * 1e3:.1f} ms;"
            f" naive {naive * 1e3:.0f} ms: {naive / ours:.1f} times as long"
        )


def test_periodicity_of_48_tails() -> None:
    random = np.random.default_rng(7)
    worst = []
    for _ in range(48):
        ids = np.zeros(BUDGET, dtype=np.int32)
        at = np.cumsum(random.integers(60, 200, 800))
        at = at[at < BUDGET]
        ids[at] = 1 + np.arange(len(at))
        worst.append(ids)
    loops = _streams()[: len(PERIODS)]
    noise = [random.integers(0, 248_000, BUDGET, dtype=np.int32) for _ in range(48)]
    print()
    for name, streams in (
        ("published loops", (loops * 2)[:48]),
        ("random ids", noise),
        ("worst rows", worst),
    ):
        seconds, _, _ = _timed(lambda streams=streams: [find_loop(ids, RULE) for ids in streams], 3)
        print(f" {name:16} {seconds * 1e3:8.1f} ms for 48 tails")
    seconds, _, _ = _timed(lambda: [best_lag(ids, RULE) for ids in noise[:4]], 2)
    print(f" every lag in full {seconds / 4 * 48 * 1e3:7.1f} ms for 48 tails of random ids")


def test_audit_of_columns_alone() -> None:
    experiment, streams, at = _experiment(), _streams(), make.key(BUDGET)
    preflight = make.preflight(experiment, at, root_id="0" * 64, sequence=0)
    columns = columns_of(_rows(preflight, streams))
    records = [prompt.record_id for prompt in preflight.prompts]
    seconds, _, audit = _timed(lambda: audit_termination(columns, experiment, at, records), 15)
    print(f"\n {seconds * 1e3:.1f} ms: {audit.periodic_loop_contacts} loops of {audit.samples}")
    assert audit.periodic_loop_contacts == len(PERIODS)

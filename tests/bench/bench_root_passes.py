"""Seconds that a phase spends on verification, from the ask to the stages of its page.

Builds a root of four phases of 48 samples at about 49,152 ids each in a scratch folder, then takes a fifth
phase through ask, plan, answer, dispatch, lock, preflight and commit (its rows are made beforehand; no engine
runs), ingest and the stages that read bundles. Wall and CPU seconds a step are printed. About 150 MB of disk.

    PYTHONPATH=tests .venv/bin/python tests/bench/bench_root_passes.py FOLDER
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fitladder.report.verified import verified_audits
from scripted.workspace import EXPERIMENT, ScriptedHouse, filled, make_house
from support import bundles as make

from fitladder.canonical import sha256_file
from fitladder.dvc_api.ingest import ingest
from fitladder.evidence.checkout_bundles import load_bundles
from fitladder.evidence.load import evidence_once
from fitladder.phase import run
from fitladder.phase.ask import decide, open_ask
from fitladder.phase.dispatch import check_ready
from fitladder.phase.plan import plan_phase
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import Experiment
from fitladder.records.preflight import Preflight
from fitladder.registry.binding import bind
from fitladder.registry.load import load_registry
from fitladder.sampling.parquet import render_samples
from fitladder.stages.audit import make_audit
from fitladder.stages.selection import make_selection
from fitladder.store.held_root import hold_root
from fitladder.store.write_bundle import commit_bundle, write_preflight

BUDGETS = (49_152, 49_168, 49_184, 49_200, 49_216, 49_232)  # four probes lie there, the fifth is measured
DONE = 4


def register(folder: Path) -> ScriptedHouse:
    """A checkout whose experiment has one probe of 12 records x 4 a rung."""
    made = make_house(folder)
    section = made.section
    section["engine"] |= {"max_model_len_tokens": 65_536, "num_gpu_blocks_override": 131_072}
    section["thinking"]["model_eos_token_ids"] = [9]  # rows are drawn from 10 on
    rung = {"max_num_seqs": 19, "capture_sizes": None, "deadline_s": 60}
    section |= {
        "records_per_arm": 12,
        "probe_k": 4,
        "matrix_k": 12,
        "rungs": [{"thinking_budget_tokens": budget, **rung} for budget in BUDGETS],
        "loop_rule": {
            "tail_tokens": 8_192,
            "max_period_tokens": 2_048,
            "min_match_rate": 0.99,
            "min_budget_tokens": 16_384,
        },
    }
    made.register()
    return made


def key_of(budget: int) -> BundleKey:
    return make.key(budget, "probe", EXPERIMENT)


def write_rows(folder: Path, preflight: Preflight) -> Path:
    """The samples file that an engine would leave."""
    path = folder / f"{preflight.key.thinking_budget_tokens}.parquet"
    path.write_bytes(render_samples(make.rows(preflight, seed=1), preflight.key))
    return path


def fill(made: ScriptedHouse, experiment: Experiment, folder: Path) -> None:
    """The phases that are complete before the measured one."""
    with hold_root(made.root, EXPERIMENT, "bench") as held:
        for budget in BUDGETS[:DONE]:
            preflight = make.begin(held, experiment, key_of(budget), binding=bind(experiment))
            commit(held, preflight, write_rows(folder, preflight))


def commit(held: Any, preflight: Preflight, rows: Path) -> None:
    commit_bundle(
        held,
        preflight.key,
        rows,
        make.engine_meta(preflight.key),
        samples_sha256=sha256_file(rows),
        noted_at_s=make.NOON_S + 60,
    )


class Steps:
    """Wall and CPU seconds by step, in order."""

    def __init__(self) -> None:
        self.seconds: dict[str, tuple[float, float]] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        spent = (time.perf_counter() - wall, time.process_time() - cpu)
        before = self.seconds.get(name, (0.0, 0.0))
        self.seconds[name] = (before[0] + spent[0], before[1] + spent[1])

    def print(self, title: str, names: tuple[str, ...]) -> None:
        for name in names:
            print(f"  {name:24} {self.seconds[name][0]:7.2f} s wall {self.seconds[name][1]:7.2f} s CPU")
        wall, cpu = (sum(self.seconds[name][place] for name in names) for place in (0, 1))
        print(f"{title:26} {wall:7.2f} s wall {cpu:7.2f} s CPU")


def measure(made: ScriptedHouse, experiment: Experiment, folder: Path) -> Steps:
    """One phase after those that are there, and its way into the checkout."""
    steps, workspace, key = Steps(), made.workspace(), key_of(BUDGETS[DONE])
    registry, now = load_registry(workspace.params), datetime.now(UTC)
    with steps.step("ask"):
        load = evidence_once(workspace, EXPERIMENT)
        asked = open_ask(workspace, key, ask_id="a", requester="rosa", now=now, wait_s=3600, load=load)
    with steps.step("plan"):
        plan_phase(workspace, asked, "gpu", load=load)
    with steps.step("answer"):
        load = evidence_once(workspace, EXPERIMENT)
        entry = decide(workspace, asked, filled(asked), datetime.now(UTC), load=load)
    with steps.step("dispatch"):
        go = check_ready(workspace, asked, "gpu", datetime.now(UTC), load=load).parameters["go_sha256"]
    if entry.kind != "go":
        raise SystemExit(entry.statement)
    with steps.step("lock"):
        holding = run.hold_phase(workspace, key, "gpu")
        held = holding.__enter__()
        run.authorise(held, go)
    given = {"binding": bind(experiment), "go_sha256": go}
    sequence = held.verified.catalog.next_sequence
    preflight = make.preflight(experiment, key, root_id=held.held_root.root_id, sequence=sequence, **given)
    rows = write_rows(folder, preflight)
    with steps.step("preflight"):
        write_preflight(held.held_root, preflight, held.verified)
    with steps.step("commit"):
        commit(held.held_root, preflight, rows)
        holding.__exit__(None, None, None)
    with steps.step("ingest"):
        ingest(registry, EXPERIMENT, made.root, workspace.data, workspace.environment)
    stages: dict[str, Callable[[], object]] = {
        "bundles@X": lambda: load_bundles(workspace.data, experiment),
        "audit@X": lambda: make_audit(registry, EXPERIMENT, workspace.data),
        "selection@X": lambda: make_selection(registry, EXPERIMENT, workspace.data),
        "report@X, verification": lambda: verified_audits(
            workspace.data, experiment, load_bundles(workspace.data, experiment)
        ),
    }
    for name, stage in stages.items():
        with steps.step(name):
            stage()
    return steps


def main(folder: Path) -> None:
    made = register(folder / "checkout")
    experiment = load_registry(made.workspace().params).experiment(EXPERIMENT)
    fill(made, experiment, folder)
    steps = measure(made, experiment, folder)
    steps.print("ask to receipt", ("ask", "plan", "answer", "dispatch", "lock", "preflight", "commit"))
    steps.print("ask to page", tuple(steps.seconds))


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())

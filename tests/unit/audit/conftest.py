"""Seeded token streams and bundle columns for audits; ids are drawn, no text exists."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.sample_rows import columns_of, cut_row

from fitladder.audit.termination import TerminationColumns
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import Experiment
from fitladder.records.sample import SampleRow
from fitladder.records.settings import LoopRule
from fitladder.registry.load import load_registry

PARAMS = Path(__file__).parents[3] / "params.yaml"
BUDGET = 49_152
RECORDS = tuple(f"r-{index:02d}" for index in range(12))


@pytest.fixture(scope="session")
def experiment() -> Experiment:
    registered = load_registry(PARAMS).experiment("qwen35_4b_verified_macro_exact_cudagraph_rerun")
    return registered.model_copy(update={"state": "open"})


@pytest.fixture(scope="session")
def rule(experiment: Experiment) -> LoopRule:
    return experiment.loop_rule


@pytest.fixture(scope="session")
def probe(experiment: Experiment) -> BundleKey:
    return BundleKey(experiment_id=experiment.experiment_id, thinking_budget_tokens=BUDGET, phase="probe")


@pytest.fixture(scope="session")
def fill() -> Callable[..., Any]:
    """Distinct ids in front of `ids`, so that a row is `total` ids long."""

    def pad(ids: Sequence[int], total: int = BUDGET) -> Any:
        front = 1_000_000 + np.arange(total - len(ids))
        return np.concatenate([front, np.asarray(ids)]).astype(np.int32)

    return pad


@pytest.fixture(scope="session")
def row() -> Callable[..., SampleRow]:
    """One sample that was cut at its budget and force-closed, unless said otherwise."""

    def build(ids: Any, record_id: str = "r-00", index: int = 0, **changes: Any) -> SampleRow:
        closed = {
            "forced_close": False,
            "stage1_finish_reason": "stop",
            "stage2_finish_reason": None,
            "stage2_token_ids": np.zeros(0, np.int32),
        }
        ended = changes.get("natural_close") or changes.get("eos_inside_thinking")
        return cut_row(ids, record_id, index, **{**(closed if ended else {}), **changes})

    return build


@pytest.fixture(scope="session")
def columns(row: Callable[..., SampleRow]) -> Callable[..., TerminationColumns]:
    """Columns of a whole probe: the given rows first, then short samples that closed by themselves."""

    def build(first: Sequence[SampleRow] = (), count: int = 48) -> TerminationColumns:
        samples = [(record_id, index) for record_id in RECORDS for index in range(4)]
        rows = []
        for place, (record_id, index) in enumerate(samples[:count]):
            if place < len(first):
                values = {**vars(first[place]), "record_id": record_id, "sample_index": index}
                rows.append(SampleRow(**values))
            else:
                ids = 2_000_000 + 100 * place + np.arange(50)
                rows.append(row(ids, record_id, index, natural_close=True, thinking_tokens=40))
        return columns_of(rows)

    return build

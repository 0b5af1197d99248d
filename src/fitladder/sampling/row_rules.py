"""Do a row's flags and counts follow from its own ids, by the registered two-stage rule?

An engine process reports both. The ids are taken as sampled; everything that is derived from them is derived
again, so that a row cannot call itself closed, finished or answered when its ids say otherwise.
"""

from typing import Any

import numpy as np

from fitladder.errors import BundleTampered
from fitladder.records.experiment import Experiment
from fitladder.sampling.parquet import SampleTable
from fitladder.sampling.seeds import stage2_seed

__all__ = ["DERIVED", "check_derived"]

DERIVED = (
    "record_id",
    "sample_index",
    "prompt_tokens",
    "stage1_token_ids",
    "stage1_finish_reason",
    "thinking_tokens",
    "natural_close",
    "eos_inside_thinking",
    "forced_close",
    "answer_restart",
    "injected_tokens",
    "stage2_seed",
    "stage2_prompt_tokens",
    "stage2_token_ids",
    "answer_tokens",
)
Ids = np.ndarray[tuple[int, ...], np.dtype[Any]]


def check_derived(table: SampleTable, experiment: Experiment, budget_tokens: int, *, where: str) -> None:
    """Raises BundleTampered naming the first row and field that its ids contradict."""
    plain = {
        name: table.integers(name)
        for name in (
            "sample_index",
            "prompt_tokens",
            "thinking_tokens",
            "injected_tokens",
            "stage2_prompt_tokens",
        )
    }
    plain["answer_tokens"] = table.integers("answer_tokens")
    flags = {
        name: table.flags(name)
        for name in ("natural_close", "eos_inside_thinking", "forced_close", "answer_restart")
    }
    names, seeds = table.texts("record_id"), table.optional_integers("stage2_seed")
    reasons = table.texts("stage1_finish_reason")
    stage1, stage2 = table.token_lists("stage1_token_ids"), table.token_lists("stage2_token_ids")
    for row, name in enumerate(names):
        sample = (str(name), int(plain["sample_index"][row]))
        need = _derive(
            experiment,
            sample,
            stage1[row],
            stage2[row],
            stopped=reasons[row] == "stop",
            prompt_tokens=int(plain["prompt_tokens"][row]),
        )
        got: dict[str, object] = {field: int(plain[field][row]) for field in plain if field in need}
        got |= {field: bool(flags[field][row]) for field in flags}
        got["stage2_seed"] = None if seeds[row] is None else int(seeds[row] or 0)
        for field, value in need.items():
            if got[field] != value:
                raise _contradicts(where, sample, f"{field} {got[field]}", f"{field} {value}")
        if reasons[row] == "length" and len(stage1[row]) != budget_tokens:
            raise _contradicts(where, sample, f"{len(stage1[row])} ids at the limit", str(budget_tokens))
        for ids in (stage1[row], stage2[row]):
            if np.isin(ids, experiment.thinking.model_eos_token_ids).any():
                raise _contradicts(where, sample, "a model EOS among the kept ids", "none")


def _derive(
    experiment: Experiment,
    sample: tuple[str, int],
    stage1: Ids,
    stage2: Ids,
    *,
    stopped: bool,
    prompt_tokens: int,
) -> dict[str, object]:
    rule = experiment.thinking
    marker_at = _first_run(stage1, rule.close_marker_token_ids)
    thinking = len(stage1) if marker_at is None else marker_at
    natural = marker_at is not None
    forced = not natural and (not stopped or rule.eos_inside_thinking == "forced_close")
    asked = forced or (natural and not stopped)
    behind = len(stage1) - thinking - len(rule.close_marker_token_ids) if natural else 0
    close = len(rule.close_token_ids)
    sampled = _common_prefix(stage1[thinking:], rule.close_token_ids) if natural else 0
    return {
        "natural_close": natural,
        "thinking_tokens": thinking,
        "eos_inside_thinking": not natural and stopped,
        "forced_close": forced,
        "answer_restart": natural and not stopped,
        "injected_tokens": close - sampled if asked else 0,
        "stage2_seed": stage2_seed(experiment.sampling.run_seed, *sample) if asked else None,
        "stage2_prompt_tokens": prompt_tokens + thinking + close if asked else 0,
        "answer_tokens": len(stage2) if asked else behind,
    }


def _first_run(ids: Ids, run: tuple[int, ...]) -> int | None:
    """Where the whole run first stands; `sampling/marker.py` says the same of plain tuples."""
    starts = np.flatnonzero(ids[: max(0, len(ids) - len(run) + 1)] == run[0])
    return next((int(at) for at in starts if tuple(ids[at : at + len(run)].tolist()) == run), None)


def _common_prefix(ids: Ids, run: tuple[int, ...]) -> int:
    """How many leading ids both have in common; `sampling/marker.py` says the same of plain tuples."""
    pairs = enumerate(zip(ids.tolist(), run, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(ids), len(run)))


def _contradicts(where: str, sample: tuple[str, int], got: str, need: str) -> BundleTampered:
    return BundleTampered(f"{where}: {sample[0]!a} #{sample[1]} contradicts its own ids", got=got, need=need)

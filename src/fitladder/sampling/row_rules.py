"""Consistency of sample rows: with the preflight, among a row's own columns, and with the row's own ids.

An engine process reports all of it. The ids are taken as sampled; what a preflight announced or what follows
from the ids by the two-stage rule is compared with the rows. No id's meaning is read.
"""

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from fitladder.errors import BundleTampered
from fitladder.records.experiment import Experiment
from fitladder.records.preflight import Preflight
from fitladder.records.record_ids import seeds_sha256
from fitladder.sampling.parquet import SampleTable
from fitladder.sampling.seeds import stage2_seed
from fitladder.sampling.thinking_end import end_thinking

__all__ = ["DERIVED", "RowCounts", "check_derived", "check_rows", "row_faults"]

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_NOT_NEGATIVE = (
    "stage1_trimmed_tokens",
    "thinking_tokens",
    "injected_tokens",
    "stage2_prompt_tokens",
    "stage2_trimmed_tokens",
    "answer_tokens",
)
_COUNTS = (
    "sample_index",
    "prompt_tokens",
    "thinking_tokens",
    "injected_tokens",
    "stage2_prompt_tokens",
    "answer_tokens",
)
_FLAGS = ("natural_close", "eos_inside_thinking", "forced_close", "answer_restart")

# Columns that `check_derived` reads.
DERIVED = (
    "record_id",
    *_COUNTS,
    *_FLAGS,
    "stage1_token_ids",
    "stage1_finish_reason",
    "stage2_seed",
    "stage2_token_ids",
)


@dataclass(frozen=True)
class RowCounts:
    """Numbers of kept ids and flags of every row, one array entry a row."""

    stage1_tokens: Counts
    thinking_tokens: Counts
    stage2_tokens: Counts
    natural_close: Flags
    eos_inside_thinking: Flags
    forced_close: Flags
    answer_restart: Flags
    stage2_ran: Flags


def row_faults(rows: RowCounts, budget_tokens: int) -> list[tuple[Flags, str]]:
    """Rows that no run of the two-stage rule gives: per fault a mask over the rows, and its words.

    Holds without the ids themselves, whatever the registered treatment of an EOS inside thinking.
    """
    natural, forced, ended = rows.natural_close, rows.forced_close, rows.eos_inside_thinking
    asked = forced | rows.answer_restart
    return [
        (rows.stage1_tokens > budget_tokens, f"more stage-1 ids than the thinking budget of {budget_tokens}"),
        (
            (rows.thinking_tokens < 0) | (rows.thinking_tokens > rows.stage1_tokens),
            "more thinking than stage-1 ids, or less than none",
        ),
        (forced & natural, "both a forced and a natural close"),
        (ended & natural, "EOS inside closed thinking"),
        (~(natural | forced | ended), "thinking that never ended"),
        (rows.answer_restart & ~natural, "an answer restart without a natural close"),
        (rows.stage2_ran != asked, "stage 2 must run exactly for a forced close or an answer restart"),
        ((rows.stage2_tokens > 0) & ~rows.stage2_ran, "ids of a stage 2 that did not run"),
    ]


def check_rows(samples: SampleTable, preflight: Preflight, *, where: str) -> None:
    """The rows are those that the preflight announced: each sample once, in order, with possible counts.

    Args:
        samples: all columns of the bundle.
        preflight: names the records, K, the seeds' digest and the limits in tokens.
        where: the file, for messages.

    Raises BundleTampered naming `where` and the first row or total that does not agree.
    """
    found = list(zip(samples.texts("record_id"), samples.integers("sample_index").tolist(), strict=True))
    need = [(prompt.record_id, index) for prompt in preflight.prompts for index in range(preflight.k)]
    _check_samples(found, need, where)
    _check_counts(samples, preflight, where)
    seeds = zip(
        (prompt.record_id for prompt in preflight.prompts for _ in range(preflight.k)),
        samples.integers("sample_index").tolist(),
        samples.integers("stage1_seed").tolist(),
        strict=True,
    )
    digest = seeds_sha256(seeds)
    if digest != preflight.seeds_sha256:
        raise BundleTampered(f"{where}: digest of the seeds", got=digest, need=preflight.seeds_sha256)


def _check_samples(found: list[tuple[str | None, int]], need: list[tuple[str, int]], where: str) -> None:
    if found == need:
        return
    seen: set[tuple[str | None, int]] = set()
    for sample in found:
        if sample in seen:
            raise BundleTampered(f"{where}: sample {_name(sample)} stands twice", need="each sample once")
        seen.add(sample)
    missing = [sample for sample in need if sample not in seen]
    foreign = [sample for sample in found if sample not in set(need)]
    if missing or foreign:
        raise BundleTampered(
            f"{where}: other samples than the preflight's",
            got=f"{len(found)} rows" + (f", {_name(foreign[0])} among them" if foreign else ""),
            need=f"{len(need)} rows" + (f", {_name(missing[0])} among them" if missing else ""),
        )
    raise BundleTampered(f"{where}: rows out of order", need="the preflight's records, each by sample index")


def _name(sample: tuple[str | None, int]) -> str:
    return f"{sample[0]!a} #{sample[1]}"


def _check_counts(samples: SampleTable, preflight: Preflight, where: str) -> None:
    count = samples.integers
    stage2 = samples.lengths("stage2_token_ids")
    ran2 = np.array([seed is not None for seed in samples.optional_integers("stage2_seed")], dtype=np.bool_)

    def refuse(row: int, what: str) -> NoReturn:
        sample = (samples.texts("record_id")[row], int(count("sample_index")[row]))
        raise BundleTampered(f"{where}: {_name(sample)}: {what}")

    def need_none(faulty: Any, what: str) -> None:
        if faulty.any():
            refuse(int(np.flatnonzero(faulty)[0]), what)

    prompts = np.repeat([prompt.prompt_tokens for prompt in preflight.prompts], preflight.k)
    need_none(count("prompt_tokens") != prompts, "prompt_tokens differ from the preflight's")
    for name in _NOT_NEGATIVE:
        need_none(count(name) < 0, f"{name} below 0")
    need_none(stage2 > preflight.sampling.answer_max_tokens, "more stage-2 ids than answer_max_tokens")
    rows = RowCounts(
        stage1_tokens=samples.lengths("stage1_token_ids"),
        thinking_tokens=count("thinking_tokens"),
        stage2_tokens=stage2,
        stage2_ran=ran2,
        **{name: samples.flags(name) for name in _FLAGS},
    )
    for faulty, what in row_faults(rows, preflight.key.thinking_budget_tokens):
        need_none(faulty, what)
    need_none(
        (count("stage2_prompt_tokens") > 0) != ran2, "stage2_prompt_tokens without stage 2, or none with it"
    )
    need_none(~ran2 & (count("injected_tokens") != 0), "ids injected for a stage 2 that did not run")


def check_derived(table: SampleTable, experiment: Experiment, budget_tokens: int, *, where: str) -> None:
    """Flags and counts of every row follow from its own ids by the registered two-stage rule.

    Args:
        table: at least the columns `DERIVED`.
        experiment: the registered markers, close sequence, EOS ids and run seed.
        budget_tokens: thinking budget of the rung.
        where: the bundle's folder, for messages.

    Raises BundleTampered naming the first row and field that its ids contradict.
    """
    counts = {name: table.integers(name) for name in _COUNTS}
    flags = {name: table.flags(name) for name in _FLAGS}
    names, seeds = table.texts("record_id"), table.optional_integers("stage2_seed")
    reasons = table.texts("stage1_finish_reason")
    stage1, stage2 = table.token_lists("stage1_token_ids"), table.token_lists("stage2_token_ids")
    for row, name in enumerate(names):
        sample = (str(name), int(counts["sample_index"][row]))
        end = end_thinking(stage1[row], experiment.thinking, stopped=reasons[row] == "stop")
        seed = stage2_seed(experiment.sampling.run_seed, *sample) if end.needs_stage2 else None
        need: dict[str, object] = {
            "natural_close": end.natural_close,
            "thinking_tokens": end.thinking_tokens,
            "eos_inside_thinking": end.eos_inside_thinking,
            "forced_close": end.forced_close,
            "answer_restart": end.answer_restart,
            "injected_tokens": end.injected_tokens,
            "stage2_seed": seed,
            "stage2_prompt_tokens": end.stage2_prompt_tokens(int(counts["prompt_tokens"][row])),
            "answer_tokens": end.answer_tokens(len(stage2[row])),
        }
        got: dict[str, object] = {field: int(values[row]) for field, values in counts.items()}
        got |= {field: bool(values[row]) for field, values in flags.items()}
        got["stage2_seed"] = seeds[row]
        for field, value in need.items():
            if got[field] != value:
                raise _contradicts(where, sample, f"{field} {got[field]}", f"{field} {value}")
        if reasons[row] == "length" and len(stage1[row]) != budget_tokens:
            raise _contradicts(where, sample, f"{len(stage1[row])} ids at the limit", str(budget_tokens))
        for ids in (stage1[row], stage2[row]):
            if np.isin(ids, experiment.thinking.model_eos_token_ids).any():
                raise _contradicts(where, sample, "a model EOS among the kept ids", "none")


def _contradicts(where: str, sample: tuple[str, int], got: str, need: str) -> BundleTampered:
    return BundleTampered(f"{where}: {_name(sample)} contradicts its own ids", got=got, need=need)

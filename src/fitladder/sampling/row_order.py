"""Are these the rows that the preflight announced, each once, in order, with counts that can be true?

It compares a decoded table with a preflight. It reads counts, ids' lengths and seeds, never an id's meaning.
"""

from typing import NoReturn

import numpy as np

from fitladder.errors import BundleTampered
from fitladder.records.preflight import Preflight
from fitladder.records.record_ids import seeds_sha256
from fitladder.sampling.parquet import SampleTable

__all__ = ["check_rows"]


def check_rows(samples: SampleTable, preflight: Preflight, *, where: str) -> None:
    """Raises BundleTampered naming `where` and the first row or total that does not agree."""
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
    stage1 = samples.lengths("stage1_token_ids")
    stage2 = samples.lengths("stage2_token_ids")
    forced, restarted = samples.flags("forced_close"), samples.flags("answer_restart")
    natural, ended = samples.flags("natural_close"), samples.flags("eos_inside_thinking")
    ran2 = np.array([seed is not None for seed in samples.optional_integers("stage2_seed")], dtype=np.bool_)

    def refuse(row: int, what: str) -> NoReturn:
        sample = (samples.texts("record_id")[row], int(count("sample_index")[row]))
        raise BundleTampered(f"{where}: {_name(sample)}: {what}")

    def need(holds: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], what: str) -> None:
        if not holds.all():
            refuse(int(np.flatnonzero(~holds)[0]), what)

    prompts = np.repeat([prompt.prompt_tokens for prompt in preflight.prompts], preflight.k)
    need(count("prompt_tokens") == prompts, "prompt_tokens differ from the preflight's")
    for name in _COUNTS:
        need(count(name) >= 0, f"{name} below 0")
    need(stage1 <= preflight.key.thinking_budget_tokens, "more stage-1 ids than the thinking budget")
    need(stage2 <= preflight.sampling.answer_max_tokens, "more stage-2 ids than answer_max_tokens")
    need(count("thinking_tokens") <= stage1, "more thinking than stage-1 ids")
    need(~(forced & natural), "both a forced and a natural close")
    need(~(ended & natural), "both an EOS inside thinking and a natural close")
    need(~restarted | natural, "an answer restart without a natural close")
    need(ran2 == (forced | restarted), "stage 2 must run exactly for a forced close or an answer restart")
    need((count("stage2_prompt_tokens") > 0) == ran2, "stage2_prompt_tokens without stage 2, or none with it")
    need(ran2 | ((stage2 == 0) & (count("injected_tokens") == 0)), "ids of a stage 2 that did not run")


_COUNTS = (
    "stage1_trimmed_tokens",
    "thinking_tokens",
    "injected_tokens",
    "stage2_prompt_tokens",
    "stage2_trimmed_tokens",
    "answer_tokens",
)

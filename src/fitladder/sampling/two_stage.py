"""Two-stage budgeted thinking: the requests of both stages, and the rows that their completions become.

Stage 1 samples up to the thinking budget; what did not close and stop by itself is closed and answered in
stage 2 (thinking_end.py has that rule). Pure: token ids in, token ids out, nothing is re-tokenised, and no
engine is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fitladder.errors import EngineFailed, InputRefused, RegistrationError
from fitladder.records.sample import SampleRow, TokenIds
from fitladder.records.settings import Sampling, Thinking
from fitladder.sampling.engine_protocol import Completion, SampleRequest
from fitladder.sampling.marker import find_first
from fitladder.sampling.seeds import check_seeds, stage1_seed, stage2_seed
from fitladder.sampling.thinking_end import ThinkingEnd, end_thinking

__all__ = ["EngineRecord", "Stage1Sample", "close_stage1", "finish", "plan_stage1"]

NULL_RESULT = "null"  # finish reason stored where the engine returned nothing at all for a stage-2 request
EMPTY_RESULT = "empty"  # ... or no ids and no reason
TOKEN_ID_END = 2**31  # ids are kept as int32


@dataclass(frozen=True)
class EngineRecord:
    """One prompt as the engine gets it."""

    record_id: str
    prompt_token_ids: tuple[int, ...]


@dataclass(frozen=True)
class Stage1Sample:
    """A sample between the stages. `answer` is the stage-2 request, None where the sample is complete."""

    record: EngineRecord
    sample_index: int
    seed: int
    token_ids: TokenIds
    trimmed_tokens: int
    finish_reason: str
    stop_reason: str | None
    end: ThinkingEnd
    answer: SampleRequest | None


@dataclass(frozen=True)
class _Ended:
    """Ids up to the first model EOS, what was cut, and why the sampling ended."""

    token_ids: tuple[int, ...]
    trimmed_tokens: int
    by_itself: bool
    finish_reason: str
    stop_reason: str | None


def plan_stage1(
    records: Sequence[EngineRecord], *, k: int, thinking_budget_tokens: int, run_seed: int
) -> list[SampleRequest]:
    """One request of k samples a record, in record order.

    Raises InputRefused on a repeated or empty record, RegistrationError on an unusable budget, K or seed.
    """
    if thinking_budget_tokens < 1 or k < 1:
        raise RegistrationError(
            "stage 1 needs a budget and samples", got=f"budget {thinking_budget_tokens}, K {k}", need=">= 1"
        )
    seen: set[str] = set()
    for record in records:
        if record.record_id in seen or not record.prompt_token_ids:
            raise InputRefused(
                f"record {record.record_id!a}",
                got="an id that stands twice" if record.record_id in seen else "a prompt of no tokens",
                need="unique ids with prompts",
            )
        seen.add(record.record_id)
    requests = [
        SampleRequest(
            request_id=f"{record.record_id}/1",
            prompt_token_ids=record.prompt_token_ids,
            n=k,
            seed=stage1_seed(run_seed, record.record_id),
            max_tokens=thinking_budget_tokens,
        )
        for record in records
    ]
    check_seeds(requests)
    return requests


def close_stage1(
    records: Sequence[EngineRecord],
    requests: Sequence[SampleRequest],
    completions: Sequence[Completion],
    *,
    thinking: Thinking,
    sampling: Sampling,
) -> list[Stage1Sample]:
    """Where each sample stands after stage 1, in record order, then sample order.

    A model EOS outranks the limit: the 49,152nd of 49,152 ids being an EOS is a stop. Raises EngineFailed on
    completions that are not those asked for, or that no finished sample can have.
    """
    wanted = [(request.request_id, index) for request in requests for index in range(request.n)]
    got = [(completion.request_id, completion.index) for completion in completions]
    if wanted != got:
        odd = next(
            (pair for pair in zip(wanted, got, strict=False) if pair[0] != pair[1]), (len(wanted), len(got))
        )
        raise EngineFailed("stage 1 came back incomplete or out of order", got=odd[1], need=odd[0])
    by_request = dict(zip((request.request_id for request in requests), records, strict=True))
    seeds = {request.request_id: request for request in requests}
    samples = [
        _close_one(by_request[one.request_id], seeds[one.request_id], one, thinking, sampling)
        for one in completions
    ]
    check_seeds([sample.answer for sample in samples if sample.answer is not None])
    return samples


def _close_one(
    record: EngineRecord,
    request: SampleRequest,
    completion: Completion,
    thinking: Thinking,
    sampling: Sampling,
) -> Stage1Sample:
    ended = _end(completion, request.max_tokens, thinking.model_eos_token_ids)
    token_ids = np.array(ended.token_ids, dtype=np.int32)
    end = end_thinking(token_ids, thinking, stopped=ended.by_itself)
    answer = None
    if end.needs_stage2:
        thought = ended.token_ids[: end.thinking_tokens]
        answer = SampleRequest(
            request_id=f"{record.record_id}/2/{completion.index}",
            prompt_token_ids=record.prompt_token_ids + thought + thinking.close_token_ids,
            n=1,
            seed=stage2_seed(sampling.run_seed, record.record_id, completion.index),
            max_tokens=sampling.answer_max_tokens,
        )
    return Stage1Sample(
        record=record,
        sample_index=completion.index,
        seed=request.seed + completion.index,
        token_ids=token_ids,
        trimmed_tokens=ended.trimmed_tokens,
        finish_reason=ended.finish_reason,
        stop_reason=ended.stop_reason,
        end=end,
        answer=answer,
    )


def finish(
    samples: Sequence[Stage1Sample], completions: Sequence[Completion | None], *, thinking: Thinking
) -> list[SampleRow]:
    """Rows of all samples, in the order of `samples`.

    `completions` answer the stage-2 requests of `samples` in order; None or no ids is an empty answer with
    its reason, never tried again. Raises EngineFailed where an answer is not to the request at its place.
    """
    asked = [sample.answer for sample in samples if sample.answer is not None]
    if len(asked) != len(completions):
        raise EngineFailed("stage 2 came back incomplete", got=len(completions), need=len(asked))
    answers: dict[str, _Ended] = {}
    for request, completion in zip(asked, completions, strict=True):
        if completion is None:
            answers[request.request_id] = _Ended((), 0, False, NULL_RESULT, None)
            continue
        if (completion.request_id, completion.index) != (request.request_id, 0):
            raise EngineFailed(
                "stage 2 came back out of order", got=completion.request_id, need=request.request_id
            )
        if completion.token_ids == () and completion.finish_reason in (None, "stop", "length"):
            reason = completion.finish_reason or EMPTY_RESULT
            answers[request.request_id] = _Ended((), 0, False, reason, None)
            continue
        answers[request.request_id] = _end(completion, request.max_tokens, thinking.model_eos_token_ids)
    return [_row(sample, answers[sample.answer.request_id] if sample.answer else None) for sample in samples]


def _row(sample: Stage1Sample, answer: _Ended | None) -> SampleRow:
    end, prompt_tokens = sample.end, len(sample.record.prompt_token_ids)
    return SampleRow(
        record_id=sample.record.record_id,
        sample_index=sample.sample_index,
        prompt_tokens=prompt_tokens,
        stage1_seed=sample.seed,
        stage1_token_ids=sample.token_ids,
        stage1_trimmed_tokens=sample.trimmed_tokens,
        stage1_finish_reason=sample.finish_reason,
        stage1_stop_reason=sample.stop_reason,
        thinking_tokens=end.thinking_tokens,
        natural_close=end.natural_close,
        eos_inside_thinking=end.eos_inside_thinking,
        forced_close=end.forced_close,
        answer_restart=end.answer_restart,
        injected_tokens=end.injected_tokens,
        stage2_seed=sample.answer.seed if sample.answer else None,
        stage2_prompt_tokens=end.stage2_prompt_tokens(prompt_tokens),
        stage2_token_ids=np.array(answer.token_ids if answer else (), dtype=np.int32),
        stage2_trimmed_tokens=answer.trimmed_tokens if answer else 0,
        stage2_finish_reason=answer.finish_reason if answer else None,
        stage2_stop_reason=answer.stop_reason if answer else None,
        answer_tokens=end.answer_tokens(len(answer.token_ids) if answer else 0),
    )


def _end(completion: Completion, max_tokens: int, eos_token_ids: Sequence[int]) -> _Ended:
    ids, reason = completion.token_ids, completion.finish_reason
    where = f"sample {completion.index} of request {completion.request_id!a}"
    _check_ids(ids, where)
    if reason not in ("stop", "length"):
        raise EngineFailed(f"{where} did not finish", got=reason, need="stop or length")
    if len(ids) > max_tokens:
        raise EngineFailed(f"{where} is too long", got=len(ids), need=f"at most {max_tokens} tokens")
    eos_at = find_first(ids, frozenset(eos_token_ids))
    told = completion.stop_reason
    registered = type(told) is int and told in eos_token_ids
    silent = told is None and (eos_at is not None or not ids)  # the ids say it, or there are none
    if reason == "stop" and not (registered or silent):
        raise EngineFailed(
            f"{where} stopped at what is no registered EOS", got=repr(told)[:80], need=sorted(eos_token_ids)
        )
    if eos_at is not None:
        stop = completion.stop_reason if completion.stop_reason is not None else ids[eos_at]
        return _Ended(ids[:eos_at], len(ids) - eos_at, True, "stop", str(stop))
    if reason == "length" and len(ids) != max_tokens:
        raise EngineFailed(f"{where} was cut short", got=f"{len(ids)} tokens", need=f"{max_tokens}")
    stop_reason = None if completion.stop_reason is None else str(completion.stop_reason)
    return _Ended(ids, 0, reason == "stop", reason, stop_reason)


def _check_ids(ids: object, where: str) -> None:
    """Whole int32 ids in a tuple: an equal float or truth value is no id. Raises EngineFailed."""
    if type(ids) is not tuple:
        raise EngineFailed(f"{where} holds no tuple of ids", got=repr(ids)[:80], need="token ids")
    for one in ids:
        if type(one) is not int or not 0 <= one < TOKEN_ID_END:
            raise EngineFailed(f"{where} holds what is no token id", got=repr(one)[:80], need="0 to 2^31 - 1")

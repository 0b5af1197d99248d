"""Two-stage thinking by token ids: the registered rule at empty, unclosed and partly closed rows."""

import numpy as np
import pytest

from fitladder.errors import EngineFailed, InputRefused, RegistrationError
from fitladder.records.settings import Sampling, Thinking
from fitladder.sampling.engine_protocol import Completion
from fitladder.sampling.two_stage import EngineRecord, close_stage1, finish, plan_stage1

BUDGET = 49_152
SAMPLING = Sampling(temperature=0.6, top_p=0.95, top_k=20, answer_max_tokens=512, run_seed=2701)
PROMPT = (1, 2, 3)


def thinking(marker=(900,), close=(900, 901), eos=(7, 9), inside="forced_close"):
    return Thinking(
        open_text="<think>\n",
        close_text="</think>\n\n",
        close_marker_token_ids=marker,
        close_token_ids=close,
        model_eos_token_ids=eos,
        eos_inside_thinking=inside,
    )


def distinct(count, first=10_000):
    return tuple(range(first, first + count))


def sample(ids, reason, rule, *, stop=None, budget=BUDGET, answer=None):
    """One sample through both stages; `answer` completes its stage-2 request, where there is one."""
    record = EngineRecord("r", PROMPT)
    requests = plan_stage1([record], k=1, thinking_budget_tokens=budget, run_seed=2701)
    got = [Completion(requests[0].request_id, 0, tuple(ids), reason, stop)]
    samples = close_stage1([record], requests, got, thinking=rule, sampling=SAMPLING)
    asked = [one.answer for one in samples if one.answer is not None]
    answers = [] if not asked else [answer(asked[0]) if callable(answer) else answer]
    return finish(samples, answers, thinking=rule)[0], asked


def flags(row):
    names = ("natural_close", "forced_close", "answer_restart", "eos_inside_thinking")
    return {name for name in names if getattr(row, name)}


def answered(ids, reason, stop=None):
    return lambda request: Completion(request.request_id, 0, tuple(ids), reason, stop)


def test_natural_close_that_stopped_by_itself_is_complete():
    row, asked = sample([*distinct(50), 900, 901, 31, 32, 7], "stop", thinking(), stop=7)
    assert not asked
    assert (row.thinking_tokens, row.answer_tokens, row.stage1_trimmed_tokens) == (50, 3, 1)
    assert flags(row) == {"natural_close"}
    assert (row.injected_tokens, row.stage2_prompt_tokens, row.stage2_seed) == (0, 0, None)
    assert row.stage1_token_ids.tolist() == [*distinct(50), 900, 901, 31, 32]


def test_never_closed_thinking_is_closed_by_force_and_answered():
    row, asked = sample(
        distinct(100), "length", thinking(), budget=100, answer=answered([31, 32, 7], "stop", 7)
    )
    assert asked[0].prompt_token_ids == (*PROMPT, *distinct(100), 900, 901)
    assert asked[0].max_tokens == 512
    assert flags(row) == {"forced_close"}
    assert (row.injected_tokens, row.stage2_prompt_tokens) == (2, 105)
    assert (row.answer_tokens, row.stage2_trimmed_tokens, row.stage2_finish_reason) == (2, 1, "stop")


def test_natural_close_that_ran_on_restarts_its_answer_and_is_no_forced_close():
    ids = [*distinct(40), 900, *distinct(59, 70_000)]
    row, asked = sample(ids, "length", thinking(), budget=100, answer=answered([31] * 512, "length"))
    assert asked[0].prompt_token_ids == (*PROMPT, *distinct(40), 900, 901)
    assert flags(row) == {"natural_close", "answer_restart"}
    assert (row.thinking_tokens, row.answer_tokens) == (40, 512)


@pytest.mark.parametrize(
    ("behind", "injected"),
    [((), 2), ((59,), 2), ((901,), 1), ((901, 902), 0), ((901, 902, 59), 0), ((59, 901, 902), 2)],
)
def test_a_restarted_answer_injects_only_what_was_not_sampled(behind, injected):
    rule = thinking(close=(900, 901, 902))
    ids = [*distinct(40), 900, *behind]
    row, asked = sample(ids, "length", rule, budget=len(ids), answer=answered([31, 7], "stop", 7))
    assert flags(row) == {"natural_close", "answer_restart"}
    assert row.injected_tokens == injected
    assert asked[0].prompt_token_ids == (*PROMPT, *distinct(40), 900, 901, 902)
    assert row.stage2_prompt_tokens == len(asked[0].prompt_token_ids)


def test_a_marker_of_several_ids_one_before_the_budget_is_sampled_once():
    rule = thinking(marker=(17, 33), close=(17, 33, 34))
    row, _ = sample([*distinct(97), 17, 33, 59], "length", rule, budget=100, answer=answered([7], "stop", 7))
    assert (row.thinking_tokens, len(row.stage1_token_ids), row.injected_tokens) == (97, 100, 1)


ODD_IDS = [(10.0,), (True,), ("10",), (None,), (-1,), (2**31,), (5, 10.0, 7), "10", [10, 7]]


@pytest.mark.parametrize("odd", ODD_IDS, ids=repr)
def test_ids_that_are_no_token_ids_name_the_sample(odd):
    broken = Completion("r/1", 0, odd, "stop", 7)
    requests = plan_stage1([EngineRecord("r", PROMPT)], k=1, thinking_budget_tokens=9, run_seed=1)
    with pytest.raises(EngineFailed, match=r"sample 0 of request 'r/1' holds "):
        close_stage1([EngineRecord("r", PROMPT)], requests, [broken], thinking=thinking(), sampling=SAMPLING)
    with pytest.raises(EngineFailed, match=r"sample 0 of request 'r/2/0' holds "):
        sample(
            distinct(20),
            "length",
            thinking(),
            budget=20,
            answer=lambda request: Completion(request.request_id, 0, odd, "stop", 7),
        )


@pytest.mark.parametrize("empty", ["", []], ids=["text", "list"])
def test_an_empty_answer_is_a_tuple(empty):
    with pytest.raises(EngineFailed, match="holds no tuple of ids"):
        sample(
            distinct(20),
            "length",
            thinking(),
            budget=20,
            answer=lambda request: Completion(request.request_id, 0, empty, "stop", None),
        )


@pytest.mark.parametrize(
    ("ids", "stop"),
    [
        ((5, 6), None),
        ((5, 6), 8),
        ((5, 6), "</s>"),
        ((5, 6), "7"),
        ((5, 6), True),
        ((5, 7), 7.0),
        ((5, 7), 8),
        ((5, 7), "7"),
    ],
)
def test_a_stop_at_no_registered_eos_names_the_sample(ids, stop):
    with pytest.raises(EngineFailed, match=r"sample 0 of request 'r/1' stopped at what is no registered EOS"):
        sample(ids, "stop", thinking(), stop=stop)
    with pytest.raises(
        EngineFailed, match=r"request 'r/2/0' stopped at what is no registered EOS: .*\[7, 9\]"
    ):
        sample(distinct(20), "length", thinking(), budget=20, answer=answered(ids, "stop", stop))


def test_ids_behind_the_first_model_eos_are_cut_and_counted():
    row, _ = sample([*distinct(20), 9, 7, 55, 55], "stop", thinking(), stop=7, answer=answered([], "stop"))
    assert row.stage1_token_ids.tolist() == list(distinct(20))
    assert row.stage1_trimmed_tokens == 4


def test_marker_behind_an_eos_closes_nothing():
    row, _ = sample([*distinct(20), 7, 900, 31], "stop", thinking(inside="no_answer"), stop=7)
    assert flags(row) == {"eos_inside_thinking"}


@pytest.mark.parametrize("ids", [[], [7]], ids=["B_no_ids", "C_only_eos"])
def test_rows_without_a_token_are_kept(ids):
    row, _ = sample(ids, "stop", thinking(inside="no_answer"))
    assert (row.thinking_tokens, len(row.stage1_token_ids), row.answer_tokens) == (0, 0, 0)
    assert flags(row) == {"eos_inside_thinking"}


@pytest.mark.parametrize(
    ("ids", "reason", "stop"),
    [
        ([*distinct(5_000), 7], "stop", 7),
        ([*distinct(5_000), 9], "stop", 9),
        ([*distinct(BUDGET - 1), 7], "length", None),
    ],
    ids=["A", "B", "C_stop_outranks_length"],
)
def test_eos_inside_thinking_has_its_own_class(ids, reason, stop):
    row, asked = sample(ids, reason, thinking(inside="no_answer"), stop=stop)
    assert not asked
    assert flags(row) == {"eos_inside_thinking"}
    assert (row.stage1_finish_reason, row.stage1_stop_reason) == ("stop", str(ids[-1]))
    assert (row.thinking_tokens, row.stage1_trimmed_tokens, row.answer_tokens) == (len(ids) - 1, 1, 0)


def test_eos_inside_thinking_is_closed_by_force_where_registered():
    row, asked = sample([*distinct(5_000), 7], "stop", thinking(), stop=7, answer=answered([31, 7], "stop"))
    assert asked[0].prompt_token_ids == (*PROMPT, *distinct(5_000), 900, 901)
    assert flags(row) == {"forced_close", "eos_inside_thinking"}
    assert row.stage1_finish_reason == "stop"


def test_close_then_eos_is_a_natural_close_with_an_empty_answer():
    row, asked = sample([*distinct(30), 900, 7], "stop", thinking(), stop=7)
    assert not asked
    assert row.natural_close
    assert (row.thinking_tokens, row.answer_tokens) == (30, 0)


@pytest.mark.parametrize(
    ("answer", "reason", "tokens"),
    [
        (answered([], "stop"), "stop", 0),
        (answered([], None), "empty", 0),
        (None, "null", 0),
        (answered([31] * 512, "length"), "length", 512),
    ],
    ids=["A", "A_no_reason", "B_null", "C"],
)
def test_thinking_that_never_closes(answer, reason, tokens):
    row, asked = sample(distinct(BUDGET), "length", thinking(), answer=answer)
    assert len(asked) == 1
    assert row.forced_close
    assert (row.stage2_finish_reason, row.answer_tokens) == (reason, tokens)
    assert row.stage2_token_ids.dtype == np.int32


def test_first_id_of_a_marker_is_no_close():
    rule = thinking(marker=(17, 1002, 33), close=(17, 1002, 33, 34))
    ids = list(distinct(100))
    ids[50] = 17
    row, asked = sample(ids, "length", rule, budget=100, answer=answered([31, 7], "stop"))
    assert row.forced_close
    assert not row.natural_close
    assert row.thinking_tokens == 100
    assert asked[0].prompt_token_ids[-4:] == (17, 1002, 33, 34)


def test_whole_marker_is_found_behind_a_partial_one():
    rule = thinking(marker=(17, 17, 33), close=(17, 17, 33, 34))
    row, _ = sample([1000, 17, 17, 17, 33, 31, 7], "stop", rule, stop=7)
    assert row.natural_close
    assert (row.thinking_tokens, row.answer_tokens) == (2, 1)


def test_a_marker_cut_off_at_the_budget_is_no_close():
    rule = thinking(marker=(17, 1002, 33), close=(17, 1002, 33))
    row, _ = sample([*distinct(98), 17, 1002], "length", rule, budget=100, answer=answered([7], "stop"))
    assert row.forced_close
    assert row.thinking_tokens == 100


@pytest.mark.parametrize(
    ("ids", "reason", "message"),
    [
        ([5], "abort", "did not finish"),
        ([5], None, "did not finish"),
        ([5] * 50, "length", "cut short"),
        (list(distinct(101)), "length", "too long"),
    ],
)
def test_what_no_finished_sample_can_be_is_an_engine_failure(ids, reason, message):
    with pytest.raises(EngineFailed, match=message):
        sample(ids, reason, thinking(), budget=100)


def test_lost_or_swapped_samples_are_an_engine_failure():
    records = [EngineRecord("a", PROMPT), EngineRecord("b", PROMPT)]
    requests = plan_stage1(records, k=2, thinking_budget_tokens=10, run_seed=1)
    done = [Completion(one.request_id, index, (5, 7), "stop", 7) for one in requests for index in (0, 1)]
    rule = thinking()
    for broken in (done[:-1], done[1:], [done[1], done[0], *done[2:]], [*done, done[-1]]):
        with pytest.raises(EngineFailed, match="incomplete or out of order"):
            close_stage1(records, requests, broken, thinking=rule, sampling=SAMPLING)
    samples = close_stage1(records, requests, done, thinking=rule, sampling=SAMPLING)
    with pytest.raises(EngineFailed, match="incomplete"):
        finish(samples, [], thinking=rule)


def test_an_answer_to_another_request_is_an_engine_failure():
    ids = distinct(20)
    for answer in (
        Completion("r/2/1", 0, (5,), "length", None),
        Completion("r/2/0", 1, (5,), "length", None),
    ):
        with pytest.raises(EngineFailed, match=r"stage 2 came back out of order: got .*, need r/2/0"):
            sample(ids, "length", thinking(), budget=20, answer=answer)


def test_two_records_of_one_prompt_never_share_a_seed(monkeypatch):
    same = [EngineRecord("a", PROMPT), EngineRecord("b", PROMPT)]
    requests = plan_stage1(same, k=1, thinking_budget_tokens=20, run_seed=2701)
    got = [Completion(one.request_id, 0, distinct(20), "length", None) for one in requests]
    monkeypatch.setattr("fitladder.sampling.two_stage.stage2_seed", lambda *_: 7)
    with pytest.raises(RegistrationError, match="share seed 7"):
        close_stage1(same, requests, got, thinking=thinking(), sampling=SAMPLING)
    monkeypatch.setattr("fitladder.sampling.two_stage.stage1_seed", lambda *_: 7)
    with pytest.raises(RegistrationError, match="share seed 7"):
        plan_stage1(same, k=1, thinking_budget_tokens=20, run_seed=2701)


def test_plan_refuses_repeated_records_and_empty_prompts():
    for records in ([EngineRecord("a", PROMPT)] * 2, [EngineRecord("a", ())]):
        with pytest.raises(InputRefused):
            plan_stage1(records, k=1, thinking_budget_tokens=10, run_seed=1)
    for k, budget in ((0, 10), (1, 0)):
        with pytest.raises(RegistrationError):
            plan_stage1([EngineRecord("a", PROMPT)], k=k, thinking_budget_tokens=budget, run_seed=1)

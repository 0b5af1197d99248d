"""The registered audit of whole probes: classes, totals, thresholds, and sets of samples that are none."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.sample_rows import columns_of

from fitladder.audit.termination import TerminationColumns, audit_termination
from fitladder.canonical import canonical_bytes, parse_json, parse_model
from fitladder.errors import BundleError
from fitladder.records.audit import TerminationAudit
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import Experiment
from fitladder.records.sample import SampleRow

BUDGET = 49_152
RECORDS = tuple(f"r-{index:02d}" for index in range(12))
Row = Callable[..., SampleRow]
Columns = Callable[..., TerminationColumns]
Fill = Callable[..., Any]


@pytest.fixture
def audit(experiment: Experiment, probe: BundleKey) -> Callable[[TerminationColumns], TerminationAudit]:
    return lambda columns: audit_termination(columns, experiment, probe, RECORDS)


@pytest.fixture
def loop_row(row: Row, fill: Fill) -> SampleRow:
    return row(fill(np.arange(40_000) % 5))


@pytest.fixture
def unresolved_row(row: Row, fill: Fill) -> SampleRow:
    return row(fill([]))


def test_a_probe_of_short_samples_is_adequate(audit: Any, columns: Columns) -> None:
    found = audit(columns())
    assert (found.adequate, found.complete, found.samples) == (True, True, 48)
    assert found.reasoning_boundary_contacts == found.answer_limit_contacts == 0
    assert (found.unresolved_cap_contact_rate.rate, found.unresolved_cap_contact_rate.wilson95_high) == (
        "0.000000",
        "0.074100",
    )
    assert {row.verdict for row in found.rows} == {"no_contact"}
    assert found.largest_period_searched_tokens == 2_048


def test_an_audit_file_reads_back_equal(audit: Any, columns: Columns, loop_row: SampleRow) -> None:
    found = audit(columns([loop_row]))
    data = canonical_bytes(found)
    again = parse_model(TerminationAudit, parse_json(data, where="audit"), where="audit")
    assert again == found
    assert canonical_bytes(again) == data


def test_a_loop_is_placed_and_what_it_burned_is_counted(
    audit: Any, columns: Columns, loop_row: SampleRow
) -> None:
    found = audit(columns([loop_row]))
    first = found.rows[0]
    assert (first.verdict, first.ending, first.period_tokens) == ("periodic_loop", "forced_close", 5)
    assert (first.matched_tokens, first.compared_tokens) == (8_187, 8_187)
    assert (first.onset_token, first.tokens_after_onset) == (9_152, 40_000)
    assert (found.period_tokens, found.tokens_after_onset) == ((5,), 40_000)


def test_every_sample_one_id_repeated(audit: Any, columns: Columns, row: Row, fill: Fill) -> None:
    flood = row(fill(np.zeros(40_000)))
    found = audit(columns([flood] * 48))
    assert found.periodic_loop_contacts == 48
    assert found.period_tokens == (1,) * 48
    assert any("one id repeated (0): the engine's numerics are suspect" in text for text in found.warnings)
    mixed = audit(columns([flood] * 47))
    assert not any("numerics" in text for text in mixed.warnings)


def test_samples_without_thinking_stay_in_every_denominator(audit: Any, columns: Columns, row: Row) -> None:
    empty = row([], eos_inside_thinking=True, forced_close=True, stage2_finish_reason="stop")
    only_eos = row(
        [], eos_inside_thinking=True, forced_close=True, stage1_trimmed_tokens=1, stage2_finish_reason="stop"
    )
    found = audit(columns([empty, only_eos]))
    assert (found.samples, found.complete) == (48, True)
    assert [one.thinking_tokens for one in found.rows[:2]] == [0, 0]
    assert [one.verdict for one in found.rows[:2]] == ["unresolved"] * 2
    assert found.periodic_loop_rate.samples == found.unresolved_cap_contact_rate.samples == 48
    assert found.equal_samples == ()  # lists without an id are no sign of one seed


def test_a_tail_one_id_short_is_unresolved(audit: Any, columns: Columns, row: Row) -> None:
    found = audit(columns([row(np.full(8_191, 5))]))
    assert (found.rows[0].boundary_contact, found.rows[0].verdict) == (True, "unresolved")


def test_a_budget_below_the_loop_tail_cannot_be_registered(experiment: Experiment) -> None:
    plain = experiment.model_dump(mode="json")
    plain["rungs"][0]["thinking_budget_tokens"] = 8_191
    with pytest.raises(BundleError, match="shorter than the 8192-token loop tail"):
        parse_model(Experiment, plain, where="params.yaml", error=BundleError)


def test_near_misses_stay_visible(audit: Any, columns: Columns, row: Row, fill: Fill) -> None:
    ids = np.arange(20_000) % 40
    ids[::131] = 5_000 + np.arange(len(ids[::131]))
    first = audit(columns([row(fill(ids))])).rows[0]
    assert (first.verdict, first.period_tokens, first.onset_token) == ("unresolved", None, None)
    assert first.best_lag_tokens is not None
    assert first.matched_tokens / first.compared_tokens == pytest.approx(0.985, abs=0.005)


def test_rows_where_no_lag_can_be_skipped_are_no_loops(audit: Any, columns: Columns, row: Row) -> None:
    """One id with other ids strewn in at irregular gaps: no lag can be skipped, none passes."""
    random = np.random.default_rng(4)
    rows = []
    for _ in range(48):
        ids = np.zeros(BUDGET, dtype=np.int32)
        at = np.cumsum(random.integers(60, 200, 800))
        at = at[at < BUDGET]
        ids[at] = 1 + np.arange(len(at))
        rows.append(row(ids))
    began_s = time.process_time()
    found = audit(columns(rows))
    assert time.process_time() - began_s < 60  # about one second; never hours, whatever the ids are
    assert (found.unresolved_cap_contacts, found.adequate) == (48, False)
    assert all(one.best_lag_tokens for one in found.rows)
    assert found.largest_period_searched_tokens == 2_048


@pytest.mark.parametrize("eos", [7, 9])
def test_eos_inside_thinking(audit: Any, columns: Columns, row: Row, eos: int) -> None:
    ids = 10_000 + np.arange(5_000)
    forced = row(ids, eos_inside_thinking=True, forced_close=True, stage2_finish_reason="stop")
    forced = SampleRow(**{**vars(forced), "stage1_stop_reason": str(eos)})
    found = audit(columns([forced]))
    first = found.rows[0]
    assert (first.ending, first.boundary_contact, first.verdict) == (
        "eos_inside_thinking",
        True,
        "unresolved",
    )
    assert first.stage1_finish_reason == "stop"
    assert (found.eos_inside_thinking, found.forced_interventions) == (1, 1)
    assert found.closed_at_edge_contacts == 0
    left = audit(columns([row(ids, eos_inside_thinking=True)]))  # registered: eos_inside_thinking: no_answer
    assert (left.rows[0].ending, left.rows[0].boundary_contact) == ("eos_inside_thinking", False)
    assert left.forced_interventions == 0


def test_eos_at_the_last_thinking_token_counts_as_stop(
    audit: Any, columns: Columns, row: Row, fill: Fill
) -> None:
    ids = fill([], BUDGET - 1)  # the EOS would have been id 49,152
    for forced in (True, False):
        last = row(
            ids,
            eos_inside_thinking=True,
            forced_close=forced,
            stage2_finish_reason="stop" if forced else None,
            stage1_trimmed_tokens=1,
        )
        first = audit(columns([last])).rows[0]
        assert (first.ending, first.boundary_contact) == ("eos_inside_thinking", True)
        assert (first.stage1_finish_reason, first.verdict) == ("stop", "unresolved")


def test_natural_close_with_an_empty_answer(audit: Any, columns: Columns, row: Row) -> None:
    found = audit(columns([row([248_069], natural_close=True, thinking_tokens=0)]))
    assert (found.rows[0].ending, found.rows[0].boundary_contact) == ("natural_close", False)
    assert found.samples == 48


@pytest.mark.parametrize(("thinking", "contact"), [(BUDGET - 2, False), (BUDGET - 1, True), (BUDGET, True)])
def test_boundary_contact_is_one_token_before_the_budget(
    audit: Any, columns: Columns, row: Row, thinking: int, contact: bool
) -> None:
    closed = row(np.arange(BUDGET), natural_close=True, thinking_tokens=thinking)
    first = audit(columns([closed])).rows[0]
    assert first.boundary_contact is contact
    assert first.ending == ("closed_at_edge" if contact else "natural_close")


def test_a_close_at_the_edge_may_be_a_loop(audit: Any, columns: Columns, row: Row, fill: Fill) -> None:
    closed = row(fill(np.arange(40_000) % 5), natural_close=True, thinking_tokens=BUDGET - 1)
    found = audit(columns([closed]))
    assert (found.rows[0].verdict, found.closed_at_edge_contacts, found.forced_interventions) == (
        "periodic_loop",
        1,
        0,
    )


def test_a_loop_is_claimed_only_of_a_boundary_contact(audit: Any, columns: Columns, row: Row) -> None:
    calm = row(np.arange(40_000) % 5, natural_close=True, thinking_tokens=39_990)
    assert audit(columns([calm])).rows[0].verdict == "no_contact"


def test_below_the_registered_budget_no_loop_is_claimed(
    experiment: Experiment, probe: BundleKey, columns: Columns, loop_row: SampleRow
) -> None:
    rule = experiment.loop_rule.model_copy(update={"min_budget_tokens": BUDGET + 1})
    strict = experiment.model_copy(update={"loop_rule": rule})
    found = audit_termination(columns([loop_row]), strict, probe, RECORDS)
    assert (found.periodic_loop_contacts, found.unresolved_cap_contacts) == (0, 1)


@pytest.mark.parametrize(
    "tokens_reason_limited",
    [
        (511, "stop", False),
        (512, "stop", True),
        (512, "length", True),
        (3, "length", True),
        (0, "null", False),
    ],
)
def test_answer_limit_contact(
    audit: Any, columns: Columns, row: Row, tokens_reason_limited: tuple[int, str, bool]
) -> None:
    tokens, reason, limited = tokens_reason_limited
    cut = row([1, 2], stage2_token_ids=np.arange(tokens, dtype=np.int32), stage2_finish_reason=reason)
    found = audit(columns([cut]))
    assert found.rows[0].answer_limit_contact is limited
    assert found.answer_limit_contacts == int(limited)


def test_a_repeated_sample_is_refused_even_if_identical(columns: Columns, row: Row, audit: Any) -> None:
    rows = [row([1], record_id=record, index=index) for record in RECORDS for index in range(4)]
    for repeated in (rows[0], row([2], record_id="r-00", index=0)):
        with pytest.raises(BundleError, match="sample r-00#0 stands twice"):
            audit(columns_of([*rows, repeated]))


def test_expected_set_is_the_found_set(
    audit: Any, row: Row, experiment: Experiment, probe: BundleKey
) -> None:
    rows = [row([1], record_id=record, index=index) for record in RECORDS for index in range(4)]
    foreign = row([1], record_id="r-99")
    with pytest.raises(BundleError, match="r-99#0 is none of this phase"):
        audit(columns_of([*rows[:47], foreign]))
    lacking = audit(columns_of(rows[:11] + rows[12:]))
    assert (lacking.missing, lacking.complete, lacking.adequate) == (("r-02#3",), False, False)
    columns = columns_of(rows)
    with pytest.raises(BundleError, match="a record stands twice"):
        audit_termination(columns, experiment, probe, (*RECORDS[:11], "r-00"))
    with pytest.raises(BundleError, match="11 records"):
        audit_termination(columns, experiment, probe, RECORDS[:11])


@pytest.mark.parametrize("count", [0, 47])
def test_an_incomplete_probe_is_not_adequate(audit: Any, columns: Columns, count: int) -> None:
    found = audit(columns(count=count))
    assert (found.samples, found.complete, found.adequate) == (count, False, False)
    assert len(found.missing) == 48 - count
    if not count:
        assert found.periodic_loop_rate.rate is None
        assert not found.periodic_loop_rate.within


@pytest.mark.parametrize(("count", "adequate"), [(2, True), (3, False)])
def test_unresolved_samples_of_48_against_the_ceiling(
    audit: Any, columns: Columns, unresolved_row: SampleRow, count: int, adequate: bool
) -> None:
    found = audit(columns([unresolved_row] * count))
    assert (found.unresolved_cap_contacts, found.adequate) == (count, adequate)


@pytest.mark.parametrize(("count", "adequate"), [(12, True), (13, False)])
def test_loops_of_48_against_the_ceiling(
    audit: Any, columns: Columns, loop_row: SampleRow, count: int, adequate: bool
) -> None:
    found = audit(columns([loop_row] * count))
    assert (found.periodic_loop_contacts, found.adequate) == (count, adequate)


def test_three_of_sixty_is_not_below_five_percent(
    experiment: Experiment, probe: BundleKey, row: Row, unresolved_row: SampleRow
) -> None:
    five = experiment.model_copy(update={"probe_k": 5})
    rows = []
    for place, (record, index) in enumerate((record, index) for record in RECORDS for index in range(5)):
        if place < 3:
            values = {**vars(unresolved_row), "record_id": record, "sample_index": index}
            rows.append(SampleRow(**values))
        else:
            rows.append(row([place], record, index, natural_close=True, thinking_tokens=0))
    found = audit_termination(columns_of(rows), five, probe, RECORDS)
    assert (found.unresolved_cap_contacts, found.samples, found.adequate) == (3, 60, False)


def test_equal_id_lists_are_flagged_by_hash(
    audit: Any, columns: Columns, unresolved_row: SampleRow, row: Row, fill: Fill
) -> None:
    nearly = fill([])
    nearly[20_000] += 1
    found = audit(columns([unresolved_row, row(nearly), unresolved_row, unresolved_row]))
    (group,) = found.equal_samples
    assert group.samples == ("r-00#0", "r-00#2", "r-00#3")
    assert (group.tokens, len(group.token_ids_sha256)) == (BUDGET, 64)
    assert any("equal ids" in text for text in found.warnings)
    assert audit(columns()).equal_samples == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"thinking_tokens": 4}, "sample r-01#1 .* more thinking than"),
        ({"thinking_tokens": -1}, "more thinking than"),
        (
            {"natural_close": True, "forced_close": True, "stage2_finish_reason": "stop"},
            "both a forced and a natural close",
        ),
        ({"natural_close": True, "eos_inside_thinking": True}, "EOS inside closed"),
        ({"answer_restart": True}, "restart without"),
        ({"stage2_finish_reason": None}, "stage 2 must run exactly"),
        ({"forced_close": False}, "never ended"),
        ({"sample_index": 4}, "outside 0..3"),
    ],
)
def test_rows_that_no_generation_can_produce_are_refused(
    audit: Any, row: Row, changes: Any, words: str
) -> None:
    rows = [row([1], record_id=record, index=index) for record in RECORDS for index in range(4)]
    rows[5] = SampleRow(**{**vars(row([1, 2, 3], "r-01", 1)), **changes})
    if changes.get("natural_close"):
        rows[5] = row([1, 2, 3], "r-01", 1, **changes)
    with pytest.raises(BundleError, match=words):
        audit(columns_of(rows))


def test_more_ids_than_the_budget(audit: Any, columns: Columns, row: Row, fill: Fill) -> None:
    with pytest.raises(BundleError, match="more stage-1 ids than the thinking budget"):
        audit(columns([row(fill([], BUDGET + 1), thinking_tokens=10)]))


def test_columns_of_different_lengths_are_refused(audit: Any, columns: Columns) -> None:
    good = columns()
    for name, value in (
        ("sample_indices", good.sample_indices[:47]),
        ("stage1_token_ids", good.stage1_token_ids[:47]),
        ("stage2_finish_reasons", ()),
    ):
        with pytest.raises(BundleError, match=f"column {name}"):
            audit(TerminationColumns(**{**vars(good), name: value}))


def test_an_audit_of_another_experiment_is_refused(
    experiment: Experiment, columns: Columns, probe: BundleKey
) -> None:
    other = probe.model_copy(update={"experiment_id": "another_one"})
    with pytest.raises(BundleError, match="audit of another_one"):
        audit_termination(columns(), experiment, other, RECORDS)

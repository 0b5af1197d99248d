"""The registered history comes out of today's gates, audit and ladder, number for number.

Published figures are read from `../shared/reference`; token streams are made here, seeded: the published
periods where a loop was counted, random ids elsewhere.
"""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.sample_rows import columns_of, cut_row

from fitladder.audit.termination import audit_termination
from fitladder.canonical import canonical_bytes, read_json
from fitladder.cli.gate import gate
from fitladder.errors import LadderRefused
from fitladder.gates.cuda_graphs import check_cuda_graphs
from fitladder.gates.kv_fit import check_kv_fit
from fitladder.ladder.authorise import next_phase
from fitladder.ladder.outcome import interrupted, outcome_of
from fitladder.ladder.select import finalise, select
from fitladder.records.audit import TerminationAudit
from fitladder.records.bundle_key import BundleKey
from fitladder.records.engine_facts import EngineFacts
from fitladder.records.experiment import Experiment
from fitladder.records.outcome import PhaseOutcome
from fitladder.registry.load import load_registry

REPOSITORY = Path(__file__).parents[2]
REFERENCE = REPOSITORY.parent / "shared" / "reference"
pytestmark = pytest.mark.skipif(
    not REFERENCE.is_dir(), reason="the published reference data is not beside the repository"
)

FIT = "qwen35_4b_verified_macro_capacity_fit_rerun"
EXACT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"
AUDITS = [
    (FIT, 49_152, "capacity_fit/scientific_smoke_49k_termination_audit.json"),
    (EXACT, 49_152, "exact_cudagraph/scientific_smoke_49k_termination_audit.json"),
    (EXACT, 61_440, "exact_cudagraph/scientific_smoke_61k_termination_audit.json"),
]
COUNTS = (
    "adequate",
    "samples",
    "stage1_length_finishes",
    "forced_interventions",
    "reasoning_boundary_contacts",
    "answer_restarts_after_natural_close",
    "unresolved_cap_contacts",
    "periodic_loop_contacts",
    "answer_limit_contacts",
)
RATES = {
    "unresolved_cap_contact_rate": "below",
    "periodic_loop_rate": "at_most",
    "answer_limit_contact_rate": "below",
}
CAPACITY = [  # experiment, budget, blocks of the pool, published figures
    (FIT, 49_152, 1_949, (997_888, 963_072, 34_816)),
    (FIT, 61_440, 1_949, (997_888, 950_400, 47_488)),
    (EXACT, 49_152, 1_947, (996_864, 963_072, 33_792)),
    (EXACT, 61_440, 1_949, (997_888, 950_400, 47_488)),
]


def _experiment(name: str) -> Experiment:
    return load_registry(REPOSITORY / "params.yaml").experiment(name)


def _published(path: str) -> Any:
    return read_json(REFERENCE / path)


def _prompts(arm: str) -> list[tuple[str, int]]:
    rows = _published("inputs/prompt_manifest.json")["arms"][arm]
    return [(row["id"], row["prompt_tokens"]) for row in rows]


def _facts(experiment: Experiment, budget: int, blocks: int, resolved: tuple[int, ...]) -> EngineFacts:
    rung, exact = experiment.rung(budget), experiment.engine.capture == "exact"
    return EngineFacts(
        engine="vllm",
        engine_version="unrecorded",
        device="cuda",
        device_name="unrecorded",
        max_model_len_tokens=65_536,
        max_num_seqs=rung.max_num_seqs,
        max_num_batched_tokens=32_768,
        block_size_tokens=528,
        num_blocks=blocks,
        null_blocks=1,
        mamba_groups=3,
        kv_cache_size_tokens=int(blocks / 128 * 65_536),
        max_concurrency=repr(blocks / 128),
        capture_requested=rung.capture_sizes if exact else None,
        capture_max_requested=rung.max_num_seqs,
        capture_resolved=resolved,
        graph_mode="FULL_AND_PIECEWISE",
        decode_graph_mode="FULL",
        has_full_graphs=True,
        enforce_eager=False,
        enable_prefix_caching=False,
        async_scheduling=False,
        engine_seed=0,
        dtype="bfloat16",
        requested_args={},
        resolved_args={},
        load_s=100.3,
    )


@pytest.mark.parametrize(("name", "budget", "blocks", "figures"), CAPACITY)
def test_capacity_tables(name: str, budget: int, blocks: int, figures: tuple[int, int, int]) -> None:
    experiment = _experiment(name)
    longest = max(tokens for _, tokens in _prompts("base"))
    record = check_kv_fit(
        experiment, experiment.rung(budget), "probe", _facts(experiment, budget, blocks, (1,)), longest
    )
    have = record.numbers
    assert (have["kv_cache_size_tokens"], have["required_tokens"], have["margin_tokens"]) == figures
    assert have["kv_rule"] == "token"
    assert have["block_rule_fits"] is True  # the stricter rule would have let them pass too
    assert have["kv_tokens_of_those_blocks"] == have["kv_cache_size_tokens"]


@pytest.mark.parametrize(("name", "budget", "path"), AUDITS)
def test_published_capacity_blocks(name: str, budget: int, path: str) -> None:
    published, experiment = _published(path)["capacity_fit"], _experiment(name)
    longest = max(tokens for _, tokens in _prompts("base"))
    blocks = next(row[2] for row in CAPACITY if row[:2] == (name, budget))
    numbers = check_kv_fit(
        experiment, experiment.rung(budget), "probe", _facts(experiment, budget, blocks, (1,)), longest
    ).numbers
    assert published == {
        "pass": True,
        "max_num_seqs": numbers["active_sequences"],
        "live_kv_cache_tokens": numbers["kv_cache_size_tokens"],
        "block_size_tokens": numbers["block_size_tokens"],
        "rounded_tokens_per_sequence": numbers["rounded_tokens_per_sequence"],
        "required_cache_tokens": numbers["required_tokens"],
        "cache_margin_tokens": numbers["margin_tokens"],
    }


@pytest.mark.parametrize(
    ("budget", "resolved", "gap"), [(49_152, (1, 2, 4, 8, 16), "17-19"), (61_440, (1, 2, 4, 8), "9-15")]
)
def test_implicit_resolution_gaps(budget: int, resolved: tuple[int, ...], gap: str) -> None:
    experiment = _experiment(FIT)
    record = check_cuda_graphs(
        experiment, experiment.rung(budget), _facts(experiment, budget, 1_949, resolved)
    )
    assert record.numbers["uncovered_widths"] == gap


@pytest.mark.parametrize(("name", "budget", "path"), AUDITS[1:])
def test_exact_resolution(name: str, budget: int, path: str) -> None:
    published, experiment = _published(path)["cudagraph_resolution"], _experiment(name)
    facts = _facts(experiment, budget, 1_949, tuple(published["resolved_capture_sizes"]))
    numbers = check_cuda_graphs(experiment, experiment.rung(budget), facts).numbers
    assert list(numbers["requested_sizes"]) == published["requested_capture_sizes"]
    assert list(numbers["registered_sizes"]) == published["requested_capture_sizes"]
    assert numbers["decode_graph_mode"] == published["decode_mode"]
    assert numbers["uncovered_widths"] == "none"


def test_the_gate_command_on_recorded_facts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = _experiment(EXACT)
    place = tmp_path / "inputs" / EXACT / "prompt_manifest.json"
    place.parent.mkdir(parents=True)
    place.write_bytes((REFERENCE / "inputs" / "prompt_manifest.json").read_bytes())
    facts = tmp_path / "facts.json"
    facts.write_bytes(canonical_bytes(_facts(experiment, 61_440, 1_949, (1, 2, 4, 8, 15))))
    params = REPOSITORY / "params.yaml"
    gate(EXACT, rung=61_440, facts=facts, params=params, data=tmp_path, as_json=True)
    gates = {one["name"]: one["numbers"] for one in json.loads(capsys.readouterr().out)["gates"]}
    assert (gates["kv_fit"]["required_tokens"], gates["kv_fit"]["margin_tokens"]) == (950_400, 47_488)
    assert gates["context"]["total_tokens"] == 990 + 61_440 + 2 + 512


def _stream(random: np.random.Generator, budget: int, period: int | None) -> Any:
    """`budget` ids: random throughout, or looping at `period` from somewhere in the first half."""
    ids = random.integers(0, 248_000, budget).astype(np.int32)
    if period is not None:
        onset = int(random.integers(1_000, budget // 2))
        cycle = random.choice(248_000, period, replace=False)
        ids[onset:] = np.resize(cycle, budget - onset)
    return ids


def _audit(name: str, budget: int, published: Any) -> TerminationAudit:
    """Audit 48 made samples that looped, ran on or hit the answer limit as often as was published."""
    termination, experiment = published["termination"], _experiment(name)
    random = np.random.default_rng(budget)
    periods: list[int | None] = [*termination["period_tokens"]]
    periods += [None] * termination["unresolved_cap_contacts"]
    limited = set(random.permutation(48)[: termination["answer_limit_contacts"]].tolist())
    records = [record_id for record_id, _ in _prompts("base")]
    rows = []
    for place, at in enumerate(random.permutation(48)):
        ids = _stream(random, budget, periods[at])
        answer = np.arange(512 if place in limited else 40, dtype=np.int32)
        rows.append(
            cut_row(
                ids,
                records[place // 4],
                place % 4,
                stage2_token_ids=answer,
                stage2_trimmed_tokens=0,
                stage2_finish_reason="length" if place in limited else "stop",
            )
        )
    key = BundleKey(experiment_id=name, thinking_budget_tokens=budget, phase="probe")
    return audit_termination(columns_of(rows), experiment, key, records)


@pytest.mark.parametrize(("name", "budget", "path"), AUDITS)
def test_published_termination_audits(name: str, budget: int, path: str) -> None:
    published = _published(path)
    want, have = published["termination"], _audit(name, budget, published)
    assert {field: getattr(have, field) for field in COUNTS} == {field: want[field] for field in COUNTS}
    assert list(have.period_tokens) == want["period_tokens"]
    for field, must_be in RATES.items():
        rate = getattr(have, field)
        assert float(Fraction(rate.contacts, rate.samples)) == want[field]
        assert Fraction(rate.threshold) == Fraction(str(want["thresholds"][f"{field}_{must_be}"]))
        assert rate.must_be == must_be
    assert published["bundle"]["n_completions"] == have.expected_samples
    assert have.complete


def _replay(name: str, catalog_path: str) -> list[PhaseOutcome]:
    """The history that a published catalog lists, its audits made again."""
    experiment, history = _experiment(name), []
    for entry in _published(catalog_path)["entries"]:
        assert entry["role"] == "termination_probe"
        budget = entry["thinking_budget"]
        key = BundleKey(experiment_id=name, thinking_budget_tokens=budget, phase="probe")
        if entry["status"] == "preflight_only":
            history.append(interrupted(key))
            continue
        path = next(path for one, two, path in AUDITS if (one, two) == (name, budget))
        audit = _audit(name, budget, _published(path))
        receipt = entry["receipt"]["sha256"]
        history.append(outcome_of(experiment, audit, receipt_sha256=receipt, preemptions=0))
    return history


def test_the_first_ladder_stopped_at_61k_preflight_only() -> None:
    experiment = _experiment(FIT)
    history = _replay(FIT, "capacity_fit/scientific_smoke_artifact_catalog.json")
    due = next_phase(experiment, history)
    assert due.reason == "stopped at 61k preflight only"
    assert (due.state, due.key, due.resumable) == ("stopped", None, None)
    with pytest.raises(LadderRefused, match="has no selection: it is stopped"):
        select(experiment, history)


def test_the_second_ladder_ends_in_an_explicit_none() -> None:
    experiment = _experiment(EXACT)
    history = _replay(EXACT, "exact_cudagraph/scientific_smoke_artifact_catalog.json")
    published = _published("exact_cudagraph/smoke_budget_selection.json")
    selection = finalise(experiment, history, history)
    plain = selection.model_dump(mode="json")
    assert (plain["pass"], plain["selected"]) == (False, None)
    assert (published["pass"], published["selected_thinking_budget"]) == (False, None)
    assert [rung.thinking_budget_tokens for rung in selection.rungs] == [
        tier["budget"] for tier in published["tiers"]
    ]
    for rung, tier in zip(selection.rungs, published["tiers"], strict=True):
        assert rung.status == "rejected"
        assert tier["status"] == "probe_only_rejected"
        assert [phase.key.phase for phase in rung.phases] == ["probe"]
        assert rung.phases[0].receipt_sha256 == tier["scientific_probe"]["artifacts"]["receipt"]
    assert next_phase(experiment, history).key is None
    for field in (
        "selection_uses_decoded_or_scored_content",
        "selection_uses_token_identity_for_periodicity",
    ):
        assert plain[field] == published[field]

"""Rehearsals against the scripted engine: every gate by itself, a verdict, and nothing left behind."""

import json
import sys
from pathlib import Path

import pytest

from fitladder.errors import RegistrationError, UsageError
from fitladder.phase.rehearsal import Prompts, rehearse, stand_in_prompts
from fitladder.phase.rehearsal_overrides import Overrides, override
from fitladder.registry.load import load_registry

ROOT = Path(__file__).parents[3]
SCRIPTED = ROOT / "tests/scripted/engine.py"
REGISTRY = load_registry(ROOT / "params.yaml")
SMALL = REGISTRY.experiment("smollm2_135m_cpu_rehearsal")
EXACT = REGISTRY.experiment("qwen35_4b_verified_macro_exact_cudagraph_rerun")


def run(tmp_path, experiment, *, overrides=None, prompts=None, load_format="dummy", **script):
    version = experiment.engine.vllm_version
    script["facts"] = script.get("facts", {}) | ({"engine_version": version} if version else {})
    path = tmp_path / "script.json"
    path.write_text(json.dumps(script))
    return rehearse(
        experiment,
        experiment.rungs[0],
        "probe",
        prompts=prompts or stand_in_prompts(experiment),
        model="weightless",
        command=[sys.executable, str(SCRIPTED), str(path)],
        overrides=overrides or Overrides(),
        load_format=load_format,
        sampled_tokens=12,
        build_deadline_s=30,
        log_path=tmp_path / "engine.log",
    )


def findings(report):
    return {one.gate: "passed" if one.passed else one.refusal or "not run" for one in report.gates}


def test_a_rung_that_fits_is_go_able_and_samples_only_a_little(tmp_path):
    stand_in = stand_in_prompts(SMALL)
    prompts = Prompts(stand_in.token_ids, stand_in.rendered, stand_in.rendered)
    report = run(tmp_path, SMALL, prompts=prompts, outcomes=["drift"], answer_tokens=None)
    assert report.go_able
    assert set(findings(report).values()) == {"passed"}
    assert not report.not_rehearsed
    assert report.facts.requested_args["load_format"] == "dummy"
    assert report.generation.counters["sampled_tokens"] == 12 * (12 + 12)  # six records, K of two


def test_stand_in_prompts_leave_one_gate_unrehearsed_and_said(tmp_path):
    report = run(tmp_path, SMALL)
    assert report.go_able
    assert report.not_rehearsed == ("prompt_identity",)


def test_stand_ins_as_long_as_the_arms_longest_show_the_registered_margin(tmp_path):
    """The probe's longest prompt has 990 tokens, the experiment's 1,060."""
    pool = {"num_blocks": 1949, "kv_cache_size_tokens": 997_888, "block_size_tokens": 528, "mamba_groups": 3}
    pool["max_concurrency"] = repr(1949 / 128)
    for length, required, margin in ((990, 963_072, 34_816), (None, 973_104, 24_784)):
        report = run(tmp_path, EXACT, prompts=stand_in_prompts(EXACT, length), facts=pool)
        fit = next(one for one in report.gates if one.gate == "kv_fit")
        assert (fit.numbers["required_tokens"], fit.numbers["margin_tokens"]) == (required, margin)


@pytest.mark.parametrize("length", [0, 1_061])
def test_stand_ins_that_no_registered_prompt_can_be_are_refused(length):
    with pytest.raises(UsageError, match=r"1 to the registered 1,?060"):
        stand_in_prompts(EXACT, length)


def test_memory_for_engines_side_by_side_changes_no_pool(tmp_path):
    beside = Overrides(num_gpu_blocks=1949, gpu_memory_utilization=0.3, kv_cache_memory_bytes=3 << 30)
    report = run(tmp_path, EXACT, overrides=beside)
    asked = report.facts.requested_args
    assert asked["num_gpu_blocks_override"] == 1949
    assert (asked["gpu_memory_utilization"], asked["kv_cache_memory_bytes"]) == (0.3, 3 << 30)


def test_refusals_are_collected_and_nothing_is_sampled(tmp_path):
    facts = {
        "num_blocks": 30,
        "kv_cache_size_tokens": 3840,
        "max_concurrency": repr(30 / 9),
        "engine_seed": 1,
    }
    report = run(tmp_path, SMALL, facts=facts)
    assert not report.go_able
    assert report.generation is None
    assert "engine_seed" in findings(report)["live_settings"]
    assert "too small" in findings(report)["kv_fit"]
    assert len(report.reasons) == 2


def test_an_engine_that_dies_is_a_finding(tmp_path):
    report = run(tmp_path, SMALL, crash="facts")
    assert not report.go_able
    assert report.facts is None
    assert "SIGKILL" in report.reasons[0]


def test_another_width_gets_the_list_that_covers_it_and_is_refused_by_its_fit(tmp_path):
    wide = Overrides(max_num_seqs=64, num_gpu_blocks=1949)
    report = run(tmp_path, EXACT, overrides=wide)
    assert report.facts.capture_resolved == (1, 2, 4, 8, 16, 32, 64)
    assert findings(report)["cuda_graphs"] == "passed"
    assert "too small" in findings(report)["kv_fit"]
    assert report.overrides == wide


def test_implicit_capture_names_the_uncovered_widths(tmp_path):
    report = run(tmp_path, EXACT, overrides=Overrides(capture="implicit"))
    graphs = next(one for one in report.gates if one.gate == "cuda_graphs")
    assert graphs.numbers["resolved_sizes"] == (1, 2, 4, 8, 16)
    assert graphs.numbers["uncovered_widths"] == "17-19"


def test_overrides_are_validated_like_a_registration():
    with pytest.raises(RegistrationError, match="field of its own"):
        override(EXACT, EXACT.rungs[0], Overrides(args={"dtype": "float16"}))
    changed, rung = override(EXACT, EXACT.rungs[1], Overrides(args={"gdn_prefill_backend": "triton"}))
    assert (rung.max_num_seqs, rung.capture_sizes) == (15, (1, 2, 4, 8, 15))
    assert changed.engine.args == {"gdn_prefill_backend": "triton"}
    assert EXACT.engine.args == {}

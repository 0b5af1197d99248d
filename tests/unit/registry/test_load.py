"""Every cross-field rule of a registered experiment refuses with a message that names the field."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from fitladder.errors import RegistrationError
from fitladder.registry.load import parse_registry

CAPACITY, EXACT = (f"qwen35_4b_verified_macro_{name}_rerun" for name in ("capacity_fit", "exact_cudagraph"))


def test_the_history_is_registered(params_text: str) -> None:
    registry = parse_registry(params_text)
    fit, exact = registry.experiment(CAPACITY), registry.experiment(EXACT)
    assert [(rung.thinking_budget_tokens, rung.max_num_seqs) for rung in exact.rungs] == [
        (49152, 19),
        (61440, 15),
    ]
    assert [rung.capture_sizes for rung in exact.rungs] == [(1, 2, 4, 8, 16, 19), (1, 2, 4, 8, 15)]
    assert (fit.state, exact.state, fit.engine.capture, exact.engine.capture) == (
        "stopped",
        "terminal",
        "implicit",
        "exact",
    )
    assert exact.artifacts.forbidden_roots[0] == fit.artifacts.root
    assert (exact.k("probe"), exact.k("designed"), exact.records_per_arm) == (4, 12, 12)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("rungs.0.capture_sizes", [1, 2, 4, 8, 16], r"capture_sizes.*17-19"),
        ("rungs.0.capture_sizes", [19, 16, 16, 8, 4, 2, 1], r"capture_sizes.*strictly increasing"),
        ("rungs.0.capture_sizes", None, r"capture_sizes.*exact"),
        ("rungs.1.thinking_budget_tokens", 49152, r"rungs.*strictly increase"),
        ("rungs.1.thinking_budget_tokens", 65000, r"65\d+.*max_model_len_tokens"),
        ("rungs.0.thinking_budget_tokens", 8191, r"shorter than the 8192-token loop tail"),
        ("thresholds.loop_rate_at_most", 1.0, r"loop_rate_at_most"),
        ("thresholds.unresolved_rate_below", 0, r"unresolved_rate_below"),
        ("matrix_k", 4, r"probe_k"),
        ("records_per_arm", 0, r"records_per_arm"),
        ("sampling.answer_max_tokens", 0, r"answer_max_tokens"),
        ("sampling.run_seed", None, r"run_seed"),
        ("sampling.temperature", float("nan"), r"finite|NaN|nan"),
        ("engine.enable_prefix_caching", True, r"enable_prefix_caching"),
        ("engine.enforce_eager", True, r"engine.*capture"),
        ("engine.args", {"max_num_seqs": 64}, r"engine.*max_num_seqs"),
        ("model.revision", "main", r"model\.revision"),
        ("model.folder_sha256", "0" * 64, r"model.*exactly one"),
        ("thinking.close_token_ids", [271], r"close_token_ids"),
        ("thinking.close_token_ids", [248069, 248044], r"close_token_ids"),
        ("data", {"tasks": "0" * 64}, r"prompt_manifest"),
        ("surprise", 1, r"surprise"),
        ("artifacts.root", "runs/here", r"artifacts.*absolute"),
        ("artifacts.root", "/workspace/../etc", r"artifacts.*absolute"),
        ("artifacts.forbidden_roots", [], r"forbidden_roots lacks the predecessor's root"),
        (
            "artifacts.environment_override",
            "QWEN35_MACRO_CAPACITY_FIT_ARTIFACT_ROOT",
            r"environment_override",
        ),
    ],
)
def test_a_bad_value_names_its_field(edited: Callable[..., str], path: str, value: Any, message: str) -> None:
    with pytest.raises(RegistrationError) as refusal:
        parse_registry(edited(path, value))
    assert re.search(message, str(refusal.value)), str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("nested", ["/scientific", "", "/deeper/still"])
def test_overlapping_roots_are_refused_in_either_direction(edited: Callable[..., str], nested: str) -> None:
    fit = f"/workspace/large_artifacts/{CAPACITY}/scientific_smoke_v1"
    root = fit + nested if nested != "/scientific" else fit.rsplit("/", 1)[0]
    with pytest.raises(RegistrationError, match="overlaps"):
        parse_registry(edited("artifacts.root", root))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("experiments:\n  a: 1\n  a: 2\n", "line 3 is no YAML: got the key 'a' stands twice"),
        ("experiments: [\n", "is no YAML"),
        ("- 1\n", "no mapping"),
        ("reviewers: []\n<<<<<<< HEAD\n", "line 2: merge conflict"),
        ("experiments: {}\nreviewers: []\n", "gpu_owners"),
        ("experiments:\n  1: {}\n", "the key 1 is no text"),
    ],
)
def test_a_broken_file_is_one_line(text: str, message: str) -> None:
    with pytest.raises(RegistrationError, match=message):
        parse_registry(text)


def test_an_unknown_experiment_lists_those_that_are_registered(params_text: str) -> None:
    with pytest.raises(RegistrationError, match=EXACT):
        parse_registry(params_text).experiment("qwen")

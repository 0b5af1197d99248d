"""What a registration's own numbers show to be impossible is refused, and what stands registered passes."""

from collections.abc import Callable
from typing import Any

import pytest

from fitladder.errors import RegistrationError
from fitladder.registry.feasibility import check_feasible
from fitladder.registry.load import parse_registry

CAPACITY, EXACT, LONG = (
    f"qwen35_4b_verified_macro_{name}_rerun" for name in ("capacity_fit", "exact_cudagraph", "long_context")
)
REHEARSAL = "smollm2_135m_cpu_rehearsal"
RECORDED = {LONG}


def root_of(name: str) -> str:
    return f"/workspace/large_artifacts/{name}/scientific_smoke_v1"


def test_everything_that_is_registered_is_sound(params_text: str) -> None:
    registry = parse_registry(params_text)
    for experiment in registry.experiments.values():
        check_feasible(registry, experiment, RECORDED, 528)


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        (EXACT, {"predecessor": "nope"}, "predecessor: got nope"),
        (
            CAPACITY,
            {"predecessor": EXACT, "artifacts.forbidden_roots": [root_of(EXACT)]},
            "which follows it, need no circle",
        ),
        (
            EXACT,
            {
                "artifacts.root": root_of(LONG) + "/mine",
                "artifacts.forbidden_roots": [root_of(CAPACITY)],
            },
            f"which {CAPACITY} has or may not touch",
        ),
        (EXACT, {"engine.num_gpu_blocks_override": 10}, "engine.num_gpu_blocks_override: 10 blocks of 528"),
        (EXACT, {"engine.num_gpu_blocks_override": 1}, "more than the null block"),
        (REHEARSAL, {"engine.num_gpu_blocks_override": 6}, "engine.num_gpu_blocks_override: 6 blocks of 128"),
        (REHEARSAL, {"engine.num_gpu_blocks_override": 10}, "rungs[384].max_num_seqs: 10 blocks"),
        (REHEARSAL, {"engine.num_gpu_blocks_override": 108}, "rungs[576].max_num_seqs: 108 blocks"),
        (REHEARSAL, {"rungs.1.max_num_seqs": 24}, "got 24 sequences of 1035 tokens at once, need at most 12"),
    ],
)
def test_what_can_never_run_is_one_line_that_names_its_field(
    edited: Callable[..., str], name: str, changes: dict[str, Any], said: str
) -> None:
    text: str | None = None
    for path, value in changes.items():
        text = edited(path, value, name, text)
    registry = parse_registry(text or "")
    with pytest.raises(RegistrationError) as refusal:
        check_feasible(registry, registry.experiment(name), RECORDED, 528)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_spaced_admission_and_a_pool_that_nobody_knows_are_left_to_the_gates(
    edited: Callable[..., str],
) -> None:
    text = edited("rungs.1.max_num_seqs", 24, REHEARSAL)
    registry = parse_registry(edited("engine.admission", "spaced", REHEARSAL, text))
    check_feasible(registry, registry.experiment(REHEARSAL), RECORDED)
    registry = parse_registry(edited("engine.num_gpu_blocks_override", 10, EXACT))
    check_feasible(registry, registry.experiment(EXACT), RECORDED)

"""The registered engine passes; each setting in which a live one differs is refused by name."""

from collections.abc import Callable
from typing import Any

import pytest

from fitladder.errors import GateRefused
from fitladder.gates.live_settings import check_live_settings
from fitladder.records.engine_facts import EngineFacts
from fitladder.records.experiment import Experiment

Facts = Callable[..., EngineFacts]
Changed = Callable[..., Experiment]


@pytest.mark.parametrize(
    ("field", "live"),
    [
        ("max_model_len_tokens", 32_768),
        ("max_num_seqs", 64),
        ("max_num_batched_tokens", 8_192),
        ("engine_seed", 1),
        ("dtype", "float16"),
        ("enable_prefix_caching", True),
        ("async_scheduling", True),
        ("enforce_eager", True),
        ("device", "cpu"),
    ],
)
def test_a_live_setting_that_differs_is_refused(
    exact: Experiment, facts: Facts, field: str, live: Any
) -> None:
    with pytest.raises(GateRefused, match=rf"{field} is not the registered one: got {live}, need"):
        check_live_settings(exact, exact.rungs[0], facts(**{field: live}))


def test_a_registered_version_and_pool_are_compared(
    exact: Experiment, changed: Changed, facts: Facts
) -> None:
    pinned = changed(exact, engine__vllm_version="0.24.0", engine__num_gpu_blocks_override=1_947)
    assert check_live_settings(pinned, pinned.rungs[0], facts()).numbers["engine_version"] == "0.24.0"
    with pytest.raises(GateRefused, match="engine_version"):
        check_live_settings(pinned, pinned.rungs[0], facts(engine_version="0.25.0"))
    with pytest.raises(GateRefused, match="num_blocks"):
        check_live_settings(pinned, pinned.rungs[0], facts(num_blocks=1_949))

"""What differs between releases of vLLM in how a KV cache is laid out and counted.

Each release was held against its own sources: 0.24 is the GPU lock's, 0.32 the CPU build's. Another one is
refused, because a rule that was not held against its code is a guess.
"""

import re
from dataclasses import dataclass

from fitladder.errors import InputRefused

__all__ = ["CPU_LOCK", "GPU_LOCK", "RELEASES", "VllmRules", "find_rules"]

GPU_LOCK = "0.24.0"  # locks/engine-gpu.txt
CPU_LOCK = "0.32.0"  # locks/engine-cpu.txt


@dataclass(frozen=True)
class VllmRules:
    """Rules of one release.

    steps_in_flight: steps of `max_num_batched_tokens` whose tokens a sliding window or chunk still holds.
    hybrids_cache_prefixes: whether prefix caching is on for models with states where nothing is asked.
    keeps_every_state: under prefix caching, models whose class can keep a state a block do ("all").
    mamba2_checkpoint_blocks: blocks more that a Mamba2 group holds in "align" mode.
    pads_unequal_pages: attention pages that do not divide the largest are padded to it.
    checks_weight_blocks: a rank's part of the experts must be whole blocks of block-quantized weights.
    cohere2_window_more_tokens: what its class adds to the config's window.
    scales_yarn: a YaRN model's longest context is its original one times the factor.
    """

    release: str
    steps_in_flight: int
    hybrids_cache_prefixes: bool
    keeps_every_state: bool
    mamba2_checkpoint_blocks: int
    pads_unequal_pages: bool
    checks_weight_blocks: bool
    cohere2_window_more_tokens: int
    scales_yarn: bool


RELEASES = {
    rules.release: rules
    for rules in (
        VllmRules(
            release="0.24",
            steps_in_flight=1,
            hybrids_cache_prefixes=False,
            keeps_every_state=True,
            mamba2_checkpoint_blocks=0,
            pads_unequal_pages=False,
            checks_weight_blocks=True,
            cohere2_window_more_tokens=0,
            scales_yarn=True,
        ),
        VllmRules(
            release="0.32",
            steps_in_flight=2,
            hybrids_cache_prefixes=True,
            keeps_every_state=False,
            mamba2_checkpoint_blocks=1,
            pads_unequal_pages=True,
            checks_weight_blocks=False,
            cohere2_window_more_tokens=1,
            scales_yarn=False,
        ),
    )
}


def find_rules(version: str) -> VllmRules:
    """Rules of a release such as 0.24.0. Raises InputRefused on one that was never compared."""
    found = re.fullmatch(r"(\d+\.\d+)(?:\.\S*)?", version)
    if found is None or found[1] not in RELEASES:
        raise InputRefused(
            "vLLM version",
            got=version,
            need=f"one whose rules were held against its code: {', '.join(RELEASES)}",
            do="plan with --exact in an environment that has it",
        )
    return RELEASES[found[1]]

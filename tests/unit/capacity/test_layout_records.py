"""A layout that another process states is read strictly and recounted."""

import copy
from typing import Any

import pytest

from fitladder.capacity.layout_records import parse_layout
from fitladder.errors import EngineFailed

GROUP = {
    "kind": "full",
    "layers": 4,
    "block_tokens": 16,
    "page_bytes": 100,
    "bytes_per_block": 400,
    "reach_tokens": 0,
    "state_blocks": 0,
}
STATED: dict[str, Any] = {
    "vllm": "0.32.0",
    "max_model_len_tokens": 4_096,
    "in_flight_tokens": 8_192,
    "groups": [GROUP, GROUP | {"kind": "state", "state_blocks": 2}],
    "block_bytes": 400,
    "blocks": {"33": [3, 2]},
    "parameter_bytes": 1_000,
}


def test_what_is_stated_is_a_layout() -> None:
    found = parse_layout(STATED)
    assert (found.vllm, found.max_model_len_tokens, found.parameter_bytes) == ("0.32.0", 4_096, 1_000)
    assert (found.layout.blocks_for(33), found.layout.block_bytes) == (5, 400)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"groups": []}, "groups"),
        ({"groups": [GROUP | {"kind": "spiral"}]}, "kind"),
        ({"groups": [GROUP | {"layers": True}]}, "layers"),
        ({"groups": [GROUP | {"page_bytes": None}]}, "page_bytes"),
        ({"block_bytes": 401}, "block_bytes"),
        ({"blocks": {"33": [3, 3]}}, "blocks of 33 tokens"),
        ({"blocks": None}, "blocks"),
        ({"vllm": None}, "vllm"),
        ({"in_flight_tokens": -1}, "in_flight_tokens"),
        ({"parameter_bytes": "many"}, "parameter_bytes"),
    ],
)
def test_an_odd_or_miscounted_layout_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(EngineFailed, match=f"vLLM's layout: {words}"):
        parse_layout(copy.deepcopy(STATED) | change)

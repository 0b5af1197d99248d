"""Each branch of the grouping rule by hand: one table, equal pages, padded pages, group sizes."""

import pytest

from fitladder.capacity.kv_groups import group_layers
from fitladder.capacity.kv_specs import CacheLayout, CacheSpec
from fitladder.capacity.vllm_rules import RELEASES
from fitladder.errors import InputRefused

OLD, NEW = RELEASES["0.24"], RELEASES["0.32"]
FULL = CacheSpec("full", 16, 1_000)
WINDOW = CacheSpec("sliding", 16, 1_000, reach_tokens=128)
STATE = CacheSpec("state", 16, 1_000, state_blocks=1)


def members(layers: dict[CacheSpec, int]) -> list[tuple[str, int]]:
    return [(group.spec.kind, group.layers) for group in group_layers(layers, OLD)]


def test_layers_that_hold_the_same_tokens_share_one_table_whatever_their_pages() -> None:
    latent, index = CacheSpec("latent", 64, 73_728), CacheSpec("sparse_index", 64, 8_448)
    (group,) = group_layers({latent: 61, index: 61}, OLD)
    assert (group.layers, group.bytes_per_block) == (122, 61 * (73_728 + 8_448))
    assert len(group_layers({WINDOW: 4, CacheSpec("sliding", 16, 500, reach_tokens=128): 2}, OLD)) == 1
    assert len(group_layers({WINDOW: 4, CacheSpec("sliding", 16, 1_000, reach_tokens=64): 4}, OLD)) == 2
    assert len(group_layers({FULL: 4, CacheSpec("full", 32, 1_000): 4}, OLD)) == 2


def test_the_fewest_layers_of_a_kind_make_a_group() -> None:
    assert members({WINDOW: 29, FULL: 5}) == [("sliding", 5)] * 5 + [("sliding", 4), ("full", 5)]
    assert members({STATE: 24, FULL: 8}) == [("state", 8)] * 3 + [("full", 8)]


def test_nearly_equal_numbers_are_not_cut() -> None:
    assert members({WINDOW: 12, FULL: 13}) == [("sliding", 12), ("full", 13)]
    assert members({WINDOW: 3, FULL: 2}) == [("sliding", 2), ("sliding", 1), ("full", 2)]  # exactly 1.5 times
    assert members({STATE: 10, FULL: 6}) == [("state", 5), ("state", 5), ("full", 6)]


def test_a_smaller_attention_page_takes_more_tokens_where_that_divides() -> None:
    small = CacheSpec("sliding", 16, 500, reach_tokens=128)
    groups = group_layers({small: 4, FULL: 4}, OLD)
    assert [(group.spec.block_tokens, group.bytes_per_block) for group in groups] == [
        (32, 4_000),
        (16, 4_000),
    ]


def test_a_page_that_does_not_divide_is_padded_or_refused_by_release() -> None:
    odd = CacheSpec("sliding", 16, 600, reach_tokens=128)
    padded = group_layers({odd: 4, FULL: 4}, NEW)[0]
    assert (padded.spec.block_tokens, padded.bytes_per_block) == (16, 4_000)
    with pytest.raises(InputRefused, match=r"pages of sliding layers: got 600 bytes, need a divisor .* 1000"):
        group_layers({odd: 4, FULL: 4}, OLD)
    state = CacheSpec("state", 16, 600, state_blocks=1)
    assert group_layers({state: 4, FULL: 4}, NEW)[0].spec.page_bytes == 1_000
    with pytest.raises(InputRefused, match="pages of state layers"):
        group_layers({CacheSpec("state", 16, 500, state_blocks=1): 4, FULL: 4}, OLD)
    latent = CacheSpec("latent", 16, 600)
    with pytest.raises(InputRefused, match="pages of latent layers"):
        group_layers({latent: 4, WINDOW: 4}, NEW)


def test_blocks_of_each_kind_by_hand() -> None:
    assert FULL.blocks(33, 8_192) == 3
    assert WINDOW.blocks(33, 8_192) == 3 + 1  # the window may begin inside a block
    assert WINDOW.blocks(100_000, 1_000) == -(-(127 + 1_000) // 16) + 1
    chunk = CacheSpec("chunked", 16, 1_000, reach_tokens=128)
    assert chunk.blocks(100_000, 1_000) == -(-1_128 // 16)
    assert chunk.blocks(33, 1_000) == 3
    assert STATE.blocks(100_000, 1_000) == 1
    assert CacheSpec("state", 16, 1_000).blocks(33, 1_000) == 3


def test_a_layout_adds_its_groups() -> None:
    layout = CacheLayout(group_layers({WINDOW: 8, FULL: 4, STATE: 4}, OLD), in_flight_tokens=1_000)
    assert layout.blocks_for(1_600) == 72 + 72 + 100 + 1
    assert (layout.block_size_tokens, layout.block_bytes, layout.state_blocks) == (16, 4_000, 1)
    assert not layout.grows_by_whole_sequence
    assert CacheLayout(group_layers({FULL: 4, STATE: 12}, OLD), 0).grows_by_whole_sequence
    assert not CacheLayout(
        group_layers({FULL: 4, CacheSpec("state", 16, 1_000): 12}, OLD), 0
    ).grows_by_whole_sequence
    assert CacheLayout(group_layers({STATE: 4}, OLD), 0).block_size_tokens == 16

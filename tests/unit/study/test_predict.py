"""What a cell's live engine says of its pool and its graphs, before any simulation."""

from typing import Any

import pytest
from support import bundles as make

from fitladder.errors import GateRefused
from fitladder.study.predict import graphs_of, live_pool


def test_a_pool_is_what_is_left_beside_the_null_block() -> None:
    pool = live_pool(make.facts(12, num_blocks=14, null_blocks=1, block_size_tokens=128, mamba_groups=3))
    assert (pool.usable_blocks, pool.block_size_tokens, pool.mamba_groups) == (13, 128, 3)


def test_an_engine_that_names_no_block_size_has_no_pool() -> None:
    with pytest.raises(GateRefused, match="got no block size"):
        live_pool(make.facts(12, block_size_tokens=None))


@pytest.mark.parametrize(
    ("sizes", "eager", "found"),
    [
        ((1, 2, 4), False, "covered"),
        ((1, 2), False, "partly"),
        ((1, 2, 4), True, "eager"),
        ((), False, "eager"),
        (None, False, "eager"),
    ],
)
def test_graphs_cover_all_widths_some_or_none(sizes: Any, eager: bool, found: str) -> None:
    assert graphs_of(make.facts(4, capture_resolved=sizes, enforce_eager=eager)) == found

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.compress import compress

from fitladder.domains.macros.library import expand
from fitladder.domains.macros.mining import make_library
from fitladder.domains.macros.primitives import NAMES
from fitladder.domains.macros.program import execute, format_calls, parse_calls
from fitladder.domains.macros.seeded_stream import SeededStream

programs = st.lists(st.sampled_from(NAMES), max_size=8).map(tuple)
rows = st.lists(st.lists(st.integers(0, 16), min_size=5, max_size=5), min_size=1, max_size=6)
chunks = st.lists(
    st.lists(st.sampled_from(NAMES), min_size=2, max_size=3).map(tuple), max_size=8, unique=True
)


def by_hand(program, values):
    """The same primitives in plain integers."""
    for name in program:
        values = {
            "ADD1": lambda v: [(x + 1) % 17 for x in v],
            "MUL2": lambda v: [2 * x % 17 for x in v],
            "NEG": lambda v: [-x % 17 for x in v],
            "REV": lambda v: v[::-1],
            "ROTL": lambda v: v[1:] + v[:1],
            "SWAP": lambda v: [v[1], v[0], *v[2:]],
            "SORT": sorted,
            "PREFIX": lambda v: [sum(v[: at + 1]) % 17 for at in range(5)],
            "DIFF": lambda v: [v[0], *((v[at] - v[at - 1]) % 17 for at in range(1, 5))],
            "ZIGZAG": lambda v: v[::2] + v[1::2],
        }[name](values)
    return values


@given(programs, rows)
def test_vectorised_execution_is_exact(program, values):
    out = execute(program, np.array(values, dtype=np.int8))
    assert out.tolist() == [by_hand(program, row) for row in values]


@given(programs.filter(bool))
def test_text_form_round_trips(program):
    assert parse_calls(format_calls(program)) == program


@given(programs, chunks)
def test_compression_is_exact_and_never_longer(program, macros):
    library = make_library("any", [(chunk, 0) for chunk in macros], ["x"] * len(macros), "drawn")
    surface = compress(program, library)
    assert expand(surface, library) == program
    assert len(surface) <= len(program)


@given(st.integers(), st.integers(1, 2**64))
def test_draws_stay_below(seed, limit):
    assert 0 <= SeededStream(seed, "p").below(limit) < limit

from itertools import product

import numpy as np
import pytest

from fitladder.domains.macros.depth import PROBE_COUNT, DepthIndex, fixed_probes, program_signature
from fitladder.domains.macros.primitives import NAMES
from fitladder.domains.macros.program import execute


@pytest.fixture(scope="module")
def index():
    return DepthIndex.build()


def test_probes_are_pinned():
    # A changed probe set would silently rename every signature.
    assert fixed_probes().shape == (PROBE_COUNT, 5)
    assert program_signature(()) == PINNED_IDENTITY
    assert program_signature(("NEG", "NEG")) == PINNED_IDENTITY
    assert program_signature(("NEG",)) != PINNED_IDENTITY
    with pytest.raises(ValueError, match="read-only"):
        fixed_probes()[0, 0] = 1


PINNED_IDENTITY = "57bf832227c0c866a19d9d06a8b61c728739d4422f71991b46220082958f908c"


@pytest.mark.parametrize(
    ("program", "depth"),
    [
        ((), 0),
        (("NEG", "NEG"), 0),
        (("REV", "REV", "ADD1"), 1),
        (("ROTL",) * 5, 0),
        (("ROTL",) * 4, 3),  # REV | ROTL | REV
        (("PREFIX", "DIFF"), 0),
        (("SORT", "SORT"), 1),
        (("ADD1", "NEG"), 2),
    ],
)
def test_known_depths(index, program, depth):
    assert index.min_depth(program) == depth


def test_index_agrees_with_brute_force_to_depth_two():
    shallow = DepthIndex.build(max_depth=2)
    least: dict[str, int] = {}
    for depth in range(3):
        for program in product(NAMES, repeat=depth):
            least.setdefault(program_signature(program), depth)
    assert len(shallow.depth_of) == len(least)
    for depth in range(3):
        for program in product(NAMES, repeat=depth):
            assert shallow.min_depth(program) == least[program_signature(program)]
    assert shallow.min_depth(("ADD1", "REV", "DIFF", "SORT")) is None


def test_equal_signatures_mean_equal_functions():
    # Every class of three calls, against its first member, on inputs that are not probes.
    fresh = np.random.default_rng(5).integers(0, 17, (400, 5)).astype(np.int8)
    first: dict[str, tuple[str, ...]] = {}
    for depth in range(4):
        for program in product(NAMES, repeat=depth):
            shown = first.setdefault(program_signature(program), program)
            assert (execute(program, fresh) == execute(shown, fresh)).all()
    assert len(first) < 10**3

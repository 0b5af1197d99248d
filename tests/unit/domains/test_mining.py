import pytest

from fitladder.domains.macros.depth import DepthIndex
from fitladder.domains.macros.mining import (
    count_support,
    frequent_chunks,
    matched_controls,
    motif_occurrences,
)
from fitladder.domains.macros.seeded_stream import SeededStream
from fitladder.errors import InputRefused


@pytest.fixture(scope="module")
def index():
    return DepthIndex.build(max_depth=3)


def test_support_counts_programs_and_not_places():
    support = count_support([("ADD1", "REV", "ADD1", "REV"), ("ADD1", "REV"), ("REV",)])
    assert support["ADD1", "REV"] == 2
    assert support["REV", "ADD1"] == 1
    assert support["ADD1", "REV", "ADD1"] == 1
    assert sum(support.values()) == 5


def test_occurrences_overlap():
    assert motif_occurrences(("NEG", "NEG", "NEG"), ("NEG", "NEG")) == (0, 1)
    assert motif_occurrences(("NEG",), ("NEG", "NEG")) == ()


def test_degenerate_chunks_are_left_out_and_ties_are_settled(index):
    programs = [
        ("NEG", "NEG", "SORT"),
        ("NEG", "NEG"),
        ("SORT", "ADD1"),
        ("ADD1", "NEG"),
        ("SORT", "ADD1", "MUL2"),
    ]
    ranked = frequent_chunks(count_support(programs), index)
    chunks = [chunk for chunk, _ in ranked]
    assert ranked[0] == (("SORT", "ADD1"), 2)
    assert ("NEG", "NEG") not in chunks  # does nothing
    assert ("NEG", "NEG", "SORT") not in chunks  # SORT alone
    assert chunks[1:4] == [
        ("ADD1", "MUL2"),
        ("ADD1", "NEG"),
        ("NEG", "SORT"),
    ]  # equal support: registered order


def test_controls_match_length_and_never_repeat_what_was_mined():
    ranked = [(("ADD1", name), 9) for name in ("NEG", "REV", "ROTL", "SWAP", "SORT", "DIFF")]
    ranked += [(("ADD1", "NEG", name), 4) for name in ("REV", "SWAP")]
    chosen = [ranked[0][0], ranked[6][0], ranked[1][0]]
    drawn = [chunk for chunk, _ in matched_controls(ranked, chosen, SeededStream(1, "c"))]
    assert [len(chunk) for chunk in drawn] == [2, 3, 2]
    assert not set(drawn) & set(chosen)
    assert len(set(drawn)) == 3
    with pytest.raises(InputRefused, match="length 3"):
        matched_controls(ranked[:7], chosen, SeededStream(1, "c"))

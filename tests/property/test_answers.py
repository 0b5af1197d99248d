from hypothesis import given
from hypothesis import strategies as st

from fitladder.domains.macros.mining import make_library
from fitladder.domains.macros.primitives import NAMES
from fitladder.semantics.parse import Candidate, Limits, Rejection, parse_answer

LIBRARY = make_library(
    "designed_ceiling", [(("ADD1", "REV"), 1), (("NEG", "SORT", "REV"), 1)], ["a", "b"], "x"
)
anything = st.text(st.characters(exclude_categories=()))  # surrogates, controls and unassigned too
pieces = st.lists(
    st.sampled_from(
        [*NAMES, "M0", "M1", "M2", "PROGRAM:", "|", " | ", "\n", "```", "<|im_end|>", " ", "9", "\ud835"]
    ),
    max_size=30,
).map("".join)


@given(anything | pieces)
def test_any_text_is_a_legal_candidate_or_a_reason(text):
    result = parse_answer(text, LIBRARY, Limits())
    if isinstance(result, Candidate):
        assert 1 <= len(result.surface) <= 5
        assert len(result.surface) <= len(result.expansion) <= 5
        assert set(result.expansion) <= set(NAMES)
        assert parse_answer(f"PROGRAM: {' | '.join(result.surface)}", LIBRARY, Limits()) == result
    else:
        assert isinstance(result, Rejection)
        result.detail.encode("ascii")


@given(st.lists(st.sampled_from([*NAMES, "M0", "M1"]), min_size=1, max_size=8))
def test_limits_decide_and_nothing_else(calls):
    result = parse_answer("PROGRAM: " + "|".join(calls), LIBRARY, Limits())
    depth = sum({"M0": 2, "M1": 3}.get(call, 1) for call in calls)
    assert isinstance(result, Candidate) == (len(calls) <= 5 and depth <= 5)

"""Runs of ids in ids, against a search of another make."""

from hypothesis import given
from hypothesis import strategies as st

from fitladder.sampling.marker import find_first, find_run

SMALL = st.lists(st.integers(0, 3), max_size=30)


@given(SMALL, SMALL.filter(lambda run: 0 < len(run) < 5))
def test_run_is_found_where_text_search_finds_it(ids, run):
    text = "".join(map(str, ids)).find("".join(map(str, run)))
    assert find_run(tuple(ids), run) == (None if text < 0 else text)


def test_empty_run_stands_nowhere():
    assert find_run((1, 2), ()) is None


@given(SMALL, st.sets(st.integers(0, 3)))
def test_first_of_several_ids(ids, wanted):
    found = find_first(ids, wanted)
    assert all(token not in wanted for token in ids[:found])
    assert found is None or ids[found] in wanted

"""Coverage of decode widths by capture lists."""

import pytest

from fitladder.capacity import capture_coverage as capture
from fitladder.errors import GateRefused, RegistrationError


@pytest.mark.parametrize(
    ("width", "resolved", "words"),
    [(19, [1, 2, 4, 8, 16], "17-19"), (12, [1, 2, 4, 8], "9-12")],
)
def test_a_capture_list_cut_to_the_grid(width: int, resolved: list[int], words: str) -> None:
    missing = capture.uncovered_widths(resolved, width)
    assert capture.render_widths(missing) == words
    with pytest.raises(GateRefused, match=f"widths {words} without a graph"):
        capture.check_capture_list(resolved, width)


def test_speculation_needs_more_tokens_than_sequences() -> None:
    with pytest.raises(GateRefused, match=r"widths 6-19 without a graph.*ending at 76"):
        capture.check_capture_list([4, 8, 16, 20], 19, tokens_per_sequence=4)


def test_an_unsorted_capture_list_is_refused_unless_normalised() -> None:
    mixed = [19, 16, 16, 8, 4, 2, 1]
    with pytest.raises(GateRefused, match="strictly increasing"):
        capture.check_capture_list(mixed, 19)
    assert capture.uncovered_widths(mixed, 19) == ()
    assert capture.check_capture_list(capture.normalise_capture_list(mixed), 19) == (1, 2, 4, 8, 16, 19)


@pytest.mark.parametrize("nothing", [None, [], ()])
def test_no_capture_list(nothing: list[int] | None) -> None:
    with pytest.raises(GateRefused, match="no capture sizes"):
        capture.check_capture_list(nothing, 19)
    with pytest.raises(GateRefused, match="no capture sizes"):
        capture.normalise_capture_list(nothing)


def test_an_empty_list_leaves_every_width() -> None:
    assert capture.uncovered_widths([], 3) == (1, 2, 3)


@pytest.mark.parametrize("odd", [[0, 19], [-1, 19], [True, 19], [1.0, 19], ["1", 19]])
def test_odd_sizes(odd: list[int]) -> None:
    with pytest.raises(GateRefused, match="positive integers"):
        capture.check_capture_list(odd, 19)


def test_a_list_may_not_reach_past_the_widest_batch() -> None:
    with pytest.raises(RegistrationError, match="past the widest batch"):
        capture.check_capture_list([1, 2, 32], 19, error=RegistrationError)


@pytest.mark.parametrize(
    ("width", "sizes"),
    [(1, (1,)), (2, (1, 2)), (15, (1, 2, 4, 8, 15)), (16, (1, 2, 4, 8, 16)), (19, (1, 2, 4, 8, 16, 19))],
)
def test_covering_list(width: int, sizes: tuple[int, ...]) -> None:
    assert capture.covering_capture_list(width) == sizes
    assert capture.check_capture_list(sizes, width) == sizes
    assert capture.uncovered_widths(sizes, width) == ()


@pytest.mark.parametrize("width", [1, 31, 32, 33, 36, 64, 100, 144, 512])
def test_dense_list_pads_little(width: int) -> None:
    sizes = capture.dense_capture_list(width)
    assert capture.check_capture_list(sizes, width) == sizes
    for batch in range(1, width + 1):
        assert (capture.padded_width(batch, sizes) - batch) * 16 < batch
    assert len(sizes) <= 100


def test_padding_and_eager_widths() -> None:
    sizes = (1, 2, 4, 8, 16)
    assert [capture.padded_width(width, sizes) for width in (1, 3, 16, 17)] == [1, 4, 16, 17]


def test_render_widths() -> None:
    assert capture.render_widths([]) == "none"
    assert capture.render_widths([3, 9, 10, 11, 13]) == "3, 9-11, 13"

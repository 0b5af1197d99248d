"""Implicit capture lists by ceiling and release."""

import pytest

from fitladder.capacity.capture_coverage import render_widths, uncovered_widths
from fitladder.capacity.default_capture import implicit_capture_list
from fitladder.errors import InputRefused


@pytest.mark.parametrize(
    ("width", "sizes", "uncovered"),
    [(19, (1, 2, 4, 8, 16), "17-19"), (15, (1, 2, 4, 8), "9-15"), (12, (1, 2, 4, 8), "9-12")],
)
def test_a_capture_ceiling_is_cut_to_the_grid(width: int, sizes: tuple[int, ...], uncovered: str) -> None:
    found = implicit_capture_list(width, 32_768, max_capture_size=width)
    assert found == sizes
    assert render_widths(uncovered_widths(found, width)) == uncovered


def test_no_ceiling_means_twice_the_width() -> None:
    assert implicit_capture_list(19, 32_768) == (1, 2, 4, 8, 16, 24, 32)
    assert implicit_capture_list(1_000, 32_768)[-1] == 512


@pytest.mark.parametrize(
    ("version", "joins"), [("0.24.0", False), ("0.26.1", False), ("0.27.0", True), ("1.0", True)]
)
def test_later_releases_add_the_width(version: str, joins: bool) -> None:
    assert (19 in implicit_capture_list(19, 32_768, vllm_version=version)) is joins
    assert 19 not in implicit_capture_list(19, 32_768, max_capture_size=19, vllm_version=version)


def test_the_grid_widens_at_256() -> None:
    found = implicit_capture_list(300, 32_768, max_capture_size=300)
    assert found[-4:] == (248, 256, 272, 288)


def test_the_step_budget_is_a_ceiling_and_a_size() -> None:
    assert implicit_capture_list(64, 20) == (1, 2, 4, 8, 16, 20)


@pytest.mark.parametrize("version", ["", "nightly", "0"])
def test_an_odd_version_is_refused(version: str) -> None:
    with pytest.raises(InputRefused, match="vLLM version"):
        implicit_capture_list(19, 32_768, vllm_version=version)


def test_empty_sizes_are_refused() -> None:
    with pytest.raises(InputRefused, match="capture list"):
        implicit_capture_list(0, 32_768)

"""Study files: what they expand to, what they refuse, and which order they give."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from fitladder.errors import RegistrationError
from fitladder.study.plan import Study, load_study, parse_study

STUDIES = Path(__file__).parents[3] / "data" / "studies"


def edited(study: Study, **changes: Any) -> str:
    document = study.model_dump(mode="json") | changes
    return yaml.safe_dump(document)


def test_lists_of_factors_expand_to_their_product(study: Study) -> None:
    assert [cell.name for cell in study.cells] == [
        "w4-none-p14-worst_case-n12",
        "w12-none-p14-worst_case-n12",
        "w12-none-p14-spaced-n12",
        "w4-exact-p14-worst_case-n12",
    ]
    assert study.cell("w4-exact-p14-worst_case-n12").capture_sizes == (1, 2, 4)
    assert study.cell("w4-none-p14-worst_case-n12").capture_sizes is None


def test_an_expanded_study_reads_back_as_itself(study: Study) -> None:
    again = parse_study(edited(study), where="again")
    assert again == study
    assert again.sha256 == study.sha256


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"repeats": 2}, "repeats"),
        ({"engine_args": {"max_num_seqs": 3}}, "engine_args.max_num_seqs"),
        ({"engine_args": {"seed": 3}}, "engine_args.seed"),
        (
            {"model": {"folder": "a", "preset": "b", "load_format": "dummy"}},
            "exactly one of preset and folder",
        ),
        ({"model": {"preset": "smollm2-135m", "load_format": "auto"}}, "a preset has no weights"),
        ({"comparisons": [{"numerator": "x", "denominator": "y", "shows": "z"}]}, "comparisons"),
        ({"surplus": 1}, "surplus"),
        ({"cells": []}, "cells"),
        ({"cells": [{"width": 4}]}, "cells"),
        ({"cells": 4}, "a study with a list of cells"),
    ],
)
def test_refused(study: Study, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(RegistrationError, match=field):
        parse_study(edited(study, **changes), where="edited")


@pytest.mark.parametrize(("last", "valid"), [(3, False), (4, True)], ids=["one id is no draw", "two are"])
def test_a_workload_draws_from_two_ids_or_more(study: Study, last: int, valid: bool) -> None:
    document = edited(study, workload=study.workload.model_dump(mode="json") | {"last_token_id": last})
    if valid:
        assert parse_study(document, where="edited").workload.last_token_id == last
    else:
        with pytest.raises(RegistrationError, match="need more than first_token_id"):
            parse_study(document, where="edited")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"capture": "exact", "capture_sizes": [1, 2, 4]}, "5-8"),
        ({"capture": "exact", "capture_sizes": [1, 2, 4, 16]}, "past the widest"),
        ({"capture": "implicit", "capture_sizes": [1, 2, 4, 8]}, "an exact cell has them"),
        ({"width": 0}, "width"),
        ({"width": [8, 8]}, "stands twice"),
        ({"samples": True}, "samples"),
    ],
)
def test_refused_cells(study: Study, entry: dict[str, Any], words: str) -> None:
    cell = {"width": 8, "capture": "none", "pool_blocks": 9, "admission": "worst_case", "samples": 4} | entry
    with pytest.raises(RegistrationError, match=words):
        parse_study(edited(study, cells=[cell], comparisons=[]), where="edited")


def test_every_cell_has_the_same_samples(study: Study) -> None:
    one = study.workload.requests(12, study.sampling.run_seed, 200)
    longer = study.workload.requests(20, study.sampling.run_seed, 200)
    assert longer[:12] == one
    assert [len(request.prompt_token_ids) for request in one[:4]] == [100, 103, 98, 100]
    assert len({request.seed for request in one}) == len({r.prompt_token_ids for r in one}) == 12
    assert {3 <= token <= 511 for request in one for token in request.prompt_token_ids} == {True}


def test_blocks_hold_every_unit_once_in_orders_of_their_own(study: Study) -> None:
    batches = study.batches()
    assert [len(batch) for batch in batches] == [2, 2]
    assert {cell.name for batch in batches for cell in batch} == {cell.name for cell in study.cells}
    whole = list(study.cells)
    blocks = [study.block(whole, repeat) for repeat in range(4)]
    units = {(cell.name, kind) for cell in whole for kind in cell.kinds}
    assert len(units) == 5
    assert all(len(block) == 5 and set(block) == units for block in blocks)
    assert len({tuple(block) for block in blocks}) > 1
    assert study.block(whole, 2) == blocks[2]


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*/study.yaml")), ids=lambda path: path.parent.name)
def test_committed_studies_are_valid_and_named_by_their_folder(path: Path) -> None:
    assert load_study(path).study_id == path.parent.name


def test_gpu_studies_overcommit_as_they_say() -> None:
    factorial = load_study(STUDIES / "h200_qwen35_4b" / "study.yaml")
    usable, peak = 114, 6
    longest = max(factorial.workload.prompt_tokens) + factorial.workload.sampled_tokens - 1
    shortest = min(factorial.workload.prompt_tokens) + factorial.workload.sampled_tokens - 1
    assert {-(-length // 528) + 3 for length in (shortest, longest)} == {peak}
    assert {cell.pool_blocks for cell in factorial.cells} == {usable + 1}
    assert usable // peak == 19
    assert 48 * peak / usable == pytest.approx(2.5, abs=0.03)

"""What a cell's engine is told: its factors, and nothing else that another cell's is not."""

from pathlib import Path

import pytest

from fitladder.canonical import canonical_bytes
from fitladder.errors import EngineFailed
from fitladder.records.settings import Sampling, Thinking
from fitladder.sampling.parameters import sampling_parameters
from fitladder.study.plan import Study
from fitladder.study.request import build_cell_request, cell_engine_arguments, load_cell_request


def test_cells_differ_in_their_factors_alone(study: Study) -> None:
    arguments = [cell_engine_arguments(study, cell, "m") for cell in study.cells]
    factors = {
        "max_num_seqs", "enforce_eager", "num_gpu_blocks_override", "cudagraph_capture_sizes",
        "max_cudagraph_capture_size",
    }  # fmt: skip
    rests = [{name: value for name, value in one.items() if name not in factors} for one in arguments]
    assert all(rest == rests[0] for rest in rests)
    assert rests[0]["disable_log_stats"] is False
    assert rests[0]["enable_prefix_caching"] is False


def test_capture_modes(study: Study) -> None:
    cell = study.cell("w4-exact-p14-worst_case-n12")
    exact = cell_engine_arguments(study, cell, "m")
    assert (exact["cudagraph_capture_sizes"], exact["max_cudagraph_capture_size"]) == ([1, 2, 4], 4)
    assert exact["enforce_eager"] is False
    implicit = cell_engine_arguments(
        study, cell.model_copy(update={"capture": "implicit", "capture_sizes": None}), "m"
    )
    assert "cudagraph_capture_sizes" not in implicit
    assert implicit["max_cudagraph_capture_size"] == 4
    eager = cell_engine_arguments(study, study.cells[0], "m")
    assert eager["enforce_eager"] is True
    assert not {"cudagraph_capture_sizes", "max_cudagraph_capture_size"} & set(eager)


def test_samples_are_told_what_a_phase_tells_them_but_for_stops(study: Study) -> None:
    thinking = Thinking(
        open_text="", close_text="x", close_marker_token_ids=(1,), close_token_ids=(1,),
        model_eos_token_ids=(2,), eos_inside_thinking="forced_close",
    )  # fmt: skip
    sampling = Sampling(temperature=0.6, top_p=0.95, top_k=20, answer_max_tokens=1, run_seed=2701)
    told = build_cell_request(study, study.cells[0], "m").parameters()
    assert told == sampling_parameters(sampling, thinking) | {"stop_token_ids": []}


def test_a_request_reads_back_and_refuses_what_is_not_one(study: Study, tmp_path: Path) -> None:
    request = build_cell_request(study, study.cells[3], "m")
    path = tmp_path / "request.json"
    path.write_bytes(canonical_bytes(request))
    assert load_cell_request(path) == request
    assert len(request.requests(8)) == 12
    path.write_bytes(canonical_bytes(request).replace(b'"samples":12', b'"samples":"12"'))
    with pytest.raises(EngineFailed, match="samples"):
        load_cell_request(path)

"""The page of a throughput study: every cell kept, every figure derived again first."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support import bundles as make
from support.page_data import history_data

from fitladder.errors import BundleTampered
from fitladder.report.index_page import build_index
from fitladder.report.study_page import build_study, study_folders, study_page_name
from fitladder.study.bundle import write_study_bundle
from fitladder.study.measurements import (
    BuildRecord,
    FailureRecord,
    Measurements,
    RunRecord,
    write_measurements,
)
from fitladder.study.plan import Study, load_study

TEXT = """
schema_version: 1
study_id: small_study
question: What does overcommit cost?
backend: vllm-cpu
model: {folder: tiny, load_format: dummy}
engine_args: {dtype: float32, max_model_len: 512, max_num_batched_tokens: 2048}
environment: {}
sampling: {temperature: 0.6, top_p: 0.95, top_k: 20, run_seed: 2701}
workload: {prompt_tokens: [30], sampled_tokens: 50, warmup_tokens: 8, first_token_id: 3, last_token_id: 511}
cells:
  - {width: [4, 12], capture: none, pool_blocks: 40, admission: worst_case, samples: 12}
comparisons:
  - {numerator: w4-none-p40-worst_case-n12, denominator: w12-none-p40-worst_case-n12, shows: Fitted over wide}
repeats: 3
engines_at_once: 1
build_deadline_s: 60
run_deadline_s: 60
"""
FITTED, WIDE = "w4-none-p40-worst_case-n12", "w12-none-p40-worst_case-n12"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "studies" / "small_study"
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(TEXT)
    return folder


def measure(folder: Path, study: Study, *, wide_fails: bool = False) -> None:
    def run(cell: str, repeat: int, micros: int, preemptions: int) -> RunRecord:
        counters = {"preemptions": preemptions, "recomputed_tokens": 40 * preemptions, "steps": 150}
        return RunRecord(
            session=1,
            cell=cell,
            kind="ours",
            repeat=repeat,
            generation_us=micros + repeat,
            sampled_tokens=600,
            counters=counters,
            warnings=(),
        )

    runs = [run(FITTED, repeat, 2_000_000, 0) for repeat in range(3)]
    runs += [] if wide_fails else [run(WIDE, repeat, 1_000_000, 7) for repeat in range(3)]
    cells = [(FITTED, 4)] if wide_fails else [(FITTED, 4), (WIDE, 12)]
    sizes = {
        "num_blocks": 40,
        "kv_cache_size_tokens": 640,
        "max_model_len_tokens": 512,
        "max_concurrency": "1.25",
    }
    measured = Measurements(
        schema_version=1,
        study_id=study.study_id,
        study_sha256=study.sha256,
        engines=tuple(
            BuildRecord(session=1, cell=name, facts=make.facts(width, **sizes), runtime=make.runtime())
            for name, width in cells
        ),
        runs=tuple(runs),
        failures=(FailureRecord(session=1, cell=WIDE, reason="out of memory <b>"),) if wide_fails else (),
    )
    write_measurements(folder, measured)
    write_study_bundle(folder, study, measured, noted_at_s=make.NOON_S)


def test_a_study_without_a_receipt_is_shown_as_planned(folder: Path, words_of: Callable[[str], str]) -> None:
    text = words_of(build_study(folder)[0])
    assert "Not run 2 cells, 3 repeats each, were planned" in text
    assert "fitladder study run" in text
    assert "fitladder study verify" not in text  # it would refuse: nothing was measured
    assert FITTED in text


def test_cells_ratios_and_limits(folder: Path, words_of: Callable[[str], str]) -> None:
    measure(folder, load_study(folder / "study.yaml"))
    html, twin = build_study(folder)
    text = words_of(html)
    assert "2 of 2 cells complete" in text
    assert "0.500" in text  # the fitted cell took twice the time
    assert "600.0" in text
    assert "300.0" in text
    assert "7 preempted" in text
    assert "no registered experiment may use them" in text
    assert "300.0" in twin
    assert build_study(folder) == (html, twin)


def test_a_failed_cell_is_kept(folder: Path, words_of: Callable[[str], str]) -> None:
    measure(folder, load_study(folder / "study.yaml"), wide_fails=True)
    html, _ = build_study(folder)
    text = words_of(html)
    assert "1 of 2 cells complete" in text
    assert "out of memory &lt;b&gt;" in text
    assert "not measured" in text


def test_a_figure_that_does_not_follow_refuses(folder: Path, words_of: Callable[[str], str]) -> None:
    measure(folder, load_study(folder / "study.yaml"))
    path = folder / "measurements.json"
    path.write_bytes(path.read_bytes().replace(b"1000000", b"1000009", 1))
    with pytest.raises(BundleTampered, match=r"measurements\.json"):
        build_study(folder)
    data, registry = history_data(folder.parents[2])
    text = words_of(build_index(data, registry)[0])
    assert "refused:" in text


def test_the_index_links_every_study(folder: Path) -> None:
    data, registry = history_data(folder.parents[2])
    assert study_folders(data) == (folder,)
    html, _ = build_index(data, registry)
    assert f'href="{study_page_name(folder)}"' in html

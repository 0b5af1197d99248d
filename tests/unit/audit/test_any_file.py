"""Other people's outputs as they come: shards, compression, pipes, padding, finish reasons, engine shapes.

Each test builds its own small input; the names say which public reports the shape is from.
"""

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fitladder.audit import row_batches
from fitladder.audit.lag_matches import best_lag_by_pairs
from fitladder.audit.periodicity import best_lag
from fitladder.cli.audit import audit
from fitladder.errors import InputRefused, UsageError
from fitladder.records.settings import LoopRule

COMMAND = [sys.executable, "-c", "from fitladder.cli.main import main; main()", "audit"]


def _distinct(count: int, first: int = 1_000_000) -> list[int]:
    return list(range(first, first + count))


def _loop(period: int, count: int) -> list[int]:
    return np.resize(np.arange(100, 100 + period), count).tolist()


def _lines(records: list[Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def _zstd(data: bytes) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(data)
    return bytes(out.getvalue())


@pytest.fixture
def found(capsys: pytest.CaptureFixture[str]) -> Any:
    """The JSON document of an audit."""

    def run(*targets: Path | str, **options: Any) -> Any:
        audit(str(targets[0]), [str(target) for target in targets[1:]], as_json=True, **options)
        return json.loads(capsys.readouterr().out)

    return run


def test_a_loop_that_a_forced_close_ended_is_seen_inside_the_row(tmp_path: Path, found: Any) -> None:
    """vllm-project/vllm#52673: a loop in the thinking, then the close and an answer."""
    close = [7, 8, 9]
    ids = [*_distinct(20_000), *_loop(10, 20_000), *close, *_distinct(600, 2_000_000)]
    path = tmp_path / "x.jsonl"
    path.write_bytes(_lines([{"id": "a", "token_ids": ids, "finish_reason": "stop"}]))
    (sample,) = found(path, close_ids="7,8,9")["samples"]
    assert (sample["end"], sample["close_token"], sample["judged_tokens"]) == ("forced close", 40_000, 40_000)
    assert (sample["period_tokens"], sample["onset_token"], sample["tokens_after_onset"]) == (
        10,
        20_000,
        20_000,
    )
    (run,) = sample["runs"]
    assert (run["start_token"], run["end_token"], run["period_tokens"]) == (20_000, 40_000, 10)
    assert (run["burned_tokens"], run["ended_by_close"]) == (20_000, True)
    assert sample["found_by"] == ["tail rule", "runs anywhere"]
    (sample,) = found(path)["samples"]  # the file says `stop`, and nothing tells of a close
    assert (sample["end"], sample["period_tokens"], sample["found_by"]) == (
        "natural",
        None,
        ["runs anywhere"],
    )
    assert sample["burned_tokens"] == 20_000
    assert sample["runs"][0]["ended_by_close"] is False


def test_natural_ends_are_a_class_of_their_own(tmp_path: Path, found: Any, capsys: Any) -> None:
    """allenai/olmo-eval#399: cap hits and natural ends in one file; a natural end after 12,000 equal ids."""
    rows = [{"token_ids": _distinct(9_000, 10_000 * at), "finish_reason": "length"} for at in range(3)]
    rows += [{"token_ids": [*_distinct(50), *_loop(15, 9_000)], "finish_reason": "length"}] * 2
    rows += [{"token_ids": _distinct(9_000, 50_000), "finish_reason": "stop"}] * 4
    rows.append({"token_ids": [*_distinct(50), *[5] * 12_000, 2], "finish_reason": "stop"})
    path = tmp_path / "x.jsonl"
    path.write_bytes(_lines(rows))
    document = found(path)
    assert document["judged_rows"] == 5
    assert document["ends"]["cut"] == {
        "rows": 5,
        "tokens": 3 * 9_000 + 2 * 9_050,
        "loops": 2,
        "unresolved": 3,
        "shorter_than_the_tail": 0,
        "rows_with_runs": 2,
    }
    assert (document["ends"]["natural"]["rows"], document["ends"]["natural"]["rows_with_runs"]) == (5, 1)
    assert (document["totals"]["loops"], document["totals"]["unresolved"]) == (2, 3)
    last = document["samples"][-1]
    assert (last["period_tokens"], last["end"], last["burned_tokens"]) == (None, "natural", 12_000)
    audit(str(path))
    shown = capsys.readouterr().out
    assert "2 of 5 loop" in shown
    assert "Ends of 10 rows: 5 cut, 5 natural." in shown


@pytest.mark.parametrize(
    ("finish", "end"),
    [
        ("length", "cut"),
        ("max_tokens", "cut"),
        ({"type": "length", "length": 9_000}, "cut"),
        ("stop", "natural"),
        ({"type": "stop", "matched": 2}, "natural"),
        ("abort", "other"),
        (None, "cut"),
    ],
)
def test_finish_reasons_in_the_words_of_engines(tmp_path: Path, found: Any, finish: Any, end: str) -> None:
    (tmp_path / "x.jsonl").write_bytes(_lines([{"token_ids": [1, 2], "why": finish}]))
    assert found(tmp_path / "x.jsonl", finish_column="why")["samples"][0]["end"] == end
    pq.write_table(pa.Table.from_pylist([{"token_ids": [1, 2], "why": finish}]), tmp_path / "x.parquet")
    assert found(tmp_path / "x.parquet", finish_column="why")["samples"][0]["end"] == end


def test_a_finish_column_that_is_not_there_is_refused(tmp_path: Path, found: Any) -> None:
    (tmp_path / "x.jsonl").write_bytes(_lines([{"token_ids": [1, 2]}]))
    with pytest.raises(InputRefused, match="line 1: no 'why'"):
        found(tmp_path / "x.jsonl", finish_column="why")
    pq.write_table(pa.Table.from_pylist([{"token_ids": [1, 2]}]), tmp_path / "x.parquet")
    with pytest.raises(InputRefused, match="no column 'why'"):
        found(tmp_path / "x.parquet", finish_column="why")


def test_an_eos_id_at_the_end_is_a_natural_end(tmp_path: Path, found: Any) -> None:
    (tmp_path / "x.jsonl").write_bytes(_lines([{"token_ids": [5, 6, 2]}, {"token_ids": [5, 6, 7]}]))
    ends = [sample["end"] for sample in found(tmp_path / "x.jsonl", eos_ids="2,3")["samples"]]
    assert ends == ["natural", "cut"]


def test_right_padding_is_left_out_on_request(tmp_path: Path, found: Any) -> None:
    """verl-project/verl#2727: 0 x 9,152 behind the row is no loop of period 1."""
    (tmp_path / "x.jsonl").write_bytes(_lines([{"token_ids": [*_distinct(9_000), *[0] * 9_152]}]))
    (sample,) = found(tmp_path / "x.jsonl", pad_id=0)["samples"]
    assert (sample["tokens"], sample["padding_tokens"], sample["period_tokens"]) == (9_000, 9_152, None)
    assert sample["runs"] == []
    (sample,) = found(tmp_path / "x.jsonl")["samples"]
    assert sample["period_tokens"] == 1
    document = found(tmp_path / "x.jsonl", pad_id=0, eos_ids="0")
    assert document["samples"][0]["end"] == "natural"
    assert document["padding"] == {"rows": 1, "tokens": 9_152}


def test_a_loop_in_a_short_output_names_the_tail_that_finds_it(
    tmp_path: Path, found: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """waybarrios/vllm-mlx#188: 2,048 ids, period 7 from id 300."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(
        _lines([{"token_ids": [*_distinct(300), *_loop(7, 1_748)]}, {"token_ids": _distinct(2_048)}])
    )
    document = found(path)
    assert [sample["tail_hint_tokens"] for sample in document["samples"]] == [1_024, None]
    audit(str(path))
    shown = capsys.readouterr().out
    assert "1 rows shorter than the tail repeat: --tail 1024 --max-period 512 finds at least 1" in shown
    first, second = found(path, tail=1_024, max_period=512)["samples"]
    assert (first["period_tokens"], first["onset_token"], second["period_tokens"]) == (7, 300, None)


@pytest.mark.parametrize(
    "ids",
    [
        [[-0.1, 11, "a"], [-0.2, 12, None], [None, 13, "c"]],  # SGLang output_token_logprobs
        ["token_id:11", "token_id:12", "token_id:13"],  # vLLM, return_tokens_as_token_ids
        [{"token": "token_id:11", "logprob": -0.1}, {"token": "token_id:12"}, {"token": "token_id:13"}],
    ],
)
def test_ids_in_the_shapes_of_engines(tmp_path: Path, ids: list[Any], found: Any) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(_lines([{"meta_info": {"ids": ids, "finish_reason": {"type": "length"}}}]))
    (sample,) = found(path, column="meta_info.ids")["samples"]
    assert (sample["tokens"], sample["end"], sample["finish_reason"]) == (3, "cut", "length")
    with pytest.raises(InputRefused, match=r"--column takes one of meta_info\.ids$"):
        found(path, column="token_ids")


@pytest.mark.parametrize(
    "ids", [["11"], ["token_id:x"], ["token_id:2147483648"], [[11, "a"]], [[0.1, "a", 11]]]
)
def test_text_that_states_no_id_is_refused(tmp_path: Path, ids: list[Any], found: Any) -> None:
    (tmp_path / "x.jsonl").write_bytes(_lines([{"token_ids": ids}]))
    with pytest.raises(InputRefused, match="line 1: 'token_ids' holds"):
        found(tmp_path / "x.jsonl")


ROWS = [{"id": "a", "token_ids": [*_distinct(40), *_loop(3, 9_000)]}, {"id": "b", "token_ids": [1, 2]}]


def _parquet(rows: list[Any]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


@pytest.mark.parametrize("data", [_lines(ROWS), _parquet(ROWS), json.dumps(ROWS, indent=1).encode()])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, _zstd])
def test_compression_and_format_are_told_by_content(
    tmp_path: Path, data: bytes, pack: Any, found: Any
) -> None:
    plain = tmp_path / "plain.jsonl"
    plain.write_bytes(_lines(ROWS))
    (tmp_path / "x").write_bytes(pack(data))
    assert found(tmp_path / "x")["samples"] == found(plain)["samples"]
    typed = [*COMMAND, "-", "--json"]
    piped = subprocess.run(typed, input=pack(data), capture_output=True, check=True)
    assert json.loads(piped.stdout)["samples"] == found(plain)["samples"]


@pytest.mark.parametrize("pack", [gzip.compress, _zstd])
def test_a_compressed_file_that_breaks_off_is_refused(tmp_path: Path, pack: Any, found: Any) -> None:
    (tmp_path / "x").write_bytes(pack(_lines(ROWS))[:-9])
    with pytest.raises(InputRefused, match="cannot be read"):
        found(tmp_path / "x")


def test_a_folder_and_several_files(tmp_path: Path, found: Any) -> None:
    shards = tmp_path / "shards"
    (shards / "sub").mkdir(parents=True)
    (shards / "sub" / "2.jsonl.gz").write_bytes(gzip.compress(_lines(ROWS)))
    (shards / "1.parquet").write_bytes(_parquet(ROWS))
    (shards / "_SUCCESS").write_bytes(b"")
    (shards / ".part.jsonl").write_bytes(b"torn")
    (shards / "notes.txt").write_bytes(b"not rows")
    document = found(shards)
    names = [f"{shards}/{place}:{name}" for place in ("1.parquet", "sub/2.jsonl.gz") for name in "ab"]
    assert [sample["id"] for sample in document["samples"]] == names
    both = found(shards / "1.parquet", shards / "sub" / "2.jsonl.gz")
    assert both["samples"] == document["samples"]
    with pytest.raises(InputRefused, match="is named twice"):
        found(shards, shards / "1.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputRefused, match="holds no file of rows"):
        found(tmp_path / "empty")


def test_an_id_twice_in_one_of_several_files_is_refused(tmp_path: Path, found: Any) -> None:
    (tmp_path / "1.jsonl").write_bytes(_lines(ROWS))
    (tmp_path / "2.jsonl").write_bytes(_lines([*ROWS, ROWS[0]]))
    with pytest.raises(InputRefused, match=r"2\.jsonl: one id twice"):
        found(tmp_path / "1.jsonl", tmp_path / "2.jsonl")


def test_an_indented_inspect_log_names_samples_by_id_and_epoch(tmp_path: Path, found: Any) -> None:
    samples = [
        {
            "id": 1,
            "epoch": epoch,
            "output": {"choices": [{"token_ids": [1, epoch], "stop_reason": "max_tokens"}]},
        }
        for epoch in (1, 2)
    ]
    log = {"version": 2, "status": "success", "samples": samples}
    (tmp_path / "log.json").write_text(json.dumps(log, indent=2))
    document = found(tmp_path / "log.json", column="output.choices.0.token_ids")
    assert [(one["id"], one["end"]) for one in document["samples"]] == [
        ("1#epoch1", "cut"),
        ("1#epoch2", "cut"),
    ]


def test_a_document_that_would_fill_the_memory_is_refused(
    tmp_path: Path, found: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_batches, "MAX_DOCUMENT_BYTES", 100)
    (tmp_path / "x.json").write_text(json.dumps(ROWS, indent=1))
    with pytest.raises(InputRefused, match="one large JSON document"):
        found(tmp_path / "x.json")


def _many(path: Path) -> None:
    random = np.random.default_rng(4)
    rows = []
    for at in range(60):
        ids = random.integers(0, 50_000, 400)
        ids[150:] = np.resize(ids[150 : 150 + 1 + at], 250) if at % 2 else ids[150:]
        rows.append(
            {"id": f"r{at}", "token_ids": ids.tolist(), "finish_reason": "length" if at % 3 else "stop"}
        )
    pq.write_table(pa.Table.from_pylist(rows), path.with_suffix(".parquet"), row_group_size=7)
    path.with_suffix(".jsonl").write_bytes(_lines(rows))


@pytest.mark.parametrize("source", ["x.parquet", "x.jsonl"])
@pytest.mark.parametrize("out", ["out.jsonl", "out.parquet"])
def test_several_processes_write_the_bytes_of_one(
    tmp_path: Path, source: str, out: str, found: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_batches, "BATCH_LINES", 9)
    _many(tmp_path / "x")
    written = []
    for processes in (1, 2):
        path = tmp_path / f"{processes}-{out}"
        document = found(tmp_path / source, out=path, processes=processes, tail=128, max_period=64)
        assert document["samples"] == []
        written.append(path.read_bytes())
    assert written[0] == written[1]
    held = found(tmp_path / source, tail=128, max_period=64)
    assert held["totals"] == document["totals"]
    if out == "out.jsonl":
        assert [json.loads(line) for line in written[0].splitlines()] == held["samples"]
    else:
        assert pq.read_table(path).to_pylist() == held["samples"]
    assert not list(tmp_path.glob(".*"))


def test_a_refusal_is_the_same_in_several_processes(tmp_path: Path, found: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(row_batches, "BATCH_LINES", 1)
    rows = [{"id": at, "token_ids": [at]} for at in range(9)]
    (tmp_path / "x.jsonl").write_bytes(_lines([*rows[:5], {"id": 5, "token_ids": ["x"]}, *rows[6:]]) + b"{")
    said = []
    for processes in (1, 2):
        with pytest.raises(InputRefused, match="line 6: 'token_ids' holds 'x'") as refused:
            found(tmp_path / "x.jsonl", out=tmp_path / "out.jsonl", processes=processes)
        said.append(str(refused.value))
    assert said[0] == said[1]
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("out", ["x.jsonl", "y.csv"])
def test_out_is_a_file_of_its_own(tmp_path: Path, out: str, found: Any) -> None:
    (tmp_path / "x.jsonl").write_bytes(_lines(ROWS))
    with pytest.raises(UsageError, match="--out"):
        found(tmp_path / "x.jsonl", out=tmp_path / out)


@pytest.mark.parametrize("option", ["close_ids", "eos_ids"])
@pytest.mark.parametrize("typed", ["", "a", "-1", "1,,2", "2147483648", "1;2"])
def test_ids_in_an_option_are_ids(tmp_path: Path, option: str, typed: str, found: Any) -> None:
    (tmp_path / "x.jsonl").write_bytes(_lines(ROWS))
    with pytest.raises(UsageError, match=f"--{option.replace('_', '-')}: got '{typed}'"):
        found(tmp_path / "x.jsonl", **{option: typed})


def test_explain_says_which_rule_found_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = [*_distinct(100), *_loop(10, 9_000), *_distinct(9_000, 3_000_000)]
    (tmp_path / "x.jsonl").write_bytes(_lines([{"id": "inside", "token_ids": ids}]))
    audit(str(tmp_path / "x.jsonl"), explain=True)
    shown = " ".join(capsys.readouterr().out.split())
    assert "inside: end: cut (nothing known: taken as cut). Tail rule: unresolved" in shown
    assert "Runs anywhere: ids 100 to 9,100, period 10, 8990/8990 match." in shown


def test_the_best_lag_from_pairs_is_the_best_lag() -> None:
    random = np.random.default_rng(8)
    rule = LoopRule(tail_tokens=64, max_period_tokens=20, min_match_rate="0.99", min_budget_tokens=1)
    for letters in (1, 2, 5, 40, 10_000):
        for _ in range(60):
            ids = random.integers(0, letters, int(random.integers(60, 90))).astype(np.int32)
            assert best_lag_by_pairs(ids, rule) == best_lag(ids, rule)
    # so many pairs that every lag is compared instead
    wide = LoopRule(tail_tokens=4_096, max_period_tokens=2_048, min_match_rate="0.99", min_budget_tokens=1)
    ids = random.integers(0, 2, 4_096).astype(np.int32)
    assert best_lag_by_pairs(ids, wide) == best_lag(ids, wide)

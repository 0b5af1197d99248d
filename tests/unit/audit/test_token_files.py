"""Anyone's token lists: read whole or refused by path and line, audited in file order."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fitladder.audit.token_files import audit_rows, load_rows
from fitladder.cli.audit import audit
from fitladder.errors import InputRefused, UsageError
from fitladder.records.settings import LoopRule

LOOP = [at % 5 for at in range(9_000)]
PLAIN = list(range(9_000))


def _write(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def _ids(path: Path, column: str = "token_ids") -> list[Any]:
    return [(row.id, row.token_ids.tolist()) for row in load_rows(path, column)]


def _json(capsys: pytest.CaptureFixture[str], path: Path, **options: Any) -> Any:
    audit(str(path), as_json=True, **options)
    return json.loads(capsys.readouterr().out)


def test_samples_come_in_file_order_with_what_was_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = list(range(10_000, 10_700))
    records = [
        {"id": "z", "token_ids": head + LOOP},
        {"id": "a", "token_ids": PLAIN},
        {"id": "m", "token_ids": [1, 2, 3]},
        {"id": 7, "token_ids": []},
    ]
    found = _json(capsys, _write(tmp_path / "x.jsonl", records), column="token_ids")
    assert [sample["id"] for sample in found["samples"]] == ["z", "a", "m", 7]
    first, second, third, fourth = found["samples"]
    assert (first["period_tokens"], first["match_rate"], first["onset_token"]) == (5, 1.0, 700)
    assert first["tokens_after_onset"] == 9_000
    assert (second["period_tokens"], second["onset_token"], second["match_rate"]) == (None, None, 0.0)
    assert "no lag up to 2048" in second["reason"]
    assert third["period_tokens"] is third["match_rate"] is third["onset_token"] is None
    assert third["reason"] == "3 ids, shorter than the 8192-id tail"
    assert fourth["reason"].startswith("0 ids")
    assert found["totals"] == {
        "samples": 4,
        "loops": 1,
        "unresolved": 1,
        "shorter_than_the_tail": 2,
        "tokens": 18_703,
        "tokens_after_onset": 9_000,
    }
    assert found["largest_period_searched_tokens"] == 2_048


def test_a_near_miss_keeps_its_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = [*range(20_000, 20_082), *(at % 10 for at in range(8_110))]
    (sample,) = _json(capsys, _write(tmp_path / "x.jsonl", [{"token_ids": ids}]))["samples"]
    assert sample["period_tokens"] is None
    assert (sample["matched_tokens"], sample["compared_tokens"]) == (8_100, 8_182)
    assert sample["match_rate"] == 8_100 / 8_182


def test_the_rule_is_the_callers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _write(tmp_path / "x.jsonl", [{"id": "s", "token_ids": [1, 2, 3, 4] * 10}])
    assert _json(capsys, path)["samples"][0]["period_tokens"] is None
    found = _json(capsys, path, tail=32, max_period=8, min_match="0.9")
    assert found["samples"][0]["period_tokens"] == 4
    assert (found["tail_tokens"], found["min_match_rate"]) == (32, "0.9")
    found = _json(capsys, path, tail=32, max_period=3, min_match="0.9")
    assert found["samples"][0]["period_tokens"] is None


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"tail": 1}, "--tail"),
        ({"tail": 8, "max_period": 5}, "--max-period"),
        ({"max_period": 0}, "--max-period"),
        ({"min_match": "1.5"}, "--min-match"),
        ({"min_match": "all"}, "--min-match"),
    ],
)
def test_rules_that_are_none(tmp_path: Path, options: Any, named: str) -> None:
    path = _write(tmp_path / "x.jsonl", [{"token_ids": [1]}])
    with pytest.raises(UsageError, match=f"^{named}"):
        audit(str(path), **options)


def test_parquet_gives_what_jsonl_gives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [{"id": "z", "token_ids": LOOP}, {"id": "a", "token_ids": PLAIN}, {"id": "m", "token_ids": []}]
    lines = _json(capsys, _write(tmp_path / "x.jsonl", records), column="token_ids")
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "x.bin")
    table = _json(capsys, tmp_path / "x.bin", column="token_ids")
    assert table["samples"] == lines["samples"]


def test_nested_lists_and_several_outputs_a_row(tmp_path: Path) -> None:
    records = [
        {"id": "p", "outputs": [{"token_ids": [1]}, {"token_ids": [2, 3]}]},
        {"id": "q", "outputs": [{"token_ids": [4]}]},
    ]
    path = _write(tmp_path / "x.jsonl", records)
    assert _ids(path, "outputs.0.token_ids") == [("p", [1]), ("q", [4])]
    assert _ids(path, "outputs.*.token_ids") == [("p#0", [1]), ("p#1", [2, 3]), ("q#0", [4])]
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "x.parquet")
    assert _ids(tmp_path / "x.parquet", "outputs.*.token_ids") == _ids(path, "outputs.*.token_ids")
    with pytest.raises(InputRefused, match=r"line 2: no 'outputs.1.token_ids'"):
        _ids(path, "outputs.1.token_ids")


def test_rows_without_a_name_are_numbered(tmp_path: Path) -> None:
    path = _write(tmp_path / "x.jsonl", [{"token_ids": [1]}, {"token_ids": [2]}])
    assert _ids(path) == [(1, [1]), (2, [2])]
    mixed = _write(tmp_path / "y.jsonl", [{"id": "a", "token_ids": [1]}, {"token_ids": [2]}])
    with pytest.raises(InputRefused, match=r"line 2: 'id': got in some rows only"):
        _ids(mixed)


@pytest.mark.parametrize(
    ("first", "second"),
    [("s-1", "s-1"), (1, "1"), ("1", 1), ("caf\u00e9", "cafe\u0301"), ("a/b", "a_b"), ("a\\b", "a/b")],
)
@pytest.mark.parametrize("same", [True, False])
def test_one_sample_id_twice_is_refused_with_both_lines(
    tmp_path: Path, first: Any, second: Any, same: bool
) -> None:
    rows = [{"id": first, "token_ids": [1]}, {"id": second, "token_ids": [1] if same else [2]}]
    with pytest.raises(InputRefused, match=r"one id twice.*line 1.*line 2"):
        _ids(_write(tmp_path / "x.jsonl", rows))


def test_names_that_differ_stay_apart(tmp_path: Path) -> None:
    names = ["a/b", "a-b", "A_b", "a.b", "1+1=?", "1-1=?"]
    path = _write(tmp_path / "x.jsonl", [{"id": name, "token_ids": [1]} for name in names])
    assert [name for name, _ in _ids(path)] == names


@pytest.mark.parametrize("name", [True, 1.5, None, ["a"]])
def test_a_name_is_text_or_a_number(tmp_path: Path, name: Any) -> None:
    with pytest.raises(InputRefused, match="line 1: 'id'"):
        _ids(_write(tmp_path / "x.jsonl", [{"id": name, "token_ids": [1]}]))


WHOLE = b'{"id":"s-001","token_ids":[1]}\n'


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (WHOLE + b'{"id":"s-00', 2),
        (WHOLE + b'{"id":"s-00{"id":"s-003","token_ids":[3]}\n', 2),  # torn, then appended to
        (WHOLE + '{"id":"\u20ac'.encode()[:-1], 2),  # cut inside a three-byte character
        (WHOLE + b'{"id":"s-00\n\n', 2),
        (WHOLE + b"\n", 2),
        (WHOLE + b"\n" + WHOLE, 2),
        (WHOLE + b"[1]\n", 2),
        (b"\n", 1),
    ],
)
def test_torn_lines_are_named(tmp_path: Path, data: bytes, line: int) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    with pytest.raises(InputRefused, match=rf"x\.jsonl line {line} "):
        _ids(path)
    assert path.read_bytes() == data


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"")
    with pytest.raises(InputRefused, match=r"x\.jsonl is empty"):
        _ids(tmp_path / "x.jsonl")


def test_a_whole_last_line_needs_no_newline(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(WHOLE + b'{"id":"s-002","token_ids":[2]}')
    assert _ids(tmp_path / "x.jsonl") == [("s-001", [1]), ("s-002", [2])]


@pytest.mark.parametrize(
    "value",
    [
        "[1,true]",
        "[1,2.0]",
        "[-1]",
        "[2147483648]",
        '["1"]',
        "[[1]]",
        "null",
        '"1 2"',
        "[1,NaN]",
        "[1,1e400]",
    ],
)
def test_ids_are_integers(tmp_path: Path, value: str) -> None:
    (tmp_path / "x.jsonl").write_text(f'{{"token_ids":{value}}}\n')
    with pytest.raises(InputRefused, match="line 1"):
        _ids(tmp_path / "x.jsonl")


def test_a_refused_id_is_shown_in_short(tmp_path: Path) -> None:
    _write(tmp_path / "x.jsonl", [{"token_ids": [list(range(1000))]}])
    with pytest.raises(InputRefused, match=r"'token_ids' holds \[0, 1, 2, ") as refused:
        _ids(tmp_path / "x.jsonl")
    assert len(str(refused.value)) < 300


def test_parquet_that_is_none_or_lacks_the_column(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(InputRefused, match="not readable Parquet"):
        _ids(tmp_path / "x.parquet")
    pq.write_table(pa.table({"ids": [[1]], "text": ["a"]}), tmp_path / "y.parquet")
    with pytest.raises(InputRefused, match="no column 'token_ids': need one of ids, text"):
        _ids(tmp_path / "y.parquet")
    pq.write_table(
        pa.table({"token_ids": pa.array([[1], None], pa.list_(pa.int32()))}), tmp_path / "z.parquet"
    )
    with pytest.raises(InputRefused, match="row 2: 'token_ids': got None"):
        _ids(tmp_path / "z.parquet")
    pq.write_table(pa.table({"token_ids": pa.array([], pa.list_(pa.int32()))}), tmp_path / "e.parquet")
    with pytest.raises(InputRefused, match="has no rows"):
        _ids(tmp_path / "e.parquet")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file"):
        audit(str(tmp_path / "nothing.jsonl"))
    with pytest.raises(InputRefused, match="cannot be read"):
        audit(str(tmp_path / "nothing"), column="token_ids")


def test_people_read_that_unresolved_is_no_proof(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [{"id": "z", "token_ids": LOOP}, {"id": "a", "token_ids": PLAIN}, {"id": "m", "token_ids": [1]}]
    audit(str(_write(tmp_path / "x.jsonl", records)))
    shown = capsys.readouterr().out
    assert "no proof that they do not loop" in shown
    assert "8187/8187" in shown
    assert "no loop" not in shown


def test_the_command_line(tmp_path: Path) -> None:
    path = _write(tmp_path / "x.jsonl", [{"id": "z", "token_ids": LOOP}])
    start = [sys.executable, "-c", "from fitladder.cli.main import main; main()"]
    words = [*start, "audit", str(path), "--column", "token_ids", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["samples"][0]["period_tokens"] == 5
    torn = tmp_path / "torn.jsonl"
    torn.write_text('{"id":"z"')
    words[words.index(str(path))] = str(torn)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith(f"fitladder: {torn} line 1 ")
    assert len(done.stderr.splitlines()) == 1


def test_rows_are_audited_with_the_same_search(tmp_path: Path) -> None:
    rule = LoopRule(tail_tokens=64, max_period_tokens=16, min_match_rate="0.9", min_budget_tokens=1)
    random = np.random.default_rng(3)
    lists = [np.resize(random.integers(0, 50, period), 100).tolist() for period in range(1, 17)]
    path = _write(tmp_path / "x.jsonl", [{"token_ids": ids} for ids in lists])
    found = audit_rows(load_rows(path, "token_ids"), rule)
    assert [sample.period_tokens for sample in found][:4] == [1, 2, 3, 4]
    assert all(sample.onset_token == 0 for sample in found)


def test_a_column_elsewhere_is_named(tmp_path: Path) -> None:
    dump = {"request_id": "0", "prompt_token_ids": [1, 2], "outputs": [{"index": 0, "token_ids": LOOP}]}
    path = _write(tmp_path / "vllm.jsonl", [dump])
    with pytest.raises(
        InputRefused, match=r"--column takes one of prompt_token_ids, outputs\.\*\.token_ids$"
    ):
        load_rows(path, "token_ids")
    assert [name for name, _ in _ids(path, "outputs.*.token_ids")] == ["1#0"]


def test_a_compressed_file_is_read_as_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id":1,"token_ids":[1]}\n'))
    assert _ids(path) == [(1, [1])]


@pytest.mark.parametrize("name", ["x.jsonl", "page.pdf", "page"])
def test_the_page_never_takes_the_place_of_the_input(tmp_path: Path, name: str) -> None:
    path = _write(tmp_path / "x.jsonl", [{"id": "z", "token_ids": LOOP}])
    before = path.read_bytes()
    with pytest.raises(UsageError, match=r"an \.html file other than the one audited"):
        audit(str(path), report=tmp_path / name)
    assert path.read_bytes() == before


def test_an_id_column_that_was_asked_for_and_is_in_no_row_refuses(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"token_ids":[1,2]}\n', encoding="utf-8")
    assert [row.id for row in load_rows(path, "token_ids")] == [1]
    with pytest.raises(InputRefused, match="line 1: no 'request': need what --id-column names"):
        load_rows(path, "token_ids", "request")


@pytest.mark.parametrize(
    ("encoding", "said"), [("utf-16", "got UTF-16"), ("utf-8-sig", "got a byte order mark")]
)
def test_a_file_in_another_encoding_is_told_by_its_name(tmp_path: Path, encoding: str, said: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id":"a","token_ids":[1,2]}\n', encoding=encoding)
    with pytest.raises(InputRefused, match=said):
        load_rows(path, "token_ids")

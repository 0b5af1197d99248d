"""Measures `fitladder audit FILE`: ids a second and greatest memory of all its processes.

    .venv/bin/python tests/bench/loop_file.py [--rows 10000] [--ids 32768] [--processes 2] [--row-group 100]

Rows, seeded: of three, one is random, one ends in a loop, and one holds a loop inside. The file is written to
a temporary folder; the audit runs as a user types it, with --out, in a process group of its own whose
resident memory is added up every 50 ms (shared pages count once a process, so the sum is an upper bound).
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def _row(random: np.random.Generator, kind: int, ids: int) -> np.ndarray:
    row = random.integers(10, 150_000, ids, dtype=np.int32)
    if kind:
        period, onset = int(random.integers(1, 2_000)), int(random.integers(500, ids // 2))
        end = ids if kind == 1 else min(ids - 600, onset + ids // 2)
        row[onset:end] = np.resize(row[onset : onset + period], end - onset)
    return row


def write_rows(path: Path, rows: int, ids: int, row_group: int) -> None:
    """Parquet of `rows` lists of `ids` ids, in groups of `row_group` rows."""
    random = np.random.default_rng(17)
    schema = pa.schema([("id", pa.int64()), ("token_ids", pa.list_(pa.int32()))])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as out:
        for first in range(0, rows, row_group):
            numbers = range(first, min(rows, first + row_group))
            lists = [_row(random, number % 3, ids) for number in numbers]
            offsets = np.arange(len(lists) + 1, dtype=np.int32) * ids
            column = pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(lists)))
            out.write_table(pa.table([pa.array(numbers, pa.int64()), column], schema=schema))


def _resident_bytes(group: int) -> int:
    total = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(stat[2]) == group:
                total += int(stat[21]) * os.sysconf("SC_PAGE_SIZE")
    return total


def measure(path: Path, out: Path, processes: int) -> tuple[float, float, int]:
    """(wall seconds, processor seconds of all processes, greatest resident bytes) of one audit of `path`."""
    code = "from fitladder.cli.main import main; main()"
    words = [sys.executable, "-c", code, "audit", str(path), "--out", str(out)]
    began = time.perf_counter()
    with subprocess.Popen(
        [*words, "--processes", str(processes), "--json"], stdout=subprocess.PIPE, start_new_session=True
    ) as audit:
        most = 0
        while audit.poll() is None:
            most = max(most, _resident_bytes(audit.pid))
            time.sleep(0.05)
        seconds = time.perf_counter() - began
        if audit.returncode:
            raise SystemExit(audit.returncode)
        print(json.loads(audit.stdout.read())["totals"])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, used.ru_utime + used.ru_stime, most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for option, value in (("--rows", 10_000), ("--ids", 32_768), ("--processes", 2), ("--row-group", 100)):
        parser.add_argument(option, type=int, default=value)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_rows(path, asked.rows, asked.ids, asked.row_group)
        seconds, cpu_s, most = measure(path, Path(folder) / "out.parquet", asked.processes)
        ids = asked.rows * asked.ids
        print(
            f"{asked.rows} rows x {asked.ids} ids, {path.stat().st_size / 1e6:.0f} MB Parquet, "
            f"{asked.processes} processes: {seconds:.1f} s, {ids / seconds / 1e6:.1f} million ids/s, "
            f"{cpu_s:.1f} processor seconds, {ids / cpu_s / 1e6:.1f} million ids in each, "
            f"{most / 1e6:.0f} MB resident at most"
        )


if __name__ == "__main__":
    main()

"""Bare vLLM and our loop on the same cells, in one call: side_by_side.py RAW_BENCH.py OUT CELL...

CELL: overcommitted (64 wide), exact or implicit (19 wide, fitted); 48 samples of 3,072 tokens on 230 blocks
of 528. All engines are built side by side, then each generates alone. RAW_BENCH.py is the bare script; the
copy that runs waits for its turn, needs no tokenizer, and does not claim the whole device at start.
The simulator's counts stand beside the live ones. About 180 s for the engines, then 65 s a process
(implicit: 200 s).
"""

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from fitladder.capacity.pool import Pool
from fitladder.capacity.simulator import Request, simulate
from fitladder.engine.convert.geometry_model import write_geometry_model
from fitladder.study.seeded_draw import draw_integers

PROMPTS = (978, 990, 980, 986, 974, 980, 975, 985, 987, 984, 982, 983)  # the registered base arm's lengths
SAMPLES, TOKENS, BLOCKS = 48, 3_072, 230
UTILIZATION, KV_BYTES = 0.17, 6 << 30  # asked for at start; the pool is overridden
CELLS: dict[str, dict[str, Any]] = {
    "overcommitted": {"seqs": 64},
    "exact": {"seqs": 19, "sizes": [1, 2, 4, 8, 16, 19]},
    "implicit": {"seqs": 19},
}
CHANGES = (
    (
        r"gpu_memory_utilization=0\.9",
        f"skip_tokenizer_init=True, gpu_memory_utilization={UTILIZATION}, kv_cache_memory_bytes={KV_BYTES}",
    ),
    (r"(?m)^for rep in range\(", "sys.stdin.readline()\nfor rep in range("),
)


def waiting(raw: Path, place: Path) -> Path:
    """The bare script with these changes. Ends the run where it is not the script they were made for."""
    text = raw.read_text()
    for old, new in CHANGES:
        text, changed = re.subn(old, new, text)
        if changed != 1:
            sys.exit(f"{raw}: got {changed} places like {old}, need 1")
    place.write_text(text)
    return place


def simulated(cell: dict[str, Any]) -> dict[str, int]:
    requests = [Request(PROMPTS[i % len(PROMPTS)], TOKENS) for i in range(SAMPLES)]
    run = simulate(
        requests, Pool(BLOCKS - 1, 528, 3), max_num_seqs=cell["seqs"], max_num_batched_tokens=32_768
    )
    return {"preemptions": run.preemptions, "recomputed_tokens": run.recomputed_tokens, "steps": run.steps}


def lines(log: Path, word: str) -> list[dict[str, Any]]:
    found = log.read_text(errors="replace").splitlines()
    return [json.loads(line.removeprefix(word)) for line in found if line.startswith(word)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("raw", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("cells", nargs="+", choices=CELLS)
    parser.add_argument("--stop-after-s", type=float, default=570.0)
    asked = parser.parse_args()
    began = time.monotonic()
    work = asked.out / "work"
    work.mkdir(parents=True, exist_ok=True)
    span = 240_000 - 1_000
    ids = [
        [int(one) + 1_000 for one in draw_integers(f"prompt 2701 {index}", length, span)]
        for index, length in enumerate(PROMPTS)
    ]
    (work / "ids.json").write_text(json.dumps(ids))
    common = {
        "model": str(write_geometry_model("qwen3.5-4b", work / "qwen3.5-4b")),
        "prompts": str(work / "ids.json"), "blocks": BLOCKS, "n": SAMPLES, "len": TOKENS, "reps": 1,
        "utilization": UTILIZATION, "kv_bytes": KV_BYTES,
    }  # fmt: skip
    scripts = {
        "bare": waiting(asked.raw, work / "raw_waiting.py"),
        "ours": Path(__file__).with_name("raw_cell.py"),
    }
    units = [(cell, kind) for cell in asked.cells for kind in ("bare", "ours")]
    logs = {unit: work / f"{unit[0]}_{unit[1]}.log" for unit in units}
    started: dict[tuple[str, str], subprocess.Popen[bytes]] = {}
    results: dict[str, Any] = {}
    try:
        for cell, kind in units:
            words = [sys.executable, str(scripts[kind]), json.dumps(common | CELLS[cell])]
            with (
                logs[cell, kind].open("wb") as log,
                logs[cell, kind].with_suffix(".err").open("wb") as errors,
            ):
                started[cell, kind] = subprocess.Popen(
                    words, stdin=subprocess.PIPE, stdout=log, stderr=errors
                )
        for unit in units:  # built, or dead: nobody generates beside another's build
            while not lines(logs[unit], "GEOMETRY ") and started[unit].poll() is None:
                if time.monotonic() - began > asked.stop_after_s:
                    break
                time.sleep(1)
        print(f"engines built after {time.monotonic() - began:.0f} s", flush=True)
        for unit in units:
            left = asked.stop_after_s - (time.monotonic() - began)
            name = " ".join(unit)
            try:
                started[unit].communicate(b"go\n", timeout=max(1.0, left))
            except (subprocess.TimeoutExpired, BrokenPipeError) as failure:
                print(f"{name}: {type(failure).__name__}", flush=True)
                started[unit].kill()
            runs, geometry = lines(logs[unit], "RUN "), lines(logs[unit], "GEOMETRY ")
            results[name] = {"geometry": geometry, "runs": runs, "simulated": simulated(CELLS[unit[0]])}
            print(name, json.dumps(results[name]), flush=True)
    finally:
        for process in started.values():
            process.kill()
        (asked.out / "side_by_side.json").write_text(json.dumps(results, indent=1) + "\n")
    good = True
    for name, one in results.items():
        measured = [run for run in one["runs"] if run["rep"] > 0]
        good = good and bool(measured) and measured[-1]["preemptions"] == one["simulated"]["preemptions"]
        print(f"{name}: {measured[-1] if measured else 'no run'}, simulated {one['simulated']}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

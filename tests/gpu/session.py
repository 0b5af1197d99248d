"""One measured session on a GPU host: rehearsals, pools of several models, overhead. JSON into a folder.

    export PYTHONPATH=$HOME/site:$PWD/src FITLADDER_ENGINE_PYTHON=$(command -v python3)
    python3 tests/gpu/session.py exact implicit wide64 --out "$OUT"    # side by side: about 260 s
    python3 tests/gpu/session.py overhead --out "$OUT"                 # an engine is built in 120-185 s
    python3 tests/gpu/session.py pools --out "$OUT" --presets smollm2-135m qwen3-4b llama-3.1-8b qwen3.5-4b

Every part is a process of its own and is tried whatever the others did; the exit code says whether all held.
Rehearsals measure no speed, so they stand side by side: three pools of 31.4 GiB beside weights and workspace
of 12 GiB each are more than an H200 surely holds, so the third starts when it will find the others gone.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EXPERIMENT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"
REGISTERED_BLOCKS = 1949
UNREGISTERED = [  # the text model alone, and no kernel that compiles for minutes at first use
    "--arg=language_model_only=true",
    "--arg=mamba_cache_mode=none",
    "--arg=gdn_prefill_backend=triton",
    "--env=VLLM_USE_FLASHINFER_SAMPLER=0",
]
SIDE_BY_SIDE = [  # memory stated, so none is profiled while others take theirs; the pool is overridden anyway
    "--gpu-memory-utilization=0.3",
    f"--kv-cache-bytes={36 << 30}",
]
PROBE_PROMPT_MAX = 990  # the longest registered prompt of the base arm
REHEARSALS = {"exact": [], "implicit": ["--capture=implicit"], "wide64": ["--max-num-seqs=64"]}
STARTS_AFTER_S = {"wide64": 90}
POOLS = ("smollm2-135m", "qwen3-4b", "llama-3.1-8b", "qwen3.5-4b")
CLI = [sys.executable, "-c", "from fitladder.cli.main import main; main()"]


def dig(value: Any, *path: str) -> Any:
    """A value deep in a report, None where the rehearsal did not get that far."""
    for part in path:
        if isinstance(value, list):
            value = next((one for one in value if one["gate"] == part), None)
        elif value is not None:
            value = value.get(part)
    return value


def check_exact(report: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What the registered rung must show: (found, needed) by name."""
    fit = ("gates", "kv_fit", "numbers")
    return {
        "go_able": (report["go_able"], True),
        "block_size_tokens": (dig(report, "facts", "block_size_tokens"), 528),
        "kv_cache_size_tokens": (dig(report, "facts", "kv_cache_size_tokens"), 997_888),
        "mamba_groups": (dig(report, "facts", "mamba_groups"), 3),
        "required_tokens": (dig(report, *fit, "required_tokens"), 963_072),
        "margin_tokens": (dig(report, *fit, "margin_tokens"), 34_816),
        "capture_resolved": (dig(report, "facts", "capture_resolved"), [1, 2, 4, 8, 16, 19]),
        "decode_graph_mode": (dig(report, "facts", "decode_graph_mode"), "FULL"),
        "cuda_graphs": (dig(report, "gates", "cuda_graphs", "passed"), True),
        "preemptions": (dig(report, "generation", "counters", "preemptions"), 0),
    }


def check_implicit(report: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {
        "go_able": (report["go_able"], True),
        "capture_resolved": (dig(report, "facts", "capture_resolved"), [1, 2, 4, 8, 16]),
        "uncovered_widths": (dig(report, "gates", "cuda_graphs", "numbers", "uncovered_widths"), "17-19"),
    }


def check_wide64(report: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {
        "go_able": (report["go_able"], False),
        "refused_by": (
            [one["gate"] for one in report["gates"] if one["refusal"] is not None],
            ["kv_fit"],
        ),
        "capture_resolved": (dig(report, "facts", "capture_resolved"), [1, 2, 4, 8, 16, 32, 64]),
        "sampled": (report["generation"], None),
    }


CHECKS = {"exact": check_exact, "implicit": check_implicit, "wide64": check_wide64}


def rehearse(part: str, out: Path) -> bool:
    report_path = out / f"rehearse_{part}.json"
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "engine.log"
        words = [
            "rehearse", EXPERIMENT, "--rung=49152", "--model=qwen3.5-4b", "--tokens=96",
            f"--blocks-override={REGISTERED_BLOCKS}", f"--out={report_path}", f"--log={log}",
            f"--prompt-max={PROBE_PROMPT_MAX}",
        ]  # fmt: skip
        run([*CLI, *words, *UNREGISTERED, *SIDE_BY_SIDE, *REHEARSALS[part]])
        good = report_path.is_file()
        report = json.loads(report_path.read_text()) if good else {"reasons": ["no report"]}
        for name, (got, need) in CHECKS[part](report).items() if good else ():
            print(f"  {part} {name}: {got}{'' if got == need else f'  NEED {need}'}", flush=True)
            good = good and got == need
        if not good:
            print("  " + "\n  ".join(report["reasons"]), flush=True)
            if log.is_file():
                shutil.copy(log, out / f"rehearse_{part}.log")
    return good


def rehearsals(parts: Sequence[str], out: Path) -> dict[str, bool]:
    """Rehearse the parts side by side; which held."""

    def later(part: str) -> bool:
        time.sleep(STARTS_AFTER_S.get(part, 0) if len(parts) > 2 else 0)
        return rehearse(part, out)

    with ThreadPoolExecutor(max_workers=len(parts)) as threads:
        return dict(zip(parts, threads.map(later, parts), strict=True))


def pools(out: Path, presets: Sequence[str] = POOLS) -> bool:
    """Predicted against live, without an override; block size exact and pool within 2 %."""
    path = out / "pools.json"
    run([sys.executable, str(Path(__file__).with_name("pool.py")), str(path), *presets])
    good = path.is_file()
    for live in json.loads(path.read_text()) if good else ():
        if "failed" in live:
            good = False
            continue
        length = live["max_model_len_tokens"]
        words = ["--gpu=h200", f"--budget={length // 2}", "--prompt-max=1060", f"--max-model-len={length}"]
        predicted = json.loads(run([*CLI, "plan", f"--model={live['model']}", *words, "--json"]))
        blocks, size = live["num_blocks"], live["block_size_tokens"]
        off = predicted["pool_blocks"] / blocks - 1
        print(
            f"  {live['model']}: block {size} predicted {predicted['block_size_tokens']}, "
            f"pool {blocks} predicted {predicted['pool_blocks']} ({off:+.2%})",
            flush=True,
        )
        good = good and predicted["block_size_tokens"] == size and abs(off) <= 0.02
    return good


def overhead(out: Path) -> bool:
    """Our runner against bare generate; the median ratio may be 1.01 at most."""
    path, script = out / "overhead.json", ROOT / "tests/bench/bench_overhead.py"
    with (out / "overhead.log").open("w") as log:
        run([sys.executable, str(script), "--device=cuda", f"--out={path}"], log)
    if not path.is_file():
        return False
    found = json.loads(path.read_text())
    print(f"  overhead: {found['wall']['median_ratio']:.4f}, 95 % {found['wall']['interval_95']}", flush=True)
    return bool(found["wall"]["median_ratio"] <= 1.01)


def run(command: list[str], log: Any = None) -> str:
    """One child to its end; its standard output, or nothing where that goes to `log`."""
    began = time.monotonic()
    done = subprocess.run(
        command,
        cwd=ROOT,
        stdout=log or subprocess.PIPE,
        stderr=subprocess.STDOUT if log else subprocess.PIPE,
        text=True,
        check=False,
    )
    took = f"{time.monotonic() - began:.0f} s, exit {done.returncode}"
    print(f"  [{took}] {' '.join(command[-4:])}", flush=True)
    if log is None and done.returncode not in (0, 5):
        print((done.stdout or "")[-2000:], (done.stderr or "")[-2000:], flush=True)
    return done.stdout or ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=[*REHEARSALS, "pools", "overhead"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--presets", nargs="*", default=POOLS)
    asked = parser.parse_args()
    os.environ.setdefault("FITLADDER_ENGINE_PYTHON", sys.executable)
    asked.out.mkdir(parents=True, exist_ok=True)
    together = [part for part in asked.parts if part in REHEARSALS]
    good = rehearsals(together, asked.out) if together else {}
    for part in asked.parts:
        if part == "pools":
            good[part] = pools(asked.out, asked.presets)
        elif part == "overhead":
            good[part] = overhead(asked.out)
    print(json.dumps(good))
    return 0 if all(good.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

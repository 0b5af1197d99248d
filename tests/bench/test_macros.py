"""How fast is the macro domain? Figures only; `pytest -s` shows them."""

import time

import numpy as np

from fitladder.domains.macros.depth import DepthIndex
from fitladder.domains.macros.program import execute
from fitladder.domains.macros.tasks import TaskShape
from fitladder.domains.macros.taskset import render_task_set


def best_of(count, work):
    seconds = []
    for _ in range(count):
        began = time.perf_counter()
        out = work()
        seconds.append(time.perf_counter() - began)
    return min(seconds), out


def test_depth_four_index():
    seconds, index = best_of(3, DepthIndex.build)
    what = f"11,110 programs x 48 probes, {len(index.depth_of):,} behaviours"
    print(f"\ndepth-4 index: {what}: {seconds * 1e3:.1f} ms")
    assert len(index.depth_of) > 1


def test_a_million_executions():
    states = np.random.default_rng(1).integers(0, 17, (1_000_000, 5)).astype(np.int8)
    seconds, out = best_of(3, lambda: execute(("PREFIX", "MUL2", "DIFF", "SORT", "NEG"), states))
    print(f"\nfive primitives on 1,000,000 inputs: {seconds * 1e3:.0f} ms")
    assert out.shape == states.shape


def test_task_set():
    seconds, files = best_of(2, lambda: render_task_set(1, TaskShape()))
    print(f"\ntask set of 12 records an arm: {seconds * 1e3:.0f} ms")
    assert len(files) == 4

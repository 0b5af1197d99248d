"""Cost of searching periodic runs anywhere in a row of 32,768 ids, hard rows among them; figures only."""

import time
from collections.abc import Iterator

import numpy as np

from fitladder.audit.loop_runs import find_runs
from fitladder.records.settings import LoopRule

IDS = 32_768
RULE = LoopRule(tail_tokens=8_192, max_period_tokens=2_048, min_match_rate="0.99", min_budget_tokens=1)


def _fibonacci() -> np.ndarray:
    older, word = [0], [0, 1]
    while len(word) < IDS:
        older, word = word, word + older
    return np.array(word[:IDS], dtype=np.int32)


def _short_of_the_rate(random: np.random.Generator, period: int) -> np.ndarray:
    """A loop whose windows hold about one changed id more than the rate allows, at each multiple, too."""
    ids = np.resize(random.integers(0, 150_000, period, dtype=np.int32), IDS).copy()
    allowed = (8_192 - period) // 100
    at = np.arange(IDS)[:: (8_192 - period) // (allowed // 2 + 1)][1:]
    ids[at] = 200_000 + np.arange(len(at))
    return ids


def _rows() -> Iterator[tuple[str, np.ndarray]]:
    random = np.random.default_rng(17)
    draw = random.integers(0, 150_000, IDS, dtype=np.int32)
    inside = draw.copy()
    inside[20_000:32_000] = np.resize(draw[:10], 12_000)
    yield "random ids", draw
    yield "period 10 inside", inside
    yield "period 555 to the end", np.concatenate([draw[:10_000], np.resize(draw[:555], IDS - 10_000)])
    yield "equal ids", np.ones(IDS, dtype=np.int32)
    yield "period 2,049, one beyond", np.resize(draw[:2_049], IDS)
    yield "Fibonacci word", _fibonacci()
    yield "Thue-Morse word", np.array([at.bit_count() & 1 for at in range(IDS)], dtype=np.int32)
    yield "two random letters", random.integers(0, 2, IDS, dtype=np.int32)
    yield "period 700, rate missed", _short_of_the_rate(random, 700)
    yield "period 10, rate missed", _short_of_the_rate(random, 10)
    yield "period 1, rate missed", _short_of_the_rate(random, 1)


def test_runs_anywhere_on_hard_rows() -> None:
    print()
    for name, ids in _rows():
        spent = []
        for _ in range(5):
            began = time.process_time()
            runs = find_runs(ids, RULE)
            spent.append(time.process_time() - began)
        print(f" {name:26} {min(spent) * 1e3:7.2f} ms processor time, {len(runs)} runs")

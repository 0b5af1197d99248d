"""Figures of audited phases as JSON and CSV, for `dvc metrics show` and `dvc plots`.

Plain numbers for reading and comparing; no decision is made from them.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fitladder.canonical import canonical_bytes
from fitladder.files.atomic import write_output
from fitladder.records.generation_time import tokens_per_s

__all__ = ["PhaseFigures", "RateFigure", "render_metrics", "render_onsets", "render_rates", "write_figures"]


@dataclass(frozen=True)
class RateFigure:
    """One termination rate: contacts of the phase's samples, beside its registered threshold in percent."""

    name: str
    contacts: int
    threshold_percent: float


@dataclass(frozen=True)
class PhaseFigures:
    """One audited phase. `onsets`: (first token of the loop, its period in tokens); empty where not kept."""

    thinking_budget_tokens: int
    phase: str
    samples: int
    rates: tuple[RateFigure, ...]
    is_adequate: bool
    sampled_tokens: int
    generation_s: float
    preemptions: int | None
    onsets: tuple[tuple[int, int], ...] = ()

    @property
    def label(self) -> str:
        """`probe@49152`."""
        return f"{self.phase}@{self.thinking_budget_tokens}"


def render_metrics(phases: Sequence[PhaseFigures]) -> bytes:
    """JSON by phase: counts, rates in percent, tokens a second."""
    metrics: dict[str, dict[str, Any]] = {}
    for one in phases:
        row: dict[str, Any] = {"samples": one.samples, "adequate": one.is_adequate}
        for rate in one.rates:
            row[f"{rate.name.replace(' ', '_')}_percent"] = _percent(rate.contacts, one.samples)
        row["sampled_tokens"] = one.sampled_tokens
        speed = tokens_per_s(one.sampled_tokens, one.generation_s)
        row["tokens_per_s"] = None if speed is None else round(speed, 3)
        if one.preemptions is not None:
            row["preemptions"] = one.preemptions
        metrics[one.label] = row
    return canonical_bytes(metrics)


def render_rates(phases: Sequence[PhaseFigures]) -> bytes:
    """CSV: one line a rate of a phase."""
    return _csv(
        ("rate", "percent", "threshold_percent"),
        (
            (f"{one.label} {rate.name}", _percent(rate.contacts, one.samples), rate.threshold_percent)
            for one in phases
            for rate in one.rates
        ),
    )


def render_onsets(phases: Sequence[PhaseFigures]) -> bytes:
    """CSV: one line a loop, where it began and its period."""
    return _csv(
        ("phase", "onset_token", "period_tokens"),
        ((one.label, onset, period) for one in phases for onset, period in one.onsets),
    )


def write_figures(folder: Path, phases: Sequence[PhaseFigures]) -> None:
    """`metrics.json`, `rates.csv` and `onsets.csv` in an audits folder. Raises LineageError."""
    write_output(folder / "metrics.json", render_metrics(phases))
    write_output(folder / "rates.csv", render_rates(phases))
    write_output(folder / "onsets.csv", render_onsets(phases))


def _percent(contacts: int, samples: int) -> float | None:
    return round(100 * contacts / samples, 4) if samples else None


def _csv(columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue().encode()

"""Thinking, or looping? The loop page for anybody's token lists, outside any experiment.

Every row was taken as cut at its budget. The page shows ids' repetition and nothing of what they mean.
"""

import shlex
from collections.abc import Sequence

from fitladder.audit.token_files import ForeignSample
from fitladder.records.settings import LoopRule
from fitladder.report.charts.termination import period_chart
from fitladder.report.charts.timeline import timeline_chart
from fitladder.report.document import (
    Block,
    Bullets,
    Commands,
    Document,
    Facts,
    FigureBlock,
    Para,
    Section,
    Table,
    Tone,
)
from fitladder.report.html import render_html
from fitladder.report.sections.audit import timeline_words
from fitladder.report.view import Sample, SampleKind
from fitladder.report.words import count, percent

__all__ = ["render_loop_page"]

WORST = 20


def render_loop_page(
    samples: Sequence[ForeignSample], rule: LoopRule, *, source: str, column: str, sha256: str
) -> str:
    """One self-contained HTML page. `source` names the file that was read, `sha256` its bytes."""
    return render_html(_compose(samples, rule, source, column, sha256))


def _compose(
    samples: Sequence[ForeignSample], rule: LoopRule, source: str, column: str, sha256: str
) -> Document:
    loops = [sample for sample in samples if sample.period_tokens is not None]
    short = sum(sample.match_rate is None for sample in samples)
    unresolved = len(samples) - len(loops) - short
    burned = sum(sample.tokens_after_onset or 0 for sample in loops)
    total = sum(sample.tokens for sample in samples)
    tone: Tone = "bad" if loops else "open"
    return Document(
        title="Thinking, or looping?",
        subtitle=source,
        verdict=f"{len(loops)} of {len(samples)} end in a loop",
        tone=tone,
        lead=f"{count(burned)} of {count(total)} tokens ({percent(burned / (total or 1))}) came after a loop "
        f"had begun. {unresolved} unresolved, {short} shorter than the tail.",
        strip=(
            ("Rows", count(len(samples))),
            ("Loops", count(len(loops))),
            ("Unresolved", count(unresolved)),
            ("Too short to tell", count(short)),
            ("Tokens after onset", count(burned)),
        ),
        warnings=("No one may conclude that an unresolved row does not loop: see the end of this page.",),
        sections=(
            Section("timeline", "Where the loops began", _pictures(samples, loops, rule)),
            Section("worst", "Rows that burned most", (_worst(loops),)),
            Section("rule", "How this was judged", _rule(rule, source, column, sha256)),
            Section("limits", "What no one may conclude", (Bullets(_limits(rule)),)),
        ),
        home=None,
        made_by="fitladder audit",
    )


def _pictures(
    samples: Sequence[ForeignSample], loops: Sequence[ForeignSample], rule: LoopRule
) -> tuple[Block, ...]:
    rows = [_sample(sample) for sample in samples]
    periods = tuple(sorted(sample.period_tokens for sample in loops if sample.period_tokens is not None))
    timeline = timeline_chart("rows in file order", rows, None, name="timeline")
    histogram = period_chart([("all rows", periods)], rule.max_period_tokens)
    return (Para(timeline_words()), FigureBlock((timeline, histogram)))


def _sample(sample: ForeignSample) -> Sample:
    kind: SampleKind = "unresolved contact"
    if sample.period_tokens is not None:
        kind = "periodic loop"
    elif sample.match_rate is None:
        kind = "too short to tell"
    return Sample(
        sample_id=str(sample.id),
        kind=kind,
        thinking_tokens=sample.tokens,
        period_tokens=sample.period_tokens,
        matched=sample.matched_tokens,
        compared=sample.compared_tokens,
        onset_token=sample.onset_token,
        burned_tokens=sample.tokens_after_onset,
    )


def _worst(loops: Sequence[ForeignSample]) -> Block:
    if not loops:
        return Para("No row ends in a loop by this rule.")
    ordered = sorted(loops, key=lambda sample: -(sample.tokens_after_onset or 0))[:WORST]
    return Table(
        f"The {len(ordered)} loops with most tokens after the onset",
        ("id", "tokens", "period", "match", "onset token", "tokens after onset"),
        tuple(
            (
                str(sample.id),
                count(sample.tokens),
                count(sample.period_tokens),
                f"{sample.matched_tokens}/{sample.compared_tokens}",
                count(sample.onset_token),
                count(sample.tokens_after_onset),
            )
            for sample in ordered
        ),
        numeric=frozenset({1, 2, 3, 4, 5}),
    )


def _rule(rule: LoopRule, source: str, column: str, sha256: str) -> tuple[Block, ...]:
    command = (
        f"fitladder audit {shlex.quote(source)} --column {shlex.quote(column)} --tail {rule.tail_tokens} "
        f"--max-period {rule.max_period_tokens} --min-match {rule.min_match_rate}"
    )
    return (
        Para(
            "The last tokens of each row are compared with themselves, shifted by every period. The row "
            "loops if one shift matches often enough, by integers; the best-matching period is reported, "
            "the smallest on a tie."
        ),
        Facts(
            (
                ("Tail compared", f"{count(rule.tail_tokens)} tokens"),
                ("Periods searched", f"1 to {count(rule.max_period_tokens)} tokens"),
                ("Match rate needed", percent(rule.min_match_rate.value, 2)),
                ("File", source),
                ("File, SHA-256", sha256),
            )
        ),
        Commands(((command, "gives the same figures again from the same bytes"),)),
    )


def _limits(rule: LoopRule) -> tuple[str, ...]:
    return (
        f"That an unresolved row does not loop. No period up to {count(rule.max_period_tokens)} tokens "
        "repeated often enough in its tail; a longer unit, or a loop with more variation, stays unseen.",
        "That a row shorter than the tail is sound. Nothing is claimed about it.",
        "That tokens before an onset were useful. Only repetition was looked at; no word was read.",
        "Anything about a registered experiment. Every row was taken as cut at its budget.",
    )

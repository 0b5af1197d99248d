"""The loop page for anybody's token lists, outside any experiment.

It shows the tail rule's result, runs anywhere in a row and ends of rows, each apart; no meaning of an id.
"""

import shlex
from collections.abc import Sequence

from fitladder.audit.sample_totals import SampleTotals
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
    samples: Sequence[ForeignSample],
    rule: LoopRule,
    *,
    source: str,
    column: str,
    sha256: str,
    options: Sequence[str] = (),
) -> str:
    """One self-contained HTML page.

    `source` names the file or files that were read, `sha256` their bytes (of several: of their list, as
    sha256sum prints it), `options` the further words of the command that was typed.
    """
    how = _rule(rule, source, column, sha256, options)
    return render_html(_compose(samples, rule, source, how))


def _compose(
    samples: Sequence[ForeignSample], rule: LoopRule, source: str, how: tuple[Block, ...]
) -> Document:
    totals = SampleTotals()
    totals.add(samples)
    loops = [sample for sample in samples if sample.period_tokens is not None]
    short, unresolved = totals.all_of("shorter_than_the_tail"), totals.all_of("unresolved")
    natural = totals.by_kind["natural"].rows
    burned, total = totals.tokens_after_onset, totals.all_of("tokens")
    tone: Tone = "bad" if loops else "open"
    return Document(
        title="Thinking, or looping?",
        subtitle=source,
        verdict=f"{len(loops)} of {totals.judged_rows} end in a loop",
        tone=tone,
        lead=f"{count(burned)} of {count(total)} tokens ({percent(burned / (total or 1))}) came after a loop "
        f"had begun. {unresolved} unresolved, {short} shorter than the tail."
        + (f" {natural} further rows ended by themselves." if natural else ""),
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
            Section("anywhere", "Runs anywhere in a row", _anywhere(samples, totals)),
            Section("ends", "How the rows ended", _ends(totals)),
            Section("rule", "How this was judged", how),
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
    elif sample.end == "natural":
        kind = "complete"
    elif sample.match_rate is None:
        kind = "too short to tell"
    return Sample(
        sample_id=str(sample.id),
        kind=kind,
        thinking_tokens=sample.judged_tokens,
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


def _anywhere(samples: Sequence[ForeignSample], totals: SampleTotals) -> tuple[Block, ...]:
    """Runs by the same figures, at any place of a row: a result of its own, in no count above."""
    runs = [(sample, run) for sample in samples for run in sample.runs]
    words = Para(
        f"{count(totals.runs)} periodic runs in {count(totals.all_of('rows_with_runs'))} of "
        f"{count(len(samples))} rows, {count(totals.burned_tokens)} tokens; a forced close ended "
        f"{count(totals.runs_ended_by_close)}. This is the test of the tail applied to every window of a "
        "row. It is a result of its own, and no run counts above."
    )
    if not runs:
        return (words,)
    ordered = sorted(runs, key=lambda pair: -pair[1].burned_tokens)[:WORST]
    return (
        words,
        Table(
            f"The {len(ordered)} longest runs",
            ("id", "first token", "end token", "period", "match", "tokens", "ended by", "row ended"),
            tuple(
                (
                    str(sample.id),
                    count(run.start_token),
                    count(run.end_token),
                    count(run.period_tokens),
                    f"{run.matched_tokens}/{run.compared_tokens}",
                    count(run.burned_tokens),
                    "forced close"
                    if sample.is_ended_by_close(run)
                    else "end of row"
                    if run.end_token == sample.tokens
                    else "other tokens",
                    sample.end,
                )
                for sample, run in ordered
            ),
            numeric=frozenset({1, 2, 3, 4, 5}),
        ),
    )


def _ends(totals: SampleTotals) -> tuple[Block, ...]:
    rows = tuple(
        (
            kind,
            count(found.rows),
            count(found.tokens),
            "not judged" if kind == "natural" else f"{found.loops} of {found.rows}",
            "not judged" if kind == "natural" else f"{found.unresolved} of {found.rows}",
            "not judged" if kind == "natural" else f"{found.shorter_than_the_tail} of {found.rows}",
            f"{found.rows_with_runs} of {found.rows}",
        )
        for kind, found in totals.by_kind.items()
        if found.rows
    )
    heads = ("end", "rows", "tokens", "loops", "unresolved", "too short", "runs anywhere")
    return (
        Table("Rows by how they ended", heads, rows, numeric=frozenset({1, 2, 3, 4, 5, 6})),
        Para(
            f"Padding at the end of {count(totals.padded_rows)} rows, {count(totals.padding_tokens)} tokens, "
            "is in no figure. A row of which nothing is known is taken as cut."
        ),
    )


def _rule(rule: LoopRule, source: str, column: str, sha256: str, options: Sequence[str]) -> tuple[Block, ...]:
    more = "".join(f" {shlex.quote(word)}" for word in options)
    command = (
        f"fitladder audit {shlex.quote(source)} --column {shlex.quote(column)} --tail {rule.tail_tokens} "
        f"--max-period {rule.max_period_tokens} --min-match {rule.min_match_rate}{more}"
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
        "Anything about a registered experiment. Ends of rows are as the file states them, or taken as cut.",
    )

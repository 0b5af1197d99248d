"""In which order does a page tell an experiment? From one view to one document.

The status line comes first and with it what no one may conclude; then the authored words, the results at a
glance, the protocol and the record, down to the hashes and the commands that prove them.
"""

from dataclasses import fields

from fitladder.report.compose_audit import audit_section
from fitladder.report.compose_record import (
    approvals_section,
    artifacts_section,
    gates_section,
    ladder_section,
    log_section,
    protocol_section,
)
from fitladder.report.compose_results import glance_section
from fitladder.report.document import Bullets, Document, Facts, Para, Section, Tone
from fitladder.report.view import ExperimentView, Narrative
from fitladder.report.words import no_one_may_conclude, short_sha

__all__ = ["compose"]

UNFINISHED = "This page is unfinished, and no account of the experiment."
REHEARSAL = (
    "This is a rehearsal of the machinery, not science: few records, small K, a small model and its own "
    "short loop rule. No number on this page says anything about a model."
)


def compose(view: ExperimentView) -> Document:
    """The whole page of one experiment."""
    words = view.narrative
    return Document(
        title=words.title,
        subtitle=view.experiment_id,
        verdict=view.verdict,
        tone=_tone(view),
        lead=view.verdict_reason,
        strip=(
            ("State", view.state),
            ("Rung reached", view.rung_reached),
            ("Review", view.review),
            ("Source", view.source),
            ("Binding", short_sha(view.binding_sha256)),
        ),
        warnings=_warnings(view),
        sections=(
            Section(
                "programs",
                "Research programs and closest near-duplicate",
                (
                    Facts(
                        (
                            ("Primary program", words.program_primary),
                            ("Secondary program", words.program_secondary),
                            ("Closest near-duplicate", words.near_duplicate),
                            ("What differs from it", words.near_duplicate_difference),
                        )
                    ),
                ),
            ),
            Section("idea", "The one idea", tuple(map(Para, words.idea))),
            Section("question", "The question", tuple(map(Para, words.question))),
            Section("found", "What was found", tuple(map(Para, words.found))),
            Section("matters", "Why it matters", tuple(map(Para, words.matters))),
            glance_section(view),
            protocol_section(view),
            approvals_section(view),
            gates_section(view),
            audit_section(view),
            ladder_section(view),
            Section("limits", "What no one may conclude", (Bullets(words.may_not_conclude),)),
            artifacts_section(view),
            log_section(view),
        ),
    )


def _tone(view: ExperimentView) -> Tone:
    if view.selection is not None:
        return "good" if view.selection.passed else "bad"
    return "bad" if view.state in ("stopped", "terminal") else "open"


def _unwritten(words: Narrative) -> tuple[str, ...]:
    """The authored fields that still hold the starter's words, by name."""
    found = []
    for item in fields(words):
        value = getattr(words, item.name)
        if any(
            text.rstrip(".").casefold() == "to write"
            for text in (value if isinstance(value, tuple) else (value,))
        ):
            found.append(item.name)
    return tuple(found)


def _warnings(view: ExperimentView) -> tuple[str, ...]:
    rehearsal = (REHEARSAL,) if view.narrative.kind == "rehearsal" else ()
    blank = _unwritten(view.narrative)
    unfinished = (f"{UNFINISHED} Nobody wrote: {', '.join(blank)}.",) if blank else ()
    if "may_not_conclude" in blank:
        return (*unfinished, *rehearsal)
    return (*unfinished, *rehearsal, no_one_may_conclude(view.narrative.may_not_conclude[0]))

"""Page of one experiment: its sections in order, rendered as HTML and Markdown.

The status line comes first and with it what no one may conclude; then the authored words, the results at a
glance, the protocol and the record, down to the hashes and the commands that prove them.
"""

from dataclasses import fields
from pathlib import Path

from fitladder.records.registry import Registry
from fitladder.report.document import Bullets, Document, Facts, Para, Section, Tone
from fitladder.report.experiment_view import load_view
from fitladder.report.html import render_html
from fitladder.report.markdown import render_markdown
from fitladder.report.sections.approvals import approvals_section
from fitladder.report.sections.artifacts import artifacts_section
from fitladder.report.sections.audit import audit_section
from fitladder.report.sections.gates import gates_section
from fitladder.report.sections.ladder import ladder_section
from fitladder.report.sections.protocol import protocol_section
from fitladder.report.sections.results import results_section
from fitladder.report.sections.running_log import log_section
from fitladder.report.view import ExperimentView, Narrative
from fitladder.report.words import no_one_may_conclude, short_sha

__all__ = ["build_report", "experiment_document", "render_report"]

UNFINISHED = "This page is unfinished, and no account of the experiment."
REHEARSAL = (
    "This is a rehearsal of the machinery, not science: few records, small K, a small model and its own "
    "short loop rule. No number on this page says anything about a model."
)


def build_report(experiment_id: str, data_dir: Path, registry: Registry) -> tuple[str, str]:
    """(HTML, Markdown) of one experiment's page.

    Args:
        experiment_id: a registered experiment.
        data_dir: the data folder that holds its bundles, audits, approvals, narrative and log.
        registry: params.yaml as it was loaded.

    Raises as `load_view` does.
    """
    return render_report(load_view(experiment_id, data_dir, registry))


def render_report(view: ExperimentView) -> tuple[str, str]:
    """(HTML, Markdown) of a loaded view; the same view gives the same bytes."""
    document = experiment_document(view)
    return render_html(document), render_markdown(document)


def experiment_document(view: ExperimentView) -> Document:
    """The document of one experiment, in the order in which the page tells it."""
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
            results_section(view),
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

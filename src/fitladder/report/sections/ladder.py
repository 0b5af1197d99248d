"""Ladder section: each decision, the selection, and the semantic gates of a selected matrix."""

from fitladder.report.document import Block, Callout, Facts, Heading, Para, Section, Table, Tone
from fitladder.report.view import ExperimentView, SemanticResults
from fitladder.report.words import count

__all__ = ["ladder_section"]


def ladder_section(view: ExperimentView) -> Section:
    """Each decision, then the end."""
    blocks: list[Block] = []
    if view.decisions:
        blocks.append(
            Table(
                "Decisions in ladder order",
                ("phase", "outcome", "why", "what that authorises"),
                tuple((item.subject, item.outcome, item.reason, item.next_step) for item in view.decisions),
            )
        )
    end = view.selection
    if end is None:
        tone: Tone = "bad" if view.state == "stopped" else "open"
        blocks.append(Callout(f"No selection was made. {view.verdict_reason}", tone))
    elif end.passed:
        blocks.append(
            Callout(f"Selected: the rung of {count(end.selected_budget_tokens)} tokens. {end.reason}", "good")
        )
    else:
        blocks.append(Callout(f"Terminal: pass: false, selected: null. {end.reason}", "bad"))
    if end is not None and end.sha256:
        blocks.append(Facts((("Selection, SHA-256", end.sha256),)))
    if view.semantic_results is not None:
        blocks += _answers(view.semantic_results)
    blocks.append(Para("No phase advances by itself: each needs its own GO, and nothing crosses a rung."))
    return Section("ladder", "Ladder decision", tuple(blocks))


def _answers(found: SemanticResults) -> list[Block]:
    """The semantic gates; one sentence where no answer was read."""
    blocks: list[Block] = [Heading("Semantic gates")]
    if not found.gates:
        return [*blocks, Callout(found.sentence, "open")]
    return [
        *blocks,
        Callout(found.sentence, "good" if found.passed else "bad"),
        Table("The three gates", ("gate", "got", "need", "outcome"), found.gates),
        Table("The two arms", ("arm", "answers parsed", "reuse tasks", "no-reuse tasks"), found.arms),
    ]

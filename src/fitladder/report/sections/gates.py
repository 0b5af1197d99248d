"""Gates section: refused widths, then the figures of every live gate that passed."""

from fitladder.report.document import Block, Callout, Para, Section, Table
from fitladder.report.view import ExperimentView

__all__ = ["gates_section"]


def gates_section(view: ExperimentView) -> Section:
    """The live gates of every phase that got as far as an engine."""
    blocks: list[Block] = []
    for plan in view.refused_widths:
        blocks.append(Callout(f"Any {plan.label} is refused before an engine is built. {plan.reason}", "bad"))
    passed = [phase for phase in view.phases if phase.gates]
    if passed:
        blocks.append(
            Para(
                "Each gate ran on the live engine, after it was built and before a token was sampled. "
                "A refusal is an infrastructure failure, never a result."
            )
        )
    else:
        blocks.append(Callout("Not run: no engine was built yet.", "open"))
    for phase in passed:
        blocks.append(
            Table(
                f"Gates of the {phase.label}: all passed",
                ("gate", "figure", "value"),
                tuple((gate.name, name, value) for gate in phase.gates for name, value in gate.numbers),
                folded=True,
            )
        )
    return Section("gates", "Gates", tuple(blocks))

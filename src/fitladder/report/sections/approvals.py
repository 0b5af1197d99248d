"""GO history section: the approval chain, oldest first, with how each name is proved."""

from fitladder.report.document import Block, Callout, Section, Table
from fitladder.report.view import ExperimentView

__all__ = ["approvals_section"]


def approvals_section(view: ExperimentView) -> Section:
    """Who asked, who decided, and how sure we are who that was."""
    blocks: list[Block] = []
    if view.approvals_note:
        blocks.append(Callout(view.approvals_note, "note"))
    if view.approvals:
        blocks.append(
            Table(
                "The approval chain, oldest first; a GO is named by the digest that its receipt names",
                (
                    "no.",
                    "entry",
                    "phase",
                    "recorded",
                    "requester",
                    "reviewer",
                    "identity",
                    "window",
                    "used for",
                    "notes",
                    "SHA-256",
                ),
                tuple(
                    (
                        str(line.sequence),
                        line.kind,
                        line.phase,
                        line.recorded,
                        line.requester,
                        line.reviewer,
                        line.identity,
                        line.window,
                        line.used_for,
                        line.notes,
                        line.sha256,
                    )
                    for line in view.approvals
                ),
                numeric=frozenset({0}),
            )
        )
    elif view.source == "verified bundles":
        blocks.append(Callout("No GO was asked for yet.", "open"))
    return Section("approvals", "GO history", tuple(blocks))

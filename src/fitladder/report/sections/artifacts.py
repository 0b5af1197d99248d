"""Artifacts section: every file by size and SHA-256, and the commands that re-verify the page."""

from fitladder.report.document import Block, Callout, Commands, Heading, Section, Table
from fitladder.report.view import ExperimentView
from fitladder.report.words import byte_size

__all__ = ["artifacts_section"]


def artifacts_section(view: ExperimentView) -> Section:
    """Every file by size and hash, and what to type to prove this page."""
    rows = []
    for phase in view.phases:
        rows += [
            (
                f"{phase.label}, attempt {one.number}, interrupted",
                one.preflight.name,
                byte_size(one.preflight.bytes),
                one.preflight.sha256,
            )
            for one in phase.interrupted
        ]
        rows += [(phase.label, item.name, byte_size(item.bytes), item.sha256) for item in phase.files]
    rows += [(phase.label, "audit", "", phase.audit_sha256) for phase in view.phases if phase.audit_sha256]
    rows += [("experiment", item.name, byte_size(item.bytes), item.sha256) for item in view.files]
    blocks: list[Block] = [
        Table("Artifacts", ("of", "file", "size", "SHA-256"), tuple(rows))
        if rows
        else Callout("Not run: there is no artifact yet.", "open"),
        Heading("Check it yourself"),
        Commands(view.commands),
    ]
    return Section("artifacts", "Artifacts and how to re-verify them", tuple(blocks))

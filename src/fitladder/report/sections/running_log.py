"""Running log section: the chained lines, or the command that appends one."""

from fitladder.report.document import Commands, Para, Section, Table
from fitladder.report.view import ExperimentView

__all__ = ["log_section"]


def log_section(view: ExperimentView) -> Section:
    """The running log, append-only and chained."""
    if not view.log:
        command = f'fitladder log {view.experiment_id} "text"'
        return Section(
            "log", "Running log", (Para("Nothing was logged."), Commands(((command, "appends a line"),)))
        )
    return Section(
        "log",
        "Running log",
        (
            Table(
                "Append-only; each line names the hash of the one before",
                ("no.", "recorded", "author", "text", "SHA-256"),
                tuple((str(x.sequence), x.recorded, x.author, x.text, x.sha256) for x in view.log),
                numeric=frozenset({0}),
            ),
        ),
    )

"""Stage report@X: the page of one experiment and its Markdown twin, from what the stages before it made."""

from pathlib import Path

from fitladder.files.atomic import write_output
from fitladder.records.registry import Registry
from fitladder.registry.data_paths import report_paths
from fitladder.report.experiment_page import build_report

__all__ = ["make_report"]


def make_report(registry: Registry, experiment_id: str, data_dir: Path) -> str:
    """Write `data/reports/X.html` and `X.md`. Raises as build_report does."""
    html, markdown = build_report(experiment_id, data_dir, registry)
    page, twin = report_paths(data_dir, experiment_id)
    write_output(page, html.encode())
    write_output(twin, markdown.encode())
    return f"{experiment_id}: {page}"

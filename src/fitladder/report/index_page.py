"""Page over all registered experiments and studies, whatever state each is in.

An experiment whose records refuse keeps its row, with the refusal in it: an index never hides one.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from fitladder.errors import FitladderError
from fitladder.records.registry import Registry
from fitladder.report.comparisons import phase_comparisons
from fitladder.report.document import Block, Callout, Document, Para, Section, Table
from fitladder.report.experiment_view import load_view
from fitladder.report.html import render_html
from fitladder.report.markdown import render_markdown
from fitladder.report.study_page import study_document, study_folders, study_page_name
from fitladder.report.view import Comparison, ExperimentView
from fitladder.report.words import count, fixed, short_sha

__all__ = ["build_index", "index_document"]


WHOLE = "Every record reads whole."


def build_index(
    data_dir: Path, registry: Registry, loaded: Mapping[str, ExperimentView] = MappingProxyType({})
) -> tuple[str, str]:
    """(HTML, Markdown) of the index. It refuses nothing: a refusal becomes the row of its experiment.

    Args:
        data_dir: the data folder.
        registry: params.yaml as it was loaded.
        loaded: views that the caller holds, by experiment; their bundles are not verified once more.
    """
    views: dict[str, ExperimentView | FitladderError] = {}
    for experiment_id in registry.experiments:
        try:
            views[experiment_id] = loaded.get(experiment_id) or load_view(experiment_id, data_dir, registry)
        except FitladderError as error:
            views[experiment_id] = error
    studies = {folder: _study(folder) for folder in study_folders(data_dir)}
    document = index_document(views, studies)
    return render_html(document), render_markdown(document)


def index_document(
    views: dict[str, ExperimentView | FitladderError], studies: dict[Path, tuple[str, str]]
) -> Document:
    """The index.

    Args:
        views: the view of each experiment, or its refusal, in registered order.
        studies: (title, verdict) of each study folder.
    """
    refused = [name for name, view in views.items() if isinstance(view, FitladderError)]
    phases = [
        row
        for view in views.values()
        if isinstance(view, ExperimentView)
        for row in phase_comparisons(view.experiment_id, view.phases)
    ]
    return Document(
        title="Experiments",
        subtitle="params.yaml",
        verdict=f"{len(views)} experiments",
        tone="bad" if refused else "note",
        lead=f"Refused: {', '.join(refused)}." if refused else WHOLE,
        strip=(),
        warnings=("No one may pool rows of different experiments: each is a protocol of its own.",),
        sections=(
            Section(
                "experiments",
                "Where each one stands",
                (
                    Table(
                        "Registered experiments",
                        ("experiment", "state", "rung reached", "verdict", "review", "binding"),
                        tuple(_row(name, view) for name, view in views.items()),
                        links=tuple(
                            None if isinstance(view, FitladderError) else f"{name}.html"
                            for name, view in views.items()
                        ),
                    ),
                ),
            ),
            Section("studies", "Throughput studies", (_studies(studies),)),
            Section(
                "phases",
                "Every phase that generated",
                (
                    Para(
                        "Descriptive only: each row cites its audit by the first digits of its hash, its "
                        "page has them all. Nothing is summed over rows."
                    ),
                    Table("Phases, in registered order", PHASE_COLUMNS, tuple(map(_phase, phases)))
                    if phases
                    else Callout("No phase has run yet.", "open"),
                ),
            ),
        ),
        home=None,
    )


def _studies(studies: dict[Path, tuple[str, str]]) -> Block:
    if not studies:
        return Callout("No study is registered.", "open")
    return Table(
        "Studies measure speed; no experiment draws evidence from them",
        ("study", "question", "state"),
        tuple((folder.name, *said) for folder, said in studies.items()),
        links=tuple(study_page_name(folder) for folder in studies),
    )


def _study(folder: Path) -> tuple[str, str]:
    """Title and verdict, or the refusal."""
    try:
        document = study_document(folder)
    except FitladderError as error:
        return folder.name, f"refused: {error}"
    return document.title, f"{document.verdict}. {document.lead}"


def _row(name: str, view: ExperimentView | FitladderError) -> tuple[str, ...]:
    if isinstance(view, FitladderError):
        return (name, "refused", "", str(view), "", "")
    return (
        name,
        view.state,
        view.rung_reached,
        f"{view.verdict}. {view.verdict_reason}",
        view.review,
        short_sha(view.binding_sha256),
    )


PHASE_COLUMNS = (
    "experiment",
    "rung",
    "KV tokens needed / live",
    "loops",
    "unresolved",
    "answer limit",
    "sampled tokens, seconds",
    "tokens/s",
    "audit",
)


def _phase(row: Comparison) -> tuple[str, ...]:
    return (
        row.experiment_id,
        f"{count(row.thinking_budget_tokens)}, {row.max_num_seqs} wide, {row.capture}",
        f"{count(row.required_tokens)}\u00a0/ {count(row.kv_cache_size_tokens)}",
        row.loops,
        row.unresolved,
        row.answer_limit,
        f"{count(row.sampled_tokens)} in {fixed(row.generation_s)}\u00a0s",
        fixed(row.tokens_per_s),
        short_sha(row.source[6:]) if row.source.startswith("audit ") else row.source,
    )

"""Register a follow-up: params.yaml, dvc.yaml, its inherited inputs, its provenance and its starter texts.

Everything is made and checked before the first file is written; params.yaml is written last, so that an
interrupted call leaves nothing registered.
"""

from dataclasses import dataclass
from pathlib import Path

from fitladder.canonical import canonical_bytes
from fitladder.errors import LineageError
from fitladder.files.atomic import write_output
from fitladder.registry.data_paths import record_paths
from fitladder.registry.follow_up_section import carry_text, register_text
from fitladder.registry.follow_up_texts import (
    render_design_review,
    render_idea_intake,
    render_narrative,
    render_preregistration,
)
from fitladder.registry.inputs import input_path, survey_inputs
from fitladder.registry.load import load_registry, parse_registry
from fitladder.registry.provenance import provenance_of, provenance_path

__all__ = ["Registered", "register_successor"]


@dataclass(frozen=True)
class Registered:
    """A follow-up as registered: what was written, and which inherited inputs are still to be fetched."""

    experiment_id: str
    predecessor: str
    written: tuple[Path, ...]
    missing_inputs: tuple[str, ...]


def register_successor(checkout: Path, name: str, predecessor: str) -> Registered:
    """Register `name` as a follow-up of `predecessor`.

    Raises RegistrationError or LineageError before anything is written; a file that exists is never replaced.
    """
    params, graph, data = checkout / "params.yaml", checkout / "dvc.yaml", checkout / "data"
    source = load_registry(params).experiment(predecessor)
    text = register_text(params.read_text(encoding="utf-8"), name, predecessor)
    carried = carry_text(graph.read_text(encoding="utf-8"), name)
    made = parse_registry(text).experiment(name)
    folder = provenance_path(data, name).parent
    files = {
        provenance_path(data, name): canonical_bytes(provenance_of(source, made)) + b"\n",
        folder / "idea-intake.md": render_idea_intake(made, source).encode(),
        folder / "preregistration.md": render_preregistration(made, source).encode(),
        folder / "design-review.md": render_design_review(made, source).encode(),
        data / "narratives" / f"{name}.yaml": render_narrative(made).encode(),
        **dict.fromkeys(record_paths(data, name), b""),  # report@X hangs on them, begun or not
    }
    states = survey_inputs(data, source)
    for state in states:
        if state.right:
            files[input_path(data, made, state.name)] = state.path.read_bytes()
    for path, content in files.items():
        if path.exists() and path.read_bytes() != content:
            raise LineageError(f"{path} exists", got="other bytes", do="choose another id, or move it away")
    for path, content in files.items():
        write_output(path, content)
    write_output(graph, carried.encode())
    write_output(params, text.encode())
    missing = tuple(state.name for state in states if not state.right)
    return Registered(name, predecessor, (*files, graph, params), missing)

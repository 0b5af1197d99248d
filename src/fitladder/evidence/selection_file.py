"""The recorded selection of an experiment, read from `data/selection`."""

from pathlib import Path

from fitladder.canonical import parse_model, read_json
from fitladder.errors import LineageError
from fitladder.records.selection import Selection
from fitladder.registry.data_paths import selection_path

__all__ = ["NO_SELECTION", "load_selection"]

NO_SELECTION = "no selection yet"  # why no answer is read


def load_selection(data_dir: Path, experiment_id: str) -> Selection | None:
    """The recorded decision; None where there is none yet. Raises LineageError on a broken file."""
    path = selection_path(data_dir, experiment_id)
    if not path.exists():
        return None
    plain = read_json(path, error=LineageError)
    if isinstance(plain, dict) and plain.get("pass", 0) is None:
        return None
    selection = parse_model(Selection, plain, where=str(path), error=LineageError)
    if selection.experiment_id != experiment_id:
        raise LineageError(f"{path}: experiment_id", got=selection.experiment_id, need=experiment_id)
    return selection

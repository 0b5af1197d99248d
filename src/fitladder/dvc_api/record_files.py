"""Approvals and log of an experiment, which Git keeps and report@X depends on, are in their place."""

from pathlib import Path

from fitladder.errors import LineageError
from fitladder.registry.data_paths import record_paths

__all__ = ["check_records"]


def check_records(data_dir: Path, experiment_id: str) -> None:
    """Both files, which a registration begins empty, are plain files here. Raises LineageError."""
    for path in record_paths(data_dir, experiment_id):
        if not path.is_file() or path.is_symlink():
            raise LineageError(
                f"{path} is missing",
                got="a link or a folder" if path.is_symlink() or path.exists() else "nothing",
                need="the file that its registration began",
                do=f"restore it from Git: `git checkout -- {path.relative_to(data_dir.parent)}`",
            )

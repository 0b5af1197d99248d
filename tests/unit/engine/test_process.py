"""Command of an engine process."""

from pathlib import Path

from fitladder.engine.parent.process import engine_command


def test_nothing_is_imported_from_the_folder_that_the_phase_runs_in(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.touch()
    assert engine_command(python)[1:3] == ["-P", "-m"]

"""A checkout with the bundles of one experiment, and the command line's own entry."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import bundles as make

from fitladder.cli import main as cli
from fitladder.records.binding import Binding


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a registry of two experiments and the bundles of one, under a binding of today."""
    experiments: dict[str, Any] = {}
    for name in (make.ID, "another_experiment"):
        section = make.experiment(name).model_dump(mode="json")
        section.pop("experiment_id")
        section["artifacts"]["environment_override"] = name.upper()
        experiments[name] = section
    document = {"reviewers": [], "gpu_owners": {}, "experiments": experiments}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    root = make.make_root(tmp_path / "root", done=[(64, "probe")], begun=[(64, "base")])
    copy = tmp_path / "data" / "bundles" / make.ID
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".*"))

    def today(experiment: Any) -> Binding:
        return make.binding(experiment)

    monkeypatch.setattr("fitladder.evidence.checkout_bundles.bind", today)
    monkeypatch.setattr("fitladder.cli.verify.bind", today)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fitladder", *words])
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        else:
            code = 0
        out, err = capsys.readouterr()
        return code, out, err

    return call

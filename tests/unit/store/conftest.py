"""One small root with a complete probe and a begun base phase, built once and copied for each test."""

import shutil
from pathlib import Path

import pytest
from support import bundles as make


@pytest.fixture(scope="session")
def built_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "root"
    return make.make_root(folder, done=[(64, "probe")], begun=[(64, "base")])


@pytest.fixture
def root(built_root: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built_root, tmp_path / "root"))

"""One carried checkout for all lineage tests, made once by the real commands; each test works on a copy."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support import dvc_checkout as make

from fitladder.dvc_api.publish import bring_in, run_lineage

Copy = Callable[[], Path]


@pytest.fixture(scope="session")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`checkout` beside `root`: a ladder of two rejected probes, brought in one by one, then pushed."""
    base = tmp_path_factory.mktemp("carried")
    checkout = make.make_checkout(base / "checkout")
    root = make.make_root(checkout, base / "root", ((384, "probe"),))
    first = bring_in(checkout, make.ID, root, make.environment(checkout))
    assert (first.bundles, first.is_new) == (1, True)
    make.make_root(checkout, root, ((576, "probe"),))
    done = run_lineage(make.ID, root, checkout, make.environment(checkout))
    assert (done.ingested.bundles, done.ingested.is_new, done.pushed_to) == (2, True, "here")
    make.commit(checkout, done.git_commands[1])
    return base


@pytest.fixture
def checkout(carried: Path, tmp_path: Path) -> Path:
    """A copy of the carried checkout, `root` beside it."""
    shutil.copytree(carried / "root", tmp_path / "root")
    return Path(shutil.copytree(carried / "checkout", tmp_path / "checkout", symlinks=True))

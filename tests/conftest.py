"""The one thing that several suites share: a Prefect server, started by the first test that asks for it."""

from collections.abc import Iterator

import pytest
from support.prefect_house import Prefect, open_prefect


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prefect]:
    """A real server on loopback with a scripted checkout deployed; workers are each test's own."""
    with open_prefect(tmp_path_factory.mktemp("prefect")) as shared:
        yield shared

"""Shared by several suites: a Prefect server, and the groups of tests that must run one after the other.

A file's tests stay in one process, since they share its fixtures. All tests on the server form one group, and
so do all that start a real engine: two engines at once would only slow each other down. The groups are the
longest units of work and start first, so that no worker is left with one at the end.
"""

from collections.abc import Iterator

import pytest
from support.prefect_server import PrefectServer, open_prefect
from xdist.scheduler import LoadScopeScheduling

TOGETHER = {  # by file, since the process that hands out tests knows no more of them
    "server": {
        "tests/faults/test_prefect_faults.py",
        "tests/faults/test_resume.py",
        "tests/integration/test_approval_browser.py",
        "tests/integration/test_launch_and_phase.py",
        "tests/integration/test_rehearsal.py",
        "tests/integration/test_two_hosts.py",
    },
    "engine": {
        "tests/conformance/test_simulate_live.py",
        "tests/conformance/test_vllm_layouts.py",
        "tests/integration/test_engine_cpu.py",
        "tests/integration/test_study_cpu.py",
    },
}


class ByGroup(LoadScopeScheduling):
    """One group, or else one file, is one unit of work."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return next((group for group, files in TOGETHER.items() if path in files), path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByGroup:
    return ByGroup(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the groups first; refuse a test of a group that the table lacks. The bench is in none."""
    for item in items:
        marks = {mark.name for mark in item.iter_markers()} & set(TOGETHER)
        groups = marks | ({"server"} if "prefect_server" in getattr(item, "fixturenames", ()) else set())
        path = item.nodeid.partition("::")[0]
        missing = [name for name in groups if path not in TOGETHER[name] and "tests/bench/" not in path]
        if missing:
            raise pytest.UsageError(
                f"{path}: got a test of {missing}, need it in TOGETHER (tests/conftest.py)"
            )
    order = {path: at for at, files in enumerate(TOGETHER.values()) for path in files}
    items.sort(key=lambda item: order.get(item.nodeid.partition("::")[0], len(TOGETHER)))


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectServer]:
    """A real server on loopback with a scripted checkout deployed; workers are each test's own."""
    with open_prefect(tmp_path_factory.mktemp("prefect")) as shared:
        yield shared

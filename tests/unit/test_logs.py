"""Where log lines go: progress to standard error, details with --verbose, a phase's steps to its file."""

import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fitladder.errors import EngineFailed
from fitladder.logs import log_to_file, log_to_stderr
from fitladder.phase.phase_log import logged_step, phase_log
from fitladder.records.bundle_key import BundleKey
from fitladder.workspace import Workspace

LOG = logging.getLogger("fitladder.some.module")
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


@pytest.fixture(autouse=True)
def logger_as_before() -> Iterator[None]:
    logger = logging.getLogger("fitladder")
    handlers, level = list(logger.handlers), logger.level
    yield
    logger.handlers[:], logger.level = handlers, level
    logger.setLevel(level)


def test_progress_is_plain_and_details_come_with_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(verbose=False)
    LOG.debug("a detail")
    LOG.info("progress")
    assert capsys.readouterr().err == "progress\n"
    log_to_stderr(verbose=True)
    LOG.debug("a detail")
    assert re.fullmatch(rf"{STAMP} DEBUG +fitladder.some.module: a detail\n", capsys.readouterr().err)


def test_the_file_takes_every_line_of_the_block_and_none_after_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_to_stderr(verbose=False)
    for text in ("first", "second"):
        with log_to_file(tmp_path / "new" / "phase.log"):
            LOG.debug(text)
    LOG.warning("outside")
    lines = (tmp_path / "new" / "phase.log").read_text().splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == ["first", "second"]
    assert capsys.readouterr().err == "outside\n"


def test_the_log_of_a_phase_names_steps_and_kinds_of_errors_but_no_message(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, {"PREFECT_API_AUTH_STRING": "who:secret"})
    key = BundleKey(experiment_id="some_experiment", thinking_budget_tokens=512, phase="probe")

    @logged_step("generate")
    def generate() -> None:
        raise EngineFailed("the engine failed: text of a prompt", got=[17, 4, 99])

    with pytest.raises(EngineFailed), phase_log(workspace, key, "a" * 64):
        generate()
    path = workspace.phase_log("some_experiment", 512, "probe")
    said = [line.partition(": ")[2] for line in path.read_text().splitlines()]
    assert re.fullmatch(rf"{re.escape(str(key))} begins: process \d+, GO {'a' * 64}", said[0])
    assert said[1] == "generate begins"
    assert [re.sub(r"[\d.]+ s", "S", line) for line in said[2:]] == [
        "generate ended after S: EngineFailed",
        f"{key} ended after S: EngineFailed",
    ]
    assert path.is_relative_to(tmp_path / "runs")


def test_verbose_shows_each_attempt_and_never_the_auth_string(tmp_path: Path) -> None:
    environment = {"PREFECT_API_URL": "http://127.0.0.1:9/api", "PREFECT_API_AUTH_STRING": "who:secret"}
    code = "from fitladder.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--verbose", "go", "x"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 12
    assert "GET /health again: [Errno 111] Connection refused" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("fitladder: no answer from the Prefect server")
    assert "secret" not in done.stderr + done.stdout

"""Inputs are what their hash says, or they are refused with the command that mends it."""

from pathlib import Path

import pytest

from fitladder.canonical import sha256_bytes
from fitladder.errors import InputRefused
from fitladder.records.experiment import Experiment
from fitladder.registry.inputs import fetch_inputs, input_path, load_input
from fitladder.registry.load import load_registry

PARAMS = Path(__file__).parents[3] / "params.yaml"


@pytest.fixture
def experiment() -> Experiment:
    registered = load_registry(PARAMS).experiment("qwen35_4b_verified_macro_exact_cudagraph_rerun")
    return registered.model_copy(
        update={"data": {"tasks": sha256_bytes(b"tasks\n"), "prompt_manifest": sha256_bytes(b"manifest\n")}}
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "tasks.json").write_bytes(b"tasks\n")
    (folder / "prompt_manifest.json").write_bytes(b"manifest\n")
    return folder


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_fetched_inputs_load(tmp_path: Path, experiment: Experiment, source: Path, scheme: str) -> None:
    states = fetch_inputs(tmp_path / "data", experiment, scheme + str(source))
    assert [state.right for state in states] == [True, True]
    assert load_input(tmp_path / "data", experiment, "tasks") == b"tasks\n"


@pytest.mark.parametrize("source", ["http://no host/x", "http://127.0.0.1:0", "file:///no/such", "/no/such"])
def test_an_unreadable_source_is_one_line(tmp_path: Path, experiment: Experiment, source: str) -> None:
    with pytest.raises(InputRefused, match=r"tasks\.json cannot be read: got .*--from"):
        fetch_inputs(tmp_path, experiment, source)


def test_a_source_over_the_limit_is_refused(
    tmp_path: Path, experiment: Experiment, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fitladder.registry.inputs.MAX_INPUT_BYTES", 5)
    for scheme in ("", "file://"):
        with pytest.raises(InputRefused, match=r"tasks\.json is too large"):
            fetch_inputs(tmp_path, experiment, scheme + str(source))


def test_absent_names_the_command(tmp_path: Path, experiment: Experiment) -> None:
    with pytest.raises(InputRefused, match=r"absent.*fitladder inputs fetch qwen35_4b"):
        load_input(tmp_path, experiment, "tasks")
    with pytest.raises(InputRefused, match="registers no input 'hidden'"):
        load_input(tmp_path, experiment, "hidden")


def test_a_crlf_copy_is_another_file(tmp_path: Path, experiment: Experiment, source: Path) -> None:
    fetch_inputs(tmp_path, experiment, str(source))
    input_path(tmp_path, experiment, "tasks").write_bytes(b"tasks\r\n")
    with pytest.raises(InputRefused, match="is not what was registered"):
        load_input(tmp_path, experiment, "tasks")


def test_wrong_bytes_are_never_written(tmp_path: Path, experiment: Experiment, source: Path) -> None:
    (source / "prompt_manifest.json").write_bytes(b"other")
    with pytest.raises(InputRefused, match=r"prompt_manifest.json is not what was registered"):
        fetch_inputs(tmp_path, experiment, str(source))
    assert load_input(tmp_path, experiment, "tasks") == b"tasks\n"
    assert not input_path(tmp_path, experiment, "prompt_manifest").exists()

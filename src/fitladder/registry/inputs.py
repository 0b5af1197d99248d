"""Registered inputs by SHA-256: which are here, reading one, and fetching those that are not.

Inputs lie in `data/inputs/<experiment>/<name>.json`; identity is the SHA-256 in params.yaml, never name or
place. Absent or different ones make only what needs them refuse.
"""

import http.client
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from fitladder.canonical import sha256_bytes
from fitladder.errors import InputRefused
from fitladder.files.atomic import write_output
from fitladder.records.experiment import Experiment, InputName

__all__ = ["InputState", "fetch_inputs", "input_path", "load_input", "survey_inputs"]

MAX_INPUT_BYTES = 64 * 1024 * 1024
SCHEMES = ("http://", "https://", "file://")


@dataclass(frozen=True)
class InputState:
    """One registered input as it lies on this disk; `found_sha256` is None where it is absent."""

    name: InputName
    path: Path
    registered_sha256: str
    found_sha256: str | None

    @property
    def right(self) -> bool:
        """True where these are the registered bytes."""
        return self.found_sha256 == self.registered_sha256


def input_path(data_dir: Path, experiment: Experiment, name: InputName) -> Path:
    """Where this input lies, absent or not."""
    return data_dir / "inputs" / experiment.experiment_id / f"{name}.json"


def survey_inputs(data_dir: Path, experiment: Experiment) -> tuple[InputState, ...]:
    """Every registered input, in registered order, hashed from its raw bytes."""
    states = []
    for name, registered in experiment.data.items():
        path = input_path(data_dir, experiment, name)
        found = sha256_bytes(path.read_bytes()) if path.is_file() else None
        states.append(InputState(name, path, registered, found))
    return tuple(states)


def load_input(data_dir: Path, experiment: Experiment, name: InputName) -> bytes:
    """The registered bytes of one input. Raises InputRefused where absent, unregistered or different."""
    path = input_path(data_dir, experiment, name)
    if name not in experiment.data:
        raise InputRefused(f"{experiment.experiment_id} registers no input {name!r}")
    fetch = f"run `fitladder inputs fetch {experiment.experiment_id} --from PATH|URL`"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputRefused(
            f"input {path} is absent", need=f"SHA-256 {experiment.data[name]}", do=fetch
        ) from error
    _check(data, experiment.data[name], where=str(path), do=fetch)
    return data


def fetch_inputs(data_dir: Path, experiment: Experiment, source: str) -> tuple[InputState, ...]:
    """Copy each absent or wrong input from folder or URL `source` (`<source>/<name>.json`), verified first.

    Nothing is written unless its bytes are the registered ones; right inputs are left alone. Raises
    InputRefused on a source that cannot be read, is over 64 MiB, or holds other bytes.
    """
    for state in survey_inputs(data_dir, experiment):
        if state.right:
            continue
        origin = f"{source.rstrip('/')}/{state.name}.json"
        data = _read(origin)
        _check(data, state.registered_sha256, where=origin, do="name the source of the registered inputs")
        write_output(state.path, data, error=InputRefused)
    return survey_inputs(data_dir, experiment)


def _read(origin: str) -> bytes:
    try:
        if origin.startswith(SCHEMES):
            with urllib.request.urlopen(origin, timeout=60) as response:
                data: bytes = response.read(MAX_INPUT_BYTES + 1)
        else:
            data = Path(origin).read_bytes()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise InputRefused(f"{origin} cannot be read", got=error, do="name the source with --from") from error
    if len(data) > MAX_INPUT_BYTES:
        raise InputRefused(f"{origin} is too large", got="over 64 MiB", need="a registered input")
    return data


def _check(data: bytes, registered: str, *, where: str, do: str) -> None:
    found = sha256_bytes(data)
    if found != registered:
        raise InputRefused(
            f"{where} is not what was registered", got=f"SHA-256 {found}", need=registered, do=do
        )

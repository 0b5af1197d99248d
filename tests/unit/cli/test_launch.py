"""`fitladder launch`: what params.yaml alone refuses is refused before any server is asked for."""

from pathlib import Path

import pytest

from fitladder.cli import main as cli

ROOT = Path(__file__).parents[3]
EXACT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"
REHEARSAL = "smollm2_135m_cpu_rehearsal"


@pytest.mark.parametrize(
    ("experiment", "budget", "said", "code"),
    [
        ("smollm", "384", "no such experiment", 3),
        (REHEARSAL, "385", "got 385, need 384 or 576", 3),
        (REHEARSAL, "384", "PREFECT_API_URL is not set", 12),
        (
            EXACT,
            "49152",
            f"got state terminal, need open; begin anew with `fitladder new NAME --from {EXACT}`",
            7,
        ),
    ],
)
def test_a_wrong_word_is_told_before_a_missing_server(  # noqa: PLR0917 - pytest gives them by name
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    experiment: str,
    budget: str,
    said: str,
    code: int,
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setattr(
        "sys.argv", ["fitladder", "launch", experiment, "--phase", "probe", "--budget", budget]
    )
    with pytest.raises(SystemExit) as stop:
        cli.main()
    error = capsys.readouterr().err
    assert (stop.value.code, len(error.splitlines())) == (code, 1)
    assert said in error

"""Words to commands, errors to one line and an exit code, and a README that tells the truth about --help."""

import subprocess
import sys
from pathlib import Path

import pytest
import typer

from fitladder import errors
from fitladder.cli import main as cli

ROOT = Path(__file__).parents[3]
EXACT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"
FITLADDER = [sys.executable, "-c", "from fitladder.cli.main import main; main()"]


def _fitladder(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*FITLADDER, *words], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("frobnicate",), 2, "no such command"),
        (("validate", "nope"), 3, "no such experiment in params.yaml"),
        (("validate", "--params", "absent.yaml"), 3, "absent.yaml cannot be read"),
        (
            ("inputs", "fetch", "qwen35_4b_verified_macro_exact_cudagraph_rerun", "--from", "/nowhere"),
            4,
            "cannot be read",
        ),
        (("binding", "smollm2_135m_cpu_rehearsal", "--explain", "--diff", "x"), 2, "one of them"),
        (("audit", "absent.jsonl"), 2, "no file"),
        (("select", "nope"), 3, "no such experiment"),
        (("audit", "--json"), 2, "Missing argument 'FILE|EXPERIMENT'; fitladder audit --help"),
        (("plan",), 2, "Missing option '--budget'"),
        (("plan", "--wat"), 2, "No such option: --wat"),
        (("inputs", "nope"), 2, "No such command 'nope'"),
    ],
)
def test_bad_words_are_one_line_and_a_code(words: tuple[str, ...], code: int, message: str) -> None:
    done = _fitladder(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert done.stderr.startswith("fitladder: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("module", ["fitladder", "fitladder.cli"])
def test_a_module_run_by_python_is_the_command_line(module: str) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", module, *words],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    for words in (("verify", "nonsense"), ("validate", "--json"), ("--version",), ()):
        installed = _fitladder(*words)
        assert run(*words) == (installed.returncode, installed.stdout, installed.stderr)
    code, said, refused = run("verify", "nonsense")
    assert (code, said) == (errors.RegistrationError.exit_code, "")
    assert refused.startswith("fitladder: no such experiment")


def test_an_output_that_takes_no_more_is_one_line() -> None:
    words = [*FITLADDER, "validate", "--json"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == errors.EnvironmentNotReady.exit_code
    assert done.stderr == "fitladder: the system refused: got No space left on device\n"


@pytest.mark.parametrize(
    ("raised", "code", "line"),
    [
        (typer.Abort(), 2, "a question got no answer; fitladder go --help names the options"),
        (KeyboardInterrupt(), 130, "interrupted; nothing half-done counts as done"),
        (typer.Exit(7), 7, None),
    ],
)
def test_what_typer_raises_ends_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    raised: BaseException,
    code: int,
    line: str | None,
) -> None:
    def go() -> None:
        raise raised

    app = typer.Typer(pretty_exceptions_enable=False)
    app.command("go")(go)
    monkeypatch.setattr(cli, "_app", lambda name: app)
    monkeypatch.setattr(sys, "argv", ["fitladder", "go"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == code
    assert capsys.readouterr().err == (f"fitladder: {line}\n" if line else "")


def test_options_before_the_command_are_taken_and_unknown_ones_refused() -> None:
    plain, verbose = _fitladder("validate", "--json"), _fitladder("--verbose", "validate", "--json")
    assert (verbose.returncode, verbose.stdout) == (0, plain.stdout)
    assert _fitladder("-h").stdout == _fitladder("--help").stdout == _fitladder().stdout
    wrong = _fitladder("--wat", "validate")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "fitladder: No such option: --wat; fitladder --help says what it takes\n"


def test_a_command_without_its_library_says_what_to_install() -> None:
    hidden = "import sys; sys.modules['httpx'] = None; from fitladder.cli.main import main; main()"
    words = [sys.executable, "-c", hidden, "status"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == errors.EnvironmentNotReady.exit_code
    assert done.stderr == (
        "fitladder: httpx is not installed here: need fitladder with its extra `orchestrate`\n"
    )


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_every_command_loads_and_says_what_it_does(name: str) -> None:
    assert cli._app(name).registered_commands
    module = cli.COMMANDS[name][0]
    assert module.startswith("fitladder.cli.")


def test_help_lists_every_command_and_the_readme_agrees() -> None:
    help_text = _fitladder("--help").stdout
    assert all(name in help_text for name in cli.COMMANDS)
    assert help_text.strip() in (ROOT / "README.md").read_text()


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    tree = (errors.__doc__ or "").splitlines()
    for name in errors.__all__:
        kind = getattr(errors, name)
        (line,) = [line for line in tree if line.strip(" │├└─").split(" ")[0] == name]
        assert int(line.split(name)[1].split()[0]) == kind.exit_code

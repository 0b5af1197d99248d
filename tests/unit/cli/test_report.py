"""`fitladder report` and `fitladder log`, as a person or a program calls them."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.checkout import ROOT
from support.page_data import history_data

from fitladder.cli.main import main
from fitladder.evidence.checkout_bundles import load_bundles
from fitladder.records.experiment import Experiment
from fitladder.store.verify_root import VerifiedRoot

EXACT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def fitladder(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """The command in this process: words in, exit code and both streams out."""

    def run(*words: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["fitladder", *words])
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run


def test_pages_twins_and_index(tmp_path: Path, fitladder: Callable[..., Done]) -> None:
    data, registry = history_data(tmp_path)
    options = ("--params", str(ROOT / "params.yaml"), "--data", str(data))
    done = fitladder("report", *options, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert list(said["reports"]) == list(registry.experiments)
    first = {path.name: path.read_bytes() for path in (data / "reports").iterdir()}
    assert set(first) == {
        f"{name}.{kind}" for name in (*registry.experiments, "index") for kind in ("html", "md")
    }

    again = fitladder("report", EXACT, *options, "--out", str(tmp_path / "elsewhere"))
    assert again.returncode == 0, again.stderr
    second = {path.name: path.read_bytes() for path in (tmp_path / "elsewhere").iterdir()}
    assert second == {name: first[name] for name in second}
    assert f"{EXACT}.html" in second


def test_one_report_verifies_each_experiment_once(
    tmp_path: Path, fitladder: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, registry = history_data(tmp_path)
    seen: list[str] = []

    def counted(data_dir: Path, experiment: Experiment) -> VerifiedRoot | None:
        seen.append(experiment.experiment_id)
        return load_bundles(data_dir, experiment)

    monkeypatch.setattr("fitladder.report.experiment_view.load_bundles", counted)
    options = ("--params", str(ROOT / "params.yaml"), "--data", str(data))
    for words in ((), (EXACT,)):
        seen.clear()
        assert fitladder("report", *words, *options).returncode == 0
        assert sorted(seen) == sorted(registry.experiments)


def test_an_unknown_experiment_is_one_line(tmp_path: Path, fitladder: Callable[..., Done]) -> None:
    data, _ = history_data(tmp_path)
    done = fitladder("report", "no_such_one", "--params", str(ROOT / "params.yaml"), "--data", str(data))
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert not (data / "reports").exists()


def test_a_narrative_that_disagrees_leaves_the_old_page(
    tmp_path: Path, fitladder: Callable[..., Done]
) -> None:
    data, _ = history_data(tmp_path)
    options = (EXACT, "--params", str(ROOT / "params.yaml"), "--data", str(data))
    assert fitladder("report", *options).returncode == 0
    page = data / "reports" / f"{EXACT}.html"
    before = page.read_bytes()
    words = data / "narratives" / f"{EXACT}.yaml"
    words.write_text(words.read_text().replace("loops = 40", "loops = 41"))
    done = fitladder("report", *options)
    assert done.returncode == 4
    assert "got 41, need 40" in done.stderr
    assert page.read_bytes() == before


def test_log_appends_shows_and_reaches_the_page(tmp_path: Path, fitladder: Callable[..., Done]) -> None:
    data, _ = history_data(tmp_path)
    options = ("--params", str(ROOT / "params.yaml"), "--data", str(data))
    note = "stopped the [red]agent[/] for <maintenance>"
    added = fitladder("log", EXACT, note, "--by", "ada", *options, "--json")
    assert added.returncode == 0, added.stderr
    line = json.loads(added.stdout)["lines"][0]
    assert (line["sequence"], line["author"], line["text"]) == (1, "ada", note)
    assert note in fitladder("log", EXACT, *options).stdout
    assert fitladder("log", "no_such_one", "x", *options).returncode == 3
    assert fitladder("report", EXACT, *options).returncode == 0
    page = (data / "reports" / f"{EXACT}.html").read_text()
    assert "stopped the [red]agent[/] for &lt;maintenance&gt;" in page


def test_neither_help_nor_validate_loads_a_drawing_library() -> None:
    for words in ("['--help']", "['validate']"):
        code = (
            f"import sys; sys.argv[1:] = {words}; from fitladder.cli.main import main\n"
            "try:\n    main()\nexcept SystemExit:\n    pass\nprint('matplotlib' in sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
        )
        assert done.stdout.splitlines()[-1] == "False"

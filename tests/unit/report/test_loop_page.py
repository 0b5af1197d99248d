"""The loop page for anybody's token lists."""

import json
import random
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from fitladder.cli.main import main


def write_outputs(path: Path, *, names: tuple[str, ...] = ("looping", "thinking", "short")) -> None:
    draw = random.Random(5)
    looping = [draw.randrange(50_000) for _ in range(300)] + [11, 12, 13] * 200
    thinking = [draw.randrange(50_000) for _ in range(900)]
    short = [draw.randrange(50_000) for _ in range(40)]
    rows = zip(names, (looping, thinking, short), strict=True)
    path.write_text("".join(json.dumps({"id": name, "token_ids": ids}) + "\n" for name, ids in rows))


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """`fitladder audit` in this process: (exit code, standard output, standard error)."""

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fitladder", "audit", *words])
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_a_page_from_a_file_in_one_command(
    tmp_path: Path, words_of: Callable[[str], str], audit: Callable[..., Any]
) -> None:
    source, page = tmp_path / "outputs.jsonl", tmp_path / "page.html"
    write_outputs(source)
    options = ("--tail", "256", "--max-period", "64")
    code, out, _ = audit(str(source), *options, "--report", str(page), "--json")
    assert code == 0
    totals = json.loads(out)["totals"]
    html = page.read_text()
    text = words_of(html)
    assert "1 of 3 end in a loop" in text
    assert f"{totals['tokens_after_onset']:,} of {totals['tokens']:,} tokens" in text
    assert "looping periodic loop 900 3 253/253 300 600" in text.replace("1 looping", "looping")
    assert "No one may conclude that an unresolved row does not loop" in text
    assert "No period up to 64 tokens" in text
    assert "<script" not in html
    assert not re.search(r'(?:src|href)="(?!#|data:,)', html)
    first = page.read_bytes()
    assert audit(str(source), *options, "--report", str(page))[0] == 0
    assert page.read_bytes() == first


def test_hostile_ids_stay_text(tmp_path: Path, audit: Callable[..., Any]) -> None:
    source, page = tmp_path / "outputs.jsonl", tmp_path / "page.html"
    write_outputs(source, names=("</td><script>x</script>", "\ud835", "[red]$x$"))
    assert audit(str(source), "--tail", "256", "--max-period", "64", "--report", str(page))[0] == 0
    html = page.read_text()
    assert "<script" not in html
    assert r"\u{d835}" in html


def test_the_command_of_a_page_is_one_that_a_shell_reads_as_it_was_typed(
    tmp_path: Path, audit: Callable[..., Any]
) -> None:
    source, page = tmp_path / "my $(outputs) 'x'.jsonl", tmp_path / "page.html"
    write_outputs(source)
    words = ["--column", "token_ids", "--tail", "256", "--max-period", "64", "--min-match", "0.99"]
    assert audit(str(source), *words, "--report", str(page))[0] == 0
    command = re.search(r"<dt><code>(fitladder audit .*?)</code>", page.read_text())
    assert command is not None
    assert shlex.split(unescape(command.group(1))) == ["fitladder", "audit", source.name, *words]


@pytest.mark.parametrize(
    ("place", "message"), [("absent/page.html", "cannot be written"), (".", "need an .html file")]
)
def test_a_page_that_cannot_be_written_is_one_line(
    tmp_path: Path, place: str, message: str, audit: Callable[..., Any]
) -> None:
    source = tmp_path / "outputs.jsonl"
    write_outputs(source)
    words = ("--tail", "256", "--max-period", "64", "--report", str(tmp_path / place))
    code, _, err = audit(str(source), *words)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_without_a_page_no_drawing_library_is_loaded(tmp_path: Path) -> None:
    source = tmp_path / "outputs.jsonl"
    write_outputs(source)
    code = (
        "import sys; from fitladder.cli.audit import audit;"
        f"audit({str(source)!r}, tail=256, max_period=64); print('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--max-period", "9000"), "--max-period: got 9000, need 1 to 4096: at most half of --tail, 8192"),
        (("--tail", "100"), "--max-period: got 2048, need 1 to 50: at most half of --tail, 100"),
        (("--max-period", "0"), "--max-period: got 0, need 1 to 4096"),
        (("--tail", "1"), "--tail: got 1, need 2 ids or more"),
        (("--min-match", "1"), "--min-match: got '1', need a decimal above 0 and below 1"),
        (("--min-match", "much"), "--min-match: got 'much', need a decimal"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_by_its_option(
    tmp_path: Path, audit: Callable[..., Any], words: tuple[str, ...], said: str
) -> None:
    source = tmp_path / "outputs.jsonl"
    write_outputs(source)
    code, out, err = audit(str(source), *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err

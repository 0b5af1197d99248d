"""What a refusal, a docstring or a page tells people to type exists: command, subcommand, flags, target."""

import ast
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from fitladder.cli import main as cli

ROOT = Path(__file__).parents[2]
DVC = {
    *("checkout", "commit", "config", "dag", "fetch", "gc", "metrics", "plots", "pull", "push", "remote"),
    *("repro", "stage", "status"),
}
PLACEHOLDER = "X"
ADVICE = re.compile(r"`((?:\.venv/bin/)?(?:fitladder|dvc|make) [^`]+)`")
DOCS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def _texts(path: Path) -> list[tuple[str, bool]]:
    """(text with placeholders for what is filled in, whether it is advice in a refusal) of a module."""
    tree = ast.parse(path.read_text())
    advice = {
        id(node)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for keyword in call.keywords
        if keyword.arg == "do"
        for node in ast.walk(keyword.value)
    }
    inner = {
        id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)
    } - {id(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)}
    found: list[tuple[str, bool]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            found.append((node.value, id(node) in advice))
        elif isinstance(node, ast.JoinedStr):
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else PLACEHOLDER for part in node.values
            )
            found.append((text, id(node) in advice))
    return found


def _command(words: list[str]) -> tuple[Any, list[str]]:
    """The click command that these words name, and what follows. Raises AssertionError."""
    assert words[0] in cli.COMMANDS, f"no command {words[0]}"
    command: Any = typer.main.get_command(cli._app(words[0]))
    rest = words[1:]
    while getattr(command, "commands", None) and rest:
        assert rest[0] in command.commands or rest[0] == "--help", f"no {rest[0]} in {words[0]}"
        command, rest = command.commands[rest[0]], rest[1:]
    return command, rest


def check_advice(line: str, *, whole: bool) -> None:
    """`whole`: somebody shall type it as it stands, so that every required word must be in it."""
    words = shlex.split(line.replace("...", " ").replace("|", " "))
    program, words = words[0].removeprefix(".venv/bin/"), words[1:]
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert words[0] in targets, f"no target {words[0]}"
    elif program == "dvc":
        assert words[0] in DVC, f"no dvc {words[0]}"
    elif words and words[0] not in ("COMMAND", "--help", "--version"):
        command, rest = _command(words)
        if not hasattr(command, "params"):
            return
        flags = {flag: one for one in command.params for flag in (*one.opts, *one.secondary_opts)}
        given = [word.partition("=")[0] for word in rest if word.startswith("-")]
        for flag in given:
            assert flag in flags or flag == "--help", f"no flag {flag}"
        if whole and "--help" not in given:
            named = {id(flags[flag]) for flag in given if flag in flags}
            for one in command.params:
                is_option = one.opts[0].startswith("-")
                assert not (one.required and is_option) or id(one) in named, f"lacks {one.opts[0]}"
            takes = sum(
                not flags[flag].is_flag for flag in given if flag in flags and hasattr(flags[flag], "is_flag")
            )
            places = [one for one in command.params if not one.opts[0].startswith("-") and one.required]
            assert len([word for word in rest if not word.startswith("-")]) - takes >= len(places), (
                "lacks words"
            )


CASES = [
    pytest.param(line, whole, id=f"{path.relative_to(ROOT)}: {line}")
    for folder in ("src", "tasks", "flows")
    for path in sorted((ROOT / folder).rglob("*.py"))
    for line, whole in sorted(
        {(line, advice) for text, advice in _texts(path) for line in ADVICE.findall(text)}
    )
]


@pytest.mark.parametrize(("line", "whole"), CASES)
def test_what_is_advised_can_be_typed(line: str, whole: bool) -> None:
    check_advice(" ".join(line.split()), whole=whole)


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_what_the_docs_show_can_be_typed(path: Path) -> None:
    text = path.read_text()
    blocks = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)).replace("\\\n", " ")
    typed = re.findall(r"^\$? ?((?:\.venv/bin/)?(?:fitladder|dvc|make) .*)$", blocks, re.M)
    lines = [line.split("#")[0].split("&&")[0].replace("[", " ").replace("]", " ") for line in typed]
    for line in [*ADVICE.findall(text), *lines]:
        try:
            check_advice(" ".join(line.split()), whole=False)
        except (AssertionError, ValueError) as wrong:
            raise AssertionError(f"{path.name}: {line}: {wrong}") from wrong


@pytest.mark.parametrize(
    ("line", "whole"),
    [
        ("fitladder nonsense", False),
        ("fitladder lineage nonsense X", False),
        ("fitladder verify X --nonsense", False),
        ("fitladder launch --resume", True),
        ("fitladder lineage pull", True),
        ("dvc nonsense", False),
        ("make nonsense", False),
    ],
)
def test_wrong_advice_is_noticed(line: str, whole: bool) -> None:
    with pytest.raises(AssertionError):
        check_advice(line, whole=whole)

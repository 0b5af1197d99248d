"""`fitladder ...`: words to one command, errors to one line and an exit code, nothing else.

Commands load when they are called, so that `fitladder --help` imports none of them.
"""

import importlib
import sys
from typing import Any, NoReturn

import typer

from fitladder import __version__
from fitladder.errors import EnvironmentNotReady, FitladderError, UsageError

__all__ = ["COMMANDS", "main"]

INTERRUPTED = 130

COMMANDS: dict[str, tuple[str, str]] = {
    "validate": ("fitladder.cli.protocol:validate", "Check params.yaml, or one experiment in it."),
    "binding": ("fitladder.cli.protocol:binding", "Show what is frozen, and what moved since."),
    "status": ("fitladder.cli.status:status", "Where every experiment stands, and what is due."),
    "new": ("fitladder.cli.new:new", "Register a follow-up of an experiment."),
    "inputs": ("fitladder.cli.inputs:app", "Fetch and check inputs that are registered by hash."),
    "tasks": ("fitladder.cli.tasks:app", "Generate macro tasks from a seed."),
    "plan": ("fitladder.cli.plan:plan", "How many sequences fit at this context length?"),
    "model": ("fitladder.cli.model:app", "Make, name or imitate a model folder."),
    "rehearse": ("fitladder.cli.rehearse:rehearse_rung", "Would this rung pass its live gates?"),
    "launch": ("fitladder.cli.launch:launch", "Ask for one phase at one rung."),
    "go": ("fitladder.cli.go:go", "Answer a waiting launch: GO or NO-GO; or sign the answer."),
    "server": ("fitladder.cli.server:server", "A Prefect server that knows this checkout."),
    "agent": ("fitladder.cli.agent:agent", "A worker: approved phases, or with --cpu launches."),
    "gate": ("fitladder.cli.gate:gate", "Run the live gates on recorded engine facts."),
    "audit": ("fitladder.cli.audit:audit", "Is the model thinking, or looping?"),
    "lineage": (
        "fitladder.cli.lineage:app",
        "Bring bundles into DVC; check record against receipts.",
    ),
    "study": ("fitladder.cli.study:app", "What width, graphs, pool and admission cost."),
    "stage": ("fitladder.cli.stage:stage", "One stage of dvc.yaml for one experiment."),
    "report": ("fitladder.cli.report:report", "The page of an experiment, from verified records."),
    "log": ("fitladder.cli.log:log", "Append a line to an experiment's running log."),
    "select": ("fitladder.cli.select:select", "Decide the ladder from every audit, recomputed."),
    "verify": ("fitladder.cli.verify:verify", "Re-verify every byte against its receipt."),
    "attest": ("fitladder.cli.attest:attest", "State the receipt chain for other people's tools."),
    "manifest": ("fitladder.cli.manifest:manifest", "What belongs to an experiment, and who needs it."),
}


USAGE = """usage: fitladder COMMAND [ARGS]...   (fitladder COMMAND --help says more)

Preregistered long-context inference experiments on vLLM that cannot be quietly bent.
"""


def _help() -> str:
    width = max(map(len, COMMANDS))
    return USAGE + "\n" + "".join(f"  {name:{width}}  {text}\n" for name, (_, text) in COMMANDS.items())


def _app(name: str) -> typer.Typer:
    """The one command (or the group) of this name, imported now."""
    if name not in COMMANDS:
        raise UsageError("no such command", got=repr(name), need="one of " + ", ".join(COMMANDS))
    module, _, attribute = COMMANDS[name][0].partition(":")
    target: Any = getattr(importlib.import_module(module), attribute)
    if isinstance(target, typer.Typer):
        return target
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(name)(target)
    return app


def main() -> None:
    """Entry point. Exit codes: 0 done, else the `exit_code` of the refusing error (errors.py)."""
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        sys.stdout.write(_help())
        return
    if words[0] == "--version":
        sys.stdout.write(f"fitladder {__version__}\n")
        return
    try:
        code = _app(words[0])(args=words[1:], prog_name=f"fitladder {words[0]}", standalone_mode=False)
    except FitladderError as error:
        _refuse(str(error), error.exit_code)
    except typer.TyperException as error:  # typer's own answer to such words is a box of many lines
        said = " ".join(error.format_message().split()).rstrip(".") or "Missing command"
        _refuse(f"{said}; fitladder {words[0]} --help says what it takes", UsageError.exit_code)
    except typer.Abort:  # Ctrl-C at a question, or no terminal to answer it from
        _refuse(
            f"a question got no answer; fitladder {words[0]} --help names the options", UsageError.exit_code
        )
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OSError as error:  # such as a full disk under the output
        name = f" {error.filename}" if error.filename else ""
        _refuse(f"the system refused{name}: got {error.strerror or error}", EnvironmentNotReady.exit_code)
    if code == INTERRUPTED:  # typer turns Ctrl-C inside a command into this code
        _refuse("interrupted; nothing half-done counts as done", INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _refuse(line: str, code: int) -> NoReturn:
    sys.stderr.write(f"fitladder: {line}\n")
    sys.exit(code)

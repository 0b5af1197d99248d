"""`fitladder COMMAND`: calls one command and turns every error into one line and an exit code.

Commands are imported when they are called, so that `fitladder --help` imports none of them.
"""

import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from fitladder import __version__
from fitladder.cli.load_attribute import load_attribute
from fitladder.errors import EnvironmentNotReady, FitladderError, UsageError
from fitladder.logs import log_to_stderr

__all__ = ["COMMANDS", "main"]

INTERRUPTED = 130

COMMANDS: dict[str, tuple[str, str]] = {
    "validate": ("fitladder.cli.protocol:validate", "Check params.yaml, or one experiment in it."),
    "binding": ("fitladder.cli.protocol:binding", "Show what is frozen, and what moved since."),
    "status": ("fitladder.cli.status:status", "Show what is done, and the one command that is due."),
    "new": ("fitladder.cli.new:new", "Register a follow-up of an experiment."),
    "inputs": ("fitladder.cli.inputs:app", "Fetch and check inputs that are registered by hash."),
    "tasks": ("fitladder.cli.tasks:app", "Generate macro tasks from a seed."),
    "plan": ("fitladder.cli.plan:plan", "Count the sequences that fit at a context length."),
    "model": ("fitladder.cli.model:app", "Make, name or imitate a model folder."),
    "rehearse": (
        "fitladder.cli.rehearse:rehearse_rung",
        "Run a rung's live gates on a real engine, before any GO.",
    ),
    "launch": ("fitladder.cli.launch:launch", "Ask for one phase at one rung."),
    "go": ("fitladder.cli.go:go", "Answer a waiting launch: GO or NO-GO; or sign the answer."),
    "server": ("fitladder.cli.server:server", "A Prefect server that knows this checkout."),
    "agent": ("fitladder.cli.agent:agent", "A worker: approved phases, or with --cpu launches."),
    "gate": ("fitladder.cli.gate:gate", "Run the live gates on recorded engine facts."),
    "audit": ("fitladder.cli.audit:audit", "Find exact loops in token ids."),
    "lineage": (
        "fitladder.cli.lineage:app",
        "Bring bundles into DVC; check record against receipts.",
    ),
    "study": ("fitladder.cli.study:app", "Measure what width, graphs, pool and admission cost."),
    "stage": ("fitladder.cli.stage:stage", "One stage of dvc.yaml for one experiment."),
    "report": ("fitladder.cli.report:report", "The page of an experiment, from verified records."),
    "log": ("fitladder.cli.log:log", "Append a line to an experiment's running log."),
    "select": ("fitladder.cli.select:select", "Decide the ladder from every audit, recomputed."),
    "verify": ("fitladder.cli.verify:verify", "Re-verify every byte against its receipt."),
    "export": ("fitladder.cli.export:export", "Sign what belongs to an experiment, for other tools."),
}

USAGE = """usage: fitladder [--verbose] COMMAND [ARGS]...   (fitladder COMMAND --help says more)

Preregistered long-context inference experiments on vLLM that cannot be quietly bent.
"""


def _help() -> str:
    width = max(map(len, COMMANDS))
    return USAGE + "\n" + "".join(f"  {name:{width}}  {text}\n" for name, (_, text) in COMMANDS.items())


def _app(name: str) -> typer.Typer:
    """The command or group of this name, imported now. Raises UsageError where there is none."""
    if name not in COMMANDS:
        raise UsageError("no such command", got=repr(name), need="one of " + ", ".join(COMMANDS))
    target = load_attribute(COMMANDS[name][0])
    if isinstance(target, typer.Typer):
        return target
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(name)(target)
    return app


class LazyCommands(TyperGroup):
    """Group of `COMMANDS`; its help comes from that table alone."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command."""
        return get_command(_app(cmd_name))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the table."""
        formatter.write(_help())


app = typer.Typer(cls=LazyCommands, add_completion=False, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def fitladder(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version")] = False,
    verbose: Annotated[bool, typer.Option("--verbose")] = False,
) -> None:
    """Take the options before the command; without a command, print the help or the version."""
    log_to_stderr(verbose=verbose)
    if version:
        typer.echo(f"fitladder {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Entry point. Exit codes: 0 done, else the `exit_code` of the refusing error (errors.py)."""
    words = ["--help", *sys.argv[2:]] if sys.argv[1:2] == ["-h"] else sys.argv[1:]
    named = next((f"fitladder {word}" for word in words if not word.startswith("-")), "fitladder")
    try:
        code = app(args=words, prog_name="fitladder", standalone_mode=False)
    except FitladderError as error:
        _refuse(str(error), error.exit_code)
    except typer.TyperException as error:  # typer's own answer to such words is a box of many lines
        said = " ".join(error.format_message().split()).rstrip(".") or "Missing command"
        context = getattr(error, "ctx", None)
        path = context.command_path if context else named
        _refuse(f"{said}; {path} --help says what it takes", UsageError.exit_code)
    except typer.Abort:  # Ctrl-C at a question, or no terminal to answer it from
        _refuse(f"a question got no answer; {named} --help names the options", UsageError.exit_code)
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

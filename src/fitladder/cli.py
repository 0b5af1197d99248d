"""`fitladder ...`: words to one command, errors to one line and an exit code, nothing else.

Commands load when they are called, so that `fitladder --help` imports none of them.
"""

import importlib
import sys
from typing import Any

import click
import typer

from fitladder.errors import FitladderError

__all__ = ["COMMANDS", "main"]

COMMANDS: dict[str, tuple[str, str]] = {
    "validate": ("fitladder.commands.protocol:validate", "Check params.yaml, or one experiment in it."),
    "binding": ("fitladder.commands.protocol:binding", "Show what is frozen, and what moved since."),
    "inputs": ("fitladder.commands.inputs:app", "Fetch and check inputs that are registered by hash."),
    "tasks": ("fitladder.commands.tasks:app", "Generate macro tasks from a seed."),
    "plan": ("fitladder.commands.plan:plan", "How many sequences fit at this context length?"),
    "gate": ("fitladder.commands.gate:gate", "Run the live gates on recorded engine facts."),
    "audit": ("fitladder.commands.audit:audit", "Is the model thinking, or looping?"),
    "verify": ("fitladder.commands.verify:verify", "Re-verify every byte against its receipt."),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        target: Any = getattr(importlib.import_module(module), attribute)
        if isinstance(target, typer.Typer):
            return typer.main.get_command(target)
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        app.command(cmd_name, help=target.__doc__)(target)
        return typer.main.get_command(app)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="fitladder")
def _root() -> None:
    """Preregistered long-context inference experiments on vLLM that cannot be quietly bent."""


def main() -> None:
    """Entry point. Exit codes: 0 done, else the `exit_code` of the refusing error (errors.py)."""
    try:
        _root(prog_name="fitladder")
    except FitladderError as error:
        sys.stderr.write(f"fitladder: {error}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.stderr.write("fitladder: interrupted; nothing half-done counts as done\n")
        sys.exit(130)

"""`fitladder go`: answer a waiting launch from a terminal; `fitladder go sign`: make the signature for it.

The same form, the same checks and the same record as in the Prefect UI; the server takes the answer, the
launch flow judges it.
"""

import getpass
from pathlib import Path
from typing import Annotated, Any

import typer

from fitladder.approval.form import ask_of_schema, go_of
from fitladder.approval.signature import sign
from fitladder.cli.options import Json, print_json
from fitladder.errors import GoRefused, UsageError
from fitladder.prefect_api.client import PrefectApi, api_from_environment
from fitladder.prefect_api.follow import follow
from fitladder.prefect_api.runs import FlowRun, input_schema, read_run, resume_run, waiting_runs
from fitladder.records.approval import CHECKLIST, Ask

__all__ = ["go"]

SIGN = "sign"


def _waiting(api: PrefectApi, parameters: dict[str, Any], run_id: str | None) -> FlowRun:
    if run_id is not None:
        return read_run(api, run_id)
    found = waiting_runs(api, "launch", parameters)
    if len(found) != 1:
        what = " ".join(str(value) for value in parameters.values())
        raise GoRefused(
            f"launches of {what} that wait for a GO",
            got=", ".join(f"{run.name} {run.run_id}" for run in found) or "none",
            need="one",
            do="name it with --run" if found else "ask first, see `fitladder launch --help`",
        )
    return found[0]


def _checklist(ask: Ask, *, ticked: bool, verdict: str) -> dict[str, bool]:
    if verdict == "NO-GO":
        return dict.fromkeys(CHECKLIST, False)
    if ticked:
        return dict.fromkeys(CHECKLIST, True)
    typer.echo(f"{ask.key}, asked for by {ask.requester}")
    return {item: typer.confirm(text, default=False) for item, text in CHECKLIST.items()}


def _typed_binding(ask: Ask, given: str | None) -> str:
    """The digest that was typed. Only the plan says the right one, so that none can be copied unread."""
    typed = (given or typer.prompt("Binding SHA-256, from the plan")).strip()
    if typed != ask.binding_sha256:
        raise GoRefused(
            f"{ask.key}: this binding is not the plan's",
            got=ascii(typed)[:80],
            need="the SHA-256 that stands in the plan",
            do="read the plan and take it from there",
        )
    return typed


def go(
    words: Annotated[list[str], typer.Argument(metavar="[sign] EXPERIMENT", help="An experiment id.")],
    *,
    phase: Annotated[str | None, typer.Option("--phase", help="probe, base or designed.")] = None,
    budget: Annotated[int | None, typer.Option("--budget", help="The rung, in tokens.")] = None,
    run: Annotated[str | None, typer.Option("--run", help="The launch, by its flow-run id.")] = None,
    reviewer: Annotated[
        str | None, typer.Option("--reviewer", help="Your name; your login if left out.")
    ] = None,
    binding: Annotated[
        str | None, typer.Option("--binding", help="The SHA-256 of the plan you read.")
    ] = None,
    no_go: Annotated[bool, typer.Option("--no-go", help="Refuse instead.")] = False,
    notes: Annotated[str, typer.Option("--notes", help="Why.")] = "",
    expires: Annotated[str | None, typer.Option("--expires", help="UTC, as 2026-01-02T03:04:05Z.")] = None,
    window: Annotated[
        bool, typer.Option("--window", help="A scheduled agent may take it in its window.")
    ] = False,
    all_checked: Annotated[bool, typer.Option("--all-checked", help="Every checklist item holds.")] = False,
    key: Annotated[Path | None, typer.Option("--key", help="Sign with this SSH private key.")] = None,
    as_json: Json = False,
) -> None:
    """Answer a waiting launch: GO or NO-GO for one phase at one rung, once.

    `fitladder go sign EXPERIMENT ... --key KEY` only prints the signature for the form in the Prefect UI.
    """
    only_sign = words[0] == SIGN and len(words) == 2
    if len(words) != 1 and not only_sign:
        raise UsageError("fitladder go", got=" ".join(words), need="[sign] EXPERIMENT")
    if only_sign and key is None:
        raise UsageError("fitladder go sign", need="--key")
    wanted = {"experiment": words[-1], "phase": phase, "budget": budget}
    api = api_from_environment()
    api.check_up()
    waiting = _waiting(api, {name: value for name, value in wanted.items() if value is not None}, run)
    schema = input_schema(api, waiting)
    ask = ask_of_schema(schema)
    verdict = "NO-GO" if no_go else "GO"
    form: dict[str, Any] = {
        "verdict": verdict,
        "reviewer": getpass.getuser() if reviewer is None else reviewer,
        "binding_sha256": _typed_binding(ask, binding),
        **_checklist(ask, ticked=all_checked, verdict=verdict),
        "expires": expires or schema["properties"]["expires"]["default"],
        "allows_window": window,
        "notes": notes,
        "signature": "",
    }
    if key is not None:
        statement, _ = go_of(ask, form)
        form["signature"] = sign(statement, key)
    if only_sign:
        typer.echo(form["signature"], nl=False)
        return
    resume_run(api, waiting, form)
    ended = follow(api, waiting.run_id, on_line=typer.echo, check_alive=lambda: None)
    if ended.state_type != "COMPLETED":
        raise GoRefused(f"{ask.key}: the answer was not accepted", got=ended.message)
    if as_json:
        print_json({"run_id": ended.run_id, "state": ended.state_name, "message": ended.message})
    else:
        typer.echo(f"{ask.key}: {ended.state_name}: {ended.message}")

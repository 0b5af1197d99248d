"""`fitladder status`: experiment by rung by phase, what the disk proves, and the one command that is due."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fitladder.commands.options import Json, Params, print_json, print_table
from fitladder.phase.house import house_here
from fitladder.phase.status import ExperimentStatus, PhaseStatus, experiment_status
from fitladder.protocol.registry import load_registry

__all__ = ["status"]


def status(
    experiment: Annotated[str | None, typer.Argument(help="An experiment id; all where left out.")] = None,
    params: Params = Path("params.yaml"),
    as_json: Json = False,
) -> None:
    """Where every experiment stands: state, GO, receipt, and what is authorised next."""
    registry = load_registry(params)
    names = [experiment] if experiment else list(registry.experiments)
    found = [experiment_status(house_here(), registry, name) for name in names]
    if as_json:
        print_json({"experiments": [_plain(one) for one in found]})
        return
    for one in found:
        rows = [_row(phase) for phase in one.phases if phase.state != "not_run"]
        title = f"{one.experiment.experiment_id} ({one.experiment.state}; from {one.source})"
        if rows:
            print_table(title, ("budget", "phase", "state", "GO", "receipt"), rows)
        else:
            typer.echo(f"{title}: no phase has run")
        typer.echo(
            f"  next: {one.next.reason}" + (f"\n        {one.next_command}" if one.next_command else "")
        )


def _row(phase: PhaseStatus) -> tuple[str, ...]:
    verdict = {True: "complete, adequate", False: "complete, rejected", None: "preflight only"}[
        phase.adequate
    ]
    short = [(digest or "-")[:12] for digest in (phase.go_sha256, phase.receipt_sha256)]
    return (str(phase.key.thinking_budget_tokens), phase.key.phase, verdict, *short)


def _plain(one: ExperimentStatus) -> dict[str, Any]:
    return {
        "experiment_id": one.experiment.experiment_id,
        "state": one.experiment.state,
        "source": one.source,
        "rungs": [
            {
                "thinking_budget_tokens": rung.thinking_budget_tokens,
                "max_num_seqs": rung.max_num_seqs,
                "status": one.rungs[rung.thinking_budget_tokens],
                "phases": [
                    {
                        "phase": phase.key.phase,
                        "state": phase.state,
                        "adequate": phase.adequate,
                        "receipt_sha256": phase.receipt_sha256,
                        "go_sha256": phase.go_sha256,
                        **phase.counts,
                    }
                    for phase in one.phases
                    if phase.key.thinking_budget_tokens == rung.thinking_budget_tokens
                ],
            }
            for rung in one.experiment.rungs
        ],
        "next": {
            "state": one.next.state,
            "reason": one.next.reason,
            "command": one.next_command,
        },
    }

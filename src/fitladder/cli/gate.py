"""`fitladder gate`: runs the live gates on recorded engine facts."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fitladder.canonical import parse_json, parse_model, read_json
from fitladder.cli.options import DataDir, Json, Params, print_json, print_table
from fitladder.errors import InputRefused, UsageError
from fitladder.gates.all_gates import GateRecord, PromptFacts, run_gates
from fitladder.prompts.manifest import parse_manifest
from fitladder.records.engine_facts import EngineFacts
from fitladder.records.experiment import ARM_OF_PHASE, PHASES, Experiment, InputName, Phase
from fitladder.records.settings import Rung
from fitladder.registry.inputs import load_input
from fitladder.registry.load import load_registry

__all__ = ["gate"]

NOT_JUDGED = "prompt_identity"  # nothing is rendered here, so the frozen prompts could only equal themselves


def gate(
    experiment: Annotated[str, typer.Argument(help="An experiment id.")],
    *,
    rung: Annotated[int, typer.Option("--rung", help="The rung's thinking budget in tokens.")],
    facts: Annotated[Path, typer.Option("--facts", help="Engine facts as JSON, or a preflight.")],
    phase: Annotated[str, typer.Option("--phase", help="probe, base or designed.")] = "probe",
    params: Params = Path("params.yaml"),
    data: DataDir = Path("data"),
    as_json: Json = False,
) -> None:
    """Run the live gates on recorded engine facts; exit 5 at the first that says no."""
    registered = load_registry(params).experiment(experiment)
    chosen = _rung(registered, rung)
    at = _phase(phase)
    live = _facts(facts)
    prompts = _frozen_prompts(registered, at, data)
    records = run_gates(registered, chosen, at, live, prompts, frozen=prompts)
    judged = [record for record in records if record.name != NOT_JUDGED]
    if as_json:
        print_json(
            {
                "experiment_id": experiment,
                "thinking_budget_tokens": rung,
                "phase": at,
                "passed": True,
                "gates": [record.model_dump(mode="json") for record in judged],
                "not_judged_here": [NOT_JUDGED],
            }
        )
        return
    print_table(f"{experiment} {at}@{rung}: every gate passes", ("gate", "number", "live"), _lines(judged))
    typer.echo("Prompt identity is judged where prompts are rendered, before an engine starts.")


def _rung(experiment: Experiment, budget: int) -> Rung:
    try:
        return experiment.rung(budget)
    except KeyError:
        budgets = " or ".join(str(rung.thinking_budget_tokens) for rung in experiment.rungs)
        raise UsageError("--rung", got=budget, need=budgets) from None


def _phase(name: str) -> Phase:
    for phase in PHASES:
        if phase == name:
            return phase
    raise UsageError("--phase", got=repr(name), need=" or ".join(PHASES))


def _facts(path: Path) -> EngineFacts:
    plain = read_json(path)
    if isinstance(plain, dict) and isinstance(plain.get("engine"), dict):
        plain = plain["engine"]  # a preflight, which records them under this name
    return parse_model(EngineFacts, plain, where=str(path), error=InputRefused)


def _frozen_prompts(experiment: Experiment, phase: Phase, data: Path) -> list[PromptFacts]:
    name: InputName = "prompt_manifest"
    manifest = parse_manifest(parse_json(load_input(data, experiment, name), where=name), where=name)
    entries = manifest.arms.get(ARM_OF_PHASE[phase], ())
    return [PromptFacts(entry.id, entry.rendered_prompt_sha256, entry.prompt_tokens) for entry in entries]


def _lines(records: list[GateRecord]) -> list[tuple[str, ...]]:
    return [
        (record.name if place == 0 else "", number, _shown(value))
        for record in records
        for place, (number, value) in enumerate(record.numbers.items())
    ]


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    if isinstance(value, bool) or not isinstance(value, int):
        return "-" if value is None else str(value)
    return f"{value:,}"

"""`fitladder rehearse`: builds the registered engine, runs every live gate and samples a little."""

import logging
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer

from fitladder.canonical import canonical_bytes
from fitladder.cli.options import Json, print_json, print_table
from fitladder.engine.convert.geometry_model import write_geometry_model
from fitladder.errors import EnvironmentNotReady, FitladderError, GateRefused, UsageError
from fitladder.files.atomic import write_output
from fitladder.phase.device_lock import share_device
from fitladder.phase.prompt_tokens import load_prompts
from fitladder.phase.rehearsal import Prompts, RehearsalReport, rehearse, stand_in_prompts
from fitladder.phase.rehearsal_overrides import Overrides, override
from fitladder.records.experiment import Experiment, Phase
from fitladder.records.generation_time import generation_s
from fitladder.records.settings import Rung
from fitladder.registry.load import load_registry
from fitladder.sampling.engine_protocol import Progress
from fitladder.workspace import Workspace, workspace_here

__all__ = ["rehearse_rung"]

LOG = logging.getLogger(__name__)


def rehearse_rung(
    experiment_id: Annotated[str, typer.Argument(metavar="EXPERIMENT", help="A registered experiment.")],
    *,
    rung: Annotated[int, typer.Option("--rung", help="Its thinking budget.")],
    phase: Annotated[Phase, typer.Option("--phase", help="Whose K decides the active width.")] = "probe",
    load_format: Annotated[
        Literal["dummy", "auto"], typer.Option("--load-format", help="dummy: random weights of a config.")
    ] = "dummy",
    model: Annotated[
        str | None, typer.Option("--model", help="A model folder, or a preset without weights.")
    ] = None,
    blocks_override: Annotated[int | None, typer.Option("--blocks-override", help="Pool in blocks.")] = None,
    gpu_memory_utilization: Annotated[
        float | None, typer.Option("--gpu-memory-utilization", help="Less at start: engines side by side.")
    ] = None,
    kv_cache_bytes: Annotated[
        int | None,
        typer.Option("--kv-cache-bytes", help="Stated, no memory is profiled; --blocks-override decides."),
    ] = None,
    prompt_max: Annotated[
        int | None,
        typer.Option("--prompt-max", help="Longest prompt in tokens of the phase's arm, for stand-ins."),
    ] = None,
    max_num_seqs: Annotated[int | None, typer.Option("--max-num-seqs", help="Another width.")] = None,
    capture: Annotated[
        Literal["exact", "implicit"] | None, typer.Option("--capture", help="Another capture mode.")
    ] = None,
    arg: Annotated[
        list[str] | None, typer.Option("--arg", metavar="NAME=VALUE", help="An unregistered engine argument.")
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", metavar="NAME=VALUE", help="An unregistered variable.")
    ] = None,
    tokens: Annotated[int, typer.Option("--tokens", help="Tokens to sample a sample.")] = 64,
    deadline_s: Annotated[float, typer.Option("--deadline-s", help="Most seconds to build.")] = 1800.0,
    out: Annotated[Path | None, typer.Option("--out", help="Write the report here as JSON.")] = None,
    log: Annotated[Path | None, typer.Option("--log", help="Keep the engine's log here.")] = None,
    as_json: Json = False,
) -> None:
    """Build a rung's engine and run its live gates. Exit code 0: GO-able; 5: not, with every reason."""
    workspace = workspace_here()
    experiment = load_registry(workspace.params).experiment(experiment_id)
    overrides = Overrides(
        max_num_seqs=max_num_seqs,
        capture=capture,
        num_gpu_blocks=blocks_override,
        gpu_memory_utilization=gpu_memory_utilization,
        kv_cache_memory_bytes=kv_cache_bytes,
        args={name: _value(text) for name, text in _pairs("--arg", arg)},
        environment=dict(_pairs("--env", env)),
    )
    chosen = _rung(experiment, rung)
    workspace.scratch.mkdir(parents=True, exist_ok=True)
    with (
        share_device(workspace.device_lock),
        tempfile.TemporaryDirectory(dir=workspace.scratch, prefix="rehearsal-") as scratch,
    ):
        prompts = _prompts(workspace, experiment, phase, prompt_max)
        folder = _model(workspace, experiment, model, load_format, Path(scratch))
        command = workspace.engine_command()
        log_path = log or workspace.scratch / "rehearsal.log"
        width = override(experiment, chosen, overrides)[1].max_num_seqs
        LOG.info(
            f"building the engine of {experiment_id} at {rung}, {width} wide, {load_format} weights: "
            f"at most {deadline_s:g} s; its log: {log_path}"
        )
        report = rehearse(
            experiment,
            chosen,
            phase,
            prompts=prompts,
            model=folder,
            command=command,
            overrides=overrides,
            load_format=load_format,
            sampled_tokens=tokens,
            build_deadline_s=deadline_s,
            log_path=log_path,
            engine_lock_path=workspace.engine_lockfile(experiment.engine),
            on_progress=_show_progress,
        )
    if out is not None:
        write_output(out, canonical_bytes(report) + b"\n", error=UsageError)
    _show(report, as_json)
    if not report.go_able:
        raise GateRefused(f"{experiment_id} at {rung} is not GO-able", got=report.reasons[0])


def _rung(experiment: Experiment, budget_tokens: int) -> Rung:
    try:
        return experiment.rung(budget_tokens)
    except KeyError:
        budgets = ", ".join(str(rung.thinking_budget_tokens) for rung in experiment.rungs)
        raise UsageError("no such rung", got=budget_tokens, need=budgets) from None


def _model(
    workspace: Workspace, experiment: Experiment, asked: str | None, load_format: str, scratch: Path
) -> str:
    """A folder as asked or registered; without one, and for random weights, its preset's geometry."""
    folder = workspace.model_folder(experiment.model) if asked is None else Path(asked)
    if folder.is_dir():
        return str(folder)
    if load_format != "dummy":
        raise EnvironmentNotReady(f"the model folder {folder} is absent", do="use --load-format dummy")
    return str(write_geometry_model(folder.name, scratch / "model"))


def _prompts(workspace: Workspace, experiment: Experiment, phase: Phase, prompt_max: int | None) -> Prompts:
    """The frozen prompts where their inputs are at hand, else stand-ins of `prompt_max`."""
    try:
        arm = load_prompts(workspace, experiment, phase)
    except FitladderError as absent:
        prompts = stand_in_prompts(experiment, prompt_max)
        LOG.info(f"stand-in prompts, so prompt identity is not rehearsed: {absent}")
        return prompts
    longest = max(one.prompt_tokens for one in arm.rendered)
    if prompt_max not in (None, longest):
        raise UsageError(
            "--prompt-max", got=prompt_max, need=f"{longest}, as the frozen prompts have, or none"
        )
    return Prompts(arm.token_ids, arm.rendered, arm.frozen)


def _pairs(option: str, texts: list[str] | None) -> list[tuple[str, str]]:
    pairs = [text.partition("=") for text in texts or []]
    for name, sign, value in pairs:
        if not (name and sign and value):
            raise UsageError(option, got=name + sign + value, need="NAME=VALUE")
    return [(name, value) for name, _, value in pairs]


def _value(text: str) -> str | int | bool:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.lstrip("-").isdecimal() else text


def _show_progress(stage: int, progress: Progress) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\rstage {stage}: {progress.sampled_tokens} tokens, {progress.running_seqs} wide  ")


def _show(report: RehearsalReport, as_json: bool) -> None:
    if as_json:
        print_json(report.model_dump(mode="json"))
        return
    rows: list[tuple[str, ...]] = [
        (
            finding.gate,
            "passed" if finding.passed else ("REFUSED" if finding.refusal else "not rehearsed"),
            finding.refusal or ", ".join(f"{name} {value}" for name, value in finding.numbers.items()),
        )
        for finding in report.gates
    ]
    if report.generation is not None:
        counts = report.generation.counters
        seconds = generation_s(report.generation)
        rows.append(
            (
                "generation",
                "whole",
                f"{counts['sampled_tokens']} tokens in {seconds:.1f} s, {counts['preemptions']} preemptions, "
                f"{len(report.generation.warnings)} late compilations",
            )
        )
    title = f"{report.experiment_id} at {report.thinking_budget_tokens}, {report.load_format} weights"
    print_table(title, ("gate", "", "figures"), rows)
    missing = f"; not rehearsed: {', '.join(report.not_rehearsed)}" if report.not_rehearsed else ""
    sys.stdout.write(("GO-able" if report.go_able else "not GO-able") + missing + "\n")

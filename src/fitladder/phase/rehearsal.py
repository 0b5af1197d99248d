"""Rehearsal of a rung on a real engine, before any GO: every live gate, and a small sample.

Builds the registered engine, without weights where asked to, runs each gate by itself, samples a little.
It writes no bundle: what it finds is a report, and its samples are counted and thrown away.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from fitladder.engine.messages import GenerationMetadata
from fitladder.engine.parent.llm_arguments import LoadFormat, build_request
from fitladder.engine.parent.process import EngineProcess
from fitladder.engine.request import EngineRequest
from fitladder.errors import EngineFailed, FitladderError, UsageError
from fitladder.frozen import Frozen
from fitladder.gates.context import check_context, longest_prompt
from fitladder.gates.cuda_graphs import check_cuda_graphs
from fitladder.gates.kv_fit import check_kv_fit
from fitladder.gates.live_settings import check_live_settings
from fitladder.gates.prompt_identity import PromptFacts, check_prompt_identity
from fitladder.phase.rehearsal_overrides import Overrides, override
from fitladder.records.engine_facts import EngineFacts, RuntimeFacts
from fitladder.records.experiment import Experiment, Phase
from fitladder.records.gate import GateRecord, Number
from fitladder.records.settings import Rung
from fitladder.sampling.engine_protocol import Progress

__all__ = ["GateFinding", "Prompts", "RehearsalReport", "rehearse", "stand_in_prompts"]


class GateFinding(Frozen):
    """One gate by name: its numbers where it passed, its refusal where it did not, neither where not run."""

    gate: str
    passed: bool
    numbers: dict[str, Number] = Field(default_factory=dict)
    refusal: str | None = None


class RehearsalReport(Frozen):
    """What a rehearsal found.

    go_able: no gate refused, and the short generation ended whole. not_rehearsed: gates without what they
    need; a phase runs them all the same.
    """

    experiment_id: str
    thinking_budget_tokens: int
    phase: str
    load_format: str
    overrides: Overrides
    go_able: bool
    reasons: tuple[str, ...]
    not_rehearsed: tuple[str, ...]
    gates: tuple[GateFinding, ...]
    facts: EngineFacts | None
    runtime: RuntimeFacts | None
    generation: GenerationMetadata | None


@dataclass(frozen=True)
class Prompts:
    """Token ids by record id with their identities; `frozen` is None for stand-ins."""

    token_ids: Mapping[str, Sequence[int]]
    rendered: Sequence[PromptFacts]
    frozen: Sequence[PromptFacts] | None = field(default=None)


def stand_in_prompts(experiment: Experiment, prompt_tokens: int | None = None) -> Prompts:
    """As many prompts as an arm has, of no meaning, each `prompt_tokens` long: the arm's longest where known.

    Otherwise the experiment's longest. Raises UsageError on a length that no registered prompt can have.
    """
    most = experiment.longest_prompt_tokens
    length = most if prompt_tokens is None else prompt_tokens
    if not 1 <= length <= most:
        raise UsageError("stand-in prompts", got=f"{length} tokens", need=f"1 to the registered {most}")
    ids = {
        f"stand_in_{number}": [1000 + (17 * number + 31 * place) % 20_000 for place in range(length)]
        for number in range(experiment.records_per_arm)
    }
    return Prompts(ids, [PromptFacts(name, "0" * 64, length) for name in ids])


def rehearse(
    experiment: Experiment,
    rung: Rung,
    phase: Phase,
    *,
    prompts: Prompts,
    model: str,
    command: Sequence[str],
    overrides: Overrides,
    load_format: LoadFormat,
    sampled_tokens: int,
    build_deadline_s: float,
    log_path: Path,
    engine_lock_path: Path | None = None,
    on_progress: Callable[[int, Progress], None] = lambda *_: None,
) -> RehearsalReport:
    """Build, gate, sample `sampled_tokens` a sample at full width, report. An engine's failure is a finding.

    Raises RegistrationError where the overridden registration is none.
    """
    changed, changed_rung = override(experiment, rung, overrides)
    findings: list[GateFinding] = []
    facts, runtime, generation, reasons = None, None, None, []
    with tempfile.TemporaryDirectory(prefix="fitladder-rehearsal-") as scratch:
        request = build_request(
            changed,
            changed_rung,
            phase,
            prompts=prompts.token_ids,
            model=model,
            samples_path=Path(scratch) / "samples.parquet",
            engine_lock_path=engine_lock_path,
            load_format=load_format,
            num_gpu_blocks_override=overrides.num_gpu_blocks,
        )
        request = _shortened(request, sampled_tokens)
        try:
            with EngineProcess.start(request, command=command, log_path=log_path) as engine:
                facts, runtime = engine.wait_facts(build_deadline_s)
                findings = _gate_findings(changed, changed_rung, phase, facts, prompts)
                if all(finding.passed or finding.refusal is None for finding in findings):
                    generation = engine.generate(on_progress, float(rung.deadline_s)).metadata
        except EngineFailed as failure:
            reasons.append(str(failure))
    reasons = [finding.refusal for finding in findings if finding.refusal] + reasons
    return RehearsalReport(
        experiment_id=experiment.experiment_id,
        thinking_budget_tokens=rung.thinking_budget_tokens,
        phase=phase,
        load_format=load_format,
        overrides=overrides,
        go_able=generation is not None and not reasons,
        reasons=tuple(reasons),
        not_rehearsed=tuple(one.gate for one in findings if not one.passed and one.refusal is None),
        gates=tuple(findings),
        facts=facts,
        runtime=runtime,
        generation=generation,
    )


def _shortened(request: EngineRequest, sampled_tokens: int) -> EngineRequest:
    """The same engine, prompts and width with few tokens a sample."""
    answer = min(request.sampling.answer_max_tokens, sampled_tokens)
    return request.model_copy(
        update={
            "thinking_budget_tokens": min(request.thinking_budget_tokens, sampled_tokens),
            "sampling": request.sampling.model_copy(update={"answer_max_tokens": answer}),
        }
    )


def _gate_findings(
    experiment: Experiment, rung: Rung, phase: Phase, facts: EngineFacts, prompts: Prompts
) -> list[GateFinding]:
    longest = longest_prompt(prompts.rendered).prompt_tokens
    frozen = prompts.frozen
    gates: list[tuple[str, Callable[[], GateRecord] | None]] = [
        ("live_settings", lambda: check_live_settings(experiment, rung, facts)),
        (
            "prompt_identity",
            None
            if frozen is None
            else lambda: check_prompt_identity(prompts.rendered, frozen, experiment.records_per_arm),
        ),
        ("context", lambda: check_context(experiment, rung, facts, prompts.rendered)),
        ("kv_fit", lambda: check_kv_fit(experiment, rung, phase, facts, longest)),
        ("cuda_graphs", lambda: check_cuda_graphs(experiment, rung, facts)),
    ]
    return [_finding(name, gate) for name, gate in gates]


def _finding(name: str, gate: Callable[[], GateRecord] | None) -> GateFinding:
    if gate is None:  # stand-in prompts have no frozen identity to be held against
        return GateFinding(gate=name, passed=False)
    try:
        return GateFinding(gate=name, passed=True, numbers=gate().numbers)
    except FitladderError as refusal:  # a gate's, or of a figure that could not even be read
        return GateFinding(gate=name, passed=False, refusal=str(refusal))

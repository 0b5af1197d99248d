"""Plan of one ask for its reviewer: what runs, on what, whether it fits, for how long, what is not allowed.

The live gates decide again, whatever is planned here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fitladder.approval.chain import chain_path, load_chain
from fitladder.approval.check import owner_to_ask
from fitladder.capacity.capture_coverage import render_widths, uncovered_widths
from fitladder.evidence.load import Evidence, evidence_once
from fitladder.phase.expectation import ExpectedPool, expected_pool, expected_speed, fit_line
from fitladder.records.approval import CHECKLIST, Ask, Go
from fitladder.records.experiment import Experiment
from fitladder.records.settings import Rung
from fitladder.workspace import Workspace

__all__ = ["PhasePlan", "plan_phase", "render_plan"]


@dataclass(frozen=True)
class PhasePlan:
    """Everything that the plan shows; see `render_plan`."""

    ask: Ask
    evidence: Evidence
    work_pool: str
    expected: ExpectedPool | None
    speed_tokens_per_s: float | None
    owner: str | None
    changed: str

    @property
    def rung(self) -> Rung:
        return self.evidence.experiment.rung(self.ask.thinking_budget_tokens)

    @property
    def samples(self) -> int:
        experiment = self.evidence.experiment
        return experiment.records_per_arm * experiment.k(self.ask.phase)

    @property
    def most_tokens(self) -> int:
        """If every sample used its whole budget and its whole answer limit."""
        answer = self.evidence.experiment.sampling.answer_max_tokens
        return self.samples * (self.rung.thinking_budget_tokens + answer)

    def table(self) -> list[dict[str, Any]]:
        """The plan's numbers, one a row."""
        experiment, rung = self.evidence.experiment, self.rung
        rows: list[tuple[str, object]] = [
            ("samples", f"{experiment.records_per_arm} records x {experiment.k(self.ask.phase)}"),
            ("thinking budget, tokens", rung.thinking_budget_tokens),
            ("max_num_seqs", rung.max_num_seqs),
            ("longest sequence, tokens", experiment.longest_sequence_tokens(rung)),
            ("KV pool", self.expected.source if self.expected else "not known before the engine is built"),
            (
                "KV fit",
                fit_line(experiment, rung, self.expected.pool, self.active) if self.expected else "unknown",
            ),
            ("capture list", _capture(experiment, rung)),
            ("expected duration", self.duration),
            ("deadline of the generation, s", rung.deadline_s),
        ]
        return [{"what": name, "value": str(value)} for name, value in rows]

    @property
    def active(self) -> int:
        """Sequences that run at once."""
        return min(self.samples, self.rung.max_num_seqs)

    @property
    def duration(self) -> str:
        if self.speed_tokens_per_s is None:
            return f"unknown: nothing of this kind ran here yet; at most {self.most_tokens:,} tokens"
        seconds = self.most_tokens / self.speed_tokens_per_s
        hours = f"{seconds / 3600:.2f} h" if seconds >= 3600 else f"{seconds:.0f} s"
        devices = self.evidence.experiment.engine.tensor_parallel_size
        gpu = (
            f", {seconds / 3600 * devices:.2f} GPU-hours"
            if self.evidence.experiment.engine.backend == "vllm-cuda"
            else ""
        )
        return f"at most {hours}{gpu} at {self.speed_tokens_per_s:.1f} tokens/s"


def _capture(experiment: Experiment, rung: Rung) -> str:
    if experiment.engine.capture == "none":
        return "none: the engine runs eager"
    if rung.capture_sizes is None:
        return "implicit: what vLLM resolves is recorded, uncovered widths stay"
    missing = uncovered_widths(rung.capture_sizes, rung.max_num_seqs)
    return f"{list(rung.capture_sizes)}, exact; uncovered widths: {render_widths(missing)}"


def _changed(workspace: Workspace, ask: Ask) -> str:
    """What moved since the last GO of this experiment."""
    gos = [
        go
        for entry in load_chain(chain_path(workspace.approvals, ask.experiment_id), ask.experiment_id)
        if entry.kind == "go" and isinstance(go := entry.parsed(), Go)
    ]
    if not gos:
        return "This is the first GO that is asked for."
    if gos[-1].binding_sha256 == ask.binding_sha256:
        return f"Nothing is changed since the last GO ({gos[-1].phase}@{gos[-1].thinking_budget_tokens})."
    return (
        f"**The binding moved** since the last GO ({gos[-1].phase}@{gos[-1].thinking_budget_tokens}): "
        f"it was `{gos[-1].binding_sha256}`. See `fitladder binding {ask.experiment_id} --explain`."
    )


def plan_phase(
    workspace: Workspace, ask: Ask, work_pool: str, *, load: Callable[[], Evidence] | None = None
) -> PhasePlan:
    """The plan of one ask on `work_pool`.

    `load`: evidence of this process step, as the ask was checked against; left out it is loaded.
    """
    evidence = (load or evidence_once(workspace, ask.experiment_id))()
    return PhasePlan(
        ask=ask,
        evidence=evidence,
        work_pool=work_pool,
        expected=expected_pool(workspace, evidence),
        speed_tokens_per_s=expected_speed(workspace, evidence, ask.thinking_budget_tokens),
        owner=owner_to_ask(evidence.registry, work_pool, ask.requester),
        changed=_changed(workspace, ask),
    )


def render_plan(plan: PhasePlan) -> str:
    """Markdown that fits one screen; the digest to paste stands on its own line."""
    ask, experiment = plan.ask, plan.evidence.experiment
    reviewer = (
        "the requester may answer (`review: self`)"
        if experiment.review == "self"
        else f"anybody but {ask.requester}"
    )
    signed = (
        "signed with a registered key"
        if plan.evidence.registry.reviewers
        else "self-asserted: no reviewer has a registered key"
    )
    lines = [
        f"# {ask.phase} at {ask.thinking_budget_tokens:,} thinking tokens",
        f"`{ask.experiment_id}`, asked for by **{ask.requester}**, until {ask.deadline}",
        "",
        "| what | value |",
        "|---|---|",
        *(f"| {row['what']} | {row['value']} |" for row in plan.table()),
        f"| model | {experiment.model.name}, {experiment.model.dtype} |",
        f"| runs on | work pool `{plan.work_pool}`, queue `{ask.work_queue}`, {experiment.engine.backend} |",
        f"| reviewer | {reviewer}; {signed} |",
    ]
    if ask.resumes_sha256:
        lines.append(
            f"| attempt | {len(plan.evidence.interrupted_attempts(ask.key)) + 1}, from its first row; the "
            f"interrupted one stays as it is: preflight `{ask.resumes_sha256}` |"
        )
    if plan.owner:
        lines.append(f"| also needed | the hand-off by **{plan.owner}**, who owns `{plan.work_pool}` |")
    lines += [
        "",
        plan.changed,
        "",
        "**Binding SHA-256, to paste into the form:**",
        "",
        f"```\n{ask.binding_sha256}\n```",
        "",
        f"A GO allows `{ask.phase}` at {ask.thinking_budget_tokens} tokens of this experiment under this "
        "binding, once, within its window. It allows no other phase or rung, no second try, no changed "
        "protocol, and no look at decoded text.",
        "",
        "Before a GO:",
        *(f"- {text}" for text in CHECKLIST.values()),
    ]
    if plan.evidence.registry.reviewers:
        lines += ["", f"To sign: `fitladder go sign {ask.experiment_id} --run {ask.ask_id} --key KEY`"]
    return "\n".join(lines) + "\n"

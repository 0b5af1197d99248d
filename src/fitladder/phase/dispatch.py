"""Dispatch of an answered ask to its work pool: the phase run's parameters, or what it still waits for.

Approvals are read again. A GO without a needed hand-off waits; one that no longer holds is refused. What is
decided here is decided again under the root's lock, before the engine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fitladder.approval.chain import chain_path, load_chain
from fitladder.approval.check import check_handed_over, check_usable, owner_to_ask
from fitladder.canonical import canonical_bytes
from fitladder.errors import BindingChanged, GoRefused, LadderRefused
from fitladder.evidence.load import Evidence, evidence_once, load_evidence
from fitladder.phase.ask import answer_to, situation
from fitladder.records.approval import Ask, Go, Handoff
from fitladder.workspace import Workspace

__all__ = ["Ready", "check_ready", "window_go"]


@dataclass(frozen=True)
class Ready:
    """Parameters of the phase run, or the reason why it has to wait."""

    parameters: dict[str, Any]
    waits_for: str | None


def check_ready(
    workspace: Workspace,
    ask: Ask,
    work_pool: str,
    now: datetime,
    *,
    load: Callable[[], Evidence] | None = None,
) -> Ready:
    """Whether the ask's phase may go to `work_pool` now.

    `load`: evidence of this process step, as the answer was checked against; left out it is loaded. Raises
    GoRefused where the answer was no GO, or the GO or hand-off no longer holds.
    """
    entries = load_chain(chain_path(workspace.approvals, ask.experiment_id), ask.experiment_id)
    answer = answer_to(entries, ask.ask_id)
    if answer is None:
        return Ready({}, f"the reviewer's answer to {ask.key}")
    go = answer.parsed()
    if not isinstance(go, Go) or answer.kind != "go":
        raise GoRefused(f"{ask.key} was not allowed", got=answer.kind, need="go")
    evidence = (load or evidence_once(workspace, ask.experiment_id))()
    here = situation(workspace, evidence, ask.key, now)
    check_usable(go, answer.signature, here)
    owner = owner_to_ask(here.registry, work_pool, go.requester)
    spoken = [one for entry in entries if isinstance(one := entry.parsed(), Handoff)]
    if owner is not None and not any(one.ask_id == ask.ask_id for one in spoken):
        return Ready({}, f"the hand-off of {work_pool} by {owner}")
    check_handed_over(entries, go, work_pool, here)
    parameters = {
        "experiment": go.experiment_id,
        "phase": go.phase,
        "budget": go.thinking_budget_tokens,
        "go_sha256": go.sha256,
        "approvals": "".join(canonical_bytes(entry).decode() + "\n" for entry in entries),
        "run_now": not go.allows_window,
    }
    return Ready(parameters, None)


def window_go(workspace: Workspace, experiment_id: str, work_pool: str, now: datetime) -> Go | None:
    """The oldest GO of an experiment that a scheduled agent may take now; None where there is none."""
    entries = load_chain(chain_path(workspace.approvals, experiment_id), experiment_id)
    allowing = [
        (entry, go)
        for entry in entries
        if entry.kind == "go" and isinstance(go := entry.parsed(), Go) and go.allows_window
    ]
    if not allowing:
        return None
    evidence = load_evidence(workspace, experiment_id)
    for entry, go in allowing:
        here = situation(workspace, evidence, go.key, now)
        try:
            check_usable(go, entry.signature, here)
            check_handed_over(entries, go, work_pool, here)
            evidence.check_open(go.key, resume=go.resumes_sha256 is not None)
        except (BindingChanged, GoRefused, LadderRefused):
            continue
        return go
    return None

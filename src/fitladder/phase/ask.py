"""Asks for a GO and their answers, recorded in the approval chain.

Opens an ask, turns a filled-in form into one recorded decision, closes asks that nobody answered. Each step
is safe to repeat: a flow that restarts from the top finds its entry and changes nothing. The root is verified
when a GO is asked for and when it is answered; `load` (see `evidence_once`) lets the steps of one process
share that pass.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from fitladder.approval.chain import append, chain_path, load_chain
from fitladder.approval.check import Identity, Situation, check_handoff, check_statement
from fitladder.approval.form import go_of, handoff_of
from fitladder.approval.uses import load_uses, uses_path
from fitladder.engine.parent.llm_arguments import llm_arguments
from fitladder.errors import BindingChanged, FitladderError, GoRefused
from fitladder.evidence.load import Evidence, evidence_once
from fitladder.records.approval import Ask, Closing, Go, Handoff
from fitladder.records.approval_entry import Draft, Entry, Kind
from fitladder.records.bundle_key import BundleKey
from fitladder.utc import format_utc, parse_utc
from fitladder.workspace import Workspace

__all__ = ["answer_to", "close_overdue", "decide", "open_ask", "record_handoff", "situation"]

ANSWERS: frozenset[Kind] = frozenset({"go", "no_go", "refused", "timed_out", "expired"})


def situation(workspace: Workspace, evidence: Evidence, key: BundleKey, now: datetime) -> Situation:
    """What an approval for `key` is checked against: `evidence`, the clock, this host's queue."""
    return Situation(
        key=key,
        binding_sha256=evidence.binding.binding_sha256,
        now=now,
        experiment=evidence.experiment,
        registry=evidence.registry,
        used_go_sha256s=evidence.used_go_sha256s,
        resumes_sha256=evidence.resumable_sha256(key),
        work_queue=workspace.queue,
    )


def _draft(
    kind: Kind,
    statement: Ask | Go | Handoff | Closing,
    now: datetime,
    identity: Identity | str = "derived",
    signature: str | None = None,
) -> Draft:
    return Draft.model_validate(
        {
            "kind": kind,
            "recorded": format_utc(now),
            "statement": statement.model_dump(mode="json"),
            "signature": signature,
            "identity": identity,
        }
    )


def answer_to(entries: tuple[Entry, ...], ask_id: str) -> Entry | None:
    """The entry that ended this ask, None while it is open."""
    return next(
        (entry for entry in entries if entry.kind in ANSWERS and entry.statement["ask_id"] == ask_id), None
    )


def open_ask(
    workspace: Workspace,
    key: BundleKey,
    *,
    ask_id: str,
    requester: str,
    now: datetime,
    wait_s: int,
    resume: bool = False,
    again: bool = False,
    binding_sha256: str | None = None,
    load: Callable[[], Evidence] | None = None,
) -> Ask:
    """Check that the ladder authorises this phase and its engine can be asked for, then record the ask.

    `ask_id`: the launch, whose ask is found again by it. `wait_s`: how long an answer is waited for.
    `resume`: the phase was interrupted, and another attempt at it is asked for. `again`: an unused GO of it
    is known to lead nowhere any more, as its run is lost. `binding_sha256`: what the requester's own checkout
    binds. `load`: evidence of this process step, left out it is loaded.

    Raises what validation, root, catalog and ladder raise, BindingChanged where the requester's checkout is
    another than this one, and GoRefused where an unused GO stands; nothing is recorded then.
    """
    path = chain_path(workspace.approvals, key.experiment_id)
    for entry in load_chain(path, key.experiment_id):
        if entry.kind == "asked" and entry.statement["ask_id"] == ask_id:
            return _ask(entry)
    evidence = (load or evidence_once(workspace, key.experiment_id))()
    _check_same_checkout(evidence, binding_sha256)
    evidence.check_open(key, resume=resume)
    rung = evidence.experiment.rung(key.thinking_budget_tokens)
    llm_arguments(evidence.experiment, rung, model=evidence.experiment.model.name)  # may it be built at all?
    ask = Ask(
        schema_version=1,
        ask_id=ask_id,
        experiment_id=key.experiment_id,
        binding_sha256=evidence.binding.binding_sha256,
        thinking_budget_tokens=key.thinking_budget_tokens,
        phase=key.phase,
        resumes_sha256=evidence.resumable_sha256(key),
        work_queue=workspace.queue,
        requester=requester,
        asked=format_utc(now),
        deadline=format_utc(now + timedelta(seconds=wait_s)),
    )
    close_overdue(workspace, key.experiment_id, now)

    used = _used(workspace, evidence)

    def choose(entries: tuple[Entry, ...]) -> Draft:
        if not again:
            _check_no_open_go(entries, ask, used, now)
        return _draft("asked", ask, now, "self-asserted")

    append(path, key.experiment_id, choose)
    return ask


def _check_same_checkout(evidence: Evidence, asked_sha256: str | None) -> None:
    """Requester and host bind the experiment alike, so that both speak of one protocol and one code."""
    here = evidence.binding.binding_sha256
    if asked_sha256 not in (None, here):
        name = evidence.experiment.experiment_id
        raise BindingChanged(
            f"{name}: the requester's checkout is not this host's",
            got=f"binding {asked_sha256}",
            need=f"binding {here}",
            do=f"bring both to one commit; `fitladder binding {name} --explain` on each says what differs",
        )


def _used(workspace: Workspace, evidence: Evidence) -> frozenset[str]:
    """Every GO that some preflight names, or that was used here in a root which is gone."""
    name = evidence.experiment.experiment_id
    recorded = load_uses(uses_path(workspace.approvals, name), name)
    return evidence.used_go_sha256s | {use.go_sha256 for use in recorded}


def _check_no_open_go(entries: tuple[Entry, ...], ask: Ask, used: frozenset[str], now: datetime) -> None:
    """No GO that may still be used stands for this phase: two would be two dispatches. Raises GoRefused."""
    about = (ask.key, ask.binding_sha256, ask.resumes_sha256)
    for entry in entries:
        go = entry.parsed() if entry.kind == "go" else None
        if (
            isinstance(go, Go)
            and (go.key, go.binding_sha256, go.resumes_sha256) == about
            and go.sha256 not in used
            and now <= parse_utc(go.expires)
        ):
            raise GoRefused(
                f"an unused GO of {ask.key} stands already",
                got=f"{go.sha256} by {go.reviewer}, until {go.expires}",
                need="one GO a phase",
                do="its run begins by itself, or is retried in Prefect; if it is lost, launch with --again",
            )


def _ask(entry: Entry) -> Ask:
    statement = entry.parsed()
    if not isinstance(statement, Ask):
        raise GoRefused(f"approval line {entry.sequence} is no ask", got=entry.kind)
    return statement


def _closing(ask: Ask, reason: str) -> Closing:
    about = {name: getattr(ask, name) for name in Closing.model_fields if name != "reason"}
    return Closing(**about, reason=reason[:2000])


def decide(
    workspace: Workspace,
    ask: Ask,
    filled: Mapping[str, Any],
    now: datetime,
    *,
    load: Callable[[], Evidence] | None = None,
) -> Entry:
    """Record what a filled-in form says about its ask, after reading everything from disk again.

    `filled`: the form's fields as they came. `load`: evidence of this process step, called for a GO in its
    window only; left out it is loaded.

    The entry's kind tells: go, no_go, expired (its window is over) or refused (with the reason). An ask that
    has its answer keeps it, whatever a second form says.
    """
    path = chain_path(workspace.approvals, ask.experiment_id)

    def choose(entries: tuple[Entry, ...]) -> Draft | None:
        if answer_to(entries, ask.ask_id) is not None:
            return None
        try:
            go, signature = go_of(ask, filled)
            if go.verdict == "NO-GO":
                return _draft("no_go", go, now, "self-asserted", signature)
            if now > parse_utc(go.expires):
                return _draft("expired", _closing(ask, f"the GO ended at {go.expires}"), now)
            evidence = (load or evidence_once(workspace, ask.experiment_id))()
            evidence.check_open(ask.key, resume=ask.resumes_sha256 is not None)
            asked = next(
                e.sequence for e in entries if e.kind == "asked" and e.statement["ask_id"] == ask.ask_id
            )
            _check_no_open_go(
                entries[asked:], ask, _used(workspace, evidence), now
            )  # those before it were known to its ask
            identity = check_statement(go, signature, situation(workspace, evidence, ask.key, now))
            return _draft("go", go, now, identity, signature)
        except FitladderError as refusal:
            return _draft("refused", _closing(ask, str(refusal)), now)

    entry = answer_to(append(path, ask.experiment_id, choose), ask.ask_id)
    if entry is None:
        raise GoRefused(f"{path} did not keep the answer to {ask.ask_id}")
    return entry


def record_handoff(
    workspace: Workspace,
    ask: Ask,
    work_pool: str,
    filled: Mapping[str, Any],
    now: datetime,
    *,
    load: Callable[[], Evidence] | None = None,
) -> Entry:
    """Record the GPU owner's hand-off for an ask. Raises GoRefused where it is declined or not good.

    `load`: evidence of this process step, left out it is loaded.
    """
    path = chain_path(workspace.approvals, ask.experiment_id)

    def recorded_handoff(entries: tuple[Entry, ...]) -> Entry | None:
        return next((e for e in entries if e.kind == "handoff" and e.statement["ask_id"] == ask.ask_id), None)

    def choose(entries: tuple[Entry, ...]) -> Draft | None:
        if recorded_handoff(entries) is not None:
            return None
        handoff, signature = handoff_of(ask, work_pool, filled)
        evidence = (load or evidence_once(workspace, ask.experiment_id))()
        here = situation(workspace, evidence, ask.key, now)
        return _draft("handoff", handoff, now, check_handoff(handoff, signature, work_pool, here), signature)

    entry = recorded_handoff(append(path, ask.experiment_id, choose))
    if entry is None:
        raise GoRefused(f"{path} did not keep the hand-off for {ask.ask_id}")
    return entry


def close_overdue(workspace: Workspace, experiment_id: str, now: datetime) -> tuple[Ask, ...]:
    """Record every ask whose deadline passed without an answer as timed out; returns those closed now."""
    path = chain_path(workspace.approvals, experiment_id)
    closed: list[Ask] = []

    def choose(entries: tuple[Entry, ...]) -> Draft | None:
        for ask in (_ask(entry) for entry in entries if entry.kind == "asked"):
            if now > parse_utc(ask.deadline) and answer_to(entries, ask.ask_id) is None:
                closed.append(ask)
                return _draft("timed_out", _closing(ask, f"nobody answered before {ask.deadline}"), now)
        return None

    while True:
        before = len(closed)
        if not load_chain(path, experiment_id):
            return ()
        append(path, experiment_id, choose)
        if len(closed) == before:
            return tuple(closed)

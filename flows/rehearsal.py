"""The whole life of one experiment on this machine's CPU: `python -m flows.rehearsal [EXPERIMENT] [--yes]`.

Validate, binding, plan, GO, phase, receipt, audit, ladder, until the ladder ends; then DVC and the report.
Every GO goes through the launch flow, as it would on a cluster. Run again, it redoes nothing.
"""

import argparse
import getpass
import signal
import sys
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from fitladder.approval.chain import chain_path, load_chain
from fitladder.approval.uses import load_uses, uses_path
from fitladder.dvc_api.publish import run_lineage
from fitladder.errors import EnvironmentNotReady, FitladderError, GoRefused, LadderRefused, RootRefused
from fitladder.evidence.load import Evidence, load_evidence
from fitladder.ladder.authorise import NextPhase
from fitladder.phase.ask import answer_to
from fitladder.phase.prompt_tokens import check_model
from fitladder.phase.scratch import wait_for_engines
from fitladder.prefect_api.follow import follow, refusal_of
from fitladder.prefect_api.runs import FlowRun, create_run, resume_run, run_of_go
from fitladder.prefect_api.session import Session, open_session
from fitladder.records.approval import CHECKLIST, Ask, Go
from fitladder.registry.restart_advice import REHEARSAL, restart_advice
from fitladder.store.held_root import ensure_root
from fitladder.workspace import Workspace, workspace_here
from flows.rehearsal_words import Words

__all__ = ["main", "rehearse"]

ENGINE_PATIENCE_S = 45.0
ENDS = ("selected", "exhausted")


def _check_ready(workspace: Workspace, evidence: Evidence, *, alone: bool) -> None:
    """What can be known to fail is said before anything is started."""
    state, name = evidence.next.state, evidence.experiment.experiment_id
    uses = load_uses(uses_path(workspace.approvals, name), name)
    if uses and not evidence.root.exists():
        raise RootRefused(
            f"{evidence.root} is gone",
            got="nothing there",
            need=f"the root in which {uses[0].key} was begun",
            do=f"bring it back, or {restart_advice(name)}",
        )
    if state in ("stopped", "terminal"):
        raise LadderRefused(
            f"{name} is registered as {state}: it runs no more",
            need="an experiment whose state is open",
            do=f"read `fitladder status {name}`, or {restart_advice(name)}",
        )
    if state not in ("open", "interrupted", *ENDS):
        raise LadderRefused(
            f"{name} cannot go on",
            got=evidence.next.reason,
            need="a phase that is due",
            do=f"keep its root as it is; {restart_advice(name)}",
        )
    evidence.check_one_binding()
    if state not in ENDS:
        if alone and evidence.experiment.review != "self":
            raise GoRefused(
                f"{name} needs another person's GO",
                got="no terminal to wait at",
                need="`review: self`, or a reviewer at the Prefect UI",
            )
        workspace.engine_command()
        check_model(workspace, evidence.experiment)
        ensure_root(evidence.root, name)


def _own_go(session: Session, run: FlowRun, ask: Ask) -> None:
    """The requester answers the form; only `review: self` accepts that, and the receipt will say so."""
    form: dict[str, Any] = {
        "verdict": "GO",
        "reviewer": ask.requester,
        "binding_sha256": ask.binding_sha256,
        **dict.fromkeys(CHECKLIST, True),
        "notes": "self-GO of a rehearsal",
    }
    resume_run(session.api, run, form)


def _ask_of(workspace: Workspace, experiment_id: str, ask_id: str) -> Ask:
    for entry in load_chain(chain_path(workspace.approvals, experiment_id), experiment_id):
        if isinstance(ask := entry.parsed(), Ask) and ask.ask_id == ask_id:
            return ask
    raise GoRefused(f"launch {ask_id} recorded no ask")


def _recorded_go(workspace: Workspace, ask: Ask, run: FlowRun) -> Go:
    entries = load_chain(chain_path(workspace.approvals, ask.experiment_id), ask.experiment_id)
    answer = answer_to(entries, ask.ask_id)
    go = answer.parsed() if answer else None
    if answer is None or not isinstance(go, Go) or answer.kind != "go":
        raise GoRefused(f"{ask.key} got no GO", got=run.message or run.state_name, need="GO")
    return go


def _one_phase(workspace: Workspace, session: Session, due: NextPhase, words: Words, *, alone: bool) -> None:
    key = due.key or due.resumable
    if key is None:
        raise LadderRefused("no phase is due", got=due.reason)
    launch = create_run(
        session.api,
        "launch/launch",
        {
            "experiment": key.experiment_id,
            "phase": key.phase,
            "budget": key.thinking_budget_tokens,
            "requester": getpass.getuser(),
            "resume": due.resumable is not None,
            "again": True,  # a GO that an interrupted rehearsal left unused: its run went with it
            "starts_lineage": False,  # lineage runs once, at the end
        },
        queue=workspace.queue,
    )
    watch = partial(follow, session.api, on_line=words.live, check_alive=session.check_alive)
    run = watch(launch.run_id, until=lambda one: one.state_type == "PAUSED")
    if run.is_final:
        raise refusal_of(run)
    ask = _ask_of(workspace, key.experiment_id, run.run_id)
    words.asked(ask, run.run_id, session.api, alone=alone)
    if alone:
        _own_go(session, run, ask)
    run = watch(run.run_id)
    if run.state_type != "COMPLETED":
        raise refusal_of(run)
    go = _recorded_go(workspace, ask, run)
    dispatched = run_of_go(session.api, go.sha256)
    if dispatched is None:
        raise GoRefused(f"{key} was not dispatched", got=run.message)
    words.dispatched(key, go)
    ended = watch(dispatched.run_id)
    if ended.state_type != "COMPLETED":
        raise refusal_of(ended)


def rehearse(
    workspace: Workspace, experiment_id: str, words: Words, *, alone: bool, port: int | None
) -> None:
    """From wherever the experiment stands to the end of its ladder, then lineage and report."""
    evidence = load_evidence(workspace, experiment_id)
    words.protocol(workspace, evidence)
    _check_ready(workspace, evidence, alone=alone)
    if evidence.next.state not in ENDS:
        home = Path(workspace.environment.get("PREFECT_HOME") or workspace.folder / ".prefect")
        with open_session(workspace, home, port=port, tell=words.step) as session:
            while (due := evidence.next).state not in ENDS:
                words.due(due)
                _one_phase(workspace, session, due, words, alone=alone)
                evidence = load_evidence(workspace, experiment_id)
                words.audited(evidence)
            words.step("putting server and workers away")
    words.step("DVC: bundles in, audits again, report, push")
    done = run_lineage(experiment_id, evidence.root, workspace.folder, workspace.environment)
    words.ended(evidence, done)


def _left_engines() -> tuple[int, ...]:
    """Engines that outlive our patience: one that still imports hears nothing until it is done with that."""
    try:
        return wait_for_engines(workspace_here().scratch, ENGINE_PATIENCE_S)
    except KeyboardInterrupt:
        return wait_for_engines(workspace_here().scratch, 0.0)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    """Exit code: 0 done, the refusing error's own, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m flows.rehearsal", description=__doc__)
    parser.add_argument("experiment", nargs="?", default=REHEARSAL)
    parser.add_argument("--yes", action="store_true", help="give the GO myself, where `review: self`")
    parser.add_argument("--port", type=int, help="port of the Prefect server that is started")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _terminate)
    words = Words()
    try:
        alone = chosen.yes or not sys.stdin.isatty()
        rehearse(workspace_here(), chosen.experiment, words, alone=alone, port=chosen.port)
    except FitladderError as error:
        words.refused(error)
        return error.exit_code
    except OSError as error:
        refusal = EnvironmentNotReady("this machine said no", got=error, do="fix that, then run it again")
        words.refused(refusal)
        return refusal.exit_code
    except KeyboardInterrupt:
        words.interrupted(_left_engines())
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Approval chain of an experiment as lines of its page, with a note on what proves each name."""

from pathlib import Path

from fitladder.approval.chain import chain_path, load_chain
from fitladder.errors import GoRefused
from fitladder.records.approval import Ask, Closing, Go, Handoff
from fitladder.records.approval_entry import Entry
from fitladder.records.experiment import Experiment
from fitladder.report.view import Approval, PhaseView

__all__ = ["approval_lines", "approvals_note"]

KIND_WORDS = {
    "asked": "asked",
    "go": "GO",
    "no_go": "NO-GO",
    "refused": "refused",
    "timed_out": "timed out",
    "expired": "expired",
    "handoff": "GPU hand-off",
}


def approval_lines(data_dir: Path, experiment_id: str, phases: tuple[PhaseView, ...]) -> tuple[Approval, ...]:
    """Every entry of the verified chain, oldest first.

    Args:
        data_dir: the data folder that holds the approvals.
        experiment_id: a registered experiment.
        phases: its phases, whose GOs are marked as used.

    Raises GoRefused on a broken chain, or where phases were begun and no file is here.
    """
    used = {
        attempt.go_sha256: f"{phase.label}, attempt {attempt.number}, interrupted"
        for phase in phases
        for attempt in phase.interrupted
        if attempt.go_sha256
    } | {
        phase.go_sha256: f"{phase.label}, attempt {phase.attempt}" if phase.interrupted else phase.label
        for phase in phases
        if phase.go_sha256
    }
    path = chain_path(data_dir / "approvals", experiment_id)
    entries = load_chain(path, experiment_id)
    if used and not path.exists():
        raise GoRefused(
            f"{path} is missing",
            got="nothing",
            need=f"the approvals of {', '.join(used.values())}",
            do="restore it from Git",
        )
    return tuple(_line(entry, used) for entry in entries)


def _line(entry: Entry, used: dict[str, str]) -> Approval:
    said = entry.parsed()
    go = entry.kind == "go"
    return Approval(
        sequence=entry.sequence,
        kind=KIND_WORDS[entry.kind],
        phase=f"{said.phase} at {said.thinking_budget_tokens:,}",
        recorded=entry.recorded,
        requester=said.requester if isinstance(said, Ask | Go) else "",
        reviewer=said.reviewer if isinstance(said, Go) else said.owner if isinstance(said, Handoff) else "",
        identity=_identity(entry, said),
        window=f"{said.not_before} to {said.expires}" if isinstance(said, Go | Handoff) else "",
        used_for=used.get(said.sha256, "not used") if go else "",
        notes=said.notes if isinstance(said, Go) else said.reason if isinstance(said, Closing) else "",
        sha256=said.sha256 if go else entry.sha256,
    )


def _identity(entry: Entry, said: object) -> str:
    if isinstance(said, Go) and said.requester == said.reviewer:
        return "self-GO, signed" if entry.identity == "signed" else "self-GO, self-asserted"
    return entry.identity


def approvals_note(
    experiment: Experiment, phases: tuple[PhaseView, ...], lines: tuple[Approval, ...], *, signing: bool
) -> str:
    """What a reader must know before believing a name in the table; empty where nothing needs saying.

    Args:
        experiment: the registered experiment.
        phases: its phases; a GO that one names and `lines` lack is told.
        lines: as `approval_lines` gave them.
        signing: whether any reviewer's key is registered.
    """
    said = []
    known = {line.sha256 for line in lines if line.kind == "GO"}
    unproved = [phase.label for phase in phases if phase.go_sha256 and phase.go_sha256 not in known]
    if unproved:
        said.append(
            f"The GO of {', '.join(unproved)} is not among the approvals kept here: "
            "nothing proves who allowed it."
        )
    if experiment.review == "self":
        said.append(
            "Registered with review: self. A GO of the person who runs it is enough, and nobody else looked."
        )
    if lines and not signing:
        said.append("No reviewer key is registered, so every name below is self-asserted: nothing proves it.")
    elif any(line.kind == "GO" and "self-asserted" in line.identity for line in lines):
        said.append("A name marked self-asserted is not proved by a signature.")
    return " ".join(said)

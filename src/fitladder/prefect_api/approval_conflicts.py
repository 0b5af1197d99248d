"""Conflicts between the approvals on disk and what the server recorded of launches and phases.

A chain of approvals shows every edit but one at its end. The server kept what it was sent: each phase run the
whole chain at its dispatch, each launch how it ended. An answer that this checkout never received is no edit.
"""

from collections.abc import Iterable, Sequence

from fitladder.canonical import canonical_bytes, sha256_bytes
from fitladder.phase.ask import answer_to
from fitladder.prefect_api.runs import FlowRun
from fitladder.records.approval_entry import Entry, Kind

__all__ = ["audit_approvals"]

ENDED_AS: dict[str, Kind] = {
    "Completed": "go",
    "NO-GO": "no_go",
    "Expired": "expired",
    "Refused": "refused",
}


def audit_approvals(
    chain: tuple[Entry, ...],
    *,
    launches: Sequence[FlowRun],
    phases: Sequence[FlowRun],
    used: Iterable[str],
    is_whole: bool = True,
) -> tuple[str, ...]:
    """Return one line for each contradiction, with both values.

    Args:
        chain: approvals of one experiment, oldest first.
        launches: its launch runs.
        phases: its phase runs.
        used: SHA-256 of the GOs that preflights on disk name.
        is_whole: False where the chain is a reader's copy, which may lack the newest entries.
    """
    known = {entry.parsed().sha256 for entry in chain if entry.kind == "go"}
    gone = [f"the GO {go} of a preflight is not in the approvals" for go in used if go not in known]
    edited = (_dispatch_conflict(chain, run, is_whole=is_whole) for run in phases)
    ended = (_answer_conflict(chain, run) for run in launches)
    return (*gone, *filter(None, edited), *filter(None, ended))


def _dispatch_conflict(chain: tuple[Entry, ...], run: FlowRun, *, is_whole: bool) -> str | None:
    sent = str(run.parameters.get("approvals") or "").encode().splitlines()
    for number, line in enumerate(sent if is_whole else sent[: len(chain)], start=1):
        own = canonical_bytes(chain[number - 1]) if number <= len(chain) else b""
        if own != line:
            found = sha256_bytes(own) if own else "nothing"
            return (
                f"line {number} of the approvals is not what run {run.name} was dispatched with: "
                f"got {found}, need {sha256_bytes(line)}"
            )
    return None


def _answer_conflict(chain: tuple[Entry, ...], run: FlowRun) -> str | None:
    need, answer = ENDED_AS.get(run.state_name), answer_to(chain, run.run_id)
    if need is None or answer is None or answer.kind == need:
        return None
    return f"launch {run.name} ended as {run.state_name}, but the approvals say {answer.kind}: need {need}"

"""Do the approvals on disk contradict what was answered and dispatched, as the server remembers it?

A chain shows by itself every edit but that of its end. The server kept what it was told: each phase run the
whole chain of its dispatch, each launch how it ended. Answers that this checkout never received are no edit.
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
    """One line a contradiction, each with both values. `used`: the GOs that preflights on disk name.

    `is_whole`: False where the chain is a reader's copy, whose end may still be on its way.
    """
    known = {entry.parsed().sha256 for entry in chain if entry.kind == "go"}
    gone = [f"the GO {go} of a preflight is not in the approvals" for go in used if go not in known]
    edited = (_dispatched_with(chain, run, is_whole=is_whole) for run in phases)
    answered = (_answered(chain, run) for run in launches)
    return (*gone, *filter(None, edited), *filter(None, answered))


def _dispatched_with(chain: tuple[Entry, ...], run: FlowRun, *, is_whole: bool) -> str | None:
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


def _answered(chain: tuple[Entry, ...], run: FlowRun) -> str | None:
    need, answer = ENDED_AS.get(run.state_name), answer_to(chain, run.run_id)
    if need is None or answer is None or answer.kind == need:
        return None
    return f"launch {run.name} ended as {run.state_name}, but the approvals say {answer.kind}: need {need}"

"""Audit section: verdict, timeline, periods and interrupted attempts of every phase."""

from fitladder.report.charts.termination import period_chart
from fitladder.report.charts.timeline import timeline_chart
from fitladder.report.document import Block, Callout, Facts, FigureBlock, Heading, Para, Section, Table, Tone
from fitladder.report.view import ExperimentView, PhaseView, Share, Termination
from fitladder.report.words import NOT_RECORDED, count, duration, fixed, percent

__all__ = ["audit_section", "share_sentence", "timeline_words"]


def audit_section(view: ExperimentView) -> Section:
    """Phase by phase: the content-blind audit, its timeline and its periods."""
    blocks: list[Block] = [
        Para(
            "The audit reads counts, finish metadata and token ids. It reads no text, no parser output, no "
            "correctness and no hidden example."
        )
    ]
    groups = []
    for phase in view.phases:
        blocks.append(Heading(f"{phase.label[0].upper()}{phase.label[1:]}"))
        blocks += _attempts(phase)
        if phase.termination is None:
            blocks.append(Callout(_why_no_audit(phase), "open"))
            continue
        groups.append((phase.label, phase.termination.periods_tokens))
        blocks += _audit_blocks(phase, phase.termination)
    if groups:
        largest = view.complete[0].termination
        blocks.append(FigureBlock((period_chart(groups, largest.max_period_tokens if largest else 0),)))
    return Section("audit", "Audit, rung by rung", tuple(blocks))


def _attempts(phase: PhaseView) -> list[Block]:
    """Nothing for a phase that was begun once."""
    if not phase.interrupted:
        return []
    return [
        Callout(
            f"This is attempt {phase.attempt}, in {phase.folder}. It began at the first row under its own "
            "GO; no row of an interrupted attempt was kept, and each of their GOs is used.",
            "note",
        ),
        Table(
            f"Interrupted attempts at the {phase.label}, as its preflight names them",
            ("attempt", "folder", "preflight, SHA-256", "GO, SHA-256"),
            tuple(
                (str(one.number), one.folder, one.preflight.sha256, one.go_sha256 or NOT_RECORDED)
                for one in phase.interrupted
            ),
        ),
    ]


def _why_no_audit(phase: PhaseView) -> str:
    if phase.state == "preflight only":
        return "Preflight only: the live gates passed, then the phase ended before any row: nothing to audit."
    return "Not run: no bundle exists, so there is nothing to audit."


def _audit_blocks(phase: PhaseView, audit: Termination) -> list[Block]:
    tone: Tone = "good" if audit.adequate else "bad"
    blocks: list[Block] = [
        Callout(
            ("Adequate: " if audit.adequate else "Not adequate: ")
            + "; ".join(share_sentence(share) for share in audit.shares)
            + ".",
            tone,
        ),
        Facts(
            (
                ("Samples", count(audit.samples)),
                (
                    "Boundary contacts",
                    f"{count(audit.boundary_contacts)}, of them forced closes {audit.forced_closes}",
                ),
                ("Answer restarts after a natural close", count(audit.answer_restarts_after_natural_close)),
                ("Thinking tokens burned in loops", _burned(audit)),
                ("Generation", _speed(phase)),
                ("Preemptions", count(phase.generation.preemptions if phase.generation else None)),
                ("Periods", " ".join(map(str, audit.periods_tokens)) or "no loop"),
            )
        ),
    ]
    blocks += [Para(note) for note in audit.notes]
    if phase.generation:
        blocks += [Para(f"Noted by the engine: {warning}") for warning in phase.generation.warnings]
    if audit.rows:
        name = f"timeline-{phase.thinking_budget_tokens}-{phase.phase}"
        blocks.append(
            FigureBlock((timeline_chart(phase.label, audit.rows, phase.thinking_budget_tokens, name=name),))
        )
    else:
        blocks.append(
            Para(
                "Loop timeline: not drawn. The record of this phase keeps totals and periods; where each "
                f"loop began was {NOT_RECORDED}."
            )
        )
    return blocks


def timeline_words() -> str:
    """What a loop timeline shows, in one sentence."""
    return (
        "One row a sample, from its first thinking token. Hatched, from the onset on, it only repeats "
        "itself: everything there was burned."
    )


def share_sentence(share: Share) -> str:
    """`loops 37 of 48 (77.1 %, 95 % interval 63.5 % to 86.7 %), ceiling at most 25 %, exceeded`."""
    return (
        f"{share.name} {share.count} of {share.total} ({percent(share.count / (share.total or 1))}, "
        f"95\u00a0% interval {percent(share.low)} to {percent(share.high)}), ceiling {share.ceiling_text}, "
        f"{'within' if share.within else 'exceeded'}"
    )


def _burned(audit: Termination) -> str:
    if audit.burned_tokens is None:
        return NOT_RECORDED
    of = audit.thinking_tokens or 0
    return f"{count(audit.burned_tokens)} of {count(of)} ({percent(audit.burned_tokens / (of or 1))})"


def _speed(phase: PhaseView) -> str:
    made = phase.generation
    if made is None:
        return NOT_RECORDED
    load = f"; model load {fixed(made.load_s)} s apart from it" if made.load_s is not None else ""
    return (
        f"{count(made.sampled_tokens)} sampled tokens in {fixed(made.generation_s)} s "
        f"({duration(made.generation_s)}) = {fixed(made.tokens_per_s)} tokens/s{load}"
    )

"""What was frozen, who allowed it, what did gates and ladder say, and how is all that checked?"""

from fitladder.report.document import Block, Callout, Commands, Facts, Heading, Para, Section, Table, Tone
from fitladder.report.view import Answers, ExperimentView
from fitladder.report.words import byte_size, count

__all__ = [
    "approvals_section",
    "artifacts_section",
    "gates_section",
    "ladder_section",
    "log_section",
    "protocol_section",
]


def protocol_section(view: ExperimentView) -> Section:
    """The frozen protocol and the inputs by hash."""
    return Section(
        "protocol",
        "Protocol",
        (
            Facts(view.protocol),
            Table("Inputs, by SHA-256", ("input", "SHA-256"), view.data),
            Facts((("Binding", view.binding_sha256), ("What it binds", view.binding_note))),
        ),
    )


def approvals_section(view: ExperimentView) -> Section:
    """Who asked, who decided, and how sure we are who that was."""
    blocks: list[Block] = []
    if view.approvals_note:
        blocks.append(Callout(view.approvals_note, "note"))
    if view.approvals:
        blocks.append(
            Table(
                "The approval chain, oldest first; a GO is named by the digest that its receipt names",
                (
                    "no.",
                    "entry",
                    "phase",
                    "recorded",
                    "requester",
                    "reviewer",
                    "identity",
                    "window",
                    "used for",
                    "notes",
                    "SHA-256",
                ),
                tuple(
                    (
                        str(line.sequence),
                        line.kind,
                        line.phase,
                        line.recorded,
                        line.requester,
                        line.reviewer,
                        line.identity,
                        line.window,
                        line.used_for,
                        line.notes,
                        line.sha256,
                    )
                    for line in view.approvals
                ),
                numeric=frozenset({0}),
            )
        )
    elif view.source == "verified bundles":
        blocks.append(Callout("No GO was asked for yet.", "open"))
    return Section("approvals", "GO history", tuple(blocks))


def gates_section(view: ExperimentView) -> Section:
    """The live gates of every phase that got as far as an engine."""
    blocks: list[Block] = []
    for plan in view.refused_plans:
        blocks.append(Callout(f"Any {plan.label} is refused before an engine is built. {plan.reason}", "bad"))
    passed = [phase for phase in view.phases if phase.gates]
    if passed:
        blocks.append(
            Para(
                "Each gate ran on the live engine, after it was built and before a token was sampled. "
                "A refusal is an infrastructure failure, never a result."
            )
        )
    else:
        blocks.append(Callout("Not run: no engine was built yet.", "open"))
    for phase in passed:
        blocks.append(
            Table(
                f"Gates of the {phase.label}: all passed",
                ("gate", "figure", "value"),
                tuple((gate.name, name, value) for gate in phase.gates for name, value in gate.numbers),
                folded=True,
            )
        )
    return Section("gates", "Gates", tuple(blocks))


def ladder_section(view: ExperimentView) -> Section:
    """Each decision, then the end."""
    blocks: list[Block] = []
    if view.decisions:
        blocks.append(
            Table(
                "Decisions in ladder order",
                ("phase", "outcome", "why", "what that authorises"),
                tuple((item.subject, item.outcome, item.reason, item.next_step) for item in view.decisions),
            )
        )
    end = view.selection
    if end is None:
        tone: Tone = "bad" if view.state == "stopped" else "open"
        blocks.append(Callout(f"No selection was made. {view.verdict_reason}", tone))
    elif end.passed:
        blocks.append(
            Callout(f"Selected: the rung of {count(end.selected_budget_tokens)} tokens. {end.reason}", "good")
        )
    else:
        blocks.append(Callout(f"Terminal: pass: false, selected: null. {end.reason}", "bad"))
    if end is not None and end.sha256:
        blocks.append(Facts((("Selection, SHA-256", end.sha256),)))
    if view.answers is not None:
        blocks += _answers(view.answers)
    blocks.append(Para("No phase advances by itself: each needs its own GO, and nothing crosses a rung."))
    return Section("ladder", "Ladder decision", tuple(blocks))


def _answers(found: Answers) -> list[Block]:
    """The semantic gates; one sentence where no answer was read."""
    blocks: list[Block] = [Heading("Semantic gates")]
    if not found.gates:
        return [*blocks, Callout(found.sentence, "open")]
    return [
        *blocks,
        Callout(found.sentence, "good" if found.passed else "bad"),
        Table("The three gates", ("gate", "got", "need", "outcome"), found.gates),
        Table("The two arms", ("arm", "answers parsed", "reuse tasks", "no-reuse tasks"), found.arms),
    ]


def artifacts_section(view: ExperimentView) -> Section:
    """Every file by size and hash, and what to type to prove this page."""
    rows = []
    for phase in view.phases:
        rows += [
            (
                f"{phase.label}, attempt {one.number}, interrupted",
                one.preflight.name,
                byte_size(one.preflight.bytes),
                one.preflight.sha256,
            )
            for one in phase.interrupted
        ]
        rows += [(phase.label, item.name, byte_size(item.bytes), item.sha256) for item in phase.files]
    rows += [(phase.label, "audit", "", phase.audit_sha256) for phase in view.phases if phase.audit_sha256]
    rows += [("experiment", item.name, byte_size(item.bytes), item.sha256) for item in view.files]
    blocks: list[Block] = [
        Table("Artifacts", ("of", "file", "size", "SHA-256"), tuple(rows))
        if rows
        else Callout("Not run: there is no artifact yet.", "open"),
        Heading("Check it yourself"),
        Commands(view.commands),
    ]
    return Section("artifacts", "Artifacts and how to re-verify them", tuple(blocks))


def log_section(view: ExperimentView) -> Section:
    """The running log, append-only and chained."""
    if not view.log:
        command = f'fitladder log {view.experiment_id} "text"'
        return Section(
            "log", "Running log", (Para("Nothing was logged."), Commands(((command, "appends a line"),)))
        )
    return Section(
        "log",
        "Running log",
        (
            Table(
                "Append-only; each line names the hash of the one before",
                ("no.", "recorded", "author", "text", "SHA-256"),
                tuple((str(x.sequence), x.recorded, x.author, x.text, x.sha256) for x in view.log),
                numeric=frozenset({0}),
            ),
        ),
    )

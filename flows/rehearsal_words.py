"""What the rehearsal prints: one line a step, a live line a phase, and tables of what was found."""

import sys
import time
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from fitladder.dvc_api.publish import Carried
from fitladder.errors import FitladderError
from fitladder.evidence.load import Evidence
from fitladder.ladder.authorise import NextPhase
from fitladder.phase.expectation import expected_pool, fit_line
from fitladder.prefect_api.client import PrefectApi
from fitladder.records.approval import Ask, Go
from fitladder.records.audit import TerminationAudit
from fitladder.records.bundle_key import BundleKey
from fitladder.records.generation_time import generation_s, tokens_per_s
from fitladder.workspace import Workspace

__all__ = ["Words"]

PLAIN_LIVE_INTERVAL_S = 10.0
OVERCOMMIT = 2


class Words:
    """A console with a clock. Refusals go to standard error, as one line."""

    def __init__(self) -> None:
        terminal = sys.stdout.isatty()
        self._out = Console(width=None if terminal else 150, highlight=False, soft_wrap=True)
        self._terminal, self._began_s, self._live_s = terminal, time.monotonic(), 0.0
        self._on_live_line = False

    def step(self, text: str) -> None:
        """One line with the seconds since the start."""
        self._leave_live_line()
        self._out.print(f"[dim]{time.monotonic() - self._began_s:6.1f} s[/]  {text}")

    def live(self, text: str) -> None:
        """The moving line: in place on a terminal, every ten seconds elsewhere."""
        now_s = time.monotonic()
        if self._terminal:
            sys.stdout.write(f"\r\x1b[K           {text}")
            sys.stdout.flush()
            self._on_live_line = True
        elif now_s - self._live_s >= PLAIN_LIVE_INTERVAL_S:
            self._live_s = now_s
            self.step(text)

    def _leave_live_line(self) -> None:
        if self._on_live_line:
            sys.stdout.write("\n")
            self._on_live_line = False

    def protocol(self, workspace: Workspace, evidence: Evidence) -> None:
        """Validate, binding, and the plan twice: as nobody may run it, and as registered."""
        experiment = evidence.experiment
        self.step(f"[b]{experiment.experiment_id}[/]: params.yaml is valid; a rehearsal of the machinery")
        self.step(f"binding {evidence.binding.binding_sha256}")
        expected = expected_pool(workspace, evidence)
        if expected is None:
            return
        self.step(f"plan: KV pool of {expected.source}")
        widest = experiment.rungs[-1]
        over = OVERCOMMIT * widest.max_num_seqs
        refused = fit_line(experiment, widest, expected.pool, over)
        self.step(f"plan at {widest.thinking_budget_tokens}: [red]refused[/]: {refused}")
        for rung in experiment.rungs:
            line = fit_line(experiment, rung, expected.pool, rung.max_num_seqs)
            self.step(f"plan at {rung.thinking_budget_tokens}: [green]passes[/]: {line}")

    def due(self, due: NextPhase) -> None:
        """What the ladder authorises."""
        what = "another attempt after" if due.resumable else "authorised:"
        self.step(f"[b]{what} {due.reason}[/]")

    def asked(self, ask: Ask, run_id: str, api: PrefectApi, *, alone: bool) -> None:
        """Where the GO can be given."""
        if alone:
            self.step(
                f"self-GO for {ask.phase}@{ask.thinking_budget_tokens} (`review: self`), by {ask.requester}"
            )
            return
        self.step(f"waiting for a GO, by the Resume button: {api.ui_url}/runs/flow-run/{run_id}")
        self.step(
            f"or in another terminal: PREFECT_API_URL={api.url} .venv/bin/fitladder go {ask.experiment_id}"
        )

    def dispatched(self, key: BundleKey, go: Go) -> None:
        """The GO is recorded and used for one phase."""
        self.step(f"GO {go.sha256[:12]} by {go.reviewer}: {key.phase}@{key.thinking_budget_tokens} begins")

    def audited(self, evidence: Evidence) -> None:
        """The newest phase's three rates, and what follows for the ladder."""
        audit = evidence.audits[-1]
        receipt = evidence.bundles[-1].receipt
        totals = receipt.totals
        seconds = generation_s(totals)
        self.step(
            f"receipt: {receipt.rows} samples, {totals.sampled_tokens:,} tokens in {seconds:.1f} s, "
            f"{tokens_per_s(totals.sampled_tokens, seconds) or 0.0:.1f} tokens/s, "
            f"{receipt.counters['preemptions']} preemptions, GO {receipt.go_identity}"
        )
        self._out.print(_rates(audit))
        verdict = "[green]adequate[/]" if audit.adequate else "[red]rejected[/]"
        self.step(
            f"{audit.bundle.phase}@{audit.bundle.thinking_budget_tokens}: {verdict}; {evidence.next.reason}"
        )

    def ended(self, evidence: Evidence, done: Carried) -> None:
        """The end state, every phase in one table, and where everything lies."""
        table = Table(title="results", title_justify="left")
        for column in (
            "rung",
            "phase",
            "samples",
            "unresolved",
            "answer limit",
            "loops",
            "tokens/s",
            "outcome",
        ):
            table.add_column(column)
        for bundle, audit in zip(evidence.bundles, evidence.audits, strict=True):
            totals = bundle.receipt.totals
            seconds = generation_s(totals)
            table.add_row(
                str(audit.bundle.thinking_budget_tokens),
                audit.bundle.phase,
                str(audit.samples),
                str(audit.unresolved_cap_contacts),
                str(audit.answer_limit_contacts),
                str(audit.periodic_loop_contacts),
                f"{tokens_per_s(totals.sampled_tokens, seconds) or 0.0:.1f}",
                "adequate" if audit.adequate else "rejected",
            )
        self._leave_live_line()
        self._out.print(table)
        self.step(f"[b]{evidence.next.state}: {evidence.next.reason}[/]")
        pushed = f"pushed to `{done.pushed_to}`" if done.pushed_to else "pushed nowhere"
        tree = done.ingested.tree_sha256[:12]
        self.step(f"{done.ingested.bundles} bundles in data/bundles, tree {tree}, {pushed}")
        self.step(f"selection {done.selection}")
        self.step(f"[b]report    {done.report}[/]")

    def refused(self, error: FitladderError) -> None:
        """The one line of a refusal."""
        self._leave_live_line()
        sys.stdout.flush()
        sys.stderr.write(f"fitladder: {error}\n")

    def interrupted(self, left: Sequence[int]) -> None:
        """After Ctrl-C; `left`: processes of an engine that is still alive."""
        self._leave_live_line()
        gone = "server, workers and engine are put away"
        if left:
            alive = ", ".join(map(str, left))
            gone = f"server and workers are put away; an engine of this checkout is still alive (pid {alive})"
        sys.stderr.write(f"fitladder: interrupted; {gone}; run it again to go on\n")


def _rates(audit: TerminationAudit) -> Table:
    table = Table(
        title=f"audit of {audit.bundle.phase}@{audit.bundle.thinking_budget_tokens}", title_justify="left"
    )
    for column in ("rate", "count", "limit", "holds"):
        table.add_column(column)
    limits = {"below": "below", "at_most": "at most"}
    for name, rate in (
        ("unresolved cap contacts", audit.unresolved_cap_contact_rate),
        ("answer-limit contacts", audit.answer_limit_contact_rate),
        ("periodic loops", audit.periodic_loop_rate),
    ):
        table.add_row(
            name,
            f"{rate.contacts} of {rate.samples}",
            f"{limits[rate.must_be]} {rate.threshold}",
            "yes" if rate.within else "no",
        )
    loops = [row for row in audit.rows if row.onset_token is not None]
    if loops:
        onsets = sorted(row.onset_token for row in loops if row.onset_token is not None)
        table.caption = (
            f"loops of period {', '.join(map(str, audit.period_tokens))} began at token "
            f"{', '.join(map(str, onsets))}; {audit.tokens_after_onset:,} tokens burned after that"
        )
    return table

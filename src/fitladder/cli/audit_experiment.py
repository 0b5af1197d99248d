"""`fitladder audit EXPERIMENT`: recomputes the termination audits of its verified bundles."""

from pathlib import Path

import typer

from fitladder.cli.options import print_json, print_table
from fitladder.errors import BundlePartial
from fitladder.evidence.audit_bundle import audit_bundle
from fitladder.evidence.checkout_bundles import load_bundles
from fitladder.records.audit import AuditedRate, TerminationAudit
from fitladder.records.experiment import Experiment
from fitladder.registry.data_paths import sealed_paths
from fitladder.sandbox.audit_hook import content_blind, no_new_files

__all__ = ["print_audits"]


def print_audits(experiment: Experiment, data: Path, seal: str, *, as_json: bool) -> None:
    """Verify, audit and print every complete phase. Raises BundlePartial where there is none."""
    experiment_id = experiment.experiment_id
    with content_blind(sealed_paths(data, experiment_id)):
        found = load_bundles(data, experiment)
        with no_new_files():
            audits = [audit_bundle(bundle, experiment) for bundle in found.bundles] if found else []
    if not audits:
        raise BundlePartial(
            f"no complete bundle of {experiment_id} under {data}",
            need="one with its receipt",
            do=f"run `fitladder lineage pull {experiment_id}`",
        )
    if as_json:
        print_json({"audits": [audit.model_dump(mode="json") for audit in audits], "seal": seal})
        return
    heads = ("budget", "phase", "samples", "unresolved", "answer limit", "loops", "verdict")
    print_table(f"termination of {experiment_id}, content-blind", heads, [_row(audit) for audit in audits])
    for audit in audits:
        periods = ", ".join(map(str, audit.period_tokens)) or "none"
        typer.echo(
            f"{audit.bundle.phase}@{audit.bundle.thinking_budget_tokens}: periods {periods}; "
            f"{audit.tokens_after_onset:,} of {audit.thinking_tokens:,} thinking tokens after a loop began"
        )
    typer.echo(f"content-blind by {seal}")


def _row(audit: TerminationAudit) -> tuple[str, ...]:
    rates = (audit.unresolved_cap_contact_rate, audit.answer_limit_contact_rate, audit.periodic_loop_rate)
    return (
        str(audit.bundle.thinking_budget_tokens),
        audit.bundle.phase,
        f"{audit.samples} of {audit.expected_samples}",
        *map(_rate, rates),
        "adequate" if audit.adequate else "rejected" if audit.complete else "incomplete",
    )


def _rate(rate: AuditedRate) -> str:
    word = "below" if rate.must_be == "below" else "at most"
    return f"{rate.contacts} ({float(rate.rate or 0):.1%}; {word} {float(rate.threshold):.0%})"

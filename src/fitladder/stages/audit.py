"""Stage audit@X: one content-blind termination audit a complete bundle, and figures of them.

Reads bundles of one experiment and nothing of another. `code.json` names the decision code that it ran
under; what comes after depends on the audits alone.
"""

from fractions import Fraction
from pathlib import Path

from fitladder.canonical import canonical_bytes, canonical_sha256
from fitladder.evidence.audit_bundle import audit_bundle
from fitladder.evidence.checkout_bundles import load_bundles
from fitladder.files.atomic import write_output, write_output_folder
from fitladder.records.audit import TerminationAudit
from fitladder.records.generation_time import generation_s
from fitladder.records.layout import RECEIPT
from fitladder.records.registry import Registry
from fitladder.registry.binding import bind
from fitladder.registry.data_paths import audit_path, audits_folder, sealed_paths
from fitladder.sandbox.audit_hook import content_blind, no_new_files
from fitladder.stages.figures import PhaseFigures, RateFigure, write_figures
from fitladder.store.verify_bundle import VerifiedBundle

__all__ = ["make_audit"]

RATES = {
    "unresolved": "unresolved_cap_contact_rate",
    "answer limit": "answer_limit_contact_rate",
    "loops": "periodic_loop_rate",
}


def make_audit(registry: Registry, experiment_id: str, data_dir: Path) -> str:
    """Write `phases/`, `receipts.json`, `code.json` and figures. Raises as load_bundles does."""
    experiment = registry.experiment(experiment_id)
    with content_blind(sealed_paths(data_dir, experiment_id)):
        found = load_bundles(data_dir, experiment)
        bundles = found.bundles if found else ()
        with no_new_files():
            audits = [audit_bundle(bundle, experiment) for bundle in bundles]
    folder = audits_folder(data_dir, experiment_id)
    write_output_folder(
        folder / "phases",
        {audit_path(data_dir, audit.bundle).name: canonical_bytes(audit) for audit in audits},
    )
    write_figures(folder, [_figures(audit, bundle) for audit, bundle in zip(audits, bundles, strict=True)])
    binding = bind(experiment)
    code = {
        "schema_version": 1,
        "experiment_id": experiment_id,
        "binding_sha256": binding.binding_sha256,
        "decision_code_sha256": canonical_sha256(binding.decision_code),
        "decision_code": binding.decision_code,
    }
    write_output(folder / "code.json", canonical_bytes(code))
    receipts = {
        "schema_version": 1,
        "experiment_id": experiment_id,
        "catalog_checkpoint": found.catalog.checkpoint if found else None,
        "receipts": {bundle.relative_path: bundle.files[RECEIPT].sha256 for bundle in bundles},
        "preflights_only": [one.relative_path for one in found.preflights] if found else [],
    }
    write_output(folder / "receipts.json", canonical_bytes(receipts))
    adequate = sum(audit.adequate for audit in audits)
    return f"{experiment_id}: {len(audits)} phases audited, {adequate} adequate"


def _figures(audit: TerminationAudit, bundle: VerifiedBundle) -> PhaseFigures:
    totals = bundle.receipt.totals
    rates = {name: getattr(audit, field) for name, field in RATES.items()}
    return PhaseFigures(
        thinking_budget_tokens=audit.bundle.thinking_budget_tokens,
        phase=audit.bundle.phase,
        samples=audit.samples,
        rates=tuple(
            RateFigure(name, rate.contacts, float(100 * Fraction(rate.threshold)))
            for name, rate in rates.items()
        ),
        is_adequate=audit.adequate,
        sampled_tokens=totals.sampled_tokens,
        generation_s=generation_s(totals),
        preemptions=bundle.receipt.counters["preemptions"],
        onsets=tuple(
            (row.onset_token, row.period_tokens)
            for row in audit.rows
            if row.onset_token is not None and row.period_tokens is not None
        ),
    )

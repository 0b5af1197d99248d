"""The registered audit of a verified bundle: from its columns to an audit that knows no bundle."""

import numpy as np

from fitladder.audit.termination import TerminationColumns, audit_termination
from fitladder.records.audit import TerminationAudit
from fitladder.records.experiment import Experiment
from fitladder.sampling.row_rules import DERIVED, check_derived
from fitladder.store.verify_bundle import VerifiedBundle

__all__ = ["audit_bundle"]

COLUMNS = (
    "record_id",
    "sample_index",
    "stage1_token_ids",
    "thinking_tokens",
    "stage1_finish_reason",
    "natural_close",
    "eos_inside_thinking",
    "forced_close",
    "answer_restart",
    "stage2_token_ids",
    "stage2_finish_reason",
)


def audit_bundle(bundle: VerifiedBundle, experiment: Experiment) -> TerminationAudit:
    """The registered termination audit of a verified bundle. Raises BundleError on rows that are not its."""
    table = bundle.columns(tuple(dict.fromkeys((*COLUMNS, *DERIVED))))
    check_derived(table, experiment, bundle.key.thinking_budget_tokens, where=str(bundle.folder))
    columns = TerminationColumns(
        record_ids=_whole(table.texts("record_id")),
        sample_indices=table.integers("sample_index"),
        stage1_token_ids=table.token_lists("stage1_token_ids"),
        thinking_tokens=table.integers("thinking_tokens"),
        stage1_finish_reasons=_whole(table.texts("stage1_finish_reason")),
        natural_close=table.flags("natural_close"),
        eos_inside_thinking=table.flags("eos_inside_thinking"),
        forced_close=table.flags("forced_close"),
        answer_restart=table.flags("answer_restart"),
        stage2_tokens=np.array([len(ids) for ids in table.token_lists("stage2_token_ids")], dtype=np.int64),
        stage2_finish_reasons=table.texts("stage2_finish_reason"),
    )
    records = [prompt.record_id for prompt in bundle.preflight.prompts]
    return audit_termination(columns, experiment, bundle.key, records)


def _whole(texts: list[str | None]) -> list[str]:
    """A column that the schema keeps free of nulls."""
    return [text for text in texts if text is not None]

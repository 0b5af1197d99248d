"""An engine process that lies about what follows from its own ids is found out; about the ids it is not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import bundles as make

from fitladder.errors import BundleTampered
from fitladder.records.sample import SampleRow
from fitladder.sampling.parquet import SampleTable, read_columns, render_samples
from fitladder.sampling.row_rules import DERIVED, check_derived

EXPERIMENT = make.experiment()
ROWS = make.rows(make.preflight(EXPERIMENT, make.key(), root_id=make.sha("root"), sequence=0))
FORCED = next(at for at, row in enumerate(ROWS) if row.forced_close)
NATURAL = next(at for at, row in enumerate(ROWS) if row.natural_close and not row.answer_restart)
RESTART = next(at for at, row in enumerate(ROWS) if row.answer_restart)
NOTHING = np.empty(0, np.int32)
UNANSWERED = {
    "stage2_seed": None,
    "stage2_prompt_tokens": 0,
    "injected_tokens": 0,
    "stage2_token_ids": NOTHING,
    "stage2_finish_reason": None,
}


def table(rows: list[SampleRow]) -> SampleTable:
    return read_columns(render_samples(rows, make.key()), DERIVED, where="rows")


def test_rows_of_the_registered_rule_pass() -> None:
    check_derived(table(ROWS), EXPERIMENT, 64, where="rows")


@pytest.mark.parametrize(
    ("at", "lie", "words"),
    [
        (FORCED, {"forced_close": False, "natural_close": True, **UNANSWERED}, "natural_close True"),
        (FORCED, {"thinking_tokens": 10}, "thinking_tokens 10, need thinking_tokens 64"),
        (FORCED, {"stage2_seed": 7}, "stage2_seed 7"),
        (FORCED, {"injected_tokens": 3}, "injected_tokens 3"),
        (RESTART, {"injected_tokens": 2}, "injected_tokens 2, need injected_tokens 1"),
        (FORCED, {"stage2_prompt_tokens": 5}, "stage2_prompt_tokens 5"),
        (FORCED, {"answer_tokens": 9}, "answer_tokens 9, need answer_tokens 5"),
        (FORCED, {"stage2_token_ids": np.array([11, 9, 12, 13, 14], np.int32)}, "a model EOS among"),
        (NATURAL, {"answer_tokens": 20}, "answer_tokens 20, need answer_tokens 5"),  # would grade thinking
        (NATURAL, {"thinking_tokens": 12}, "thinking_tokens 12"),
        (NATURAL, {"natural_close": False, "eos_inside_thinking": True}, "natural_close False"),
        (RESTART, {"answer_restart": False, **UNANSWERED}, "answer_restart False"),
        (RESTART, {"stage1_token_ids": ROWS[RESTART].stage1_token_ids[:-1]}, "63 ids at the limit"),
    ],
)
def test_a_row_that_its_own_ids_contradict(at: int, lie: dict[str, Any], words: str) -> None:
    rows = [*ROWS[:at], replace(ROWS[at], **lie), *ROWS[at + 1 :]]
    with pytest.raises(BundleTampered, match="contradicts its own ids") as refused:
        check_derived(table(rows), EXPERIMENT, 64, where="rows")
    assert words in str(refused.value)
    assert f"'{ROWS[at].record_id}' #{ROWS[at].sample_index}" in str(refused.value)

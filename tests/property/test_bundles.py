"""Any single-byte change of any file of a root is refused; any rows come back as they were."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import bundles as make
from support.sample_rows import read_rows

from fitladder.errors import BundleError
from fitladder.files.escaped_text import escape_text, unescape_text
from fitladder.records.sample import SampleRow
from fitladder.sampling.parquet import render_samples
from fitladder.store.verify_root import verify_root

SETTINGS = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make.make_root(
        tmp_path_factory.mktemp("property") / "root",
        done=[(64, "probe"), (64, "base")],
        begun=[(64, "designed")],
    )
    for name in (".lock", ".owner.json"):  # as the copy that DVC carries
        (made / name).unlink()
    return made


@SETTINGS
@given(data=st.data())
def test_any_single_byte_change_of_any_file_is_refused(root: Path, data: st.DataObject) -> None:
    files = sorted(path for path in root.rglob("*") if path.is_file())
    path = data.draw(st.sampled_from(files), label="file")
    before = path.read_bytes()
    offset = data.draw(st.integers(0, len(before) - 1), label="offset")
    kind = data.draw(st.sampled_from(["bit", "byte", "delete", "insert"]), label="kind")
    after = bytearray(before)
    if kind == "bit":
        after[offset] ^= 1 << data.draw(st.integers(0, 7), label="bit")
    elif kind == "byte":
        after[offset] = data.draw(
            st.integers(0, 255).filter(lambda value: value != before[offset]), label="value"
        )
    elif kind == "delete":
        del after[offset]
    else:
        after.insert(offset, data.draw(st.integers(0, 255), label="value"))
    verify_root(root, make.ID)
    path.write_bytes(bytes(after))
    try:
        with pytest.raises(BundleError) as refusal:
            verify_root(root, make.ID)
    finally:
        path.write_bytes(before)
    # The record that disagrees is named: the changed file itself, or the checkpoint that binds it.
    named = (
        path.name in str(refusal.value)
        or "checkpoints/" in str(refusal.value)
        or "catalog.json" in str(refusal.value)
    )
    assert named


token_ids = st.lists(st.integers(0, 2**31 - 1), max_size=60).map(lambda ids: np.array(ids, dtype=np.int32))
texts = st.text(st.characters(exclude_categories=()), max_size=20)  # surrogates too
sample_rows = st.builds(
    SampleRow,
    record_id=st.text(min_size=1, max_size=20),
    sample_index=st.integers(0, 2**31 - 1),
    prompt_tokens=st.integers(0, 2**31 - 1),
    stage1_seed=st.integers(0, 2**63 - 1),
    stage1_token_ids=token_ids,
    stage1_trimmed_tokens=st.integers(0, 2**31 - 1),
    stage1_finish_reason=texts,
    stage1_stop_reason=st.none() | texts,
    thinking_tokens=st.integers(0, 2**31 - 1),
    natural_close=st.booleans(),
    eos_inside_thinking=st.booleans(),
    forced_close=st.booleans(),
    answer_restart=st.booleans(),
    injected_tokens=st.integers(0, 2**31 - 1),
    stage2_seed=st.none() | st.integers(0, 2**63 - 1),
    stage2_prompt_tokens=st.integers(0, 2**31 - 1),
    stage2_token_ids=token_ids,
    stage2_trimmed_tokens=st.integers(0, 2**31 - 1),
    stage2_finish_reason=st.none() | texts,
    stage2_stop_reason=st.none() | texts,
    answer_tokens=st.integers(0, 2**31 - 1),
)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(sample_rows, max_size=30))
def test_any_rows_come_back_as_they_were_and_give_the_same_bytes_again(rows: list[SampleRow]) -> None:
    data = render_samples(rows, make.key())
    back = read_rows(data)
    assert render_samples(back, make.key()) == data
    assert len(back) == len(rows)
    for left, right in zip(rows, back, strict=True):
        for field in dataclasses.fields(SampleRow):
            old, new = getattr(left, field.name), getattr(right, field.name)
            assert np.array_equal(old, new) if isinstance(old, np.ndarray) else old == new


@given(text=st.text(st.characters(exclude_categories=())))
def test_any_text_survives_escaping(text: str) -> None:
    escaped = escape_text(text)
    escaped.encode()
    assert unescape_text(escaped) == text

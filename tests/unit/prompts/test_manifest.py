import datetime

import pytest

from fitladder.canonical import parse_json
from fitladder.errors import InputRefused
from fitladder.prompts.manifest import (
    TokenizerIdentity,
    check_prompts,
    freeze_prompts,
    parse_manifest,
    render_manifest,
    render_prompts,
)
from fitladder.prompts.messages import Message, Record
from fitladder.prompts.render import render_prompt, text_sha256

OPEN = "<think>\n"
TOKENIZER = TokenizerIdentity(tokenizer_sha256="a" * 64, tokenizers_version="0.23.3")
SPECIAL = frozenset({1, 2})


def record(name="t-0", content="12,5"):
    messages = (Message(role="system", content="s"), Message(role="user", content=content))
    return Record(id=f"{name}::base", messages=messages, meta={"arm": "base"})


def encode(text):
    return [1, *text.encode()]


def frozen(records, encode=encode):
    prompts = render_prompts(records, OPEN, encode)
    return freeze_prompts({"base": prompts}, OPEN, TOKENIZER, SPECIAL)


def check(manifest, records, encode=encode, **change):
    given = {"tokenizer": TOKENIZER, "special_ids": SPECIAL} | change
    check_prompts(manifest, "base", render_prompts(records, OPEN, encode), **given)


def test_rendering_by_hand():
    want = (
        "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\n12,5<|im_end|>\n<|im_start|>assistant\n<think>\n"
    )
    assert render_prompt(record(), OPEN) == want
    with pytest.raises(InputRefused, match="lone surrogate at 1"):
        text_sha256("a\ud835")


def test_unchanged_prompts_pass_and_the_file_reads_back():
    records = [record("t-0"), record("t-1", "7,7")]
    manifest = frozen(records)
    assert parse_manifest(parse_json(render_manifest(manifest), where="m"), where="m") == manifest
    check(manifest, records)
    # Another release of the library is judged by the ids it makes.
    check(manifest, records, tokenizer=TOKENIZER.model_copy(update={"tokenizers_version": "1.0.0"}))


def test_aliasing_ids_are_neither_frozen_nor_read():
    with pytest.raises(InputRefused, match="prompt manifest: ids overwrite each other"):
        frozen([record("t-0"), record("t_0", "7,7")])
    data = parse_json(render_manifest(frozen([record("t-0"), record("t-1", "7,7")])), where="m")
    data["arms"]["base"][1]["id"] = "t_0::base"
    with pytest.raises(InputRefused, match="m: ids overwrite each other"):
        parse_manifest(data, where="m")


def test_a_dated_prompt_is_refused_the_next_day():
    def on(day):
        return [record(content=f"Today is {day.isoformat()}.")]

    manifest = frozen(on(datetime.date(2026, 1, 2)))
    check(manifest, on(datetime.date(2026, 1, 2)))
    with pytest.raises(InputRefused) as caught:
        check(manifest, on(datetime.date(2026, 1, 3)))
    old, new = (encode(render_prompt(on(datetime.date(2026, 1, day))[0], OPEN)) for day in (2, 3))
    at = next(i for i in range(len(old)) if old[i] != new[i])
    assert f"prompt t-0::base drifted: got id {ord('3')} at token {at}, need id {ord('2')}" in str(
        caught.value
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ([1, 2, 3], [1, 9], "got id 9 at token 1, need id 2"),
        ([1, 2, 3], [1, 2], "got id the end at token 2, need id 3"),
        ([1, 2], [1, 2, 3], "got id 3 at token 2, need id the end"),
        ([1, 7, 3], [1, 1, 7, 3], "doubled BOS"),
    ],
)
def test_changed_ids_name_prompt_index_and_both_ids(old, new, words):
    manifest = frozen([record()], lambda text: old)
    with pytest.raises(InputRefused, match=words) as caught:
        check(manifest, [record()], lambda text: new)
    assert "t-0::base" in str(caught.value)


def test_a_doubled_bos_cannot_be_frozen_either():
    with pytest.raises(InputRefused, match="doubled BOS"):
        frozen([record()], lambda text: [1, 1, 5])
    frozen([record()], lambda text: [5, 5, 1])  # a repeated ordinary token is no BOS
    with pytest.raises(InputRefused, match="no tokens"):
        frozen([record()], lambda text: [])


def test_same_name_but_another_tokenizer_file():
    manifest = frozen([record()])
    with pytest.raises(InputRefused, match="tokenizer file changed"):
        check(manifest, [record()], tokenizer=TOKENIZER.model_copy(update={"tokenizer_sha256": "b" * 64}))


def test_ids_may_agree_while_the_text_does_not():
    manifest = frozen([record()], lambda text: [1, 2, 3])
    with pytest.raises(InputRefused, match="input_record_sha256"):
        check(manifest, [record(content="12.5")], lambda text: [1, 2, 3])
    prompts = render_prompts([record()], "<think>", lambda text: [1, 2, 3])
    with pytest.raises(InputRefused, match="rendered_prompt_sha256"):
        check_prompts(manifest, "base", prompts, tokenizer=TOKENIZER, special_ids=SPECIAL)


def test_counts_alone_are_held_where_history_froze_no_ids():
    manifest = frozen([record()])
    entry = manifest.arms["base"][0].model_copy(update={"prompt_token_ids": None})
    manifest = manifest.model_copy(update={"arms": {"base": (entry,)}, "tokenizer": None})
    check(manifest, [record()])
    with pytest.raises(InputRefused, match="tokens, need"):
        check(manifest, [record()], lambda text: [1])


def test_missing_surplus_and_reordered_prompts_are_refused():
    records = [record("t-0"), record("t-1")]
    manifest = frozen(records)
    for other in (records[:1], [*records, record("t-2")], records[::-1], []):
        with pytest.raises(InputRefused, match="not the frozen ones"):
            check(manifest, other)
    with pytest.raises(InputRefused, match="overwrite each other"):
        check(manifest, [records[0], records[0]])
    with pytest.raises(InputRefused, match="no such arm"):
        check_prompts(manifest, "designed_ceiling", (), tokenizer=TOKENIZER, special_ids=SPECIAL)


@pytest.mark.parametrize(
    "change",
    [
        {"prompt_tokens": 2},
        {"prompt_tokens": 0},
        {"prompt_tokens": 5.0},
        {"prompt_tokens": True},
        {"prompt_token_ids": [-1, 2, 3]},
        {"input_record_sha256": "A" * 64},
        {"text": "x"},
    ],
)
def test_malformed_manifests_are_refused(change):
    value = parse_json(render_manifest(frozen([record()], lambda text: [1, 2, 3])), where="m")
    value["arms"]["base"][0] |= change
    with pytest.raises(InputRefused):
        parse_manifest(value, where="m")

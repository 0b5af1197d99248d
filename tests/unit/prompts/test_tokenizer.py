import pytest
import tokenizers

from fitladder.canonical import sha256_file
from fitladder.errors import InputRefused
from fitladder.prompts.tokenizer import load_tokenizer


@pytest.fixture
def path(tmp_path):
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    inner = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab={char: at for at, char in enumerate(alphabet)}, merges=[])
    )
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    inner.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    inner.add_tokens(["ordinary"])
    # A template that adds a BOS: rendering must be unaffected by it.
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", 256)]
    )
    file = tmp_path / "tokenizer.json"
    inner.save(str(file))
    return file


def test_nothing_is_added_and_ids_round_trip(path):
    loaded = load_tokenizer(path, sha256_file(path))
    ids = loaded.encode("<|im_start|>ab \u00e9<|im_end|>")
    assert ids[0] == 256
    assert ids[1] != 256
    assert ids[-1] == 257
    assert loaded.decode(ids) == "<|im_start|>ab \u00e9<|im_end|>"
    assert loaded.special_ids == {256, 257}
    assert loaded.identity.tokenizer_sha256 == sha256_file(path)
    assert loaded.identity.tokenizers_version == tokenizers.__version__


def test_an_emoji_cut_by_the_cap_ends_in_a_replacement_character(path):
    loaded = load_tokenizer(path, None)
    ids = loaded.encode("ok \U0001f600")
    assert loaded.decode(ids[:-1]) == "ok \ufffd"
    with pytest.raises(InputRefused, match="lone surrogate at 3"):
        loaded.encode("ok \ud835 end")


@pytest.mark.parametrize("bad", [-1, 259, 2**31, 2**64])  # 256 bytes and three added
def test_ids_outside_the_vocabulary_are_refused_and_not_dropped(path, bad):
    with pytest.raises(InputRefused, match="token id"):
        load_tokenizer(path, None).decode([5, bad])
    assert load_tokenizer(path, None).decode([0, 258]).endswith("ordinary")


def test_changed_absent_and_broken_files(path, tmp_path):
    registered = sha256_file(path)
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(InputRefused, match="changed"):
        load_tokenizer(path, registered)
    with pytest.raises(InputRefused, match="cannot be read"):
        load_tokenizer(tmp_path / "none.json", registered)
    path.write_bytes(b"{}")
    with pytest.raises(InputRefused, match=r"no tokenizer\.json"):
        load_tokenizer(path, None)

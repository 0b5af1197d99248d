import json

import pytest
import tokenizers
from typer.testing import CliRunner

from fitladder.cli.tasks import app
from fitladder.errors import InputRefused, UsageError


@pytest.fixture
def tokenizer(tmp_path):
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    inner = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab={char: at for at, char in enumerate(alphabet)}, merges=[])
    )
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=True)


def test_generate_freeze_check_and_drift(tmp_path, tokenizer):
    out = tmp_path / "set"
    made = run("generate", "--seed", 3, "--out", out, "--records", 2, "--wording", "compact", "--json")
    assert made.exit_code == 0
    assert set(json.loads(made.stdout)["sha256"]) == {path.name for path in out.iterdir()}
    assert len(json.loads((out / "records_base.json").read_bytes())) == 2
    assert run("freeze", "--inputs", out, "--tokenizer", tokenizer).exit_code == 0
    checked = run("check", "--inputs", out, "--tokenizer", tokenizer, "--json")
    assert json.loads(checked.stdout)["prompts"] == {"base": 2, "designed_ceiling": 2}

    records = out / "records_base.json"
    records.write_bytes(records.read_bytes().replace(b"modulo 17", b"modulo 18"))
    drift = run("check", "--inputs", out, "--tokenizer", tokenizer)
    assert isinstance(drift.exception, InputRefused)
    assert "drifted" in str(drift.exception)
    again = run("freeze", "--inputs", out, "--tokenizer", tokenizer)  # never re-frozen
    assert isinstance(again.exception, InputRefused)
    assert "other bytes" in str(again.exception)


def test_unfit_words(tmp_path):
    assert isinstance(run("generate", "--seed", 1, "--records", 7, "--out", tmp_path).exception, UsageError)
    assert list(tmp_path.iterdir()) == []

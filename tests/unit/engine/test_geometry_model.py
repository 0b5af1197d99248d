"""Weightless folders carry a preset's geometry, and never overwrite something else."""

import json

import pytest

from fitladder.capacity.presets import PRESETS
from fitladder.engine.convert.geometry_model import geometry_files, write_geometry_model
from fitladder.engine.convert.sources import find_source
from fitladder.errors import InputRefused, UsageError


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_preset_has_a_folder_with_its_geometry(preset, tmp_path):
    folder = write_geometry_model(preset, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    assert len(config["architectures"]) == 1
    text = config.get("text_config", config)
    assert {name: text[name] for name in PRESETS[preset]} == json.loads(json.dumps(PRESETS[preset]))
    assert write_geometry_model(preset, folder) == folder


def test_the_history_model_keeps_its_float32_state():
    config = geometry_files("qwen3.5-4b")["config.json"]
    assert config["text_config"]["mamba_ssm_dtype"] == "float32"
    assert config["architectures"] == ["Qwen3_5ForConditionalGeneration"]


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    with pytest.raises(UsageError, match="other files"):
        write_geometry_model("qwen3-4b", tmp_path)


def test_unknown_names_are_refused():
    with pytest.raises(InputRefused):
        geometry_files("gpt-9")
    with pytest.raises(UsageError, match="smollm2-135m"):
        find_source("gpt-9")

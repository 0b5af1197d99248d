"""Model folders without weights, for engines built with `load_format=dummy`.

Kernels and KV cache are the model's, weights are random. The JSON files follow from a preset of the planner
(capacity/presets); there is no tokenizer, since the engine gets token ids.
"""

import json
from pathlib import Path
from typing import Any

from fitladder.capacity.presets import find_preset
from fitladder.errors import InputRefused, UsageError

__all__ = ["geometry_files", "write_geometry_model"]

_ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_next": "Qwen3NextForCausalLM",
    "lfm2": "Lfm2ForCausalLM",
}
_QWEN35_ROPE = {
    "rope_type": "default",
    "rope_theta": 10_000_000,
    "partial_rotary_factor": 0.25,
    "mrope_section": [11, 11, 10],
    "mrope_interleaved": True,
}
_QWEN35_TEXT = {"rope_parameters": _QWEN35_ROPE, "partial_rotary_factor": 0.25, "eos_token_id": 248_044}
_QWEN35_VISION = {  # small: it is never run, and language_model_only leaves it out
    "depth": 2,
    "hidden_size": 256,
    "num_heads": 4,
    "intermediate_size": 512,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
}
_PROCESSOR = {
    "processor_class": "Qwen3VLProcessor",
    "patch_size": 16,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "image_mean": [0.5] * 3,
    "image_std": [0.5] * 3,
}


def geometry_files(preset: str) -> dict[str, dict[str, Any]]:
    """JSON documents of the folder of a preset, by file name.

    Raises InputRefused on an unknown preset, or on one whose family has no engine class here.
    """
    text = find_preset(preset)
    if text["model_type"] != "qwen3_5_text":
        architecture = _ARCHITECTURES.get(text["model_type"])
        if architecture is None:
            raise InputRefused(
                f"no engine class is known for {preset}",
                got=text["model_type"],
                need=", ".join(_ARCHITECTURES),
            )
        extra = _lfm2_sizes(text) if text["model_type"] == "lfm2" else {}
        return {"config.json": text | extra | {"architectures": [architecture]}}
    text = text | _QWEN35_TEXT
    whole = {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "model_type": "qwen3_5",
        "dtype": text["dtype"],
        "tie_word_embeddings": text["tie_word_embeddings"],
        "text_config": text,
        "vision_config": _QWEN35_VISION | {"out_hidden_size": text["hidden_size"]},
        "vision_start_token_id": 248_053,
        "vision_end_token_id": 248_054,
        "image_token_id": 248_056,
        "video_token_id": 248_057,
    }
    image = _PROCESSOR | {
        "image_processor_type": "Qwen2VLImageProcessorFast",
        "size": {"longest_edge": 16_777_216, "shortest_edge": 65_536},
    }
    video = _PROCESSOR | {
        "video_processor_type": "Qwen3VLVideoProcessor",
        "size": {"longest_edge": 25_165_824, "shortest_edge": 4_096},
    }
    return {
        "config.json": whole,
        "preprocessor_config.json": image,
        "video_preprocessor_config.json": video,
    }


def _lfm2_sizes(text: dict[str, Any]) -> dict[str, Any]:
    """Further configuration fields from which vLLM's `Lfm2ForCausalLM` reads its sizes."""
    hidden = text["hidden_size"]
    return {
        "conv_dim": hidden,
        "conv_dim_out": hidden,
        "block_dim": hidden,
        "block_ff_dim": text["intermediate_size"],
        "block_ffn_dim_multiplier": 1.0,
    }


def write_geometry_model(preset: str, folder: Path) -> Path:
    """Write the folder of a preset and return it. Raises UsageError where it holds any other file."""
    files = geometry_files(preset)
    if folder.exists() and {path.name for path in folder.iterdir()} - set(files):
        raise UsageError(f"{folder} holds other files", need="an empty or new folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in files.items():
        (folder / name).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return folder

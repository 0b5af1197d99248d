"""A model named on the command line, and its cache under the engine arguments that stand there with it."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fitladder.canonical import read_json
from fitladder.capacity.block_geometry import Geometry, parse_geometry
from fitladder.capacity.config_fields import read_text_fields
from fitladder.capacity.engine_layout import CacheDtype, EngineArguments, lay_out_cache
from fitladder.capacity.families import FAMILIES
from fitladder.capacity.kv_specs import CacheLayout
from fitladder.capacity.presets import PRESETS, find_preset
from fitladder.capacity.rope_scaling import longest_context
from fitladder.capacity.vllm_rules import CPU_LOCK, GPU_LOCK, VllmRules, find_rules
from fitladder.cli.exact_layout import lay_out_exactly
from fitladder.engine.convert.geometry_model import geometry_files
from fitladder.errors import InputRefused, UsageError

__all__ = ["ModelCache", "ModelOptions", "model_cache"]

DEFAULT_MAX_MODEL_LEN = 65_536


@dataclass(frozen=True)
class ModelOptions:
    """The options of a command line that a model's layout depends on."""

    max_model_len: int | None
    max_num_batched_tokens: int
    tensor_parallel_size: int
    kv_cache_dtype: CacheDtype
    block_size: int | None
    enable_prefix_caching: bool | None
    ssm_dtype: str | None
    device: Literal["cuda", "cpu"]
    vllm_version: str | None
    exact_python: Path | None  # Python of the engine environment where vLLM itself is to be asked


@dataclass(frozen=True)
class ModelCache:
    """A model's cache: its layout, the context it is planned for, and whose rules or code laid it out."""

    layout: CacheLayout
    max_model_len_tokens: int
    vllm: str
    exact: bool
    config: Mapping[str, Any]
    where: str
    ssm_dtype: str | None

    def geometry(self) -> Geometry | None:
        """What the model's memory depends on, None for a family whose memory is not predicted."""
        text = read_text_fields(self.config, self.where)[1]
        if text.values.get("model_type") not in FAMILIES:
            return None
        return parse_geometry(self.config, where=self.where, ssm_dtype=self.ssm_dtype)


def model_cache(model: str, options: ModelOptions, length_tokens: int) -> ModelCache:
    """The cache of a preset, a folder or a config.json; `length_tokens` is the length that is planned for.

    Raises InputRefused naming what is odd or not modelled, or with vLLM's own reason where it was asked.
    """
    config, where = _read_config(model)
    if options.exact_python is not None:
        return _ask_vllm(model, config, where, options, length_tokens)
    version = options.vllm_version or (GPU_LOCK if options.device == "cuda" else CPU_LOCK)
    rules = find_rules(version)
    length = _max_model_len(config, where, rules, options.max_model_len)
    arguments = EngineArguments(
        rules=rules,
        max_model_len_tokens=length,
        max_num_batched_tokens=options.max_num_batched_tokens,
        tensor_parallel_size=options.tensor_parallel_size,
        cache_dtype=options.kv_cache_dtype,
        block_size_tokens=options.block_size,
        prefix_caching=options.enable_prefix_caching,
        ssm_dtype=options.ssm_dtype,
        platform=options.device,
    )
    layout = lay_out_cache(config, arguments, where=where)
    return ModelCache(layout, length, rules.release, False, config, where, options.ssm_dtype)


def _read_config(model: str) -> tuple[Mapping[str, Any], str]:
    path = Path(model)
    if path.is_dir():
        path = path / "config.json"
    if not path.is_file() and path.suffix != ".json":
        return find_preset(model), model
    config = read_json(path)
    if not isinstance(config, dict):
        raise InputRefused(f"{path}: config", got=type(config).__name__, need="an object")
    return config, str(path)


def _max_model_len(config: Mapping[str, Any], where: str, rules: VllmRules, asked: int | None) -> int:
    longest = longest_context(read_text_fields(config, where)[1], rules)
    if asked is not None and asked > longest.most_tokens:
        raise InputRefused(
            "--max-model-len",
            got=asked,
            need=f"at most the model's {longest.most_tokens}, from {longest.source} as vLLM {rules.release} "
            "derives it",
        )
    return asked or min(DEFAULT_MAX_MODEL_LEN, longest.default_tokens)


def _ask_vllm(
    model: str, config: Mapping[str, Any], where: str, options: ModelOptions, length_tokens: int
) -> ModelCache:
    if options.device == "cpu" or options.exact_python is None:
        raise UsageError("--exact with --device cpu", need="--device cuda: vLLM is told of an H200")
    arguments = {
        "max_model_len": options.max_model_len,
        "max_num_batched_tokens": options.max_num_batched_tokens,
        "tensor_parallel_size": options.tensor_parallel_size,
        "kv_cache_dtype": options.kv_cache_dtype,
        "block_size": options.block_size,
        "enable_prefix_caching": options.enable_prefix_caching,
        "mamba_ssm_cache_dtype": options.ssm_dtype,
    }
    with tempfile.TemporaryDirectory(prefix="fitladder-config-") as scratch:
        folder = Path(scratch)
        files = (
            geometry_files(model.lower()) if config is PRESETS.get(model.lower()) else {"config.json": config}
        )
        for name, document in files.items():
            (folder / name).write_text(json.dumps(document), encoding="utf-8")
        stated = lay_out_exactly(options.exact_python, folder, [length_tokens], arguments, where=where)
    if options.vllm_version is not None and not stated.vllm.startswith(options.vllm_version):
        raise InputRefused("--vllm-version with --exact", got=options.vllm_version, need=stated.vllm)
    length = options.max_model_len or min(DEFAULT_MAX_MODEL_LEN, stated.max_model_len_tokens)
    return ModelCache(stated.layout, length, stated.vllm, True, config, where, options.ssm_dtype)

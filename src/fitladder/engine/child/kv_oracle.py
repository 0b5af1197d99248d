"""vLLM's own layout of a KV cache for a folder with a config.json. No GPU, no weights, no network.

    python -m fitladder.engine.child.kv_oracle < JOBS.jsonl > RESULTS.jsonl

A job: {"folder", "lengths", "memory_bytes", "arguments": {EngineArgs fields}}. A result: vLLM's version, the
longest context, groups of layers with their block size and pages, blocks of a request of each length, blocks
in so much memory, bytes of the parameters; or {"refused": what vLLM said}. Each job runs in its own fork.

vLLM's own: the engine configuration, the model class built on the meta device, the choice of attention
backends, block sizes, specs, groups, blocks. Not its own: the device's answers (`kv_device`), and the tensor
parallel world, one process that says it is one of several.
"""

import contextlib
import json
import os
import sys
import tempfile
import types
from collections.abc import Iterator
from typing import Any

from fitladder.engine.child.kv_platform import MetaTensors, StubbedOps

# isort: split
import torch
import vllm
import vllm.distributed.parallel_state as parallel
import vllm.model_executor.models.registry as models
import vllm.v1.core.single_type_kv_cache_manager as managers
import vllm.v1.worker.gpu_model_runner as runner_module
from vllm.config import set_current_vllm_config
from vllm.engine.arg_utils import EngineArgs
from vllm.model_executor.model_loader.utils import initialize_model
from vllm.platforms import current_platform
from vllm.utils.torch_utils import set_default_torch_dtype
from vllm.v1.attention.backends import utils as backend_utils
from vllm.v1.core import kv_cache_utils as kv
from vllm.v1.worker import worker_base, workspace

__all__ = ["lay_out", "main"]

KINDS = {
    "FullAttentionSpec": "full",
    "MLAAttentionSpec": "latent",
    "SlidingWindowSpec": "sliding",
    "ChunkedLocalAttentionSpec": "chunked",
    "MambaSpec": "state",
}
POOL_LENGTH_TOKENS = 16  # a pool does not depend on the length; a long one may not fit into it


def _join_world(config: Any, ranks: int) -> None:
    """One process whose tensor parallel group says that it has so many ranks."""
    rendezvous = os.path.join(tempfile.mkdtemp(prefix="kv-oracle-"), "rendezvous")
    settings = config.parallel_config
    kept = settings.tensor_parallel_size, settings.world_size
    with set_current_vllm_config(config):
        settings.tensor_parallel_size = settings.world_size = 1
        parallel.init_distributed_environment(
            world_size=1,
            rank=0,
            local_rank=0,
            backend="gloo",
            distributed_init_method="file://" + rendezvous,
        )
        parallel.initialize_model_parallel(tensor_model_parallel_size=1)
        settings.tensor_parallel_size, settings.world_size = kept
    group = parallel._TP
    group.world_size, group.ranks = ranks, list(range(ranks))
    group.all_reduce = group.all_gather = lambda tensor, *a, **k: tensor


def _build(config: Any) -> Any:
    workspace.init_workspace_manager(torch.device("meta"))
    StubbedOps.lenient = True
    with (
        set_current_vllm_config(config, check_compile=False),
        set_default_torch_dtype(config.model_config.dtype),
        MetaTensors(),
        torch.device("meta"),
    ):
        return initialize_model(vllm_config=config, model_config=config.model_config)


def _specs(config: Any) -> dict[str, Any]:
    """Cache spec of each layer, after vLLM settled block size and, where there is a choice, layout."""
    current_platform.update_block_size_for_backend(config)
    if register := getattr(managers, "register_all_kvcache_specs", None):
        register(config)
    runner = types.SimpleNamespace(vllm_config=config, shared_kv_cache_layers={})
    with set_current_vllm_config(config, check_compile=False):
        specs: dict[str, Any] = runner_module.GPUModelRunner.get_kv_cache_spec(runner)
        if resolve := getattr(backend_utils, "resolve_kv_cache_layout", None):
            backends = worker_base.get_current_attn_backends(config)
            names = [layout.name for layout in backend_utils.get_supported_kv_cache_layouts(backends)]
            resolve(config, [names], list(specs.values()))
    return specs


def _describe(config: Any, group: Any) -> dict[str, Any]:
    """A group in the terms of `fitladder.capacity.kv_specs`."""
    spec = group.kv_cache_spec
    layers = list(getattr(spec, "kv_cache_specs", {}).values()) or [spec] * len(group.layer_names)
    kind = KINDS.get(type(layers[0]).__name__, type(layers[0]).__name__)
    holds = -(-layers[0].max_memory_usage_bytes(config) // layers[0].page_size_bytes)
    fixed = kind == "state" and config.cache_config.mamba_cache_mode != "all"
    reach = getattr(layers[0], "sliding_window", None) or getattr(layers[0], "attention_chunk_size", None)
    return {
        "kind": kind,
        "layers": len(group.layer_names),
        "block_tokens": spec.block_size,
        "page_bytes": layers[0].page_size_bytes,
        "bytes_per_block": sum(layer.page_size_bytes for layer in layers),
        "reach_tokens": reach or 0,
        "state_blocks": holds if fixed else 0,
    }


def lay_out(job: dict[str, Any]) -> dict[str, Any]:
    """The result of one job. Whatever vLLM raises comes through."""
    folder = job["folder"]
    arguments = {key: value for key, value in job["arguments"].items() if value is not None}
    defaults = {"skip_tokenizer_init": True, "load_format": "dummy", "trust_remote_code": False}
    config = EngineArgs(
        **{"model": folder, "tokenizer": folder, **defaults, **arguments}
    ).create_engine_config()
    _join_world(config, arguments.get("tensor_parallel_size", 1))
    parameters = list(_build(config).parameters())
    specs = _specs(config)
    longest = config.model_config.max_model_len
    with set_current_vllm_config(config, check_compile=False):
        config.model_config.max_model_len = POOL_LENGTH_TOKENS
        cache = kv.get_kv_cache_configs(config, [specs], [job["memory_bytes"]])[0]
        block_bytes = kv._pool_bytes_per_block(config, cache.kv_cache_groups)
        config.model_config.max_model_len = longest
        groups = [_describe(config, group) for group in cache.kv_cache_groups]
        cache = kv.generate_scheduler_kv_cache_config([cache])
        blocks = {}
        for length in job["lengths"]:
            config.model_config.max_model_len = length
            held = [spec.kv_cache_spec for spec in cache.kv_cache_groups]
            by_group = [-(-spec.max_memory_usage_bytes(config) // spec.page_size_bytes) for spec in held]
            concurrency = kv.get_max_concurrency_for_kv_cache_config(config, cache)
            if round(cache.num_blocks / concurrency) != sum(by_group):
                raise ValueError(f"concurrency {concurrency} is not {cache.num_blocks} / {sum(by_group)}")
            blocks[str(length)] = by_group
    batched = config.scheduler_config.max_num_batched_tokens
    return {
        "vllm": vllm.__version__,
        "max_model_len_tokens": longest,
        "in_flight_tokens": getattr(config, "max_in_flight_tokens", batched),
        "groups": groups,
        "block_bytes": block_bytes,
        "pool_blocks": cache.num_blocks,
        "blocks": blocks,
        "parameter_bytes": sum(value.numel() * value.element_size() for value in parameters),
    }


def _forked(job: dict[str, Any]) -> str:
    """Result of a job as JSON, from a fork that takes vLLM's global state with it when it ends."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.close(reader)
        try:
            result = lay_out(job)
        except (
            BaseException
        ) as error:  # a model class may raise anything; the next job is to run all the same
            result = {"vllm": vllm.__version__, "refused": f"{type(error).__name__}: {error}"[:2_000]}
        with os.fdopen(writer, "w") as pipe:
            pipe.write(json.dumps(result))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text or json.dumps({"vllm": vllm.__version__, "refused": "the process of this model died"})


@contextlib.contextmanager
def _results() -> Iterator[Any]:
    """The stream of results; whatever a model prints goes to standard error."""
    with os.fdopen(os.dup(1), "w") as stream:
        os.dup2(2, 1)
        yield stream


def main() -> None:
    """One result a line for each job on standard input."""
    models._run_in_subprocess = lambda function: function()
    with _results() as stream:
        for line in sys.stdin:
            if line.strip():
                print(_forked(json.loads(line)), file=stream, flush=True)  # the protocol


if __name__ == "__main__":
    main()

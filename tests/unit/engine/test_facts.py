"""Facts off a live engine's objects: what is read, and what is refused instead of guessed."""

from types import SimpleNamespace as Space

import pytest

from fitladder.engine.child.facts import engine_facts
from fitladder.errors import EngineFailed


class FullAttentionSpec:
    pass


class MambaSpec:
    pass


class SlidingWindowSpec:
    pass


class Mode:
    name = "FULL_AND_PIECEWISE"

    def decode_mode(self):
        return Space(name="FULL")

    def has_full_cudagraphs(self):
        return True


def live(groups=(FullAttentionSpec, MambaSpec, MambaSpec, MambaSpec), **cache):
    """The objects of vLLM 0.24 on the registered history's engine, as far as they are read."""
    values = {
        "block_size": 528, "num_gpu_blocks": 1949, "kv_cache_size_tokens": 997_888,
        "kv_cache_max_concurrency": 1949 / 128, "enable_prefix_caching": False, "mamba_cache_mode": "none",
    } | cache  # fmt: skip
    config = Space(
        cache_config=Space(**values),
        scheduler_config=Space(max_num_seqs=19, max_num_batched_tokens=32_768, async_scheduling=False),
        compilation_config=Space(cudagraph_mode=Mode(), cudagraph_capture_sizes=[1, 2, 4, 8, 16, 19]),
        model_config=Space(max_model_len=65_536, enforce_eager=False, seed=0, dtype="torch.bfloat16"),
        device_config=Space(device_type="cuda"),
    )
    pool = Space(null_block=object(), num_gpu_blocks=1949, get_num_free_blocks=lambda: 1948)
    kv_cache = Space(num_blocks=1949, kv_cache_groups=[Space(kv_cache_spec=group()) for group in groups])
    scheduler = Space(kv_cache_config=kv_cache, kv_cache_manager=Space(block_pool=pool))
    core = Space(engine_core=Space(scheduler=scheduler))
    return Space(llm_engine=Space(vllm_config=config, engine_core=core))


def facts(llm, **requested):
    return engine_facts(llm, version="0.24.0", device_name="H200", requested_args=requested, load_s=140.0)


def test_facts_of_the_registered_engine():
    got = facts(live(), cudagraph_capture_sizes=[1, 2, 4, 8, 16, 19], max_cudagraph_capture_size=19)
    assert (got.block_size_tokens, got.num_blocks, got.null_blocks, got.mamba_groups) == (528, 1949, 1, 3)
    assert (got.kv_cache_size_tokens, got.max_concurrency) == (997_888, repr(1949 / 128))
    assert got.capture_requested == got.capture_resolved == (1, 2, 4, 8, 16, 19)
    assert (got.graph_mode, got.decode_graph_mode, got.has_full_graphs) == (
        "FULL_AND_PIECEWISE",
        "FULL",
        True,
    )
    assert (got.device, got.dtype, got.max_num_seqs) == ("cuda", "bfloat16", 19)
    assert got.resolved_args["compilation_config.cudagraph_mode"] == "FULL_AND_PIECEWISE"
    assert got.resolved_args["cache_config.num_gpu_blocks"] == 1949


def test_model_without_mamba_layers_has_no_groups():
    assert facts(live(groups=(FullAttentionSpec,))).mamba_groups == 0


@pytest.mark.parametrize(
    "groups", [(FullAttentionSpec, SlidingWindowSpec), (FullAttentionSpec,) * 2, (MambaSpec,), ()]
)
def test_caches_of_another_make_are_refused(groups):
    with pytest.raises(EngineFailed, match="cannot be counted"):
        facts(live(groups=groups))


def test_mamba_blocks_that_grow_are_refused():
    with pytest.raises(EngineFailed, match="mamba_cache_mode 'align'"):
        facts(live(mamba_cache_mode="align"))


def test_two_counts_of_blocks_are_refused():
    with pytest.raises(EngineFailed, match="two ways: got 1948 and 1949"):
        facts(live(num_gpu_blocks=1948))


def test_a_figure_kept_elsewhere_is_refused_by_name():
    llm = live()
    del llm.llm_engine.vllm_config.cache_config.kv_cache_size_tokens
    with pytest.raises(EngineFailed, match="no 'kv_cache_size_tokens' on SimpleNamespace"):
        facts(llm)


def test_blocks_in_use_before_sampling_are_refused():
    llm = live()
    llm.llm_engine.engine_core.engine_core.scheduler.kv_cache_manager.block_pool.get_num_free_blocks = (
        lambda: 1900
    )
    with pytest.raises(EngineFailed, match="in use before anything was sampled"):
        facts(llm)

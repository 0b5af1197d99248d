"""Small true bundles, written by the real writer: one experiment, its phases, rows from a seed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from support.section import rung, small_section

from fitladder.canonical import canonical_sha256, parse_model, sha256_bytes, sha256_file
from fitladder.records.binding import Binding
from fitladder.records.bundle_key import BundleKey
from fitladder.records.engine_facts import EngineFacts, RuntimeFacts
from fitladder.records.experiment import ARM_OF_PHASE, Experiment
from fitladder.records.preflight import EngineMeta, Preflight, PromptRecord
from fitladder.records.record_ids import seeds_sha256
from fitladder.records.sample import SampleRow
from fitladder.sampling.parquet import render_samples
from fitladder.sampling.seeds import stage1_seed, stage2_seed
from fitladder.store.held_root import HeldRoot, hold_root
from fitladder.store.verify_bundle import VerifiedBundle
from fitladder.store.verify_root import inspect_root
from fitladder.store.write_bundle import commit_bundle, write_preflight

NOON_S = 1_767_323_045  # 2026-01-02T03:04:05Z
ID = "small_experiment"


def sha(text: str) -> str:
    return sha256_bytes(text.encode())


def experiment(
    experiment_id: str = ID,
    *,
    rungs: Sequence[tuple[int, int]] = ((64, 3), (96, 2)),
    records: int = 2,
    k: tuple[int, int] = (2, 3),
    tail: int = 32,
    root: str | None = None,
    forbidden: Sequence[str] = (),
) -> Experiment:
    """rungs: (budget, width)."""
    section = small_section(
        model={"revision": "0" * 40, "tokenizer_sha256": sha("tokenizer")},
        engine={
            "vllm_version": "0.32.0",
            "max_model_len_tokens": 65_536,
            "max_num_batched_tokens": 32_768,
            "kv_cache_memory_bytes": 1 << 30,
        },
        sampling={"answer_max_tokens": 16},
        loop_rule={"tail_tokens": tail, "max_period_tokens": tail // 4, "min_budget_tokens": tail},
        artifacts={
            "root": root,
            "environment_override": "SMALL_EXPERIMENT_ROOT",
            "forbidden_roots": list(forbidden),
        },
    )
    section |= {
        "review": "self",
        "records_per_arm": records,
        "longest_prompt_tokens": 40,
        "probe_k": k[0],
        "matrix_k": k[1],
        "rungs": [rung(budget, width, 60) for budget, width in rungs],
        "data": {"tasks": sha("tasks"), "prompt_manifest": sha("manifest")},
    }
    return parse_model(Experiment, {"experiment_id": experiment_id, **section}, where=experiment_id)


def binding(of: Experiment, code: str = "code") -> Binding:
    body: dict[str, Any] = {
        "schema_version": 1,
        "experiment_id": of.experiment_id,
        "section": of.protocol_section(),
        "data": dict(of.data),
        "generation_code": {"engine/parent/process.py": sha(code)},
    }
    body["generation_sha256"] = canonical_sha256(body)
    body["decision_code"] = {"audit/termination.py": sha("audit")}
    return Binding(**body, binding_sha256=canonical_sha256(body))


def facts(width: int, **changed: Any) -> EngineFacts:
    values: dict[str, Any] = {
        "engine": "vllm",
        "engine_version": "0.32.0",
        "device": "cpu",
        "device_name": "cpu",
        "max_model_len_tokens": 65_536,
        "max_num_seqs": width,
        "max_num_batched_tokens": 32_768,
        "block_size_tokens": 16,
        "num_blocks": 5_000,
        "null_blocks": 1,
        "mamba_groups": 0,
        "kv_cache_size_tokens": 80_000,
        "max_concurrency": "1.22",
        "capture_requested": None,
        "capture_max_requested": None,
        "capture_resolved": None,
        "graph_mode": "NONE",
        "decode_graph_mode": "NONE",
        "has_full_graphs": False,
        "enforce_eager": True,
        "enable_prefix_caching": False,
        "async_scheduling": False,
        "engine_seed": 0,
        "dtype": "float32",
        "requested_args": {"seed": 0},
        "resolved_args": {"seed": 0},
        "load_s": 5.25,
    }
    return EngineFacts(**{**values, **changed})


def runtime(**changed: Any) -> RuntimeFacts:
    values: dict[str, Any] = {
        "python": "3.11.7",
        "platform": "linux",
        "packages": {"vllm": "0.32.0"},
        "pip_check": (),
        "engine_lock_sha256": sha("lock"),
        "device_driver": None,
        "cuda": None,
        "environment": {},
    }
    return RuntimeFacts(**{**values, **changed})


def key(budget: int = 64, phase: Any = "probe", experiment_id: str = ID) -> BundleKey:
    return BundleKey(experiment_id=experiment_id, thinking_budget_tokens=budget, phase=phase)


def preflight(of: Experiment, at: BundleKey, *, root_id: str, sequence: int, **changed: Any) -> Preflight:
    k = of.k(at.phase)
    arm = ARM_OF_PHASE[at.phase]
    prompts = tuple(
        PromptRecord(
            record_id=f"task-{number:03d}::{arm}",
            rendered_sha256=sha(f"prompt {number} {arm}"),
            prompt_tokens=20 + number,
        )
        for number in range(of.records_per_arm)
    )
    ids = [prompt.record_id for prompt in prompts]
    values: dict[str, Any] = {
        "schema_version": 1,
        "key": at,
        "sequence": sequence,
        "root_id": root_id,
        "binding": binding(of),
        "go_sha256": sha(f"GO {at}"),
        "go_identity": "self-asserted",
        "model": of.model,
        "sampling": of.sampling,
        "sampling_sent": {"temperature": 0.6, "presence_penalty": 0.0, "ignore_eos": True},
        "prompts": prompts,
        "k": k,
        "seeds_sha256": seeds_sha256(
            (record_id, index, stage1_seed(of.sampling.run_seed, record_id) + index)
            for record_id in ids
            for index in range(k)
        ),
        "engine": facts(of.rung(at.thinking_budget_tokens).max_num_seqs),
        "runtime": runtime(),
        "gates": ({"name": "context", "numbers": {"longest": 122}, "passed": True},),
        "noted_at_s": NOON_S,
    }
    return Preflight(**{**values, **changed})


def rows(of: Preflight, *, seed: int = 0, loops: bool = True, vocabulary: int = 248_000) -> list[SampleRow]:
    """Every second sample closes by itself, every fourth restarts its answer, the others are force-closed."""
    made: list[SampleRow] = []
    budget, run_seed = of.key.thinking_budget_tokens, of.sampling.run_seed
    rule = of.binding.section["thinking"]
    marker, close = rule["close_marker_token_ids"], len(rule["close_token_ids"])
    for number, prompt in enumerate(of.prompts):
        for index in range(of.k):
            draw = np.random.default_rng([seed, number, index, budget])
            ids = draw.integers(10, vocabulary, budget, dtype=np.int32)
            if loops and number % 4 != 3:
                onset = int(draw.integers(budget // 8, budget // 2))
                period = int(draw.integers(1, max(2, budget // 24)))
                ids[onset:] = np.resize(ids[onset : onset + period], budget - onset)
            kind = ("forced", "natural", "forced", "restart")[(number * of.k + index) % 4]
            thinking = budget if kind == "forced" else budget // 2
            if kind != "forced":
                ids[thinking : thinking + len(marker)] = marker
            ran2 = kind != "natural"
            answer = draw.integers(10, vocabulary, 5, dtype=np.int32) if ran2 else np.empty(0, np.int32)
            made.append(
                SampleRow(
                    record_id=prompt.record_id,
                    sample_index=index,
                    prompt_tokens=prompt.prompt_tokens,
                    stage1_seed=stage1_seed(run_seed, prompt.record_id) + index,
                    stage1_token_ids=ids if kind != "natural" else ids[: thinking + len(marker) + 5],
                    stage1_trimmed_tokens=int(kind == "natural"),
                    stage1_finish_reason="stop" if kind == "natural" else "length",
                    stage1_stop_reason="9" if kind == "natural" else None,
                    thinking_tokens=thinking,
                    natural_close=kind != "forced",
                    eos_inside_thinking=False,
                    forced_close=kind == "forced",
                    answer_restart=kind == "restart",
                    injected_tokens={"forced": close, "natural": 0, "restart": close - len(marker)}[kind],
                    stage2_seed=stage2_seed(run_seed, prompt.record_id, index) if ran2 else None,
                    stage2_prompt_tokens=prompt.prompt_tokens + thinking + close if ran2 else 0,
                    stage2_token_ids=answer,
                    stage2_trimmed_tokens=int(ran2),
                    stage2_finish_reason="stop" if ran2 else None,
                    stage2_stop_reason="9" if ran2 else None,
                    answer_tokens=5,
                )
            )
    return made


def engine_meta(at: BundleKey, **changed: Any) -> EngineMeta:
    values: dict[str, Any] = {
        "schema_version": 1,
        "key": at,
        "engine_load_us": 5_250_000,
        "stage1_generation_us": 1_000_000,
        "stage2_generation_us": 200_000,
        "counters": {"preemptions": 0, "generated_tokens": 500},
        "warnings": (),
        "log_sha256": sha("log"),
        "log_bytes": 3,
    }
    return EngineMeta(**{**values, **changed})


def begin(held: HeldRoot, of: Experiment, at: BundleKey, **changed: Any) -> Preflight:
    sequence = inspect_root(held.path, held.experiment_id).catalog.next_sequence
    made = preflight(of, at, root_id=held.root_id, sequence=sequence, **changed)
    write_preflight(held, made)
    return made


def complete(
    held: HeldRoot, of: Preflight, *, seed: int = 0, noted_at_s: int = NOON_S + 60
) -> VerifiedBundle:
    source = held.path.parent / f"{held.path.name}.{of.sequence}.parquet"
    source.write_bytes(render_samples(rows(of, seed=seed), of.key))
    return commit_bundle(
        held,
        of.key,
        source,
        engine_meta(of.key),
        samples_sha256=sha256_file(source),
        noted_at_s=noted_at_s,
    )


def make_root(
    root: Path,
    of: Experiment | None = None,
    *,
    done: Sequence[tuple[int, str]] = ((64, "probe"),),
    begun: Sequence[tuple[int, str]] = (),
) -> Path:
    """A root with these phases complete and then these only begun."""
    of = of or experiment()
    with hold_root(root, of.experiment_id, "test") as held:
        for budget, phase in done:
            complete(held, begin(held, of, key(budget, phase, of.experiment_id)), seed=budget)
        for budget, phase in begun:
            begin(held, of, key(budget, phase, of.experiment_id))
    return root

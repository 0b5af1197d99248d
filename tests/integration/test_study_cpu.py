"""A study on this machine's CPU engine: the simulator's counts against vLLM's own, in every run.

A two-layer model with random weights: what is counted is blocks, not words. Speeds on a CPU shared with other
work say nothing and are not asserted.
"""

import json
import os
from pathlib import Path

import pytest

from fitladder.study.bundle import verify_study
from fitladder.study.process import cell_command
from fitladder.study.run import StudyHost, run_study

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("FITLADDER_ENGINE_PYTHON", ROOT / ".venv-vllm/bin/python"))
OVER, SPACED = "w12-none-p14-worst_case-n12", "w12-none-p14-spaced-n12"

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not PYTHON.is_file(), reason="no engine environment: run `make setup`"),
]

MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 512,
    "max_position_embeddings": 2048, "tie_word_embeddings": True, "dtype": "float32", "bos_token_id": 1,
    "eos_token_id": 2, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
}  # fmt: skip
STUDY = """
schema_version: 1
study_id: tiny_cpu
question: Does the simulator count as vLLM does?
backend: vllm-cpu
model: {folder: tiny, load_format: dummy}
engine_args:
  dtype: float32
  enable_chunked_prefill: false
  kv_cache_memory_bytes: 67108864
  max_model_len: 512
  max_num_batched_tokens: 2048
  tensor_parallel_size: 1
environment: {OMP_NUM_THREADS: "1", OMP_WAIT_POLICY: PASSIVE}
sampling: {temperature: 0.6, top_p: 0.95, top_k: 20, run_seed: 2701}
workload:
  prompt_tokens: [100, 103, 98]
  sampled_tokens: 200
  warmup_tokens: 4
  first_token_id: 3
  last_token_id: 511
cells:
  - {width: 12, capture: none, pool_blocks: 14, admission: worst_case, samples: 12, bare: true}
  - {width: 12, capture: none, pool_blocks: 14, admission: spaced, samples: 12}
comparisons: []
repeats: 3
engines_at_once: 2
build_deadline_s: 300
run_deadline_s: 120
"""


def test_counts_of_overcommitted_and_spaced_cells_are_the_simulated_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_CACHE_ROOT", str(ROOT / ".cache/vllm"))
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "config.json").write_text(json.dumps(MODEL))
    (tmp_path / "study.yaml").write_text(STUDY)
    said: list[str] = []
    host = StudyHost(
        out=tmp_path / "out",
        work=tmp_path / "work",
        command=lambda: cell_command(PYTHON),
        models=tmp_path,
        say=said.append,
    )
    measured = run_study(tmp_path / "study.yaml", host)
    assert not measured.failures, said
    results = verify_study(tmp_path / "out").results
    cells = {cell.name: cell for cell in results.cells}
    for name, preemptions in ((OVER, 11), (SPACED, 0)):
        seen, told = cells[name].observed, cells[name].predicted
        assert seen is not None
        assert told is not None
        assert told.preemptions == preemptions
        assert seen.preemptions == (told.preemptions,) * 3
        assert seen.recomputed_tokens == (told.recomputed_tokens,) * 3
        assert seen.steps == (told.steps,) * 3
    assert [run.counters["preemptions"] for run in measured.of((OVER, "bare"))] == [11, 11, 11]
    assert cells[OVER].overhead is not None

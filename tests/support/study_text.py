"""A small study whose cells are scripted: twelve samples of 200 tokens, beside other cells each time."""

HEAD = """
schema_version: 1
question: What does overcommit cost?
backend: vllm-cpu
model: {folder: tiny, load_format: dummy}
engine_args: {dtype: float32, max_model_len: 512, max_num_batched_tokens: 2048}
environment: {OMP_NUM_THREADS: "1"}
sampling: {temperature: 0.6, top_p: 0.95, top_k: 20, run_seed: 2701}
workload:
  prompt_tokens: [100, 103, 98]
  sampled_tokens: 200
  warmup_tokens: 8
  first_token_id: 3
  last_token_id: 511
repeats: 3
build_deadline_s: 60
run_deadline_s: 60
"""


def study_text(
    study_id: str, cells: str, comparisons: str = "comparisons: []", *, engines_at_once: int
) -> str:
    """`cells`: its list, from the key on, as YAML; so `comparisons`."""
    own = f"study_id: {study_id}\nengines_at_once: {engines_at_once}\n"
    return f"{HEAD}{own}{cells.strip()}\n{comparisons.strip()}\n"

"""What a generation left behind besides its rows."""

from fitladder.frozen import Frozen, Size

__all__ = ["GenerationMetadata"]


class GenerationMetadata(Frozen):
    """What a generation left behind besides its rows. Times in microseconds, model load apart.

    counters: the engine's own (preemptions, scheduled_tokens, prompt_tokens, generated_tokens,
    recomputed_tokens, ...) and ours of the rows: sampled_tokens (kept ids of both stages), trimmed_tokens,
    injected_tokens, logical_prompt_tokens (prompts of both stages), repeated_samples (rows whose stage-1 ids
    equal those of an earlier sample of their record, found by hash).
    """

    engine_load_us: Size
    stage1_generation_us: Size
    stage2_generation_us: Size
    counters: dict[str, Size]
    warnings: tuple[str, ...]

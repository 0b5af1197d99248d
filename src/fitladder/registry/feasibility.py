"""Feasibility of a registration from its own numbers and the registry, without an engine.

Checked: lineage by name, roots by text, and the pool where blocks are registered. A pool that only a live
engine knows is left to the gates.
"""

from collections.abc import Collection, Iterator

from fitladder.capacity.kv_blocks import kv_tokens_for_blocks, rounded_tokens
from fitladder.capacity.kv_rule import KvPool, decide_kv_fit
from fitladder.errors import RegistrationError
from fitladder.records.experiment import Experiment
from fitladder.records.registry import Registry
from fitladder.registry.load import is_inside

__all__ = ["CPU_BLOCK_TOKENS", "check_feasible"]

CPU_BLOCK_TOKENS = 128  # vLLM's CPU backend, unless registered otherwise


def check_feasible(
    registry: Registry, experiment: Experiment, recorded: Collection[str], block_tokens: int | None = None
) -> None:
    """Refuse a registration that could never run.

    Args:
        registry: every registered experiment; predecessors are looked up in it.
        experiment: the one to check.
        recorded: ids whose registered figures lie in data/history.
        block_tokens: KV block size that a recorded engine of this model had, used where the section names
            none; None leaves a pool of unknown block size to the gates.

    Raises RegistrationError naming the field, what it has and what it needs.
    """
    ancestors = tuple(_ancestors(registry, experiment, recorded))
    _check_roots(experiment, ancestors)
    _check_pool(experiment, block_tokens)


def _ancestors(registry: Registry, experiment: Experiment, recorded: Collection[str]) -> Iterator[Experiment]:
    """Every registered predecessor, nearest first."""
    at, seen = experiment, {experiment.experiment_id}
    while (name := at.predecessor) is not None:
        where = f"params.yaml: experiments.{at.experiment_id}.predecessor"
        if name in seen:
            raise RegistrationError(where, got=f"{name}, which follows it", need="no circle")
        if name not in registry.experiments:
            if name not in recorded:
                raise RegistrationError(
                    where, got=name, need="a registered experiment, or one that data/history records"
                )
            return
        seen.add(name)
        at = registry.experiments[name]
        yield at


def _check_roots(experiment: Experiment, ancestors: tuple[Experiment, ...]) -> None:
    """Its root lies apart from every root that an ancestor has or may not touch."""
    root = experiment.artifacts.root
    for other in ancestors:
        for path in (other.artifacts.root, *other.artifacts.forbidden_roots):
            if root is not None and path is not None and (is_inside(root, path) or is_inside(path, root)):
                raise RegistrationError(
                    f"params.yaml: experiments.{experiment.experiment_id}.artifacts.root",
                    got=root,
                    need=f"apart from {path}, which {other.experiment_id} has or may not touch",
                )


def _check_pool(experiment: Experiment, block_tokens: int | None) -> None:
    """A registered pool of blocks holds what the registered rule asks of each rung."""
    engine = experiment.engine
    stated = engine.args.get("block_size", CPU_BLOCK_TOKENS if engine.backend == "vllm-cpu" else block_tokens)
    blocks = engine.num_gpu_blocks_override
    if blocks is None or type(stated) is not int or stated < 1:
        return
    where = f"params.yaml: experiments.{experiment.experiment_id}"
    if blocks == 1:
        raise RegistrationError(
            f"{where}.engine.num_gpu_blocks_override", got=1, need="more than the null block"
        )
    each = rounded_tokens(engine.max_model_len_tokens, stated) // stated
    tokens = kv_tokens_for_blocks(blocks, each, engine.max_model_len_tokens)
    for rung in experiment.rungs:
        longest = experiment.longest_sequence_tokens(rung)
        fit = decide_kv_fit(
            KvPool(stated, 0, tokens, blocks),
            rule=experiment.kv_rule,
            spaced=engine.admission == "spaced",
            longest_sequence_tokens=longest,
            active_sequences=min(experiment.records_per_arm * experiment.matrix_k, rung.max_num_seqs),
        )
        if fit.verdict != "fits":
            field = (
                f"rungs[{rung.thinking_budget_tokens}].max_num_seqs"
                if fit.widest
                else "engine.num_gpu_blocks_override"
            )
            raise RegistrationError(
                f"{where}.{field}: {blocks} blocks of {stated} tokens do not hold this rung",
                got=f"{fit.resident_sequences} sequences of {longest} tokens at once",
                need=f"at most {fit.widest}" if fit.widest else "blocks for one",
                do="see `fitladder plan --help`, or register `admission: spaced`"
                if engine.admission == "worst_case"
                else "register more blocks",
            )

"""All live gates of a phase, run after its engine is built and before a token is sampled.

In this order, so that a later gate may rely on an earlier one:

1. live_settings: the engine is the registered one.
2. prompt_identity: the prompts are the frozen ones.
3. context: the longest prompt leaves room for budget, close and answer.
4. kv_fit: the KV pool holds every active sequence at its longest.
5. cuda_graphs: the captured graphs are the registered ones.

A refusal is a failure of the infrastructure, never a result of the experiment.
"""

from collections.abc import Sequence

from fitladder.gates.context import check_context, longest_prompt
from fitladder.gates.cuda_graphs import check_cuda_graphs
from fitladder.gates.kv_fit import check_kv_fit
from fitladder.gates.live_settings import check_live_settings
from fitladder.gates.prompt_identity import PromptFacts, check_prompt_identity
from fitladder.records.engine_facts import EngineFacts
from fitladder.records.experiment import Experiment, Phase
from fitladder.records.gate import GateRecord
from fitladder.records.settings import Rung

__all__ = ["GateRecord", "PromptFacts", "run_gates"]


def run_gates(
    experiment: Experiment,
    rung: Rung,
    phase: Phase,
    facts: EngineFacts,
    prompts: Sequence[PromptFacts],
    *,
    frozen: Sequence[PromptFacts],
) -> tuple[GateRecord, ...]:
    """Run the five live gates.

    Args:
        facts: what the built engine reported.
        prompts: the phase's arm as rendered now, in record order.
        frozen: the same arm of the frozen manifest.

    Returns their records, in the order above, for preflight.json. Raises GateRefused at the first refusal.
    """
    return (
        check_live_settings(experiment, rung, facts),
        check_prompt_identity(prompts, frozen, experiment.records_per_arm),
        check_context(experiment, rung, facts, prompts),
        check_kv_fit(experiment, rung, phase, facts, longest_prompt(prompts).prompt_tokens),
        check_cuda_graphs(experiment, rung, facts),
    )

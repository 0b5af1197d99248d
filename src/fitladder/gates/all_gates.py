"""May this engine sample this phase? Every live gate in order, or the first refusal.

After the engine is built and before a token is sampled. A refusal is an infrastructure failure, never a
result; nothing here generates, and nothing here knows what a model said.
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
    """The five records for the preflight, in fixed order. Raises GateRefused at the first gate that says no.

    `prompts`: the phase's arm as rendered now, in record order; `frozen`: the same arm of the manifest.
    """
    return (
        check_live_settings(experiment, rung, facts),
        check_prompt_identity(prompts, frozen, experiment.records_per_arm),
        check_context(experiment, rung, facts, prompts),
        check_kv_fit(experiment, rung, phase, facts, longest_prompt(prompts).prompt_tokens),
        check_cuda_graphs(experiment, rung, facts),
    )

"""All live gates pass the registered engine, in their documented order."""

from collections.abc import Callable

from fitladder.gates.all_gates import run_gates
from fitladder.gates.prompt_identity import PromptFacts
from fitladder.records.engine_facts import EngineFacts
from fitladder.records.experiment import Experiment

Facts = Callable[..., EngineFacts]


def test_the_registered_engine_passes_all_five(
    exact: Experiment, facts: Facts, prompts: list[PromptFacts]
) -> None:
    records = run_gates(exact, exact.rungs[0], "probe", facts(), prompts, frozen=prompts)
    assert [record.name for record in records] == [
        "live_settings",
        "prompt_identity",
        "context",
        "kv_fit",
        "cuda_graphs",
    ]
    assert all(record.passed for record in records)
    assert records[3].numbers["margin_tokens"] == 33_792
    assert records[3].numbers["largest_width"] == 19

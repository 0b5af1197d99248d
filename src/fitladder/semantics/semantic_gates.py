"""The three semantic gates of the registered section `semantics`, and the sentence that reports them.

Pure: counts of both arms and thresholds in. Rates and coverages are compared as ratios of integers.
"""

from fitladder.frozen import Frozen
from fitladder.records.settings import Semantics
from fitladder.semantics.metrics import ArmMetrics

__all__ = ["SemanticGate", "judge_gates", "render_verdict"]


class SemanticGate(Frozen):
    """One semantic gate: whether it passed, what was counted, what was needed."""

    name: str
    is_passed: bool
    got: str
    need: str


def judge_gates(base: ArmMetrics, designed: ArmMetrics, registered: Semantics) -> tuple[SemanticGate, ...]:
    """Judge the three gates, in order: parse_rate, macro_reuse_tasks, designed_reuse_oracle.

    parse_rate: enough samples parse in each arm. macro_reuse_tasks: enough reuse tasks have a valid sample
    that calls a macro. designed_reuse_oracle: with designed macros the samples solve no smaller share of the
    reuse tasks than without. An empty arm or split passes no gate.
    """
    arms = (("base", base), ("designed_ceiling", designed))
    parse = SemanticGate(
        name="parse_rate",
        is_passed=all(
            registered.min_parse_rate.is_reached_by(one.parsed_samples, one.samples) for _, one in arms
        ),
        got=", ".join(f"{name} {one.parsed_samples} of {one.samples}" for name, one in arms),
        need=f"at least {registered.min_parse_rate} in each arm",
    )
    macros = SemanticGate(
        name="macro_reuse_tasks",
        is_passed=designed.reuse.tasks_with_macro_candidate >= registered.min_macro_reuse_tasks,
        got=f"{designed.reuse.tasks_with_macro_candidate} of {designed.reuse.tasks} reuse tasks",
        need=f"a valid macro candidate on at least {registered.min_macro_reuse_tasks}",
    )
    left = designed.reuse.oracle_solved_tasks * base.reuse.tasks
    right = base.reuse.oracle_solved_tasks * designed.reuse.tasks
    oracle = SemanticGate(
        name="designed_reuse_oracle",
        is_passed=min(base.reuse.tasks, designed.reuse.tasks) > 0 and left >= right,
        got=f"{designed.reuse.oracle_solved_tasks} of {designed.reuse.tasks} reuse tasks",
        need=f"not below base: {base.reuse.oracle_solved_tasks} of {base.reuse.tasks}",
    )
    return parse, macros, oracle


def render_verdict(gates: tuple[SemanticGate, ...], base: ArmMetrics, designed: ArmMetrics) -> str:
    """Sentences on the outcome: counts of both arms, and what passing or not passing does not show."""
    counts = (
        f"Chosen programs solve {designed.reuse.solved_tasks} of {designed.reuse.tasks} reuse tasks with "
        f"designed macros and {base.reuse.solved_tasks} of {base.reuse.tasks} without; on the controls "
        f"{designed.no_reuse.solved_tasks} of {designed.no_reuse.tasks} and {base.no_reuse.solved_tasks} of "
        f"{base.no_reuse.tasks}."
    )
    failed = ", ".join(gate.name for gate in gates if not gate.is_passed)
    if failed:
        return (
            f"Semantic gate not passed ({failed}). {counts} This licenses no larger run under this protocol. "
            "It does not show that macros cannot help: the gate asks whether the set-up works."
        )
    return (
        f"Semantic gate passed. {counts} This licenses registering a larger run of the same protocol and "
        "nothing else. It does not show that macros help: the tasks are few, the designed library knows the "
        "motifs beforehand, and oracle coverage picks among samples with the hidden answers in hand."
    )

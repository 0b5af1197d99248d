import pytest

from fitladder.canonical import Rate
from fitladder.records.settings import Semantics
from fitladder.semantics.metrics import ArmMetrics, SplitMetrics
from fitladder.semantics.semantic_gates import judge_gates, render_verdict

REGISTERED = Semantics(
    min_parse_rate=Rate.parse("0.5"), min_macro_reuse_tasks=2, designed_reuse_oracle_not_below_base=True
)


def arm(parsed=72, samples=144, macro_tasks=2, oracle=3, tasks=6):
    reuse = SplitMetrics(
        tasks=tasks, tasks_with_macro_candidate=macro_tasks, solved_tasks=1, oracle_solved_tasks=oracle
    )
    control = SplitMetrics(tasks=tasks, tasks_with_macro_candidate=0, solved_tasks=4, oracle_solved_tasks=5)
    return ArmMetrics(
        samples=samples,
        parsed_samples=parsed,
        valid_samples=parsed,
        macro_samples=macro_tasks,
        rejections={},
        reuse=reuse,
        no_reuse=control,
    )


def passed(base, designed):
    return {gate.name: gate.is_passed for gate in judge_gates(base, designed, REGISTERED)}


def test_all_three_at_their_edge():
    assert passed(arm(), arm()) == {
        "parse_rate": True,
        "macro_reuse_tasks": True,
        "designed_reuse_oracle": True,
    }


@pytest.mark.parametrize(
    ("base", "designed", "failing"),
    [
        (arm(parsed=71), arm(), "parse_rate"),
        (arm(), arm(parsed=71), "parse_rate"),
        (arm(parsed=0, samples=0), arm(), "parse_rate"),
        (arm(macro_tasks=6), arm(macro_tasks=1), "macro_reuse_tasks"),
        (arm(oracle=4), arm(oracle=3), "designed_reuse_oracle"),
        (arm(oracle=0, tasks=0), arm(), "designed_reuse_oracle"),
        (arm(oracle=2, tasks=3), arm(oracle=3, tasks=6), "designed_reuse_oracle"),
    ],
)
def test_each_gate_fails_alone(base, designed, failing):
    assert [name for name, ok in passed(base, designed).items() if not ok] == [failing]


def test_figures_are_shown_with_their_need():
    gates = judge_gates(arm(oracle=4), arm(oracle=3), REGISTERED)
    assert gates[0].got == "base 72 of 144, designed_ceiling 72 of 144"
    assert gates[2].got == "3 of 6 reuse tasks"
    assert gates[2].need == "not below base: 4 of 6"


def test_the_sentence_says_what_nobody_may_conclude():
    good = render_verdict(judge_gates(arm(), arm(), REGISTERED), arm(), arm())
    assert "does not show that macros help" in good
    assert "1 of 6 reuse tasks" in good
    bad = render_verdict(judge_gates(arm(), arm(macro_tasks=0), REGISTERED), arm(), arm(macro_tasks=0))
    assert "not passed (macro_reuse_tasks)" in bad
    assert "licenses no larger run" in bad
    assert "does not show that macros cannot help" in bad

"""Sums over an arm, from rows made by hand."""

from fitladder.semantics.metrics import ProgramRow, TaskRow, arm_metrics


def task(split, macros, *, solved=False, oracle=False):
    return TaskRow(
        record_id="r",
        task_id="t",
        split=split,
        samples=3,
        parsed_samples=3,
        valid_samples=2,
        macro_samples=macros,
        chosen_sample=None,
        chosen_expansion=None,
        visible_right=0,
        visible_total=8,
        hidden_right=0,
        hidden_total=8,
        is_solved=solved,
        is_oracle_solved=oracle,
    )


def sample(rejected):
    return ProgramRow(
        record_id="r", sample_index=0, surface=None, visible_right=0, rejected=rejected, detail=""
    )


def test_each_split_counts_its_own_tasks():
    tasks = [
        task("reuse", 0),
        task("reuse", 1, solved=True, oracle=True),
        task("reuse", 2, oracle=True),
        task("no_reuse", 1),
    ]
    found = arm_metrics(tasks, [])
    assert (found.parsed_samples, found.valid_samples, found.macro_samples) == (12, 8, 4)
    reuse, other = found.reuse, found.no_reuse
    assert (reuse.tasks, reuse.tasks_with_macro_candidate) == (3, 2)  # one macro is one already
    assert (reuse.solved_tasks, reuse.oracle_solved_tasks) == (1, 2)
    assert (other.tasks, other.tasks_with_macro_candidate) == (1, 1)
    assert (other.solved_tasks, other.oracle_solved_tasks) == (0, 0)


def test_reasons_are_counted_and_a_legal_sample_has_none():
    found = arm_metrics([], [sample("too_long"), sample("empty"), sample("too_long"), sample(None)])
    assert found.samples == 4
    assert list(found.rejections.items()) == [("empty", 1), ("too_long", 2)]

"""Starter texts of a follow-up: idea intake, preregistration, design review, narrative; facts filled in.

Pure: two registered experiments in, Markdown out. What says `TO WRITE` is the author's.
"""

from fitladder.records.experiment import Experiment
from fitladder.records.settings import Rung

__all__ = ["render_design_review", "render_idea_intake", "render_narrative", "render_preregistration"]


def render_idea_intake(made: Experiment, source: Experiment) -> str:
    """Novelty, closest near-duplicate, controls, falsifier."""
    return f"""# Idea intake: {made.experiment_id}

- Predecessor, closest near-duplicate registered: `{source.experiment_id}` ({source.state}).
- Copied from it: every bound setting except {_changes(made, source)}.
- Inherited inputs: {_inputs(made)}.
- Roots that may never be read: {_roots(made)}.

## What is new
TO WRITE: one change, and why the predecessor could not answer this.

## Closest near-duplicate
TO WRITE: the closest experiment anywhere, registered or published, and the difference that matters.

## Controls
Both arms share {made.records_per_arm} tasks, one rule and one run seed ({made.sampling.run_seed}).
TO WRITE: what else stays equal, and the comparison that would show that the change did nothing.

## Falsifier
TO WRITE: the result, in counts of the termination audit, that would make this idea wrong.
"""


def render_preregistration(made: Experiment, source: Experiment) -> str:
    """Everything that is frozen, in words, and what the author predicts."""
    limits, loop, engine, sampling = made.thresholds, made.loop_rule, made.engine, made.sampling
    rungs = "\n".join(_rung(made, rung) for rung in made.rungs)
    return f"""# Preregistration: {made.experiment_id}

Frozen by its binding (`fitladder binding {made.experiment_id}`); a changed setting is another experiment.

## Protocol
- Model {made.model.name}, revision {made.model.revision or "none: a folder by SHA-256"}, {made.model.dtype}.
- Engine {engine.backend}, version {engine.vllm_version or "TO WRITE"}, capture {engine.capture}, admission
  {engine.admission}, max_model_len {engine.max_model_len_tokens}; KV rule {made.kv_rule}.
- Sampling: temperature {sampling.temperature}, top-p {sampling.top_p}, top-k {sampling.top_k}, run seed
  {sampling.run_seed}, answer limit {sampling.answer_max_tokens} tokens.
- {made.records_per_arm} records an arm; probe K={made.probe_k}, base and designed K={made.matrix_k}.

| thinking budget | max_num_seqs | longest sequence | capture |
|---|---|---|---|
{rungs}

## Decision
- A loop: the last {loop.tail_tokens} thinking tokens match themselves at a period of 1 to
  {loop.max_period_tokens}, at a rate of at least {loop.min_match_rate}.
- Adequate: unresolved below {limits.unresolved_rate_below}, answer-limit contacts below
  {limits.answer_limit_rate_below}, loops at most {limits.loop_rate_at_most} of the samples of a phase.
- First fully adequate rung, or an explicit none. A rejection authorises the next rung's fresh probe alone.

## Hypothesis and prediction
TO WRITE: what each rung's probe will show, as counts of {made.records_per_arm * made.probe_k} samples.

## What nobody may conclude
Nothing of `{source.experiment_id}` is evidence here; no row crosses an experiment, a rung or a phase.
TO WRITE: the rest.
"""


def render_design_review(made: Experiment, source: Experiment) -> str:
    """Questions of a reviewer who wants it to fail on paper rather than on a GPU."""
    widths = ", ".join(f"{rung.max_num_seqs} at {rung.thinking_budget_tokens}" for rung in made.rungs)
    deadlines = ", ".join(f"{rung.deadline_s} s at {rung.thinking_budget_tokens}" for rung in made.rungs)
    return f"""# Adversarial design review: {made.experiment_id}

Review is {made.review}. Each answer names a number, a file or a commit.

1. Fit: is every sequence resident at its longest, at each width ({widths}), by both rules?
   TO WRITE, with the figures of `fitladder plan`.
2. Graphs: capture is {made.engine.capture}. Which decode widths would run without one?
   TO WRITE
3. Thresholds: which of the three would the author want to move after a probe? They are in the binding.
   TO WRITE
4. Loops: which useful output repeats within {made.loop_rule.max_period_tokens} tokens and would be counted?
   Which loop has a longer period, and hides among the unresolved?
   TO WRITE
5. Leaks: does a demonstration, a macro or a prompt give an evaluation task away?
   TO WRITE, from data/prompts/{made.experiment_id}/.
6. Seeds: run seed {made.sampling.run_seed}. Who would compare runs of different width as if they were equal?
   TO WRITE
7. Predecessor: what of `{source.experiment_id}` was known at design time?
   Which choice could it have bent?
   TO WRITE
8. Cost: deadlines are {deadlines}. What is the cheapest result that stops this ladder?
   TO WRITE
9. Roots: {_roots(made)} must be refused as input.
   TO WRITE, with the refusal.

Verdict: TO WRITE. A GO is given elsewhere, phase by phase; this text gives none.
"""


def render_narrative(made: Experiment) -> str:
    """The authored fields of the page, all still to write."""
    fields = ("idea", "question", "found", "matters", "may_not_conclude")
    paragraphs = "\n".join(f"{name}:\n  - To write." for name in fields)
    return f"""# Authored words of the page. Numbers are placeholders, filled from the record, or are refused.
names: []
kind: experiment
title: To write
program_primary: To write.
program_secondary: To write.
near_duplicate: "{{{{ registered.predecessor }}}}"
near_duplicate_difference: To write.
{paragraphs}
"""


def _rung(made: Experiment, rung: Rung) -> str:
    capture = " ".join(map(str, rung.capture_sizes)) if rung.capture_sizes else made.engine.capture
    cells = (rung.thinking_budget_tokens, rung.max_num_seqs, made.longest_sequence_tokens(rung), capture)
    return f"| {' | '.join(map(str, cells))} |"


def _changes(made: Experiment, source: Experiment) -> str:
    before, after = source.protocol_section(), made.protocol_section()
    changed = [name for name in after if name != "experiment_id" and before[name] != after[name]]
    return ", ".join(f"`{name}` ({before[name]} -> {after[name]})" for name in changed) or "none"


def _inputs(made: Experiment) -> str:
    return ", ".join(f"`{name}` {sha[:12]}" for name, sha in made.data.items())


def _roots(made: Experiment) -> str:
    return ", ".join(f"`{root}`" for root in made.artifacts.forbidden_roots) or "none registered by path"

"""Gate `cuda_graphs`: the engine captured graphs as registered in `engine.capture`.

`exact` needs the registered capture sizes, requested and resolved, covering every decode width up to
max_num_seqs in full graphs. `implicit` records the sizes that vLLM chose and the widths that they leave
uncovered. `none` needs an eager engine. All figures are `cudagraph_capture_sizes` and modes as the engine
reports them; coverage follows vLLM's padding of a batch to the next capture size
(capacity/capture_coverage.py).
"""

from collections.abc import Mapping
from typing import Any

from fitladder.capacity.capture_coverage import (
    check_capture_list,
    normalise_capture_list,
    render_widths,
    uncovered_widths,
)
from fitladder.errors import GateRefused
from fitladder.records.engine_facts import EngineFacts
from fitladder.records.experiment import Experiment
from fitladder.records.gate import GateRecord
from fitladder.records.settings import Rung

__all__ = ["check_cuda_graphs"]

PLAN = "ask `fitladder plan` for a capture list that ends at max_num_seqs"


def check_cuda_graphs(experiment: Experiment, rung: Rung, facts: EngineFacts) -> GateRecord:
    """Refuse an engine whose captured graphs are not as registered.

    Args:
        rung: gives max_num_seqs, and the capture sizes of an exact one.
        facts: what the built engine reported, draft tokens of speculation included.

    Returns the record with requested and resolved sizes and the uncovered widths. Raises GateRefused naming
    the sizes that differ, or the widths without a graph.
    """
    draft = _draft_tokens({**facts.requested_args, **facts.resolved_args})
    if experiment.engine.capture == "exact":
        _check_exact(rung, facts, draft, normalised=experiment.engine.capture_normalised)
    elif experiment.engine.capture == "implicit":
        _check_implicit(facts)
    else:
        _check_none(facts)
    missing = uncovered_widths(facts.capture_resolved or (), rung.max_num_seqs, tokens_per_sequence=1 + draft)
    return GateRecord(
        name="cuda_graphs",
        numbers={
            "capture": experiment.engine.capture,
            "capture_normalised": experiment.engine.capture_normalised,
            "max_num_seqs": rung.max_num_seqs,
            "registered_sizes": rung.capture_sizes,
            "requested_sizes": facts.capture_requested,
            "requested_max": facts.capture_max_requested,
            "resolved_sizes": facts.capture_resolved,
            "uncovered_widths": render_widths(missing),
            "graph_mode": facts.graph_mode,
            "decode_graph_mode": facts.decode_graph_mode,
            "has_full_graphs": facts.has_full_graphs,
            "draft_tokens": draft,
        },
    )


def _draft_tokens(args: Mapping[str, Any]) -> int:
    """Draft tokens of each sequence and step under speculation (`num_speculative_tokens`), 0 without.

    A decode step of N sequences has N * (1 + draft) tokens. Raises GateRefused where the number is not known.
    """
    speculation = args.get("speculative_config")
    value = (
        speculation.get("num_speculative_tokens", args.get("num_speculative_tokens"))
        if isinstance(speculation, Mapping)
        else args.get("num_speculative_tokens")
    )
    if value is None and not speculation:
        return 0
    if type(value) is not int or value < 0:
        raise GateRefused("speculation without a number of draft tokens", got=repr(value), need="an integer")
    return value


def _check_exact(rung: Rung, facts: EngineFacts, draft: int, *, normalised: bool) -> None:
    def seen(sizes: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return normalise_capture_list(sizes) if normalised and sizes else sizes

    check_capture_list(seen(facts.capture_resolved), rung.max_num_seqs, tokens_per_sequence=1 + draft)
    registered = list(rung.capture_sizes or ())
    for word, sizes in (("requested", facts.capture_requested), ("resolved", facts.capture_resolved)):
        if list(seen(sizes) or ()) != registered:
            raise GateRefused(
                f"{word} capture sizes are not the registered ones",
                got=list(sizes) if sizes is not None else None,
                need=registered,
                do=PLAN,
            )
    if facts.enforce_eager or facts.decode_graph_mode != "FULL" or not facts.has_full_graphs:
        raise GateRefused(
            "decode does not run in full graphs",
            got=f"decode mode {facts.decode_graph_mode}, graph mode {facts.graph_mode}, "
            f"full graphs {facts.has_full_graphs}, eager {facts.enforce_eager}",
            need="decode mode FULL with full graphs, not eager",
        )


def _check_implicit(facts: EngineFacts) -> None:
    if facts.capture_requested is not None:
        raise GateRefused(
            "a capture list was requested",
            got=list(facts.capture_requested),
            need="none: capture is implicit",
        )
    if facts.enforce_eager or not facts.capture_resolved or facts.graph_mode == "NONE":
        raise GateRefused(
            "no graph was captured",
            got=f"sizes {facts.capture_resolved}, graph mode {facts.graph_mode}, eager {facts.enforce_eager}",
            need="the list that vLLM resolved",
            do="register capture: none for an eager engine",
        )


def _check_none(facts: EngineFacts) -> None:
    if not facts.enforce_eager or facts.capture_resolved or facts.has_full_graphs:
        raise GateRefused(
            "graphs were captured",
            got=f"sizes {list(facts.capture_resolved or ())}, eager {facts.enforce_eager}, "
            f"full graphs {facts.has_full_graphs}",
            need="an eager engine without graphs: capture is none",
        )

"""How does an experiment begin anew that cannot go on? The words for refusals; it decides nothing."""

__all__ = ["REHEARSAL", "restart_advice"]

REHEARSAL = "smollm2_135m_cpu_rehearsal"  # what `make demo` runs and `make clean-demo` forgets


def restart_advice(experiment_id: str) -> str:
    """What to type: the rehearsal is thrown away, any other experiment is followed by one of its own."""
    if experiment_id == REHEARSAL:
        return "`make clean-demo` to rehearse anew"
    return f"`fitladder new NAME --from {experiment_id}` to register a follow-up"

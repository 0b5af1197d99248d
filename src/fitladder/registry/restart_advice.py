"""Advice in refusals: what to type where an experiment cannot go on. It decides nothing."""

__all__ = ["REHEARSAL", "restart_advice"]

REHEARSAL = "smollm2_135m_cpu_rehearsal"  # what `make demo` runs and `make clean-demo` forgets


def restart_advice(experiment_id: str) -> str:
    """The command: the rehearsal is removed and repeated, any other experiment is followed by a new one."""
    if experiment_id == REHEARSAL:
        return "`make clean-demo` to rehearse anew"
    return f"`fitladder new NAME --from {experiment_id}` to register a follow-up"

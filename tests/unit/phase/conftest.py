"""A scripted checkout with a complete ladder rung's first two phases, run once and only read afterwards."""

import pytest
from support.approvals import approve, key_of, run_whole_phase
from support.checkout import ADEQUATE, ScriptedCheckout, make_scripted_checkout


@pytest.fixture(scope="session")
def probe_and_base(tmp_path_factory: pytest.TempPathFactory) -> ScriptedCheckout:
    """Probe and base of rung 64 complete, in this order; tests must not change it."""
    made = make_scripted_checkout(tmp_path_factory.mktemp("probe_and_base") / "checkout")
    made.script(outcomes=ADEQUATE)
    for number, phase in enumerate(("probe", "base")):
        key = key_of(phase, 64)
        run_whole_phase(made.workspace(), key, approve(made.workspace(), key, f"ask-{number}"))
    return made

"""How often a root is verified on the way to a phase and to its page, counted at the real functions."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.approvals import approve, filled, key_of, run_whole_phase
from support.checkout import ADEQUATE, EXPERIMENT, REJECTED, ScriptedCheckout, make_scripted_checkout

from fitladder.dvc_api.ingest import ingest
from fitladder.evidence import load as evidence_loading
from fitladder.evidence.load import evidence_once
from fitladder.evidence.selection_file import load_selection
from fitladder.phase import prompt_tokens
from fitladder.phase.ask import decide, open_ask
from fitladder.phase.dispatch import check_ready
from fitladder.phase.plan import plan_phase, render_plan
from fitladder.registry import load as registry_loading
from fitladder.registry.load import load_registry
from fitladder.report import bundle_phases as report_verified
from fitladder.semantics.selected_samples import SelectedSamples
from fitladder.stages import audit as audit_stage
from fitladder.stages import selection as selection_stage
from fitladder.stages.audit import make_audit
from fitladder.stages.bundles import check_bundles
from fitladder.stages.prompts import make_prompts
from fitladder.stages.selection import make_selection
from fitladder.stages.semantics import ladder_history
from fitladder.store import verify_root as root_verification
from fitladder.store import write_bundle

FOURTH = key_of("designed", 96)
BEFORE = (key_of("probe", 64), key_of("probe", 96), key_of("base", 96))
PASS = Counter(root=1, bundle=len(BEFORE), audit=len(BEFORE), params=1)  # one verification of the whole root


class Calls(Counter[str]):
    """Calls of real functions by name; `since` gives those of one step."""

    def wrap(self, patch: pytest.MonkeyPatch, name: str, *places: tuple[Any, str]) -> None:
        """Count the calls of one function at every module that imported it. Nothing else changes."""

        def counted(real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **named: Any) -> Any:
                self[name] += 1
                return real(*args, **named)

            return call

        for module, attribute in places:
            patch.setattr(module, attribute, counted(getattr(module, attribute)))

    def since(self, before: Counter[str]) -> Counter[str]:
        return Counter({name: self[name] - before[name] for name in self})


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Counters at root verification, bundle hashing, audit, YAML parsing and model hashing."""
    found = Calls()
    inspect = (root_verification, "inspect_root")
    found.wrap(
        monkeypatch, "root", inspect, (evidence_loading, "inspect_root"), (write_bundle, "inspect_root")
    )
    found.wrap(monkeypatch, "bundle", (root_verification, "verify_bundle"))
    audits = [
        (module, "audit_bundle")
        for module in (evidence_loading, audit_stage, selection_stage, report_verified)
    ]
    found.wrap(monkeypatch, "audit", *audits)
    found.wrap(monkeypatch, "params", (registry_loading, "parse_yaml"))
    found.wrap(monkeypatch, "model", (prompt_tokens, "tree_sha256"))
    return found


@pytest.fixture
def made(tmp_path: Path) -> ScriptedCheckout:
    """A checkout whose ladder has three phases: a rejected rung, then two adequate phases of the next."""
    made = make_scripted_checkout(tmp_path / "checkout")
    for number, key in enumerate(BEFORE):
        made.script(outcomes=ADEQUATE if number else REJECTED)
        run_whole_phase(made.workspace(), key, approve(made.workspace(), key, f"ask-{number}"))
    return made


def new_process() -> None:
    """What another process would not know: the parsed params.yaml of this one."""
    registry_loading._parsed.cache_clear()


def ask_and_plan(made: ScriptedCheckout) -> Any:
    """The steps of the launch flow before it is suspended."""
    workspace, load = made.workspace(), evidence_once(made.workspace(), EXPERIMENT)
    asked = open_ask(
        workspace, FOURTH, ask_id="fourth", requester="rosa", now=datetime.now(UTC), wait_s=3600, load=load
    )
    render_plan(plan_phase(workspace, asked, "gpu", load=load))
    load_registry(workspace.params)  # for the owner to ask
    return asked


def answer_and_dispatch(made: ScriptedCheckout, asked: Any) -> str:
    """The steps of the launch flow after it is resumed."""
    workspace, load = made.workspace(), evidence_once(made.workspace(), EXPERIMENT)
    load_registry(workspace.params)
    assert decide(workspace, asked, filled(asked), datetime.now(UTC), load=load).kind == "go"
    ready = check_ready(workspace, asked, "gpu", datetime.now(UTC), load=load)
    assert ready.waits_for is None
    return str(ready.parameters["go_sha256"])


def test_a_fourth_phase_takes_three_root_passes_from_ask_to_receipt(
    made: ScriptedCheckout, calls: Calls
) -> None:
    """One when it is asked for, one when that is answered, one under the lock before the engine."""
    new_process()
    asked = ask_and_plan(made)
    assert calls == PASS

    new_process()
    before = Counter(calls)
    go = answer_and_dispatch(made, asked)
    assert calls.since(before) == PASS

    new_process()
    before = Counter(calls)
    assert run_whole_phase(made.workspace(), FOURTH, go).rows == 6
    assert calls.since(before) == PASS + Counter(model=1)


def test_ingest_verifies_the_root_once_and_audits_nothing(made: ScriptedCheckout, calls: Calls) -> None:
    workspace = made.workspace()
    registry = load_registry(workspace.params)
    for number, key in enumerate((None, FOURTH, None)):  # a first copy, one more phase, nothing new
        if key is not None:
            run_whole_phase(workspace, key, approve(workspace, key, "fourth"))
        before = Counter(calls)
        done = ingest(registry, EXPERIMENT, made.root, workspace.data, workspace.environment)
        bundles = 3 if number == 0 else 4
        assert (done.bundles, done.is_new) == (bundles, number < 2)
        assert calls.since(before) == Counter(root=1, bundle=bundles)


def test_each_stage_verifies_the_copy_once(made: ScriptedCheckout, calls: Calls) -> None:
    """audit@X and selection@X audit each bundle once; bundles@X audits none."""
    workspace = made.workspace()
    run_whole_phase(workspace, FOURTH, approve(workspace, FOURTH, "fourth"))
    registry = load_registry(workspace.params)
    ingest(registry, EXPERIMENT, made.root, workspace.data, workspace.environment)
    make_prompts(registry, EXPERIMENT, workspace.data)
    audited: dict[Callable[..., str], int] = {check_bundles: 0, make_audit: 4, make_selection: 4}
    for stage, audits in audited.items():
        before = Counter(calls)
        stage(registry, EXPERIMENT, workspace.data)
        assert calls.since(before) == Counter(root=1, bundle=4, audit=audits), stage
    selection = load_selection(workspace.data, EXPERIMENT)
    assert selection is not None
    assert selection.selected == FOURTH.thinking_budget_tokens
    before = Counter(calls)
    history = ladder_history(registry.experiment(EXPERIMENT), selection, workspace.data)
    assert isinstance(history, SelectedSamples)
    assert len(history.rows) == 12
    assert calls.since(before) == Counter(root=1, bundle=4, audit=4)

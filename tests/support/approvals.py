"""Keys, asks and GOs of a checkout's experiment, and a whole phase without Prefect."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from support.checkout import EXPERIMENT

from fitladder.errors import GoRefused
from fitladder.phase import run
from fitladder.phase.ask import decide, open_ask
from fitladder.records.approval import CHECKLIST, Ask
from fitladder.records.bundle_key import BundleKey
from fitladder.records.receipt import Receipt
from fitladder.workspace import Workspace


def make_key(folder: Path, name: str) -> tuple[Path, str]:
    """A fresh SSH key pair: the private key's path and the public line."""
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True, timeout=30)
    return path, path.with_suffix(".pub").read_text().strip()


def key_of(phase: str, budget: int, experiment_id: str = EXPERIMENT) -> BundleKey:
    """A key of the scripted experiment."""
    return BundleKey(experiment_id=experiment_id, thinking_budget_tokens=budget, phase=phase)


def filled(ask: Ask, **changes: Any) -> dict[str, Any]:
    """A review form as an attentive reviewer would send it."""
    form = {
        "verdict": "GO",
        "reviewer": "jan",
        "binding_sha256": ask.binding_sha256,
        **dict.fromkeys(CHECKLIST, True),
        "expires": "2199-01-01T00:00:00Z",
        "allows_window": False,
        "notes": "",
        "signature": "",
    }
    return form | changes


def ask_for(
    workspace: Workspace,
    key: BundleKey,
    ask_id: str = "ask-1",
    *,
    wait_s: int = 3600,
    resume: bool = False,
    again: bool = False,
) -> Ask:
    """An open ask by `rosa`, now."""
    now = datetime.now(UTC)
    return open_ask(
        workspace, key, ask_id=ask_id, requester="rosa", now=now, wait_s=wait_s, resume=resume, again=again
    )


def approve(
    workspace: Workspace, key: BundleKey, ask_id: str = "ask-1", *, resume: bool = False, **changes: Any
) -> str:
    """Ask, answer, and return the digest of the recorded GO, beside any that stands unused already."""
    ask = ask_for(workspace, key, ask_id, resume=resume, again=True)
    entry = decide(workspace, ask, filled(ask, **changes), datetime.now(UTC))
    if entry.kind != "go":
        raise GoRefused(f"the answer became {entry.kind}", got=entry.statement.get("reason"))
    return entry.parsed().sha256


def run_whole_phase(workspace: Workspace, key: BundleKey, go_sha256: str, pool: str = "gpu") -> Receipt:
    """Every step of a phase in order, without Prefect."""
    with run.hold_phase(workspace, key, pool) as held:
        if receipt := run.existing_receipt(held):
            return receipt
        approved = run.authorise(held, go_sha256)
        prompts = run.check_inputs(held)
        with run.start_engine(held, prompts) as engine:
            built = run.build(held, engine, prompts)
            run.write_preflight(held, approved, built, prompts)
            result = run.generate(held, engine, built, lambda _: None)
        return run.commit(held, result)

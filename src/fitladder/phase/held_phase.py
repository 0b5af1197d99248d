"""One phase on this host: the root's lock, and everything read again under it."""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fitladder.approval.uses import uses_path
from fitladder.evidence.load import Evidence, load_held_evidence, registered_root
from fitladder.phase.scratch import new_scratch
from fitladder.records.bundle_key import BundleKey
from fitladder.store.held_root import HeldRoot, hold_root
from fitladder.store.verify_root import VerifiedRoot
from fitladder.workspace import Workspace

__all__ = ["HeldPhase", "hold_phase"]


@dataclass(frozen=True)
class HeldPhase:
    """One phase on this host while the root's lock is held.

    `evidence` and `verified` are registry and root as read under that lock, the catalog reconciled.
    `scratch`: a folder of this attempt for the engine's request, log and rows.
    """

    workspace: Workspace
    key: BundleKey
    work_pool: str
    held_root: HeldRoot
    verified: VerifiedRoot
    evidence: Evidence
    scratch: Path

    @property
    def uses(self) -> Path:
        """Record of the GOs that were used here."""
        return uses_path(self.workspace.approvals, self.key.experiment_id)


@contextlib.contextmanager
def hold_phase(
    workspace: Workspace, key: BundleKey, work_pool: str, *, flow_run_id: str | None = None
) -> Iterator[HeldPhase]:
    """Hold the experiment's root, reconcile its catalog, and read everything again.

    `work_pool`: the pool that this run came from, whose owner may have to lend it. `flow_run_id`: named in
    the lock, for whoever finds it held. Raises RootBusy, RootRefused, BindingChanged and BundleError's kinds.
    """
    root = registered_root(workspace, key.experiment_id)
    with hold_root(root, key.experiment_id, f"phase {key}", flow_run_id=flow_run_id) as held_root:
        evidence, verified = load_held_evidence(workspace, held_root)
        scratch = new_scratch(workspace.scratch, key, flow_run_id=flow_run_id)
        yield HeldPhase(
            workspace=workspace,
            key=key,
            work_pool=work_pool,
            held_root=held_root,
            verified=verified,
            evidence=evidence,
            scratch=scratch,
        )
        shutil.rmtree(scratch)  # after a failure the engine's log and request stay until a next phase begins

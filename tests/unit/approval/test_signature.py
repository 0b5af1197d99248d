"""Signatures by registered keys: good, forged, moved to another statement, by another person."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fitladder.approval.check import Situation, check_usable
from fitladder.approval.signature import check_signature, sign
from fitladder.errors import GoRefused
from fitladder.records.approval import CHECKLIST, Go
from fitladder.records.bundle_key import BundleKey
from fitladder.records.registry import Registry, Reviewer
from fitladder.registry.load import load_registry

EXPERIMENT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"
GO = Go(
    schema_version=1,
    ask_id="ask-1",
    experiment_id=EXPERIMENT,
    binding_sha256="a" * 64,
    thinking_budget_tokens=49152,
    phase="probe",
    requester="rosa",
    reviewer="jan * novák, jr",
    verdict="GO",
    checklist=dict.fromkeys(CHECKLIST, True),
    notes="",
    not_before="2026-01-02T03:00:00Z",
    expires="2026-01-02T04:00:00Z",
    allows_window=False,
)


def key(folder: Path, name: str) -> tuple[Path, str]:
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True, timeout=30)
    return path, path.with_suffix(".pub").read_text().strip()


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, tuple[Path, str]]:
    return {"jan": key(tmp_path, "jan"), "eve": key(tmp_path, "eve")}


@pytest.fixture
def here(keys: dict[str, tuple[Path, str]]) -> Situation:
    registry = load_registry(Path("params.yaml"))
    return Situation(
        key=BundleKey(experiment_id=EXPERIMENT, thinking_budget_tokens=49152, phase="probe"),
        binding_sha256="a" * 64,
        now=datetime(2026, 1, 2, 3, 30, tzinfo=UTC),
        experiment=registry.experiment(EXPERIMENT),
        registry=Registry(
            experiments=registry.experiments,
            reviewers=(
                Reviewer(name=GO.reviewer, ssh_public_key=keys["jan"][1]),
                Reviewer(name="eve", ssh_public_key=keys["eve"][1]),
            ),
            gpu_owners={},
        ),
        used_go_sha256s=frozenset(),
    )


def test_a_registered_reviewers_signature_counts(keys, here: Situation) -> None:
    assert check_usable(GO, sign(GO, keys["jan"][0]), here) == "signed"


def test_an_unsigned_go_is_refused_once_reviewers_are_registered(here: Situation) -> None:
    with pytest.raises(GoRefused, match="is not signed"):
        check_usable(GO, None, here)


@pytest.mark.parametrize("change", [{"notes": "x"}, {"expires": "2026-01-02T05:00:00Z"}, {"ask_id": "ask-2"}])
def test_a_signature_moved_to_another_statement_is_refused(keys, here: Situation, change) -> None:
    signature = sign(GO, keys["jan"][0])
    with pytest.raises(GoRefused, match="does not cover"):
        check_usable(GO.model_copy(update=change), signature, here)


def test_another_registered_persons_signature_is_refused(keys, here: Situation) -> None:
    with pytest.raises(GoRefused, match="does not cover"):
        check_usable(GO, sign(GO, keys["eve"][0]), here)


def test_an_unregistered_signer_is_refused(keys, here: Situation) -> None:
    mallory = GO.model_copy(update={"reviewer": "mallory"})
    with pytest.raises(GoRefused, match="not registered"):
        check_usable(mallory, sign(mallory, keys["eve"][0]), here)
    with pytest.raises(GoRefused, match="not registered"):
        check_signature(GO, "x", GO.reviewer, ())


@pytest.mark.parametrize(
    "signature", ["x", "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----"]
)
def test_nonsense_for_a_signature_is_refused(here: Situation, signature: str) -> None:
    with pytest.raises(GoRefused, match="does not cover"):
        check_usable(GO, signature, here)


def test_a_key_that_cannot_sign_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(GoRefused, match="did not sign"):
        sign(GO, tmp_path / "absent")

"""Detached OpenSSH signatures of reviewers over canonical statements, checked against registered keys.

A thin edge around `ssh-keygen -Y`; the allowed-signers file is made from the registry each time, in a
private folder, so that no file on this machine can add a signer.
"""

import subprocess
import tempfile
from pathlib import Path

from fitladder.canonical import canonical_bytes, sha256_bytes
from fitladder.errors import EnvironmentNotReady, GoRefused
from fitladder.records.approval import Go, Handoff
from fitladder.records.registry import Reviewer

__all__ = ["NAMESPACE", "check_signature", "render_allowed_signers", "sign"]

NAMESPACE = "fitladder-go"
TIMEOUT_S = 30


def _principal(name: str) -> str:
    """A name may hold blanks, commas or wildcards, which allowed-signers files read as patterns."""
    return f"reviewer-{sha256_bytes(name.encode())[:32]}"


def render_allowed_signers(reviewers: tuple[Reviewer, ...]) -> str:
    """One line a reviewer, valid for this namespace only."""
    return "".join(
        f'{_principal(reviewer.name)} namespaces="{NAMESPACE}" {key_type} {key}\n'
        for reviewer in reviewers
        for key_type, key in [reviewer.ssh_public_key.split()[:2]]
    )


def _ssh_keygen(
    arguments: list[str], stdin: bytes, *, prompt: bool = False
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["ssh-keygen", "-Y", *arguments],
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=None if prompt else subprocess.PIPE,  # a passphrase is asked for on the terminal
            timeout=None if prompt else TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise EnvironmentNotReady("ssh-keygen is not installed", do="install an OpenSSH client") from error
    except subprocess.TimeoutExpired as error:
        raise GoRefused(f"ssh-keygen gave no answer within {TIMEOUT_S} s") from error


def sign(statement: Go | Handoff, private_key: Path) -> str:
    """Armoured signature over the canonical statement. Raises GoRefused when ssh-keygen declines."""
    done = _ssh_keygen(
        ["sign", "-q", "-n", NAMESPACE, "-f", str(private_key)], canonical_bytes(statement), prompt=True
    )
    if done.returncode != 0:
        raise GoRefused(
            "ssh-keygen did not sign", got=f"exit code {done.returncode}", do=f"check {private_key}"
        )
    return done.stdout.decode()


def check_signature(
    statement: Go | Handoff, signature: str, signer: str, reviewers: tuple[Reviewer, ...]
) -> None:
    """Raises GoRefused unless `signature` is this registered signer's over exactly this statement."""
    if signer not in {reviewer.name for reviewer in reviewers}:
        raise GoRefused(
            "the signer is not registered",
            got=repr(signer),
            need=" or ".join(sorted(reviewer.name for reviewer in reviewers)) or "a registered reviewer",
        )
    with tempfile.TemporaryDirectory(prefix="fitladder-go-") as folder:
        allowed, detached = Path(folder, "allowed_signers"), Path(folder, "signature")
        allowed.write_text(render_allowed_signers(reviewers))
        detached.write_text(signature.strip() + "\n")
        done = _ssh_keygen(
            ["verify", "-f", str(allowed), "-I", _principal(signer), "-n", NAMESPACE, "-s", str(detached)],
            canonical_bytes(statement),
        )
    if done.returncode != 0:
        raise GoRefused(
            f"the signature of {signer} does not cover this statement",
            got=(done.stderr or done.stdout).decode(errors="replace").strip()[:200],
            need=f"a signature over statement {statement.sha256}",
            do="sign exactly what the plan shows: `fitladder go sign`",
        )

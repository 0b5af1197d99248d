"""DSSE envelope around a statement, signed with an OpenSSH ed25519 key or unsigned.

The envelope and its signatures are securesystemslib's. A signature covers DSSE's pre-authentication
encoding, which begins with `DSSEv1`; a signed GO covers OpenSSH's, which begins with `SSHSIG`: no signature
of one is one of the other, so that reviewers may use one key for both.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    load_ssh_private_key,
    load_ssh_public_key,
    ssh_key_fingerprint,
)
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import UnverifiedSignatureError
from securesystemslib.signer import CryptoSigner, SSlibKey

from fitladder.canonical import canonical_bytes, parse_json, parse_model
from fitladder.errors import BundleTampered, UsageError
from fitladder.export.statement import Statement, parse_statement, render_statement
from fitladder.files.atomic import read_plain
from fitladder.frozen import Frozen
from fitladder.records.registry import Reviewer

__all__ = [
    "Signer",
    "check_signers",
    "load_envelope",
    "load_private_key",
    "load_signer",
    "parse_envelope",
    "registered_signers",
    "render_envelope",
]

PayloadType = Literal["application/vnd.in-toto+json"]
PAYLOAD_TYPE: PayloadType = "application/vnd.in-toto+json"
MAX_ENVELOPE_BYTES = 64 << 20


class _Signature(Frozen):
    keyid: str
    sig: str


class _Envelope(Frozen):
    payload: str
    payloadType: PayloadType  # noqa: N815 - the specification's spelling
    signatures: tuple[_Signature, ...]


@dataclass(frozen=True)
class Signer:
    """A public key that is believed, and whose it is."""

    name: str
    key: SSlibKey

    @property
    def fingerprint(self) -> str:
        """`SHA256:...`, as `ssh-keygen -l` prints it; the key id of its signatures."""
        return self.key.keyid


def render_envelope(statement: Statement, private_key: Ed25519PrivateKey | None) -> bytes:
    """Canonical JSON of the envelope and a newline.

    The same statement and `private_key` give the same bytes; where that is None, `signatures` is empty.
    """
    envelope = Envelope(render_statement(statement), PAYLOAD_TYPE, {})
    if private_key is not None:
        envelope.sign(CryptoSigner(private_key, _key(private_key.public_key())))
    return canonical_bytes(envelope.to_dict()) + b"\n"


def load_envelope(file: Path) -> tuple[Statement, Envelope]:
    """`parse_envelope` of a file. Raises BundleTampered."""
    return parse_envelope(read_plain(file, max_bytes=MAX_ENVELOPE_BYTES), where=str(file))


def parse_envelope(data: bytes, *, where: str) -> tuple[Statement, Envelope]:
    """The statement in an envelope's bytes `data`, both checked for their form and for nothing else.

    Raises BundleTampered naming `where` and the field.
    """
    plain = parse_json(data, where=where, error=BundleTampered)
    parse_model(_Envelope, plain, where=where, error=BundleTampered)
    try:
        envelope = Envelope.from_dict(plain)
    except ValueError as failure:  # no base64, or one key id twice
        raise BundleTampered(f"{where}: no DSSE envelope", got=failure) from failure
    if canonical_bytes(envelope.to_dict()) + b"\n" != data:
        raise BundleTampered(f"{where}: not in canonical form")
    return parse_statement(envelope.payload, where=where), envelope


def check_signers(envelope: Envelope, signers: Sequence[Signer], *, where: str) -> tuple[Signer, ...]:
    """Who signed; empty where nobody did. Every signature must be a believed key's over this payload.

    Args:
        envelope: from `parse_envelope`.
        signers: the keys that are believed.
        where: names the export in messages.

    Raises BundleTampered where a key is unknown or its signature does not cover the payload.
    """
    known = {signer.fingerprint: signer for signer in reversed(signers)}
    for key_id in envelope.signatures:
        if key_id not in known:
            raise BundleTampered(
                f"{where} is signed with a key that nobody here knows",
                got=key_id,
                need=" or ".join(known) or "a registered reviewer's ed25519 key",
                do="name its public key with --signer",
            )
    found = tuple(known[key_id] for key_id in envelope.signatures)
    if found:
        try:
            envelope.verify([signer.key for signer in found], len(found))
        except UnverifiedSignatureError as failure:
            raise BundleTampered(
                f"{where}: a signature does not cover this export",
                got=f"one under {', '.join(envelope.signatures)}",
                do="ask whoever made it for the file again",
            ) from failure
    return found


def registered_signers(reviewers: Sequence[Reviewer]) -> tuple[Signer, ...]:
    """The ed25519 keys of the registered reviewers; keys of other types cannot sign an export."""
    found = ((one.name, _parse_public_key(one.ssh_public_key.encode())) for one in reviewers)
    return tuple(Signer(name, _key(key)) for name, key in found if key is not None)


def load_signer(file: Path) -> Signer:
    """The OpenSSH ed25519 public key in a file such as `id_ed25519.pub`. Raises UsageError."""
    key = _parse_public_key(_read(file))
    if key is None:
        raise UsageError(f"{file} cannot check an export", need="one line with an ssh-ed25519 public key")
    return Signer(str(file), _key(key))


def load_private_key(file: Path) -> Ed25519PrivateKey:
    """The unencrypted OpenSSH ed25519 private key in a file. Raises UsageError on any other."""
    try:
        key = load_ssh_private_key(_read(file), password=None)
    except (TypeError, ValueError, UnsupportedAlgorithm) as failure:
        raise UsageError(
            f"{file} cannot sign an export",
            got=str(failure).rstrip("."),
            need="an unencrypted OpenSSH ed25519 private key, made by ssh-keygen -t ed25519",
        ) from failure
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"{file} cannot sign an export", got="another key type", need="an ed25519 key")
    return key


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as failure:
        raise UsageError(f"{file} cannot be read", got=failure.strerror, need="a key file") from failure


def _parse_public_key(line: bytes) -> Ed25519PublicKey | None:
    try:
        key = load_ssh_public_key(line.strip())
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, Ed25519PublicKey) else None


def _key(public_key: Ed25519PublicKey) -> SSlibKey:
    digest = base64.b64encode(ssh_key_fingerprint(public_key, SHA256())).decode()
    return SSlibKey.from_crypto(public_key, keyid=f"SHA256:{digest.rstrip('=')}")

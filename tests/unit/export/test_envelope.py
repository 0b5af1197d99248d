"""The envelope against readers that share no code with ours: DSSE by hand, in-toto's own package."""

import base64
import hashlib
import json
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from support import bundles as make

from fitladder.export.check import export_root
from fitladder.export.envelope import parse_envelope, render_envelope
from fitladder.export.statement import Statement, render_statement

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


@pytest.fixture(scope="module")
def statement(tmp_path_factory: pytest.TempPathFactory) -> Statement:
    folder = tmp_path_factory.mktemp("export")
    root = make.make_root(folder / "root", done=[(64, "probe")], begun=[(64, "base")])
    return export_root(root, make.experiment(), folder / "data")


def encoding_that_is_signed(payload_type: str, payload: bytes) -> bytes:
    """DSSE v1's pre-authentication encoding, written from the specification."""
    kind = payload_type.encode()
    return b" ".join((b"DSSEv1", str(len(kind)).encode(), kind, str(len(payload)).encode(), payload))


def test_cryptography_alone_verifies_the_signature(statement: Statement) -> None:
    envelope: dict[str, Any] = json.loads(render_envelope(statement, KEY))
    assert envelope.keys() == {"payload", "payloadType", "signatures"}
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    payload = base64.b64decode(envelope["payload"], validate=True)
    [signature] = envelope["signatures"]
    raw = base64.b64decode(signature["sig"], validate=True)
    signed = encoding_that_is_signed(envelope["payloadType"], payload)
    KEY.public_key().verify(raw, signed)
    for other in (payload, signed + b" ", encoding_that_is_signed("application/json", payload)):
        with pytest.raises(InvalidSignature):
            KEY.public_key().verify(raw, other)


def test_the_key_id_is_the_fingerprint_that_ssh_prints(statement: Statement) -> None:
    line = KEY.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    digest = base64.b64encode(hashlib.sha256(base64.b64decode(line.split()[1])).digest()).decode()
    [signature] = json.loads(render_envelope(statement, KEY))["signatures"]
    assert signature["keyid"] == f"SHA256:{digest.rstrip('=')}"


def test_in_toto_reads_the_payload_as_a_valid_statement(statement: Statement) -> None:
    reader = pytest.importorskip("in_toto_attestation.v1.statement", reason="in-toto-attestation: make setup")
    json_format = pytest.importorskip("google.protobuf.json_format")
    payload = base64.b64decode(json.loads(render_envelope(statement, None))["payload"])
    found = reader.Statement([], "", {})
    json_format.Parse(payload, found.pb)  # refuses fields that the specification does not have
    found.validate()
    assert {one.name: one.digest["sha256"] for one in found.pb.subject} == {
        name: record.sha256 for name, record in statement.files.items()
    }
    assert found.pb.predicate_type == "urn:fitladder:export:v1"


@pytest.mark.parametrize("key", [KEY, None], ids=["signed", "unsigned"])
def test_an_envelope_reads_back_as_the_same_statement(
    statement: Statement, key: Ed25519PrivateKey | None
) -> None:
    data = render_envelope(statement, key)
    found, envelope = parse_envelope(data, where="here")
    assert found == statement
    assert envelope.payload == render_statement(statement)
    assert len(envelope.signatures) == (key is not None)

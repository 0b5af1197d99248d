"""`fitladder export` and `fitladder verify --export`, through the command line's own entry."""

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import bundles as make

from fitladder.canonical import canonical_bytes
from fitladder.store.held_root import hold_root

Run = Callable[..., tuple[int, str, str]]


def ssh_key(path: Path, *options: str, passphrase: str = "") -> Path:
    """A key of OpenSSH's own making; its public half lies next to it."""
    words = ["ssh-keygen", "-q", *(options or ("-t", "ed25519")), "-N", passphrase, "-f", str(path)]
    subprocess.run(words, check=True, timeout=30)
    return path


def register(checkout: Path, name: str, key: Path) -> None:
    document = yaml.safe_load((checkout / "params.yaml").read_text())
    public = " ".join(key.with_suffix(".pub").read_text().split()[:2])
    document["reviewers"] = [{"name": name, "ssh_public_key": public}]
    (checkout / "params.yaml").write_text(yaml.safe_dump(document, sort_keys=False))


def payload(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(base64.b64decode(json.loads(file.read_bytes())["payload"]))
    return found


def write_payload(file: Path, statement: dict[str, Any]) -> None:
    """The envelope with another statement under the signatures that it has."""
    envelope = json.loads(file.read_bytes())
    envelope["payload"] = base64.b64encode(canonical_bytes(statement)).decode()
    file.write_bytes(canonical_bytes(envelope) + b"\n")


def test_an_export_is_checked_with_nothing_but_the_files(checkout: Path, run: Run) -> None:
    audit = checkout / "data" / "audits" / make.ID / "phases" / "think_64_probe.json"
    audit.parent.mkdir(parents=True)
    audit.write_text('{"adequate":false}\n')
    code, out, _ = run("export", make.ID, "--out", "a.json", "--json")
    path = checkout / "a.json"
    assert code == 0
    assert json.loads(out) == {
        "path": "a.json",
        "sha256": make.sha256_bytes(path.read_bytes()),
        "subjects": 10,
        "signed_by": [],
    }
    statement = payload(path)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    subjects = {one["name"]: one for one in statement["subject"]}
    for name, one in subjects.items():
        data = (checkout / "data" / name).read_bytes()  # as any tool would check
        assert one["digest"] == {"sha256": make.sha256_bytes(data)}
        assert one["annotations"] == {"bytes": len(data)}
    assert f"audits/{make.ID}/phases/think_64_probe.json" in subjects
    assert f"bundles/{make.ID}/catalog.json" in subjects
    assert len(subjects) == 5 + 1 + 3 + 1  # files, catalog, old checkpoints, audit

    (checkout / "params.yaml").unlink()
    code, out, _ = run("verify", "--export", "a.json")
    assert (code, "10 of 10 files match; unsigned: nobody vouches" in out) == (0, True)
    assert run("verify", "--export", "a.json", "--root", "root")[0] == 0
    assert run("verify", "another_experiment", "--export", "a.json")[0] == 6
    before = path.read_bytes()
    audit.write_text('{"adequate":true }\n')
    code, out, err = run("verify", "--export", "a.json", "--json")
    assert (code, "think_64_probe.json: SHA-256" in err) == (6, True)
    found = json.loads(out)
    assert found["verified"] is False
    assert [name for name, state in found["files"].items() if state != "matches"] == [
        f"audits/{make.ID}/phases/think_64_probe.json"
    ]
    assert path.read_bytes() == before


def test_the_same_files_and_key_give_the_same_bytes(checkout: Path, run: Run) -> None:
    key = ssh_key(checkout / "key")
    for words in ((), ("--key", str(key))):
        digests = set()
        for number in range(2):
            code, out, _ = run("export", make.ID, "--out", f"{number}.json", "--json", *words)
            assert code == 0
            digests.add(json.loads(out)["sha256"])
        assert len(digests) == 1


def test_a_registered_reviewer_signs_and_is_named(checkout: Path, run: Run) -> None:
    key = ssh_key(checkout / "key")
    code, out, _ = run("export", make.ID, "--out", "a.json", "--key", "key", "--json")
    fingerprint = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(key)], check=True, capture_output=True, text=True, timeout=30
    ).stdout.split()[1]
    assert (code, json.loads(out)["signed_by"]) == (0, [fingerprint])

    code, out, err = run("verify", "--export", "a.json")
    assert (code, out) == (6, "")
    assert f"signed with a key that nobody here knows: got {fingerprint}" in err
    register(checkout, "Reviewer One", key)
    code, out, _ = run("verify", "--export", "a.json")
    assert (code, f"files match; signed by Reviewer One ({fingerprint})" in out) == (0, True)
    (checkout / "params.yaml").unlink()
    assert run("verify", "--export", "a.json")[0] == 6
    code, out, _ = run("verify", "--export", "a.json", "--signer", "key.pub", "--json")
    assert (code, json.loads(out)["signed_by"]) == (0, [{"name": "key.pub", "key": fingerprint}])


def test_a_named_signer_must_have_signed(checkout: Path, run: Run) -> None:
    ssh_key(checkout / "key")
    ssh_key(checkout / "other")
    assert run("export", make.ID, "--out", "unsigned.json")[0] == 0
    code, out, err = run("verify", "--export", "unsigned.json", "--signer", "key.pub")
    assert (code, out, "is not signed" in err) == (6, "", True)
    assert run("export", make.ID, "--out", "a.json", "--key", "other")[0] == 0
    code, _, err = run("verify", "--export", "a.json", "--signer", "key.pub")
    assert (code, "a key that nobody here knows" in err) == (6, True)
    code, _, err = run("verify", "--export", "a.json", "--signer", "key")
    assert (code, "need one line with an ssh-ed25519 public key" in err) == (2, True)


@pytest.mark.parametrize("part", ["payload", "signature", "key id"])
def test_a_signature_covers_every_byte_of_the_statement(checkout: Path, run: Run, part: str) -> None:
    register(checkout, "Reviewer One", ssh_key(checkout / "key"))
    assert run("export", make.ID, "--out", "a.json", "--key", "key")[0] == 0
    path = checkout / "a.json"
    if part == "payload":  # what no file proves and the signature alone covers
        statement = payload(path)
        statement["predicate"]["manifest"]["omitted"].pop()
        write_payload(path, statement)
    else:
        envelope = json.loads(path.read_bytes())
        one = envelope["signatures"][0]
        if part == "signature":
            one["sig"] = base64.b64encode(bytes([base64.b64decode(one["sig"])[0] ^ 1]) + bytes(63)).decode()
        else:
            one["keyid"] = "SHA256:none"
        path.write_bytes(canonical_bytes(envelope) + b"\n")
    code, out, err = run("verify", "--export", "a.json")
    assert (code, out, err.count("\n")) == (6, "", 1)
    expected = "a key that nobody here knows" if part == "key id" else "does not cover this export"
    assert expected in err


@pytest.mark.parametrize(
    ("make_key", "words"),
    [
        (lambda path: path.write_text("no key"), "need an unencrypted OpenSSH ed25519 private key"),
        (lambda path: ssh_key(path, passphrase="secret"), "need an unencrypted OpenSSH ed25519 private key"),
        (lambda path: ssh_key(path, "-t", "ecdsa"), "got another key type, need an ed25519 key"),
        (lambda path: path, "cannot be read: got No such file or directory"),
    ],
    ids=["text", "encrypted", "ecdsa", "absent"],
)
def test_a_key_that_cannot_sign_is_refused(
    checkout: Path, run: Run, make_key: Callable[[Path], Any], words: str
) -> None:
    make_key(checkout / "key")
    code, out, err = run("export", make.ID, "--out", "a.json", "--key", "key")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err
    assert not (checkout / "a.json").exists()


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda s: s["subject"].pop(), "is not the export of"),
        (
            lambda s: s["subject"].append(
                {"name": "zz", "digest": {"sha256": "0" * 64}, "annotations": {"bytes": 1}}
            ),
            "subject zz",
        ),
        (
            lambda s: s["subject"].append(
                {"name": "bundles/../../x", "digest": {"sha256": "0" * 64}, "annotations": {"bytes": 1}}
            ),
            "subject",
        ),
        (lambda s: s["subject"][0]["digest"].update(sha256="0" * 64), "SHA-256: got"),
        (lambda s: s["subject"][0]["annotations"].update(bytes=1), "bytes: got"),
        (lambda s: s["subject"][0]["digest"].update(md5="0"), "digest"),
        (lambda s: s["predicate"]["bundles"][0].update(go_sha256="0" * 64), "another predicate"),
        (lambda s: s["predicate"]["bundles"][0]["engine"].update(dtype="bfloat16"), "another predicate"),
        (lambda s: s["predicate"].update(root_id="0" * 64), "another predicate"),
        (lambda s: s["predicate"]["bundles"].pop(), "another predicate"),
        (lambda s: s.update(_type="https://in-toto.io/Statement/v0.1"), "_type"),
        (lambda s: s.update(predicateType="https://slsa.dev/provenance/v1"), "predicateType"),
        (lambda s: s.update(more=1), "more"),
    ],
)
def test_an_edited_statement_is_refused_unsigned_too(
    checkout: Path, run: Run, edit: Callable[[dict[str, Any]], Any], words: str
) -> None:
    assert run("export", make.ID, "--out", "a.json")[0] == 0
    statement = payload(checkout / "a.json")
    edit(statement)
    write_payload(checkout / "a.json", statement)
    code, _, err = run("verify", "--export", "a.json")
    assert code == 6
    assert words in err


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda e: e.update(payload="*"), "no DSSE envelope"),
        (lambda e: e.update(payload=e["payload"].rstrip("=") + "===="), "no DSSE envelope"),
        (lambda e: e.update(payloadType="text/plain"), "payloadType"),
        (lambda e: e.update(more=1), "more"),
        (lambda e: e.pop("signatures"), "signatures"),
        (lambda e: e["signatures"].append({"keyid": "k", "sig": "AA==", "cert": ""}), "cert"),
        (lambda e: e["signatures"].extend([{"keyid": "k", "sig": "AA=="}] * 2), "no DSSE envelope"),
    ],
)
def test_an_odd_envelope_is_refused(
    checkout: Path, run: Run, edit: Callable[[dict[str, Any]], Any], words: str
) -> None:
    assert run("export", make.ID, "--out", "a.json")[0] == 0
    envelope = json.loads((checkout / "a.json").read_bytes())
    edit(envelope)
    (checkout / "a.json").write_bytes(canonical_bytes(envelope) + b"\n")
    code, out, err = run("verify", "--export", "a.json")
    assert (code, out, err.count("\n")) == (6, "", 1)
    assert words in err


def test_the_same_envelope_in_other_bytes_is_refused(checkout: Path, run: Run) -> None:
    assert run("export", make.ID, "--out", "a.json")[0] == 0
    path = checkout / "a.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()), indent=1))
    code, _, err = run("verify", "--export", "a.json")
    assert (code, "not in canonical form" in err) == (6, True)


def test_a_root_that_went_on_is_not_the_exported_one(checkout: Path, run: Run) -> None:
    assert run("export", make.ID, "--root", "root", "--out", "a.json")[0] == 0
    assert run("verify", "--export", "a.json", "--root", "root")[0] == 0
    with hold_root(checkout / "root", make.ID, "test") as held:
        make.begin(held, make.experiment(), make.key(96))
    code, _, err = run("verify", "--export", "a.json", "--root", "root")
    assert (code, "catalog.json" in err) == (6, True)


def test_the_manifest_says_what_is_here_and_what_is_not(checkout: Path, run: Run) -> None:
    assert run("export", make.ID, "--out", "a.json")[0] == 0
    code, out, _ = run("verify", "--export", "a.json", "--json")
    made = json.loads(out)
    assert code == 0
    chain = payload(checkout / "a.json")["predicate"]
    assert chain["manifest"] == made["manifest"]
    assert made["tree"]["files"] == 5
    assert [(one["key"]["phase"], one["state"]) for one in chain["bundles"]] == [
        ("probe", "complete"),
        ("base", "preflight_only"),
    ]
    assert any(need["command"] == f"fitladder verify {make.ID}" for need in made["manifest"]["required_for"])
    reasons = {one["what"]: one["reason"] for one in made["manifest"]["omitted"]}
    assert f"{make.key(64, 'base')}: samples, engine metadata, receipt" in reasons
    assert "decoded text" in reasons
    code, out, _ = run("verify", "--export", "a.json")
    assert code == 0
    assert made["tree"]["sha256"] in out
    assert "decoded text" in out
    assert f"copy: data/bundles/{make.ID}, by `fitladder lineage pull {make.ID}`" in out


def test_an_experiment_without_bundles_is_told_what_to_do(checkout: Path, run: Run) -> None:
    code, out, err = run("export", "another_experiment", "--out", "a.json")
    assert (code, out, err.count("\n")) == (6, "", 1)
    assert "no bundles of another_experiment: got nothing at data/bundles/another_experiment" in err
    assert "run `fitladder lineage pull another_experiment`" in err
    code, _, err = run("export", make.ID, "--root", "nowhere", "--out", "a.json")
    assert (code, "got nothing at nowhere" in err) == (6, True)
    (checkout / "data" / "bundles" / make.ID / "think_64" / "probe" / "engine.json").unlink()
    assert run("export", make.ID, "--out", "a.json")[0] == 6
    assert not (checkout / "a.json").exists()


def test_without_the_signing_library_export_refuses_and_verify_works(checkout: Path) -> None:
    code = "import sys\nsys.modules['securesystemslib'] = None\nfrom fitladder.cli.main import main\nmain()\n"
    found = {
        words: subprocess.run(
            [sys.executable, "-c", code, *words],
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=checkout,
        )
        for words in (
            ("verify", make.ID, "--any-binding"),
            ("verify", "--export", "a.json"),
            ("export", make.ID, "--out", "a.json"),
        )
    }
    verify, *refused = found.values()
    assert (verify.returncode, verify.stderr) == (0, "")
    for done in refused:
        assert (done.returncode, done.stderr.count("\n")) == (12, 1)
        assert "need fitladder with its extra `orchestrate`" in done.stderr

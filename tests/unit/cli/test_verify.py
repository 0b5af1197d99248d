"""`fitladder verify`, `attest` and `manifest`, through the command line's own entry."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import bundles as make

from fitladder.cli import main as cli
from fitladder.records.binding import Binding

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a registry of two experiments and the bundles of one, under a binding of today."""
    experiments: dict[str, Any] = {}
    for name in (make.ID, "another_experiment"):
        section = make.experiment(name).model_dump(mode="json")
        section.pop("experiment_id")
        section["artifacts"]["environment_override"] = name.upper()
        experiments[name] = section
    document = {"reviewers": [], "gpu_owners": {}, "experiments": experiments}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    root = make.make_root(tmp_path / "root", done=[(64, "probe")], begun=[(64, "base")])
    copy = tmp_path / "data" / "bundles" / make.ID
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".*"))

    def today(experiment: Any) -> Binding:
        return make.binding(experiment)

    monkeypatch.setattr("fitladder.evidence.checkout_bundles.bind", today)
    monkeypatch.setattr("fitladder.cli.verify.bind", today)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fitladder", *words])
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        else:
            code = 0
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_everything_that_is_here_is_verified(checkout: Path, run: Run) -> None:
    (checkout / "data" / "bundles" / ".gitignore").write_text("/x\n")
    code, out, err = run("verify")
    assert (code, err) == (0, "")
    assert "probe@64" in out
    assert "preflight only" in out
    for words in (("verify", make.ID), ("verify", make.ID, "--root", "root")):
        code, out, _ = run(*words, "--json")
        found = json.loads(out)
        assert (code, found["verified"]) == (0, True)
        assert [one["state"] for one in found["experiments"][0]["bundles"]] == ["complete", "preflight_only"]
        assert sorted(found["experiments"][0]["bundles"][0]["files"]) == [
            "engine.json",
            "preflight.json",
            "receipt.json",
            "samples.parquet",
        ]


@pytest.mark.parametrize("name", ["preflight.json", "samples.parquet", "engine.json", "receipt.json"])
def test_one_flipped_byte_ends_with_6_and_names_the_file(checkout: Path, run: Run, name: str) -> None:
    path = checkout / "data" / "bundles" / make.ID / "think_64" / "probe" / name
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(bytes(data))
    for words in (("verify",), ("verify", make.ID, "--json"), ("verify", make.ID, "--any-binding")):
        code, out, err = run(*words)
        assert code == 6
        assert f"think_64/probe/{name}" in err
        assert err.count("\n") == 1
        assert "REFUSED" in out or json.loads(out)["verified"] is False


def test_one_refusal_does_not_hide_the_other_experiments(checkout: Path, run: Run) -> None:
    of = make.experiment("another_experiment")
    other = make.make_root(checkout / "other", of)
    shutil.copytree(
        other, checkout / "data" / "bundles" / "another_experiment", ignore=shutil.ignore_patterns(".*")
    )
    assert run("verify")[0] == 0
    (checkout / "data" / "bundles" / make.ID / "catalog.json").unlink()
    code, out, err = run("verify", "--json")
    found = json.loads(out)
    assert code == 6
    assert "catalog.json" in err
    assert [one["experiment_id"] for one in found["experiments"]] == ["another_experiment"]
    assert list(found["refused"]) == [make.ID]


@pytest.mark.parametrize("state", ["nothing", "empty folder", "no folder"])
def test_nothing_to_verify_is_no_pass(checkout: Path, run: Run, state: str) -> None:
    bundles = checkout / "data" / "bundles"
    shutil.rmtree(bundles if state == "no folder" else bundles / make.ID)
    if state == "empty folder":
        (bundles / make.ID).mkdir()
    for words in (("verify",), ("verify", make.ID)):
        code, _, err = run(*words)
        assert code == 6
        assert "no bundle lies here" in err
        assert "fitladder lineage pull" in err


def test_an_unregistered_folder_a_copy_of_another_and_a_moved_binding(
    checkout: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundles = checkout / "data" / "bundles"
    shutil.copytree(bundles / make.ID, bundles / "another_experiment")
    code, _, err = run("verify")
    assert (code, f"got {make.ID}, need another_experiment" in err) == (6, True)
    (bundles / "another_experiment").rename(bundles / "stray")
    code, _, err = run("verify")
    assert (code, "stray is of no registered experiment" in err) == (3, True)
    shutil.rmtree(bundles / "stray")
    monkeypatch.setattr(
        "fitladder.evidence.checkout_bundles.bind", lambda of: make.binding(of, code="edited")
    )
    code, _, err = run("verify")
    assert (code, "another binding" in err) == (3, True)
    assert run("verify", "--any-binding")[0] == 0


def test_words_that_do_not_fit(checkout: Path, run: Run) -> None:
    assert run("verify", "--root", "root")[0] == 2
    assert run("verify", "unknown_experiment")[0] == 3
    assert run("verify", make.ID, "--root", "nowhere")[0] == 6
    assert run("verify", "--attestation", "nowhere.json")[0] == 6


def test_attest_and_check_with_nothing_but_the_files(checkout: Path, run: Run) -> None:
    audit = checkout / "data" / "audits" / make.ID / "phases" / "think_64_probe.json"
    audit.parent.mkdir(parents=True)
    audit.write_text('{"adequate":false}\n')
    code, out, _ = run("attest", make.ID, "--json")
    made = json.loads(out)
    path = checkout / made["path"]
    assert (code, path) == (0, checkout / "data" / "attestations" / f"{make.ID}.intoto.json")
    statement = json.loads(path.read_bytes())
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    names = {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]}
    for name, digest in names.items():
        assert make.sha256_bytes((checkout / "data" / name).read_bytes()) == digest  # as any tool would check
    assert f"audits/{make.ID}/phases/think_64_probe.json" in names
    assert f"bundles/{make.ID}/catalog.json" in names
    assert len(names) == 5 + 1 + 3 + 1  # files, catalog, old checkpoints, audit

    (checkout / "params.yaml").unlink()
    assert run("verify", "--attestation", str(path))[0] == 0
    assert run("verify", "--attestation", str(path), "--root", "root")[0] == 0
    assert run("verify", "another_experiment", "--attestation", str(path))[0] == 6
    before = path.read_bytes()
    audit.write_text('{"adequate":true}\n')
    code, _, err = run("verify", "--attestation", str(path))
    assert (code, "think_64_probe.json: SHA-256" in err) == (6, True)
    assert path.read_bytes() == before


def test_the_same_files_give_the_same_statement(checkout: Path, run: Run) -> None:
    digests = set()
    for number in range(2):
        code, out, _ = run("attest", make.ID, "--out", f"{number}.json", "--json")
        assert code == 0
        digests.add(json.loads(out)["sha256"])
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda s: s["subject"].pop(), "is not the statement"),
        (lambda s: s["subject"].append({"name": "zz", "digest": {"sha256": "0" * 64}}), "subject zz"),
        (
            lambda s: s["subject"].append({"name": "bundles/../../x", "digest": {"sha256": "0" * 64}}),
            "subject",
        ),
        (lambda s: s["subject"][0]["digest"].update(sha256="0" * 64), "SHA-256: got"),
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
def test_an_edited_statement_is_refused(
    checkout: Path, run: Run, edit: Callable[[dict[str, Any]], Any], words: str
) -> None:
    from fitladder.canonical import canonical_bytes

    assert run("attest", make.ID, "--out", "a.json")[0] == 0
    statement = json.loads((checkout / "a.json").read_bytes())
    edit(statement)
    (checkout / "a.json").write_bytes(canonical_bytes(statement) + b"\n")
    code, _, err = run("verify", "--attestation", "a.json")
    assert code == 6
    assert words in err


def test_a_root_that_went_on_is_not_the_attested_one(checkout: Path, run: Run) -> None:
    from fitladder.store.held_root import hold_root

    assert run("attest", make.ID, "--root", "root", "--out", "a.json")[0] == 0
    assert run("verify", "--attestation", "a.json", "--root", "root")[0] == 0
    with hold_root(checkout / "root", make.ID, "test") as held:
        make.begin(held, make.experiment(), make.key(96))
    code, _, err = run("verify", "--attestation", "a.json", "--root", "root")
    assert (code, "catalog.json" in err) == (6, True)


def test_the_manifest_says_what_is_here_and_what_is_not(checkout: Path, run: Run) -> None:
    code, out, _ = run("manifest", make.ID, "--json", "--out", "m.json")
    made = json.loads(out)
    assert code == 0
    assert json.loads((checkout / "m.json").read_bytes()) == made
    assert made["tree"]["files"] == len(made["files"]) == 5
    assert [(phase["key"]["phase"], phase["state"]) for phase in made["phases"]] == [
        ("probe", "complete"),
        ("base", "preflight_only"),
    ]
    assert any(need["command"] == f"fitladder verify {make.ID}" for need in made["required_for"])
    reasons = {one["what"]: one["reason"] for one in made["omitted"]}
    assert f"{make.key(64, 'base')}: samples, engine metadata, receipt" in reasons
    assert "decoded text" in reasons
    code, out, _ = run("manifest", make.ID)
    assert code == 0
    assert made["tree"]["sha256"] in out
    (checkout / "data" / "bundles" / make.ID / "think_64" / "probe" / "engine.json").unlink()
    assert run("manifest", make.ID)[0] == 6


@pytest.mark.parametrize("command", ["manifest", "attest"])
def test_an_experiment_without_bundles_is_told_what_to_do(checkout: Path, run: Run, command: str) -> None:
    code, out, err = run(command, "another_experiment")
    assert (code, out, err.count("\n")) == (6, "", 1)
    assert "no bundles of another_experiment: got nothing at data/bundles/another_experiment" in err
    assert "run `fitladder lineage pull another_experiment`" in err
    code, _, err = run(command, make.ID, "--root", "nowhere")
    assert (code, "got nothing at nowhere" in err) == (6, True)
    assert not (checkout / "data" / "attestations").exists()

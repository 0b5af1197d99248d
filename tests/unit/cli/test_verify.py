"""`fitladder verify`, through the command line's own entry."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support import bundles as make

Run = Callable[..., tuple[int, str, str]]


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
    assert run("verify", "--export", "nowhere.json")[0] == 6
    assert run("verify", make.ID, "--signer", "key.pub")[0] == 2

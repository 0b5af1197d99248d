"""A rehearsal is forgotten: its entries go back to Git's, everybody else's stay."""

import shutil
import subprocess
from pathlib import Path

import pytest
from support.dvc_checkout import commit, git

from fitladder.dvc_api.forget import forget, forget_text
from fitladder.dvc_files.lock_file import load_lock, parse_lock
from fitladder.errors import LineageError

HEAD = "schema: '2.0'\nstages:\n"


def block(name: str, md5: str) -> str:
    return (
        f"  {name}:\n    cmd: fitladder stage {name}\n    outs:\n    - path: data/{name}\n"
        f"      hash: md5\n      md5: {md5}\n      size: 1\n"
    )


def lock(**stages: str) -> str:
    return HEAD + "".join(block(name.replace("_at_", "@"), md5) for name, md5 in stages.items())


COMMITTED = lock(prompts_at_demo="aa", bundles_at_demo="bb", history_at_old="cc")


@pytest.mark.parametrize(
    ("now", "committed", "kept"),
    [
        (COMMITTED.replace("bb", "b2"), COMMITTED, COMMITTED),
        (COMMITTED.replace("bb", "b2").replace("cc", "c2"), COMMITTED, COMMITTED.replace("cc", "c2")),
        (COMMITTED + block("audit@demo", "dd"), COMMITTED, COMMITTED),
        (COMMITTED + block("audit@demo2", "dd"), COMMITTED, COMMITTED + block("audit@demo2", "dd")),
        (lock(history_at_old="c2"), COMMITTED, COMMITTED.replace("cc", "c2")),
        (lock(bundles_at_demo="b2", history_at_new="ee"), "", lock(history_at_new="ee")),
        (lock(bundles_at_demo="b2"), "", HEAD),
        ("", COMMITTED, lock(prompts_at_demo="aa", bundles_at_demo="bb")),
    ],
)
def test_only_its_own_entries_go_back(now: str, committed: str, kept: str) -> None:
    assert forget_text(now, committed, "demo") == kept


def test_a_text_that_dvc_did_not_write_is_edited_by_what_it_says() -> None:
    odd = "schema: '2.0'\nstages: {bundles@demo: {cmd: x}, history@old: {cmd: y}}\n"
    assert set(parse_lock(forget_text(odd, "", "demo"), where="kept")) == {"history@old"}


@pytest.mark.parametrize("torn", ["<<<<<<< HEAD\nstages:\n", "schema: '1.0'\n", "stages: [1]\n"])
def test_a_text_that_is_no_lock_is_refused(torn: str) -> None:
    for now, committed in ((torn, COMMITTED), (COMMITTED, torn)):
        with pytest.raises(LineageError, match=r"dvc\.lock"):
            forget_text(now, committed, "demo")


def test_the_recorded_lock_keeps_every_byte_of_what_stays() -> None:
    recorded = (Path(__file__).parents[3] / "dvc.lock").read_text()
    assert forget_text(recorded, recorded, "no_such_experiment") == recorded
    assert forget_text(recorded + block("audit@demo", "dd"), recorded, "demo") == recorded


def test_in_a_checkout(tmp_path: Path) -> None:
    (tmp_path / ".dvc").mkdir()
    path = tmp_path / "dvc.lock"
    with pytest.raises(LineageError, match="a Git checkout"):
        forget(tmp_path, "demo")
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    for words in (["init", "-q"], [*identity, "commit", "-q", "--allow-empty", "-m", "start"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, timeout=30)
    assert forget(tmp_path, "demo") == 0
    path.write_text(lock(bundles_at_demo="b2"))
    assert forget(tmp_path, "demo") == 1
    assert not path.exists()
    path.write_text(COMMITTED)
    for words in (["add", "dvc.lock"], [*identity, "commit", "-q", "-m", "recorded"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, timeout=30)
    path.write_text(COMMITTED.replace("bb", "b2") + block("history@new", "ee"))
    assert forget(tmp_path, "demo") == 1
    assert path.read_text() == COMMITTED + block("history@new", "ee")
    assert set(load_lock(path)) == {"prompts@demo", "bundles@demo", "history@old", "history@new"}


def test_clean_demo_leaves_git_as_it_was_and_nobody_elses_records_touched(tmp_path: Path) -> None:
    """Approvals and uses go back to the last commit's, whether that has some, or none."""
    demo, other = "smollm2_135m_cpu_rehearsal", "old"
    folder = tmp_path / "data/approvals"
    folder.mkdir(parents=True)
    shutil.copyfile(Path(__file__).parents[3] / "Makefile", tmp_path / "Makefile")
    for name in (demo, other):
        (folder / f"{name}.jsonl").write_text("")
    git(tmp_path, "init", "-q")
    commit(tmp_path, "recorded")

    def put_away() -> str:
        for name in (demo, f"{demo}.uses", other):
            with (folder / f"{name}.jsonl").open("a") as file:
                file.write("a line of the demo\n")
        make = ["make", "clean-demo", "EXPERIMENT=x", "PYTHON=python3"]
        subprocess.run(make, cwd=tmp_path, check=True, timeout=30, capture_output=True)
        assert (folder / f"{other}.jsonl").read_text() == "a line of the demo\n"
        (folder / f"{other}.jsonl").write_text("")
        return git(tmp_path, "status", "--short")

    assert put_away() == ""
    assert not (folder / f"{demo}.uses.jsonl").exists()
    for name in (demo, f"{demo}.uses"):
        (folder / f"{name}.jsonl").write_text("a line that was committed\n")
    commit(tmp_path, "recorded")
    assert put_away() == ""
    assert (folder / f"{demo}.uses.jsonl").read_text() == "a line that was committed\n"

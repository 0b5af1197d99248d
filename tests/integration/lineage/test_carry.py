"""From one checkout to another through a remote, and what DVC itself then refuses to take or to redo."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import dvc_checkout as make

from fitladder.dvc_api.check import check_lineage
from fitladder.dvc_api.ingest import ingest
from fitladder.dvc_api.objects import Store
from fitladder.dvc_api.publish import bring_in, pull
from fitladder.dvc_files.md5 import folder_md5s, raw_md5
from fitladder.errors import BundleError, LineageError, RootRefused
from fitladder.registry.load import load_registry

ID = make.ID
PROBE = f"data/bundles/{ID}/think_384/probe"
MADE = ("prompts", "bundles", "audits", "selection", "semantics", "reports")
EXACT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"


def _ran(stdout: str) -> list[str]:
    return re.findall(r"Running stage '([^']+)'", stdout)


@pytest.fixture
def clone(carried: Path, tmp_path: Path) -> Path:
    """A second clone: Git's files only, and the first one's remote as a shared folder."""
    folder = tmp_path / "clone"
    make.git(tmp_path, "clone", "-q", str(carried / "checkout"), str(folder))
    shutil.copytree(carried / "checkout/.dvc-remote", tmp_path / "remote")
    make.point_remote(folder, url=str(tmp_path / "remote"))
    return folder


def test_a_reviewer_clones_pulls_one_experiment_and_regenerates_it_byte_for_byte(
    carried: Path, clone: Path
) -> None:
    dvc = make.dvc(clone)
    assert not (clone / "data/bundles").exists()
    dvc.run("pull", f"bundles@{ID}")
    assert make.fitladder(clone, "stage", "bundles", ID).returncode != 0  # its prompts are not here yet
    assert _ran(dvc.run("repro", "--no-run-cache", f"report@{ID}")) == [
        f"{stage}@{ID}" for stage in ("prompts", "bundles", "audit", "selection", "semantics", "report")
    ]
    assert make.git(clone, "status", "--short") == ""  # dvc.lock too: the very same bytes
    for name in MADE:
        assert (
            folder_md5s(clone / "data" / name).items()
            >= {
                key: value
                for key, value in folder_md5s(carried / "checkout/data" / name).items()
                if key.startswith(ID)
            }.items()
        )
    assert check_lineage(clone, ID, with_remotes=True) > 20


def test_everything_of_one_experiment_comes_with_one_pull_and_verifies(clone: Path, tmp_path: Path) -> None:
    assert pull(make.dvc(clone), ID) == check_lineage(clone, ID, with_remotes=True)
    assert not (clone / f"data/reports/{EXACT}.html").exists()
    said = make.fitladder(clone, "verify", ID)
    assert (said.returncode, said.stderr) == (0, "")
    page = clone / f"data/reports/{ID}.html"
    page.write_bytes(page.read_bytes() + b"<!-- made again here, by other code -->")
    said = make.fitladder(clone, "lineage", "pull", ID)
    assert said.returncode == LineageError.exit_code
    assert f"{page} was made or changed here and is in the way of the recorded one: got MD5" in said.stderr
    assert f"run `fitladder lineage pull {ID}` again" in said.stderr
    assert "force" not in said.stderr
    assert said.stderr.count("\n") == 1
    page.rename(tmp_path / "mine.html")
    said = make.fitladder(clone, "lineage", "pull", ID)
    assert (said.returncode, said.stderr) == (0, "")
    assert page.is_file()


def test_a_tampered_remote_is_refused_at_the_pull_with_both_hashes(
    carried: Path, clone: Path, tmp_path: Path
) -> None:
    victim = Store("remote", tmp_path / "remote").path(
        raw_md5(carried / "checkout" / PROBE / "samples.parquet")
    )
    data = victim.read_bytes()
    victim.chmod(0o644)
    victim.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    said = make.fitladder(clone, "lineage", "pull", ID)
    assert said.returncode == LineageError.exit_code
    assert re.search(f"object {victim} is corrupt: got MD5 [0-9a-f]{{32}}, need [0-9a-f]{{32}}", said.stderr)
    assert said.stderr.count("\n") == 1
    assert not (clone / PROBE / "samples.parquet").exists()


def test_a_missing_remote_object_is_named_and_nothing_is_made_up(
    carried: Path, clone: Path, tmp_path: Path
) -> None:
    gone = Store("remote", tmp_path / "remote").path(
        raw_md5(carried / "checkout" / PROBE / "samples.parquet")
    )
    gone.chmod(0o644)
    gone.unlink()
    with pytest.raises(LineageError, match=f"think_384/probe/samples.parquet is missing: .*{gone}"):
        pull(make.dvc(clone), ID)
    with pytest.raises(LineageError, match="is missing at its recorded path"):
        make.dvc(clone).run("repro", f"bundles@{ID}")
    assert make.git(clone, "status", "--short") == ""


def test_dvc_repro_refuses_a_flipped_byte_naming_the_file(checkout: Path) -> None:
    path = checkout / PROBE / "samples.parquet"
    data = path.read_bytes()
    path.write_bytes(data[:40] + bytes([data[40] ^ 1]) + data[41:])
    with pytest.raises(LineageError, match=r"think_384/probe/samples\.parquet"):
        make.dvc(checkout).run("repro", f"report@{ID}")
    assert path.read_bytes() != data  # refused, neither repaired nor thrown away


def test_touching_audit_code_redoes_audits_only(checkout: Path) -> None:
    module = checkout / "src/fitladder/audit/identical_samples.py"
    module.write_text(module.read_text() + "\n# touched\n")
    ran = _ran(make.dvc(checkout).run("repro", f"report@{ID}"))
    assert ran == [f"bundles@{ID}", f"audit@{ID}"]


def test_touching_the_report_redoes_reports_only(checkout: Path) -> None:
    module = checkout / "src/fitladder/report/words.py"
    module.write_text(module.read_text() + "\n# touched\n")
    ran = _ran(make.dvc(checkout).run("repro", "--dry", f"report@{ID}"))  # nothing hangs on its outputs
    assert ran == [f"bundles@{ID}", f"report@{ID}"]


def test_a_touched_setting_makes_its_bundles_foreign_and_leaves_the_others_alone(checkout: Path) -> None:
    params = checkout / "params.yaml"
    head, _, tail = params.read_text().partition(f"  {ID}:\n")
    params.write_text(head + f"  {ID}:\n" + tail.replace("top_k: 20", "top_k: 21", 1))
    dvc = make.dvc(checkout)
    with pytest.raises(LineageError, match=r"made under another binding \(section\.sampling\.top_k moved\)"):
        dvc.run("repro", "--keep-going", f"report@{ID}", f"history@{EXACT}")
    assert (checkout / f"data/selection/{EXACT}.json").is_file()
    assert (checkout / PROBE / "receipt.json").is_file()


def test_another_experiments_bundles_are_refused_wherever_they_are_put(
    checkout: Path, tmp_path: Path
) -> None:
    other = "another_experiment"
    make.add_experiment(checkout, other)
    here, there = (checkout / "data/bundles" / name for name in (ID, other))
    assert make.fitladder(checkout, "stage", "prompts", other).returncode == 0
    shutil.copytree(here, there)
    for stage in ("bundles", "audit", "selection"):
        said = make.fitladder(checkout, "stage", stage, other)
        assert said.returncode == BundleError.exit_code, said.stderr
        assert "of another experiment" in said.stderr
    shutil.rmtree(there)
    there.symlink_to(here)
    said = make.fitladder(checkout, "stage", "bundles", other)
    assert said.returncode == BundleError.exit_code
    assert "a symbolic link" in said.stderr
    registry = load_registry(checkout / "params.yaml")
    with pytest.raises(BundleError, match="of another experiment"):
        ingest(registry, other, tmp_path / "root", checkout / "data", {})


def test_a_predecessors_root_is_no_input(checkout: Path, tmp_path: Path) -> None:
    other = "another_experiment"
    make.add_experiment(checkout, other)
    params = checkout / "params.yaml"
    head, _, tail = params.read_text().partition(f"  {other}:\n")
    tail = tail.replace("forbidden_roots: []", f"forbidden_roots: ['{tmp_path / 'root'}']")
    params.write_text(head + f"  {other}:\n" + tail)
    with pytest.raises(RootRefused, match="overlaps a forbidden root"):
        bring_in(checkout, other, tmp_path / "root", make.environment(checkout))
    variable = f"ROOT_OF_{other.upper()}"
    with pytest.raises(RootRefused, match=f"overlaps the root of {other}"):
        bring_in(checkout, ID, tmp_path / "root", {variable: str(tmp_path)})


def test_a_recorded_experiment_takes_no_bundles(checkout: Path, tmp_path: Path) -> None:
    with pytest.raises(LineageError, match=f"{EXACT} is not carried by dvc.yaml"):
        bring_in(checkout, EXACT, tmp_path / "root", {})


def test_two_lineage_runs_that_end_together_both_succeed(checkout: Path, tmp_path: Path) -> None:
    program = Path(sys.executable).parent / "fitladder"
    words = [str(program), "lineage", "ingest", ID, "--root", str(tmp_path / "root"), "--no-push"]
    runs = [
        subprocess.Popen(
            words,
            cwd=checkout,
            env=make.environment(checkout),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    ended = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], ended
    for said in (out.decode() for out, _ in ended):
        assert "nowhere: --no-push" in said
        assert f"\ngit add dvc.lock data/approvals/{ID}.jsonl data/log/{ID}.jsonl\ngit commit -m " in said
    assert make.git(checkout, "status", "--short") == ""


def test_the_graph_and_its_figures_are_readable(checkout: Path) -> None:
    dvc = make.dvc(checkout)
    chain = dvc.run("dag", f"report@{ID}")
    order = [
        chain.index(f"{stage}@{ID}") for stage in ("prompts", "bundles", "audit", "selection", "semantics")
    ]
    assert order == sorted(order)
    assert max(map(len, chain.splitlines())) < 80
    assert "probe@384" in dvc.run("metrics", "show", f"data/audits/{ID}/metrics.json")
    plot = json.loads(dvc.run("plots", "show", "--show-vega", f"data/audits/{ID}/rates.csv"))
    assert [row["rate"] for row in plot["data"]["values"]][:2] == [
        "probe@384 unresolved",
        "probe@384 answer limit",
    ]

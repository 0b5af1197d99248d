"""The small edges: whole outputs, figures as text, settings of remotes, and DVC's last words in one line."""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
import yaml

from fitladder.cli.stage import stage
from fitladder.dvc_api.call_lock import project_lock
from fitladder.dvc_api.command import Dvc, dvc_environment
from fitladder.dvc_api.publish import reproduce
from fitladder.dvc_api.record_files import check_records
from fitladder.dvc_api.remotes import cache_store, check_settings, load_remotes
from fitladder.errors import LineageError
from fitladder.files.atomic import write_output, write_output_folder
from fitladder.registry.data_paths import record_paths
from fitladder.stages.figures import PhaseFigures, RateFigure, render_metrics, render_onsets, render_rates

PHASE = PhaseFigures(
    thinking_budget_tokens=49152,
    phase="probe",
    samples=48,
    rates=(RateFigure("answer limit", 6, 5.0), RateFigure("loops", 38, 25.0)),
    is_adequate=False,
    sampled_tokens=2_363_163,
    generation_s=4809.081014,
    preemptions=None,
    onsets=((1200, 31),),
)
EMPTY = PhaseFigures(49152, "probe", 0, (RateFigure("loops", 0, 25.0),), False, 0, 0.0, 0)


def test_figures_of_the_registered_history() -> None:
    metrics = json.loads(render_metrics([PHASE]))["probe@49152"]
    assert metrics == {
        "adequate": False,
        "answer_limit_percent": 12.5,
        "loops_percent": 79.1667,
        "sampled_tokens": 2_363_163,
        "samples": 48,
        "tokens_per_s": 491.396,
    }
    rows = list(csv.DictReader(io.StringIO(render_rates([PHASE]).decode())))
    assert rows[1] == {"rate": "probe@49152 loops", "percent": "79.1667", "threshold_percent": "25.0"}
    assert render_onsets([PHASE]) == b"phase,onset_token,period_tokens\nprobe@49152,1200,31\n"


def test_no_samples_is_no_rate() -> None:
    assert json.loads(render_metrics([EMPTY]))["probe@49152"]["loops_percent"] is None
    assert json.loads(render_metrics([EMPTY]))["probe@49152"]["tokens_per_s"] is None


def test_a_folder_holds_exactly_what_was_written_last(tmp_path: Path) -> None:
    write_output_folder(tmp_path / "out", {"a.json": b"1", "b/c.json": b"2"})
    write_output_folder(tmp_path / "out", {"a.json": b"3"})
    assert {path.name for path in (tmp_path / "out").rglob("*")} == {"a.json"}
    assert (tmp_path / "out/a.json").read_bytes() == b"3"
    write_output(tmp_path / "out/d.json", b"4")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.json", "d.json", "out"]


def test_an_output_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(LineageError, match="cannot be written"):
        write_output(tmp_path / "file" / "x.json", b"")
    with pytest.raises(LineageError, match="cannot be written"):
        write_output_folder(tmp_path / "file" / "x", {"a": b""})


CONFIG = """[core]
    remote = lab
[cache]
    type = copy
['remote "lab"']
    url = s3://bucket/dvc
    verify = true
['remote "share"']
    url = ../../share
    verify = true
"""


def test_remotes_and_cache_as_configured(tmp_path: Path) -> None:
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc/config").write_text(CONFIG)
    lab, share = load_remotes(tmp_path)
    assert (lab.name, lab.store, lab.is_default, lab.verifies) == ("lab", None, True, True)
    assert (share.folder, share.is_default) == (tmp_path.parent.resolve() / "share", False)
    assert cache_store(tmp_path).folder == (tmp_path / ".dvc/cache").resolve()
    check_settings(tmp_path)
    (tmp_path / ".dvc/config.local").write_text("['remote \"share\"']\n    verify = false\n")
    with pytest.raises(
        LineageError, match=r"remote share does not verify.*dvc remote modify share verify true"
    ):
        check_settings(tmp_path)
    (tmp_path / ".dvc/config.local").write_text("broken")
    with pytest.raises(LineageError, match=r"config\.local cannot be read"):
        check_settings(tmp_path)


def test_dvc_runs_without_analytics_and_inside_the_checkout(tmp_path: Path) -> None:
    made = dvc_environment(tmp_path, {"PATH": "/bin", "DVC_NO_ANALYTICS": "0"})
    assert made["DVC_NO_ANALYTICS"] == "1"
    assert made["DVC_SITE_CACHE_DIR"] == str(tmp_path / ".cache/dvc")
    assert made["PATH"].endswith(":/bin")


def test_every_dvc_call_waits_for_the_lock_and_fails_in_one_line(tmp_path: Path) -> None:
    dvc = Dvc(tmp_path, {"PATH": "/bin:/usr/bin"}, wait_s=0.2)
    with pytest.raises(LineageError, match="is no DVC checkout"):
        dvc.run("status")
    (tmp_path / ".dvc").mkdir()
    with pytest.raises(LineageError, match=r"^dvc status failed: got .* is not a git repository$"):
        dvc.run("status")
    with project_lock(tmp_path, "dvc push", wait_s=0), pytest.raises(LineageError, match="'dvc push'"):
        dvc.run("status")


@pytest.mark.parametrize("damage", ["gone", "a link", "a folder"])
def test_approvals_that_are_gone_are_named_before_dvc_runs(tmp_path: Path, damage: str) -> None:
    for path in record_paths(tmp_path / "data", "an_experiment"):
        path.parent.mkdir(parents=True)
        path.touch()
    check_records(tmp_path / "data", "an_experiment")
    approvals, log = record_paths(tmp_path / "data", "an_experiment")
    approvals.unlink()
    if damage == "a link":
        approvals.symlink_to(log)
    elif damage == "a folder":
        approvals.mkdir()
    with pytest.raises(LineageError, match=r"git checkout -- data/approvals/an_experiment\.jsonl"):
        reproduce(Dvc(tmp_path, {}), "an_experiment")


def test_plain_repro_names_lost_approvals_in_a_stage_that_always_runs(tmp_path: Path) -> None:
    root, name = Path(__file__).parents[3], "smollm2_135m_cpu_rehearsal"
    for file in ("params.yaml", "dvc.yaml"):
        shutil.copy(root / file, tmp_path / file)
    for path in record_paths(tmp_path / "data", name):
        path.parent.mkdir(parents=True)
        path.touch()
    graph = yaml.safe_load((root / "dvc.yaml").read_text())["stages"]
    assert graph["bundles"]["do"]["always_changed"] is True
    stage("bundles", name, params=tmp_path / "params.yaml", data=tmp_path / "data")
    for path in record_paths(tmp_path / "data", name):
        path.rename(path.with_suffix(".away"))
        with pytest.raises(LineageError, match=rf"git checkout -- data/{path.parent.name}/{name}\.jsonl`$"):
            stage("bundles", name, params=tmp_path / "params.yaml", data=tmp_path / "data")
        path.with_suffix(".away").rename(path)

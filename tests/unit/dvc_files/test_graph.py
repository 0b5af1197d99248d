"""What dvc.yaml promises and which experiments it lists, against the real file and against broken ones."""

from pathlib import Path

import pytest
import yaml

from fitladder.approval.chain import chain_path
from fitladder.approval.uses import uses_path
from fitladder.cli.stage import STAGES
from fitladder.dvc_files.experiment_lists import check_registered, load_lists, parse_lists
from fitladder.dvc_files.graph import load_outputs, parse_outputs
from fitladder.errors import LineageError
from fitladder.registry.binding import GENERATION_ENTRIES, import_closure
from fitladder.registry.data_paths import (
    audits_folder,
    bundles_folder,
    git_paths,
    prompts_folder,
    record_paths,
    report_paths,
    selection_path,
)
from fitladder.registry.load import load_registry
from fitladder.report.running_log import log_path

ROOT = Path(__file__).parents[3]
ID = "smollm2_135m_cpu_rehearsal"
DVC_YAML = ROOT / "dvc.yaml"


@pytest.fixture(scope="module")
def outputs() -> dict[str, tuple[str, ...]]:
    return load_outputs(DVC_YAML, list(load_registry(ROOT / "params.yaml").experiments))


def test_stages_put_their_outputs_where_the_code_puts_them(outputs: dict[str, tuple[str, ...]]) -> None:
    data = Path("data")
    assert outputs[f"prompts@{ID}"] == (str(prompts_folder(data, ID)),)
    assert outputs[f"bundles@{ID}"] == (str(bundles_folder(data, ID)),)
    assert outputs[f"selection@{ID}"] == (str(selection_path(data, ID)),)
    assert f"{audits_folder(data, ID)}/phases" in outputs[f"audit@{ID}"]
    for name in load_registry(ROOT / "params.yaml").experiments:
        assert outputs[f"report@{name}"] == tuple(str(path) for path in report_paths(data, name))


def test_every_registered_experiment_has_its_chain() -> None:
    check_registered(load_registry(ROOT / "params.yaml"), DVC_YAML)
    lists = load_lists(DVC_YAML)
    assert ID in lists["carried"]
    assert set(lists["carried"]).isdisjoint(lists["recorded"])


def _dependencies(prefix: str) -> dict[str, tuple[str, ...]]:
    """What each kind of stage declares below a prefix of dvc.yaml."""
    stages = yaml.safe_load(DVC_YAML.read_text())["stages"]
    return {
        name: tuple(dep.removeprefix(prefix) for dep in stage["do"]["deps"] if dep.startswith(prefix))
        for name, stage in stages.items()
    }


def test_a_stage_hangs_on_files_of_its_own_experiment_alone() -> None:
    """A GO, a line of the log or a phase of one experiment leaves what is recorded of every other."""
    for name, paths in _dependencies("data/").items():
        own = [path for path in paths if any(f"/${{{key}}}" in path for key in ("item", "key"))]
        assert [path for path in paths if path not in own] == ["history"] * (name == "report"), name
    for experiment_id in load_registry(ROOT / "params.yaml").experiments:
        approvals, log = record_paths(ROOT / "data", experiment_id)
        assert uses_path(ROOT / "data/approvals", experiment_id) in git_paths(ROOT / "data", experiment_id)
        assert approvals == chain_path(ROOT / "data/approvals", experiment_id)
        assert log == log_path(ROOT / "data", experiment_id)
        assert approvals.is_file()
        assert log.is_file()


# Outputs of a stage hold what its code makes of them, so that a stage below need not name that code again.
# Those of prompts and bundles do not change with the code: nobody below may count on them.
ABOVE = {
    "prompts": (),
    "bundles": (),
    "history": (),
    "audit": (),
    "selection": ("audit",),
    "semantics": ("audit", "selection"),
    "report": ("audit", "selection", "semantics"),
}


@pytest.mark.parametrize("name", list(ABOVE))
def test_a_module_that_a_stage_reaches_makes_it_stale_or_one_that_reaches_it_too(name: str) -> None:
    """No code can change a result unseen: every module of every stage's import closure is declared."""
    declared = _dependencies("${code}/")
    assert declared.keys() == ABOVE.keys() == STAGES.keys()
    assert f"stages/{name}.py" in declared[name]
    assert [dep for dep in declared[name] if not (ROOT / "src/fitladder" / dep).exists()] == []
    unseen = set(_reached(name))
    for stage in (name, *ABOVE[name]):
        unseen -= {
            module
            for module in _reached(stage)
            if any(module == dep or module.startswith(f"{dep}/") for dep in declared[stage])
        }
    assert sorted(unseen) == []


def _reached(name: str) -> tuple[str, ...]:
    entries = [f"stages/{name}.py"] + list(GENERATION_ENTRIES) * (name == "bundles")
    return import_closure(entries)


def test_what_a_row_s_flags_are_derived_with_makes_the_audit_stale() -> None:
    assert {"sampling/row_rules.py", "sampling/seeds.py"} <= set(_reached("audit"))
    assert "sampling" in _dependencies("${code}/")["audit"]


@pytest.mark.parametrize(("code", "stage"), [("audit", "audit"), ("report", "report")])
def test_an_edit_there_redoes_one_stage(code: str, stage: str) -> None:
    assert [name for name, deps in _dependencies("${code}/").items() if code in deps] == [stage]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("foreach: ${carried}", "foreach: ${nobody}", "stages"),
        ("foreach: ${carried}", "foreach: carried", "names no list"),
        ("data/prompts/${item}", "data/prompts/${who}", "stages"),
        ("stages:", "phases:", "stages"),
    ],
)
def test_another_grammar_is_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(LineageError, match=said):
        parse_outputs(DVC_YAML.read_text().replace(old, new), ["a_a"], where="dvc.yaml")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (f"      - {ID}\n", "", f"{ID}: got 0 times in carried and recorded"),
        (f"      - {ID}\n", f"      - {ID}\n      - {ID}\n", f"{ID}: got 2 times"),
        (
            f"      - {ID}\n",
            f"      - {ID}\n      - a_stranger\n",
            "a_stranger: got 1 times .* not registered",
        ),
        ("vars:\n", "<<<<<<< HEAD\nvars:\n", "line 10: merge conflict marker"),
        ("carried:  #", "carried: one  #", "dvc.yaml"),
    ],
)
def test_lists_and_registry_agree_both_ways(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = DVC_YAML.read_text()
    assert old in text
    (tmp_path / "dvc.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(LineageError, match=said):
        check_registered(load_registry(ROOT / "params.yaml"), tmp_path / "dvc.yaml")


def test_lists_hold_ids() -> None:
    with pytest.raises(LineageError, match=r"vars\.carried: got .*, need a list of experiment ids"):
        parse_lists("vars:\n- carried: {a: b}\n- recorded: []\n", where="dvc.yaml")

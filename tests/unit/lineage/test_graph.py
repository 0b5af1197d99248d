"""What dvc.yaml promises and which experiments it lists, against the real file and against broken ones."""

from pathlib import Path

import pytest
import yaml

from fitladder.errors import LineageError
from fitladder.lineage.graph import load_outputs, parse_outputs
from fitladder.lineage.places import (
    audits_folder,
    bundles_folder,
    prompts_folder,
    report_paths,
    selection_path,
)
from fitladder.lineage.register import check_registered, load_lists, parse_lists
from fitladder.protocol.binding import GENERATION_ENTRIES, import_closure
from fitladder.protocol.registry import load_registry

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


def test_a_module_that_a_stage_reaches_makes_it_or_one_before_it_stale() -> None:
    """No code can change a result unseen: it is declared where it is used, or further up the chain."""
    document = yaml.safe_load(DVC_YAML.read_text())
    above: set[str] = {
        "canonical.py",
        "lineage",
        "strict_yaml.py",
    }  # writing and reading of whole files; stages are listed below
    for name in ("prompts", "bundles", "audit", "selection", "semantics", "report"):
        deps = [
            dep.removeprefix("${code}/")
            for dep in document["stages"][name]["do"]["deps"]
            if dep.startswith("${code}/")
        ]
        assert all((ROOT / "src" / "fitladder" / dep).exists() for dep in deps), name
        assert f"lineage/stages/{name}.py" in deps
        above |= set(deps)
        entries = [f"lineage/stages/{name}.py"] + list(GENERATION_ENTRIES) * (name == "bundles")
        unseen = [
            module
            for module in import_closure(entries)
            if not any(module == dep or module.startswith(f"{dep}/") for dep in above)
        ]
        assert unseen == [], name
    stages = document["stages"].items()
    audit_only = [name for name, stage in stages if "${code}/audit" in stage["do"]["deps"]]
    report_only = [name for name, stage in stages if "${code}/report" in stage["do"]["deps"]]
    assert audit_only == ["audit"]
    assert report_only == ["report"]


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
        ("vars:\n", "<<<<<<< HEAD\nvars:\n", "line 9: merge conflict marker"),
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

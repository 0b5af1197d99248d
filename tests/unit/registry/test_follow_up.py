"""A follow-up copies every setting, may read nothing, and stays an exact copy of what it inherited."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from support import dvc_checkout as make
from support.checkout import ROOT

from fitladder.dvc_files.experiment_lists import check_registered
from fitladder.errors import LineageError, RegistrationError
from fitladder.registry.data_paths import record_paths
from fitladder.registry.follow_up import register_successor
from fitladder.registry.follow_up_section import carry_text, register_text
from fitladder.registry.inputs import survey_inputs
from fitladder.registry.load import load_registry, parse_registry
from fitladder.registry.provenance import check_parity, provenance_path
from fitladder.report.experiment_page import build_report
from fitladder.stages.prompts import make_prompts

EXACT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"
PARAMS = (ROOT / "params.yaml").read_text()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("params.yaml", "dvc.yaml"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    for name in (f"data/inputs/{make.ID}", "data/narratives", "data/history"):
        shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("predecessor", list(parse_registry(PARAMS).experiments))
def test_every_setting_is_copied_and_every_other_section_stays(predecessor: str) -> None:
    text = register_text(PARAMS, "my_followup", predecessor)
    assert text.startswith(PARAMS.rstrip("\n"))
    registry = parse_registry(text)
    source, made = registry.experiment(predecessor), registry.experiment("my_followup")
    assert (made.state, made.predecessor, made.kv_rule) == ("open", predecessor, "both")
    copied = source.protocol_section().keys() - {"experiment_id", "predecessor", "kv_rule"}
    assert all(made.protocol_section()[name] == source.protocol_section()[name] for name in copied)
    assert {source.artifacts.root, *source.artifacts.forbidden_roots} - {None} == set(
        made.artifacts.forbidden_roots
    )
    assert made.artifacts.root is None


def test_comments_come_along() -> None:
    assert PARAMS.count("# not recorded at the time") + 1 == register_text(
        PARAMS, "my_followup", EXACT
    ).count("# not recorded at the time")


@pytest.mark.parametrize(
    ("name", "predecessor", "said"),
    [
        (EXACT, EXACT, "registered already"),
        ("My-Followup", EXACT, "experiment id: got 'My-Followup'"),
        ("a", EXACT, "experiment id"),
        ("my_followup", "nobody", "no such experiment"),
    ],
)
def test_bad_names_are_refused(name: str, predecessor: str, said: str) -> None:
    with pytest.raises(RegistrationError, match=said):
        register_text(PARAMS, name, predecessor)


def test_a_section_in_another_style_is_refused_not_guessed() -> None:
    document = yaml.safe_load(PARAMS)
    with pytest.raises(RegistrationError, match=r"params\.yaml line 1 is no plain block"):
        register_text(json.dumps(document), "my_followup", EXACT)


@pytest.mark.parametrize("predecessor", list(parse_registry(PARAMS).experiments))
def test_only_the_new_section_differs_byte_by_byte(predecessor: str) -> None:
    commented = PARAMS.replace("\n\n", "\n\n  # a word about the next one\n")
    for params in (PARAMS, commented, commented + "# the end\n"):
        text = register_text(params, "my_followup", predecessor)
        before, after = params.splitlines(), text.splitlines()
        at = after.index("  my_followup:") - 1  # a blank line stands before it
        end = at + len(after) - len(before)
        assert after[:at] + after[end:] == before
        section = "\n".join(after[at:end])
        assert "a word about" not in section
        assert "root: null  # register an absolute path of its own" in section


def test_only_the_new_line_of_the_graph_differs() -> None:
    graph = (ROOT / "dvc.yaml").read_text()
    before, after = graph.splitlines(), carry_text(graph, "my_followup").splitlines()
    at = after.index("      - my_followup")
    assert after[:at] + after[at + 1 :] == before
    assert "- recorded:" in after[at + 1]


def test_a_graph_in_another_indentation_is_refused_not_reformatted() -> None:
    graph = (ROOT / "dvc.yaml").read_text()
    with pytest.raises(LineageError, match=r"dvc\.yaml line \d+ is no plain block"):
        carry_text(graph.replace("      - smollm2", "        - smollm2"), "my_followup")


def test_what_is_written_and_that_it_holds_together(checkout: Path) -> None:
    done = register_successor(checkout, "my_followup", make.ID)
    registry, data = load_registry(checkout / "params.yaml"), checkout / "data"
    check_registered(registry, checkout / "dvc.yaml")
    assert done.missing_inputs == ()
    made = registry.experiment("my_followup")
    assert all(state.right for state in survey_inputs(data, made))
    record = check_parity(registry, "my_followup", data)
    assert record is not None
    assert record.source_code
    assert record.settings_not_copied == {"predecessor": (None, make.ID)}
    assert make_prompts(registry, "my_followup", data).endswith("prompts as frozen")
    assert [path.read_bytes() for path in record_paths(data, "my_followup")] == [b"", b""]
    html, _ = build_report("my_followup", data, registry)
    assert "my_followup" in html
    texts = {path.name: path.read_text() for path in done.written if path.suffix == ".md"}
    assert sorted(texts) == ["design-review.md", "idea-intake.md", "preregistration.md"]
    for text in texts.values():
        assert "my_followup" in text
        assert make.ID in text
        assert "TO WRITE" in text
    assert "| 384 | 12 | 843 | none |" in texts["preregistration.md"]


def test_inputs_that_are_not_here_are_named(checkout: Path) -> None:
    done = register_successor(checkout, "my_followup", EXACT)
    assert set(done.missing_inputs) == set(load_registry(checkout / "params.yaml").experiment(EXACT).data)


def test_an_interrupted_registration_registers_nothing_and_goes_on(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fitladder.registry.follow_up as module

    real = module.write_output

    def die(path: Path, data: bytes) -> None:
        if path.name == "params.yaml":
            raise KeyboardInterrupt
        real(path, data)

    monkeypatch.setattr(module, "write_output", die)
    with pytest.raises(KeyboardInterrupt):
        register_successor(checkout, "my_followup", make.ID)
    assert "my_followup" not in load_registry(checkout / "params.yaml").experiments


def test_nothing_that_exists_is_replaced(checkout: Path) -> None:
    path = checkout / "data/experiments/my_followup/idea-intake.md"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    before = (checkout / "params.yaml").read_bytes()
    with pytest.raises(LineageError, match=r"idea-intake\.md exists"):
        register_successor(checkout, "my_followup", make.ID)
    assert path.read_text() == "mine"
    assert (checkout / "params.yaml").read_bytes() == before


def _followed(checkout: Path) -> Path:
    register_successor(checkout, "my_followup", make.ID)
    return checkout / "data"


def _check(checkout: Path) -> None:
    check_parity(load_registry(checkout / "params.yaml"), "my_followup", checkout / "data")


def _edit_last(path: Path, old: str, new: str) -> None:
    """Replace the last occurrence, that of the follow-up's own section."""
    head, found, tail = path.read_text().rpartition(old)
    assert found
    path.write_text(head + new + tail)


@pytest.mark.parametrize("owner", [make.ID, "my_followup"])
def test_parity_is_checked_ever_after(checkout: Path, owner: str) -> None:
    data = _followed(checkout)
    path = data / "inputs" / owner / "tasks.json"
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(LineageError, match=rf"{owner}/tasks\.json is no exact copy any more"):
        _check(checkout)


def test_another_input_must_be_declared_with_its_reason(checkout: Path) -> None:
    data = _followed(checkout)
    registered = load_registry(checkout / "params.yaml").experiment(make.ID).data["libraries"]
    _edit_last(checkout / "params.yaml", registered, "f" * 64)
    with pytest.raises(LineageError, match=r"data\.libraries is not what was inherited"):
        _check(checkout)
    path = provenance_path(data, "my_followup")
    record = json.loads(path.read_text())
    record["replaced_inputs"] = {"libraries": "the question of this follow-up"}
    path.write_text(json.dumps(record))
    (data / "inputs/my_followup/libraries.json").unlink()
    _check(checkout)


def test_a_predecessor_that_moved_or_a_root_that_was_allowed_again_is_refused(checkout: Path) -> None:
    register_successor(checkout, "my_followup", EXACT)
    params = checkout / "params.yaml"
    whole = params.read_text()
    root = "/workspace/large_artifacts/qwen35_4b_verified_macro_capacity_fit_rerun/scientific_smoke_v1"
    _edit_last(params, f"        - {root}\n", "")
    with pytest.raises(LineageError, match=rf"forbidden_roots: got less, need {root}"):
        _check(checkout)
    params.write_text(whole.replace("run_seed: 2701", "run_seed: 2702"))
    with pytest.raises(LineageError, match=f"registration of {EXACT}"):
        _check(checkout)


def test_a_provenance_that_is_gone_or_of_another_is_refused(checkout: Path) -> None:
    data = _followed(checkout)
    path = provenance_path(data, "my_followup")
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "experiment_id": "somebody_else"}))
    with pytest.raises(LineageError, match="experiment_id: got somebody_else, need my_followup"):
        _check(checkout)
    path.unlink()
    with pytest.raises(LineageError, match=r"provenance\.json is missing"):
        _check(checkout)

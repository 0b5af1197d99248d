"""semantics@X for real: a selected matrix is decoded, frozen and only then graded; else nothing opens."""

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import yaml
from support import bundles, page_data
from support import dvc_checkout as make
from support.checkout import ROOT, begin_records

from fitladder.canonical import canonical_bytes, read_json, sha256_file
from fitladder.domains.macros.program import format_calls
from fitladder.errors import LineageError
from fitladder.records.registry import Registry
from fitladder.records.sample import SampleRow
from fitladder.registry.data_paths import bundles_folder, semantics_path
from fitladder.registry.load import load_registry
from fitladder.report.experiment_page import build_report
from fitladder.sampling.seeds import stage1_seed, stage2_seed
from fitladder.semantics import analyse
from fitladder.stages.audit import make_audit
from fitladder.stages.selection import make_selection
from fitladder.stages.semantics import make_semantics

SELECTED = ((384, "probe"), (384, "base"), (384, "designed"))
RIGHT, WRONG, JUNK = "reuse-000", "no-reuse-001", "no-reuse-002"
WORDS = page_data.WORDS | {"question": ["Do they do?"], "found": ["See the tables."]}
_WATCHED = ("hidden.json", "tokenizer.json")
_opened: list[str] | None = None  # what the hook saw; None while nobody watches


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _opened is not None and event == "open":
        name = Path(str(args[0])).name
        if name in _WATCHED:
            _opened.append(name)


@pytest.fixture(scope="module")
def hooked() -> None:
    sys.addaudithook(_hook)  # cannot be taken out again, so once


@pytest.fixture
def opened(hooked: None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Opens of the sealed file and the tokenizer, with `frozen` where the choices were digested."""
    seen: list[str] = []
    digest = analyse.choices_sha256

    def freeze(choices: Any) -> str:
        seen.append("frozen")
        return digest(choices)

    monkeypatch.setattr(analyse, "choices_sha256", freeze)
    monkeypatch.setattr(sys.modules[__name__], "_opened", seen)
    return seen


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Registered inputs, and a byte tokenizer in the place of the model's, registered by its SHA-256."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    inner = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab={char: at for at, char in enumerate(alphabet)}, merges=[])
    )
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    file = tmp_path / "models" / "smollm2-135m-instruct" / "tokenizer.json"
    file.parent.mkdir(parents=True)
    inner.save(str(file))
    text = (ROOT / "params.yaml").read_text()
    registered = make.registered(ROOT).model.tokenizer_sha256
    assert registered
    assert registered in text
    (tmp_path / "params.yaml").write_text(text.replace(registered, sha256_file(file)))
    inputs = Path("data") / "inputs" / make.ID
    shutil.copytree(ROOT / inputs, tmp_path / inputs)
    (tmp_path / "data" / "narratives").mkdir()
    (tmp_path / "data" / "narratives" / f"{make.ID}.yaml").write_text(yaml.safe_dump(WORDS))
    begin_records(tmp_path / "data", make.ID)
    return tmp_path


def answers(workspace: Path, record_id: str) -> list[str]:
    """Four answers of a record: a wrong program, none, the right or a wrong one, none. JUNK has none."""
    task, arm = record_id.split("::")
    folder = workspace / "data" / "inputs" / make.ID
    wrong = f"PROGRAM: {format_calls(('ADD1',))}"
    if task == JUNK:
        return ["no line here"] * 4
    if task != RIGHT:
        return [wrong, "no line here", wrong, "no line here"]
    tasks = read_json(folder / "hidden.json")["tasks"]
    calls = " ".join(next(one["program"] for one in tasks if one["id"] == task))
    if arm == "designed_ceiling":
        for macro in read_json(folder / "libraries.json")["libraries"][arm]["macros"]:
            calls = calls.replace(" ".join(macro["expansion"]), macro["token"])
    return [wrong, "no line here", f"PROGRAM: {format_calls(calls.split())}", "no line here"]


def answered(workspace: Path) -> Any:
    """Rows that all close by themselves; the third sample of the base arm starts its answer again."""
    tokenizer = tokenizers.Tokenizer.from_file(str(workspace / "models/smollm2-135m-instruct/tokenizer.json"))
    marker = make.registered(workspace).thinking.close_marker_token_ids

    def rows(of: Any, *, seed: int = 0) -> list[SampleRow]:
        made, run_seed, budget = [], of.sampling.run_seed, of.key.thinking_budget_tokens
        for number, prompt in enumerate(of.prompts):
            for index, text in enumerate(answers(workspace, prompt.record_id)[: of.k]):
                thinking = np.random.default_rng([seed, number, index]).integers(10, 200, 60)
                ids = tokenizer.encode(text).ids
                again = of.key.phase == "base" and index == 2
                behind = [*ids[:5], *[11] * budget] if again else ids  # who does not stop runs to the limit
                made.append(
                    SampleRow(
                        record_id=prompt.record_id,
                        sample_index=index,
                        prompt_tokens=prompt.prompt_tokens,
                        stage1_seed=stage1_seed(run_seed, prompt.record_id) + index,
                        stage1_token_ids=np.array([*thinking, *marker, *behind], np.int32)[:budget],
                        stage1_trimmed_tokens=int(not again),
                        stage1_finish_reason="length" if again else "stop",
                        stage1_stop_reason=None if again else "2",
                        thinking_tokens=60,
                        natural_close=True,
                        eos_inside_thinking=False,
                        forced_close=False,
                        answer_restart=again,
                        injected_tokens=4 - len(marker) if again else 0,
                        stage2_seed=stage2_seed(run_seed, prompt.record_id, index) if again else None,
                        stage2_prompt_tokens=prompt.prompt_tokens + 64 if again else 0,
                        stage2_token_ids=np.array(ids if again else [], np.int32),
                        stage2_trimmed_tokens=int(again),
                        stage2_finish_reason="stop" if again else None,
                        stage2_stop_reason="2" if again else None,
                        answer_tokens=len(ids),
                    )
                )
        return made

    return rows


def decided(workspace: Path, done: Any) -> tuple[Registry, Path, dict[str, Any]]:
    """Bundles in their place, audited, and the ladder's decision over them."""
    data = workspace / "data"
    root = make.make_root(workspace, workspace / "root", done)
    shutil.copytree(root, bundles_folder(data, make.ID), ignore=shutil.ignore_patterns(".*"))
    registry = load_registry(workspace / "params.yaml")
    make_audit(registry, make.ID, data)
    make_selection(registry, make.ID, data)
    return registry, data, read_json(data / "selection" / f"{make.ID}.json")


def refuses_every_edit(registry: Registry, data: Path) -> None:
    """A figure that does not follow from the others in the file is refused by its name."""
    path = semantics_path(data, make.ID)
    kept = path.read_bytes()
    edits: dict[str, Any] = {
        "is_passed": lambda report: report.update(is_passed=True),
        "verdict": lambda report: report.update(verdict="Semantic gate passed."),
        "gates.parse_rate.is_passed": lambda report: report["gates"][0].update(is_passed=True),
        "gates.parse_rate.got": lambda report: report["gates"][0].update(got="base 24 of 24"),
        "gates.macro_reuse_tasks.need": lambda report: report["gates"][1].update(need="nothing"),
        "gates: got": lambda report: report["gates"].pop(),
        "arms.base.parsed_samples": lambda report: report["arms"]["base"].update(parsed_samples=24),
        "arms.base.reuse": lambda report: report["arms"]["base"]["reuse"].update(solved_tasks=3),
        "samples of base": lambda report: report["samples"].pop(0),
        "thinking_budget_tokens": lambda report: report.update(thinking_budget_tokens=512),
    }
    for field, edit in edits.items():
        body = read_json(path)
        edit(body["semantics"])
        path.write_bytes(canonical_bytes(body))
        with pytest.raises(LineageError, match=rf"semantics\.{field}"):
            build_report(make.ID, data, registry)
        path.write_bytes(kept)


def test_answers_of_a_selected_matrix_are_graded_after_the_choice_is_frozen(workspace, opened, monkeypatch):
    monkeypatch.setattr(bundles, "rows", answered(workspace))
    registry, data, selection = decided(workspace, SELECTED)
    assert (selection["pass"], selection["selected"]) == (True, 384)

    opened.clear()
    make_semantics(registry, make.ID, data)
    at = opened.index("frozen")
    assert set(opened[:at]) == {"tokenizer.json"}
    assert set(opened[at + 1 :]) == {"hidden.json"}

    found = read_json(semantics_path(data, make.ID))["semantics"]
    assert (found["eligible"], found["thinking_budget_tokens"]) == (True, 384)
    tasks = {row["record_id"]: row for row in found["tasks"]}
    assert len(tasks) == 12
    for arm in ("base", "designed_ceiling"):
        right, wrong, junk = (tasks[f"{task}::{arm}"] for task in (RIGHT, WRONG, JUNK))
        assert (right["chosen_sample"], right["visible_right"], right["hidden_right"]) == (2, 4, 4)
        assert right["is_solved"]
        assert right["parsed_samples"] == 2
        assert (wrong["chosen_sample"], wrong["chosen_expansion"]) == (0, ["ADD1"])
        assert not wrong["is_solved"]
        assert not wrong["is_oracle_solved"]
        assert (junk["chosen_sample"], junk["parsed_samples"], junk["hidden_right"]) == (None, 0, 0)
        figures = found["arms"][arm]
        assert (figures["samples"], figures["parsed_samples"]) == (24, 10)
        assert figures["rejections"] == {"no_program_line": 14}
        assert (figures["reuse"]["solved_tasks"], figures["no_reuse"]["solved_tasks"]) == (1, 0)
    assert found["arms"]["base"]["macro_samples"] == 0
    assert found["arms"]["designed_ceiling"]["macro_samples"] == 1
    assert found["is_passed"] is False

    page, twin = build_report(make.ID, data, registry)
    for words in ("10 of 24", "1 of 3 solved, 1 by any sample", "0 of 3 solved, 0 by any sample"):
        assert words in page
        assert words in twin
    assert found["verdict"] in page
    refuses_every_edit(registry, data)


def test_a_ladder_that_ends_rejected_opens_neither_tokenizer_nor_sealed_file(workspace, opened):
    registry, data, selection = decided(workspace, make.WHOLE_LADDER)
    assert (selection["pass"], selection["selected"]) == (False, None)

    opened.clear()
    make_semantics(registry, make.ID, data)
    assert opened == []
    found = read_json(semantics_path(data, make.ID))["semantics"]
    assert found == {"eligible": False, "reason": selection["reason"]}
    page, _ = build_report(make.ID, data, registry)
    assert "No answer was read" in page

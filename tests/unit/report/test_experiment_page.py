"""From records to a page: what is missing is shown as not run, what is broken or disagrees refuses."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import bundles as make
from support.page_data import history_data, small_data

from fitladder.approval.chain import append, chain_path
from fitladder.canonical import canonical_bytes, sha256_file
from fitladder.errors import BundleTampered, FitladderError, GoRefused, InputRefused, LineageError
from fitladder.records.approval import CHECKLIST
from fitladder.records.approval_entry import Draft
from fitladder.registry.binding import bind
from fitladder.registry.data_paths import semantics_path
from fitladder.report.experiment_page import build_report
from fitladder.report.experiment_view import load_view
from fitladder.report.index_page import build_index
from fitladder.stages.audit import make_audit
from fitladder.stages.history import make_history
from fitladder.stages.selection import make_selection
from fitladder.stages.semantics import make_semantics
from fitladder.store.held_root import hold_root
from fitladder.store.verify_root import verify_root

ID = make.ID
EXACT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"


def test_nothing_has_run(tmp_path: Path, words_of: Callable[[str], str]) -> None:
    data, registry = small_data(tmp_path, done=())
    html, twin = build_report(ID, data, registry)
    text = words_of(html)
    assert "Not run Registered and frozen" in text
    assert "64 thinking tokens: not run yet." in text
    assert "No phase has run yet" in text
    assert "No GO was asked for yet." in text
    assert "a fresh probe at 64" in text
    assert "not run" in twin
    assert f"fitladder binding {ID} --explain" in text
    for early in ("verify", "audit", "select", "lineage pull"):
        assert f"fitladder {early} {ID}" not in text  # each would refuse: there is no bundle


def test_words_that_nobody_wrote_are_marked_at_the_head(
    tmp_path: Path, words_of: Callable[[str], str]
) -> None:
    blank = {"idea": ["To write."], "may_not_conclude": ["To write."], "title": "To write"}
    data, registry = small_data(tmp_path, words=blank)
    html, twin = build_report(ID, data, registry)
    for text in (words_of(html), twin.replace("\\", "")):
        assert "This page is unfinished" in text
        assert "Nobody wrote: title, idea, may_not_conclude." in text
        assert "No one may conclude: To write" not in text
    assert "unfinished" not in build_report(ID, *small_data(tmp_path / "written"))[0]


def _begin_again(folder: Path, *, complete: bool = False) -> None:
    """Another attempt at the small data folder's probe, carried into its data folder."""
    root, copy, of = folder / "root", folder / "data" / "bundles" / ID, make.experiment()
    with hold_root(root, ID, "test") as held:
        earlier = tuple(one.file.sha256 for one in verify_root(root, ID).preflights)
        changes = {"binding": bind(of), "go_sha256": make.sha(f"GO {len(earlier)}"), "resumes": earlier}
        preflight = make.begin(held, of, make.key(), **changes)
        if complete:
            make.complete(held, preflight)
    shutil.rmtree(copy)
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".*"))


def test_a_page_shows_every_attempt(tmp_path: Path, words_of: Callable[[str], str]) -> None:
    data, registry = small_data(tmp_path, done=(), begun=((64, "probe"),))
    once = build_report(ID, data, registry)
    assert "attempt 2" not in once[0] + once[1]
    _begin_again(tmp_path)
    _begin_again(tmp_path, complete=True)
    make_audit(registry, ID, data)
    probe, other = load_view(ID, data, registry).phases
    folders = [data / "bundles" / ID / "think_64" / name for name in ("probe", "probe.attempt_2")]
    named = [sha256_file(folder / "preflight.json") for folder in folders]
    assert (probe.state, probe.attempt, probe.folder) == ("complete", 3, "think_64/probe.attempt_3")
    assert [(one.number, one.folder, one.preflight.sha256) for one in probe.interrupted] == [
        (1, "think_64/probe", named[0]),
        (2, "think_64/probe.attempt_2", named[1]),
    ]
    assert (other.attempt, other.interrupted) == (1, ())
    html, twin = build_report(ID, data, registry)
    for text in (words_of(html), twin.replace("\\", "")):
        assert "3 (2 interrupted)" in text
        assert "This is attempt 3, in think_64/probe.attempt_3. It began at the first row" in text
        assert all(text.count(digest) == 2 for digest in named)  # beside the audit, and among the artifacts
        assert "probe at 64, attempt 2, interrupted" in text


def test_the_newest_interrupted_attempt_stands_for_its_phase(tmp_path: Path) -> None:
    data, registry = small_data(tmp_path, done=(), begun=((64, "probe"),))
    _begin_again(tmp_path)
    probe = load_view(ID, data, registry).phases[0]
    assert (probe.state, probe.attempt, len(probe.interrupted)) == ("preflight only", 2, 1)


def test_a_probe_with_its_audit(tmp_path: Path, words_of: Callable[[str], str]) -> None:
    data, registry = small_data(tmp_path)
    view = load_view(ID, data, registry)
    probe = view.phases[0]
    audit = json.loads((data / "audits" / ID / "phases" / "think_64_probe.json").read_text())
    assert probe.termination is not None
    assert probe.capacity is not None
    assert [share.count for share in probe.termination.shares] == [
        audit["periodic_loop_contacts"],
        audit["unresolved_cap_contacts"],
        audit["answer_limit_contacts"],
    ]
    assert probe.termination.burned_tokens == audit["tokens_after_onset"]
    assert [row.sample_id for row in probe.termination.rows] == [
        f"{row['record_id']}#{row['sample_index']}" for row in audit["rows"]
    ]
    assert (probe.capacity.active_sequences, probe.capacity.margin_blocks is None) == (3, False)
    assert view.phases[1].state == "not run"
    text = words_of(build_report(ID, data, registry)[0])
    assert f"{audit['periodic_loop_contacts']} of {audit['samples']} looped." in text
    assert "96 thinking tokens: not run yet." in text
    assert "Loop timeline, probe at 64" in text
    for name, record in json.loads((data / "bundles" / ID / "think_64/probe/receipt.json").read_text())[
        "files"
    ].items():
        assert f"{name} {record['bytes']:,} B" in text.replace(" (", " B (").replace(" B B", " B")
        assert record["sha256"] in text


def test_a_phase_that_was_only_begun(tmp_path: Path, words_of: Callable[[str], str]) -> None:
    data, registry = small_data(tmp_path, done=(), begun=((64, "probe"),))
    text = words_of(build_report(ID, data, registry)[0])
    assert "Preflight only: the live gates passed" in text
    assert "Periodic loops no row not run" in text  # never a word that reads as zero
    assert "Outcome open: no receipt yet not run" in text
    assert "Open: preflight only" in text


def test_a_bundle_without_its_audit(tmp_path: Path, words_of: Callable[[str], str]) -> None:
    data, registry = small_data(tmp_path, audited=False)
    text = words_of(build_report(ID, data, registry)[0])
    assert "Periodic loops not audited not run" in text
    assert "Outcome not audited not run" in text


def test_two_builds_are_equal_bytes(tmp_path: Path) -> None:
    data, registry = small_data(tmp_path)
    assert build_report(ID, data, registry) == build_report(ID, data, registry)


def test_the_end_of_a_ladder_is_an_explicit_none(tmp_path: Path, words_of: Callable[[str], str]) -> None:
    data, registry = small_data(tmp_path, done=((64, "probe"), (96, "probe")))
    make_selection(registry, ID, data)
    view = load_view(ID, data, registry)
    assert view.selection is not None
    assert (view.selection.passed, view.selection.selected_budget_tokens) == (False, None)
    assert view.state == "terminal"
    text = words_of(build_report(ID, data, registry)[0])
    assert "Terminal: pass: false, selected: null." in text
    assert [decision.outcome for decision in view.decisions] == ["rung rejected", "rung rejected"]


def test_a_selection_that_bundles_do_not_give_refuses(tmp_path: Path) -> None:
    data, registry = small_data(tmp_path, done=((64, "probe"), (96, "probe")))
    make_selection(registry, ID, data)
    path = data / "selection" / f"{ID}.json"
    kept = path.read_bytes()
    other, _ = small_data(tmp_path / "other")
    (other / "selection").mkdir()
    (other / "selection" / f"{ID}.json").write_bytes(kept)
    with pytest.raises(LineageError, match="decides what bundles and audits do not"):
        load_view(ID, other, registry)


def _edit(path: Path, **changed: Any) -> None:
    """A canonical file with other values: only what it is made from can show it."""
    path.write_bytes(canonical_bytes(json.loads(path.read_bytes()) | changed))


@pytest.mark.parametrize(
    ("field", "edited"), [("tokens_after_onset", 0), ("periodic_loop_contacts", 0), ("rows", [])]
)
def test_an_audit_that_its_bundle_does_not_give_refuses(tmp_path: Path, field: str, edited: Any) -> None:
    data, registry = small_data(tmp_path)
    path = data / "audits" / ID / "phases" / "think_64_probe.json"
    assert json.loads(path.read_bytes())[field] != edited
    _edit(path, **{field: edited})
    with pytest.raises(LineageError, match=f"think_64_probe.json: {field}"):
        build_report(ID, data, registry)


@pytest.mark.parametrize(
    ("field", "edited"), [("reason", "all is well"), ("history_sha256", "0" * 64), ("rungs", [])]
)
def test_a_selection_in_other_words_refuses(tmp_path: Path, field: str, edited: Any) -> None:
    data, registry = small_data(tmp_path, done=((64, "probe"), (96, "probe")))
    make_selection(registry, ID, data)
    _edit(data / "selection" / f"{ID}.json", **{field: edited})
    with pytest.raises(LineageError, match=f"{ID}.json: {field}"):
        build_report(ID, data, registry)


def test_an_edited_reason_for_reading_no_answer_refuses(tmp_path: Path) -> None:
    data, registry = small_data(tmp_path, done=((64, "probe"), (96, "probe")))
    make_selection(registry, ID, data)
    make_semantics(registry, ID, data)
    path = data / "semantics" / f"{ID}.json"
    build_report(ID, data, registry)
    kept = path.read_bytes()
    _edit(path, semantics={"eligible": False, "reason": "great answers"})
    with pytest.raises(LineageError, match="reason: got great answers, need every rung to 96 rejected"):
        build_report(ID, data, registry)
    path.write_bytes(kept)
    _edit(path, selection_sha256="0" * 64)
    with pytest.raises(LineageError, match="was made from another selection"):
        build_report(ID, data, registry)


def test_answers_of_registered_history_are_only_why_there_are_none(tmp_path: Path) -> None:
    data, registry = history_data(tmp_path)
    make_history(registry, EXACT, data)
    assert (
        "No answer was read: recorded history: no rows are kept here."
        in build_report(EXACT, data, registry)[1]
    )
    path = semantics_path(data, EXACT)
    kept = json.loads(path.read_bytes())
    for wrong in ({"eligible": False, "reason": "no selection yet"}, {"eligible": True}):
        path.write_bytes(canonical_bytes(kept | {"semantics": wrong}))
        with pytest.raises(LineageError, match="no rows are kept here"):
            build_report(EXACT, data, registry)


def test_an_authored_number_that_disagrees_refuses_to_render(tmp_path: Path) -> None:
    data, registry = small_data(tmp_path, words={"found": ["{{ rung(64).samples = 5 }}"]})
    with pytest.raises(InputRefused, match=r"disagrees with its audit .* got 5, need 4"):
        build_report(ID, data, registry)


def test_a_historic_narrative_that_disagrees_refuses_to_render(tmp_path: Path) -> None:
    data, registry = history_data(tmp_path)
    path = data / "narratives" / f"{EXACT}.yaml"
    path.write_text(path.read_text().replace("rung(49152).loops = 38", "rung(49152).loops = 37"))
    with pytest.raises(InputRefused, match="got 37, need 38"):
        build_report(EXACT, data, registry)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("termination", "loops", 39), "periods_tokens: got 38, need 39"),
        (("termination", "samples", 47), "samples: got 47, need 48"),
        (("capacity", "required_tokens", 963_073), "required_tokens: got 963073, need 963072"),
        (("capacity", "margin_tokens", 1), "margin_tokens: got 1, need 33792"),
        ((None, "max_num_seqs", 20), "max_num_seqs: got 20, need 19"),
        ((None, "k", 12), "k: got 12, need 4"),
        ((None, "thinking_budget_tokens", 49153), "need a registered rung"),
        ((None, "state", "done"), "state"),
        (("generation", "sampled_tokens", True), "sampled_tokens"),
    ],
)
def test_history_that_contradicts_itself_refuses(tmp_path: Path, change: Any, message: str) -> None:
    data, registry = history_data(tmp_path)
    path = data / "history" / f"{EXACT}.json"
    record = json.loads(path.read_text())
    part, name, value = change
    (record["phases"][0][part] if part else record["phases"][0])[name] = value
    path.write_text(json.dumps(record))
    with pytest.raises(InputRefused, match=message):
        load_view(EXACT, data, registry)


def test_a_flipped_byte_of_a_bundle_refuses(tmp_path: Path) -> None:
    data, registry = small_data(tmp_path)
    path = data / "bundles" / ID / "think_64/probe/samples.parquet"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    with pytest.raises(BundleTampered, match=r"samples\.parquet"):
        build_report(ID, data, registry)


def test_an_audit_of_something_else_refuses(tmp_path: Path) -> None:
    data, registry = small_data(tmp_path, done=((64, "probe"), (96, "probe")))
    phases = data / "audits" / ID / "phases"
    (phases / "think_64_probe.json").write_bytes((phases / "think_96_probe.json").read_bytes())
    with pytest.raises(LineageError, match=r"think_64_probe\.json: bundle"):
        build_report(ID, data, registry)


def test_bundles_beside_registered_history_refuse(tmp_path: Path) -> None:
    data, registry = small_data(tmp_path)
    (data / "history").mkdir()
    record = {
        "schema_version": 1,
        "experiment_id": ID,
        "state": "stopped",
        "binding_sha256": None,
        "phases": [],
        "selection": None,
        "tree": None,
        "catalog_sha256": None,
        "settings_sha256": None,
        "decision_eligible": True,
    }
    (data / "history" / f"{ID}.json").write_bytes(canonical_bytes(record))
    with pytest.raises(LineageError, match="never mixed"):
        load_view(ID, data, registry)


def _go(data: Path, experiment: Any, *, reviewer: str) -> None:
    about = {
        "schema_version": 1,
        "ask_id": "ask-1",
        "experiment_id": ID,
        "binding_sha256": bind(experiment).binding_sha256,
        "thinking_budget_tokens": 64,
        "phase": "probe",
    }
    go = about | {
        "requester": "ada",
        "reviewer": reviewer,
        "verdict": "GO",
        "checklist": dict.fromkeys(CHECKLIST, True),
        "notes": "a | note <b>",
        "not_before": "2026-01-02T03:00:00Z",
        "expires": "2026-01-02T04:00:00Z",
        "allows_window": False,
    }
    path = chain_path(data / "approvals", ID)
    append(
        path,
        ID,
        lambda entries: Draft(
            kind="go", recorded="2026-01-02T03:04:05Z", statement=go, signature=None, identity="self-asserted"
        ),
    )


def test_a_self_go_is_called_one(tmp_path: Path, words_of: Callable[[str], str]) -> None:
    data, registry = small_data(tmp_path)
    _go(data, registry.experiment(ID), reviewer="ada")
    text = words_of(build_report(ID, data, registry)[0])
    assert "self-GO, self-asserted 2026-01-02T03:00:00Z to 2026-01-02T04:00:00Z not used" in text
    assert "every name below is self-asserted" in text
    assert "a | note &lt;b&gt;" in text


def test_a_broken_approval_chain_refuses(tmp_path: Path) -> None:
    data, registry = small_data(tmp_path)
    _go(data, registry.experiment(ID), reviewer="grace")
    path = chain_path(data / "approvals", ID)
    path.write_bytes(path.read_bytes().replace(b"grace", b"alice"[:5]))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(GoRefused, match="torn last line"):
        build_report(ID, data, registry)


def test_a_page_without_its_approvals_refuses(tmp_path: Path) -> None:
    data, registry = small_data(tmp_path)
    chain_path(data / "approvals", ID).unlink()
    with pytest.raises(GoRefused, match=f"{ID}.jsonl is missing: got nothing, need the approvals of probe"):
        build_report(ID, data, registry)


def test_a_phase_whose_go_is_in_no_approval_is_said_on_the_page(
    tmp_path: Path, words_of: Callable[[str], str]
) -> None:
    said = "is not among the approvals kept here: nothing proves who allowed it"
    data, registry = small_data(tmp_path)
    assert said in words_of(build_report(ID, data, registry)[0])
    never, registry = small_data(tmp_path / "never", done=())
    assert said not in words_of(build_report(ID, never, registry)[0])


def test_the_index_keeps_the_row_of_an_experiment_that_refuses(
    tmp_path: Path, words_of: Callable[[str], str]
) -> None:
    data, registry = history_data(tmp_path)
    (data / "narratives" / f"{EXACT}.yaml").unlink()
    with pytest.raises(FitladderError):
        load_view(EXACT, data, registry)
    html, twin = build_index(data, registry)
    text = words_of(html)
    assert f"Refused: {EXACT}." in text
    assert "is absent" in text
    assert len(registry.experiments) == sum(
        f"| {name}" in twin.replace("\\", "") for name in registry.experiments
    )
    assert f'href="{EXACT}.html"' not in html


def test_the_index_lists_state_rung_verdict_and_binding(
    tmp_path: Path, words_of: Callable[[str], str]
) -> None:
    data, registry = history_data(tmp_path)
    html, _ = build_index(data, registry)
    text = words_of(html)
    for name, experiment in registry.experiments.items():
        view = load_view(name, data, registry)
        row = f"{name} {experiment.state} {view.rung_reached} {view.verdict}. {view.verdict_reason}"
        assert " ".join(f"{row} {experiment.review} {view.binding_sha256[:12]}".split()) in text
        assert f'href="{name}.html"' in html

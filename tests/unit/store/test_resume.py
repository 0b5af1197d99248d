"""Resuming means the very same identity, from the first row."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from support import bundles as make

from fitladder.errors import BindingChanged, BundleError, BundlePartial, BundleTampered, FitladderError
from fitladder.records.preflight import Preflight
from fitladder.store.held_root import hold_root
from fitladder.store.resume import check_resumable
from fitladder.store.verify_bundle import verify_bundle
from fitladder.store.verify_root import verify_root

OF = make.experiment()


def preflight(of: Any = OF, at: Any = None, **changed: Any) -> Preflight:
    return make.preflight(of, at or make.key(), **{"root_id": make.sha("root"), "sequence": 0, **changed})


OLD = preflight(engine=make.facts(3, capture_resolved=(1, 2)))
PROMPTS = OLD.prompts


def model(**changed: Any) -> Any:
    return OF.model_copy(update={"model": OF.model.model_copy(update=changed)})


def sampling(**changed: Any) -> Any:
    return OF.model_copy(update={"sampling": OF.sampling.model_copy(update=changed)})


def prompt(**changed: Any) -> Any:
    return (PROMPTS[0].model_copy(update=changed), PROMPTS[1])


@pytest.mark.parametrize(
    ("now", "field", "old", "new"),
    [
        (lambda: preflight(model(revision="1" * 40)), "model.revision", "0" * 40, "1" * 40),
        (lambda: preflight(at=make.key(96), engine=make.facts(2)), "thinking_budget_tokens", 64, 96),
        (lambda: preflight(sampling(run_seed=2702)), "sampling.run_seed", 2701, 2702),
        (
            lambda: preflight(model(tokenizer_sha256=make.sha("t2"))),
            "model.tokenizer_sha256",
            make.sha("tokenizer"),
            make.sha("t2"),
        ),
        (
            lambda: preflight(engine=make.facts(3, capture_resolved=(1, 2, 3))),
            "engine.capture_resolved",
            (1, 2),
            (1, 2, 3),
        ),
        (
            lambda: preflight(engine=make.facts(3, engine_version="0.24.0")),
            "engine.engine_version",
            "0.32.0",
            "0.24.0",
        ),
        (
            lambda: preflight(prompts=prompt(rendered_sha256=make.sha("p2"))),
            "prompts[0].rendered_sha256",
            PROMPTS[0].rendered_sha256,
            make.sha("p2"),
        ),
    ],
)
def test_each_changed_field_is_refused_with_old_and_new(now: Any, field: str, old: Any, new: Any) -> None:
    changed = now()
    if field.startswith(("model", "sampling")):  # the registered change moves binding and seeds with it
        changed = changed.model_copy(update={"binding": OLD.binding, "seeds_sha256": OLD.seeds_sha256})
    if field != "engine.capture_resolved":
        changed = changed.model_copy(
            update={"engine": changed.engine.model_copy(update={"capture_resolved": (1, 2)})}
        )
    with pytest.raises(BindingChanged) as refusal:
        check_resumable(OLD, changed)
    message = str(refusal.value)
    assert f"{field} changed" in message
    assert str(old) in message
    assert str(new) in message


def test_a_registered_change_moves_the_binding_before_anything_else() -> None:
    changed = preflight(sampling(run_seed=2702))
    with pytest.raises(BindingChanged, match=r"seeds_sha256|generation_sha256"):
        check_resumable(preflight(), changed)


def test_output_path_and_log_level_do_not_block() -> None:
    now = preflight(
        root_id=make.sha("moved"),
        noted_at_s=make.NOON_S + 999,
        runtime=make.runtime(environment={"VLLM_LOGGING_LEVEL": "DEBUG"}),
        engine=make.facts(3, load_s=99.0),
    )
    check_resumable(preflight(), now)


def test_a_bundle_of_four_of_forty_eight_rows_is_nothing_to_resume(tmp_path: Path) -> None:
    """There are no partial rows: a bundle has all its rows, or no receipt."""
    from fitladder.sampling.parquet import render_samples
    from fitladder.store.write_bundle import commit_bundle

    of = make.experiment(records=12, k=(4, 12))
    with hold_root(tmp_path / "root", make.ID, "test") as held:
        begun = make.begin(held, of, make.key())
        source = tmp_path / "child.parquet"
        source.write_bytes(render_samples(make.rows(begun)[:4], begun.key))
        with pytest.raises(BundleTampered, match="got 4 rows, need 48 rows"):
            commit_bundle(
                held,
                begun.key,
                source,
                make.engine_meta(begun.key),
                samples_sha256=make.sha256_file(source),
                noted_at_s=make.NOON_S,
            )
        assert verify_bundle(make.complete(held, begun).folder, begun.key).receipt.rows == 48


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    return make.make_root(tmp_path / "root", done=(), begun=[(64, "probe")])


def _files(root: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() for path in root.rglob("*") if path.is_file() and path.name != ".lock"
    }


def again(root: Path, of: Any = OF, **changed: Any) -> None:
    """Another attempt at the probe, committed."""
    with hold_root(root, make.ID, "test") as held:
        earlier = tuple(one.file.sha256 for one in verify_root(root, make.ID).preflights)
        values = {"go_sha256": make.sha("GO again"), "resumes": earlier, **changed}
        make.complete(held, make.begin(held, of, make.key(), **values))


def test_another_attempt_keeps_the_first_and_names_it(interrupted: Path) -> None:
    first = interrupted / "think_64" / "probe" / "preflight.json"
    before = first.read_bytes()
    again(interrupted)
    found = verify_root(interrupted, make.ID)
    assert first.read_bytes() == before
    assert [path.name for path in first.parent.iterdir()] == ["preflight.json"]
    [bundle], [kept] = found.bundles, found.preflights
    assert (bundle.relative_path, kept.relative_path) == ("think_64/probe.attempt_2", "think_64/probe")
    assert bundle.receipt.resumes == (kept.file.sha256,)
    assert found.interrupted == ()
    assert [(entry.attempt, entry.state) for entry in found.catalog.entries] == [
        (1, "preflight_only"),
        (2, "complete"),
    ]
    assert len(found.used_go_sha256s) == 2


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ({"resumes": ()}, "has a preflight already"),
        ({"resumes": (make.sha("another"),)}, "has a preflight already"),
        ({"go_sha256": make.sha(f"GO {make.key()}")}, "is used"),
        (
            {"engine": make.facts(3, engine_version="0.24.0")},
            "engine.engine_version changed: got 0.24.0, need",
        ),
        ({"runtime": make.runtime(engine_lock_sha256=make.sha("lock 2"))}, "engine_lock_sha256 changed"),
    ],
)
def test_an_attempt_that_is_not_the_same_writes_nothing(interrupted: Path, changed: Any, part: str) -> None:
    before = _files(interrupted)
    with pytest.raises(FitladderError) as refusal:
        again(interrupted, **changed)
    assert part in str(refusal.value)
    assert _files(interrupted) == before


def test_a_complete_phase_has_no_further_attempt(interrupted: Path) -> None:
    again(interrupted)
    with pytest.raises(BundleError, match="has its receipt already"):
        again(interrupted, go_sha256=make.sha("GO once more"))


def test_an_interrupted_attempt_that_vanishes_or_takes_rows_stops_everything(interrupted: Path) -> None:
    again(interrupted)
    second = interrupted / "think_64" / "probe.attempt_2"
    (interrupted / "think_64" / "probe" / "samples.parquet").write_bytes(
        (second / "samples.parquet").read_bytes()
    )
    with pytest.raises(BundlePartial, match="no receipt"):
        verify_root(interrupted, make.ID)
    shutil.rmtree(interrupted / "think_64" / "probe")
    with pytest.raises(BundleTampered, match=r"has vanished|resumes other attempts"):
        verify_root(interrupted, make.ID)
    second.rename(interrupted / "think_64" / "probe")
    with pytest.raises(BundleTampered, match="is another attempt's"):
        verify_root(interrupted, make.ID)

"""Preflight and receipt: what cannot be told apart, or is not as registered, is refused before generation."""

from typing import Any

import pytest
from pydantic import ValidationError
from support import bundles as make

from fitladder.errors import BundleError
from fitladder.records.layout import parse_bundle_folder
from fitladder.records.preflight import PromptRecord
from fitladder.records.record_ids import check_record_ids, seeds_sha256

OF = make.experiment()


def preflight(**changed: Any) -> Any:
    return make.preflight(OF, make.key(), root_id=make.sha("root"), sequence=0, **changed)


def prompt(record_id: str) -> PromptRecord:
    return PromptRecord(record_id=record_id, rendered_sha256=make.sha(record_id), prompt_tokens=5)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("s-1", "s-1"),
        ("a/b", "a_b"),
        ("caf\u00e9", "cafe\u0301"),
        ("Task", "task"),
        ("a b", "a\u00a0b".replace("\u00a0", "_")),
    ],
)
def test_ids_that_could_be_taken_for_one_are_refused(left: str, right: str) -> None:
    with pytest.raises(BundleError, match="could be taken for one") as refusal:
        check_record_ids([left, "other", right])
    assert ascii(left) in str(refusal.value)
    assert ascii(right) in str(refusal.value)
    with pytest.raises(ValidationError, match="taken for one"):
        preflight(prompts=(prompt(left), prompt(right)))


@pytest.mark.parametrize("number", [1, True])
def test_an_id_is_text_and_nothing_that_looks_like_it(number: Any) -> None:
    with pytest.raises(ValidationError, match="record_id"):
        PromptRecord(record_id=number, rendered_sha256=make.sha("x"), prompt_tokens=5)


@pytest.mark.parametrize("bad", [" a", "a\n", "a\x00", "ok \ud835", "\u202ea"])
def test_a_bad_name_is_refused_up_front(bad: str) -> None:
    with pytest.raises(BundleError, match="record id"):
        check_record_ids([bad])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"k": 3}, "k: got 3, the binding registers 2"),
        ({"prompts": (prompt("one"),)}, "prompts: got 1, the binding registers 2"),
        ({"key": make.key(65)}, r"the binding registers the budgets \[64, 96\]"),
        ({"engine": make.facts(4)}, "engine.max_num_seqs: got 4, the binding registers 3"),
        ({"model": OF.model.model_copy(update={"revision": "1" * 40})}, "model: got"),
        ({"sampling": OF.sampling.model_copy(update={"run_seed": 2702})}, "sampling: got"),
        ({"gates": ()}, "gates"),
        ({"go_sha256": "x"}, "go_sha256"),
        ({"go_identity": "trusted"}, "go_identity"),
        ({"noted_at_s": 1.5}, "noted_at_s"),
    ],
)
def test_a_preflight_is_as_registered(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        preflight(**changed)


def test_engine_metadata_must_count_preemptions() -> None:
    with pytest.raises(ValidationError, match="preemptions"):
        make.engine_meta(make.key(), counters={"generated_tokens": 1})


def test_seeds_have_one_digest_that_knows_their_order() -> None:
    seeds = [("a", 0, 5), ("a", 1, 6), ("b", 0, 5)]
    assert seeds_sha256(seeds) == seeds_sha256(iter(seeds))
    assert seeds_sha256(seeds) != seeds_sha256(reversed(seeds))


@pytest.mark.parametrize(
    "place",
    [
        ("think_064", "probe"),
        ("think_0", "probe"),
        ("think_", "base"),
        ("64", "base"),
        ("think_64", "Probe"),
        ("think_64", "prob"),
        ("think_٦٤", "probe"),
        ("think_64 ", "probe"),
        ("think_64", "probe.attempt_1"),
        ("think_64", "probe.attempt_02"),
        ("think_64", "probe.attempt_"),
        ("think_64", "prob.attempt_2"),
    ],
)
def test_only_one_spelling_of_a_place(place: tuple[str, str]) -> None:
    assert parse_bundle_folder(make.ID, "think_64", "probe") == (make.key(), 1)
    assert parse_bundle_folder(make.ID, "think_64", "probe.attempt_12") == (make.key(), 12)
    with pytest.raises(BundleError, match="no bundle can have"):
        parse_bundle_folder(make.ID, *place)


def test_ids_that_differ_in_punctuation_alone_are_one_here_as_in_a_prompt_file() -> None:
    with pytest.raises(BundleError, match="could be taken for one"):
        check_record_ids(["a-b", "a.b"])
    check_record_ids(["reuse-000::base", "no-reuse-000::base", "\u4e00", "\u4e8c", "caf\u00e9", "cafe"])

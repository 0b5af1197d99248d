"""Authored words agree with their audits, or are refused."""

from fractions import Fraction
from typing import Any

import pytest
import yaml
from support.page_data import WORDS

from fitladder.errors import InputRefused
from fitladder.report.narrative import fill, load_narrative, parse_narrative
from fitladder.report.narrative_figures import NotRun

FACTS: dict[str, Any] = {
    "rung": {
        "49152": {
            "loops": 37,
            "unresolved": 11,
            "ceilings_broken": 3,
            "sampled_tokens": 2_364_643,
            "tokens_per_s": 471.7538,
            "loop_rate": Fraction(37, 48),
            "resolved": (1, 2, 4, 8, 16),
            "preemptions": None,
            "probe": {"loops": 37},
        },
        "61440": {"loops": NotRun(), "samples": NotRun()},
    },
    "compared": {"other_run, 49152": {"tokens_per_s": 586.471}},
    "registered": {"probe_k": 4},
}


def filled(text: str, names: list[str] | None = None) -> str:
    return fill(text, FACTS, names=names or [], where="here")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("{{ rung(49152).loops }} looped", "37 looped"),
        ("{{rung(49152).probe.loops}}", "37"),
        ("{{ rung(49152).loops = 37 }}", "37"),
        ("{{ rung(49152).sampled_tokens = 2,364,643 }}", "2,364,643"),
        ("{{ rung(49152).tokens_per_s }}", "471.754"),
        ("{{ rung(49152).loop_rate }}", "77.1 %"),
        ("{{ rung(49152).resolved }}", "1 2 4 8 16"),
        ("{{ rung(49152).preemptions }}", "not recorded"),
        (
            "{{ rung(49152).tokens_per_s | slower than compared(other_run, 49152).tokens_per_s }}",
            "19.56 % slower",
        ),
        ("{{ rung(49152).loops | more than rung(49152).unresolved = 236.36 % more }}", "236.36 % more"),
        ("{{ rung(49152).ceilings_broken | words = three }} of them", "three of them"),
        ("{{ rung(61440).loops | words }} of them", "61,440 thinking tokens: not run yet."),
        ("tokens a second, for one who reads", "tokens a second, for one who reads"),
        ("an attention span of often", "an attention span of often"),
        ("no number at all", "no number at all"),
        ("{{ rung(61440).loops }} of {{ rung(61440).samples }}", "61,440 thinking tokens: not run yet."),
    ],
)
def test_a_placeholder_becomes_its_audited_figure(text: str, want: str) -> None:
    assert filled(text).replace("\u00a0", " ") == want


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ rung(49152).loops = 38 }}", "disagrees with its audit .* got 38, need 37"),
        ("{{ rung(61440).loops = 40 }}", "without an audit"),
        ("37 of them looped", "bare number .* '37'"),
        ("K=4", "bare number"),
        ("49k tokens", "bare number"),
        ("rung-49152", "bare number"),
        ("x\u00b2", "bare number"),
        ("\u0663\u0667 of them", "bare number"),  # digits of another script
        ("{{ rung(49152).lops }}", "no such figure .* got lops"),
        ("{{ rung(1).loops }}", "no such figure .* got 1"),
        ("{{ rung(49152) }}", "is no figure"),
        ("{{ rung(49152).__class__ }}", "no such path"),
        ("{{ rung(49152).loops.real }}", "no such figure"),
        ("{{ rung(49152).loops | upper }}", "got 'upper', need words, faster than"),
        ("{{ rung(49152).loops | words }}", "got 37, need a count from 0 to 12"),
        (
            "{{ rung(49152).ceilings_broken | words = two }}",
            "disagrees with its audit .* got two, need three",
        ),
        (
            "{{ rung(49152).tokens_per_s | faster than compared(other_run, 49152).tokens_per_s }}",
            "got 471.754 against 586.471, need one that is faster",
        ),
        ("{{ rung(49152).loops | more than rung(49152).loops }}", "need one that is more"),
        ("Both rungs broke it", "bare number .* 'Both'"),
        ("thirty-seven looped", "bare number .* 'thirty-seven'"),
        ("Two-thirds of them", "bare number"),
        ("a tenfold speed", "bare number .* 'tenfold'"),
        ("\uff34\uff37\uff2f rungs", "bare number"),  # full-width letters
        ("one of them looped", "bare number .* 'one of'"),
        ("All {{ rung(49152).loops }} looped", "a share in words .* 'All {{'"),
        ("none of the {{ rung(49152).loops }}", "a share in words"),
        ("{{ rung(49152).loops", "not closed"),
        ("{{ rung(49152).resolved | faster than rung(49152).loops }}", "need two numbers"),
        # what a template language prints although no audit has it
        ("{{ 37 }}", "no such path"),
        ("{{ rung(49152).loops + 1 }}", "no such path"),
        ("{{ 'many' }}", "no such path"),
        ("{{ [rung(49152).loops] | length }}", "no such path"),
        ("{% if rung(49152).loops %}37{% endif %}", "bare number"),
    ],
)
def test_what_no_audit_vouches_for_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputRefused, match=message):
        filled(text)


def test_a_name_may_hold_digits_and_only_the_whole_name_may() -> None:
    assert filled("Qwen3.5-4B on an H200", ["Qwen3.5-4B", "H200"]) == "Qwen3.5-4B on an H200"
    with pytest.raises(InputRefused, match="bare number"):
        filled("H2001", ["H200"])


@pytest.mark.parametrize("name", ["37", "three", "Both"])
def test_a_number_is_no_name(name: str) -> None:
    with pytest.raises(InputRefused, match="begin with a letter and are no number"):
        parse_narrative(WORDS | {"names": [name]}, FACTS, where="here")


def test_a_figure_and_its_unit_stay_on_one_line() -> None:
    assert filled("{{ rung(49152).loop_rate }}\n  of them") == "77.1\u00a0% of them"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"found": []}, "found"),
        ({"found": "one paragraph"}, "found"),
        ({"title": ""}, "title"),
        ({"title": None}, "title"),
        ({"kind": "science"}, "kind"),
        ({"extra": "x"}, "authored fields"),
        ({"idea": [None]}, r"idea\[0\]"),
    ],
)
def test_a_narrative_has_exactly_its_fields(change: dict[str, Any], message: str) -> None:
    facts = {
        **FACTS,
        "rung": {"64": {"budget": 64, "loops": 1, "samples": 2}, "96": {"loops": 1, "samples": 2}},
    }
    assert parse_narrative(WORDS, facts, where="here").found == (
        "1 of 2 looped.",
        "1 of 2 looped at the other rung.",
    )
    with pytest.raises(InputRefused, match=message):
        parse_narrative(WORDS | change, facts, where="here")


def test_an_absent_or_broken_file_names_itself(tmp_path: Any) -> None:
    path = tmp_path / "words.yaml"
    with pytest.raises(InputRefused, match=r"words\.yaml is absent"):
        load_narrative(path, FACTS)
    path.write_text("title: [")
    with pytest.raises(InputRefused, match=r"words\.yaml line \d is no YAML"):
        load_narrative(path, FACTS)
    path.write_text(yaml.safe_dump({"title": "only"}))
    with pytest.raises(InputRefused, match="authored fields"):
        load_narrative(path, FACTS)

import time
import tracemalloc

import pytest

from fitladder.domains.macros.mining import make_library
from fitladder.semantics.parse import (
    MAX_ANSWER_CHARACTERS,
    Candidate,
    Limits,
    Reason,
    Rejection,
    parse_answer,
    strip_answer,
)

BASE = make_library("base", [], [], "none")
DESIGNED = make_library(
    "designed_ceiling", [(("ADD1", "REV"), 1), (("NEG", "SORT", "REV"), 1)], ["a", "b"], "x"
)
LIMITS = Limits()


def parse(text, library=DESIGNED):
    return parse_answer(text, library, LIMITS)


@pytest.mark.parametrize(
    "text",
    [
        "PROGRAM: ADD1 | M1",
        "\n\n  PROGRAM:ADD1|M1  \n",
        "PROGRAM: ADD1 | M1<|im_end|>",
        "PROGRAM: ADD1 | M1\n<|im_end|>\n<|endoftext|> ",
        "```\nPROGRAM: ADD1 | M1\n```",
        "```text\nPROGRAM: ADD1 | M1\n\n```<|im_end|>",
        "PROGRAM: ADD1 | M1\r\n",
    ],
)
def test_one_legal_line(text):
    assert parse(text) == Candidate(("ADD1", "M1"), ("ADD1", "NEG", "SORT", "REV"))
    assert parse(text).uses_macro


REJECTED = [
    ("", Reason.EMPTY),
    (" \n\t ", Reason.EMPTY),
    ("<|im_end|><|endoftext|>", Reason.EMPTY),
    ("```\n\n```", Reason.EMPTY),
    ("```\n```", Reason.NO_PROGRAM_LINE),
    ("ADD1 | REV", Reason.NO_PROGRAM_LINE),
    ("program: ADD1", Reason.NO_PROGRAM_LINE),
    ("The answer is PROGRAM: ADD1", Reason.NO_PROGRAM_LINE),
    ("\ufffdPROGRAM: ADD1", Reason.NO_PROGRAM_LINE),
    ("<|im_end|>PROGRAM: ADD1", Reason.NO_PROGRAM_LINE),
    ("PROGRAM: ADD1\nPROGRAM: ADD1", Reason.SEVERAL_PROGRAM_LINES),
    ("So:\nPROGRAM: ADD1", Reason.TEXT_BESIDE_PROGRAM),
    ("PROGRAM: ADD1\nM0 := M0 | M0", Reason.TEXT_BESIDE_PROGRAM),
    ("```\n```\nPROGRAM: ADD1\n```\n```", Reason.TEXT_BESIDE_PROGRAM),
    ("```\nPROGRAM: ADD1", Reason.TEXT_BESIDE_PROGRAM),
    ("PROGRAM:", Reason.EMPTY_CALL),
    ("PROGRAM: ADD1 |", Reason.EMPTY_CALL),
    ("PROGRAM: ADD1 || REV", Reason.EMPTY_CALL),
    ("PROGRAM: ADD1 | M2", Reason.UNKNOWN_CALL),
    ("PROGRAM: add1", Reason.UNKNOWN_CALL),
    ("PROGRAM: ADD1 REV", Reason.UNKNOWN_CALL),
    ("PROGRAM: ADD1.", Reason.UNKNOWN_CALL),
    ("PROGRAM: ADD\u0661", Reason.UNKNOWN_CALL),
    ("PROGRAM: M0(M0)", Reason.UNKNOWN_CALL),
    ("PROGRAM: " + " | ".join(["REV"] * 6), Reason.SURFACE_LIMIT),
    ("PROGRAM: " + " | ".join(["M0"] * 3), Reason.EXPANDED_LIMIT),
    ("PROGRAM: M1 | M1", Reason.EXPANDED_LIMIT),
]


@pytest.mark.parametrize(
    ("text", "reason"), REJECTED, ids=[f"{n}-{r.value}" for n, (_, r) in enumerate(REJECTED)]
)
def test_every_rejection_keeps_its_reason(text, reason):
    result = parse(text)
    assert isinstance(result, Rejection)
    assert result.reason is reason
    assert result.is_parsed == (reason is Reason.EXPANDED_LIMIT)


def test_base_arm_has_no_macro_calls():
    assert parse("PROGRAM: M0", BASE).reason is Reason.UNKNOWN_CALL
    assert not parse("PROGRAM: REV", BASE).uses_macro


def test_exactly_five_are_allowed():
    assert isinstance(parse("PROGRAM: " + " | ".join(["REV"] * 5)), Candidate)
    assert isinstance(parse("PROGRAM: M0 | M1"), Candidate)


def test_the_longest_answer_is_still_read():
    text = "PROGRAM: REV".ljust(MAX_ANSWER_CHARACTERS)
    assert parse(text) == Candidate(("REV",), ("REV",))
    assert parse(text + " ") == Rejection(Reason.TOO_LONG, f"{MAX_ANSWER_CHARACTERS + 1} characters")


ATTACKS = {
    "number_of_4301_digits": "PROGRAM: " + "9" * 4301,
    "number_as_whole_answer": "9" * 60_000,
    "many_calls": "PROGRAM: " + " | ".join(["REV"] * 10_000),
    "exploding_macros": "PROGRAM: " + " | ".join(["M1"] * 12_000),
    "cyclic_macro": "PROGRAM: M0\nM0 := M0 | M0",
    "nested": "PROGRAM: " + "(" * 30_000 + ")" * 30_000,
    "nested_fences": "```\n" * 10_000 + "PROGRAM: REV" + "\n```" * 10_000,
    "markers": "PROGRAM: REV |" + "<|im_end|>" * 6_500,
    "markers_and_blanks": "<|im_end|> \n" * 5_000,
    "pipes": "PROGRAM: " + "|" * 65_000,
    "lines": "PROGRAM:\n" * 7_000,
    "lone_surrogate": "PROGRAM: ok \ud835 end",
    "surrogate_line": "\ud835\nPROGRAM: REV",
    "nul": "PROGRAM: RE\x00V",
    "blanks": " " * 65_536,
    "too_long": "PROGRAM: REV" + " " * MAX_ANSWER_CHARACTERS,
    "far_too_long": "PROGRAM: " + "REV | " * 1_000_000 + "REV",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_end_as_rejections_in_bounded_time_and_memory(name):
    text = ATTACKS[name]
    tracemalloc.start()
    began = time.perf_counter()
    result = parse(text)
    seconds = time.perf_counter() - began
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(result, Rejection)
    assert len(result.detail) <= 300
    result.detail.encode("ascii")
    assert seconds < 1
    assert peak < 32 * 2**20


def test_strip_keeps_an_inner_fence_and_inner_markers():
    assert strip_answer("a\n```\nb\n```", ()) == "a\n```\nb\n```"
    assert strip_answer("a<e>b<e>", ("<e>", "")) == "a<e>b"

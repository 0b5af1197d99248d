"""Figures in authored prose: digits, spelled numbers, shares said in words.

Pure. What it finds has no audit to agree with, so a narrative refuses it.
"""

import re
import unicodedata

__all__ = ["bare_figure", "is_figure", "spelled", "worded_share"]

SPELLED = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
# "one" and "second" are left out: they are a pronoun and a unit far more often than a figure.
_NUMBERS = re.compile(
    r"(?:zero|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|"
    r"(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundreds?|thousands?|millions?|billions?|dozens?|both|twice|"
    r"thrice|double|triple|half|halves|thirds?|quarters?|fifths?|tenths?)(?:fold)?"
)
_WORD = re.compile(r"[\w.,+-]*\w")
_PART = re.compile(r"[^\W\d_]+")
_ONE_OF = re.compile(r"\bone\s+(?:of|in|out)\b", re.IGNORECASE)
_SHARE = re.compile(
    r"\b(?:all|both|every|each|none|no|most)\s+(?:of\s+)?(?:the\s+|its\s+)?\{\{",
    re.IGNORECASE,
)


def spelled(value: int) -> str | None:
    """`3` as `three`; None above twelve or below zero."""
    return SPELLED[value] if 0 <= value < len(SPELLED) else None


def is_figure(word: str) -> bool:
    """Whether a word holds a digit of any script or is a spelled number, hyphened or many-fold."""
    plain = unicodedata.normalize("NFKC", word).casefold()
    if any(character.isnumeric() for character in plain):
        return True
    return any(_NUMBERS.fullmatch(part) for part in _PART.findall(plain))


def bare_figure(text: str) -> str | None:
    """The first word of the text that is a figure, or None."""
    found = next((match.group() for match in _WORD.finditer(text) if is_figure(match.group())), None)
    if found is None and (one := _ONE_OF.search(text)):
        return one.group()
    return found


def worded_share(text: str) -> str | None:
    """A quantifier before a placeholder, such as `All {{`: it claims more than the figure says."""
    match = _SHARE.search(text)
    return match.group() if match else None

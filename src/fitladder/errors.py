"""Every refusal of Fitladder, in one tree of exceptions with their exit codes.

    FitladderError                  1   anything below; never raised itself
    ├── UsageError                  2   the command's words are off
    ├── RegistrationError           3   params.yaml, or a value in it, is no valid protocol
    │   └── BindingChanged          3   protocol, data or bound code moved since a GO, receipt or catalog
    ├── InputRefused                4   a registered input is absent or is not what was registered
    ├── GateRefused                 5   a live gate said no: an infrastructure failure, never a result
    ├── BundleError                 6   bundle, catalog or root cannot be believed
    │   ├── RootRefused             6   an artifact root that may not be used
    │   ├── RootBusy                6   somebody else holds the root, or no lock can be had
    │   ├── BundlePartial           6   no receipt: incomplete, nothing may be read from it
    │   └── BundleTampered          6   bytes, size, name or place differ from the receipt
    ├── LadderRefused               7   this phase at this rung is not authorised
    ├── GoRefused                   8   no GO, or one for something else, used, expired or unsigned
    ├── EngineFailed                9   the engine died, hung, or reported nonsense
    ├── ContentSealed              10   a content-blind pass tried to open text or hidden examples
    ├── LineageError               11   DVC state and receipts disagree
    └── EnvironmentNotReady        12   a tool, a port, disk space or an environment is missing

A failed audit is data; an audit that cannot be verified is an error.
"""

from typing import ClassVar

__all__ = [
    "BindingChanged",
    "BundleError",
    "BundlePartial",
    "BundleTampered",
    "ContentSealed",
    "EngineFailed",
    "EnvironmentNotReady",
    "FitladderError",
    "GateRefused",
    "GoRefused",
    "InputRefused",
    "LadderRefused",
    "LineageError",
    "RegistrationError",
    "RootBusy",
    "RootRefused",
    "UsageError",
]


class FitladderError(Exception):
    """One line: what is wrong, what was got, what is needed, what to do next."""

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, got: object = None, need: object = None, do: str | None = None) -> None:
        self.what, self.got, self.need, self.do = what, got, need, do
        middle = ", ".join(
            f"{word} {value}" for word, value in (("got", got), ("need", need)) if value is not None
        )
        line = what + (f": {middle}" if middle else "") + (f"; {do}" if do else "")
        super().__init__(" ".join(line.split()))


class UsageError(FitladderError):
    """The command's arguments are wrong."""

    exit_code = 2


class RegistrationError(FitladderError):
    """params.yaml, or a value in it, is no valid protocol."""

    exit_code = 3


class BindingChanged(RegistrationError):
    """Protocol, data or bound code changed since a GO, receipt or catalog."""


class InputRefused(FitladderError):
    """A registered input is absent or is not what was registered."""

    exit_code = 4


class GateRefused(FitladderError):
    """A live gate refused: an infrastructure failure, never a result."""

    exit_code = 5


class BundleError(FitladderError):
    """A bundle, catalog or root cannot be believed."""

    exit_code = 6


class RootRefused(BundleError):
    """An artifact root that may not be used."""


class RootBusy(BundleError):
    """Somebody else holds the root, or no lock can be had."""


class BundlePartial(BundleError):
    """No receipt: incomplete, nothing may be read from it."""


class BundleTampered(BundleError):
    """Bytes, size, name or place differ from the receipt."""


class LadderRefused(FitladderError):
    """This phase at this rung is not authorised."""

    exit_code = 7


class GoRefused(FitladderError):
    """No GO, or one for something else, used, expired or unsigned."""

    exit_code = 8


class EngineFailed(FitladderError):
    """The engine died, hung, or reported what cannot be."""

    exit_code = 9


class ContentSealed(FitladderError):
    """A content-blind pass tried to open text or hidden examples."""

    exit_code = 10


class LineageError(FitladderError):
    """DVC state and receipts disagree."""

    exit_code = 11


class EnvironmentNotReady(FitladderError):
    """A tool, a port, disk space or an environment is missing."""

    exit_code = 12

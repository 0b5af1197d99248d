"""Import of one command when it is called, so that the others need none of its packages."""

import importlib
from typing import Any

from fitladder.errors import EnvironmentNotReady

__all__ = ["load_attribute"]


def load_attribute(target: str) -> Any:
    """The attribute that `module:attribute` names.

    Raises EnvironmentNotReady where a package that the module needs is not installed.
    """
    module, _, attribute = target.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as failure:
        if (failure.name or "fitladder").partition(".")[0] == "fitladder":
            raise
        raise EnvironmentNotReady(
            f"{failure.name} is not installed here", need="fitladder with its extra `orchestrate`"
        ) from failure

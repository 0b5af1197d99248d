"""Document to one self-contained HTML page: no script, no outside file; light, dark, print and phone."""

import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fitladder.report.document import Document
from fitladder.report.words import visible

__all__ = ["render_html"]

_HASH = re.compile(r"(?:audit )?[0-9a-f]{12,64}")


def _finalize(value: Any) -> Any:
    """What a template prints: markup made here unchanged, all other text made visible, then escaped."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else visible(value)


def _is_code(text: str) -> bool:
    """Whether a table cell or value is a digest, set in a monospaced face."""
    return _HASH.fullmatch(text) is not None


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("fitladder.report", "templates"),
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.tests["code"] = _is_code
    made.filters["markup"] = Markup  # only for SVG made by charts/ and for our own style sheet
    return made


def render_html(document: Document) -> str:
    """The whole page, the same bytes for the same document."""
    environment = _environment()
    css = environment.loader.get_source(environment, "page.css")[0] if environment.loader else ""
    return environment.get_template("page.html").render(document=document, css=Markup(css))

"""Protocol section: the frozen settings, the inputs by SHA-256, the binding."""

from fitladder.report.document import Facts, Section, Table
from fitladder.report.view import ExperimentView

__all__ = ["protocol_section"]


def protocol_section(view: ExperimentView) -> Section:
    """The frozen protocol and the inputs by hash."""
    return Section(
        "protocol",
        "Protocol",
        (
            Facts(view.protocol),
            Table("Inputs, by SHA-256", ("input", "SHA-256"), view.data),
            Facts((("Binding", view.binding_sha256), ("What it binds", view.binding_note))),
        ),
    )

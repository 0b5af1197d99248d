"""Three counts against three registered ceilings, as the audit judges them, for a page to show."""

from fitladder.canonical import Rate
from fitladder.records.audit import AuditedRate, audit_rate
from fitladder.records.settings import Thresholds
from fitladder.report.view import Share, ShareName
from fitladder.report.words import percent

__all__ = ["share_of_rate", "shares"]


def shares(
    loops: int, unresolved: int, answer_limit: int, total: int, limits: Thresholds
) -> tuple[Share, Share, Share]:
    """Counts `loops`, `unresolved` and `answer_limit` of `total` samples against the ceilings `limits`."""
    return (
        share_of_rate("loops", audit_rate(loops, total, "at_most", limits.loop_rate_at_most)),
        share_of_rate("unresolved", audit_rate(unresolved, total, "below", limits.unresolved_rate_below)),
        share_of_rate(
            "answer limit", audit_rate(answer_limit, total, "below", limits.answer_limit_rate_below)
        ),
    )


def share_of_rate(name: ShareName, rate: AuditedRate) -> Share:
    """The audited `rate` under the `name` that a page gives it; without a sample its interval is 0 to 1."""
    ceiling = Rate.parse(rate.threshold).value
    words = "at most " if rate.must_be == "at_most" else "below "
    return Share(
        name=name,
        count=rate.contacts,
        total=rate.samples,
        low=float(rate.wilson95_low or 0),
        high=float(rate.wilson95_high or 1),
        ceiling=float(ceiling),
        ceiling_text=words + percent(ceiling, 0),
        within=rate.within,
    )

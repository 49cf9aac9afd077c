"""The pages of rulesets: their versions, when each of them scores, and what it says."""

from dataclasses import replace

from ratings_ledger.ledger.errors import BadArgument, Unknown
from ratings_ledger.projections.queries.coordinates import UTC_TIMES
from ratings_ledger.web import addresses
from ratings_ledger.web.page import Page
from ratings_ledger.web.visits import Visit

RULES = ("rules",)


def rules_page(visit: Visit) -> Page:
    """Return all published versions. Raises as `Snapshot.rulesets` does."""
    found = visit.view.rulesets()
    return Page(RULES, "rules", "Rules", found, UTC_TIMES, {"found": found}, "", visit.query)


def ruleset_page(visit: Visit, ruleset_id: str, version: str | None = None) -> Page:
    """Return what a version says, by default the newest in force, and when which version scores. Raises `Unknown`."""
    try:
        found = visit.view.ruleset(ruleset_id if version is None else f"{ruleset_id}@{version}")
    except BadArgument as problem:
        raise Unknown("ruleset-unknown", str(problem)) from None
    # an event that withdraws something may have withdrawn a version
    last = visit.view.events(types=["ruleset.published", "event.voided"], limit=1).rows[-1].event["position"]
    found = replace(found, known_at=last)
    title = found.ruleset.name
    return Page(
        addresses.ruleset(ruleset_id, version), "ruleset", title, found, found.times,
        {"found": found, "id": ruleset_id}, None, visit.query,
    )  # fmt: skip

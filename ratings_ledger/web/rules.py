"""The pages of rulesets: their versions, when each of them scores, and what it says."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ledger.errors import BadArgument, Unknown
from projections.queries.coordinates import UTC_TIMES
from ratings_ledger.web import addresses
from ratings_ledger.web.page import Page
from ratings_ledger.web.visits import Visit

RULES = ("rules",)


def rules_page(visit: Visit) -> Page:
    """All published versions. Raises as `View.rulesets` does."""
    found = visit.view.rulesets()
    return Page(RULES, "rules", "Rules", found, UTC_TIMES, {"found": found}, "", visit.query)


def ruleset_page(visit: Visit, ruleset_id: str, version: str | None = None) -> Page:
    """What a version says, by default the newest in force, and when which version scores. Raises `Unknown`."""
    try:
        found = visit.view.ruleset(ruleset_id if version is None else f"{ruleset_id}@{version}")
    except BadArgument as problem:
        raise Unknown("ruleset-unknown", str(problem)) from None
    # an event that withdraws something may have withdrawn a version
    last = visit.view.events(types=["ruleset.published", "event.voided"], limit=1).rows[-1].event["position"]
    found = replace(found, known_at=last)
    keys = sorted(_flat(found.data), key=lambda row: ("." in row[0], row[0]))
    rows = [(key, value, _assumption(found.ruleset.assumed, key)) for key, value in keys]
    title = found.ruleset.name
    return Page(
        addresses.ruleset(ruleset_id, version), "ruleset", title, found, found.times,
        {"found": found, "rows": rows, "id": ruleset_id}, None, visit.query,
    )  # fmt: skip


def _flat(data: Mapping[str, Any], outer: str = "") -> Iterator[tuple[str, str]]:
    """Every key with its value, those in tables as OUTER.INNER."""
    for key, value in data.items():
        if key == "assumed":
            continue
        if isinstance(value, dict):
            yield from _flat(value, f"{outer}{key}.")
        else:
            yield outer + key, ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _assumption(assumed: Mapping[str, str], key: str) -> str:
    """Why a value is assumed: its own key, or that of a table that it stands in."""
    return next((assumed[part] for part in reversed(key.split(".")) if part in assumed), "")

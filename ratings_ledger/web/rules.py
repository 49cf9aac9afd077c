"""Build the ruleset pages: all versions, and a version with its keys and the dates on which it is in force."""

from dataclasses import replace

from ratings_ledger.ledger.errors import BadArgument, Unknown
from ratings_ledger.projections.queries.coordinates import UTC_TIMES
from ratings_ledger.web import addresses
from ratings_ledger.web.page import Page
from ratings_ledger.web.visits import Visit

RULES = ("rules",)


def build_rules_page(visit: Visit) -> Page:
    """Return the page of all published versions. Raises the errors of `Snapshot.rulesets`."""
    rulesets = visit.view.rulesets()
    return Page(
        path=RULES,
        template="rules",
        title="Rules",
        answer=rulesets,
        times=UTC_TIMES,
        variables={"rulesets": rulesets},
        table="",
        query=visit.query,
    )


def build_ruleset_page(visit: Visit, ruleset_id: str, version: str | None = None) -> Page:
    """Return the page of a version, by default the newest usable one, with its ruleset's timeline. Raises `Unknown`."""
    try:
        state = visit.view.ruleset(ruleset_id if version is None else f"{ruleset_id}@{version}")
    except BadArgument as problem:
        raise Unknown("ruleset-unknown", str(problem)) from None
    # a withdrawn event may have been a version
    last = visit.view.events(types=["ruleset.published", "event.voided"], limit=1).rows[-1].event["position"]
    state = replace(state, known_at=last)
    path, variables = addresses.ruleset(ruleset_id, version), {"state": state, "id": ruleset_id}
    return Page(
        path=path,
        template="ruleset",
        title=state.ruleset.name,
        answer=state,
        times=state.times,
        variables=variables,
        table=None,
        query=visit.query,
    )

"""Set the home zone of a ledger."""

from typing import Any

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.intake.intake import ImportPolicy
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.admission.proposals import propose, require_head
from ratings_ledger.projections.queries.coordinates import load_times


def build_zone_event(name: str) -> dict[str, Any]:
    """Return the event that sets a ledger's home zone as of now."""
    return {"type": "ledger.zone_set", "occurred_at": format_instant(clock.now()), "data": {"zone": name}}


def set_home_zone(ledger: Ledger, name: str, policy: ImportPolicy) -> int | None:
    """Set a ledger's home zone; return the event's position, or None if the ledger already has this zone.

    Raises `Refused`, `ClockBehind`, `StoreUnavailable`.
    """
    with ledger.reading() as connection:
        if load_times(connection).home == name:
            return None
    return require_head(propose(ledger, [build_zone_event(name)], policy).append()).position

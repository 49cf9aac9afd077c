"""Creating a ledger with its home zone and its rulesets, and publishing rulesets that a program names."""

from collections.abc import Iterable, Sequence

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.zones import load_zone as check_zone
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.intake import ImportPolicy
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.opening import IN_MEMORY, Ledger, refuse_existing
from ratings_ledger.projections.admission.home_zones import home_zone_event
from ratings_ledger.projections.admission.proposals import propose
from ratings_ledger.projections.admission.publishing_rulesets import ruleset_items
from ratings_ledger.projections.rulesets.ruleset_sources import (
    RulesetSource,
    SourcedRuleset,
    read_source,
    read_sources,
)
from ratings_ledger.projections.rulesets.versions import SHIPPED_AT


def create_ledger(name: str, zone: str | None, rulesets: Iterable[RulesetSource], by: str) -> Ledger:
    """Return a new ledger that has a home zone and publishes some rulesets; nothing is left if one does not fit.

    Raises `BadArgument`, `LedgerExists`, `Refused` for rulesets that do not go together, `NotALedger`,
    `StoreUnavailable`.
    """
    from ratings_ledger.ledger.store.upgrading import create_store  # alembic, which no other call needs

    if zone is not None:
        try:
            check_zone(zone)
        except Refused as problem:
            raise BadArgument(problem.message, "zone") from None
    sources = read_sources(rulesets, zone or "UTC")
    if name != IN_MEMORY:
        refuse_existing(name)
        if sources:
            # what does not go together is refused before there is a file
            trial = create_store(IN_MEMORY)
            try:
                _set_up(trial, zone, sources, by)
            finally:
                trial.close()
    ledger = create_store(name)
    try:
        _set_up(ledger, zone, sources, by)
    except BaseException:
        ledger.close()  # nobody else can
        raise
    return ledger


def _set_up(ledger: Ledger, zone: str | None, sources: Sequence[SourcedRuleset], by: str) -> None:
    """Append the first events of a ledger in one transaction. Raises `Refused`."""
    zones = [Item("", 1, home_zone_event(zone), None)] if zone is not None else []
    if events := [*zones, *_items(ledger, sources)]:
        propose(ledger, events, ImportPolicy(by)).commit()


def publish_source(ledger: Ledger, source: RulesetSource, zone: str, by: str) -> list[str]:
    """Publish a ruleset that a program names; return the names of the versions that are new.

    Raises `BadArgument`, `Refused`, `ClockBehind`, `StoreUnavailable`.
    """
    committed = propose(ledger, _items(ledger, read_source(source, zone)), ImportPolicy(by)).commit()
    return [event.id.removeprefix("ruleset:") for event in committed.events if event.appended]


def _items(ledger: Ledger, sources: Iterable[SourcedRuleset]) -> list[Item]:
    """Return the events that publish rulesets; those of shipped ones are the same in every ledger."""
    items = []
    for ruleset, is_shipped in sources:
        items += ruleset_items(ledger, [(ruleset.name, ruleset)], SHIPPED_AT if is_shipped else None)
    return [item._replace(line=number) for number, item in enumerate(items, 1)]

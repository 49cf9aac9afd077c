"""Create a ledger with its home zone and rulesets, and publish rulesets from the Python API."""

from collections.abc import Iterable, Sequence

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.zones import load_zone
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.intake import ImportPolicy
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.opening import IN_MEMORY, Ledger, refuse_existing
from ratings_ledger.projections.admission.home_zones import build_zone_event
from ratings_ledger.projections.admission.proposals import propose
from ratings_ledger.projections.admission.publishing_rulesets import build_ruleset_items
from ratings_ledger.projections.rulesets.ruleset_sources import RulesetSource, SourcedRuleset, read_source, read_sources
from ratings_ledger.projections.rulesets.versions import SHIPPED_AT


def create_ledger(name: str, zone: str | None, rulesets: Iterable[RulesetSource], by: str) -> Ledger:
    """Create a ledger with a home zone and published rulesets; invalid arguments leave no file behind.

    Raises `BadArgument`, `LedgerExists`, `Refused` for incompatible rulesets, `NotALedger`, `StoreUnavailable`.
    """
    from ratings_ledger.ledger.store.upgrading import create_store  # imports alembic, which no other call needs

    if zone is not None:
        try:
            load_zone(zone)
        except Refused as problem:
            raise BadArgument(problem.message, "zone") from None
    sources = read_sources(rulesets, zone or "UTC")
    if name != IN_MEMORY:
        refuse_existing(name)
        if sources:
            # reject incompatible rulesets before creating the file
            trial_ledger = create_store(IN_MEMORY)
            try:
                _append_first_events(trial_ledger, zone, sources, by)
            finally:
                trial_ledger.close()
    ledger = create_store(name)
    try:
        _append_first_events(ledger, zone, sources, by)
    except BaseException:
        ledger.close()  # the caller does not get it, and so cannot close it
        raise
    return ledger


def _append_first_events(ledger: Ledger, zone: str | None, sources: Sequence[SourcedRuleset], by: str) -> None:
    """Append the first events of a ledger in one transaction. Raises `Refused`."""
    zone_items = [] if zone is None else [Item("", 1, build_zone_event(zone), None)]
    if items := [*zone_items, *_build_publication_items(ledger, sources)]:
        propose(ledger, items, ImportPolicy(by)).commit()


def publish_source(ledger: Ledger, source: RulesetSource, zone: str, by: str) -> list[str]:
    """Publish a ruleset from a file, text or shipped name; return the names of the new versions.

    Raises `BadArgument`, `Refused`, `ClockBehind`, `StoreUnavailable`.
    """
    sources = read_source(source, zone)
    committed = propose(ledger, _build_publication_items(ledger, sources), ImportPolicy(by)).commit()
    # the id of the event of a version that is published again after its withdrawal does not name the version
    published = zip(sources, committed.events, strict=True)
    return [sourced.ruleset.name for sourced, event in published if event.appended]


def _build_publication_items(ledger: Ledger, sources: Iterable[SourcedRuleset]) -> list[Item]:
    """Return the events that publish rulesets; shipped rulesets produce identical events in every ledger."""
    items = []
    for ruleset, is_shipped in sources:
        items += build_ruleset_items(ledger, [(ruleset.name, ruleset)], SHIPPED_AT if is_shipped else None)
    return [item._replace(line=number) for number, item in enumerate(items, 1)]

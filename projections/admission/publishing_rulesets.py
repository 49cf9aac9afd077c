"""Publishing rulesets: the events that do it, and the shipped ones that a ledger lacks."""

from collections.abc import Iterable

from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import BadArgument, NotALedger
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.intake import ImportPolicy
from ratings_ledger.ledger.store.log import Log, head, read_live
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.admission.proposals import propose
from ratings_ledger.projections.queries.coordinates import load_times
from ratings_ledger.projections.rulesets.shipped_rulesets import find_shipped, read_rated_game
from ratings_ledger.projections.rulesets.versions import ELO, SHIPPED_AT, read_shipped_texts, read_toml

# all shipped rulesets, where one could be named
EVERY = "all"


def _live(connection: Connection) -> list[KnownEvent]:
    return read_live(connection, until=head(connection).position, type_name="ruleset.published")


def ruleset_items(ledger: Ledger, rulesets: Iterable[tuple[str, Ruleset]], at: str | None = None) -> list[Item]:
    """Return the events that publish rulesets, by default now, each with the name of the file it comes from."""
    items = []
    at = at or format_instant(clock.now())
    with ledger.reading() as connection:
        live = {event.event_id for event in _live(connection)}
        for name, ruleset in rulesets:
            event = {"type": "ruleset.published", "occurred_at": at,
                     "data": ruleset.model_dump(exclude_unset=True, exclude_none=True)}  # fmt: skip
            event_id = f"ruleset:{ruleset.name}"
            # the id of a withdrawn version stays taken
            if event_id in live or Log(connection).event(event_id) is None:
                event["id"] = event_id
            items.append(Item(name, 1, event, None))
    return items


def shipped_texts(ledger: Ledger, wanted: str = EVERY, games: Iterable[str] = (), zone: str | None = None) -> list[str]:
    """Return the texts of the shipped rulesets that `init` publishes, or of one of all by name.

    Args:
        wanted: the name of a shipped ruleset; with games alone it is Elo
        games: where the ruleset leaves the game open, those for which it is filled in
        zone: the time zone where the ruleset leaves that open; by default the ledger's home zone

    Raises: `BadArgument` if there is none of that name, or if games or a zone are missing or do not belong to it;
        `Refused` (bad-slug) for what cannot be a game's name.
    """
    if wanted == EVERY and not games:
        if zone is not None:
            raise BadArgument("a zone belongs to one shipped ruleset", "zone")
        return read_shipped_texts()
    ruleset = find_shipped(ELO if wanted == EVERY else wanted)
    ruleset.refuse_choice(bool(games), zone is not None)
    if zone is None and ruleset.takes_zone:
        with ledger.reading() as connection:
            zone = load_times(connection).zone
    slugs = [read_rated_game(ruleset.id, game) for game in dict.fromkeys(games)]
    return [text for slug in slugs or [""] for text in ruleset.fill_in(slug, zone or "UTC")]


def missing_items(ledger: Ledger, texts: Iterable[str], *, only_new_ids: bool = False) -> tuple[list[str], list[Item]]:
    """Return the names of those rulesets whose version the ledger lacks, and the events that publish them.

    With `only_new_ids`, only those whose id it does not have.
    """
    with ledger.reading() as connection:
        known = {(event.data["id"], only_new_ids or event.data["version"]) for event in _live(connection)}
    missing = []
    for text in texts:
        ruleset, problems = read_toml(text)
        assert ruleset is not None, problems
        if (ruleset.id, only_new_ids or ruleset.version) not in known:
            missing.append((ruleset.name, ruleset))
    return [name for name, _ in missing], ruleset_items(ledger, missing, SHIPPED_AT)


def publish_missing(ledger: Ledger, by: str, texts: Iterable[str], *, only_new_ids: bool = False) -> list[str]:
    """Publish those rulesets whose version the ledger lacks, or only those whose id it does not have.

    Returns their names. Raises `NotALedger` if one does not fit what the ledger holds.
    """
    names, items = missing_items(ledger, texts, only_new_ids=only_new_ids)
    result = propose(ledger, items, ImportPolicy(by)).append()
    for problem in result.rejected:
        raise NotALedger(f"{problem.file} does not fit what this ledger holds: {problem.message}")
    return names

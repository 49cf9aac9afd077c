"""Build the events that publish rulesets, and publish the shipped rulesets that a ledger does not have."""

from collections.abc import Iterable

from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.intake import ImportPolicy
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import Log, head, read_live
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.admission.proposals import propose
from ratings_ledger.projections.queries.coordinates import load_times
from ratings_ledger.projections.rulesets.shipped_rulesets import find_shipped, read_rated_game
from ratings_ledger.projections.rulesets.versions import ELO, SHIPPED_AT, read_shipped_texts, read_toml

# the name of the set of shipped rulesets that `init` publishes
SHIPPED_BY_INIT = "all"


def _read_live_publications(connection: Connection) -> list[KnownEvent]:
    return read_live(connection, until=head(connection).position, type_name="ruleset.published")


def build_ruleset_items(ledger: Ledger, rulesets: Iterable[tuple[str, Ruleset]], at: str | None = None) -> list[Item]:
    """Return the events that publish rulesets.

    Args:
        ledger: the ledger, which determines the ids of the events.
        rulesets: each ruleset, with the name of its file, or its own name, for messages.
        at: the time of publication as text, by default now.
    """
    items = []
    at = at or format_instant(clock.now())
    with ledger.reading() as connection:
        live_ids = {event.event_id for event in _read_live_publications(connection)}
        for name, ruleset in rulesets:
            data = ruleset.model_dump(exclude_unset=True, exclude_none=True)
            event = {"type": "ruleset.published", "occurred_at": at, "data": data}
            event_id = f"ruleset:{ruleset.name}"
            # a version published again after its withdrawal needs another id
            if event_id in live_ids or Log(connection).event(event_id) is None:
                event["id"] = event_id
            items.append(Item(name, 1, event, None))
    return items


def load_shipped_texts(
    ledger: Ledger, name: str = SHIPPED_BY_INIT, games: Iterable[str] = (), zone: str | None = None
) -> list[str]:
    """Return the texts of the shipped rulesets that `init` publishes, or of a single ruleset by name.

    Args:
        ledger: the ledger whose home zone is the default zone.
        name: the name of a shipped ruleset; if only games are given, it is Elo.
        games: the games to rate, for a ruleset that leaves its game open.
        zone: the time zone, for a ruleset that leaves its zone open; by default the ledger's home zone, or UTC if it
            has none.

    Raises:
        BadArgument: the name is unknown, games are missing, or games or a zone do not apply to the ruleset.
        Refused: (bad-slug) a game's name is not valid.
    """
    if name == SHIPPED_BY_INIT and not games:
        if zone is not None:
            raise BadArgument("a zone applies to one shipped ruleset; name it", "zone")
        return read_shipped_texts()
    ruleset = find_shipped(ELO if name == SHIPPED_BY_INIT else name)
    ruleset.refuse_choice(bool(games), zone is not None)
    if zone is None and ruleset.takes_zone:
        with ledger.reading() as connection:
            zone = load_times(connection).zone
    slugs = [read_rated_game(ruleset.id, game) for game in dict.fromkeys(games)]
    return [text for slug in slugs or [""] for text in ruleset.fill_in(slug, zone or "UTC")]


def list_missing(ledger: Ledger, texts: Iterable[str], *, only_new_ids: bool = False) -> tuple[list[str], list[Item]]:
    """Return the names of the rulesets that are not published yet, and the events that publish them.

    With `only_new_ids`, a ruleset counts as published if any version of it is.
    """
    with ledger.reading() as connection:
        publications = _read_live_publications(connection)
    published = {(event.data["id"], only_new_ids or event.data["version"]) for event in publications}
    missing = []
    for text in texts:
        ruleset, problems = read_toml(text)
        assert ruleset is not None, problems
        if (ruleset.id, only_new_ids or ruleset.version) not in published:
            missing.append((ruleset.name, ruleset))
    return [name for name, _ in missing], build_ruleset_items(ledger, missing, SHIPPED_AT)


def publish_missing(ledger: Ledger, by: str, texts: Iterable[str], *, only_new_ids: bool = False) -> list[str]:
    """Publish the rulesets that are not published yet; return their names. `only_new_ids` is as in `list_missing`.

    Raises `Refused` if a ruleset conflicts with the published ones.
    """
    names, items = list_missing(ledger, texts, only_new_ids=only_new_ids)
    result = propose(ledger, items, ImportPolicy(by)).append()
    for rejection in result.rejected:
        raise Refused(rejection.code, f"{rejection.file} conflicts with this ledger: {rejection.message}")
    return names

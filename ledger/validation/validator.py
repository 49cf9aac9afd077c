"""Whether a new event fits what the log holds and what waits before it: revisions, identities, ladders;
and whether each event of a whole log does."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import dump, format_instant, parse_instant, parse_object
from ratings_ledger.ledger.events.revisions import (
    CombinedEvents,
    DraftBatch,
    EventLookup,
    KnownEvent,
    find_superseded,
    find_withdrawn,
    is_live,
    refuse_stale,
)
from ratings_ledger.ledger.events.types import TYPES, Draft, corrected_game
from ratings_ledger.ledger.rejections import Refused, Rejection, quote
from ratings_ledger.ledger.store.log import (
    Head,
    Log,
    has_events_after,
    read_events_of_type,
    read_known_events,
    read_naming,
    read_records,
    read_records_at,
    read_where,
    withdrawn_ids,
)
from ratings_ledger.ledger.validation import leagues, published_lists
from ratings_ledger.ledger.validation.batches import refuse_batch
from ratings_ledger.ledger.validation.identities import (
    Identities,
    club_identities,
    clubs_of,
    find_meeting,
    finished_games,
    identities,
    players_of,
)

# events appended by others that can change the outcome for one's own
WATCHED = tuple(name for name, kind in TYPES.items() if kind.is_watched)


DAY = 86_400_000_000  # microseconds
EARLIEST = parse_instant("1900-01-01T00:00:00Z")


class LadderChecks(Protocol):
    """What the ladders say about a new event. The ledger knows nothing about them."""

    def admit(self, type_name: str, occurred_at: int, data: dict[str, Any]) -> None:
        """Raises `Refused` if they cannot take the event; otherwise it counts for what comes after it."""

    def release(self, type_name: str, data: dict[str, Any]) -> None:
        """Raises `Refused` if an event cannot be withdrawn; otherwise it is gone for what comes after it."""

    def refuse_unknown_game(self, game: str) -> None:
        """Raises `Refused` (unknown-game) if there are rulesets, and none scores games of this name."""


class NoLadderChecks:
    """No ladders, so no objections."""

    def admit(self, type_name: str, occurred_at: int, data: dict[str, Any]) -> None:
        """Take every event."""

    def release(self, type_name: str, data: dict[str, Any]) -> None:
        """Let every event go."""

    def refuse_unknown_game(self, game: str) -> None:
        """Take every game."""


# makes the checks as of a position
LadderChecksAt = Callable[[Connection, int], LadderChecks]


def skip_ladder_checks(connection: Connection, position: int) -> LadderChecks:
    """Return the checks of a ledger without ladders."""
    return NoLadderChecks()


class WaitingEvents(EventLookup, Protocol):
    """What waits to be appended, which can also be searched by name."""

    @property
    def count(self) -> int:
        """Return how many events wait."""

    def naming(self, names: Iterable[str]) -> Iterator[KnownEvent]:
        """Return the waiting events whose text holds one of these names as a whole string, in order."""


class Validator:
    """Validates new events one after the other, and again if others append in the meantime."""

    def __init__(
        self,
        connection: Connection,
        waiting: WaitingEvents,
        ladders: LadderChecksAt,
        seen: int,
        now: int | None = None,
        until: int | None = None,
    ) -> None:
        """Read what the checks need.

        Args:
            connection: a connection to the ledger.
            waiting: what waits to be appended.
            ladders: makes what the ladders say.
            seen: the position of the log's head, at which they are made.
            now: the current time, if games at unlikely dates are to be refused.
            until: up to where the log counts, by default all of it.
        """
        self._ladders_of = ladders
        self._now = now
        self._until = until
        self._outdated = False
        self._load(connection, waiting, seen)

    def _load(self, connection: Connection, waiting: WaitingEvents, seen: int) -> None:
        self.seen = seen
        self._connection = connection
        self._waiting = waiting
        self._events = CombinedEvents(Log(connection) if self._until is None else Log(connection, self._until), waiting)
        self._identities = identities(connection, seen)
        self._club_identities: Identities | None = None
        self._ladders = self._ladders_of(connection, seen)
        self._leagues: dict[str, leagues.League | None] = {}

    @property
    def _clubs(self) -> Identities:
        if self._club_identities is None:  # few logs rename any
            self._club_identities = club_identities(self._connection, self.seen)
        return self._club_identities

    def validate(self, draft: Draft, data: dict[str, Any]) -> str | None:
        """Return the id of the event that this one supersedes, or None. Raises `Refused` if it does not fit."""
        refuse_stale(self._events, draft)
        supersedes, game = find_superseded(self._events, draft.type, data)
        if draft.type == "game.corrected" and game is not None:
            self._refuse_unlikely(draft.occurred_at)
            corrected, played_at = corrected_game(data, game.occurred_at)
            if played_at != game.occurred_at:
                self._refuse_unlikely(played_at)
            self._new("game.recorded", played_at, corrected)
        elif draft.type == "game.reinstated" and game is not None:
            self._refuse_game(game.data)
        elif draft.type == "event.voided":
            self._void(data["id"])
        elif draft.type == "import.recorded":
            refuse_batch(draft.position, data, self.seen + self._waiting.count + 1)
        elif draft.type != "game.voided":
            if draft.type == "game.recorded":
                self._refuse_unlikely(draft.occurred_at)
            self._new(draft.type, draft.occurred_at, data)
        return supersedes

    def recheck(
        self, connection: Connection, before: Head, fresh: Sequence[tuple[int, Draft]]
    ) -> list[tuple[int, Rejection]]:
        """Under the lock: which drafts must be refused, since others appended after what was seen."""
        others = before.position != self.seen
        self._outdated |= others and has_events_after(connection, self.seen, WATCHED)
        far_reaching = any(TYPES[draft.type].is_far for _, draft in fresh)
        if not (self._outdated or (others and far_reaching)):
            return []
        refused = []
        batch = DraftBatch()
        self._load(connection, batch, before.position)
        for index, draft in fresh:
            try:
                batch.add(draft, self.validate(draft, parse_object(draft.data.encode())))
            except Refused as problem:
                refused.append((index, problem.rejection()))
        return refused

    def _refuse_unlikely(self, played_at: int) -> None:
        """Raises `Refused` (unlikely-date) for a game that nobody can have played yet, or hardly anybody remembers."""
        if self._now is not None and (why := explain_unlikely_date(played_at, self._now)):
            raise Refused("unlikely-date", f"{why} (--any-date takes it)")

    def refuse_unknown_game(self, game: str) -> None:
        """Raises `Refused` (unknown-game) if there are rulesets, and none scores games of this name."""
        self._ladders.refuse_unknown_game(game)

    def _new(self, type_name: str, occurred_at: int, data: dict[str, Any]) -> None:
        """An event, or a game as corrected, comes into force."""
        if type_name == "game.recorded":
            self._refuse_game(data)
        elif type_name == "player.renamed":
            self._rename(data["player"], data["new_player"])
        elif type_name == "club.renamed":
            self._rename_club(data["club"], data["new_club"])
        elif type_name in leagues.TYPES:
            data = self._league_step(type_name, data)
        elif type_name == "list.scheduled":
            published_lists.refuse_list_schedule(self._events, data)
        elif type_name == "list.published":
            published_lists.refuse_list(self._events, data, occurred_at, self.seen + self._waiting.count + 1)
        try:
            self._ladders.admit(type_name, occurred_at, data)
        except Refused:
            if type_name == "player.renamed":  # it counts for nothing that follows
                self._identities.remove(data["player"])
            raise

    def _void(self, event_id: str) -> None:
        root, was_live = find_withdrawn(self._events, event_id)
        if not was_live:
            # a publication is back in force, whatever has been published since
            if root.type not in published_lists.TYPES:
                self._new(root.type, root.occurred_at, root.data)
            return
        if root.type in leagues.TYPES:
            self._leagues.clear()
            leagues.refuse_withdrawn(self._events, root)
        if root.type == "list.rows":
            published_lists.refuse_rows_withdrawn(self._events, root.data)
        self._ladders.release(root.type, root.data)
        if root.type == "player.renamed":
            self._identities.remove(root.data["player"])
        if root.type == "club.renamed":
            self._clubs.remove(root.data["club"])

    def _refuse_game(self, game: Mapping[str, Any]) -> None:
        self._identities.refuse_game(game)
        if (name := game.get("league")) is not None:
            if name not in self._leagues:
                self._leagues[name] = leagues.find_league(self._events, name)
            if (league := self._leagues[name]) is not None:
                leagues.refuse_game(league, game, self._identities.current)

    def _league_step(self, type_name: str, data: dict[str, Any]) -> dict[str, Any]:
        """Return the event with what ladders need to know: the league's game, and when the player finished games."""
        name = data["league"]
        self._leagues.clear()
        if type_name == "league.created":
            leagues.refuse_created(self._events, name, self._naming({name}))
            return data
        league = leagues.require_league(self._events, name)
        if type_name == "league.scheduled":
            leagues.refuse_schedule(self._events, league, data["games"])
            return data
        leagues.refuse_joined(league, data["player"], self._identities.current)
        ids = self._identities.ids(data["player"])
        return data | {"game": league.game, "finished": finished_games(self._naming(ids), self._events, ids)}

    def _rename(self, player: str, new_player: str) -> None:
        self._identities.refuse_rename(player, new_player, partial(self._position_of_rename, "player"))
        some, others = self._identities.ids(player), self._identities.ids(new_player)
        named = [event for event in self._naming(some) if players_of(event) & some]
        if not named:
            hint = self._events.similar("player", player)
            raise Refused("player-unknown", f"nothing is recorded about {quote(player)}; see: ratings games{hint}")
        if (game_id := find_meeting(named, self._events, some, others)) is not None:
            raise Refused(
                "players-met",
                f"{quote(player)} and {quote(new_player)} met in {quote(game_id)}, so they are two people; if that "
                "game is wrong, correct it first",
            )
        leagues.refuse_one_person(self._events, named, others)
        self._identities.add(player, new_player)

    def _rename_club(self, club: str, new_club: str) -> None:
        """Clubs may have met: several players of a game may be of one club."""
        self._clubs.refuse_rename(club, new_club, partial(self._position_of_rename, "club"))
        ids = self._clubs.ids(club)
        if not any(clubs_of(event) & ids for event in self._naming(ids)):
            raise Refused("club-unknown", f"nobody has played for {quote(club)}; see: ratings games")
        self._clubs.add(club, new_club)

    def _position_of_rename(self, what: str, name: str) -> int | None:
        """Return where the live rename of a player or a club is recorded; None if it waits to be, too."""
        for event in self._naming({name}):
            if event.type == f"{what}.renamed" and event.data[what] == name and is_live(self._events, event):
                return event.position
        return None

    def _naming(self, names: set[str]) -> Iterator[KnownEvent]:
        yield from read_naming(self._connection, sorted(names), self._until)
        yield from self._waiting.naming(sorted(names))


# Whether each event of a log fits those before it, as an import would have validated it at that point. `verify` and
# `--restore` both ask here, so that one accepts exactly what the other is silent about. What an option of the import
# can allow does not matter, nor what depends on rules from packages.

# almost all records end like this; the members of a record are in order
PLAIN_END = '"type":"game.recorded"}'


def misfits(
    connection: Connection,
    until: int,
    ladders: LadderChecksAt = skip_ladder_checks,
) -> Iterator[tuple[int, Refused]]:
    """(position, why) of each event up to a position that does not fit those before it.

    A record that is not a valid event is left out, as in a replay.
    """
    before, wrong = _Before(connection, until), False
    validator = Validator(connection, before, ladders, seen=0, until=0)
    gone = withdrawn_ids(connection, until)
    for page in read_records(connection, until=until):
        for position, record in page:
            if record.endswith(PLAIN_END) and position not in before.games:
                continue
            event = next(read_known_events([(position, record)]), None)
            # a withdrawn list claims nothing
            if event is None or (event.type == "list.published" and event.event_id in gone):
                continue
            before.until = position - 1
            try:
                validator.validate(
                    Draft(event.event_id, event.type, 0, "", event.occurred_at, "", position=position), event.data
                )
            except Refused as problem:
                wrong = True
                yield position, problem
            except (LookupError, ValueError, AssertionError):
                if not wrong:
                    raise
                yield position, Refused("restore-mismatch", "it depends on an event that does not fit")


class _Before(Log):
    """The events before a given one in a log, as if they were waiting before it (`validator.WaitingEvents`).

    `games` are the positions of games that involve a rename or a league that was created.
    """

    def __init__(self, connection: Connection, until: int) -> None:
        super().__init__(connection, until=0)
        self.games: set[int] = set()
        # where the names that are asked for occur: those of renames and of leagues
        self._places: dict[str, list[int]] = {}
        renames = _data(connection, until, "player.renamed")
        ids = {name for data in renames for name in (data["player"], data["new_player"])}
        renames = _data(connection, until, "club.renamed")
        clubs = {name for data in renames for name in (data["club"], data["new_club"])}
        leagues = {data["league"] for data in _data(connection, until, "league.created")}
        sought = ids | clubs | leagues
        # unless a name needs escaping, a record that has it has it between quotation marks; other records are not read
        every = any(dump(name) != f'"{name}"' for name in sought)
        for page in read_records(connection, until=until) if sought else ():
            naming = (row for row in page if every or not sought.isdisjoint(row[1].split('"')))
            for event in read_known_events(naming):
                self._note(event, ids, leagues)
                for name in clubs_of(event) & clubs:
                    self._places.setdefault(name, []).append(event.position or 0)

    def _note(self, event: KnownEvent, ids: set[str], leagues: set[str]) -> None:
        named = players_of(event) & ids
        data = event.data["game"] if event.type == "game.corrected" else event.data
        label = str(data.get("league", "")) if event.type.startswith("game.") else ""
        if event.type == "game.recorded" and (len(named) > 1 or label in leagues):
            self.games.add(event.position or 0)
        for name in named | ({label} & leagues):
            self._places.setdefault(name, []).append(event.position or 0)

    @property
    def count(self) -> int:
        """Return how many events there are before."""
        return self.until

    def naming(self, names: Iterable[str]) -> Iterator[KnownEvent]:
        """Yield the events that have one of these names, which must be a renamed player's or club's, or a league's."""
        places = {position for name in names for position in self._places.get(name, ()) if position <= self.until}
        yield from read_known_events(sorted(read_records_at(self.connection, sorted(places)).items()))


def _data(connection: Connection, until: int, type_name: str) -> list[dict[str, str]]:
    found = read_where(connection, until=until, type_name=type_name)
    return [event.data for event in read_events_of_type(type_name, found)]


def explain_unlikely_date(played_at: int, now: int) -> str | None:
    """Return why hardly any game was played then, given the current time; or None."""
    if EARLIEST <= played_at <= now + DAY:
        return None
    if played_at < EARLIEST:
        why = "lies before 1900; is the century missing?"
    else:
        why = f"lies ahead: this machine's clock says {format_instant(now)[:19]}Z"
    return f"{format_instant(played_at)[:19]}Z {why}"

"""Validate new events against the log and the waiting events before them: revisions, identities, leagues, ladders.

The same checks validate each event of a whole log against the events before it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import dump, format_instant, parse_instant, parse_object
from ratings_ledger.ledger.events.revisions import (
    CombinedEvents,
    DraftIndex,
    EventLookup,
    KnownEvent,
    find_superseded,
    find_voided_root,
    is_live,
    refuse_stale,
)
from ratings_ledger.ledger.events.types import TYPES, Draft, read_corrected_game
from ratings_ledger.ledger.rejections import Refused, Rejection, quote
from ratings_ledger.ledger.store.log import (
    Head,
    Log,
    find_withdrawn_ids,
    has_events_after,
    read_events_naming,
    read_events_of_type,
    read_known_events,
    read_matching_records,
    read_records,
    read_records_at,
)
from ratings_ledger.ledger.validation import leagues, published_lists
from ratings_ledger.ledger.validation.batches import refuse_misplaced_batch
from ratings_ledger.ledger.validation.identities import (
    Identities,
    find_shared_game,
    list_clubs,
    list_finish_times,
    list_players,
    read_club_identities,
    read_identities,
)

# the types of events that can make waiting events invalid if another process appends such an event
WATCHED = tuple(name for name, event_type in TYPES.items() if event_type.is_watched)


DAY = 86_400_000_000  # microseconds
EARLIEST_LIKELY = parse_instant("1900-01-01T00:00:00Z")


class LadderChecks(Protocol):
    """Checks of new events by the ladders. The package `projections` implements them, because it knows the ladders."""

    def admit(self, type_name: str, occurred_at: int, data: dict[str, Any]) -> None:
        """Raise `Refused` if a ladder cannot accept the event; otherwise include it in the checks of later events."""

    def release(self, type_name: str, data: dict[str, Any]) -> None:
        """Raise `Refused` if an event cannot be withdrawn; otherwise exclude it from the checks of later events."""

    def refuse_unknown_game(self, data: dict[str, Any]) -> None:
        """Raise `Refused` (unknown-game) if rulesets exist, but none of them scores games of this name."""


class NoLadderChecks:
    """Checks that accept every event, for a ledger without ladders."""

    def admit(self, type_name: str, occurred_at: int, data: dict[str, Any]) -> None:
        """Accept every event."""

    def release(self, type_name: str, data: dict[str, Any]) -> None:
        """Accept every withdrawal."""

    def refuse_unknown_game(self, data: dict[str, Any]) -> None:
        """Accept every game."""


# (connection, position) -> the ladders' checks as of that position
LadderChecksAt = Callable[[Connection, int], LadderChecks]


def skip_ladder_checks(connection: Connection, position: int) -> LadderChecks:
    """Return the checks of a ledger without ladders."""
    return NoLadderChecks()


class WaitingEvents(EventLookup, Protocol):
    """The events that wait to be appended; they can also be searched by name."""

    @property
    def count(self) -> int:
        """Return the number of waiting events."""

    def find_events_naming(self, names: Iterable[str]) -> Iterator[KnownEvent]:
        """Yield the waiting events whose data contains one of these names as a string, in order."""


class Validator:
    """A validator of new events. It checks them in order, and once more if another process has appended meanwhile."""

    def __init__(
        self,
        connection: Connection,
        waiting: WaitingEvents,
        ladders: LadderChecksAt,
        checked_head: int,
        now: int | None = None,
        until: int | None = None,
    ) -> None:
        """Load the state of the ledger.

        Args:
            connection: A connection to the ledger.
            waiting: The events that wait to be appended.
            ladders: Creates the checks of the ladders.
            checked_head: The position of the log's head for which the state is loaded.
            now: The current time in microseconds, to refuse games at unlikely dates; None accepts any date.
            until: The last position of the log in which events are looked up, by default the head.
        """
        self._create_ladder_checks = ladders
        self._now = now
        self._until = until
        self._outdated = False
        self._load(connection, waiting, checked_head)

    def _load(self, connection: Connection, waiting: WaitingEvents, checked_head: int) -> None:
        self.checked_head = checked_head
        self._connection = connection
        self._waiting = waiting
        self._events = CombinedEvents(Log(connection) if self._until is None else Log(connection, self._until), waiting)
        self._identities = read_identities(connection, checked_head)
        self._club_identities: Identities | None = None
        self._ladders = self._create_ladder_checks(connection, checked_head)
        self._leagues: dict[str, leagues.League | None] = {}

    @property
    def _clubs(self) -> Identities:
        if self._club_identities is None:  # loaded on first use, because few logs rename clubs
            self._club_identities = read_club_identities(self._connection, self.checked_head)
        return self._club_identities

    @property
    def _next_position(self) -> int:
        return self.checked_head + self._waiting.count + 1

    def validate(self, draft: Draft, data: dict[str, Any]) -> str | None:
        """Return the id of the event that a draft supersedes, or None. Raises `Refused` if the draft is invalid."""
        refuse_stale(self._events, draft)
        supersedes, game = find_superseded(self._events, draft.type, data)
        if draft.type == "game.corrected" and game is not None:
            self._refuse_unlikely_date(draft.occurred_at)
            corrected_game, played_at = read_corrected_game(data, game.occurred_at)
            if played_at != game.occurred_at:
                self._refuse_unlikely_date(played_at)
            self._admit("game.recorded", played_at, corrected_game)
        elif draft.type == "game.reinstated" and game is not None:
            self._refuse_game(game.data)
        elif draft.type == "event.voided":
            self._withdraw(data["id"])
        elif draft.type == "import.recorded":
            refuse_misplaced_batch(draft.position, data, self._next_position)
        elif draft.type != "game.voided":
            if draft.type == "game.recorded":
                self._refuse_unlikely_date(draft.occurred_at)
            self._admit(draft.type, draft.occurred_at, data)
        return supersedes

    def recheck(
        self, connection: Connection, current_head: Head, indexed_drafts: Sequence[tuple[int, Draft]]
    ) -> list[tuple[int, Rejection]]:
        """Validate drafts again under the append lock if events appended meanwhile may affect them.

        Return the index that came with each refused draft, and its refusal.
        """
        has_moved = current_head.position != self.checked_head
        self._outdated |= has_moved and has_events_after(connection, self.checked_head, WATCHED)
        depends_on_any_event = any(TYPES[draft.type].depends_on_any_event for _, draft in indexed_drafts)
        if not (self._outdated or (has_moved and depends_on_any_event)):
            return []
        refused = []
        earlier_drafts = DraftIndex()
        self._load(connection, earlier_drafts, current_head.position)
        for index, draft in indexed_drafts:
            try:
                earlier_drafts.add(draft, self.validate(draft, parse_object(draft.data.encode())))
            except Refused as problem:
                refused.append((index, problem.to_rejection()))
        return refused

    def _refuse_unlikely_date(self, played_at: int) -> None:
        """Raise `Refused` (unlikely-date) for a game more than a day in the future, or before 1900."""
        if self._now is not None and (reason := explain_unlikely_date(played_at, self._now)):
            raise Refused("unlikely-date", f"{reason}; if the date is right, pass --any-date")

    def refuse_unknown_game(self, data: dict[str, Any]) -> None:
        """Raise `Refused` (unknown-game) if rulesets exist, but none of them scores games of this name."""
        self._ladders.refuse_unknown_game(data)

    def _admit(self, type_name: str, occurred_at: int, data: dict[str, Any]) -> None:
        """Check an event that takes effect, or the game that results from a correction."""
        if type_name == "game.recorded":
            self._refuse_game(data)
        elif type_name == "player.renamed":
            self._rename(data["player"], data["new_player"])
        elif type_name == "club.renamed":
            self._rename_club(data["club"], data["new_club"])
        elif type_name in leagues.TYPES:
            data = self._check_league_event(type_name, data)
        elif type_name == "list.scheduled":
            published_lists.refuse_list_schedule(self._events, data)
        elif type_name == "list.published":
            published_lists.refuse_list(self._events, data, occurred_at, self._next_position)
        try:
            self._ladders.admit(type_name, occurred_at, data)
        except Refused:
            if type_name == "player.renamed":  # a refused rename must not count for later events
                self._identities.remove(data["player"])
            raise

    def _withdraw(self, event_id: str) -> None:
        """Check the void of an event. The void of a void puts the event at the root of the chain back in force."""
        root, was_live = find_voided_root(self._events, event_id)
        if not was_live:
            # a published list may be put back in force even if later lists followed it
            if root.type not in published_lists.TYPES:
                self._admit(root.type, root.occurred_at, root.data)
            return
        if root.type in leagues.TYPES:
            self._leagues.clear()
            leagues.refuse_withdrawal(self._events, root)
        if root.type == "list.rows":
            published_lists.refuse_rows_withdrawal(self._events, root.data)
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

    def _check_league_event(self, type_name: str, data: dict[str, Any]) -> dict[str, Any]:
        """Check an event of a league, and return its data.

        For a subscription, add the league's game and the times at which the player finished games.
        """
        name = data["league"]
        self._leagues.clear()
        if type_name == "league.created":
            leagues.refuse_creation(self._events, name, self._read_naming({name}))
            return data
        league = leagues.require_league(self._events, name)
        if type_name == "league.scheduled":
            leagues.refuse_schedule(self._events, league, data["games"])
            return data
        leagues.refuse_subscription(league, data["player"], self._identities.current)
        ids = self._identities.ids(data["player"])
        return data | {"game": league.game, "finished": list_finish_times(self._read_naming(ids), self._events, ids)}

    def _rename(self, player: str, new_player: str) -> None:
        """Check and apply the rename of a player."""
        self._identities.refuse_rename(player, new_player, partial(self._find_rename, "player"))
        own_ids, other_ids = self._identities.ids(player), self._identities.ids(new_player)
        player_events = [event for event in self._read_naming(own_ids) if list_players(event) & own_ids]
        if not player_events:
            hint = self._events.suggest_similar("player", player, self._identities.current)
            raise Refused("player-unknown", f"nothing is recorded about {quote(player)}; see: ratings games{hint}")
        if (game_id := find_shared_game(player_events, self._events, own_ids, other_ids)) is not None:
            raise Refused(
                "players-met",
                f"{quote(player)} and {quote(new_player)} both played {quote(game_id)}, so they cannot be one person; "
                "if that game is wrong, correct it first",
            )
        leagues.refuse_merge_of_league_players(self._events, player_events, other_ids)
        self._identities.add(player, new_player)

    def _rename_club(self, club: str, new_club: str) -> None:
        """Check and apply the rename of a club. Both names may occur in one game: its players may share a club."""
        self._clubs.refuse_rename(club, new_club, partial(self._find_rename, "club"), "name")
        ids = self._clubs.ids(club)
        if not any(list_clubs(event) & ids for event in self._read_naming(ids)):
            raise Refused("club-unknown", f"no player has played for the club {quote(club)}; see: ratings games")
        self._clubs.add(club, new_club)

    def _find_rename(self, kind: str, name: str) -> int | None:
        """Return the position of the live rename of a player or a club; None if it is not in the log."""
        for event in self._read_naming({name}):
            if event.type == f"{kind}.renamed" and event.data[kind] == name and is_live(self._events, event):
                return event.position
        return None

    def _read_naming(self, names: set[str]) -> Iterator[KnownEvent]:
        yield from read_events_naming(self._connection, sorted(names), self._until)
        yield from self._waiting.find_events_naming(sorted(names))


# Below, each event of a log is validated against the events before it, as in an import. Both `verify` and `--restore`
# do this, so that a restore accepts exactly the logs in which `verify` finds nothing. Checks that an option of the
# import can waive, and checks by rules from packages, are left out.

# the end of the records of games; the members of a record are in a fixed order
GAME_RECORD_END = '"type":"game.recorded"}'


def find_misfits(
    connection: Connection,
    until: int,
    ladders: LadderChecksAt = skip_ladder_checks,
) -> Iterator[tuple[int, Refused]]:
    """Yield (position, refusal) for each event that contradicts earlier events, up to position `until`.

    Invalid records are left out, as in a replay.
    """
    earlier, has_misfit = _EarlierEvents(connection, until), False
    validator = Validator(connection, earlier, ladders, checked_head=0, until=0)
    withdrawn = find_withdrawn_ids(connection, until)
    for page in read_records(connection, until=until):
        for position, record in page:
            if record.endswith(GAME_RECORD_END) and position not in earlier.games:
                continue
            event = next(read_known_events([(position, record)]), None)
            # a withdrawn list need not have the right rows
            if event is None or (event.type == "list.published" and event.event_id in withdrawn):
                continue
            earlier.until = position - 1
            try:
                validator.validate(
                    Draft(
                        event_id=event.event_id,
                        type=event.type,
                        schema_version=0,
                        subject="",
                        occurred_at=event.occurred_at,
                        data="",
                        position=position,
                    ),
                    event.data,
                )
            except Refused as problem:
                has_misfit = True
                yield position, problem
            except (LookupError, ValueError, AssertionError):
                if not has_misfit:
                    raise
                message = "the event depends on another event that contradicts earlier events"
                yield position, Refused("restore-mismatch", message)


class _EarlierEvents(Log):
    """The events before a position of a log, in the role of `WaitingEvents`.

    `games` are the positions of the games that need a check: games with several renamed players, and games of leagues.
    """

    def __init__(self, connection: Connection, until: int) -> None:
        super().__init__(connection, until=0)
        self.games: set[int] = set()
        # the positions of the events that the checks look up, by the renamed player, renamed club or league they name
        self._positions: dict[str, list[int]] = {}
        player_renames = _read_data(connection, until, "player.renamed")
        ids = {name for data in player_renames for name in (data["player"], data["new_player"])}
        club_renames = _read_data(connection, until, "club.renamed")
        clubs = {name for data in club_renames for name in (data["club"], data["new_club"])}
        league_names = {data["league"] for data in _read_data(connection, until, "league.created")}
        names = ids | clubs | league_names
        # only records with a name between quotation marks are parsed, unless JSON escapes one of the names
        reads_all = any(dump(name) != f'"{name}"' for name in names)
        for page in read_records(connection, until=until) if names else ():
            rows = (row for row in page if reads_all or not names.isdisjoint(row[1].split('"')))
            for event in read_known_events(rows):
                self._index_names(event, ids, league_names)
                for name in list_clubs(event) & clubs:
                    self._positions.setdefault(name, []).append(event.position or 0)

    def _index_names(self, event: KnownEvent, ids: set[str], league_names: set[str]) -> None:
        renamed = list_players(event) & ids
        data = event.data["game"] if event.type == "game.corrected" else event.data
        label = str(data.get("league", "")) if event.type.startswith("game.") else ""
        if event.type == "game.recorded" and (len(renamed) > 1 or label in league_names):
            self.games.add(event.position or 0)
        for name in renamed | ({label} & league_names):
            self._positions.setdefault(name, []).append(event.position or 0)

    @property
    def count(self) -> int:
        """Return the number of earlier events."""
        return self.until

    def find_events_naming(self, names: Iterable[str]) -> Iterator[KnownEvent]:
        """Yield the events with one of these names; the names must be of renamed players, renamed clubs or leagues."""
        positions = {position for name in names for position in self._positions.get(name, ()) if position <= self.until}
        yield from read_known_events(sorted(read_records_at(self.connection, sorted(positions)).items()))


def _read_data(connection: Connection, until: int, type_name: str) -> list[dict[str, str]]:
    rows = read_matching_records(connection, until=until, type_name=type_name)
    return [event.data for event in read_events_of_type(type_name, rows)]


def explain_unlikely_date(played_at: int, now: int) -> str | None:
    """Describe what is unlikely about the time of a game, given the current time; None if the time is likely."""
    if EARLIEST_LIKELY <= played_at <= now + DAY:
        return None
    if played_at < EARLIEST_LIKELY:
        reason = "is before 1900; the century may be missing"
    else:
        reason = f"is in the future: this machine's clock says {format_instant(now)[:19]}Z"
    return f"{format_instant(played_at)[:19]}Z {reason}"

"""Shared setup for every query: the ladders at the given coordinates, plus notes on what is unusual about them.

Facts are decoded once per position, and ladders made once per moment. A query that reads little is repeated where a
kept file turns out to be damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, wraps
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import RuleFailed, Unknown
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.published_lists import PublishedList, published_lists
from ratings_ledger.projections.facts.column_files import Damaged, Unreadable
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.coordinates import (
    UTC_NOON,
    Note,
    Times,
    UnknownLadder,
    date_zone,
    instant_played,
    note_ahead,
    position_known,
    ruleset_ids,
    time_zone,
    times_of,
)
from ratings_ledger.projections.queries.known_names import full_name
from ratings_ledger.projections.queries.ladders_at import (
    KeptLadders,
    Ladders,
    check_version,
    other_ladder,
    refuse_unknown,
    versions_of,
)
from ratings_ledger.projections.replay.containment import RuleFailure, told_with_game
from ratings_ledger.projections.replay.ladders import parse_name, short_name

if TYPE_CHECKING:
    from ratings_ledger.projections.queries.survey import Survey


P = ParamSpec("P")
T = TypeVar("T")


class Query(NamedTuple):
    """A connection, the ladders at the coordinates that one ladder's zone gives, how times are shown, and the whole
    name of that ladder.
    """

    connection: Connection
    ladders: Ladders
    times: Times
    ladder: str

    def current(self, player: str) -> str:
        """Return the current id of a player. Raises `Unknown` (player-unknown)."""
        refuse_unknown(self.ladders.facts, player)
        return self.ladders.facts.current(player)


class KnownLog:
    """A connection, and the log up to the position that `known_at` means."""

    def __init__(self, connection: Connection, position: int, times: Times | None) -> None:
        self.connection = connection
        self.position = position
        self._times = times

    @cached_property
    def times(self) -> Times:
        """Return how this ledger shows times, which takes a look at its home zone."""
        return self._times or times_of(self.connection)


def retry_on_damaged_cache(query: Callable[P, T]) -> Callable[P, T]:
    """Let a snapshot's method read only what it needs of a cache; where that proves damaged, delete it and try again.

    The second time everything is checked first.
    """

    @wraps(query)
    def run(*arguments: P.args, **options: P.kwargs) -> T:
        try:
            return query(*arguments, **options)
        except (Damaged, Unreadable) as problem:
            snapshot: Any = arguments[0]
            snapshot._kept.forget(problem)
            snapshot._session.queries.clear()
            return query(*arguments, **options)

    return run


class _Session(local):
    """What one thread holds while it stays: a connection, how times are shown, and its queries by ladder."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.times: Times | None = None
        self.queries: dict[str, Query] = {}


class SnapshotReader:
    """The ledger at one set of coordinates; it holds no connection, except for a thread that stays.

    With `close_now`, games in open rating periods are scored as if these closed now.
    What is unusual about an answer, though not wrong, is in `notes`, or goes to `note`.
    """

    def __init__(
        self,
        ledger: Ledger,
        as_of: str | None = None,
        known_at: str | int | None = None,
        rules: str | None = None,
        *,
        close_now: bool = False,
        note: Note | None = None,
        kept: KeptLadders | None = None,
    ) -> None:
        self.ledger = ledger
        self.as_of = as_of
        self.known_at = known_at
        self.rules = rules
        self.close_now = close_now
        self.notes: list[str] = []
        self._tell = self.notes.append if note is None else note
        self._told: set[str] = set()
        self._kept = kept or KeptLadders()
        self._session = _Session()

    def __repr__(self) -> str:
        """Return where the ledger is, and the coordinates as they were asked for; others do not limit anything."""
        asked = {"as_of": self.as_of, "known_at": self.known_at, "rules": self.rules}
        told = [f"{name}={value!r}" for name, value in asked.items() if value is not None]
        told += ["close_now=True"] * self.close_now
        return f"Snapshot({', '.join([repr(self.ledger.location), *told])})"

    @contextmanager
    def staying(self) -> Iterator[None]:
        """Answer several queries on one connection, during which the log and the home zone are taken to stay the same.

        Other threads use connections of their own. Raises `StoreUnavailable`.
        """
        session = self._session
        with self.ledger.reading() as session.connection:
            try:
                session.times = times_of(session.connection)
                yield
            finally:
                session.connection = session.times = None
                session.queries.clear()

    def _times_of(self, connection: Connection) -> Times:
        """Return how this ledger shows times."""
        return self._session.times or times_of(connection)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Provide the connection of this thread's stay, or a new one. Raises `StoreUnavailable`."""
        if self._session.connection is not None:
            yield self._session.connection
            return
        with self.ledger.reading() as connection:
            yield connection

    @contextmanager
    def log(self) -> Iterator[KnownLog]:
        """Provide the log up to `known_at`, of which a date ends in the home zone.

        Raises `BadArgument`, `StoreUnavailable`.
        """
        with self.connect() as connection:
            position = position_known(connection, self.known_at, None, self.note)
            yield KnownLog(connection, position, self._session.times)

    @contextmanager
    def query(self, ladder: str, lazily: bool = False) -> Iterator[Query]:
        """Provide the ladders at the coordinates, for a query about one of them.

        Args:
            lazily: read only what is needed of a cache, in a method with `retry_on_damaged_cache`.

        Raises `BadArgument`, `Unknown`, `RuleFailed`, `RulesetUnusable`, `StoreUnavailable`.
        """
        with self.connect() as connection:
            try:
                if lazily and ladder in self._session.queries:
                    query = self._session.queries[ladder]
                    facts = query.ladders.facts
                    yield query
                    return
                asked = ladder
                # the zone matters only to dates, and finding it takes a look at the rulesets
                is_dated = self.as_of is not None or not (self.known_at is None or str(self.known_at).isdigit())
                times = self._session.times or times_of(connection)
                zone = date_zone(connection, ladder, times) if is_dated else "UTC"
                position = position_known(connection, self.known_at, zone, self.note)
                undated = self._ladders_known(connection, position, lazily)
                facts = undated.facts
                if "/" not in ladder:
                    ladder = full_name(facts, ladder)
                try:
                    versions = versions_of(facts, ladder, self.rules)
                except UnknownLadder:
                    time_zone(connection, ladder)  # says so if there is no such ruleset at any position
                    raise
                ladders = undated.at(instant_played(self.as_of, zone)).of(ladder)
                note_ahead(self.as_of, zone, self.note)
                if self.close_now and versions[0].ruleset.period == "game":
                    self.note(f"{short_name(ladder)} has no rating periods: every game is scored by itself")
                # dates end in this zone, so times are shown in it, too
                times = times if times.home else Times(versions[0].ruleset.time_zone, UTC_NOON)
                self._note_idle(ladders, ladder, times)
                query = Query(connection, ladders, times, ladder)
                if lazily and self._session.connection is not None:
                    self._session.queries[asked] = query  # the log is the same on this connection
                yield query
            except RuleFailure as problem:
                raise RuleFailed(told_with_game(problem, facts, connection), problem.ladder) from None

    @contextmanager
    def survey(self) -> Iterator[Survey]:
        """Provide all ladders at the coordinates. Raises `BadArgument`, `RulesetUnusable`, `StoreUnavailable`."""
        from ratings_ledger.projections.queries.survey import Survey

        with self.log() as log:
            undated = self._ladders_known(log.connection, log.position)
            check_version(undated.facts, self.rules)
            note_ahead(self.as_of, log.times.zone, self.note)
            self._note_early(undated.facts, log.times)
            yield Survey(log.connection, undated, self.as_of, log.times)

    def _ladders_known(self, connection: Connection, position: int, lazily: bool = False) -> Ladders:
        """Return all ladders as known at a position, for no `as_of`; unless `lazily`, their facts are checked first."""
        ladders = (self._kept.at if lazily else self._kept.checked)(connection, position, self.rules)
        return ladders.closed_now() if self.close_now else ladders

    def full_name(self, ladder: str) -> str:
        """Return the whole name of a ladder: elo-chess/all for elo-chess. Raises `BadArgument`, `StoreUnavailable`."""
        if "/" in ladder:
            return ladder
        with self.log() as log:
            return full_name(self._ladders_known(log.connection, log.position, lazily=True).facts, ladder)

    def _in_order(self, left: str, right: str) -> tuple[str, str]:
        """Return a player or game and a ladder, given in either order. Raises `StoreUnavailable`."""
        with self.connect() as connection:
            if self.known_at is None:
                facts = self._ladders_known(connection, head(connection).position, lazily=True).facts
                known = facts.rulesets.keys() | facts.unusable.keys()
            else:
                known = ruleset_ids(connection)
        if parse_name(right).ruleset_id in known:
            return left, self.full_name(right)
        swapped = parse_name(left).ruleset_id in known or ("/" in left and "/" not in right)
        return (right, self.full_name(left)) if swapped else (left, right)

    def _find_list(self, connection: Connection, ladder: str, published_at: int | None = None) -> PublishedList:
        """Return the list of a ladder that `as_of` and `known_at` mean, or the one published at a position.

        Raises `BadArgument`, `Unknown` (list-unknown), `StoreUnavailable`.
        """
        times = self._times_of(connection)
        zone = date_zone(connection, ladder, times)
        instant = instant_played(self.as_of, zone)
        position = position_known(connection, self.known_at, zone, self.note)
        if "/" not in ladder:
            ladder = full_name(self._ladders_known(connection, position, lazily=True).facts, ladder)
        lists = published_lists(connection, position, ladder)
        if published_at is not None:
            lists = [entry for entry in lists if entry.position == published_at]
        else:
            lists = [entry for entry in lists if self.as_of is None or entry.as_of == instant]
        if not lists:
            versions_of(self._ladders_known(connection, position, lazily=True).facts, ladder)
            which = "" if instant is None else f" as of {times.second(instant)}"
            which = which if published_at is None else f" at position {published_at}"
            message = f"no list of {short_name(ladder)}{which} has been published; see: ratings publish --help"
            raise Unknown("list-unknown", message)
        return lists[-1]

    def note(self, text: str) -> None:
        """Report something unusual, once."""
        if text not in self._told:
            self._told.add(text)
            self._tell(text)

    def _note_idle(self, ladders: Ladders, ladder: str, times: Times) -> None:
        """Note when a ladder begins, or which other was probably meant, where nothing had been played on it by then."""
        if ladders.first(ladder) is not None:
            return
        if ladders.as_of is not None and (first := ladders.at(None).first(ladder)):
            instant, kind = first
            self.note(f"the first {kind} on {short_name(ladder)} was at {times.second(instant)}")
        elif message := other_ladder(ladders.facts, ladder):
            self.note(message)

    def _note_early(self, facts: Facts, times: Times) -> None:
        """Note when the first game was, where nothing at all had been played by `as_of`."""
        instant = instant_played(self.as_of, times.zone)
        if instant is None or min(facts.occurred_at, default=instant) <= instant:
            return
        live = [played for row, played in enumerate(facts.occurred_at) if row not in facts.voided]
        if live:
            self.note(f"the first game was at {times.second(int(min(live)))}")

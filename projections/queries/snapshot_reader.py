"""Shared setup for every query: the ladders at the given coordinates, plus notes on what is unusual about them.

Facts are decoded once per position, and ladders made once per moment. A query that reads little is repeated where a
kept file turns out to be damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import RuleFailed, Unknown
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.published_lists import PublishedList, published_lists
from ratings_ledger.projections.facts.checked_columns import Damaged, Unreadable
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.coordinates import (
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
from ratings_ledger.projections.queries.ladders_at import (
    KeptLadders,
    Ladders,
    check_version,
    other_ladder,
    versions_of,
)
from ratings_ledger.projections.replay.containment import RuleFailure, told_with_game
from ratings_ledger.projections.replay.ladders import parse_name

if TYPE_CHECKING:
    from ratings_ledger.projections.queries.survey import Survey


P = ParamSpec("P")
T = TypeVar("T")


class Question(NamedTuple):
    """A connection, the ladders at the coordinates that one ladder's zone gives, and how times are shown."""

    connection: Connection
    ladders: Ladders
    times: Times


def retry_on_damaged_cache(question: Callable[P, T]) -> Callable[P, T]:
    """A view's question that reads little: if a file turns out to be damaged, it is deleted, and the question asked
    again of facts that are checked first."""

    @wraps(question)
    def ask(*arguments: P.args, **options: P.kwargs) -> T:
        try:
            return question(*arguments, **options)
        except (Damaged, Unreadable) as problem:
            view: Any = arguments[0]
            view._kept.forget(problem)
            view._stay.questions.clear()
            return question(*arguments, **options)

    return ask


class _Session(local):
    """What one thread holds while it stays: a connection, how times are shown, and its questions by ladder."""

    def __init__(self) -> None:
        self.held: Connection | None = None
        self.times: Times | None = None
        self.questions: dict[str, Question] = {}


class SnapshotReader:
    """The ledger at coordinates. What is odd about an answer, though not wrong, is in `notes`, or goes to `note`."""

    def __init__(
        self,
        ledger: Ledger,
        as_of: str | None = None,
        known_at: str | int | None = None,
        rules: str | None = None,
        *,
        note: Note | None = None,
        kept: KeptLadders | None = None,
    ) -> None:
        self.ledger = ledger
        self.as_of = as_of
        self.known_at = known_at
        self.rules = rules
        self.notes: list[str] = []
        self._tell = self.notes.append if note is None else note
        self._told: set[str] = set()
        self._kept = kept or KeptLadders()
        self._stay = _Session()

    @contextmanager
    def staying(self) -> Iterator[None]:
        """Ask several questions on one connection, where the log and the home zone are taken to stay the same; other
        threads ask on their own. Raises `StoreUnavailable`.
        """
        stay = self._stay
        with self.ledger.reading() as stay.held:
            try:
                stay.times = times_of(stay.held)
                yield
            finally:
                stay.held = stay.times = None
                stay.questions.clear()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """The connection that is held, or one of its own."""
        if self._stay.held is not None:
            yield self._stay.held
            return
        with self.ledger.reading() as connection:
            yield connection

    @contextmanager
    def asking(self, ladder: str, lazily: bool = False) -> Iterator[Question]:
        """The ladders at the coordinates, for queries about one ladder; `lazily` where a damaged cache is retried.

        Raises `BadArgument`, `Unknown`, `RuleFailed`, `RulesetUnusable`, `StoreUnavailable`.
        """
        with self._reading() as connection:
            try:
                if lazily and ladder in self._stay.questions:
                    found = self._stay.questions[ladder]
                    facts = found.ladders.facts
                    yield found
                    return
                # the zone matters only to dates, and finding it takes a look at the rulesets
                is_dated = self.as_of is not None or not (self.known_at is None or str(self.known_at).isdigit())
                times = self._stay.times or times_of(connection)
                zone = date_zone(connection, ladder, times) if is_dated else "UTC"
                every = self._known(connection, position_known(connection, self.known_at, zone, self.note), lazily)
                facts = every.facts
                try:
                    versions = versions_of(facts, ladder, self.rules)
                except UnknownLadder:
                    time_zone(connection, ladder)  # there is no such ruleset at any position, which is then told
                    raise
                instant = instant_played(self.as_of, zone)
                ladders = every.at(instant)
                note_ahead(self.as_of, zone, self.note)
                # dates end in this zone, so times are shown in it, too
                times = times if times.home else Times(versions[0].ruleset.time_zone)
                self._note_idle(ladders, ladder, times)
                found = Question(connection, ladders, times)
                if lazily and self._stay.held is not None:
                    self._stay.questions[ladder] = found  # the log is the same on this connection
                yield found
            except RuleFailure as problem:
                raise RuleFailed(told_with_game(problem, facts, connection), problem.ladder) from None

    def _in_order(self, one: str, other: str) -> tuple[str, str]:
        """A player or game and a ladder, in whichever order they were given. Raises `StoreUnavailable`."""
        with self._reading() as connection:
            if self.known_at is None:
                facts = self._known(connection, head(connection).position, lazily=True).facts
                known = facts.rulesets.keys() | facts.unusable.keys()
            else:
                known = ruleset_ids(connection)
        if parse_name(other).ruleset_id in known:
            return one, other
        swapped = parse_name(one).ruleset_id in known or ("/" in one and "/" not in other)
        return (other, one) if swapped else (one, other)

    @contextmanager
    def surveying(self) -> Iterator[Survey]:
        """All ladders at the coordinates. Raises `BadArgument`, `RulesetUnusable`, `StoreUnavailable`."""
        from ratings_ledger.projections.queries.survey import Survey

        with self._reading() as connection:
            times = self._stay.times or times_of(connection)
            every = self._known(connection, position_known(connection, self.known_at, None, self.note))
            check_version(every.facts, self.rules)
            note_ahead(self.as_of, times.zone, self.note)
            self._note_early(every.facts, times)
            yield Survey(connection, every, self.as_of, times)

    def _list(self, connection: Connection, ladder: str, published_at: int | None = None) -> PublishedList:
        """The list of a ladder that is meant by `as_of` and `known_at`, or by the position of its publication.

        Raises as `published` does.
        """
        times = self._stay.times or times_of(connection)
        zone = date_zone(connection, ladder, times)
        instant = instant_played(self.as_of, zone)
        position = position_known(connection, self.known_at, zone, self.note)
        lists = published_lists(connection, position, ladder)
        if published_at is not None:
            lists = [one for one in lists if one.position == published_at]
        else:
            lists = [one for one in lists if self.as_of is None or one.as_of == instant]
        if not lists:
            versions_of(self._known(connection, position, lazily=True).facts, ladder)
            played = "" if instant is None else f" as of {times.second(instant)}"
            played = played if published_at is None else f" at position {published_at}"
            told = f"no list of {ladder}{played} has been published; see: ratings publish --help"
            raise Unknown("list-unknown", told)
        return lists[-1]

    def note(self, text: str) -> None:
        """Say something odd, once."""
        if text not in self._told:
            self._told.add(text)
            self._tell(text)

    def _known(self, connection: Connection, position: int, lazily: bool = False) -> Ladders:
        """All ladders, as known at a position; unless `lazily`, their facts are checked."""
        return (self._kept.at if lazily else self._kept.checked)(connection, position, self.rules)

    def _note_idle(self, ladders: Ladders, ladder: str, times: Times) -> None:
        """If nothing had been played on a ladder by then, note when it began, or which other was probably meant."""
        if ladders.first(ladder) is not None:
            return
        if ladders.as_of is not None and (first := ladders.at(None).first(ladder)):
            instant, what = first
            self.note(f"the first {what} on {ladder} was at {times.second(instant)}")
        elif told := other_ladder(ladders.facts, ladder):
            self.note(told)

    def _note_early(self, facts: Facts, times: Times) -> None:
        """If nothing at all had been played by `as_of`, note when the first game was."""
        instant = instant_played(self.as_of, times.zone)
        if instant is None or min(facts.occurred_at, default=instant) <= instant:
            return
        live = [played for row, played in enumerate(facts.occurred_at) if row not in facts.voided]
        if live:
            self.note(f"the first game was at {times.second(int(min(live)))}")

"""Set up every query: load the ladders at the requested coordinates, and note unusual conditions.

Facts are decoded once per position, and ladders are built once per instant. `LadderCache` keeps the ladders at the
positions queried last, so that a further query does not decode the log again. If a query that reads only parts of the
files of facts meets a damaged file, it runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, wraps
from threading import Lock, local
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import RuleFailed, Unknown
from ratings_ledger.ledger.events.records import ZERO
from ratings_ledger.ledger.store.log import head, read_chain_hash
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.published_lists import PublishedList, read_published_lists, select_newest_list
from ratings_ledger.projections.facts.column_files import DamagedFile, UnreadableFile
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode, follow_log
from ratings_ledger.projections.facts.lookups import require_player
from ratings_ledger.projections.queries.coordinates import (
    UTC_NOON,
    Note,
    TimeFormat,
    UnknownLadder,
    check_version,
    find_date_zone,
    find_versions,
    list_ruleset_ids,
    load_times,
    note_future,
    parse_as_of,
    read_first_version,
    resolve_known_at,
)
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.ledger_names import describe_existing_ladders, full_name, suggest_ladder
from ratings_ledger.projections.replay.ladder_names import parse_name, short_name
from ratings_ledger.projections.replay.rule_calls import RuleFailure, describe_failure

if TYPE_CHECKING:
    from ratings_ledger.projections.queries.survey import Survey


P = ParamSpec("P")
T = TypeVar("T")
# how many positions a cache keeps, and how many values of `rules` for each of them
POSITIONS_MAX, RULES_MAX = 3, 8
FOLLOWED_EVENTS = 1_000  # if more events follow the last full decoding, everything is decoded again
Decode = Callable[..., Facts]


class LadderCache:
    """A cache of all ladders at the positions queried last, by position and chain hash. Threads may share it."""

    def __init__(self, decode: Decode = decode) -> None:
        self._decode = decode
        self._reads_lazily = True
        self._lock = Lock()
        self._by_position: dict[tuple[int, bytes], dict[str | None, Ladders]] = {}

    def empty_copy(self) -> LadderCache:
        """Return an empty cache with the same decoder, for positions that this cache should not keep."""
        return LadderCache(self._decode)

    def load(self, connection: Connection, position: int, rules: str | None = None) -> Ladders:
        """Return the ladders as known at a position; `rules` is the version that replaces its ruleset's timeline.

        The facts are read from their files later. Reading may then raise `DamagedFile` or `UnreadableFile`: pass the
        error to `forget`. Raises `StoreDamaged`.
        """
        cached = None
        if any(cached_position == position for cached_position, _ in [*self._by_position]):
            with self._lock:
                by_rules = self._by_position.get((position, read_chain_hash(connection, position) or ZERO), {})
                cached = next(iter(by_rules.values()), None)
        earlier = self._find_earlier(connection, position) if cached is None and self._by_position else None
        if cached is not None:
            facts = cached.facts
        elif earlier is not None:
            facts = follow_log(earlier.facts, connection, position)
        else:
            facts = self._decode(connection, position, lazily=self._reads_lazily)
        key = position, facts.chain_hash
        with self._lock:
            if cached is None and self._by_position:
                last_used = next(reversed(self._by_position.values()))
                facts.reuse_id_ranks(next(iter(last_used.values())).facts)
            by_rules = self._by_position[key] = self._by_position.pop(key, {})  # the most recently used comes last
            while len(self._by_position) > POSITIONS_MAX:
                del self._by_position[next(iter(self._by_position))]
            if rules not in by_rules:
                if len(by_rules) >= RULES_MAX:
                    del by_rules[next(iter(by_rules))]
                by_rules[rules] = Ladders(facts, as_of=None, rules=rules)
                if earlier is not None and rules is None:
                    by_rules[rules].follow(earlier)
                    by_rules[rules].decoded_at = earlier.decoded_at
            return by_rules[rules]

    def _find_earlier(self, connection: Connection, position: int) -> Ladders | None:
        """Return the latest cached ladders from which the log can be followed to a position, or None.

        After `FOLLOWED_EVENTS` events since the last full decoding, everything is decoded again.
        """
        with self._lock:
            candidates = [
                (cached_position, chain_hash, by_rules.get(None))
                for (cached_position, chain_hash), by_rules in self._by_position.items()
            ]
        for cached_position, chain_hash, ladders in sorted(candidates, key=lambda entry: entry[0], reverse=True):
            if ladders is not None and cached_position < position <= ladders.decoded_at + FOLLOWED_EVENTS:
                return ladders if read_chain_hash(connection, cached_position) == chain_hash else None
        return None

    def load_checked(self, connection: Connection, position: int, rules: str | None = None) -> Ladders:
        """Return the same ladders as `load`, after checking all files from which their facts are read."""
        ladders = self.load(connection, position, rules)
        try:
            ladders.facts.check()
        except (DamagedFile, UnreadableFile) as problem:
            self.forget(problem)
            return self.load(connection, position, rules)
        return ladders

    def load_newest(self, connection: Connection) -> Ladders:
        """Return the checked ladders at the head of the log."""
        return self.load_checked(connection, head(connection).position)

    def forget(self, problem: DamagedFile | UnreadableFile) -> None:
        """Delete a damaged file and empty the cache.

        After that, files are checked before they are used, and unreadable files are ignored.
        """
        if isinstance(problem, DamagedFile):
            problem.discard()
        with self._lock:
            self._reads_lazily = False
            self._by_position.clear()


class Query(NamedTuple):
    """The context of a query about one ladder.

    `ladders` are the ladders at the coordinates. Dates end in the home zone or, without one, in the zone of this
    ladder's ruleset; `times` formats instants in the same zone. `ladder` is the full name of this ladder.
    """

    connection: Connection
    ladders: Ladders
    times: TimeFormat
    ladder: str

    def current(self, player: str) -> str:
        """Return the current id of a player. Raises `Unknown` (player-unknown)."""
        require_player(self.ladders.facts, player)
        return self.ladders.facts.current(player)


class KnownLog:
    """A connection to the ledger, and the position in the log that `known_at` means."""

    def __init__(self, connection: Connection, position: int, times: TimeFormat | None) -> None:
        self.connection = connection
        self.position = position
        self._times = times

    @cached_property
    def times(self) -> TimeFormat:
        """Return the ledger's time format, read on first use."""
        return self._times or load_times(self.connection)


def retry_on_damaged_cache(query: Callable[P, T]) -> Callable[P, T]:
    """Make a snapshot's method run again if it meets a damaged or unreadable cache file.

    The first attempt reads only the parts of the cache that it needs. The second attempt first checks every file.
    """

    @wraps(query)
    def run_query(*arguments: P.args, **options: P.kwargs) -> T:
        try:
            return query(*arguments, **options)
        except (DamagedFile, UnreadableFile) as problem:
            snapshot: Any = arguments[0]
            snapshot._cache.forget(problem)
            snapshot._session.queries.clear()
            return query(*arguments, **options)

    return run_query


class _Session(local):
    """The state of a thread inside `hold_connection`: the connection, the time format, and the queries by ladder."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.times: TimeFormat | None = None
        self.queries: dict[str, Query] = {}


class SnapshotReader:
    """A snapshot of the ledger at one set of coordinates.

    It holds no connection, except for a thread inside `hold_connection`. With `close_now`, games in open rating periods
    are scored as if the periods closed now. Remarks on unusual but correct answers go to the function `note` or, by
    default, to the list `notes`.
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
        cache: LadderCache | None = None,
    ) -> None:
        self.ledger = ledger
        self.as_of = as_of
        self.known_at = known_at
        self.rules = rules
        self.close_now = close_now
        self.notes: list[str] = []
        self._on_note = self.notes.append if note is None else note
        self._noted: set[str] = set()
        self._cache = cache or LadderCache()
        self._session = _Session()

    def __repr__(self) -> str:
        """Return the ledger's location and the requested coordinates; omit axes that limit nothing."""
        axes = {"as_of": self.as_of, "known_at": self.known_at, "rules": self.rules}
        parts = [f"{name}={value!r}" for name, value in axes.items() if value is not None]
        parts += ["close_now=True"] * self.close_now
        return f"Snapshot({', '.join([repr(self.ledger.location), *parts])})"

    @contextmanager
    def hold_connection(self) -> Iterator[None]:
        """Answer all queries of this thread on one connection inside the `with` block.

        The log and the home zone must not change inside the block. Other threads use their own connections. Raises
        `StoreUnavailable`.
        """
        session = self._session
        with self.ledger.reading() as session.connection:
            try:
                session.times = load_times(session.connection)
                yield
            finally:
                session.connection = session.times = None
                session.queries.clear()

    def _times_of(self, connection: Connection) -> TimeFormat:
        """Return the ledger's time format."""
        return self._session.times or load_times(connection)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Provide this thread's connection inside `hold_connection`, or a new one. Raises `StoreUnavailable`."""
        if self._session.connection is not None:
            yield self._session.connection
            return
        with self.ledger.reading() as connection:
            yield connection

    @contextmanager
    def log(self) -> Iterator[KnownLog]:
        """Provide the log up to `known_at`. A date ends in the home zone or, without one, in UTC.

        Raises `BadArgument`, `StoreUnavailable`.
        """
        with self.connect() as connection:
            position = resolve_known_at(connection, self.known_at, time_zone=None, note=self.note)
            yield KnownLog(connection, position, self._session.times)

    @contextmanager
    def query(self, ladder: str, lazily: bool = False) -> Iterator[Query]:
        """Provide the context of a query about one ladder at the coordinates.

        Args:
            ladder: the name of the ladder; the context has its full name.
            lazily: read and verify only the parts of the cache that the query needs. The calling method then needs the
                decorator `retry_on_damaged_cache`.

        Raises `BadArgument`, `Unknown`, `RuleFailed`, `RulesetUnusable`, `StoreUnavailable`.
        """
        with self.connect() as connection:
            try:
                if lazily and ladder in self._session.queries:
                    query = self._session.queries[ladder]
                    facts = query.ladders.facts
                    yield query
                    return
                requested = ladder
                # only dates need the zone, and finding it reads the rulesets
                has_dates = self.as_of is not None or not (self.known_at is None or str(self.known_at).isdigit())
                times = self._session.times or load_times(connection)
                zone = find_date_zone(connection, ladder, times) if has_dates else "UTC"
                position = resolve_known_at(connection, self.known_at, zone, self.note)
                undated = self._load_ladders(connection, position, lazily)
                facts = undated.facts
                if "/" not in ladder:
                    ladder = full_name(facts, ladder)
                try:
                    versions = find_versions(facts, ladder, self.rules)
                except UnknownLadder as problem:
                    first, _ = read_first_version(connection, ladder)  # raises a clearer error if there is none
                    hint = "" if "/" in ladder else describe_existing_ladders(facts, ladder)
                    if first > position:
                        hint = f"; its first version was published at position {first}"
                    raise UnknownLadder(f"{problem}{hint}", problem.argument or "ladder") from None
                ladders = undated.at(parse_as_of(self.as_of, zone)).for_ladder(ladder)
                note_future(self.as_of, zone, self.note)
                if self.close_now and versions[0].ruleset.period == "game":
                    self.note(f"{short_name(ladder)} has no rating periods: every game is scored separately")
                # show times in the zone in which dates end
                times = times if times.home else TimeFormat(versions[0].ruleset.time_zone, UTC_NOON)
                self._note_empty_ladder(ladders, ladder, times)
                query = Query(connection, ladders, times, ladder)
                if lazily and self._session.connection is not None:
                    self._session.queries[requested] = query  # the log does not change inside `hold_connection`
                yield query
            except RuleFailure as problem:
                raise RuleFailed(describe_failure(problem, facts, connection), problem.ladder) from None

    @contextmanager
    def survey(self) -> Iterator[Survey]:
        """Provide all ladders at the coordinates. Raises `BadArgument`, `RulesetUnusable`, `StoreUnavailable`."""
        from ratings_ledger.projections.queries.survey import Survey

        with self.log() as log:
            undated = self._load_ladders(log.connection, log.position)
            check_version(undated.facts, self.rules)
            note_future(self.as_of, log.times.zone, self.note)
            self._note_before_first_game(undated.facts, log.times)
            yield Survey(log.connection, undated, self.as_of, log.times)

    def _load_ladders(self, connection: Connection, position: int, lazily: bool = False) -> Ladders:
        """Return all ladders as known at a position, without `as_of`. Unless `lazily`, verify all cache files first."""
        load = self._cache.load if lazily else self._cache.load_checked
        ladders = load(connection, position, self.rules)
        return ladders.closed_now() if self.close_now else ladders

    @retry_on_damaged_cache
    def full_name(self, ladder: str) -> str:
        """Return the full name of a ladder: elo-chess/all for elo-chess. Raises `BadArgument`, `StoreUnavailable`."""
        if "/" in ladder:
            return ladder
        with self.log() as log:
            return full_name(self._load_ladders(log.connection, log.position, lazily=True).facts, ladder)

    def _order_arguments(self, left: str, right: str) -> tuple[str, str]:
        """Return (player or game, ladder), given in either order; if neither names a ruleset, keep the order.

        A name with a slash is taken for a ladder. Raises `BadArgument`, `StoreUnavailable`.
        """
        with self.connect() as connection:
            if self.known_at is None:
                facts = self._load_ladders(connection, head(connection).position, lazily=True).facts
                ruleset_ids = facts.rulesets.keys() | facts.unusable.keys()
            else:
                ruleset_ids = list_ruleset_ids(connection)
        if parse_name(right).ruleset_id in ruleset_ids:
            return left, self.full_name(right)
        is_swapped = parse_name(left).ruleset_id in ruleset_ids or ("/" in left and "/" not in right)
        return (right, self.full_name(left)) if is_swapped else (left, right)

    def _find_list(self, connection: Connection, ladder: str, published_at: int | None = None) -> PublishedList:
        """Return the latest published list of a ladder known at `known_at`, or the one at a position or for `as_of`.

        Raises `BadArgument`, `Unknown` (list-unknown), `StoreUnavailable`.
        """
        times = self._times_of(connection)
        zone = find_date_zone(connection, ladder, times)
        instant = parse_as_of(self.as_of, zone)
        position = resolve_known_at(connection, self.known_at, zone, self.note)
        if "/" not in ladder:
            ladder = full_name(self._load_ladders(connection, position).facts, ladder)
        lists = read_published_lists(connection, position, ladder)
        if published_at is not None:
            lists = [entry for entry in lists if entry.position == published_at]
        else:
            lists = [entry for entry in lists if self.as_of is None or entry.as_of == instant]
        if not lists:
            # raises a clearer error if the ladder does not exist
            find_versions(self._load_ladders(connection, position, lazily=True).facts, ladder)
            if published_at is not None:
                problem = f"no list of {short_name(ladder)} was published at position {published_at}"
                raise Unknown("list-unknown", f"{problem}; see: ratings lists --format json")
            suffix = "" if instant is None else f" as of {times.format_second(instant)}"
            message = f"no list of {short_name(ladder)}{suffix} is published; see: ratings publish --help"
            raise Unknown("list-unknown", message)
        return select_newest_list(lists)

    def note(self, text: str) -> None:
        """Report a remark, unless it has been reported before."""
        if text not in self._noted:
            self._noted.add(text)
            self._on_note(text)

    def _note_empty_ladder(self, ladders: Ladders, ladder: str, times: TimeFormat) -> None:
        """Add a note if the ladder is empty at the coordinates: when it begins, or the name of a similar ladder."""
        if ladders.find_start(ladder) is not None:
            return
        if ladders.as_of is not None and (first := ladders.at(None).find_start(ladder)):
            instant, kind = first
            self.note(f"the first {kind} on {short_name(ladder)} was at {times.format_second(instant)}")
        elif message := suggest_ladder(ladders.facts, ladder):
            self.note(message)

    def _note_before_first_game(self, facts: Facts, times: TimeFormat) -> None:
        """Add a note with the time of the first game if no game was played by `as_of`."""
        instant = parse_as_of(self.as_of, times.zone)
        if instant is None or min(facts.occurred_at, default=instant) <= instant:
            return
        live_instants = [occurred_at for row, occurred_at in enumerate(facts.occurred_at) if row not in facts.voided]
        if live_instants:
            self.note(f"the first game was at {times.format_second(int(min(live_instants)))}")

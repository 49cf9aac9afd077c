"""Compute the ladders of a ledger at coordinates: versions, streams, traces and rankings, each on first use.

`LadderCache` keeps the ladders at the positions queried last, so that a further query does not decode the log again.
"""

from __future__ import annotations

from array import array
from calendar import monthrange
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from math import gcd
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, ref

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import RulesetUnusable, Unknown
from ratings_ledger.ledger.events.canonical import dump, dump_text
from ratings_ledger.ledger.events.published_lists import compute_text_digest
from ratings_ledger.ledger.events.records import ZERO
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.processes.memory import trim_heap
from ratings_ledger.ledger.rejections import did_you_mean, quote
from ratings_ledger.ledger.store.log import head, read_chain_hash
from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.contract import State
from ratings_ledger.projections.facts.column_files import DamagedFile, UnreadableFile
from ratings_ledger.projections.facts.columns import Column, Facts
from ratings_ledger.projections.facts.decoding import decode, follow_log
from ratings_ledger.projections.facts.players import known_players
from ratings_ledger.projections.lists import LISTS
from ratings_ledger.projections.lists.contract import RankedRow, RankingInput
from ratings_ledger.projections.queries.coordinates import (
    Coordinates,
    UnknownLadder,
    build_unknown_ruleset_error,
)
from ratings_ledger.projections.queries.ladder_typos import find_played_labels, find_typo
from ratings_ledger.projections.queries.visible_states import LadderStates, VisibleStates, format_exact_state
from ratings_ledger.projections.replay.clubs import build_club_facts, find_places
from ratings_ledger.projections.replay.continuation import (
    TraceInputs,
    can_be_continued,
    continue_trace,
    read_trace_inputs,
)
from ratings_ledger.projections.replay.eligibility import order_rows
from ratings_ledger.projections.replay.ladder_names import LadderName, find_ladder_name_problem, parse_name, short_name
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.rule_calls import RuleFailure, find_rank_value
from ratings_ledger.projections.replay.streams import PeriodProgress, Stream, build_streams, describe_periods
from ratings_ledger.projections.replay.trace import Trace, TracePosition
from ratings_ledger.projections.rulesets.versions import (
    Version,
    find_months_problem,
    find_period,
    in_force,
    newest,
    split_ladder_name,
)

# how many positions a cache keeps, and how many values of `rules` for each of them
POSITIONS_MAX, RULES_MAX = 3, 8
FOLLOWED_EVENTS = 1_000  # after more new events than this, everything is decoded again
Decode = Callable[..., Facts]


class LadderCache:
    """A cache of all ladders at the positions queried last, by position and chain hash. Threads may share it."""

    def __init__(self, decode: Decode = decode) -> None:
        self._decode = decode
        self._lazily = True
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
        known = None
        if any(cached_position == position for cached_position, _ in [*self._by_position]):
            with self._lock:
                by_rules = self._by_position.get((position, read_chain_hash(connection, position) or ZERO), {})
                known = next(iter(by_rules.values()), None)
        earlier = self._find_earlier(connection, position) if known is None and self._by_position else None
        if known is not None:
            facts = known.facts
        elif earlier is not None:
            facts = follow_log(earlier.facts, connection, position)
        else:
            facts = self._decode(connection, position, lazily=self._lazily)
        key = position, facts.chain_hash
        with self._lock:
            if known is None and self._by_position:
                last = next(reversed(self._by_position.values()))
                facts.reuse_id_ranks(next(iter(last.values())).facts)
            by_rules = self._by_position[key] = self._by_position.pop(key, {})  # the most recently used comes last
            while len(self._by_position) > POSITIONS_MAX:
                del self._by_position[next(iter(self._by_position))]
            if len(by_rules) >= RULES_MAX:
                del by_rules[next(iter(by_rules))]
            if rules not in by_rules:
                by_rules[rules] = Ladders(facts, as_of=None, rules=rules)
                if earlier is not None and rules is None:
                    by_rules[rules].follow(earlier)
                    by_rules[rules].decoded_at = earlier.decoded_at
            return by_rules[rules]

    def _find_earlier(self, connection: Connection, position: int) -> Ladders | None:
        """Return the ladders at the last cached position before this one; None if too many events lie between them."""
        with self._lock:
            snapshots = [
                (cached_position, chain_hash, by_rules.get(None))
                for (cached_position, chain_hash), by_rules in self._by_position.items()
            ]
        for cached_position, chain_hash, ladders in sorted(snapshots, key=lambda entry: entry[0], reverse=True):
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
            self._lazily = False
            self._by_position.clear()


# the number of ladders that a message lists
LADDERS_LISTED = 20


def suggest_ladder(facts: Facts, ladder: str) -> str | None:
    """Return a hint with the label that was probably meant, if a ladder never had a game; None without such a label."""
    name = parse_name(ladder)
    versions = facts.rulesets.get(name.ruleset_id, [])
    if not versions or (typo := find_typo(name, versions, find_played_labels(facts, versions))) is None:
        return None
    index, similar_label = typo
    part = versions[0].ruleset.partition.by[index]
    return f"{short_name(ladder)} never had a game; did you mean the {part} {similar_label}?"


AS_OF_MAX = 8  # how many values of `as_of` keep their ladders
SHORT_LADDER_GAMES = 200_000  # the whole trace of a ladder with fewer games is kept
LONG_LOG_GAMES = 1_000_000  # from this number on, games are sorted again, to save the memory for their order


@dataclass(frozen=True)
class Ranking:
    """The standings of a ladder, with the totals of its trial balance."""

    ladder: str
    ruleset: str
    scale: int
    rows: Sequence[RankedRow]
    games: int
    held: int  # the sum of all players' points, which are running points or sums over games
    start_total: int
    minted: int
    burned: int
    adjusted: int
    columns: Sequence[State] = ()  # the columns of the rows' states
    visible_states: VisibleStates | None = field(default=None, compare=False, repr=False)
    closed: PeriodProgress | None = field(default=None, compare=False)
    # a description of the value by which players are ranked, if it is not the points
    ranked_by: str | None = field(default=None, compare=False)

    @cached_property
    def digest(self) -> str:
        """Return the hash of the ruleset and the rows, as `compute_digest` defines it. A long ladder takes a while."""
        rows = ",".join(_dump_row(row, self.scale, self.columns) for row in self.rows)
        return compute_text_digest(f'{{"rows":[{rows}],"ruleset":{dump(self.ruleset)}}}')

    def json_rows(self) -> list[dict[str, Any]]:
        """Return the rows as plain data for JSON."""
        return [_build_json_row(row, self.scale, self.columns) for row in self.rows]


def _build_json_row(row: RankedRow, scale: int, columns: Sequence[State]) -> dict[str, Any]:
    """Return a row of the standings as plain data for JSON."""
    member_values: dict[str, Any] = {
        "rank": row.rank,
        "player": row.player,
        "points": str(row.exact_points(scale)),
        "games": row.games,
        "qualified": row.qualified,
    }
    if row.gold is not None:
        member_values["gold"] = row.gold
    if row.places is not None:
        member_values["places"] = list(row.places)
    if row.state is not None and len(columns) > 1:
        member_values["state"] = format_exact_state(columns, row.state)
    return member_values


def _dump_row(row: RankedRow, scale: int, columns: Sequence[State]) -> str:
    """Return the text of `dump(_build_json_row(...))`, but several times faster: a nightly run has many rows."""
    rank, player, points, games, qualified, divisor, gold, places, state = row
    unit = scale * divisor
    whole, remainder = divmod(points, unit)
    if remainder:
        common = gcd(points, unit)
        points_text = f"{points // common}/{unit // common}"
    else:
        points_text = str(whole)
    optional_members = "" if gold is None else f'"gold":{gold},'
    if places is not None:
        optional_members += f'"places":[{",".join(map(str, places))}],'
    state_member = "" if state is None or len(columns) < 2 else f',"state":{dump(format_exact_state(columns, state))}'
    return (
        f'{{"games":{games},{optional_members}"player":{dump_text(player)},"points":"{points_text}",'
        f'"qualified":{"true" if qualified else "false"},"rank":{"null" if rank is None else rank}{state_member}}}'
    )


def _compute_rank_values(trace: Trace, version: Version) -> list[int] | None:
    """Return the value by which each player is ranked, or None if the rule ranks by points. Raises `RuleFailure`."""
    if version.rule.rank_by is None:
        return None
    states = zip(*trace.states[: version.rule.width], strict=True)
    return [find_rank_value(version, trace.stream.ladder, tuple(map(int, state))) for state in states]


class EarlierTrace(NamedTuple):
    """The trace of a ladder at an earlier position, the input of its replay, and the versions that scored it."""

    trace: Trace
    inputs: TraceInputs
    versions: list[Version]


class Ladders:
    """All ladders of some facts at one `as_of`, replayed on demand.

    `rules` is a version that replaces the timeline of its ruleset. With `close_now`, games in open rating periods are
    scored as if the periods closed now. Each stream is built only once. Traces of ladders queried by name are kept,
    because the trace at an earlier `as_of` is a prefix of the same replay.
    """

    def __init__(
        self, facts: Facts, as_of: int | None = None, rules: str | None = None, *, close_now: bool = False
    ) -> None:
        self.facts = facts
        self.as_of = as_of
        self.rules = rules
        self.close_now = close_now
        self._closed_now: Ladders | None = None
        self._streams: dict[str, dict[str, Stream]] = {}
        self._by_as_of: dict[int | None, Ladders] = {}
        # the ladders that keep those at other `as_of`; a weak reference frees large objects without a collection
        self._root = ref(self)
        self._single_streams: dict[str, Stream] = {}
        self._traces: dict[str, Trace] = {}
        self._versions: dict[str, list[Version]] = {}
        self._clubs: dict[str, Ladders] = {}
        self._ordered_rows: Column | None = None
        self._earlier: dict[str, EarlierTrace] = {}
        # ladders whose traces are worth keeping, because the next write continues them
        self._read_after_writes: set[str] = set()
        # the position of the last full decoding
        self.decoded_at = facts.position

    def follow(self, earlier: Ladders) -> None:
        """Continue the traces of the ladders at an earlier position of the log where this is possible."""
        self._earlier = earlier._earlier | {
            ladder: EarlierTrace(trace, read_trace_inputs(earlier.facts, ladder, versions), versions)
            for ladder, trace in [*earlier._traces.items()]
            if trace.has_history and can_be_continued(earlier.facts, versions := earlier.versions(ladder))
        }
        self._read_after_writes = earlier._read_after_writes | earlier._traces.keys()

    @property
    def coordinates(self) -> Coordinates:
        """Return the coordinates of these ladders."""
        return Coordinates(self.as_of, self.facts.position, self.rules, tuple(self.facts.left_out))

    def at(self, as_of: int | None) -> Ladders:
        """Return the same ladders at another `as_of`."""
        root = self._root() or self
        if as_of == root.as_of:
            return root
        ladders = root._by_as_of.get(as_of)
        if ladders is None:
            ladders = Ladders(self.facts, as_of, self.rules, close_now=self.close_now)
            ladders._root = ref(root)
            root._by_as_of = dict([*root._by_as_of.items()][1 - AS_OF_MAX :]) | {as_of: ladders}
        return ladders

    def for_ladder(self, ladder: str) -> Ladders:
        """Return the ladders for the entrants of one ladder, given by its name or its ruleset's id.

        For players, these are `self`; for clubs, they are separate ladders. Methods about one ladder delegate to them.
        """
        ruleset_id = ladder.partition("/")[0]
        versions = self.facts.rulesets.get(ruleset_id, [])
        if self.facts.club_games is not None or not versions or versions[0].ruleset.entrant == "player":
            return self
        root, rules = self._root() or self, self._find_rules(ruleset_id)
        if rules is not None and not (versions := _select_version(versions, rules)):
            return self
        if ruleset_id not in root._clubs:
            facts = build_club_facts(self.facts, versions)
            root._clubs[ruleset_id] = Ladders(facts, root.as_of, self.rules, close_now=self.close_now)
        return root._clubs[ruleset_id].at(self.as_of)

    def closed_now(self) -> Ladders:
        """Return the same ladders with open rating periods scored as if they closed now."""
        if self.close_now:
            return self
        root = self._root() or self
        if root._closed_now is None:
            root._closed_now = Ladders(self.facts, None, self.rules, close_now=True)
        return root._closed_now.at(self.as_of)

    @cached_property
    def players(self) -> set[str]:
        """Return all players known to the facts."""
        return known_players(self.facts)

    def _order_rows(self) -> Column:
        if len(self.facts.occurred_at) >= LONG_LOG_GAMES:
            return order_rows(self.facts, self.as_of)
        if self._ordered_rows is None:
            self._ordered_rows = order_rows(self.facts, self.as_of)
        return self._ordered_rows

    def versions(self, ladder: str) -> list[Version]:
        """Return the versions that may score a ladder's games. Raises `UnknownLadder`, `RulesetUnusable`."""
        if (scoped := self.for_ladder(ladder)) is not self:
            return scoped.versions(ladder)
        if ladder not in self._versions:
            self._versions[ladder] = find_versions(self.facts, ladder, self._find_rules(ladder.partition("/")[0]))
        return self._versions[ladder]

    def _find_rules(self, ruleset_id: str) -> str | None:
        """Return the version that replaces the timeline of a ruleset, or None."""
        return self.rules if self.rules is not None and self.rules.partition("@")[0] == ruleset_id else None

    def streams(self, ruleset_id: str, *, light: bool = False) -> dict[str, Stream]:
        """Return the streams of all ladders of a usable ruleset, by name.

        With `light`, a stream whose trace is known may lack its games: use it only for a replay.
        """
        if (clubs := self.for_ladder(ruleset_id)) is not self:
            return clubs.streams(ruleset_id, light=light)
        if ruleset_id not in self._streams:
            versions = self.facts.rulesets[ruleset_id]
            if (rules := self._find_rules(ruleset_id)) is not None:
                versions = _select_version(versions, rules)
            # the only ladder of its ruleset may have been replayed already
            known = None if versions[0].ruleset.partition.by else self._cached_trace(ruleset_id)
            if known is not None and known.has_history and (known.game_count or known.adjustment_count):
                if light:
                    stream = known.stream
                    return {ruleset_id: Stream(ruleset_id, stream.rule, stream.versions, stream.names, trace=known)}
                joined_trace = known.join_parts()
                self._streams[ruleset_id] = {ruleset_id: replace(joined_trace.stream, trace=joined_trace)}
            else:
                self._streams[ruleset_id] = build_streams(
                    self.facts, versions, as_of=self.as_of, load_rows=self._order_rows, close_now=self.close_now
                )
        return self._streams[ruleset_id]

    def stream(self, ladder: str) -> Stream:
        """Return the stream of one ladder, empty if it has no games. Raises `UnknownLadder`, `RulesetUnusable`."""
        if (scoped := self.for_ladder(ladder)) is not self:
            return scoped.stream(ladder)
        versions = self.versions(ladder)
        by_name = self._streams.get(ladder.partition("/")[0], self._single_streams)
        if by_name is self._single_streams and ladder not in by_name:
            values = parse_name(ladder).values
            by_name |= build_streams(self.facts, versions, only=values, as_of=self.as_of, close_now=self.close_now)
        return by_name.get(ladder) or Stream(ladder, versions[0].rule, versions)

    def load_stream(self, ladder: str) -> Stream:
        """Return the stream of one ladder, from its trace if the trace is cached. Raises the errors of `stream`."""
        known = self._cached_trace(ladder)
        return known.join_parts().stream if known is not None and known.has_history else self.stream(ladder)

    def trace(self, ladder: str, keep_history: bool = True) -> Trace:
        """Return the trace of one ladder; with `keep_history`, it includes the points before every game.

        Raises `UnknownLadder`, `RulesetUnusable`, `RuleFailure`.
        """
        if (scoped := self.for_ladder(ladder)) is not self:
            return scoped.trace(ladder, keep_history)
        known = self._cached_trace(ladder)
        if known is None or (keep_history and not known.has_history):
            stream = self.stream(ladder)
            known = self._traces[ladder] = replay(
                stream, keep_history=keep_history or self._should_keep(ladder, stream)
            )
            if self.as_of is None and self.rules is None and self.facts.cache is not None and known.has_history:
                from ratings_ledger.projections.replay.trace_cache import store_trace

                store_trace(self.facts, known, stream.versions)
        return known

    def _should_keep(self, ladder: str, stream: Stream) -> bool:
        """Tell whether to keep the points before every game: for a short ladder, or if the next write continues it."""
        if not stream.ranking.running or len(stream.rows) < SHORT_LADDER_GAMES:
            return True
        return ladder in self._read_after_writes and can_be_continued(self.facts, stream.versions)

    def _cached_trace(self, ladder: str) -> Trace | None:
        """Return the ladder's trace if that takes no replay, or a replay whose result is kept; otherwise None."""
        if (scoped := self.for_ladder(ladder)) is not self:
            return scoped._cached_trace(ladder)
        if ladder not in self._traces and (known := self._look_up_trace(ladder)) is not None:
            self._traces[ladder] = known
        return self._traces.get(ladder)

    def _look_up_trace(self, ladder: str) -> Trace | None:
        """Return the ladder's trace: continued, from the cache of traces, or cut from the trace of its whole history.

        Return None if no such trace is available. The whole history is replayed first if its trace will be kept.
        """
        if self.as_of is None:
            if (continued := self._continue_trace(ladder)) is not None or self.facts.cache is None:
                return continued
            from ratings_ledger.projections.replay.trace_cache import find_trace

            return find_trace(self.facts, ladder, self.versions(ladder))
        whole_history = self.at(None)
        if ladder in whole_history._traces or self._is_worth_keeping(ladder):
            with suppress(RuleFailure):  # a later game may cause the failure
                whole_history.trace(ladder)
        known = whole_history._traces.get(ladder)
        if known is None or not known.has_history or not is_prefix(known.stream):
            return None
        return truncate_trace(self.facts, known, self.as_of)

    def _continue_trace(self, ladder: str) -> Trace | None:
        """Continue the ladder's trace at an earlier position; return None if a full replay is better."""
        earlier = self._earlier.get(ladder)
        if earlier is None or earlier.versions != self.versions(ladder):
            return None
        if not can_be_continued(self.facts, earlier.versions):
            return None
        with suppress(RuleFailure):  # the full replay reports the failure with its game
            return continue_trace(earlier.trace.compact(), earlier.inputs, self.facts, ladder, earlier.versions)
        return None

    def keep_trace_of(self, ladder: str) -> None:
        """Keep the trace of a ruleset's only ladder for later queries, if the ladder is long enough."""
        if self.for_ladder(ladder) is not self:
            return  # only traces of players are kept
        by_name = self.streams(ladder, light=True)
        stream = by_name[ladder]
        if stream.trace is None and len(stream.rows) >= compiling.COMPILED_GAMES and self._is_worth_keeping(ladder):
            trim_heap()  # memory use is highest during the replay
            with suppress(RuleFailure):  # the next replay reports the failure
                by_name[ladder] = replace(stream, trace=self.trace(ladder))

    def _is_worth_keeping(self, ladder: str) -> bool:
        """Tell whether the ladder's trace may be cached. A trace under --rules would replace the real one."""
        if self.facts.cache is None or self.rules is not None:
            return False
        from ratings_ledger.projections.replay.trace_cache import can_be_cached

        return can_be_cached(self.facts, self.versions(ladder))

    def state_before(self, ladder: str, moment: tuple[int, int]) -> TracePosition:
        """Return every player's state on a ladder just before a moment: a time and a log position.

        Raises `UnknownLadder` and `RulesetUnusable`, and `RuleFailure` if an earlier game failed.
        """
        if (known := self._cached_trace(ladder)) and known.has_history:
            return TracePosition(known, *known.count_before(self.facts, moment))
        stream = self.stream(ladder)
        trace = replay(
            stream.truncate(*stream.count_before(self.facts, moment)), keep_history=False
        ).apply_versions_until(moment[0])
        return TracePosition(trace, trace.game_count, trace.adjustment_count)

    def find_start(self, ladder: str) -> tuple[int, str] | None:
        """Return the instant at which a ladder begins, and whether with a `game` or an `adjustment`; None if empty.

        Raises `UnknownLadder`, `RulesetUnusable`.
        """
        known = self._cached_trace(ladder)
        return known.find_start(self.facts) if known else self.stream(ladder).find_start(self.facts)

    def describe_periods(self, ladder: str) -> PeriodProgress | None:
        """Return the state of a ladder's rating periods, None if it has none. Raises the errors of `trace`."""
        if self.versions(ladder)[0].ruleset.period == "game":
            return None
        return describe_periods(self.facts, self.trace(ladder).stream, self.as_of)

    def standings(self, ladder: str) -> Ranking:
        """Return the standings of one ladder. Raises `UnknownLadder`, `RulesetUnusable`, `RuleFailure`."""
        return self.rank(self.trace(ladder, keep_history=False))[0]

    def rank_stream(self, stream: Stream) -> Ranking:
        """Return the standings of a stream. Raises `RuleFailure`."""
        return self.rank(replay(stream, keep_history=not stream.ranking.running))[0]

    def rank_at(self, trace: Trace, as_of: int | None) -> Ranking:
        """Return the standings at an earlier `as_of`, given the full trace. Raises `RuleFailure`.

        Annual lists and ladders with carried-over points are scored again, because they depend on other ladders; so
        are ladders with open rating periods that are scored as if they closed now.
        """
        if (scoped := self.for_ladder(trace.stream.ladder)) is not self:
            return scoped.rank_at(trace, as_of)
        if as_of is not None and not is_prefix(trace.stream):
            return self.at(as_of).standings(trace.stream.ladder)
        return self.rank(trace if as_of is None else truncate_trace(self.facts, trace, as_of))[0]

    def rank(self, trace: Trace) -> tuple[Ranking, RankingInput]:
        """Return the standings at the end of a trace, and the results that the list ranked. Raises `RuleFailure`."""
        if (scoped := self.for_ladder(trace.stream.ladder)) is not self:
            return scoped.rank(trace)
        stream, version = trace.stream, find_ranking_version(trace)
        is_annual = stream.ranking.sums_lists
        months = self._rank_months(stream, version) if is_annual else {}
        results = self._build_results(trace, version, months)
        rows = LISTS[stream.rule.ranking].rank(results)
        games = sum(month.games for month in months.values()) if is_annual else trace.game_count
        ranking = Ranking(
            ladder=stream.ladder,
            ruleset=version.ruleset.name,
            scale=stream.rule.scale,
            rows=rows,
            games=games,
            held=sum(results.points),
            start_total=trace.start_total,
            minted=trace.minted,
            burned=trace.burned,
            adjusted=trace.adjusted,
            columns=version.rule.state,
            # without running points, the list computes the points, so they are not those of the rule's state
            visible_states=LadderStates(self.facts, trace, version, self.as_of)
            if version.rule.state and stream.ranking.running
            else None,
            closed=describe_periods(self.facts, stream, self.as_of),
            ranked_by=results.ranked_by,
        )
        return ranking, results

    def _build_results(self, trace: Trace, version: Version, months: dict[str, Ranking]) -> RankingInput:
        # in a fully replayed stream, every player is on the ladder
        stream, has_running_points = trace.stream, trace.stream.ranking.running
        is_long = has_running_points and len(stream.names) >= compiling.COMPILED_GAMES and compiling.is_allowed()
        places, more_places = (
            find_places(self.facts, stream) if stream.ranking.reads_places(version.params) else ((), {})
        )
        return RankingInput(
            names=stream.names,
            points=trace.states[0],
            games=trace.games,
            offsets=stream.offsets,
            players=stream.players,
            changes=() if has_running_points else trace.changes,
            scale=stream.rule.scale,
            params=version.params,
            months={month: {row.player: row for row in ranking.rows} for month, ranking in months.items()},
            excluded=self._find_excluded(stream, version, months),
            places=places,
            ids=arrays.take(self.facts.id_ranks(), array("i", stream.persons)) if is_long else None,
            states=trace.states[: version.rule.width] if version.rule.state else (),
            rank_values=_compute_rank_values(trace, version),
            more_places=more_places,
            ranked_by=version.ranked_by,
        )

    def _rank_months(self, stream: Stream, version: Version) -> dict[str, Ranking]:
        """Return the monthly lists that an annual list sums, by month. Raises `RuleFailure` if they cannot be used."""
        params: Any = version.params
        if params.of in self.facts.unusable:
            raise RuleFailure(stream.ladder, self.facts.unusable[params.of].reason, position=version.position)
        versions = self.facts.rulesets.get(params.of, [])
        if problem := find_months_problem(version, versions):
            raise RuleFailure(stream.ladder, problem, position=version.position)
        by_name = self.streams(params.of)
        names = name_monthly_ladders(stream.ladder, version, versions)
        return {month: self.rank_stream(by_name[name]) for month, name in names.items() if name in by_name}

    def _find_excluded(self, stream: Stream, version: Version, months: dict[str, Ranking]) -> dict[str, str]:
        """Return, by player, why players have no rank regardless of their points and games."""
        params: Any = version.params
        if not stream.ranking.sums_lists:
            return {self.facts.current(name): reason for name, reason in getattr(params, "unranked", {}).items()}
        period = find_period(version.ruleset, stream.ladder)
        group = split_ladder_name(stream.ladder, version.ruleset).get("group")
        if params.account is None or group in params.any_account or period is None:
            return {}
        instant = period.end if self.as_of is None else min(period.end, self.as_of)
        reasons = {}
        for name in {row.player for month in months.values() for row in month.rows}:
            account = self.facts.account(self.facts.player_numbers[name], instant)
            if account != params.account:
                when = "at the end of the year" if instant == period.end else "at that time"
                reasons[name] = f"a {account} account {when}, not a {params.account} one"
        return reasons


K = TypeVar("K")
T = TypeVar("T")


class Memo(Generic[K, T]):
    """A cache of computed answers, by ladders and key. It drops the answers together with the ladders."""

    def __init__(self, limit: int | None = None) -> None:
        """Keep all answers, or only the last `limit` of them."""
        self._limit = limit
        self._answers: WeakKeyDictionary[Ladders, dict[K, T]] = WeakKeyDictionary()

    def get(self, ladders: Ladders, key: K, compute: Callable[[], T]) -> T:
        """Return the answer for ladders and a key; compute it on first use."""
        answers = self._answers.setdefault(ladders, {})
        if key not in answers:
            answer = compute()
            if self._limit is not None and len(answers) >= self._limit:
                answers.pop(next(iter(answers)), None)
            answers[key] = answer
            return answer
        return answers[key]


def name_monthly_ladders(ladder: str, annual: Version, monthly: Sequence[Version]) -> dict[str, str]:
    """Return the names of the twelve monthly lists that an annual one sums, by month."""
    values = split_ladder_name(ladder, annual.ruleset)
    names = {}
    for month in range(1, 13):
        values_of_month = values | {"month": f"{values['year']}-{month:02d}"}
        month_values = (values_of_month[part] for part in monthly[0].ruleset.partition.by)
        names[values_of_month["month"]] = "/".join([monthly[0].ruleset.id, *month_values])
    return names


def is_prefix(stream: Stream) -> bool:
    """Tell whether the ladder's stream at any earlier time is a prefix of this one.

    It is if only the ladder's own games count, and no open period is closed early.
    """
    return not stream.ranking.sums_lists and stream.previous is None and not stream.closes_now


def truncate_trace(facts: Facts, trace: Trace, as_of: int) -> Trace:
    """Return the trace up to an instant. Raises `RuleFailure`."""
    return trace.truncate(*trace.count_before(facts, (as_of + 1, 0))).apply_versions_until(as_of)


def find_ranking_version(trace: Trace) -> Version:
    """Return the version that ranks a ladder.

    It is the version that scored the last counted game or took effect after it; without such a version, the newest. An
    annual list has no games, so it is the version in force at the end of the year.
    """
    stream = trace.stream
    if stream.ranking.sums_lists:
        period = find_period(stream.versions[0].ruleset, stream.ladder)
        version = None if period is None else in_force(stream.versions, period.end)
        return version or newest(stream.versions)
    return (
        trace.final_version
        if stream.adjustments and stream.adjustments[-1].is_version_entry
        else trace.last_version or newest(stream.versions)
    )


def find_versions(facts: Facts, ladder: str, rules: str | None = None) -> list[Version]:
    """Return the versions that may score a ladder's games.

    With `rules` (ID@VERSION), only that version is returned, in force from the start. Raises `UnknownLadder`,
    `RulesetUnusable`.
    """
    ruleset_id = ladder.partition("/")[0]
    if ruleset_id in facts.unusable:
        raise RulesetUnusable(facts.unusable[ruleset_id].reason)
    versions = facts.rulesets.get(ruleset_id)
    if not versions:
        _refuse_withdrawn(facts, rules or "")
        raise build_unknown_ruleset_error(ruleset_id, facts.rulesets, f" at position {facts.position}")
    check_ladder_name(ladder, versions[0].ruleset)
    if rules is None:
        return versions
    if not (chosen := _select_version(versions, rules)):
        _refuse_withdrawn(facts, rules)
        names = ", ".join(version.ruleset.name for version in versions)
        hint = did_you_mean(rules, [version.ruleset.name for version in versions])
        message = f"{quote(rules)} is not a published version for {ladder} (there are {names}){hint}"
        raise UnknownLadder(message, "rules")
    return chosen


def check_ladder_name(ladder: str, ruleset: Ruleset) -> None:
    """Raise `UnknownLadder` if a ladder's name does not fit the partition of its ruleset."""
    name = parse_name(ladder)
    if reason := find_ladder_name_problem(name, ruleset):
        raise UnknownLadder(f"{quote(ladder)} is not a ladder: {reason}{_suggest_as_of(name, ruleset)}")


def _suggest_as_of(name: LadderName, ruleset: Ruleset) -> str:
    """Return a hint about --as-of for a ladder name that contains a month or day; empty for other names."""
    if ruleset.partition.is_by_time:
        return ""
    for value in name.values:
        with suppress(ValueError):
            month = date.fromisoformat(f"{value}-01")
            value = f"{value}-{monthrange(month.year, month.month)[1]}"
        with suppress(ValueError):
            return f"; for a ladder as it stood on a day, add --as-of {date.fromisoformat(value)}"
    return ""


def check_version(facts: Facts, rules: str | None) -> None:
    """Check that a version (ID@VERSION) is published and can run here; None stands for the timelines and is valid.

    Raises `UnknownLadder`, `RulesetUnusable`.
    """
    if rules is None:
        return
    ruleset_id, _, _ = rules.partition("@")
    if ruleset_id in facts.unusable:
        raise RulesetUnusable(facts.unusable[ruleset_id].reason)
    published = [version for versions in facts.rulesets.values() for version in versions]
    if not _select_version(published, rules):
        _refuse_withdrawn(facts, rules)
        names = ", ".join(version.ruleset.name for version in facts.rulesets.get(ruleset_id) or published) or "none"
        hint = did_you_mean(rules, [version.ruleset.name for version in published])
        message = f"no version {quote(rules)} is published at position {facts.position} (there are {names}){hint}"
        raise UnknownLadder(message, "rules")


def _refuse_withdrawn(facts: Facts, rules: str) -> None:
    """Raise `UnknownLadder` if a version (ID@VERSION) is withdrawn; the message names a position where it counts."""
    recorded = facts.recorded
    for version in recorded.versions:
        if version.ruleset.name == rules and version.position in recorded.withdrawn:
            position = max(void for void, root in recorded.roots.items() if root == version.position)
            message = f"{rules} was withdrawn at position {position}; to use it, add --known-at {position - 1}"
            raise UnknownLadder(message, "rules")


def _select_version(versions: Iterable[Version], rules: str) -> list[Version]:
    """Return a list with the version of this name, in force from the start, or an empty list if it is not published."""
    return [version._replace(effective_from=-(2**63)) for version in versions if version.ruleset.name == rules][:1]


def list_current_ids(facts: Facts, players: Collection[str]) -> set[str]:
    """Return the current ids of some players. Raises `Unknown` (player-unknown)."""
    for player in players:
        require_player(facts, player)
    return {facts.current(player) for player in players}


def require_player(facts: Facts, player: str) -> None:
    """Check that the facts name a player. Raises `Unknown` (player-unknown)."""
    if not facts.knows(player):
        hint = did_you_mean(player, known_players(facts), facts.current)
        raise Unknown("player-unknown", f"nothing is recorded about {quote(player)}{hint}")

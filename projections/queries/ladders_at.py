"""Compute the ladders of a ledger at coordinates: versions, streams, traces and rankings, each on first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, ref

from ratings_ledger.ledger.processes.memory import trim_heap
from ratings_ledger.projections import compiling
from ratings_ledger.projections.facts.columns import Column, Facts
from ratings_ledger.projections.facts.lookups import known_players
from ratings_ledger.projections.queries.coordinates import Coordinates, find_versions, select_version
from ratings_ledger.projections.queries.rankings import RankedTrace, Ranking, find_ranking_version, rank_trace
from ratings_ledger.projections.replay.clubs import build_club_facts
from ratings_ledger.projections.replay.continuation import (
    TraceInputs,
    can_be_continued,
    continue_trace,
    read_trace_inputs,
)
from ratings_ledger.projections.replay.eligibility import order_rows
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.replay.streams import (
    PeriodProgress,
    Stream,
    build_stream,
    build_streams,
    describe_periods,
)
from ratings_ledger.projections.replay.trace import Trace, TracePosition
from ratings_ledger.projections.rulesets.versions import Version, find_months_problem, split_ladder_name

AS_OF_MAX = 8  # how many values of `as_of` keep their ladders
SHORT_LADDER_GAMES = 200_000  # the whole trace of a ladder with fewer games is kept
LONG_LOG_GAMES = 1_000_000  # from this number of games on, their order is not kept, to save memory


class EarlierTrace(NamedTuple):
    """The trace of a ladder at an earlier position, the input of its replay, and the versions that scored it."""

    trace: Trace
    inputs: TraceInputs
    versions: list[Version]


class Ladders:
    """All ladders that the facts define, at one `as_of`, replayed on demand.

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
        # the ladders that keep those at other `as_of`; weak, so that large objects are freed at once
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
        """Take over the traces of ladders at an earlier position that can be continued, and continue them on demand."""
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
        if rules is not None and not (versions := select_version(versions, rules)):
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
                versions = select_version(versions, rules)
            # the only ladder of its ruleset may have been replayed already
            trace = None if versions[0].ruleset.partition.by else self._cached_trace(ruleset_id)
            if trace is not None and trace.has_history and (trace.game_count or trace.adjustment_count):
                if light:
                    stream = trace.stream
                    return {ruleset_id: Stream(ruleset_id, stream.rule, stream.versions, stream.names, trace=trace)}
                joined_trace = trace.join_parts()
                self._streams[ruleset_id] = {ruleset_id: replace(joined_trace.stream, trace=joined_trace)}
            else:
                self._streams[ruleset_id] = build_streams(
                    self.facts, versions, as_of=self.as_of, load_rows=self._order_rows, close_now=self.close_now
                )
        return self._streams[ruleset_id]

    def stream(self, ladder: str) -> Stream:
        """Return the stream of one ladder, empty for an empty ladder. Raises `UnknownLadder`, `RulesetUnusable`."""
        if (scoped := self.for_ladder(ladder)) is not self:
            return scoped.stream(ladder)
        versions = self.versions(ladder)
        by_name = self._streams.get(ladder.partition("/")[0], self._single_streams)
        if by_name is self._single_streams and ladder not in by_name:
            stream = build_stream(self.facts, versions, ladder, as_of=self.as_of, close_now=self.close_now)
            by_name |= {} if stream is None else {ladder: stream}
        return by_name.get(ladder) or Stream(ladder, versions[0].rule, versions)

    def load_stream(self, ladder: str) -> Stream:
        """Return the stream of one ladder, from its trace if the trace is cached. Raises the errors of `stream`."""
        trace = self._cached_trace(ladder)
        return trace.join_parts().stream if trace is not None and trace.has_history else self.stream(ladder)

    def trace(self, ladder: str, keep_history: bool = True) -> Trace:
        """Return the trace of one ladder; with `keep_history`, it includes the points before every game.

        Raises `UnknownLadder`, `RulesetUnusable`, `RuleFailure`.
        """
        if (scoped := self.for_ladder(ladder)) is not self:
            return scoped.trace(ladder, keep_history)
        trace = self._cached_trace(ladder)
        if trace is None or (keep_history and not trace.has_history):
            stream = self.stream(ladder)
            trace = self._traces[ladder] = replay(
                stream, keep_history=keep_history or self._should_keep(ladder, stream)
            )
            if self.as_of is None and self.rules is None and self.facts.cache is not None and trace.has_history:
                from ratings_ledger.projections.replay.trace_cache import store_trace

                store_trace(self.facts, trace, stream.versions)
        return trace

    def _should_keep(self, ladder: str, stream: Stream) -> bool:
        """Tell whether to keep the points before every game.

        They are kept for a short ladder, for one without running points, and if the next write continues the trace.
        """
        if not stream.ranking.running or len(stream.rows) < SHORT_LADDER_GAMES:
            return True
        return ladder in self._read_after_writes and can_be_continued(self.facts, stream.versions)

    def _cached_trace(self, ladder: str) -> Trace | None:
        """Return the ladder's trace if that takes no replay, or a replay whose result is kept; otherwise None."""
        if (scoped := self.for_ladder(ladder)) is not self:
            return scoped._cached_trace(ladder)
        if ladder not in self._traces and (trace := self._look_up_trace(ladder)) is not None:
            self._traces[ladder] = trace
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
        trace = whole_history._traces.get(ladder)
        if trace is None or not trace.has_history or not can_be_truncated(trace.stream):
            return None
        return truncate_trace(self.facts, trace, self.as_of)

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
            return  # the traces of ladders of clubs are not kept
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
        if (trace := self._cached_trace(ladder)) and trace.has_history:
            return TracePosition(trace, *trace.count_before(self.facts, moment))
        stream = self.stream(ladder)
        trace = replay(
            stream.truncate(*stream.count_before(self.facts, moment)), keep_history=False
        ).apply_versions_until(moment[0])
        return TracePosition(trace, trace.game_count, trace.adjustment_count)

    def find_start(self, ladder: str) -> tuple[int, str] | None:
        """Return the instant at which a ladder begins, and whether with a `game` or an `adjustment`; None if empty.

        Raises `UnknownLadder`, `RulesetUnusable`.
        """
        trace = self._cached_trace(ladder)
        return trace.find_start(self.facts) if trace else self.stream(ladder).find_start(self.facts)

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
        if as_of is not None and not can_be_truncated(trace.stream):
            return self.at(as_of).standings(trace.stream.ladder)
        return self.rank(trace if as_of is None else truncate_trace(self.facts, trace, as_of))[0]

    def rank(self, trace: Trace) -> RankedTrace:
        """Return the standings at the end of a trace, and the input of the list. Raises `RuleFailure`."""
        if (scoped := self.for_ladder(trace.stream.ladder)) is not self:
            return scoped.rank(trace)
        months = self._rank_months(trace) if trace.stream.ranking.sums_lists else {}
        return rank_trace(self.facts, trace, self.as_of, months)

    def _rank_months(self, trace: Trace) -> dict[str, Ranking]:
        """Return the monthly lists that an annual list sums, by month. Raises `RuleFailure` if they cannot be used."""
        ladder, version = trace.stream.ladder, find_ranking_version(trace)
        params: Any = version.params
        if params.of in self.facts.unusable:
            raise RuleFailure(ladder, self.facts.unusable[params.of].reason, position=version.position)
        versions = self.facts.rulesets.get(params.of, [])
        if problem := find_months_problem(version, versions):
            raise RuleFailure(ladder, problem, position=version.position)
        by_name = self.streams(params.of)
        names = name_monthly_ladders(ladder, version, versions)
        return {month: self.rank_stream(by_name[name]) for month, name in names.items() if name in by_name}


K = TypeVar("K")
T = TypeVar("T")


class Memo(Generic[K, T]):
    """A cache of computed answers, by ladders and key. It drops the answers together with the ladders."""

    def __init__(self, limit: int | None = None) -> None:
        """Keep all answers for each `Ladders`, or only the last `limit` of them."""
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


def can_be_truncated(stream: Stream) -> bool:
    """Tell whether the ladder's stream at any earlier time is a prefix of this one.

    That is so if only the ladder's own games count, and no open period is closed early.
    """
    return not stream.ranking.sums_lists and stream.previous is None and not stream.closes_now


def truncate_trace(facts: Facts, trace: Trace, as_of: int) -> Trace:
    """Return the trace up to an instant. Raises `RuleFailure`."""
    return trace.truncate(*trace.count_before(facts, (as_of + 1, 0))).apply_versions_until(as_of)

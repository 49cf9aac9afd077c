"""The ladders of a ledger at coordinates: their versions, streams, traces and rankings, each made on first use.

`KeptLadders` keeps those at the positions that were asked for last: another query there decodes nothing again.
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
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, ref

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import RulesetUnusable, Unknown
from ratings_ledger.ledger.events.canonical import dump, dump_text
from ratings_ledger.ledger.events.published_lists import compute_text_digest
from ratings_ledger.ledger.events.records import ZERO
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.processes.memory import trim_heap
from ratings_ledger.ledger.rejections import did_you_mean, find_closest, quote
from ratings_ledger.ledger.store.log import chain_hash_at, head
from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.contract import State
from ratings_ledger.projections.facts.column_files import Damaged, Unreadable
from ratings_ledger.projections.facts.columns import LABELS, Column, Facts
from ratings_ledger.projections.facts.decoding import decode, follow_log
from ratings_ledger.projections.facts.players import known_players
from ratings_ledger.projections.lists import LISTS
from ratings_ledger.projections.lists.contract import RankedRow, Results
from ratings_ledger.projections.queries.coordinates import (
    Coordinates,
    UnknownLadder,
    _unknown_ruleset,
)
from ratings_ledger.projections.queries.shown_states import ShownStates, StatesSeen, exact_states
from ratings_ledger.projections.replay.clubs import facts_of_clubs, find_places
from ratings_ledger.projections.replay.containment import RuleFailure, rank_by
from ratings_ledger.projections.replay.eligibility import rows_in_order, why_cell_not_eligible
from ratings_ledger.projections.replay.ladders import (
    ClosedPeriods,
    LadderName,
    Stream,
    describe_periods,
    parse_name,
    refuse_name,
    short_name,
    streams,
)
from ratings_ledger.projections.replay.partition import by_time, cell_values
from ratings_ledger.projections.replay.replay import Replayed, can_be_continued, continued, replay, replayed_of
from ratings_ledger.projections.replay.trace import Before, Trace
from ratings_ledger.projections.rulesets.versions import Version, in_force, newest, period_of, refuse_months

if TYPE_CHECKING:
    pass


POSITIONS_KEPT, VERSIONS_KEPT = 3, 8
FOLLOWED_EVENTS = 1_000  # after so many more events everything is decoded anew
Decode = Callable[..., Facts]


class KeptLadders:
    """All ladders at a few positions, by their chain hashes. Threads may share it."""

    def __init__(self, decode: Decode = decode) -> None:
        self._decode = decode
        self._lazily = True
        self._lock = Lock()
        self._kept: dict[tuple[int, bytes], dict[str | None, Ladders]] = {}

    def apart(self) -> KeptLadders:
        """Return another that keeps nothing yet, for positions that no later query will need again."""
        return KeptLadders(self._decode)

    def at(self, connection: Connection, position: int, rules: str | None = None) -> Ladders:
        """Return the ladders as known at a position, with one ruleset under the version `rules`.

        What is read from their facts may raise `Damaged`: see `forget`. Raises `StoreDamaged`.
        """
        known = None
        if self._kept:
            with self._lock:
                found = self._kept.get((position, chain_hash_at(connection, position) or ZERO), {})
                known = next(iter(found.values()), None)
        earlier = self._find_earlier(connection, position) if known is None and self._kept else None
        if known is not None:
            facts = known.facts
        elif earlier is not None:
            facts = follow_log(earlier.facts, connection, position)
        else:
            facts = self._decode(connection, position, lazily=self._lazily)
        key = position, facts.chain_hash
        with self._lock:
            if known is None and self._kept:
                last = next(reversed(self._kept.values()))
                facts.take_ranks(next(iter(last.values())).facts)
            there = self._kept[key] = self._kept.pop(key, {})  # the last are those that were asked for last
            while len(self._kept) > POSITIONS_KEPT:
                del self._kept[next(iter(self._kept))]
            if len(there) >= VERSIONS_KEPT:
                del there[next(iter(there))]
            if rules not in there:
                there[rules] = Ladders(facts, None, rules)
                if earlier is not None and rules is None:
                    there[rules].follow(earlier)
                    there[rules].decoded_at = earlier.decoded_at
            return there[rules]

    def _find_earlier(self, connection: Connection, position: int) -> Ladders | None:
        """Return the ladders at the last earlier position, if the log only went on a little since; else None."""
        with self._lock:
            before = [(at, chain_hash, every.get(None)) for (at, chain_hash), every in self._kept.items()]
        for at, chain_hash, ladders in sorted(before, key=lambda entry: entry[0], reverse=True):
            if ladders is not None and at < position <= ladders.decoded_at + FOLLOWED_EVENTS:
                return ladders if chain_hash_at(connection, at) == chain_hash else None
        return None

    def checked(self, connection: Connection, position: int, rules: str | None = None) -> Ladders:
        """Return the same; everything in the files that their facts come from is checked."""
        found = self.at(connection, position, rules)
        try:
            found.facts.check()
        except (Damaged, Unreadable) as problem:
            self.forget(problem)
            return self.at(connection, position, rules)
        return found

    def newest(self, connection: Connection) -> Ladders:
        """Return the same at the head of the log."""
        return self.checked(connection, head(connection).position)

    def forget(self, problem: Damaged | Unreadable) -> None:
        """Delete what is damaged, and decode again when somebody asks next; from now on everything is checked first,
        and what cannot be read is done without."""
        if isinstance(problem, Damaged):
            problem.discard()
        with self._lock:
            self._lazily = False
            self._kept.clear()


# of more ladders the rest are not named
LADDERS_TOLD = 20
Labelled = tuple[str, ...]


def label_places(by: Sequence[str]) -> list[int]:
    """Return which parts of a ladder's name are labels of its games."""
    return [place for place, part in enumerate(by) if part in LABELS]


def labelled(facts: Facts, known: Sequence[Version]) -> set[Labelled]:
    """Return the labels in the names of a ruleset's ladders that have a live game or an adjustment."""
    ruleset = known[0].ruleset
    places = label_places(ruleset.partition.by)
    voided = facts.voided
    live = {cell for row, cell in enumerate(facts.cell) if row not in voided} if voided else {*facts.cell}
    found = set()
    for cell in (facts.cells[number] for number in live):
        if not all(why_cell_not_eligible(facts, cell, version.ruleset) for version in known):
            found |= {tuple(values[place] for place in places) for values in cell_values(facts, cell, ruleset)}
    names = (parse_name(adjustment.ladder) for adjustment in facts.adjustments)
    return found | {tuple(n.values[place] for place in places) for n in names if n.ruleset_id == ruleset.id}


def slip(name: LadderName, known: Sequence[Version], there: set[Labelled]) -> tuple[int, str] | None:
    """Return which part of a ladder's name is probably a typo, and of what: the other labels are the same. None if no
    label is close to an existing one, or the ladder's own labels exist.
    """
    places = label_places(known[0].ruleset.partition.by)
    labels = tuple(name.values[place] for place in places)
    for number, label in enumerate(labels if labels not in there else ()):
        others = [one[number] for one in sorted(there) if apart(one, number) == apart(labels, number)]
        if (close := find_closest(label, others)) is not None:
            return places[number], close
    return None


def apart(labels: Labelled, place: int) -> Labelled:
    """Return the labels without the one at a place."""
    return labels[:place] + labels[place + 1 :]


def other_ladder(facts: Facts, ladder: str) -> str | None:
    """Return which ladder was probably meant instead of one without a game: one with a similar label."""
    name = parse_name(ladder)
    known = facts.rulesets.get(name.ruleset_id, [])
    if not known or (found := slip(name, known, labelled(facts, known))) is None:
        return None
    part, label = known[0].ruleset.partition.by[found[0]], name.values[found[0]]
    return f"{short_name(ladder)} never had a game; {part} {label}; did you mean {found[1]}?"


TIMES_KEPT = 8  # at so many times the ladders are kept
SHORT_GAMES = 200_000  # of a ladder with fewer games all that a replay leaves behind is kept
LONG_GAMES = 1_000_000  # the order of so many games takes more memory than putting them in order takes time


@dataclass(frozen=True)
class Ranking:
    """A ladder's standings with the coordinates they were computed at."""

    ladder: str
    ruleset: str
    scale: int
    rows: Sequence[RankedRow]
    games: int
    held: int  # what the players have in total: the running points, or the sums over their games
    started: int
    minted: int
    burned: int
    adjusted: int
    columns: Sequence[State] = ()  # of the rows' states
    shown: StatesSeen | None = field(default=None, compare=False, repr=False)
    closed: ClosedPeriods | None = field(default=None, compare=False)

    @cached_property
    def digest(self) -> str:
        """Return the hash of ruleset and rows, as `compute_digest` defines it; of a long ladder it takes a while."""
        rows = ",".join(_canonical_row(row, self.scale, self.columns) for row in self.rows)
        return compute_text_digest(f'{{"rows":[{rows}],"ruleset":{dump(self.ruleset)}}}')

    def json_rows(self) -> list[dict[str, Any]]:
        """Return the rows as the contract writes them."""
        return [_json_row(row, self.scale, self.columns) for row in self.rows]


def _json_row(row: RankedRow, scale: int, columns: Sequence[State]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "rank": row.rank,
        "player": row.player,
        "points": str(row.value(scale)),
        "games": row.games,
        "qualified": row.qualified,
    }
    if row.gold is not None:
        found["gold"] = row.gold
    if row.places is not None:
        found["places"] = list(row.places)
    if row.state is not None and len(columns) > 1:
        found["state"] = exact_states(columns, row.state)
    return found


def _canonical_row(row: RankedRow, scale: int, columns: Sequence[State]) -> str:
    """Return the same as `dump` of `_json_row`, several times as fast: a nightly run has many."""
    rank, player, points, games, qualified, divisor, gold, places, state = row
    unit = scale * divisor
    whole, rest = divmod(points, unit)
    if rest:
        common = gcd(points, unit)
        value = f"{points // common}/{unit // common}"
    else:
        value = str(whole)
    more = "" if gold is None else f'"gold":{gold},'
    if places is not None:
        more += f'"places":[{",".join(map(str, places))}],'
    last = "" if state is None or len(columns) < 2 else f',"state":{dump(exact_states(columns, state))}'
    return (
        f'{{"games":{games},{more}"player":{dump_text(player)},"points":"{value}",'
        f'"qualified":{"true" if qualified else "false"},"rank":{"null" if rank is None else rank}{last}}}'
    )


def _rank_by(trace: Trace, version: Version) -> list[int] | None:
    """Return what ranks everybody, if the rule ranks by anything but the points. Raises `RuleFailure`."""
    if version.rule.rank_by is None:
        return None
    states = zip(*trace.states[: version.rule.width], strict=True)
    return [rank_by(version, trace.stream.ladder, tuple(map(int, state))) for state in states]


class EarlierTrace(NamedTuple):
    """The trace of a ladder at an earlier position, what it was made from, and the versions that scored it."""

    trace: Trace
    since: Replayed
    versions: list[Version]


class Ladders:
    """All ladders of some facts at one `as_of`, with one ruleset under the version `rules`, replayed on demand.

    With `close_now`, games in open rating periods are scored as if these closed now. Each stream is made only once. The
    traces of ladders that are asked for by name are kept: an earlier `as_of` is a part of what was replayed.
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
        self._others: dict[int | None, Ladders] = {}
        self._root = ref(self)  # which has the others; weak, or what is large would wait for the garbage collector
        self._single: dict[str, Stream] = {}
        self._traces: dict[str, Trace] = {}
        self._versions: dict[str, list[Version]] = {}
        self._clubs: dict[str, Ladders] = {}
        self._rows: Column | None = None
        self._earlier: dict[str, EarlierTrace] = {}
        self.decoded_at = facts.position  # where the facts were decoded that these continue

    def follow(self, earlier: Ladders) -> None:
        """Continue the traces of the same ladders at an earlier position of the log, wherever that is possible."""
        self._earlier = earlier._earlier | {
            ladder: EarlierTrace(trace, replayed_of(earlier.facts, ladder, versions), versions)
            for ladder, trace in [*earlier._traces.items()]
            if trace.is_kept and can_be_continued(earlier.facts, versions := earlier.versions(ladder))
        }

    @property
    def coordinates(self) -> Coordinates:
        """Return where on the axes these ladders are."""
        return Coordinates(self.as_of, self.facts.position, self.rules, tuple(self.facts.left_out))

    def at(self, as_of: int | None) -> Ladders:
        """Return the same ladders at another `as_of`."""
        root = self._root() or self
        if as_of == root.as_of:
            return root
        other = root._others.get(as_of)
        if other is None:
            other = Ladders(self.facts, as_of, self.rules, close_now=self.close_now)
            other._root = ref(root)
            root._others = dict([*root._others.items()][1 - TIMES_KEPT :]) | {as_of: other}
        return other

    def of(self, ladder: str) -> Ladders:
        """Return the ladders whose facts are about those who are on a ladder, or on those of a ruleset: these, or
        others about clubs. Whatever is asked here about such a ladder is answered there.
        """
        ruleset_id = ladder.partition("/")[0]
        versions = self.facts.rulesets.get(ruleset_id, [])
        if self.facts.club_games is not None or not versions or versions[0].ruleset.entrant == "player":
            return self
        root, rules = self._root() or self, self._rules_of(ruleset_id)
        if rules is not None and not (versions := _only(versions, rules)):
            return self
        if ruleset_id not in root._clubs:
            facts = facts_of_clubs(self.facts, versions)
            root._clubs[ruleset_id] = Ladders(facts, root.as_of, self.rules, close_now=self.close_now)
        return root._clubs[ruleset_id].at(self.as_of)

    def closed_now(self) -> Ladders:
        """Return the same ladders as if open rating periods closed now."""
        if self.close_now:
            return self
        root = self._root() or self
        if root._closed_now is None:
            root._closed_now = Ladders(self.facts, None, self.rules, close_now=True)
        return root._closed_now.at(self.as_of)

    @cached_property
    def players(self) -> set[str]:
        """Return the players that the facts know."""
        return known_players(self.facts)

    def _ordered(self) -> Column:
        if len(self.facts.occurred_at) >= LONG_GAMES:
            return rows_in_order(self.facts, self.as_of)
        if self._rows is None:
            self._rows = rows_in_order(self.facts, self.as_of)
        return self._rows

    def versions(self, ladder: str) -> list[Version]:
        """Return the versions that may score a ladder's games. Raises `UnknownLadder`, `RulesetUnusable`."""
        if (own := self.of(ladder)) is not self:
            return own.versions(ladder)
        if ladder not in self._versions:
            self._versions[ladder] = versions_of(self.facts, ladder, self._rules_of(ladder.partition("/")[0]))
        return self._versions[ladder]

    def _rules_of(self, ruleset_id: str) -> str | None:
        """Return the version that replaces a ruleset's timeline; the others keep theirs."""
        return self.rules if self.rules is not None and self.rules.partition("@")[0] == ruleset_id else None

    def every(self, ruleset_id: str, *, light: bool = False) -> dict[str, Stream]:
        """Return the streams of all ladders of a usable ruleset, by name.

        With `light`, one whose trace is known may have no games: it is only good for replaying it.
        """
        if (clubs := self.of(ruleset_id)) is not self:
            return clubs.every(ruleset_id, light=light)
        if ruleset_id not in self._streams:
            versions = self.facts.rulesets[ruleset_id]
            if (rules := self._rules_of(ruleset_id)) is not None:
                versions = _only(versions, rules)
            # the only ladder of its ruleset may have been replayed already
            known = None if versions[0].ruleset.partition.by else self._at_hand(ruleset_id)
            if known is not None and known.is_kept and (known.count or known.adjustments):
                if light:
                    own = known.stream
                    return {ruleset_id: Stream(ruleset_id, own.rule, own.versions, own.names, known=known)}
                whole = known.whole()
                self._streams[ruleset_id] = {ruleset_id: replace(whole.stream, known=whole)}
            else:
                self._streams[ruleset_id] = streams(
                    self.facts, versions, as_of=self.as_of, ordered=self._ordered, close_now=self.close_now
                )
        return self._streams[ruleset_id]

    def stream(self, ladder: str) -> Stream:
        """Return the stream of one ladder, empty if it has no games. Raises `UnknownLadder`, `RulesetUnusable`."""
        if (own := self.of(ladder)) is not self:
            return own.stream(ladder)
        versions = self.versions(ladder)
        found = self._streams.get(ladder.partition("/")[0], self._single)
        if found is self._single and ladder not in found:
            values = parse_name(ladder).values
            found |= streams(self.facts, versions, only=values, as_of=self.as_of, close_now=self.close_now)
        return found.get(ladder) or Stream(ladder, versions[0].rule, versions)

    def replayed_stream(self, ladder: str) -> Stream:
        """Return the same, taken from the trace of the ladder if that is at hand. Raises as `stream` does."""
        known = self._at_hand(ladder)
        return known.whole().stream if known is not None and known.is_kept else self.stream(ladder)

    def trace(self, ladder: str, keep: bool = True) -> Trace:
        """Return the trace of one ladder, with the points before all games if they are to be kept.

        Raises `UnknownLadder`, `RulesetUnusable`, `RuleFailure`.
        """
        if (own := self.of(ladder)) is not self:
            return own.trace(ladder, keep)
        known = self._at_hand(ladder)
        if known is None or (keep and not known.is_kept):
            stream = self.stream(ladder)
            keep = keep or not stream.ranking.running or len(stream.row) < SHORT_GAMES
            known = self._traces[ladder] = replay(stream, keep=keep)
            if self.as_of is None and self.rules is None and self.facts.cache is not None and known.is_kept:
                from ratings_ledger.projections.replay.kept_traces import keep_trace

                keep_trace(self.facts, known, stream.versions)
        return known

    def _at_hand(self, ladder: str) -> Trace | None:
        """Return the ladder's trace if nothing has to be replayed for it, or only what was kept once.

        An earlier time is a part of the whole history, which is worth replaying if it will be kept.
        """
        if (own := self.of(ladder)) is not self:
            return own._at_hand(ladder)
        if ladder not in self._traces and (known := self._look_up_trace(ladder)) is not None:
            self._traces[ladder] = known
        return self._traces.get(ladder)

    def _look_up_trace(self, ladder: str) -> Trace | None:
        """Return the ladder's trace among those that are kept, or as a part of its whole history."""
        if self.as_of is None:
            if (continued := self._continue_trace(ladder)) is not None or self.facts.cache is None:
                return continued
            from ratings_ledger.projections.replay.kept_traces import find_trace

            return find_trace(self.facts, ladder, self.versions(ladder))
        whole = self.at(None)
        if ladder in whole._traces or self._is_worth_keeping(ladder):
            with suppress(RuleFailure):  # of a later game, perhaps
                whole.trace(ladder)
        known = whole._traces.get(ladder)
        if known is None or not known.is_kept or not is_prefix(known.stream):
            return None
        return up_to(self.facts, known, self.as_of)

    def _continue_trace(self, ladder: str) -> Trace | None:
        """Continue the ladder's trace at an earlier position; None if it is better replayed from its beginning."""
        earlier = self._earlier.get(ladder)
        if earlier is None or earlier.versions != self.versions(ladder):
            return None
        if not can_be_continued(self.facts, earlier.versions):
            return None
        with suppress(RuleFailure):  # a replay says of which game
            return continued(earlier.trace.compact(), earlier.since, self.facts, ladder, earlier.versions)
        return None

    def remember(self, ladder: str) -> None:
        """Keep the trace of a ruleset's only ladder, if it is long enough, for whoever asks next."""
        if self.of(ladder) is not self:
            return  # a trace that is kept is about players
        every = self.every(ladder, light=True)
        stream = every[ladder]
        if stream.known is None and len(stream.row) >= compiling.COMPILED_GAMES and self._is_worth_keeping(ladder):
            trim_heap()  # before the replay, which needs the most
            with suppress(RuleFailure):  # whoever replays it says so
                every[ladder] = replace(stream, known=self.trace(ladder))

    def _is_worth_keeping(self, ladder: str) -> bool:
        """Tell whether its trace may be kept; those of other versions would take the place of its own."""
        if self.facts.cache is None or self.rules is not None:
            return False
        from ratings_ledger.projections.replay.kept_traces import can_be_kept

        return can_be_kept(self.facts, self.versions(ladder))

    def just_before(self, ladder: str, moment: tuple[int, int]) -> Before:
        """Return what everybody had on a ladder before a (time, position).

        Raises `UnknownLadder`, `RulesetUnusable`, `RuleFailure`, but not for what is later.
        """
        if (known := self._at_hand(ladder)) and known.is_kept:
            return Before(known, *known.place(self.facts, moment))
        stream = self.stream(ladder)
        trace = replay(stream.up_to(*stream.place(self.facts, moment)), keep=False).enter_until(moment[0])
        return Before(trace, trace.count, trace.adjustments)

    def first(self, ladder: str) -> tuple[int, str] | None:
        """Return when a ladder begins, and whether with a `game` or an `adjustment`; None if it has neither.

        Raises `UnknownLadder`, `RulesetUnusable`.
        """
        known = self._at_hand(ladder)
        return known.first_moment(self.facts) if known else self.stream(ladder).first_moment(self.facts)

    def describe_periods(self, ladder: str) -> ClosedPeriods | None:
        """Return how far a ladder is scored by rating periods; None if it has none. Raises as `trace` does."""
        if self.versions(ladder)[0].ruleset.period == "game":
            return None
        return describe_periods(self.facts, self.trace(ladder).stream, self.as_of)

    def standings(self, ladder: str) -> Ranking:
        """Return the standings of one ladder. Raises `UnknownLadder`, `RulesetUnusable`, `RuleFailure`."""
        return self.ranked(self.trace(ladder, keep=False))[0]

    def of_stream(self, stream: Stream) -> Ranking:
        """Return the standings of a stream. Raises `RuleFailure`."""
        return self.ranked(replay(stream, keep=not stream.ranking.running))[0]

    def ranked_at(self, trace: Trace, as_of: int | None) -> Ranking:
        """Return the standings at an earlier `as_of`, given a trace to the end.

        Nothing is scored again unless it has to be: annual lists and carried-over points look further back.
        Raises `RuleFailure`.
        """
        if (own := self.of(trace.stream.ladder)) is not self:
            return own.ranked_at(trace, as_of)
        if as_of is not None and not is_prefix(trace.stream):
            return self.at(as_of).standings(trace.stream.ladder)
        return self.ranked(trace if as_of is None else up_to(self.facts, trace, as_of))[0]

    def ranked(self, trace: Trace) -> tuple[Ranking, Results]:
        """Return the standings at the end of a trace, and what its list ranked. Raises `RuleFailure`."""
        if (own := self.of(trace.stream.ladder)) is not self:
            return own.ranked(trace)
        stream, version, games = trace.stream, ranking_version(trace), trace.count
        annual = stream.ranking.sums_lists
        months = self._months(stream, version) if annual else {}
        results = self._results(trace, version, months)
        rows = LISTS[stream.rule.ranking].rank(results)
        games = sum(month.games for month in months.values()) if annual else games
        found = Ranking(
            stream.ladder,
            version.ruleset.name,
            stream.rule.scale,
            rows,
            games,
            sum(results.points),
            trace.started,
            trace.minted,
            trace.burned,
            trace.adjusted,
            version.rule.state,
            # a list of what single games gave has points of its own, not those that the rule keeps
            ShownStates(self.facts, trace, version, self.as_of)
            if version.rule.state and stream.ranking.running
            else None,
            describe_periods(self.facts, stream, self.as_of),
        )
        return found, results

    def _results(self, trace: Trace, version: Version, months: dict[str, Ranking]) -> Results:
        # everybody in a stream that was replayed to the end is on the ladder
        stream, running = trace.stream, trace.stream.ranking.running
        long = running and len(stream.names) >= compiling.COMPILED_GAMES and compiling.allowed()
        places, more = find_places(self.facts, stream) if stream.ranking.reads_places(version.params) else ((), {})
        return Results(
            stream.names,
            trace.states[0],
            trace.games,
            stream.offsets,
            stream.players,
            () if running else trace.changes,
            stream.rule.scale,
            version.params,
            {month: {row.player: row for row in found.rows} for month, found in months.items()},
            self._excluded(stream, version, months),
            places,
            arrays.taken(self.facts.ranks(), array("i", stream.persons)) if long else None,
            trace.states[: version.rule.width] if version.rule.state else (),
            _rank_by(trace, version),
            more,
        )

    def _months(self, stream: Stream, version: Version) -> dict[str, Ranking]:
        """Return the monthly lists that an annual list sums, by month. Raises `RuleFailure` if they cannot be used."""
        params: Any = version.params
        if params.of in self.facts.unusable:
            raise RuleFailure(stream.ladder, self.facts.unusable[params.of].reason, position=version.position)
        versions = self.facts.rulesets.get(params.of, [])
        if wrong := refuse_months(version, versions):
            raise RuleFailure(stream.ladder, wrong, position=version.position)
        every = self.every(params.of)
        names = months_of(stream.ladder, version, versions)
        return {month: self.of_stream(every[name]) for month, name in names.items() if name in every}

    def _excluded(self, stream: Stream, version: Version, months: dict[str, Ranking]) -> dict[str, str]:
        """Return who has no rank whatever their points, and why: as the ruleset says, or by their account."""
        params: Any = version.params
        if not stream.ranking.sums_lists:
            return {self.facts.current(name): reason for name, reason in getattr(params, "unranked", {}).items()}
        values = parse_name(stream.ladder).values
        period = period_of(version.ruleset, values)
        group = dict(zip(version.ruleset.partition.by, values, strict=True)).get("group")
        if params.account is None or group in params.any_account or period is None:
            return {}
        instant = period.end if self.as_of is None else min(period.end, self.as_of)
        found = {}
        for name in {row.player for month in months.values() for row in month.rows}:
            account = self.facts.account(self.facts.player_numbers[name], instant)
            if account != params.account:
                when = "at the end of the year" if instant == period.end else "at that time"
                found[name] = f"a {account} account {when}, not a {params.account} one"
        return found


K = TypeVar("K")
T = TypeVar("T")


class Memo(Generic[K, T]):
    """Answers of one question that are computed once for some ladders, by key; they are dropped with the ladders."""

    def __init__(self, limit: int | None = None) -> None:
        """Keep all answers or, with a `limit`, so many that were computed last."""
        self._limit = limit
        self._answers: WeakKeyDictionary[Ladders, dict[K, T]] = WeakKeyDictionary()

    def get(self, ladders: Ladders, key: K, compute: Callable[[], T]) -> T:
        """Return the answer for some ladders, which is computed where it is missing."""
        answers = self._answers.setdefault(ladders, {})
        if key not in answers:
            answer = compute()
            if self._limit is not None and len(answers) >= self._limit:
                answers.pop(next(iter(answers)), None)
            answers[key] = answer
            return answer
        return answers[key]


def months_of(ladder: str, annual: Version, monthly: Sequence[Version]) -> dict[str, str]:
    """Return the names of the twelve monthly lists that an annual one may sum, by month; see `refuse_months`."""
    by = annual.ruleset.partition.by
    values = dict(zip(by, parse_name(ladder).values, strict=True))
    found = {}
    for month in range(1, 13):
        parts = values | {"month": f"{values['year']}-{month:02d}"}
        own = (parts[part] for part in monthly[0].ruleset.partition.by)
        found[parts["month"]] = "/".join([monthly[0].ruleset.id, *own])
    return found


def is_prefix(stream: Stream) -> bool:
    """Tell whether a ladder at an earlier time is a prefix of this one; otherwise more than its own games decides."""
    return not stream.ranking.sums_lists and stream.previous is None and not stream.closes_now


def up_to(facts: Facts, trace: Trace, as_of: int) -> Trace:
    """Return the trace of what happened up to an instant. Raises `RuleFailure`."""
    return trace.up_to(*trace.place(facts, (as_of + 1, 0))).enter_until(as_of)


def ranking_version(trace: Trace) -> Version:
    """Return the version that ranks a ladder: the one that scored its last counted game, or changed what players have
    after it; otherwise the newest.

    An annual list has no games; it is ranked by the version in force at the end of its year.
    """
    stream = trace.stream
    if stream.ranking.sums_lists:
        period = period_of(stream.versions[0].ruleset, parse_name(stream.ladder).values)
        version = None if period is None else in_force(stream.versions, period.end)
        return version or newest(stream.versions)
    return (
        trace.rated_by
        if stream.adjustments and stream.adjustments[-1].enters
        else trace.last_version or newest(stream.versions)
    )


def versions_of(facts: Facts, ladder: str, rules: str | None = None) -> list[Version]:
    """Return the versions that may score a ladder's games; with `rules` (ID@VERSION) only that one, in force from the
    start.

    Raises `UnknownLadder`, `RulesetUnusable`.
    """
    name = parse_name(ladder)
    if name.ruleset_id in facts.unusable:
        raise RulesetUnusable(facts.unusable[name.ruleset_id].reason)
    versions = facts.rulesets.get(name.ruleset_id)
    if not versions:
        _refuse_withdrawn(facts, rules or "")
        raise _unknown_ruleset(name.ruleset_id, facts.rulesets, f" at position {facts.position}")
    if reason := refuse_name(name, versions[0].ruleset):
        raise UnknownLadder(f"{quote(ladder)} is not a ladder: {reason}{_day_meant(name, versions[0].ruleset)}")
    if rules is None:
        return versions
    if not (chosen := _only(versions, rules)):
        _refuse_withdrawn(facts, rules)
        names = ", ".join(version.ruleset.name for version in versions)
        hint = did_you_mean(rules, [version.ruleset.name for version in versions])
        raise UnknownLadder(f"{quote(rules)} is not a published version for {ladder} (there are {names}){hint}")
    return chosen


def _day_meant(name: LadderName, ruleset: Ruleset) -> str:
    """Return the end of a message about a name with a month or day, where the ruleset has no such ladders: what is
    meant.
    """
    if by_time(ruleset):
        return ""
    for value in name.values:
        with suppress(ValueError):
            month = date.fromisoformat(f"{value}-01")
            value = f"{value}-{monthrange(month.year, month.month)[1]}"
        with suppress(ValueError):
            return f"; a ladder as it stood on a day has --as-of, such as --as-of {date.fromisoformat(value)}"
    return ""


def check_version(facts: Facts, rules: str | None) -> None:
    """Raises `UnknownLadder` if no version of this name (ID@VERSION) is published, `RulesetUnusable` if it cannot run.

    None means the timeline, which always exists.
    """
    if rules is None:
        return
    ruleset_id, _, _ = rules.partition("@")
    if ruleset_id in facts.unusable:
        raise RulesetUnusable(facts.unusable[ruleset_id].reason)
    every = [version for versions in facts.rulesets.values() for version in versions]
    if not _only(every, rules):
        _refuse_withdrawn(facts, rules)
        there = facts.rulesets.get(ruleset_id) or every
        names = ", ".join(version.ruleset.name for version in there) or "none"
        hint = did_you_mean(rules, [version.ruleset.name for version in every])
        raise UnknownLadder(
            f"no version {quote(rules)} is published at position {facts.position} (there are {names}){hint}"
        )


def _refuse_withdrawn(facts: Facts, rules: str) -> None:
    """Raise `UnknownLadder` if a version (ID@VERSION) is withdrawn, with the position at which it can be queried."""
    recorded = facts.recorded
    for version in recorded.versions:
        if version.ruleset.name == rules and version.position in recorded.withdrawn:
            at = max(void for void, root in recorded.roots.items() if root == version.position)
            raise UnknownLadder(f"{rules} is withdrawn at position {at}; query it with --known-at {at - 1}")


def _only(versions: Iterable[Version], rules: str) -> list[Version]:
    """Return the version of this name alone, in force from the start; empty if there is none."""
    return [version._replace(effective_from=-(2**63)) for version in versions if version.ruleset.name == rules][:1]


def known_ones(facts: Facts, players: Collection[str]) -> set[str]:
    """Return the current ids of some players. Raises `Unknown` (player-unknown)."""
    for player in players:
        refuse_unknown(facts, player)
    return {facts.current(player) for player in players}


def refuse_unknown(facts: Facts, player: str) -> None:
    """Raises `Unknown` (player-unknown) for somebody the facts know nothing about."""
    if not facts.knows(player):
        hint = did_you_mean(player, known_players(facts))
        raise Unknown("player-unknown", f"nothing is recorded about {quote(player)}{hint}")

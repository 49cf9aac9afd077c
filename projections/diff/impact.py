"""Compute an impact: the changes that new events, or another ruleset, would make on every ladder.

On a ladder with rating periods, they include the recomputed and closed periods, and the waiting games.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.types import Draft
from ratings_ledger.ledger.validation.published_lists import PublishedList, read_published_lists, select_latest_lists
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.diff.affected import apply_drafts, have_same_points, pair_affected_streams
from ratings_ledger.projections.diff.comparison import (
    DifferingList,
    Effect,
    ImpactSummary,
    ReplayedLadder,
    compare_states,
)
from ratings_ledger.projections.diff.differing_lists import (
    LoadRows,
    find_differing_lists,
    find_renamed_lists,
    has_results_until,
)
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.coordinates import UTC_TIMES, TimeFormat, load_times, to_datetime
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.published_lists import load_published_list
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, Absent, Result, RowSequence
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.replay.rule_calls import RuleFailure, describe_failure
from ratings_ledger.projections.replay.streams import Stream, describe_periods


@dataclass(frozen=True, slots=True)
class PeriodImpact(Result):
    """The impact of events on a ladder that is scored by rating periods.

    recomputed: the number of closed periods that change, because a game, an adjustment or a rule in or before the
                period changes
    closed:     the number of periods that close because time has passed
    waiting:    the number of additional games in open periods
    closes_at:  the end of the first open period, None without one
    """

    ladder: str
    recomputed: int
    closed: int
    waiting: int
    closes_at: datetime | None = field(default=None, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class Impact(RowSequence[Effect]):
    """The changes in players' points, a summary per ladder, and the published lists that would come out differently.

    `renamed` has the published lists on which only names change. `reasons` explains unexpected changes. `failed` says
    why versions are unusable and why replays failed. `periods` has the ladders whose rating periods are affected.
    `times` is the ledger's time format if the impact has times.
    """

    _rows_member: ClassVar[str] = "changes"
    changes: tuple[Effect, ...] = ()
    ladders: tuple[ImpactSummary, ...] = ()
    published: tuple[DifferingList, ...] = ()
    reasons: tuple[str, ...] | Absent = ABSENT
    periods: tuple[PeriodImpact, ...] | Absent = ABSENT
    renamed: tuple[DifferingList, ...] | Absent = ABSENT
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN)
    times: TimeFormat = field(default=UTC_TIMES, metadata=HIDDEN)


def compute_impact(connection: Connection, before: Ladders, drafts: Iterable[Draft]) -> Impact:
    """Return the changes that checked events would make to the current ladders if they were appended."""
    after, affected, renames = apply_drafts(connection, before, drafts, clock.now())
    impact = compute_impact_between(build_log_lookups(connection, before.facts.position), before, after, affected)
    reasons = tuple(
        reason for player, new_player in renames for reason in _explain_rename(before.facts, impact, player, new_player)
    )
    has_times = impact.published or impact.renamed is not ABSENT or impact.periods is not ABSENT
    return replace(impact, reasons=reasons or ABSENT, times=load_times(connection) if has_times else UTC_TIMES)


def _explain_rename(before: Facts, impact: Impact, player: str, new_player: str) -> Iterator[str]:
    """Yield the reasons why a rename changes points, if it does."""
    ladders = dict.fromkeys(effect.ladder for effect in impact.changes if effect.before != effect.after)
    if not ladders:
        return
    if before.knows(new_player):
        yield f"{player} and {new_player} become one person with the games of both, so later games are rated again."
        return
    for ruleset_id in dict.fromkeys(parse_name(ladder).ruleset_id for ladder in ladders):
        yield (
            f"The rule of {ruleset_id} processes a player's opponents in the order of their ids, and the new id "
            "changes this order."
        )


class LogLookups(NamedTuple):
    """Functions that read from the log: the published lists, the rows of a list, and the description of a failure."""

    load_lists: Callable[[], list[PublishedList]]
    load_rows: LoadRows
    describe_failure: Callable[[RuleFailure, Facts], str]


def build_log_lookups(connection: Connection, position: int) -> LogLookups:
    """Return lookups in the log up to a position."""
    return LogLookups(
        partial(read_published_lists, connection, position),
        lambda published: load_published_list(connection, published),
        lambda failure, facts: describe_failure(failure, facts, connection),
    )


def compute_impact_between(
    lookups: LogLookups, before: Ladders, after: Ladders, affected: set[str], only: Collection[str] = ()
) -> Impact:
    """Compare two states of the ladders that may be `affected`, or only of those in `only`."""
    failed = [problem.reason for side in (before, after) for problem in side.facts.unusable.values()]
    lists: dict[str, list[PublishedList]] = defaultdict(list)
    for entry in select_latest_lists(lookups.load_lists()):
        if before.as_of is None or has_results_until(entry, before):
            lists[entry.ladder].append(entry)
    effects, summaries, differing_lists = list[Effect](), list[ImpactSummary](), list[DifferingList]()
    periods, renamed = list[PeriodImpact](), list[DifferingList]()
    for name, (old, new) in pair_affected_streams(before, after, affected, only).items():
        if (period_impact := compare_periods(before.facts, after.facts, old, new)) is not None:
            periods.append(period_impact)
        # a game with a new date may change a published list even if no player's current points change
        is_redated = name in lists and _list_instants(before, old) != _list_instants(after, new)
        if have_same_points(old, new) and not is_redated:
            if name in lists:
                old_facts, new_facts = before.for_ladder(name).facts, after.for_ladder(name).facts
                renamed += find_renamed_lists(lookups.load_rows, old_facts, new_facts, lists[name])
            continue
        # with running points, ranks are left out, because one change moves the ranks of many players
        with_ranks = any(stream and not stream.ranking.running for stream in (old, new))
        try:
            old_ladder, new_ladder = ReplayedLadder(before, old), ReplayedLadder(after, new)
            differing, summary = compare_states(Effect, name, old_ladder.at(), new_ladder.at(), ranks=with_ranks)
            if name in lists:
                ladder_lists = [*find_differing_lists(lookups.load_rows, old_ladder, new_ladder, lists[name])]
                differing_lists += ladder_lists
                positions = {differing.position for differing in ladder_lists}
                equal_lists = [published for published in lists[name] if published.position not in positions]
                renamed += find_renamed_lists(lookups.load_rows, old_ladder.facts, new_ladder.facts, equal_lists)
        except RuleFailure as failure:
            # the message lacks the position if the failing game is not recorded yet, so say what cannot be replayed
            message = lookups.describe_failure(failure, after.facts)
            failed.append(message.replace(": the rule", " cannot be replayed: the rule", 1))
            continue
        effects += differing
        if differing or summary.ranks:
            summaries.append(summary)
    return Impact(
        tuple(effects),
        tuple(summaries),
        tuple(differing_lists),
        periods=tuple(periods) or ABSENT,
        renamed=tuple(renamed) or ABSENT,
        failed=tuple(dict.fromkeys(failed)),
    )


def _list_instants(ladders: Ladders, stream: Stream | None) -> list[int]:
    """Return the times of a ladder's games, then those of its adjustments, each in the order of the stream."""
    if stream is None:
        return []
    stream = ladders.stream(stream.ladder)  # a stream with all games; the given one may have only some
    return [
        *(ladders.facts.occurred_at[row] for row in stream.rows),
        *(adjustment.occurred_at for adjustment in stream.adjustments),
    ]


def compare_periods(before: Facts, after: Facts, old: Stream | None, new: Stream | None) -> PeriodImpact | None:
    """Compare the rating periods of two states of a ladder.

    Return None if no period changes, or if the ladder has no periods.
    """
    # a trace is continued only if every game is scored separately, so the trace of this ladder covers all of it
    old, new = (stream.trace.stream if stream and stream.trace else stream for stream in (old, new))
    if new is None or new.periods is None or (old is not None and old.periods is None):
        return None
    old_periods = None if old is None else describe_periods(before, old, as_of=None)
    new_periods = describe_periods(after, new, as_of=None)
    closed_before = new.periods.count_closed(before.recorded_until) if before.position else 0
    recomputed = max(closed_before - _find_first_differing_period(old, new), 0)
    closed = len(new.periods.begin) - closed_before
    old_open_games = old_periods.open_games if old_periods else 0
    waiting = max((new_periods.open_games if new_periods else 0) - old_open_games, 0)
    if not (recomputed or closed or waiting):
        return None
    closes_at = None if new_periods is None or new_periods.closes_at is None else to_datetime(new_periods.closes_at)
    return PeriodImpact(new.ladder, recomputed, closed, waiting, closes_at=closes_at)


def _find_first_differing_period(old: Stream | None, new: Stream) -> int:
    """Return the index of the first period that is scored differently than before."""
    assert new.periods is not None
    if old is None or old.periods is None:
        return 0
    first_game = min(
        _find_first_difference(_describe_games(old), _describe_games(new)),
        _find_game_of_slot(new, _find_first_difference(_describe_slots(old), _describe_slots(new))),
    )
    ends = []
    for stream, counterpart in ((old, new), (new, old)):
        assert stream.periods is not None
        seeded_players = [name for name, seed in stream.seeds.items() if counterpart.seeds.get(name) != seed]
        # an adjustment takes effect when its period closes, so only the later periods differ
        adjustments = _describe_adjustments(stream) - _describe_adjustments(counterpart)
        games = [first_game, *(game for game, *_ in adjustments)]
        games += [_find_first_game(stream, name) for name in seeded_players]
        ends += [stream.periods.find_end(game) for game in games]
    return int(np.searchsorted(new.periods.end, min(ends), "left"))


def _describe_adjustments(stream: Stream) -> set[tuple[int, int, int, int]]:
    """Return the values that identify each adjustment: (next game, person, units, position)."""
    return {
        (adjustment.game, stream.persons[adjustment.player], adjustment.units, adjustment.position)
        for adjustment in stream.adjustments
    }


def _describe_games(stream: Stream) -> list[Any]:
    """Return columns with the values that identify each game."""
    positions = np.array([version.position for version in stream.versions], dtype=np.int64)
    version, row = arrays.as_numpy(stream.version_indices), arrays.as_numpy(stream.rows)
    periods = stream.periods
    assert periods is not None
    return [row, positions[version], np.diff(arrays.as_numpy(stream.offsets)), periods.end[periods.of_game]]


def _describe_slots(stream: Stream) -> list[Any]:
    """Return columns with the values that a rule reads about each slot (a player in a game)."""
    persons = np.array(stream.persons, dtype=np.int64)
    return [persons[arrays.as_numpy(stream.players)], *map(arrays.as_numpy, stream.columns)]


def _find_first_difference(left: list[Any], right: list[Any]) -> int:
    """Return the first index at which the columns differ; without a difference, the length of the shorter columns."""
    count = min(len(left[0]), len(right[0]))
    differs = np.zeros(count, dtype=bool)
    for left_column, right_column in zip(left, right, strict=False):
        differs |= left_column[:count] != right_column[:count]
    indexes = np.flatnonzero(differs)
    return int(indexes[0]) if len(indexes) else count


def _find_game_of_slot(stream: Stream, slot: int) -> int:
    return int(np.searchsorted(arrays.as_numpy(stream.offsets), slot, "right")) - 1


def _find_first_game(stream: Stream, name: str) -> int:
    """Return the number of a player's first game; without one, the number of games."""
    if name not in stream.names:
        return len(stream.rows)
    slots = np.flatnonzero(arrays.as_numpy(stream.players) == stream.names.index(name))
    return _find_game_of_slot(stream, int(slots[0])) if len(slots) else len(stream.rows)

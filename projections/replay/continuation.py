"""Continue a trace after new events: replay only from the first game that these events can change.

Points before a game do not depend on later games. After a late game or a correction, only this game and later
ones are replayed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.facts.columns import Column, Facts
from ratings_ledger.projections.facts.lookups import list_rows_of
from ratings_ledger.projections.replay.eligibility import order_rows
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.streams import Stream, build_stream, find_seeds
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.versions import Version, list_games

# continue a trace only if it has at least this many games for each game to replay; otherwise a full replay is as fast
GAMES_PER_REPLAYED_GAME = 10


class TraceInputs(NamedTuple):
    """The inputs of a trace other than its games, as JSON values.

    position:    the log position of the facts
    renames:     [old id, new id] of each live rename, in log order
    adjustments: [time, position, player id, points] of each live adjustment of the ladder, by time
    seeds:       [player id, state by column, number of games elsewhere] of each seed of the ladder
    clubs:       [old name, current name] of each renamed club
    accounts:    [player id, time, account] of each live change of account, in log order; empty if no version leaves out
                 an account tier
    """

    position: int
    renames: list[list[str]]
    adjustments: list[list[Any]]
    seeds: list[list[Any]]
    clubs: list[list[str]]
    accounts: list[list[Any]]


def read_trace_inputs(facts: Facts, ladder: str, versions: Sequence[Version]) -> TraceInputs:
    """Return the inputs that a ladder's trace has under these facts."""
    recorded, ids = facts.recorded, facts.players

    def is_live(entry: Any) -> bool:
        return entry.position not in recorded.withdrawn

    reads_accounts = any(version.ruleset.scope.exclude_accounts for version in versions)
    return TraceInputs(
        position=facts.position,
        renames=[[ids[rename.player], ids[rename.new_player]] for rename in filter(is_live, recorded.renames)],
        adjustments=[
            [adjustment.occurred_at, adjustment.position, ids[adjustment.player], adjustment.points]
            for adjustment in filter(is_live, sorted(recorded.adjustments))
            if adjustment.ladder == ladder
        ],
        seeds=sorted([ids[person], seed.state, seed.games] for person, seed in find_seeds(facts, ladder).items()),
        clubs=[list(names) for names in sorted(facts.clubs.items())],
        accounts=[
            [ids[entry.player], entry.occurred_at, entry.account]
            for entry in (filter(is_live, recorded.accounts) if reads_accounts else ())
        ],
    )


def continue_trace(
    trace: Trace, old_inputs: TraceInputs, facts: Facts, ladder: str, versions: Sequence[Version]
) -> Trace | None:
    """Continue a trace of an earlier state of the log up to these facts. Raises `RuleFailure`.

    Returns None if a replay from the beginning is required or faster.

    Args:
        trace: the earlier trace, replayed under the same versions
        old_inputs: the inputs of the earlier trace
    """
    new_inputs = read_trace_inputs(facts, ladder, versions)
    if _requires_replay(old_inputs, new_inputs):
        return None
    changed_rows = find_changed_rows(facts, old_inputs.position)
    changed_people = _find_changed_people(old_inputs.renames, new_inputs.renames)
    if changed_people:
        trace = trace.join_parts()
    old_rows = [row for row in changed_rows if facts.first_position[row] <= old_inputs.position]
    stream = trace.stream
    changed_games = [
        *_find_first_game(trace, old_rows),
        *(entry.game for entry in stream.adjustments if stream.names[entry.player] in changed_people),
    ]
    unchanged_games = min([trace.game_count, *changed_games])
    changed_moments = [
        *_find_first_moment(facts, changed_rows, versions),
        *_find_differing_adjustments(old_inputs.adjustments, new_inputs.adjustments),
        *_find_first_moment_of_people(facts, changed_people),
    ]
    # only the unchanged games are still in order, so only they can be searched for the moments
    counts_before = [trace.count_before(facts, moment, unchanged_games)[0] for moment in changed_moments]
    unchanged_games = min([unchanged_games, *counts_before])
    if unchanged_games == trace.game_count and not changed_moments:
        return trace
    replayed_games = len(changed_rows) + trace.game_count - unchanged_games
    if not unchanged_games or replayed_games * GAMES_PER_REPLAYED_GAME > trace.game_count:
        return None
    row = trace.row_of(unchanged_games - 1)
    boundary = (facts.occurred_at[row], facts.first_position[row])
    earlier = trace.truncate(unchanged_games, trace.count_before(facts, boundary, unchanged_games)[1])
    if changed_people:
        # after a rename, games may count that did not count before
        rows = _select_rows_after(facts, boundary, order_rows(facts, since=boundary[0]))
    else:
        rows = _select_rows_after(facts, boundary, [*trace.rows_from(unchanged_games), *changed_rows])
    later_stream = build_stream(facts.select_rows(rows), versions, ladder, after=boundary)
    if later_stream is None:
        return earlier
    later_stream.rows = arrays.take(rows, later_stream.rows)
    return replay(number_players_after(earlier.stream, later_stream), earlier=earlier)


def _requires_replay(old_inputs: TraceInputs, new_inputs: TraceInputs) -> bool:
    """Tell whether an input changed that may affect every game of the ladder."""
    is_reordered = new_inputs.renames != old_inputs.renames and sorted(new_inputs.renames) == sorted(old_inputs.renames)
    old_values = (old_inputs.accounts, old_inputs.seeds, old_inputs.clubs)
    return is_reordered or (new_inputs.accounts, new_inputs.seeds, new_inputs.clubs) != old_values


def _select_rows_after(facts: Facts, boundary: tuple[int, int], rows: Column) -> Column:
    """Return those of `rows` whose games come after a moment, ascending and without duplicates."""
    rows = arrays.distinct(rows)
    times, positions = arrays.take(facts.occurred_at, rows), arrays.take(facts.first_position, rows)
    return array("q", [row for row, *moment in zip(rows, times, positions, strict=True) if tuple(moment) > boundary])


def _find_first_moment(facts: Facts, rows: list[int], versions: Sequence[Version]) -> list[tuple[int, int]]:
    """Return a list with the moment of the first game in `rows` that the versions may count; empty without one."""
    text_numbers = {facts.text_numbers.get(name) for name in list_games(versions)}
    moments = (
        (facts.occurred_at[row], facts.first_position[row]) for row in rows if facts.cell_of(row).game in text_numbers
    )
    first = min(moments, default=None)
    return [] if first is None else [first]


def can_be_continued(facts: Facts, versions: Sequence[Version]) -> bool:
    """Tell whether a ladder of these versions depends only on its games and its `TraceInputs`."""
    return (
        versions[0].ruleset.freeze == "none"
        and versions[0].ruleset.period == "game"
        and all(version.ranking.running and not version.params.carry_over for version in versions)
        and not (facts.recorded.clocks and any("seconds_played" in version.rule.columns for version in versions))
    )


def find_changed_rows(facts: Facts, position: int) -> list[int]:
    """Return the rows of the games that events after a position recorded or changed."""
    first_new, live_positions = bisect_right(facts.first_position, position), facts.live_position
    # a column from a cache lists its changes; other columns are short enough to search
    changes = (
        enumerate(live_positions[:first_new]) if isinstance(live_positions, array) else live_positions.changes.items()
    )
    return [
        *(row for row, changed_at in changes if changed_at > position and row < first_new),
        *range(first_new, len(facts.first_position)),
    ]


def _find_first_game(trace: Trace, rows: list[int]) -> list[int]:
    """Return a list with the number of the trace's first game in `rows`; empty without one."""
    if not rows:
        return []
    if trace.earlier is not None and (first := _find_first_game(trace.earlier, rows)):
        return first
    earlier_games = 0 if trace.earlier is None else trace.earlier.game_count
    games: list[int] = np.flatnonzero(np.isin(arrays.as_numpy(trace.stream.rows), rows))[:1].tolist()
    return [earlier_games + game for game in games]


def _find_changed_people(before: list[list[str]], after: list[list[str]]) -> set[str]:
    """Return the ids of all players whose identity changed, directly or through a chain of renames.

    `before` and `after` are the renames in the old and the new inputs.
    """
    old_renames, new_renames = {tuple(rename) for rename in before}, {tuple(rename) for rename in after}
    people = {player for rename in old_renames ^ new_renames for player in rename}
    previous_count = -1
    while previous_count < len(people):
        previous_count = len(people)
        linked = [rename for rename in old_renames | new_renames if not people.isdisjoint(rename)]
        people |= {player for rename in linked for player in rename}
    return people


def _find_first_moment_of_people(facts: Facts, player_ids: set[str]) -> list[tuple[int, int]]:
    """Return a list with the moment of the first game of some players, counted or not; empty without one."""
    player_numbers = {facts.player_numbers[name] for name in player_ids & facts.player_numbers.keys()}
    rows = list_rows_of(facts, player_numbers) if player_numbers else []
    return [min((facts.occurred_at[row], facts.first_position[row]) for row in rows)] if rows else []


def _find_differing_adjustments(before: list[list[Any]], after: list[list[Any]]) -> list[tuple[int, int]]:
    """Return the moment of the first differing adjustment in each list, or an empty list if they are equal."""
    equal_count = 0
    while equal_count < min(len(before), len(after)) and before[equal_count] == after[equal_count]:
        equal_count += 1
    return [
        (adjustment[0], adjustment[1])
        for adjustment in (*before[equal_count : equal_count + 1], *after[equal_count : equal_count + 1])
    ]


def number_players_after(earlier: Stream, later: Stream) -> Stream:
    """Renumber the players of the later stream of a ladder: players of the earlier stream keep their numbers.

    The result has the names of the players of both streams. Both streams must use the same person numbers.
    """
    earlier_numbers = earlier.numbers
    new_names = {
        person: name for person, name in zip(later.persons, later.names, strict=True) if person not in earlier_numbers
    }
    new_numbers = {person: number for number, person in enumerate(new_names, len(earlier_numbers))}
    numbers = array(
        "i", [earlier_numbers[person] if person in earlier_numbers else new_numbers[person] for person in later.persons]
    )
    return replace(
        later,
        players=arrays.take(numbers, later.players),
        batch=None,
        adjustments=[adjustment._replace(player=numbers[adjustment.player]) for adjustment in later.adjustments],
        persons=[*earlier.persons, *new_names],
        names=[*earlier.names, *new_names.values()],
    )

"""Continue a trace after new events: replay only from the first game that they can change.

A ladder's points before a game do not depend on later games. A late game or a correction therefore costs only a replay
of the games after it.
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
from ratings_ledger.projections.facts.players import rows_with
from ratings_ledger.projections.replay.eligibility import order_rows
from ratings_ledger.projections.replay.ladders import Stream, build_streams, find_seeds, parse_name
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.versions import Version, list_games

# a trace is continued if at most 1/10 of the ladder has to be replayed
CONTINUED_PART = 10


class TraceInputs(NamedTuple):
    """The facts, besides games, from which a trace was replayed, as values that JSON can hold.

    position:    the log position of the facts
    renames:     [old id, new id] of the live renames, in log order
    adjustments: [time, position, player id, points] of the ladder's adjustments
    seeds:       [player id, state by column, number of games elsewhere] of the ladder's seeds
    clubs:       [old name, current name] of the renamed clubs
    accounts:    [player id, time, account], if the ladder's versions read accounts
    """

    position: int
    renames: list[list[str]]
    adjustments: list[list[Any]]
    seeds: list[list[Any]]
    clubs: list[list[str]]
    accounts: list[list[Any]]


def read_trace_inputs(facts: Facts, ladder: str, versions: Sequence[Version]) -> TraceInputs:
    """Return the inputs of a trace of these facts."""
    withdrawn, ids = facts.recorded.withdrawn, facts.players
    reads_accounts = any(version.ruleset.scope.exclude_accounts for version in versions)
    return TraceInputs(
        facts.position,
        [
            [ids[event.player], ids[event.new_player]]
            for event in facts.recorded.renames
            if event.position not in withdrawn
        ],
        [
            [event.occurred_at, event.position, ids[event.player], event.points]
            for event in sorted(facts.recorded.adjustments)
            if event.ladder == ladder and event.position not in withdrawn
        ],
        sorted([ids[person], seed.state, seed.games] for person, seed in find_seeds(facts, ladder).items()),
        [list(names) for names in sorted(facts.clubs.items())],
        [
            [ids[event.player], event.occurred_at, event.account]
            for event in facts.recorded.accounts
            if reads_accounts and event.position not in withdrawn
        ],
    )


def continue_trace(
    trace: Trace, since: TraceInputs, facts: Facts, ladder: str, versions: Sequence[Version]
) -> Trace | None:
    """Continue a trace of an earlier state of the log, under the same versions, up to these facts.

    Args:
        since: the inputs from which the trace was replayed.

    Returns:
        The continued trace, or None if a replay from the beginning is better.

    Raises `RuleFailure`.
    """
    now = read_trace_inputs(facts, ladder, versions)
    is_reordered = now.renames != since.renames and sorted(now.renames) == sorted(since.renames)
    if is_reordered or (now.accounts, now.seeds, now.clubs) != (since.accounts, since.seeds, since.clubs):
        return None
    changed, changed_people = find_changed_rows(facts, since.position), _find_changed_people(since.renames, now.renames)
    trace = trace.whole() if changed_people else trace
    games = min(
        [
            *_find_first_game(trace, [row for row in changed if facts.first_position[row] <= since.position]),
            *(
                adjustment.game
                for adjustment in trace.stream.adjustments
                if trace.stream.names[adjustment.player] in changed_people
            ),
            trace.count,
        ]
    )
    # the games before this one are unchanged, so the moments can be searched among them
    changed_moments = [
        *_find_first_moment(facts, changed, versions),
        *_find_differing_adjustments(since.adjustments, now.adjustments),
    ]
    changed_moments += _find_first_moment_of_people(facts, changed_people)
    games = min([games, *(trace.place(facts, moment, games)[0] for moment in changed_moments)])
    if games == trace.count and not changed_moments:
        return trace
    if (len(changed) + trace.count - games) * CONTINUED_PART > trace.count or not games:
        return None
    row = trace.row_of(games - 1)
    boundary = (facts.occurred_at[row], facts.first_position[row])
    earlier = trace.up_to(games, trace.place(facts, boundary, games)[1])
    # a rename may also affect games that did not count
    rows_of_all = order_rows(facts, None, boundary[0]) if changed_people else None
    rows = _select_rows_after(
        facts, boundary, [*trace.rows_from(games), *changed] if rows_of_all is None else rows_of_all
    )
    rest = build_streams(facts.only(rows), versions, only=parse_name(ladder).values, after=boundary).get(ladder)
    if rest is None:
        return earlier
    rest.row = arrays.take(rows, rest.row)
    return replay(number_players_after(earlier.stream, rest), earlier=earlier)


def _select_rows_after(facts: Facts, boundary: tuple[int, int], rows: Column) -> Column:
    """Return the rows that come after a (time, position), in ascending order."""
    rows = arrays.distinct(rows)
    times, positions = arrays.take(facts.occurred_at, rows), arrays.take(facts.first_position, rows)
    return array("q", [row for row, *moment in zip(rows, times, positions, strict=True) if tuple(moment) > boundary])


def _find_first_moment(facts: Facts, rows: list[int], versions: Sequence[Version]) -> list[tuple[int, int]]:
    """Return the earliest (time, position) of the games that may be on a ladder of the versions; empty without any."""
    games = {facts.text_numbers.get(name) for name in list_games(versions)}
    moments = ((facts.occurred_at[row], facts.first_position[row]) for row in rows if facts.cell_of(row).game in games)
    first = min(moments, default=None)
    return [] if first is None else [first]


def can_be_continued(facts: Facts, versions: Sequence[Version]) -> bool:
    """Tell whether a ladder of these versions depends only on its games and on the inputs that `TraceInputs` holds."""
    return (
        versions[0].ruleset.freeze == "none"
        and versions[0].ruleset.period == "game"
        and all(version.ranking.running and not version.params.carry_over for version in versions)
        and not (facts.recorded.clocks and any("seconds_played" in version.rule.columns for version in versions))
    )


def find_changed_rows(facts: Facts, position: int) -> list[int]:
    """Return the rows of the games with an event after a position."""
    new, live = bisect_right(facts.first_position, position), facts.live_position
    # a column from a cache lists its changes; other columns are short enough to be searched
    changes = enumerate(live[:new]) if isinstance(live, array) else live.changes.items()
    return [*(row for row, at in changes if at > position and row < new), *range(new, len(facts.first_position))]


def _find_first_game(trace: Trace, rows: list[int]) -> list[int]:
    """Return the first game of a trace that is among some rows; empty without any."""
    if not rows:
        return []
    if trace.earlier is not None and (first := _find_first_game(trace.earlier, rows)):
        return first
    earlier_games = 0 if trace.earlier is None else trace.earlier.count
    games: list[int] = np.flatnonzero(np.isin(arrays.as_numpy(trace.stream.row), rows))[:1].tolist()
    return [earlier_games + game for game in games]


def _find_changed_people(before: list[list[str]], after: list[list[str]]) -> set[str]:
    """Return the ids of all players whose identity changed, directly or through a chain of renames."""
    old_renames, new_renames = {tuple(rename) for rename in before}, {tuple(rename) for rename in after}
    people = {player for rename in old_renames ^ new_renames for player in rename}
    count = -1
    while count < len(people):
        count = len(people)
        linked = [rename for rename in old_renames | new_renames if not people.isdisjoint(rename)]
        people |= {player for rename in linked for player in rename}
    return people


def _find_first_moment_of_people(facts: Facts, names: set[str]) -> list[tuple[int, int]]:
    """Return the (time, position) of the first game of some ids; a rename may affect even a game that did not count."""
    numbers = {facts.player_numbers[name] for name in names & facts.player_numbers.keys()}
    rows = rows_with(facts, numbers) if numbers else []
    return [min((facts.occurred_at[row], facts.first_position[row]) for row in rows)] if rows else []


def _find_differing_adjustments(before: list[list[Any]], after: list[list[Any]]) -> list[tuple[int, int]]:
    """Return the (time, position) of the first adjustments that differ between two lists; empty if they are equal."""
    equal = 0
    while equal < min(len(before), len(after)) and before[equal] == after[equal]:
        equal += 1
    return [(adjustment[0], adjustment[1]) for adjustment in (*before[equal : equal + 1], *after[equal : equal + 1])]


def number_players_after(earlier: Stream, rest: Stream) -> Stream:
    """Return the rest of a ladder with its players numbered after those of the earlier part.

    Both streams must use the same person numbers.
    """
    known = earlier.numbers
    new_names = {person: name for person, name in zip(rest.persons, rest.names, strict=True) if person not in known}
    new_numbers = {person: number for number, person in enumerate(new_names, len(known))}
    numbers = array("i", [known[person] if person in known else new_numbers[person] for person in rest.persons])
    return replace(
        rest,
        players=arrays.take(numbers, rest.players),
        batch=None,
        adjustments=[adjustment._replace(player=numbers[adjustment.player]) for adjustment in rest.adjustments],
        persons=[*earlier.persons, *new_names],
        names=[*earlier.names, *new_names.values()],
    )

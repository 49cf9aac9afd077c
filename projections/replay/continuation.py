"""Continue a trace: replay only what was recorded since, from the first game that it can change.

A ladder's points before a game depend on nothing later. A late game or a correction therefore costs only the games
behind it.
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

# A trace is continued if at most this part of the ladder (1/10) has to be replayed.
CONTINUED_PART = 10


class TraceInputs(NamedTuple):
    """The facts, besides games, that a trace was replayed from, in a form that JSON can hold.

    position:    the log position of the facts
    renames:     the live renames: old and new id, in the order of the log
    adjustments: of the ladder: time, position, the player's id and the points
    seeds:       of the ladder: the player's id, the state by column and the number of games elsewhere
    clubs:       the old and current name of every renamed club
    accounts:    if the ladder's versions read them: the player's id, the time and the account
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
    """Continue a trace of an earlier state of the log, under the same versions, up to the given facts.

    Returns None if a replay from the beginning is better. Raises `RuleFailure`.
    """
    now = read_trace_inputs(facts, ladder, versions)
    same_order = now.renames == since.renames or sorted(now.renames) != sorted(since.renames)
    if not same_order or (now.accounts, now.seeds, now.clubs) != (since.accounts, since.seeds, since.clubs):
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
    # Games before this one are unchanged, and therefore in order.
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
    # Renames may also affect games that were not counted.
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
    """Return the earliest moment of the given games that may be on a ladder of the versions, if there is one."""
    slugs = {facts.text_numbers.get(name) for name in list_games(versions)}
    every = ((facts.occurred_at[row], facts.first_position[row]) for row in rows if facts.cell_of(row).game in slugs)
    first = min(every, default=None)
    return [] if first is None else [first]


def can_be_continued(facts: Facts, versions: Sequence[Version]) -> bool:
    """Return whether a ladder of these versions depends on nothing but the games and what `TraceInputs` holds."""
    return (
        versions[0].ruleset.freeze == "none"
        and versions[0].ruleset.period == "game"
        and all(version.ranking.running and not version.params.carry_over for version in versions)
        and not (facts.recorded.clocks and any("seconds_played" in version.rule.columns for version in versions))
    )


def find_changed_rows(facts: Facts, position: int) -> list[int]:
    """Return the rows of the games with an event after a position."""
    new, live = bisect_right(facts.first_position, position), facts.live_position
    # Columns from a cache list their changes; other columns are short.
    changes = enumerate(live[:new]) if isinstance(live, array) else live.changes.items()
    return [*(row for row, at in changes if at > position and row < new), *range(new, len(facts.first_position))]


def _find_first_game(trace: Trace, rows: list[int]) -> list[int]:
    """Return the first game of a trace that is among some rows, if there is one."""
    if not rows:
        return []
    if trace.earlier is not None and (first := _find_first_game(trace.earlier, rows)):
        return first
    begin = 0 if trace.earlier is None else trace.earlier.count
    games: list[int] = np.flatnonzero(np.isin(arrays.as_numpy(trace.stream.row), rows))[:1].tolist()
    return [begin + game for game in games]


def _find_changed_people(before: list[list[str]], after: list[list[str]]) -> set[str]:
    """Return the ids of all players whose identity changed, along chains of renames."""
    old_renames, new_renames = {tuple(rename) for rename in before}, {tuple(rename) for rename in after}
    people = {player for rename in old_renames ^ new_renames for player in rename}
    count = -1
    while count < len(people):
        count = len(people)
        linked = [rename for rename in old_renames | new_renames if not people.isdisjoint(rename)]
        people |= {player for rename in linked for player in rename}
    return people


def _find_first_moment_of_people(facts: Facts, names: set[str]) -> list[tuple[int, int]]:
    """Return the moment of the first game of some ids, counted or not: a rename may affect whether it counts."""
    numbers = {facts.player_numbers[name] for name in names & facts.player_numbers.keys()}
    rows = rows_with(facts, numbers) if numbers else []
    return [min((facts.occurred_at[row], facts.first_position[row]) for row in rows)] if rows else []


def _find_differing_adjustments(before: list[list[Any]], after: list[list[Any]]) -> list[tuple[int, int]]:
    """Return the moments of the first adjustments that differ between two lists."""
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    return [(adjustment[0], adjustment[1]) for adjustment in (*before[same : same + 1], *after[same : same + 1])]


def number_players_after(earlier: Stream, rest: Stream) -> Stream:
    """Number the players of the rest of a ladder after those of its earlier part; both use the same person numbers."""
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

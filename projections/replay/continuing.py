"""A trace continued: where a ladder first differs from what was replayed, and the replay from there on.

What comes before the first difference stays as it was: points depend on nothing that is later. So the price of a late
game or a correction is what lies behind it.
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
from ratings_ledger.projections.replay.eligibility import rows_in_order
from ratings_ledger.projections.replay.ladders import Stream, parse_name, streams
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.versions import Version, games_of

# a trace is continued if at most this part of the ladder has to be replayed
TENTH = 10


class Replayed(NamedTuple):
    """What a trace was made from, as JSON has it: up to which position, who was whom, and what else decides.

    renames:     the live ones: old and new id, in the order of the log
    adjustments: of the ladder: when, the position, the player's id and the points
    accounts:    if the ladder's versions look at them: the player's id, the time and the account
    """

    position: int
    renames: list[list[str]]
    adjustments: list[list[Any]]
    accounts: list[list[Any]]


def replayed_of(facts: Facts, ladder: str, versions: Sequence[Version]) -> Replayed:
    """Return what a trace of these facts would be made from."""
    gone, ids = facts.recorded.withdrawn, facts.players
    looks_at_accounts = any(version.ruleset.scope.exclude_accounts for version in versions)
    return Replayed(
        facts.position,
        [[ids[one.player], ids[one.new_player]] for one in facts.recorded.renames if one.position not in gone],
        [
            [one.occurred_at, one.position, ids[one.player], one.points]
            for one in sorted(facts.recorded.adjustments) if one.ladder == ladder and one.position not in gone
        ],
        [
            [ids[one.player], one.occurred_at, one.account]
            for one in facts.recorded.accounts if looks_at_accounts and one.position not in gone
        ],
    )  # fmt: skip


def continued(trace: Trace, since: Replayed, facts: Facts, ladder: str, versions: Sequence[Version]) -> Trace | None:
    """Return the trace of a ladder for some facts, from one of an earlier state of the same log under the same
    versions.

    None if it is better replayed from its beginning. Raises `RuleFailure`.
    """
    now = replayed_of(facts, ladder, versions)
    if now.accounts != since.accounts or (
        now.renames != since.renames and sorted(now.renames) == sorted(since.renames)
    ):
        return None
    changed, others = changed_rows(facts, since.position), _who_differs(since.renames, now.renames)
    trace = trace.whole() if others else trace
    games = min([
        *_games_of(trace, [row for row in changed if facts.first_position[row] <= since.position]),
        *(one.game for one in trace.stream.adjustments if trace.stream.names[one.player] in others), trace.count,
    ])  # fmt: skip
    # games before this one are as they were, and so they are in order
    moments = [*_moments(facts, changed, versions), *_differing(since.adjustments, now.adjustments)]
    moments += _first_of(facts, others)
    games = min([games, *(trace.place(facts, moment, games)[0] for moment in moments)])
    if games == trace.count and not moments:
        return trace
    if (len(changed) + trace.count - games) * TENTH > trace.count or not games:
        return None
    if trace.earlier is not None and games < trace.count:
        return continued(trace.whole(), since, facts, ladder, versions)
    row = trace.last_row if games == trace.count else trace.stream.row[games - 1]
    boundary = (facts.occurred_at[row], facts.first_position[row])
    earlier = trace.up_to(games, sum((one[0], one[1]) < boundary for one in since.adjustments))
    # who is whom may also decide about games that were not counted
    among = rows_in_order(facts, None, boundary[0]) if others else None
    behind = [] if games == trace.count else trace.stream.row[games:]
    rows = _behind(facts, boundary, [*behind, *changed] if among is None else among)
    rest = streams(facts.only(rows), versions, only=parse_name(ladder).values, after=boundary).get(ladder)
    if rest is None:
        return earlier
    rest.row = arrays.taken(rows, rest.row)
    return replay(numbered_after(earlier.stream, rest), earlier=earlier)


def _behind(facts: Facts, boundary: tuple[int, int], rows: Column) -> Column:
    """Those of some rows that come after a (time, position), in ascending order."""
    rows = arrays.distinct(rows)
    times, positions = arrays.taken(facts.occurred_at, rows), arrays.taken(facts.first_position, rows)
    return array("q", [row for row, *moment in zip(rows, times, positions, strict=True) if tuple(moment) > boundary])


def _moments(facts: Facts, rows: list[int], versions: Sequence[Version]) -> list[tuple[int, int]]:
    """Return the earliest moment of those games that may be on a ladder of the versions, if there is one."""
    slugs = {facts.text_numbers.get(name) for name in games_of(versions)}
    every = ((facts.occurred_at[row], facts.first_position[row]) for row in rows if facts.cell_of(row).game in slugs)
    first = min(every, default=None)
    return [] if first is None else [first]


def can_be_continued(facts: Facts, versions: Sequence[Version]) -> bool:
    """Return whether a ladder of these versions depends on nothing but what `Replayed` names and the games."""
    return (
        versions[0].ruleset.freeze == "none"
        and all(version.ranking.running and not version.params.carry_over for version in versions)
        and not (facts.recorded.clocks and any("seconds_played" in version.rule.columns for version in versions))
    )


def changed_rows(facts: Facts, position: int) -> list[int]:
    """Return the rows of the games about which something was recorded after a position."""
    new, live = bisect_right(facts.first_position, position), facts.live_position
    # columns from a cache name their changes; others are short
    changes = enumerate(live[:new]) if isinstance(live, array) else live.changes.items()
    return [*(row for row, at in changes if at > position and row < new), *range(new, len(facts.first_position))]


def _games_of(trace: Trace, rows: list[int]) -> list[int]:
    """Return the first of a trace's games that is among some rows, if there is one."""
    if not rows:
        return []
    if trace.earlier is not None and (first := _games_of(trace.earlier, rows)):
        return first
    begin = 0 if trace.earlier is None else trace.earlier.count
    found: list[int] = np.flatnonzero(np.isin(arrays.as_numpy(trace.stream.row), rows))[:1].tolist()
    return [begin + game for game in found]


def _who_differs(before: list[list[str]], after: list[list[str]]) -> set[str]:
    """Return the ids of all who were somebody else, along chains of renames."""
    renames = {tuple(one) for one in before}, {tuple(one) for one in after}
    reached, found = {player for one in renames[0] ^ renames[1] for player in one}, -1
    while found < len(reached):
        found = len(reached)
        reached |= {player for one in renames[0] | renames[1] if not reached.isdisjoint(one) for player in one}
    return reached


def _first_of(facts: Facts, names: set[str]) -> list[tuple[int, int]]:
    """Return the moment of the first game of some ids, counted or not: who is whom may decide about that."""
    numbers = {facts.player_numbers[name] for name in names & facts.player_numbers.keys()}
    rows = rows_with(facts, numbers) if numbers else []
    return [min((facts.occurred_at[row], facts.first_position[row]) for row in rows)] if rows else []


def _differing(before: list[list[Any]], after: list[list[Any]]) -> list[tuple[int, int]]:
    """Return the moments of the first adjustments that differ."""
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    return [(one[0], one[1]) for one in (*before[same : same + 1], *after[same : same + 1])]


def numbered_after(earlier: Stream, rest: Stream) -> Stream:
    """Return the rest of a ladder, with the players of its earlier part first; persons are numbered alike in both."""
    known = earlier.numbers
    joined = {person: name for person, name in zip(rest.persons, rest.names, strict=True) if person not in known}
    behind = {person: number for number, person in enumerate(joined, len(known))}
    mapped = array("i", [known[person] if person in known else behind[person] for person in rest.persons])
    return replace(
        rest, players=arrays.taken(mapped, rest.players), batch=None,
        adjustments=[one._replace(player=mapped[one.player]) for one in rest.adjustments],
        persons=[*earlier.persons, *joined], names=[*earlier.names, *joined.values()],
    )  # fmt: skip

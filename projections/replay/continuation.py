"""Continue a trace: replay a ladder only from the first game that differs from an earlier state of the same log.

Points depend on nothing that is later, so the games before the first difference keep their points. A late game or a
correction costs a replay of what follows it.
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
from ratings_ledger.projections.replay.ladders import Stream, parse_name, seeds_of, streams
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.versions import Version, games_of

# a trace is continued if at most this part of the ladder has to be replayed
TENTH = 10


class Replayed(NamedTuple):
    """What a trace was made from, as JSON has it: up to which position, who was whom, and what else decides.

    renames:     the live ones: old and new id, in the order of the log
    adjustments: of the ladder: when, the position, the player's id and the points
    seeds:       of the ladder: the player's id, the state by column and the games elsewhere
    clubs:       the old and current name of every renamed club
    accounts:    if the ladder's versions look at them: the player's id, the time and the account
    """

    position: int
    renames: list[list[str]]
    adjustments: list[list[Any]]
    seeds: list[list[Any]]
    clubs: list[list[str]]
    accounts: list[list[Any]]


def replayed_of(facts: Facts, ladder: str, versions: Sequence[Version]) -> Replayed:
    """Return what a trace of these facts would be made from."""
    withdrawn, ids = facts.recorded.withdrawn, facts.players
    looks_at_accounts = any(version.ruleset.scope.exclude_accounts for version in versions)
    return Replayed(
        facts.position,
        [
            [ids[rename.player], ids[rename.new_player]]
            for rename in facts.recorded.renames
            if rename.position not in withdrawn
        ],
        [
            [adjustment.occurred_at, adjustment.position, ids[adjustment.player], adjustment.points]
            for adjustment in sorted(facts.recorded.adjustments)
            if adjustment.ladder == ladder and adjustment.position not in withdrawn
        ],
        sorted([ids[person], seed.state, seed.games] for person, seed in seeds_of(facts, ladder).items()),
        [list(names) for names in sorted(facts.clubs.items())],
        [
            [ids[account.player], account.occurred_at, account.account]
            for account in facts.recorded.accounts
            if looks_at_accounts and account.position not in withdrawn
        ],
    )


def continued(trace: Trace, since: Replayed, facts: Facts, ladder: str, versions: Sequence[Version]) -> Trace | None:
    """Return the trace of a ladder for some facts, from one of an earlier state of the same log under the same
    versions.

    None if it is better replayed from its beginning. Raises `RuleFailure`.
    """
    now = replayed_of(facts, ladder, versions)
    same_order = now.renames == since.renames or sorted(now.renames) != sorted(since.renames)
    if not same_order or (now.accounts, now.seeds, now.clubs) != (since.accounts, since.seeds, since.clubs):
        return None
    changed, others = changed_rows(facts, since.position), _who_differs(since.renames, now.renames)
    trace = trace.whole() if others else trace
    games = min(
        [
            *_games_of(trace, [row for row in changed if facts.first_position[row] <= since.position]),
            *(
                adjustment.game
                for adjustment in trace.stream.adjustments
                if trace.stream.names[adjustment.player] in others
            ),
            trace.count,
        ]
    )
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
    earlier = trace.up_to(games, trace.place(facts, boundary, games)[1])
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
        and versions[0].ruleset.period == "game"
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
    games: list[int] = np.flatnonzero(np.isin(arrays.as_numpy(trace.stream.row), rows))[:1].tolist()
    return [begin + game for game in games]


def _who_differs(before: list[list[str]], after: list[list[str]]) -> set[str]:
    """Return the ids of all who were somebody else, along chains of renames."""
    renames = {tuple(pair) for pair in before}, {tuple(pair) for pair in after}
    reached, size = {player for pair in renames[0] ^ renames[1] for player in pair}, -1
    while size < len(reached):
        size = len(reached)
        reached |= {player for pair in renames[0] | renames[1] if not reached.isdisjoint(pair) for player in pair}
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
    return [(pair[0], pair[1]) for pair in (*before[same : same + 1], *after[same : same + 1])]


def numbered_after(earlier: Stream, rest: Stream) -> Stream:
    """Return the rest of a ladder, with the players of its earlier part first; persons are numbered alike in both."""
    known = earlier.numbers
    joined = {person: name for person, name in zip(rest.persons, rest.names, strict=True) if person not in known}
    behind = {person: number for number, person in enumerate(joined, len(known))}
    mapped = array("i", [known[person] if person in known else behind[person] for person in rest.persons])
    return replace(
        rest,
        players=arrays.taken(mapped, rest.players),
        batch=None,
        adjustments=[adjustment._replace(player=mapped[adjustment.player]) for adjustment in rest.adjustments],
        persons=[*earlier.persons, *joined],
        names=[*earlier.names, *joined.values()],
    )

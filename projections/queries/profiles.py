"""Profiles: what a ladder says of a player: where they stand, their course, wins, places, and whom they met.

Of a trace that is kept only what the player's own games touch is read, apart from everybody's points for the rank.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from sqlalchemy import Connection

from projections.facts.columns import Facts
from projections.queries.answers_explained import Change
from projections.queries.answers_profiled import Opponent, PlaceCount, Profile, Streak
from projections.queries.coordinates import Times
from projections.queries.explanation import history
from projections.queries.standings import Ladders, rows_of, standing_row
from projections.replay.trace import Trace


class OwnGame(NamedTuple):
    """A game for one of its players: their place (0: none), whether it is an unshared place 1, and the places of the
    others who count in it, by their numbers in the stream."""

    place: int
    won: bool
    others: Mapping[int, int]


def profile_of(connection: Connection, ladders: Ladders, ladder: str, player: str, times: Times) -> Profile:
    """The profile of a player, by current id, who may not be on the ladder. Raises `UnknownLadder`, `RuleFailure`."""
    trace = ladders.trace(ladder)
    found, _ = ladders.ranked(trace)
    row = rows_of(found.rows, {player}).get(player)
    course = history(connection, ladders, ladder, player)
    games = [change for change in course if change.game_id is not None]
    own = [*_own_games(ladders.facts, trace, player)]
    results = [(game, one.won) for game, one in zip(games, own, strict=True) if one.place]
    places = Counter(one.place for one in own if one.place)
    return Profile(
        player, ladder, found.ruleset, ladders.coordinates,
        None if row is None else standing_row(row, found.scale),
        # those without a rank come last
        bisect_left(found.rows, True, key=lambda other: other.rank is None), len(found.rows),
        course,
        max(course, key=lambda change: change.after, default=None),
        min(course, key=lambda change: change.after, default=None),
        games[0] if games else None, games[-1] if games else None,
        sum(won for _, won in results), *_streaks(results, True), *_streaks(results, False),
        tuple(PlaceCount(place, places[place]) for place in sorted(places)), _opponents(trace, own),
        running=trace.stream.ranking.running, times=times,
    )  # fmt: skip


def _own_games(facts: Facts, trace: Trace, player: str) -> Iterator[OwnGame]:
    """A player's games, in order; an annual list has no games of its own."""
    stream = trace.stream
    if player not in stream.names or stream.ranking.sums_lists:
        return
    number = stream.names.index(player)
    for step in trace.steps(number):
        if step.game is None or step.row is None:
            continue
        first = facts.start[step.row]
        seats = {facts.person_of(p): p for p in reversed(range(first, first + facts.count[step.row]))}
        places = {there: facts.place[seats[stream.persons[there]]] for there in trace.players_of(step.game)}
        place = places.pop(number)
        shared = facts.column("tied", step.row, [seats[stream.persons[number]]]) != [1]
        yield OwnGame(place, place == 1 and not shared, places)


def _streaks(results: Sequence[tuple[Change, bool]], won: bool) -> tuple[Streak | None, Streak | None]:
    """The longest streak of games that were won, or were not, and the one that the last game is in, if it is in one."""
    runs = [(outcome, [game for game, _ in run]) for outcome, run in groupby(results, key=lambda one: one[1])]
    longest = max((run for outcome, run in runs if outcome == won), key=len, default=None)
    current = runs[-1][1] if runs and runs[-1][0] == won else None
    return _streak(longest), _streak(current)


def _streak(run: Sequence[Change] | None) -> Streak | None:
    if run is None:
        return None
    first, last = run[0], run[-1]
    assert first.game_id is not None
    assert last.game_id is not None
    return Streak(len(run), first.game_id, first.occurred_at, last.game_id, last.occurred_at)


def _opponents(trace: Trace, own: Iterable[OwnGame]) -> tuple[Opponent, ...]:
    """Everybody met in some games, most often met first, then by id."""
    met: dict[int, list[int]] = {}
    for game in own:
        for other, place in game.others.items():
            counts = met.setdefault(other, [0, 0, 0, 0])
            counts[0] += 1
            if place and game.place:
                counts[1 + (place <= game.place) + (place < game.place)] += 1
    names = trace.stream.names
    found = [Opponent(names[other], *counts) for other, counts in met.items()]
    return tuple(sorted(found, key=lambda one: (-one.games, one.player)))

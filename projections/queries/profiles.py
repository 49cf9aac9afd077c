"""Profiles: what a ladder says of a player: where they stand, their course, wins, places, and whom they met.

Of a trace that is kept only what the player's own games touch is read, apart from everybody's points for the rank.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from sqlalchemy import Connection

from ratings_ledger.projections.queries.answers_explained import Change
from ratings_ledger.projections.queries.answers_profiled import Opponent, PlaceCount, Profile, Streak
from ratings_ledger.projections.queries.coordinates import Times
from ratings_ledger.projections.queries.course import Course, course_of
from ratings_ledger.projections.queries.standings import Ladders, rows_of, standing_row
from ratings_ledger.projections.replay.trace import Trace


class OwnGame(NamedTuple):
    """A game for one of its players: their place (0: none), whether it is an unshared place 1, and the others who count
    in it, by their numbers in the stream, with their places."""

    place: int
    won: bool
    others: Sequence[tuple[int, int]]


def profile_of(connection: Connection, ladders: Ladders, ladder: str, player: str, times: Times) -> Profile:
    """The profile of a player, by current id, who may not be on the ladder. Raises `UnknownLadder`, `RuleFailure`."""
    trace = ladders.trace(ladder)
    found, _ = ladders.ranked(trace)
    row = rows_of(found.rows, {player}).get(player)
    course = course_of(connection, ladders, ladder, player)
    games = [index for index, is_game in enumerate(course.is_game) if is_game]
    own = [*_own_games(trace, player, course)]
    results = [(game, one.won) for game, one in zip(games, own, strict=True) if one.place]
    places = Counter(one.place for one in own if one.place)
    return Profile(
        player, ladder, found.ruleset, ladders.coordinates,
        None if row is None else standing_row(row, found.scale),
        # those without a rank come last
        bisect_left(found.rows, True, key=lambda other: other.rank is None), len(found.rows),
        course,
        *_extremes(course),
        course[games[0]] if games else None, course[games[-1]] if games else None,
        sum(won for _, won in results), *_streaks(course, results, True), *_streaks(course, results, False),
        tuple(PlaceCount(place, places[place]) for place in sorted(places)), _opponents(trace, own),
        running=trace.stream.ranking.running, times=times,
    )  # fmt: skip


def _own_games(trace: Trace, player: str, course: Course) -> Iterator[OwnGame]:
    """A player's games, in order."""
    if not course:
        return
    stream = trace.stream
    own, person = stream.names.index(player), course.person
    games = [step.game for step in trace.steps(own) if step.game is not None]
    for players, game in zip(trace.players_of_all(games), course.games(), strict=True):
        # of two seats of one person the first counts
        seats = dict(zip(reversed(game.persons), reversed(game.places), strict=True))
        place = seats[person]
        others = [(number, seats[stream.persons[number]]) for number in players if number != own]
        # a seat that changed hands counts once
        won = place == 1 and [*zip(game.places, game.replaced, strict=True)].count((1, 0)) == 1
        yield OwnGame(place, won, others)


def _extremes(course: Course) -> tuple[Change | None, Change | None]:
    """The highest and the lowest, the first of each."""
    if not course:
        return None, None
    return course[course.units.index(max(course.units))], course[course.units.index(min(course.units))]


def _streaks(
    course: Course, results: Sequence[tuple[int, bool]], won: bool
) -> tuple[Streak | None, Streak | None]:  # fmt: skip
    """The longest streak of games that were won, or were not, and the one that the last game is in, if it is in one."""
    runs = [(outcome, [game for game, _ in run]) for outcome, run in groupby(results, key=lambda one: one[1])]
    longest = max((run for outcome, run in runs if outcome == won), key=len, default=None)
    current = runs[-1][1] if runs and runs[-1][0] == won else None
    return _streak(course, longest), _streak(course, current)


def _streak(course: Course, run: Sequence[int] | None) -> Streak | None:
    if run is None:
        return None
    first, last = course[run[0]], course[run[-1]]
    assert first.game_id is not None
    assert last.game_id is not None
    return Streak(len(run), first.game_id, first.occurred_at, last.game_id, last.occurred_at)


def _opponents(trace: Trace, own: Iterable[OwnGame]) -> tuple[Opponent, ...]:
    """Everybody met in some games, most often met first, then by id."""
    met: dict[int, list[int]] = {}
    for game in own:
        for other, place in game.others:
            counts = met.setdefault(other, [0, 0, 0, 0])
            counts[0] += 1
            if place and game.place:
                counts[1 + (place <= game.place) + (place < game.place)] += 1
    names = trace.stream.names
    found = [Opponent(names[other], *counts) for other, counts in met.items()]
    return tuple(sorted(found, key=lambda one: (-one.games, one.player)))

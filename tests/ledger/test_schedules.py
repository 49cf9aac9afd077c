"""The shipped schedules are balanced for every number of players per game and for every draw of the players."""

import random
from collections import Counter
from itertools import combinations

import pytest

from ratings_ledger.ledger.validation.leagues import draw_schedule, load_league_schedule

PLAYERS = list("abcdefgh")
GAMES = {2: 56, 3: 24, 4: 32, 5: 40, 6: 24, 7: 24, 8: 16}
GAMES_EACH = {2: 14, 3: 9, 4: 16, 5: 25, 6: 18, 7: 21, 8: 16}
SEATS_EACH = {2: 7, 3: 3, 4: 4, 5: 5, 6: 3, 7: 3, 8: 2}
MEETINGS = {2: {2}, 3: {2, 3}, 4: {6, 7}, 5: {14, 15}, 6: {12, 13}, 7: {18}, 8: {16}}
# the number of games of each set of players that plays together: one if there are more sets than games
MEETINGS_OF_A_SET = {2: 2, 3: 1, 4: 1, 5: 1, 6: 1, 7: 3, 8: 16}


def check_balance(games: list[list[str]], size: int) -> None:
    """Check that a schedule has the properties that a league promises."""
    assert (len(games), {len(game) for game in games}, {len(set(game)) for game in games}) == (
        GAMES[size],
        {size},
        {size},
    )
    seats = Counter((player, seat) for game in games for seat, player in enumerate(game))
    assert {seats[player, seat] for player in PLAYERS for seat in range(size)} == {SEATS_EACH[size]}
    assert sum(seats.values()) == 8 * GAMES_EACH[size]
    pairs = Counter(frozenset(pair) for game in games for pair in combinations(game, 2))
    assert {pairs[frozenset(pair)] for pair in combinations(PLAYERS, 2)} == MEETINGS[size]
    assert set(Counter(frozenset(game) for game in games).values()) == {MEETINGS_OF_A_SET[size]}


@pytest.mark.slow
@pytest.mark.parametrize("size", GAMES_EACH)
def test_schedule_is_balanced(size: int) -> None:
    """For each number of players per game, seats, meetings and sets of players are balanced."""
    check_balance([[PLAYERS[number] for number in game] for game in load_league_schedule(size)], size)


@pytest.mark.slow_cases
@pytest.mark.parametrize("size", GAMES_EACH)
def test_drawn_schedules_are_balanced(size: int) -> None:
    """Schedules drawn from a thousand seeds are balanced, and at least 950 of them differ."""
    schedules = [draw_schedule(PLAYERS, size, f"seed {number}") for number in range(1_000)]

    for games in schedules:
        check_balance(games, size)
    assert len({str(games) for games in schedules}) > 950


@pytest.mark.slow
def test_same_seed_draws_the_same_schedule() -> None:
    """The same seed draws the same schedule, regardless of the order of the players."""
    shuffled = random.Random(1).sample(PLAYERS, 8)

    assert draw_schedule(shuffled, 5, "x") == draw_schedule(PLAYERS, 5, "x")
    assert draw_schedule(PLAYERS, 2, "2026")[:3] == [["a", "e"], ["d", "b"], ["f", "g"]]

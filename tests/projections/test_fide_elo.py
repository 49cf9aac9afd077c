"""FIDE's ratings: published months, every rule of the regulations at its boundary, and a comparison with an oracle."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from checked_integers import to_checked
from kernel_calls import compile_function
from lengths import mark_many_cases
from own_rules import SHIPPED, bind_ruleset, load_built_in_rule, needs_numba

import ratings_ledger as rl
from ratings_ledger.rules import MISSING, ONE, UNITS_MAX, decimal

RULE = load_built_in_rule("fide-elo/1")
SCALE = RULE.scale
# the parameters of each version of the regulations
VERSIONS: dict[str, dict[str, Any]] = {
    "2022-01": {"floor": 1000, "difference_max_for": "one game a league", "full_difference_from": 0},
    "2024-03": {"full_difference_from": 0, "lift": 40},
    "2025-10": {},
}


class Player(NamedTuple):
    """A player at the start of a month."""

    rating: Fraction | int
    games: int = 100
    born: int = 0
    reached: int = 0


class Game(NamedTuple):
    """A game of two players by their numbers; `score` is the first one's."""

    first: int
    second: int
    score: Fraction | float
    league: int = MISSING


class Month(NamedTuple):
    """A period as the rule reads it: states by column, and the rows of every player's results."""

    before: list[list[int]]
    offsets: list[int]
    rows: list[list[int]]


def build_month(players: Sequence[Player], games: Sequence[Game], year: int = 2025) -> Month:
    """Return the arrays of a month; every game makes a row for each of its two players."""
    before = [
        [int(player.rating * SCALE) for player in players],
        [player.born for player in players],
        [player.reached for player in players],
    ]
    rows: list[list[int]] = [[] for _ in range(2 + 2 * len(RULE.columns))]
    offsets, played = [0], [player.games for player in players]
    for p in range(len(players)):
        for number, game in enumerate(games):
            if p not in game[:2]:
                continue
            opponent = game.second if p == game.first else game.first
            places = [1 if game.score >= 0.5 else 2, 1 if game.score <= 0.5 else 2]
            if p == game.second:
                places.reverse()
            own_columns = [places[0], played[p], game.league, year]
            opponent_columns = [places[1], players[opponent].games, game.league, year]
            for column, value in zip(rows, (opponent, number, *own_columns, *opponent_columns), strict=True):
                column.append(value)
            played[p] += 1
        offsets.append(len(rows[0]))
    return Month(before, offsets, rows)


def score_month(players: Sequence[Player], games: Sequence[Game], year: int = 2025, **params: Any) -> list[list[int]]:
    """Return the states after a month, by column; check that terms sum to changes, books balance, and the input is
    unchanged.
    """
    month, bound = build_month(players, games, year), RULE.params(**params)
    copies = [[*column] for column in month.before], [*month.offsets], [[*column] for column in month.rows]
    after = [[*column] for column in month.before]
    assert RULE.score_period is not None
    assert RULE.explain_period is not None
    minted = RULE.score_period(len(players), *month, RULE.prepare(bound), RULE.table(), after)
    assert copies == tuple(month)
    gained = sum(after[0]) - sum(month.before[0])
    assert minted == max(gained, 0)
    names = [f"p{number}" for number in range(len(players))]
    for p in range(len(players)):
        terms = RULE.explain_period(p, names, *month, bound, after)
        assert sum(term.amount for _, term in terms) == after[0][p] - month.before[0][p]
        own = [row for row, _ in terms if row >= 0]
        assert own == [*range(month.offsets[p], month.offsets[p + 1])]
    return after


def compute_rating(player: Player, results: Sequence[tuple[int, float]], year: int = 2025, **params: Any) -> str:
    """Return the rating of a player after a month of games, given as (rating of the opponent, score)."""
    opponents = [Player(rating) for rating, _ in results]
    games = [Game(0, number, score) for number, (_, score) in enumerate(results, 1)]
    return decimal(score_month([player, *opponents], games, year, **params)[0][0], SCALE)


def explain_month(
    players: Sequence[Player], games: Sequence[Game], p: int = 0, **params: Any
) -> list[tuple[str, str, str]]:
    """Return the terms of a player's change: (term, points, detail and note)."""
    month, bound = build_month(players, games), RULE.params(**params)
    after, names = score_month(players, games, **params), [f"p{number}" for number in range(len(players))]
    assert RULE.explain_period is not None
    return [
        (term.term, decimal(term.amount, SCALE, signed=True), "; ".join(filter(None, (term.detail, term.note))))
        for _, term in RULE.explain_period(p, names, *month, bound, after)
    ]


def test_table_is_the_normal_distribution_except_for_six_rows() -> None:
    """The expected scores are Elo's normal distribution in hundredths, except for six rows of the handbook."""
    table = RULE.table()
    assert (len(table), table[736], table[735], table[0]) == (737, 100, 99, 50)
    normal = [math.floor(50.5 + 50 * math.erf(gap * 7 / 2000 / math.sqrt(2))) for gap in range(736)]
    assert {gap: table[gap] - normal[gap] for gap in range(736) if table[gap] != normal[gap]} == {
        54: 1,
        343: -1,
        344: -1,
        358: 1,
        392: 1,
        620: 1,
    }


def test_published_month_gives_its_rating() -> None:
    """A player of 1922 with K 40 who beats 1798, loses to 1801 and beats 1897 gains 5.6 and is 1928."""
    players = [Player(1922, games=0), Player(1798), Player(1801), Player(1897)]
    games = [Game(0, 1, 1), Game(0, 2, 0), Game(3, 0, 0)]
    assert decimal(score_month(players, games)[0][0], SCALE) == "1928"
    assert explain_month(players, games) == [
        ("vs p1", "+13.2", "K 40, expected 0.67, scored 1; rated 1922 against 1798"),
        ("vs p2", "-26.4", "K 40, expected 0.66, scored 0; rated 1922 against 1801"),
        ("vs p3", "+18.8", "K 40, expected 0.53, scored 1; rated 1922 against 1897"),
        ("rounding", "+0.4", "the sum, to whole points, half away from zero"),
    ]


# a rapid tournament of 2022, published by an Australian player: K 20; (rating of the opponent, score)
TOURNAMENT = [(1063, 1), (1299, 1), (1413, 1), (1872, 0.5), (1851, 0), (1427, 1), (1682, 1)]


def test_published_tournament_of_2022_limits_one_difference() -> None:
    """Under the regulations of 2022, a tournament limits only the largest of four differences above 400."""
    players = [Player(2000), *(Player(rating) for rating, _ in TOURNAMENT)]
    games = [Game(0, number, score, league=7) for number, (_, score) in enumerate(TOURNAMENT, 1)]
    terms = explain_month(players, games, **VERSIONS["2022-01"])
    assert [amount for _, amount, _ in terms] == [
        "+1.6",
        "+0.2",
        "+0.4",
        "-3.4",
        "-14",
        "+0.4",
        "+2.6",
        "+0.2",
    ]
    assert terms[0][2] == (
        "K 20, expected 0.92, scored 1; rated 2000 against 1063, a difference of 937 that counts as 400"
    )
    assert decimal(score_month(players, games, **VERSIONS["2022-01"])[0][0], SCALE) == "1988"
    # without a league every game is a tournament of its own; since 2024 every game has the limit
    games_without_league = [game._replace(league=MISSING) for game in games]
    limited_amounts = ["+1.6", "+1.6", "+1.6", "-3.4", "-14", "+1.6", "+2.6"]
    assert [amount for _, amount, _ in explain_month(players, games_without_league, **VERSIONS["2022-01"])][
        :7
    ] == limited_amounts
    params_since_2024 = {**VERSIONS["2024-03"], "floor": 1000}
    assert [amount for _, amount, _ in explain_month(players, games, **params_since_2024)][:7] == limited_amounts


def test_one_difference_is_limited_in_each_league() -> None:
    """Each league limits one difference, the first of equal ones; a game with an unrated opponent does not use the
    limit.
    """
    players = [Player(2000), Player(1500), Player(1500), Player(1400), Player(999)]
    games = [Game(0, 1, 1, 1), Game(0, 2, 1, 1), Game(0, 3, 1, 2), Game(0, 4, 1, 2)]
    amounts = [amount for _, amount, _ in explain_month(players, games, **VERSIONS["2022-01"])]
    assert amounts == ["+1.6", "+0.8", "+1.6", "0"]


def test_weaker_player_has_the_limit_in_every_game() -> None:
    """A player rated 500 points lower expects 0.08 in every game, under every version."""
    for params in VERSIONS.values():
        players = [Player(1700), Player(2200), Player(2200)]
        games = [Game(0, 1, 0, 1), Game(0, 2, 0, 1)]
        assert [amount for _, amount, _ in explain_month(players, games, **params)][:2] == ["-1.6", "-1.6"]


def test_strongest_players_count_their_differences_in_full() -> None:
    """Since October 2025, players from 2650 on count differences in full; their opponents still have the limit."""
    players, games = [Player(2650), Player(2100)], [Game(0, 1, 1)]
    assert explain_month(players, games)[0] == (
        "vs p1",
        "+0.3",
        "K 10, expected 0.97, scored 1; rated 2650 against 2100",
    )
    assert explain_month(players, games, p=1)[0][1] == "-1.6"
    assert explain_month([Player(2649), Player(2100)], games)[0][1] == "+0.8"
    assert explain_month(players, games, **VERSIONS["2024-03"])[0][1] == "+0.8"
    assert explain_month([Player(2650), Player(1900)], games)[0][1] == "0"


# (player, year, expected K)
FACTORS = {
    "new": (Player(2450, games=29, reached=1), 2025, 40),
    "no longer new": (Player(1800, games=30), 2025, 20),
    "below 2400": (Player(2399, games=30), 2025, 20),
    "2400": (Player(2400, games=30), 2025, 10),
    "once 2400": (Player(2380, games=30, reached=1), 2025, 10),
    "young once 2400": (Player(2200, games=30, reached=1, born=2010), 2025, 10),
    "year of the 18th birthday": (Player(2299, games=30, born=2007), 2025, 40),
    "year after it": (Player(2299, games=30, born=2006), 2025, 20),
    "young at 2300": (Player(2300, games=30, born=2007), 2025, 20),
    "no year of birth": (Player(1500, games=30), 2025, 20),
}


@pytest.mark.parametrize(("player", "year", "factor"), FACTORS.values(), ids=FACTORS)
def test_factor_follows_games_rating_and_age(player: Player, year: int, factor: int) -> None:
    """K depends on the games, the rating and the age at the start of the month."""
    opponent = Player(player.rating)
    after = score_month([player, opponent], [Game(0, 1, 1)], year)
    assert after[0][0] - int(player.rating * SCALE) == factor // 2 * SCALE


def test_factor_is_fixed_at_the_start_of_the_month() -> None:
    """Games within the month do not change K, neither by their number nor by the new rating."""
    new = Player(1500, games=29)
    assert compute_rating(new, [(1500, 1), (1500, 1)]) == "1540"
    almost_2400 = Player(2395)
    after = score_month([almost_2400, Player(2395), Player(2395)], [Game(0, 1, 1), Game(0, 2, 1), Game(0, 1, 0)])
    assert decimal(after[0][0], SCALE) == "2405"
    assert after[2] == [1, 0, 0]


def test_factor_times_games_is_limited() -> None:
    """With 17 games K 40 stays; with 18 games K becomes 38, the largest K with a product within 700."""
    new = Player(1500, games=0)
    assert compute_rating(new, [(1500, 1)] * 17) == "1840"
    assert compute_rating(new, [(1500, 1)] * 18) == "1842"
    assert explain_month([new, Player(1500)], [Game(0, 1, 1)] * 18)[0] == (
        "vs p1",
        "+19",
        "K 38, expected 0.5, scored 1; rated 1500 against 1500; "
        "K is 38 instead of 40, because K times 18 games may not exceed 700",
    )
    # only rated games count towards the limit
    players = [new, Player(1500), Player(0)]
    assert decimal(score_month(players, [Game(0, 1, 1)] * 17 + [Game(0, 2, 1)])[0][0], SCALE) == "1840"


def test_half_points_round_away_from_zero() -> None:
    """A month of +0.5 gives a point, a month of -0.5 takes one, and smaller sums give nothing."""
    strong = Player(2450)
    assert compute_rating(strong, [(2436, 0.5), (2470, 0.5), (2450, 0.5)]) == "2450"
    # 10 * (0.5 - 0.55) = -0.5 and 10 * (0.5 - 0.45) = +0.5
    assert compute_rating(strong, [(2411, 0.5)]) == "2449"
    assert compute_rating(strong, [(2489, 0.5)]) == "2451"
    assert compute_rating(strong, [(2489, 0.5), (2411, 0.5)]) == "2450"
    assert compute_rating(strong, [(2418, 0.5)]) == "2450"


def test_players_below_the_floor_are_unrated() -> None:
    """A game with an unrated player changes no rating, and the explanation names the unrated player."""
    players = [Player(1400), Player(0), Player(1399), Player(1400)]
    games = [Game(0, 1, 1), Game(2, 0, 1), Game(1, 2, 1), Game(0, 3, 0)]
    after = score_month(players, games)
    assert [decimal(units, SCALE) for units in after[0]] == ["1390", "0", "1399", "1410"]
    assert explain_month(players, games)[:2] == [
        ("vs p1", "0", "not counted: p1 is unrated; a seed of at least 1400 makes a player rated"),
        ("vs p2", "0", "not counted: p2 is unrated; a seed of at least 1400 makes a player rated"),
    ]
    assert explain_month(players, games)[-1] == ("unrated", "0", "below the floor of 1400: unrated from now on")
    assert explain_month(players, games, p=1)[1][2].startswith("not counted: p1 and p2 are unrated")
    # a player who fell below the floor is unrated in the next month
    assert score_month([Player(1390), Player(1500)], [Game(0, 1, 1)])[0] == [1390 * SCALE, 1500 * SCALE]


def test_new_version_lifts_low_ratings_once() -> None:
    """From 1000 to 2000, a rating R becomes R + 0.40 (2000 - R), rounded; the rest of the state is unchanged."""
    assert RULE.enter is not None
    constants = RULE.prepare(RULE.params(**VERSIONS["2024-03"]))
    lifted = {
        rating: decimal(RULE.enter((rating * SCALE, 2001, 1), constants)[0], SCALE)
        for rating in (999, 1000, 1001, 1002, 1003, 1437, 1999, 2000, 2500)
    }
    assert lifted == {
        999: "999",
        1000: "1400",
        1001: "1401",
        1002: "1401",
        1003: "1402",
        1437: "1662",
        1999: "1999",
        2000: "2000",
        2500: "2500",
    }
    assert RULE.enter((1200 * SCALE, 2001, 1), constants)[1:] == (2001, 1)
    unlifted = RULE.prepare(RULE.params())
    assert RULE.enter((1200 * SCALE, 2001, 1), unlifted) == (1200 * SCALE, 2001, 1)


def test_provisional_players_are_new_or_unrated() -> None:
    """A rating is provisional below the floor or with fewer than 30 games."""
    assert RULE.provisional is not None
    params = RULE.params()
    states = [(1399, 50), (1400, 29), (1400, 30)]
    assert [RULE.provisional((rating * SCALE, 0, 0), games, params) for rating, games in states] == [True, True, False]


def test_chances_come_from_the_table_and_sum_to_one() -> None:
    """The chance is the expected score of the table, below 1 even at its end, and 1/2 against an unrated player."""
    ratings = [1922, 1798, 2800, 1400, 0]
    before, constants = [[rating * SCALE for rating in ratings], [0] * 5, [0] * 5], RULE.prepare(RULE.params())
    assert RULE.chance is not None

    def chance(i: int, j: int) -> int:
        assert RULE.chance is not None
        return RULE.chance(i, j, before, [], constants, RULE.table())

    assert chance(0, 1) == 67 * ONE // 100
    assert chance(2, 3) == 199 * ONE // 200
    assert chance(0, 4) == ONE // 2
    assert all(chance(i, j) + chance(j, i) == ONE for i in range(5) for j in range(5))


def test_single_game_is_a_period_of_its_own() -> None:
    """A single game has the states and the terms of a month with only this game."""
    chance = random.Random(3)
    bound = RULE.params()
    constants = RULE.prepare(bound)
    assert RULE.check is not None
    assert RULE.check(3, [], bound) == "FIDE rates games of two players; this game has 3"
    for _ in range(300):
        players = [draw_player(chance) for _ in range(2)]
        month = build_month(players, [Game(0, 1, chance.choice([0, 0.5, 1]))])
        columns = [month.rows[2 + column] for column in range(len(RULE.columns))]
        after = [[*column] for column in month.before]
        RULE.score(2, month.before, columns, constants, RULE.table(), after)
        expected = [[*column] for column in month.before]
        assert RULE.score_period is not None
        RULE.score_period(2, *month, constants, RULE.table(), expected)
        assert after == expected
        terms = RULE.explain(2, ["a", "b"], month.before, columns, bound, after)
        changes = [after[0][i] - month.before[0][i] for i in range(2)]
        assert [sum(term.amount for term in player_terms) for player_terms in terms] == changes


def draw_player(chance: random.Random) -> Player:
    """Draw a player near one of the boundaries, or anywhere."""
    around = chance.choice([999, 1400, 2000, 2300, 2400, 2650])
    rating = chance.choice([0, around + chance.randint(-2, 2), chance.randint(900, 2850)])
    born, reached = chance.choice([0, 2006, 2007, 2008]), chance.randint(0, 1)
    return Player(rating, chance.choice([0, 28, 29, 30, 31, 500]), born, reached)


def draw_month(chance: random.Random) -> tuple[list[Player], list[Game]]:
    """Draw a month of a few players, some with many games, in leagues and without."""
    players = [draw_player(chance) for _ in range(chance.randint(2, 9))]
    games = []
    for _ in range(chance.choice([1, 10, 40, 120])):
        first, second = chance.sample(range(len(players)), 2)
        games.append(Game(first, second, chance.choice([0, 0.5, 1]), chance.choice([MISSING, 0, 1, 2])))
    return players, games


def compute_normal_percentage(gap: int) -> int:
    """Return the expected score of the normal distribution with the handbook's six departures; `gap` is not below 0."""
    steps = {54: 1, 343: -1, 344: -1, 358: 1, 392: 1, 620: 1}
    return math.floor(50.5 + 50 * math.erf(gap * 7 / 2000 / math.sqrt(2))) + steps.get(gap, 0) if gap < 736 else 100


def score_by_regulations(
    players: Sequence[Player], games: Sequence[Game], year: int, version: str
) -> list[tuple[int, int]]:
    """Return (rating, reached) of every player after the month, from the text of the regulations, in fractions."""
    floor = 1000 if version == "2022-01" else 1400
    after = []
    for p, player in enumerate(players):
        rated_games = []
        for game in games:
            if p in game[:2] and all(players[q].rating >= floor for q in game[:2]):
                opponent_rating = players[game.second if p == game.first else game.first].rating
                score = Fraction(game.score) if p == game.first else 1 - Fraction(game.score)
                rated_games.append((int(player.rating - opponent_rating), score, game.league))
        if not rated_games:
            after.append((int(player.rating), player.reached))
            continue
        factor = 20
        if player.games < 30:
            factor = 40
        elif player.reached or player.rating >= 2400:
            factor = 10
        elif player.born and year <= player.born + 18 and player.rating < 2300:
            factor = 40
        while factor * len(rated_games) > 700:
            factor -= 1
        total, upgraded = Fraction(0), set()
        for number, (gap, score, league) in sorted(enumerate(rated_games), key=lambda item: (-item[1][0], item[0])):
            counted = gap
            if version == "2025-10" and player.rating >= 2650:
                pass
            elif gap < -400:
                counted = -400
            elif gap > 400:
                event = league if league != MISSING else ("alone", number)
                if version != "2022-01" or event not in upgraded:
                    counted = 400
                upgraded.add(event)
            percentage = compute_normal_percentage(abs(counted))
            total += factor * (score - Fraction(percentage if counted >= 0 else 100 - percentage, 100))
        change = math.floor(abs(total) + Fraction(1, 2)) * (1 if total >= 0 else -1)
        rating = int(player.rating) + change
        after.append((rating, int(bool(player.reached) or player.rating >= 2400 or rating >= 2400)))
    return after


@pytest.mark.parametrize("count", mark_many_cases(60, 400))
@pytest.mark.parametrize("version", VERSIONS)
def test_random_months_agree_with_oracle(version: str, count: int) -> None:
    """Random months agree exactly with the text of each version of the regulations."""
    chance = random.Random(version)
    for _ in range(count):
        players, games = draw_month(chance)
        after = score_month(players, games, 2025, **VERSIONS[version])
        assert [(units // SCALE, reached) for units, _, reached in zip(*after, strict=True)] == score_by_regulations(
            players, games, 2025, version
        )
        assert after[1] == [player.born for player in players]


def test_period_stays_in_64_bits() -> None:
    """No step of a period leaves 64 bits at the largest ratings that a replay allows."""
    chance, constants = random.Random(5), RULE.prepare(RULE.params(**VERSIONS["2022-01"]))
    assert RULE.score_period is not None
    for _ in range(40):
        players, games = draw_month(chance)
        month = build_month(players, games)
        month.before[0][:] = [chance.choice([UNITS_MAX, UNITS_MAX - 1, -UNITS_MAX, 0]) for _ in players]
        plain, careful = ([[*column] for column in month.before] for _ in range(2))
        RULE.score_period(len(players), *month, constants, RULE.table(), plain)
        RULE.score_period(len(players), *map(to_checked, month), to_checked(constants), RULE.table(), careful)
        assert careful == plain


@pytest.mark.slow
@needs_numba
def test_compiled_months_equal_interpreted_ones() -> None:
    """Periods, games, lifts and chances compiled by numba equal the interpreted ones exactly."""
    period, single, lift, expected = map(compile_function, (RULE.score_period, RULE.score, RULE.enter, RULE.chance))
    assert RULE.enter is not None
    assert RULE.score_period is not None
    table, chance = np.array(RULE.table(), dtype=np.int64), random.Random(11)
    for version in VERSIONS.values():
        prepared = RULE.prepare(RULE.params(**version))
        constants = np.array(prepared, dtype=np.int64)
        for _ in range(100):
            players, games = draw_month(chance)
            month = build_month(players, games)
            before, offsets, rows = (np.array(part, dtype=np.int64) for part in month)
            after, fast = [array("q", column) for column in month.before], before.copy()
            minted = RULE.score_period(len(players), *month, prepared, RULE.table(), after)
            assert period(len(players), before, offsets, rows, constants, table, fast) == minted
            assert fast.tolist() == [column.tolist() for column in after]

            pair = chance.sample(range(len(players)), 2)
            states = [[column[p] for p in pair] for column in month.before]
            columns = [[1, chance.choice([1, 2])], [30, 29], [MISSING] * 2, [2025] * 2]
            after, fast = [array("q", column) for column in states], np.array(states, dtype=np.int64)
            arguments = np.array(states, dtype=np.int64), np.array(columns, dtype=np.int64), constants, table
            assert single(2, *arguments, fast) == RULE.score(2, states, columns, prepared, RULE.table(), after)
            assert fast.tolist() == [column.tolist() for column in after]
            assert RULE.chance is not None
            assert expected(0, 1, *arguments) == RULE.chance(0, 1, states, columns, prepared, RULE.table())
            state = tuple(column[0] for column in states)
            assert lift(state, constants) == RULE.enter(state, prepared)


# (parameters, reason for the rejection)
REJECTED_PARAMS = {
    "empty range to lift": (
        {"lift": 40, "lift_from": 2000},
        "params.lift_from: 2000 is not below lift_to, 2000; change one of them",
    ),
    "floor of 2400": (
        {"floor": 2400},
        "params.high_from: 2400 is not above the floor, 2400; change one of them",
    ),
}


@pytest.mark.parametrize(("params", "reason"), REJECTED_PARAMS.values(), ids=REJECTED_PARAMS)
def test_contradictory_params_are_rejected(params: dict[str, Any], reason: str) -> None:
    """Parameters that contradict each other are rejected."""
    assert RULE.refuse_params(RULE.params(**params), 2) == reason


@pytest.mark.parametrize("name", VERSIONS)
def test_shipped_ruleset_has_the_tested_params(name: str) -> None:
    """Each version of the regulations is a publishable ruleset with the parameters tested here."""
    version = bind_ruleset((SHIPPED / f"fide-{name}.toml").read_text(encoding="utf-8"))
    ruleset = version.ruleset
    assert (version.rule, version.params) == (RULE, RULE.params(**VERSIONS[name]))
    assert (ruleset.name, ruleset.period, ruleset.effective_from) == (f"fide@{name}", "month", f"{name}-01")
    assert {*RULE.params.model_fields} - {*ruleset.params} <= {
        "min_games",
        "carry_over",
        "substitution",
        "lift_from",
        "lift_to",
    }


def test_shipped_versions_can_follow_each_other() -> None:
    """Each of the three rulesets is a valid later version of the one before."""
    with rl.create() as ledger:
        for name in VERSIONS:
            assert ledger.publish(SHIPPED / f"fide-{name}.toml", by="mira") == [f"fide@{name}"]


def test_samples_can_be_scored() -> None:
    """Random columns are those of a two-player game that the rule can score."""
    assert RULE.sample is not None
    chance, params = random.Random(1), RULE.params()
    for _ in range(100):
        columns = RULE.sample(2, chance, params)
        assert RULE.check is not None
        assert RULE.check(2, columns, params) is None
        before = [[2000 * SCALE, 1900 * SCALE], [0, 0], [0, 0]]
        after = [[*column] for column in before]
        assert RULE.score(2, before, columns, RULE.prepare(params), RULE.table(), after) >= 0

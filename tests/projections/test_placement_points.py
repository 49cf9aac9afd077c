"""Placement points: the source's table and examples, ties of every shape, and a naive computation beside it."""

import random
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
from histories import facts_of, fill, ruleset, standings_of, stream_of
from own_rules import find_shipped_text, load_built_in_rule

from ratings_ledger.rules import PLAYERS_MAX, exact

RULE = load_built_in_rule("placement-points/1")

# the table of the page: the points of the places by number of players
TABLE = {
    2: [2, 0],
    3: [6, 2, 0],
    4: [12, 6, 2, 0],
    5: [20, 12, 6, 2, 0],
    6: [30, 20, 12, 6, 2, 0],
    7: [42, 30, 20, 12, 6, 2, 0],
    8: [56, 42, 30, 20, 12, 6, 2, 0],
}
PARAMS = RULE.params()


def columns(places, seats=None):
    """The columns of a game with these places."""
    n = len(places)
    return [list(places), [seats or n] * n, [list(places).count(place) for place in places]]


def scored(places):
    """(points of everybody as exact strings, what was burned)."""
    change = [-1] * len(places)
    minted = RULE.score(len(places), [0] * len(places), columns(places), RULE.prepare(PARAMS), (), change)
    return [exact(units, RULE.scale) for units in change], minted - sum(change)


def weak_orders(n):
    """All competition places of n players."""
    return {tuple(1 + sum(o < r for o in ranks) for r in ranks) for ranks in product(range(n), repeat=n)}


@pytest.mark.parametrize(("n", "points"), TABLE.items())
def test_points_without_ties_match_the_page(n, points):
    """Without ties, the points are those of the page."""
    assert scored(range(1, n + 1)) == ([str(value) for value in points], 0)


EXAMPLES = {
    "cartagena 1000 970 970 800 770": ([1, 2, 2, 4, 5], ["20", "9", "9", "2", "0"]),
    "vampiring 32 28 28 10": ([1, 2, 2, 4], ["12", "4", "4", "0"]),
    "gonzaga, three first of four": ([1, 1, 1, 4], ["20/3", "20/3", "20/3", "0"]),
    "three second of four": ([1, 2, 2, 2], ["12", "8/3", "8/3", "8/3"]),
    "both of two": ([1, 1], ["1", "1"]),
    "all of three": ([1, 1, 1], ["8/3"] * 3),
    "all of seven": ([1] * 7, ["16"] * 7),
    "all of eight": ([1] * 8, ["21"] * 8),
    "seven behind the first of eight": ([1, *[2] * 7], ["56", *["16"] * 7]),
    "five behind the first of six": ([1, *[2] * 5], ["30", *["8"] * 5]),
    "four first of five": ([1, 1, 1, 1, 5], ["10", "10", "10", "10", "0"]),
    "two last of eight": ([1, 2, 3, 4, 5, 6, 7, 7], ["56", "42", "30", "20", "12", "6", "1", "1"]),
}


@pytest.mark.parametrize(("places", "points"), EXAMPLES.values(), ids=EXAMPLES)
def test_tied_players_get_the_mean(places, points):
    """Tied players all get the mean of the points of the places they share."""
    assert scored(places) == (points, 0)


@pytest.mark.parametrize("n", range(2, 7))
def test_points_sum_to_the_formula(n):
    """However n players are placed, a game gives (n^3 - n) / 3 points in all."""
    for places in weak_orders(n):
        points, burned = scored(places)
        assert sum(map(Fraction, points)) == Fraction(n**3 - n, 3)
        assert burned == 0


def test_participant_order_does_not_matter():
    """Players get the same points whatever the order of the participants."""
    places = [3, 1, 3, 2, 5]
    straight = scored(places)[0]
    for order in ([4, 3, 2, 1, 0], [1, 0, 2, 4, 3]):
        assert scored([places[i] for i in order])[0] == [straight[i] for i in order]


def test_uncounted_seat_keeps_others_points():
    """If a seat does not count, the others still get the points of their places."""
    change = [0, 0]
    minted = RULE.score(2, [0, 0], [[2, 2], [4, 4], [2, 2]], (), (), change)

    assert change == [4 * RULE.scale, 4 * RULE.scale]
    assert minted == 8 * RULE.scale


def test_players_of_seat_get_its_points():
    """Both players of one seat get the points of that seat."""
    change = [0, 0, 0, 0]
    # four players on three seats: nobody shares a place with another seat
    RULE.score(4, [0] * 4, [[1, 2, 2, 3], [3] * 4, [1] * 4], (), (), change)

    assert change == [6 * RULE.scale, 2 * RULE.scale, 2 * RULE.scale, 0]


@pytest.mark.parametrize(("seats", "reason"), [
    (2, None), (8, None), (9, "placement points are defined for 2 to 8 players; this game has 9"), (40, "game has 40"),
])  # fmt: skip
def test_games_need_2_to_8_seats(seats, reason):
    """Only games of 2 to 8 seats can be scored."""
    found = RULE.check(2, columns([1, 2], seats), PARAMS)

    assert found is None if reason is None else reason in (found or "")


def test_default_params_are_accepted():
    """The default parameters are accepted for any number of players and need no preparation."""
    assert RULE.refuse_params(PARAMS, PLAYERS_MAX) is None
    assert RULE.prepare(PARAMS) == ()


@pytest.mark.parametrize(
    "params",
    [{"best_of": 0}, {"best_of": "some"}, {"best_of": "3"}, {"tie_break": "wins"}, {"min_games": -1}, {"points": 1}],
)
def test_wrong_params_are_refused(params):
    """Parameters of the wrong kind are refused."""
    with pytest.raises(ValueError):
        RULE.params(**params)


def explained(places):
    """For every player (term, amount as exact string, detail, note)."""
    given, n = columns(places), len(places)
    change = [0] * n
    RULE.score(n, [0] * n, given, (), (), change)
    terms = RULE.explain(n, [f"p{i}" for i in range(n)], [0] * n, given, PARAMS, change)
    assert [sum(term.amount for term in mine) for mine in terms] == change
    return [[(t.term, exact(t.amount, RULE.scale), t.detail, t.note) for t in mine] for mine in terms]


def test_explanation_tells_place_and_points():
    """An explanation tells the place and its points."""
    told = explained([1, 2, 2, 4, 5])

    assert told[0] == [("place 1", "20", "place 1 of 5: 4 * 5", "")]
    assert told[1] == [("place 2", "9", "tied: the mean of 12 + 6, the points of places 2 and 3 of 5", "")]
    assert told[4] == [("place 5", "0", "place 5 of 5: 0 * 1", "")]
    three = "tied: the mean of 12 + 6 + 2, the points of places 1 to 3 of 4"
    assert explained([1, 1, 1, 4])[0] == [("place 1", "20/3", three, "")]


def test_random_games_match_the_tables_mean():
    """Random games, scored and explained, agree with the mean of the table's points."""
    chance, seen = random.Random(31), Counter[str]()
    for _ in range(3_000):
        n = chance.randint(2, 8)
        ranks = [chance.randint(1, n) for _ in range(n)]
        places = [1 + sum(other < rank for other in ranks) for rank in ranks]
        points, burned = scored(places)
        ordered = sorted(range(n), key=lambda i: places[i])
        given = {i: [TABLE[n][slot] for slot, j in enumerate(ordered) if places[j] == places[i]] for i in range(n)}
        assert [Fraction(value) for value in points] == [Fraction(sum(given[i]), len(given[i])) for i in range(n)]
        assert burned == 0
        explained(places)
        seen["tie"] += len(set(places)) < n
        seen["tied winners"] += places.count(1) > 1
        seen["all tied"] += set(places) == {1}
        seen["a third"] += any("/3" in value for value in points)
        seen["eight"] += n == 8
    assert min(seen.values()) > 100, seen


def recorded(game_id, game, day, league="L1", **scores):
    """A league game decided by scores: `recorded("g1", "cartagena", 1, anna=1000, ben=970)`."""
    participants = [{"player": player, "score": points} for player, points in scores.items()]
    data = {"game_id": game_id, "game": game, "league": league, "participants": participants}
    return {"type": "game.recorded", "occurred_at": f"2010-02-{day:02d}T20:00:00Z", "data": data}


def test_league_table_sums_the_points(ledger_url):
    """The shipped ruleset's league table sums the points of its games.

    The league has the page's examples and a game of nine; games elsewhere do not count.
    """
    events = [
        ruleset(find_shipped_text("youplay-league")),
        recorded("g1", "cartagena", 1, anna=1000, ben=970, cleo=970, dora=800, emil=770),
        recorded("g2", "vampiring", 2, ben=32, anna=28, dora=28, cleo=10),
        recorded("g3", "king-me", 3, dora=1, emil=0),
        recorded("g4", "gonzaga", 4, league="L2", emil=5, anna=3),
        recorded("g5", "catan", 5, emil=5, anna=3),
        recorded("g6", "gonzaga", 6, **{f"p{number}": number for number in range(9)}),
    ]
    stream = stream_of(facts_of(fill(ledger_url, events)), "youplay-league/L1")

    found = standings_of(stream)
    assert [(row.rank, row.player, exact(row.points, RULE.scale), row.games) for row in found.rows] == [
        (1, "anna", "24", 2), (2, "ben", "21", 2), (3, "cleo", "9", 2), (4, "dora", "8", 3), (5, "emil", "0", 2),
    ]  # fmt: skip
    assert (found.games, found.minted, found.burned) == (3, (40 + 20 + 2) * RULE.scale, 0)

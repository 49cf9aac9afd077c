"""Placement points: the source's table and examples, ties of every shape, and a comparison with a naive computation."""

import random
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
from histories import build_ruleset_event, build_stream, fill, load_facts, rank_stream
from own_rules import find_shipped_text, load_built_in_rule

from ratings_ledger.rules import PLAYERS_MAX, exact

RULE = load_built_in_rule("placement-points/1")

# the table of the page: points by place, by number of players
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


def build_columns(places, seats=None):
    """Return the columns of a game with these places."""
    n = len(places)
    return [list(places), [seats or n] * n, [list(places).count(place) for place in places]]


def score_game(places):
    """Return (points of all players as exact strings, the burned points)."""
    change = [-1] * len(places)
    minted = RULE.score(len(places), [0] * len(places), build_columns(places), RULE.prepare(PARAMS), (), change)
    return [exact(units, RULE.scale) for units in change], minted - sum(change)


def list_weak_orders(n):
    """Return all competition places of n players."""
    return {tuple(1 + sum(o < r for o in ranks) for r in ranks) for ranks in product(range(n), repeat=n)}


@pytest.mark.parametrize(("n", "points"), TABLE.items())
def test_points_without_ties_match_the_page(n, points):
    """Without ties, the points equal those of the page."""
    assert score_game(range(1, n + 1)) == ([str(value) for value in points], 0)


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
    """Tied players get the mean of the points of their places."""
    assert score_game(places) == (points, 0)


@pytest.mark.parametrize("n", range(2, 7))
def test_points_sum_to_the_formula(n):
    """For any order with ties, a game of n players gives (n^3 - n) / 3 points in all."""
    for places in list_weak_orders(n):
        points, burned = score_game(places)
        assert sum(map(Fraction, points)) == Fraction(n**3 - n, 3)
        assert burned == 0


def test_participant_order_does_not_matter():
    """The order of the participants does not change any points."""
    places = [3, 1, 3, 2, 5]
    expected = score_game(places)[0]
    for order in ([4, 3, 2, 1, 0], [1, 0, 2, 4, 3]):
        assert score_game([places[i] for i in order])[0] == [expected[i] for i in order]


def test_uncounted_seat_keeps_others_points():
    """With an uncounted seat, the other players still get the points of their places."""
    change = [0, 0]
    minted = RULE.score(2, [0, 0], [[2, 2], [4, 4], [2, 2]], (), (), change)

    assert change == [4 * RULE.scale, 4 * RULE.scale]
    assert minted == 8 * RULE.scale


def test_players_of_seat_get_its_points():
    """Both players of one seat get the points of that seat."""
    change = [0, 0, 0, 0]
    # four players on three seats; no two seats share a place
    RULE.score(4, [0] * 4, [[1, 2, 2, 3], [3] * 4, [1] * 4], (), (), change)

    assert change == [6 * RULE.scale, 2 * RULE.scale, 2 * RULE.scale, 0]


@pytest.mark.parametrize(
    ("seats", "reason"),
    [
        (2, None),
        (8, None),
        (9, "placement points are defined for 2 to 8 players; this game has 9"),
        (40, "game has 40"),
    ],
)
def test_games_of_more_than_8_seats_are_refused(seats, reason):
    """A game of 2 to 8 seats can be scored; one of more is refused with their number."""
    refusal = RULE.check(2, build_columns([1, 2], seats), PARAMS)

    assert refusal is None if reason is None else reason in (refusal or "")


def test_default_params_are_accepted():
    """The default parameters are accepted for any number of players and need no preparation."""
    assert RULE.refuse_params(PARAMS, PLAYERS_MAX) is None
    assert RULE.prepare(PARAMS) == ()


@pytest.mark.parametrize(
    "params",
    [{"best_of": 0}, {"best_of": "some"}, {"best_of": "3"}, {"tie_break": "wins"}, {"min_games": -1}, {"points": 1}],
)
def test_params_of_wrong_kind_are_rejected(params):
    """Parameters of the wrong kind are rejected."""
    with pytest.raises(ValueError):
        RULE.params(**params)


def explain_game(places):
    """Return each player's terms as (term, amount as exact string, detail, note)."""
    game, n = build_columns(places), len(places)
    change = [0] * n
    RULE.score(n, [0] * n, game, (), (), change)
    terms = RULE.explain(n, [f"p{i}" for i in range(n)], [0] * n, game, PARAMS, change)
    assert [sum(term.amount for term in player_terms) for player_terms in terms] == change
    return [[(t.term, exact(t.amount, RULE.scale), t.detail, t.note) for t in player_terms] for player_terms in terms]


def test_explanation_has_place_and_points():
    """An explanation has each player's place and the source of the points."""
    terms = explain_game([1, 2, 2, 4, 5])

    assert terms[0] == [("place 1", "20", "place 1 of 5: 4 * 5", "")]
    assert terms[1] == [("place 2", "9", "tied: the mean of 12 + 6, the points of places 2 and 3 of 5", "")]
    assert terms[4] == [("place 5", "0", "place 5 of 5: 0 * 1", "")]
    three = "tied: the mean of 12 + 6 + 2, the points of places 1 to 3 of 4"
    assert explain_game([1, 1, 1, 4])[0] == [("place 1", "20/3", three, "")]


def test_random_games_match_the_tables_mean():
    """In random games, players get the mean of the table's points for the places they share; explanations add up."""
    chance, cases = random.Random(31), Counter[str]()
    for _ in range(3_000):
        n = chance.randint(2, 8)
        ranks = [chance.randint(1, n) for _ in range(n)]
        places = [1 + sum(better < rank for better in ranks) for rank in ranks]
        points, burned = score_game(places)
        ordered = sorted(range(n), key=lambda i: places[i])
        shared_points = {
            i: [TABLE[n][slot] for slot, j in enumerate(ordered) if places[j] == places[i]] for i in range(n)
        }
        assert [Fraction(value) for value in points] == [
            Fraction(sum(shared_points[i]), len(shared_points[i])) for i in range(n)
        ]
        assert burned == 0
        explain_game(places)
        cases["tie"] += len(set(places)) < n
        cases["tied winners"] += places.count(1) > 1
        cases["all tied"] += set(places) == {1}
        cases["a third"] += any("/3" in value for value in points)
        cases["eight"] += n == 8
    assert min(cases.values()) > 100, cases


def build_league_game(game_id, game, day, league="L1", **scores):
    """Return a league game with scores: `build_league_game("g1", "cartagena", 1, anna=1000, ben=970)`."""
    participants = [{"player": player, "score": points} for player, points in scores.items()]
    data = {"game_id": game_id, "game": game, "league": league, "participants": participants}
    return {"type": "game.recorded", "occurred_at": f"2010-02-{day:02d}T20:00:00Z", "data": data}


def test_league_table_sums_the_points(ledger_url):
    """Under the shipped ruleset, the table of a league sums the points of its games.

    The league has the page's examples and a game of nine, which does not count; games elsewhere do not count either.
    """
    events = [
        build_ruleset_event(find_shipped_text("youplay-league")),
        build_league_game("g1", "cartagena", 1, anna=1000, ben=970, cleo=970, dora=800, emil=770),
        build_league_game("g2", "vampiring", 2, ben=32, anna=28, dora=28, cleo=10),
        build_league_game("g3", "king-me", 3, dora=1, emil=0),
        build_league_game("g4", "gonzaga", 4, league="L2", emil=5, anna=3),
        build_league_game("g5", "catan", 5, emil=5, anna=3),
        build_league_game("g6", "gonzaga", 6, **{f"p{number}": number for number in range(9)}),
    ]
    stream = build_stream(load_facts(fill(ledger_url, events)), "youplay-league/L1")

    ranking = rank_stream(stream)
    assert [(row.rank, row.player, exact(row.points, RULE.scale), row.games) for row in ranking.rows] == [
        (1, "anna", "24", 2),
        (2, "ben", "21", 2),
        (3, "cleo", "9", 2),
        (4, "dora", "8", 3),
        (5, "emil", "0", 2),
    ]
    assert (ranking.games, ranking.minted, ranking.burned) == (3, (40 + 20 + 2) * RULE.scale, 0)

"""The ante pool: the source's examples, ties of every shape, and a comparison with a naive computation."""

import random
from collections import Counter
from fractions import Fraction
from math import floor

import pytest
from checked_integers import to_checked
from histories import build_ruleset_event, build_stream, fill, load_facts, rank_stream
from own_rules import find_ruleset_problems, find_shipped_text, load_built_in_rule

from ratings_ledger.rules import LEAVERS, PLAYERS_MAX, SUBSTITUTE, UNITS_MAX

RULE = load_built_in_rule("ante-pool/1")

SHARES = {"3": [50, 30, 20], "4": [40, 30, 20, 10], "5": [40, 30, 20, 10, 0]}


def build_params(**params):
    """Return the source's parameters, with these changes."""
    return RULE.params(**{"shares": SHARES, **params})


def build_columns(places, vps=None, statuses=None, seats=None):
    """Return the columns of a game with these places; by default without victory points and leavers."""
    n = len(places)
    return [list(places), [seats or n] * n, list(vps or [0] * n), list(statuses or [0] * n)]


def score_game(points, places, vps=None, seats=None, **params):
    """Return (changes, minted, burned) of one game."""
    change = [0] * len(points)
    minted = RULE.score(
        len(points), points, build_columns(places, vps, seats=seats), RULE.prepare(build_params(**params)), (), change
    )
    return change, minted, minted - sum(change)


def explain_game(points, places, vps=None, **params):
    """Return each player's terms as (term, amount, detail, note)."""
    change = score_game(points, places, vps, **params)[0]
    names = [f"p{number}" for number in range(len(points))]
    terms = RULE.explain(len(points), names, points, build_columns(places, vps), build_params(**params), change)
    assert [sum(term.amount for term in player_terms) for player_terms in terms] == change
    return [[tuple(term[:4]) for term in player_terms] for player_terms in terms]


def test_complete_example_matches_source():
    """In the source's complete example, the winner goes from 95 to 102 points.

    95 points ante 9, the pot is 39, the first of four gets 15 back and 1 of 3 victory points.
    """
    assert score_game([95, 100, 100, 100], [1, 2, 3, 4], [1, 2, 0, 0]) == ([7, 3, -3, -7], 3, 39 - 15 - 11 - 7 - 3)


def test_second_place_tie_shares_pot():
    """Two players tied for second get 9 points each from a pot of 38."""
    changes, _, burned = score_game([95, 95, 100, 100], [1, 2, 2, 4])

    assert changes == [15 - 9, 9 - 9, 9 - 10, 3 - 10]
    assert burned == 38 - 15 - 9 - 9 - 3


def test_tied_newcomers_match_example():
    """The points of four newcomers, two of them tied for second, change as in the source's example."""
    assert score_game([100] * 4, [1, 2, 2, 4], [0, 2, 0, 0]) == ([6, 2, 0, -6], 2, 0)


def test_tied_winners_get_35_percent_each():
    """Two tied winners get 35 percent of the pot each, as in the source's example."""
    assert score_game([100] * 4, [1, 1, 3, 4], [1, 0, 1, 0]) == ([14 - 10 + 1, 14 - 10, 8 - 10 + 1, 4 - 10], 2, 0)


WINNERS = {
    # (places, places shared by winners, points back if winners share, points back by power) of newcomers
    "two standard victories": ([1, 2, 3, 4], [1, 1, 3, 4], [14, 14, 8, 4], [16, 12, 8, 4]),
    "a major above two standard ones": ([1, 2, 3, 4], [1, 2, 2, 4], [16, 10, 10, 4], [16, 12, 8, 4]),
    "two winners who are also tied": ([1, 1, 3, 4], [1, 1, 3, 4], [14, 14, 8, 4], [14, 14, 8, 4]),
    "three of five": ([1, 2, 3, 4, 5], [1, 1, 1, 4, 5], [15, 15, 15, 5, 0], [20, 15, 10, 5, 0]),
}


@pytest.mark.parametrize(("places", "shared_places", "if_shared", "by_power"), WINNERS.values(), ids=WINNERS)
def test_winners_share_the_pot_or_power_decides(places, shared_places, if_shared, by_power):
    """Several winners divide the shares of their places equally; with `by_power`, only tied players do."""
    n = len(places)
    for winners, expected in (("share", if_shared), ("by_power", by_power)):
        params, change = build_params(winners=winners), [0] * n
        game = [*build_columns(places), [0] * n, shared_places]
        assert RULE.score(n, [100] * n, game, RULE.prepare(params), (), change) == 0
        assert [gain + 10 for gain in change] == expected
        terms = RULE.explain(n, [f"p{i}" for i in range(n)], [100] * n, game, params, change)
        assert [sum(term.amount for term in player_terms) for player_terms in terms] == change


FALL = [100, 90, 81, 73, 66, 60, 54, 49, 45, 41, 37, 34, 31, 28, 26, 24, 22, 20, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9]


def test_constant_loser_falls_to_nine():
    """A player who always loses falls as the source lists, down to 9 points."""
    points = [100]
    for _ in range(40):
        points.append(points[-1] + score_game([100, 100, 100, 100, points[-1]], [1, 2, 3, 4, 5])[0][4])

    assert points[: len(FALL)] == FALL
    assert set(points[len(FALL) :]) == {9}


@pytest.mark.parametrize(("points", "antes"), [(9, 0), (10, 1), (0, 0), (-1, 0), (-100, 0), (19, 1), (1_005, 100)])
def test_ante_is_a_tenth_rounded_down(points, antes):
    """The ante is a tenth of the points, rounded down, and never negative."""
    assert score_game([0, 0, 0, 0, points], [1, 2, 3, 4, 5])[0][4] == -antes


# by number of newcomers: (their changes in the order of their places, the burned points)
RESULTS_BY_SIZE = {
    3: ([5, -1, -4], 0),
    4: ([6, 2, -2, -6], 0),
    5: ([10, 5, 0, -5, -10], 0),
    6: ([14, 8, 2, -4, -10, -10], 0),
    8: ([22, 14, 6, -2, -10, -10, -10, -10], 0),
}


@pytest.mark.parametrize(("n", "expected"), RESULTS_BY_SIZE.items())
def test_row_of_five_serves_larger_games(n, expected):
    """Newcomers share by the row for their number of players; five or more use the row for five."""
    assert score_game([100] * n, range(1, n + 1)) == (expected[0], 0, expected[1])


TIES = {
    "all three": ([1, 1, 1], [0, 0, 0], 0),
    "two first of three": ([1, 1, 3], [2, 2, -4], 0),
    "two second of three": ([1, 2, 2], [5, -3, -3], 1),  # a quarter of 30 is 7.5
    "three first of four": ([1, 1, 1, 4], [2, 2, 2, -6], 0),
    "two and two": ([1, 1, 3, 3], [4, 4, -4, -4], 0),
    "three second of four": ([1, 2, 2, 2], [6, -2, -2, -2], 0),
    "all of five": ([1, 1, 1, 1, 1], [0, 0, 0, 0, 0], 0),
    "two fourth of five": ([1, 2, 3, 4, 4], [10, 5, 0, -8, -8], 1),
    "two fifth of six": ([1, 2, 3, 4, 5, 5], [14, 8, 2, -4, -10, -10], 0),
    "two fourth of six": ([1, 2, 3, 4, 4, 6], [14, 8, 2, -7, -7, -10], 0),
    "three fourth of six": ([1, 2, 3, 4, 4, 4], [14, 8, 2, -8, -8, -8], 0),
    "all of seven": ([1] * 7, [0] * 7, 0),
}


@pytest.mark.parametrize(("places", "changes", "burned"), TIES.values(), ids=TIES)
def test_ties_divide_their_shares(places, changes, burned):
    """Tied players divide the shares of their places equally."""
    assert score_game([100] * len(places), places) == (changes, 0, burned)


def test_order_of_participants_is_irrelevant():
    """The order of the participants does not change any points."""
    points, places, vps = [95, 133, 7, 100], [2, 1, 4, 2], [0, 1, 2, 0]
    expected = score_game(points, places, vps)[0]
    for order in ([1, 0, 2, 3], [3, 2, 1, 0], [2, 3, 0, 1]):
        reordered = [[values[i] for i in order] for values in (points, places, vps)]
        assert score_game(*reordered)[0] == [expected[i] for i in order]


def test_uncounted_seat_keeps_the_row():
    """With an uncounted seat, the row is still that of all seats.

    The second of four seats does not count, and its 30 % of the pot are burned.
    """
    assert score_game([100] * 3, [1, 3, 4], seats=4) == ([2, -4, -7], 0, 9)


@pytest.mark.slow_cases
@pytest.mark.parametrize(("n", "divisor"), [(3, 10), (8, 5), (922, 1)])
def test_largest_points_stay_exact(n, divisor):
    """At the largest points, no step leaves 64 bits and all rounding is exact.

    With 922 players who ante all their points, the pot is the largest that fits.
    """
    params = build_params(ante_divisor=divisor)
    assert RULE.refuse_params(params, n) is None
    points = [UNITS_MAX - number for number in range(n)]
    change = [0] * n
    RULE.score(
        n,
        to_checked(points),
        to_checked(build_columns([1, *[2] * (n - 1)])),
        to_checked(RULE.prepare(params)),
        (),
        change,
    )

    pot = sum(own_points // divisor for own_points in points)
    first, rest = (50, 50) if n == 3 else (40, 60)
    assert change[0] == floor(Fraction(pot * first, 100)) - points[0] // divisor
    assert change[-1] == floor(Fraction(pot * rest, 100 * (n - 1))) - points[-1] // divisor


CHECKS = {
    "two players": (build_columns([1, 2]), "this game has 2 players; `params.shares` starts at 3"),
    "two of three seats count": (build_columns([1, 3], seats=3), None),
    "three": (build_columns([1, 2, 3]), None),
    "forty": (build_columns(range(1, 41)), None),
    "leaver and substitute": (
        build_columns([1, 2, 3, 3], statuses=[0, 0, LEAVERS[0], SUBSTITUTE], seats=3),
        "changed hands and both its players",
    ),
    "a leaver without a substitute": (build_columns([1, 2, 3], statuses=[0, LEAVERS[0], 0]), None),
    "a substitute whose leaver does not count": (build_columns([1, 2, 3], statuses=[0, SUBSTITUTE, 0]), None),
}


@pytest.mark.parametrize(("game", "reason"), CHECKS.values(), ids=CHECKS)
def test_check_rejects_games_that_cannot_be_scored(game, reason):
    """Only games of 3 or more seats, each with one player, can be scored."""
    refusal = RULE.check(len(game[0]), game, build_params())

    assert refusal is None if reason is None else reason in (refusal or "")


BAD_PARAMS = {
    "no rows": ({"shares": {}}, "params.shares: a row for at least one number of players"),
    "a word": ({"shares": {"many": [0]}}, "params.shares: 'many' is not a number of players from 2 to 99"),
    "too few": ({"shares": {"3": [50, 50]}}, "params.shares.3: 3 players need 3 percentages"),
    "less than nothing": ({"shares": {"3": [50, -30, 0]}}, "params.shares.3: a percentage must be a whole number from"),
    "more than the pot": (
        {"shares": {**SHARES, "3": [60, 30, 20]}},
        "the shares add up to 110 % of the pot; the maximum is",
    ),
    "a gap": (
        {"shares": {"3": SHARES["3"], "5": SHARES["5"]}},
        "params.shares: there are rows for 3 and 5 players, but none",
    ),
    "a last share that larger games repeat": (
        {"shares": {"3": SHARES["3"], "4": SHARES["4"]}},
        "larger games repeat it (or add a row for 5 players)",
    ),
    "all points into the pot": ({"ante_divisor": 1}, "params.ante_divisor: 1 is too small for a pot"),
    "a quarter into the pot": ({"ante_divisor": 4}, "params.ante_divisor: 4 is too small for a pot"),
}


@pytest.mark.parametrize(("params", "reason"), BAD_PARAMS.values(), ids=BAD_PARAMS)
def test_bad_params_are_rejected(params, reason):
    """Invalid parameters, and those that results cannot keep exact, are rejected with the key and the reason."""
    assert reason in (RULE.refuse_params(build_params(**params), PLAYERS_MAX) or "")


@pytest.mark.parametrize("params", [{}, {"ante_divisor": 5}, {"shares": {"2": [50, 0]}}, {"shares": {"2": [0, 0]}}])
def test_exact_params_are_accepted(params):
    """Valid parameters are accepted if all results stay exact."""
    assert RULE.refuse_params(build_params(**params), PLAYERS_MAX) is None


def test_few_players_may_ante_all_points():
    """Up to 922 players may ante all their points; more players may not."""
    assert RULE.refuse_params(build_params(ante_divisor=1), 922) is None
    assert RULE.refuse_params(build_params(ante_divisor=1), 923) is not None


@pytest.mark.parametrize(
    "params", [{"shares": None}, {"shares": {"3": ["50", 30, 20]}}, {"ante_divisor": 0}, {"min_games": -1}]
)
def test_params_of_wrong_kind_are_rejected(params):
    """Parameters of the wrong kind are rejected."""
    with pytest.raises(ValueError):
        build_params(**params)


def test_wrong_row_is_reported_with_its_line():
    """A wrong row in a ruleset file is reported with its line."""
    text = find_shipped_text("b5-league")
    ((key, _, line),) = find_ruleset_problems(text.replace("[50, 30, 20]", "[50, 30, 30]"))

    assert key == "params.shares.3"
    assert line is not None
    assert text.splitlines()[line - 1].startswith("3 = ")


def test_explanation_shows_each_term():
    """An explanation has the ante, the share and the victory points of each player."""
    first, second, third, fourth = explain_game([95, 9, -4, 120], [1, 2, 2, 4], [0, 2, 0, 0])

    assert first == [
        ("ante", -9, "1/10 of 95", "9.5 rounded down"),
        ("share", 8, "40 % of the pot of 21 for place 1", "8.4 rounded down"),
        ("victory points", 0, "0 of the 2 handed out", ""),
    ]
    tie = ("share", 5, "25 % of the pot of 21", "shares 30 + 20 of places 2 and 3, divided by 2; 5.25 rounded down")
    assert second == [
        ("ante", 0, "1/10 of 9", "0.9 rounded down"),
        tie,
        ("victory points", 2, "2 of the 2 handed out", ""),
    ]
    assert third == [("ante", 0, "no ante from -4 points", ""), tie]
    assert fourth == [
        ("ante", -12, "1/10 of 120", ""),
        ("share", 2, "10 % of the pot of 21 for place 4", "2.1 rounded down"),
    ]


def test_explanation_names_only_existing_shares():
    """For ties beyond the last share, an explanation names only the existing shares."""
    terms = explain_game([100] * 8, [1, 2, 3, 4, 4, 4, 7, 7])

    middle = "shares 10 + 0 of places 4 to 6, divided by 3; 2.666667 rounded down"
    assert terms[5][1] == ("share", 2, "3.333333 % of the pot of 80", middle)
    assert terms[7][1] == ("share", 0, "0 % of the pot of 80", "shares 0 of places 7 and 8, divided by 2")


def score_naively(points, places, vps):
    """Return (changes by player, minted, burned) by the formula, in exact fractions."""
    antes = {player: floor(Fraction(points[player], 10)) if points[player] >= 10 else 0 for player in points}
    pot = sum(antes.values())
    row = dict(enumerate(SHARES[str(min(len(points), 5))], 1))
    backs = {}
    for player, place in places.items():
        tied = [tied_player for tied_player in places if places[tied_player] == place]
        shares = sum(row.get(slot, 0) for slot in range(place, place + len(tied)))
        backs[player] = floor(pot * Fraction(shares, 100) / len(tied))
    changes = {player: backs[player] - antes[player] + vps[player] for player in points}
    return changes, sum(vps.values()), pot - sum(backs.values())


@pytest.mark.slow
def test_random_games_match_naive_scores():
    """The scores of random games agree with a naive computation, and their explanations add up."""
    chance, cases = random.Random(12), Counter[str]()
    for _ in range(6_000):
        n = chance.randint(3, 8)
        ranks = [chance.randint(1, n) for _ in range(n)]
        places = [1 + sum(better < rank for better in ranks) for rank in ranks]
        low, high = chance.choice([(0, 300), (-50, 150), (0, 12), (90, 110), (-(10**16), 10**16)])
        points = [chance.randint(low, high) for _ in range(n)]
        vps = [chance.choice([0, 0, 1, 2]) for _ in range(n)]
        changes, minted, burned = score_game(points, places, vps)
        expected = score_naively(dict(enumerate(points)), dict(enumerate(places)), dict(enumerate(vps)))
        assert (dict(enumerate(changes)), minted, burned) == expected
        assert burned >= 0
        explain_game(points, places, vps)
        cases["tie"] += len(set(places)) < n
        cases["tied winners"] += places.count(1) > 1
        cases["tie over the end of the row"] += any(
            places.count(p) > 1 and p <= 5 < p + places.count(p) for p in places
        )
        cases["below zero"] += min(points) < 0
        cases["no ante"] += any(0 <= mine < 10 for mine in points)
        cases["empty pot"] += max(points) < 10
        cases["burned"] += burned > 0
        cases["nothing burned"] += burned == 0 and max(points) >= 10
    assert min(cases.values()) > 150, cases


def build_game(game_id, day, *players, **members):
    """Return a game of kind b5, its players in order of their places; the second player gets all victory points."""
    participants = [
        {"player": player, "power": 20 - index, "influence": 0, "vp": (len(players) - 2) * (index == 1)}
        for index, player in enumerate(players)
    ]
    data = {"game_id": game_id, "game": "babylon5", "kind": "b5", "participants": participants, **members}
    return {"type": "game.recorded", "occurred_at": f"2010-02-{day:02d}T20:00:00Z", "data": data}


def test_shipped_ruleset_ranks_a_season(
    ledger_url,
):
    """Under the shipped ruleset, a season has its own ladder and ranks players from five games on.

    Dora played only one of anna's five wins and has no rank, and a game without a season is left out.
    """
    events = [
        build_ruleset_event(find_shipped_text("b5-league")),
        *(build_game(f"g{day}", day, "anna", "ben", "cleo", season="2010-1") for day in range(1, 5)),
        build_game("g5", 5, "anna", "ben", "cleo", "dora", season="2010-1"),
        build_game("g6", 6, "anna", "ben", "cleo"),
    ]
    stream = build_stream(load_facts(fill(ledger_url, events)), "b5-league/2010-1")

    points = {"anna": 100, "ben": 100, "cleo": 100, "dora": 100}
    for players in [("anna", "ben", "cleo")] * 4 + [("anna", "ben", "cleo", "dora")]:
        vps = {player: (len(players) - 2) * (player == "ben") for player in players}
        places = {player: index for index, player in enumerate(players, 1)}
        for player, change in score_naively({p: points[p] for p in players}, places, vps)[0].items():
            points[player] += change
    ranking = rank_stream(stream)
    assert [(row.rank, row.player, row.points) for row in ranking.rows] == [
        (1, "anna", points["anna"]),
        (2, "ben", points["ben"]),
        (3, "cleo", points["cleo"]),
        (None, "dora", points["dora"]),
    ]
    assert (ranking.games, ranking.minted) == (5, 6)

"""The contribution pool: the source's examples, ties of every shape, and a comparison with a naive computation."""

import random
from collections import Counter
from fractions import Fraction
from itertools import product
from math import floor

import pytest
from checked_integers import to_checked
from histories import build_adjustment, build_ruleset_event, build_stream, fill, load_facts, rank_stream
from own_rules import find_ruleset_problems, find_shipped_text, load_built_in_rule

from ratings_ledger.rules import LEAVERS, PLAYERS_MAX, SUBSTITUTE, UNITS_MAX

RULE = load_built_in_rule("contribution-pool/1")

TABLE = {"2": [0, 16], "3": [0, 13, 20], "4": [0, 11, 17, 24], "5": [0, 10, 16, 22, 28]}


def build_params(**params):
    """Return the source's parameters, with these changes."""
    return RULE.params(**{"contributions": TABLE, **params})


def build_columns(places, seconds=None, statuses=None, seats=None):
    """Return the columns of a game with these places; by default without played time and leavers."""
    n = len(places)
    return [list(places), [seats or n] * n, list(seconds or [-1] * n), list(statuses or [0] * n)]


def score_game(points, places, seconds=None, seats=None, **params):
    """Return (changes, minted, burned) of one game."""
    change = [0] * len(points)
    columns, prepared = build_columns(places, seconds, seats=seats), RULE.prepare(build_params(**params))
    minted = RULE.score(len(points), points, columns, prepared, (), change)
    return change, minted, minted - sum(change)


def explain_game(points, places, seconds=None, **params):
    """Return each player's terms as (term, amount, detail, note)."""
    change = score_game(points, places, seconds, **params)[0]
    names = ["anna", "ben", "cleo", "dora", "emil"][: len(points)]
    terms = RULE.explain(len(points), names, points, build_columns(places, seconds), build_params(**params), change)
    assert [sum(term.amount for term in player_terms) for player_terms in terms] == change
    return [[tuple(term[:4]) for term in player_terms] for player_terms in terms]


NEWCOMERS = {2: [160, -160], 3: [230, -30, -200], 4: [275, 55, -90, -240], 5: [323, 123, -17, -150, -280]}


@pytest.mark.parametrize(("n", "changes"), NEWCOMERS.items())
def test_newcomers_score_as_in_the_source(n, changes):
    """The points of newcomers change as the source states."""
    burned = 1 if n == 5 else 0  # the fourth loses 220, and three get 73 each

    assert score_game([1000] * n, range(1, n + 1)) == (changes, 0, burned)


def test_bonus_needs_more_than_600_seconds():
    """Only players with more than 600 seconds get the minted bonus."""
    assert score_game([1000, 1000], [1, 2], [601, 600]) == ([260, -160], 100, 0)
    assert score_game([1000, 1000], [1, 2], [-1, 10**9]) == ([160, -60], 100, 0)


TIES = {
    "all tied": ([1, 1, 1, 1], [0, 0, 0, 0], 0),
    # each of two gives 17 % of 1000, which is 170; half of it goes to each of the two players before them
    "two first, two third": ([1, 1, 3, 3], [170, 170, -170, -170], 0),
    "two second": ([1, 2, 2, 4], [300, -30, -30, -240], 0),
    "three first": ([1, 1, 1, 4], [80, 80, 80, -240], 0),
    "three second": ([1, 2, 2, 2], [330, -110, -110, -110], 0),
    "two third of five": ([1, 2, 3, 3, 5], [330, 130, -90, -90, -280], 0),
    "two second of five": ([1, 2, 2, 4, 5], [343, 43, 43, -150, -280], 1),
}


@pytest.mark.parametrize(("places", "changes", "burned"), TIES.values(), ids=TIES)
def test_ties_share_by_competition_place(places, changes, burned):
    """Tied players contribute by their competition place, and only strictly better players share."""
    assert score_game([1000] * len(places), places) == (changes, 0, burned)


def test_order_does_not_matter():
    """The order of participants does not change any points."""
    expected = score_game([1003, 997, 1500, 12], [2, 1, 4, 3])[0]
    for order in ([1, 0, 2, 3], [3, 2, 1, 0], [2, 3, 0, 1]):
        points, places = [1003, 997, 1500, 12], [2, 1, 4, 3]
        mixed = score_game([points[i] for i in order], [places[i] for i in order])[0]
        assert mixed == [expected[i] for i in order]


def test_share_is_rounded_down_once():
    """A share is rounded down once, after the whole product."""
    # 22 % of 1160 is 255.2, and a third of it 85.07; dividing the points first, 386, would give 84.92
    assert score_game([0, 0, 0, 1160, 0], [1, 2, 3, 4, 5]) == ([85, 85, 85, -255, 0], 0, 0)


def test_uncounted_seat_keeps_the_row():
    """With an uncounted seat, the row of percentages is still that of all seats.

    Three of four seats count: all but the third; three players still share the contribution of the fourth.
    """
    assert score_game([1000, 1000, 1000], [1, 2, 4], seats=4) == ([110 + 80, 80 - 110, -240], 0, 80)


@pytest.mark.parametrize(
    ("places", "burned", "winner"),
    [
        ([1, 2, 3, 4, 5], ([323, 123, -17, -150, -280], 1), ([324, 123, -17, -150, -280], 0)),
        ([1, 2, 2, 4, 5], ([343, 43, 43, -150, -280], 1), ([344, 43, 43, -150, -280], 0)),
        ([1, 1, 3, 4, 5], ([223, 223, -17, -150, -280], 1), ([223, 223, -17, -150, -280], 1)),
    ],
)
def test_dust_goes_to_a_single_winner(places, burned, winner):
    """Dust for the winner goes only to a single winner, and is otherwise burned."""
    for dust, (changes, rest) in (("burn", burned), ("winner", winner)):
        assert score_game([1000] * 5, places, dust=dust) == (changes, 0, rest)


def test_dust_of_uncounted_winner_is_burned():
    """Dust for an uncounted winner is burned."""
    assert score_game([1000, 1000], [2, 3], seats=3, dust="winner") == ([100 - 130, -200], 0, 230)


def test_negative_points_mint_nothing():
    """Negative points are rounded down like others, and nothing is minted."""
    # -7 * 16 / 100 = -1.12, rounded down to -2: the last player gains 2 and the first loses 2
    assert score_game([50, -7], [1, 2]) == ([-2, 2], 0, 0)
    # -1000 * 24 / 100 = -240, a third of it -80; -1001: -240.24 and -80.08
    assert score_game([0, 0, 0, -1001], [1, 2, 3, 4]) == ([-81, -81, -81, 241], 0, 2)


@pytest.mark.parametrize("points", [0, 1, 6])
def test_too_few_points_lose_nothing(points):
    """Players with too few points for a contribution lose nothing."""
    assert score_game([1000, points], [1, 2]) == ([0, 0], 0, 0)
    assert explain_game([1000, points], [1, 2])[1][0][:2] == ("contributes", 0)


def test_extreme_points_stay_in_64_bits():
    """No step leaves 64 bits at the most points and percentages."""
    n = 99
    params = build_params(
        contributions={str(n): [0] + [100] * (n - 1)}, bonus=1_000_000, bonus_seconds=0, dust="winner"
    )
    for start in (UNITS_MAX, -UNITS_MAX):
        change = [0] * n
        arguments = (
            to_checked([start] * n),
            to_checked(build_columns(range(1, n + 1), [10**9] * n)),
            to_checked(RULE.prepare(params)),
        )
        minted = RULE.score(n, *arguments, (), change)
        assert change[1:] == [compute_change(start, place) for place in range(2, n + 1)]
        assert sum(change) == minted == 99_000_000


def compute_change(start, place):
    """Return the change at a place of 99 if all players behind the first contribute all their points."""
    return 1_000_000 - start + sum(floor(Fraction(start, worse - 1)) for worse in range(place + 1, 100))


CHECKS = {
    "six players": (build_columns([1, 2, 3, 4, 5, 6]), "is defined for 2 to 5 players; this game has 6"),
    "a seat of six does not count": (build_columns([1, 2, 3, 4, 5], seats=6), "2 to 5 players; this game has 6"),
    "five": (build_columns([1, 2, 3, 4, 5]), None),
    "leaver and substitute": (
        build_columns([1, 2, 2], statuses=[0, LEAVERS[0], SUBSTITUTE], seats=2),
        "changed hands and both its players",
    ),
    "substitute and leaver, removed": (
        build_columns([2, 1, 2], statuses=[SUBSTITUTE, 0, LEAVERS[-1]], seats=2),
        "changed hands and both its players",
    ),
    "a leaver without a substitute": (build_columns([1, 2, 3], statuses=[0, 0, LEAVERS[1]]), None),
    "a substitute whose leaver does not count": (build_columns([1, 2, 2], statuses=[0, 0, SUBSTITUTE]), None),
    "leaver and substitute of two seats": (build_columns([1, 2, 3], statuses=[LEAVERS[0], 0, SUBSTITUTE]), None),
}


@pytest.mark.parametrize(("game", "reason"), CHECKS.values(), ids=CHECKS)
def test_unscorable_games_fail_the_check(game, reason):
    """Only games of 2 to 5 seats with one player each can be scored."""
    refusal = RULE.check(len(game[0]), game, build_params())

    assert refusal is None if reason is None else reason in (refusal or "")


@pytest.mark.parametrize(("sizes", "words"), [("25", "2 or 5"), ("235", "2 or 3 or 5"), ("345", "3 to 5"), ("4", "4")])
def test_unfit_game_names_defined_sizes(sizes, words):
    """A game without a row is rejected with the sizes that are defined."""
    params = build_params(contributions={size: TABLE[size] for size in sizes})

    assert RULE.check(7, build_columns(range(1, 8)), params) == (
        f"the contribution pool is defined for {words} players; this game has 7"
    )


BAD_TABLES = {
    "no rows": ({}, "params.contributions: a row for at least one"),
    "a row of words": ({"two": [0, 16]}, "params.contributions: 'two' is not a number of players from 2 to 99"),
    "a row of one": ({"1": [0]}, "'1' is not a number of players"),
    "a row of a hundred": ({"100": [0] * 100}, "'100' is not a number of players"),
    "a leading zero": ({"02": [0, 16]}, "'02' is not a number of players"),
    "digits of another script": ({"٣": [0, 13, 20]}, "is not a number of players"),
    "too few": ({"3": [0, 13]}, "params.contributions.3: 3 players need 3 percentages, one for each place, not 2"),
    "too many": ({**TABLE, "2": [0, 16, 20]}, "params.contributions.2: 2 players need 2 percentages"),
    "more than all": (
        {"2": [0, 101]},
        "params.contributions.2: a percentage must be a whole number from 0 to 100, not 101",
    ),
    "less than nothing": ({"2": [0, -1]}, "from 0 to 100, not -1"),
    "beyond 64 bits": ({"2": [0, 10**30]}, "from 0 to 100, not 1000000000000000000000000000000"),
    "the first pays": ({"2": [1, 16]}, "params.contributions.2: the first player must contribute 0, not 1"),
}


@pytest.mark.parametrize(("table", "reason"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_bad_table_names_key_and_reason(table, reason):
    """An invalid table is rejected with its key and the reason."""
    assert reason in (RULE.refuse_params(build_params(contributions=table), PLAYERS_MAX) or "")


@pytest.mark.parametrize(
    "params",
    [
        {"contributions": None},
        {"contributions": {"2": ["0", 16]}},
        {"contributions": {"2": [0, True]}},
        {"contributions": {2: [0, 16]}},
        {"contributions": [[0, 16]]},
        {"dust": "share"},
        {"bonus": -1},
        {"bonus": 1_000_001},
        {"bonus_seconds": -1},
        {"start": "1000"},
    ],
)
def test_wrong_params_are_rejected(params):
    """Parameters of the wrong type or out of range are rejected."""
    with pytest.raises(ValueError):
        build_params(**params)


def test_wrong_row_is_reported_with_its_line():
    """A wrong row in a ruleset file is reported with its line."""
    text = find_shipped_text("galactic-points")
    ((key, _, line),) = find_ruleset_problems(text.replace("[0, 13, 20]", "[0, 13]"))

    assert key == "params.contributions.3"
    assert line is not None
    assert text.splitlines()[line - 1].startswith("3 = ")


def test_explained_parts_name_their_source():
    """Every part of an explanation has its source and its reason."""
    first, second, third, fourth = explain_game([1000, 1003, 1000, 1000], [1, 2, 3, 4], [601, 600, -1, 0])

    assert first == [
        ("from ben", 110, "11 % of 1003", "110.33 rounded down"),
        ("from cleo", 85, "17 % of 1000, shared among the 2 placed better", ""),
        ("from dora", 80, "24 % of 1000, shared among the 3 placed better", ""),
        ("bonus", 100, "played 601 s, more than 600", ""),
    ]
    assert second[0] == ("contributes", -110, "11 % of 1003 at place 2 of 4", "110.33 rounded down")
    assert second[-1] == ("bonus", 0, "played 600 s, not more than 600", "")
    assert third == [
        ("contributes", -170, "17 % of 1000 at place 3 of 4", ""),
        ("from dora", 80, "24 % of 1000, shared among the 3 placed better", ""),
    ]
    assert [term[0] for term in fourth] == ["contributes", "bonus"]


def test_dust_is_explained_only_for_its_winner():
    """Dust is explained only for the winner who gets it."""
    dust_term = "dust", 1, "the rest of all contributions after rounding down", ""
    for dust, expected in (("winner", [dust_term]), ("burn", [])):
        terms_by_player = explain_game([1000] * 5, [1, 2, 3, 4, 5], dust=dust)
        assert [term for player_terms in terms_by_player for term in player_terms if term[0] == "dust"] == expected


def score_naively(points, places, seconds, table, bonus, limit, dust):
    """Return (changes by player, minted, burned) by the formula, in exact fractions."""
    row = table[str(len(points))]
    gains = dict.fromkeys(points, 0)
    losses = {}
    for loser, place in places.items():
        better = [player for player in points if places[player] < place]
        losses[loser] = floor(Fraction(points[loser] * row[place - 1], 100))
        for player in better:
            gains[player] += floor(Fraction(points[loser] * row[place - 1], 100 * len(better)))
    dust_left = sum(losses.values()) - sum(gains.values())
    winners = [player for player in points if places[player] == 1]
    if dust == "winner" and len(winners) == 1:
        gains[winners[0]] += dust_left
        dust_left = 0
    bonuses = {player: bonus if seconds[player] is not None and seconds[player] > limit else 0 for player in points}
    return {p: gains[p] - losses[p] + bonuses[p] for p in points}, sum(bonuses.values()), dust_left


@pytest.mark.slow
def test_random_games_match_naive_scores():
    """The scores of random games agree with a naive computation, and their explanations add up."""
    chance, cases = random.Random(11), Counter[str]()
    for _ in range(6_000):
        n = chance.randint(2, 5)
        ranks = [chance.randint(1, n) for _ in range(n)]
        places = [1 + sum(better < rank for better in ranks) for rank in ranks]
        low, high = chance.choice([(0, 2_000), (-2_000, 2_000), (990, 1_010), (-(10**16), 10**16)])
        points = [chance.randint(low, high) for _ in range(n)]
        seconds = [chance.choice([None, 0, 600, 601, 10**9]) for _ in range(n)]
        dust = chance.choice(["burn", "winner"])
        known_seconds = [-1 if played is None else played for played in seconds]
        changes, minted, burned = score_game(points, places, known_seconds, dust=dust)
        expected = score_naively(
            dict(enumerate(points)), dict(enumerate(places)), dict(enumerate(seconds)), TABLE, 100, 600, dust
        )
        assert (dict(enumerate(changes)), minted, burned) == expected
        assert burned >= 0
        explain_game(points, places, known_seconds, dust=dust)
        cases["tie"] += len(set(places)) < n
        cases["tied winners"] += places.count(1) > 1
        cases["all tied"] += set(places) == {1}
        cases["below zero"] += min(points) < 0
        cases["bonus"] += minted > 0
        cases["burned"] += burned > 0
        cases["dust to a winner"] += (
            dust == "winner" and burned == 0 and score_game(points, places, known_seconds)[2] > 0
        )
    assert min(cases.values()) > 300, cases


def test_books_balance_for_every_order():
    """The books balance for every weak order of up to five newcomers."""
    for n in range(2, 6):
        for places in {tuple(1 + sum(o < r for o in ranks) for r in ranks) for ranks in product(range(n), repeat=n)}:
            changes, minted, burned = score_game([1000] * n, places)
            assert minted == 0
            assert 0 <= burned <= sum(place - 1 for place in places)
            assert sum(changes) + burned == 0


def build_game(game_id, places, day, **members):
    """Return a game of Galactic Magnate: `build_game("g1", {"anna": 1, "ben": 2}, 1)`."""
    participants = [{"player": player, "place": place, **members} for player, place in places.items()]
    data = {"game_id": game_id, "game": "galactic-magnate", "participants": participants}
    return {"type": "game.recorded", "occurred_at": f"2020-01-{day:02d}T12:00:00Z", "data": data}


def test_replayed_points_carry_on(ledger_url):
    """Under the shipped ruleset, points carry on from game to game and the books balance.

    There are a win with a bonus, an adjustment, a game of six, which is too many, and another win.
    """
    six_players = {name: place for place, name in enumerate(["anna", "ben", "c", "d", "e", "f"], 1)}
    events = [
        build_ruleset_event(find_shipped_text("galactic-points")),
        build_game("g1", {"anna": 1, "ben": 2}, 1, seconds_played=601),
        build_adjustment("galactic-points", "ben", "-40", 2),
        build_game("g2", six_players, 3),
        build_game("g3", {"anna": 2, "ben": 1}, 4),
    ]
    stream = build_stream(load_facts(fill(ledger_url, events)), "galactic-points")

    ranking = rank_stream(stream)
    # 1000 + 160 + 100, then 16 % of 1260 is 201; 1000 - 160 + 100 - 40 + 201
    assert [(row.player, row.points, row.games) for row in ranking.rows] == [("ben", 1101, 2), ("anna", 1059, 2)]
    assert (ranking.minted, ranking.burned, ranking.adjusted) == (200, 0, -40)

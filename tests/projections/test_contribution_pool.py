"""The contribution pool: the source's examples, ties of every shape, and a naive computation beside it."""

import random
from collections import Counter
from fractions import Fraction
from itertools import product
from math import floor

import pytest
from checked_integers import checked
from histories import adjustment, facts_of, fill, ruleset, shipped_text, standings_of, stream_of

from projections.contract import LEAVERS, PLAYERS_MAX, SUBSTITUTE, UNITS_MAX
from projections.rules.contribution_pool import ContributionPoolParams, check, explain, prepare, refuse_params, score
from projections.rulesets.versions import read_toml

TABLE = {"2": [0, 16], "3": [0, 13, 20], "4": [0, 11, 17, 24], "5": [0, 10, 16, 22, 28]}


def bound(**params):
    """The source's parameters, or with others instead."""
    return ContributionPoolParams(**{"contributions": TABLE, **params})


def columns(places, seconds=None, statuses=None, seats=None):
    """The columns of a game with these places; nobody's time is known, and nobody left."""
    n = len(places)
    return [list(places), [seats or n] * n, list(seconds or [-1] * n), list(statuses or [0] * n)]


def scored(points, places, seconds=None, seats=None, **params):
    """(changes, minted, burned) of one game."""
    change = [0] * len(points)
    minted = score(
        len(points), points, columns(places, seconds, seats=seats), prepare(bound(**params)), (), change
    )  # fmt: skip
    return change, minted, minted - sum(change)


def explained(points, places, seconds=None, **params):
    """For every player (term, amount, detail, note)."""
    change = scored(points, places, seconds, **params)[0]
    names = ["anna", "ben", "cleo", "dora", "emil"][: len(points)]
    terms = explain(len(points), names, points, columns(places, seconds), bound(**params), change)
    assert [sum(term.amount for term in mine) for mine in terms] == change
    return [[tuple(term) for term in mine] for mine in terms]


NEWCOMERS = {2: [160, -160], 3: [230, -30, -200], 4: [275, 55, -90, -240], 5: [323, 123, -17, -150, -280]}


@pytest.mark.parametrize(("n", "changes"), NEWCOMERS.items())
def test_given_newcomers_when_they_play_then_points_change_as_in_the_source(n, changes):
    burned = 1 if n == 5 else 0  # the fourth loses 220, and three get 73 each

    assert scored([1000] * n, range(1, n + 1)) == (changes, 0, burned)


def test_given_601_and_600_seconds_when_scored_then_only_the_longer_gets_the_minted_bonus():
    assert scored([1000, 1000], [1, 2], [601, 600]) == ([260, -160], 100, 0)
    assert scored([1000, 1000], [1, 2], [-1, 10**9]) == ([160, -60], 100, 0)


TIES = {
    "all tied": ([1, 1, 1, 1], [0, 0, 0, 0], 0),
    # 17 % of 1000 of each of two: 170, half of it to each of the two before them
    "two first, two third": ([1, 1, 3, 3], [170, 170, -170, -170], 0),
    "two second": ([1, 2, 2, 4], [300, -30, -30, -240], 0),
    "three first": ([1, 1, 1, 4], [80, 80, 80, -240], 0),
    "three second": ([1, 2, 2, 2], [330, -110, -110, -110], 0),
    "two third of five": ([1, 2, 3, 3, 5], [330, 130, -90, -90, -280], 0),
    "two second of five": ([1, 2, 2, 4, 5], [343, 43, 43, -150, -280], 1),
}


@pytest.mark.parametrize(("places", "changes", "burned"), TIES.values(), ids=TIES)
def test_given_ties_when_scored_then_the_competition_place_counts_and_those_strictly_better_share(
    places, changes, burned
):
    assert scored([1000] * len(places), places) == (changes, 0, burned)


def test_given_each_order_of_participants_when_scored_then_each_gets_the_same():
    straight = scored([1003, 997, 1500, 12], [2, 1, 4, 3])[0]
    for order in ([1, 0, 2, 3], [3, 2, 1, 0], [2, 3, 0, 1]):
        points, places = [1003, 997, 1500, 12], [2, 1, 4, 3]
        mixed = scored([points[i] for i in order], [places[i] for i in order])[0]
        assert mixed == [straight[i] for i in order]


def test_given_a_share_with_a_fraction_when_scored_then_one_floor_is_over_the_whole_product():
    # 22 % of 1160 is 255.2, a third of it 85.07; a third of the points first, 386, would give 84.92
    assert scored([0, 0, 0, 1160, 0], [1, 2, 3, 4, 5]) == ([85, 85, 85, -255, 0], 0, 0)


def test_given_a_seat_that_does_not_count_when_scored_then_the_row_is_that_of_all_seats():
    """Three of four seats count, the third one does not: the fourth's contribution is still shared by three."""
    assert scored([1000, 1000, 1000], [1, 2, 4], seats=4) == ([110 + 80, 80 - 110, -240], 0, 80)


@pytest.mark.parametrize(
    ("places", "burned", "winner"),
    [
        ([1, 2, 3, 4, 5], ([323, 123, -17, -150, -280], 1), ([324, 123, -17, -150, -280], 0)),
        ([1, 2, 2, 4, 5], ([343, 43, 43, -150, -280], 1), ([344, 43, 43, -150, -280], 0)),
        ([1, 1, 3, 4, 5], ([223, 223, -17, -150, -280], 1), ([223, 223, -17, -150, -280], 1)),
    ],
)
def test_given_dust_when_it_goes_to_the_winner_then_only_to_a_single_one(places, burned, winner):
    for dust, (changes, rest) in (("burn", burned), ("winner", winner)):
        assert scored([1000] * 5, places, dust=dust) == (changes, 0, rest)


def test_given_a_winner_who_does_not_count_when_dust_goes_to_the_winner_then_it_is_burned():
    assert scored([1000, 1000], [2, 3], seats=3, dust="winner") == ([100 - 130, -200], 0, 230)


def test_given_points_below_zero_when_scored_then_the_floors_are_literal_and_nothing_is_minted():
    # -7 * 16 / 100 = -1.12, floor -2: the last gains what the first loses
    assert scored([50, -7], [1, 2]) == ([-2, 2], 0, 0)
    # -1000 * 24 / 100 = -240, a third of it -80; -1001: -240.24 and -80.08
    assert scored([0, 0, 0, -1001], [1, 2, 3, 4]) == ([-81, -81, -81, 241], 0, 2)


@pytest.mark.parametrize("points", [0, 1, 6])
def test_given_too_few_points_when_scored_then_nothing_is_lost(points):
    assert scored([1000, points], [1, 2]) == ([0, 0], 0, 0)
    assert explained([1000, points], [1, 2])[1][0][:2] == ("contributes", 0)


def test_given_the_most_points_and_percentages_when_scored_then_no_step_leaves_64_bits():
    n = 99
    params = bound(contributions={str(n): [0] + [100] * (n - 1)}, bonus=1_000_000, bonus_seconds=0, dust="winner")
    for start in (UNITS_MAX, -UNITS_MAX):
        change = [0] * n
        given = (checked([start] * n), checked(columns(range(1, n + 1), [10**9] * n)), checked(prepare(params)))
        minted = score(n, *given, (), change)
        assert change[1:] == [change_of(start, place) for place in range(2, n + 1)]
        assert sum(change) == minted == 99_000_000


def change_of(start, place):
    """What happens to the place of 99 where everybody behind the first contributes everything."""
    return 1_000_000 - start + sum(floor(Fraction(start, worse - 1)) for worse in range(place + 1, 100))


CHECKS = {
    "six players": (columns([1, 2, 3, 4, 5, 6]), "is defined for 2 to 5 players, this game has 6"),
    "a seat of six does not count": (columns([1, 2, 3, 4, 5], seats=6), "2 to 5 players, this game has 6"),
    "five": (columns([1, 2, 3, 4, 5]), None),
    "leaver and substitute": (
        columns([1, 2, 2], statuses=[0, LEAVERS[0], SUBSTITUTE], seats=2), "changed hands and both its players",
    ),
    "substitute and leaver, removed": (
        columns([2, 1, 2], statuses=[SUBSTITUTE, 0, LEAVERS[-1]], seats=2), "changed hands and both its players",
    ),
    "a leaver whom nobody replaced": (columns([1, 2, 3], statuses=[0, 0, LEAVERS[1]]), None),
    "a substitute whose leaver does not count": (columns([1, 2, 2], statuses=[0, 0, SUBSTITUTE]), None),
    "leaver and substitute of two seats": (columns([1, 2, 3], statuses=[LEAVERS[0], 0, SUBSTITUTE]), None),
}  # fmt: skip


@pytest.mark.parametrize(("given", "reason"), CHECKS.values(), ids=CHECKS)
def test_given_a_game_when_checked_then_only_2_to_5_seats_with_one_player_each_can_be_scored(given, reason):
    found = check(len(given[0]), given, bound())

    assert found is None if reason is None else reason in (found or "")


@pytest.mark.parametrize(("sizes", "words"), [("25", "2 or 5"), ("235", "2 or 3 or 5"), ("345", "3 to 5"), ("4", "4")])
def test_given_other_rows_when_a_game_does_not_fit_then_the_sizes_are_told(sizes, words):
    params = bound(contributions={size: TABLE[size] for size in sizes})

    assert check(7, columns(range(1, 8)), params) == (
        f"the contribution pool is defined for {words} players, this game has 7"
    )  # fmt: skip


BAD = {
    "no rows": ({}, "params.contributions: a row for at least one"),
    "a row of words": ({"two": [0, 16]}, "params.contributions: 'two' is not a number of players from 2 to 99"),
    "a row of one": ({"1": [0]}, "'1' is not a number of players"),
    "a row of a hundred": ({"100": [0] * 100}, "'100' is not a number of players"),
    "a leading zero": ({"02": [0, 16]}, "'02' is not a number of players"),
    "digits of another script": ({"٣": [0, 13, 20]}, "is not a number of players"),
    "too few": ({"3": [0, 13]}, "params.contributions.3: 3 players need 3 percentages, one for each place; here are 2"),
    "too many": ({**TABLE, "2": [0, 16, 20]}, "params.contributions.2: 2 players need 2 percentages"),
    "more than all": ({"2": [0, 101]}, "params.contributions.2: a percentage is a whole number from 0 to 100, not 101"),
    "less than nothing": ({"2": [0, -1]}, "from 0 to 100, not -1"),
    "beyond 64 bits": ({"2": [0, 10**30]}, "from 0 to 100, not 1000000000000000000000000000000"),
    "the first pays": ({"2": [1, 16]}, "params.contributions.2: the first contributes 0, not 1"),
}


@pytest.mark.parametrize(("table", "reason"), BAD.values(), ids=BAD)
def test_given_a_table_that_is_none_when_bound_then_the_key_and_the_reason_are_told(table, reason):
    assert reason in (refuse_params(bound(contributions=table), PLAYERS_MAX) or "")


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
def test_given_params_of_the_wrong_kind_when_bound_then_they_are_refused(params):
    with pytest.raises(ValueError):
        bound(**params)


def test_given_a_wrong_row_in_a_file_when_read_then_its_line_is_told():
    text = shipped_text("galactic-points")
    ((key, _, line),) = read_toml(text.replace("[0, 13, 20]", "[0, 13]"))[1]

    assert key == "params.contributions.3"
    assert line is not None
    assert text.splitlines()[line - 1].startswith("3 = ")


def test_given_a_game_when_explained_then_every_part_says_whom_it_is_from_and_why():
    first, second, third, fourth = explained([1000, 1003, 1000, 1000], [1, 2, 3, 4], [601, 600, -1, 0])

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


def test_given_dust_when_explained_then_only_the_winner_who_gets_it_is_told():
    for dust, last in (("winner", ("dust", 1, "what rounding down left of all contributions", "")), ("burn", None)):
        told = explained([1000] * 5, [1, 2, 3, 4, 5], dust=dust)
        assert [term for mine in told for term in mine if term[0] == "dust"] == ([last] if last else [])


def naive(points, places, seconds, table, bonus, limit, dust):
    """(changes, minted, burned) by player, from the formula in exact fractions."""
    row = table[str(len(points))]
    gains = dict.fromkeys(points, 0)
    losses = {}
    for loser, place in places.items():
        better = [player for player in points if places[player] < place]
        losses[loser] = floor(Fraction(points[loser] * row[place - 1], 100))
        for player in better:
            gains[player] += floor(Fraction(points[loser] * row[place - 1], 100 * len(better)))
    left = sum(losses.values()) - sum(gains.values())
    winners = [player for player in points if places[player] == 1]
    if dust == "winner" and len(winners) == 1:
        gains[winners[0]] += left
        left = 0
    bonuses = {player: bonus if seconds[player] is not None and seconds[player] > limit else 0 for player in points}
    return {p: gains[p] - losses[p] + bonuses[p] for p in points}, sum(bonuses.values()), left


def test_given_random_games_when_scored_and_explained_then_both_agree_with_a_naive_computation():
    chance, seen = random.Random(11), Counter[str]()
    for _ in range(6_000):
        n = chance.randint(2, 5)
        ranks = [chance.randint(1, n) for _ in range(n)]
        places = [1 + sum(other < rank for other in ranks) for rank in ranks]
        low, high = chance.choice([(0, 2_000), (-2_000, 2_000), (990, 1_010), (-(10**16), 10**16)])
        points = [chance.randint(low, high) for _ in range(n)]
        seconds = [chance.choice([None, 0, 600, 601, 10**9]) for _ in range(n)]
        dust = chance.choice(["burn", "winner"])
        known = [-1 if played is None else played for played in seconds]
        changes, minted, burned = scored(points, places, known, dust=dust)
        expected = naive(
            dict(enumerate(points)), dict(enumerate(places)), dict(enumerate(seconds)), TABLE, 100, 600, dust
        )
        assert (dict(enumerate(changes)), minted, burned) == expected
        assert burned >= 0
        explained(points, places, known, dust=dust)
        seen["tie"] += len(set(places)) < n
        seen["tied winners"] += places.count(1) > 1
        seen["all tied"] += set(places) == {1}
        seen["below zero"] += min(points) < 0
        seen["bonus"] += minted > 0
        seen["burned"] += burned > 0
        seen["dust to a winner"] += dust == "winner" and burned == 0 and scored(points, places, known)[2] > 0
    assert min(seen.values()) > 300, seen


def test_given_every_weak_order_of_up_to_five_when_newcomers_play_then_books_balance():
    for n in range(2, 6):
        for places in {
            tuple(1 + sum(o < r for o in ranks) for r in ranks) for ranks in product(range(n), repeat=n)
        }:  # fmt: skip
            changes, minted, burned = scored([1000] * n, places)
            assert minted == 0
            assert 0 <= burned <= sum(place - 1 for place in places)
            assert sum(changes) + burned == 0


def recorded(game_id, places, day, **members):
    """A game of Galactic Magnate: `recorded("g1", {"anna": 1, "ben": 2}, 1)`."""
    participants = [{"player": player, "place": place, **members} for player, place in places.items()]
    data = {"game_id": game_id, "game": "galactic-magnate", "participants": participants}
    return {"type": "game.recorded", "occurred_at": f"2020-01-{day:02d}T12:00:00Z", "data": data}


def test_given_the_shipped_ruleset_when_games_are_replayed_then_points_run_on_and_books_balance(ledger_url):
    """Given a win, a present of points and a long game of six too many, when replayed, then the ladder says this."""
    six = {name: place for place, name in enumerate(["anna", "ben", "c", "d", "e", "f"], 1)}
    events = [
        ruleset(shipped_text("galactic-points")),
        recorded("g1", {"anna": 1, "ben": 2}, 1, seconds_played=601),
        adjustment("galactic-points", "ben", "-40", 2),
        recorded("g2", six, 3),
        recorded("g3", {"anna": 2, "ben": 1}, 4),
    ]
    stream = stream_of(facts_of(fill(ledger_url, events)), "galactic-points")

    found = standings_of(stream)
    # 1000 + 160 + 100, then 16 % of 1260 is 201; 1000 - 160 + 100 - 40 + 201
    assert [(row.player, row.points, row.games) for row in found.rows] == [("ben", 1101, 2), ("anna", 1059, 2)]
    assert (found.minted, found.burned, found.adjusted) == (200, 0, -40)

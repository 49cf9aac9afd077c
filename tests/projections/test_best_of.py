"""The table of a championship: best results by part, weights, and chains of tie-breaks, compared with a brute force."""

import random
from collections import Counter
from fractions import Fraction
from functools import cmp_to_key
from itertools import combinations, pairwise
from math import lcm

import pytest
from pydantic import ValidationError
from ranked_lists import build_ranking_input, explain, find_left_out, rank

from ratings_ledger.rules import BestOfParams


def build_params(**values):
    """Return parameters in the form of a ruleset file."""
    return BestOfParams.model_validate(values)


def list_table(season):
    """Return (rank, player, points) of every row."""
    return [(row.rank, row.player, row.exact_points(season.scale)) for row in rank("best-of", season)]


GAMES = ["anna 9:1 ben 6:2", "anna 9:1 ben 6:2", "ben 9:1 anna 6:2", "ben 9:1 anna 1:2", "anna 9:1 ben 0:2"]


def test_all_results_count_without_parts():
    """Without parts a season is the sum of all results."""
    assert list_table(build_ranking_input(build_params(), *GAMES)) == [(1, "anna", 34), (2, "ben", 30)]


def test_parts_count_their_best_results():
    """In every part only a player's best results count."""
    season = build_ranking_input(build_params(parts=[{"rounds": 3, "best": 2}, {"rounds": 2, "best": 1}]), *GAMES)

    assert list_table(season) == [(1, "anna", 27), (2, "ben", 24)]
    assert [find_left_out("best-of", season, player) for player in (0, 1)] == [{2, 3}, {1, 4}]


def test_last_part_takes_the_rest():
    """The last part has all remaining games, so that no result is lost."""
    season = build_ranking_input(build_params(parts=[{"rounds": 1, "best": 1}, {"rounds": 1, "best": 2}]), *GAMES)

    assert list_table(season) == [(1, "anna", 27), (2, "ben", 24)]
    assert list_table(season._replace(params=build_params(parts=[{"rounds": 1}, {"best": 2}]))) == list_table(season)


def test_unfinished_part_counts_what_there_is():
    """In an unfinished part, the best of the results so far count."""
    season = build_ranking_input(build_params(parts=[{"rounds": 6, "best": 5}, {"rounds": 5, "best": 4}]), *GAMES[:2])

    assert list_table(season) == [(1, "anna", 18), (2, "ben", 12)]


def test_weights_apply_before_the_best_are_chosen():
    """The weight of a round multiplies its points before the best results are chosen; fractions stay exact."""
    double = build_ranking_input(build_params(parts=[{"best": 1}], weights={"3": 2}), *GAMES)
    thirds = build_ranking_input(build_params(weights={"1": "1/3", "2": "1/2"}), *GAMES)

    assert list_table(double) == [(1, "ben", 18), (2, "anna", 12)]
    assert list_table(thirds) == [(1, "anna", Fraction(47, 2)), (2, "ben", 23)]


def test_denominators_of_weights_are_limited():
    """Weights whose common denominator is over a million are refused, because stored standings cannot hold it."""
    assert build_params(weights={"1": "1/1000", "2": "1/999"}).weights.keys() == {"1", "2"}
    with pytest.raises(ValidationError, match="the common denominator is 1,001,000; it must be at most 1,000,000"):
        build_params(weights={"1": "1/1000", "2": "1/1001"})


def test_adjustments_count_besides():
    """An adjustment is not a result; it counts in addition to the best results."""
    season = build_ranking_input(build_params(parts=[{"best": 1}]), *GAMES, adjusted={"ben": -3})

    assert list_table(season) == [(1, "anna", 9), (2, "ben", 6)]
    assert explain("best-of", season, "ben") == [
        ("adjusted", -3, "start points and adjustments"),
        ("sum", 6, "of the best 1 of 5 results"),
    ]


TIES = {
    "nothing: shared": ([], ["anna 6:2 ben 6:3"], [1, 1]),
    "more first places": (["places"], ["anna 9:1 ben 4:3", "ben 9:1 anna 4:2", "cleo 0:9 anna 0:4"], [1, 2, 3]),
    "places, all equal": (["places"], ["anna 9:1 ben 6:2", "ben 9:1 anna 6:2"], [1, 1]),
    "places, not classified": (["places"], ["anna 6:0 ben 6:7"], [2, 1]),
    "first": (["places", "first"], ["anna 9:1 ben 6:2", "ben 9:1 anna 6:2"], [1, 2]),
    "first, by the next place": (["first"], ["anna 6:2 ben 6:3", "ben 6:2 anna 6:3"], [1, 2]),
    "head-to-head among those still tied": (
        ["places", "head-to-head"],
        ["anna 6:1 cleo 2:5", "ben 4:1 cleo 3:4", "ben 3:0 anna 2:0", "cleo 1:5 ben 0:0", "cleo 2:5 ben 1:0"],
        [2, 1, 3],
    ),
    "last game": (["last game"], ["anna 6:2 ben 4:3", "ben 6:2 anna 4:3"], [2, 1]),
    "last game, not classified": (["last game"], ["anna 6:2 ben 4:3", "ben 2:0 anna 0:9"], [1, 2]),
    "more wins": (["more wins"], ["anna 9:1 ben 3:2", "ben 3:1 anna 0:2", "ben 3:1 anna 0:2"], [2, 1]),
}


@pytest.mark.parametrize(("chain", "games", "ranks"), TIES.values(), ids=TIES)
def test_tie_breaks_decide_in_order(chain, games, ranks):
    """The chain of tie-breaks orders equal points, or the rank is shared."""
    rows = list_table(build_ranking_input(build_params(tie_breaks=chain), *games))

    assert [rank for rank, *_ in sorted(rows, key=lambda row: row[1])] == ranks


def test_places_counted_ends_the_count():
    """Places beyond `places_counted` break no tie."""
    games = ["anna 6:1 ben 0:7", "ben 6:1 anna 0:8"]

    assert [row[:2] for row in list_table(build_ranking_input(build_params(tie_breaks=["places"]), *games))] == [
        (1, "ben"),
        (2, "anna"),
    ]
    limited = build_params(tie_breaks=["places"], places_counted=6)
    assert [row[:2] for row in list_table(build_ranking_input(limited, *games))] == [(1, "anna"), (1, "ben")]


def test_unranked_player_keeps_points():
    """An unranked player keeps the points and comes last, and the players below move up."""
    season = build_ranking_input(build_params(), *GAMES, excluded={"anna": "excluded by the stewards"})

    assert list_table(season) == [(1, "ben", 30), (None, "anna", 34)]
    assert explain("best-of", season, "anna")[-1] == ("no rank", None, "excluded by the stewards")


def test_explanation_has_parts_and_tie_breaks():
    """An explanation has the sum of every part, and the values of each tie-break for the tied players."""
    parts = [{"rounds": 2, "best": 1}, {"rounds": 2, "best": "all"}]
    chain = {"tie_breaks": ["places", "first"], "weights": {"2": 2}}
    games = ["anna 9:1 ben 3:2", "anna 1:2 ben 3:1", "anna 1:2 ben 4:1", "ben 1:2 anna 1:1"]
    season = build_ranking_input(build_params(parts=parts, **chain), *games)

    assert list_table(season) == [(1, "anna", 11), (2, "ben", 11)]
    assert explain("best-of", season, "ben") == [
        ("part 1", 6, "of the best 1 of 2 results"),
        ("part 2", 5, "of 2 results"),
        ("round 2", 6, "the points of this round times 2"),
        ("sum", 11, "of the best 3 of 4 results"),
        ("tie-break", None, "places: 2 at place 1, 2 at place 2; anna 2 at place 1, 2 at place 2"),
        (
            "tie-break",
            None,
            "first: place 1 in round 2, place 2 in round 1; anna place 1 in round 1, place 2 in round 2",
        ),
    ]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"parts": [{"best": 5}, {"rounds": 5}]}, "every part but the last needs `rounds`"),
        ({"parts": [{"rounds": 0}]}, "greater than or equal to 1"),
        ({"parts": [{"rounds": 3, "best": 0}]}, "greater than or equal to 1"),
        ({"parts": [{"rounds": 3, "worst": 1}]}, "not permitted"),
        ({"weights": {"0": 2}}, "match pattern"),
        ({"weights": {"1": 0}}, "positive number"),
        ({"weights": {"1": "1/0"}}, "zero"),
        ({"tie_breaks": ["coin"]}, "'places', 'first'"),
        ({"places_counted": 0}, "greater than or equal to 1"),
    ],
)
def test_invalid_params_are_rejected(values, reason):
    """Parameters that are incomplete, out of range or unknown are rejected with the reason."""
    with pytest.raises(ValidationError, match=reason):
        build_params(**values)


# the oracle tries every choice of results, and compares players two by two within their group of tied players


def find_most_points(results, parts, weights):
    """Return the most points of any choice of `best` results in each part; `results` are by round."""
    total, begin = Fraction(0), 1
    for number, (rounds, best) in enumerate(parts):
        end = begin + rounds if number < len(parts) - 1 else 10**6
        worth = [points * Fraction(weights.get(str(r), 1)) for r, (points, _) in results.items() if begin <= r < end]
        size = len(worth) if best == "all" else min(best, len(worth))
        total += max(sum(choice, Fraction(0)) for choice in combinations(worth, size))
        begin = end
    return total


def compare_players(name, left, right, group, by_player, rounds):
    """Return a positive number if `left` is ahead of `right` by a tie-break within a group of tied players."""
    left_results, right_results = by_player[left], by_player[right]
    if name == "places":
        for place in range(1, 20):
            counts = [
                sum(own_place == place for _, own_place in results.values())
                for results in (left_results, right_results)
            ]
            if counts[0] != counts[1]:
                return counts[0] - counts[1]
        return 0
    if name == "first":
        for place in range(1, 20):
            when = [
                min((r for r, (_, p) in results.items() if p == place), default=99)
                for results in (left_results, right_results)
            ]
            if when[0] != when[1]:
                return when[1] - when[0]
        return 0
    if name == "last game":
        last = [results.get(len(rounds), (0, 0))[1] or 99 for results in (left_results, right_results)]
        return last[1] - last[0]
    scores = []
    for player in (left, right):
        score = 0
        for points in (game for game in rounds if player in game):
            if name == "more wins":
                score += points[player] == max(points.values()) and points[player] > min(points.values())
            else:
                rivals = [amount for rival, amount in points.items() if rival in group and rival != player]
                score += sum(points[player] > amount for amount in rivals)
                score -= sum(points[player] < amount for amount in rivals)
        scores.append(score)
    return scores[0] - scores[1]


def split_group(group, chain, by_player, rounds):
    """Return the group in order, as groups of players who are still tied after the chain."""
    if not chain or len(group) == 1:
        return [group]
    ordered = sorted(group, key=cmp_to_key(lambda a, b: -compare_players(chain[0], a, b, group, by_player, rounds)))
    smaller = [[ordered[0]]]
    for before, player in pairwise(ordered):
        if compare_players(chain[0], before, player, group, by_player, rounds):
            smaller.append([])
        smaller[-1].append(player)
    return [final for part in smaller for final in split_group(part, chain[1:], by_player, rounds)]


@pytest.mark.slow_cases
def test_random_seasons_match_brute_force():
    """Random seasons with parts, weights and chains of every kind agree with a brute force."""
    chance, cases = random.Random(59), Counter()
    breaks = ["places", "first", "more wins", "head-to-head", "last game"]
    for _ in range(1_500):
        players, count = list("abcdef")[: chance.randint(2, 6)], chance.randint(1, 7)
        texts, rounds, by_player = [], [], {player: {} for player in players}
        for number in range(1, count + 1):
            seated = chance.sample(players, chance.randint(min(2, len(players)), len(players)))
            values = {p: (chance.randint(-1, 3), chance.choice([0, 1, 2, 2, 3])) for p in sorted(seated)}
            rounds.append({player: points for player, (points, _) in values.items()})
            texts.append(" ".join(f"{player} {points}:{place}" for player, (points, place) in values.items()))
            for player, value in values.items():
                by_player[player][number] = value
        parts = [(chance.randint(1, 4), chance.choice(["all", 1, 2, 3])) for _ in range(chance.randint(1, 3))]
        weights = {str(chance.randint(1, 7)): chance.choice([2, 3, "1/2", "2/3"]) for _ in range(chance.randint(0, 2))}
        chain = chance.sample(breaks, chance.randint(0, 4))
        season = build_ranking_input(
            build_params(parts=[{"rounds": n, "best": best} for n, best in parts], weights=weights, tie_breaks=chain),
            *texts,
        )

        points = {player: find_most_points(by_player[player], parts, weights) for player in season.names}
        groups = [
            final
            for value in sorted(set(points.values()), reverse=True)
            for final in split_group([p for p in season.names if points[p] == value], chain, by_player, rounds)
        ]
        ranks = {player: 1 + sum(map(len, groups[:index])) for index, group in enumerate(groups) for player in group}
        rows = list_table(season)
        assert {(player, rank, value) for rank, player, value in rows} == {
            (player, ranks[player], points[player]) for player in season.names
        }, (chain, texts, parts, weights)
        assert [rank for rank, *_ in rows] == sorted(rank for rank, *_ in rows)
        for player, name in enumerate(season.names):
            amounts = {term: amount for term, amount, _ in explain("best-of", season, name)}
            assert amounts["sum"] == points[name]
            if len(parts) > 1:
                assert sum(amount for term, amount in amounts.items() if term.startswith("part ")) == points[name]
            counted_results = {
                r: v for r, v in by_player[name].items() if r - 1 not in find_left_out("best-of", season, player)
            }
            assert (
                sum(value * Fraction(weights.get(str(r), 1)) for r, (value, _) in counted_results.items())
                == points[name]
            )
        cases["tied"] += len(set(points.values())) < len(points)
        cases["tie broken"] += any(len(group) < len(points) for group in groups) and len(set(points.values())) < len(
            groups
        )
        cases["fraction"] += lcm(*(value.denominator for value in points.values())) > 1
        cases["left out"] += any(find_left_out("best-of", season, player) for player in range(len(season.names)))
    assert min(cases.values()) > 100, cases

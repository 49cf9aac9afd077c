"""Wooden Ships & Iron Men: every sentence of the three versions, and a naive computation beside the last two."""

import random
from collections import Counter

import pytest
from histories import facts_of, fill, ruleset, standings_of, stream_of
from kind_games import battle, columns_of, players_of, random_battle
from own_rules import find_shipped_texts, load_built_in_rule, read_ruleset

from ratings_ledger.rules import PLAYERS_MAX

RULE = load_built_in_rule("wooden-ships/1")

FILES = {data.version: data for data in map(read_ruleset, find_shipped_texts('"youplay-wsim"'))}
# the parameters of the trial and of leagues from 7150, as shipped
V1, V2 = FILES["v1"].params, FILES["v2"].params


def scored(event, params, counted=None):
    """The change of every counted player."""
    columns = columns_of(event, RULE.columns, counted)
    names = [name for name in players_of(event) if counted is None or name in counted]
    change = [-1] * len(names)
    minted = RULE.score(len(names), [0] * len(names), columns, RULE.prepare(RULE.params(**params)), (), change)
    assert minted == sum(points for points in change if points > 0)
    return dict(zip(names, change, strict=True))


def explained(event, params, counted=None):
    """(for every player (term, amount, detail), the remark)."""
    columns, bound = columns_of(event, RULE.columns, counted), RULE.params(**params)
    change = scored(event, params, counted)
    names, n = list(change), len(change)
    terms = RULE.explain(n, names, [0] * n, columns, bound, list(change.values()))
    assert [sum(term.amount for term in mine) for mine in terms] == list(change.values())
    told = {name: [tuple(term)[:3] for term in mine] for name, mine in zip(names, terms, strict=True)}
    return told, RULE.remark(n, names, columns, bound)


def test_defaults_are_those_from_7150():
    """The default parameters are those of leagues from 7150, apart from the active games."""
    assert RULE.params(**V2) == RULE.params(active_games=5)


# two players, both with ships left unless it is said otherwise: points under v1 and under v2
RESULTS = {
    "20 against 10": ("A 2 1 0 20", "B 2 1 0 10", (4, 1), (3, 0)),
    "21 against 10": ("A 2 1 0 21", "B 2 1 0 10", (4, 1), (4, 0)),
    "19 against 10": ("A 2 1 0 19", "B 2 1 0 10", (3, 1), (3, 0)),
    "21 against 11": ("A 2 1 0 21", "B 2 1 0 11", (3, 1), (3, 0)),
    "20 against 0": ("A 2 1 0 20", "B 2 1 0 0", (4, 0), (4, 0)),
    "1 against 0": ("A 2 1 0 1", "B 2 1 0 0", (4, 0), (4, 0)),
    "equal points": ("A 2 1 0 20", "B 2 1 0 20", (1, 1), (1, 1)),
    "no points": ("A 2 1 0 0", "B 2 1 0 0", (1, 1), (1, 1)),
    "one side left, without points": ("A 2 1 0 0", "B 2 2 0 0", (4, 0), (3, 0)),
    "one side left, twice as many": ("A 2 1 0 20", "B 2 2 0 10", (4, 1), (3, 0)),
    "one side left, more than twice": ("A 2 1 0 21", "B 2 2 0 10", (4, 1), (4, 0)),
    "one side left, but fewer points": ("A 2 1 0 5", "B 2 2 0 20", (3, 1), (3, 0)),
    "one side left, equal points": ("A 2 1 0 5", "B 2 2 0 5", (3, 1), (3, 0)),
    "nobody left, more points": ("A 2 2 0 30", "B 2 2 0 10", (3, 1), (4, 0)),
    "nobody left, equal points": ("A 2 2 0 10", "B 2 2 0 10", (1, 1), (1, 1)),
    "losses do not matter while ships are left": ("A 9 8 0 3", "B 9 0 0 2", (3, 1), (3, 0)),
}


@pytest.mark.parametrize(("one", "other", "trial", "since_7150"), RESULTS.values(), ids=RESULTS)
def test_results_are_scored_as_written(one, other, trial, since_7150):
    """Ships left and points give the victories, ties and defeats that each version states."""
    for given in ((one, other), (other, one)):
        assert tuple(scored(battle(*given), V1)[name] for name in "AB") == trial
        assert tuple(scored(battle(*given), V2)[name] for name in "AB") == since_7150


@pytest.mark.parametrize(("one", "other", "trial", "since_7150"), RESULTS.values(), ids=RESULTS)
def test_agreed_draw_gives_one_point_each(one, other, trial, since_7150):
    """An agreed draw gives everybody one point."""
    for params in (V1, V2):
        assert scored(battle(one, other, ended="draw"), params) == {"A": 1, "B": 1}


def test_points_of_a_side_are_added():
    """The points and ships of all players of a side are added up."""
    event = battle("A 1 0 0 7, A2 1 1 0 4", "B 1 1 0 3, B2 1 0 0 2")

    assert scored(event, V2) == {"A": 4, "A2": 4, "B": 0, "B2": 0}
    assert scored(event, V1) == {"A": 4, "A2": 3, "B": 1, "B2": 0}


# the points of A under v1, whose side wins overwhelmingly, and under v2
WINNERS = {
    "in the game": ("A 2 1 0 9", 4, 4),
    "in the game without a score": ("A 2 1 0 0", 4, 4),
    "sunk, but he scored": ("A 2 2 0 9", 3, 4),
    "sunk without a score": ("A 2 2 0 0", 2, 4),
    "without ships from the start": ("A 0 0 0 0", 3, 4),
    "left the game": ("A 2 0 0 9 abandoned", 3, 4),
    "removed and sunk without a score": ("A 2 2 0 0 removed", 2, 4),
    "surrendered": ("A 2 0 0 9 surrendered", 0, 0),
    "surrendered and sunk without a score": ("A 2 2 0 0 surrendered", 0, 0),
}


@pytest.mark.parametrize(("player", "trial", "since_7150"), WINNERS.values(), ids=WINNERS)
def test_trial_rewards_surviving_winners(player, trial, since_7150):
    """In an overwhelming victory, the trial rewards only winners who are still in the game."""
    event = battle(f"{player}, M 1 0 0 100", "B 1 1 0 1")

    assert scored(event, V1)["A"] == trial
    assert scored(event, V2)["A"] == since_7150


def test_sunk_winner_loses_a_point():
    """In a plain victory of the trial, a winner who was sunk without a score still loses a point."""
    assert scored(battle("A 1 1 0 0, M 1 0 0 12", "B 1 0 0 10"), V1) == {"A": 2, "M": 3, "B": 1}
    assert scored(battle("A 1 1 0 1, M 1 0 0 12", "B 1 0 0 10"), V1)["A"] == 3


def test_sunk_loser_loses_nothing():
    """In a defeat or a tie, being sunk without a score costs nothing."""
    assert scored(battle("A 1 1 0 0, M 1 0 0 5", "B 1 0 0 9"), V1)["A"] == 0
    assert scored(battle("A 1 1 0 0, M 1 0 0 5", "B 1 0 0 5"), V1)["A"] == 1


# the players of a side that loses with, and under v1 who of them gets the point of the top scorer
TOP = {
    "alone": (["B 1 0 0 1"], "B"),
    "alone without points": (["B 1 0 0 0"], None),
    "the better of two": (["B 1 0 0 3, C 1 0 0 2"], "B"),
    "two equal": (["B 1 0 0 3, C 1 0 0 3"], None),
    "two equal, a third less": (["B 1 0 0 3, C 1 0 0 3, D 1 0 0 1"], None),
    "he surrendered": (["B 1 0 0 3 surrendered, C 1 0 0 2"], None),
    "as good as one who surrendered": (["B 1 0 0 3 surrendered, C 1 0 0 3"], None),
    "the other surrendered": (["B 1 0 0 3, C 1 0 0 2 surrendered"], "B"),
    "he left": (["B 1 0 0 3 abandoned, C 1 0 0 2"], "B"),
    "he was sunk": (["B 1 1 0 3, C 1 0 0 2"], "B"),
    "winners have more": (["B 1 0 0 1, C 1 0 0 0"], "B"),
}


@pytest.mark.parametrize(("side", "top"), TOP.values(), ids=TOP)
def test_losers_top_scorer_gets_a_point(side, top):
    """In a defeat, the trial gives a point to the single top scorer of the losers."""
    found = scored(battle(*side, "W 1 0 0 1000"), V1)

    assert found == {name: int(name == top) if name != "W" else 4 for name in found}
    assert {scored(battle(*side, "W 1 0 0 1000"), V2)[name] for name in found if name != "W"} == {0}


TIES = {
    "one has more than all others": ("A 1 0 0 5, A2 1 0 0 1", "B 1 0 0 3, B2 1 0 0 3", "A"),
    "the best of both sides are equal": ("A 1 0 0 5, A2 1 0 0 1", "B 1 0 0 5, B2 1 0 0 1", None),
    "two equal on one side": ("A 1 0 0 3, A2 1 0 0 3", "B 1 0 0 4, B2 1 0 0 2", "B"),
    "nobody scored": ("A 1 0 0 0, A2 1 0 0 0", "B 1 0 0 0, B2 1 0 0 0", None),
    "who has more surrendered": ("A 1 0 0 5 surrendered, A2 1 0 0 1", "B 1 0 0 4, B2 1 0 0 2", None),
}


@pytest.mark.parametrize(("one", "other", "top"), TIES.values(), ids=TIES)
def test_top_scorer_of_tie_gets_point(one, other, top):
    """In a tie, the trial gives a point to the single top scorer of both sides."""
    expected = {
        name: 0 if "surrendered" in one and name == "A" else 1 + (name == top) for name in ("A", "A2", "B", "B2")
    }

    assert scored(battle(one, other), V1) == expected
    assert set(scored(battle(one, other, ended="draw"), V1).values()) <= {0, 1}


@pytest.mark.parametrize("ended", ["natural", "draw"])
def test_surrender_of_all_gives_nothing(ended):
    """If everybody surrendered, nobody gets any points."""
    event = battle("A 1 0 0 5 surrendered", "B 1 1 0 9 surrendered, C 1 1 0 2 surrendered", ended=ended)

    for params in (V1, V2):
        assert set(scored(event, params).values()) == {0}


def test_substitute_is_no_survivor():
    """A leaver and their substitute share the result, but only players who finished are survivors."""
    event = battle("A 2 1 0 0, S 2 0 0 9, M 1 0 0 9", "B 1 0 0 1")
    leaver, substitute = event["data"]["participants"][:2]
    leaver["status"] = "abandoned"
    substitute |= {"status": "substitute", "replaces": "A"}

    # the leaver scored nothing, but a ship of his seat is left
    assert scored(event, V1) == {"A": 3, "S": 3, "M": 4, "B": 1}
    assert scored(event, V2) == {"A": 4, "S": 4, "M": 4, "B": 0}


def test_uncounted_players_change_nothing():
    """Players who do not count leave the points of the others unchanged."""
    chance = random.Random(51)
    for _ in range(500):
        event = random_battle(chance, chance.randint(2, 7))
        for params in (V1, V2):
            everybody = scored(event, params)
            counted = chance.sample(sorted(everybody), chance.randint(1, len(everybody)))
            assert scored(event, params, counted) == {name: everybody[name] for name in sorted(counted)}


def test_order_does_not_matter():
    """The order of participants and the names of the sides do not change anybody's points."""
    chance = random.Random(52)
    for _ in range(500):
        event = random_battle(chance, chance.randint(2, 7))
        straight = scored(event, V1)
        chance.shuffle(event["data"]["participants"])
        for participant in event["data"]["participants"]:
            participant["side"] = {"a": "z", "b": "c"}[participant["side"]]
        assert scored(event, V1) == straight


@pytest.mark.parametrize(
    "params",
    [
        {"victory": -1},
        {"overwhelming": 1_001},
        {"overwhelming_factor": 0},
        {"overwhelming_factor": "2"},
        {"overwhelming_comparison": "="},
        {"overwhelming_for": "winners"},
        {"sunk_without_points": 1},
        {"top_scorer": True},
        {"kill_points": 1},
    ],
)
def test_wrong_params_are_refused(params):
    """Parameters of the wrong type or out of range are refused."""
    with pytest.raises(ValueError):
        RULE.params(**params)


def test_largest_params_are_accepted():
    """Even the largest parameters are accepted, as every product stays small."""
    largest = {"overwhelming_factor": 1_000, "victory": 1_000, "sunk_without_points": -1_000}

    assert RULE.refuse_params(RULE.params(**largest), PLAYERS_MAX) is None


def test_trial_result_is_explained():
    """Explanations of the trial name survivors, top scorers and those who were sunk."""
    told, said = explained(battle("A 2 1 0 20, A2 2 2 0 0, A3 1 0 0 0 surrendered", "B 2 2 0 7, C 1 1 0 3"), V1)

    why = "the only side with ships left; 20 game points against 10, at least 2 times as many"
    assert told["A"] == [("overwhelming victory", 4, f"{why}, and a survivor with ships left")]
    assert told["A2"] == [
        ("overwhelming victory", 3, f"{why}, and not a survivor with ships left"),
        ("sunk without points", -1, "no game points, and all 2 ships lost"),
    ]
    assert told["A3"] == [("surrendered", 0, "whatever the result, here overwhelming victory")]
    assert told["B"] == [
        ("defeat", 0, "the enemy is the only side with ships left; 10 game points against 20"),
        ("top scorer", 1, "7 game points, more than any other player who did not win"),
    ]
    assert said == "overwhelming victory of A, A2 and A3"


def test_result_from_7150_is_explained():
    """In leagues from 7150, the result is explained from both sides."""
    told, said = explained(battle("A 2 1 0 20", "B 2 1 0 10"), V2)
    assert told["A"] == [("victory", 3, "20 game points against 10, not more than 2 times as many")]
    assert told["B"] == [("defeat", 0, "10 game points against 20")]
    assert said == "victory of A"

    told, said = explained(battle("A 2 1 0 10", "B 2 1 0 10"), V2)
    assert told["A"] == [("tie", 1, "10 game points each")]
    assert said == "tie"

    told, said = explained(battle("A 2 1 0 10", "B 2 2 0 10", ended="draw"), V2)
    assert told["A"] == [("draw", 1, "agreed by the players")]
    assert said == "draw by agreement"

    assert explained(battle("A 2 1 0 30", "B 2 2 0 10, C 1 1"), V2, ["B", "C"])[1] == (
        "overwhelming victory of the side against B and C"
    )  # fmt: skip


def naive(event, version):
    """(what everybody gets, what happened) by the words of the posts."""
    participants = event["data"]["participants"]
    replaced = {p["replaces"] for p in participants if "replaces" in p}
    lost_by = {p["player"]: p["units_lost"] for p in participants}
    ships = {p["player"]: p["units"] - (lost_by[p["replaces"]] if "replaces" in p else 0) for p in participants}
    ships |= {name: lost_by[name] for name in replaced}
    left = {side: sum(ships[p["player"]] - p["units_lost"] for p in participants if p["side"] == side) for side in "ab"}
    total = {side: sum(p["score"] for p in participants if p["side"] == side) for side in "ab"}
    afloat = [side for side in "ab" if left[side] > 0]
    agreed = event["data"]["ended"] == "draw"
    if agreed or (len(afloat) != 1 and total["a"] == total["b"]):
        winner = None
    else:
        winner = afloat[0] if len(afloat) == 1 else max("ab", key=lambda side: total[side])
    loser = {"a": "b", "b": "a"}.get(winner or "")
    double = winner is not None and (
        total[winner] >= 2 * total[loser] if version == "v1" else total[winner] > 2 * total[loser]
    )
    losers = [p for p in participants if p["side"] != winner]
    points = {}
    for p in participants:
        name, own = p["player"], 1 if winner is None else 3 if p["side"] == winner else 0
        if version == "v2" and double and p["side"] == winner:
            own = 4
        if version == "v1" and p["side"] == winner:
            own += double and p["status"] == "finished" and ships[name] > p["units_lost"]
            own -= p["score"] == 0 and ships[name] == p["units_lost"] > 0
        if version == "v1" and not agreed and p["side"] != winner:
            own += p["score"] >= 1 and all(p["score"] > other["score"] for other in losers if other is not p)
        points[name] = 0 if p["status"] == "surrendered" else own
    what = "draw" if agreed else "tie" if winner is None else "overwhelming" if double else "victory"
    return points, what


@pytest.mark.slow
def test_random_battles_match_naive_scores(at_length):
    """Scores and explanations of random battles agree with a naive computation."""
    chance, seen = random.Random(53), Counter[str]()
    for _ in range(4_000 if at_length else 2_000):
        event = random_battle(chance, chance.randint(2, 8))
        for version, params in (("v1", V1), ("v2", V2)):
            points, what = naive(event, version)
            assert scored(event, params) == points
            told, said = explained(event, params)
            assert said.startswith(what)
            seen[f"{version} {what}"] += 1
            for name in ("top scorer", "sunk without points", "surrendered"):
                seen[f"{version} {name}"] += any(term[0] == name for mine in told.values() for term in mine)
    del seen["v2 top scorer"], seen["v2 sunk without points"]
    assert min(seen.values()) > 100, seen


def recorded(game_id, instant, league, *sides):
    """A league game of Wooden Ships."""
    event = battle(*sides, league=league, game="wooden-ships")
    event["data"]["game_id"] = game_id
    return event | {"occurred_at": instant}


def test_league_keeps_its_first_version(ledger_url):
    """Each league is replayed under the shipped version that it began under.

    One league began in 2009 and goes on, the other began in 2010; a win of 20 to 10 gives the best
    winner 4 + 1 in the first and 3 in the second.
    """
    won = ("A 2 0 0 20, M 2 0 0 0", "B 2 2 0 10")
    events = [ruleset(text) for text in find_shipped_texts('"youplay-wsim"')]
    events += [recorded("g1", "2009-12-30T20:00:00Z", "L1", *won), recorded("g2", "2010-03-01T20:00:00Z", "L1", *won)]
    events += [recorded("g3", "2010-03-01T20:00:00Z", "L2", *won)]
    facts = facts_of(fill(ledger_url, events))

    def table(league, rules=None):
        found = standings_of(stream_of(facts, f"youplay-wsim/{league}", rules=rules))
        return found.ruleset, {row.player: row.points for row in found.rows}

    # strategic 4, best of the side 1; two ships lost each time
    assert table("L1") == ("youplay-wsim@v0", {"A": 10, "M": 8, "B": -4})
    assert table("L2") == ("youplay-wsim@v2", {"A": 3, "M": 3, "B": 0})
    assert table("L2", "youplay-wsim@v1") == ("youplay-wsim@v1", {"A": 4, "M": 4, "B": 1})

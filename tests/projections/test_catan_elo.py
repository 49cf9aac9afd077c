"""The shipped ruleset of the Catan Elo lists, with the source's examples."""

import json

import pytest
from histories import adjustment, fill, ruleset
from own_rules import find_shipped_text

CATAN = "catan-elo/basic"


def catan(*participants, day=1, year=2020, **members):
    """A game of Catan from texts: `catan("anna 1", "ben 2 abandoned", "cleo 2 substitute ben")`."""
    names = ("player", "place", "status", "replaces")
    given = [dict(zip(names, text.split(), strict=False)) for text in participants]
    for participant in given:
        participant["place"] = int(participant["place"])
    data = {"game_id": "g", "game": "catan", "group": "basic", "participants": given, **members}
    return {"type": "game.recorded", "occurred_at": f"{year}-01-{day:02d}T22:59:59Z", "data": data}


@pytest.fixture
def explained(ratings, ledger_url):
    """A function that explains the game of these events: (changes by player, why it does not count)."""

    def explain(*events):
        fill(ledger_url, [ruleset(find_shipped_text("catan-elo")), *events])
        told = json.loads(ratings("explain", "g", CATAN, "--format", "json", db=ledger_url).stdout)
        return {player["player"]: player["change"] for player in told["players"]}, told["why_not"]

    return explain


def test_four_newcomers_match_example(explained):
    """Four newcomers change by 12, 4, -4 and -12 points in the order of their places."""
    assert explained(catan("a 1", "b 2", "c 3", "d 4")) == ({"a": "12", "b": "4", "c": "-4", "d": "-12"}, None)


def test_leaver_and_substitute_are_left_out(explained):
    """A player who left and their substitute are both left out of the scoring."""
    changes, _ = explained(catan("a 1", "b 2", "c 3 abandoned", "d 3 substitute c"))

    assert changes == {"a": "4", "b": "-4", "c": "0", "d": "0"}


def test_three_ratings_match_source_example(explained):
    """The source's example with three different ratings gives 8, 5 and -13."""
    start = [adjustment(CATAN, "a", "200", 1), adjustment(CATAN, "b", "0", 1), adjustment(CATAN, "c", "400", 1)]
    changes, _ = explained(*start, catan("a 1", "b 2", "c 3", day=2))

    assert changes == {"a": "8", "b": "5", "c": "-13"}


def test_free_account_is_left_out(explained):
    """A player with a free account is left out of the scoring."""
    free = {"type": "player.registered", "occurred_at": "2019-01-01T00:00:00Z"}
    changes, _ = explained({**free, "data": {"player": "b", "account": "free"}}, catan("a 1", "b 2", "c 3"))

    assert changes == {"a": "4", "b": "0", "c": "-4"}


@pytest.mark.parametrize(("day", "counts"), [(30, False), (31, True)])
def test_games_count_from_31_january_2009(explained, day, counts):
    """Only games from 31 January 2009 on, by the time in Berlin, count.

    A second before midnight in Berlin is 22:59:59 in UTC.
    """
    _, why_not = explained(catan("a 1", "b 2", day=day, year=2009))

    assert why_not == (None if counts else "catan-elo was not in force yet; its first version applies from 2009-01-31")

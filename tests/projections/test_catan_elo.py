"""The shipped ruleset of the Catan Elo lists, with the source's examples."""

import json

import pytest
from histories import adjustment, fill, ruleset, shipped_text

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
        fill(ledger_url, [ruleset(shipped_text("catan-elo")), *events])
        told = json.loads(ratings("explain", "g", CATAN, "--format", "json", db=ledger_url).stdout)
        return {player["player"]: player["change"] for player in told["players"]}, told["why_not"]

    return explain


def test_given_newcomers_of_four_when_scored_then_12_4_and_minus_4_minus_12(explained):
    assert explained(catan("a 1", "b 2", "c 3", "d 4")) == ({"a": "12", "b": "4", "c": "-4", "d": "-12"}, None)


def test_given_a_leaver_and_his_substitute_when_scored_then_both_are_left_out(explained):
    changes, _ = explained(catan("a 1", "b 2", "c 3 abandoned", "d 3 substitute c"))

    assert changes == {"a": "4", "b": "-4", "c": "0", "d": "0"}


def test_given_the_ratings_of_the_pages_example_when_scored_then_8_5_minus_13(explained):
    start = [adjustment(CATAN, "a", "200", 1), adjustment(CATAN, "b", "0", 1), adjustment(CATAN, "c", "400", 1)]
    changes, _ = explained(*start, catan("a 1", "b 2", "c 3", day=2))

    assert changes == {"a": "8", "b": "5", "c": "-13"}


def test_given_a_free_account_when_scored_then_its_player_is_left_out(explained):
    free = {"type": "player.registered", "occurred_at": "2019-01-01T00:00:00Z"}
    changes, _ = explained({**free, "data": {"player": "b", "account": "free"}}, catan("a 1", "b 2", "c 3"))

    assert changes == {"a": "4", "b": "0", "c": "-4"}


@pytest.mark.parametrize(("day", "counts"), [(30, False), (31, True)])
def test_given_a_game_when_it_was_before_31_january_2009_in_berlin_then_it_does_not_count(explained, day, counts):
    """A second before midnight in Berlin is 22:59:59 in UTC."""
    _, why_not = explained(catan("a 1", "b 2", day=day, year=2009))

    assert why_not == (None if counts else "no version of catan-elo was in force then (the first from 2009-01-31)")

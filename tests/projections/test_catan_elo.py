"""The shipped ruleset of the Catan Elo lists, with the source's examples."""

import json

import pytest
from histories import build_adjustment, build_ruleset_event, fill
from own_rules import find_shipped_text

CATAN = "catan-elo/basic"


def build_catan_game(*texts, at="2020-01-01T12:00:00Z", **members):
    """Return a game of Catan: `build_catan_game("anna 1", "ben 2 abandoned", "cleo 2 substitute ben")`."""
    names = ("player", "place", "status", "replaces")
    participants = [dict(zip(names, text.split(), strict=False)) for text in texts]
    for participant in participants:
        participant["place"] = int(participant["place"])
    data = {"game_id": "g", "game": "catan", "group": "basic", "participants": participants, **members}
    return {"type": "game.recorded", "occurred_at": at, "data": data}


@pytest.fixture
def explain_game(ratings, ledger_url):
    """Return a function that records events and explains their game: (changes by player, why it does not count)."""

    def explain_last_game(*events):
        fill(ledger_url, [build_ruleset_event(find_shipped_text("catan-elo")), *events])
        explanation = json.loads(ratings("explain", "g", CATAN, "--format", "json", db=ledger_url).stdout)
        return {player["player"]: player["change"] for player in explanation["players"]}, explanation["why_not"]

    return explain_last_game


def test_four_newcomers_match_example(explain_game):
    """Four newcomers change by 12, 4, -4 and -12 points in the order of their places."""
    assert explain_game(build_catan_game("a 1", "b 2", "c 3", "d 4")) == (
        {"a": "12", "b": "4", "c": "-4", "d": "-12"},
        None,
    )


def test_leaver_and_substitute_are_left_out(explain_game):
    """A leaver and the substitute are both left out of the scoring."""
    changes, _ = explain_game(build_catan_game("a 1", "b 2", "c 3 abandoned", "d 3 substitute c"))

    assert changes == {"a": "4", "b": "-4", "c": "0", "d": "0"}


def test_three_ratings_match_source_example(explain_game):
    """Three players with different ratings change by 8, 5 and -13, as in the source's example."""
    start = [
        build_adjustment(CATAN, "a", "200", 1),
        build_adjustment(CATAN, "b", "0", 1),
        build_adjustment(CATAN, "c", "400", 1),
    ]
    changes, _ = explain_game(*start, build_catan_game("a 1", "b 2", "c 3", at="2020-01-02T12:00:00Z"))

    assert changes == {"a": "8", "b": "5", "c": "-13"}


def test_free_account_is_left_out(explain_game):
    """A player with a free account is left out of the scoring."""
    free = {"type": "player.registered", "occurred_at": "2019-01-01T00:00:00Z"}
    changes, _ = explain_game(
        {**free, "data": {"player": "b", "account": "free"}}, build_catan_game("a 1", "b 2", "c 3")
    )

    assert changes == {"a": "4", "b": "0", "c": "-4"}


@pytest.mark.parametrize(("time", "counts"), [("22:59:59", False), ("23:00:00", True)])
def test_games_count_from_31_january_2009(explain_game, time, counts):
    """Only games from 31 January 2009 on count, by the time in Berlin.

    Midnight in Berlin is 23:00:00 in UTC on 30 January.
    """
    _, why_not = explain_game(build_catan_game("a 1", "b 2", at=f"2009-01-30T{time}Z"))

    assert why_not == (None if counts else "catan-elo was not in force yet; its first version applies from 2009-01-31")

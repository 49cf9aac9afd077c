"""Renames between a published list and today: comparisons, causes and histories follow the person, not the id."""

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import ratings_ledger as rl

Ratings = Callable[..., Any]
LADDER = "elo-chess/all"


def build_game(game_id: str, day: int, *players: str) -> dict[str, Any]:
    """Return a game of chess in January 2024; the players are in the order of their places."""
    participants = [{"player": player, "place": place} for place, player in enumerate(players, 1)]
    data = {"game_id": game_id, "game": "chess", "participants": participants}
    return {"type": "game.recorded", "occurred_at": f"2024-01-{day:02}T12:00:00Z", "data": data}


@pytest.fixture
def chess_ledger(ratings: Ratings, tmp_path: Any) -> Any:
    """Return a ledger for chess without games, opened for the test."""
    url = str(tmp_path / "ratings.db")
    assert ratings("init", "--for", "chess", "--zone", "UTC", db=url).exit_code == 0
    with rl.open(url) as ledger:
        yield ledger


def append(ledger: Any, *events: dict[str, Any]) -> None:
    assert len(ledger.propose(list(events), by="mira", new_names="accept").commit().events) == len(events)


def build_rename(player: str, new_player: str) -> dict[str, Any]:
    data = {"player": player, "new_player": new_player}
    return {"type": "player.renamed", "occurred_at": "2024-02-01T12:00:00Z", "data": data}


def publish_january(ratings: Ratings, ledger: Any) -> None:
    result = ratings("publish", LADDER, "--as-of", "2024-01-31", "--by", "mira", db=ledger.location)
    assert result.exit_code == 0, result


@pytest.mark.parametrize("rename", [None, "ann"])
def test_swapped_pairs_follow_a_rename(chess_ledger: Any, rename: str | None) -> None:
    """A pair that changes its order counts as swapped, whether one of the two was renamed between or not."""
    append(chess_ledger, build_game("g-1", 1, "anna", "ben"))
    before = chess_ledger.head.position
    if rename is not None:
        append(chess_ledger, build_rename("anna", rename))
    append(chess_ledger, build_game("g-2", 2, "ben", "anna"), build_game("g-3", 3, "ben", "anna"))
    (difference,) = chess_ledger.compare(chess_ledger.at(known_at=before), chess_ledger.at(), [LADDER]).ladders
    assert (difference.summary.swapped, difference.summary.ranks) == (1, 2)
    assert {row.player for row in difference.rows} == {rename or "anna", "ben"}


def test_list_with_both_ids_of_a_merged_person(ratings: Ratings, chess_ledger: Any) -> None:
    """After a merge of two players of a list, a player's row is that of the id at the time of the list."""
    append(chess_ledger, build_game("g-1", 1, "anna", "cleo"), build_game("g-2", 2, "dora", "ben"))
    publish_january(ratings, chess_ledger)
    append(chess_ledger, build_rename("anna", "ben"))
    attribution = chess_ledger.attribute(LADDER, "ben", chess_ledger.published(), chess_ledger.at())
    assert (attribution.before.points, attribution.contradictions) == (984, ())
    course = json.loads(ratings("history", "ben", LADDER, "--format", "json", db=chess_ledger.location).stdout)
    shown = [Fraction(entry["points"]) for row in course["rows"] for entry in row.get("published", ())]
    assert shown == [984]


def test_list_under_an_id_whose_rename_was_withdrawn(ratings: Ratings, chess_ledger: Any) -> None:
    """A list that shows a player under an id whose rename was withdrawn later still shows that player."""
    append(chess_ledger, build_game("g-1", 1, "anna", "ben"), build_rename("anna", "ann"))
    rename = chess_ledger.head.position
    publish_january(ratings, chess_ledger)
    result = ratings("void", "--event", rename, "--reason", "wrong", "--by", "mira", db=chess_ledger.location)
    assert result.exit_code == 0, result
    attribution = chess_ledger.attribute(LADDER, "anna", chess_ledger.published(), chess_ledger.at())
    assert (attribution.before.points, attribution.contradictions) == (1016, ())
    course = json.loads(ratings("history", "anna", LADDER, "--format", "json", db=chess_ledger.location).stdout)
    assert [entry for row in course["rows"] for entry in row.get("published", ())] == []


def test_simulation_leaves_out_lists_after_its_date(ratings: Ratings, chess_ledger: Any) -> None:
    """A simulation as of a date does not judge a list of later results; without a date, it does."""
    append(chess_ledger, build_game("g-1", 1, "anna", "ben"), build_game("g-2", 20, "anna", "ben"))
    publish_january(ratings, chess_ledger)
    command = ("whatif", "elo-chess", "--set", "params.k_total=16", "--format", "json")
    positions = [chess_ledger.head.position]
    for options, expected in (((), positions), (("--as-of", "2024-01-10"), []), (("--as-of", "2024-02-10"), positions)):
        result = ratings(*command, *options, db=chess_ledger.location)
        assert result.exit_code == 0, result
        published = json.loads(result.stdout)["variants"][0]["published"]
        assert [entry["position"] for entry in published] == expected

"""Sides of games: teams, clubs, the home side, and numbers of games and participants."""

import json
from typing import Any

import pytest

from ratings_ledger import Refused
from ratings_ledger.ledger.events.game_types import places
from ratings_ledger.ledger.events.games import number_sides
from ratings_ledger.ledger.events.types import read_data, to_canonical_content

Participant = dict[str, Any]


def build_game_data(*participants: Participant, **members: Any) -> dict[str, Any]:
    """Return the data of a game of these participants."""
    return {"game_id": "g", "game": "tennis", **members, "participants": [*participants]}


def build_doubles(**members: Any) -> list[Participant]:
    """Return two teams of two, the winners first; `members` are those of the first player."""
    return [
        {"player": "anna", "team": 1, "place": 1, "score": 6, **members},
        {"player": "ben", "team": 1, "place": 1, "score": 6},
        {"player": "cleo", "team": "reds", "place": 2, "score": 3},
        {"player": "dora", "team": "reds", "place": 2, "score": 3},
    ]


def normalise(data: dict[str, Any]) -> dict[str, Any]:
    """Return the data of a game as it is recorded."""
    return read_data("game.recorded", data)


def test_members_of_sides_are_recorded() -> None:
    """Teams, clubs, the home side and numbers are recorded as given, and numbers are sorted by name."""
    numbers = {"set_2": -3, "aces": 2**53 - 1}
    game = build_game_data(
        *build_doubles(club="TC Rot", home=True, numbers=numbers), numbers={"round": 2, "length": 11}
    )
    recorded = normalise(game)
    assert recorded == game
    assert json.dumps(recorded["numbers"]) == '{"length": 11, "round": 2}'
    assert list(recorded["participants"][0]["numbers"]) == ["aces", "set_2"]
    assert number_sides(recorded) == [0, 0, 1, 1]
    singles = build_game_data(
        {"player": "anna", "place": 1, "home": False}, {"player": "ben", "place": 2, "home": True}
    )
    assert number_sides(normalise(singles)) == [0, 1]


def test_number_of_a_team_is_the_same_as_text() -> None:
    """The team "1" of a table and the team 1 of JSON are the same team and give the same event."""
    with_number = build_game_data(*build_doubles())
    with_text = build_game_data(*(participant | {"team": str(participant["team"])} for participant in build_doubles()))
    assert normalise(with_text) == normalise(with_number)
    contents = {to_canonical_content("game.recorded", 0, data) for data in (with_number, with_text)}
    assert len(contents) == 1


def test_nulls_are_absent() -> None:
    """A member that is null is absent."""
    nulls = dict.fromkeys(("team", "club", "home", "numbers"))
    plain = [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}]
    game = build_game_data(*(participant | nulls for participant in plain), numbers=None)
    assert normalise(game) == build_game_data(*plain)


def test_substitute_sits_in_the_team_of_the_seat() -> None:
    """A substitute has the team of the seat, and the seat counts for one side."""
    leaver, ben, *opponents = build_doubles(status="abandoned")
    eva = {"player": "eva", "team": 1, "place": 1, "score": 6, "status": "substitute", "replaces": "anna"}
    game = build_game_data(leaver, ben, eva, *opponents)
    assert number_sides(normalise(game)) == [0, 0, 0, 1, 1]
    with pytest.raises(Refused, match="but they differ in team") as refused:
        normalise(build_game_data(leaver, ben, eva | {"team": "reds"}, *opponents))
    assert refused.value.code == "seat-disagrees"


def test_battle_without_teams_has_its_named_sides() -> None:
    """Without teams, the sides of a battle are those that it names; players of one team must be on one side."""
    flyers = [{"player": name, "side": side, "units": 1} for name, side in (("a", "red"), ("b", "blue"), ("c", "red"))]
    game = build_game_data(*flyers, kind="battle")
    assert number_sides(normalise(game)) == [0, 1, 0]
    flyers[0]["team"], flyers[1]["team"], flyers[2]["team"] = 1, 1, 2
    with pytest.raises(Refused, match="differ in side") as refused:
        normalise(game)
    assert refused.value.code == "side-disagrees"


ANNA, BEN, CLEO, DORA = build_doubles()
WRONG_GAMES = {
    "half a team": ("team-missing", build_game_data(ANNA, BEN, CLEO, {"player": "dora", "place": 2, "score": 3})),
    "another place": ("side-disagrees", build_game_data(ANNA, BEN, CLEO, DORA | {"place": 3})),
    "another score": ("side-disagrees", build_game_data(ANNA, BEN, CLEO, DORA | {"score": 2})),
    "a score of only one partner": (
        "side-disagrees",
        build_game_data(ANNA, BEN, CLEO, {"player": "dora", "team": "reds", "place": 2}),
    ),
    "different scores without places": (
        "side-disagrees",
        build_game_data(
            *({"player": p["player"], "team": p["team"], "score": n} for n, p in enumerate(build_doubles()))
        ),
    ),
    "one side": ("one-side", build_game_data(ANNA, BEN)),
    "two homes": ("two-homes", build_game_data(ANNA | {"home": True}, BEN, CLEO, DORA | {"home": True})),
    "two homes without teams": (
        "two-homes",
        build_game_data({"player": "anna", "place": 1, "home": True}, {"player": "ben", "place": 2, "home": True}),
    ),
    "a number of the game and of a player": (
        "number-twice",
        build_game_data(ANNA | {"numbers": {"round": 2}}, BEN, CLEO, DORA, numbers={"round": 2}),
    ),
    "name of a number": ("bad-value", build_game_data(ANNA, BEN, CLEO, DORA, numbers={"Round": 2})),
    "long name of a number": ("bad-value", build_game_data(ANNA | {"numbers": {"n" * 33: 2}}, BEN, CLEO, DORA)),
    "fraction": ("not-an-integer", build_game_data(ANNA, BEN, CLEO, DORA, numbers={"round": 2.5})),
    "text": ("not-an-integer", build_game_data(ANNA, BEN, CLEO, DORA, numbers={"round": "2"})),
    "beyond 2^53": ("out-of-range", build_game_data(ANNA, BEN, CLEO, DORA, numbers={"round": 2**53})),
    "17 numbers": (
        "bad-value",
        build_game_data(ANNA, BEN, CLEO, DORA, numbers={f"n{number}": 0 for number in range(17)}),
    ),
    "team 0": ("out-of-range", build_game_data(ANNA | {"team": 0}, BEN, CLEO, DORA)),
    "team true": ("wrong-type", build_game_data(ANNA | {"team": True}, BEN, CLEO, DORA)),
    "a slash in a team": ("bad-identifier", build_game_data(ANNA | {"team": "a/b"}, BEN, CLEO, DORA)),
    "a slash in a club": ("bad-identifier", build_game_data(ANNA | {"club": "a/b"}, BEN, CLEO, DORA)),
    "home in words": ("wrong-type", build_game_data(ANNA | {"home": "yes"}, BEN, CLEO, DORA)),
}


@pytest.mark.parametrize("case", sorted(WRONG_GAMES))
def test_wrong_side_is_refused(case: str) -> None:
    """A game with contradictory or invalid sides is refused with its code, in a recording and in a correction."""
    code, game = WRONG_GAMES[case]
    with pytest.raises(Refused) as refused:
        normalise(game)
    assert refused.value.code == code
    with pytest.raises(Refused) as refused:
        read_data("game.corrected", {"game_id": "g", "reason": "wrong", "game": game})
    assert refused.value.code == code


def test_sides_take_one_place_each() -> None:
    """A side has the place 1 plus the number of better sides, by places and by scores alone."""
    assert places({"participants": build_doubles()}) == [1, 1, 2, 2]
    tied = [
        {"player": name, "team": name[0], "place": place}
        for name, place in (("a1", 1), ("a2", 1), ("b1", 1), ("b2", 1), ("c1", 3), ("c2", 3))
    ]
    assert places({"participants": tied}) == [1, 1, 1, 1, 3, 3]
    by_score = [{key: value for key, value in participant.items() if key != "place"} for participant in build_doubles()]
    assert places({"participants": by_score}) == [1, 1, 2, 2]


def test_places_of_sides_may_count_sides_or_players() -> None:
    """Places may be dense, or count sides or players; any other place is a gap.

    After a winning side and two tied ones comes place 3, 4 or 7.
    """
    for last in (3, 4, 7):
        participants = [
            {"player": f"{side}{n}", "team": side, "place": place}
            for side, place in (("a", 1), ("b", 3 if last == 7 else 2), ("c", 3 if last == 7 else 2), ("d", last))
            for n in range(2)
        ]
        assert normalise(build_game_data(*participants))["participants"]
    with pytest.raises(Refused, match="have a gap"):
        normalise(
            build_game_data(*build_doubles()[:2], *(participant | {"place": 4} for participant in build_doubles()[2:]))
        )

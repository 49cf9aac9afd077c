"""Sides of games: teams, who is at home, clubs, and numbers of games and participants."""

import json
from typing import Any

import pytest

from ratings_ledger import Refused
from ratings_ledger.ledger.events.game_types import places
from ratings_ledger.ledger.events.games import number_sides
from ratings_ledger.ledger.events.types import meaning, read_data

Participant = dict[str, Any]


def game(*participants: Participant, **members: Any) -> dict[str, Any]:
    """A game of these participants."""
    return {"game_id": "g", "game": "tennis", **members, "participants": [*participants]}


def doubles(**more: Any) -> list[Participant]:
    """Two teams of two, of which the first won; `more` belongs to the first player."""
    return [
        {"player": "anna", "team": 1, "place": 1, "score": 6, **more},
        {"player": "ben", "team": 1, "place": 1, "score": 6},
        {"player": "cleo", "team": "reds", "place": 2, "score": 3},
        {"player": "dora", "team": "reds", "place": 2, "score": 3},
    ]


def read(data: dict[str, Any]) -> dict[str, Any]:
    """The data of a game as it is recorded."""
    return read_data("game.recorded", data)


def test_members_of_sides_are_recorded() -> None:
    """Teams, clubs, who is at home and numbers are recorded as they were given, in order."""
    numbers = {"set_2": -3, "aces": 2**53 - 1}
    told = game(*doubles(club="TC Rot", home=True, numbers=numbers), numbers={"round": 2, "length": 11})
    recorded = read(told)
    assert recorded == told
    assert json.dumps(recorded["numbers"]) == '{"length": 11, "round": 2}'
    assert list(recorded["participants"][0]["numbers"]) == ["aces", "set_2"]
    assert number_sides(recorded) == [0, 0, 1, 1]
    alone = game({"player": "anna", "place": 1, "home": False}, {"player": "ben", "place": 2, "home": True})
    assert number_sides(read(alone)) == [0, 1]


def test_number_of_a_team_is_the_same_as_text() -> None:
    """A table says "1" where JSON says 1; both are the same team, and the same event."""
    written = [participant | {"team": str(participant["team"])} for participant in doubles()]
    assert read(game(*written)) == read(game(*doubles()))
    same = (meaning("game.recorded", 0, game(*some)) for some in (written, doubles()))
    assert len(set(same)) == 1


def test_nulls_are_absent() -> None:
    """A null says nothing, whatever the member."""
    nothing = dict.fromkeys(("team", "club", "home", "numbers"))
    plain = [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}]
    told = game(*(participant | nothing for participant in plain), numbers=None)
    assert read(told) == game(*plain)


def test_substitute_sits_in_the_team_of_the_seat() -> None:
    """A substitute states the team of the seat, and the side keeps one number."""
    leaver, ben, *others = doubles(status="abandoned")
    eva = {"player": "eva", "team": 1, "place": 1, "score": 6, "status": "substitute", "replaces": "anna"}
    told = game(leaver, ben, eva, *others)
    assert number_sides(read(told)) == [0, 0, 0, 1, 1]
    with pytest.raises(Refused, match="share a seat, but not the team") as refused:
        read(game(leaver, ben, eva | {"team": "reds"}, *others))
    assert refused.value.code == "seat-disagrees"


def test_sides_of_a_battle_are_its_sides() -> None:
    """A battle has sides without teams; teams of the same name must be on one side."""
    flyers = [{"player": name, "side": side, "units": 1} for name, side in (("a", "red"), ("b", "blue"), ("c", "red"))]
    told = game(*flyers, kind="battle")
    assert number_sides(read(told)) == [0, 1, 0]
    flyers[0]["team"], flyers[1]["team"], flyers[2]["team"] = 1, 1, 2
    with pytest.raises(Refused, match="differ in side") as refused:
        read(told)
    assert refused.value.code == "side-disagrees"


ANNA, BEN, CLEO, DORA = doubles()
WRONG = {
    "half a team": ("team-missing", game(ANNA, BEN, CLEO, {"player": "dora", "place": 2, "score": 3})),
    "another place": ("side-disagrees", game(ANNA, BEN, CLEO, DORA | {"place": 3})),
    "another score": ("side-disagrees", game(ANNA, BEN, CLEO, DORA | {"score": 2})),
    "a score of one alone": ("side-disagrees", game(ANNA, BEN, CLEO, {"player": "dora", "team": "reds", "place": 2})),
    "scores alone": (
        "side-disagrees",
        game(*({"player": p["player"], "team": p["team"], "score": n} for n, p in enumerate(doubles()))),
    ),
    "one side": ("one-side", game(ANNA, BEN)),
    "two homes": ("two-homes", game(ANNA | {"home": True}, BEN, CLEO, DORA | {"home": True})),
    "two homes without teams": (
        "two-homes",
        game({"player": "anna", "place": 1, "home": True}, {"player": "ben", "place": 2, "home": True}),
    ),
    "twice": ("number-twice", game(ANNA | {"numbers": {"round": 2}}, BEN, CLEO, DORA, numbers={"round": 2})),
    "name of a number": ("bad-value", game(ANNA, BEN, CLEO, DORA, numbers={"Round": 2})),
    "long name of a number": ("bad-value", game(ANNA | {"numbers": {"n" * 33: 2}}, BEN, CLEO, DORA)),
    "fraction": ("not-an-integer", game(ANNA, BEN, CLEO, DORA, numbers={"round": 2.5})),
    "text": ("not-an-integer", game(ANNA, BEN, CLEO, DORA, numbers={"round": "2"})),
    "beyond 2^53": ("out-of-range", game(ANNA, BEN, CLEO, DORA, numbers={"round": 2**53})),
    "17 numbers": ("bad-value", game(ANNA, BEN, CLEO, DORA, numbers={f"n{number}": 0 for number in range(17)})),
    "team 0": ("out-of-range", game(ANNA | {"team": 0}, BEN, CLEO, DORA)),
    "team true": ("wrong-type", game(ANNA | {"team": True}, BEN, CLEO, DORA)),
    "team of a slash": ("bad-identifier", game(ANNA | {"team": "a/b"}, BEN, CLEO, DORA)),
    "club of a slash": ("bad-identifier", game(ANNA | {"club": "a/b"}, BEN, CLEO, DORA)),
    "home in words": ("wrong-type", game(ANNA | {"home": "yes"}, BEN, CLEO, DORA)),
}


@pytest.mark.parametrize("case", sorted(WRONG))
def test_wrong_side_is_refused(case: str) -> None:
    """What makes no sense is refused with its code, whether recorded or corrected."""
    code, told = WRONG[case]
    with pytest.raises(Refused) as refused:
        read(told)
    assert refused.value.code == code
    with pytest.raises(Refused) as refused:
        read_data("game.corrected", {"game_id": "g", "reason": "wrong", "game": told})
    assert refused.value.code == code


def test_sides_take_one_place_each() -> None:
    """The losers of a doubles are second, and a side behind two tied ones is third, by places or by scores alone."""
    assert places({"participants": doubles()}) == [1, 1, 2, 2]
    tied = [
        {"player": name, "team": name[0], "place": place}
        for name, place in (("a1", 1), ("a2", 1), ("b1", 1), ("b2", 1), ("c1", 3), ("c2", 3))
    ]
    assert places({"participants": tied}) == [1, 1, 1, 1, 3, 3]
    by_score = [{key: value for key, value in one.items() if key != "place"} for one in doubles()]
    assert places({"participants": by_score}) == [1, 1, 2, 2]


def test_places_of_sides_may_count_sides_or_players() -> None:
    """Two sides tied behind one leave the fourth place, or the seventh, to the next; a gap of neither is refused."""
    for last in (3, 4, 7):
        four = [{"player": f"{side}{n}", "team": side, "place": place}
                for side, place in (("a", 1), ("b", 3 if last == 7 else 2), ("c", 3 if last == 7 else 2), ("d", last))
                for n in range(2)]  # fmt: skip
        assert read(game(*four))["participants"]
    with pytest.raises(Refused, match="have a gap"):
        read(game(*doubles()[:2], *(one | {"place": 4} for one in doubles()[2:])))

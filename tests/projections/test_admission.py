"""Remembering which shapes of games can be counted changes no refusal."""

import random
from typing import Any

import pytest
from builders import build_event
from stores import make_ruled_ledger

import ratings_ledger as rl

TIMES = ("1999-05-01T12:00:00Z", "2008-02-29T22:30:00Z", "2008-02-29T23:30:00Z", "2009-01-31T12:00:00Z")
MEMBERS: dict[str, tuple[Any, ...]] = {
    "group": ("basic", "card-game"), "city": ("7",), "season": ("2010-1", "2010-9"), "league": ("I",),
    "rated": (True, False), "aborted": (True, False),
}  # fmt: skip


def draw_game(chance: random.Random, game_id: str) -> dict[str, Any]:
    """Draw a game of some players, with ties and leavers."""
    size = chance.choice((2, 3, 4, 4, 6, 7, 9))
    places: list[int] = []
    while len(places) < size:
        tied = min(chance.choice((1, 1, 1, 2)), size - len(places))
        places += [len(places) + 1] * tied
    names = chance.sample(["anna", "ben", "cleo", "dora", "emil", "frida", "gero", "hanna", "ida", "jan"], size)
    participants: list[dict[str, Any]] = [{"player": n, "place": p} for n, p in zip(names, places, strict=True)]
    if chance.random() < 0.2:
        participants[0]["status"] = "abandoned"
    if chance.random() < 0.2:
        participants[-1]["seconds_played"] = 100
    game = chance.choice(("catan", "club-catan", "galactic-magnate", "gonzaga", "chess"))
    members = {name: chance.choice(values) for name, values in MEMBERS.items() if chance.random() < 0.4}
    data = {"game_id": game_id, "game": game, **members, "participants": participants}
    return build_event("game.recorded", chance.choice(TIMES), **data)


def find_refusals(ledger: rl.Ledger, events: list[dict[str, Any]]) -> dict[int, tuple[str, str]]:
    """Return the code and message of each refused event of a proposal, by its index."""
    rejections = ledger.propose(events, "test", new_names="accept").rejections
    return {rejection.line - 1: (rejection.code, rejection.message) for rejection in rejections}


pytestmark = pytest.mark.ledger(make=make_ruled_ledger, store="sqlite")


def test_refusals_do_not_depend_on_the_games_before(db: str) -> None:
    """Each of many games is accepted, or refused for the same reason, in any order; so are the first ones alone."""
    chance = random.Random(7)
    games = [draw_game(chance, f"g-{number}") for number in range(400)]
    with rl.open(db) as ledger:
        expected = find_refusals(ledger, games)
        for _ in range(5):
            order = chance.sample(range(len(games)), len(games))
            refusals = find_refusals(ledger, [games[index] for index in order])
            assert {order[index]: refusal for index, refusal in refusals.items()} == expected
        for index in range(20):
            assert find_refusals(ledger, [games[index]]).get(0) == expected.get(index)
    assert len({*expected.values()}) > 4
    assert len(expected) < len(games)


def test_game_is_checked_again_after_a_void_of_a_version(db: str) -> None:
    """After ruleset versions are voided, a game like one that was refused before is accepted."""
    participants = [{"player": f"p{number}", "place": number} for number in range(1, 8)]
    first, second, third = (
        build_event(
            "game.recorded", "2007-05-01T12:00:00Z", game_id=game_id, game="catan", group="basic", city="7",
            participants=participants,
        ) for game_id in ("g-1", "g-2", "g-3")
    )  # fmt: skip
    with rl.open(db) as ledger:
        published = {row.event["data"]["id"] + "@" + row.event["data"]["version"]: row.event["id"]
                     for row in ledger.log(types=["ruleset.published"]).rows}  # fmt: skip
        voids = [
            build_event("event.voided", "2020-01-01T12:00:00Z", id=published[f"{name}@pre-2008-03"], reason="test")
            for name in ("catan-open", "catan-monthly")
        ]
        assert find_refusals(ledger, [first, second, *voids, third]).keys() == {0, 1}

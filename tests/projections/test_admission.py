"""The cache of admitted games changes no answer."""

import random
from typing import Any

import pytest
from stores import make_ruled_ledger

from ratings_ledger import Refused
from ratings_ledger.ledger.events.canonical import parse_instant
from ratings_ledger.ledger.events.types import read_data
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.admission.ladder_checks import Admission

TIMES = ("1999-05-01T12:00:00Z", "2008-02-29T22:30:00Z", "2008-02-29T23:30:00Z", "2009-01-31T12:00:00Z")
MEMBERS: dict[str, tuple[Any, ...]] = {
    "group": ("basic", "card-game"), "city": ("7",), "season": ("2010-1", "2010-9"), "league": ("I",),
    "rated": (True, False), "aborted": (True, False),
}  # fmt: skip


def draw_game(chance: random.Random) -> dict[str, Any]:
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
    return read_data("game.recorded", {"game_id": "g", "game": game, **members, "participants": participants})


def find_rejection(admission: Admission, occurred_at: int, data: dict[str, Any]) -> str | None:
    """Admit a game; return the reason if it is rejected."""
    try:
        admission.admit("game.recorded", occurred_at, data)
    except Refused as problem:
        return f"{problem.code}: {problem.message}"
    return None


pytestmark = pytest.mark.ledger(make=make_ruled_ledger, store="sqlite")


def test_reused_admission_answers_like_a_new_one(db: str) -> None:
    """For many games, a reused `Admission` has the answers of a new one."""
    chance = random.Random(7)
    answers = set()
    with open_ledger(db).reading() as connection:
        reused = Admission(connection, head(connection).position)
        for _ in range(400):
            occurred_at, data = parse_instant(chance.choice(TIMES)), draw_game(chance)
            result = find_rejection(reused, occurred_at, data)
            new_admission = Admission(connection, 0)
            for versions in reused.versions.values():
                for version in versions:
                    new_admission._add_version(version)
            assert result == find_rejection(new_admission, occurred_at, data)
            answers.add(result)
    assert len(answers) > 5
    assert None in answers


def test_game_is_checked_again_after_a_void_of_a_version(db: str) -> None:
    """After ruleset versions are voided, a remembered game is checked again."""
    participants = [{"player": f"p{number}", "place": number} for number in range(1, 8)]
    data = {"game_id": "g", "game": "catan", "group": "basic", "city": "7", "participants": participants}
    with open_ledger(db).reading() as connection:
        admission = Admission(connection, head(connection).position)
        occurred_at = parse_instant("2007-05-01T12:00:00Z")
        before = find_rejection(admission, occurred_at, data)
        assert (before, find_rejection(admission, occurred_at, data)) == (before, before)
        admission.release("ruleset.published", {"id": "catan-open", "version": "pre-2008-03"})
        admission.release("ruleset.published", {"id": "catan-monthly", "version": "pre-2008-03"})
        assert find_rejection(admission, occurred_at, data) is None
        assert before is not None

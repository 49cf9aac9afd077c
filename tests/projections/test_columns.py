"""Columns that only ratings ask for: they follow from what everybody of a game said."""

import random
from collections import Counter
from typing import Any

from ratings_ledger.ledger.events.game_types import GAME_TYPES, battle, column_values
from ratings_ledger.projections.rulesets.columns import COLUMNS_OF, derive_numbers


def fight(*players: tuple[str, str, int]) -> dict[str, Any]:
    """A battle of players with their sides and game points."""
    participants = [{"player": player, "side": side, "score": score} for player, side, score in players]
    return {"game_id": "b-1", "game": "blue-max", "kind": "battle", "participants": participants}


def test_every_column_has_its_numbers() -> None:
    """Whatever columns a game type has, a game of it gives numbers for exactly those, one per participant."""
    chance = random.Random(3)
    for name, kind in GAME_TYPES.items():
        seats = [[{"player": f"p{number}"}] for number in range(max(4, kind.seats[0]))]
        game = {"game_id": "g-1", "game": "chess", "kind": name, **kind.generate(seats, chance)}
        found = derive_numbers(game)
        assert found.keys() == COLUMNS_OF[name].keys() >= column_values(game).keys()
        assert {len(values) for values in found.values()} <= {len(game["participants"])}


def test_best_mates_and_enemies_of_a_battle() -> None:
    """The best of the others on a side, the best of the other side, and -1 for who fights alone."""
    found = derive_numbers(fight(("anna", "red", 60), ("ben", "blue", 20), ("cleo", "red", 7), ("dora", "blue", 25)))
    assert (found["mates_best"], found["enemies_best"]) == ([7, 25, 60, 20], [25, 60, 25, 60])
    alone = derive_numbers(fight(("anna", "red", 5), ("ben", "blue", 7), ("cleo", "blue", 7)))
    assert (alone["mates_best"], alone["enemies_best"]) == ([-1, 7, 7], [7, 5, 5])


def test_left_seat_counts_for_both() -> None:
    """Who left a seat and who took it over are two players of a side."""
    game = fight(("anna", "red", 60), ("ben", "blue", 30), ("dora", "blue", 10))
    game["participants"][1] |= {"status": "surrendered", "units": 2}
    game["participants"][2] |= {"status": "substitute", "replaces": "ben", "units": 2}
    battle.check(game)
    assert derive_numbers(game)["mates_best"] == [-1, 10, 30]


def test_random_battles_match_a_naive_count() -> None:
    """The best of random battles are those that a naive count finds."""
    chance, seen = random.Random(21), Counter[str]()
    for _ in range(2_000):
        sides = [chance.choice("ab") for _ in range(chance.randint(2, 8))]
        if len({*sides}) < 2:
            seen["no battle"] += 1
            continue
        players = [(f"p{number}", side, chance.choice([0, 5, 5, 9])) for number, side in enumerate(sides)]
        found = derive_numbers(fight(*players))
        for index, (name, side, _) in enumerate(players):
            mates = [score for other, of, score in players if of == side and other != name]
            enemies = [score for _, of, score in players if of != side]
            assert found["mates_best"][index] == max(mates, default=-1)
            assert found["enemies_best"][index] == max(enemies)
            seen["alone" if not mates else "tied" if mates.count(max(mates)) > 1 else "with mates"] += 1
    assert min(seen[name] for name in ("alone", "tied", "with mates")) > 500

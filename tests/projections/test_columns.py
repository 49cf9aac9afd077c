"""Columns that only rules read: they follow from the data of all participants."""

import random
from collections import Counter
from typing import Any

from kind_games import build_recorded_game, list_columns, list_players
from own_rules import list_columns_of_kind

from ratings_ledger.ledger.events.game_types import GAME_TYPES, column_values


def build_battle(*players: tuple[str, str, int]) -> dict[str, Any]:
    """Return a battle of players with their sides and game points."""
    return build_recorded_game(
        "blue-max", "battle", [{"player": player, "side": side, "score": score} for player, side, score in players]
    )


def list_best(battle: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Return the best mates and the best enemies of the players, in the order of their ids."""
    mates, enemies = list_columns(battle, ["mates_best", "enemies_best"])
    return mates, enemies


def test_every_column_has_its_numbers() -> None:
    """A game of each type has a number per participant in every column of its type, and values for no other columns."""
    chance = random.Random(3)
    for name, kind in GAME_TYPES.items():
        seats = [[{"player": f"p{number}"}] for number in range(max(4, kind.seats[0]))]
        data = kind.generate(seats, chance)
        event = build_recorded_game("chess", name, data.pop("participants"), **data)
        names = list_columns_of_kind(name)
        assert {*names} >= column_values(event["data"]).keys()
        numbers = list_columns(event, names)
        assert [len(values) for values in numbers] == [len(list_players(event))] * len(names)


def test_best_mates_and_enemies_of_a_battle() -> None:
    """A player's columns have the best mate, or -1 for a player alone, and the best enemy."""
    battle = build_battle(("anna", "red", 60), ("ben", "blue", 20), ("cleo", "red", 7), ("dora", "blue", 25))
    assert list_best(battle) == ([7, 25, 60, 20], [25, 60, 25, 60])
    alone = build_battle(("anna", "red", 5), ("ben", "blue", 7), ("cleo", "blue", 7))
    assert list_best(alone) == ([-1, 7, 7], [7, 5, 5])


def test_leaver_and_substitute_count_as_two_mates() -> None:
    """A leaver and the substitute are two players of a side."""
    battle = build_battle(("anna", "red", 60), ("ben", "blue", 30), ("dora", "blue", 10))
    battle["data"]["participants"][1] |= {"status": "surrendered", "units": 2}
    battle["data"]["participants"][2] |= {"status": "substitute", "replaces": "ben", "units": 2}
    assert list_best(battle)[0] == [-1, 10, 30]


def test_random_battles_match_a_naive_count() -> None:
    """In random battles, the best mates and enemies equal those of a naive count."""
    chance, cases = random.Random(21), Counter[str]()
    for _ in range(2_000):
        sides = [chance.choice("ab") for _ in range(chance.randint(2, 8))]
        if len({*sides}) < 2:
            cases["no battle"] += 1
            continue
        players = [(f"p{number}", side, chance.choice([0, 5, 5, 9])) for number, side in enumerate(sides)]
        mates_best, enemies_best = list_best(build_battle(*players))
        for index, (name, side, _) in enumerate(players):
            mates = [score for mate, mate_side, score in players if mate_side == side and mate != name]
            enemies = [score for _, other_side, score in players if other_side != side]
            assert mates_best[index] == max(mates, default=-1)
            assert enemies_best[index] == max(enemies)
            cases["alone" if not mates else "tied" if mates.count(max(mates)) > 1 else "with mates"] += 1
    assert min(cases[name] for name in ("alone", "tied", "with mates")) > 500

"""Rank lists without a ledger: their input from short texts, their rows, and their explanations."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from own_rules import load_built_in_rule

from ratings_ledger.projections.lists import LISTS
from ratings_ledger.projections.lists.contract import RankedRow, RankingInput


def build_ranking_input(
    params: Any,
    *games: str,
    adjusted: Mapping[str, int] | None = None,
    excluded: Mapping[str, str] | None = None,
    scale: int = 1,
) -> RankingInput:
    """Return the input of a list from games such as "anna 3 ben 1", or "anna 9:1 ben 6:2" with the places.

    A player with place 0 is not classified; `adjusted` are further points, in units.
    """
    played = [list(zip(game.split()[::2], game.split()[1::2], strict=True)) for game in games]
    names = list(dict.fromkeys(name for game in played for name, _ in game))
    players = [names.index(name) for game in played for name, _ in game]
    changes = [int(value.partition(":")[0]) for game in played for _, value in game]
    points = Counter(dict.fromkeys(range(len(names)), 0))
    for name, units in (adjusted or {}).items():
        points[names.index(name)] += units
    for player, change in zip(players, changes, strict=True):
        points[player] += change
    return RankingInput(
        names,
        [points[player] for player in range(len(names))],
        [players.count(player) for player in range(len(names))],
        [sum(map(len, played[:index])) for index in range(len(played) + 1)],
        players,
        changes,
        scale,
        params,
        excluded=excluded or {},
        places=[int(place) for game in played for _, value in game if (place := value.partition(":")[2])],
    )


def build_year(places: Mapping[str, str], excluded: Mapping[str, str] | None = None, **params: Any) -> RankingInput:
    """Return the input of an annual list from texts such as {"anna": "1 - 3"}: a place or none for each month."""
    months: dict[str, dict[str, RankedRow]] = {}
    for name, text in places.items():
        for number, place in enumerate(text.split(), 1):
            if place != "-":
                standing = RankedRow(int(place), name, 60 - int(place), 7, True)
                months.setdefault(f"2010-{number:02d}", {})[name] = standing
    bound = load_built_in_rule("annual-places/1").params(of="catan-monthly", **params)
    return build_ranking_input(bound, excluded=excluded)._replace(
        names=list(places), points=[0] * len(places), games=[0] * len(places), months=months
    )


def rank(kind: str, inputs: RankingInput) -> Sequence[RankedRow]:
    """Return the rows of a list of this kind."""
    return LISTS[kind].rank(inputs)


def explain(kind: str, inputs: RankingInput, name: str) -> list[tuple[Any, ...]]:
    """Return the lines of the explanation of a player's row: (term, amount, detail)."""
    return [line[:3] for line in LISTS[kind].explain(inputs, name)]


def find_left_out(kind: str, inputs: RankingInput, player: int) -> set[int]:
    """Return the games that do not count for a player of a list of this kind."""
    return LISTS[kind].find_left_out(inputs, player)

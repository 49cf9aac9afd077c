"""Rank the table of a championship by the sum of the best results of a season or its parts, and a chain of tie-breaks.

The rounds are the ladder's games in order. Each part of the season consists of the next `rounds` rounds, the last part
of all remaining ones. A player's `best` results in each part count; of equal results, the earlier ones. Points are
multiplied by the weight of the round before the best results are chosen. Adjustments are added.

    parts = [{rounds = 6, best = 5}, {rounds = 5, best = 4}]

`tie_breaks` rank players with equal sums, one after the other:

    places        more first places; if equal, more second places, and so on
    first         the earlier round with a first place; if equal, with a second place, and so on
    more wins     more games in which no player got more points, and at least one got fewer
    head-to-head  a larger number of wins minus losses against rivals who are still tied, by points from the same game
    last game     the better place in the last round; players without a place in it come last
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple

from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.lists.contract import ExplainedLine, RankedRow, RankingInput, explain_too_few, rank_rows
from ratings_ledger.projections.lists.tie_breaks import compare_tied, count_wins

# larger than any place or round: the round of a place that a player never reached, and the worst place that counts
# if all places count
NEVER = 10**9
PLACE_TIE_BREAKS = ("places", "first", "last game")


class Result(NamedTuple):
    """A player's points from a round, times its weight, in units of 1/(scale * divisor); `game` is its index."""

    game: int
    points: int


class PartTotal(NamedTuple):
    """A player's results in a part of the season: the best results count, the others are left out."""

    best: list[Result]
    left_out: list[Result]

    @property
    def points(self) -> int:
        """Return the sum of the results that count."""
        return sum(result.points for result in self.best)


class Total(NamedTuple):
    """A player's total: the parts of the season, and in `adjusted` the start points and adjustments."""

    parts: list[PartTotal]
    adjusted: int

    @property
    def points(self) -> int:
        """Return the sum that ranks the player."""
        return sum(part.points for part in self.parts) + self.adjusted


def rank(inputs: RankingInput) -> list[RankedRow]:
    """Return a row for every player, most points first."""
    rows = _build_rows(inputs)
    keys = _break_ties(inputs, rows)[-1]
    index_by_name = {name: player for player, name in enumerate(inputs.names)}
    return rank_rows(rows, key=lambda row: keys.get(index_by_name[row.player], (-row.points,)))


def explain(inputs: RankingInput, name: str) -> list[ExplainedLine]:
    """Explain the parts, weighted rounds, adjustments, total and tie-breaks, and the reason if there is no rank."""
    player, params = inputs.names.index(name), inputs.params
    total, unit = _compute_totals(inputs)[player], inputs.scale * _find_divisor(params)
    lines = []
    for number, part in enumerate(total.parts, 1) if len(total.parts) > 1 else ():
        lines.append(
            ExplainedLine(f"part {number}", ExactNumber(part.points, unit), _describe_results([part]), ("parts",))
        )
    for result in [result for part in total.parts for result in part.best]:
        if weight := params.weights.get(str(result.game + 1)):
            detail = f"the points of this round times {weight}"
            lines.append(
                ExplainedLine(f"round {result.game + 1}", ExactNumber(result.points, unit), detail, ("weights",))
            )
    if total.adjusted:
        lines.append(ExplainedLine("adjusted", ExactNumber(total.adjusted, unit), "start points and adjustments"))
    keys = ("parts",) if any(part.left_out for part in total.parts) else ()
    lines.append(ExplainedLine("sum", ExactNumber(total.points, unit), _describe_results(total.parts), keys))
    lines += _explain_tie(inputs, player)
    lines += explain_too_few(inputs.games[player], params.min_games)
    if name in inputs.excluded:
        lines.append(ExplainedLine("no rank", None, inputs.excluded[name], ("unranked",)))
    return lines


def find_left_out(inputs: RankingInput, player: int) -> set[int]:
    """Return the games that are not among a player's best."""
    return {result.game for part in _compute_totals(inputs)[player].parts for result in part.left_out}


def reads_places(params: Any) -> bool:
    """Tell whether a tie-break reads the places of games."""
    return any(name in PLACE_TIE_BREAKS for name in params.tie_breaks)


def ranks_by_points(params: Any) -> bool:
    """Tell whether the list ranks by the sum of all games and nothing else."""
    return not (params.weights or params.tie_breaks or params.unranked) and all(
        part.best == "all" for part in params.parts
    )


def _describe_results(parts: Sequence[PartTotal]) -> str:
    """Describe the number of a player's results that count."""
    best, unused = sum(len(part.best) for part in parts), sum(len(part.left_out) for part in parts)
    return f"of the best {best} of {best + unused} results" if unused else f"of {best} result{'s' * (best != 1)}"


def _find_divisor(params: Any) -> int:
    """Return the common denominator of the weights."""
    return lcm(*(Fraction(weight).denominator for weight in params.weights.values()))


def _build_rows(inputs: RankingInput) -> list[RankedRow]:
    """Return a row without a rank for every player, in the order of `inputs.names`."""
    divisor, min_games = _find_divisor(inputs.params), inputs.params.min_games
    return [
        RankedRow(
            rank=None,
            player=name,
            points=total.points,
            games=games,
            qualified=games >= min_games and name not in inputs.excluded,
            divisor=divisor,
        )
        for name, total, games in zip(inputs.names, _compute_totals(inputs), inputs.games, strict=True)
    ]


def _compute_totals(inputs: RankingInput) -> list[Total]:
    """Return the total of every player."""
    params, divisor = inputs.params, _find_divisor(inputs.params)
    weights = {int(number) - 1: int(Fraction(weight) * divisor) for number, weight in params.weights.items()}
    part_of, played = _assign_parts(inputs), [dict[int, list[Result]]() for _ in inputs.names]
    adjusted = [points * divisor for points in inputs.points]
    for game in range(len(inputs.offsets) - 1):
        weight = weights.get(game, divisor)
        for slot in range(inputs.offsets[game], inputs.offsets[game + 1]):
            player, change = inputs.players[slot], inputs.changes[slot]
            adjusted[player] -= change * divisor
            played[player].setdefault(part_of[game], []).append(Result(game, change * weight))
    limits = [None if part.best == "all" else part.best for part in params.parts] or [None]
    totals = []
    for results_by_part, adjustment in zip(played, adjusted, strict=True):
        parts = []
        for part, limit in enumerate(limits):
            ordered = sorted(results_by_part.get(part, ()), key=lambda result: (-result.points, result.game))
            parts.append(PartTotal(ordered[:limit], [] if limit is None else ordered[limit:]))
        totals.append(Total(parts, adjustment))
    return totals


def _assign_parts(inputs: RankingInput) -> list[int]:
    """Return the index of the part of the season to which each game belongs."""
    games, parts = len(inputs.offsets) - 1, inputs.params.parts
    part_of: list[int] = []
    for number, part in enumerate(parts[:-1]):
        part_of += [number] * part.rounds
    return (part_of + [max(len(parts) - 1, 0)] * games)[:games]


Key = tuple[Any, ...]


def _break_ties(inputs: RankingInput, rows: Sequence[RankedRow]) -> list[dict[int, Key]]:
    """Return the sort keys of the qualified players (the lowest is best) before any tie-break and after each one.

    A tie-break compares only players who are still tied after the previous tie-breaks.
    """
    steps: list[dict[int, Key]] = [{player: (-row.points,) for player, row in enumerate(rows) if row.qualified}]
    for name in inputs.params.tie_breaks:
        keys = steps[-1]
        sizes = Counter(keys.values())
        tied = {player: key for player, key in keys.items() if sizes[key] > 1}
        values = TIE_BREAKS[name](inputs, tied) if tied else {}
        steps.append({player: (*key, values[player]) if player in tied else key for player, key in keys.items()})
    return steps


def _compare_places(inputs: RankingInput, tied: Mapping[int, Key]) -> dict[int, Key]:
    """Return the negated numbers of each tied player's first places, second places, and so on."""
    places_by_player = _list_places(inputs, tied)
    last_place = max((place for places in places_by_player.values() for place, _ in places), default=0)
    values = {}
    for player, places in places_by_player.items():
        counts = Counter(place for place, _ in places)
        values[player] = tuple(-counts[place] for place in range(1, last_place + 1))
    return values


def _compare_first_rounds(inputs: RankingInput, tied: Mapping[int, Key]) -> dict[int, Key]:
    """Return the round in which each tied player first reached the first place, the second place, and so on."""
    places_by_player = _list_places(inputs, tied)
    last_place = max((place for places in places_by_player.values() for place, _ in places), default=0)
    values = {}
    for player, places in places_by_player.items():
        first_games: dict[int, int] = {}
        for place, game in places:
            first_games.setdefault(place, game)
        values[player] = tuple(first_games.get(place, NEVER) for place in range(1, last_place + 1))
    return values


def _list_places(inputs: RankingInput, tied: Mapping[int, Key]) -> dict[int, list[tuple[int, int]]]:
    """Return (place, game) of each tied player's places that count, in the order of the games."""
    counted = inputs.params.places_counted
    worst_place = NEVER if counted == "all" else counted
    places_by_player: dict[int, list[tuple[int, int]]] = {player: [] for player in tied}
    for game in range(len(inputs.offsets) - 1):
        for slot in range(inputs.offsets[game], inputs.offsets[game + 1]):
            if (player := inputs.players[slot]) in tied:
                places = (inputs.places[slot], *inputs.more_places.get(slot, ()))
                places_by_player[player] += [(place, game) for place in places if 1 <= place <= worst_place]
    return places_by_player


def _compare_wins(inputs: RankingInput, tied: Mapping[int, Key]) -> dict[int, Key]:
    wins = count_wins(inputs)
    return {player: (-wins[player],) for player in tied}


def _compare_meetings(inputs: RankingInput, tied: Mapping[int, Key]) -> dict[int, Key]:
    scores = compare_tied(inputs, tied)
    return {player: (-scores[player],) for player in tied}


def _compare_last_places(inputs: RankingInput, tied: Mapping[int, Key]) -> dict[int, Key]:
    places = dict.fromkeys(tied, NEVER)
    for slot in range(inputs.offsets[-2], inputs.offsets[-1]) if len(inputs.offsets) > 1 else ():
        if inputs.players[slot] in places and inputs.places[slot]:
            places[inputs.players[slot]] = inputs.places[slot]
    return {player: (place,) for player, place in places.items()}


TIE_BREAKS: dict[str, Callable[[RankingInput, Mapping[int, Key]], dict[int, Key]]] = {
    "places": _compare_places,
    "first": _compare_first_rounds,
    "more wins": _compare_wins,
    "head-to-head": _compare_meetings,
    "last game": _compare_last_places,
}


def _explain_tie(inputs: RankingInput, player: int) -> list[ExplainedLine]:
    """Describe each tie-break that was needed, with the values of the player and of the tied rivals."""
    lines = []
    steps = _break_ties(inputs, _build_rows(inputs))
    for name, before, after in zip(inputs.params.tie_breaks, steps, steps[1:], strict=False):
        tied = [rival for rival, key in before.items() if player in before and key == before[player]]
        if len(tied) < 2:
            break
        rivals = "; ".join(
            f"{inputs.names[rival]} {_describe_value(name, after[rival][-1])}" for rival in tied if rival != player
        )
        detail = f"{name}: {_describe_value(name, after[player][-1])}; {rivals}"
        lines.append(ExplainedLine("tie-break", None, detail, ("tie_breaks",)))
    return lines


def _describe_value(name: str, value: Key) -> str:
    """Describe a player's value of a tie-break in words."""
    if name == "places":
        counts = [f"{-count} at place {place}" for place, count in enumerate(value, 1) if count]
        return ", ".join(counts) or "no place"
    if name == "first":
        rounds = [f"place {place} in round {game + 1}" for place, game in enumerate(value, 1) if game != NEVER]
        return ", ".join(rounds) or "no place"
    if name == "last game":
        return f"place {value[0]}" if value[0] != NEVER else "not classified"
    return str(-value[0])

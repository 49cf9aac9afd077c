"""Catan points: the points of a game come from a table, by place and number of players; tied players share them.

    points = the sum of the points of the tied places / the number of tied players

(Catan Online World, Ranking Lists: "in case of a tie, the points are distributed among the respective ranking
positions".) A seat that changed hands counts towards the number of players and the places of the others.

Points are counted in units of 1/60, which is divisible by every possible number of tied players. The list of a month
decides how its points add up.

    three players, two of them second: 4, then 3/2 = (2 + 1) / 2 for both
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from ratings_ledger.projections.contract import (
    Changes,
    Columns,
    Numbers,
    PeriodParams,
    Rule,
    Term,
    flat_rows,
    no_table,
    refuse_rows,
    told_sizes,
)

# divisible by all of 2 to 6
SCALE = 60
PLAYERS_MAX = 6


class CatanPointsParams(PeriodParams):
    """`points` has a row of whole points, by place, for every number of players that can be scored, at most six.

    The row `3 = [4, 2, 1]` is for three players.
    """

    points: dict[str, list[Annotated[int, Field(ge=0, le=1_000_000)]]]


def refuse_params(params: CatanPointsParams, players_max: int) -> str | None:
    """Return the problem with the parameters, or None. Six places have at most 6 * 10^6 points: products stay small."""
    return refuse_rows("params.points", params.points, "numbers", PLAYERS_MAX)


def prepare(params: CatanPointsParams) -> tuple[int, ...]:
    """Return the rows of points."""
    return flat_rows(params.points)


def check(n: int, columns: Columns, params: CatanPointsParams) -> str | None:
    """Return the reason why a game cannot be scored (no row for its number of seats), or None."""
    seats = columns[1][0]
    if str(seats) not in params.points:
        return f"Catan points are defined for {told_sizes(params.points)} players; this game has {seats}"
    return None


def score(n: int, points: Numbers, columns: Columns, constants: Numbers, table: Numbers, change: Changes) -> int:
    """Fill in the changes. Return their sum, which is minted."""
    place, seats, tied = columns[0], columns[1], columns[2]
    minted = 0
    for i in range(n):
        first = seats[i] * (seats[i] - 1) // 2 - 1 + place[i] - 1
        pooled = 0
        for shared in range(first, first + tied[i]):
            pooled += constants[shared]
        change[i] = pooled * SCALE // tied[i]
        minted += change[i]
    return minted


def explain(
    n: int, names: Sequence[str], points: Numbers, columns: Columns, params: CatanPointsParams, change: Numbers
) -> list[list[Term]]:
    """Return one term for every player: the points of the place, or an equal part of the points of the tied places."""
    place, seats, tied = columns[0], columns[1], columns[2]
    return [[_explain_place(place[i], params.points[str(seats[i])], tied[i], change[i])] for i in range(n)]


def _explain_place(place: int, row: Sequence[int], tied: int, amount: int) -> Term:
    if tied == 1:
        return Term(f"place {place}", amount, f"the points of place {place} of {len(row)}", "", ("points",))
    shared = row[place - 1 : place - 1 + tied]
    places = f"{place} {'and' if tied == 2 else 'to'} {place + tied - 1}"
    detail = f"tied: {' + '.join(map(str, shared))}, the points of places {places} of {len(row)}, divided by {tied}"
    return Term(f"place {place}", amount, detail, "", ("points",))


RULE = Rule(
    name="catan-points",
    number=1,
    scale=SCALE,
    params=CatanPointsParams,
    columns=("place", "seats", "tied"),
    prepare=prepare,
    table=no_table,
    refuse_params=refuse_params,
    check=check,
    score=score,
    explain=explain,
    ranking="period",
    counted_min=1,
)

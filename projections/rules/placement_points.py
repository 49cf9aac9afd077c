"""Placement points: the points of a game depend only on the place and the number of players.

    points of place k of n = (n - k) * (n - k + 1)

(Youplay, League scoring system, "all vs. all games".) Tied players get the mean of the points of the tied places, so
every game of n players gives (n^3 - n) / 3 points, whatever the ties. n is the number of seats.

Points are counted in units of 1/840, which is divisible by every possible number of tied players.

    five players, two of them second: 20, then 9 = (12 + 6) / 2 for both, 2 and 0
"""

from collections.abc import Sequence

from ratings_ledger.projections.contract import Changes, Columns, Numbers, Rule, TableParams, Term, no_table

# Divisible by 2 to 8.
SCALE = 840
PLAYERS_MAX = 8


class PlacementPointsParams(TableParams):
    """Parameters of the table that sums the points. The formula itself has none."""


def refuse_params(params: PlacementPointsParams, players_max: int) -> str | None:
    """Refuse nothing: `score` gives at most 56 points a player and forms no sum above 168."""
    return None


def prepare(params: PlacementPointsParams) -> tuple[int, ...]:
    """Return no constants."""
    return ()


def check(n: int, columns: Columns, params: PlacementPointsParams) -> str | None:
    """Return the reason why a game cannot be scored (more than 8 players), or None."""
    seats = columns[1][0]
    if seats > PLAYERS_MAX:
        return f"placement points are defined for 2 to {PLAYERS_MAX} players; this game has {seats}"
    return None


def points_of(place: int, seats: int) -> int:
    """Return the points of a place without ties."""
    return (seats - place) * (seats - place + 1)


def score(n: int, points: Numbers, columns: Columns, constants: Numbers, table: Numbers, change: Changes) -> int:
    """Fill in the changes. Return their sum, which is minted."""
    place, seats, tied = columns[0], columns[1], columns[2]
    minted = 0
    for i in range(n):
        pooled = 0
        for shared in range(place[i], place[i] + tied[i]):
            pooled += points_of(shared, seats[i])
        change[i] = pooled * SCALE // tied[i]
        minted += change[i]
    return minted


def explain(
    n: int, names: Sequence[str], points: Numbers, columns: Columns, params: PlacementPointsParams, change: Numbers
) -> list[list[Term]]:
    """Return one term for every player: the points of the place, or the mean of the points of the tied places."""
    place, seats, tied = columns[0], columns[1], columns[2]
    return [[_explain_place(place[i], seats[i], tied[i], change[i])] for i in range(n)]


def _explain_place(place: int, seats: int, tied: int, amount: int) -> Term:
    worse = seats - place
    if tied == 1:
        return Term(f"place {place}", amount, f"place {place} of {seats}: {worse} * {worse + 1}")
    last = place + tied - 1
    shared = [points_of(shared_place, seats) for shared_place in range(place, last + 1)]
    places = f"{place} {'and' if tied == 2 else 'to'} {last}"
    detail = f"tied: the mean of {' + '.join(map(str, shared))}, the points of places {places} of {seats}"
    return Term(f"place {place}", amount, detail)


RULE = Rule(
    name="placement-points",
    number=1,
    scale=SCALE,
    params=PlacementPointsParams,
    columns=("place", "seats", "tied"),
    prepare=prepare,
    table=no_table,
    refuse_params=refuse_params,
    check=check,
    score=score,
    explain=explain,
    ranking="table",
    counted_min=1,
)

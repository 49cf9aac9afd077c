"""Ante pool: every player antes a tenth of their points, and the pot is shared by place; victory points come on top.

    ante(X) = floor(points(X) / 10), but 0 below 10 points
    payout(X) = floor(pot * share(X) / 100)
    change    = payout - ante + victory points

(Babylon 5 CCG: League Play.) Tied players split the sum of the shares of their places; the result is rounded down once:
floor(pot * sum of shares / (100 * number of tied players)). Victory points are minted; the rest of the pot is burned.

"If more than one person qualifies for a victory then the winners share the ante for their placings." With
`winners = "share"`, all players with a major victory are tied, and below them all players with a standard victory;
power and influence separate all other players. With `"by_power"`, they separate the winners, too. Example: two
standard victories at power 21 and 18 in a game of four with a pot of 40 give 14 each (share), or 16 and 12 (by_power).

Games larger than the largest row of `shares` use that row. Only ties among counted players matter. Example: a player
with 95 points antes 9. If the three opponents ante 30, the pot is 39, and the first of the four gets 40 % of it, or 15.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from ratings_ledger.projections.contract import (
    INT64_MAX,
    UNITS_MAX,
    Changes,
    Columns,
    Numbers,
    Params,
    Rows,
    Rule,
    Term,
    decimal,
    flat_rows,
    no_table,
    refuse_percentages,
    refuse_two_in_a_seat,
)

COLUMNS = ("place", "seats", "vp", "status", "victory", "winners_place")
PLACE, SEATS, VP, STATUS, VICTORY, WINNERS_PLACE = range(len(COLUMNS))
# the index of the rows of shares among the constants
SHARES_START = 3


class AntePoolParams(Params):
    """Parameters. `shares` has one row for each number of players, giving each place's share of the pot as a whole
    percentage.

    The row `3 = [50, 30, 20]` is for three players. No row between the smallest and the largest may be missing. Larger
    games use the largest row, so its last share must be 0: all later places get it. Games with fewer players than the
    smallest row are not scored. The ante is the points divided by `ante_divisor`. Several `winners` share equally, or
    are separated by power. Season 2010-2 runs from the second month in `season_months` to just before the third;
    without them, seasons have no dates.
    """

    start: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 100
    ante_divisor: Annotated[int, Field(ge=1, le=1_000_000)] = 10
    season_months: Annotated[list[Annotated[int, Field(ge=1, le=12)]], Field(max_length=12)] = []
    winners: Literal["share", "by_power"] = "by_power"
    shares: Rows


def refuse_params(params: AntePoolParams, players_max: int) -> str | None:
    """Return the problem with the parameters, or None. This includes a pot that could overflow a signed 64-bit integer.

    If the pot does not overflow, no other product in `score` does.
    """
    if reason := refuse_percentages("params.shares", params.shares):
        return reason
    if params.season_months != sorted({*params.season_months}):
        return "params.season_months: must be in calendar order without duplicates"
    sizes = sorted(map(int, params.shares))
    if missing := sorted({*range(sizes[0], sizes[-1])} - {*sizes}):
        return f"params.shares: there are rows for {sizes[0]} and {sizes[-1]} players, but none for {missing[0]}"
    for name, row in params.shares.items():
        if sum(row) > 100:
            return f"params.shares.{name}: the shares add up to {sum(row)} % of the pot; the maximum is 100 %"
    if last := params.shares[str(sizes[-1])][-1]:
        return (
            f"params.shares.{sizes[-1]}: the last share of the largest row must be 0, not {last}, because larger games "
            f"repeat it (or add a row for {sizes[-1] + 1} players)"
        )
    if players_max * (UNITS_MAX // params.ante_divisor) > INT64_MAX:
        return f"params.ante_divisor: {params.ante_divisor} is too small for a pot in exact 64-bit arithmetic"
    return None


def prepare(params: AntePoolParams) -> tuple[int, ...]:
    """Return the divisor of the ante, the number of players in the largest row, the column of places, and the rows."""
    return params.ante_divisor, max(map(int, params.shares)), place_column(params), *flat_rows(params.shares)


def place_column(params: AntePoolParams) -> int:
    """Return the index of the column of places by which the pot is shared."""
    return WINNERS_PLACE if params.winners == "share" else PLACE


def check(n: int, columns: Columns, params: AntePoolParams) -> str | None:
    """Return the reason why a game cannot be scored (too few seats, or two counted players in one seat), or None."""
    place, seats, status = columns[PLACE], columns[SEATS], columns[STATUS]
    if seats[0] < (players_min := min(map(int, params.shares))):
        return f"this game has {seats[0]} players; `params.shares` starts at {players_min}"
    return refuse_two_in_a_seat(place, status)


def ante(points: int, divisor: int) -> int:
    """Return the ante of a player with this many points; it is never negative."""
    return points // divisor if points > 0 else 0


def score(n: int, points: Numbers, columns: Columns, constants: Numbers, table: Numbers, change: Changes) -> int:
    """Fill in the changes. Return the victory points, which are minted."""
    place, seats, victory_points = columns[constants[2]], columns[SEATS], columns[VP]
    divisor, largest = constants[0], constants[1]
    size = min(seats[0], largest)
    row = SHARES_START + size * (size - 1) // 2 - 1  # the rows start at 2 players: see `flat_rows`
    pot = minted = 0
    for i in range(n):
        pot += ante(points[i], divisor)
    for i in range(n):
        tied = share = 0
        for j in range(n):
            if place[j] == place[i]:
                share += constants[row + min(place[i] + tied, size) - 1]
                tied += 1
        # in two steps, because the product pot * share might overflow 64 bits
        pot_per_percent = pot // (100 * tied)
        payout = pot_per_percent * share + (pot - pot_per_percent * 100 * tied) * share // (100 * tied)
        change[i] = payout - ante(points[i], divisor) + victory_points[i]
        minted += victory_points[i]
    return minted


def explain(
    n: int, names: Sequence[str], points: Numbers, columns: Columns, params: AntePoolParams, change: Numbers
) -> list[list[Term]]:
    """Return for every player the ante, the share of the pot, and the victory points."""
    place, seats, victory_points = columns[place_column(params)], columns[SEATS], columns[VP]
    row = params.shares[str(min(seats[0], max(map(int, params.shares))))]
    pot = sum(ante(own, params.ante_divisor) for own in points)
    terms = []
    for i in range(n):
        player_terms = [
            _describe_ante(points[i], params.ante_divisor),
            _describe_share(pot, row, place[i], place.count(place[i])),
        ]
        if victory_points[i] or place[i] == 1:
            detail = f"{victory_points[i]} of the {sum(victory_points)} handed out"
            player_terms.append(Term("victory points", victory_points[i], detail))
        terms.append(player_terms)
    return terms


def _describe_ante(points: int, divisor: int) -> Term:
    amount = ante(points, divisor)
    note = f"{decimal(points, divisor)} rounded down" if points % divisor and points > 0 else ""
    return Term("ante", -amount, f"1/{divisor} of {points}" if points > 0 else f"no ante from {points} points", note)


def _describe_share(pot: int, row: list[int], place: int, tied: int) -> Term:
    # places beyond the end of the row have no share
    shares = row[place - 1 : place - 1 + tied] or [0]
    numerator, denominator = pot * sum(shares), 100 * tied
    detail = f"{decimal(sum(shares), tied)} % of the pot of {pot}"
    notes = [f"{decimal(numerator, denominator)} rounded down"] if numerator % denominator else []
    if tied > 1:
        places = f"{place} {'and' if tied == 2 else 'to'} {place + tied - 1}"
        notes.insert(0, f"shares {' + '.join(map(str, shares))} of places {places}, divided by {tied}")
    else:
        detail += f" for place {place}"
    assumes = ("winners",) if place == 1 and tied > 1 else ()
    return Term("share", numerator // denominator, detail, "; ".join(notes), assumes)


RULE = Rule(
    name="ante-pool",
    number=1,
    scale=1,
    params=AntePoolParams,
    columns=COLUMNS,
    prepare=prepare,
    table=no_table,
    refuse_params=refuse_params,
    check=check,
    score=score,
    explain=explain,
)

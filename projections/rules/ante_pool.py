"""Ante pool: every player antes a tenth of their points, and the pot is shared by place; victory points come on top.

    ante(X) = floor(points(X) / 10), but 0 below 10 points
    payout(X) = floor(pot * share(X) / 100)
    change    = payout - ante + victory points

(Babylon 5 CCG: League Play.) Tied players add up the shares of the tied places and divide them equally, in one floor:
floor(pot * sum of shares / (100 * number tied)). Victory points are minted; the rest of the pot is burned.

"If more than one person qualifies for a victory then the winners share the ante for their placings." With
`winners = "share"`, all players with a major victory are tied, and all with a standard one below them; power and
influence separate the others. With `"by_power"` they separate the winners as well.

    two standard victories at power 21 and 18, pot 40 of four players: 14 each (share), 16 and 12 (by_power)

Games larger than the largest row of `shares` use that row. Only ties among counted players matter.

    95 points ante 9; with 30 from three others the pot is 39, and the first of four gets 40 %, or 15
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
# The number of constants before the rows of shares.
HEAD = 3


class AntePoolParams(Params):
    """Parameters. `shares` has a row per number of players: the whole percentages of the pot, by place.

    The row `3 = [50, 30, 20]` is for three players. The rows have no gaps. Larger games use the largest row, so it
    ends with 0, the share of all places beyond its last. Games with fewer players than the smallest row are not
    scored. The ante is the points divided by `ante_divisor`. Several `winners` share equally, or are separated by
    power. Season 2010-2 begins with the second of `season_months` and ends before the next; without them, seasons have
    no dates.
    """

    start: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 100
    ante_divisor: Annotated[int, Field(ge=1, le=1_000_000)] = 10
    season_months: Annotated[list[Annotated[int, Field(ge=1, le=12)]], Field(max_length=12)] = []
    winners: Literal["share", "by_power"] = "by_power"
    shares: Rows


def refuse_params(params: AntePoolParams, players_max: int) -> str | None:
    """Return why the parameters cannot be used, or None. Prove that the largest pot fits a signed 64-bit integer.

    `score` forms no product larger than the pot.
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
    """Return the divisor of the ante, the players of the largest row, the column of places, and the rows of shares."""
    return params.ante_divisor, max(map(int, params.shares)), place_column(params), *flat_rows(params.shares)


def place_column(params: AntePoolParams) -> int:
    """Return the index of the column of places by which the pot is shared."""
    return WINNERS_PLACE if params.winners == "share" else PLACE


def check(n: int, columns: Columns, params: AntePoolParams) -> str | None:
    """Return why a game cannot be scored (too few seats, or two counted players of a seat), or None."""
    place, seats, status = columns[PLACE], columns[SEATS], columns[STATUS]
    if seats[0] < (least := min(map(int, params.shares))):
        return f"the ante pool needs at least {least} players, this game has {seats[0]}"
    return refuse_two_in_a_seat(place, status)


def ante(points: int, divisor: int) -> int:
    """Return what a player with this many points puts into the pot; never below zero."""
    return points // divisor if points > 0 else 0


def score(n: int, points: Numbers, columns: Columns, constants: Numbers, table: Numbers, change: Changes) -> int:
    """Fill in the changes. Return the victory points, which are minted."""
    place, seats, victory_points = columns[constants[2]], columns[SEATS], columns[VP]
    divisor, largest = constants[0], constants[1]
    size = min(seats[0], largest)
    row = HEAD + size * (size - 1) // 2 - 1
    pot = minted = 0
    for i in range(n):
        pot += ante(points[i], divisor)
    for i in range(n):
        tied = share = 0
        for j in range(n):
            if place[j] == place[i]:
                share += constants[row + min(place[i] + tied, size) - 1]
                tied += 1
        # The product pot * share might not fit 64 bits.
        whole = pot // (100 * tied)
        back = whole * share + (pot - whole * 100 * tied) * share // (100 * tied)
        change[i] = back - ante(points[i], divisor) + victory_points[i]
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
    return Term("ante", -amount, f"1/{divisor} of {points}" if points > 0 else f"nothing of {points}", note)


def _describe_share(pot: int, row: list[int], place: int, tied: int) -> Term:
    # Places beyond the end of the row have no share.
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

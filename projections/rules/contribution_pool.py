"""Contribution pool: the place decides what percentage of their points a player gives to those placed better.

    loss(X)  = floor(points(X) * contributions[seats][place(X)] / 100)
    gain(X)  = sum over every J placed worse:
               floor(points(J) * contributions[seats][place(J)] / ((place(J) - 1) * 100))
    bonus(X) = 100 if X played for more than 600 seconds

(Galactic Magnate, the page on the points of rated games.) seats is the number of seats at the start, so leavers do not
shrink it; points are those before the game. The floors are literal, also for points below zero, which an adjustment or
a negative start can cause.

The source says that losses equal gains. With its own floors they do not: the rest is burned, or goes to the winner with
`dust = "winner"` if only one player is placed first. Ties are not in the source: a tied player contributes by
competition place (1, 2, 2, 4), and place - 1 is the number of players placed strictly better. Bonuses are minted.

    four players at 1000, the last contributes 24 % of 1000, which is 240: 80 to each of the three placed better
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from ratings_ledger.projections.contract import (
    Changes,
    ClockTimers,
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
    told_sizes,
)

# The index of the rows of percentages among the constants.
ROWS_START = 3


class ContributionPoolParams(Params):
    """Parameters. `contributions` has a row of whole percentages, by place, for each number of players.

    Games of other sizes are not scored. The row `3 = [0, 13, 20]` is for three players; the first contributes nothing,
    because no player is placed better.
    """

    start: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 1000
    contributions: Rows
    bonus: Annotated[int, Field(ge=0, le=1_000_000)] = 100
    bonus_seconds: Annotated[int, Field(ge=0, le=1_000_000_000)] = 600
    dust: Literal["burn", "winner"] = "burn"
    timers: ClockTimers = ClockTimers()  # for the clocks of the games; the points do not depend on them


def refuse_params(params: ContributionPoolParams, players_max: int) -> str | None:
    """Return the problem with the parameters, or None.

    With up to 99 players of at most 10^16 units each, percentages up to 100 keep every product, and every sum of
    contributions and bonuses, within 10^18, which a signed 64-bit integer holds.
    """
    if reason := refuse_percentages("params.contributions", params.contributions):
        return reason
    for name, row in params.contributions.items():
        if row[0] != 0:
            return (
                f"params.contributions.{name}: the first player must contribute 0, not {row[0]}, because no player is "
                "placed better"
            )
    return None


def prepare(params: ContributionPoolParams) -> tuple[int, ...]:
    """Return the bonus, its seconds, whether the winner gets the dust, and the rows of percentages."""
    return params.bonus, params.bonus_seconds, int(params.dust == "winner"), *flat_rows(params.contributions)


def check(n: int, columns: Columns, params: ContributionPoolParams) -> str | None:
    """Return the reason why a game cannot be scored (no row for its size, or two players in a seat), or None."""
    place, seats, _, status = columns
    if str(seats[0]) not in params.contributions:
        sizes = told_sizes(params.contributions)
        return f"the contribution pool is defined for {sizes} players; this game has {seats[0]}"
    return refuse_two_in_a_seat(place, status)


def score(n: int, points: Numbers, columns: Columns, constants: Numbers, table: Numbers, change: Changes) -> int:
    """Fill in the changes. Return the bonuses, which are minted."""
    place, seats, seconds = columns[0], columns[1], columns[2]
    bonus, bonus_seconds, dust_to_winner = constants[0], constants[1], constants[2]
    row_start = ROWS_START + seats[0] * (seats[0] - 1) // 2 - 1  # the rows start at 2 players: see `flat_rows`
    for i in range(n):
        change[i] = 0
    minted = dust = winner_count = winner = 0
    for j in range(n):
        hundredths = points[j] * constants[row_start + place[j] - 1]
        contribution = hundredths // 100
        change[j] -= contribution
        dust += contribution
        for i in range(n):
            if place[i] < place[j]:
                gain = hundredths // ((place[j] - 1) * 100)
                change[i] += gain
                dust -= gain
        if seconds[j] > bonus_seconds:
            change[j] += bonus
            minted += bonus
        if place[j] == 1:
            winner_count += 1
            winner = j
    if dust_to_winner and winner_count == 1:
        change[winner] += dust
    return minted


def explain(
    n: int, names: Sequence[str], points: Numbers, columns: Columns, params: ContributionPoolParams, change: Numbers
) -> list[list[Term]]:
    """Return for every player the contribution, the gain from each player placed worse, the dust and the bonus."""
    place, seats, seconds = columns[0], columns[1], columns[2]
    row = params.contributions[str(seats[0])]
    details = [f"{row[place[i] - 1]} % of {points[i]}" for i in range(n)]
    hundredths = [points[i] * row[place[i] - 1] for i in range(n)]
    terms: list[list[Term]] = [
        [_make_floored_term("contributes", -1, hundredths[i], 100, f"{details[i]} at place {place[i]} of {seats[0]}")]
        if place[i] > 1
        else []
        for i in range(n)
    ]
    for j in range(n):
        better_count = place[j] - 1
        detail = details[j] if better_count == 1 else f"{details[j]}, shared among the {better_count} placed better"
        for i in range(n):
            if place[i] < place[j]:
                terms[i].append(_make_floored_term(f"from {names[j]}", 1, hundredths[j], 100 * better_count, detail))
    dust = -sum(term.amount for mine in terms for term in mine)
    winners = [i for i in range(n) if place[i] == 1]
    if params.dust == "winner" and len(winners) == 1 and dust:
        terms[winners[0]].append(Term("dust", dust, "the rest of all contributions after rounding down", "", ("dust",)))
    elif len(winners) == 1 and dust:
        # the rest is burned, which has no term of its own: mark the winner's last term as depending on `dust`
        terms[winners[0]][-1] = terms[winners[0]][-1]._replace(assumes=("dust",))
    for i in range(n):
        terms[i] += _explain_bonus(seconds[i], params)
    return terms


def _make_floored_term(term: str, sign: int, numerator: int, denominator: int, detail: str) -> Term:
    note = f"{decimal(numerator, denominator)} rounded down" if numerator % denominator else ""
    return Term(term, sign * (numerator // denominator), detail, note)


def _explain_bonus(seconds: int, params: ContributionPoolParams) -> list[Term]:
    """Return a term also for a missed bonus, but none if the playing time is unknown."""
    if seconds < 0 or not params.bonus:
        return []
    if seconds > params.bonus_seconds:
        return [Term("bonus", params.bonus, f"played {seconds} s, more than {params.bonus_seconds}")]
    return [Term("bonus", 0, f"played {seconds} s, not more than {params.bonus_seconds}")]


RULE = Rule(
    name="contribution-pool",
    number=1,
    scale=1,
    params=ContributionPoolParams,
    columns=("place", "seats", "seconds_played", "status"),
    prepare=prepare,
    table=no_table,
    refuse_params=refuse_params,
    check=check,
    score=score,
    explain=explain,
)

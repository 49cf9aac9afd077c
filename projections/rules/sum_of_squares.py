"""Sum of squares: a hundred points for every game of Diplomacy, shared in proportion to the squares of the centres.

    solo:   100 for the winner, nothing for the other players
    else:   100 * c^2 / S;  c: the centres of the power at the end;  S: the sum of c^2 over all seven powers

(The Diplomacy Association of Australia and New Zealand describes it as the Squares Scoring System.) Powers with the
same number of centres get the same points, whatever they held in earlier years.

S differs from game to game, and the least common multiple of its values has hundreds of digits, so no unit makes all
shares exact. Points are counted in millionths and rounded half up. A share is within half a millionth of the exact one,
and the points of a game add up to 100 within 0.0000035.

    12, 9, 8 and 5 centres: S = 144 + 81 + 64 + 25 = 314, so 45.859873, 25.796178, 20.382166 and 7.961783 points
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from ratings_ledger.projections.contract import Changes, Columns, Numbers, Rule, TableParams, Term, decimal, no_table

SCALE = 1_000_000
POWERS = 7
# The centres of the player's power, then the centres of all seven powers, by place.
COLUMNS = ("centres", *(f"centres_{place}" for place in range(1, POWERS + 1)))
CENTRES, FIRST = range(2)
# The constants in order.
SOLO, TOTAL = range(2)


class SumOfSquaresParams(TableParams):
    """Parameters. `points` is the total of a game; `solo` is the number of centres for a solo victory."""

    points: Annotated[int, Field(ge=1, le=10_000)] = 100
    solo: Annotated[int, Field(ge=1, le=34)] = 18


def refuse_params(params: SumOfSquaresParams, players_max: int) -> str | None:
    """Refuse nothing: the largest product is 2 * 10_000 * 10^6 * 34^2, below 10^14."""
    return None


def prepare(params: SumOfSquaresParams) -> tuple[int, ...]:
    """Return the centres of a solo, and the points of a game."""
    return params.solo, params.points


def check(n: int, columns: Columns, params: SumOfSquaresParams) -> str | None:
    """Return the reason why a game cannot be scored (no power holds a centre, so there are no shares), or None."""
    return None if sum_of_squares(0, columns) else "no power holds a centre at the end, so there are no shares"


def sum_of_squares(i: int, columns: Columns) -> int:
    """Return the sum of the squares of the centres of all powers in the game of participant i."""
    total = 0
    for place in range(POWERS):
        total += columns[FIRST + place][i] * columns[FIRST + place][i]
    return total


def score(n: int, points: Numbers, columns: Columns, constants: Numbers, table: Numbers, change: Changes) -> int:
    """Fill in the changes. Return their sum, which is minted."""
    minted = 0
    for i in range(n):
        centres, total = columns[CENTRES][i], constants[TOTAL] * SCALE
        # Only the power in first place can have a solo.
        if columns[FIRST][i] >= constants[SOLO]:
            change[i] = total if centres == columns[FIRST][i] else 0
        else:
            squares = sum_of_squares(i, columns)
            change[i] = (2 * total * centres * centres + squares) // (2 * squares)
        minted += change[i]
    return minted


def explain(
    n: int, names: Sequence[str], points: Numbers, columns: Columns, params: SumOfSquaresParams, change: Numbers
) -> list[list[Term]]:
    """Return for every player one term: the solo, or the share of the points."""
    return [[_explain_player(i, columns, params, change[i])] for i in range(n)]


def _explain_player(i: int, columns: Columns, params: SumOfSquaresParams, amount: int) -> Term:
    centres, first, squares = columns[CENTRES][i], columns[FIRST][i], sum_of_squares(i, columns)
    if first >= params.solo:
        if centres < first:
            return Term("another player's solo", amount, f"with {first} centres")
        return Term("solo", amount, f"{first} centres, {params.solo} are needed")
    exact = 2 * amount * squares == 2 * params.points * SCALE * centres * centres
    note = "" if exact else f"rounded to {decimal(1, SCALE)}"
    return Term("share", amount, f"{params.points} * {centres} * {centres} / {squares}", note)


def remark(n: int, names: Sequence[str], columns: Columns, params: SumOfSquaresParams) -> str:
    """Describe the solo or, without one, the sum of the squares."""
    if columns[FIRST][0] >= params.solo:
        return f"solo: {columns[FIRST][0]} centres"
    held = [columns[FIRST + place][0] for place in range(POWERS)]
    squares = " + ".join(str(centres * centres) for centres in held if centres)
    return f"no solo: the sum of the squares is {squares} = {sum_of_squares(0, columns)}"


RULE = Rule(
    name="sum-of-squares",
    number=1,
    scale=SCALE,
    params=SumOfSquaresParams,
    columns=COLUMNS,
    prepare=prepare,
    table=no_table,
    refuse_params=refuse_params,
    check=check,
    score=score,
    explain=explain,
    ranking="table",
    counted_min=1,
    remark=remark,
    adds=True,
)

"""Annual places: the annual list sums the best monthly places. Games give no points.

    value = the sum of the player's `months` best places on the monthly lists of the ruleset `of`;
            a missing place counts as `missing`

(Catan Online World, annual list: the four best monthly places, place 150 for a missing month.) With `account`,
only players who have that account at the year's end are ranked, except on lists whose `group` is in `any_account`.

    places 1 and 3 in two months, no place in the others: 1 + 3 + 150 + 150 = 304
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from ratings_ledger.projections.contract import Changes, Columns, Numbers, Params, Rule, Term, no_table


class AnnualPlacesParams(Params):
    """Parameters. `of` is the ruleset of the monthly lists, which are partitioned by city, group and month.

    With `cap_at_missing`, a place worse than `missing` counts as `missing`.
    """

    of: str
    months: Annotated[int, Field(ge=1, le=12)] = 4
    missing: Annotated[int, Field(ge=1, le=1_000_000)] = 150
    cap_at_missing: bool = False
    account: Literal["premium", "free"] | None = None
    any_account: list[str] = []
    substitution: Literal["both", "leaver", "substitute", "none"] = "none"


def refuse_params(params: AnnualPlacesParams, players_max: int) -> str | None:
    """Refuse parameters of running points, which an annual list does not have.

    No overflow check is needed, because sums of places are small.
    """
    for key in ("start", "min_games", "carry_over", "substitution"):
        if getattr(params, key) != AnnualPlacesParams.model_fields[key].default:
            return (
                f"params.{key}: an annual list has no games of its own; remove this parameter and set it in the "
                "ruleset of the monthly lists"
            )
    return None


def prepare(params: AnnualPlacesParams) -> tuple[int, ...]:
    """Return no constants, because games give no points."""
    return ()


def score(n: int, points: Numbers, columns: Columns, constants: Numbers, table: Numbers, change: Changes) -> int:
    """Leave all points as they are: places come from the monthly lists."""
    for i in range(n):
        change[i] = 0
    return 0


def explain(
    n: int, names: Sequence[str], points: Numbers, columns: Columns, params: AnnualPlacesParams, change: Numbers
) -> list[list[Term]]:
    """Return no terms."""
    return [[] for _ in range(n)]


RULE = Rule(
    name="annual-places",
    number=1,
    scale=1,
    params=AnnualPlacesParams,
    columns=("place",),
    prepare=prepare,
    table=no_table,
    refuse_params=refuse_params,
    check=None,
    score=score,
    explain=explain,
    ranking="annual",
    counted_min=1,
)

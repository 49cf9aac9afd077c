"""C-Diplo: a hundred points for every game of Diplomacy, for centres and for the three best powers.

    solo:   100 for the winner, nothing for the other players
    else:   1 for taking part + 1 for every centre + 38, 14 and 7 for the three powers with the most centres

(B.-A. Giraudon; the World Diplomacy Database describes it as C-Diplo 100.) Powers with the same number of centres
share the points of their places equally, so only the final centres count. Eliminated powers take part, too. The map
has 34 centres: if all are held, 7 + 34 + 38 + 14 + 7 = 100 points are given.

Points are counted in units of 1/840. Every number of powers that can share divides 840, so every share is exact.

    17 centres each for two powers, none for five: 1 + 17 + (38 + 14) / 2 = 44 twice, and 1 + 7 / 5 = 2.4 five times
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from ratings_ledger.projections.contract import Changes, Columns, Numbers, Rule, TableParams, Term, no_table

# Divisible by 1 to 7.
SCALE = 840
POWERS = 7
# The centres of the player's power, then the centres of all seven powers, by place.
COLUMNS = ("centres", *(f"centres_{place}" for place in range(1, POWERS + 1)))
CENTRES, FIRST = range(2)
# The constants in order. The points of all seven places start at PLACEMENT.
SOLO, SOLO_POINTS, PARTICIPATION, PER_CENTRE, PLACEMENT = range(5)

Award = Annotated[int, Field(ge=0, le=10_000)]


class CDiploParams(TableParams):
    """Points; `placement` begins with first place. `solo` is the number of centres for a solo victory."""

    placement: Annotated[list[Award], Field(min_length=1, max_length=POWERS)] = [38, 14, 7]
    participation: Award = 1
    per_centre: Award = 1
    solo: Annotated[int, Field(ge=1, le=34)] = 18
    solo_points: Award = 100


def refuse_params(params: CDiploParams, players_max: int) -> str | None:
    """Refuse nothing: no player gets more than 34 + 1 + 7 awards, so no sum in units exceeds 10^9."""
    return None


def prepare(params: CDiploParams) -> tuple[int, ...]:
    """Return the centres of a solo, the points for a solo, for taking part and for a centre, then for all places."""
    unpaid = [0] * (POWERS - len(params.placement))
    return params.solo, params.solo_points, params.participation, params.per_centre, *params.placement, *unpaid


def powers_ahead(i: int, columns: Columns) -> int:
    """Count the powers in the game of participant i that have more centres."""
    ahead = 0
    for place in range(POWERS):
        ahead += int(columns[FIRST + place][i] > columns[CENTRES][i])
    return ahead


def powers_level(i: int, columns: Columns) -> int:
    """Count the powers in the game of participant i with the same number of centres, including the participant's."""
    level = 0
    for place in range(POWERS):
        level += int(columns[FIRST + place][i] == columns[CENTRES][i])
    return level


def placement_share(i: int, columns: Columns, constants: Numbers) -> int:
    """Return participant i's share, in units, of the points for the places that their power shares."""
    ahead, level = powers_ahead(i, columns), powers_level(i, columns)
    pooled = 0
    for place in range(ahead, ahead + level):
        pooled += constants[PLACEMENT + place]
    return pooled * SCALE // level


def score(n: int, points: Numbers, columns: Columns, constants: Numbers, table: Numbers, change: Changes) -> int:
    """Fill in the changes. Return their sum, which is minted."""
    minted = 0
    for i in range(n):
        centres = columns[CENTRES][i]
        # Only the power in first place can have a solo.
        if columns[FIRST][i] >= constants[SOLO]:
            change[i] = constants[SOLO_POINTS] * SCALE if centres == columns[FIRST][i] else 0
        else:
            flat = constants[PARTICIPATION] + constants[PER_CENTRE] * centres
            change[i] = flat * SCALE + placement_share(i, columns, constants)
        minted += change[i]
    return minted


def explain(
    n: int, names: Sequence[str], points: Numbers, columns: Columns, params: CDiploParams, change: Numbers
) -> list[list[Term]]:
    """Return for every player the points for the solo, or for centres, place and taking part."""
    return [_explain_player(i, columns, prepare(params)) for i in range(n)]


def _explain_player(i: int, columns: Columns, constants: Numbers) -> list[Term]:
    centres, first = columns[CENTRES][i], columns[FIRST][i]
    if first >= constants[SOLO]:
        if centres < first:
            return [Term("another player's solo", 0, f"with {first} centres")]
        return [Term("solo", constants[SOLO_POINTS] * SCALE, f"{first} centres, {constants[SOLO]} are needed")]
    return [
        Term("taking part", constants[PARTICIPATION] * SCALE, "for every player"),
        Term("centres", constants[PER_CENTRE] * centres * SCALE, f"{constants[PER_CENTRE]} for each of {centres}"),
        _explain_placement(i, columns, constants),
    ]


def _explain_placement(i: int, columns: Columns, constants: Numbers) -> Term:
    place, level = powers_ahead(i, columns) + 1, powers_level(i, columns)
    amount = placement_share(i, columns, constants)
    if level == 1:
        return Term(f"place {place}", amount, f"with {columns[CENTRES][i]} centres")
    last = place + level - 1
    awards = [constants[PLACEMENT + shared_place - 1] for shared_place in range(place, last + 1)]
    shared = " + ".join(str(award) for award in awards if award) or "0"
    detail = f"{shared} of places {place} {'and' if level == 2 else 'to'} {last}, shared by {level}"
    return Term(f"place {place}", amount, detail)


def remark(n: int, names: Sequence[str], columns: Columns, params: CDiploParams) -> str:
    """Describe whether the game ended with a solo, and the lead of the first power."""
    first, second = columns[FIRST][0], columns[FIRST + 1][0]
    return f"{'solo' if first >= params.solo else 'no solo'}: {first} centres against the second's {second}"


RULE = Rule(
    name="c-diplo",
    number=1,
    scale=SCALE,
    params=CDiploParams,
    columns=COLUMNS,
    prepare=prepare,
    table=no_table,
    refuse_params=refuse_params,
    check=None,
    score=score,
    explain=explain,
    ranking="table",
    counted_min=1,
    remark=remark,
    adds=True,
)

"""Italia 2010: Diplomacy scored by centres, placement, lead, and how many powers survived.

    M     = per_centre * centres + placement + break or no break + participation
    final = M * (1 + TSS),  TSS = 10 % * (number of powers with at least 3 centres - 1)

(Italia 2010, C-Diplo family.) Break: the first has at least 3 centres more than the second, and gets 30 points more. No
break: everybody else with a centre gets 10 more. Solo, 18 centres: the winner gets the break and 170 more in M, all
others get exactly 1. Players without a centre get exactly 1.

Departures, by `no_break`: the page says "+10 %", its example says 10 points. `flat10_pre_tss` adds points to M,
`flat10_second_only` only for the second, `flat10_post_tss` to the final; `pct_add` adds the percentage to TSS, and
`pct_mult` applies it to M before TSS. TSS is never below 0. The page lists 1 point per centre; its example implies 4.

Points are counted in hundredths, and no result is finer: M is whole, and TSS is a whole percentage of it.

    solo with 18 centres, four powers with at least 3: (70 + 30 + 170 + 72 + 1) * 1.3 = 445.9
"""

from collections.abc import Sequence
from typing import Annotated, Literal, get_args

from pydantic import Field

from ratings_ledger.projections.contract import (
    Changes,
    Columns,
    Numbers,
    Rule,
    TableParams,
    Term,
    decimal,
    joined,
    no_table,
)

SCALE = 100
POWERS = 7
NoBreak = Literal["flat10_pre_tss", "pct_add", "pct_mult", "flat10_second_only", "flat10_post_tss"]
PRE_TSS, PCT_ADD, PCT_MULT, SECOND_ONLY, POST_TSS = range(5)
COLUMNS = ("place", "centres", *(f"centres_{place}" for place in range(1, POWERS + 1)))
# the centres of the first, second ... seventh place start at FIRST
PLACE, CENTRES, FIRST, SECOND = range(4)
# the constants in order; from PLACEMENT on, the points of all seven places
(
    PER_CENTRE, PARTICIPATION, BREAK, MARGIN, VARIANT, BONUS, TSS, TSS_CENTRES, SOLO, SOLO_BONUS, ELIMINATED, PLACEMENT,
) = range(12)  # fmt: skip

Award = Annotated[int, Field(ge=0, le=10_000)]


class ItaliaParams(TableParams):
    """Points, `placement` from first place on; `tss` is a percentage, `no_break_bonus` may be one.

    The losers of a solo get what eliminated players get.
    """

    placement: Annotated[list[Award], Field(min_length=1, max_length=POWERS)] = [70, 34, 16]
    per_centre: Award = 4
    participation: Award = 1
    break_bonus: Award = 30
    break_margin: Annotated[int, Field(ge=1, le=34)] = 3
    no_break: NoBreak = "flat10_pre_tss"
    no_break_bonus: Award = 10
    tss: Annotated[int, Field(ge=0, le=1_000)] = 10
    tss_centres: Annotated[int, Field(ge=1, le=34)] = 3
    solo: Annotated[int, Field(ge=1, le=34)] = 18
    solo_bonus: Award = 170
    eliminated: Award = 1


def refuse_params(params: ItaliaParams, players_max: int) -> str | None:
    """Why the parameters cannot be used, or None; M is below 10^6 and every product below 10^14.

    M * (1 + 10 %) * (1 + TSS) in hundredths is whole if the product of both percentages is a multiple of 100.
    """
    if params.no_break == "pct_mult" and params.no_break_bonus * params.tss % 100:
        return (
            f"params.no_break_bonus: {params.no_break_bonus} % of {params.tss} % is finer than a hundredth of a point"
        )
    return None


def prepare(params: ItaliaParams) -> tuple[int, ...]:
    """The points and percentages, then the placements of all seven."""
    return (
        params.per_centre, params.participation, params.break_bonus, params.break_margin,
        get_args(NoBreak).index(params.no_break), params.no_break_bonus, params.tss, params.tss_centres, params.solo,
        params.solo_bonus, params.eliminated, *params.placement, *[0] * (POWERS - len(params.placement)),
    )  # fmt: skip


def is_solo(i: int, columns: Columns, constants: Numbers) -> bool:
    """Whether the game of participant i ended with a solo."""
    return columns[FIRST][i] >= constants[SOLO]


def is_break(i: int, columns: Columns, constants: Numbers) -> bool:
    """Whether the first in the game of participant i leads by enough."""
    return columns[FIRST][i] - columns[SECOND][i] >= constants[MARGIN]


def is_out(i: int, columns: Columns, constants: Numbers) -> bool:
    """Whether participant i has no centre, or somebody else has a solo."""
    return columns[CENTRES][i] == 0 or (columns[PLACE][i] > 1 and is_solo(i, columns, constants))


def modified(i: int, columns: Columns, constants: Numbers) -> int:
    """M of participant i in points, without what they get if there is no break."""
    place = columns[PLACE][i]
    found = constants[PER_CENTRE] * columns[CENTRES][i] + constants[PLACEMENT + place - 1] + constants[PARTICIPATION]
    solo = is_solo(i, columns, constants)
    if place == 1 and (solo or is_break(i, columns, constants)):
        found += constants[BREAK]
    return found + constants[SOLO_BONUS] if solo else found


def no_break(i: int, columns: Columns, constants: Numbers, base: int) -> int:
    """What participant i gets in hundredths if there is no break, given their M without it."""
    place, variant = columns[PLACE][i], constants[VARIANT]
    if place == 1 or is_break(i, columns, constants) or (variant == SECOND_ONLY and place > 2):
        return 0
    return constants[BONUS] * (base if variant in (PCT_ADD, PCT_MULT) else SCALE)


def survivors(i: int, columns: Columns, constants: Numbers) -> int:
    """How many powers in the game of participant i have at least `tss_centres`."""
    found = 0
    for place in range(POWERS):
        found += int(columns[FIRST + place][i] >= constants[TSS_CENTRES])
    return found


def tss(i: int, columns: Columns, constants: Numbers, base: int, extra: int) -> int:
    """What TSS adds for participant i in hundredths, given their M and what no break gives them."""
    percentage = constants[TSS] * max(survivors(i, columns, constants) - 1, 0)
    if constants[VARIANT] in (PCT_ADD, POST_TSS):
        return base * percentage
    return (base * SCALE + extra) * percentage // 100


def score(n: int, points: Numbers, columns: Columns, constants: Numbers, table: Numbers, change: Changes) -> int:
    """Fill in the changes; returns their sum, which is minted."""
    minted = 0
    for i in range(n):
        change[i] = constants[ELIMINATED] * SCALE
        if not is_out(i, columns, constants):
            base = modified(i, columns, constants)
            extra = no_break(i, columns, constants, base)
            change[i] = base * SCALE + extra + tss(i, columns, constants, base, extra)
        minted += change[i]
    return minted


def explain(
    n: int, names: Sequence[str], points: Numbers, columns: Columns, params: ItaliaParams, change: Numbers
) -> list[list[Term]]:
    """For every player, each bonus in the order of the formula, and what TSS makes of their sum."""
    return [_terms(i, columns, prepare(params)) for i in range(n)]


def _terms(i: int, columns: Columns, constants: Numbers) -> list[Term]:
    centres, first, second = columns[CENTRES][i], columns[FIRST][i], columns[SECOND][i]
    if is_out(i, columns, constants):
        name, why = ("solo of another", f"with {first} centres") if centres else ("eliminated", "no centre left")
        return [Term(name, constants[ELIMINATED] * SCALE, why)]
    base, least, each = modified(i, columns, constants), constants[TSS_CENTRES], constants[PER_CENTRE]
    extra = no_break(i, columns, constants, base)
    of = decimal(base * SCALE + (0 if constants[VARIANT] in (PCT_ADD, POST_TSS) else extra), SCALE)
    alive = survivors(i, columns, constants)
    told = f"{alive} powers have at least {least} centres: {alive - 1} times {constants[TSS]} % of {of}"
    lost = Term("no break", extra, f"the first has {first} centres, the second {second}", "", ("no_break",))
    added = Term("TSS", tss(i, columns, constants, base, extra), told)
    return [
        Term("centres", each * centres * SCALE, f"{each} for each of {centres}", "", ("per_centre",)),
        *_placement(i, columns, constants),
        Term("participation", constants[PARTICIPATION] * SCALE, "for everybody with a centre"),
        *[term for term in ([added, lost] if constants[VARIANT] == POST_TSS else [lost, added]) if term.amount],
    ]


def _placement(i: int, columns: Columns, constants: Numbers) -> list[Term]:
    """The points of a place; for the first, also the solo, the break, or why there is none."""
    place, first, second = columns[PLACE][i], columns[FIRST][i], columns[SECOND][i]
    tied = sum(columns[FIRST + other][i] == columns[CENTRES][i] for other in range(POWERS)) > 1
    told = "centres of several powers are equal: the years before decide, then the power" if tied else "by centres"
    terms = [Term(f"place {place}", constants[PLACEMENT + place - 1] * SCALE, told)]
    if is_solo(i, columns, constants):
        terms.append(Term("break", constants[BREAK] * SCALE, "part of a solo"))
        terms.append(Term("solo", constants[SOLO_BONUS] * SCALE, f"{first} centres, {constants[SOLO]} are needed"))
    elif place == 1:
        lead = f"{first} centres, the second has {second}; {constants[MARGIN]} more are needed"
        terms.append(Term("break", constants[BREAK] * SCALE * is_break(i, columns, constants), lead))
    return terms


def remark(n: int, names: Sequence[str], columns: Columns, params: ItaliaParams) -> str:
    """Who won the game, and whether with a solo, with a break or without."""
    constants, first, second = prepare(params), columns[FIRST][0], columns[SECOND][0]
    won = [names[i] for i in range(n) if columns[PLACE][i] == 1]
    who = f"won by {joined(won)}, " if won else ""
    kind = "solo" if is_solo(0, columns, constants) else "break" if is_break(0, columns, constants) else "no break"
    return f"{who}{kind}: {first} centres against {second} of the second"


RULE = Rule(
    name="italia", number=1, scale=SCALE, params=ItaliaParams, columns=COLUMNS, prepare=prepare, table=no_table,
    refuse_params=refuse_params, check=None, score=score, explain=explain, ranking="table", counted_min=1,
    remark=remark,
)  # fmt: skip

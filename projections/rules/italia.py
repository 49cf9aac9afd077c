"""Italia 2010: Diplomacy scored by centres, placement, lead, and how many powers keep at least 3 centres.

    M     = per_centre * centres + placement + break or no break + participation
    final = M * (1 + TSS),  TSS = 10 % * (number of powers with at least 3 centres - 1)

(Italia 2010, C-Diplo family.) Break: the first has at least 3 centres more than the second, and gets 30 points more. No
break: every other player with a centre gets 10 more. Solo, 18 centres: the winner gets the break and 170 more in M, all
others get exactly 1. Players without a centre get exactly 1.

For no break, the page says "+10 %", but its example adds 10 points. The parameter `no_break` selects a reading:
`flat10_pre_tss` adds points to M, `flat10_second_only` only for the second, `flat10_post_tss` to the final; `pct_add`
adds the percentage to TSS, and `pct_mult` applies it to M before TSS. TSS is never below 0. The page lists 1 point per
centre; its example implies 4.

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
# The centres of the first, second ... seventh place start at FIRST.
PLACE, CENTRES, FIRST, SECOND = range(4)
# The constants in order. From PLACEMENT on come the points of all seven places.
(
    PER_CENTRE,
    PARTICIPATION,
    BREAK,
    MARGIN,
    VARIANT,
    BONUS,
    TSS,
    TSS_CENTRES,
    SOLO,
    SOLO_BONUS,
    ELIMINATED,
    PLACEMENT,
) = range(12)

Award = Annotated[int, Field(ge=0, le=10_000)]


class ItaliaParams(TableParams):
    """The parameters, in points. `placement` begins with first place.

    `tss` is a percentage, and so is `no_break_bonus` under `pct_add` and `pct_mult`.
    After a solo, all other players get `eliminated` points, as eliminated players do.
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
    """Return the problem with the parameters, or None.

    Overflow needs no check: M is below 10^6, and every product is below 10^14.
    M * (1 + 10 %) * (1 + TSS) in hundredths is whole if the product of both percentages is a multiple of 100.
    """
    if params.no_break == "pct_mult" and params.no_break_bonus * params.tss % 100:
        return (
            f"params.no_break_bonus: {params.no_break_bonus} % of {params.tss} % is finer than a hundredth of a point; "
            "choose percentages whose product is a multiple of 100"
        )
    return None


def prepare(params: ItaliaParams) -> tuple[int, ...]:
    """Return the points and percentages, then the points of all seven places."""
    return (
        params.per_centre,
        params.participation,
        params.break_bonus,
        params.break_margin,
        get_args(NoBreak).index(params.no_break),
        params.no_break_bonus,
        params.tss,
        params.tss_centres,
        params.solo,
        params.solo_bonus,
        params.eliminated,
        *params.placement,
        *[0] * (POWERS - len(params.placement)),
    )


def is_solo(i: int, columns: Columns, constants: Numbers) -> bool:
    """Tell whether the game of participant i ended with a solo."""
    return columns[FIRST][i] >= constants[SOLO]


def is_break(i: int, columns: Columns, constants: Numbers) -> bool:
    """Tell whether the first in the game of participant i leads by enough for the break."""
    return columns[FIRST][i] - columns[SECOND][i] >= constants[MARGIN]


def is_out(i: int, columns: Columns, constants: Numbers) -> bool:
    """Tell whether participant i has no centre, or another player has a solo."""
    return columns[CENTRES][i] == 0 or (columns[PLACE][i] > 1 and is_solo(i, columns, constants))


def base_points(i: int, columns: Columns, constants: Numbers) -> int:
    """Return M of participant i in points, without the points for no break."""
    place = columns[PLACE][i]
    points = constants[PER_CENTRE] * columns[CENTRES][i] + constants[PLACEMENT + place - 1] + constants[PARTICIPATION]
    solo = is_solo(i, columns, constants)
    if place == 1 and (solo or is_break(i, columns, constants)):
        points += constants[BREAK]
    return points + constants[SOLO_BONUS] if solo else points


def no_break_points(i: int, columns: Columns, constants: Numbers, base: int) -> int:
    """Return the points of participant i for no break, in hundredths. `base` is their M without these points."""
    place, variant = columns[PLACE][i], constants[VARIANT]
    if place == 1 or is_break(i, columns, constants) or (variant == SECOND_ONLY and place > 2):
        return 0
    return constants[BONUS] * (base if variant in (PCT_ADD, PCT_MULT) else SCALE)


def count_strong_powers(i: int, columns: Columns, constants: Numbers) -> int:
    """Count the powers in the game of participant i that have at least `tss_centres` centres."""
    count = 0
    for place in range(POWERS):
        count += int(columns[FIRST + place][i] >= constants[TSS_CENTRES])
    return count


def tss_points(i: int, columns: Columns, constants: Numbers, base: int, extra: int) -> int:
    """Return the points that TSS adds for participant i, in hundredths, given M and the points for no break."""
    percentage = constants[TSS] * max(count_strong_powers(i, columns, constants) - 1, 0)
    if constants[VARIANT] in (PCT_ADD, POST_TSS):
        return base * percentage
    return (base * SCALE + extra) * percentage // 100


def score(n: int, points: Numbers, columns: Columns, constants: Numbers, table: Numbers, change: Changes) -> int:
    """Fill in the changes. Return their sum, which is minted."""
    minted = 0
    for i in range(n):
        change[i] = constants[ELIMINATED] * SCALE
        if not is_out(i, columns, constants):
            base = base_points(i, columns, constants)
            extra = no_break_points(i, columns, constants, base)
            change[i] = base * SCALE + extra + tss_points(i, columns, constants, base, extra)
        minted += change[i]
    return minted


def explain(
    n: int, names: Sequence[str], points: Numbers, columns: Columns, params: ItaliaParams, change: Numbers
) -> list[list[Term]]:
    """Return for every player the bonuses in the order of the formula, and the points that TSS adds to their sum."""
    return [_explain_player(i, columns, prepare(params)) for i in range(n)]


def _explain_player(i: int, columns: Columns, constants: Numbers) -> list[Term]:
    centres, first, second = columns[CENTRES][i], columns[FIRST][i], columns[SECOND][i]
    if is_out(i, columns, constants):
        if centres:
            return [Term("another player's solo", constants[ELIMINATED] * SCALE, f"with {first} centres")]
        return [Term("eliminated", constants[ELIMINATED] * SCALE, "no centre left")]
    base, least, each = base_points(i, columns, constants), constants[TSS_CENTRES], constants[PER_CENTRE]
    extra = no_break_points(i, columns, constants, base)
    whole = decimal(base * SCALE + (0 if constants[VARIANT] in (PCT_ADD, POST_TSS) else extra), SCALE)
    strong_powers = count_strong_powers(i, columns, constants)
    detail = (
        f"{strong_powers} powers have at least {least} centres: {strong_powers - 1} times {constants[TSS]} % of {whole}"
    )
    no_break_term = Term("no break", extra, f"the first has {first} centres, the second {second}", "", ("no_break",))
    tss_term = Term("TSS", tss_points(i, columns, constants, base, extra), detail)
    bonus_terms = [tss_term, no_break_term] if constants[VARIANT] == POST_TSS else [no_break_term, tss_term]
    return [
        Term("centres", each * centres * SCALE, f"{each} for each of {centres}", "", ("per_centre",)),
        *_explain_placement(i, columns, constants),
        Term("participation", constants[PARTICIPATION] * SCALE, "for every player with a centre"),
        *[term for term in bonus_terms if term.amount],
    ]


def _explain_placement(i: int, columns: Columns, constants: Numbers) -> list[Term]:
    """Return the term for the place and, for the first player, those for a solo, or for a break (0 without one)."""
    place, first, second = columns[PLACE][i], columns[FIRST][i], columns[SECOND][i]
    tied = sum(columns[FIRST + power][i] == columns[CENTRES][i] for power in range(POWERS)) > 1
    tie_break = "tied on centres; decided by the centres of earlier years, then by the order of powers"
    detail = tie_break if tied else "by centres"
    terms = [Term(f"place {place}", constants[PLACEMENT + place - 1] * SCALE, detail)]
    if is_solo(i, columns, constants):
        terms.append(Term("break", constants[BREAK] * SCALE, "part of a solo"))
        terms.append(Term("solo", constants[SOLO_BONUS] * SCALE, f"{first} centres, {constants[SOLO]} are needed"))
    elif place == 1:
        lead = f"{first} centres against the second's {second}; a lead of {constants[MARGIN]} is needed"
        terms.append(Term("break", constants[BREAK] * SCALE * is_break(i, columns, constants), lead))
    return terms


def remark(n: int, names: Sequence[str], columns: Columns, params: ItaliaParams) -> str:
    """Describe who won the game, and whether with a solo, with a break or without."""
    constants, first, second = prepare(params), columns[FIRST][0], columns[SECOND][0]
    winners = [names[i] for i in range(n) if columns[PLACE][i] == 1]
    result = f"won by {joined(winners)}, " if winners else ""
    kind = "solo" if is_solo(0, columns, constants) else "break" if is_break(0, columns, constants) else "no break"
    return f"{result}{kind}: {first} centres against the second's {second}"


RULE = Rule(
    name="italia",
    number=1,
    scale=SCALE,
    params=ItaliaParams,
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
)

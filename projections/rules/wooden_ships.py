"""Wooden Ships & Iron Men: points for the result of a side; sunk ships earn no points.

    victory   of the only side with ships left, else of the side with more game points; overwhelming with twice as many
    tie       equal game points, with ships left on both sides or on neither
    draw      by agreement

(Youplay, the administrator's forum posts on WS&IM leagues: the trial rules, and the rules for leagues numbered 7150 and
later.) Players who surrendered get `surrendered` whatever the result. The comparisons are literal: 20 against 0 is
overwhelming, 0 against 0 is at least twice as many, but not more.

The trial has three more rules. With `overwhelming_for = "survivors"`, only players who finished with ships left get the
points for an overwhelming victory. Among the players of the side that did not win (in a tie: of both sides),
`top_scorer` goes to the player with more game points than all others, unless they surrendered or the battle was drawn.
`sunk_without_points` is a penalty for winners who scored nothing and lost all their ships.

    20 against 10: overwhelming if at least twice as many are enough, a victory if it must be more
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from ratings_ledger.projections.contract import (
    FINISHED,
    SURRENDERED,
    Changes,
    Columns,
    Numbers,
    Rule,
    TableParams,
    Term,
    joined,
    no_table,
)

COLUMNS = (
    "side_units",
    "side_units_lost",
    "side_points",
    "enemy_units",
    "enemy_units_lost",
    "enemy_points",
    "agreed_draw",
    "mates_best",
    "enemies_best",
    "game_points",
    "units",
    "units_lost",
    "status",
)
(
    SIDE_UNITS,
    SIDE_LOST,
    SIDE_POINTS,
    ENEMY_UNITS,
    ENEMY_LOST,
    ENEMY_POINTS,
    AGREED_DRAW,
    MATES_BEST,
    ENEMIES_BEST,
    GAME_POINTS,
    UNITS,
    LOST,
    STATUS,
) = range(len(COLUMNS))
# The constants in order. The first four are also results of a side.
DRAW, TIE, VICTORY, OVERWHELMING, DEFEAT, SURRENDER, TOP_SCORER, SUNK, FACTOR, STRICTLY, SURVIVORS = range(11)

Award = Annotated[int, Field(ge=0, le=1_000)]


class WoodenShipsParams(TableParams):
    """Points by result. The defaults are those of leagues numbered 7150 and later, with none for individual players.

    A victory is overwhelming with at least (`>=`) or more than (`>`) `overwhelming_factor` times the enemy's points.
    """

    victory: Award = 3
    overwhelming: Award = 4
    overwhelming_factor: Annotated[int, Field(ge=1, le=1_000)] = 2
    overwhelming_comparison: Literal[">=", ">"] = ">"
    overwhelming_for: Literal["everybody", "survivors"] = "everybody"
    tie: Award = 1
    draw: Award = 1
    defeat: Award = 0
    surrendered: Award = 0
    top_scorer: Award = 0
    sunk_without_points: Annotated[int, Field(ge=-1_000, le=0)] = 0


def refuse_params(params: WoodenShipsParams, players_max: int) -> str | None:
    """Refuse nothing: with up to 4,096 players with at most 10^6 game points each, every product is below 10^13."""
    return None


def prepare(params: WoodenShipsParams) -> tuple[int, ...]:
    """Return the points by result and for individual players, then the conditions of an overwhelming victory."""
    return (
        params.draw,
        params.tie,
        params.victory,
        params.overwhelming,
        params.defeat,
        params.surrendered,
        params.top_scorer,
        params.sunk_without_points,
        params.overwhelming_factor,
        int(params.overwhelming_comparison == ">"),
        int(params.overwhelming_for == "survivors"),
    )


def result(i: int, columns: Columns, factor: int, strictly: int) -> int:
    """Return the result of participant i's side: DRAW, TIE, VICTORY or OVERWHELMING; negative for a defeat."""
    if columns[AGREED_DRAW][i]:
        return DRAW
    points, enemy_points = columns[SIDE_POINTS][i], columns[ENEMY_POINTS][i]
    is_afloat = columns[SIDE_LOST][i] < columns[SIDE_UNITS][i]
    is_enemy_afloat = columns[ENEMY_LOST][i] < columns[ENEMY_UNITS][i]
    if is_afloat == is_enemy_afloat and points == enemy_points:
        return TIE
    has_won = points > enemy_points if is_afloat == is_enemy_afloat else is_afloat
    winners, losers = (points, enemy_points) if has_won else (enemy_points, points)
    is_overwhelming = winners > factor * losers or (not strictly and winners == factor * losers)
    return (OVERWHELMING if is_overwhelming else VICTORY) * (1 if has_won else -1)


def is_survivor(i: int, columns: Columns) -> bool:
    """Tell whether participant i finished the game with ships left."""
    return columns[STATUS][i] == FINISHED and columns[LOST][i] < columns[UNITS][i]


def award(i: int, columns: Columns, constants: Numbers, outcome: int) -> int:
    """Return participant i's points for the result of their side."""
    if columns[STATUS][i] == SURRENDERED:
        return constants[SURRENDER]
    if outcome == OVERWHELMING and constants[SURVIVORS] and not is_survivor(i, columns):
        return constants[VICTORY]
    return constants[outcome if outcome >= DRAW else DEFEAT]


def bonus(i: int, columns: Columns, constants: Numbers, outcome: int) -> int:
    """Return participant i's points as the top scorer, or the penalty for a winner who was sunk without points."""
    mine, rivals_best = columns[GAME_POINTS][i], columns[MATES_BEST][i]
    if columns[STATUS][i] == SURRENDERED or outcome == DRAW:
        return 0
    if outcome >= VICTORY:
        sunk = mine == 0 and columns[LOST][i] == columns[UNITS][i] and columns[UNITS][i] > 0
        return constants[SUNK] if sunk else 0
    if outcome == TIE:
        rivals_best = max(rivals_best, columns[ENEMIES_BEST][i])
    return constants[TOP_SCORER] if mine > max(rivals_best, 0) else 0


def score(n: int, points: Numbers, columns: Columns, constants: Numbers, table: Numbers, change: Changes) -> int:
    """Fill in the changes. Return the sum of the positive ones, which is minted."""
    minted = 0
    for i in range(n):
        outcome = result(i, columns, constants[FACTOR], constants[STRICTLY])
        change[i] = award(i, columns, constants, outcome) + bonus(i, columns, constants, outcome)
        minted += max(change[i], 0)
    return minted


def explain(
    n: int, names: Sequence[str], points: Numbers, columns: Columns, params: WoodenShipsParams, change: Numbers
) -> list[list[Term]]:
    """Return for every player a term for the result of their side and, if there is one, for the bonus or penalty."""
    constants = prepare(params)
    terms = []
    for i in range(n):
        outcome = result(i, columns, constants[FACTOR], constants[STRICTLY])
        extra = bonus(i, columns, constants, outcome)
        terms.append(
            [_explain_result(i, columns, params, outcome), *([_explain_bonus(i, columns, extra)] if extra else [])]
        )
    return terms


def _explain_result(i: int, columns: Columns, params: WoodenShipsParams, outcome: int) -> Term:
    amount = award(i, columns, prepare(params), outcome)
    name = ("draw", "tie", "victory", "overwhelming victory")[outcome] if outcome >= DRAW else "defeat"
    if columns[STATUS][i] == SURRENDERED:
        return Term("surrendered", amount, f"whatever the result, here {name}")
    return Term(name, amount, _describe_reason(i, columns, params, outcome))


def _describe_reason(i: int, columns: Columns, params: WoodenShipsParams, outcome: int) -> str:
    """Describe what decided the result, from the view of participant i's side."""
    if outcome == DRAW:
        return "agreed by the players"
    points, enemy_points = columns[SIDE_POINTS][i], columns[ENEMY_POINTS][i]
    if outcome == TIE:
        return f"{points} game points each"
    left, enemy_left = (columns[a][i] - columns[b][i] for a, b in ((SIDE_UNITS, SIDE_LOST), (ENEMY_UNITS, ENEMY_LOST)))
    text = f"{points} game points against {enemy_points}"
    if (left > 0) != (enemy_left > 0):
        text = f"{'the only side' if left > 0 else 'the enemy is the only side'} with ships left; {text}"
    if outcome < DRAW:
        return text
    needed = "at least" if params.overwhelming_comparison == ">=" else "more than"
    text += f", {'' if outcome == OVERWHELMING else 'not '}{needed} {params.overwhelming_factor} times as many"
    if outcome == OVERWHELMING and params.overwhelming_for == "survivors":
        text += f"; the player is {'' if is_survivor(i, columns) else 'not '}a survivor with ships left"
    return text


def _explain_bonus(i: int, columns: Columns, amount: int) -> Term:
    if mine := columns[GAME_POINTS][i]:
        return Term("top scorer", amount, f"{mine} game points, more than any other player who did not win")
    return Term("sunk without points", amount, f"no game points, and all {columns[LOST][i]} ships lost")


def remark(n: int, names: Sequence[str], columns: Columns, params: WoodenShipsParams) -> str:
    """Describe how the battle ended and who won it."""
    constants = prepare(params)
    results = [result(i, columns, constants[FACTOR], constants[STRICTLY]) for i in range(n)]
    if results[0] in (DRAW, TIE):
        return "draw by agreement" if results[0] == DRAW else "tie"
    side = [names[i] for i in range(n) if results[i] > DRAW]
    text = f"victory of {joined(side) if side else f'the side against {joined(names)}'}"
    return f"overwhelming {text}" if abs(results[0]) == OVERWHELMING else text


RULE = Rule(
    name="wooden-ships",
    number=1,
    scale=1,
    params=WoodenShipsParams,
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

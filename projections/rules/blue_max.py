"""Blue Max: points for how a side wins a battle, for its best player, and for every unit destroyed or lost.

    strategic victory   exactly one side has units left
    tactical victory    otherwise: it lost the smaller share of its units
    marginal victory    otherwise: its game points exceed the enemy's by more than `marginal_margin` %
    draw                otherwise, or by agreement

    change = the victory's points, to everybody of the winning side
           + best        for at least `best_margin` % more game points than anybody else on the side
           + kill_points for each enemy unit destroyed, alone or with others
           + unit_lost   for each unit lost

(Youplay, League scoring system, Blue Max; without kill_points also Wooden Ships & Iron Men in leagues below 7150.)
Shares and margins are compared exactly, by cross-multiplication. The same tests apply when no side has units left.
With `impossible_kills = "refuse"` nobody may destroy more units than the other side lost; a side may, by shared kills.

Not in the source: the best player has more than 0 game points, and teammates; after an agreed draw the points for
units and for the best remain; players who surrendered score like everybody else. The result of a battle depends on the
whole sides, whoever counts; when a seat changed hands, each of its players scores what they did themselves.

    3 units against 3, W1 destroys 2 and W2 the third: strategic; W1 4 + 1 + 2, W2 4 + 1, W3 4, the others -1 each
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from ratings_ledger.projections.contract import Changes, Columns, Numbers, Rule, TableParams, Term, joined, no_table

COLUMNS = (
    "side_units", "side_units_lost", "side_points", "enemy_units", "enemy_units_lost", "enemy_points", "agreed_draw",
    "side_seats", "mates_best", "game_points", "kills", "units_lost",
)  # fmt: skip
(
    SIDE_UNITS, SIDE_LOST, SIDE_POINTS, ENEMY_UNITS, ENEMY_LOST, ENEMY_POINTS, AGREED_DRAW,
    SIDE_SEATS, MATES_BEST, GAME_POINTS, KILLS, LOST,
) = range(len(COLUMNS))  # fmt: skip
DRAW, MARGINAL, TACTICAL, STRATEGIC = range(4)

Award = Annotated[int, Field(ge=0, le=1_000)]


class BlueMaxParams(TableParams):
    """Points for everybody on a side by its victory, then the personal ones; margins are whole percentages."""

    strategic: Award = 4
    tactical: Award = 3
    marginal: Award = 1
    draw: Award = 0
    best: Award = 1
    kill_points: Award = 1
    unit_lost: Annotated[int, Field(ge=-1_000, le=0)] = -1
    best_margin: Annotated[int, Field(ge=0, le=1_000)] = 15
    best_comparison: Literal[">=", ">"] = ">="
    marginal_margin: Annotated[int, Field(ge=0, le=1_000)] = 15
    impossible_kills: Literal["score", "refuse"] = "score"


def refuse_params(params: BlueMaxParams, players_max: int) -> str | None:
    """Why the parameters cannot be used, or None.

    Up to 4,096 players with at most 10^4 units and 10^6 game points each, every product is below 10^16.
    """
    if params.best_margin == 0 and params.best_comparison == ">=":
        return 'params.best_margin: with best_comparison = ">=" a margin of 0 would make several players best'
    return None


def prepare(params: BlueMaxParams) -> tuple[int, ...]:
    """The points for draw, marginal, tactical and strategic, the personal ones, then the margins."""
    return (
        params.draw, params.marginal, params.tactical, params.strategic, params.best, params.kill_points,
        params.unit_lost, params.best_margin, int(params.best_comparison == ">"), params.marginal_margin,
    )  # fmt: skip


def check(n: int, columns: Columns, params: BlueMaxParams) -> str | None:
    """Return why a game cannot be scored: a player destroyed more units than the other side lost; or None."""
    for kills, lost in zip(columns[KILLS], columns[ENEMY_LOST], strict=True):
        if kills > lost and params.impossible_kills == "refuse":
            return f"a player destroyed {kills} enemy units, but the other side lost {lost}"
    return None


def exceeds(more: int, less: int, margin: int, strictly: int) -> bool:
    """Whether one number is at least `margin` percent above another, or strictly more."""
    return more * 100 > less * (100 + margin) or (not strictly and more * 100 == less * (100 + margin))


def result(i: int, columns: Columns, margin: int) -> int:
    """What the side of participant i won: STRATEGIC, TACTICAL, MARGINAL, DRAW, or minus what the enemy won."""
    units, enemy_units = columns[SIDE_UNITS][i], columns[ENEMY_UNITS][i]
    lost, enemy_lost = columns[SIDE_LOST][i], columns[ENEMY_LOST][i]
    points, enemy_points = columns[SIDE_POINTS][i], columns[ENEMY_POINTS][i]
    if columns[AGREED_DRAW][i]:
        return DRAW
    if (lost < units) != (enemy_lost < enemy_units):
        return STRATEGIC if lost < units else -STRATEGIC
    if lost * enemy_units != enemy_lost * units:
        return TACTICAL if lost * enemy_units < enemy_lost * units else -TACTICAL
    if exceeds(points, enemy_points, margin, 1):
        return MARGINAL
    return -MARGINAL if exceeds(enemy_points, points, margin, 1) else DRAW


def is_best(i: int, columns: Columns, margin: int, strictly: int) -> bool:
    """Whether participant i is the best player of their side; without teammates they are not."""
    mine = columns[GAME_POINTS][i]
    return columns[SIDE_SEATS][i] > 1 and mine > 0 and exceeds(mine, columns[MATES_BEST][i], margin, strictly)


def score(n: int, points: Numbers, columns: Columns, constants: Numbers, table: Numbers, change: Changes) -> int:
    """Fill in the changes; returns the sum of those above zero, which is minted."""
    best, kill_points, unit_lost = constants[4], constants[5], constants[6]
    best_margin, strictly, margin = constants[7], constants[8], constants[9]
    minted = 0
    for i in range(n):
        won = result(i, columns, margin)
        change[i] = columns[KILLS][i] * kill_points + columns[LOST][i] * unit_lost
        if won >= DRAW:
            change[i] += constants[won]
        if is_best(i, columns, best_margin, strictly):
            change[i] += best
        minted += max(change[i], 0)
    return minted


def explain(
    n: int, names: Sequence[str], points: Numbers, columns: Columns, params: BlueMaxParams, change: Numbers
) -> list[list[Term]]:
    """For every player, the result of their side and why, whether they were its best, and their kills and losses."""
    terms = []
    for i, (kills, lost) in enumerate(zip(columns[KILLS], columns[LOST], strict=True)):
        mine = [_result(i, columns, params), *_best(i, columns, params)]
        if kills and params.kill_points:
            mine.append(Term("destroyed", kills * params.kill_points, f"{kills} enemy unit{'s' * (kills > 1)}"))
        if lost and params.unit_lost:
            mine.append(Term("lost", lost * params.unit_lost, f"{lost} own unit{'s' * (lost > 1)}"))
        terms.append(mine)
    return terms


def _result(i: int, columns: Columns, params: BlueMaxParams) -> Term:
    won = result(i, columns, params.marginal_margin)
    kind = ("draw", "marginal", "tactical", "strategic")[abs(won)]
    why = _why(i, columns, params.marginal_margin, abs(won))
    if won == DRAW:
        return Term("draw", params.draw, why)
    if won < 0:
        return Term("defeat", 0, f"{kind} victory of the enemy: {why}")
    return Term(f"{kind} victory", (params.marginal, params.tactical, params.strategic)[won - 1], why)


def _why(i: int, columns: Columns, margin: int, won: int) -> str:
    """The deciding numbers of both sides."""
    if columns[AGREED_DRAW][i]:
        return "agreed by the players"
    units, enemy_units = columns[SIDE_UNITS][i], columns[ENEMY_UNITS][i]
    lost, enemy_lost = columns[SIDE_LOST][i], columns[ENEMY_LOST][i]
    if won == STRATEGIC:
        return f"{units - lost} of {units} units are left, of the enemy {enemy_units - enemy_lost} of {enemy_units}"
    told = f"lost {lost} of {units} units, the enemy {enemy_lost} of {enemy_units}"
    if won == TACTICAL:
        return told
    less, more = sorted((columns[SIDE_POINTS][i], columns[ENEMY_POINTS][i]))
    return f"{told}, the same share; {more} game points are {'' if won else 'not '}more than {margin} % above {less}"


def _best(i: int, columns: Columns, params: BlueMaxParams) -> list[Term]:
    """A term for the best, and for a player who has the most points of their side but not enough."""
    mine, next_best = columns[GAME_POINTS][i], columns[MATES_BEST][i]
    if columns[SIDE_SEATS][i] == 1 or not params.best or mine < max(next_best, 1):
        return []
    needed = f"{'at least' if params.best_comparison == '>=' else 'more than'} {params.best_margin} % above"
    best = is_best(i, columns, params.best_margin, int(params.best_comparison == ">"))
    told = f"{mine} game points are {'' if best else 'not '}{needed} the next, {next_best}"
    return [Term("best of the side", params.best * best, told, "", ("best_comparison",))]


def remark(n: int, names: Sequence[str], columns: Columns, params: BlueMaxParams) -> str:
    """How the battle ended, who won it, and after a strategic victory the top scorer of the winning side."""
    results = [result(i, columns, params.marginal_margin) for i in range(n)]
    if DRAW in results:
        return "draw by agreement" if columns[AGREED_DRAW][0] else "draw"
    kind = ("marginal", "tactical", "strategic")[abs(results[0]) - 1]
    side = [names[i] for i in range(n) if results[i] > 0]
    told = f"{kind} victory of {joined(side) if side else f'the side against {joined(names)}'}"
    top = [i for i in range(n) if results[i] == STRATEGIC and columns[GAME_POINTS][i] >= columns[MATES_BEST][i]]
    if not top:
        return told
    scored = columns[GAME_POINTS][top[0]]
    return f"{told}; winner of the game: {joined([names[i] for i in top])} with {scored} game points"


RULE = Rule(
    name="blue-max", number=1, scale=1, params=BlueMaxParams, columns=COLUMNS, prepare=prepare, table=no_table,
    refuse_params=refuse_params, check=check, score=score, explain=explain, ranking="table", counted_min=1,
    remark=remark,
)  # fmt: skip

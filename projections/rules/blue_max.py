"""Blue Max: points for the kind of victory, for the best player of a side, and for every unit destroyed or lost.

    strategic victory   the side is the only one with units left
    tactical victory    otherwise: the side lost the smaller share of its units
    marginal victory    otherwise: the side's game points exceed the enemy's by more than `marginal_margin` %
    draw                otherwise, or by agreement

    change = the points for the result, to every player of the winning side, or of both sides after a draw
           + best        for at least `best_margin` % more game points than any teammate
           + kill_points for each enemy unit destroyed, alone or with others
           + unit_lost   for each unit lost

(Youplay, League scoring system, Blue Max; without kill_points also the rules of Wooden Ships & Iron Men for leagues
numbered below 7150.)
Shares and margins are compared exactly, by cross-multiplication. The same tests apply when no side has units left.
With `impossible_kills = "refuse"` no player may destroy more units than the other side lost; a side may, by shared
kills.

Not in the source: the best player has teammates and more than 0 game points. After an agreed draw the points for units
and for the best player remain. Players who surrendered score like all others. The result of a battle depends on the
whole sides, including players who do not count. When a seat changed hands, each of its players scores their own kills
and losses.

    3 units against 3, W1 destroys 2 and W2 the third: strategic; W1 4 + 1 + 2, W2 4 + 1, W3 4, the others -1 each
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from ratings_ledger.projections.contract import Changes, Columns, Numbers, Rule, TableParams, Term, joined, no_table

COLUMNS = (
    "side_units",
    "side_units_lost",
    "side_points",
    "enemy_units",
    "enemy_units_lost",
    "enemy_points",
    "agreed_draw",
    "side_seats",
    "mates_best",
    "game_points",
    "kills",
    "units_lost",
)
(
    SIDE_UNITS,
    SIDE_LOST,
    SIDE_POINTS,
    ENEMY_UNITS,
    ENEMY_LOST,
    ENEMY_POINTS,
    AGREED_DRAW,
    SIDE_SEATS,
    MATES_BEST,
    GAME_POINTS,
    KILLS,
    LOST,
) = range(len(COLUMNS))
DRAW, MARGINAL, TACTICAL, STRATEGIC = range(4)

Award = Annotated[int, Field(ge=0, le=1_000)]


class BlueMaxParams(TableParams):
    """Points for the result, given to every player of the winning side, or of both after a draw; then personal points.

    Margins are whole percentages.
    """

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
    """Return the problem with the parameters, or None.

    With up to 4,096 players of at most 10^4 units and 10^6 game points each, every product is below 10^16.
    """
    if params.best_margin == 0 and params.best_comparison == ">=":
        return (
            'params.best_margin: with best_comparison = ">=" a margin of 0 could make several players best; raise it, '
            'or write best_comparison = ">"'
        )
    return None


def prepare(params: BlueMaxParams) -> tuple[int, ...]:
    """Return the points for draw, marginal, tactical and strategic victory, the personal points, and the margins."""
    return (
        params.draw,
        params.marginal,
        params.tactical,
        params.strategic,
        params.best,
        params.kill_points,
        params.unit_lost,
        params.best_margin,
        int(params.best_comparison == ">"),
        params.marginal_margin,
    )


def check(n: int, columns: Columns, params: BlueMaxParams) -> str | None:
    """Return the reason why a game cannot be scored: a player destroyed more units than the enemy lost. Else None."""
    for kills, lost in zip(columns[KILLS], columns[ENEMY_LOST], strict=True):
        if kills > lost and params.impossible_kills == "refuse":
            return f"a player destroyed {kills} enemy units, but the other side lost {lost}"
    return None


def exceeds(more: int, less: int, margin: int, strictly: int) -> bool:
    """Tell whether `more` is at least `margin` percent above `less`; with `strictly`, more than `margin` percent."""
    return more * 100 > less * (100 + margin) or (not strictly and more * 100 == less * (100 + margin))


def result(i: int, columns: Columns, margin: int) -> int:
    """Return the victory of participant i's side: STRATEGIC, TACTICAL, MARGINAL or DRAW; negative for a defeat."""
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
    """Tell whether participant i is the best player of their side. A player without teammates is never the best."""
    mine = columns[GAME_POINTS][i]
    return columns[SIDE_SEATS][i] > 1 and mine > 0 and exceeds(mine, columns[MATES_BEST][i], margin, strictly)


def score(n: int, points: Numbers, columns: Columns, constants: Numbers, table: Numbers, change: Changes) -> int:
    """Fill in the changes. Return the sum of the positive ones, which is minted."""
    best, kill_points, unit_lost = constants[4], constants[5], constants[6]
    best_margin, strictly, margin = constants[7], constants[8], constants[9]
    minted = 0
    for i in range(n):
        outcome = result(i, columns, margin)
        change[i] = columns[KILLS][i] * kill_points + columns[LOST][i] * unit_lost
        if outcome >= DRAW:
            change[i] += constants[outcome]
        if is_best(i, columns, best_margin, strictly):
            change[i] += best
        minted += max(change[i], 0)
    return minted


def explain(
    n: int, names: Sequence[str], points: Numbers, columns: Columns, params: BlueMaxParams, change: Numbers
) -> list[list[Term]]:
    """Return for every player the terms for the side's result, for the best of the side, for kills and for losses."""
    terms = []
    for i, (kills, lost) in enumerate(zip(columns[KILLS], columns[LOST], strict=True)):
        player_terms = [_explain_result(i, columns, params), *_explain_best(i, columns, params)]
        if kills and params.kill_points:
            player_terms.append(Term("destroyed", kills * params.kill_points, f"{kills} enemy unit{'s' * (kills > 1)}"))
        if lost and params.unit_lost:
            player_terms.append(Term("lost", lost * params.unit_lost, f"{lost} own unit{'s' * (lost > 1)}"))
        terms.append(player_terms)
    return terms


def _explain_result(i: int, columns: Columns, params: BlueMaxParams) -> Term:
    outcome = result(i, columns, params.marginal_margin)
    kind = ("draw", "marginal", "tactical", "strategic")[abs(outcome)]
    reason = _describe_reason(i, columns, params.marginal_margin, abs(outcome))
    if outcome == DRAW:
        return Term("draw", params.draw, reason)
    if outcome < 0:
        return Term("defeat", 0, f"{kind} victory of the enemy: {reason}")
    return Term(f"{kind} victory", (params.marginal, params.tactical, params.strategic)[outcome - 1], reason)


def _describe_reason(i: int, columns: Columns, margin: int, outcome: int) -> str:
    """Return the numbers of both sides that decided the result."""
    if columns[AGREED_DRAW][i]:
        return "agreed by the players"
    units, enemy_units = columns[SIDE_UNITS][i], columns[ENEMY_UNITS][i]
    lost, enemy_lost = columns[SIDE_LOST][i], columns[ENEMY_LOST][i]
    if outcome == STRATEGIC:
        return f"{units - lost} of {units} units are left, and {enemy_units - enemy_lost} of the enemy's {enemy_units}"
    losses = f"lost {lost} of {units} units, the enemy {enemy_lost} of {enemy_units}"
    if outcome == TACTICAL:
        return losses
    less, more = sorted((columns[SIDE_POINTS][i], columns[ENEMY_POINTS][i]))
    return (
        f"{losses}, the same share; {more} game points are {'' if outcome else 'not '}more than {margin} % above {less}"
    )


def _explain_best(i: int, columns: Columns, params: BlueMaxParams) -> list[Term]:
    """Return a term for the player with the most points of the side, even if the margin is too small to be best."""
    mine, next_best = columns[GAME_POINTS][i], columns[MATES_BEST][i]
    if columns[SIDE_SEATS][i] == 1 or not params.best or mine < max(next_best, 1):
        return []
    needed = f"{'at least' if params.best_comparison == '>=' else 'more than'} {params.best_margin} % above"
    is_best_player = is_best(i, columns, params.best_margin, int(params.best_comparison == ">"))
    detail = f"{mine} game points are {'' if is_best_player else 'not '}{needed} the next, {next_best}"
    return [Term("best of the side", params.best * is_best_player, detail, "", ("best_comparison",))]


def remark(n: int, names: Sequence[str], columns: Columns, params: BlueMaxParams) -> str:
    """Describe the result of the battle and, after a strategic victory, the top scorer of the winning side."""
    results = [result(i, columns, params.marginal_margin) for i in range(n)]
    if DRAW in results:
        return "draw by agreement" if columns[AGREED_DRAW][0] else "draw"
    kind = ("marginal", "tactical", "strategic")[abs(results[0]) - 1]
    side = [names[i] for i in range(n) if results[i] > 0]
    text = f"{kind} victory of {joined(side) if side else f'the side against {joined(names)}'}"
    top = [i for i in range(n) if results[i] == STRATEGIC and columns[GAME_POINTS][i] >= columns[MATES_BEST][i]]
    if not top:
        return text
    scored = columns[GAME_POINTS][top[0]]
    return f"{text}; winner of the game: {joined([names[i] for i in top])} with {scored} game points"


RULE = Rule(
    name="blue-max",
    number=1,
    scale=1,
    params=BlueMaxParams,
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
)

"""The European Go Federation's rating of 2021: an Elo whose K and slope depend on strength, with a bonus for playing.

    r' = r + weight * (con * (S - E) + bonus)
    con = ((3300 - r) / 200)^1.6,  bonus = ln(1 + e^((2300 - r) / 80)) / 5
    E = 1 / (1 + e^(b(opponent) - b(r))),  b(r) = -7 * ln(3300 - r)

(EGF, Rating system, in force since 2021.) S is 1, 1/2 for a jigo, or 0. For E, a player who takes a handicap of h
stones counts as 100 * (h - 1/2) points stronger: one stone is the first move without komi. The weight depends on
the event's class. Con, bonus and E depend on the ratings before the game. In rating periods, such as tournaments, they
depend on the ratings at the period's start; the changes of all games add up, and the sum is rounded once.

    2100 beats 2100: con 17.580936, expected 0.5, bonus 0.515778, so 2109.306246 and 2091.72531
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from ratings_ledger.projections.contract import (
    MISSING,
    ONE,
    Columns,
    Numbers,
    Params,
    Rule,
    State,
    StateValues,
    Term,
    decimal,
    exp,
    ln,
    no_table,
    power,
    real,
    units,
)

SCALE = 1_000_000
# Ratings below minus a million count as minus a million, so no product leaves the range of exact arithmetic.
RATING_MIN = -(10**12)
# The formulas need ratings below 3300, so every rating is at least a point below.
STATE = (State("rating", SCALE, low=RATING_MIN, high=3_299 * SCALE),)
HANDICAP_MAX = 9
WEIGHT_MAX = 10
COLUMNS = ("place", "numbers.handicap", "numbers.weight")
PLACE, HANDICAP, WEIGHT = range(len(COLUMNS))
# The columns of a period's rows: the opponent, the number of the game, the player's columns, the opponent's columns.
OPPONENT, OWN, OTHER = 0, 2, 5


class EgfParams(Params):
    """Parameters. `weight_one` is the value of `numbers.weight` for a whole game, as in an event of class A.

    A game without a weight counts as a whole game. With fewer than `provisional_games` games, a rating is provisional.
    """

    start: Annotated[int, Field(ge=-1_000_000, le=3_000)] = 100
    weight_one: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    provisional_games: Annotated[int, Field(ge=0, le=1_000_000)] = 0


def refuse_params(params: EgfParams, players_max: int) -> str | None:
    """Return None: every value in its range can be used."""
    return None


def prepare(params: EgfParams) -> tuple[int, ...]:
    """Return the weight that counts as one game."""
    return (params.weight_one,)


def start(params: EgfParams) -> StateValues:
    """Return the state of a new player."""
    return (params.start * SCALE,)


def check(n: int, columns: Columns, params: EgfParams) -> str | None:
    """Return the reason why a game cannot be scored, or None."""
    handicap, weights = columns[HANDICAP], columns[WEIGHT]
    if n != 2:
        return f"the game has {n} players; the rule scores games of 2"
    if columns[PLACE][0] == 0:
        return "the game has no places"
    for stones in handicap:
        if stones != MISSING and not 0 <= stones <= HANDICAP_MAX:
            return f"numbers.handicap is {stones}; it must be from 0 to {HANDICAP_MAX}"
    if min(handicap) > 0:
        return "both players have a handicap; record it only for the player who took the stones"
    if weights[0] != weights[1]:
        return "the players of a game have different weights"
    if weights[0] != MISSING and not 0 <= weights[0] <= WEIGHT_MAX * params.weight_one:
        return f"numbers.weight is {weights[0]}; it must be from 0 to {WEIGHT_MAX * params.weight_one}"
    return None


def rating_of(rating: int, stones: int) -> float:
    """Return a rating in points, with the handicap, at least one point below 3300."""
    points = real(max(min(rating, 4_000 * SCALE), RATING_MIN), SCALE)
    if stones > 0:
        points = points + 100.0 * (real(stones, 1) - 0.5)
    return min(points, 3299.0)


def expect(own: int, stones: int, opponent: int, opponents_stones: int) -> float:
    """Return the expected score against another player."""
    own_left, other_left = 3300.0 - rating_of(own, stones), 3300.0 - rating_of(opponent, opponents_stones)
    return 1.0 / (1.0 + exp(7.0 * (ln(own_left) - ln(other_left))))


def con_of(rating: int) -> float:
    """Return con, the factor of a result."""
    return power((3300.0 - rating_of(rating, 0)) / 200.0, 1.6)


def bonus_of(rating: int) -> float:
    """Return the bonus for playing a game, whatever its result."""
    exponent = (2300.0 - rating_of(rating, 0)) / 80.0
    # From e^50 on, adding 1 changes no double.
    return (exponent if exponent > 50.0 else ln(1.0 + exp(exponent))) / 5.0


def weight_of(weight: int, constants: Numbers) -> float:
    """Return the weight of a game as a factor; 1 if it has no weight."""
    return 1.0 if weight == MISSING else real(weight, constants[0])


def score_of(place: int, opponents_place: int) -> float:
    """Return the score of a result: 1, 1/2 or 0."""
    return 1.0 if place < opponents_place else 0.0 if place > opponents_place else 0.5


def game_points(own: int, stones: int, opponent: int, opponents_stones: int, result: float) -> float:
    """Return the change of a rating, in points, by a game of full weight."""
    return con_of(own) * (result - expect(own, stones, opponent, opponents_stones)) + bonus_of(own)


def score(n: int, before: Any, columns: Columns, constants: Numbers, table: Numbers, after: Any) -> int:
    """Fill in the ratings after the game. Return the minted points."""
    place, stones, minted = columns[PLACE], columns[HANDICAP], 0
    for i in range(2):
        j = 1 - i
        points = game_points(before[0][i], stones[i], before[0][j], stones[j], score_of(place[i], place[j]))
        change = units(weight_of(columns[WEIGHT][i], constants) * points, SCALE)
        after[0][i] += change
        minted += change
    return max(minted, 0)


def row_points(row: int, p: int, before: Any, rows: Any) -> float:
    """Return the change of player p's rating, in points, by one result of a period at full weight."""
    result = score_of(rows[OWN + PLACE][row], rows[OTHER + PLACE][row])
    opponent = before[0][rows[OPPONENT][row]]
    return game_points(before[0][p], rows[OWN + HANDICAP][row], opponent, rows[OTHER + HANDICAP][row], result)


def score_period(
    players: int, before: Any, offsets: Numbers, rows: Any, constants: Numbers, table: Numbers, after: Any
) -> int:
    """Fill in the ratings after the period. Return the minted points."""
    minted = 0
    for p in range(players):
        points = 0.0
        for row in range(offsets[p], offsets[p + 1]):
            points = points + weight_of(rows[OWN + WEIGHT][row], constants) * row_points(row, p, before, rows)
        change = units(points, SCALE)
        after[0][p] += change
        minted += change
    return max(minted, 0)


def chance(i: int, j: int, before: Any, columns: Columns, constants: Numbers, table: Numbers) -> int:
    """Return the expected score of a player against another, in units of 2^-32."""
    # The two chances of a pair sum to exactly one.
    a, b, stones = min(i, j), max(i, j), columns[HANDICAP]
    own = min(max(units(expect(before[0][a], stones[a], before[0][b], stones[b]), ONE), 1), ONE - 1)
    return own if i == a else ONE - own


class _Player(NamedTuple):
    """A player of an explained game: the rating in units, the place, and the stones taken."""

    rating: int
    place: int
    stones: int


def explain(
    n: int, names: Sequence[str], before: Any, columns: Columns, params: EgfParams, after: Any
) -> list[list[Term]]:
    """Return two terms for each player: for the result, and for the bonus."""
    terms = []
    for i, j in ((0, 1), (1, 0)):
        own, opponent = (_Player(before[0][k], columns[PLACE][k], columns[HANDICAP][k]) for k in (i, j))
        terms.append(_explain_game(names[j], own, opponent, weight_of(columns[WEIGHT][i], prepare(params))))
    return terms


def explain_period(
    p: int, names: Sequence[str], before: Any, offsets: Numbers, rows: Any, params: EgfParams, after: Any
) -> list[tuple[int, Term]]:
    """Return two terms for each game of player p, and one for the rounding of their sum unless it is 0."""
    terms: list[tuple[int, Term]] = []
    for row in range(offsets[p], offsets[p + 1]):
        rival = rows[OPPONENT][row]
        own = _Player(before[0][p], rows[OWN + PLACE][row], rows[OWN + HANDICAP][row])
        opponent = _Player(before[0][rival], rows[OTHER + PLACE][row], rows[OTHER + HANDICAP][row])
        weight = weight_of(rows[OWN + WEIGHT][row], prepare(params))
        terms += [(row, term) for term in _explain_game(names[rival], own, opponent, weight)]
    rounding = after[0][p] - before[0][p] - sum(term.amount for _, term in terms)
    return [*terms, (-1, Term("rounding", rounding, "the sum of the period is rounded once"))] if rounding else terms


def _explain_game(name: str, own: _Player, opponent: _Player, weight: float) -> list[Term]:
    """Return a player's terms for one game against the opponent of this name."""
    result, con = score_of(own.place, opponent.place), con_of(own.rating)
    expected = expect(own.rating, own.stones, opponent.rating, opponent.stones)
    change = units(weight * (con * (result - expected) + bonus_of(own.rating)), SCALE)
    first = units(weight * (con * (result - expected)), SCALE)
    weight_note = f" x weight {_format(weight)}" if weight != 1.0 else ""
    stones = max(own.stones, opponent.stones, 0)
    note = f"rated {decimal(own.rating, SCALE)} against {decimal(opponent.rating, SCALE)}"
    note += f", {'with' if own.stones > 0 else 'against'} handicap {stones}" if stones else ""
    detail = f"con {_format(con)}{weight_note}, expected {_format(expected)}, scored {_format(result)}"
    return [Term(f"vs {name}", first, detail, note), Term("bonus", change - first, f"for the game{weight_note}")]


def _format(value: float) -> str:
    return decimal(units(value, SCALE), SCALE)


def provisional(state: StateValues, games: int, params: EgfParams) -> bool:
    """Tell whether a player has played too few games."""
    return games < params.provisional_games


def sample(n: int, random: Any, params: EgfParams) -> Columns:
    """Return the columns of a game that can be scored, sometimes with a handicap."""
    taker, stones = random.randrange(n), random.choice([MISSING, 0, random.randint(1, HANDICAP_MAX)])
    place, winner = random.choice([1, 2]), random.randrange(n)
    weight = random.choice([MISSING, params.weight_one, params.weight_one // 2])
    return [
        [1 if i == winner else place for i in range(n)],
        [stones if i == taker else min(stones, 0) for i in range(n)],
        [weight] * n,
    ]


RULE = Rule(
    name="egf-gor",
    number=1,
    scale=SCALE,
    params=EgfParams,
    columns=COLUMNS,
    prepare=prepare,
    table=no_table,
    refuse_params=refuse_params,
    check=check,
    score=score,
    explain=explain,
    score_period=score_period,
    explain_period=explain_period,
    chance=chance,
    state=STATE,
    start=start,
    provisional=provisional,
    sample=sample,
)

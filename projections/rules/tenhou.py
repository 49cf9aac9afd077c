"""Tenhou's rating for riichi: fixed points by place, adjusted for the strength of the table.

    R' = R + m * (base + (mean - R) / 40),  m = max(1 - 0.002 * games, 0.2)

(Tenhou's manual, section on R.) `base` has a row by place for each table size, `mean` is the mean rating of the table,
including the player, and `games` counts the player's earlier games. Tied players share the bases of the tied places
equally; with `ties = "best"` each gets the largest. In rating periods, R and `games` are taken at the period's start,
and the changes of all games are added up and rounded once.

    R 2000 with 400 games, last of four: mean 2000: 0.2 * -30 = -6; mean 1600: 0.2 * (-30 - 10) = -8
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field

from ratings_ledger.projections.contract import (
    Columns,
    Numbers,
    Params,
    PositiveFraction,
    Rows,
    Rule,
    State,
    StateValues,
    Term,
    decimal,
    flat_rows,
    no_table,
    real,
    refuse_rows,
    refuse_two_in_a_seat,
    told_sizes,
    units,
)

SCALE = 1_000_000
# Ratings beyond a million points count as a million, so no product leaves the range of exact arithmetic.
RATING_MAX = 10**12
STATE = (State("rating", SCALE, low=-RATING_MAX, high=RATING_MAX),)
BASE_MAX = 100_000
COLUMNS = ("place", "seats", "tied", "games_before", "status")
PLACE, SEATS, TIED, GAMES_BEFORE, STATUS = range(len(COLUMNS))
# Offsets of the constants. A fraction takes two entries; the rows of bases come last.
DECAY, LEAST, DIVISOR, BEST, BASES = 0, 2, 4, 6, 7
# The columns of a period's rows: the opponent, the number of the game, the player's columns.
OPPONENT, GAME, OWN = 0, 1, 2


class TenhouParams(Params):
    """Parameters. `base` has a row by place for each table size. m falls by `decay` with each game, down to `least`.

    `divisor` is the 40 in the formula. With fewer than `provisional_games` games, a rating is provisional.
    """

    start: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 1500
    base: Rows = {"3": [30, 0, -30], "4": [30, 10, -10, -30]}
    decay: PositiveFraction = "0.002"
    least: PositiveFraction = "0.2"
    divisor: PositiveFraction = 40
    ties: Literal["share", "best"] = "share"
    provisional_games: Annotated[int, Field(ge=0, le=1_000_000)] = 0


def refuse_params(params: TenhouParams, players_max: int) -> str | None:
    """Return the problem with the parameters, or None."""
    if reason := refuse_rows("params.base", params.base, "bases"):
        return reason
    for name, row in params.base.items():
        if row != sorted(row, reverse=True):
            return f"params.base.{name}: bases must not rise from place to place: {row}"
        if too_large := [base for base in row if abs(base) > BASE_MAX]:
            return f"params.base.{name}: bases must be from {-BASE_MAX} to {BASE_MAX}, not {too_large[0]}"
    if Fraction(params.least) > 1:
        return f"params.least: must be at most 1, where m begins, not {params.least}"
    return f"params.divisor: must be at least 1, not {params.divisor}" if Fraction(params.divisor) < 1 else None


def prepare(params: TenhouParams) -> tuple[int, ...]:
    """Return the constants in the order of the names above."""
    fractions = (params.decay, params.least, params.divisor)
    parts = [part for value in fractions for part in Fraction(value).as_integer_ratio()]
    return (*parts, int(params.ties == "best"), *flat_rows(params.base))


def start(params: TenhouParams) -> StateValues:
    """Return the state of a new player."""
    return (params.start * SCALE,)


def check(n: int, columns: Columns, params: TenhouParams) -> str | None:
    """Return the reason why a game cannot be scored, or None.

    The game may have no places, no row of bases for its size, or two counted players in a seat.
    """
    seats = columns[SEATS][0]
    if columns[PLACE][0] == 0:
        return "the game has no places"
    if str(seats) not in params.base:
        return f"there are no bases for {seats} players, only for {told_sizes(params.base)}"
    return refuse_two_in_a_seat(columns[PLACE], columns[STATUS])


def clamp_rating(rating: int) -> int:
    """Limit a rating to the range of exact arithmetic."""
    return max(min(rating, RATING_MAX), -RATING_MAX)


def multiplier(games: int, constants: Numbers) -> float:
    """Return m for a player with this number of games."""
    falling = 1.0 - real(constants[DECAY], constants[DECAY + 1]) * real(max(games, 0), 1)
    return max(falling, real(constants[LEAST], constants[LEAST + 1]))


def base_of(place: int, seats: int, tied: int, constants: Numbers) -> float:
    """Return the base of a place: the mean of the tied places' bases, or with `ties = "best"` the largest of them."""
    first = BASES + seats * (seats - 1) // 2 - 1 + place - 1
    if constants[BEST]:
        return real(constants[first], 1)
    total = 0
    for at in range(first, first + tied):
        total += constants[at]
    return real(total, tied)


def correction(own: int, total: int, players: int, constants: Numbers) -> float:
    """Return the correction, in points, for the strength of the table. `total` is the sum of the table's ratings."""
    divisor = real(constants[DIVISOR], constants[DIVISOR + 1])
    return (real(total, SCALE) / real(players, 1) - real(own, SCALE)) / divisor


def score(n: int, before: Any, columns: Columns, constants: Numbers, table: Numbers, after: Any) -> int:
    """Fill in the ratings after the game. Return the minted points."""
    total = minted = 0
    for i in range(n):
        total += clamp_rating(before[0][i])
    for i in range(n):
        base = base_of(columns[PLACE][i], columns[SEATS][i], columns[TIED][i], constants)
        points = base + correction(clamp_rating(before[0][i]), total, n, constants)
        change = units(multiplier(columns[GAMES_BEFORE][i], constants) * points, SCALE)
        after[0][i] += change
        minted += change
    return max(minted, 0)


def game_points(row: int, end: int, p: int, before: Any, rows: Any, constants: Numbers) -> tuple[float, float, int]:
    """Return the base and the correction of player p's game that begins at a row, and the row after it."""
    total, last = clamp_rating(before[0][p]), row
    while last < end and rows[GAME][last] == rows[GAME][row]:
        total += clamp_rating(before[0][rows[OPPONENT][last]])
        last += 1
    base = base_of(rows[OWN + PLACE][row], rows[OWN + SEATS][row], rows[OWN + TIED][row], constants)
    return base, correction(clamp_rating(before[0][p]), total, last - row + 1, constants), last


def score_period(
    players: int, before: Any, offsets: Numbers, rows: Any, constants: Numbers, table: Numbers, after: Any
) -> int:
    """Fill in the ratings after the period. Return the minted points."""
    minted = 0
    for p in range(players):
        row, points = offsets[p], 0.0
        while row < offsets[p + 1]:
            base, correction_points, row = game_points(row, offsets[p + 1], p, before, rows, constants)
            points = points + (base + correction_points)
        if offsets[p] < offsets[p + 1]:
            # GAMES_BEFORE of the player's first row is the number of games at the period's start.
            change = units(multiplier(rows[OWN + GAMES_BEFORE][offsets[p]], constants) * points, SCALE)
            after[0][p] += change
            minted += change
    return max(minted, 0)


def explain(
    n: int, names: Sequence[str], before: Any, columns: Columns, params: TenhouParams, after: Any
) -> list[list[Term]]:
    """Return two terms for every participant: for the place, and for the strength of the table."""
    constants, total, terms = prepare(params), sum(map(clamp_rating, before[0][:n])), []
    for i in range(n):
        place, seats, tied = (columns[name][i] for name in (PLACE, SEATS, TIED))
        own, m = clamp_rating(before[0][i]), multiplier(columns[GAMES_BEFORE][i], constants)
        points = base_of(place, seats, tied, constants), correction(own, total, n, constants)
        terms.append(_explain_game(place, seats, tied, m, points, real(own, SCALE), params))
    return terms


def explain_period(
    p: int, names: Sequence[str], before: Any, offsets: Numbers, rows: Any, params: TenhouParams, after: Any
) -> list[tuple[int, Term]]:
    """Return two terms for each game of player p, and one for the rounding of their sum unless it is 0."""
    constants, row, terms, own = prepare(params), offsets[p], [], real(clamp_rating(before[0][p]), SCALE)
    while row < offsets[p + 1]:
        first, m = row, multiplier(rows[OWN + GAMES_BEFORE][offsets[p]], constants)
        *points, row = game_points(first, offsets[p + 1], p, before, rows, constants)
        place, seats, tied = (rows[OWN + name][first] for name in (PLACE, SEATS, TIED))
        terms += [(first, term) for term in _explain_game(place, seats, tied, m, points, own, params)]
    rounding = after[0][p] - before[0][p] - sum(term.amount for _, term in terms)
    return [*terms, (-1, Term("rounding", rounding, "the sum of the period is rounded once"))] if rounding else terms


def _explain_game(
    place: int, seats: int, tied: int, m: float, points: Sequence[float], own: float, params: TenhouParams
) -> list[Term]:
    """Return the terms of one game; `points` are the base and the correction of the player's rating."""
    base, correction_points = points
    tie = f"tied with {tied - 1} {'other' if tied == 2 else 'others'}"
    note = f"{tie}: {'the largest base' if params.ties == 'best' else 'the mean of their bases'}"
    placed = Term(
        f"place {place}",
        units(m * base, SCALE),
        f"{_format(m)} x {_format(base)}, place {place} of {seats}",
        note if tied > 1 else "",
        ("base", "ties", "decay", "least"),
    )
    change, mean = (
        units(m * (base + correction_points), SCALE),
        own + correction_points * float(Fraction(params.divisor)),
    )
    detail = f"{_format(m)} x ({_format(mean)} - {_format(own)}) / {params.divisor}, the table's mean less the rating"
    return [placed, Term("table", change - placed.amount, detail, "", ("divisor",))]


def _format(value: float) -> str:
    return decimal(units(value, SCALE), SCALE)


def provisional(state: StateValues, games: int, params: TenhouParams) -> bool:
    """Tell whether a player has played too few games."""
    return games < params.provisional_games


def sample(n: int, random: Any, params: TenhouParams) -> Columns:
    """Return the columns of a game, possibly with ties. It can be scored if `base` has a row for its size."""
    points = [random.randint(0, 2 * n) for _ in range(n)]
    place = [1 + sum(rival > own for rival in points) for own in points]
    return [place, [n] * n, [place.count(own) for own in place], [random.randint(0, 500) for _ in range(n)], [0] * n]


RULE = Rule(
    name="tenhou",
    number=1,
    scale=SCALE,
    params=TenhouParams,
    columns=COLUMNS,
    prepare=prepare,
    table=no_table,
    refuse_params=refuse_params,
    check=check,
    score=score,
    explain=explain,
    score_period=score_period,
    explain_period=explain_period,
    state=STATE,
    start=start,
    provisional=provisional,
    sample=sample,
)

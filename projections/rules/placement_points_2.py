"""Placement points of a championship: fixed points by place, bonuses, shared seats, half and double points.

    points of place k = points[k]; places after the last entry get nothing

A game's points are multiplied by `numbers.percent`: 50 for a race that was cut short, 200 for double points. Tied
players get the mean of the points of the tied places. A leaver holds a place and gets no points for it, unless a
substitute took the seat over. A guest (`numbers.guest`) holds a place, and the players behind move up for points.

Players who shared a seat share its points in equal parts (`shared = "divide"`) or get none ("none"). Usually they are a
leaver and the substitute. If more players took turns, or one is recorded at another seat, `numbers.drivers` is their
number. A player is recorded once in a game; points from another seat are `numbers.other_points`, in units of 1/840.

The bonuses go to the players whose `numbers.fastest_lap` or `numbers.pole` is 1; several share one in equal parts.

    second place in a car shared by two, and the fastest lap (points 8, 6, 4, 3, 2, bonus 1): 6 / 2 + 1 = 4

Points are counted in units of 1/840, which 2 to 8 players can share exactly; smaller remainders are dropped.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field

from ratings_ledger.projections.contract import (
    FINISHED,
    LEAVERS,
    MISSING,
    SUBSTITUTE,
    BestOfParams,
    Columns,
    Numbers,
    PositiveFraction,
    Rule,
    State,
    StateValues,
    Term,
    no_table,
)

SCALE = 840  # divisible by 2 to 8
POINTS_MAX = 1_000_000
PERCENT_MAX = 1_000
# The constants in order. From FIRST_POINTS on come the points of all places.
DIVIDES, FASTEST_BONUS, POLE_BONUS, BONUS_PLACES, POINTS_COUNT, FIRST_POINTS = range(6)
PLACE, STATUS, TIED, FASTEST, POLE, GUEST, DRIVERS, OTHER, PERCENT = range(9)


class ChampionshipParams(BestOfParams):
    """Parameters of a championship's places and bonuses.

    `points` are by place, from the first on. The `bonus` for the `fastest_lap` and the `pole` goes to all places, or
    only to the first `bonus_places`. Players who shared a seat divide its points, or with `shared = "none"` get none.
    For the other parameters, see `BestOfParams`.
    """

    points: Annotated[list[PositiveFraction], Field(min_length=1, max_length=1_000)]
    bonus: dict[Literal["fastest_lap", "pole"], PositiveFraction] = {}
    bonus_places: Literal["all"] | Annotated[int, Field(ge=1, le=10_000)] = "all"
    shared: Literal["divide", "none"] = "divide"


def refuse_params(params: ChampionshipParams, players_max: int) -> str | None:
    """Return the problem with the parameters (points too large or too fine, or that no player gets), or None."""
    for key, value in [*(("points", value) for value in params.points), *params.bonus.items()]:
        where = f"params.{key}" if key == "points" else f"params.bonus.{key}"
        if Fraction(value) > POINTS_MAX:
            return f"{where}: must be at most {POINTS_MAX:,} points, not {value}"
        if (Fraction(value) * SCALE).denominator != 1:
            return f"{where}: {value} is finer than 1/{SCALE} of a point"
    if params.substitution == "leaver":
        return 'params.substitution: "leaver" would give no player the points of a seat taken over; use "both"'
    return None


def _to_units(value: int | str) -> int:
    return int(Fraction(value) * SCALE)


def prepare(params: ChampionshipParams) -> tuple[int, ...]:
    """Return the constants in the order of the names above; `BONUS_PLACES` is 0 for all places."""
    bonuses = [_to_units(params.bonus[name]) if name in params.bonus else 0 for name in ("fastest_lap", "pole")]
    return (
        int(params.shared == "divide"),
        *bonuses,
        0 if params.bonus_places == "all" else params.bonus_places,
        len(params.points),
        *map(_to_units, params.points),
    )


def start(params: ChampionshipParams) -> StateValues:
    """Return the state of a new player."""
    return (params.start * SCALE,)


def check(n: int, columns: Columns, params: ChampionshipParams) -> str | None:
    """Return the reason why a game cannot be scored (a number out of range, or a shared seat that is tied), or None."""
    for name, column, low, high in (
        ("fastest_lap", FASTEST, 0, 1),
        ("pole", POLE, 0, 1),
        ("guest", GUEST, 0, 1),
        ("drivers", DRIVERS, 1, 100),
        ("other_points", OTHER, 0, POINTS_MAX * SCALE),
        ("percent", PERCENT, 1, PERCENT_MAX),
    ):
        for value in columns[column][:n]:
            if value != MISSING and not low <= value <= high:
                return f"numbers.{name} is {value}; it must be from {low:,} to {high:,}"
    for i in range(n):
        if columns[STATUS][i] == SUBSTITUTE and columns[TIED][i] > 1 and columns[DRIVERS][i] == MISSING:
            return (
                f"a seat at place {columns[PLACE][i]} was shared and is tied with another; record the number of its "
                "players as numbers.drivers"
            )
    return None


def has_flag(columns: Columns, column: int, i: int) -> bool:
    """Tell whether a custom number of participant i is 1."""
    return bool(columns[column][i] == 1)


def is_classified(n: int, columns: Columns, i: int) -> bool:
    """Tell whether participant i finished the game, or a substitute took the seat over."""
    counts = columns[STATUS][i] in (FINISHED, SUBSTITUTE)
    for j in range(n):
        if columns[STATUS][j] == SUBSTITUTE and columns[PLACE][j] == columns[PLACE][i]:
            counts = True
    return counts


def scoring_place(n: int, columns: Columns, i: int) -> int:
    """Return the place of participant i for points, not counting guests in better places."""
    place = columns[PLACE][i]
    for j in range(n):
        if has_flag(columns, GUEST, j) and columns[STATUS][j] != SUBSTITUTE and columns[PLACE][j] < columns[PLACE][i]:
            place -= 1
    return place


def count_tied_seats(n: int, columns: Columns, i: int) -> int:
    """Count the seats that share the place of participant i, without guests."""
    tied = columns[TIED][i]
    for j in range(n):
        if has_flag(columns, GUEST, j) and columns[STATUS][j] != SUBSTITUTE and columns[PLACE][j] == columns[PLACE][i]:
            tied -= 1
    return max(tied, 1)


def count_drivers(n: int, columns: Columns, i: int) -> int:
    """Return the number of players who shared the seat of participant i."""
    if columns[DRIVERS][i] != MISSING:
        return columns[DRIVERS][i]
    if columns[TIED][i] > 1:
        return 1
    drivers = 0
    for j in range(n):
        if columns[PLACE][j] == columns[PLACE][i]:
            drivers += 1
    return drivers


def percent_of(columns: Columns, i: int) -> int:
    """Return the factor of the game's points, in hundredths."""
    return 100 if columns[PERCENT][i] == MISSING else columns[PERCENT][i]


def place_points(n: int, columns: Columns, constants: Numbers, i: int) -> int:
    """Return participant i's points for the place, in units."""
    if not is_classified(n, columns, i) or has_flag(columns, GUEST, i):
        return 0
    drivers = count_drivers(n, columns, i)
    if drivers > 1 and constants[DIVIDES] == 0:
        return 0
    first, tied = scoring_place(n, columns, i), count_tied_seats(n, columns, i)
    pooled = 0
    for place in range(first, min(first + tied, constants[POINTS_COUNT] + 1)):
        pooled += constants[FIRST_POINTS + place - 1]
    return pooled * percent_of(columns, i) // (100 * tied * drivers)


def count_holders(n: int, columns: Columns, column: int) -> int:
    """Count the players who share a bonus, without guests."""
    holders = 0
    for j in range(n):
        if has_flag(columns, column, j) and not has_flag(columns, GUEST, j):
            holders += 1
    return holders


def bonus_points(n: int, columns: Columns, constants: Numbers, i: int, column: int, worth: int) -> int:
    """Return participant i's points for a bonus of `worth`, in units."""
    if not has_flag(columns, column, i) or has_flag(columns, GUEST, i):
        return 0
    last = constants[BONUS_PLACES]
    if last > 0 and (not is_classified(n, columns, i) or scoring_place(n, columns, i) > last):
        return 0
    return worth * percent_of(columns, i) // (100 * count_holders(n, columns, column))


def score(n: int, before: Any, columns: Columns, constants: Numbers, table: Numbers, after: Any) -> int:
    """Add the points of the game. Return their sum, which is minted."""
    minted = 0
    for i in range(n):
        gained = place_points(n, columns, constants, i)
        gained += bonus_points(n, columns, constants, i, FASTEST, constants[FASTEST_BONUS])
        gained += bonus_points(n, columns, constants, i, POLE, constants[POLE_BONUS])
        if columns[OTHER][i] != MISSING:
            gained += columns[OTHER][i]
        after[0][i] = before[0][i] + gained
        minted += gained
    return minted


def explain(
    n: int, names: Sequence[str], before: Any, columns: Columns, params: ChampionshipParams, after: Any
) -> list[list[Term]]:
    """Return for every player the points of the place, of the bonuses, and of another seat."""
    constants = prepare(params)
    return [[*_explain_player(n, columns, constants, i)] for i in range(n)]


def _explain_player(n: int, columns: Columns, constants: Numbers, i: int) -> list[Term]:
    gained = place_points(n, columns, constants, i)
    terms = [Term(f"place {columns[PLACE][i]}", gained, _describe_place(n, columns, constants, i), assumes=("points",))]
    for term, column, bonus in (("fastest lap", FASTEST, FASTEST_BONUS), ("pole", POLE, POLE_BONUS)):
        if has_flag(columns, column, i) and (worth := constants[bonus]):
            amount = bonus_points(n, columns, constants, i, column, worth)
            reason = f"no bonus for {'a guest' if has_flag(columns, GUEST, i) else 'this place'}"
            detail = _describe_bonus(n, columns, i, column, worth) if amount else reason
            terms.append(Term(term, amount, detail, assumes=("bonus",)))
    if columns[OTHER][i] not in (MISSING, 0):
        terms.append(Term("another seat", columns[OTHER][i], "numbers.other_points"))
    return terms


def _describe_place(n: int, columns: Columns, constants: Numbers, i: int) -> str:
    """Describe why a place gives its points."""
    if not is_classified(n, columns, i):
        return "left the game; no points"
    if has_flag(columns, GUEST, i):
        return "a guest; those behind move up"
    first, tied, drivers = scoring_place(n, columns, i), count_tied_seats(n, columns, i), count_drivers(n, columns, i)
    details = []
    if first != columns[PLACE][i]:
        details.append(f"place {first} without guests")
    if tied > 1:
        details.append(f"tied: the mean of places {first} to {first + tied - 1}")
    if drivers > 1:
        details.append(f"shared by {drivers}" if constants[DIVIDES] else f"shared by {drivers}, so without points")
    if percent_of(columns, i) != 100:
        details.append(f"{percent_of(columns, i)} percent")
    return "; ".join(details) or f"worth {_format_points(constants, first)}"


def _describe_bonus(n: int, columns: Columns, i: int, column: int, worth: int) -> str:
    """Describe how a bonus is computed."""
    sharing = count_holders(n, columns, column)
    shared = f"; shared by {sharing}" if sharing > 1 else ""
    percent = percent_of(columns, i)
    return f"worth {Fraction(worth, SCALE)}{shared}{f'; {percent} percent' if percent != 100 else ''}"


def _format_points(constants: Numbers, place: int) -> str:
    return str(Fraction(constants[FIRST_POINTS + place - 1], SCALE)) if place <= constants[POINTS_COUNT] else "nothing"


def sample(n: int, random: Any, params: ChampionshipParams) -> Columns:
    """Return the columns of a random game, with leavers, ties, guests, and rounds that count half or double."""
    ranks = sorted(random.randrange(3 * n) for _ in range(n))
    place = [1 + ranks.index(rank) for rank in ranks]
    status = [random.choice([FINISHED, FINISHED, FINISHED, *LEAVERS]) for _ in range(n)]
    percent = random.choice([MISSING, MISSING, 50, 200])
    flags = [[random.choice([MISSING, 0, 1]) for _ in range(n)] for _ in (FASTEST, POLE, GUEST)]
    drivers = [random.choice([MISSING, MISSING, 1, 2, 3]) for _ in range(n)]
    other_points = [random.choice([MISSING, MISSING, 0, 420]) for _ in range(n)]
    return [place, status, [place.count(own) for own in place], *flags, drivers, other_points, [percent] * n]


RULE = Rule(
    name="placement-points",
    number=2,
    scale=SCALE,
    params=ChampionshipParams,
    columns=(
        "place",
        "status",
        "tied",
        "numbers.fastest_lap",
        "numbers.pole",
        "numbers.guest",
        "numbers.drivers",
        "numbers.other_points",
        "numbers.percent",
    ),
    prepare=prepare,
    table=no_table,
    refuse_params=refuse_params,
    check=check,
    score=score,
    explain=explain,
    ranking="best-of",
    counted_min=1,
    state=(State("points", SCALE, 2),),
    start=start,
    sample=sample,
    adds=True,
)

"""FIDE's rating of chess players: Elo by months, with an expected score from a table.

    change of a month = sum of K * (S - E) over its games, rounded to the whole point, half away from zero
    E: table 8.1.2 by the difference D of the ratings at the month's start;  S = 1 won, 1/2 drawn, 0 lost

(FIDE Handbook B.02, Rating Regulations, 8.1 to 8.3.) The rating, the number of games and the age at the month's start
decide on K: 40 below 30 games; else 10 for players who ever had 2400; else 40 while they are rated below 2300, up to
the end of the year in which they turn 18; else 20. If K times the games of the month exceeds 700, K is the largest
whole number that keeps it within 700.

A difference of more than 400 counts as 400. Three parameters cover the changes between versions of the regulations.
`difference_max_for`: the limit helps the stronger player in every game or, in each league, only in the game with the
largest difference (the weaker player's difference is always limited). `full_difference_from`: from this rating on, a
player's own differences count in full. `lift`: players between two ratings are lifted by this percentage of the way to
the upper one, once, when the version takes effect.

Players below the floor are unrated. So is a player without a seed if `start` is below the floor, as it is by default.
Games of an unrated player change no rating and do not count towards 700. Initial ratings are not computed. Only D and
the final sum are rounded, both to whole points: K, 100 S and 100 E are whole, so a sum is a whole number of hundredths.

    1922, K 40, beats 1798 (D 124, E 0.67), loses to 1801 (D 121, E 0.66) and beats 1897 (D 25, E 0.53):
    +13.20 - 26.40 + 18.80 = +5.60, rounded to +6: 1928
"""

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Annotated, Any, Literal, get_args

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
    joined,
)

SCALE = 1_000_000
STATE = (
    State("rating", SCALE, low=0, high=4_000 * SCALE),
    State("born", 1, low=0, high=9_999),
    State("reached", 1, low=0, high=1),
)
RATING, BORN, REACHED = range(len(STATE))
COLUMNS = ("place", "games_before", "league", "year")
PLACE, GAMES_BEFORE, LEAGUE, YEAR = range(len(COLUMNS))
# The columns of a period's rows: the opponent, the game, the player's columns, the opponent's columns.
OPPONENT, OWN, OTHERS = 0, 2, 2 + len(COLUMNS)
# The constants in order. Ratings and differences are in units.
(
    FLOOR,
    DIFFERENCE_MAX,
    ONE_A_LEAGUE,
    FULL_FROM,
    K,
    K_NEW,
    NEW_GAMES,
    K_HIGH,
    HIGH_FROM,
    K_YOUNG,
    YOUNG_AGE,
    YOUNG_BELOW,
    K_GAMES_MAX,
    LIFT,
    LIFT_FROM,
    LIFT_TO,
) = range(16)
# Table 8.1.2: the largest differences at which the stronger player expects 0.50, 0.51 ... 0.99; above 735, 1.
LARGEST_DIFFERENCES = (
    *(3, 10, 17, 25, 32, 39, 46, 53, 61, 68),
    *(76, 83, 91, 98, 106, 113, 121, 129, 137, 145),
    *(153, 162, 170, 179, 188, 197, 206, 215, 225, 235),
    *(245, 256, 267, 278, 290, 302, 315, 328, 344, 357),
    *(374, 391, 411, 432, 456, 484, 517, 559, 619, 735),
)

Cap = Literal["every game", "one game a league"]
Factor = Annotated[int, Field(ge=0, le=400)]
Points = Annotated[int, Field(ge=0, le=100_000)]


class FideEloParams(Params):
    """The regulations since October 2025. Ratings and differences are in points; `lift` is a percentage.

    A difference above `difference_max` counts as `difference_max`: always for the weaker player; for the stronger
    player in every game or in one game of a league (`difference_max_for`). From a rating of `full_difference_from` on,
    a player's differences count in full; 0 turns this off. `lift` raises players from `lift_from` to below `lift_to`
    once, when the version takes effect, by this percentage of their distance to `lift_to`; 0 lifts no player.
    """

    floor: Points = 1400
    difference_max: Annotated[int, Field(ge=1, le=100_000)] = 400
    difference_max_for: Cap = "every game"
    full_difference_from: Points = 2650
    k: Factor = 20
    k_new: Factor = 40
    new_games: Annotated[int, Field(ge=0, le=10_000)] = 30
    k_high: Factor = 10
    high_from: Points = 2400
    k_young: Factor = 40
    young_age: Annotated[int, Field(ge=0, le=200)] = 18
    young_below: Points = 2300
    k_games_max: Annotated[int, Field(ge=1, le=100_000)] = 700
    lift: Annotated[int, Field(ge=0, le=100)] = 0
    lift_from: Points = 1000
    lift_to: Points = 2000


def refuse_params(params: FideEloParams, players_max: int) -> str | None:
    """Return the problem with the parameters, or None. All results fit a signed 64-bit integer.

    A gap is below 2 * 10^16 units, and is at most doubled. A player's month is at most `k_games_max` points, 10^11
    units, and a lift computes less than 201 * 10^11 units. Sums over all players stay below 10^17.
    """
    if params.lift and params.lift_from >= params.lift_to:
        return f"params.lift_from: {params.lift_from} is not below lift_to, {params.lift_to}; change one of them"
    if params.high_from <= params.floor:
        return f"params.high_from: {params.high_from} is not above the floor, {params.floor}; change one of them"
    return None


def prepare(params: FideEloParams) -> tuple[int, ...]:
    """Return the parameters in the order of the constants, ratings and differences in units."""
    return (
        params.floor * SCALE,
        params.difference_max * SCALE,
        get_args(Cap).index(params.difference_max_for),
        params.full_difference_from * SCALE,
        params.k,
        params.k_new,
        params.new_games,
        params.k_high,
        params.high_from * SCALE,
        params.k_young,
        params.young_age,
        params.young_below * SCALE,
        params.k_games_max,
        params.lift,
        params.lift_from * SCALE,
        params.lift_to * SCALE,
    )


@cache
def expected_percentages() -> Numbers:
    """Return the stronger player's expected score in hundredths, by difference in points.

    The last entry is for all larger differences.
    """
    limits = (-1, *LARGEST_DIFFERENCES)
    steps = range(len(LARGEST_DIFFERENCES))
    return (*(50 + step for step in steps for _ in range(limits[step + 1] - limits[step])), 100)


def start(params: FideEloParams) -> StateValues:
    """Return the state of a player without a seed, who is unrated if `start` is below the floor."""
    return params.start * SCALE, 0, 0


def check(n: int, columns: Columns, params: FideEloParams) -> str | None:
    """Return the reason why a game cannot be rated (it does not have two players), or None."""
    return None if n == 2 else f"FIDE rates games of two players; this game has {n}"


def round_to_points(units: int) -> int:
    """Round units to whole points, half away from zero. The result is still in units."""
    size = (2 * abs(units) + SCALE) // (2 * SCALE) * SCALE
    return -size if units < 0 else size


def expected_percentage(gap: int, table: Numbers) -> int:
    """Return the expected score, in hundredths, of a player `gap` units ahead."""
    points = (2 * abs(gap) + SCALE) // (2 * SCALE)
    percentage = table[min(points, len(table) - 1)]
    return percentage if gap >= 0 else 100 - percentage


def factor_of(rating: int, born: int, reached: int, games: int, year: int, constants: Numbers) -> int:
    """Return K for a player with this state and this number of earlier games, in a month of this year."""
    if games < constants[NEW_GAMES]:
        return constants[K_NEW]
    if reached > 0 or rating >= constants[HIGH_FROM]:
        return constants[K_HIGH]
    if born > 0 and 0 < year <= born + constants[YOUNG_AGE] and rating < constants[YOUNG_BELOW]:
        return constants[K_YOUNG]
    return constants[K]


def limit_gap(gap: int, own: int, is_helped: bool, constants: Numbers) -> int:
    """Return the difference that counts for a player rated `own`, who is `gap` units ahead.

    `is_helped` tells whether the limit applies even if the player is the stronger one.
    """
    limit = constants[DIFFERENCE_MAX]
    if constants[FULL_FROM] > 0 and own >= constants[FULL_FROM]:
        return gap
    if gap > limit:
        return limit if is_helped else gap
    return max(gap, -limit)


def is_rated(rating: int, constants: Numbers) -> bool:
    """Tell whether a player with this rating is rated."""
    return rating >= constants[FLOOR]


def is_largest(p: int, row: int, before: Columns, offsets: Numbers, rows: Columns, constants: Numbers) -> bool:
    """Tell whether the game of a row has the largest difference among player p's rated games in its league.

    Of games with equal differences, only the first one counts as the largest. A game without a league always does.
    """
    league, opponent_rating = rows[OWN + LEAGUE][row], before[RATING][rows[OPPONENT][row]]
    if league == MISSING:
        return True
    for other_row in range(offsets[p], offsets[p + 1]):
        rating = before[RATING][rows[OPPONENT][other_row]]
        is_larger = rating < opponent_rating or (rating == opponent_rating and other_row < row)
        if is_larger and rows[OWN + LEAGUE][other_row] == league and is_rated(rating, constants):
            return False
    return True


def counted_gap(p: int, row: int, before: Columns, offsets: Numbers, rows: Columns, constants: Numbers) -> int:
    """Return the difference, in units, that counts for player p in the game of this row."""
    own = before[RATING][p]
    gap = own - before[RATING][rows[OPPONENT][row]]
    is_helped = True
    if constants[ONE_A_LEAGUE] > 0 and gap > constants[DIFFERENCE_MAX]:
        is_helped = is_largest(p, row, before, offsets, rows, constants)
    return limit_gap(gap, own, is_helped, constants)


def count_rated_games(p: int, before: Columns, offsets: Numbers, rows: Columns, constants: Numbers) -> int:
    """Count the games in a period that count for player p: those between two rated players."""
    count = 0
    if is_rated(before[RATING][p], constants):
        for row in range(offsets[p], offsets[p + 1]):
            count += int(is_rated(before[RATING][rows[OPPONENT][row]], constants))
    return count


def period_factor(p: int, before: Columns, offsets: Numbers, rows: Columns, constants: Numbers) -> int:
    """Return K of player p at the start of a period, before the limit on K times games."""
    first = offsets[p]
    games = rows[OWN + GAMES_BEFORE][first]
    for row in range(first, offsets[p + 1]):
        games = min(games, rows[OWN + GAMES_BEFORE][row])
    year = rows[OWN + YEAR][first]
    return factor_of(before[RATING][p], before[BORN][p], before[REACHED][p], games, year, constants)


def limit_factor(factor: int, games: int, constants: Numbers) -> int:
    """Return K, lowered if K times the games of a period would exceed `k_games_max`."""
    return constants[K_GAMES_MAX] // games if factor * games > constants[K_GAMES_MAX] else factor


def change_of_game(factor: int, place: int, others_place: int, gap: int, table: Numbers) -> int:
    """Return the exact change of one game, in units."""
    twice_scored = 2 if place < others_place else 0 if place > others_place else 1
    return factor * (50 * twice_scored - expected_percentage(gap, table)) * (SCALE // 100)


def score_period(
    players: int, before: Columns, offsets: Numbers, rows: Columns, constants: Numbers, table: Numbers, after: Any
) -> int:
    """Fill in the states after a period. Return the minted points."""
    total = 0
    for p in range(players):
        games = count_rated_games(p, before, offsets, rows, constants)
        if games == 0:
            continue
        factor = limit_factor(period_factor(p, before, offsets, rows, constants), games, constants)
        exact = 0
        for row in range(offsets[p], offsets[p + 1]):
            if is_rated(before[RATING][rows[OPPONENT][row]], constants):
                gap = counted_gap(p, row, before, offsets, rows, constants)
                exact += change_of_game(factor, rows[OWN + PLACE][row], rows[OTHERS + PLACE][row], gap, table)
        total += store_rating(p, exact, before, constants, after)
    return max(total, 0)


def store_rating(p: int, exact: int, before: Columns, constants: Numbers, after: Any) -> int:
    """Fill in the state of a rated player after an exact change. Return the rounded change."""
    change = round_to_points(exact)
    after[RATING][p] = before[RATING][p] + change
    if max(before[RATING][p], after[RATING][p]) >= constants[HIGH_FROM]:
        after[REACHED][p] = 1
    return change


def score(n: int, before: Columns, columns: Columns, constants: Numbers, table: Numbers, after: Any) -> int:
    """Fill in the states after a single game, as if it were a period of its own. Return the minted points."""
    total = 0
    if is_rated(before[RATING][0], constants) and is_rated(before[RATING][1], constants):
        for i in range(2):
            total += store_rating(
                i, change_of_single_game(i, before, columns, constants, table), before, constants, after
            )
    return max(total, 0)


def change_of_single_game(i: int, before: Columns, columns: Columns, constants: Numbers, table: Numbers) -> int:
    """Return the exact change of participant i by a single game between two rated players."""
    own, games, year = before[RATING][i], columns[GAMES_BEFORE][i], columns[YEAR][i]
    factor = factor_of(own, before[BORN][i], before[REACHED][i], games, year, constants)
    gap = limit_gap(own - before[RATING][1 - i], own, True, constants)
    place = columns[PLACE]
    return change_of_game(limit_factor(factor, 1, constants), place[i], place[1 - i], gap, table)


def enter(state: StateValues, constants: Numbers) -> StateValues:
    """Return a player's state when a version takes effect: lifted towards `lift_to`, in whole points."""
    rating, born, reached = state
    low, high = constants[LIFT_FROM], constants[LIFT_TO]
    if constants[LIFT] > 0 and low <= rating < high:
        hundredfold = 100 * rating + constants[LIFT] * (high - rating)
        rating = (2 * hundredfold + 100 * SCALE) // (200 * SCALE) * SCALE
    return rating, born, reached


def provisional(state: StateValues, games: int, params: FideEloParams) -> bool:
    """Tell whether a player is unrated, or has fewer than `new_games` games."""
    return not is_rated(state[RATING], prepare(params)) or games < params.new_games


def chance(i: int, j: int, before: Columns, columns: Columns, constants: Numbers, table: Numbers) -> int:
    """Return the expected score of player i against player j, by the table and the full difference.

    An expected score of 1 is lowered to 0.995, because a chance must be below 1. If a player is unrated, the expected
    score is 1/2.
    """
    own, opponent = before[RATING][i], before[RATING][j]
    if not (is_rated(own, constants) and is_rated(opponent, constants)):
        return ONE // 2
    percentage = expected_percentage(abs(own - opponent), table)
    stronger = min(2 * percentage, 199) * ONE // 200
    return stronger if own >= opponent else ONE - stronger


def sample(n: int, random: Random, params: FideEloParams) -> Columns:
    """Return the columns of a random game, won or drawn, in one of three leagues or in none."""
    winner = random.randint(-1, n - 1)
    place = [1 if winner in (i, -1) else 2 for i in range(n)]
    league, year = random.choice([MISSING, 0, 1, 2]), random.randint(1990, 2030)
    return place, [random.choice([0, 29, 30, 400]) for _ in range(n)], [league] * n, [year] * n


def explain(
    n: int, names: Sequence[str], before: Any, columns: Columns, params: FideEloParams, after: Any
) -> list[list[Term]]:
    """Return for both players the terms of a single game, as if it were a period of its own."""
    rows = [[1, 0], [0, 0], *columns, *([column[1], column[0]] for column in columns)]
    terms = []
    for i in range(n):
        player_terms = explain_period(i, names, before, [0, 1, 2], rows, params, after)
        terms.append([term for _, term in player_terms])
    return terms


def explain_period(
    p: int,
    names: Sequence[str],
    before: Columns,
    offsets: Numbers,
    rows: Columns,
    params: FideEloParams,
    after: Columns,
) -> list[tuple[int, Term]]:
    """Return a term for every game of player p, then, if needed, one for rounding and one for a lost rating."""
    constants, own = prepare(params), before[RATING][p]
    games = count_rated_games(p, before, offsets, rows, constants)
    full = period_factor(p, before, offsets, rows, constants) if games else 0
    factor = limit_factor(full, games, constants) if games else 0
    limit = f"K times {games} games may not exceed {params.k_games_max}"
    lowered = f"K is {factor} instead of {full}, because {limit}" if factor < full else ""
    terms = []
    for row in range(offsets[p], offsets[p + 1]):
        opponent = rows[OPPONENT][row]
        unrated = [names[q] for q in (p, opponent) if not is_rated(before[RATING][q], constants)]
        if unrated:
            terms.append((row, _explain_uncounted(names[opponent], unrated, params)))
            continue
        gap = counted_gap(p, row, before, offsets, rows, constants)
        places = rows[OWN + PLACE][row], rows[OTHERS + PLACE][row]
        amount = change_of_game(factor, *places, gap, expected_percentages())
        notes = [_describe_ratings(own, before[RATING][opponent], gap), *([lowered] if lowered else [])]
        detail = f"K {factor}, expected {decimal(expected_percentage(gap, expected_percentages()), 100)}"
        scored = "1" if places[0] < places[1] else "0" if places[0] > places[1] else "0.5"
        terms.append((row, Term(f"vs {names[opponent]}", amount, f"{detail}, scored {scored}", "; ".join(notes))))
    rounded = after[RATING][p] - own - sum(term.amount for _, term in terms)
    if rounded:
        terms.append((-1, Term("rounding", rounded, "the sum, to whole points, half away from zero")))
    if is_rated(own, constants) and not is_rated(after[RATING][p], constants):
        reason = f"below the floor of {params.floor}: unrated from now on"
        terms.append((-1, Term("unrated", 0, reason, "", ("floor",))))
    return terms


def _explain_uncounted(opponent: str, unrated: list[str], params: FideEloParams) -> Term:
    reason = f"not counted: {joined(unrated)} {'are' if len(unrated) > 1 else 'is'} unrated"
    return Term(f"vs {opponent}", 0, reason, f"a seed of at least {params.floor} makes a player rated", ("floor",))


def _describe_ratings(own: int, opponent: int, gap: int) -> str:
    note = f"rated {decimal(own, SCALE)} against {decimal(opponent, SCALE)}"
    if gap == own - opponent:
        return note
    return f"{note}, a difference of {decimal(abs(own - opponent), SCALE)} that counts as {decimal(abs(gap), SCALE)}"


RULE = Rule(
    name="fide-elo",
    number=1,
    scale=SCALE,
    params=FideEloParams,
    columns=COLUMNS,
    prepare=prepare,
    table=expected_percentages,
    refuse_params=refuse_params,
    check=check,
    score=score,
    explain=explain,
    chance=chance,
    state=STATE,
    start=start,
    score_period=score_period,
    explain_period=explain_period,
    enter=enter,
    shown=("rating",),
    provisional=provisional,
    sample=sample,
)

"""Define the rule contract: the only module that rules import besides the standard library and pydantic.

A rule is one small pure file that ends in `RULE = Rule(...)`. Its `score` uses only plain arrays of integers, so the
same source can be interpreted for short histories and compiled for long ones, with bit-identical results.
"""

import re
from collections.abc import Callable, MutableSequence, Sequence
from fractions import Fraction
from math import lcm
from random import Random
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, WrapValidator

from ratings_ledger.ledger.events.game_clocks import ClockTimers as ClockTimers
from ratings_ledger.ledger.events.games import LEAVER_STATUSES, STATUSES
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections.deterministic_math import exp as exp
from ratings_ledger.projections.deterministic_math import fixed_divide as fixed_divide
from ratings_ledger.projections.deterministic_math import fixed_exp as fixed_exp
from ratings_ledger.projections.deterministic_math import fixed_ln as fixed_ln
from ratings_ledger.projections.deterministic_math import fixed_multiply as fixed_multiply
from ratings_ledger.projections.deterministic_math import fixed_sqrt as fixed_sqrt
from ratings_ledger.projections.deterministic_math import ln as ln
from ratings_ledger.projections.deterministic_math import logistic as logistic
from ratings_ledger.projections.deterministic_math import power as power
from ratings_ledger.projections.deterministic_math import real as real
from ratings_ledger.projections.deterministic_math import root as root
from ratings_ledger.projections.deterministic_math import units as units
from ratings_ledger.projections.expected_scores import EXPECTED_SCALES as EXPECTED_SCALES
from ratings_ledger.projections.expected_scores import INVERSE as INVERSE
from ratings_ledger.projections.expected_scores import ONE as ONE
from ratings_ledger.projections.expected_scores import Numbers as Numbers
from ratings_ledger.projections.expected_scores import expected as expected
from ratings_ledger.projections.expected_scores import expected_scores as expected_scores
from ratings_ledger.projections.expected_scores import rounded as rounded

INT64_MAX = 2**63 - 1
# The limit of a player's points, in units. With larger points, products in a rule might overflow 64 bits.
UNITS_MAX = 10**16
# the largest common denominator of weights: stored standings have 32 bits for it times the scale of the rule
WEIGHTS_DIVISOR_MAX = 1_000_000
# The value of a missing number in `STATE_RULE_COLUMNS` and in columns of custom numbers. Other columns have -1 instead.
MISSING = -(2**62)
# The most state columns that a rule may declare; known rating systems need fewer.
STATE_COLUMNS_MAX = 6
# Numbers that participants of every game type may have; -1 if missing.
OPTIONAL_COLUMNS = ("seconds_played", "seat")
# Columns that every rule may read in every game type, with their descriptions.
COMMON_COLUMNS = {
    "place": "the competition place (1, 2, 2, 4) among all seats, even uncounted ones; 0 in a game type without places",
    "status": f"{', '.join(f'{number} {name}' for number, name in enumerate(STATUSES))}",
    "seats": "the number of seats of the game, including those that do not count; the same for all players of a game",
    "tied": "the number of seats at the player's place, including their own; 1 if the player is not tied",
    "seconds_played": "the seconds that the player played, from the result or else the game's clock; -1 if unknown",
    "seat": "the number of the seat, such as the order of moves, or 1 for the home player; -1 if it is not recorded",
}
# Further columns for rules with state, in every game type. A custom number is a column `numbers.NAME`.
STATE_RULE_COLUMNS = {
    "team": "the number of the player's side in its game, from 0 on; missing in games without teams",
    "home": "1 if the player's side played at home, -1 if the other side did, 0 if neither or if not recorded",
    "score": "the score, in units of the ruleset's score_decimals, negated where low wins; missing if not recorded",
    "side_score": "the score of the player's side: in a battle the sum of all scores, else the common score",
    "games_before": "the counted games of the player on this ladder before this one, including the games of a seed or, "
    "with `carry_over`, of earlier seasons",
    "days_since": "the calendar days in the ruleset's zone since the player's last counted game on this ladder; 0 on "
    "the same day, missing for the first game",
    "first_of_season": "1 for the player's first counted game of a season, else 0",
    "league": "a number that all games of the same league share; missing for a game without a league",
    "year": "the calendar year of the game in the ruleset's zone",
}
# Columns of STATE_RULE_COLUMNS that depend on the ladder's earlier games instead of the record of the game.
HISTORY_COLUMNS = ("games_before", "days_since", "first_of_season")
# The prefix of columns of custom numbers.
NUMBERS = "numbers."
# More than any game has: a record of 65,535 bytes has no room for this number of participants.
PLAYERS_MAX = 4_096
# Values of the column `status`.
FINISHED = STATUSES.index("finished")
SURRENDERED = STATUSES.index("surrendered")
SUBSTITUTE = STATUSES.index("substitute")
LEAVERS = tuple(STATUSES.index(status) for status in LEAVER_STATUSES)


class Params(BaseModel):
    """The parameters of a rule. The model is frozen, strict, and rejects unknown names.

    start:        the points of a new player, in whole points
    min_games:    players with fewer counted games have no rank yet (not qualified)
    carry_over:   whether players begin a season with the points from the end of their last season instead of `start`
    substitution: the players of a seat who count if the seat changed hands
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    start: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 0
    min_games: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    carry_over: bool = False
    substitution: Literal["both", "leaver", "substitute", "none"] = "both"


class TableParams(Params):
    """The parameters of a league table. It sums all results of a player, or only the `best_of` best ones.

    `tie_break` ranks players with equal sums. To subscribe to a league, a player must have finished `active_games`
    games in the last `active_days` days.
    """

    active_games: Annotated[int, Field(ge=0, le=1_000)] = 0
    active_days: Annotated[int, Field(ge=1, le=10_000)] = 90
    best_of: Literal["all"] | Annotated[int, Field(ge=1, le=1_000)] = "all"
    tie_break: Literal["none", "more wins", "head-to-head"] = "none"


def _check_fraction(text: int | str) -> int | str:
    # check the form before computing the value: "1e999999999" is also a valid number
    if not re.fullmatch(r"(?=0*\.?0*[1-9])\d{1,9}(\.\d{1,9}|/\d{1,9})?", str(text), re.ASCII):
        message = (
            'a positive number or fraction is needed, such as 8, "7.5" or "64/3", with at most 9 digits in each part'
        )
        raise ValueError(message)
    try:
        Fraction(text)
    except ZeroDivisionError:
        raise ValueError("the denominator is zero") from None
    return text


# An exact positive number: an integer, or a string such as "7.5" or "64/3".
PositiveFraction = Annotated[int | str, AfterValidator(_check_fraction)]


def needs(form: str) -> WrapValidator:
    """Return a validator that replaces all errors of a union type with one message: "`form` is needed"."""

    def check_form(value: Any, check_value: Callable[[Any], Any]) -> Any:
        try:
            return check_value(value)
        except ValidationError:
            raise ValueError(f"{form} is needed") from None

    return WrapValidator(check_form)


# An exact number that may also be 0.
FractionOrZero = Annotated[PositiveFraction | Literal[0], needs('0, or a positive fraction such as 8, "7.5" or "64/3"')]


class SeasonPart(BaseModel):
    """A part of a season: its number of games, and the number of a player's best results that count.

    The last part covers all remaining games, even if `rounds` is set.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    rounds: Annotated[int, Field(ge=1, le=1_000)] | None = None
    best: Literal["all"] | Annotated[int, Field(ge=1, le=1_000)] = "all"


def _check_parts(parts: list[SeasonPart]) -> list[SeasonPart]:
    if any(part.rounds is None for part in parts[:-1]):
        raise ValueError("every part but the last needs `rounds`, such as [{rounds = 6, best = 5}, {best = 4}]")
    return parts


def _check_weights(weights: dict[str, str | int]) -> dict[str, str | int]:
    """Raise `ValueError` if stored standings cannot hold points in units of the weights' common denominator."""
    divisor = lcm(*(Fraction(weight).denominator for weight in weights.values()))
    if divisor > WEIGHTS_DIVISOR_MAX:
        raise ValueError(f"the common denominator is {divisor:,}; it must be at most {WEIGHTS_DIVISOR_MAX:,}")
    return weights


TieBreak = Literal["places", "first", "more wins", "head-to-head", "last game"]


class BestOfParams(Params):
    """The parameters of a championship. Its rounds are the ladder's games in order, numbered from 1.

    parts:          the parts of the season, each with its number of best results; without parts, all results count
    weights:        by round, the factor of its points, applied before the best results are chosen; 1 by default
    tie_breaks:     the criteria that break ties, in order; players who are still tied share a rank
    places_counted: the number of places, from the first on, that the criteria `places` and `first` compare
    unranked:       the players who get no rank in spite of their points, each with the reason
    """

    parts: Annotated[list[SeasonPart], Field(max_length=100), AfterValidator(_check_parts)] = []
    weights: Annotated[
        dict[Annotated[str, Field(pattern=r"^[1-9][0-9]{0,3}$")], PositiveFraction], AfterValidator(_check_weights)
    ] = {}
    tie_breaks: Annotated[list[TieBreak], Field(max_length=10)] = []
    places_counted: Literal["all"] | Annotated[int, Field(ge=1, le=10_000)] = "all"
    unranked: dict[str, str] = {}


class PeriodParams(Params):
    """The parameters of a monthly list: the score, and the gold for the first places.

    With `gold_ties = "pool"`, tied players split the gold of their places evenly; an indivisible remainder is not paid.
    """

    # players start with 0, because only games give points
    start: Annotated[int, Field(ge=0, le=0)] = 0
    score: Literal["mean", "sum"] = "mean"
    gold: Annotated[list[Annotated[int, Field(ge=0, le=1_000)]], Field(max_length=100)] = []
    gold_ties: Literal["by_place", "pool"] = "by_place"
    substitution: Literal["both", "leaver", "substitute", "none"] = "none"


# Rows of whole numbers, one for each place: the row for n players has the key "n" and n entries.
Rows = dict[str, list[int]]


class Term(NamedTuple):
    """One part of a change of points: its name, its amount in units of 1/scale point, and how it was computed.

    `note` adds a line for the reader below the term.

    `assumes` names the parameters that determine the amount. If a ruleset marks one of them as assumed, explanations
    say so.

    `values` are (name, number) pairs from the computation. An Elo rule gives `k`, `expected` and `scored` if the amount
    is k * (scored - expected); for a game of two, `explain` then prints this as a sentence.
    """

    term: str
    amount: int
    detail: str
    note: str = ""
    assumes: tuple[str, ...] = ()
    values: tuple[tuple[str, Fraction | int], ...] = ()


Columns = Sequence[Numbers]
Changes = MutableSequence[int]
# A player's state: one number for each state column of the rule.
StateValues = tuple[int, ...]
Score = Callable[[int, Any, Columns, Numbers, Numbers, Any], int]


class State(NamedTuple):
    """A column of a player's state, such as rating or deviation: whole numbers in units of 1/`scale`.

    Output has `decimals` decimal places. A seed must be from `low` to `high`, in units, because the rule cannot score
    values outside this range.
    """

    name: str
    scale: int
    decimals: int = 0
    low: int = -UNITS_MAX
    high: int = UNITS_MAX


class Rule(NamedTuple):
    """A scoring rule and its number. A change of behaviour gets a new number, and the old rule stays available.

    scale:   the number of units per point
    params:  the model of the rule's parameters
    columns: the names of the columns that the rule reads, in the order in which `score` gets them
    prepare: params -> the integers (`constants`) that `score` gets for these parameters
    table:   () -> a constant table of integers for `score`; empty if `score` needs none
    refuse_params: (params, players_max) -> the problem with the parameters for games of up to `players_max` players,
             or None
    check:   (n, columns, params) -> the reason why a game of n counted players cannot be scored, or None. `check` is
             None if the rule can score every game of `counted_min` or more players
    score:   (n, points, columns, constants, table, change) -> the points minted. `points` are the points before the
             game, in units. `score` overwrites the first n entries of `change`. Participants are sorted by id. The
             minted points minus the sum of the changes are burned; this difference must not be negative. `score` may
             call plain functions of its own module
    explain: (n, names, points, columns, params, change) -> for every participant the terms that sum to their change
    ranking: the name of the list (`projections.lists`) that ranks the points; by default `points`, the running points
    counted_min: the minimum number of counted players of a scored game
    chance:  (i, j, points, columns, constants, table) -> the expected score of player i against player j, in units of
             2^-32, strictly between 0 and 2^32. None if the rule does not predict results. A function of four arguments
             gets (i's points, j's points, constants, table)
    remark:  (n, names, columns, params) -> a remark on the game as a whole, such as who won it. None: no remarks

    A rule of contract 2 declares its `state`. It has `start`, and `score` with `explain`, or `score_period` with
    `explain_period`, or both pairs; the other functions below are optional. Functions that loops call get `constants`
    (from `prepare`) instead of `params`, so that the functions can be compiled.

    state:      the columns of every player's state. The trial balance sums column 0; without `rank_by`, the ladder
                ranks by column 0
    start:      params -> the state of a new player
    score:      (n, before, columns, constants, table, after) -> the points minted. `before[c][i]` and `after[c][i]` are
                state column c of participant i; `after` starts as a copy of `before`. The minted points minus the sum
                of the changes of column 0 are burned; this difference must not be negative
    explain:    (n, names, before, columns, params, after) -> for every participant the terms that sum to the change of
                column 0
    score_period: (players, before, offsets, rows, constants, table, after) -> the points minted. Player p's results
                are rows[k][offsets[p]:offsets[p + 1]], one for each game and opponent: rows[0] is the opponent, as an
                index into `before[c]`; rows[1] numbers the game within the period; the rule's `columns` of the player
                follow, then its `columns` of the opponent. `before` holds the states at the period's start
    explain_period: (p, names, before, offsets, rows, params, after) -> (row, term) for every cause of the change of
                player p's column 0. The row is -1 for a term without a result of its own, such as rounding
    age:        (state, elapsed, constants) -> the state after `elapsed` calendar days without a counted game. With
                rating periods, `elapsed` counts the periods since the player's last one, so it is 1 in the next period.
                `age` must not change column 0
    new_season: (state, constants) -> the state with which a player begins another season
    enter:      (state, constants) -> the state of a player when this version of the ruleset takes effect
    rank_by:    (state, params) -> the value to rank by, highest first, in units of column 0. None: rank by column 0
    ranked_by:  a description of the value of `rank_by`; a parameter's name in braces stands for its value
    shown:      the names of the columns that appear in output; empty: all
    provisional: (state, games, params) -> whether the rating is still provisional
    draw:       (i, j, before, columns, constants, table) -> the probability of a draw, in units of 2^-32. With it,
                `chance` is the expected score: win + draw / 2
    adds:       whether the changes of a game are independent of all states, and points are the only state. A club's
                score may then be the sum or the maximum of its players' points
    sample:     (n, random, params) -> columns of a game of n players that the rule can score, in the order of
                `columns`, for trial games. None: the rule can score any columns
    """

    name: str
    number: int
    scale: int
    params: type[Params]
    columns: tuple[str, ...]
    prepare: Callable[[Any], tuple[int, ...]]
    table: Callable[[], Numbers]
    refuse_params: Callable[[Any, int], str | None]
    check: Callable[[int, Columns, Any], str | None] | None
    score: Score
    explain: Callable[[int, Sequence[str], Numbers, Columns, Any, Numbers], list[list[Term]]]
    ranking: str = "points"
    counted_min: int = 2
    remark: Callable[[int, Sequence[str], Columns, Any], str] | None = None
    chance: Callable[..., int] | None = None
    state: tuple[State, ...] = ()
    start: Callable[[Any], StateValues] | None = None
    score_period: Callable[..., int] | None = None
    explain_period: Callable[..., list[tuple[int, Term]]] | None = None
    age: Callable[[StateValues, int, Numbers], StateValues] | None = None
    new_season: Callable[[StateValues, Numbers], StateValues] | None = None
    enter: Callable[[StateValues, Numbers], StateValues] | None = None
    rank_by: Callable[[StateValues, Any], int] | None = None
    ranked_by: str = "a value that the rule computes"
    shown: tuple[str, ...] = ()
    provisional: Callable[[StateValues, int, Any], bool] | None = None
    draw: Callable[..., int] | None = None
    sample: Callable[[int, Any, Any], Columns] | None = None
    adds: bool = False

    @property
    def width(self) -> int:
        """Return the number of state columns of a player."""
        return len(self.state) or 1

    @property
    def shown_columns(self) -> tuple[int, ...]:
        """Return the indices of the state columns that appear in output."""
        return tuple(index for index, column in enumerate(self.state) if not self.shown or column.name in self.shown)

    @property
    def id(self) -> str:
        """Return `name/number`, by which rulesets refer to the rule."""
        return f"{self.name}/{self.number}"


def exact(units: int, scale: int) -> str:
    """Return points as an exact string: a whole number or a reduced fraction.

    >>> exact(8_000_000, 1_000_000), exact(5600, 840)
    ('8', '20/3')
    """
    return str(Fraction(units, scale))


def decimal(units: int, scale: int, places: int = 6, signed: bool = False) -> str:
    """Return points as a decimal number, rounded half away from zero to `places` decimals, without trailing zeros.

    >>> decimal(-1_500_000, 1_000_000), decimal(5600, 840, 2), decimal(8, 1, signed=True)
    ('-1.5', '6.67', '+8')
    """
    if scale == 1:
        return f"{units:+d}" if signed and units else str(units)
    power = 10**places
    whole, rest = divmod((abs(units) * power * 2 + scale) // (scale * 2), power)
    text = f"{whole}.{rest:0{places}d}".rstrip("0") if rest else str(whole)
    sign = "-" if units < 0 else "+" if signed and units > 0 else ""
    return sign + text if text != "0" else text


def align_decimals(numbers: Sequence[str]) -> list[str]:
    """Pad the decimal numbers of a column to the same number of places. Other texts stay unchanged.

    >>> align_decimals(["39.15", "6.8", "7", "-", ""])
    ['39.15', '6.80', '7.00', '-', '']
    """
    longest = max((len(text.partition(".")[2]) for text in numbers), default=0)
    return [
        f"{text}{'' if '.' in text else '.'}{'0' * (longest - len(text.partition('.')[2]))}"
        if longest and text[-1:].isdigit()
        else text
        for text in numbers
    ]


def joined(names: Sequence[str]) -> str:
    """Join names with commas and a final "and", as in a sentence.

    >>> joined(["anna"]), joined(["anna", "ben", "cleo"])
    ('anna', 'anna, ben and cleo')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def no_table() -> Numbers:
    """Return an empty table, for a rule that needs none."""
    return ()


def refuse_rows(key: str, rows: Rows, what: str, players_max: int = 99) -> str | None:
    """Return the problem with the rows of a parameter, or None.

    Args:
        key: the name of the parameter, for messages
        what: the plural noun for the entries of a row, such as "percentages", for messages
        players_max: the largest number of players that may have a row
    """
    if not rows:
        return f"{key}: a row for at least one number of players is needed"
    for name, row in rows.items():
        if not re.fullmatch(r"[2-9]|[1-9][0-9]", name) or int(name) > players_max:
            return f"{key}: {quote(name)} is not a number of players from 2 to {players_max}"
        if len(row) != int(name):
            return f"{key}.{name}: {name} players need {name} {what}, one for each place, not {len(row)}"
    return None


def refuse_percentages(key: str, rows: Rows) -> str | None:
    """Return the problem with the rows of percentages of the parameter `key`, or None."""
    if problem := refuse_rows(key, rows, "percentages"):
        return problem
    for name, row in rows.items():
        if invalid := [percentage for percentage in row if not 0 <= percentage <= 100]:
            return f"{key}.{name}: a percentage must be a whole number from 0 to 100, not {quote(invalid[0])}"
    return None


def flat_rows(rows: Rows) -> tuple[int, ...]:
    """Concatenate the rows from 2 players on. Missing rows are zeros. The row of n starts at index n(n - 1)/2 - 1.

    >>> flat_rows({"2": [0, 16], "3": [0, 13, 20]})
    (0, 16, 0, 13, 20)
    """
    largest = max(map(int, rows))
    return tuple(value for n in range(2, largest + 1) for value in rows.get(str(n), [0] * n))


def told_sizes(rows: Rows) -> str:
    """Describe the numbers of players for which there are rows.

    >>> told_sizes({"2": [0, 16], "5": [0, 10, 16, 22, 28]})
    '2 or 5'
    """
    sizes = sorted(map(int, rows))
    gapless = len(sizes) > 2 and sizes[-1] - sizes[0] == len(sizes) - 1
    return f"{sizes[0]} to {sizes[-1]}" if gapless else " or ".join(map(str, sizes))


def refuse_two_in_a_seat(place: Numbers, status: Numbers) -> str | None:
    """Return the reason why a rule for one player per seat cannot score these counted participants, or None.

    A leaver and a substitute with the same place shared a seat.
    """
    substituted = {place[i] for i in range(len(place)) if status[i] == SUBSTITUTE}
    if any(status[i] in LEAVERS and place[i] in substituted for i in range(len(place))):
        return "a seat changed hands and both its players would count; the rule takes one player per seat"
    return None


def refuse_all_but_single_players(place: Numbers, team: Numbers, status: Numbers) -> str | None:
    """Return the reason why a rule that compares all pairs of players by place cannot score a game, or None.

    `place`, `team` and `status` are columns of the counted participants.
    """
    if 0 in place:
        return "the game has no places; the rule needs them to compare the players"
    sides = [side for side in team if side != MISSING]
    if len({*sides}) < len(sides):
        return "two players are on one team; the rule rates individuals who each play against all others"
    return refuse_two_in_a_seat(place, status)


def draw_places(n: int, random: Random) -> list[int]:
    """Draw random places, possibly tied, for a game of n players."""
    ranks = [random.randint(1, n) for _ in range(n)]
    return [1 + sum(other_rank < rank for other_rank in ranks) for rank in ranks]


def results_of_game(n: int, columns: Columns) -> tuple[list[int], list[list[int]]]:
    """Return the results of all pairs of players of a game as `offsets` and `rows` of a period with only this game."""
    pairs = [(i, j) for i in range(n) for j in range(n) if j != i]
    rows = [[j for _, j in pairs], [0] * len(pairs)]
    rows += [[column[pair[side]] for pair in pairs] for side in (0, 1) for column in columns]
    return [i * (n - 1) for i in range(n + 1)], rows


def check_single_players(n: int, columns: Columns, params: Any) -> str | None:
    """Return the reason why a rule that compares all pairs cannot score a game, or None.

    The rule must read the columns place, team and status.
    """
    place, team, status = columns
    return refuse_all_but_single_players(place, team, status)


def sample_single_players(n: int, random: Random, params: Any) -> Columns:
    """Draw the columns place, team and status for a game without teams."""
    return [draw_places(n, random), [MISSING] * n, [FINISHED] * n]


class Weighing(NamedTuple):
    """How a rule with ratings and deviations, both in units of 1/`scale`, weighs results.

    compare: (rating difference, opponent's deviation, place, opponent's place) -> the weighted surprise of a result
             (actual minus expected score), and the information of the result
    weaken:  an opponent's deviation, in units -> the weight of the result
    step:    (sum of surprises, sum of information) -> the change of the rating, in units, for a surprise of 1
    assumes: the parameters that determine the weights
    """

    scale: int
    compare: Callable[[int, int, int, int], tuple[float, float]]
    weaken: Callable[[float], float]
    step: Callable[[float, float], float]
    assumes: tuple[str, ...]


def explain_results(
    p: int, names: Sequence[str], before: Any, offsets: Numbers, rows: Columns, after: Any, weighing: Weighing
) -> list[tuple[int, Term]]:
    """Return (row, term) for every result of player p in a period, and (-1, term) for rounding, if any.

    The rule must have three columns, and the first must be `place`: rows 2 and 5 are then the places of the player and
    of the opponent. The other parameters are the same as for `explain_period`.
    """
    scale, total_surprise, total_information, results = weighing.scale, 0.0, 0.0, []
    for row in range(offsets[p], offsets[p + 1]):
        j, place, opponents_place = rows[0][row], rows[2][row], rows[5][row]
        surprise, information = weighing.compare(before[0][p] - before[0][j], before[1][j], place, opponents_place)
        total_surprise, total_information = total_surprise + surprise, total_information + information
        results.append((row, j, surprise, 2 if place < opponents_place else 0 if place > opponents_place else 1))
    step = weighing.step(total_surprise, total_information)
    terms = []
    for row, j, surprise, doubled_score in results:
        weight = weighing.weaken(real(before[1][j], 1))
        expectation = units(doubled_score / 2 - surprise / weight, scale)
        detail = f"weight {decimal(units(weight, scale), scale)}, expected {decimal(expectation, scale)}"
        note = " against ".join(
            f"{decimal(before[0][k], scale, 2)} ± {decimal(before[1][k], scale, 2)}" for k in (p, j)
        )
        detail += f", scored {decimal(doubled_score, 2)}"
        terms.append((row, Term(f"vs {names[j]}", units(step * surprise, 1), detail, note, weighing.assumes)))
    if remainder := after[0][p] - before[0][p] - sum(term.amount for _, term in terms):
        terms.append((-1, Term("rounding", remainder, f"each term is rounded to {decimal(1, scale)}")))
    return terms

"""What a rule is: the one thing that rules import besides the standard library.

A rule is one small pure file that ends in `RULE = Rule(...)`. Its `score` runs over plain arrays of integers only, so
the same source can be interpreted for short histories and compiled for long ones, with bit-identical results.
"""

import re
from collections.abc import Callable, MutableSequence, Sequence
from fractions import Fraction
from random import Random
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, WrapValidator

from ratings_ledger.ledger.events.game_clocks import ClockTimers as ClockTimers
from ratings_ledger.ledger.events.games import LEAVER_STATUSES, STATUSES
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections.expected_scores import EXPECTED_SCALES as EXPECTED_SCALES
from ratings_ledger.projections.expected_scores import INVERSE as INVERSE
from ratings_ledger.projections.expected_scores import ONE as ONE
from ratings_ledger.projections.expected_scores import Numbers as Numbers
from ratings_ledger.projections.expected_scores import expected as expected
from ratings_ledger.projections.expected_scores import expected_scores as expected_scores
from ratings_ledger.projections.expected_scores import rounded as rounded
from ratings_ledger.projections.kit import exp as exp
from ratings_ledger.projections.kit import fixed_divide as fixed_divide
from ratings_ledger.projections.kit import fixed_exp as fixed_exp
from ratings_ledger.projections.kit import fixed_ln as fixed_ln
from ratings_ledger.projections.kit import fixed_multiply as fixed_multiply
from ratings_ledger.projections.kit import fixed_sqrt as fixed_sqrt
from ratings_ledger.projections.kit import ln as ln
from ratings_ledger.projections.kit import logistic as logistic
from ratings_ledger.projections.kit import power as power
from ratings_ledger.projections.kit import real as real
from ratings_ledger.projections.kit import root as root
from ratings_ledger.projections.kit import units as units

INT64_MAX = 2**63 - 1
# the most points, in units, that anybody may have; beyond that, a rule's products might not fit 64 bits
UNITS_MAX = 10**16
# what the columns of contract 2 hold where nothing was recorded; those of contract 1 hold -1
MISSING = -(2**62)
# more columns than any rating system needs for a player
STATE_COLUMNS_MAX = 6
# numbers that participants of every game type may have; -1 if missing
OPTIONAL_COLUMNS = ("seconds_played", "seat")
# everything a rule may ask for whatever the game type, and what each is
COMMON_COLUMNS = {
    "place": "the competition place (1, 2, 2, 4) among all seats, even uncounted ones; 0 in a game type without places",
    "status": f"{', '.join(f'{number} {name}' for number, name in enumerate(STATUSES))}",
    "seats": "the number of seats of the game, including those that do not count; the same for all players of a game",
    "tied": "the number of seats at the player's place, including their own; 1 if the player is not tied",
    "seconds_played": "the seconds that the player played, by the result or else the game's clock; -1 if neither says",
    "seat": "the number of the seat, such as the order of moves, or 1 for the home player; -1 if it is not recorded",
}
# what a rule with state may ask for besides, whatever the game type; numbers that a game declares are `numbers.NAME`
STATE_RULE_COLUMNS = {
    "team": "the number of the player's side in its game, from 0 on; missing in games without teams",
    "home": "1 if the player's side played at home, -1 if the other did, 0 if neither did or nobody says",
    "score": "the score, in units of the ruleset's score_decimals, negated where low wins; missing if not recorded",
    "side_score": "the score of the player's side: in a battle the sum, else the one that its members share",
    "games_before": "the counted games of the player on this ladder before this one, including those of a seed",
    "days_since": "the calendar days in the ruleset's zone since the player's last counted game there; 0 on the same "
    "day, missing for the first",
    "first_of_season": "1 for the player's first counted game of a season, else 0",
    "league": "a number that all games of the same league share; missing for a game without a league",
    "year": "the calendar year of the game in the ruleset's zone",
}
# of these, the ones that depend on a ladder's earlier games rather than on what was recorded of the game
HISTORY_COLUMNS = ("games_before", "days_since", "first_of_season")
# how the name of a column of custom numbers begins
NUMBERS = "numbers."
# more participants than fit into a record of 65,535 bytes
PLAYERS_MAX = 4_096
# what the column `status` holds
FINISHED = STATUSES.index("finished")
SURRENDERED = STATUSES.index("surrendered")
SUBSTITUTE = STATUSES.index("substitute")
LEAVERS = tuple(STATUSES.index(status) for status in LEAVER_STATUSES)


class Params(BaseModel):
    """The constants of a rule: frozen, nothing unknown, nothing converted.

    `start` is in whole points; players with fewer than `min_games` counted games have no rank yet (not qualified). With
    `carry_over` players begin a season with the points they had at the end of their last one instead. `substitution`
    says who counts when a seat changed hands.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    start: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 0
    min_games: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    carry_over: bool = False
    substitution: Literal["both", "leaver", "substitute", "none"] = "both"


class TableParams(Params):
    """What a league table needs to know: whether to sum all results or the `best_of` best, and what breaks ties.

    To subscribe to a league, a player must have finished `active_games` games in the `active_days` days before.
    """

    active_games: Annotated[int, Field(ge=0, le=1_000)] = 0
    active_days: Annotated[int, Field(ge=1, le=10_000)] = 90
    best_of: Literal["all"] | Annotated[int, Field(ge=1, le=1_000)] = "all"
    tie_break: Literal["none", "more wins", "head-to-head"] = "none"


def _fraction(text: int | str) -> int | str:
    # checked before it is computed: "1e999999999" is also a number
    if not re.fullmatch(r"(?=0*\.?0*[1-9])\d{1,9}(\.\d{1,9}|/\d{1,9})?", str(text), re.ASCII):
        told = 'a positive number or fraction is needed, such as 8, "7.5" or "64/3", with at most nine digits a part'
        raise ValueError(told)
    try:
        Fraction(text)
    except ZeroDivisionError:
        raise ValueError("the denominator is zero") from None
    return text


# a positive number, exact: an integer, or a string such as "7.5" or "64/3"
PositiveFraction = Annotated[int | str, AfterValidator(_fraction)]


def needs(form: str) -> WrapValidator:
    """Return a validator that says in one sentence what a value with several forms has to be."""

    def check_form(value: Any, check_value: Callable[[Any], Any]) -> Any:
        try:
            return check_value(value)
        except ValidationError:
            raise ValueError(f"{form} is needed") from None

    return WrapValidator(check_form)


# the same, or 0
FractionOrZero = Annotated[PositiveFraction | Literal[0], needs('0, or a positive fraction such as 8, "7.5" or "64/3"')]


class SeasonPart(BaseModel):
    """A part of a season: how many games it has, and how many of a player's results in it count.

    The last part takes all games that are left, whether it says how many they are or not.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    rounds: Annotated[int, Field(ge=1, le=1_000)] | None = None
    best: Literal["all"] | Annotated[int, Field(ge=1, le=1_000)] = "all"


def _sized_parts(parts: list[SeasonPart]) -> list[SeasonPart]:
    if any(part.rounds is None for part in parts[:-1]):
        raise ValueError("every part but the last has `rounds`, such as [{rounds = 6, best = 5}, {best = 4}]")
    return parts


TieBreak = Literal["places", "first", "more wins", "head-to-head", "last game"]


class BestOfParams(Params):
    """What a championship needs to know. Its rounds are the ladder's games in order, numbered from 1.

    parts:          the parts of the season with the best results that count in each; without parts all count
    weights:        by round, what its points are multiplied by before the best results are chosen; otherwise 1
    tie_breaks:     what decides between equal points, one after the other; whoever is still tied shares a rank
    places_counted: the places that `places` and `first` look at: all, or so many from the first on
    unranked:       who has no rank whatever their points, by player, with the reason
    """

    parts: Annotated[list[SeasonPart], Field(max_length=100), AfterValidator(_sized_parts)] = []
    weights: dict[Annotated[str, Field(pattern=r"^[1-9][0-9]{0,3}$")], PositiveFraction] = {}
    tie_breaks: Annotated[list[TieBreak], Field(max_length=10)] = []
    places_counted: Literal["all"] | Annotated[int, Field(ge=1, le=10_000)] = "all"
    unranked: dict[str, str] = {}


class PeriodParams(Params):
    """What a monthly list needs to know: the score, and the gold for the first places; with `gold_ties = pool` tied
    players share the gold of the tied places, and an indivisible remainder is not paid.
    """

    # the points come from games alone
    start: Annotated[int, Field(ge=0, le=0)] = 0
    score: Literal["mean", "sum"] = "mean"
    gold: Annotated[list[Annotated[int, Field(ge=0, le=1_000)]], Field(max_length=100)] = []
    gold_ties: Literal["by_place", "pool"] = "by_place"
    substitution: Literal["both", "leaver", "substitute", "none"] = "none"


# whole numbers by place: the row of n players has the key "n" and n entries
Rows = dict[str, list[int]]


class Term(NamedTuple):
    """One reason for part of a change: what it is, its size in units of 1/scale point, and how it came about.

    `assumes` names the parameters that decided it; where a ruleset says that it assumes one of them, that is shown.
    """

    term: str
    amount: int
    detail: str
    note: str = ""
    assumes: tuple[str, ...] = ()


Columns = Sequence[Numbers]
Changes = MutableSequence[int]
# a player's numbers, one for each column of the rule's state
StateValues = tuple[int, ...]
Score = Callable[[int, Any, Columns, Numbers, Numbers, Any], int]


class State(NamedTuple):
    """A column of what a rule keeps about a player: whole numbers in units of 1/`scale`.

    `decimals` is how many places people are shown. A seed is from `low` to `high`, in units: the rule can score nothing
    else.
    """

    name: str
    scale: int
    decimals: int = 0
    low: int = -UNITS_MAX
    high: int = UNITS_MAX


class Rule(NamedTuple):
    """A scoring function with its number; a change of behaviour gets a new number alongside the old one.

    columns: names of the participants' numbers that it reads, in the order `score` gets them
    prepare: the parameters as the integers that `score` gets
    table:   a constant table of integers for `score`, empty if it needs none
    refuse_params: why these parameters cannot be used for up to a number of players, or None
    check:   (n, columns, params) -> why a game of n counted players cannot be scored, or None; itself None if every
             game of two or more can
    score:   (n, points, columns, constants, table, change) -> points minted. `points` are those before the game, in
             units; the first n places of `change` are to be filled in, whatever they held. Participants come sorted by
             id. Minted minus the sum of changes is what was burned, never negative. It may call plain functions of its
             own module.
    explain: (n, names, points, columns, params, change) -> for every participant the terms that sum to their change
    ranking: the name of the list (`projections.lists`) that ranks its points; by default the running points themselves
    counted_min: a game with fewer counted players is not scored
    chance:  (i, j, points, columns, constants, table) -> the expected score of player i against player j, in units of
             2^-32, strictly between 0 and 2^32, if the rule predicts results; or None. A function of four arguments
             gets (i's points, j's points, constants, table)
    remark:  (n, names, columns, params) -> what there is to say about the game as a whole, such as who won it; or None

    A rule of contract 2 names its `state`. It has `start` and either `score` or `score_period`; the other functions
    are optional. Those that the loop calls get `constants`, as `prepare` returns them, so that they can be compiled.

    state:      the columns kept about every player. Books are kept of column 0; the ladder ranks by it
    start:      params -> the state of a new player
    score:      (n, before, columns, constants, table, after) -> points minted. `before[c][i]` and `after[c][i]` hold
                state column c of participant i; `after` comes filled with `before`. Minted minus the sum of changes of
                column 0 is what was burned, never negative
    explain:    (n, names, before, columns, params, after) -> for every participant the terms that sum to the change of
                column 0
    score_period: (players, before, offsets, rows, constants, table, after) -> points minted. The results of player p
                are rows[k][offsets[p]:offsets[p + 1]], one for each game and opponent: rows[0] is the opponent, as an
                index into `before[c]`; rows[1] numbers the game within the period; then follow the rule's `columns` of
                the player, and then those of the opponent. `before` are the states at the period's start
    explain_period: (p, names, before, offsets, rows, params, after) -> (row, term) for every reason that player p's
                column 0 changed; the row is -1 for what no single result gave, such as rounding
    age:        (state, elapsed, constants) -> the state after so many calendar days without a counted game; of rating
                periods, how many later this one is than the player's last one, 1 for the next. It never changes
                column 0
    new_season: (state, constants) -> the state with which a player begins another season
    enter:      (state, constants) -> the state when this version of the ruleset takes effect
    rank_by:    (state, params) -> what the ladder ranks by, highest first, in units of column 0; None: column 0
    shown:      the names of the columns that people see; empty: all
    provisional: (state, games, params) -> whether a rating is not reliable yet
    draw:       (i, j, before, columns, constants, table) -> the probability of a draw, in units of 2^-32; `chance` is
                then the expected score: win + draw / 2
    adds:       whether what a game gives depends on nobody's state, and points are all that is kept. Then a club may
                have the sum or the best of what its players get
    sample:     (n, random, params) -> columns of a game of n players that the rule can score, in the order of
                `columns`, for trial games; None: any columns will do
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
    shown: tuple[str, ...] = ()
    provisional: Callable[[StateValues, int, Any], bool] | None = None
    draw: Callable[..., int] | None = None
    sample: Callable[[int, Any, Any], Columns] | None = None
    adds: bool = False

    @property
    def width(self) -> int:
        """Return how many numbers it keeps about a player."""
        return len(self.state) or 1

    @property
    def shown_columns(self) -> tuple[int, ...]:
        """Return the indices of the state columns that people see."""
        return tuple(index for index, column in enumerate(self.state) if not self.shown or column.name in self.shown)

    @property
    def id(self) -> str:
        """`name/number`, as rulesets name it."""
        return f"{self.name}/{self.number}"


def exact(units: int, scale: int) -> str:
    """Points as an exact string: whole, or a reduced fraction.

    >>> exact(8_000_000, 1_000_000), exact(5600, 840)
    ('8', '20/3')
    """
    return str(Fraction(units, scale))


def decimal(units: int, scale: int, places: int = 6, signed: bool = False) -> str:
    """Points as a decimal number for people, rounded half away from zero to `places` places, without trailing zeros.

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


def joined(names: Sequence[str]) -> str:
    """Names as listed in a sentence.

    >>> joined(["anna"]), joined(["anna", "ben", "cleo"])
    ('anna', 'anna, ben and cleo')
    """
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def no_table() -> Numbers:
    """The table of a rule that needs none."""
    return ()


def refuse_rows(key: str, rows: Rows, what: str, players_max: int = 99) -> str | None:
    """Why these rows of `what`, given under `key` for up to `players_max` players, cannot be used, or None."""
    if not rows:
        return f"{key}: a row for at least one number of players is needed"
    for name, row in rows.items():
        if not re.fullmatch(r"[2-9]|[1-9][0-9]", name) or int(name) > players_max:
            return f"{key}: {quote(name)} is not a number of players from 2 to {players_max}"
        if len(row) != int(name):
            return f"{key}.{name}: {name} players need {name} {what}, one for each place, not {len(row)}"
    return None


def refuse_percentages(key: str, rows: Rows) -> str | None:
    """Why these rows of percentages, given under `key`, cannot be used, or None."""
    if reason := refuse_rows(key, rows, "percentages"):
        return reason
    for name, row in rows.items():
        if wrong := [percentage for percentage in row if not 0 <= percentage <= 100]:
            return f"{key}.{name}: a percentage is a whole number from 0 to 100, not {quote(wrong[0])}"
    return None


def flat_rows(rows: Rows) -> tuple[int, ...]:
    """The rows from 2 players on, end to end, missing ones as zeros; the row of n begins at n(n - 1)/2 - 1.

    >>> flat_rows({"2": [0, 16], "3": [0, 13, 20]})
    (0, 16, 0, 13, 20)
    """
    largest = max(map(int, rows))
    return tuple(value for n in range(2, largest + 1) for value in rows.get(str(n), [0] * n))


def told_sizes(rows: Rows) -> str:
    """The numbers of players that have rows, in words.

    >>> told_sizes({"2": [0, 16], "5": [0, 10, 16, 22, 28]})
    '2 or 5'
    """
    sizes = sorted(map(int, rows))
    gapless = len(sizes) > 2 and sizes[-1] - sizes[0] == len(sizes) - 1
    return f"{sizes[0]} to {sizes[-1]}" if gapless else " or ".join(map(str, sizes))


def refuse_two_in_a_seat(place: Numbers, status: Numbers) -> str | None:
    """Why a rule that takes one player per seat cannot score these counted participants, or None.

    A leaver and a substitute at one place sat in one seat.
    """
    substituted = {place[i] for i in range(len(place)) if status[i] == SUBSTITUTE}
    if any(status[i] in LEAVERS and place[i] in substituted for i in range(len(place))):
        return "a seat changed hands and both its players would count; the rule takes one player per seat"
    return None


def refuse_all_but_single_players(place: Numbers, team: Numbers, status: Numbers) -> str | None:
    """Return why a rule that compares every two players by their places cannot score these, or None."""
    if 0 in place:
        return "the game has no places, which say who won"
    sides = [side for side in team if side != MISSING]
    if len({*sides}) < len(sides):
        return "two players are of one team; the rule rates persons who play each against all others"
    return refuse_two_in_a_seat(place, status)


def draw_places(n: int, random: Random) -> list[int]:
    """Draw the places of a game of n players, with ties."""
    ranks = [random.randint(1, n) for _ in range(n)]
    return [1 + sum(better < rank for better in ranks) for rank in ranks]


def results_of_game(n: int, columns: Columns) -> tuple[list[int], list[list[int]]]:
    """Return the results of every two players of a game as `offsets` and `rows` of a period with this game alone."""
    pairs = [(i, j) for i in range(n) for j in range(n) if j != i]
    rows = [[j for _, j in pairs], [0] * len(pairs)]
    rows += [[column[pair[side]] for pair in pairs] for side in (0, 1) for column in columns]
    return [i * (n - 1) for i in range(n + 1)], rows


def check_single_players(n: int, columns: Columns, params: Any) -> str | None:
    """Return why a rule that reads place, team and status, and compares every two players, cannot score a game, or
    None.
    """
    place, team, status = columns
    return refuse_all_but_single_players(place, team, status)


def sample_single_players(n: int, random: Random, params: Any) -> Columns:
    """Draw the place, team and status of a game of single players."""
    return [draw_places(n, random), [MISSING] * n, [FINISHED] * n]


class Weighing(NamedTuple):
    """How a rule with ratings and deviations, both in units of 1/`scale`, weighs the results of a player.

    compare: (gap, deviation, place, opponent's place) -> the weighted surprise of a result, and its information
    weaken:  an opponent's deviation, in units -> the weight
    step:    (surprise, information), summed up -> by how many units the rating moves for a surprise of 1
    assumes: the parameters that decide it
    """

    scale: int
    compare: Callable[[int, int, int, int], tuple[float, float]]
    weaken: Callable[[float], float]
    step: Callable[[float, float], float]
    assumes: tuple[str, ...]


def explain_results(
    p: int, names: Sequence[str], before: Any, offsets: Numbers, rows: Columns, after: Any, weighing: Weighing
) -> list[tuple[int, Term]]:
    """Return a term for every result of player p in a period, by its row, and what rounding added.

    The rule's first column is place, so `rows` has that of the player and of the opponent at 2 and 5.
    """
    scale, surprise, information, parts = weighing.scale, 0.0, 0.0, []
    for row in range(offsets[p], offsets[p + 1]):
        j, place, opponents_place = rows[0][row], rows[2][row], rows[5][row]
        ahead, known = weighing.compare(before[0][p] - before[0][j], before[1][j], place, opponents_place)
        surprise, information = surprise + ahead, information + known
        parts.append((row, j, ahead, 2 if place < opponents_place else 0 if place > opponents_place else 1))
    step = weighing.step(surprise, information)
    terms = []
    for row, j, ahead, twice_scored in parts:
        weight = weighing.weaken(real(before[1][j], 1))
        expectation = units(twice_scored / 2 - ahead / weight, scale)
        detail = f"weight {decimal(units(weight, scale), scale)}, expected {decimal(expectation, scale)}"
        note = " against ".join(
            f"{decimal(before[0][k], scale, 2)} ± {decimal(before[1][k], scale, 2)}" for k in (p, j)
        )
        detail += f", scored {decimal(twice_scored, 2)}"
        terms.append((row, Term(f"vs {names[j]}", units(step * ahead, 1), detail, note, weighing.assumes)))
    if rest := after[0][p] - before[0][p] - sum(term.amount for _, term in terms):
        terms.append((-1, Term("rounding", rest, "each to a millionth")))
    return terms

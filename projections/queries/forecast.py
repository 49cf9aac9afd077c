"""Predict a future game: the probability of each result, and the points at stake.

Nothing is recorded. Players have the states that they would have at the start of a game at `as_of` or, without it, on
the day of the ladder's last counted game. So a prediction does not depend on the time of the query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from fractions import Fraction
from itertools import accumulate, combinations
from typing import Any, NamedTuple

from ratings_ledger.ledger.errors import BadArgument, CannotPredict
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import (
    FINISHED,
    HISTORY_COLUMNS,
    MISSING,
    NUMBERS,
    ONE,
    Columns,
    joined,
)
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.facts.lookups import require_player
from ratings_ledger.projections.queries.coordinates import UTC_TIMES, Coordinates, TimeFormat
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, Absent, Answer, Result
from ratings_ledger.projections.queries.standings import find_rows_of_players
from ratings_ledger.projections.replay.gaps import read_day_and_season
from ratings_ledger.projections.replay.rule_calls import (
    PeriodResults,
    RuleFailure,
    check_game,
    compute_draw_probability,
    compute_expected_score,
    score_period_states,
    score_states,
)
from ratings_ledger.projections.replay.states_before_games import (
    GameDay,
    PlayerBeforeGame,
    find_players_before_game,
    read_game_day,
)
from ratings_ledger.projections.replay.trace import Trace, TracePosition
from ratings_ledger.projections.rulesets.versions import Version, in_force, newest, parse_band, split_ladder_name

UNIX_DAY = date(1970, 1, 1)
# the results of a game for a side, named like the members of `Stakes`
OUTCOMES = ("win", "draw", "loss")


@dataclass(frozen=True, slots=True)
class Stakes(Result):
    """The points that a game would give for each result; None for a result that the rule does not score."""

    win: Fraction | None
    draw: Fraction | None
    loss: Fraction | None


@dataclass(frozen=True, slots=True)
class PartnerStakes(Result):
    """The points at stake for one of several players of a side."""

    player: str
    stakes: Stakes = field(metadata={"name": "if"})


@dataclass(frozen=True, slots=True)
class PredictedSide(Result):
    """The prediction for a side: `stakes` sums the points of all its players, `partners` has those of each player.

    With more than two sides, a `win` is the first place with all other sides tied, and a `loss` is the last place with
    all other sides tied. Only a side of one player has a `rank`.
    """

    players: tuple[str, ...]
    rank: int | None
    chance: Fraction
    stakes: Stakes = field(metadata={"name": "if"})
    partners: tuple[PartnerStakes, ...] | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class PredictedPair(Result):
    """The prediction for two of several sides: the probabilities that the first wins, that it loses, and of a draw."""

    players: tuple[str, ...]
    others: tuple[str, ...]
    chance: Fraction
    others_chance: Fraction
    draw: Fraction


@dataclass(frozen=True, slots=True)
class Prediction(Answer):
    """The probability of each result of a game, and the points at stake.

    The chances of all sides and the draw sum to one. If the rule predicts no draws, `draw` is 0, and a chance is an
    expected score. If the rule scores rating periods, the points are those for a `period` with only this game. With
    more than two sides, `pairs` has a prediction for each pair of sides, and a side's chance is its expected number
    of wins divided by the number of pairs.
    """

    ladder: str
    ruleset: str
    sides: tuple[PredictedSide, ...]
    draw: Fraction
    at: Coordinates
    pairs: tuple[PredictedPair, ...] | Absent = ABSENT
    period: str = field(default="game", metadata=HIDDEN, kw_only=True)
    # set by `predict_pairs`: False if no game of two players on the ladder was drawn
    has_draws: bool = field(default=True, metadata=HIDDEN, kw_only=True)


class PlannedGame(NamedTuple):
    """A game to be played.

    names:          the players, sorted by id
    side_of_player: the number of each player's side
    players_before: each player's state and history before the game
    home:           the number of the side that plays at home, or None
    numbers:        the custom numbers, by name
    year:           the calendar year of the prediction's day in the ruleset's zone, MISSING without such a day
    """

    names: list[str]
    side_of_player: list[int]
    players_before: list[PlayerBeforeGame]
    home: int | None
    numbers: Mapping[str, int]
    year: int

    @property
    def side_count(self) -> int:
        """Return the number of sides."""
        return max(self.side_of_player) + 1

    @property
    def states(self) -> list[list[int]]:
        """Return the players' states before the game, one list for each state column."""
        return [[*column] for column in zip(*(player.state for player in self.players_before), strict=True)]


def predict_game(
    ladders: Ladders,
    ladder: str,
    sides: Sequence[str | Sequence[str]],
    *,
    home: str | Sequence[str] | None = None,
    numbers: Mapping[str, int] | None = None,
    times: TimeFormat = UTC_TIMES,
) -> Prediction:
    """Predict a game between these sides with the ladder's rule.

    Args:
        sides: each side, as a list of its players, or as its only player.
        home: the side that plays at home; by default, no side does.
        numbers: the custom numbers of the game that the rule reads, by name.
        times: the time format of the ledger.

    Raises:
        BadArgument: the sides cannot play each other, or another argument is invalid.
        CannotPredict: the rule gives no probabilities, or cannot score such a game.
        RuleFailure: the rule failed at an earlier game.
        RulesetUnusable: the ladder's ruleset does not run here.
        Unknown: (player-unknown) a player is unknown.
        UnknownLadder: the ladder's ruleset is unknown.
    """
    _check_types(sides, home, numbers)
    players = [_find_players(ladders, side) for side in sides]
    _check_sides(players)
    trace = ladders.trace(ladder, keep_history=False)
    versions = ladders.versions(ladder)
    version = _choose_version(ladders, trace, versions)
    if version.rule.chance is None:
        raise CannotPredict(f"{ladder} has no predictions, because its rule {version.rule.id} gives no probabilities")
    _check_numbers(version, numbers or {})
    home_side = None if home is None else _find_home(players, _find_players(ladders, home))
    try:
        game = _plan_game(ladders, trace, version, players, home=home_side, numbers=numbers or {})
        stakes = {
            (side, outcome): _score_outcome(version, ladder, game, side, outcome)
            for side in range(game.side_count)
            for outcome in OUTCOMES
        }
        pairs = _predict_side_pairs(version, ladder, game, players)
    except RuleFailure as failure:
        raise CannotPredict(f"{ladder}: the rule cannot score this game: {failure}") from failure
    ranks = {name: row.rank for name, row in find_rows_of_players(ladders.rank(trace)[0].rows, {*game.names}).items()}
    return Prediction(
        ladder=ladder,
        ruleset=version.ruleset.name,
        sides=tuple(
            _describe_side(game, number, side, pairs=pairs, stakes=stakes, ranks=ranks, version=version)
            for number, side in enumerate(players)
        ),
        draw=sum((pair.draw for pair in pairs), ExactNumber(0)) / len(pairs),
        at=ladders.coordinates,
        pairs=tuple(pairs) if len(players) > 2 else ABSENT,
        period=version.ruleset.period,
        times=times,
    )


def _choose_version(ladders: Ladders, trace: Trace, versions: Sequence[Version]) -> Version:
    """Return the version that scores a game on the day of the prediction."""
    if ladders.as_of is not None:
        return in_force(versions, ladders.as_of) or newest(versions)
    # the states have not entered versions later than the last game or adjustment
    return trace.final_version if trace.game_count or trace.adjustment_count else newest(versions)


def _plan_game(
    ladders: Ladders,
    trace: Trace,
    version: Version,
    sides: Sequence[tuple[str, ...]],
    *,
    home: int | None,
    numbers: Mapping[str, int],
) -> PlannedGame:
    """Return a game between these sides on the day of the prediction. Raises `RuleFailure`."""
    names = sorted(name for side in sides for name in side)
    game_day = _find_game_day(ladders, trace, version)
    return PlannedGame(
        names=names,
        side_of_player=[next(number for number, side in enumerate(sides) if name in side) for name in names],
        players_before=_find_players_before_game(ladders, trace, version, game_day or GameDay(), names),
        home=home,
        numbers=numbers,
        year=MISSING if game_day is None else (UNIX_DAY + timedelta(days=game_day.day)).year,
    )


def predict_pairs(
    ladders: Ladders, ladder: str, pairs: Iterable[tuple[str, str]], times: TimeFormat = UTC_TIMES
) -> tuple[Prediction, ...]:
    """Predict a game of each pair of players.

    Return an empty tuple if the ladder does not count games of two players, or its rule cannot predict them. Raises the
    errors of `predict_game` except `CannotPredict`.
    """
    ruleset = newest(ladders.versions(ladder)).ruleset
    low, high = parse_band(split_ladder_name(ladder, ruleset).get("players", "2"))
    if ruleset.scope.players_min > 2 or not low <= 2 <= high:
        return ()
    try:
        predictions = [predict_game(ladders, ladder, pair, times=times) for pair in pairs]
    except CannotPredict:
        return ()
    has_draws = bool(predictions) and _has_draws(ladders, ladder)
    return tuple(replace(prediction, has_draws=has_draws) for prediction in predictions)


def _has_draws(ladders: Ladders, ladder: str) -> bool:
    """Tell whether any game of two players on a ladder was drawn."""
    facts, rows = ladders.for_ladder(ladder).facts, ladders.load_stream(ladder).rows
    has_two_players = np.asarray(arrays.take(facts.count, rows)) == 2
    first_slots = np.asarray(arrays.take(facts.start, rows))[has_two_players]
    places = (np.asarray(arrays.take(facts.place, first_slots + seat)) for seat in (0, 1))
    return bool(np.equal(*places).any())


def _check_types(sides: Any, home: Any, numbers: Any) -> None:
    """Raise `BadArgument` unless the arguments are a list of sides, a side, and a mapping of names to integers."""
    if not isinstance(sides, list | tuple) or not all(map(_is_side, sides)):
        actual = type(sides).__name__ if not isinstance(sides, list | tuple) else "a list with other items"
        raise BadArgument(
            f'sides must be a list of players or of lists of players, such as ["anna", "ben"], not {actual}', "sides"
        )
    if home is not None and not _is_side(home):
        message = f"home must be one of the sides, a player or a list of players, not {type(home).__name__}"
        raise BadArgument(message, "home")
    if numbers is not None and not (
        isinstance(numbers, Mapping)
        and all(isinstance(name, str) and type(value) is int for name, value in numbers.items())
    ):
        message = 'numbers must be a dictionary of whole numbers by name, such as {"weight": 50}'
        raise BadArgument(f"{message}, not {numbers!r:.80}", "numbers")


def _is_side(side: Any) -> bool:
    """Tell whether an argument is a player or a list of players."""
    return isinstance(side, str) or (isinstance(side, list | tuple) and all(isinstance(name, str) for name in side))


def _find_players(ladders: Ladders, side: str | Sequence[str]) -> tuple[str, ...]:
    """Return the current ids of the players of a side. Raises `Unknown` (player-unknown)."""
    names = (side,) if isinstance(side, str) else tuple(side)
    for name in names:
        require_player(ladders.facts, name)
    return tuple(ladders.facts.current(name) for name in names)


def _check_sides(sides: Sequence[tuple[str, ...]]) -> None:
    """Raise `BadArgument` for sides that cannot play each other."""
    if len(sides) < 2 or not all(sides):
        raise BadArgument("a game needs at least two sides, each with at least one player", "sides")
    names = [name for side in sides for name in side]
    if duplicate := next((name for name in names if names.count(name) > 1), None):
        raise BadArgument(f"{quote(duplicate)} takes part twice; name each player once", "sides")


def _find_home(sides: Sequence[tuple[str, ...]], home: tuple[str, ...]) -> int:
    """Return the number of the side that plays at home. Raises `BadArgument` if it is not among the sides."""
    for number, side in enumerate(sides):
        if {*side} == {*home}:
            return number
    listed = " or ".join(quote(joined(side)) for side in sides)
    raise BadArgument(f"home {quote(joined(home))} is not one of the sides; pass {listed}", "home")


def _check_numbers(version: Version, numbers: Mapping[str, int]) -> None:
    """Raise `BadArgument` for a number that the rule does not read or that is outside the ruleset's range."""
    readable_names = [name.removeprefix(NUMBERS) for name in version.rule.columns if name.startswith(NUMBERS)]
    for name, value in numbers.items():
        if name not in readable_names:
            hint = (
                f"it reads {joined(readable_names)}"
                if readable_names
                else "leave it out, because the rule reads no numbers"
            )
            raise BadArgument(f"{version.rule.id} does not read the number {quote(name)}; {hint}", "numbers")
        allowed = version.ruleset.numbers.get(name)
        if allowed is not None and not allowed.min <= value <= allowed.max:
            raise BadArgument(f"numbers.{name} is {value}; it must be from {allowed.min} to {allowed.max}", "numbers")


def _find_game_day(ladders: Ladders, trace: Trace, version: Version) -> GameDay | None:
    """Return the day of the prediction.

    It is the day of `as_of` if this is given and the rule keeps a state; otherwise the day of the last game of this or
    an earlier season, None without such a game.
    """
    played_trace = trace
    while not played_trace.stream.rows and played_trace.earlier is not None:
        played_trace = played_trace.earlier
    row = played_trace.stream.rows[-1] if played_trace.stream.rows else None
    if version.rule.state and ladders.as_of is not None:
        return GameDay(*read_day_and_season(ladders.facts, row, ladders.as_of, version.ruleset))
    return None if row is None else read_game_day(ladders.facts, row, version)


def _find_players_before_game(
    ladders: Ladders, trace: Trace, version: Version, game_day: GameDay, names: Sequence[str]
) -> list[PlayerBeforeGame]:
    """Return the players' states and histories before a game on a day."""
    facts = ladders.facts
    before = TracePosition(trace, trace.game_count, trace.adjustment_count)
    people = [(facts.person[facts.player_numbers[name]], name) for name in names]
    return find_players_before_game(facts, before, version, game_day, people)


def _build_columns(version: Version, game: PlannedGame, side_ranks: Sequence[int]) -> list[list[int]]:
    """Return the columns that the rule reads, for a game in which the sides have these ranks, counted from 0.

    For rules that read scores, every side in first place has a score of one, and the others have zero; if all sides
    tie, all have zero. Raises `CannotPredict` for a column that needs a played game.
    """
    sides, player_count = game.side_of_player, len(game.names)
    has_teams = game.side_count < player_count
    ranks = [side_ranks[side] for side in sides]
    score_unit = 10**version.ruleset.score_decimals
    side_scores = [score_unit if side_ranks[side] == 0 and max(side_ranks) else 0 for side in sides]
    # the first player of a side has its whole score
    scores = [score if sides.index(sides[player]) == player else 0 for player, score in enumerate(side_scores)]
    home = [0 if game.home is None else 1 if side == game.home else -1 for side in sides]
    builders: dict[str, Callable[[], list[int]]] = {
        "place": lambda: [1 + sum(opposing_rank < own_rank for opposing_rank in ranks) for own_rank in ranks],
        "status": lambda: [FINISHED] * player_count,
        "seats": lambda: [player_count] * player_count,
        "tied": lambda: [ranks.count(own_rank) for own_rank in ranks],
        "seconds_played": lambda: [-1] * player_count,
        "seat": lambda: [-1] * player_count,
        "team": lambda: [*sides] if has_teams else [MISSING] * player_count,
        "home": lambda: home,
        "score": lambda: scores,
        "side_score": lambda: side_scores,
        "league": lambda: [MISSING] * player_count,
        "year": lambda: [game.year] * player_count,
    }
    columns = []
    for name in version.rule.columns:
        if name in HISTORY_COLUMNS:
            columns.append([int(getattr(player, name)) for player in game.players_before])
        elif name.startswith(NUMBERS):
            columns.append([_find_number(version, game, name.removeprefix(NUMBERS))] * player_count)
        elif name in builders:
            columns.append(builders[name]())
        else:
            raise CannotPredict(f"{version.rule.id} reads {name}, which only a played game has")
    return columns


def _find_number(version: Version, game: PlannedGame, name: str) -> int:
    """Return a custom number of the game, or the ruleset's value for a number that is absent."""
    allowed = version.ruleset.numbers.get(name)
    absent = allowed.absent if allowed is not None and isinstance(allowed.absent, int) else MISSING
    return game.numbers.get(name, absent)


def _score_outcome(version: Version, ladder: str, game: PlannedGame, side: int, outcome: str) -> list[int] | None:
    """Return the change of each player's points if a side has an outcome; None for a draw that the rule cannot score.

    Raises `RuleFailure`, and `CannotPredict` if the rule does not score a win or a loss.
    """
    own_rank, opposing_rank = {"win": (0, 1), "draw": (0, 0), "loss": (1, 0)}[outcome]
    side_ranks = [own_rank if number == side else opposing_rank for number in range(game.side_count)]
    columns = _build_columns(version, game, side_ranks)
    if game.side_count < len(game.names) and "team" not in version.rule.columns:
        raise CannotPredict(
            f"{ladder} cannot rate this game: {version.rule.id} does not score sides of several players"
        )
    if reason := check_game(version, ladder, None, len(game.names), columns):
        if outcome == "draw":
            return None
        raise CannotPredict(f"{ladder}: {reason}")
    states = game.states
    if version.ruleset.period == "game":
        _, after = score_states(version, ladder, None, states, columns)
    else:
        _, after = score_period_states(version, ladder, None, _build_period(game, states, columns))
    return [points_after - points_before for points_after, points_before in zip(after[0], states[0], strict=True)]


def _build_period(game: PlannedGame, states: Columns, columns: Columns) -> PeriodResults:
    """Return a rating period with only this game: for every player, a result against each opponent."""
    players, sides = range(len(game.names)), game.side_of_player
    pairs = [(player, opponent) for player in players for opponent in players if sides[player] != sides[opponent]]
    offsets = [0, *accumulate(sum(side != own_side for side in sides) for own_side in sides)]
    opponents = [opponent for _, opponent in pairs]
    own_columns = [[column[player] for player, _ in pairs] for column in columns]
    opponent_columns = [[column[opponent] for opponent in opponents] for column in columns]
    return PeriodResults(states, offsets, [opponents, [0] * len(pairs), *own_columns, *opponent_columns])


def _predict_side_pairs(
    version: Version, ladder: str, game: PlannedGame, sides: Sequence[tuple[str, ...]]
) -> list[PredictedPair]:
    """Predict the result of each pair of sides. Raises `RuleFailure`."""
    columns = _build_columns(version, game, [0] * game.side_count)
    states: Columns | Sequence[int] = game.states if version.rule.state else game.states[0]
    pairs = []
    for side, opposing_side in combinations(range(game.side_count), 2):
        # the first player of a side represents the side
        player, opponent = game.side_of_player.index(side), game.side_of_player.index(opposing_side)
        expected = ExactNumber(compute_expected_score(version, ladder, None, player, opponent, states, columns), ONE)
        draw = ExactNumber(compute_draw_probability(version, ladder, None, player, opponent, game.states, columns), ONE)
        chances = expected - draw / 2, 1 - expected - draw / 2
        pairs.append(PredictedPair(sides[side], sides[opposing_side], *chances, draw))
    return pairs


def _describe_side(
    game: PlannedGame,
    number: int,
    players: tuple[str, ...],
    *,
    pairs: Sequence[PredictedPair],
    stakes: Mapping[tuple[int, str], list[int] | None],
    ranks: Mapping[str, int | None],
    version: Version,
) -> PredictedSide:
    """Return the prediction for a side, given its number and its players."""

    def sum_stakes(names: Sequence[str]) -> Stakes:
        indexes = [game.names.index(name) for name in names]
        totals = []
        for outcome in OUTCOMES:
            changes = stakes[number, outcome]
            totals.append(
                None if changes is None else ExactNumber(sum(changes[index] for index in indexes), version.rule.scale)
            )
        return Stakes(*totals)

    expected_wins = sum((pair.chance for pair in pairs if pair.players == players), ExactNumber(0))
    expected_wins += sum((pair.others_chance for pair in pairs if pair.others == players), ExactNumber(0))
    is_single_player = len(players) == 1
    return PredictedSide(
        players=players,
        rank=ranks.get(players[0]) if is_single_player else None,
        chance=expected_wins / len(pairs),
        stakes=sum_stakes(players),
        partners=ABSENT if is_single_player else tuple(PartnerStakes(name, sum_stakes([name])) for name in players),
    )

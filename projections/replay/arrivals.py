"""The states of players before one game: those after their last games, brought forward to the day of the game.

The replay loop does this for all games at once. This module does it for a game that is explained, tried or predicted.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import NamedTuple

from ratings_ledger.projections.contract import HISTORY_COLUMNS, MISSING, Columns
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.replay.gaps import EntryState, State, read_calendar
from ratings_ledger.projections.replay.periods import number_day
from ratings_ledger.projections.replay.replay import find_starting_state
from ratings_ledger.projections.replay.rule_calls import bring_to_game, score_states
from ratings_ledger.projections.replay.trace import TracePosition
from ratings_ledger.projections.rulesets.versions import Version


class GameDay(NamedTuple):
    """The day of a game, and the number of its season, as in a `Calendar`."""

    day: int = 0
    season: int = 0


class Arrival(NamedTuple):
    """A player's state and history before a game.

    stored:       the state after their last game
    state:        the same state, brought forward through a new season and the days since then; the rule scores it
    games_before: the number of their games on the ladder
    days_since:   the days since their last game, `MISSING` before the first
    first_of_season: 1 for their first game of a season, else 0
    is_new:       whether they join the ladder with this game
    """

    stored: State
    state: State
    games_before: int
    days_since: int
    first_of_season: int
    is_new: bool


def read_game_day(facts: Facts, row: int, version: Version) -> GameDay:
    """Return the day and season of a game for a rule with state; other rules do not read them, and get zeros."""
    if not version.rule.state:
        return GameDay()
    calendar = read_calendar(facts, array("q", [row]), version.ruleset)
    return GameDay(calendar.day[0], calendar.season[0])


def find_arrivals(
    facts: Facts,
    before: TracePosition,
    version: Version,
    game_day: GameDay,
    players: Iterable[tuple[int | None, str]],
    row: int | None = None,
) -> list[Arrival]:
    """Return the states and histories of players before a game.

    Args:
        before: the position in the trace before the game.
        players: pairs of a person, None for a new player, and the player's id.
        row: the game's row in the facts, for messages.

    Raises `RuleFailure`.
    """
    return [_find_arrival(facts, before, version, (row, game_day), person, name) for person, name in players]


def _find_arrival(
    facts: Facts,
    before: TracePosition,
    version: Version,
    game: tuple[int | None, GameDay],
    person: int | None,
    name: str,
) -> Arrival:
    """Return the state and history of one player before a game, which is given by its row and its day."""
    game_row, game_day = game
    ladder_state = None if person is None else before.state_of(person)
    stream, joining = before.trace.stream, before.trace.joining.get(name)
    if joining is None or joining.begin(version) is None:
        joining = EntryState(version.start_state)
    if ladder_state is None:
        stored = find_starting_state(stream, name, version, before.trace.joining)
    else:
        stored = ladder_state[: version.rule.width]
    if not version.rule.state:
        return Arrival(stored, stored, 0, MISSING, 0, ladder_state is None)
    games, last_row = (0, None) if person is None else before.last_game_of(person)
    last = (
        GameDay(joining.last_day, joining.last_season) if last_row is None else read_game_day(facts, last_row, version)
    )
    is_first = last.season != game_day.season
    days = MISSING if last.day == MISSING else max(game_day.day - last.day, 0)
    elapsed, period = max(days, 0), version.ruleset.period
    if period != "game" and last.day != MISSING:
        # games of a period are not explained one by one, so this position is the end of the trace
        player = None if person is None or last_row is None else stream.numbers[person]
        last_period = None if player is None else before.trace.last_period_of(player)
        elapsed = number_day(game_day.day, period) - (
            number_day(last.day, period) if last_period is None else last_period
        )
    changes_season = int(is_first and last.season != MISSING)
    state = bring_to_game(version, stream.ladder, game_row, stored, changes_season, elapsed)
    return Arrival(stored, state, joining.games + games, days, int(is_first), ladder_state is None)


class ScoredGame(NamedTuple):
    """A game as its rule scored it.

    arrivals:      the players' states and histories before the game
    columns:       the columns that the rule read
    before, after: by state column, the players' states before and after the game
    minted:        the minted points, in units
    """

    arrivals: list[Arrival]
    columns: list[list[int]]
    before: list[list[int]]
    after: list[list[int]]
    minted: int


def score_arrivals(
    facts: Facts,
    before: TracePosition,
    version: Version,
    game: tuple[int, GameDay],
    columns: Columns,
    players: Iterable[tuple[int | None, str]],
) -> ScoredGame:
    """Score one game.

    Args:
        game: the row and the day of the game.
        columns: the columns that the rule reads; those about earlier games are filled in.
        players: as in `find_arrivals`.

    Raises `RuleFailure`.
    """
    row, game_day = game
    arrivals = find_arrivals(facts, before, version, game_day, players, row)
    rule_columns = [
        [getattr(arrival, name) for arrival in arrivals] if name in HISTORY_COLUMNS else [*column]
        for name, column in zip(version.rule.columns, columns, strict=True)
    ]
    states = [[*column] for column in zip(*(arrival.state for arrival in arrivals), strict=True)]
    minted, after = score_states(version, before.trace.stream.ladder, row, states, rule_columns)
    return ScoredGame(arrivals, rule_columns, states, after, minted)

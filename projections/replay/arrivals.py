"""The states with which players arrive at one game: those after their last games, brought forward to its day.

The loop does this for all games at once. This module does it for a game that is explained, tried, or predicted.
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
    """A player's state and history on arrival at a game.

    stored:       the state after their last game
    state:        the same, brought forward through a new season and the time since; the rule scores this one
    games_before: their number of games on the ladder
    days_since:   the days since the last game, `MISSING` before the first
    first_of_season: whether it is their first game of a season
    is_new:       whether they join the ladder with this game
    """

    stored: State
    state: State
    games_before: int
    days_since: int
    first_of_season: int
    is_new: bool


def read_game_day(facts: Facts, row: int, version: Version) -> GameDay:
    """Return the day and season of a game for a rule with state; other rules do not read them."""
    if not version.rule.state:
        return GameDay()
    calendar = read_calendar(facts, array("q", [row]), version.ruleset)
    return GameDay(calendar.day[0], calendar.season[0])


def find_arrivals(
    facts: Facts,
    before: TracePosition,
    version: Version,
    when: GameDay,
    players: Iterable[tuple[int | None, str]],
    row: int | None = None,
) -> list[Arrival]:
    """Return the arrivals of players, given as persons with their ids; a person is None for a new player.

    Raises `RuleFailure`, which names the game if it has a `row`.
    """
    return [_arrive(facts, before, version, (row, when), person, name) for person, name in players]


def _arrive(
    facts: Facts,
    before: TracePosition,
    version: Version,
    game: tuple[int | None, GameDay],
    person: int | None,
    name: str,
) -> Arrival:
    at, when = game
    ladder_state = None if person is None else before.state_of(person)
    ladder_state = ladder_state and ladder_state[: version.rule.width]
    stream, joining = before.trace.stream, before.trace.joining.get(name)
    if joining is None or joining.begin(version) is None:
        joining = EntryState(version.start_state)
    start_state = (
        find_starting_state(stream, name, version, before.trace.joining) if ladder_state is None else ladder_state
    )
    stored = start_state if ladder_state is None else ladder_state
    if not version.rule.state:
        return Arrival(stored, stored, 0, MISSING, 0, ladder_state is None)
    ladder = before.trace.stream.ladder
    games, row = (0, None) if person is None else before.last_game_of(person)
    last = GameDay(joining.last_day, joining.last_season) if row is None else read_game_day(facts, row, version)
    is_first = last.season != when.season
    days = MISSING if last.day == MISSING else max(when.day - last.day, 0)
    elapsed, period = max(days, 0), version.ruleset.period
    if period != "game" and last.day != MISSING:
        # The trace ends here, because games scored by periods are not explained one by one.
        played = None if person is None or row is None else stream.numbers[person]
        since = None if played is None else before.trace.last_period_of(played)
        elapsed = number_day(when.day, period) - (number_day(last.day, period) if since is None else since)
    state = bring_to_game(version, ladder, at, stored, int(is_first and last.season != MISSING), elapsed)
    return Arrival(stored, state, joining.games + games, days, int(is_first), ladder_state is None)


class ScoredGame(NamedTuple):
    """A game as its rule scored it: arrivals, the columns that the rule read, and by state column the states before and
    after.
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
    """Score a game, given by its row and day, for players as in `find_arrivals`. Raises `RuleFailure`.

    columns: the columns that the rule reads, without those about earlier games
    """
    row, when = game
    arrivals = find_arrivals(facts, before, version, when, players, row)
    rule_columns = [
        [getattr(arrival, name) for arrival in arrivals] if name in HISTORY_COLUMNS else [*column]
        for name, column in zip(version.rule.columns, columns, strict=True)
    ]
    states = [[*column] for column in zip(*(arrival.state for arrival in arrivals), strict=True)]
    minted, after = score_states(version, before.trace.stream.ladder, row, states, rule_columns)
    return ScoredGame(arrivals, rule_columns, states, after, minted)

"""Find the states of players before one game: the states after their previous games, brought forward to its day.

The replay loop does this for all games of a ladder. This module does it for a single game, to explain, try or predict
the game.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import NamedTuple

from ratings_ledger.projections.contract import HISTORY_COLUMNS, MISSING, Columns
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.replay.gaps import read_calendar
from ratings_ledger.projections.replay.periods import find_period_number
from ratings_ledger.projections.replay.replay import find_starting_state
from ratings_ledger.projections.replay.rule_calls import bring_to_game, score_states
from ratings_ledger.projections.replay.seasons import EntryState, State
from ratings_ledger.projections.replay.trace import TracePosition
from ratings_ledger.projections.rulesets.versions import Version


class GameDay(NamedTuple):
    """The day and the season of a game, numbered as in a `Calendar`."""

    day: int = 0
    season: int = 0


class PlayerBeforeGame(NamedTuple):
    """A player's state and history before a game. For rules without state, the history has the defaults.

    stored:       the state after the previous game or adjustment; for a new player, the starting state
    state:        the state that the rule gets: `stored`, brought forward to a new season and to the day of the game
    is_new:       whether the player joins the ladder with this game
    games_before: the player's number of earlier games, including those of a seed or of earlier seasons
    days_since:   the days since the player's previous game; `MISSING` before the first
    first_of_season: 1 for the player's first game of a season, else 0
    """

    stored: State
    state: State
    is_new: bool
    games_before: int = 0
    days_since: int = MISSING
    first_of_season: int = 0


def read_game_day(facts: Facts, row: int, version: Version) -> GameDay:
    """Return the day and season of a game; zeros if the rule has no state, because such rules do not read them."""
    if not version.rule.state:
        return GameDay()
    calendar = read_calendar(facts, array("q", [row]), version.ruleset)
    return GameDay(calendar.day[0], calendar.season[0])


def find_players_before_game(
    facts: Facts,
    position: TracePosition,
    version: Version,
    game_day: GameDay,
    players: Iterable[tuple[int | None, str]],
    row: int | None = None,
) -> list[PlayerBeforeGame]:
    """Return the states and histories of players before a game.

    Args:
        position: the position in the trace before the game
        players: pairs of (person, player id); the person may be None for a player who is not on the ladder
        row: the game's row in the facts, for messages

    Raises `RuleFailure`.
    """
    return [
        _find_player_before_game(facts, position, version, (row, game_day), person, player_id)
        for person, player_id in players
    ]


def find_entry(position: TracePosition, version: Version, person: int | None, player_id: str) -> EntryState | None:
    """Return the state with which a player entered the ladder or, before that, would enter under a version.

    Return None for a player who enters like a new one.
    """
    trace = position.trace
    entry = trace.entry_states.get(player_id)
    if person is not None and position.state_of(person) is not None:
        return trace.stream.find_entry(trace.stream.numbers[person], entry)
    return None if entry is None else entry.under(version)


def _find_player_before_game(
    facts: Facts,
    position: TracePosition,
    version: Version,
    game: tuple[int | None, GameDay],
    person: int | None,
    player_id: str,
) -> PlayerBeforeGame:
    """Return the state and history of one player before a game. `game` is the row and the day of the game."""
    game_row, game_day = game
    state_on_ladder = None if person is None else position.state_of(person)
    stream = position.trace.stream
    entry = find_entry(position, version, person, player_id) or EntryState(version.start_state)
    if state_on_ladder is None:
        stored = find_starting_state(stream, player_id, version, position.trace.entry_states)
    else:
        stored = state_on_ladder[: version.rule.width]
    if not version.rule.state:
        return PlayerBeforeGame(stored, stored, is_new=state_on_ladder is None)
    games, last_row = (0, None) if person is None else position.game_count_and_last_row(person)
    last_game_day = (
        GameDay(entry.last_day, entry.last_season) if last_row is None else read_game_day(facts, last_row, version)
    )
    is_first_of_season = last_game_day.season != game_day.season
    days_since = MISSING if last_game_day.day == MISSING else max(game_day.day - last_game_day.day, 0)
    elapsed, period = max(days_since, 0), version.ruleset.period
    if period != "game" and last_game_day.day != MISSING:
        # no single game of a period is explained, so this position is the end of the trace
        player = None if person is None or last_row is None else stream.numbers[person]
        last_period = None if player is None else position.trace.last_period_of(player)
        elapsed = find_period_number(game_day.day, period) - (
            find_period_number(last_game_day.day, period) if last_period is None else last_period
        )
    changes_season = int(is_first_of_season and last_game_day.season != MISSING)
    state = bring_to_game(version, stream.ladder, game_row, stored, changes_season, elapsed)
    return PlayerBeforeGame(
        stored,
        state,
        is_new=state_on_ladder is None,
        games_before=entry.games + games,
        days_since=days_since,
        first_of_season=int(is_first_of_season),
    )


class ScoredGame(NamedTuple):
    """A game scored by its rule.

    players_before: by player, the state and history before the game
    columns:        the columns that the rule read
    before, after:  by state column, the players' states before and after the game
    minted:         the minted points, in units
    """

    players_before: list[PlayerBeforeGame]
    columns: list[list[int]]
    before: list[list[int]]
    after: list[list[int]]
    minted: int


def score_single_game(
    facts: Facts,
    position: TracePosition,
    version: Version,
    game: tuple[int, GameDay],
    columns: Columns,
    players: Iterable[tuple[int | None, str]],
) -> ScoredGame:
    """Score one game.

    Args:
        position: the position in the trace before the game
        game: the row and the day of the game
        columns: the columns that the rule reads; columns about earlier games are replaced
        players: see `find_players_before_game`

    Raises `RuleFailure`.
    """
    row, game_day = game
    players_before = find_players_before_game(facts, position, version, game_day, players, row)
    rule_columns = [
        [getattr(player, name) for player in players_before] if name in HISTORY_COLUMNS else [*column]
        for name, column in zip(version.rule.columns, columns, strict=True)
    ]
    before = [[*column] for column in zip(*(player.state for player in players_before), strict=True)]
    minted, after = score_states(version, position.trace.stream.ladder, row, before, rule_columns)
    return ScoredGame(players_before, rule_columns, before, after, minted)

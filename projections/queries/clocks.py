"""Query game clocks: every timer at an instant, and the explanation of a player's timer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.rejections import Rejection, quote
from ratings_ledger.ledger.validation.identities import read_identities
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import read_rulesets_at
from ratings_ledger.projections.game_clock import GameClock, clock_at
from ratings_ledger.projections.game_clock.events import build_unknown_player_problem
from ratings_ledger.projections.game_clock.logs import load_clock_events
from ratings_ledger.projections.game_clock.state import ClockLine, PlayerClock, settle_completely
from ratings_ledger.projections.queries.results import Answer, Result


@dataclass(frozen=True, slots=True)
class PlayerTimers(Result):
    """A player's timers, in milliseconds. `running` is `main` or `auxiliary`, or None while no timer runs.

    `choice` and `auxiliary_ms` are None without a pending choice.
    """

    player: str
    main_ms: int
    choice: str | None
    auxiliary_ms: int | None
    running: str | None
    removed_at: int | None
    left_at: int | None
    disconnected_at: int | None


@dataclass(frozen=True, slots=True)
class PauseRequest(Result):
    """A pending request to pause the game, with the time left for answers.

    `yes` has the players who voted yes, and `yes_needed` the number of votes that the pause needs.
    """

    asked_by: str
    left_ms: int
    yes: tuple[str, ...]
    yes_needed: int


@dataclass(frozen=True, slots=True)
class ClockState(Answer):
    """Every timer of a game at an instant; times are server times, in milliseconds."""

    game_id: str
    at: int
    started_at: int
    recorded_until: int
    stopped_at: int | None
    pause_asked: PauseRequest | None
    pause_granted_at: int | None
    paused_at: int | None
    pause_left_ms: int | None
    resume_asked: tuple[str, ...]
    players: tuple[PlayerTimers, ...]


@dataclass(frozen=True, slots=True)
class ClockExplanation(Answer):
    """The explanation of a player's main timer, line by line, up to the player's removal if there is one.

    The changes of all lines sum to the main timer. Lines after `recorded_until` assume that no more events arrive.
    """

    game_id: str
    player: str
    at: int
    recorded_until: int
    main_ms: int
    removed_at: int | None
    lines: tuple[ClockLine, ...]


def load_current_clock_events(
    connection: Connection, game_id: str, until: int
) -> tuple[list[dict[str, Any]], Callable[[str], str]]:
    """Return the live events of a game's clock up to a position, and a function that maps a player to their id in them.

    The events use current ids. If two of the players have become one person, the events keep their recorded ids, and
    the function returns its argument. Raises `Unknown` if there are no events.
    """
    events = load_clock_events(connection, read_rulesets_at(connection, until).rulesets, game_id, until)
    if not events:
        raise Unknown(None, f"no clock is recorded for the game {quote(game_id)}; see: ratings games")
    current = read_identities(connection, until).current
    players = {player for event in events for player in event["data"].get("players", ())}
    if len(set(map(current, players))) < len(players):
        return events, str
    return [event | {"data": _use_current_ids(event["data"], current)} for event in events], current


def _use_current_ids(data: dict[str, Any], current: Callable[[str], str]) -> dict[str, Any]:
    """Return the data of a clock event with current ids."""
    data = dict(data)
    if "player" in data:
        data["player"] = current(data["player"])
    if "players" in data:
        data["players"] = list(map(current, data["players"]))
    return data


def find_clocked_games(facts: Facts) -> frozenset[str]:
    """Return the ids of the games whose clock was started."""
    withdrawn = facts.recorded.withdrawn
    return frozenset(
        game_id
        for game_id, events in facts.recorded.clocks.items()
        if any(type_name == "clock.started" and position not in withdrawn for position, _, type_name, _ in events)
    )


def build_clock_state(events: Sequence[Mapping[str, Any]], at: int | None = None) -> ClockState:
    """Return every timer of a game at an instant, by default at the last event.

    Raises `Unknown` for a clock that had not been started.
    """
    clock = _replay_clock(events, at)
    paused = clock.paused_at
    return ClockState(
        game_id=clock.game_id,
        at=clock.now,
        started_at=clock.started_at,
        recorded_until=clock.recorded_until,
        stopped_at=clock.stopped_at,
        pause_asked=_build_pause_request(clock),
        pause_granted_at=clock.pause_granted_at,
        paused_at=paused,
        pause_left_ms=None if paused is None else max(paused + clock.timers.pause_ms - clock.now, 0),
        resume_asked=tuple(player.player for player in clock.players_in_game if player.player in clock.resume_asked_by),
        players=tuple(_build_timers(clock, player) for player in clock.players.values()),
    )


def explain_clock(events: Sequence[Mapping[str, Any]], player: str, at: int | None = None) -> ClockExplanation:
    """Explain a player's main timer up to an instant; by default, up to the end, assuming that no more events arrive.

    If the timer runs at the instant, the last line has the time that it has lost since it started. Raises `Unknown` for
    a clock that had not been started, and for a player who is not in the game.
    """
    clock = _replay_clock(events, at)
    if at is None:
        settle_completely(clock)
    player_clock = clock.players.get(player)
    if player_clock is None:
        raise Unknown(*build_unknown_player_problem(clock, player))
    player_clock.add_line(clock.now, "", "")  # adds the line for the time since the last line, if the timer still runs
    return ClockExplanation(
        game_id=clock.game_id,
        player=player,
        at=clock.now,
        recorded_until=clock.recorded_until,
        main_ms=player_clock.main_ms,
        removed_at=player_clock.removed_at,
        lines=tuple(player_clock.lines),
    )


def _replay_clock(events: Sequence[Mapping[str, Any]], at: int | None) -> GameClock:
    """Return the clock at an instant. Raises `Unknown` with the code of the rejection if it had not been started."""
    clock = clock_at(events, at)
    if isinstance(clock, Rejection):
        raise Unknown(clock.code, clock.message)
    return clock


def _build_pause_request(clock: GameClock) -> PauseRequest | None:
    if clock.pause_request is None:
        return None
    yes = tuple(player.player for player in clock.players_in_game if player.player in clock.pause_request.yes)
    return PauseRequest(clock.pause_request.asked_by, clock.pause_request.left_ms, yes, clock.yes_needed)


def _build_timers(clock: GameClock, player: PlayerClock) -> PlayerTimers:
    is_running = clock.is_running and player.choice is not None
    return PlayerTimers(
        player=player.player,
        main_ms=player.main_ms,
        choice=player.choice,
        auxiliary_ms=None if player.choice is None else player.auxiliary_ms,
        running=("auxiliary" if player.auxiliary_ms else "main") if is_running else None,
        removed_at=player.removed_at,
        left_at=player.left_at,
        disconnected_at=player.disconnected_at,
    )

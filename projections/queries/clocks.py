"""A game clock for people: every timer at an instant, and how a player's timer came about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.rejections import Rejection, quote
from ratings_ledger.ledger.validation.identities import identities
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import read_rulesets_at
from ratings_ledger.projections.game_clock import GameClock, clock_at
from ratings_ledger.projections.game_clock.events import build_unknown_player
from ratings_ledger.projections.game_clock.logs import load_clock_events
from ratings_ledger.projections.game_clock.state import ClockLine, PlayerClock, settle_completely
from ratings_ledger.projections.queries.results import Answer, Result


@dataclass(frozen=True, slots=True)
class PlayerTimers(Result):
    """A player's timers, in milliseconds; `running` is `main`, `auxiliary` or None, which without a choice all are."""

    player: str
    main_ms: int
    choice: str | None
    auxiliary_ms: int | None
    running: str | None
    removed_at: int | None
    left_at: int | None
    disconnected_at: int | None


@dataclass(frozen=True, slots=True)
class PauseAsked(Result):
    """Should the game be paused? The time left for answers, who has said yes, and how many must."""

    asked_by: str
    left_ms: int
    yes: tuple[str, ...]
    yes_needed: int


@dataclass(frozen=True, slots=True)
class ClockState(Answer):
    """Every timer of a game at an instant; times are the server's, in milliseconds."""

    game_id: str
    at: int
    started_at: int
    recorded_until: int
    stopped_at: int | None
    pause_asked: PauseAsked | None
    pause_granted_at: int | None
    paused_at: int | None
    pause_left_ms: int | None
    resume_asked: tuple[str, ...]
    players: tuple[PlayerTimers, ...]


@dataclass(frozen=True, slots=True)
class ClockExplanation(Answer):
    """How a player's main timer came about, line by line, ending with their removal if there is one.

    The changes of all lines sum to the main timer. Lines after `recorded_until` are what falls due if no more comes.
    """

    game_id: str
    player: str
    at: int
    recorded_until: int
    main_ms: int
    removed_at: int | None
    lines: tuple[ClockLine, ...]


def events_of_clock(
    connection: Connection, game_id: str, until: int
) -> tuple[list[dict[str, Any]], Callable[[str], str]]:
    """Return the live events of a game's clock up to a position, under current ids, and what gives somebody's id there.

    The ids are as recorded if two of a clock's players have become one person. Raises `Unknown` if there are no events.
    """
    events = load_clock_events(connection, read_rulesets_at(connection, until).rulesets, game_id, until)
    if not events:
        raise Unknown(None, f"no clock of a game {quote(game_id)} is recorded")
    current = identities(connection, until).current
    players = {player for event in events for player in event["data"].get("players", ())}
    if len(set(map(current, players))) < len(players):
        return events, str
    return [event | {"data": _renamed(event["data"], current)} for event in events], current


def _renamed(data: dict[str, Any], current: Callable[[str], str]) -> dict[str, Any]:
    """Return what an event of a clock says, with current ids."""
    found = dict(data)
    if "player" in data:
        found["player"] = current(data["player"])
    if "players" in data:
        found["players"] = list(map(current, data["players"]))
    return found


def games_timed(facts: Facts) -> frozenset[str]:
    """Return the games whose clock was started."""
    gone = facts.recorded.withdrawn
    return frozenset(
        game_id
        for game_id, events in facts.recorded.clocks.items()
        if any(kind == "clock.started" and at not in gone for at, _, kind, _ in events)
    )


def show_clock(events: Sequence[Mapping[str, Any]], at: int | None = None) -> ClockState:
    """Return every timer of a game at an instant, by default the last event. Raises `Unknown` as `clock_at` refuses."""
    clock = _at(events, at)
    paused = clock.paused_at
    return ClockState(
        clock.game_id,
        clock.now,
        clock.started_at,
        clock.recorded_until,
        clock.stopped_at,
        _question(clock),
        clock.pause_granted_at,
        paused,
        None if paused is None else max(paused + clock.timers.pause_ms - clock.now, 0),
        tuple(one.player for one in clock.playing if one.player in clock.resume_asked),
        tuple(_timers(clock, one) for one in clock.players.values()),
    )


def explain_clock(events: Sequence[Mapping[str, Any]], player: str, at: int | None = None) -> ClockExplanation:
    """Return how a player's main timer came about, up to an instant, by default as far as the events lead if no more
    come.

    If it is running at the end, the last line says "so far". Raises `Unknown` as `clock_at` refuses, and for somebody
    who does not play.
    """
    clock = _at(events, at)
    if at is None:
        settle_completely(clock)
    one = clock.players.get(player)
    if one is None:
        raise Unknown(*build_unknown_player(clock, player))
    one.add_line(clock.now, "", "")
    return ClockExplanation(
        clock.game_id, player, clock.now, clock.recorded_until, one.main_ms, one.removed_at, tuple(one.lines)
    )


def _at(events: Sequence[Mapping[str, Any]], at: int | None) -> GameClock:
    clock = clock_at(events, at)
    if isinstance(clock, Rejection):
        raise Unknown(clock.code, clock.message)
    return clock


def _question(clock: GameClock) -> PauseAsked | None:
    if clock.question is None:
        return None
    said_yes = tuple(one.player for one in clock.playing if one.player in clock.question.yes)
    return PauseAsked(clock.question.asked_by, clock.question.left_ms, said_yes, clock.yes_needed)


def _timers(clock: GameClock, one: PlayerClock) -> PlayerTimers:
    runs = clock.is_running and one.choice is not None
    return PlayerTimers(
        one.player,
        one.main_ms,
        one.choice,
        None if one.choice is None else one.auxiliary_ms,
        ("auxiliary" if one.auxiliary_ms else "main") if runs else None,
        one.removed_at,
        one.left_at,
        one.disconnected_at,
    )

"""A game clock for people: every timer at an instant, and how a player's timer came about."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.rejections import Rejection, shown
from ratings_ledger.ledger.validation.identities import identities
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import rulesets_at
from ratings_ledger.projections.game_clock import GameClock, clock_at
from ratings_ledger.projections.game_clock.events import unknown_player
from ratings_ledger.projections.game_clock.logs import clock_events
from ratings_ledger.projections.game_clock.state import PlayerClock, run_out
from ratings_ledger.projections.queries.answers_recorded import ClockExplanation, ClockState, PauseAsked, PlayerTimers


def events_of_clock(
    connection: Connection, game_id: str, until: int
) -> tuple[list[dict[str, Any]], Callable[[str], str]]:
    """The live events of a game's clock up to a position, under current ids, and what gives somebody's id there.

    The ids are as recorded if two of a clock's players have become one person. Raises `Unknown` if there are no events.
    """
    events = clock_events(connection, rulesets_at(connection, until).rulesets, game_id, until)
    if not events:
        raise Unknown(None, f"no clock of a game {shown(game_id)} is recorded")
    current = identities(connection, until).current
    players = {player for event in events for player in event["data"].get("players", ())}
    if len(set(map(current, players))) < len(players):
        return events, str
    return [event | {"data": _renamed(event["data"], current)} for event in events], current


def _renamed(data: dict[str, Any], current: Callable[[str], str]) -> dict[str, Any]:
    """What an event of a clock says, with current ids."""
    found = dict(data)
    if "player" in data:
        found["player"] = current(data["player"])
    if "players" in data:
        found["players"] = list(map(current, data["players"]))
    return found


def games_timed(facts: Facts) -> frozenset[str]:
    """The games whose clock was started."""
    gone = facts.recorded.withdrawn
    return frozenset(
        game_id for game_id, events in facts.recorded.clocks.items()
        if any(kind == "clock.started" and at not in gone for at, _, kind, _ in events)
    )  # fmt: skip


def show_clock(events: Sequence[Mapping[str, Any]], at: int | None = None) -> ClockState:
    """Every timer of a game at an instant, by default the last event. Raises `Unknown` as `clock_at` refuses."""
    clock = _at(events, at)
    paused = clock.paused_at
    return ClockState(
        clock.game_id, clock.now, clock.started_at, clock.recorded_until, clock.stopped_at, _question(clock),
        clock.pause_granted_at, paused,
        None if paused is None else max(paused + clock.timers.pause_ms - clock.now, 0),
        tuple(one.player for one in clock.playing if one.player in clock.resume_asked),
        tuple(_timers(clock, one) for one in clock.players.values()),
    )  # fmt: skip


def explain_clock(events: Sequence[Mapping[str, Any]], player: str, at: int | None = None) -> ClockExplanation:
    """How a player's main timer came about, up to an instant, by default as far as the events lead if no more come.

    If it is running at the end, the last line says "so far". Raises `Unknown` as `clock_at` refuses, and for somebody
    who does not play.
    """
    clock = _at(events, at)
    if at is None:
        run_out(clock)
    one = clock.players.get(player)
    if one is None:
        raise Unknown(*unknown_player(clock, player))
    one.tell(clock.now, "", "")
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
        one.player, one.main_ms, one.choice, None if one.choice is None else one.auxiliary_ms,
        ("auxiliary" if one.auxiliary_ms else "main") if runs else None, one.removed_at, one.left_at,
        one.disconnected_at,
    )  # fmt: skip

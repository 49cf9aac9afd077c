"""`clock`: every timer of a game at any instant, and why a player was removed."""

from typing import Any

import click
from sqlalchemy import Connection

from cli.arguments.command import group
from cli.arguments.moments import known_position
from cli.arguments.options import format_option, known_at_option
from cli.output import render
from ledger.events.fields import composed
from ledger.rejections import Rejection, shown
from ledger.store.opening import open_ledger
from projections.admission.events import Admission
from projections.game_clock import explain_clock, show_clock
from projections.game_clock.logs import clock_events

at_option = click.option("--at", metavar="MS", type=int, help="The server's time.  [default: the last event]")


@group()
def clock() -> None:
    """The clock of a game, rebuilt from its events."""


@clock.command(name="show")
@click.argument("game_id", metavar="GAME", type=composed)
@at_option
@known_at_option
@format_option
@click.pass_obj
def show_(db: str, game_id: str, at: int | None, known_at: str | None, form: str) -> None:
    """Every player's timers in GAME, who is removed or disconnected, and whether the game is paused."""
    with open_ledger(db).reading() as connection:
        found = _good(show_clock(_events(connection, game_id, known_at), at))
    if form == "json":
        render.print_json(found)
        return
    header = ("player", "main_ms", "choice", "auxiliary_ms", "running", "removed_at", "left_at", "disconnected_at")
    rows = [[player[name] for name in header] for player in found["players"]]
    if form == "csv":
        render.print_csv(header, rows)
        return
    render.echo(f"{render.plain(game_id)} at {found['at']} ms, recorded until {found['recorded_until']} ms")
    if found["stopped_at"] is not None:
        render.echo(f"stopped at {found['stopped_at']} ms")
    if found["paused_at"] is not None:
        render.echo(f"paused since {found['paused_at']} ms; {_seconds(found['pause_left_ms'])} of the pause are left")
    if asked := found["pause_asked"]:
        answers = f"{len(asked['yes'])} of {asked['yes_needed']} yes, {_seconds(asked['left_ms'])} left for answers"
        render.echo(f"{render.plain(asked['asked_by'])} asks for a pause: {answers}")
    render.echo()
    lines = [
        (
            p["player"],
            _seconds(p["main_ms"]),
            p["choice"] or "",
            _seconds(p["auxiliary_ms"]),
            p["running"] or "",
            _gone(p),
        )
        for p in found["players"]
    ]
    right = ("main timer", "auxiliary")
    render.print_table(("player", "main timer", "choice", "auxiliary", "running", "state"), lines, right=right)


@clock.command(name="explain")
@click.argument("game_id", metavar="GAME", type=composed)
@click.argument("player", type=composed)
@at_option
@known_at_option
@format_option
@click.pass_obj
def explain_(db: str, game_id: str, player: str, at: int | None, known_at: str | None, form: str) -> None:
    """What was taken from PLAYER's main timer and given to it. Line by line, ending in their removal, if any."""
    with open_ledger(db).reading() as connection:
        found = _good(explain_clock(_events(connection, game_id, known_at), player, at))
    header = ("at", "what", "change_ms", "main_ms", "detail")
    if form == "json":
        render.print_json(found)
    elif form == "csv":
        render.print_csv(header, [[line[name] for name in header] for line in found["lines"]])
    else:
        render.echo(
            f"{render.plain(player)} in {render.plain(game_id)}: {_seconds(found['main_ms'])} on the main timer\n"
        )
        lines = [
            (line["at"], line["what"], _seconds(line["change_ms"] or None), _seconds(line["main_ms"]),
             line["detail"] + _if_so(line["at"], found["recorded_until"]))
            for line in found["lines"]
        ]  # fmt: skip
        render.print_table(("ms", "what", "change", "main timer", ""), lines, right=("ms", "change", "main timer"))


def _events(connection: Connection, game_id: str, known_at: str | None) -> list[dict[str, Any]]:
    position = known_position(connection, known_at)
    events = clock_events(connection, Admission(connection, until=position).versions, game_id, position)
    if not events:
        raise click.ClickException(f"no clock of a game {shown(game_id)} is recorded")
    return events


def _good(found: dict[str, Any] | Rejection) -> dict[str, Any]:
    if isinstance(found, Rejection):
        raise click.ClickException(f"{found.code}: {found.message}")
    return found


def _if_so(at: int, recorded_until: int) -> str:
    return " (if nothing more is recorded)" if at > recorded_until else ""


def _seconds(ms: int | None) -> str:
    """Milliseconds as seconds, exactly."""
    return "" if ms is None else f"{'-' if ms < 0 else ''}{abs(ms) // 1000}.{abs(ms) % 1000:03d} s"


def _gone(player: dict[str, Any]) -> str:
    """What became of a player."""
    told = [
        f"{state} at {player[f'{state}_at']} ms" for state in ("removed", "left", "disconnected")
        if player[f"{state}_at"] is not None
    ]  # fmt: skip
    return ", ".join(told)

"""`games`: the games as they stand."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import click
from click.core import ParameterSource
from sqlalchemy import Connection

from cli.arguments.command import command
from cli.arguments.facts import decoded, note_left_out
from cli.arguments.moments import known_position, played_instant, since_instant
from cli.arguments.options import composed, format_option, known_at_option
from cli.output import render
from ledger.events.canonical import dump_text, format_instant
from ledger.events.revisions import GAME_EVENTS, live_game
from ledger.rejections import Refused, did_you_mean
from ledger.store.log import (
    Log,
    known_event,
    known_of,
    read_records,
    read_where,
)
from ledger.store.opening import open_ledger
from ledger.validation.identities import identities
from ledger.validation.repeated_games import result_of
from projections.facts.players import known_players
from projections.queries.coordinates import Times, times_of

GAME_RECORDED = '"type":"game.recorded"}'


@command()
@click.argument("game_id", metavar="[GAME]", type=composed, required=False)
@click.option("--game", "slug", metavar="NAME", help="Only games of this name, such as catan.")
@click.option("--player", metavar="ID", type=composed, help="Only games that this player took part in.")
@click.option("--since", metavar="TIME", help="Only what was played from then on; a date means its start.")
@click.option("--by", metavar="NAME", help="Only games that NAME recorded.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=0), help="Only the newest N; 0: all.")
@click.option("--as-of", metavar="TIME", help="Only what was played up to then; a date means its end.")
@known_at_option
@format_option
@click.pass_obj
def games(
    db: str,
    game_id: str | None,
    slug: str | None,
    player: str | None,
    since: str | None,
    by: str | None,
    limit: int,
    as_of: str | None,
    known_at: str | None,
    form: str,
) -> None:
    """The recorded games as they now stand, by the time they were played; or only the one named."""
    ledger = open_ledger(db)
    found: list[_Listed] = []
    left_out: dict[int, str] = {}
    count = 0
    with ledger.reading() as connection:
        times = times_of(connection)
        instant = played_instant(as_of, times.zone)
        begin = None if since is None else since_instant(since, times.zone)
        recorded_by = "" if by is None else f'{{"by":{dump_text(by)},'
        until = known_position(connection, known_at)
        changed = _changed_games(connection, until)
        people = identities(connection, until)
        ids = people.ids(player) if player is not None else None
        for page in read_records(connection, until=until):
            for position, record in page:
                if not record.endswith(GAME_RECORDED) or not record.startswith(recorded_by):
                    continue
                try:
                    event = known_event(position, record)
                except Refused as problem:
                    left_out[position] = problem.message
                    continue
                listed = changed.get(event.data["game_id"]) or _Listed(event.occurred_at, position, event.data, False)
                late = instant is not None and listed.played_at > instant
                early = begin is not None and listed.played_at < begin
                if (
                    not late
                    and not early
                    and game_id in (None, listed.data["game_id"])
                    and _wanted(listed.data, slug, ids)
                ):
                    found.append(listed)
                    count += 1
            if limit and len(found) > 2 * limit + 10_000:
                found = sorted(found, key=_replay_order)[-limit:]
        known = known_players(decoded(connection)) if player is not None and not found else ()
    note_left_out(left_out)
    found.sort(key=_replay_order)
    found = [game._replace(data=people.present(game.data)) for game in (found[-limit:] if limit else found)]
    if form == "json":
        rows = [
            {"position": game.position, "occurred_at": format_instant(game.played_at), **game.data}
            | ({"voided": True} if game.voided else {})
            for game in found
        ]
        render.print_json({"rows": rows})
        return
    header = ("position", "occurred_at", "game_id", "game", "group", "result")
    cells = [
        (game.position, format_instant(game.played_at), game.data["game_id"], game.data["game"], game.data.get("group"),
         _result(game.data) + (" (voided)" if game.voided else ""))
        for game in found
    ]  # fmt: skip
    if form == "csv":
        render.print_csv(header, cells)
    elif cells and game_id is not None:
        _print_game(found[0], times)
    elif cells:
        _print_games(cells, times)
        _note_hidden(count - len(cells))
    else:
        hint = "" if player is None else did_you_mean(player, known)
        render.note(f"No such game is recorded{hint or '.'}")


def _note_hidden(count: int) -> None:
    """Say that a list is not complete, unless that was asked for."""
    asked = click.get_current_context().get_parameter_source("limit") != ParameterSource.DEFAULT
    if count > 0 and not asked:
        render.note(f"{count:,} older ones are not shown; all: --limit 0")


def _print_games(cells: Sequence[Sequence[Any]], times: Times) -> None:
    """Print the games as a table, without columns that say nothing: only one game's name, no groups."""
    header = ["position", times.column("played"), "game_id", "game", "group", "result"]
    rows = [[position, times.minute(at), *rest] for position, at, *rest in cells]
    idle = {"game": 1, "group": 0}
    kept = [
        column for column, name in enumerate(header)
        if name not in idle or len({row[column] for row in rows} - {None}) > idle[name]
    ]  # fmt: skip
    render.print_table([header[c] for c in kept], [[row[c] for c in kept] for row in rows], right=("position",))


def _print_game(game: "_Listed", times: Times) -> None:
    """Print everything recorded about one game: its own members, then the participants with theirs."""
    told = {name: value for name, value in game.data.items() if name not in ("participants", "centres", "extra")}
    members = [name for participant in game.data["participants"] for name in participant]
    header = [*dict.fromkeys(["player", *members])]
    played = times.stated(game.played_at)
    render.echo(f"played {played}, recorded at position {game.position:,}{' (voided)' if game.voided else ''}\n")
    render.print_table(("what", "value"), [(name, str(value)) for name, value in told.items()])
    render.echo()
    rows = [[_cell(participant.get(name)) for name in header] for participant in game.data["participants"]]
    render.print_table(header, rows, right=[name for name in header if name in ("place", "score", "units", "vp")])
    if centres := game.data.get("centres"):
        powers = sorted({power for held in centres.values() for power in held})
        render.echo("\ncentres at the end of each year")
        rows = [[year, *(str(held.get(power, 0)) for power in powers)] for year, held in sorted(centres.items())]
        render.print_table(("year", *powers), rows, right=powers)


def _cell(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else render.json_text(value)


class _Listed(NamedTuple):
    """A game as it stands now; `position` is that of its first record."""

    played_at: int
    position: int
    data: dict[str, Any]
    voided: bool


def _replay_order(game: _Listed) -> tuple[int, int]:
    return game.played_at, game.position


def _changed_games(connection: Connection, until: int) -> dict[str, _Listed]:
    """The games that were corrected, voided or reinstated, by game_id, as they now stand."""
    found: dict[str, _Listed] = {}
    for type_name in sorted(GAME_EVENTS - {"game.recorded"}):
        for row in read_where(connection, until=until, type_name=type_name):
            event = next(iter(known_of(type_name, [row])), None)
            if event is None:
                continue
            game_id = event.data["game_id"]
            history = [] if game_id in found else Log(connection, until).about(f"game:{game_id}")
            if (game := live_game(history)) is not None:
                found[game_id] = _Listed(game.occurred_at, history[0].position or 0, game.data, game.voided)
    return found


def _wanted(data: dict[str, Any], slug: str | None, ids: set[str] | None) -> bool:
    return (slug is None or data["game"] == slug) and (
        ids is None or any(participant["player"] in ids for participant in data["participants"])
    )


def _result(data: dict[str, Any]) -> str:
    """The participants by place or side, and whether the game counts."""
    uncounted = " (aborted)" if data.get("aborted") else "" if data.get("rated", True) else " (not rated)"
    return result_of(data) + uncounted

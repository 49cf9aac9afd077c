"""`games`, `log`: the facts as they were recorded."""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import click
from click.core import ParameterSource
from sqlalchemy import Connection

from cli.arguments.facts import decoded, note_left_out
from cli.arguments.options import (
    composed,
    format_option,
    known_at_option,
    known_position,
    played_instant,
    since_instant,
    since_position,
)
from cli.output import render
from cli.output.times import Times, times_of
from ledger.events.canonical import dump_text, format_instant
from ledger.events.revisions import GAME_TYPES, UNREADABLE, Known, live_game, successors
from ledger.events.types import TYPES
from ledger.rejections import Refused, did_you_mean, shown
from ledger.store.log import (
    Log,
    known_event,
    known_of,
    read_naming,
    read_newest,
    read_records,
    read_records_at,
    read_where,
    taken_back_ids,
)
from ledger.store.opening import open_ledger
from ledger.validation.identities import identities, players_of
from ledger.validation.repeats import result_of
from projections.facts.players import known_players

GAME_RECORDED = '"type":"game.recorded"}'


@click.command()
@click.argument("game_id", metavar="[GAME]", type=composed, required=False)
@click.option("--game", "slug", metavar="NAME", help="Only games of this name, such as catan.")
@click.option("--player", metavar="ID", type=composed, help="Only games that this player took part in.")
@click.option("--since", metavar="TIME", help="Only what was played from then on; a date means its beginning.")
@click.option("--by", metavar="NAME", help="Only games that NAME recorded.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=0), help="The newest so many; 0: all.")
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
    """The recorded games as they stand, by the time they were played; or the one that is named."""
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
    """Tell that a list is not the whole, unless that was asked for."""
    asked = click.get_current_context().get_parameter_source("limit") != ParameterSource.DEFAULT
    if count > 0 and not asked:
        render.note(f"{count:,} older ones are not shown; all: --limit 0")


def _print_games(cells: Sequence[Sequence[Any]], times: Times) -> None:
    """The games as a table, without columns that say nothing: one game's name, no groups."""
    header = ["position", times.column("played"), "game_id", "game", "group", "result"]
    rows = [[position, times.minute(at), *rest] for position, at, *rest in cells]
    idle = {"game": 1, "group": 0}
    kept = [
        column for column, name in enumerate(header)
        if name not in idle or len({row[column] for row in rows} - {None}) > idle[name]
    ]  # fmt: skip
    render.print_table([header[c] for c in kept], [[row[c] for c in kept] for row in rows], right=("position",))


def _print_game(game: "_Listed", times: Times) -> None:
    """All that is recorded of one game: its own members, then the participants with theirs."""
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
    """The games that were corrected, voided or reinstated, by game_id, as they stand."""
    found: dict[str, _Listed] = {}
    for type_name in sorted(GAME_TYPES - {"game.recorded"}):
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


def _types(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if value not in TYPES:
            raise click.BadParameter(f"{shown(value)} is not a type of event{did_you_mean(value, TYPES)}")
    return values


@click.command()
@click.argument("subject", metavar="[GAME or PLAYER]", type=composed, required=False)
@click.option("--since", metavar="TIME|POSITION",
              help="Only what was recorded from then on; a date means its beginning.")  # fmt: skip
@click.option("--by", metavar="NAME", help="Only what NAME recorded.")
@click.option("--type", "types", metavar="TYPE", multiple=True, callback=_types,
              help="Only events of this type, such as game.voided; repeatable.")  # fmt: skip
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=0), help="The newest so many; 0: all.")
@known_at_option
@format_option
@click.pass_obj
def log(
    db: str, subject: str | None, since: str | None, by: str | None, types: tuple[str, ...], limit: int,
    known_at: str | None, form: str,
) -> None:  # fmt: skip
    """The raw events, who recorded them, and why. All, or those about one game or player."""
    ledger = open_ledger(db)
    with ledger.reading() as connection:
        times, until = times_of(connection), known_position(connection, known_at)
        after = since_position(connection, since)
        if subject is None:
            records, hidden = read_newest(connection, until, after=after, by=by, types=types, limit=limit)
        else:
            of_subject = [*read_where(connection, until=until, subject=f"game:{subject}"),
                          *read_where(connection, until=until, subject=f"event:{subject}")]  # fmt: skip
            ids = identities(connection, until).ids(subject)
            of_player = list(_about_player(Log(connection, until), ids))
            records = sorted({*of_subject, *read_records_at(connection, of_player).items()})
            records = [row for row in records if row[0] > after and _is_wanted(_told(*row), by, types)]
            hidden = max(0, len(records) - limit) if limit else 0
            records = records[hidden:]
        events = [_told(position, record) for position, record in records]
        gone = taken_back_ids(connection, until)
        targets = {event["data"]["id"]: Log(connection).event(event["data"]["id"])
                   for event in events if event["type"] == "event.voided" and UNREADABLE not in event}  # fmt: skip
    if form == "json":
        render.print_json({"rows": events})
        return
    told = [_what(event, targets, times) + (" (taken back)" if event["id"] in gone else "") for event in events]
    rows = [
        (e["position"], e["type"], e["id"], e.get("occurred_at"), e.get("recorded_at"), e.get("by"), _reason(e), what)
        for e, what in zip(events, told, strict=True)
    ]
    if form == "csv":
        render.print_csv(("position", "type", "id", "occurred_at", "recorded_at", "by", "reason", "what"), rows)
    elif rows:
        render.print_table(
            ("position", times.column("recorded"), "by", "type", "what"),
            [(row[0], "" if row[4] is None else times.minute(row[4]), row[5], row[1], row[7]) for row in rows],
            right=("position",),
        )
        _note_hidden(hidden)
    else:
        asked = since is not None or by is not None or bool(types)
        about = f" about {subject!r}" if subject else ""
        nothing = f"Nothing is recorded{about}." if subject else "The log is empty."
        render.note(f"Nothing like that is recorded{about}." if asked else nothing)


def _is_wanted(event: dict[str, Any], by: str | None, types: Collection[str]) -> bool:
    return (by is None or event.get("by") == by) and (not types or event["type"] in types)


def _about_player(log: Log, ids: set[str]) -> Iterator[int]:
    """The positions of the events about somebody, and of those that take them back."""
    for event in read_naming(log.connection, sorted(ids), log.until):
        if ids & players_of(event):
            yield event.position or 0
            if event.type not in GAME_TYPES:
                yield from (later.position or 0 for later in successors(log, event))


def _told(position: int, record: str) -> dict[str, Any]:
    """An event as its record tells it; of one that no event has only its names, its text, and what is wrong."""
    try:
        known_event(position, record)
        event: dict[str, Any] = json.loads(record)
        return event
    except Refused as problem:
        names = dict(re.findall(r'"(id|type)":"([^"\\]{1,64})"', record))
        return {"position": position, "type": "?", "id": "?", **names, UNREADABLE: problem.message, "record": record}


def _reason(event: dict[str, Any]) -> Any:
    return None if UNREADABLE in event else event["data"].get("reason")


def _what(event: dict[str, Any], targets: dict[str, Known | None], times: Times) -> str:
    if UNREADABLE in event:
        return f"does not count: {event[UNREADABLE]}"
    data = event["data"]
    if event["type"] == "event.voided":
        target = targets[data["id"]]
        what = data["id"] if target is None else f"{target.type} at position {target.position}"
        return f"takes back {what}: {data['reason']}"
    if event["type"] == "game.recorded":
        return f"{data['game_id']}: {_result(data)}"
    if event["type"] == "game.corrected":
        moved = data["game"].get("occurred_at")
        dated = f", played {times.minute(moved)}" if moved else ""
        return f"{data['game_id']}: {_result(data['game'])}{dated}: {data['reason']}"
    if event["type"] == "player.renamed":
        return f"{data['player']} is {data['new_player']}" + (f": {data['reason']}" if "reason" in data else "")
    if "reason" in data and "points" not in data:
        return f"{data['game_id']}: {data['reason']}"
    if event["type"] == "points.adjusted":
        return f"{data['player']} {data['points']} on {data['ladder']}: {data['reason']}"
    if event["type"] == "league.created":
        return f"{data['league']} of {data['game']}, {data['players_per_game']} players a game"
    if event["type"].startswith("clock."):
        rest = [str(data[name]) for name in ("player", "choice", "answer") if name in data]
        return ", ".join([f"{data['game_id']} at {data['at']} ms", *rest])
    if event["type"] == "league.joined":
        return f"{data['player']} is in {data['league']}"
    if event["type"] == "league.scheduled":
        return f"{data['league']}: {len(data['games'])} games, drawn with the seed {data['seed']}"
    if event["type"] == "list.rows":
        return f"{data['ladder']}: part {data['part']} of {data['parts']}, {len(data['rows'])} rows"
    if event["type"] == "list.published":
        as_of = f" as of {times.stated(data['as_of'])}" if "as_of" in data else ""
        return f"{data['ladder']}{as_of}: {data['row_count']} rows under {data['ruleset']}, position {data['known_at']}"
    if event["type"] == "ruleset.published":
        return f"{data['id']}@{data['version']}"
    if event["type"] == "ledger.zone_set":
        return f"the home zone is {data['zone']}"
    return ", ".join(str(value) for value in data.values())

"""`log`: the events as they were recorded."""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

import click

from cli.arguments.command import command
from cli.arguments.moments import known_position, since_position
from cli.arguments.options import composed, format_option, known_at_option
from cli.commands.games import _note_hidden, _result
from cli.output import render
from ledger.events.revisions import GAME_EVENTS, UNREADABLE, KnownEvent, successors
from ledger.events.types import TYPES
from ledger.rejections import Refused, did_you_mean, shown
from ledger.store.log import (
    Log,
    known_event,
    read_naming,
    read_newest,
    read_records_at,
    read_where,
    withdrawn_ids,
)
from ledger.store.opening import open_ledger
from ledger.validation.identities import identities, players_of
from projections.queries.coordinates import Times, times_of


def _types(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if value not in TYPES:
            raise click.BadParameter(f"{shown(value)} is not a type of event{did_you_mean(value, TYPES)}")
    return values


@command()
@click.argument("subject", metavar="[GAME or PLAYER]", type=composed, required=False)
@click.option("--since", metavar="TIME|POSITION",
              help="Only what was recorded from then on; a date means its start.")  # fmt: skip
@click.option("--by", metavar="NAME", help="Only what NAME recorded.")
@click.option("--type", "types", metavar="TYPE", multiple=True, callback=_types,
              help="Only events of this type, such as game.voided; repeatable.")  # fmt: skip
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=0), help="Only the newest N; 0: all.")
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
        gone = withdrawn_ids(connection, until)
        targets = {event["data"]["id"]: Log(connection).event(event["data"]["id"])
                   for event in events if event["type"] == "event.voided" and UNREADABLE not in event}  # fmt: skip
    if form == "json":
        render.print_json({"rows": events})
        return
    told = [_what(event, targets, times) + (" (withdrawn)" if event["id"] in gone else "") for event in events]
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
    """The positions of the events about somebody, and of those that withdraw them."""
    for event in read_naming(log.connection, sorted(ids), log.until):
        if ids & players_of(event):
            yield event.position or 0
            if event.type not in GAME_EVENTS:
                yield from (later.position or 0 for later in successors(log, event))


def _told(position: int, record: str) -> dict[str, Any]:
    """An event as in its record; for an invalid record only its names, its text, and what is wrong."""
    try:
        known_event(position, record)
        event: dict[str, Any] = json.loads(record)
        return event
    except Refused as problem:
        names = dict(re.findall(r'"(id|type)":"([^"\\]{1,64})"', record))
        return {"position": position, "type": "?", "id": "?", **names, UNREADABLE: problem.message, "record": record}


def _reason(event: dict[str, Any]) -> Any:
    return None if UNREADABLE in event else event["data"].get("reason")


def _what(event: dict[str, Any], targets: dict[str, KnownEvent | None], times: Times) -> str:
    if UNREADABLE in event:
        return f"does not count: {event[UNREADABLE]}"
    data = event["data"]
    if event["type"] == "event.voided":
        target = targets[data["id"]]
        what = data["id"] if target is None else f"{target.type} at position {target.position}"
        return f"withdraws {what}: {data['reason']}"
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

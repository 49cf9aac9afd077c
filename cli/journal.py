"""`games`, `log`, `export`: the facts as they were recorded."""

import json
import sys
from typing import Any

import click

from cli import render
from cli.options import composed, format_option, known_position, played_instant
from ledger.canonical import format_instant
from ledger.kinds import places
from ledger.store import open_ledger, read_records, read_where


@click.command()
@click.option("--game", "slug", metavar="NAME", help="Only games of this name, such as catan.")
@click.option("--player", metavar="ID", type=composed, help="Only games that this player took part in.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=0), help="The newest so many; 0: all.")
@click.option("--as-of", metavar="TIME", help="Only what was played up to then; a date means its end in UTC.")
@click.option("--known-at", metavar="TIME|POSITION", help="Only what was recorded up to then.")
@format_option
@click.pass_obj
def games(
    db: str, slug: str | None, player: str | None, limit: int, as_of: str | None, known_at: str | None, form: str
) -> None:
    """The recorded games, by the time they were played."""
    ledger = open_ledger(db)
    found: list[tuple[str, int, dict[str, Any]]] = []
    instant = played_instant(as_of, "UTC")
    # recorded times have one form, so that they sort as texts
    latest = "9999-12-31T23:59:59.999999Z" if instant is None else format_instant(instant)
    with ledger.reading() as connection:
        for page in read_records(connection, until=known_position(connection, known_at)):
            for position, record in page:
                event = json.loads(record)
                late = event["occurred_at"] > latest
                if event["type"] == "game.recorded" and not late and _wanted(event["data"], slug, player):
                    found.append((event["occurred_at"], position, event["data"]))
            if limit and len(found) > 2 * limit + 10_000:
                found = sorted(found, key=lambda game: game[:2])[-limit:]
    found.sort(key=lambda game: game[:2])
    found = found[-limit:] if limit else found
    if form == "json":
        rows = [{"position": position, "occurred_at": at, **data} for at, position, data in found]
        render.print_json({"rows": rows})
        return
    header = ("position", "occurred_at", "game_id", "game", "group", "result")
    cells = [
        (position, at, data["game_id"], data["game"], data.get("group"), _result(data)) for at, position, data in found
    ]
    if form == "csv":
        render.print_csv(header, cells)
    elif cells:
        readable = [(p, render.moment(at), *rest) for p, at, *rest in cells]
        render.print_table(("position", "played (UTC)", *header[2:]), readable, right=("position",))
    else:
        render.note("No such game is recorded.")


def _wanted(data: dict[str, Any], slug: str | None, player: str | None) -> bool:
    return (slug is None or data["game"] == slug) and (
        player is None or any(participant["player"] == player for participant in data["participants"])
    )


def _result(data: dict[str, Any]) -> str:
    """The participants by place: `1 anna, 2 ben, 2 cleo`."""
    placed = sorted(zip(places(data), (p["player"] for p in data["participants"]), strict=True))
    uncounted = " (aborted)" if data.get("aborted") else "" if data.get("rated", True) else " (not rated)"
    return ", ".join(f"{place} {name}" for place, name in placed) + uncounted


@click.command()
@click.argument("subject", metavar="[GAME or PLAYER]", type=composed, required=False)
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=0), help="The newest so many; 0: all.")
@click.option("--known-at", metavar="TIME|POSITION", help="Only what was recorded up to then.")
@format_option
@click.pass_obj
def log(db: str, subject: str | None, limit: int, known_at: str | None, form: str) -> None:
    """The raw events, who recorded them, and why. All, or those about one game or player."""
    ledger = open_ledger(db)
    with ledger.reading() as connection:
        until = known_position(connection, known_at)
        if subject is None:
            after = max(0, until - limit) if limit else 0
            records = [row for page in read_records(connection, after, until) for row in page]
        else:
            of_game = read_where(connection, until=until, subject=f"game:{subject}")
            of_player = [
                row for page in read_records(connection, until=until) for row in page if _about(row[1], subject)
            ]
            records = sorted({*of_game, *of_player})
    events = [json.loads(record) for _, record in records]
    events = events[-limit:] if limit else events
    if form == "json":
        render.print_json({"rows": events})
        return
    rows = [
        (e["position"], e["type"], e["id"], e["occurred_at"], e["recorded_at"], e["by"], e["data"].get("reason"))
        for e in events
    ]
    if form == "csv":
        render.print_csv(("position", "type", "id", "occurred_at", "recorded_at", "by", "reason"), rows)
    elif rows:
        render.print_table(
            ("position", "recorded (UTC)", "by", "type", "what"),
            [
                (row[0], render.moment(row[4]), row[5], row[1], _what(event))
                for row, event in zip(rows, events, strict=True)
            ],
            right=("position",),
        )
    else:
        render.note(f"Nothing is recorded about {subject!r}." if subject else "The log is empty.")


def _about(record: str, player: str) -> bool:
    """Whether an event is about a player or his games; the text is searched first, since most are not."""
    if json.dumps(player, ensure_ascii=False) not in record:
        return False
    data = json.loads(record)["data"]
    return player in (data.get("player"), data.get("new_player")) or any(
        participant["player"] == player for participant in data.get("participants", ())
    )


def _what(event: dict[str, Any]) -> str:
    data = event["data"]
    if event["type"] == "game.recorded":
        return f"{data['game_id']}: {_result(data)}"
    if event["type"] == "points.adjusted":
        return f"{data['player']} {data['points']} on {data['ladder']}: {data['reason']}"
    if event["type"] == "ruleset.published":
        return f"{data['id']}@{data['version']}"
    return ", ".join(str(value) for value in data.values())


@click.group()
def export() -> None:
    """Write the ledger's content for other programs."""


@export.command(name="events")
@click.option("--known-at", metavar="TIME|POSITION", help="Only what was recorded up to then.")
@click.option("--output", "-o", metavar="FILE", default="-", help="A file that does not exist yet.  [default: stdout]")
@click.pass_obj
def export_events(db: str, known_at: str | None, output: str) -> None:
    """Every record verbatim, one a line: a full backup that `import --restore` takes into an empty ledger."""
    ledger = open_ledger(db)
    with ledger.reading() as connection:
        until = known_position(connection, known_at)
        if output == "-":
            for page in read_records(connection, until=until):
                sys.stdout.buffer.write("".join(f"{record}\n" for _, record in page).encode())
            return
        try:
            with open(output, "x", encoding="utf-8", newline="\n") as file:
                for page in read_records(connection, until=until):
                    file.writelines(f"{record}\n" for _, record in page)
        except FileExistsError:
            raise click.UsageError(f"{output} exists; nothing was written") from None
    render.note(f"{until:,} events in {output}")

"""`standings`, `history`, `books`: what the facts mean on one ladder."""

import sys
from collections.abc import Collection
from fractions import Fraction
from typing import Any

import click
from sqlalchemy import Connection

from cli.arguments.facts import decoded
from cli.arguments.moments import known_position, played_instant
from cli.arguments.one_ladder import ladder_second, reading_of, refuse_unknown
from cli.arguments.options import axes, composed, format_option
from cli.output import render
from cli.output.coordinates import heading, print_csv_at
from cli.output.standings import print_standings_csv, print_standings, standings_json, why_unfinished
from cli.output.times import times_of
from ledger.store.opening import open_ledger
from ledger.validation.identities import identities
from ledger.validation.published_lists import published_lists
from projections.contract import exact
from projections.lists.contract import Standing
from projections.queries.explanation import history
from projections.queries.publication import as_published as as_published_
from projections.queries.standings import (
    Coordinates,
    Standings,
    UnknownLadder,
    books,
    date_zone,
    versions_of,
)


@click.command(name="standings")
@click.argument("ladder", type=composed)
@click.option("--as-published", is_flag=True, help="The last published list, or the one for --as-of if that is given.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Only the first N rows.")
@click.option("--player", "players", metavar="ID", multiple=True, type=composed, help="Only this player; repeatable.")
@axes
@format_option
@click.pass_obj
def standings_(
    db: str, ladder: str, as_published: bool, limit: int | None, players: tuple[str, ...], as_of: str | None,
    known_at: str | None, rules: str | None, form: str,
) -> None:  # fmt: skip
    """Who stands where on LADDER, such as elo-chess/all.

    The digest covers all rows, however many are shown.
    """
    if as_published:
        if rules is not None:
            raise click.UsageError("a published list has its own version: --as-published takes no --rules")
        _print_published(db, ladder, as_of, known_at, form, limit, players)
        return
    with reading_of(open_ledger(db), ladder, as_of, known_at, rules) as reading:
        facts = reading.ladders.facts
        for player in players:
            refuse_unknown(facts, player)
        found = reading.ladders.standings(ladder)
        unfinished = why_unfinished(reading.ladders, ladder)
    rows = _shown(found, limit, {facts.current(player) for player in players})
    if form == "json":
        render.print_json(render.with_decimals(standings_json(found, reading.coordinates, unfinished, rows)))
    elif form == "csv":
        print_standings_csv(found._replace(rows=rows), reading.coordinates)
    else:
        print_standings(found._replace(rows=rows), reading.coordinates, reading.times, unfinished)


def _shown(found: Standings, limit: int | None, players: Collection[str]) -> list[Standing]:
    """The first `limit` rows, only of these players if there are any."""
    return [row for row in found.rows if not players or row.player in players][:limit]


def _print_published(
    db: str, ladder: str, as_of: str | None, known_at: str | None, form: str, limit: int | None,
    players: tuple[str, ...],
) -> None:  # fmt: skip
    """Print what was published last, from its events."""
    with open_ledger(db).reading() as connection:
        try:
            times, zone = times_of(connection), date_zone(connection, ladder)
        except UnknownLadder as problem:
            raise click.UsageError(str(problem)) from None
        instant, position = played_instant(as_of, zone), known_position(connection, known_at, zone)
        lists = published_lists(connection, position, ladder)
        lists = [one for one in lists if as_of is None or one.as_of == instant]
        if not lists:
            _refuse_unknown(connection, ladder, position)
            played = "" if instant is None else f" as of {times.second(instant)}"
            raise click.ClickException(f"no list of {ladder}{played} has been published; see: ratings publish --help")
        one = lists[-1]
        found = as_published_(connection, one)
        ids = identities(connection)
        rows = _shown(found, limit, {name for player in players for name in ids.ids(player)})
    at = Coordinates(one.as_of, one.known_at, None)
    if form == "json":
        told = standings_json(found, at, None, rows)
        told_rows = told.pop("rows")
        source = {"position": one.position, "event_id": one.event_id, "recorded_at": one.recorded_at, "by": one.by}
        render.print_json(render.with_decimals({**told, "published": source, "rows": told_rows}))
    elif form == "csv":
        print_standings_csv(found._replace(rows=rows), at)
    else:
        published = f"Published at position {one.position:,} by {one.by}, {times.stated(one.recorded_at)}."
        print_standings(found._replace(rows=rows), at, times, render.plain(published))


def _refuse_unknown(connection: Connection, ladder: str, position: int) -> None:
    """Raises `click.UsageError` if there is no such ladder."""
    try:
        versions_of(decoded(connection, position), ladder, None)
    except UnknownLadder as problem:
        raise click.UsageError(str(problem)) from None


@click.command(name="history")
@click.argument("player", type=composed)
@click.argument("ladder", type=composed)
@axes
@format_option
@click.pass_obj
def history_(
    db: str, player: str, ladder: str, as_of: str | None, known_at: str | None, rules: str | None, form: str
) -> None:
    """Every change of PLAYER's points on LADDER. Game by game and adjustment by adjustment."""
    ledger = open_ledger(db)
    player, ladder = ladder_second(ledger, player, ladder)
    with reading_of(ledger, ladder, as_of, known_at, rules) as reading:
        refuse_unknown(reading.ladders.facts, player)
        player = reading.ladders.facts.current(player)
        rows = history(reading.connection, reading.ladders, ladder, player)
        ranking = reading.ladders.versions(ladder)[0].rule.ranking
    if form == "json":
        render.print_json(
            render.with_decimals({"player": player, "ladder": ladder, **reading.coordinates.stated(), "rows": rows})
        )
        return
    if form == "csv":
        header = ("position", "event_id", "game_id", "occurred_at", "place", "before", "change", "after", "ruleset")
        exact_points = {"before", "change", "after"}
        cells = [[render.spreadsheet(row[n]) if n in exact_points else row[n] for n in header] for row in rows]
        cells = [[*line, _published(row)] for line, row in zip(cells, rows, strict=True)]
        print_csv_at((*header, "published"), cells, reading.coordinates)
        return
    if not rows:
        if ranking == "annual":
            render.note(f"{ladder} sums places of months; see: ratings explain {render.plain(player)} {ladder}")
        else:
            render.note(f"{render.plain(player)} has no game or adjustment on {ladder}.")
        return
    subject = f"{render.plain(player)} on {ladder}: {render.count(len(rows), 'change')}"
    heading(subject, "", reading.coordinates, reading.times)
    if sys.stdout.isatty() and len(rows) > 1:
        render.echo(render.sparkline([Fraction(rows[0]["before"]), *(Fraction(row["after"]) for row in rows)]))
    render.echo()
    points = zip(
        render.column([row["before"] for row in rows]),
        render.column([row["change"] for row in rows], signed=True),
        render.column([row["after"] for row in rows]),
        strict=True,
    )
    columns = [reading.times.column("played"), "game", "place", "before", "change", "after"]
    table: list[list[render.Cell]] = [
        [
            reading.times.minute(row["occurred_at"]),
            row["game_id"] or f"adjusted: {row['reason']}",
            row["place"],
            *numbers,
        ]
        for row, numbers in zip(rows, points, strict=True)
    ]
    if marked := any("published" in row for row in rows):
        columns.append("published")
        table = [[*cells, _published(row)] for cells, row in zip(table, rows, strict=True)]
    render.print_table(columns, table, right=("place", "before", "change", "after"))
    if marked:
        render.echo("\npublished: what lists showed then, with their positions in the log")
    if ranking != "points":
        render.echo(f"\nWhat the list makes of it: ratings explain {render.plain(player)} {ladder}")


def _published(row: dict[str, Any]) -> str:
    """What published lists showed instead, each with its position in the log, such as `869.75 (268, 270)`."""
    shown: dict[str, list[str]] = {}
    for one in row.get("published", ()):
        points = "not on it" if one["points"] is None else render.human(one["points"])
        shown.setdefault(points, []).append(str(one["position"]))
    return ", ".join(f"{points} ({', '.join(positions)})" for points, positions in shown.items())


ACCOUNTS = {
    "players": "what the players have together",
    "start": "less what they began with",
    "minted": "less what rules created",
    "burned": "plus what vanished under rules, as in rounding",
    "adjusted": "less what people added",
}


@click.command(name="books")
@click.argument("ladder", type=composed)
@axes
@format_option
@click.pass_obj
def books_(db: str, ladder: str, as_of: str | None, known_at: str | None, rules: str | None, form: str) -> int:
    """The trial balance of LADDER: its accounts, which sum to zero. What players have, against where it came from."""
    with reading_of(open_ledger(db), ladder, as_of, known_at, rules) as reading:
        found = reading.ladders.standings(ladder)
    accounts = [(name, exact(amount, found.scale)) for name, amount in books(found)]
    total = sum(Fraction(amount) for _, amount in accounts)
    if form == "json":
        told = {
            "ladder": ladder, "ruleset": found.ruleset, **reading.coordinates.stated(), "games": found.games,
            "players": len(found.rows),
            "accounts": [{"account": name, "amount": amount} for name, amount in accounts], "sum": str(total),
        }  # fmt: skip
        render.print_json(render.with_decimals(told))
    elif form == "csv":
        cells = [(name, render.spreadsheet(amount)) for name, amount in accounts]
        print_csv_at(("account", "amount"), cells, reading.coordinates)
    else:
        players = render.count(len(found.rows), "player")
        subject = f"{ladder}: {render.count(found.games, 'game')} of {players}"
        heading(subject, f" under {found.ruleset}", reading.coordinates, reading.times)
        render.echo()
        amounts = render.column([*(amount for _, amount in accounts), str(total)], 6)
        rows = [(name, amount, ACCOUNTS[name]) for (name, _), amount in zip(accounts, amounts, strict=False)]
        render.print_table(("account", "amount", ""), [*rows, ("sum", amounts[-1], "")], right=("amount",))
    return int(total != 0)

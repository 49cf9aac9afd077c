"""`ladders`, `standings`, `history`, `books`: what the facts mean."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, NamedTuple

import click
from sqlalchemy import Connection

from cli import render
from cli.options import Coordinates, axes, composed, format_option, known_position, played_instant
from ledger import clock
from ledger.canonical import format_instant
from ledger.store import Ledger, open_ledger
from projections.contract import exact
from projections.decoding import decode
from projections.explaining import UnknownGame, current_id, history
from projections.facts import Facts, RuleFailure
from projections.ladders import Stream, parse_name
from projections.lists.contract import Standing
from projections.periods import period_of, running
from projections.standings import Ladders, Standings, UnknownLadder, books, time_zone


class Reading(NamedTuple):
    """An opened ledger with its ladders at the asked coordinates."""

    connection: Connection
    ladders: Ladders
    coordinates: Coordinates

    def stated(self) -> dict[str, Any]:
        """The coordinates as every JSON result states them."""
        as_of = self.coordinates.as_of
        return {"as_of": None if as_of is None else format_instant(as_of), "known_at": self.coordinates.known_at}


@contextmanager
def failures_told(facts: Facts) -> Iterator[None]:
    """A ladder that cannot be replayed becomes a refusal."""
    try:
        yield
    except RuleFailure as problem:
        raise click.ClickException(problem.told(facts)) from None


@contextmanager
def failures_noted(facts: Facts) -> Iterator[None]:
    """A ladder that cannot be replayed is noted, and the others go on."""
    try:
        yield
    except RuleFailure as problem:
        render.note(f"ratings: {problem.told(facts)}")


def note_unusable(facts: Facts) -> None:
    """Tell which rulesets do not run here."""
    for unusable in facts.unusable.values():
        render.note(f"ratings: {unusable.reason}")


@contextmanager
def reading_of(
    ledger: Ledger, ladder: str, as_of: str | None, known_at: str | None, rules: str | None
) -> Iterator[Reading]:
    """The ladders at coordinates in one ladder's zone; unknown names are usage errors, a failing rule a refusal."""
    with ledger.reading() as connection:
        try:
            zone = time_zone(connection, ladder)
            facts = decode(connection, known_position(connection, known_at, zone))
            coordinates = Coordinates(played_instant(as_of, zone), facts.position)
            with failures_told(facts):
                yield Reading(connection, Ladders(facts, coordinates.as_of, rules), coordinates)
        except UnknownLadder as problem:
            raise click.UsageError(str(problem)) from None
        except UnknownGame as problem:
            raise click.ClickException(str(problem)) from None


@click.command()
@format_option
@click.option("--as-of", metavar="TIME", help="Only what was played up to then; a date means its end.")
@click.option("--known-at", metavar="TIME|POSITION", help="Only what was recorded up to then.")
@click.pass_obj
def ladders(db: str, form: str, as_of: str | None, known_at: str | None) -> None:
    """The ladders that have games or adjustments."""
    ledger = open_ledger(db)
    with ledger.reading() as connection:
        facts = decode(connection, known_position(connection, known_at))
    found: dict[str, tuple[Stream, int]] = {}
    for ruleset_id, versions in sorted(facts.rulesets.items()):
        ladders_then = Ladders(facts, played_instant(as_of, versions[0].ruleset.time_zone))
        with failures_noted(facts):
            for name, stream in sorted(ladders_then.every(ruleset_id).items()):
                annual = stream.rule.ranking == "annual"
                found[name] = stream, len(ladders_then.of_stream(stream).rows if annual else stream.names)
    note_unusable(facts)
    rows = [
        (name, stream.versions[stream.version[-1]].ruleset.name if stream.version else "", players,
         len(stream.row), format_instant(facts.occurred_at[stream.row[-1]]) if stream.row else None)
        for name, (stream, players) in found.items()
    ]  # fmt: skip
    header = ("ladder", "ruleset", "players", "games", "last_game")
    if form == "json":
        render.print_json({"known_at": facts.position, "rows": [dict(zip(header, row, strict=True)) for row in rows]})
    elif form == "csv":
        render.print_csv(header, rows)
    elif rows:
        readable = [(row[0], *row[2:4], render.moment(row[4]) if row[4] else "") for row in rows]
        render.print_table(("ladder", "players", "games", "last game"), readable, right=("players", "games"))
    else:
        render.note("No ladder has a game yet. Results go in with: ratings import FILE")


@click.command(name="standings")
@click.argument("ladder", type=composed)
@axes
@format_option
@click.pass_obj
def standings_(db: str, ladder: str, as_of: str | None, known_at: str | None, rules: str | None, form: str) -> None:
    """Who stands where on LADDER, such as club-catan-elo/all."""
    with reading_of(open_ledger(db), ladder, as_of, known_at, rules) as reading:
        found = reading.ladders.standings(ladder)
        unfinished = _unfinished(reading.ladders, ladder)
    if form == "json":
        render.print_json(
            {"ladder": ladder, "ruleset": found.ruleset, **reading.stated(), "games": found.games,
             "digest": found.digest, **({"open": True} if unfinished else {}), "rows": found.json_rows()}
        )  # fmt: skip
    elif form == "csv":
        _print_csv(found)
    else:
        _print_standings(ladder, found, reading.stated(), unfinished)


def _unfinished(ladders: Ladders, ladder: str) -> str | None:
    """That the period of a list still runs or has not begun, or None."""
    period = period_of(ladders.versions(ladder)[0].ruleset, parse_name(ladder).values)
    if period is None:
        return None
    now = clock.now()
    if now < period.start:
        return "The period of this list has not begun."
    if now <= period.end:
        return "The period of this list still runs."
    return "The period of this list still ran then." if running(period, now, ladders.as_of) else None


def _print_csv(found: Standings) -> None:
    header = ["rank", "player", "points", "games", "qualified"]
    rows = [
        [row.rank, row.player, render.spreadsheet(str(row.value(found.scale))), row.games, row.qualified]
        for row in found.rows
    ]  # fmt: skip
    if any("/" in str(row[2]) for row in rows):
        # a spreadsheet takes 7/4 for a date
        header.append("points_exact")
        rows = [[*cells[:2], render.human(str(cells[2]), 6), *cells[3:], str(row.value(found.scale))]
                for cells, row in zip(rows, found.rows, strict=True)]  # fmt: skip
    if any(row.gold is not None for row in found.rows):
        header.append("gold")
        rows = [[*cells, row.gold] for cells, row in zip(rows, found.rows, strict=True)]
    if any(row.places is not None for row in found.rows):
        header.append("places")
        rows = [[*cells, _places(row)] for cells, row in zip(rows, found.rows, strict=True)]
    render.print_csv(header, rows)


def _places(row: Standing) -> str:
    return " ".join(map(str, row.places or ()))


def _print_standings(ladder: str, found: Standings, stated: dict[str, Any], unfinished: str | None) -> None:
    games = render.count(found.games, "game")
    render.title(f"{ladder}: {games}", f" under {found.ruleset}, known at position {stated['known_at']:,}")
    if stated["as_of"]:
        click.echo(f"played up to {stated['as_of'][:19].replace('T', ' ')} UTC")
    if unfinished:
        click.echo(unfinished)
    click.echo()
    if not found.rows:
        render.note("Nobody is on this ladder.")
        return
    print_rows(found)
    if any(row.rank is None for row in found.rows):
        render.hanging(f"\nWhy somebody has no rank (-): ratings explain PLAYER {ladder}", 2)


def print_rows(found: Standings) -> None:
    """The rows of standings as a table."""
    points = render.column([str(row.value(found.scale)) for row in found.rows])
    header = ["rank", "player", "points", "games"]
    rows: list[list[render.Cell]] = [
        [r.rank or "-", r.player, p, r.games] for r, p in zip(found.rows, points, strict=True)
    ]
    if any(row.gold is not None for row in found.rows):
        header.append("gold")
        rows = [[*cells, row.gold or ""] for cells, row in zip(rows, found.rows, strict=True)]
    if any(row.places is not None for row in found.rows):
        header.append("places")
        rows = [[*cells, _places(row)] for cells, row in zip(rows, found.rows, strict=True)]
    render.print_table(header, rows, right=("rank", "points", "games", "gold"))


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
    with reading_of(open_ledger(db), ladder, as_of, known_at, rules) as reading:
        player = current_id(reading.ladders.facts, player)
        rows = history(reading.connection, reading.ladders, ladder, player)
        ranking = reading.ladders.versions(ladder)[0].rule.ranking
    if form == "json":
        render.print_json({"player": player, "ladder": ladder, **reading.stated(), "rows": rows})
        return
    if form == "csv":
        header = ("position", "event_id", "game_id", "occurred_at", "place", "before", "change", "after", "ruleset")
        exact_points = {"before", "change", "after"}
        render.print_csv(
            header, [[render.spreadsheet(row[n]) if n in exact_points else row[n] for n in header] for row in rows]
        )
        return
    if not rows:
        if ranking == "annual":
            render.note(f"{ladder} sums places of months; see: ratings explain {render.plain(player)} {ladder}")
        else:
            render.note(f"{render.plain(player)} has no game or adjustment on {ladder}.")
        return
    click.echo(f"{render.plain(player)} on {ladder}: {len(rows)} {'change' if len(rows) == 1 else 'changes'}")
    if sys.stdout.isatty() and len(rows) > 1:
        click.echo(render.sparkline([Fraction(rows[0]["before"]), *(Fraction(row["after"]) for row in rows)]))
    click.echo()
    points = zip(
        render.column([row["before"] for row in rows]),
        render.column([row["change"] for row in rows], signed=True),
        render.column([row["after"] for row in rows]),
        strict=True,
    )
    render.print_table(
        ("played (UTC)", "game", "place", "before", "change", "after"),
        [
            (render.moment(row["occurred_at"]), row["game_id"] or f"adjusted: {row['reason']}", row["place"], *numbers)
            for row, numbers in zip(rows, points, strict=True)
        ],
        right=("place", "before", "change", "after"),
    )  # fmt: skip
    if ranking != "points":
        click.echo(f"\nWhat the list makes of it: ratings explain {render.plain(player)} {ladder}")


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
    """The trial balance of LADDER. What the players have against where it came from; it sums to zero."""
    with reading_of(open_ledger(db), ladder, as_of, known_at, rules) as reading:
        found = reading.ladders.standings(ladder)
    accounts = [(name, exact(amount, found.scale)) for name, amount in books(found)]
    total = sum(Fraction(amount) for _, amount in accounts)
    if form == "json":
        render.print_json(
            {"ladder": ladder, "ruleset": found.ruleset, **reading.stated(), "games": found.games,
             "players": len(found.rows),
             "accounts": [{"account": name, "amount": amount} for name, amount in accounts], "sum": str(total)}
        )  # fmt: skip
    elif form == "csv":
        render.print_csv(("account", "amount"), [(name, render.spreadsheet(amount)) for name, amount in accounts])
    else:
        players = render.count(len(found.rows), "player")
        click.echo(f"{ladder}: {render.count(found.games, 'game')} of {players} under {found.ruleset}\n")
        amounts = render.column([*(amount for _, amount in accounts), str(total)], 6)
        rows = [(name, amount, ACCOUNTS[name]) for (name, _), amount in zip(accounts, amounts, strict=False)]
        render.print_table(("account", "amount", ""), [*rows, ("sum", amounts[-1], "")], right=("amount",))
    return int(total != 0)

"""`ladders`, `standings`, `history`, `explain`, `books`: what the facts mean."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, NamedTuple

import click
from sqlalchemy import Connection

from cli import render
from cli.options import Coordinates, axes, composed, format_option, known_position, played_instant
from ledger.canonical import format_instant
from ledger.store import Ledger, open_ledger
from projections import standings as results
from projections.contract import exact
from projections.facts import Facts, RuleFailure, decode
from projections.ladders import Stream, streams
from projections.replay import replay


class Reading(NamedTuple):
    """An opened ledger with its facts at the asked coordinates."""

    connection: Connection
    facts: Facts
    coordinates: Coordinates

    def stated(self) -> dict[str, Any]:
        """The coordinates as every JSON result states them."""
        as_of = self.coordinates.as_of
        return {"as_of": None if as_of is None else format_instant(as_of), "known_at": self.coordinates.known_at}


@contextmanager
def _reading(ledger: Ledger, ladder: str, as_of: str | None, known_at: str | None) -> Iterator[Reading]:
    """Facts for one ladder; unknown names are usage errors, a failing rule is a refusal with its place."""
    with ledger.reading() as connection:
        try:
            zone = results.time_zone(connection, ladder)
            facts = decode(connection, known_position(connection, known_at, zone))
            yield Reading(connection, facts, Coordinates(played_instant(as_of, zone), facts.position))
        except results.UnknownLadder as problem:
            raise click.UsageError(str(problem)) from None
        except results.UnknownGame as problem:
            raise click.ClickException(str(problem)) from None
        except RuleFailure as problem:
            raise click.ClickException(
                f"{problem.ladder}: the rule failed at position {problem.place(facts)}: {problem}"
            ) from None


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
    found: dict[str, Stream] = {}
    for _, versions in sorted(facts.rulesets.items()):
        instant = played_instant(as_of, versions[0].ruleset.time_zone)
        try:
            found |= sorted(streams(facts, versions, as_of=instant).items())
        except RuleFailure as problem:
            render.note(f"ratings: {problem.ladder}: the rule failed at position {problem.place(facts)}: {problem}")
    for unusable in facts.unusable.values():
        render.note(f"ratings: {unusable.reason}")
    rows = [
        (name, stream.versions[stream.version[-1]].ruleset.name if stream.version else "", len(stream.names),
         len(stream.row), format_instant(facts.occurred_at[stream.row[-1]]) if stream.row else None)
        for name, stream in found.items()
    ]  # fmt: skip
    header = ("ladder", "ruleset", "players", "games", "last_game")
    if form == "json":
        render.print_json({"known_at": facts.position, "rows": [dict(zip(header, row, strict=True)) for row in rows]})
    elif form == "csv":
        render.print_csv(header, rows)
    elif rows:
        readable = [(*row[:4], render.moment(row[4]) if row[4] else "") for row in rows]
        render.print_table((*header[:4], "last game"), readable, right=("players", "games"))
    else:
        render.note("No ladder has a game yet. Results go in with: ratings import FILE")


@click.command(name="standings")
@click.argument("ladder", type=composed)
@axes
@format_option
@click.pass_obj
def standings_(db: str, ladder: str, as_of: str | None, known_at: str | None, rules: str | None, form: str) -> None:
    """Who stands where on LADDER, such as club-catan-elo/all."""
    with _reading(open_ledger(db), ladder, as_of, known_at) as reading:
        stream = results.stream_of(reading.facts, ladder, reading.coordinates.as_of, rules)
        outcome, _ = replay(stream)
        found = results.standings(stream, outcome)
    if form == "json":
        render.print_json(
            {"ladder": ladder, "ruleset": found.ruleset, **reading.stated(), "games": found.games,
             "digest": found.digest, "rows": found.json_rows()}
        )  # fmt: skip
    elif form == "csv":
        rows = [
            (r.rank, r.player, render.spreadsheet(exact(r.points, found.scale)), r.games, r.qualified)
            for r in found.rows
        ]
        render.print_csv(results.Standing._fields, rows)
    else:
        _print_standings(ladder, found, reading.stated())


def _print_standings(ladder: str, found: results.Standings, stated: dict[str, Any]) -> None:
    click.echo(
        f"{ladder}: {render.count(found.games, 'game')} under {found.ruleset}, known at position {stated['known_at']:,}"
    )
    if stated["as_of"]:
        click.echo(f"played up to {stated['as_of'][:19].replace('T', ' ')} UTC")
    click.echo()
    if not found.rows:
        render.note("Nobody is on this ladder.")
        return
    points = render.column([exact(r.points, found.scale) for r in found.rows])
    rows = [(r.rank or "-", r.player, p, r.games) for r, p in zip(found.rows, points, strict=True)]
    render.print_table(("rank", "player", "points", "games"), rows, right=("rank", "points", "games"))


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
    with _reading(open_ledger(db), ladder, as_of, known_at) as reading:
        stream = results.stream_of(reading.facts, ladder, reading.coordinates.as_of, rules)
        player = results.current_id(reading.facts, player)
        rows = results.history(reading.connection, reading.facts, stream, player)
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


@click.command(name="explain")
@click.argument("game", type=composed)
@click.argument("ladder", type=composed)
@axes
@format_option
@click.pass_obj
def explain_(
    db: str, game: str, ladder: str, as_of: str | None, known_at: str | None, rules: str | None, form: str
) -> None:
    """Why GAME changed the points on LADDER as it did. Term by term; or why it did not count."""
    with _reading(open_ledger(db), ladder, as_of, known_at) as reading:
        row = results.row_of_game(reading.connection, reading.facts, game)
        found = results.explain(reading.facts, ladder, game, row, reading.coordinates.as_of, rules)
    found = {**found, **reading.stated()}
    if form == "json":
        render.print_json(found)
    elif form == "csv":
        header = ("player", "place", "before", "change", "after", "term", "amount", "detail")
        render.print_csv(header, list(_explained_rows(found)))
    else:
        _print_explained(found)


def _explained_rows(found: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    for player in found["players"]:
        points = [render.spreadsheet(player[name]) for name in ("before", "change", "after")]
        for term in player["terms"] or [{"term": "", "amount": "0", "detail": player.get("why_not", "")}]:
            yield (
                player["player"],
                player["place"],
                *points,
                term["term"],
                render.spreadsheet(term["amount"]),
                term["detail"],
            )


def _print_explained(found: dict[str, Any]) -> None:
    click.echo(
        f"{render.plain(found['game_id'])} on {found['ladder']}, played {render.moment(found['occurred_at'])} UTC"
        + (f", under {found['ruleset']}" if found["ruleset"] else "")
    )
    if not found["counted"]:
        click.echo(f"Not counted: {render.plain(found['why_not'])}.")
        return
    for player in found["players"]:
        name = render.plain(player["player"])
        click.echo(
            f"\n{player['place']}. {name}: {render.human(player['before'])} "
            f"{render.human(player['change'], 6, signed=True)} = {render.human(player['after'])}"
        )
        if reason := player.get("why_not"):
            click.echo(f"   does not count: {reason}")
        amounts = render.column([term["amount"] for term in player["terms"]], 6, signed=True)
        for term, amount in zip(player["terms"], amounts, strict=True):
            click.echo(f"   {amount:>11}  {render.plain(term['term'])}: {term['detail']}")
            if term.get("note"):
                click.echo(f"   {'':11}  {term['note']}")
    created = {account["account"]: Fraction(account["amount"]) for account in found["accounts"]}
    if any(created.values()):
        told = [f"{name} {render.human(str(abs(amount)), 6)}" for name, amount in created.items() if amount]
        click.echo(f"\nNot zero-sum: {', '.join(told)}.")


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
    with _reading(open_ledger(db), ladder, as_of, known_at) as reading:
        stream = results.stream_of(reading.facts, ladder, reading.coordinates.as_of, rules)
        found = results.standings(stream, replay(stream)[0])
    accounts = [(name, exact(amount, found.scale)) for name, amount in results.books(found)]
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

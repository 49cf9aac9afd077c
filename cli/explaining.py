"""`explain`: why a game gave what it gave, and how somebody's place on a list comes about."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import click

from cli import render
from cli.options import axes, composed, format_option
from cli.reading import reading_of
from ledger.store import open_ledger
from projections.explaining import UnknownGame, explain, explain_player, row_of_game


@click.command(name="explain")
@click.argument("game", metavar="GAME|PLAYER", type=composed)
@click.argument("ladder", type=composed)
@axes
@format_option
@click.pass_obj
def explain_(
    db: str, game: str, ladder: str, as_of: str | None, known_at: str | None, rules: str | None, form: str
) -> None:
    """Why GAME changed the points on LADDER as it did. Term by term; or why it did not count.

    With a player instead of a game: how his place on LADDER comes about, or why he has none.
    """
    with reading_of(open_ledger(db), ladder, as_of, known_at, rules) as reading:
        try:
            row = row_of_game(reading.connection, reading.ladders.facts, game)
        except UnknownGame:
            told = explain_player(reading.connection, reading.ladders, ladder, game)
            if told is None:
                raise
            _tell_player({**told, **reading.stated()}, form)
            return
        found = explain(reading.ladders, ladder, game, row)
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
    if found.get("remark"):
        click.echo(render.plain(found["remark"]))
    for player in found["players"]:
        name = render.plain(player["player"])
        place = f"{player['place']}. " if player["place"] else ""
        click.echo(
            f"\n{place}{name}: {render.human(player['before'])} "
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


def _tell_player(found: dict[str, Any], form: str) -> None:
    if form == "json":
        render.print_json(found)
        return
    header = ("term", "amount", "detail")
    lines = [
        *((game["game_id"], game["change"], f"played {render.moment(game['occurred_at'])}") for game in found["games"]),
        *((term["term"], term["amount"], term["detail"]) for term in found["terms"]),
    ]
    if form == "csv":
        render.print_csv(header, [(term, render.spreadsheet(amount), detail) for term, amount, detail in lines])
        return
    rank = f"rank {found['rank']}" if found["rank"] else "no rank"
    points = f", {render.human(found['points'])} points" if found["points"] is not None else ""
    click.echo(f"{render.plain(found['player'])} on {found['ladder']}: {rank}{points}, under {found['ruleset']}\n")
    render.print_table(header, [(term, _both(amount), detail) for term, amount, detail in lines], right=("amount",))


def _both(amount: str) -> str:
    """An exact amount, with its decimal value where that is another text."""
    return amount if "/" not in amount else f"{amount} = {render.human(amount, 4)}"

"""`explain`: why a game changed points as it did, and how somebody's place on a list comes about."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import click

from cli.arguments.coordinates import Asked, CoordinatesType, read_asked
from cli.arguments.one_ladder import ladder_second, reading_of
from cli.arguments.options import axes, composed, format_option
from cli.commands.explain_change import explain_change
from cli.output import render
from cli.output.coordinates import heading, print_csv_at
from ledger.errors import Unknown
from ledger.rejections import did_you_mean, shown
from ledger.store.opening import open_ledger
from projections.facts.columns import Facts
from projections.facts.players import known_players
from projections.queries.explanation import UnknownGame, explain_game, explain_player, row_of_game
from projections.queries.standings import Coordinates
from projections.queries.times import Times
from projections.queries.view import Question


@click.command(name="explain")
@click.argument("game", metavar="GAME|PLAYER", type=composed)
@click.argument("ladder", type=composed)
@click.option("--player", "is_player", is_flag=True, help="Explain a player whose id is also a game's.")
@click.option("--change", is_flag=True, help="With PLAYER LADDER: what changed their points from --from to --to.")
@click.option("--from", "before", metavar="COORDS", type=CoordinatesType(), help="With --change: since when.")
@click.option(
    "--to", "after", metavar="COORDS", type=CoordinatesType(), help="With --change: up to when.  [default: now]"
)
@axes
@format_option
@click.pass_obj
def explain_(
    db: str,
    game: str,
    ladder: str,
    is_player: bool,
    change: bool,
    before: Asked | None,
    after: Asked | None,
    as_of: str | None,
    known_at: str | None,
    rules: str | None,
    form: str,
) -> None:
    """Why GAME changed the points on LADDER as it did. Term by term; or why it did not count.

    With a player instead of a game: how their place on LADDER comes about, or why they have none.

    \b
        ratings explain --change PLAYER LADDER --from published --to now

    What changed a player's points: each late, corrected, voided or reinstated game, rename, adjustment and rule, with
    the ripple through their opponents; the parts add up exactly. Coordinates are written as for ratings diff.
    """
    if change or before is not None or after is not None:
        if not change or before is None or is_player or any((as_of, known_at, rules)):
            raise click.UsageError("explain --change PLAYER LADDER needs --from and takes --to, and no other axes")
        ledger = open_ledger(db)
        game, ladder = ladder_second(ledger, game, ladder)
        with ledger.reading() as connection:
            explain_change(connection, ladder, game, before, after or read_asked("now"), form)
        return
    ledger = open_ledger(db)
    game, ladder = ladder_second(ledger, game, ladder)
    with reading_of(ledger, ladder, as_of, known_at, rules) as reading:
        try:
            if is_player:
                raise UnknownGame
            row = row_of_game(reading.connection, reading.ladders.facts, game)
        except UnknownGame:
            _refuse_unknown(reading.ladders.facts, game)
            told = explain_player(reading.connection, reading.ladders, ladder, game)
            if form == "table" and not told["games"] and not told["terms"]:
                render.note(f"{render.plain(game)} has no game or adjustment that counts on {ladder}.")
            else:
                _tell_player(told, reading, form)
            return
        found = explain_game(reading.ladders, ladder, game, row)
        running_points = reading.ladders.versions(ladder)[0].rule.ranking == "points"
    if form == "json":
        render.print_json(render.with_decimals({**found, **reading.coordinates.stated()}))
    elif form == "csv":
        header = ("player", "place", "before", "change", "after", "term", "amount", "detail")
        print_csv_at(header, list(_explained_rows(found)), reading.coordinates)
    else:
        _print_explained(found, reading.coordinates, reading.times, running_points)


def _refuse_unknown(facts: Facts, name: str) -> None:
    """Raises `Unknown` (player-unknown) if there is neither such a game nor such a player."""
    if not facts.knows(name):
        hint = did_you_mean(name, known_players(facts))
        raise Unknown("player-unknown", f"no game and no player is called {shown(name)}{hint}")


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


def _print_explained(found: dict[str, Any], at: Coordinates, times: Times, running_points: bool) -> None:
    played = f", played {times.stated(found['occurred_at'])}"
    under = f", under {found['ruleset']}" if found["ruleset"] else ""
    heading(f"{render.plain(found['game_id'])} on {found['ladder']}", played + under, at, times)
    if not found["counted"]:
        render.hanging(f"Not counted: {render.plain(found['why_not'])}.", 2)
        return
    if found.get("remark"):
        render.hanging(render.plain(found["remark"]), 2)
    for player in found["players"]:
        name = render.plain(player["player"])
        place = f"{player['place']}. " if player["place"] else ""
        render.echo(
            f"\n{place}{name}: {render.human(player['before'])} "
            f"{render.human(player['change'], 6, signed=True)} = {render.human(player['after'])}"
        )
        if reason := player.get("why_not"):
            render.echo(f"   does not count: {render.plain(reason)}")
        amounts = render.column([term["amount"] for term in player["terms"]], 6, signed=True)
        for term, amount in zip(player["terms"], amounts, strict=True):
            render.hanging(f"   {amount:>11}  {render.plain(term['term'])}: {term['detail']}", 16)
            if term.get("note"):
                render.echo(f"   {'':11}  {render.plain(term['note'])}")
    created = {account["account"]: Fraction(account["amount"]) for account in found["accounts"]}
    # on summed lists every game creates points
    if running_points and any(created.values()):
        told = [f"{name} {render.human(str(abs(amount)), 6)}" for name, amount in created.items() if amount]
        render.echo(f"\nNot zero-sum: {', '.join(told)}.")


def _tell_player(found: dict[str, Any], reading: Question, form: str) -> None:
    at = reading.coordinates
    if form == "json":
        render.print_json(render.with_decimals({**found, **at.stated()}))
        return
    header = ("term", "amount", "detail")
    lines = [
        *([("start", found["start"], "")] if found["start"] not in (None, "0") else []),
        *((game["game_id"] or "adjusted", game["change"], _played(game)) for game in found["games"]),
        *((term["term"], term["amount"], term["detail"]) for term in found["terms"]),
    ]
    if form == "csv":
        cells = [(term, None if amount is None else render.spreadsheet(amount), told) for term, amount, told in lines]
        print_csv_at(header, cells, at)
        return
    rank = f"rank {found['rank']}" if found["rank"] else "no rank"
    points = f", {render.human(found['points'])} points" if found["points"] is not None else ""
    gold = f", {found['gold']} gold" if found.get("gold") else ""
    subject = f"{render.plain(found['player'])} on {found['ladder']}: {rank}{points}{gold}"
    heading(subject, f", under {found['ruleset']}, times in {found['time_zone']}", at, reading.times)
    render.echo()
    render.print_table(header, [(term, _both(amount), told) for term, amount, told in lines], right=("amount",))


def _played(game: dict[str, Any]) -> str:
    """When a game was played, and what there is to say about it."""
    told = game.get("reason") or ""
    if game["why_not"]:
        told = game["why_not"] if game["change"] is not None else f"not counted: {game['why_not']}"
    when = f"{game['local'][:10]} {game['local'][11:16]}"
    return f"{when}, {told}" if told else when


def _both(amount: str | None) -> str:
    """An exact amount; a fraction that no decimal equals is followed by its approximate value."""
    if amount is None:
        return ""
    decimal = render.spreadsheet(amount)
    return decimal if "/" not in decimal else f"{amount} = {render.human(amount, 4)}"

"""Implement `league`: create a league, subscribe players, draw the schedule, and show the results."""

import shlex
from functools import partial
from typing import Any

import click

from ratings_ledger.cli.arguments.command import group
from ratings_ledger.cli.arguments.options import format_option, read_instant_or_now, zone_option
from ratings_ledger.cli.arguments.views import open_for_command, open_view
from ratings_ledger.cli.arguments.writing import WriteContext, write_command
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.leagues import (
    print_league,
    print_league_csv,
    print_leagues,
    print_leagues_csv,
    print_unmet,
    print_unmet_csv,
)
from ratings_ledger.cli.output.render import emit
from ratings_ledger.cli.output.standings import print_standings, print_standings_csv
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.intake.intake import IntakeResult, Precondition
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import Log, head
from ratings_ledger.ledger.validation.leagues import PLAYERS_PER_LEAGUE, require_league
from ratings_ledger.projections.admission.leagues import build_schedule_event, refuse_unscored_league, subscribe


@group()
def league() -> None:
    """Manage leagues of eight players, and see the open games."""


@league.command()
@click.argument("name", metavar="LEAGUE", type=to_nfc)
@click.option("--game", required=True, metavar="NAME", help="The game that is played, such as cartagena.")
@click.option(
    "--players-per-game", required=True, type=click.IntRange(2, 8), help="The number of players in each game."
)
@click.option("--version", metavar="TEXT", help="The version of the game.")
@click.option("--at", metavar="TIME", help="The start of the league.  [default: now]")
@zone_option
@write_command
def create(
    context: WriteContext,
    name: str,
    game: str,
    players_per_game: int,
    version: str | None,
    at: str | None,
    zone: str | None,
) -> int:
    """Create LEAGUE. Eight players can then subscribe."""
    data = {"league": name, "game": game, "players_per_game": players_per_game, "version": version}
    with context.ledger.reading() as connection:
        newest = head(connection)
        try:
            refuse_unscored_league(connection, game)
        except Refused as problem:
            return context.report(IntakeResult.refused(problem, newest))
    event = {"type": "league.created", "occurred_at": _format_at(context, at, zone), "data": data}
    return context.report(_append_events(context, [event]))


@league.command()
@click.argument("name", metavar="LEAGUE", type=to_nfc)
@click.argument("player", type=to_nfc)
@click.option("--seed", metavar="TEXT", help="Draw the schedule with this seed, if this is the last seat.")
@click.option("--at", metavar="TIME", help="The time at which PLAYER subscribed.  [default: now]")
@zone_option
@write_command
def join(context: WriteContext, name: str, player: str, seed: str | None, at: str | None, zone: str | None) -> int:
    """Subscribe PLAYER to LEAGUE. With the eighth player, the schedule of the games is drawn."""
    instant = _format_at(context, at, zone)
    try:
        subscription = subscribe(context.ledger, name, player, instant, seed, partial(_append_events, context))
    except Refused as problem:
        with context.ledger.reading() as connection:
            return context.report(IntakeResult.refused(problem, head(connection)))
    if context.output_format == "json" or not subscription.result.appended:
        return context.report(subscription.result)
    render.echo(
        f"{render.plain(player)} is in {name}: {subscription.players_before + 1} of {PLAYERS_PER_LEAGUE} players."
    )
    if subscription.is_last:
        render.echo(f"The schedule is drawn; see: ratings league show {shlex.quote(name)}")
    return 0


@league.command()
@click.argument("name", metavar="LEAGUE", type=to_nfc)
@click.option("--seed", metavar="TEXT", help="Draw the schedule with this seed.")
@write_command
def schedule(context: WriteContext, name: str, seed: str | None) -> int:
    """Draw the schedule of a LEAGUE whose players were imported without one."""
    with context.ledger.reading() as connection:
        state = require_league(Log(connection), name)
        if len(state.players) != PLAYERS_PER_LEAGUE:
            raise click.ClickException(
                f"the league {name} has {len(state.players)} of {PLAYERS_PER_LEAGUE} players, so no schedule can be "
                f"drawn; subscribe more with: ratings league join {shlex.quote(name)} PLAYER"
            )
        event = build_schedule_event(connection, state, _format_at(context, at=None, zone=None), seed)
    return context.report(_append_events(context, [event]))


def _format_at(context: WriteContext, at: str | None, zone: str | None) -> str:
    return format_instant(read_instant_or_now(context.ledger, at, zone))


def _append_events(
    context: WriteContext, events: list[dict[str, Any]], precondition: Precondition = lambda connection: None
) -> IntakeResult:
    """Append events of a league in one transaction; report only the first refusal."""
    result = context.finish(context.propose(events, precondition=precondition))
    result.rejected = result.rejected[:1]
    return result


@league.command(name="list")
@format_option
@click.pass_obj
def list_(db: str, output_format: str) -> None:
    """List the leagues, with their states and winners."""
    emit(open_view(open_for_command(db)).leagues(), output_format, print_leagues, print_leagues_csv)


@league.command()
@click.argument("name", metavar="LEAGUE", type=to_nfc)
@format_option
@click.pass_obj
def show(db: str, name: str, output_format: str) -> None:
    """Show the players of LEAGUE, its schedule with played and open games, and its current table."""
    emit(open_view(open_for_command(db)).league(name), output_format, print_league, print_league_csv)


@league.command()
@click.argument("name", metavar="LEAGUE", type=to_nfc)
@format_option
@click.pass_obj
def table(db: str, name: str, output_format: str) -> None:
    """Show the table of LEAGUE: the standings of its ladder."""
    view = open_view(open_for_command(db))
    details = view.league(name)
    if details.ladder is None:
        unscored = f"no usable ruleset scores leagues of {details.game}"
        remedy = "to list rulesets that you can publish: ratings rules list --shipped"
        raise click.ClickException("\n".join(details.failed) or f"{unscored}; {remedy}")
    emit(view.standings(details.ladder), output_format, print_standings, print_standings_csv)
    if details.winners and output_format == "table":
        render.echo(f"\nFinished: won by {render.plain(' and '.join(details.winners))}.")


@league.command(name="unmet")
@click.argument("ladder", metavar="LEAGUE|LADDER", type=to_nfc)
@click.argument("player", type=to_nfc)
@format_option
@click.pass_obj
def unmet_(db: str, ladder: str, player: str, output_format: str) -> None:
    """List the opponents whom PLAYER has not met in a league, or on LADDER, such as b5-league/2010-1.

    A season of Babylon 5 is listed with league ids (LID). In a league of eight, subscribers who have not
    played yet are listed, too.
    """
    emit(
        open_view(open_for_command(db)).unmet(ladder, player),
        output_format,
        print_unmet,
        print_unmet_csv,
    )

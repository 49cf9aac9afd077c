"""`league`: players subscribe, the last of them draws the schedule, and its games are then played."""

import secrets
from functools import partial
from typing import Any

import click
from sqlalchemy import Connection

from cli.arguments.command import group
from cli.arguments.moments import instant_or_now, zone_option
from cli.arguments.options import format_option
from cli.arguments.views import view_of
from cli.arguments.writing import How, writing
from cli.output import render
from cli.output.emit import emit
from ledger.events.canonical import format_instant
from ledger.events.fields import composed
from ledger.intake.importing import Imported
from ledger.rejections import Refused, Rejection
from ledger.store.log import Log, head
from ledger.store.opening import open_ledger
from ledger.validation.leagues import PLAYERS, League, draw_schedule, known_league, league_of
from projections.admission.events import Admission

# of those who subscribe at the same moment one succeeds each time, so nobody tries more often than there are seats
ATTEMPTS = PLAYERS + 2


@group()
def league() -> None:
    """Leagues of eight players: create, subscribe, see what remains to be played."""


@league.command()
@click.argument("name", metavar="LEAGUE", type=composed)
@click.option("--game", required=True, metavar="NAME", help="Which game is played, such as cartagena.")
@click.option("--players-per-game", "size", required=True, type=click.IntRange(2, 8), help="How many in each game.")
@click.option("--version", metavar="TEXT", help="The version of the game.")
@click.option("--at", metavar="TIME", help="When it begins.  [default: now]")
@zone_option
@writing
def create(how: How, name: str, game: str, size: int, version: str | None, at: str | None, zone: str | None) -> int:
    """Create LEAGUE. Eight players can then subscribe."""
    data = {"league": name, "game": game, "players_per_game": size, "version": version}
    result = _why_no_table(how, game) or _append(how, [("league.created", data)], _instant(how, at, zone))
    return how.report(result)


def _why_no_table(how: How, game: str) -> Imported | None:
    """A refusal if no ruleset makes tables for leagues of a game, with the remedy; None if one does."""
    with how.ledger.reading() as connection:
        newest, rulesets = head(connection), Admission(connection).versions
    scored = {
        slug: ruleset_id
        for ruleset_id, versions in rulesets.items() if versions[0].ruleset.partition.by == ["league"]
        for slug in versions[0].ruleset.scope.game
    }  # fmt: skip
    if game in scored:
        return None
    there = ", ".join(f"{slug} ({ruleset_id})" for slug, ruleset_id in sorted(scored.items())) or "no game"
    rejection = Rejection(
        "league-unscored",
        f"no ruleset scores leagues of {game}; there are leagues of {there}. Publish a ruleset partitioned by league "
        "first: docs/leagues.md",
    )
    return Imported(head=newest, rejected=[rejection], rejected_count=1)


@league.command()
@click.argument("name", metavar="LEAGUE", type=composed)
@click.argument("player", type=composed)
@click.option("--seed", metavar="TEXT", help="Draw the schedule with this seed, if this is the last seat.")
@click.option("--at", metavar="TIME", help="When they subscribed.  [default: now]")
@zone_option
@writing
def join(how: How, name: str, player: str, seed: str | None, at: str | None, zone: str | None) -> int:
    """PLAYER subscribes to LEAGUE. The eighth draws the schedule of its games."""
    instant = _instant(how, at, zone)
    for _ in range(ATTEMPTS):
        with how.ledger.reading() as connection:
            try:
                there = known_league(Log(connection), name)
            except Refused as problem:
                result = Imported(head=head(connection), rejected=[problem.rejection()], rejected_count=1)
                break
        events = [("league.joined", {"league": name, "player": player})]
        if len(there.players) == PLAYERS - 1:
            events.append(("league.scheduled", _schedule(there, [*there.players, player], seed)))
        result = _append(how, events, instant, still=partial(_still_waiting, there))
        if [rejection.code for rejection in result.rejected] != ["changed-meanwhile"]:
            break
    if how.form == "table" and result.appended:
        render.echo(f"{render.plain(player)} is in {name}: {len(there.players) + 1} of {PLAYERS} players.")
        if len(events) > 1:
            render.echo(f"The schedule is drawn; see: ratings league show {name}")
        return 0
    return how.report(result)


@league.command()
@click.argument("name", metavar="LEAGUE", type=composed)
@click.option("--seed", metavar="TEXT", help="Draw it with this seed.")
@writing
def schedule(how: How, name: str, seed: str | None) -> int:
    """Draw the schedule of a LEAGUE whose players were imported without one."""
    with how.ledger.reading() as connection:
        there = known_league(Log(connection), name)
    events = [("league.scheduled", _schedule(there, there.players, seed))] if len(there.players) == PLAYERS else []
    if not events:
        raise click.ClickException(f"the league {name} has {len(there.players)} of {PLAYERS} players")
    return how.report(_append(how, events, _instant(how, None, None)))


def _instant(how: How, at: str | None, zone: str | None) -> str:
    return format_instant(instant_or_now(how.ledger, at, zone))


def _schedule(there: League, players: list[str], seed: str | None) -> dict[str, Any]:
    seed = seed or secrets.token_hex(8)
    drawn = draw_schedule(players, there.size, seed)
    width = len(str(len(drawn)))
    games = [{"game_id": f"{there.name}-{number:0{width}d}", "seats": seats} for number, seats in enumerate(drawn, 1)]
    return {"league": there.name, "seed": seed, "games": games}


def _still_waiting(seen: League, connection: Connection) -> None:
    """Raises `Refused` (changed-meanwhile) if somebody has subscribed since a league was looked at."""
    now = league_of(Log(connection), seen.name)
    if now is None or now.joined != seen.joined or now.created != seen.created:
        raise Refused("changed-meanwhile", f"others subscribed to {seen.name} at the same time; try again")


def _append(how: How, events: list[tuple[str, dict[str, Any]]], at: str, **hooks: Any) -> Imported:
    """Append some steps of a league in one transaction."""
    plan = how.proposed([{"type": name, "occurred_at": at, "data": data} for name, data in events], **hooks)
    result = how.done(plan)
    result.rejected = result.rejected[:1]
    return result


@league.command(name="list")
@format_option
@click.pass_obj
def list_(db: str, form: str) -> None:
    """The leagues, what they wait for, and who won."""
    emit(view_of(open_ledger(db), None, None, None).leagues(), form)


@league.command()
@click.argument("name", metavar="LEAGUE", type=composed)
@format_option
@click.pass_obj
def show(db: str, name: str, form: str) -> None:
    """The players of LEAGUE, its schedule with what has been played and what is open, and its table so far."""
    emit(view_of(open_ledger(db), None, None, None).league(name), form)


@league.command()
@click.argument("name", metavar="LEAGUE", type=composed)
@format_option
@click.pass_obj
def table(db: str, name: str, form: str) -> None:
    """The table of LEAGUE: the standings of its ladder."""
    view = view_of(open_ledger(db), None, None, None)
    found = view.league(name)
    if found.ladder is None:
        raise click.ClickException(f"no ruleset scores leagues of {found.game}; see: ratings rules list")
    emit(view.standings(found.ladder), form)
    if found.winners and form == "table":
        render.echo(f"\nFinished: won by {render.plain(' and '.join(found.winners))}.")


@league.command(name="unmet")
@click.argument("ladder", type=composed)
@click.argument("player", type=composed)
@format_option
@click.pass_obj
def unmet_(db: str, ladder: str, player: str, form: str) -> None:
    """Whom PLAYER has not yet played on LADDER, such as b5-league/2010-1, with their league ids (LID)."""
    emit(view_of(open_ledger(db), None, None, None).unmet(ladder, player), form)

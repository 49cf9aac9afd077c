"""`league`: players subscribe, the last of them draws the schedule, and its games are then played."""

import secrets
from functools import partial
from typing import Any, NamedTuple

import click
from sqlalchemy import Connection

from cli.arguments.command import group
from cli.arguments.facts import decoded
from cli.arguments.moments import instant_or_now, zone_option
from cli.arguments.one_ladder import failures_noted, reading_of
from cli.arguments.options import composed, format_option
from cli.commands.correct import How, writing
from cli.commands.standings import standings_
from cli.output import render
from cli.output.appended import report_appended
from cli.output.standings import print_rows
from ledger import clock
from ledger.events.canonical import format_instant
from ledger.events.revisions import live_game
from ledger.intake.files import STDIN, Item
from ledger.intake.importing import Imported, import_items
from ledger.rejections import Refused, Rejection
from ledger.store.log import Log, head, read_live
from ledger.store.opening import open_ledger
from ledger.validation.identities import identities
from ledger.validation.leagues import League, known_league, league_of
from ledger.validation.schedules import PLAYERS, draw_schedule
from projections.admission.events import Admission
from projections.queries.coordinates import times_of
from projections.queries.entrants import league_ids, unmet
from projections.queries.standings import Ladders, Ranking, standing_row

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
    if (problem := _why_no_table(how, game)) is not None:
        return report_appended(open_ledger(how.db), problem, how.form, how.dry_run)
    data = {"league": name, "game": game, "players_per_game": size, "version": version}
    return report_appended(
        open_ledger(how.db), _append(how, [("league.created", data)], _instant(how, at, zone)), how.form, how.dry_run
    )


def _why_no_table(how: How, game: str) -> Imported | None:
    """A refusal if no ruleset makes tables for leagues of a game, with the remedy; None if one does."""
    with open_ledger(how.db).reading() as connection:
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
        with open_ledger(how.db).reading() as connection:
            try:
                there = known_league(Log(connection), name)
            except Refused as problem:
                result = Imported(head=head(connection), rejected=[problem.rejection()], rejected_count=1)
                break
        events = [("league.joined", {"league": name, "player": player})]
        if len(there.players) == PLAYERS - 1:
            events.append(("league.scheduled", _schedule(there, [*there.players, player], seed)))
        result = _append(how, events, instant, partial(Subscribing, there))
        if [rejection.code for rejection in result.rejected] != ["changed-meanwhile"]:
            break
    if how.form == "table" and result.appended:
        render.echo(f"{render.plain(player)} is in {name}: {len(there.players) + 1} of {PLAYERS} players.")
        if len(events) > 1:
            render.echo(f"The schedule is drawn; see: ratings league show {name}")
        return 0
    return report_appended(open_ledger(how.db), result, how.form, how.dry_run)


@league.command()
@click.argument("name", metavar="LEAGUE", type=composed)
@click.option("--seed", metavar="TEXT", help="Draw it with this seed.")
@writing
def schedule(how: How, name: str, seed: str | None) -> int:
    """Draw the schedule of a LEAGUE whose players were imported without one."""
    with open_ledger(how.db).reading() as connection:
        there = known_league(Log(connection), name)
    events = [("league.scheduled", _schedule(there, there.players, seed))] if len(there.players) == PLAYERS else []
    if not events:
        raise click.ClickException(f"the league {name} has {len(there.players)} of {PLAYERS} players")
    return report_appended(open_ledger(how.db), _append(how, events, _instant(how, None, None)), how.form, how.dry_run)


class Subscribing(Admission):
    """The ladders' checks, and that nobody else has subscribed since a league was looked at."""

    def __init__(self, seen: League, connection: Connection) -> None:
        super().__init__(connection)
        now = league_of(Log(connection), seen.name)
        self._changed = now is None or now.joined != seen.joined or now.created != seen.created

    def admit(self, type_name: str, occurred_at: int, data: dict[str, Any]) -> None:
        """As the ladders do; raises `Refused` (changed-meanwhile) for a league that changed."""
        if self._changed:
            raise Refused("changed-meanwhile", f"others subscribed to {data['league']} at the same time; try again")
        super().admit(type_name, occurred_at, data)


def _instant(how: How, at: str | None, zone: str | None) -> str:
    return format_instant(instant_or_now(open_ledger(how.db), at, zone))


def _schedule(there: League, players: list[str], seed: str | None) -> dict[str, Any]:
    seed = seed or secrets.token_hex(8)
    drawn = draw_schedule(players, there.size, seed)
    width = len(str(len(drawn)))
    games = [{"game_id": f"{there.name}-{number:0{width}d}", "seats": seats} for number, seats in enumerate(drawn, 1)]
    return {"league": there.name, "seed": seed, "games": games}


def _append(how: How, events: list[tuple[str, dict[str, Any]]], at: str, ladders: Any = Admission) -> Imported:
    """Append some steps of a league in one transaction."""
    given = [{"type": name, "occurred_at": at, "data": data} for name, data in events]
    result = import_items(
        open_ledger(how.db), [Item(STDIN, 1, event, None) for event in given], by=how.by, clock=clock.now,
        ladders=ladders, dry_run=how.dry_run, ignore_clock=how.ignore_clock,
    )  # fmt: skip
    result.rejected = [rejection._replace(file=None, line=None) for rejection in result.rejected[:1]]
    return result


class Seen(NamedTuple):
    """A league and how far it has been played: when each game ended, by game_id, and its ladder's standings."""

    league: League
    played: dict[str, str]
    table: Ranking | None

    @property
    def state(self) -> str:
        """What the league is waiting for."""
        if self.league.scheduled is None:
            full = len(self.league.players) == PLAYERS
            return "no schedule" if full else f"{len(self.league.players)} of {PLAYERS} players"
        done = len(self.played) == len(self.league.games)
        return "finished" if done else f"{len(self.played)} of {len(self.league.games)} games"

    @property
    def winners(self) -> list[str]:
        """Who has the first rank, once all games are played."""
        rows = self.table.rows if self.table is not None and self.state == "finished" else []
        return [row.player for row in rows if row.rank == 1]


def _see(connection: Connection, ladders: Ladders, there: League) -> Seen:
    log = Log(connection)
    games = {game_id: live_game(log.about(f"game:{game_id}")) for game_id in there.games}
    played = {name: format_instant(g.occurred_at) for name, g in games.items() if g is not None and not g.voided}
    found = None
    for ruleset_id, versions in ladders.facts.rulesets.items():
        ruleset = versions[0].ruleset
        usable = ruleset_id not in ladders.facts.unusable
        if usable and ruleset.partition.by == ["league"] and there.game in ruleset.scope.game:
            with failures_noted(ladders.facts, connection):
                found = ladders.standings(f"{ruleset_id}/{there.name}")
    return Seen(there, played, found)


def _seen(connection: Connection, name: str) -> Seen:
    facts = decoded(connection)
    return _see(connection, Ladders(facts), known_league(Log(connection), name))


def _all(connection: Connection, ladders: Ladders) -> list[Seen]:
    created = read_live(connection, until=ladders.facts.position, type_name="league.created")
    names = [event.data["league"] for event in created]
    return [_see(connection, ladders, known_league(Log(connection), name)) for name in sorted(names)]


@league.command(name="list")
@format_option
@click.pass_obj
def list_(db: str, form: str) -> None:
    """The leagues, what they wait for, and who won."""
    with open_ledger(db).reading() as connection:
        facts = decoded(connection)
        found = _all(connection, Ladders(facts))
    header = ("league", "game", "players_per_game", "players", "games", "played", "state", "winners")
    rows = [
        (seen.league.name, seen.league.game, seen.league.size, len(seen.league.players), len(seen.league.games),
         len(seen.played), seen.state, seen.winners)
        for seen in found
    ]  # fmt: skip
    if form == "json":
        render.print_json({"rows": [dict(zip(header, row, strict=True)) for row in rows]})
    elif form == "csv":
        render.print_csv(header, [[*row[:-1], "=".join(row[-1])] for row in rows])
    elif rows:
        short = [(row[0], row[1], row[2], row[6], " and ".join(row[7])) for row in rows]
        render.print_table(("league", "game", "per game", "state", "won by"), short, right=("per game",))
    else:
        render.note("No league is created yet; see: ratings league create --help")


@league.command()
@click.argument("name", metavar="LEAGUE", type=composed)
@format_option
@click.pass_obj
def show(db: str, name: str, form: str) -> None:
    """The players of LEAGUE, its schedule with what has been played and what is open, and its table so far."""
    with open_ledger(db).reading() as connection:
        seen = _seen(connection, name)
        current, times = identities(connection).current, times_of(connection)
    there = seen.league
    games: list[dict[str, Any]] = [
        {"game_id": game_id, "seats": [current(player) for player in seats], "played": seen.played.get(game_id)}
        for game_id, seats in there.games.items()
    ]
    players = [current(player) for player in there.players]
    if form == "json":
        about = {"league": name, "game": there.game, "players_per_game": there.size, "version": there.version}
        seed = None if there.scheduled is None else there.scheduled.data["seed"]
        rows = [] if seen.table is None else seen.table.json_rows()
        told = {"state": seen.state, "winners": seen.winners, "seed": seed, "players": players, "games": games}
        render.print_json(render.with_decimals({**about, **told, "table": rows}))
        return
    if form == "csv":
        cells = [(game["game_id"], game["played"], "=".join(game["seats"])) for game in games]
        render.print_csv(("game_id", "played", "seats"), cells)
        return
    render.echo(f"{name}: {there.game}, {there.size} players a game, {seen.state}")
    if seen.winners:
        render.echo(f"won by {render.plain(' and '.join(seen.winners))}")
    render.hanging(f"players: {render.plain(', '.join(players)) or 'nobody yet'}", 2)
    if seen.table is not None and seen.table.rows:
        render.echo()
        print_rows([standing_row(row, seen.table.scale) for row in seen.table.rows])
    if games:
        render.echo()
        lines = [(g["game_id"], "open" if g["played"] is None else times.minute(g["played"]), ", ".join(g["seats"]))
                 for g in games]  # fmt: skip
        render.print_table(("game", times.column("played"), "players by seat"), lines)


@league.command()
@click.argument("name", metavar="LEAGUE", type=composed)
@format_option
@click.pass_context
def table(context: click.Context, name: str, form: str) -> None:
    """The table of LEAGUE: the standings of its ladder."""
    with open_ledger(context.obj).reading() as connection:
        seen = _seen(connection, name)
    if seen.table is None:
        raise click.ClickException(f"no ruleset scores leagues of {seen.league.game}; see: ratings rules list")
    context.invoke(
        standings_, ladder=seen.table.ladder, as_published=False, limit=None, players=(), as_of=None, known_at=None,
        rules=None, form=form,
    )  # fmt: skip
    if seen.winners and form == "table":
        render.echo(f"\nFinished: won by {render.plain(' and '.join(seen.winners))}.")


@league.command(name="unmet")
@click.argument("ladder", type=composed)
@click.argument("player", type=composed)
@format_option
@click.pass_obj
def unmet_(db: str, ladder: str, player: str, form: str) -> None:
    """Whom PLAYER has not yet played on LADDER, such as b5-league/2010-1, with their league ids (LID)."""
    with reading_of(open_ledger(db), ladder, None, None, None) as reading:
        player = reading.ladders.facts.current(player)
        stream = reading.ladders.stream(ladder)
        ids = league_ids(reading.connection, reading.ladders.facts, stream.versions)
        rows = [(ids.get(other), other) for other in unmet(stream, player)]
    if player not in stream.names:
        raise click.ClickException(f"{render.plain(player)} has no game on {ladder}")
    if form == "json":
        told = [{"lid": lid, "player": other} for lid, other in rows]
        render.print_json({"ladder": ladder, "player": player, "lid": ids.get(player), "rows": told})
    elif form == "csv":
        render.print_csv(("lid", "player"), rows)
    elif rows:
        others = len(stream.names) - 1
        about = f"{render.plain(player)} (LID {ids.get(player)}) has met {others - len(rows)} of {others}"
        render.echo(f"{about} on {ladder}.\n")
        render.print_table(("LID", "not yet met"), sorted(rows), right=("LID",))
    else:
        render.echo(f"{render.plain(player)} (LID {ids.get(player)}) has met everybody on {ladder}.")

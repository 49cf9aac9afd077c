"""How leagues look, as tables and as CSV."""

from dataclasses import fields

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.standings import print_rows
from ratings_ledger.projections.queries.leagues import AllLeagues, LeagueRow, LeagueState, Unmet
from ratings_ledger.projections.replay.ladders import short_name


def print_leagues_csv(found: AllLeagues) -> None:
    """One line per league."""
    header = [member.name for member in fields(LeagueRow)]
    cells = [[*(one.model_dump() | {"winners": "=".join(one.winners)}).values()] for one in found.rows]
    render.print_csv(header, cells)


def print_leagues(found: AllLeagues) -> None:
    """The leagues, what they wait for, and who won."""
    rows = [(one.league, one.game, one.players_per_game, one.state, " and ".join(one.winners)) for one in found.rows]
    if rows:
        render.print_table(("league", "game", "per game", "state", "won by"), rows, right=("per game",))
    else:
        render.note("No league is created yet; see: ratings league create --help")


def print_league_csv(found: LeagueState) -> None:
    """One line per game of the schedule."""
    cells = [(one["game_id"], one["played"], "=".join(one["seats"])) for one in found.model_dump()["games"]]
    render.print_csv(("game_id", "played", "seats"), cells)


def print_league(found: LeagueState) -> None:
    """What it is, its players, its table and its schedule."""
    render.echo(f"{found.league}: {found.game}, {found.players_per_game} players a game, {found.state}")
    if found.winners:
        render.echo(f"won by {render.plain(' and '.join(found.winners))}")
    render.hanging(f"players: {render.plain(', '.join(map(render.csv_item, found.players))) or 'nobody yet'}", 2)
    if found.table:
        render.echo()
        print_rows(found.table)
    if found.games:
        render.echo()
        lines = [
            (
                one.game_id,
                "open" if one.played is None else found.times.played(one.played),
                ", ".join(map(render.csv_item, one.seats)),
            )
            for one in found.games
        ]
        render.print_table(("game", found.times.column("played"), "players by seat"), lines)


def print_unmet_csv(found: Unmet) -> None:
    """One line per player."""
    render.print_csv(("lid", "player"), [(one.lid, one.player) for one in found.rows])


def print_unmet(found: Unmet) -> None:
    """How many have been met, and who has not."""
    player = render.plain(found.player) + (f" (LID {found.lid})" if found.has_ids else "")
    if not found.rows:
        render.echo(f"{player} has met everybody on {short_name(found.ladder)}.")
        return
    render.echo(f"{player} has met {found.others - len(found.rows)} of {found.others} on {short_name(found.ladder)}.\n")
    if found.has_ids:
        rows = sorted((one.lid or 0, one.player) for one in found.rows)
        render.print_table(("LID", "not yet met"), rows, right=("LID",))
    else:
        render.print_table(("not yet met",), [(one.player,) for one in found.rows])

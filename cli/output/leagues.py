"""Print leagues of eight: all of them, one with its schedule, and who has not met; as tables and as CSV."""

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
    """Print a league with its players, its table and its schedule."""
    render.echo(f"{found.league}: {found.game}, {found.players_per_game} players a game, {found.state}")
    if found.winners:
        render.echo(f"won by {render.plain(' and '.join(found.winners))}")
    render.print_hanging(f"players: {render.plain(', '.join(map(render.csv_item, found.players))) or 'none yet'}", 2)
    if found.table:
        render.echo()
        print_rows(found.table)
    if found.games:
        render.echo()
        lines = [
            (
                game.game_id,
                "open" if game.played is None else found.times.played(game.played),
                ", ".join(map(render.csv_item, game.seats)),
            )
            for game in found.games
        ]
        render.print_table(("game", found.times.column("played"), "players by seat"), lines)


def print_unmet_csv(found: Unmet) -> None:
    """Print one line per player."""
    render.print_csv(("lid", "player"), [(opponent.lid, opponent.player) for opponent in found.rows])


def print_unmet(found: Unmet) -> None:
    """Print how many opponents a player has met, and who is missing."""
    player = render.plain(found.player) + (f" (LID {found.lid})" if found.has_ids else "")
    if not found.rows:
        render.echo(f"{player} has met all players of {short_name(found.ladder)}.")
        return
    render.echo(f"{player} has met {found.others - len(found.rows)} of {found.others} on {short_name(found.ladder)}.\n")
    if found.has_ids:
        rows = sorted((opponent.lid or 0, opponent.player) for opponent in found.rows)
        render.print_table(("LID", "not yet met"), rows, right=("LID",))
    else:
        render.print_table(("not yet met",), [(opponent.player,) for opponent in found.rows])

"""Print leagues of eight players: a list, a league with its schedule, and unmet opponents; as tables and CSV."""

from dataclasses import fields

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.standings import print_rows
from ratings_ledger.projections.queries.leagues import AllLeagues, LeagueRow, LeagueState, UnmetOpponents
from ratings_ledger.projections.replay.ladder_names import short_name


def print_leagues_csv(leagues: AllLeagues) -> None:
    """Print one line per league."""
    header = [member.name for member in fields(LeagueRow)]
    cells = [[*(row.model_dump() | {"winners": "=".join(row.winners)}).values()] for row in leagues.rows]
    render.print_csv(header, cells)


def print_leagues(leagues: AllLeagues) -> None:
    """Print the leagues with their states and winners."""
    rows = [(row.league, row.game, row.players_per_game, row.state, " and ".join(row.winners)) for row in leagues.rows]
    if rows:
        render.print_table(("league", "game", "per game", "state", "won by"), rows, right=("per game",))
    else:
        create_command = "ratings league create LEAGUE --game NAME --players-per-game N"
        render.note(f"There are no leagues yet; to create one: {create_command}")


def print_league_csv(league: LeagueState) -> None:
    """Print one line per game of the schedule."""
    cells = [(game["game_id"], game["played"], "=".join(game["seats"])) for game in league.model_dump()["games"]]
    render.print_csv(("game_id", "played", "seats"), cells)


def print_league(league: LeagueState) -> None:
    """Print a league with its players, its table and its schedule."""
    render.echo(f"{league.league}: {league.game}, {league.players_per_game} players a game, {league.state}")
    if league.winners:
        render.echo(f"won by {render.plain(' and '.join(league.winners))}")
    render.print_hanging(f"players: {render.plain(', '.join(map(render.csv_item, league.players))) or 'none yet'}", 2)
    if league.table:
        render.echo()
        print_rows(league.table)
    if league.games:
        render.echo()
        lines = [
            (
                game.game_id,
                "open" if game.played is None else league.times.format_played(game.played),
                ", ".join(map(render.csv_item, game.seats)),
            )
            for game in league.games
        ]
        render.print_table(("game", league.times.name_column("played"), "players by seat"), lines)


def print_unmet_csv(unmet: UnmetOpponents) -> None:
    """Print one line per opponent that the player has not met yet."""
    render.print_csv(("lid", "player"), [(opponent.lid, opponent.player) for opponent in unmet.rows])


def print_unmet(unmet: UnmetOpponents) -> None:
    """Print the number of opponents that a player has met, and the unmet ones."""
    player = render.plain(unmet.player) + (f" (LID {unmet.lid})" if unmet.has_ids else "")
    if not unmet.rows:
        render.echo(f"{player} has met all players of {short_name(unmet.ladder)}.")
        return
    opponents = unmet.opponent_count
    render.echo(f"{player} has met {opponents - len(unmet.rows)} of {opponents} on {short_name(unmet.ladder)}.\n")
    if unmet.has_ids:
        rows = sorted((opponent.lid or 0, opponent.player) for opponent in unmet.rows)
        render.print_table(("LID", "not yet met"), rows, right=("LID",))
    else:
        render.print_table(("not yet met",), [(opponent.player,) for opponent in unmet.rows])

"""Print standings and trial balances, as tables and as CSV."""

import shlex
from collections.abc import Sequence
from fractions import Fraction

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.periods import print_waiting
from ratings_ledger.cli.output.render import print_csv_at, print_heading
from ratings_ledger.cli.output.states import list_extra_columns, list_state_columns
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.queries.standings import Balance, Standing, Standings, format_ratings
from ratings_ledger.projections.replay.ladder_names import short_name

SPARKLINE_WIDTH = 16


def print_standings_csv(standings: Standings) -> None:
    """Print one line per row, with the columns of this kind of list."""
    rows = standings.rows
    points = [render.format_exact(row.points) for row in rows]
    columns: dict[str, Sequence[render.TableCell]] = {
        "rank": [row.rank for row in rows],
        "player": [row.player for row in rows],
        "points": points,
        "games": [row.games for row in rows],
        "qualified": [row.qualified for row in rows],
    }
    if any("/" in text for text in points):
        # a spreadsheet would read 7/4 as a date
        columns |= {
            "points": [render.format_decimal(row.points, 6) for row in rows],
            "points_exact": [str(row.points) for row in rows],
        }
    columns |= _build_list_columns(rows)
    columns |= list_state_columns(rows)
    print_csv_at([*columns], render.list_rows(columns), standings.at)


def _build_list_columns(
    rows: Sequence[Standing], no_gold: render.TableCell = 0
) -> dict[str, Sequence[render.TableCell]]:
    """Return the columns for gold and places, if rows have them; `no_gold` is the cell for a payment of 0."""
    columns: dict[str, Sequence[render.TableCell]] = {}
    if any(row.gold is not ABSENT for row in rows):
        columns["gold"] = ["" if row.gold is ABSENT else row.gold or no_gold for row in rows]
    if any(row.places is not ABSENT for row in rows):
        columns["places"] = [format_places(row) for row in rows]
    return columns


def format_places(row: Standing) -> str:
    """Return the places that add up to the points of an annual list."""
    return " ".join(map(str, () if row.places is ABSENT else row.places))


def print_standings(standings: Standings) -> None:
    """Print a heading with the coordinates, and the rows."""
    print_heading(
        f"{short_name(standings.ladder)}: {render.count(standings.games, 'game')}",
        f" under {standings.ruleset}",
        standings.at,
        standings.times,
    )
    if standings.remark:
        render.echo(render.plain(standings.remark))
    if standings.period is not ABSENT:
        command = shlex.join(["ratings", "standings", short_name(standings.ladder)])
        print_waiting(standings.period, standings.at, standings.times, command)
    render.echo()
    if not standings.rows and standings.period is not ABSENT and standings.period.open_games:
        render.note(f"No player is on {short_name(standings.ladder)} before its first rating period closes.")
        return
    if not standings.rows:
        played_text = (
            ""
            if standings.at.as_of is None
            else f" played up to {standings.times.format_with_zone(standings.at.as_of)}"
        )
        command = shlex.join(["ratings", "explain", "GAME", short_name(standings.ladder)])
        reason = f": no game{played_text} counts on it (to see why: {command})"
        render.note(render.plain(f"No player is on this ladder{'' if standings.games else reason}."))
        return
    print_rows(standings.rows)
    if standings.legend:
        render.echo()
        render.print_hanging(standings.legend, 0)
    if any(row.rank is None for row in standings.rows):
        command = shlex.join(["ratings", "explain", "PLAYER", short_name(standings.ladder)])
        render.print_hanging(f"\nWhy a player has no rank (-): {command}", 2)


def print_rows(rows: Sequence[Standing]) -> None:
    """Print rows of standings as a table."""
    columns: dict[str, Sequence[render.TableCell]] = {
        "rank": [row.rank or "-" for row in rows],
        "player": [row.player for row in rows],
        "points": render.format_column([row.points for row in rows]),
        "games": [row.games for row in rows],
        **_build_list_columns(rows, no_gold=""),
    }
    if any(row.state is not ABSENT for row in rows):
        columns["points"] = [rating or "" for rating in format_ratings(rows)]
        columns |= list_extra_columns(rows)
    # only the rows of an overview have `last_points`
    courses: list[Sequence[Fraction]] = [getattr(row, "last_points", ()) for row in rows]
    if any(len(course) > 1 for course in courses):
        columns["course"] = [render.draw_sparkline(course, SPARKLINE_WIDTH) if course else "" for course in courses]
    render.print_columns(columns, right=("rank", "points", "games", "gold"))


ACCOUNT_MEANINGS = {
    "players": "total points of the players",
    "start": "less their starting points",
    "minted": "less points that rules created",
    "burned": "plus points that rules removed, for example by rounding",
    "adjusted": "less manual adjustments",
}


def print_balance_csv(balance: Balance) -> None:
    """Print one line per account."""
    cells = [(account.account, render.format_exact(account.amount)) for account in balance.accounts]
    print_csv_at(("account", "amount"), cells, balance.at)


def print_balance(balance: Balance) -> None:
    """Print the accounts with their meanings, and the sum."""
    counts = f"{render.count(balance.games, 'game')} of {render.count(balance.players, 'player')}"
    subject = f"{short_name(balance.ladder)}: {counts}"
    print_heading(subject, f" under {balance.ruleset}", balance.at, balance.times)
    if balance.period is not ABSENT:
        command = shlex.join(["ratings", "books", short_name(balance.ladder)])
        print_waiting(balance.period, balance.at, balance.times, command)
    render.echo()
    amounts = render.format_column([*(str(account.amount) for account in balance.accounts), str(balance.sum)], 6)
    rows = [
        (account.account, amount, ACCOUNT_MEANINGS[account.account])
        for account, amount in zip(balance.accounts, amounts, strict=False)
    ]
    render.print_table(("account", "amount", ""), [*rows, ("sum", amounts[-1], "")], right=("amount",))

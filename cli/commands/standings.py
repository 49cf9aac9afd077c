"""Implement `standings`, `history` and `books`: show the points, their changes and the accounts of a ladder."""

import sys

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.options import axes_options, close_now_option, format_option
from ratings_ledger.cli.arguments.views import open_for_command, open_view
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.history import print_history, print_history_csv
from ratings_ledger.cli.output.render import emit
from ratings_ledger.cli.output.standings import print_balance, print_balance_csv, print_standings, print_standings_csv
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections.queries.standings import Standings
from ratings_ledger.projections.snapshot import Snapshot

# longer standings have no sparklines
SPARKLINE_ROWS_MAX = 200


@command(name="standings")
@click.argument("ladder", type=to_nfc, required=False)
@click.option("--as-published", is_flag=True, help="Show the published list: the latest one, or the one for --as-of.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Only the first N rows.")
@click.option("--player", "players", metavar="ID", multiple=True, type=to_nfc, help="Only this player; repeatable.")
@axes_options
@close_now_option
@format_option
@click.pass_obj
def standings_(
    db: str,
    ladder: str | None,
    as_published: bool,
    limit: int | None,
    players: tuple[str, ...],
    as_of: str | None,
    known_at: str | None,
    rules: str | None,
    close_now: bool,
    output_format: str,
) -> None:
    """Show the standings of LADDER, such as elo-chess. On a terminal, also draw the course of each player's latest
    points.

    LADDER may be left out if there is only one. The digest covers all rows, even if fewer are shown.
    """
    if as_published and rules is not None:
        raise click.UsageError("a published list has its own version; leave out --rules or --as-published")
    if as_published and close_now:
        raise click.UsageError("a published list never changes; leave out --close-now or --as-published")
    view = open_view(open_for_command(db), as_of=as_of, known_at=known_at, rules=rules, close_now=close_now)
    ladder = ladder or view.only_ladder()
    standings = (view.published if as_published else view.standings)(ladder, players, limit)
    is_short = 0 < len(standings.rows) <= SPARKLINE_ROWS_MAX
    if (
        output_format == "table"
        and not as_published
        and is_short
        and sys.stdout.isatty()
        and render.can_show_sparklines()
    ):
        standings = view.overview(ladder, players=[row.player for row in standings.rows])
    emit(standings, output_format, print_standings, print_standings_csv)
    if output_format == "table" and not (as_published or players) and standings.rows and standings.rows[0].rank is None:
        _note_unranked(view, view.standings(ladder))


def _note_unranked(view: Snapshot, standings: Standings) -> None:
    """Note why no player on a ladder has a rank. The player with the most games is the example."""
    player = max(standings.rows, key=lambda row: row.games).player
    terms = view.account(standings.ladder, player).terms
    reason = next((term.detail for term in terms if term.term == "no rank"), None)
    if reason is not None:
        render.note(
            f"note: no player has a rank; {render.plain(quote(player))} has the most games, but: {render.plain(reason)}"
        )


@command(name="history")
@click.argument("player", type=to_nfc)
@click.argument("ladder", type=to_nfc, required=False)
@axes_options
@close_now_option
@format_option
@click.pass_obj
def history_(
    db: str,
    player: str,
    ladder: str | None,
    as_of: str | None,
    known_at: str | None,
    rules: str | None,
    close_now: bool,
    output_format: str,
) -> None:
    """Show every change to PLAYER's points on LADDER. List games, adjustments, new seasons, closed rating periods and
    new versions in order.

    LADDER may be left out if PLAYER is on only one.
    """
    view = open_view(open_for_command(db), as_of=as_of, known_at=known_at, rules=rules, close_now=close_now)
    player, ladder = view.resolve_ladder(player, ladder)
    emit(view.history(ladder, player), output_format, print_history, print_history_csv)


@command(name="books")
@click.argument("ladder", type=to_nfc, required=False)
@axes_options
@close_now_option
@format_option
@click.pass_obj
def books_(
    db: str,
    ladder: str | None,
    as_of: str | None,
    known_at: str | None,
    rules: str | None,
    close_now: bool,
    output_format: str,
) -> int:
    """Show the trial balance of LADDER; its accounts sum to zero. Compare the players' points with their sources.

    LADDER may be left out if there is only one.
    """
    view = open_view(open_for_command(db), as_of=as_of, known_at=known_at, rules=rules, close_now=close_now)
    balance = view.balance(ladder or view.only_ladder())
    emit(balance, output_format, print_balance, print_balance_csv)
    return int(balance.sum != 0)

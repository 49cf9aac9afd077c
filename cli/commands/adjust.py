"""Implement `adjust`: adjust the points of one player, or of many in a file, by an amount or to a total."""

import click
from sqlalchemy import Connection

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.options import read_instant_or_now, zone_option
from ratings_ledger.cli.arguments.tables import TABLE_OPTIONS
from ratings_ledger.cli.arguments.views import open_view
from ratings_ledger.cli.arguments.writing import WriteContext, write_command
from ratings_ledger.cli.commands.correct import reason_option
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store.log import head
from ratings_ledger.projections.admission.adjustments import AdjustmentRow, compute_adjustments, read_rows
from ratings_ledger.projections.replay.ladder_names import short_name

TYPE = "points.adjusted"


@command(context_settings={"ignore_unknown_options": True})
@click.argument("ladder", type=to_nfc)
@click.argument("player", type=to_nfc, required=False)
@click.argument("points", required=False)
@click.option("--to", metavar="VALUE", help="The total to adjust to, at the time of the adjustment.")
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="Adjust many players: a CSV file with the columns player, and points or to; optional: reason, at.",
)
@TABLE_OPTIONS["dates"]
@reason_option
@click.option("--at", metavar="TIME", help="The time of the adjustment.  [default: now]")
@zone_option
@write_command
def adjust(
    context: WriteContext,
    ladder: str,
    player: str | None,
    points: str | None,
    to: str | None,
    file: str | None,
    reason: str,
    at: str | None,
    zone: str | None,
    dates: str | None,
) -> int:
    """Add POINTS, such as 25 or -7.5, to PLAYER on LADDER. A newcomer gets the usual start plus POINTS.

    \b
        ratings adjust elo-chess anna --to 1500 --reason "rated elsewhere"
        ratings adjust elo-chess --file ratings.csv --reason "from the old list"

    From a file, all rows are recorded or none. Players who already have the requested total are skipped.
    """
    if (player is None) == (file is None) or (file is None and (points is None) == (to is None)) or (file and to):
        raise click.UsageError(
            "name a PLAYER with either POINTS or --to VALUE; for many players, pass --file without any of these"
        )
    if dates is not None and file is None:
        raise click.UsageError("--dates describes the dates of a file; add --file, or leave out --dates")
    try:
        template = AdjustmentRow(
            file="",
            line=0,
            player=str(player),
            points=points,
            to=to,
            reason=reason,
            instant=read_instant_or_now(context.ledger, at, zone),
        )
        rows = [template]
        if file is not None:
            rows = [*read_rows(file, template, lambda at: read_instant_or_now(context.ledger, at, zone), dates)]
        with context.ledger.reading() as connection:
            position = head(connection).position
        view = open_view(context.ledger, known_at=str(position))
        ladder = view.full_name(ladder)
        changes = compute_adjustments(view, ladder, rows)
    except Refused as problem:
        return context.refuse(TYPE, problem)
    if not changes:
        players = quote(rows[0].player) if file is None else "every player"
        return context.refuse(
            TYPE, Refused("nothing-to-correct", f"{players} already has these points on {short_name(ladder)}")
        )
    items = [_build_item(row, ladder, amount) for row, amount in changes]

    def refuse_if_changed(connection: Connection) -> None:
        if any(row.to is not None for row in rows) and head(connection).position != position:
            raise Refused("changed-meanwhile", "other events were recorded meanwhile; run the command again")

    return context.append_and_report(TYPE, context.propose(items, precondition=refuse_if_changed))


def _build_item(row: AdjustmentRow, ladder: str, amount: str) -> Item:
    """Build the event that adds an amount to the points of a row's player on a ladder."""
    event = {
        "type": TYPE,
        "occurred_at": format_instant(row.instant),
        "data": {"ladder": ladder, "player": row.player, "points": amount, "reason": row.reason},
    }
    return Item(file=row.file, line=row.line, event=event, source=None)

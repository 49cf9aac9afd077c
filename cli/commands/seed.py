"""Implement `seed`: set the start of one player on a ladder, or of many players in a file."""

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.views import open_view
from ratings_ledger.cli.arguments.writing import WriteContext, write_command
from ratings_ledger.cli.commands.correct import reason_option
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.projections.admission.seeds import (
    SeedRow,
    list_seed_columns,
    parse_state,
    read_seeds,
    select_new_seeds,
)
from ratings_ledger.projections.replay.ladder_names import short_name

TYPE = "player.seeded"


@command(context_settings={"ignore_unknown_options": True})
@click.argument("ladder", type=to_nfc)
@click.argument("player", type=to_nfc, required=False)
@click.argument("values", metavar="[COLUMN=VALUE]...", nargs=-1)
@click.option(
    "--games", metavar="N", type=int, help="The number of games that PLAYER has played elsewhere.  [default: 0]"
)
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="Seed many players: a CSV file with the column player and the rule's columns; optional: games, reason.",
)
@reason_option
@write_command
def seed(
    context: WriteContext,
    ladder: str,
    player: str | None,
    values: tuple[str, ...],
    games: int | None,
    file: str | None,
    reason: str,
) -> int:
    """Set PLAYER's start on LADDER, such as rating=1650 deviation=80. It replaces the usual start.

    \b
        ratings seed glicko-chess anna rating=1650 --games 12 --reason "other club"
        ratings seed glicko-chess --file ratings.csv --reason "from the old list"

    Columns without a value start as usual. A seed comes before the player's first counted game on the ladder; later,
    use `adjust`. From a file, all rows are recorded or none. Players who already have this start are skipped.
    """
    if (player is None) == (file is None) or (file is None) != bool(values) or (file is not None and games is not None):
        raise click.UsageError(
            "name a PLAYER and values such as rating=1650; for many players, pass --file without these or --games"
        )
    view = open_view(context.ledger)
    ladder = view.full_name(ladder)
    try:
        if file is None:
            rows = [
                SeedRow(file="", line=0, player=str(player), state=parse_state(values), games=games or 0, reason=reason)
            ]
        else:
            rows = read_seeds(file, list_seed_columns(view, ladder), reason)
        new_seeds = select_new_seeds(view, ladder, rows)
    except Refused as problem:
        return context.refuse(TYPE, problem)
    if not new_seeds:
        players = quote(rows[0].player) if file is None else "every player"
        return context.refuse(
            TYPE, Refused("nothing-to-correct", f"{players} already has this start on {short_name(ladder)}")
        )
    now = format_instant(clock.now())
    items = [
        Item(
            file=row.file,
            line=row.line,
            event={"type": TYPE, "occurred_at": now, "data": _build_seed_data(ladder, row)},
            source=None,
        )
        for row in new_seeds
    ]
    return context.append_and_report(TYPE, context.propose(items))


def _build_seed_data(ladder: str, row: SeedRow) -> dict[str, object]:
    games = {"games": row.games} if row.games else {}
    return {"ladder": ladder, "player": row.player, "state": row.state, "reason": row.reason, **games}

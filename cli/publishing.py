"""`publish`: standings are fixed as people get to see them, by events that hold every row."""

from typing import Any

import click

from cli import render
from cli.intake import rejection_line, result_format
from cli.options import by_option, composed, ignore_clock_option
from cli.reading import reading_of
from cli.times import Times
from ledger import clock
from ledger.canonical import format_instant
from ledger.importing import Imported, import_items
from ledger.rejections import Refused
from ledger.sources import STDIN, Item
from ledger.store import open_ledger
from projections.admission import Admission
from projections.ladders import parse_name
from projections.periods import period_of
from projections.publishing import publication


@click.command()
@click.argument("ladder", type=composed)
@click.option("--as-of", metavar="TIME", help="Only what was played up to then; a date means its end.")
@click.option("--dry-run", is_flag=True, help="Say what would be published, write nothing.")
@ignore_clock_option
@by_option
@result_format
@click.pass_obj
def publish(db: str, ladder: str, as_of: str | None, dry_run: bool, ignore_clock: bool, by: str, form: str) -> int:
    """Publish LADDER as it stands: its rows are recorded, and stay what was published whatever comes later.

    A list of a month or year is published when that is over; any other ladder as it stands at this moment, or as it
    stood at the end of a day by --as-of. The same content is not published twice in a row.
    """
    ledger, now = open_ledger(db), clock.now()
    with reading_of(ledger, ladder, as_of, None, None) as reading:
        ladders, at = reading.ladders, reading.coordinates
        ruleset = ladders.versions(ladder)[0].ruleset
        if as_of is None and period_of(ruleset, parse_name(ladder).values) is None:
            # what is played later is no change of what is published now
            ladders, at = ladders.at(now), at._replace(as_of=now)
        found = ladders.standings(ladder)
        try:
            events = publication(ladders, found, now, asked=as_of is not None)
        except Refused as problem:
            refused = Imported(rejected=[problem.rejection()])
            return _tell({"ladder": ladder, **at.stated()}, refused, form, dry_run, reading.times)
    occurred_at = format_instant(now)
    items = [Item(STDIN, 1, {"type": name, "occurred_at": occurred_at, "data": data}, None) for name, data in events]
    result = import_items(
        ledger, items, by=by, clock=clock.now, ladders=Admission, dry_run=dry_run, ignore_clock=ignore_clock
    )
    position = result.head.position if result.head and result.appended else None
    told = {
        "ladder": ladder, "ruleset": found.ruleset, **at.stated(), "games": found.games, "digest": found.digest,
        "row_count": len(found.rows), "position": position,
    }  # fmt: skip
    return _tell(told, result, form, dry_run, reading.times)


def _tell(told: dict[str, Any], result: Imported, form: str, dry_run: bool, times: Times) -> int:
    rejected = result.rejected
    if form == "json":
        refused = [{"code": r.code, "message": r.message} for r in rejected]
        counts = {"appended": result.appended, "existing": result.existing}
        render.print_json({**told, **counts, "dry_run": dry_run, "rejected": refused})
        return int(bool(rejected))
    if rejected:
        render.note(rejection_line(rejected[-1]._replace(file=None, line=None)))
        render.echo("Nothing was published.")
        return 1
    did = "would be published" if dry_run else f"is published at position {told['position']:,}"
    as_of = f", played up to {times.stated(told['as_of'])}" if told["as_of"] else ""
    rows = render.count(told["row_count"], "row")
    render.hanging(f"{told['ladder']} {did}: {rows} under {told['ruleset']}{as_of}.", 2)
    render.echo(f"digest {told['digest']}")
    return 0

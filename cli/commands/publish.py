"""`publish`: standings as people get to see them, fixed by events that hold every row."""

from collections.abc import Callable
from functools import partial
from typing import Any

import click

from cli.arguments.all_ladders import SurveyOfAll, survey
from cli.arguments.command import command
from cli.arguments.one_ladder import reading_of
from cli.arguments.options import by_option, composed, ignore_clock_option
from cli.arguments.result_options import result_format
from cli.output import render
from cli.output.appended import rejection_line
from ledger import clock
from ledger.events.canonical import format_instant
from ledger.intake.files import STDIN, Item
from ledger.intake.importing import Imported, import_items
from ledger.rejections import Refused
from ledger.store.opening import open_ledger
from ledger.validation.published_lists import published_lists
from projections.admission.events import Admission
from projections.queries.coordinates import Coordinates, Times
from projections.queries.publication import publication
from projections.queries.standings import Ladders, Ranking
from projections.replay.containment import RuleFailure
from projections.replay.ladders import Stream, parse_name
from projections.rulesets.periods import is_running, period_of


@command()
@click.argument("ladder", type=composed, required=False)
@click.option("--as-of", metavar="TIME", help="Only what was played up to then; a date means its end.")
@click.option(
    "--due", is_flag=True, help="Publish all lists of months and years that are over and were never published."
)
@click.option("--dry-run", is_flag=True, help="Say what would be published, write nothing.")
@ignore_clock_option
@by_option
@result_format
@click.pass_obj
def publish(
    db: str, ladder: str | None, as_of: str | None, due: bool, dry_run: bool, ignore_clock: bool, by: str, form: str
) -> int:
    """Publish LADDER as it stands: its rows are recorded, and stay as published whatever comes later.

    A list of a month or year is published when that is over; any other ladder as it stands now, or as it stood at the
    end of a day with --as-of. The same content is not published twice in a row.

    With --due, all lists that are over, have somebody on them and were never published are published, oldest first.
    A published list stays as it is, even if it would come out differently today. Exit 1 if one of them failed or was
    refused; the others are published anyway.
    """
    if due == (ladder is not None) or (due and as_of is not None):
        raise click.UsageError("name a LADDER, or publish all that are over with --due, without --as-of")
    ledger, now = open_ledger(db), clock.now()
    append = partial(
        import_items, ledger, by=by, clock=clock.now, ladders=Admission, dry_run=dry_run, ignore_clock=ignore_clock
    )
    if ladder is None:
        return _publish_due(db, now, append, dry_run, form)
    with reading_of(ledger, ladder, as_of, None, None) as reading:
        ladders, at = reading.ladders, reading.ladders.coordinates
        ruleset = ladders.versions(ladder)[0].ruleset
        if as_of is None and period_of(ruleset, parse_name(ladder).values) is None:
            # what is played later does not change what is published now
            ladders, at = ladders.at(now), at._replace(as_of=now)
        found = ladders.standings(ladder)
        try:
            events = publication(ladders, found, now, asked=as_of is not None)
        except Refused as problem:
            refused = Imported(rejected=[problem.rejection()])
            return _tell({"ladder": ladder, **at.stated()}, refused, form, dry_run, reading.times)
    result = append(_items(events, now))
    return _tell(_told(found, at, result), result, form, dry_run, reading.times)


def _items(events: list[tuple[str, dict[str, Any]]], now: int) -> list[Item]:
    occurred_at = format_instant(now)
    return [Item(STDIN, 1, {"type": name, "occurred_at": occurred_at, "data": data}, None) for name, data in events]


def _told(found: Ranking, at: Coordinates, result: Imported) -> dict[str, Any]:
    """What is said about a list: what it is, where it was computed, and where it is published."""
    return {
        "ladder": found.ladder, "ruleset": found.ruleset, **at.stated(), "games": found.games, "digest": found.digest,
        "row_count": len(found.rows), "position": result.head.position if result.head and result.appended else None,
    }  # fmt: skip


def _publish_due(db: str, now: int, append: Callable[[list[Item]], Imported], dry_run: bool, form: str) -> int:
    """Publish each list that is due, each in a transaction of its own."""
    seen = survey(db)
    rows, failed = [], False
    for ladders, stream in _due(seen, now):
        try:
            found = ladders.of_stream(stream)
        except RuleFailure as failure:
            seen.note(failure)
            failed = True
            continue
        if not found.rows:
            continue
        result = append(_items(publication(ladders, found, now), now))
        failed = failed or bool(result.rejected)
        told = _told(found, seen.coordinates, result)
        rows.append({**told, **_counts(result, dry_run)})
        if form != "json":
            _say(told, result, dry_run, seen.times)
    if form == "json":
        render.print_json({**seen.coordinates.stated(), "dry_run": dry_run, "rows": rows})
    elif not rows and not failed:
        render.echo("No list is due.")
    return int(failed)


def _due(seen: SurveyOfAll, now: int) -> list[tuple[Ladders, Stream]]:
    """The lists whose period is over and that were never published, by the end of their period."""
    with open_ledger(seen.db).reading() as connection:
        published = {one.ladder for one in published_lists(connection, seen.facts.position)}
    found = []
    ladders = seen.ladders
    for ruleset_id in seen.usable:
        for name, stream in ladders.every(ruleset_id).items():
            period = period_of(stream.versions[0].ruleset, parse_name(name).values)
            if period is not None and name not in published and not is_running(period, now, None):
                found.append((period.end, name, ladders, stream))
    return [(ladders, stream) for _, _, ladders, stream in sorted(found, key=lambda one: one[:2])]


def _counts(result: Imported, dry_run: bool) -> dict[str, Any]:
    refused = [{"code": r.code, "message": r.message} for r in result.rejected]
    return {"appended": result.appended, "existing": result.existing, "dry_run": dry_run, "rejected": refused}


def _tell(told: dict[str, Any], result: Imported, form: str, dry_run: bool, times: Times) -> int:
    if form == "json":
        render.print_json({**told, **_counts(result, dry_run)})
    else:
        _say(told, result, dry_run, times)
        render.echo("Nothing was published." if result.rejected else f"digest {told['digest']}")
    return int(bool(result.rejected))


def _say(told: dict[str, Any], result: Imported, dry_run: bool, times: Times) -> None:
    """Print a line about a published list, or why it is not published."""
    if result.rejected:
        render.note(rejection_line(result.rejected[-1]._replace(file=None, line=None)))
        return
    did = "would be published" if dry_run else f"is published at position {told['position']:,}"
    as_of = f", played up to {times.stated(told['as_of'])}" if told["as_of"] else ""
    rows = render.count(told["row_count"], "row")
    render.hanging(f"{told['ladder']} {did}: {rows} under {told['ruleset']}{as_of}.", 2)

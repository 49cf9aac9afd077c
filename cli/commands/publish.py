"""`publish`: standings as people get to see them, fixed by events that hold every row."""

from typing import Any

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.views import view_of
from ratings_ledger.cli.arguments.writing import WriteContext, write_command
from ratings_ledger.cli.output.appended import print_due_published, print_list_published
from ratings_ledger.cli.output.render import emit
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.fields import composed
from ratings_ledger.ledger.intake.intake import Imported
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.projections.admission.outcomes import DuePublished, PublishedOutcome, head_of, refusals
from ratings_ledger.projections.admission.publishing_lists import publication
from ratings_ledger.projections.queries.coordinates import Coordinates, Times
from ratings_ledger.projections.queries.ladders_at import Ranking
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.queries.survey import due, timed_rulesets
from ratings_ledger.projections.replay.ladders import parse_name
from ratings_ledger.projections.rulesets.versions import period_of


@command()
@click.argument("ladder", type=composed, required=False)
@click.option("--as-of", metavar="TIME", help="Only what was played up to then; a date means its end.")
@click.option(
    "--due", "all_due", is_flag=True,
    help="Publish all lists of months and years that are over and were never published.",
)  # fmt: skip
@write_command
def publish(how: WriteContext, ladder: str | None, as_of: str | None, all_due: bool) -> int:
    """Publish LADDER as it stands: its rows are recorded, and stay as published whatever comes later.

    A list of a month or year is published when that is over; any other ladder as it stands now, or as it stood at the
    end of a day with --as-of. The same content is not published twice in a row.

    With --due, all lists that are over, have somebody on them and were never published are published, oldest first.
    A published list stays as it is, even if it would come out differently today. Exit 1 if one of them failed or was
    refused; the others are published anyway.
    """
    if all_due == (ladder is not None) or (all_due and as_of is not None):
        raise click.UsageError("name a LADDER, or publish all that are over with --due, without --as-of")
    now, view = clock.now(), view_of(how.ledger, as_of, None, None, cached=False)
    if ladder is None:
        with view.survey() as survey:
            rows = []
            for ladders, stream in due(survey, now):
                with survey.noting():
                    found = ladders.of_stream(stream)
                    if found.rows:
                        try:
                            events = publication(ladders, found, now, survey.times)
                        except Refused as problem:
                            rows.append(_refused(how, found.ladder, survey.coordinates, problem, survey.times))
                            continue
                        rows.append(_published(how, found, survey.coordinates, events, now, survey.times))
        failed, has_timed = tuple(survey.failures), bool(timed_rulesets(survey))
        every = DuePublished(
            survey.coordinates, how.dry_run, tuple(rows), failed=failed, has_timed=has_timed, times=survey.times
        )
        return emit(every, how.form, print_due_published)
    with view.query(ladder) as query:
        ladders, times, ladder = query.ladders, query.times, query.ladder
        if as_of is None and period_of(ladders.versions(ladder)[0].ruleset, parse_name(ladder).values) is None:
            # what is played later does not change what is published now
            ladders = ladders.at(now)
        found, at = ladders.standings(ladder), ladders.coordinates
        try:
            events = publication(ladders, found, now, times, asked=as_of is not None)
            told = _published(how, found, at, events, now, times)
        except Refused as problem:
            told = _refused(how, ladder, at, problem, times)
    return emit(told, how.form, print_list_published)


def _published(
    how: WriteContext, found: Ranking, at: Coordinates, events: list[tuple[str, dict[str, Any]]], now: int, times: Times
) -> PublishedOutcome:
    """Append the events that publish a list, in one transaction, and say what became of them."""
    occurred_at = format_instant(now)
    done = how.done(how.propose({"type": name, "occurred_at": occurred_at, "data": data} for name, data in events))
    return PublishedOutcome(
        found.ladder, found.ruleset, at, found.games, found.digest, len(found.rows),
        head_of(done) if done.appended else None, done.appended, done.existing, how.dry_run, refusals(done.rejected),
        told=done, times=times,
    )  # fmt: skip


def _refused(how: WriteContext, ladder: str, at: Coordinates, problem: Refused, times: Times) -> PublishedOutcome:
    """Return that a list is not published, and why."""
    refused = Imported.refused(problem)
    return PublishedOutcome(
        ladder,
        ABSENT,
        at,
        ABSENT,
        ABSENT,
        ABSENT,
        ABSENT,
        0,
        0,
        how.dry_run,
        refusals(refused.rejected),
        told=refused,
        times=times,
    )

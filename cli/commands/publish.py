"""`publish`: standings as people get to see them, fixed by events that hold every row."""

from functools import partial
from typing import Any

import click

from ratings_ledger.cli.arguments.command import OneOf, command
from ratings_ledger.cli.arguments.options import as_of_option
from ratings_ledger.cli.arguments.views import open_view
from ratings_ledger.cli.arguments.writing import WriteContext, write_command
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.proposals import format_rejection, print_due_published, print_list_published
from ratings_ledger.cli.output.render import emit
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.intake.intake import IntakeResult
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.runs import record_run
from ratings_ledger.ledger.validation.published_lists import scheduled_ladders
from ratings_ledger.projections.admission.outcomes import DueListsOutcome, ListOutcome, build_refusals, head_of
from ratings_ledger.projections.admission.publishing_lists import build_list_events, refuse_published
from ratings_ledger.projections.queries.coordinates import Coordinates, Times
from ratings_ledger.projections.queries.ladders_at import Ladders, Ranking
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.queries.survey import find_missed_months, list_due, list_timed_rulesets
from ratings_ledger.projections.replay.ladders import parse_name
from ratings_ledger.projections.rulesets.versions import find_period

SCHEDULED = "list.scheduled"


@command()
@click.argument("ladder", type=to_nfc, required=False)
@as_of_option
@click.option(
    "--due",
    "all_due",
    is_flag=True,
    help="Publish all lists that are over and were never published: of months, years and schedules.",
)
@click.option(
    "--every", type=OneOf(["month"]), help="Schedule LADDER: --due then publishes it as it stood at each month's end."
)
@write_command
def publish(how: WriteContext, ladder: str | None, as_of: str | None, all_due: bool, every: str | None) -> int:
    """Publish LADDER as it stands; the list never changes afterwards.

    A list of a month or year is published when that is over; any other ladder as it stands now, or as it stood at the
    end of a day with --as-of. The same content is not published twice in a row.

    \b
        ratings publish elo-chess --every month
        ratings publish --due

    With --every month nothing is published yet, but a schedule is recorded, which `ratings undo` takes back. With
    --due, all lists that are over, have somebody on them and were never published are published, oldest first: lists
    of months and years, and scheduled ladders for each month since their first game. A published list stays as it is,
    even if it would come out differently today. Exit 1 if one of them failed or was refused; the others are published
    anyway.
    """
    _refuse_odd_options(ladder, as_of, all_due, every)
    if ladder is None:
        return emit(publish_due(how), how.form, print_due_published)
    now, view = clock.now(), open_view(how.ledger, as_of, None, None, cached=False)
    if every is not None:
        with view.query(ladder) as query:
            data = {"ladder": query.ladder, "every": every}
        plan = how.propose([{"type": SCHEDULED, "occurred_at": format_instant(now), "data": data}])
        code = how.enter(SCHEDULED, plan)
        if code == 0 and not how.dry_run:
            render.note("note: each month is published by: ratings publish --due, such as every night from cron")
        return code
    with view.query(ladder) as query:
        ladders, times, ladder = query.ladders, query.times, query.ladder
        if as_of is None and find_period(ladders.versions(ladder)[0].ruleset, parse_name(ladder).values) is None:
            # what is played later does not change what is published now
            ladders = ladders.at(now)
        found, at = ladders.standings(ladder), ladders.coordinates
        try:
            events = build_list_events(ladders, found, now, times, is_explicit=as_of is not None)
            told = _published(how, ladders, found, events, now, times)
        except Refused as problem:
            told = _refused(how, ladder, at, problem, times)
    return emit(told, how.form, print_list_published)


def _refuse_odd_options(ladder: str | None, as_of: str | None, all_due: bool, every: str | None) -> None:
    """Raise `UsageError` for options that do not go together; the message names only those that were given."""
    if all_due and ladder is not None:
        raise click.UsageError(f"--due publishes all lists that are over; leave out --due to publish {ladder} alone")
    if all_due and as_of is not None:
        raise click.UsageError("--due publishes each list as it stood at its own end; --as-of goes with a LADDER")
    if every is not None and (all_due or ladder is None):
        raise click.UsageError("--every schedules a LADDER; name one" + ", and leave out --due" * all_due)
    if every is not None and as_of is not None:
        raise click.UsageError("--every publishes at each month's end; leave out --as-of")
    if ladder is None and not all_due:
        raise click.UsageError("name a LADDER, or publish all lists that are over with --due")


def publish_due(how: WriteContext) -> DueListsOutcome:
    """Publish all lists that are over and were never published, oldest first, and return what became of each.

    Another process may publish some of them at the same time. A run records the outcome, except of a dry run.
    """
    if how.dry_run:
        return _publish_due(how)
    with record_run(how.ledger, "publish", clock.now) as run:
        done = _publish_due(how)
        if problems := list_problems(done):
            run.fail(f"{len(problems):,} failed; {problems[0]}")
    return done


def list_problems(done: DueListsOutcome) -> list[str]:
    """Return a sentence for each list that could not be published."""
    refused = (row.imported.rejected[-1] for row in done.rows if row.is_refused)
    return [*map(str, done.failed), *map(format_rejection, refused)]


def _publish_due(how: WriteContext) -> DueListsOutcome:
    now, view = clock.now(), open_view(how.ledger, None, None, None, cached=False)
    rows = []
    with view.survey() as survey:
        scheduled = scheduled_ladders(survey.connection, survey.facts.position)
        months = find_missed_months(survey, scheduled, now)
        lists = [(ladders, stream.ladder, None) for ladders, stream in list_due(survey, now)]
        for ladders, ladder, end in [*lists, *((ladders, ladder, end) for end, ladders, ladder in months)]:
            with survey.collect_failure():
                found = ladders.standings(ladder)
                if not found.rows:
                    continue
                try:
                    events = build_list_events(ladders, found, now, survey.times, is_explicit=end is not None)
                except Refused as problem:
                    rows.append(_refused(how, ladder, ladders.coordinates, problem, survey.times))
                    continue
                rows.append(_published(how, ladders, found, events, now, survey.times, end))
        has_timed = bool(list_timed_rulesets(survey) or scheduled)
    rows = [row for row in rows if {one.code for one in row.imported.rejected} != {"list-exists"}]
    failed = tuple(survey.failures)
    return DueListsOutcome(
        survey.coordinates, how.dry_run, tuple(rows), failed=failed, has_timed=has_timed, times=survey.times
    )


def _published(
    how: WriteContext,
    ladders: Ladders,
    found: Ranking,
    events: list[tuple[str, dict[str, Any]]],
    now: int,
    times: Times,
    end: int | None = None,
) -> ListOutcome:
    """Append the events that publish a list, in one transaction, and say what became of them.

    Args:
        end: the end of the month that is published, if nobody else has published it in the meantime.
    """
    occurred_at = format_instant(now)
    still = {} if end is None else {"precondition": partial(refuse_published, ladder=found.ladder, end=end)}
    drafts = [{"type": name, "occurred_at": occurred_at, "data": data} for name, data in events]
    done = how.finish(how.propose(drafts, **still))
    version = next(version for version in ladders.versions(found.ladder) if version.ruleset.name == found.ruleset)
    least = getattr(version.params, "min_games", 0)
    return ListOutcome(
        found.ladder,
        found.ruleset,
        ladders.coordinates,
        found.games,
        found.digest,
        len(found.rows),
        head_of(done) if done.appended else None,
        done.appended,
        done.existing,
        how.dry_run,
        build_refusals(done.rejected),
        imported=done,
        ranked=sum(row.rank is not None for row in found.rows),
        min_games=least if any(row.rank is None and row.games < least for row in found.rows) else 0,
        times=times,
    )


def _refused(how: WriteContext, ladder: str, at: Coordinates, problem: Refused, times: Times) -> ListOutcome:
    """Return that a list is not published, and why."""
    refused = IntakeResult.refused(problem)
    return ListOutcome(
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
        build_refusals(refused.rejected),
        imported=refused,
        times=times,
    )

"""Implement `publish`: record standings permanently, in events that hold every row."""

from functools import partial
from typing import Any, NamedTuple

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
from ratings_ledger.ledger.validation.published_lists import read_scheduled_ladders
from ratings_ledger.projections.admission.outcomes import (
    DueListsOutcome,
    ListOutcome,
    build_refusals,
    get_head_position,
)
from ratings_ledger.projections.admission.publishing_lists import build_list_events, refuse_published
from ratings_ledger.projections.queries.coordinates import Coordinates, TimeFormat
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.rankings import Ranking
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.queries.survey import find_list_rulesets, find_missed_months, list_due_streams
from ratings_ledger.projections.rulesets.versions import find_period

SCHEDULED = "list.scheduled"


class DueList(NamedTuple):
    """The ladders at the coordinates of a list, the ladder to publish and, if it is scheduled, the end of the month."""

    ladders: Ladders
    ladder: str
    end: int | None


@command()
@click.argument("ladder", type=to_nfc, required=False)
@as_of_option
@click.option(
    "--due",
    "all_due",
    is_flag=True,
    help="Publish every due list: completed months and years, and scheduled ladders.",
)
@click.option(
    "--every", type=OneOf(["month"]), help="Schedule LADDER: --due then publishes it as it stood at each month's end."
)
@write_command
def publish(context: WriteContext, ladder: str | None, as_of: str | None, all_due: bool, every: str | None) -> int:
    """Publish LADDER as it stands; the list never changes afterwards.

    The list of a month or year can be published once its period is over. Any other ladder is published as it stands
    now, or with --as-of as it stood at the end of a day. The same content is not published twice in a row.

    \b
        ratings publish elo-chess --every month
        ratings publish --due

    --every month only records a schedule; revert it with `ratings undo`. --due publishes every list that is complete,
    has at least one player and was never published: lists of months and years, oldest first, then scheduled ladders for
    each month since their first game, oldest first. A published list never changes, even if its standings would be
    different today. Exit 1 if a list failed or was refused; the others are published anyway.
    """
    _refuse_option_conflicts(ladder, as_of, all_due, every)
    if ladder is None:
        return emit(publish_due(context), context.output_format, print_due_published)
    now, view = clock.now(), open_view(context.ledger, as_of=as_of, cached=False)
    if every is not None:
        with view.query(ladder) as query:
            data = {"ladder": query.ladder, "every": every}
        proposal = context.propose([{"type": SCHEDULED, "occurred_at": format_instant(now), "data": data}])
        code = context.append_and_report(SCHEDULED, proposal)
        if code == 0 and not context.dry_run:
            render.note(
                "note: run `ratings publish --due` regularly, for example nightly from cron, to publish each month"
            )
        return code
    with view.query(ladder) as query:
        ladders, times, ladder = query.ladders, query.times, query.ladder
        if as_of is None and find_period(ladders.versions(ladder)[0].ruleset, ladder) is None:
            # ignore games dated after now, so that the list can be computed again
            ladders = ladders.at(now)
        ranking = ladders.standings(ladder)
        try:
            events = build_list_events(ladders, ranking, now, times, is_explicit=as_of is not None)
            outcome = _publish_list(context, ladders, ranking, events=events, now=now, times=times)
        except Refused as problem:
            outcome = _build_refusal_outcome(context, ladder, ladders.coordinates, problem, times)
    return emit(outcome, context.output_format, print_list_published)


def _refuse_option_conflicts(ladder: str | None, as_of: str | None, all_due: bool, every: str | None) -> None:
    """Raise `click.UsageError` for options that cannot be combined, or if neither a ladder nor --due is given."""
    if all_due and ladder is not None:
        raise click.UsageError(f"--due publishes all due lists; leave out --due to publish only {ladder}")
    if all_due and as_of is not None:
        raise click.UsageError(
            "--due publishes each list as it stood at its own end; leave out --as-of, or name a LADDER instead of --due"
        )
    if every is not None and (all_due or ladder is None):
        without_due = ", and leave out --due" if all_due else ""
        raise click.UsageError(f"--every schedules a LADDER; name one{without_due}")
    if every is not None and as_of is not None:
        raise click.UsageError("--every publishes at each month's end; leave out --as-of")
    if ladder is None and not all_due:
        raise click.UsageError("name a LADDER, or publish all due lists with --due")


def publish_due(context: WriteContext) -> DueListsOutcome:
    """Publish the due lists of months and years, then scheduled ladders, each oldest first; return their outcomes.

    Another process may publish some of them at the same time. The outcome is recorded as a run, except for dry runs.
    """
    if context.dry_run:
        return _publish_due(context)
    with record_run(context.ledger, "publish", clock.now) as run:
        outcome = _publish_due(context)
        if failures := describe_failures(outcome):
            run.fail(f"{len(failures):,} failed; {failures[0]}")
    return outcome


def describe_failures(outcome: DueListsOutcome) -> list[str]:
    """Return a sentence for each list that could not be published."""
    rejections = (row.intake_result.rejected[-1] for row in outcome.rows if row.is_refused)
    return [*map(str, outcome.failed), *map(format_rejection, rejections)]


def _publish_due(context: WriteContext) -> DueListsOutcome:
    now, view = clock.now(), open_view(context.ledger, cached=False)
    rows = []
    with view.survey() as survey:
        scheduled = read_scheduled_ladders(survey.connection, survey.facts.position)
        months = find_missed_months(survey, scheduled, now)
        lists = [DueList(ladders, stream.ladder, end=None) for ladders, stream in list_due_streams(survey, now)]
        lists += [DueList(month.ladders, month.ladder, month.end) for month in months]
        for ladders, ladder, end in lists:
            with survey.collect_failure():
                ranking = ladders.standings(ladder)
                if not ranking.rows:
                    continue
                try:
                    events = build_list_events(ladders, ranking, now, survey.times, is_explicit=end is not None)
                except Refused as problem:
                    rows.append(_build_refusal_outcome(context, ladder, ladders.coordinates, problem, survey.times))
                    continue
                rows.append(
                    _publish_list(context, ladders, ranking, events=events, now=now, times=survey.times, end=end)
                )
        has_publishable = bool(find_list_rulesets(survey) or scheduled)
    # leave out lists that another process has published meanwhile
    rows = [row for row in rows if {rejection.code for rejection in row.intake_result.rejected} != {"list-exists"}]
    return DueListsOutcome(
        survey.coordinates,
        context.dry_run,
        tuple(rows),
        failed=tuple(survey.failures),
        has_publishable=has_publishable,
        times=survey.times,
    )


def _publish_list(
    context: WriteContext,
    ladders: Ladders,
    ranking: Ranking,
    *,
    events: list[tuple[str, dict[str, Any]]],
    now: int,
    times: TimeFormat,
    end: int | None = None,
) -> ListOutcome:
    """Append the events that publish a list, in one transaction, and return the outcome.

    Args:
        context: the ledger, policy and output format.
        ladders: the ladders at the coordinates of the list.
        ranking: the rows of the list.
        events: the type and data of each event.
        now: the instant at which the list is published.
        times: the format of times in the outcome.
        end: for a scheduled ladder, the end of the month; the append fails if this month is already published.
    """
    occurred_at = format_instant(now)
    hooks = {} if end is None else {"precondition": partial(refuse_published, ladder=ranking.ladder, end=end)}
    drafts = [{"type": name, "occurred_at": occurred_at, "data": data} for name, data in events]
    result = context.finish(context.propose(drafts, **hooks))
    version = next(version for version in ladders.versions(ranking.ladder) if version.ruleset.name == ranking.ruleset)
    min_games = getattr(version.params, "min_games", 0)
    return ListOutcome(
        ladder=ranking.ladder,
        ruleset=ranking.ruleset,
        at=ladders.coordinates,
        games=ranking.games,
        digest=ranking.digest,
        row_count=len(ranking.rows),
        position=get_head_position(result) if result.appended else None,
        appended=result.appended,
        existing=result.existing,
        dry_run=context.dry_run,
        rejected=build_refusals(result.rejected),
        intake_result=result,
        ranked=sum(row.rank is not None for row in ranking.rows),
        min_games=min_games if any(row.rank is None and row.games < min_games for row in ranking.rows) else 0,
        times=times,
    )


def _build_refusal_outcome(
    context: WriteContext, ladder: str, at: Coordinates, problem: Refused, times: TimeFormat
) -> ListOutcome:
    """Return the outcome of a list that was refused."""
    result = IntakeResult.refused(problem)
    return ListOutcome(
        ladder=ladder,
        ruleset=ABSENT,
        at=at,
        games=ABSENT,
        digest=ABSENT,
        row_count=ABSENT,
        position=ABSENT,
        appended=0,
        existing=0,
        dry_run=context.dry_run,
        rejected=build_refusals(result.rejected),
        intake_result=result,
        times=times,
    )

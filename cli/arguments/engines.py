"""Define --on (the workers), --segments (the storage that they share) and --rule-seconds (the time limit of rules)."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.progress import ReportProgress
from ratings_ledger.ledger.store.locations import redact_password
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.stored.rule_processes import RULE_SECONDS

if TYPE_CHECKING:
    from ratings_ledger.projections.stored.work import WorkAt


on_option = click.option(
    "--on",
    metavar="ENGINE",
    envvar="RATINGS_ENGINE",
    show_envvar=True,
    help="The engine whose workers replay: a Dask scheduler (tls://HOST:PORT), or processes:N on this machine.",
)
segments_option = click.option(
    "--segments",
    metavar="URL",
    envvar="RATINGS_SEGMENTS",
    show_envvar=True,
    help="The folder or object store that the workers share.  [default: the cache]",
)


def workers_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --on and --segments to a command that also works without workers; refuse --segments without --on."""

    @on_option
    @segments_option
    @wraps(command)
    def run_checked(*arguments: Any, on: str | None, segments: str | None, **options: Any) -> Any:
        # RATINGS_SEGMENTS is set for all commands, so only --segments on the command line is an error
        is_explicit = click.get_current_context().get_parameter_source("segments") == ParameterSource.COMMANDLINE
        if is_explicit and on is None:
            raise click.UsageError(
                "--segments works only with --on; add --on, such as --on processes:4, or leave out --segments"
            )
        return command(*arguments, on=on, segments=segments, **options)

    return run_checked


def check_workers(ledger: Ledger, on: str | None, segments: str | None) -> None:
    """Check that the workers and their shared storage can be used, before a command does much work.

    Raises `BadArgument`, `StoreUnavailable`.
    """
    if on is not None:
        from ratings_ledger.projections.cluster.resources import open_cluster

        with open_cluster(ledger, on, segments):
            pass


def choose_work_at(
    ledger: Ledger,
    on: str | None,
    segments: str | None,
    rule_seconds: float,
    report_progress: ReportProgress = lambda stage, numbers: None,
) -> "WorkAt | None":
    """Return the function that lets the workers of an engine do the work, or None if this process does it.

    This process does the work without an engine, and for a log shorter than a segment, which it replays faster.
    Raises `BadArgument`, `StoreUnavailable`.
    """
    if on is None:
        return None
    # only engines need these modules
    from ratings_ledger.projections.cluster import prepared_log
    from ratings_ledger.projections.cluster.cluster_work import create_cluster_work_at

    with ledger.reading() as connection:
        event_count = head(connection).position
    if event_count < prepared_log.SEGMENT_EVENTS:
        check_workers(ledger, on, segments)
        render.note(
            f"note: the log has {render.count(event_count, 'event')}, fewer than a segment of "
            f"{prepared_log.SEGMENT_EVENTS:,}; nothing is sealed, and this process does the work instead of --on "
            f"{render.plain(redact_password(on))}"
        )
        return None
    return create_cluster_work_at(ledger, on, segments, rule_seconds, report_progress)


rule_seconds_option = click.option(
    "--rule-seconds",
    metavar="N",
    type=click.FloatRange(min=0.1),
    default=RULE_SECONDS,
    show_default=True,
    help="Seconds of processor time that a rule from a package may take.",
)

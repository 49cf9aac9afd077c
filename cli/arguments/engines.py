"""--on, --segments and --rule-seconds: whose workers do the work, where they share it, how long a rule may take."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.progress import Tell
from ratings_ledger.ledger.store.locations import redact_password
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.stored.rule_processes import RULE_SECONDS

if TYPE_CHECKING:
    from ratings_ledger.projections.stored.work import WorkAt


on_option = click.option(
    "--on", metavar="ENGINE", envvar="RATINGS_ENGINE", show_envvar=True,
    help="Whose workers replay: a Dask scheduler, tls://HOST:PORT, or processes:N here.",
)  # fmt: skip
segments_option = click.option(
    "--segments", metavar="URL", envvar="RATINGS_SEGMENTS", show_envvar=True,
    help="The folder or object store of what workers share.  [default: the cache]",
)  # fmt: skip


def workers_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add both to a command that works without them, too; a place is refused where there are no workers to use it."""

    @on_option
    @segments_option
    @wraps(command)
    def checked(*arguments: Any, on: str | None, segments: str | None, **options: Any) -> Any:
        # the environment speaks to all commands
        asked = click.get_current_context().get_parameter_source("segments") == ParameterSource.COMMANDLINE
        if asked and on is None:
            raise click.UsageError("--segments is for workers: it needs --on, such as --on processes:4")
        return command(*arguments, on=on, segments=segments, **options)

    return checked


def refuse_unfit(ledger: Ledger, on: str | None, segments: str | None) -> None:
    """Raises what workers and their place will be refused with, for a command that has much to do before it needs them:
    `BadArgument`, `StoreUnavailable`."""
    if on is not None:
        from ratings_ledger.projections.cluster.coordinating import cluster_for

        with cluster_for(ledger, on, segments):
            pass


def work_elsewhere(
    ledger: Ledger, on: str | None, segments: str | None, rule_seconds: float,
    tell: Tell = lambda what, numbers: None,
) -> "WorkAt | None":  # fmt: skip
    """Return the work as the workers of an engine do it; None without an engine, and for a log without a whole segment,
    which is replayed here in a fraction of the time.

    Raises what `refuse_unfit` raises.
    """
    if on is None:
        return None
    from ratings_ledger.projections.cluster import coordinating  # only here: nobody else needs an engine
    from ratings_ledger.projections.cluster.coordinating import work_on_at

    with ledger.reading() as connection:
        events = head(connection).position
    if events < coordinating.SEGMENT_EVENTS:
        refuse_unfit(ledger, on, segments)
        render.note(
            f"note: {render.count(events, 'event')} are fewer than a segment of {coordinating.SEGMENT_EVENTS:,}: "
            f"nothing is sealed, and the work is done here instead of --on {render.plain(redact_password(on))}"
        )
        return None
    return work_on_at(ledger, on, segments, rule_seconds, tell)


rule_seconds_option = click.option(
    "--rule-seconds", metavar="N", type=click.FloatRange(min=0.1), default=RULE_SECONDS, show_default=True,
    help="Processor time that a rule from a package may take.",
)  # fmt: skip

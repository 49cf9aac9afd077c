"""--on and --segments: whose workers do the work, and where what they share is kept."""

from typing import TYPE_CHECKING

import click

from cli.output.progress import Tell
from ledger.store.opening import Ledger

if TYPE_CHECKING:
    from projections.stored.work import WorkAt

on_option = click.option(
    "--on", metavar="ENGINE", envvar="RATINGS_ENGINE", show_envvar=True,
    help="Whose workers replay: a Dask scheduler, tls://HOST:PORT, or processes:N here.",
)  # fmt: skip
segments_option = click.option(
    "--segments", metavar="URL", envvar="RATINGS_SEGMENTS", show_envvar=True,
    help="The folder or object store of what workers share.  [default: the cache]",
)  # fmt: skip


def work_elsewhere(
    ledger: Ledger, on: str | None, segments: str | None, rule_seconds: float,
    tell: Tell = lambda what, numbers: None,
) -> "WorkAt | None":  # fmt: skip
    """The work as the workers of an engine do it, if there is one to do it `on`."""
    if on is None:
        return None
    from projections.cluster.work import work_on_at  # only here: nobody else needs an engine

    return work_on_at(ledger, on, segments, rule_seconds, tell)

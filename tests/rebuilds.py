"""Rebuild stored standings as a program does, keep rebuilds out, and act in the middle of one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.store.opening import connect, open_ledger
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.stored import changed_ladders, generations, rebuilding, sql_history, work
from ratings_ledger.projections.stored.rebuild_lock import hold_rebuild_lock
from ratings_ledger.projections.stored.rebuild_plan import RebuildOptions
from ratings_ledger.projections.stored.standings_checks import verify_standings

STAGES = {
    "digest the program": (changed_ladders, "program_digest"),
    "copy ladder rows": (generations, "copy_ladder_rows"),
    "insert rows": (generations, "insert_rows"),
    "write games": (sql_history, "write_games"),
    "find a difference of changes": (sql_history, "find_change_difference"),
    "list finished generations": (generations, "_list_finished"),
    "replay": (Ladders, "rank_stream"),
    "isolate rules": (work, "isolate"),
    "promote": (generations, "promote"),
    "sweep": (generations, "sweep_generations"),
}


def rebuild_standings(url: str, *requested: str, **options: Any) -> rebuilding.RebuildResult:
    """Rebuild the standings of some ladders, or of all, with members of `RebuildOptions`.

    Unlike the command, this prints nothing, raises every error, and may run in several threads at once.
    """
    return rebuilding.rebuild(open_ledger(url), clock.now, requested, RebuildOptions(**options))


def list_differences(url: str) -> list[str]:
    """Return the messages of `verify` about the stored standings alone."""
    with open_ledger(url).reading() as connection:
        return [finding.message for finding in verify_standings(connection)]


@contextmanager
def keep_rebuilds_out(url: str) -> Iterator[None]:
    """Hold the lock of rebuilds, as a running rebuild does; the store may have any schema."""
    with hold_rebuild_lock(connect(url)):
        yield


def replace_stage(patch: pytest.MonkeyPatch, stage: str, act: Callable[..., object]) -> None:
    """Call `act` in place of a stage of rebuilds or of `verify`, with the function of the stage and its arguments."""
    owner, name = STAGES[stage]
    original = getattr(owner, name)

    def act_on_stage(*arguments: Any, **options: Any) -> object:
        return act(original, *arguments, **options)

    patch.setattr(owner, name, act_on_stage)


def act_before_promotion(patch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Call `act` once, when a rebuild has written everything and is about to promote it."""
    calls: list[int] = []

    def act_and_promote(promote: Callable[..., None], *arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            act()
        promote(*arguments)

    replace_stage(patch, "promote", act_and_promote)

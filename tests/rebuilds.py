"""Keep rebuilds out, and act in the middle of one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ratings_ledger.ledger.store.opening import connect
from ratings_ledger.projections.stored import generations
from ratings_ledger.projections.stored.rebuild_lock import hold_rebuild_lock


@contextmanager
def keep_rebuilds_out(url: str) -> Iterator[None]:
    """Hold the lock of rebuilds, as a running rebuild does; the store may have any schema."""
    with hold_rebuild_lock(connect(url)):
        yield


def act_before_promotion(patch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Call `act` once, when a rebuild has written everything and is about to promote it."""
    promote, calls = generations.promote, []

    def act_and_promote(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            act()
        promote(*arguments)

    patch.setattr(generations, "promote", act_and_promote)

"""Somebody else acts between two steps of a command: each test names the step, and what happens before it."""

from collections.abc import Callable
from typing import Any

import pytest

from ratings_ledger import Proposal
from ratings_ledger.cli.arguments.writing import WriteContext
from ratings_ledger.cli.commands import report
from ratings_ledger.ledger.intake import intake

STEPS: dict[str, tuple[Any, str]] = {
    "proposed": (WriteContext, "propose"), "committed": (Proposal, "append"), "appended": (intake, "append"),
    "reported": (report, "build_decisions_page"),
}  # fmt: skip


def before_each(patch: pytest.MonkeyPatch, step: str, act: Callable[[], object]) -> None:
    """Let something happen each time before a step: a write is proposed, committed, or appended to the log, or a report
    made."""
    place, name = STEPS[step]
    done = getattr(place, name)

    def late(*arguments: Any, **options: Any) -> Any:
        act()
        return done(*arguments, **options)

    patch.setattr(place, name, late)


def before_next(step: str, act: Callable[[], object]) -> None:
    """Let something happen before a step when it is next taken, and only then."""
    patch = pytest.MonkeyPatch()

    def once() -> None:
        patch.undo()
        act()

    before_each(patch, step, once)

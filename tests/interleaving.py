"""Let another process act between two steps of a command: a test names the step and the act before it."""

from collections.abc import Callable
from typing import Any

import pytest

from ratings_ledger import Proposal
from ratings_ledger.cli.arguments.writing import WriteContext
from ratings_ledger.cli.commands import report
from ratings_ledger.ledger.intake import intake

# the owner and the name of the function that a step calls
STEPS: dict[str, tuple[Any, str]] = {
    "proposed": (WriteContext, "propose"),
    "committed": (Proposal, "append"),
    "appended": (intake, "append"),
    "reported": (report, "build_decisions_page"),
}


def act_before_each(patch: pytest.MonkeyPatch, step: str, act: Callable[[], object]) -> None:
    """Call `act` before each run of a step of `STEPS`."""
    owner, name = STEPS[step]
    run_step = getattr(owner, name)

    def act_and_run(*arguments: Any, **options: Any) -> Any:
        act()
        return run_step(*arguments, **options)

    patch.setattr(owner, name, act_and_run)


def act_before_next(step: str, act: Callable[[], object]) -> None:
    """Call `act` before the next run of a step, and only then."""
    patch = pytest.MonkeyPatch()

    def act_once() -> None:
        patch.undo()
        act()

    act_before_each(patch, step, act_once)

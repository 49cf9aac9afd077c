"""Report the progress of a long command: a bar on a terminal, lines, or JSON. All on stderr; results go to stdout.

tell("building", {"ladders_done": 400, "ladders": 10_000})
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ratings_ledger.cli.output import render
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import format_instant

if TYPE_CHECKING:
    from rich.progress import Progress

# the time between two lines about the same step, and between two drawings of a bar
LINE_SECONDS, PICTURE_SECONDS = 10.0, 0.1

ReportProgress = Callable[[str, dict[str, Any]], None]


class ProgressLog:
    """A log on stderr, `plain` or `json`: steps, the seconds since the start, and some numbers."""

    def __init__(self, output_format: str) -> None:
        self.output_format = output_format
        self.started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.started

    def write(self, what: str, numbers: dict[str, Any]) -> None:
        """Write a line."""
        render.note(self.line(what, numbers))

    def line(self, what: str, numbers: dict[str, Any]) -> str:
        """Return a step as a JSON object, or in words."""
        if self.output_format == "json":
            moment = format_instant(clock.now())
            step = {"time": moment, "event": what, "seconds": round(self.seconds, 3), **numbers}
            return render.to_json(step)
        parts = (f"{name.replace('_', ' ')} {value:,}" for name, value in numbers.items() if type(value) is int)
        return f"{self.seconds:8.1f} s  {', '.join([what, *parts])}"


@contextmanager
def progress(log: ProgressLog | None) -> Iterator[ReportProgress]:
    """Provide a function that reports a step and its numbers: as a line of the log, or on a bar if stderr is a
    terminal. The number `ladders`, or `tasks`, is the total, `ladders_done` counts those that are done.
    """
    if log is not None:
        yield _limit_rate(log.write)
    elif sys.stderr.isatty():
        with _show_bar() as tell:
            yield tell
    else:
        yield lambda what, numbers: None


def _limit_rate(write: ReportProgress) -> ReportProgress:
    """Report the start and end of each step, and at most one line per interval in between."""
    last, when = "", 0.0

    def tell(what: str, numbers: dict[str, Any]) -> None:
        nonlocal last, when
        now = time.monotonic()
        ended = any(unit in numbers and numbers[unit] == numbers.get(f"{unit}_done") for unit in ("ladders", "tasks"))
        if what != last or ended or now - when >= LINE_SECONDS:
            last, when = what, now
            write(what, numbers)

    return tell


def create_bar(by_itself: bool = True) -> "Progress":
    """Return a bar on standard error that vanishes at the end; a thread draws it, or only calls do."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(20),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=by_itself,
    )


def _describe_step(what: str, numbers: dict[str, Any]) -> str:
    """Return a step in words, with the numbers of done and retried tasks of an engine."""
    if "tasks" not in numbers:
        return what
    again = f", {numbers['retried']:,} tried again" if numbers.get("retried") else ""
    return f"{what} {numbers['tasks_done']:,} of {numbers['tasks']:,}{again}"


@contextmanager
def _show_bar() -> Iterator[ReportProgress]:
    # not drawn by a thread, because processes are forked in the meantime
    with create_bar(by_itself=False) as bar:
        task = bar.add_task("", total=None)
        last, when = "", 0.0

        def tell(what: str, numbers: dict[str, Any]) -> None:
            nonlocal last, when
            now = time.monotonic()
            unit = "tasks" if "tasks" in numbers else "ladders"
            done = numbers.get(f"{unit}_done", 0)
            bar.update(task, description=_describe_step(what, numbers), total=numbers.get(unit), completed=done)
            if what != last or now - when >= PICTURE_SECONDS:
                last, when = what, now
                bar.refresh()

        yield tell

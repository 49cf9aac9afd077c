"""Report the progress of a long command on stderr: as a bar on a terminal, as lines, or as JSON.

with show_progress(log) as report_progress:
    report_progress("building", {"ladders_done": 400, "ladders": 10_000})
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

# the minimum time between two lines about the same step, and between two updates of a bar
LINE_INTERVAL_SECONDS, BAR_INTERVAL_SECONDS = 10.0, 0.1

ReportProgress = Callable[[str, dict[str, Any]], None]


class ProgressLog:
    """A log on stderr, `plain` or `json`: each line has a step, the seconds since the start, and the step's numbers."""

    def __init__(self, output_format: str) -> None:
        self.output_format = output_format
        self.started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.started

    def write(self, step: str, numbers: dict[str, Any]) -> None:
        """Write a line."""
        render.note(self.format_line(step, numbers))

    def format_line(self, step: str, numbers: dict[str, Any]) -> str:
        """Return a step as a JSON object, or as text."""
        if self.output_format == "json":
            time_text = format_instant(clock.now())
            return render.to_json({"time": time_text, "event": step, "seconds": round(self.seconds, 3), **numbers})
        parts = (f"{name.replace('_', ' ')} {value:,}" for name, value in numbers.items() if type(value) is int)
        return f"{self.seconds:8.1f} s  {', '.join([step, *parts])}"


@contextmanager
def show_progress(log: ProgressLog | None) -> Iterator[ReportProgress]:
    """Provide a function that reports a step and its numbers in the log, or else on a bar if stderr is a terminal.

    With neither, the function does nothing. The number `ladders` or `tasks` is the total, and `ladders_done` or
    `tasks_done` the completed part.
    """
    if log is not None:
        yield _limit_rate(log.write)
    elif sys.stderr.isatty():
        with _show_bar() as report:
            yield report
    else:
        yield lambda step, numbers: None


def _limit_rate(write: ReportProgress) -> ReportProgress:
    """Return a function that writes each step at its start and when it is complete, else at most once per interval."""
    last_step, last_time = "", 0.0

    def report(step: str, numbers: dict[str, Any]) -> None:
        nonlocal last_step, last_time
        now = time.monotonic()
        is_complete = any(
            unit in numbers and numbers[unit] == numbers.get(f"{unit}_done") for unit in ("ladders", "tasks")
        )
        if step != last_step or is_complete or now - last_time >= LINE_INTERVAL_SECONDS:
            last_step, last_time = step, now
            write(step, numbers)

    return report


def create_bar(auto_refresh: bool = True) -> "Progress":
    """Return a bar on stderr that vanishes at the end. With `auto_refresh` a thread draws the bar."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(20),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=auto_refresh,
    )


def _describe_step(step: str, numbers: dict[str, Any]) -> str:
    """Describe a step with the numbers of completed and retried tasks."""
    if "tasks" not in numbers:
        return step
    retried_text = f", {numbers['retried']:,} tried again" if numbers.get("retried") else ""
    return f"{step} {numbers['tasks_done']:,} of {numbers['tasks']:,}{retried_text}"


@contextmanager
def _show_bar() -> Iterator[ReportProgress]:
    # without a thread that draws the bar, because this process is forked while the bar is shown
    with create_bar(auto_refresh=False) as bar:
        task = bar.add_task("", total=None)
        last_step, last_time = "", 0.0

        def report(step: str, numbers: dict[str, Any]) -> None:
            nonlocal last_step, last_time
            now = time.monotonic()
            unit = "tasks" if "tasks" in numbers else "ladders"
            done_count = numbers.get(f"{unit}_done", 0)
            bar.update(task, description=_describe_step(step, numbers), total=numbers.get(unit), completed=done_count)
            if step != last_step or now - last_time >= BAR_INTERVAL_SECONDS:
                last_step, last_time = step, now
                bar.refresh()

        yield report

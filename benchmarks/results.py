"""Results of measurements, and the arithmetic on them. All functions are pure.

>>> ours, theirs = Series("ours", "games", 100, [Run(2.0, 10), Run(1.0, 10)]), Series("x", "games", 100, [Run(3.0, 10)])
>>> seconds(ours), rate(ours), times_as_fast(ours, theirs)
(1.5, 66.66666666666667, 2.0)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple


class Run(NamedTuple):
    """One measurement in its own process: its time, its peak memory, and details such as counts and digests."""

    seconds: float
    peak_bytes: int
    details: dict[str, Any] = {}


class Series(NamedTuple):
    """Repeated runs of the same call; `work` is the number of units, such as games, that one run processes."""

    label: str
    unit: str
    work: int
    runs: Sequence[Run]


def build_checked_series(label: str, unit: str, work: int, runs: Sequence[Run]) -> Series:
    """Return a series of runs. Raises `AssertionError` if a run reports a count other than `work`."""
    for run in runs:
        assert run.details.get("count", work) == work, f"{label}: {run.details['count']:,} {unit}, not {work:,}"
    return Series(label, unit, work, runs)


class Bar(NamedTuple):
    """What a line has to reach; `kind` is a key of `BARS`."""

    kind: str
    value: float


@dataclass(frozen=True)
class Line:
    """A line of the table: its subject, our result, the baseline's result, and the bar, if any."""

    subject: str
    ours: Series
    baseline: Series | None = None
    bar: Bar | None = None
    note: str = ""


class Skipped(NamedTuple):
    """A line that could not be measured, and the reason."""

    subject: str
    reason: str


def seconds(series: Series) -> float:
    """Return the median time of the runs, in seconds."""
    return median(run.seconds for run in series.runs)


def spread(series: Series) -> float:
    """Return the relative range of the times: (longest - shortest) / median."""
    times = [run.seconds for run in series.runs]
    return (max(times) - min(times)) / median(times)


def rate(series: Series) -> float:
    """Return the units of work per second."""
    return series.work / seconds(series)


def peak_bytes(series: Series) -> int:
    """Return the highest peak memory of the runs, in bytes."""
    return max(run.peak_bytes for run in series.runs)


def times_as_fast(ours: Series, baseline: Series) -> float:
    """Return our rate divided by the baseline's: 2.0 is twice as fast."""
    return rate(ours) / rate(baseline)


def time_ratio(ours: Series, baseline: Series) -> float:
    """Return our time divided by the baseline's, regardless of the amount of work."""
    return seconds(ours) / seconds(baseline)


def _get_baseline(line: Line) -> Series:
    assert line.baseline is not None, f"{line.subject}: a ratio needs a baseline"
    return line.baseline


class BarKind(NamedTuple):
    """A kind of bar: the number to compare with it, its text, and whether more is better."""

    compute_value: Callable[[Line], float]
    text: str
    is_more_better: bool


BARS = {
    "times as fast": BarKind(lambda line: times_as_fast(line.ours, _get_baseline(line)), "at least {:g} x", True),
    "times the time": BarKind(
        lambda line: time_ratio(line.ours, _get_baseline(line)), "at most {:g} x the time", False
    ),
    "a second": BarKind(lambda line: rate(line.ours), "at least {:,.0f} a second", True),
    "seconds": BarKind(lambda line: seconds(line.ours), "under {:g} s", False),
    "gigabytes": BarKind(lambda line: peak_bytes(line.ours) / 1e9, "at most {:g} GB", False),
}


def find_compared_value(line: Line) -> float | None:
    """Return the number to compare with the line's bar; None without a bar."""
    return None if line.bar is None else BARS[line.bar.kind].compute_value(line)


def is_met(line: Line) -> bool | None:
    """Tell whether the bar is met; None without a bar."""
    if line.bar is None:
        return None
    kind = BARS[line.bar.kind]
    value = kind.compute_value(line)
    return value >= line.bar.value if kind.is_more_better else value <= line.bar.value

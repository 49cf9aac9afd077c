"""Format lines as a Markdown table that is also readable in a terminal. All functions are pure."""

from collections.abc import Iterable, Sequence

from benchmarks.results import (
    BARS,
    Line,
    Series,
    Skipped,
    find_compared_value,
    is_met,
    peak_bytes,
    rate,
    seconds,
    spread,
)

HEADINGS = ("what", "ours", "other", "ours : other", "bar", "met")


def format_table(lines: Iterable[Line | Skipped]) -> str:
    """Return the table of the lines."""
    rows = [
        _format_line(line) if isinstance(line, Line) else (line.subject, f"skipped: {line.reason}", "", "", "", "")
        for line in lines
    ]
    return format_markdown(HEADINGS, rows)


def format_markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    head = [f"| {' | '.join(headings)} |", f"|{'|'.join('---' for _ in headings)}|"]
    return "\n".join([*head, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _format_line(line: Line) -> tuple[str, ...]:
    met = {None: "", True: "yes", False: "**no**"}[is_met(line)]
    ours = format_series(line.ours) + (f" ({line.note})" if line.note else "")
    baseline = "" if line.baseline is None else format_series(line.baseline)
    return (line.subject, ours, baseline, _format_ratio(line), _format_bar(line), met)


def format_series(series: Series) -> str:
    """Format a series, such as `rebuild: 4.21 s ±3%, 237,530 games/s, 410 MB`."""
    pace = f", {format_rate(rate(series))} {series.unit}/s" if series.work > 1 else ""
    around = f" ±{50 * spread(series):.0f}%" if len(series.runs) > 1 else ""
    return f"{series.label}: {format_time(seconds(series))}{around}{pace}, {peak_bytes(series) / 1e6:,.0f} MB"


def format_time(value: float) -> str:
    """Format a time in seconds, or in milliseconds if it is short."""
    return f"{value:.2f} s" if value >= 1 else f"{value * 1_000:.3g} ms"


def format_rate(value: float) -> str:
    """Format a rate with three significant digits, such as 238,000."""
    digits = len(str(int(abs(value))))
    return f"{round(value, 3 - digits):,.0f}" if value >= 100 else f"{value:.3g}"


def _format_ratio(line: Line) -> str:
    if line.baseline is None:
        return ""
    by_time = line.bar is not None and line.bar.kind == "times the time"
    ours, baseline = (
        (1 / seconds(line.ours), 1 / seconds(line.baseline)) if by_time else (rate(line.ours), rate(line.baseline))
    )
    return f"{baseline / ours:.2f} x the time" if by_time else f"{ours / baseline:.3g} x"


def _format_bar(line: Line) -> str:
    if line.bar is None:
        return ""
    value = find_compared_value(line)
    size = f" ({value:.3g} GB)" if line.bar.kind == "gigabytes" else ""
    return BARS[line.bar.kind].text.format(line.bar.value) + size

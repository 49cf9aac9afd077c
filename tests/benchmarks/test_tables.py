"""The arithmetic over measurements, and how they are shown and kept."""

import doctest
import json
from pathlib import Path

import pytest

from benchmarks import report, results
from benchmarks.results import Bar, Line, Run, Series, Skipped, is_met, peak_bytes, rate, seconds, spread
from benchmarks.tables import format_rate, format_series, format_table, format_time


def series(*times: float, label: str = "ours", work: int = 1_000, peak: int = 50_000_000) -> Series:
    return Series(label, "games", work, [Run(time, peak) for time in times])


def test_examples_of_results_hold() -> None:
    """The examples in the docstrings of the results module hold."""
    assert doctest.testmod(results).failed == 0


def test_median_run_counts() -> None:
    """The median run gives the time and the rate; memory is the highest peak of all runs."""
    measured = series(4.0, 1.0, 2.0)

    assert (seconds(measured), rate(measured), spread(measured)) == (2.0, 500.0, 1.5)
    assert peak_bytes(Series("x", "games", 1, [Run(1.0, 5), Run(1.0, 7)])) == 7


@pytest.mark.parametrize(
    ("bar", "met"),
    [
        (Bar("times as fast", 2), True),
        (Bar("times as fast", 2.1), False),
        (Bar("times the time", 0.5), True),
        (Bar("times the time", 0.4), False),
        (Bar("a second", 500), True),
        (Bar("a second", 501), False),
        (Bar("seconds", 2), True),
        (Bar("seconds", 1.9), False),
        (Bar("gigabytes", 0.05), True),
        (Bar("gigabytes", 0.04), False),
    ],
)
def test_bar_is_met_or_missed(bar: Bar, met: bool) -> None:
    """Two seconds, compared with a baseline of four, meet or miss each kind of bar."""
    assert is_met(Line("x", series(2.0), series(4.0), bar)) is met


def test_rates_count_for_unequal_work() -> None:
    """Against a baseline that did less work, rates are compared rather than times."""
    line = Line("x", series(2.0), series(2.0, work=100), Bar("times as fast", 10))

    assert is_met(line) is True


def test_no_bar_means_no_verdict() -> None:
    """A line without a bar is neither met nor missed."""
    assert is_met(Line("x", series(2.0))) is None


def test_numbers_are_shown_short() -> None:
    """Times, figures and whole measurements are shown with few digits and fitting units."""
    assert [format_time(value) for value in (0.00123, 0.5, 1.0, 61.239)] == ["1.23 ms", "500 ms", "1.00 s", "61.24 s"]
    assert [format_rate(value) for value in (1.2345, 12.345, 123.0, 237_530.0)] == ["1.23", "12.3", "123", "238,000"]
    assert format_series(series(1.9, 2.0, 2.1)) == "ours: 2.00 s ±5%, 500 games/s, 50 MB"


def test_table_shows_met_and_skipped_bars() -> None:
    """The table says which bars were met or missed and what was skipped."""
    lines = [
        Line("rebuild", series(2.0), series(4.0, label="other"), Bar("times as fast", 5), note="a note"),
        Line("start", series(2.0, work=1), series(1.0, work=1), Bar("times the time", 2.5)),
        Line("memory", series(2.0), bar=Bar("gigabytes", 1.5)),
        Skipped("other", "it is not installed"),
    ]

    assert format_table(lines) == (
        "| what | ours | other | ours : other | bar | met |\n"
        "|---|---|---|---|---|---|\n"
        "| rebuild | ours: 2.00 s, 500 games/s, 50 MB (a note) | other: 4.00 s, 250 games/s, 50 MB | 2 x "
        "| at least 5 x | **no** |\n"
        "| start | ours: 2.00 s, 50 MB | ours: 1.00 s, 50 MB | 2.00 x the time | at most 2.5 x the time | yes |\n"
        "| memory | ours: 2.00 s, 500 games/s, 50 MB |  |  | at most 1.5 GB (0.05 GB) | yes |\n"
        "| other | skipped: it is not installed |  |  |  |  |\n"
    )


def test_measured_rows_survive_json() -> None:
    """Measured rows that are stored as JSON are read back as the same lines."""
    lines = [
        Line("a", series(2.0, 3.0), series(4.0), Bar("times as fast", 5), "a note"),
        Line("b", series(1.0)),
        Skipped("c", "no"),
    ]

    row = json.loads(json.dumps(report.build_row(lines)))

    assert [report.parse_line(line) for line in row["lines"]] == lines
    assert row["machine"]["cores"] >= 1


def test_rows_keep_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows measured at different times each keep their place on the page and in the results file."""
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(report, "PAGE", tmp_path / "page.md")
    (tmp_path / "page.md").write_text(f"# Page\n\n{report.BEGIN}old\n{report.END}\n\nThe end.\n", encoding="utf-8")
    order = ["first", "second"]

    report.write_rows({"second": report.build_row([Line("b", series(1.0))])}, order)
    report.write_rows({"first": report.build_row([Line("a", series(1.0))])}, order)
    report.write_rows({"second": report.build_row([Line("c", series(1.0))])}, order)

    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith(("#", "| a", "| b", "| c", "The end", "old"))] == [
        "# Page",
        "### first",
        "| a | ours: 1.00 s, 1,000 games/s, 50 MB |  |  |  |  |",
        "### second",
        "| c | ours: 1.00 s, 1,000 games/s, 50 MB |  |  |  |  |",
        "The end.",
    ]
    assert list(json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))) == order

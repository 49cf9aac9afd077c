"""Draw charts as SVG: points over time as step lines, sparklines for tables, and rating distributions.

The functions are pure: the same arguments give the same bytes. Positions are whole tenths of a unit of the viewBox,
computed from exact numbers. A chart of one game on a page:

    points = [Point(0, Fraction(1000), "start"), Point(1, Fraction(1012), title="wl-01", link="wl-01.html")]
    draw_steps([Series("mira", points)], title="Points of mira", description="1,012 after one game.", prefix="points")

**A chart is drawn twice**, as two `<svg>`; the style shows one of them. Text in SVG shrinks with its drawing: text that
fits a desktop is five pixels high on a phone, and the labels that fit depend on the width. So each drawing has its own
font size and its own labels, without a script; `standalone` has only the wide one.

**The picture and its dots are separate.** Screen readers do not enter an element with `role="img"`, so it must not have
links. The dots lie over the picture, for pointers only: up to 100 tab stops would block the way to the table beside it,
which has the same links.

Colours come from the classes of `STYLE`, which a page embeds once. Text is escaped, and truncated if it does not fit.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import partial
from itertools import islice, pairwise
from math import ceil, floor, isqrt
from typing import Literal, NamedTuple

from ratings_ledger.ledger.rejections import count
from ratings_ledger.web.axes import (
    DAY,
    Number,
    date_rows,
    game_rows,
    range_of,
    rank_ticks,
    round_step,
    to_number,
    value_labels,
    value_ticks,
    whole_numbers,
)
from ratings_ledger.web.svg import band_path, escape_text, step_path, tenths, text_width, truncate

Kind = Literal["start", "game", "change", "published"]

_LEGEND_TEXTS: dict[Kind, str] = {"published": "published", "change": "change without a game"}
SERIES_MAX = 6  # lines that colour, dash and dots can distinguish
_MARKS_MAX = 60
_BINS_MAX = 16
STYLE = """
.chart{--chart-paper:#fcfbf8;--chart-ink:#1d1c1a;--chart-soft:#6a665e;--chart-line:#e5e1d8;--chart-1:#1b6ca8;--chart-2:#b2530b;
--chart-3:#7a3f98;--chart-4:#2c7a4b;--chart-5:#a8195c;--chart-6:#5c5a55}
@media(prefers-color-scheme:dark){.chart{--chart-paper:#171614;--chart-ink:#ece8e0;--chart-soft:#a19b90;--chart-line:#35322d;
--chart-1:#74b3e8;--chart-2:#e99a57;--chart-3:#c79be0;--chart-4:#7fc79a;--chart-5:#f08bb4;--chart-6:#b5b0a6}}
@media print{.chart{--chart-paper:#fff;--chart-ink:#000}}
.chart svg{display:block;width:100%;height:auto;overflow:visible}.chart .chart-narrow{display:none;max-width:30rem}
@media screen and (max-width:44rem){.chart .chart-wide{display:none}.chart .chart-narrow{display:block}}
.chart text{fill:var(--chart-soft);font-size:11px;font-variant-numeric:tabular-nums}
.chart .chart-narrow text{font-size:13px}
svg.chart{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
.chart .heading{fill:var(--chart-ink);font-size:15px;font-weight:600}.chart .paper{fill:var(--chart-paper)}
.chart .grid{fill:none;stroke:var(--chart-line)}.chart .mark{fill:none;stroke:var(--chart-ink);stroke-dasharray:3 3}
.chart .band{fill:currentColor;opacity:.18}
.chart .step{fill:none;stroke:currentColor;stroke-width:1.75;stroke-linejoin:round}
.chart .s1{color:var(--chart-1)}.chart .s2{color:var(--chart-2)}.chart .s3{color:var(--chart-3)}
.chart .s4{color:var(--chart-4)}.chart .s5{color:var(--chart-5)}.chart .s6{color:var(--chart-6)}
.chart .s2 .step{stroke-dasharray:6 3}.chart .s3 .step{stroke-dasharray:2 3}.chart .s4 .step{stroke-dasharray:9 3 2 3}
.chart .s5 .step{stroke-dasharray:12 4}.chart .s6 .step{stroke-dasharray:4 2 1 2 1 2}
.chart .dot{fill:currentColor;stroke:transparent;stroke-width:8}.chart a:hover .dot{stroke:currentColor;stroke-width:3}
.chart .s5 .dot,.chart .s6 .dot{fill:var(--chart-paper);stroke:currentColor;stroke-width:1.5}
.chart .tick{fill:none;stroke:var(--chart-ink);stroke-width:2}
.chart .published{fill:var(--chart-paper);stroke:var(--chart-ink);stroke-width:1.5}
.chart .bar{fill:var(--chart-soft);opacity:.45}.chart .bar.here{fill:var(--chart-1);opacity:1}
.spark{width:7rem;height:1.4rem;display:inline-block;vertical-align:middle;color:#6a665e}
.spark path{fill:none;stroke:currentColor;stroke-width:1.25}.spark circle{fill:currentColor}
@media(prefers-color-scheme:dark){.spark{color:#a19b90}}
"""


class Point(NamedTuple):
    """The value of a series from `x` on, which is a time in UTC or the number of a game.

    A `game` is drawn as a dot with its title and link; a `change` without a game as a tick; a `start` has no mark. A
    `published` value is drawn as a diamond that the line does not touch. Titles and links may be functions, which are
    called only for points with a mark. `spread` is the deviation of the value, drawn as a band if there is one series.
    """

    x: datetime | int
    value: Fraction
    kind: Kind = "game"
    title: str | Callable[[], str] = ""
    link: str | Callable[[], str] = ""
    spread: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart: its label and its points, in order."""

    label: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line through a chart with a label at its top, such as for a game that was corrected later."""

    x: datetime | int | Fraction
    label: str
    title: str = ""


# many options, but all except the series are keywords
def draw_steps(
    series: Sequence[Series],
    *,
    title: str,
    description: str,
    prefix: str,
    marks: Sequence[Mark] = (),
    span: tuple[datetime, datetime] | tuple[int, int] | None = None,
    ranks: bool = False,
    standalone: bool = False,
) -> str:
    """Draw series as step lines that extend to the right edge of the chart.

    The axis covers all x values and `span`. With `ranks`, values are whole numbers, 1 on top. Ids begin with `prefix`;
    `standalone` returns a complete SVG file instead of a part of a page.

    Raises `ValueError` for more than `SERIES_MAX` series, times mixed with numbers of games, points out of order, a
    rank that is not whole, or a prefix that is not an id; `TypeError` for a time without a zone.
    """
    points = [point for each in series for point in each.points]
    spreads = [point.spread or 0 for point in points] if len(series) == 1 else []
    shared, heights = whole_numbers([*(point.value for point in points), *spreads])
    remaining = iter(heights)
    lines = [
        _Line([to_number(point.x) for point in each.points], [*islice(remaining, len(each.points))], each.points)
        for each in series
    ]
    spread = [*remaining] if any(spreads) else []
    _check(lines, marks, span, ranks)
    xs = [x for line in lines for x in line.xs]
    is_dated = any(isinstance(point.x, datetime) for line in lines for point in line.points[:1])
    verticals = [(to_number(mark.x), mark) for mark in marks]
    if xs:
        xs += [*(x for x, _ in verticals), *(to_number(x) for x in span or ())]
    chart = _StepChart(
        labels=[each.label for each in series],
        lines=lines,
        denominator=shared,
        marks=verticals,
        x_range=range_of(xs, DAY if is_dated else 1),
        is_dated=is_dated,
        is_ranks=ranks,
        spread=spread,
    )
    return _draw_figure(
        partial(_draw_step_chart, chart) if xs else None,
        title=title,
        description=description,
        prefix=prefix,
        standalone=standalone,
    )


def draw_spark(values: Sequence[Number]) -> str:
    """Draw a sparkline for a table row. It is hidden from screen readers, because the table has the numbers."""
    shapes = ""
    if values:
        shared, heights = whole_numbers(values)
        frame = _Frame(20, 1080, 30, 190, *range_of([0, len(values) - 1]), *range_of(heights, shared))
        places = [*zip(frame.place_x(range(len(values))), frame.place_y(heights), strict=True)]
        x, y = places[-1]
        shapes = f'<path d="{step_path(places, x)}"/><circle cx="{tenths(x)}" cy="{tenths(y)}" r="2"/>'
    return f'<svg class="spark" viewBox="0 0 112 22" aria-hidden="true" focusable="false">{shapes}</svg>'


def draw_distribution(
    values: Sequence[Fraction],
    *,
    title: str,
    description: str,
    prefix: str,
    here: Mark | None = None,
    standalone: bool = False,
) -> str:
    """Draw a histogram of points, with fewer bars for fewer values.

    `here` marks one player by their points; the other arguments are those of `draw_steps`. Raises `ValueError` for a
    prefix that is not an id.
    """
    low, high = range_of([*values, *([to_number(here.x)] if here and values else [])])
    width = round_step(high - low, min(_BINS_MAX, 3 + isqrt(4 * len(values))))
    first = floor(low / width)
    bins = [0] * (floor(high / width) - first + 1)
    for value in values:
        bins[floor(value / width) - first] += 1

    def draw(paper: _Paper) -> _Drawing:
        return _draw_bars(paper, bins, first, width, here)

    return _draw_figure(
        draw if values else None, title=title, description=description, prefix=prefix, standalone=standalone
    )


@dataclass(frozen=True, slots=True)
class _Paper:
    """The format of a drawing: the width, the height between the axes and the font size, in units; and the dots."""

    name: str
    width: int
    height: int
    text: int
    dots: int


@dataclass(frozen=True, slots=True)
class _Drawing:
    """A drawing: its picture and dots, its height in units, and whether dots were left out."""

    picture: str
    dots: str
    height: int
    is_thinned: bool = False


@dataclass(frozen=True, slots=True)
class _Line:
    """A series to draw: the numbers of its points, and the escaped titles and links of those with marks."""

    xs: Sequence[Number]
    heights: Sequence[int]
    points: Sequence[Point]
    _captions: dict[int, tuple[str, str]] = field(default_factory=dict)

    def caption(self, index: int) -> tuple[str, str]:
        """Return the title and the link of a point, which both drawings share."""
        if index not in self._captions:
            point = self.points[index]
            title, link = (text() if callable(text) else text for text in (point.title, point.link))
            self._captions[index] = escape_text(truncate(title, 20_000, 10)), escape_text(link)
        return self._captions[index]


@dataclass(frozen=True, slots=True)
class _Frame:
    """The positions of the axes in tenths of a unit, and the range of numbers on each."""

    left: int
    right: int
    top: int
    bottom: int
    first: Number
    last: Number
    low: Number
    high: Number

    def place_x(self, numbers: Sequence[Number]) -> list[int]:
        """Return the positions of numbers on the horizontal axis."""
        return _place(numbers, self.first, self.last, self.left, self.right)

    def place_y(self, values: Sequence[Number]) -> list[int]:
        """Return the positions of values on the vertical axis."""
        return _place(values, self.low, self.high, self.bottom, self.top)


_WIDE = _Paper("wide", 720, 190, 11, 100)
_NARROW = _Paper("narrow", 360, 200, 13, 60)
_INSET = 120  # margin at both ends of the horizontal axis, in tenths, so that no dot is clipped


def _place(numbers: Sequence[Number], first: Number, last: Number, start: int, end: int) -> list[int]:
    """Map numbers between first and last to tenths between start and end, rounding halves up."""
    _, (low, high, *whole) = whole_numbers([first, last, *numbers])
    span, twice_length = high - low, 2 * (end - start)
    return [start + ((number - low) * twice_length + span) // (2 * span) for number in whole]


def _check(
    lines: Sequence[_Line], marks: Sequence[Mark], span: Sequence[datetime | int] | None, is_ranks: bool
) -> None:
    if len(lines) > SERIES_MAX:
        raise ValueError(f"a chart has at most {SERIES_MAX} series, not {len(lines)}")
    points = [point for line in lines for point in line.points]
    xs = [*(point.x for point in points), *(mark.x for mark in marks), *(span or ())]
    if len({isinstance(x, datetime) for x in xs}) > 1:
        raise ValueError("times and numbers of games do not mix")
    if any(line.xs != sorted(line.xs) for line in lines):
        raise ValueError("the points of a series must be in order")
    if is_ranks and any(point.value.denominator != 1 or point.value < 1 for point in points):
        raise ValueError("ranks are whole numbers from 1")


class _StepChart(NamedTuple):
    """The lines of a chart with their labels, the common denominator of their values, and the vertical marks.

    `spread` has the deviations of a single line.
    """

    labels: Sequence[str]
    lines: Sequence[_Line]
    denominator: int
    marks: Sequence[tuple[Number, Mark]]
    x_range: tuple[Number, Number]
    is_dated: bool
    is_ranks: bool
    spread: Sequence[int]


def _draw_step_chart(chart: _StepChart, paper: _Paper) -> _Drawing:
    labels, lines, shared, marks, x_range, is_dated, is_ranks, spread = chart
    heights = [height for line in lines for height in line.heights]
    for sign in (1, -1):
        heights += [height + sign * deviation for height, deviation in zip(lines[0].heights, spread, strict=False)]
    lowest, highest = Fraction(min(heights), shared), Fraction(max(heights), shared)
    ticks, step = rank_ticks(highest) if is_ranks else value_ticks(*range_of([lowest, highest]), 5)
    low, high = (max(*ticks, highest), Fraction(1)) if is_ranks else (ticks[0], ticks[-1])
    names = value_labels(ticks, step)
    kinds = {point.kind for line in lines for point in line.points}
    legend, height = _draw_legend(paper, labels, kinds, has_band=bool(spread))
    top = 10 * (height + (2 * paper.text if marks else paper.text))
    left = _axis_position(paper, names) + _INSET
    right, bottom = 10 * paper.width - _INSET, top + 10 * paper.height
    frame = _Frame(left, right, top, bottom, *x_range, low * shared, high * shared)
    rows = date_rows(*x_range, paper.width // paper.text) if is_dated else game_rows(*x_range)
    picture = [
        legend,
        _draw_grid(paper, frame, [tick * shared for tick in ticks], names),
        _draw_x_axis(paper, frame, _first_fitting(paper, frame, rows)),
        _draw_marks(paper, frame, marks),
    ]
    if spread:
        picture.append(_draw_band(frame, lines[0], spread))
    dots, is_thinned = [], False
    for index, line in enumerate(lines):
        places = [*zip(frame.place_x(line.xs), frame.place_y(line.heights), strict=True)]
        line_kinds = [point.kind for point in line.points]
        line_places = [place for place, kind in zip(places, line_kinds, strict=True) if kind != "published"]
        if len(line_places) > 1 and line_kinds[0] == "start" and line_places[0][0] == line_places[1][0]:
            line_places[0] = (line_places[0][0] - 100, line_places[0][1])
        if line_places:
            path = step_path(line_places, frame.right)
            picture.append(f'<g class="s{index + 1}"><path class="step" d="{path}"/></g>')
        marked = _select_marked(line_kinds, line.heights, paper.dots // len(lines))
        is_thinned |= len(marked) < len(line_kinds) - line_kinds.count("start")
        size = 30 if len(marked) * 80 < frame.right - frame.left else 20
        shapes = (_draw_dot(index, *places[n], line_kinds[n], size, *line.caption(n)) for n in marked)
        dots.append(f'<g class="s{index + 1}">{"".join(shapes)}</g>')
    return _Drawing("".join(picture), "".join(dots), frame.bottom // 10 + 2 * paper.text, is_thinned)


def _draw_band(frame: _Frame, line: _Line, spread: Sequence[int]) -> str:
    """Draw the deviations of a line after each game and change as a band."""
    zipped = zip(line.points, line.xs, line.heights, spread, strict=True)
    steps = [(x, height, width) for point, x, height, width in zipped if point.kind not in ("start", "published")]
    tops, bottoms = (frame.place_y([height + sign * width for _, height, width in steps]) for sign in (1, -1))
    places = zip(frame.place_x([x for x, _, _ in steps]), tops, bottoms, strict=True)
    return f'<g class="s1"><path class="band" d="{band_path([*places], frame.right)}"/></g>'


def _draw_bars(paper: _Paper, bins: Sequence[int], first: int, width: Fraction, here: Mark | None) -> _Drawing:
    ticks, step = value_ticks(0, max(bins), 4, is_whole=True)
    names = value_labels(ticks, step)
    top = 10 * (2 * paper.text if here else paper.text)
    ends = (first * width, (first + len(bins)) * width)
    left, right = _axis_position(paper, names) + _INSET, 10 * paper.width - _INSET
    frame = _Frame(left, right, top, top + 10 * paper.height, *ends, 0, ticks[-1])
    bounds = value_labels([(first + index) * width for index in range(len(bins) + 1)], width)
    labels = _first_fitting(paper, frame, _edge_rows(first, width, bounds))
    shapes = [_draw_grid(paper, frame, ticks, names), _draw_x_axis(paper, frame, labels)]
    for index, number in enumerate(bins):
        edge = (first + index) * width
        (start, end), (y,) = frame.place_x([edge, edge + width]), frame.place_y([number])
        is_here = here is not None and edge <= to_number(here.x) < edge + width
        shapes.append(
            f'<rect class="bar{" here" if is_here else ""}" x="{tenths(start + 5)}" y="{tenths(y)}" '
            f'width="{tenths(end - start - 10)}" height="{tenths(frame.bottom - y)}">'
            f"<title>{bounds[index]} to {bounds[index + 1]}: {count(number, 'player')}</title></rect>"
        )
    shapes.append(_draw_marks(paper, frame, [(to_number(here.x), here)] if here else []))
    return _Drawing("".join(shapes), "", frame.bottom // 10 + 2 * paper.text)


def _edge_rows(first: int, width: Fraction, bounds: Sequence[str]) -> Iterator[list[tuple[Number, str]]]:
    """Yield rows of the edges of bars: all, every second, every fifth, and so on."""
    for every in (1, 2, 5, 10, 20):
        numbered = enumerate(bounds, first)
        yield [(number * width, name) for number, name in numbered if number % every == 0]


def _draw_figure(
    draw: Callable[[_Paper], _Drawing] | None, *, title: str, description: str, prefix: str, standalone: bool
) -> str:
    """Return both drawings for a page, or the wide one as a file; `draw` is None if there is no data."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", prefix):
        raise ValueError(f"{prefix!r} cannot begin an id")
    figures = []
    for paper in (_WIDE,) if standalone else (_WIDE, _NARROW):
        placeholder = (
            f'<text x="{paper.width // 2}" y="{paper.height // 2}" text-anchor="middle">Nothing to show yet.</text>'
        )
        drawing = draw(paper) if draw else _Drawing(placeholder, "", paper.height)
        name = f"{prefix}-{paper.name}"
        full_description = f"{description} Not every game has a dot.".lstrip() if drawing.is_thinned else description
        picture = (
            f'<g role="img" aria-labelledby="{name}-title {name}-description">'
            f'<title id="{name}-title">{escape_text(title)}</title>'
            f'<desc id="{name}-description">{escape_text(full_description)}</desc>{drawing.picture}</g>'
        )
        dots = f'<g aria-hidden="true">{drawing.dots}</g>' if drawing.dots else ""
        if standalone:
            return _write_file(paper, drawing.height, title, picture + dots)
        figures.append(
            f'<svg class="chart-{paper.name}" viewBox="0 0 {paper.width} {drawing.height}">{picture}{dots}</svg>'
        )
    return f'<div class="chart">{"".join(figures)}</div>'


def _write_file(paper: _Paper, height: int, title: str, inner: str) -> str:
    """Return a drawing as an SVG file, with style, background, margin and title."""
    width, full_height = paper.width + 32, height + 56
    size = f'width="{width}" height="{full_height}"'
    heading = escape_text(truncate(title, 10 * paper.width, 16))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="-16 -40 {width} {full_height}" {size}>'
        f'<style>{STYLE}</style><rect class="paper" x="-16" y="-40" {size}/>'
        f'<text class="heading" y="-14">{heading}</text>{inner}</svg>\n'
    )


def _draw_legend(paper: _Paper, labels: Sequence[str], kinds: Iterable[Kind], *, has_band: bool) -> tuple[str, int]:
    """Return the legend in rows, and its height in units, which is 0 for a single line of games."""
    line = f'<path class="step" d="M0 0h{2 * paper.text}"/>'
    line_labels = labels if len(labels) > 1 else []
    items = [
        (f'<g class="s{index + 1}">{line}{_draw_dot(index, 10 * paper.text, 0, "game", 30)}</g>', label)
        for index, label in enumerate(line_labels)
    ]
    if has_band:
        area = f'<path class="band" d="M0-{tenths(5 * paper.text)}h{2 * paper.text}v{paper.text}h-{2 * paper.text}z"/>'
        items.append((f'<g class="s1">{area}{line}</g>', "± deviation"))
    items += [
        (_draw_dot(0, 10 * paper.text, 0, kind, 30), text) for kind, text in _LEGEND_TEXTS.items() if kind in kinds
    ]
    entries, x, row = [], 0, 0
    for sample, label in items:
        text = truncate(label, 10 * (paper.width - 3 * paper.text), paper.text)
        width = 30 * paper.text + text_width(text, paper.text)
        if x and x + width > 10 * paper.width:
            x, row = 0, row + 1
        y = 10 * paper.text + row * 17 * paper.text
        full = f"<title>{escape_text(label)}</title>" if text != label else ""
        entries.append(
            f'<g transform="translate({tenths(x)} {tenths(y - 4 * paper.text)})">{full}{sample}'
            f'<text x="{tenths(26 * paper.text)}" y="{tenths(4 * paper.text)}">{escape_text(text)}</text></g>'
        )
        x += width + 15 * paper.text
    return "".join(entries), (row + 1) * 17 * paper.text // 10 if items else 0


def _draw_grid(paper: _Paper, frame: _Frame, values: Sequence[Number], names: Sequence[str]) -> str:
    """Draw a horizontal line for each value, with its label on the left."""
    end, left = tenths(frame.left - _INSET - 80), tenths(frame.left - _INSET)
    places = [*zip(frame.place_y(values), names, strict=True)]
    lines = "".join(f"M{left} {tenths(y)}H{paper.width}" for y, _ in places)
    names = "".join(
        f'<text x="{end}" y="{tenths(y + 4 * paper.text)}">{escape_text(name)}</text>' for y, name in places
    )
    return f'<path class="grid" d="{lines}"/><g text-anchor="end">{names}</g>'


def _draw_x_axis(paper: _Paper, frame: _Frame, ticks: Sequence[tuple[Number, str]]) -> str:
    """Draw the ticks of the horizontal axis with their labels."""
    places = frame.place_x([x for x, _ in ticks])
    lines = "".join(f"M{tenths(place)} {tenths(frame.bottom)}v5" for place in places)
    y = tenths(frame.bottom + 16 * paper.text)
    names = "".join(
        f'<text x="{tenths((start + end) // 2)}" y="{y}">{escape_text(name)}</text>'
        for (_, name), (start, end) in zip(ticks, _label_boxes(paper, frame, ticks), strict=True)
    )
    return f'<path class="grid" d="{lines}"/><g text-anchor="middle">{names}</g>'


def _draw_marks(paper: _Paper, frame: _Frame, marks: Sequence[tuple[Number, Mark]]) -> str:
    """Draw vertical lines. Each has its label next to its top if it fits, else only its title."""
    shapes, label_end = [], -1
    thinned = sorted(marks, key=lambda pair: pair[0])[:: ceil(len(marks) / _MARKS_MAX) or 1]
    for place, (_, mark) in zip(frame.place_x([x for x, _ in thinned]), thinned, strict=True):
        text = truncate(mark.label, 4 * paper.width, paper.text)
        width, label, top = text_width(text, paper.text), "", frame.top
        start = place + 50 if place + 50 + width <= 10 * paper.width else place - 50 - width
        if text and start > label_end:
            label = f'<text x="{tenths(start)}" y="{tenths(frame.top - 5 * paper.text)}">{escape_text(text)}</text>'
            label_end, top = max(place, start + width) + 50, frame.top - 15 * paper.text
        title = f"<title>{escape_text(mark.title or mark.label)}</title>"
        line = f"M{tenths(place)} {tenths(top)}V{tenths(frame.bottom)}"
        shapes.append(f'<g>{title}<path class="mark" d="{line}"/>{label}</g>')
    return "".join(shapes)


def _draw_dot(series: int, x: int, y: int, kind: Kind, size: int, title: str = "", link: str = "") -> str:
    """Draw the mark of a point, `size` tenths in each direction. Its shape depends on kind and series."""
    if kind == "start":
        return ""
    title_element = f"<title>{title}</title>" if title else ""
    if kind == "game" and series == 0:
        shape = f'<circle class="dot" cx="{tenths(x)}" cy="{tenths(y)}" r="{tenths(size)}">{title_element}</circle>'
    else:
        name = {"game": "dot", "change": "tick", "published": "published"}[kind]
        shape = (
            f'<path class="{name}" d="M{tenths(x)} {tenths(y)}{_outline(kind, series, size)}">{title_element}</path>'
        )
    return f'<a href="{link}" tabindex="-1">{shape}</a>' if link else shape


def _outline(kind: Kind, series: int, size: int) -> str:
    """Return the outline around the current position: a tick, a diamond, or the shape of the series."""
    if kind == "change":
        return "m0-6v12"
    if kind == "published":
        return "m0-6l6 6-6 6-6-6z"
    r, most = tenths(size), tenths(2 * size)
    wide, all_ = tenths(size + 10), tenths(2 * size + 20)
    return (
        "",
        f"m-{r}-{r}h{most}v{most}h-{most}z",
        f"m0-{wide}l{wide} {all_}h-{all_}z",
        f"m0 {wide}l{wide}-{all_}h-{all_}z",
        f"m-{r} 0a{r} {r} 0 1 0 {most} 0a{r} {r} 0 1 0-{most} 0z",
        f"m-{r}-{r}h{most}v{most}h-{most}z",
    )[series]


def _select_marked(kinds: Sequence[Kind], heights: Sequence[int], most: int) -> list[int]:
    """Return the points that get a mark: every n-th of each kind, and its highest, lowest and last.

    The intervals are powers of 2, so the marks of the smaller drawing are a subset of those of the larger one.
    """
    marked: set[int] = set()
    for kind, share in (("game", most), ("change", most // 2), ("published", most // 2)):
        if indices := [index for index, each in enumerate(kinds) if each == kind]:
            marked.update(indices[:: 1 << (ceil(len(indices) / share) - 1).bit_length()])
            marked.update((min(indices, key=heights.__getitem__), max(indices, key=heights.__getitem__), indices[-1]))
    return sorted(marked)


def _first_fitting(
    paper: _Paper, frame: _Frame, candidates: Iterable[Sequence[tuple[Number, str]]]
) -> list[tuple[Number, str]]:
    """Return the first row whose labels do not crowd each other; empty if there is none."""
    for ticks in candidates:
        boxes = _label_boxes(paper, frame, ticks)
        gaps = [after - end for (_, end), (after, _) in pairwise(boxes)]
        if ticks and min(gaps, default=20 * paper.text) >= 20 * paper.text:
            return list(ticks)
    return []


def _label_boxes(paper: _Paper, frame: _Frame, ticks: Sequence[tuple[Number, str]]) -> list[tuple[int, int]]:
    """Return the left and right ends of the labels below an axis, in tenths, clamped to the paper."""
    boxes = []
    for place, (_, name) in zip(frame.place_x([x for x, _ in ticks]), ticks, strict=True):
        width = text_width(name, paper.text)
        start = max(0, min(10 * paper.width - width, place - width // 2))
        boxes.append((start, start + width))
    return boxes


def _axis_position(paper: _Paper, names: Sequence[str]) -> int:
    """Return the position of the vertical axis in tenths, to the right of its labels."""
    return max(text_width(name, paper.text) for name in names) + 80

"""Draw charts as SVG: points over time as step lines, sparklines for tables, and rating distributions.

The functions are pure: the same arguments give the same bytes. Positions are whole tenths of a unit of the viewBox,
computed from exact numbers. A chart of one game on a page:

    points = [Point(0, Fraction(1000), "start"), Point(1, Fraction(1012), title="wl-01", link="wl-01.html")]
    draw_steps([Series("mira", points)], title="Points of mira", description="1,012 after one game.", prefix="points")

**A chart is drawn twice**, as two `<svg>`; the style shows one of them. Text in SVG shrinks with its drawing: text that
fits a desktop is five pixels high on a phone, and the labels that fit depend on the width. So each drawing has its own
font size and its own labels, without a script; `standalone` has only the wide one.

**The picture and its markers are separate.** Screen readers do not enter an element with `role="img"`, so it must not
have links. The markers of the points lie over the picture, for pointers only: up to 100 tab stops would block the way
to the table beside it, which has the same links.

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
    LabelSet,
    Number,
    choose_rank_ticks,
    choose_round_step,
    choose_value_ticks,
    find_range,
    format_value_labels,
    generate_date_labels,
    generate_game_labels,
    to_common_denominator,
    to_number,
)
from ratings_ledger.web.svg import (
    build_band_path,
    build_step_path,
    escape_text,
    estimate_text_width,
    tenths,
    truncate,
)

PointKind = Literal["start", "game", "change", "published"]

_LEGEND_TEXTS: dict[PointKind, str] = {"published": "published", "change": "change without a game"}
SERIES_MAX = 6  # lines that colour, dash and dots can distinguish
_VERTICAL_LINES_MAX = 60
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
    """A point of a series: its `value` applies from `x` on. `x` is a time with a zone, or a number of games.

    A `game` is marked by a dot with the title and the link, a `change` without a game by a tick, and a `published`
    value by a diamond, which the line does not touch; a `start` has no marker. Titles and links may be functions, which
    are called only for points with a drawn marker. If there is only one series, its deviations are drawn as a band.
    """

    x: datetime | int
    value: Fraction
    kind: PointKind = "game"
    title: str | Callable[[], str] = ""
    link: str | Callable[[], str] = ""
    deviation: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart: its label and its points, in order."""

    label: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class VerticalLine:
    """A vertical line through a chart with a label at its top, such as for a game that was changed later."""

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
    vertical_lines: Sequence[VerticalLine] = (),
    span: tuple[datetime, datetime] | tuple[int, int] | None = None,
    values_are_ranks: bool = False,
    standalone: bool = False,
) -> str:
    """Draw series as step lines that extend to the right edge of the chart.

    Args:
        series: the lines, at most `SERIES_MAX`; the points of each are in the order of their `x`.
        title: the title, for screen readers and as the heading of a file.
        description: a description of the chart, for screen readers.
        prefix: the beginning of the ids in the drawing; unique on a page.
        vertical_lines: lines across the chart, each with a label.
        span: two x values that the horizontal axis covers besides the x values of the points.
        values_are_ranks: whether the values are whole numbers from 1, with 1 on top.
        standalone: whether to return a complete SVG file instead of a part of a page.

    Raises:
        ValueError: there are too many series, times mixed with numbers of games, points out of order, ranks that are
            not positive integers, or a prefix that is not an id.
        TypeError: a time has no zone.
    """
    points = [point for line_series in series for point in line_series.points]
    # a band is readable only around a single line, and only games and changes are steps of the band
    has_band = len(series) == 1 and any(point.deviation for point in points if point.kind in ("game", "change"))
    deviations = [point.deviation or 0 for point in points] if has_band else []
    denominator, numerators = to_common_denominator([*(point.value for point in points), *deviations])
    remaining = iter(numerators)
    lines = [
        _Line(
            line_series.label,
            [to_number(point.x) for point in line_series.points],
            [*islice(remaining, len(line_series.points))],
            line_series.points,
        )
        for line_series in series
    ]
    _check_series(lines, vertical_lines, span, values_are_ranks)
    xs = [x for line in lines for x in line.xs]
    is_dated = any(isinstance(point.x, datetime) for line in lines for point in line.points[:1])
    placed_lines = [(to_number(vertical_line.x), vertical_line) for vertical_line in vertical_lines]
    if xs:
        xs += [*(x for x, _ in placed_lines), *(to_number(x) for x in span or ())]
    chart = _StepChart(
        lines=lines,
        denominator=denominator,
        vertical_lines=placed_lines,
        x_range=find_range(xs, DAY if is_dated else 1),
        is_dated=is_dated,
        values_are_ranks=values_are_ranks,
        deviations=[*remaining],
    )
    return _draw_figure(
        partial(_draw_step_chart, chart) if xs else None,
        title=title,
        description=description,
        prefix=prefix,
        standalone=standalone,
    )


def draw_sparkline(values: Sequence[Number]) -> str:
    """Draw a sparkline for a table row. It is hidden from screen readers, because the table has the numbers."""
    shapes = ""
    if values:
        denominator, numerators = to_common_denominator(values)
        (first, last), (low, high) = find_range([0, len(values) - 1]), find_range(numerators, denominator)
        frame = _Frame(left=20, right=1080, top=30, bottom=190, first=first, last=last, low=low, high=high)
        positions = [*zip(frame.to_x(range(len(values))), frame.to_y(numerators), strict=True)]
        x, y = positions[-1]
        shapes = f'<path d="{build_step_path(positions, x)}"/><circle cx="{tenths(x)}" cy="{tenths(y)}" r="2"/>'
    return f'<svg class="spark" viewBox="0 0 112 22" aria-hidden="true" focusable="false">{shapes}</svg>'


def draw_distribution(
    values: Sequence[Fraction],
    *,
    title: str,
    description: str,
    prefix: str,
    highlighted: VerticalLine | None = None,
    standalone: bool = False,
) -> str:
    """Draw a histogram of points, with fewer bars for fewer values.

    `highlighted` points out one player by their points; `draw_steps` describes the other arguments. Raises
    `ValueError` for a prefix that is not an id.
    """
    low, high = find_range([*values, *([to_number(highlighted.x)] if highlighted and values else [])])
    width = choose_round_step(high - low, min(_BINS_MAX, 3 + isqrt(4 * len(values))))
    first = floor(low / width)
    bins = [0] * (floor(high / width) - first + 1)
    for value in values:
        bins[floor(value / width) - first] += 1

    def draw(layout: _Layout) -> _Drawing:
        return _draw_bars(layout, bins, first, width, highlighted)

    return _draw_figure(
        draw if values else None, title=title, description=description, prefix=prefix, standalone=standalone
    )


@dataclass(frozen=True, slots=True)
class _Layout:
    """The format of a drawing, in units: its width, the height of the plot area, the font size.

    `markers_max` is the number of markers that the drawing has room for.
    """

    name: str
    width: int
    height: int
    font_size: int
    markers_max: int


@dataclass(frozen=True, slots=True)
class _Drawing:
    """A drawing: its picture and markers, its height in units, and whether markers were left out."""

    picture: str
    markers: str
    height: int
    is_thinned: bool = False


@dataclass(frozen=True, slots=True)
class _Line:
    """A series to draw: its label, the numbers of its points, and the escaped titles and links of points with markers.

    `numerators` are the values of the points, in the chart's common denominator.
    """

    label: str
    xs: Sequence[Number]
    numerators: Sequence[int]
    points: Sequence[Point]
    _captions: dict[int, tuple[str, str]] = field(default_factory=dict)

    def get_caption(self, index: int) -> tuple[str, str]:
        """Return the title and the link of a point, which both drawings share."""
        if index not in self._captions:
            point = self.points[index]
            title, link = (text() if callable(text) else text for text in (point.title, point.link))
            self._captions[index] = escape_text(truncate(title, 20_000, 10)), escape_text(link)
        return self._captions[index]


@dataclass(frozen=True, slots=True)
class _Frame:
    """The positions of both axes in tenths of a unit, and the range of numbers on each axis."""

    left: int
    right: int
    top: int
    bottom: int
    first: Number
    last: Number
    low: Number
    high: Number

    def to_x(self, numbers: Sequence[Number]) -> list[int]:
        """Return the positions of numbers on the horizontal axis."""
        return _scale_to(numbers, self.first, self.last, self.left, self.right)

    def to_y(self, values: Sequence[Number]) -> list[int]:
        """Return the positions of values on the vertical axis."""
        return _scale_to(values, self.low, self.high, self.bottom, self.top)


_WIDE = _Layout("wide", width=720, height=190, font_size=11, markers_max=100)
_NARROW = _Layout("narrow", width=360, height=200, font_size=13, markers_max=60)
_INSET = 120  # margin at both ends of the horizontal axis, in tenths, so that no marker is clipped
# the distance in tenths by which a line starts left of a first game at the same x, so that the rise is visible
_START_OFFSET = 100
# the radius of a marker in tenths, the radius of crowded markers, and the room per marker below which they are crowded
_MARKER_SIZE, _SMALL_MARKER_SIZE, _MARKER_ROOM = 30, 20, 80


def _scale_to(numbers: Sequence[Number], first: Number, last: Number, start: int, end: int) -> list[int]:
    """Map numbers between first and last to tenths between start and end, rounding halves up."""
    _, (low, high, *numerators) = to_common_denominator([first, last, *numbers])
    span, twice_length = high - low, 2 * (end - start)
    return [start + ((numerator - low) * twice_length + span) // (2 * span) for numerator in numerators]


def _check_series(
    lines: Sequence[_Line],
    vertical_lines: Sequence[VerticalLine],
    span: Sequence[datetime | int] | None,
    values_are_ranks: bool,
) -> None:
    """Raise `ValueError` unless the series can be drawn in one chart."""
    if len(lines) > SERIES_MAX:
        raise ValueError(f"a chart has at most {SERIES_MAX} series, not {len(lines)}")
    points = [point for line in lines for point in line.points]
    xs = [*(point.x for point in points), *(vertical_line.x for vertical_line in vertical_lines), *(span or ())]
    if len({isinstance(x, datetime) for x in xs}) > 1:
        raise ValueError("x values must be all datetimes or all numbers of games")
    for line in lines:
        if line.xs != sorted(line.xs):
            raise ValueError(f"the points of series {line.label!r} must be in the order of x")
        invalid = [point.value for point in line.points if point.value.denominator != 1 or point.value < 1]
        if values_are_ranks and invalid:
            raise ValueError(f"rank {invalid[0]} in series {line.label!r} is not a positive integer")


@dataclass(frozen=True, slots=True)
class _StepChart:
    """The lines of a chart, the common denominator of their values, and the vertical lines with their x.

    `deviations` are numerators of the same denominator: one for each point of the only line, or none.
    """

    lines: Sequence[_Line]
    denominator: int
    vertical_lines: Sequence[tuple[Number, VerticalLine]]
    x_range: tuple[Number, Number]
    is_dated: bool
    values_are_ranks: bool
    deviations: Sequence[int]


def _draw_step_chart(chart: _StepChart, layout: _Layout) -> _Drawing:
    ticks, tick_labels, (low, high) = _choose_value_axis(chart)
    kinds = {point.kind for line in chart.lines for point in line.points}
    labels = [line.label for line in chart.lines]
    legend, legend_height = _draw_legend(layout, labels, kinds, has_band=bool(chart.deviations))
    top = 10 * (legend_height + (2 * layout.font_size if chart.vertical_lines else layout.font_size))
    left = _compute_axis_position(layout, tick_labels) + _INSET
    right, bottom = 10 * layout.width - _INSET, top + 10 * layout.height
    frame = _Frame(left, right, top, bottom, *chart.x_range, low * chart.denominator, high * chart.denominator)
    if chart.is_dated:
        label_sets = generate_date_labels(*chart.x_range, layout.width // layout.font_size)
    else:
        label_sets = generate_game_labels(*chart.x_range)
    picture = [
        legend,
        _draw_grid(layout, frame, [tick * chart.denominator for tick in ticks], tick_labels),
        _draw_x_axis(layout, frame, _find_fitting_labels(layout, frame, label_sets)),
        _draw_vertical_lines(layout, frame, chart.vertical_lines),
    ]
    if chart.deviations:
        picture.append(_draw_band(frame, chart.lines[0], chart.deviations))
    markers, is_thinned = [], False
    for index, line in enumerate(chart.lines):
        positions = [*zip(frame.to_x(line.xs), frame.to_y(line.numerators), strict=True)]
        line_kinds = [point.kind for point in line.points]
        picture.append(_draw_line(frame, index, line_kinds, positions))
        drawn = _select_points_with_markers(line_kinds, line.numerators, layout.markers_max // len(chart.lines))
        is_thinned |= len(drawn) < len(line_kinds) - line_kinds.count("start")
        size = _MARKER_SIZE if len(drawn) * _MARKER_ROOM < frame.right - frame.left else _SMALL_MARKER_SIZE
        shapes = (
            _draw_marker(index, *positions[point], line_kinds[point], size, *line.get_caption(point)) for point in drawn
        )
        markers.append(f'<g class="s{index + 1}">{"".join(shapes)}</g>')
    return _Drawing("".join(picture), "".join(markers), frame.bottom // 10 + 2 * layout.font_size, is_thinned)


def _choose_value_axis(chart: _StepChart) -> tuple[Sequence[Fraction], Sequence[str], tuple[Number, Number]]:
    """Return the ticks of the vertical axis, their labels, and the values at its lower and upper end."""
    numerators = [numerator for line in chart.lines for numerator in line.numerators]
    for sign in (1, -1):
        values = zip(chart.lines[0].numerators, chart.deviations, strict=False)
        numerators += [numerator + sign * deviation for numerator, deviation in values]
    lowest, highest = Fraction(min(numerators), chart.denominator), Fraction(max(numerators), chart.denominator)
    if chart.values_are_ranks:
        ticks, step = choose_rank_ticks(highest)
        return ticks, format_value_labels(ticks, step), (max(*ticks, highest), Fraction(1))
    ticks, step = choose_value_ticks(*find_range([lowest, highest]), 5)
    return ticks, format_value_labels(ticks, step), (ticks[0], ticks[-1])


def _draw_line(frame: _Frame, index: int, kinds: Sequence[PointKind], positions: Sequence[tuple[int, int]]) -> str:
    """Draw the step line of a series through all points except published values; an empty string if none remains."""
    steps = [position for position, kind in zip(positions, kinds, strict=True) if kind != "published"]
    if len(steps) > 1 and kinds[0] == "start" and steps[0][0] == steps[1][0]:
        steps[0] = (steps[0][0] - _START_OFFSET, steps[0][1])
    path = build_step_path(steps, frame.right) if steps else ""
    return f'<g class="s{index + 1}"><path class="step" d="{path}"/></g>' if path else ""


def _draw_band(frame: _Frame, line: _Line, deviations: Sequence[int]) -> str:
    """Draw the deviations of a line after each game and change as a band."""
    rows = zip(line.points, line.xs, line.numerators, deviations, strict=True)
    steps = [(x, value, deviation) for point, x, value, deviation in rows if point.kind in ("game", "change")]
    tops, bottoms = (frame.to_y([value + sign * deviation for _, value, deviation in steps]) for sign in (1, -1))
    positions = [*zip(frame.to_x([x for x, _, _ in steps]), tops, bottoms, strict=True)]
    return f'<g class="s1"><path class="band" d="{build_band_path(positions, frame.right)}"/></g>'


def _draw_bars(
    layout: _Layout, bins: Sequence[int], first: int, width: Fraction, highlighted: VerticalLine | None
) -> _Drawing:
    ticks, step = choose_value_ticks(0, max(bins), 4, is_whole=True)
    tick_labels = format_value_labels(ticks, step)
    top = 10 * (2 * layout.font_size if highlighted else layout.font_size)
    left, right = _compute_axis_position(layout, tick_labels) + _INSET, 10 * layout.width - _INSET
    frame = _Frame(
        left=left,
        right=right,
        top=top,
        bottom=top + 10 * layout.height,
        first=first * width,
        last=(first + len(bins)) * width,
        low=0,
        high=ticks[-1],
    )
    bounds = format_value_labels([(first + index) * width for index in range(len(bins) + 1)], width)
    x_labels = _find_fitting_labels(layout, frame, _list_edge_labels(first, width, bounds))
    shapes = [_draw_grid(layout, frame, ticks, tick_labels), _draw_x_axis(layout, frame, x_labels)]
    for index, player_count in enumerate(bins):
        edge = (first + index) * width
        (start, end), (y,) = frame.to_x([edge, edge + width]), frame.to_y([player_count])
        is_highlighted = highlighted is not None and edge <= to_number(highlighted.x) < edge + width
        shapes.append(
            f'<rect class="bar{" here" if is_highlighted else ""}" x="{tenths(start + 5)}" y="{tenths(y)}" '
            f'width="{tenths(end - start - 10)}" height="{tenths(frame.bottom - y)}">'
            f"<title>{bounds[index]} to {bounds[index + 1]}: {count(player_count, 'player')}</title></rect>"
        )
    placed_lines = [(to_number(highlighted.x), highlighted)] if highlighted else []
    shapes.append(_draw_vertical_lines(layout, frame, placed_lines))
    return _Drawing("".join(shapes), "", frame.bottom // 10 + 2 * layout.font_size)


def _list_edge_labels(first: int, width: Fraction, bounds: Sequence[str]) -> Iterator[LabelSet]:
    """Yield sets of labels for the edges of bars: all, every second, every fifth, and so on."""
    for interval in (1, 2, 5, 10, 20):
        numbered_bounds = enumerate(bounds, first)
        yield [(number * width, label) for number, label in numbered_bounds if number % interval == 0]


def _draw_figure(
    draw: Callable[[_Layout], _Drawing] | None, *, title: str, description: str, prefix: str, standalone: bool
) -> str:
    """Return both drawings for a page, or the wide drawing as a file; without `draw`, say that there is no data."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", prefix):
        raise ValueError(f"prefix {prefix!r} cannot begin an id; use a letter, then letters, digits, _ and -")
    figures = []
    for layout in (_WIDE,) if standalone else (_WIDE, _NARROW):
        placeholder = (
            f'<text x="{layout.width // 2}" y="{layout.height // 2}" text-anchor="middle">Nothing to show yet.</text>'
        )
        drawing = draw(layout) if draw else _Drawing(placeholder, "", layout.height)
        name = f"{prefix}-{layout.name}"
        full_description = (
            f"{description} Not every point has a marker.".lstrip() if drawing.is_thinned else description
        )
        picture = (
            f'<g role="img" aria-labelledby="{name}-title {name}-description">'
            f'<title id="{name}-title">{escape_text(title)}</title>'
            f'<desc id="{name}-description">{escape_text(full_description)}</desc>{drawing.picture}</g>'
        )
        markers = f'<g aria-hidden="true">{drawing.markers}</g>' if drawing.markers else ""
        if standalone:
            return _render_standalone_svg(layout, drawing.height, title, picture + markers)
        figures.append(
            f'<svg class="chart-{layout.name}" viewBox="0 0 {layout.width} {drawing.height}">{picture}{markers}</svg>'
        )
    return f'<div class="chart">{"".join(figures)}</div>'


def _render_standalone_svg(layout: _Layout, height: int, title: str, inner: str) -> str:
    """Return a drawing as an SVG file, with style, background, margin and title."""
    width, full_height = layout.width + 32, height + 56
    size = f'width="{width}" height="{full_height}"'
    heading = escape_text(truncate(title, 10 * layout.width, 16))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="-16 -40 {width} {full_height}" {size}>'
        f'<style>{STYLE}</style><rect class="paper" x="-16" y="-40" {size}/>'
        f'<text class="heading" y="-14">{heading}</text>{inner}</svg>\n'
    )


def _draw_legend(
    layout: _Layout, labels: Sequence[str], kinds: Iterable[PointKind], *, has_band: bool
) -> tuple[str, int]:
    """Return the legend in rows, and its height in units, which is 0 for a single line of games."""
    font_size = layout.font_size
    line = f'<path class="step" d="M0 0h{2 * font_size}"/>'
    items = []
    for index, label in enumerate(labels if len(labels) > 1 else []):
        marker = _draw_marker(index, 10 * font_size, 0, "game", _MARKER_SIZE)
        items.append((f'<g class="s{index + 1}">{line}{marker}</g>', label))
    if has_band:
        area = f"M0-{tenths(5 * font_size)}h{2 * font_size}v{font_size}h-{2 * font_size}z"
        items.append((f'<g class="s1"><path class="band" d="{area}"/>{line}</g>', "± deviation"))
    for kind, text in _LEGEND_TEXTS.items():
        if kind in kinds:
            items.append((_draw_marker(0, 10 * font_size, 0, kind, _MARKER_SIZE), text))
    entries, x, row = [], 0, 0
    for sample, label in items:
        text = truncate(label, 10 * (layout.width - 3 * font_size), font_size)
        width = 30 * font_size + estimate_text_width(text, font_size)
        if x and x + width > 10 * layout.width:
            x, row = 0, row + 1
        y = 10 * font_size + row * 17 * font_size
        title = f"<title>{escape_text(label)}</title>" if text != label else ""
        entries.append(
            f'<g transform="translate({tenths(x)} {tenths(y - 4 * font_size)})">{title}{sample}'
            f'<text x="{tenths(26 * font_size)}" y="{tenths(4 * font_size)}">{escape_text(text)}</text></g>'
        )
        x += width + 15 * font_size
    return "".join(entries), (row + 1) * 17 * font_size // 10 if items else 0


def _draw_grid(layout: _Layout, frame: _Frame, values: Sequence[Number], tick_labels: Sequence[str]) -> str:
    """Draw a horizontal line for each value, with its label on the left."""
    label_end, left = tenths(frame.left - _INSET - 80), tenths(frame.left - _INSET)
    labelled_ys = [*zip(frame.to_y(values), tick_labels, strict=True)]
    lines = "".join(f"M{left} {tenths(y)}H{layout.width}" for y, _ in labelled_ys)
    texts = "".join(
        f'<text x="{label_end}" y="{tenths(y + 4 * layout.font_size)}">{escape_text(label)}</text>'
        for y, label in labelled_ys
    )
    return f'<path class="grid" d="{lines}"/><g text-anchor="end">{texts}</g>'


def _draw_x_axis(layout: _Layout, frame: _Frame, labels: LabelSet) -> str:
    """Draw the ticks of the horizontal axis with their labels."""
    positions = frame.to_x([x for x, _ in labels])
    lines = "".join(f"M{tenths(x)} {tenths(frame.bottom)}v5" for x in positions)
    y = tenths(frame.bottom + 16 * layout.font_size)
    texts = "".join(
        f'<text x="{tenths((start + end) // 2)}" y="{y}">{escape_text(label)}</text>'
        for (_, label), (start, end) in zip(labels, _compute_label_boxes(layout, frame, labels), strict=True)
    )
    return f'<path class="grid" d="{lines}"/><g text-anchor="middle">{texts}</g>'


def _draw_vertical_lines(layout: _Layout, frame: _Frame, placed_lines: Sequence[tuple[Number, VerticalLine]]) -> str:
    """Draw vertical lines, each with a title and, if it fits, a label at its top.

    Of too many lines, only every n-th is drawn.
    """
    shapes, label_end = [], -1
    interval = ceil(len(placed_lines) / _VERTICAL_LINES_MAX) or 1
    drawn_lines = sorted(placed_lines, key=lambda pair: pair[0])[::interval]
    for x, (_, vertical_line) in zip(frame.to_x([x for x, _ in drawn_lines]), drawn_lines, strict=True):
        text = truncate(vertical_line.label, 4 * layout.width, layout.font_size)
        width, label, top = estimate_text_width(text, layout.font_size), "", frame.top
        start = x + 50 if x + 50 + width <= 10 * layout.width else x - 50 - width
        if text and start > label_end:
            baseline = tenths(frame.top - 5 * layout.font_size)
            label = f'<text x="{tenths(start)}" y="{baseline}">{escape_text(text)}</text>'
            label_end, top = max(x, start + width) + 50, frame.top - 15 * layout.font_size
        title = f"<title>{escape_text(vertical_line.title or vertical_line.label)}</title>"
        line = f"M{tenths(x)} {tenths(top)}V{tenths(frame.bottom)}"
        shapes.append(f'<g>{title}<path class="mark" d="{line}"/>{label}</g>')
    return "".join(shapes)


def _draw_marker(series: int, x: int, y: int, kind: PointKind, size: int, title: str = "", link: str = "") -> str:
    """Draw the marker of a point; its shape depends on kind and series. A game's is `size` tenths in each direction."""
    if kind == "start":
        return ""
    title_element = f"<title>{title}</title>" if title else ""
    if kind == "game" and series == 0:
        shape = f'<circle class="dot" cx="{tenths(x)}" cy="{tenths(y)}" r="{tenths(size)}">{title_element}</circle>'
    else:
        name = {"game": "dot", "change": "tick", "published": "published"}[kind]
        outline = _outline_marker(kind, series, size)
        shape = f'<path class="{name}" d="M{tenths(x)} {tenths(y)}{outline}">{title_element}</path>'
    return f'<a href="{link}" tabindex="-1">{shape}</a>' if link else shape


def _outline_marker(kind: PointKind, series: int, size: int) -> str:
    """Return the outline around the current position: a tick, a diamond, or the shape of the series."""
    if kind == "change":
        return "m0-6v12"
    if kind == "published":
        return "m0-6l6 6-6 6-6-6z"
    radius, diameter = tenths(size), tenths(2 * size)
    half_width, full_width = tenths(size + 10), tenths(2 * size + 20)
    square = f"m-{radius}-{radius}h{diameter}v{diameter}h-{diameter}z"
    return (
        "",
        square,
        f"m0-{half_width}l{half_width} {full_width}h-{full_width}z",
        f"m0 {half_width}l{half_width}-{full_width}h-{full_width}z",
        f"m-{radius} 0a{radius} {radius} 0 1 0 {diameter} 0a{radius} {radius} 0 1 0-{diameter} 0z",
        square,
    )[series]


def _select_points_with_markers(kinds: Sequence[PointKind], values: Sequence[int], markers_max: int) -> list[int]:
    """Return the indices of the points to mark: for each kind, every n-th point, and the highest, lowest and last.

    The intervals are powers of 2, so the smaller drawing has a subset of the markers of the larger drawing.
    """
    selected: set[int] = set()
    for kind, limit in (("game", markers_max), ("change", markers_max // 2), ("published", markers_max // 2)):
        if indices := [index for index, point_kind in enumerate(kinds) if point_kind == kind]:
            selected.update(indices[:: 1 << (ceil(len(indices) / limit) - 1).bit_length()])
            selected.update((min(indices, key=values.__getitem__), max(indices, key=values.__getitem__), indices[-1]))
    return sorted(selected)


def _find_fitting_labels(layout: _Layout, frame: _Frame, label_sets: Iterable[LabelSet]) -> LabelSet:
    """Return the first set whose labels do not crowd each other; an empty list if all sets are crowded."""
    for labels in label_sets:
        boxes = _compute_label_boxes(layout, frame, labels)
        gaps = [after - end for (_, end), (after, _) in pairwise(boxes)]
        if labels and min(gaps, default=20 * layout.font_size) >= 20 * layout.font_size:
            return labels
    return []


def _compute_label_boxes(layout: _Layout, frame: _Frame, labels: LabelSet) -> list[tuple[int, int]]:
    """Return the left and right ends of the labels below an axis, in tenths, clamped to the drawing."""
    boxes = []
    for x, (_, label) in zip(frame.to_x([x for x, _ in labels]), labels, strict=True):
        width = estimate_text_width(label, layout.font_size)
        start = max(0, min(10 * layout.width - width, x - width // 2))
        boxes.append((start, start + width))
    return boxes


def _compute_axis_position(layout: _Layout, tick_labels: Sequence[str]) -> int:
    """Return the position of the vertical axis in tenths, to the right of its labels."""
    return max(estimate_text_width(label, layout.font_size) for label in tick_labels) + 80

"""Charts as SVG: points over time as step lines, sparklines for tables, and how the points of a ladder are spread.

The functions are pure: the same arguments give the same bytes. Places are whole tenths of a unit of the viewBox, worked
out from exact numbers. A chart of one game, as it stands in a page:

    points = [Point(0, Fraction(1000), "start"), Point(1, Fraction(1012), title="wl-01", link="wl-01.html")]
    steps([Series("mira", points)], title="Points of mira", description="1,012 after one game.", prefix="points")

**A chart is drawn twice**, as two `<svg>` of which the style shows one. Text in SVG shrinks with its drawing: what is
right on a desk is five pixels high on a phone, and which labels have room depends on the width. So each drawing has
its own size of text and its own labels, without a script; `standalone` has the wide one alone.

**A picture and its dots are apart.** Screen readers do not enter what has `role="img"`, so it must not hold links. The
dots lie over the picture, for pointers alone: up to 100 stops of the keyboard would bar the way to the table beside the
chart, which has the same links.

Colours come by classes from `STYLE`, which a page embeds once. Text is escaped, and cut where it has no room.
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
    number_of,
    rank_ticks,
    reach_of,
    round_step,
    value_labels,
    value_ticks,
    whole_numbers,
)
from ratings_ledger.web.svg import band_path, cut, safe, step_path, tenths, text_width

Kind = Literal["start", "game", "change", "published"]

_KINDS_TOLD: dict[Kind, str] = {"published": "published", "change": "change without a game"}
# so many lines differ by colour, dash and shape of their dots
SERIES_MAX = 6
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
    """What a series has from `x` on: a time in UTC or the number of a game, and a value.

    A `game` is a dot with its title and link; a `change` without a game a tick; a `start` is not marked. What was
    `published` is a diamond at the value that people were shown; the line does not go there. A title and a link may be
    functions, which are asked for the points that get a mark. `spread` is how far the value may be off either way: of
    a series alone that is a band behind its line.
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
    """An upright line through a chart with a label at its top, such as where a game was corrected later."""

    x: datetime | int | Fraction
    label: str
    title: str = ""


# what is drawn comes first; the rest is the frame around it, by keyword
def steps(
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
    """Series as step lines, which go on to the right end of the chart.

    The axis reaches from the first x to the last, and over all of `span`. With `ranks` values are whole numbers, 1 on
    top. Ids begin with `prefix`; `standalone` makes a file of its own instead of a part of a page.

    ValueError: more than `SERIES_MAX` series, times mixed with numbers of games, points out of order, a rank that is
    not whole, a prefix that is no id. TypeError: a time without a zone.
    """
    points = [point for one in series for point in one.points]
    spreads = [point.spread or 0 for point in points] if len(series) == 1 else []
    shared, heights = whole_numbers([*(point.value for point in points), *spreads])
    rest = iter(heights)
    lines = [
        _Line([number_of(point.x) for point in one.points], [*islice(rest, len(one.points))], one.points)
        for one in series
    ]
    spread = [*rest] if any(spreads) else []
    _check(lines, marks, span, ranks)
    across = [x for line in lines for x in line.across]
    is_dated = any(isinstance(point.x, datetime) for line in lines for point in line.points[:1])
    uprights = [(number_of(mark.x), mark) for mark in marks]
    if across:
        across += [*(x for x, _ in uprights), *(number_of(x) for x in span or ())]
    reach = reach_of(across, DAY if is_dated else 1)
    courses = _Courses([one.label for one in series], lines, shared, uprights, reach, is_dated, ranks, spread)
    return _figure(partial(_draw_steps, courses), bool(across), title, description, prefix, standalone)


def spark(values: Sequence[Number]) -> str:
    """Values as a small step line without axes, for the row of a table that has the numbers: not read aloud."""
    drawn = ""
    if values:
        shared, heights = whole_numbers(values)
        frame = _Frame(20, 1080, 30, 190, *reach_of([0, len(values) - 1]), *reach_of(heights, shared))
        places = [*zip(frame.across(range(len(values))), frame.down(heights), strict=True)]
        x, y = places[-1]
        drawn = f'<path d="{step_path(places, x)}"/><circle cx="{tenths(x)}" cy="{tenths(y)}" r="2"/>'
    return f'<svg class="spark" viewBox="0 0 112 22" aria-hidden="true" focusable="false">{drawn}</svg>'


def distribution(
    values: Sequence[Fraction],
    *,
    title: str,
    description: str,
    prefix: str,
    here: Mark | None = None,
    standalone: bool = False,
) -> str:
    """Return how many players have how many points: bars of equal ranges, each with its lower end, fewer for few.

    `here` marks one player by their points. Otherwise as `steps`. ValueError: a prefix that is no id.
    """
    low, high = reach_of([*values, *([number_of(here.x)] if here and values else [])])
    width = round_step(high - low, min(_BINS_MAX, 3 + isqrt(4 * len(values))))
    first = floor(low / width)
    bins = [0] * (floor(high / width) - first + 1)
    for value in values:
        bins[floor(value / width) - first] += 1

    def draw(paper: _Paper) -> _Drawing:
        return _draw_bars(paper, bins, first, width, here)

    return _figure(draw, bool(values), title, description, prefix, standalone)


@dataclass(frozen=True, slots=True)
class _Paper:
    """One of the two drawings: its width, the height of what lies between its axes, its text, in units; its dots."""

    name: str
    width: int
    height: int
    text: int
    dots: int


@dataclass(frozen=True, slots=True)
class _Drawing:
    """What was drawn, its height in units, and whether dots were left out."""

    picture: str
    dots: str
    height: int
    is_thinned: bool = False


@dataclass(frozen=True, slots=True)
class _Line:
    """A series as it is drawn: its points as numbers, and what the marks of some of them say and lead to, escaped."""

    across: Sequence[Number]
    heights: Sequence[int]
    points: Sequence[Point]
    _told: dict[int, tuple[str, str]] = field(default_factory=dict)

    def told(self, index: int) -> tuple[str, str]:
        """Return the title and the link of a point; all drawings have the same."""
        if index not in self._told:
            point = self.points[index]
            title, link = (one() if callable(one) else one for one in (point.title, point.link))
            self._told[index] = safe(cut(title, 20_000, 10)), safe(link)
        return self._told[index]


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where the axes lie, in tenths of a unit, and from which to which number each reaches."""

    left: int
    right: int
    top: int
    bottom: int
    first: Number
    last: Number
    low: Number
    high: Number

    def across(self, numbers: Sequence[Number]) -> list[int]:
        """Return the places of numbers on the axis across."""
        return _places(numbers, self.first, self.last, self.left, self.right)

    def down(self, values: Sequence[Number]) -> list[int]:
        """Return the places of values on the upright axis."""
        return _places(values, self.low, self.high, self.bottom, self.top)


_WIDE = _Paper("wide", 720, 190, 11, 100)
_NARROW = _Paper("narrow", 360, 200, 13, 60)
# between the ends of the axis across and the first and last place on it, so that no dot is cut, in tenths
_INSET = 120


def _places(numbers: Sequence[Number], first: Number, last: Number, start: int, end: int) -> list[int]:
    """Return where numbers between first and last lie between two places, to the nearest tenth, halves up."""
    _, (low, high, *whole) = whole_numbers([first, last, *numbers])
    span, reach = high - low, 2 * (end - start)
    return [start + ((number - low) * reach + span) // (2 * span) for number in whole]


def _check(
    lines: Sequence[_Line], marks: Sequence[Mark], span: Sequence[datetime | int] | None, is_ranks: bool
) -> None:
    if len(lines) > SERIES_MAX:
        raise ValueError(f"a chart has at most {SERIES_MAX} series, not {len(lines)}")
    points = [point for line in lines for point in line.points]
    xs = [*(point.x for point in points), *(mark.x for mark in marks), *(span or ())]
    if len({isinstance(x, datetime) for x in xs}) > 1:
        raise ValueError("times and numbers of games do not mix")
    if any(line.across != sorted(line.across) for line in lines):
        raise ValueError("the points of a series must be in order")
    if is_ranks and any(point.value.denominator != 1 or point.value < 1 for point in points):
        raise ValueError("ranks are whole numbers from 1")


class _Courses(NamedTuple):
    """Step lines with their labels, the denominator of all their values, upright lines, and from where to where; and of
    a line alone how far each of its values may be off.
    """

    labels: Sequence[str]
    lines: Sequence[_Line]
    shared: int
    marks: Sequence[tuple[Number, Mark]]
    reach: tuple[Number, Number]
    is_dated: bool
    is_ranks: bool
    spread: Sequence[int]


def _draw_steps(courses: _Courses, paper: _Paper) -> _Drawing:
    labels, lines, shared, marks, reach, is_dated, is_ranks, spread = courses
    heights = [height for line in lines for height in line.heights]
    for sign in (1, -1):
        heights += [height + sign * by for height, by in zip(lines[0].heights, spread, strict=False)]
    lowest, highest = Fraction(min(heights), shared), Fraction(max(heights), shared)
    ticks, step = rank_ticks(highest) if is_ranks else value_ticks(*reach_of([lowest, highest]), 5)
    low, high = (max(*ticks, highest), Fraction(1)) if is_ranks else (ticks[0], ticks[-1])
    names = value_labels(ticks, step)
    kinds = {point.kind for line in lines for point in line.points}
    legend, height = _legend(paper, labels, kinds, has_band=bool(spread))
    top = 10 * (height + (2 * paper.text if marks else paper.text))
    left = _left(paper, names) + _INSET
    frame = _Frame(left, 10 * paper.width - _INSET, top, top + 10 * paper.height, *reach, low * shared, high * shared)
    rows = date_rows(*reach, paper.width // paper.text) if is_dated else game_rows(*reach)
    picture = [
        legend,
        _grid(paper, frame, [tick * shared for tick in ticks], names),
        _feet(paper, frame, _fitting(paper, frame, rows)),
    ]
    picture.append(_uprights(paper, frame, marks))
    if spread:
        picture.append(_draw_band(frame, lines[0], spread))
    dots, is_thinned = [], False
    for index, line in enumerate(lines):
        places = [*zip(frame.across(line.across), frame.down(line.heights), strict=True)]
        kinds_of = [point.kind for point in line.points]
        drawn = [place for place, kind in zip(places, kinds_of, strict=True) if kind != "published"]
        if len(drawn) > 1 and kinds_of[0] == "start" and drawn[0][0] == drawn[1][0]:
            drawn[0] = (drawn[0][0] - 100, drawn[0][1])
        if drawn:
            path = step_path(drawn, frame.right)
            picture.append(f'<g class="s{index + 1}"><path class="step" d="{path}"/></g>')
        kept = _thinned(kinds_of, line.heights, paper.dots // len(lines))
        is_thinned |= len(kept) < len(kinds_of) - kinds_of.count("start")
        size = 30 if len(kept) * 80 < frame.right - frame.left else 20
        marked = (_dot(index, *places[one], kinds_of[one], size, *line.told(one)) for one in kept)
        dots.append(f'<g class="s{index + 1}">{"".join(marked)}</g>')
    return _Drawing("".join(picture), "".join(dots), frame.bottom // 10 + 2 * paper.text, is_thinned)


def _draw_band(frame: _Frame, line: _Line, spread: Sequence[int]) -> str:
    """Return how far the values of a line may be off after each game and change."""
    zipped = zip(line.points, line.across, line.heights, spread, strict=True)
    own = [(x, height, by) for point, x, height, by in zipped if point.kind not in ("start", "published")]
    tops, bottoms = (frame.down([height + sign * by for _, height, by in own]) for sign in (1, -1))
    places = zip(frame.across([x for x, _, _ in own]), tops, bottoms, strict=True)
    return f'<g class="s1"><path class="band" d="{band_path([*places], frame.right)}"/></g>'


def _draw_bars(paper: _Paper, bins: Sequence[int], first: int, width: Fraction, here: Mark | None) -> _Drawing:
    ticks, step = value_ticks(0, max(bins), 4, is_whole=True)
    names = value_labels(ticks, step)
    top = 10 * (2 * paper.text if here else paper.text)
    ends = (first * width, (first + len(bins)) * width)
    frame = _Frame(
        _left(paper, names) + _INSET, 10 * paper.width - _INSET, top, top + 10 * paper.height, *ends, 0, ticks[-1]
    )
    bounds = value_labels([(first + index) * width for index in range(len(bins) + 1)], width)
    drawn = [_grid(paper, frame, ticks, names)]
    drawn.append(_feet(paper, frame, _fitting(paper, frame, _edges(first, width, bounds))))
    for index, number in enumerate(bins):
        edge = (first + index) * width
        (start, end), (y,) = frame.across([edge, edge + width]), frame.down([number])
        is_here = here is not None and edge <= number_of(here.x) < edge + width
        drawn.append(
            f'<rect class="bar{" here" if is_here else ""}" x="{tenths(start + 5)}" y="{tenths(y)}" '
            f'width="{tenths(end - start - 10)}" height="{tenths(frame.bottom - y)}">'
            f"<title>{bounds[index]} to {bounds[index + 1]}: {count(number, 'player')}</title></rect>"
        )
    drawn.append(_uprights(paper, frame, [(number_of(here.x), here)] if here else []))
    return _Drawing("".join(drawn), "", frame.bottom // 10 + 2 * paper.text)


def _edges(first: int, width: Fraction, bounds: Sequence[str]) -> Iterator[list[tuple[Number, str]]]:
    """Yield the ends of bars with their labels: all, every second one, every fifth, and so on."""
    for every in (1, 2, 5, 10, 20):
        numbered = enumerate(bounds, first)
        yield [(number * width, name) for number, name in numbered if number % every == 0]


def _figure(
    draw: Callable[[_Paper], _Drawing], is_there: bool, title: str, description: str, prefix: str, standalone: bool
) -> str:
    """Both drawings for a page, or the wide one as a file."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", prefix):
        raise ValueError(f"no prefix for ids: {prefix!r}")
    drawn = []
    for paper in (_WIDE,) if standalone else (_WIDE, _NARROW):
        middle = (
            f'<text x="{paper.width // 2}" y="{paper.height // 2}" text-anchor="middle">Nothing to show yet.</text>'
        )
        drawing = draw(paper) if is_there else _Drawing(middle, "", paper.height)
        name = f"{prefix}-{paper.name}"
        told = f"{description} Not every game has a dot.".lstrip() if drawing.is_thinned else description
        picture = (
            f'<g role="img" aria-labelledby="{name}-title {name}-description">'
            f'<title id="{name}-title">{safe(title)}</title>'
            f'<desc id="{name}-description">{safe(told)}</desc>{drawing.picture}</g>'
        )
        dots = f'<g aria-hidden="true">{drawing.dots}</g>' if drawing.dots else ""
        if standalone:
            return _file(paper, drawing.height, title, picture + dots)
        drawn.append(
            f'<svg class="chart-{paper.name}" viewBox="0 0 {paper.width} {drawing.height}">{picture}{dots}</svg>'
        )
    return f'<div class="chart">{"".join(drawn)}</div>'


def _file(paper: _Paper, height: int, title: str, inner: str) -> str:
    """Return a drawing as a file: with its style, a background, a margin and its title above it."""
    width, whole = paper.width + 32, height + 56
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="-16 -40 {width} {whole}" width="{width}" '
        f'height="{whole}"><style>{STYLE}</style><rect class="paper" x="-16" y="-40" width="{width}" height="{whole}"/>'
        f'<text class="heading" y="-14">{safe(cut(title, 10 * paper.width, 16))}</text>{inner}</svg>\n'
    )


def _legend(paper: _Paper, labels: Sequence[str], kinds: Iterable[Kind], *, has_band: bool) -> tuple[str, int]:
    """Return what lines and marks mean, in rows, and the height of all rows in units: 0 for a lone line of games."""
    line = f'<path class="step" d="M0 0h{2 * paper.text}"/>'
    named = labels if len(labels) > 1 else []
    items = [
        (f'<g class="s{index + 1}">{line}{_dot(index, 10 * paper.text, 0, "game", 30)}</g>', label)
        for index, label in enumerate(named)
    ]
    if has_band:
        area = f'<path class="band" d="M0-{tenths(5 * paper.text)}h{2 * paper.text}v{paper.text}h-{2 * paper.text}z"/>'
        items.append((f'<g class="s1">{area}{line}</g>', "± deviation"))
    items += [(_dot(0, 10 * paper.text, 0, kind, 30), told) for kind, told in _KINDS_TOLD.items() if kind in kinds]
    drawn, x, row = [], 0, 0
    for sample, label in items:
        text = cut(label, 10 * (paper.width - 3 * paper.text), paper.text)
        width = 30 * paper.text + text_width(text, paper.text)
        if x and x + width > 10 * paper.width:
            x, row = 0, row + 1
        y = 10 * paper.text + row * 17 * paper.text
        full = f"<title>{safe(label)}</title>" if text != label else ""
        drawn.append(
            f'<g transform="translate({tenths(x)} {tenths(y - 4 * paper.text)})">{full}{sample}'
            f'<text x="{tenths(26 * paper.text)}" y="{tenths(4 * paper.text)}">{safe(text)}</text></g>'
        )
        x += width + 15 * paper.text
    return "".join(drawn), (row + 1) * 17 * paper.text // 10 if items else 0


def _grid(paper: _Paper, frame: _Frame, values: Sequence[Number], names: Sequence[str]) -> str:
    """Return a line across for each value, with its label on the left."""
    end, left = tenths(frame.left - _INSET - 80), tenths(frame.left - _INSET)
    places = [*zip(frame.down(values), names, strict=True)]
    lines = "".join(f"M{left} {tenths(y)}H{paper.width}" for y, _ in places)
    names = "".join(f'<text x="{end}" y="{tenths(y + 4 * paper.text)}">{safe(name)}</text>' for y, name in places)
    return f'<path class="grid" d="{lines}"/><g text-anchor="end">{names}</g>'


def _feet(paper: _Paper, frame: _Frame, ticks: Sequence[tuple[Number, str]]) -> str:
    """Return a short line below the axis for each number across, with its label."""
    places = frame.across([x for x, _ in ticks])
    lines = "".join(f"M{tenths(place)} {tenths(frame.bottom)}v5" for place in places)
    y = tenths(frame.bottom + 16 * paper.text)
    names = "".join(
        f'<text x="{tenths((start + end) // 2)}" y="{y}">{safe(name)}</text>'
        for (_, name), (start, end) in zip(ticks, _boxes(paper, frame, ticks), strict=True)
    )
    return f'<path class="grid" d="{lines}"/><g text-anchor="middle">{names}</g>'


def _uprights(paper: _Paper, frame: _Frame, marks: Sequence[tuple[Number, Mark]]) -> str:
    """Upright lines; each has its label beside its top where that has room, and else its title alone."""
    drawn, taken = [], -1
    some = sorted(marks, key=lambda one: one[0])[:: ceil(len(marks) / _MARKS_MAX) or 1]
    for place, (_, mark) in zip(frame.across([x for x, _ in some]), some, strict=True):
        text = cut(mark.label, 4 * paper.width, paper.text)
        width, label, top = text_width(text, paper.text), "", frame.top
        start = place + 50 if place + 50 + width <= 10 * paper.width else place - 50 - width
        if text and start > taken:
            label = f'<text x="{tenths(start)}" y="{tenths(frame.top - 5 * paper.text)}">{safe(text)}</text>'
            taken, top = max(place, start + width) + 50, frame.top - 15 * paper.text
        title = f"<title>{safe(mark.title or mark.label)}</title>"
        line = f"M{tenths(place)} {tenths(top)}V{tenths(frame.bottom)}"
        drawn.append(f'<g>{title}<path class="mark" d="{line}"/>{label}</g>')
    return "".join(drawn)


def _dot(series: int, x: int, y: int, kind: Kind, size: int, title: str = "", link: str = "") -> str:
    """Return the mark of a point, `size` tenths in each direction, by its kind and for a game by its series."""
    if kind == "start":
        return ""
    told = f"<title>{title}</title>" if title else ""
    if kind == "game" and series == 0:
        shape = f'<circle class="dot" cx="{tenths(x)}" cy="{tenths(y)}" r="{tenths(size)}">{told}</circle>'
    else:
        name = {"game": "dot", "change": "tick", "published": "published"}[kind]
        shape = f'<path class="{name}" d="M{tenths(x)} {tenths(y)}{_outline(kind, series, size)}">{told}</path>'
    return f'<a href="{link}" tabindex="-1">{shape}</a>' if link else shape


def _outline(kind: Kind, series: int, size: int) -> str:
    """Return a shape around the place where the pen is: tick, diamond, and for games that of their series; two are
    hollow.
    """
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


def _thinned(kinds: Sequence[Kind], heights: Sequence[int], most: int) -> list[int]:
    """Return the points that get a mark: of each kind at most so many, at equal distances, which are powers of 2, so
    that the smaller drawing has some of those of the larger one; and the highest, the lowest and the last.
    """
    kept: set[int] = set()
    for kind, share in (("game", most), ("change", most // 2), ("published", most // 2)):
        if found := [index for index, one in enumerate(kinds) if one == kind]:
            kept.update(found[:: 1 << (ceil(len(found) / share) - 1).bit_length()])
            kept.update((min(found, key=heights.__getitem__), max(found, key=heights.__getitem__), found[-1]))
    return sorted(kept)


def _fitting(
    paper: _Paper, frame: _Frame, candidates: Iterable[Sequence[tuple[Number, str]]]
) -> list[tuple[Number, str]]:
    """Return the first row of labels of which none comes close to the next; nothing, if all do."""
    for ticks in candidates:
        boxes = _boxes(paper, frame, ticks)
        gaps = [after - end for (_, end), (after, _) in pairwise(boxes)]
        if ticks and min(gaps, default=20 * paper.text) >= 20 * paper.text:
            return list(ticks)
    return []


def _boxes(paper: _Paper, frame: _Frame, ticks: Sequence[tuple[Number, str]]) -> list[tuple[int, int]]:
    """From where to where the labels below an axis reach, in tenths: around their places, but on the paper."""
    found = []
    for place, (_, name) in zip(frame.across([x for x, _ in ticks]), ticks, strict=True):
        width = text_width(name, paper.text)
        start = max(0, min(10 * paper.width - width, place - width // 2))
        found.append((start, start + width))
    return found


def _left(paper: _Paper, names: Sequence[str]) -> int:
    """Return where the upright axis lies, in tenths: right of its labels."""
    return max(text_width(name, paper.text) for name in names) + 80

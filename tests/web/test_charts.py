"""Charts: what stands where, worked out again from the picture; hostile text, hard numbers, sizes."""

import doctest
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratings_ledger.web import axes, svg
from ratings_ledger.web.charts import (
    STYLE,
    Point,
    PointKind,
    Series,
    VerticalLine,
    draw_distribution,
    draw_sparkline,
    draw_steps,
)

SVG = "{http://www.w3.org/2000/svg}"
ABOUT = {"title": "Points of mira", "description": "The table has every game.", "prefix": "points"}
SIZES = {720: 11, 360: 13}  # of text, by the width of the drawing


def evening(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}T19:30:00+00:00")


MIRA = Series("mira", [
    Point(evening("2024-10-18"), Fraction(1000), "start"),
    Point(evening("2024-10-18"), Fraction("967.76"), title="wl-03: 967.76", link="games/wl-03.html"),
    Point(evening("2024-11-08"), Fraction("985.32"), title="wl-06: 985.32", link="games/wl-06.html"),
    Point(evening("2024-12-13"), Fraction("1004.65"), title="wl-14: 1,004.65", link="games/wl-14.html"),
    Point(evening("2024-12-13"), Fraction(3102, 3), title="wl-15: 1,034", link="games/wl-15.html"),
    Point(evening("2025-01-02"), Fraction("1029.50"), "change", "adjusted: -4.50"),
    Point(evening("2025-02-28"), Fraction("1042.55"), "published", "published: 1,042.55", "lists/1.html"),
    Point(evening("2025-04-04"), Fraction("962.82"), title="wl-32: 962.82", link="games/wl-32.html"),
])  # fmt: skip


def drawings(chart: str) -> list[Element]:
    """The drawings of a chart for a page: the wide one, the narrow one."""
    page = ElementTree.fromstring(chart)
    assert page.tag == "div"
    assert [one.tag for one in page] == ["svg", "svg"]
    return list(page)


def box(drawing: Element) -> tuple[int, int]:
    left, top, width, height = map(int, drawing.attrib["viewBox"].split())
    assert (left, top) == (0, 0)
    return width, height


def of_class(drawing: Element, name: str, within: str = ".//") -> list[Element]:
    return drawing.findall(f"{within}*[@class='{name}']")


def title_of(shape: Element) -> str | None:
    return shape.findtext("title")


def marked(drawing: Element) -> dict[str, tuple[Fraction, Fraction]]:
    """Where everything with a title lies that is drawn over the picture, by its title."""
    found = {}
    for shape in drawing.findall("./g[@aria-hidden='true']//"):
        if title := shape.findtext("title"):
            start = [shape.get("cx"), shape.get("cy")]
            if shape.tag == "path":
                start = list(re.match(r"M(\S+?) ([\d.]+)", shape.attrib["d"]).groups())  # type: ignore[union-attr]
            elif shape.tag == "a":
                continue
            found[title] = (Fraction(start[0]), Fraction(start[1]))
    return found


def corners(path: str) -> list[tuple[Fraction, Fraction]]:
    """The corners of a step line of relative moves; a move of another kind is an error."""
    start = re.match(r"M([\d.]+) ([\d.]+)", path)
    assert start
    x, y = Fraction(start[1]), Fraction(start[2])
    found, rest = [(x, y)], path[start.end() :]
    moves = re.findall(r"([hv])(-?[\d.]+)", rest)
    assert "".join(way + number for way, number in moves) == rest
    for way, number in moves:
        x, y = (x + Fraction(number), y) if way == "h" else (x, y + Fraction(number))
        found.append((x, y))
    return found


def lines(drawing: Element) -> list[list[tuple[Fraction, Fraction]]]:
    """The step lines of a drawing, without the samples of its legend."""
    paths = [path.attrib["d"] for path in of_class(drawing, "step")]
    return [corners(path) for path in paths if not path.startswith("M0 0h")]


def axis(drawing: Element) -> dict[str, Fraction]:
    """The labels of the upright axis, and where their lines lie."""
    labels = [text.text or "" for text in drawing.findall(".//g[@text-anchor='end']/text")]
    grid = of_class(drawing, "grid")[0].attrib["d"]
    heights = [Fraction(y) for y in re.findall(r"M[\d.]+ ([\d.]+)H", grid)]
    assert len(labels) == len(heights) >= 2
    return dict(zip(labels, heights, strict=True))


def feet(drawing: Element) -> list[tuple[str, Fraction]]:
    """The labels below the axis across, and where their ticks lie."""
    labels = [text.text or "" for text in drawing.findall(".//g[@text-anchor='middle']/text")]
    return list(
        zip(labels, map(Fraction, re.findall(r"M([\d.]+) ", of_class(drawing, "grid")[1].attrib["d"])), strict=True)
    )


def value(label: str) -> Fraction:
    return Fraction(label.replace(",", "").replace("−", "-"))


def texts(drawing: Element) -> Iterator[tuple[str, float, float, float]]:
    """Every visible text: what it says, from where to where it reaches, and its base line, by a guess of its width."""
    size = SIZES[box(drawing)[0]]

    def walk(node: Element, x: float, y: float, anchor: str) -> Iterator[tuple[str, float, float, float]]:
        anchor = node.get("text-anchor", anchor)
        if moved := re.fullmatch(r"translate\((\S+) (\S+)\)", node.get("transform", "")):
            x, y = x + float(moved[1]), y + float(moved[2])
        if node.tag == "text":
            width = sum(0.3 if one in ",. " else 1 if one > "\u2fff" else 0.58 for one in node.text or "") * size
            start = x + float(node.attrib["x"]) - {"start": 0, "middle": width / 2, "end": width}[anchor]
            yield node.text or "", start, start + width, y + float(node.attrib["y"])
        for child in node:
            yield from walk(child, x, y, anchor)

    yield from walk(drawing, 0, 0, "start")


def assert_readable(chart: str) -> None:
    """No text of a drawing overlaps another, and none lies outside of it."""
    for drawing in drawings(chart):
        (width, height), size = box(drawing), SIZES[box(drawing)[0]]
        found = list(texts(drawing))
        for index, (text, start, end, base) in enumerate(found):
            assert start >= -1, text
            assert end <= width + 1, text
            assert size * 0.7 <= base <= height, text
            for other, other_start, other_end, other_base in found[index + 1 :]:
                apart = start > other_end or other_start > end or abs(base - other_base) >= size * 0.9
                assert apart, f"{text!r} overlaps {other!r} at {width}"


def test_a_chart_says_what_it_is() -> None:
    """Given a chart, both its drawings are pictures with a title and a description, under ids of their own."""
    chart = draw_steps([MIRA], **ABOUT)
    ids = [node.attrib["id"] for node in ElementTree.fromstring(chart).iter() if "id" in node.attrib]
    assert len(ids) == len(set(ids)) == 4
    assert all(one.startswith("points-") for one in ids)
    for drawing in drawings(chart):
        [picture] = drawing.findall(".//*[@role='img']")
        told = [
            next(one for one in picture if one.get("id") == name) for name in picture.attrib["aria-labelledby"].split()
        ]
        assert [(one.tag, one.text) for one in told] == [("title", ABOUT["title"]), ("desc", ABOUT["description"])]
    other = draw_steps([MIRA], **{**ABOUT, "prefix": "rank"})
    assert not set(ids) & set(re.findall(r'id="([^"]+)"', other))


def test_the_same_arguments_give_the_same_bytes() -> None:
    """Given the same points twice, whatever was drawn in between, the chart is the same text."""
    first = draw_steps([MIRA], **ABOUT)
    draw_distribution([Fraction(1)], **ABOUT)
    assert draw_steps([Series("mira", list(MIRA.points))], **ABOUT) == first


@pytest.mark.parametrize("which", [0, 1], ids=["wide", "narrow"])
def test_every_point_lies_where_the_axes_say(which: int) -> None:
    """Given points by date, each dot, tick and diamond lies on the scale of the labels, to a tenth of a unit."""
    drawing = drawings(draw_steps([MIRA], **ABOUT))[which]
    labels = axis(drawing)
    assert list(labels) == ["960", "980", "1,000", "1,020", "1,040", "1,060"]
    (low, bottom), *_, (high, top) = labels.items()
    per_unit = (bottom - top) / (value(high) - value(low))
    found = marked(drawing)
    assert found.keys() == {point.title for point in MIRA.points if point.title}
    first, last = found["wl-03: 967.76"][0], found["wl-32: 962.82"][0]
    whole = (evening("2025-04-04") - evening("2024-10-18")) / timedelta(seconds=1)
    for point in MIRA.points[1:]:
        x, y = found[point.title]
        assert isinstance(point.x, datetime)
        share = Fraction((point.x - evening("2024-10-18")) // timedelta(seconds=1)) / Fraction(whole)
        assert abs(y - (bottom - (point.value - value(low)) * per_unit)) <= Fraction("0.051")
        assert abs(x - (first + (last - first) * share)) <= Fraction("0.151")


def test_labels_of_dates_lie_where_their_dates_are() -> None:
    """Given half a year, the labels are its months, each on the scale of the games, with the year where it changes."""
    for drawing in drawings(draw_steps([MIRA], **ABOUT)):
        found, day = marked(drawing), timedelta(days=1)
        first, last = found["wl-03: 967.76"][0], found["wl-32: 962.82"][0]
        begin = evening("2024-10-18")
        labels = feet(drawing)
        months = {"Nov 2024": "2024-11-01", "Dec": "2024-12-01", "Jan 2025": "2025-01-01", "Feb": "2025-02-01",
                  "Mar": "2025-03-01", "Apr": "2025-04-01"}  # fmt: skip
        assert [label for label, _ in labels] in (list(months), ["Nov 2024", "Jan 2025", "Mar"])
        for label, x in labels:
            instant = datetime.fromisoformat(months[label]).replace(tzinfo=UTC)
            share = Fraction((instant - begin) / day) / Fraction((evening("2025-04-04") - begin) / day)
            assert abs(x - (first + (last - first) * share)) <= Fraction("0.151")


def test_lines_step_and_pass_through_every_change() -> None:
    """Given points, the line goes across and upright alone, through every game and change, not what was published."""
    for drawing in drawings(draw_steps([MIRA], span=(evening("2024-10-18"), evening("2025-05-30")), **ABOUT)):
        [line], found = lines(drawing), marked(drawing)
        on_line = {title: place for title, place in found.items() if not title.startswith("published")}
        assert set(on_line.values()) <= set(line)
        assert found["published: 1,042.55"][1] not in {y for _, y in line}
        assert line[0][1] == axis(drawing)["1,000"]
        assert line[-1][1] == found["wl-32: 962.82"][1]
        assert line[-1][0] > found["wl-32: 962.82"][0] + 30
        assert line[-1][0] <= box(drawing)[0]


def test_kinds_of_points_look_different() -> None:
    """Given a game, a change and a published list, they are a dot, a tick and a diamond, and a legend explains two."""
    for drawing in drawings(draw_steps([MIRA], **ABOUT)):
        over = drawing.findall("./g[@aria-hidden='true']//")
        kinds = {title_of(shape): shape.get("class") for shape in over if title_of(shape) and shape.tag != "a"}
        assert kinds["wl-14: 1,004.65"] == "dot"
        assert kinds["adjusted: -4.50"] == "tick"
        assert kinds["published: 1,042.55"] == "published"
        assert {"published", "change without a game"} <= {text for text, *_ in texts(drawing)}


def test_links_lie_outside_of_the_picture() -> None:
    """Given links, they are over the picture and not in it, and the keyboard passes them by."""
    for drawing in drawings(draw_steps([MIRA], **ABOUT)):
        assert drawing.findall(".//*[@role='img']//a") == []
        links = drawing.findall(".//a")
        assert [link.attrib["href"] for link in links] == [point.link for point in MIRA.points if point.link]
        assert {link.attrib["tabindex"] for link in links} == {"-1"}


def test_numbers_of_games_are_an_axis_too() -> None:
    """Given points by number of games, games lie at equal distances and the last label says what is counted."""
    series = Series("mira", [Point(n, Fraction(1000 + n * n), title=f"game {n}") for n in range(21)])
    for drawing in drawings(draw_steps([series], **ABOUT)):
        xs = [x for x, _ in marked(drawing).values()]
        gaps = [after - before for before, after in pairwise(xs)]
        assert max(gaps) - min(gaps) <= Fraction("0.1")
        labels = feet(drawing)
        assert labels[0][0] == "0"
        assert labels[-1][0] == "20 games"
        assert all(xs[int(label.split()[0])] == x for label, x in labels)


def test_rank_1_is_on_top() -> None:
    """Given ranks, the first is highest, every label is whole, and no other rank is nearer to it than the next."""
    series = Series("mira", [Point(n, Fraction(rank), title=f"{n}") for n, rank in enumerate([4, 2, 1, 3, 3, 38], 1)])
    for drawing in drawings(draw_steps([series], values_are_ranks=True, **ABOUT)):
        labels, found = axis(drawing), marked(drawing)
        assert labels["1"] == min(labels.values()) == found["3"][1]
        assert all(re.fullmatch("[0-9]+", label) for label in labels)
        assert found["3"][1] < found["2"][1] < found["4"][1] == found["5"][1] < found["1"][1] < found["6"][1]


def test_series_differ_by_more_than_colour() -> None:
    """Given six series, each has its class, its dash and its shape, and is named in the legend."""
    series = [
        Series(f"player {n}", [Point(x, Fraction(n * 10 + x), title=f"{n} {x}") for x in (1, 2)]) for n in range(6)
    ]
    for drawing in drawings(draw_steps(series, **ABOUT)):
        assert len(lines(drawing)) == 6
        assert {f"player {n}" for n in range(6)} <= {text for text, *_ in texts(drawing)}
        shapes = set()
        for group in drawing.findall("./g[@aria-hidden='true']/g"):
            is_hollow = f".{group.attrib['class']} .dot" in STYLE
            outlines = {re.sub(r"^M\S+ [\d.]+", "", shape.get("d", "circle")) for shape in of_class(group, "dot")}
            shapes |= {(outline, is_hollow) for outline in outlines}
        assert len(shapes) == 6
    dashes = re.findall(r"\.s(\d) \.step\{stroke-dasharray:([\d ]+)\}", STYLE)
    assert [name for name, _ in dashes] == ["2", "3", "4", "5", "6"]
    assert len({dash for _, dash in dashes}) == 5


def test_marks_stand_at_their_dates() -> None:
    """Given upright marks close to each other, all have their titles, and labels are left out before they overlap."""
    days = ["2024-11-08", "2024-11-10", "2024-12-13", "2025-04-03"]
    marks = [VerticalLine(evening(day), "corrected later", f"corrected: {day}") for day in days]
    chart = draw_steps([MIRA], vertical_lines=marks, **ABOUT)
    assert_readable(chart)
    for drawing in drawings(chart):
        found = {}
        for group in drawing.findall(".//g"):
            for path in group.findall("path[@class='mark']"):
                found[title_of(group)] = Fraction(re.match(r"M([\d.]+)", path.attrib["d"])[1])  # type: ignore[index]
        assert list(found) == [f"corrected: {day}" for day in days]
        assert found["corrected: 2024-11-08"] == marked(drawing)["wl-06: 985.32"][0]
        assert 2 <= sum(text == "corrected later" for text, *_ in texts(drawing)) < len(days)


anything = st.text(st.characters(), max_size=70)
TAGS = {"div", "svg", "g", "title", "desc", "path", "text", "circle", "a", "rect"}
ATTRIBUTES = {"class", "viewBox", "role", "aria-labelledby", "aria-hidden", "id", "d", "x", "y", "cx", "cy", "r",
              "href", "tabindex", "text-anchor", "transform", "width", "height"}  # fmt: skip
EVIL = ["", '"><script>alert(1)</script>', "]]>&amp;<!--", "\x00\x1b[2J\u202e\ufffe\ud800"]


@pytest.mark.slow
@given(anything, anything, anything, st.sampled_from(EVIL))
def test_hostile_text_is_text(one: str, other: str, third: str, evil: str) -> None:
    """Given any text in any place, the chart parses, has no element or attribute of its own making, nothing unseen."""
    points = [
        Point(1, Fraction(1), title=one + evil, link=third + evil),
        Point(2, Fraction(2), "published", evil + other),
    ]
    about = {"title": third + evil, "description": evil + one, "prefix": "x"}
    charts = [
        draw_steps(
            [Series(evil + one, points), Series(other + evil, points)],
            vertical_lines=[VerticalLine(1, one + evil, evil)],
            **about,
        ),
        draw_distribution(
            [Fraction(1), Fraction(2)], highlighted=VerticalLine(Fraction(2), evil + other, third), **about
        ),
    ]
    for chart in charts:
        page = ElementTree.fromstring(chart)
        assert {node.tag for node in page.iter()} <= TAGS
        assert {name for node in page.iter() for name in node.attrib} <= ATTRIBUTES
        assert all(character.isprintable() or character.isspace() for character in chart)
        assert not {"\n", "\t", "\u2028", "\x85"} & set(chart)


def test_text_is_shown_as_it_is() -> None:
    """Given markup and a character that turns text around, both are seen, in labels, titles and links."""
    names = ["Ben & <b>Jerry</b>", "a\u202eb"]
    chart = draw_steps([Series(name, [Point(1, Fraction(1), title=name, link=name)]) for name in names], **ABOUT)
    for drawing in drawings(chart):
        seen = ["Ben & <b>Jerry</b>", "a\\u202eb"]
        assert [text for text, *_ in texts(drawing) if text in seen] == seen
        assert list(marked(drawing)) == seen
        assert [link.attrib["href"] for link in drawing.findall(".//a")] == seen


def test_long_names_are_cut_where_they_have_no_room() -> None:
    """Given names of 64 code points, of wide letters too, the legend keeps within the drawing and has them in full."""
    names = ["W" * 64, "名" * 64, "x" * 64]
    chart = draw_steps([Series(name, [Point(1, Fraction(n))]) for n, name in enumerate(names)], **ABOUT)
    wide, narrow = drawings(chart)
    for drawing in (wide, narrow):
        assert all(end <= box(drawing)[0] for _, _, end, _ in texts(drawing))
        [shortened] = [text for text, *_ in texts(drawing) if text.startswith("名")]
        assert shortened.endswith("…")
        assert "名" * 64 in [node.text for node in drawing.iter("title")]


DAYS = (1, 2, 3, 6, 10, 17, 28, 45, 60, 90, 130, 200, 366, 500, 800, 1_500, 4_000, 9_000, 30_000, 250_000, 2_800_000)
SPANS = [timedelta(minutes=5), *(timedelta(days=days) for days in DAYS)]


@pytest.mark.parametrize("start", [evening("2023-12-30"), datetime(1, 1, 1, tzinfo=UTC)])
@pytest.mark.parametrize("span", SPANS, ids=str)
def test_labels_of_dates_do_not_overlap(span: timedelta, start: datetime) -> None:
    """Given a span of minutes to millennia, the dates below the axis are in order, apart, and more than none."""
    series = Series("mira", [Point(start, Fraction(1000)), Point(start + span, Fraction(1100))])
    chart = draw_steps([series, Series("ben", series.points)], **ABOUT)
    assert_readable(chart)
    for drawing in drawings(chart):
        labels = feet(drawing)
        assert (1 if span < timedelta(days=40) else 2) <= len(labels) <= 16
        assert [x for _, x in labels] == sorted(x for _, x in labels)
        assert re.search(r"\d+$", labels[0][0])


@pytest.mark.slow
@given(
    st.lists(
        st.fractions(max_denominator=10**6) | st.integers(-(10**30), 10**30).map(Fraction), min_size=1, max_size=12
    ),
    st.integers(0, 10**6),
)
def test_any_values_have_axes(values: Sequence[Fraction], first: int) -> None:
    """Given any values, labels are apart and rise, every line and dot lies within its drawing."""
    series = Series("mira", [Point(first + n, value, title=f"{n}") for n, value in enumerate(values)])
    chart = draw_steps([series], **ABOUT)
    assert_readable(chart)
    for drawing in drawings(chart):
        (width, height), labels = box(drawing), axis(drawing)
        assert len(labels) <= 8
        assert list(labels.values()) == sorted(labels.values(), reverse=True)
        assert all(0 <= x <= width and 0 <= y <= height for x, y in marked(drawing).values())
        assert all(0 <= x <= width and 0 <= y <= height for line in lines(drawing) for x, y in line)


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([1000, 1000], ["990", "995", "1,000", "1,005", "1,010"]),
        ([0], ["−1.0", "−0.5", "0.0", "0.5", "1.0"]),
        ([-3, 12], ["−5", "0", "5", "10", "15"]),
        ([10**12, 3 * 10**12], ["1e12", "1.5e12", "2e12", "2.5e12", "3e12"]),
        ([10**20 + 1, 10**20 + 3], ["…00,001.0", "…00,001.5", "…00,002.0", "…00,002.5", "…00,003.0"]),
    ],
)
def test_values_are_labelled_as_short_as_they_can_be(values: list[int], labels: list[str]) -> None:
    """Given values of any size, labels are round, in full where that is short, and differ from each other."""
    series = Series("mira", [Point(n, Fraction(value)) for n, value in enumerate(values)])
    for drawing in drawings(draw_steps([series], **ABOUT)):
        assert list(axis(drawing)) == labels


def test_nothing_to_show_is_said() -> None:
    """Given no series, or one without points, the chart says so, and still has its title."""
    for chart in (draw_steps([], **ABOUT), draw_steps([Series("mira", [])], **ABOUT), draw_distribution([], **ABOUT)):
        for drawing in drawings(chart):
            assert [text for text, *_ in texts(drawing)] == ["Nothing to show yet."]
            assert drawing.findtext(".//title") == ABOUT["title"]


@pytest.mark.slow
def test_long_series_are_short_drawings() -> None:
    """Given 10,000 games with titles and links, a chart has under 200 kB, and the line keeps its highest and lowest."""
    extreme = {6_001: 2_000, 7_003: 200}
    points = [
        Point(
            n,
            Fraction(extreme.get(n, 1000 + (-1) ** n * (n * 7919 % 350))),
            title=f"{n} " + "title " * 9,
            link="g" * 60,
        )
        for n in range(10_000)
    ]
    chart = draw_steps([Series("mira", points)], **ABOUT)
    assert len(chart.encode()) < 200_000
    for drawing in drawings(chart):
        [line], labels, found = lines(drawing), axis(drawing), marked(drawing)
        assert min(y for _, y in line) == labels["2,000"]
        bottom, top = labels["0"], labels["2,000"]
        assert abs(max(y for _, y in line) - (bottom - (bottom - top) / 10)) <= Fraction("0.1")
        assert len(found) < 200
        assert {"6001", "7003", "9999"} <= {title.split()[0] for title in found}
        assert "Not every game has a dot." in drawing.findtext(".//desc", "")
        places = {title.split()[0]: place for title, place in found.items()}
        for title, (x, y) in places.items():
            near = [edge for edge in line if abs(edge[0] - x) <= 1]
            assert min(height for _, height in near) <= y <= max(height for _, height in near), title


@pytest.mark.parametrize("count", [1, 2, 30, 4_000])
def test_band_reaches_as_far_as_the_values_may_be_off(count: int) -> None:
    """A series alone has a band behind its line: at every game from value + spread to value - spread, on the axis."""
    points = [Point(0, Fraction(1500), "start")]
    points += [
        Point(n, Fraction(1500 + n * 7919 % 300), deviation=Fraction(700, n + 1), title=f"{n}")
        for n in range(1, count + 1)
    ]
    points.append(Point(count, Fraction(1400), "published"))
    for drawing in drawings(draw_steps([Series("mira", points)], **ABOUT)):
        picture = [*drawing.iter()]
        *_, band = of_class(drawing, "band")
        assert picture.index(band) < picture.index(of_class(drawing, "step")[-1])
        assert "± deviation" in {text for text, *_ in texts(drawing)}
        (low, bottom), *_, (high, top) = axis(drawing).items()
        per_unit = (bottom - top) / (value(high) - value(low))
        assert band.attrib["d"].endswith("z")
        edges, found = corners(band.attrib["d"].removesuffix("z")), marked(drawing)
        assert bottom >= max(y for _, y in edges) > min(y for _, y in edges) >= top
        for point in points[1:-1]:
            if point.title in found:
                x, _ = found[str(point.title)]
                reach = [y for other, y in edges if abs(other - x) <= Fraction("0.5")]
                for sign in (1, -1):
                    assert point.deviation is not None
                    y = bottom - (point.value + sign * point.deviation - value(low)) * per_unit
                    assert min(reach) - Fraction("0.051") <= y <= max(reach) + Fraction("0.051")
                    if count < 1_000:
                        assert any(abs(y - other) <= Fraction("0.051") for other in reach)
        # the area closes at its left end
        assert edges[0][0] == edges[-1][0] == min(x for x, _ in edges)


def test_several_series_have_no_bands() -> None:
    """Bands over each other would hide the lines; nothing that is certain has one."""
    series = [
        Series(name, [Point(n, Fraction(1000 + n), deviation=Fraction(spread)) for n in range(5)])
        for name, spread in (("mira", 50), ("jonas", 60), ("sure", 0))
    ]
    for some in (series, series[2:]):
        chart = draw_steps(some, **ABOUT)
        assert 'class="band"' not in chart
        assert "± deviation" not in chart
        assert all([*axis(drawing)][-1] in ("1,004", "1,005") for drawing in drawings(chart))


@pytest.mark.parametrize("kind", ["start", "published"])
def test_deviations_that_are_no_steps_have_no_band(kind: PointKind) -> None:
    """A band follows games and changes; the deviation of a start or of a published value alone draws none."""
    points = [Point(0, Fraction(1500), kind, deviation=Fraction(350)), Point(1, Fraction(1510))]
    chart = draw_steps([Series("mira", points)], **ABOUT)
    assert 'class="band"' not in chart
    assert "± deviation" not in chart


def test_places_have_at_most_one_decimal() -> None:
    """Given awkward fractions, no place has more than one decimal, and none is written as a power of ten."""
    series = Series("mira", [Point(n, Fraction(n**3, 7)) for n in range(1, 60)])
    for drawing in drawings(draw_steps([series], **ABOUT)):
        for node in drawing.iter():
            for name in ("d", "x", "y", "cx", "cy", "r", "transform"):
                assert not re.search(r"\.\d\d|e", node.get(name, "").replace("translate", "")), node.attrib


def test_colours_come_from_the_style_alone() -> None:
    """Given charts, they name no colour, every class has a rule, and light and dark set the same properties."""
    chart = draw_steps([MIRA, MIRA], vertical_lines=[VerticalLine(evening("2025-01-01"), "x")], **ABOUT)
    bars = draw_distribution([Fraction(1), Fraction(2)], highlighted=VerticalLine(Fraction(1), "x"), **ABOUT)
    assert not re.search(r"#[0-9a-f]{3}|style=|fill=|stroke=", chart + bars + draw_sparkline([Fraction(1)]))
    used = {name for names in re.findall(r'class="([^"]+)"', chart + bars) for name in names.split()}
    assert {name for name in used if f".{name}" not in STYLE} == set()
    light, dark = (
        set(re.findall(r"(--chart-[\w]+):", block)) for block in re.findall(r"\.chart\{(--[^}]+)\}", STYLE)[:2]
    )
    assert light == dark
    assert len(light) == 10


def test_a_file_stands_alone() -> None:
    """Given `standalone`, it is one SVG file with its size, style, background and title, and loads nothing."""
    for chart in (
        draw_steps([MIRA], standalone=True, **ABOUT),
        draw_distribution([Fraction(1)], standalone=True, **ABOUT),
        draw_steps([], standalone=True, **ABOUT),
    ):
        file = ElementTree.fromstring(chart)
        assert file.tag == f"{SVG}svg"
        left, top, width, height = map(int, file.attrib["viewBox"].split())
        assert (file.get("width"), file.get("height")) == (str(width), str(height))
        paper = file.find(f"{SVG}rect[@class='paper']")
        assert paper is not None
        assert [paper.get(name) for name in ("x", "y", "width", "height")] == [
            str(n) for n in (left, top, width, height)
        ]
        assert file.findtext(f"{SVG}style") == STYLE
        assert file.findtext(f"{SVG}text[@class='heading']") == ABOUT["title"]
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|url\(|@import|<image|<script", chart)


def test_sparklines_are_small_and_quiet() -> None:
    """Given values, a sparkline reaches from the lowest to the highest, ends in a dot, and is not read aloud."""
    for values in ([], [5], [5, 5, 5], [1, 9, 4], list(range(5_000))):
        drawn = draw_sparkline([Fraction(value) for value in values])
        line = ElementTree.fromstring(drawn)
        assert line.get("aria-hidden") == "true"
        assert len(drawn) < 5_000
        assert len(line) == (2 if values else 0)
    line = ElementTree.fromstring(draw_sparkline([Fraction(1), Fraction(9), Fraction(4)]))
    path, dot = corners(line[0].attrib["d"]), line[1]
    heights = [y for _, y in path]
    assert heights.index(max(heights)) == 0
    assert path[-1] == (Fraction(dot.attrib["cx"]), Fraction(dot.attrib["cy"]))
    assert path[-1][1] == min(heights) + (max(heights) - min(heights)) * Fraction(5, 8)


def test_bars_count_players() -> None:
    """Given points of a ladder, each bar is as high as its number of players, and the ranges meet without overlap."""
    values = [Fraction(n) for n in (900, 949, 950, 999, 1000, 1000, 1003, 1049, 1120, 1200)]
    chart = draw_distribution(values, highlighted=VerticalLine(Fraction(1003), "anouk, 1,003"), **ABOUT)
    assert_readable(chart)
    for drawing in drawings(chart):
        labels, counted = axis(drawing), 0
        per_player = (labels["0"] - labels["2"]) / 2
        for bar in drawing.findall(".//rect"):
            low, high, number = re.fullmatch(r"(\S+) to (\S+): (\d+) players?", title_of(bar) or "").groups()  # type: ignore[union-attr]
            inside = sum(value(low) <= one < value(high) for one in values)
            assert int(number) == inside
            assert abs(Fraction(bar.attrib["height"]) - inside * per_player) <= Fraction("0.1")
            assert (bar.get("class") == "bar here") == (value(low) <= 1003 < value(high))
            counted += inside
        assert counted == len(values)
        assert "anouk, 1,003" in [text for text, *_ in texts(drawing)]


@pytest.mark.slow
@given(st.lists(st.fractions(-(10**9), 10**9, max_denominator=100), min_size=1, max_size=80))
def test_bars_leave_nobody_out(values: Sequence[Fraction]) -> None:
    """Given any points, the bars hold every player once, and there are few of them."""
    for drawing in drawings(draw_distribution(values, **ABOUT)):
        titles = [title_of(bar) or "" for bar in drawing.findall(".//rect")]
        assert sum(int(re.findall(r": (\d+) player", title)[0]) for title in titles) == len(values)
        assert len(titles) <= 18


@pytest.mark.parametrize(
    ("series", "more", "told"),
    [
        ([MIRA] * 7, {}, "at most 6 series"),
        ([MIRA, Series("ben", [Point(1, Fraction(1))])], {}, "all datetimes or all numbers of games"),
        ([MIRA], {"vertical_lines": [VerticalLine(3, "x")]}, "all datetimes or all numbers of games"),
        ([Series("ben", [Point(2, Fraction(1)), Point(1, Fraction(1))])], {}, "in the order of x"),
        (
            [Series("ben", [Point(2, Fraction(1, 2))])],
            {"values_are_ranks": True},
            "rank 1/2 in series",
        ),
        ([MIRA], {"prefix": 'a"b'}, "cannot begin an id"),
    ],
)
def test_what_cannot_be_drawn_is_refused(series: list[Series], more: dict[str, object], told: str) -> None:
    """Given what makes no chart, a ValueError says why."""
    with pytest.raises(ValueError, match=told):
        draw_steps(series, **{**ABOUT, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("module", [axes, svg], ids=lambda module: module.__name__)
def test_examples_are_right(module: object) -> None:
    """The examples in docstrings give what they say."""
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert (result.failed, result.attempted > 0) == (0, True)

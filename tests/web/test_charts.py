"""Charts: positions recomputed from the drawing, hostile text, extreme numbers, and sizes."""

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
LABELS = {"title": "Points of mira", "description": "The table has every game.", "prefix": "points"}
TEXT_SIZES = {720: 11, 360: 13}  # by the width of the drawing


def parse_evening(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}T19:30:00+00:00")


MIRA = Series(
    "mira",
    [
        Point(parse_evening("2024-10-18"), Fraction(1000), "start"),
        Point(parse_evening("2024-10-18"), Fraction("967.76"), title="wl-03: 967.76", link="games/wl-03.html"),
        Point(parse_evening("2024-11-08"), Fraction("985.32"), title="wl-06: 985.32", link="games/wl-06.html"),
        Point(parse_evening("2024-12-13"), Fraction("1004.65"), title="wl-14: 1,004.65", link="games/wl-14.html"),
        Point(parse_evening("2024-12-13"), Fraction(3102, 3), title="wl-15: 1,034", link="games/wl-15.html"),
        Point(parse_evening("2025-01-02"), Fraction("1029.50"), "change", "adjusted: -4.50"),
        Point(parse_evening("2025-02-28"), Fraction("1042.55"), "published", "published: 1,042.55", "lists/1.html"),
        Point(parse_evening("2025-04-04"), Fraction("962.82"), title="wl-32: 962.82", link="games/wl-32.html"),
    ],
)


def parse_drawings(chart: str) -> list[Element]:
    """Return the drawings of a chart for a page: the wide one and the narrow one."""
    page = ElementTree.fromstring(chart)
    assert page.tag == "div"
    assert [drawing.tag for drawing in page] == ["svg", "svg"]
    return list(page)


def read_size(drawing: Element) -> tuple[int, int]:
    left, top, width, height = map(int, drawing.attrib["viewBox"].split())
    assert (left, top) == (0, 0)
    return width, height


def find_by_class(drawing: Element, name: str, within: str = ".//") -> list[Element]:
    return drawing.findall(f"{within}*[@class='{name}']")


def read_title(shape: Element) -> str | None:
    return shape.findtext("title")


def find_titled_shapes(drawing: Element) -> dict[str, tuple[Fraction, Fraction]]:
    """Return the position of each titled shape that is drawn over the picture, by its title."""
    positions = {}
    for shape in drawing.findall("./g[@aria-hidden='true']//"):
        if title := shape.findtext("title"):
            start = [shape.get("cx"), shape.get("cy")]
            if shape.tag == "path":
                start = list(re.match(r"M(\S+?) ([\d.]+)", shape.attrib["d"]).groups())  # type: ignore[union-attr]
            elif shape.tag == "a":
                continue
            positions[title] = (Fraction(start[0]), Fraction(start[1]))
    return positions


def parse_corners(path: str) -> list[tuple[Fraction, Fraction]]:
    """Return the corners of a step line of relative moves; a move of another kind is an error."""
    start = re.match(r"M([\d.]+) ([\d.]+)", path)
    assert start
    x, y = Fraction(start[1]), Fraction(start[2])
    path_corners, moves_text = [(x, y)], path[start.end() :]
    moves = re.findall(r"([hv])(-?[\d.]+)", moves_text)
    assert "".join(direction + number for direction, number in moves) == moves_text
    for direction, number in moves:
        x, y = (x + Fraction(number), y) if direction == "h" else (x, y + Fraction(number))
        path_corners.append((x, y))
    return path_corners


def list_step_lines(drawing: Element) -> list[list[tuple[Fraction, Fraction]]]:
    """Return the step lines of a drawing, without the samples of its legend."""
    paths = [path.attrib["d"] for path in find_by_class(drawing, "step")]
    return [parse_corners(path) for path in paths if not path.startswith("M0 0h")]


def read_vertical_axis(drawing: Element) -> dict[str, Fraction]:
    """Return the position of each label of the vertical axis."""
    labels = [text.text or "" for text in drawing.findall(".//g[@text-anchor='end']/text")]
    grid = find_by_class(drawing, "grid")[0].attrib["d"]
    heights = [Fraction(y) for y in re.findall(r"M[\d.]+ ([\d.]+)H", grid)]
    assert len(labels) == len(heights) >= 2
    return dict(zip(labels, heights, strict=True))


def read_horizontal_axis(drawing: Element) -> list[tuple[str, Fraction]]:
    """Return the labels below the horizontal axis with the positions of their ticks."""
    labels = [text.text or "" for text in drawing.findall(".//g[@text-anchor='middle']/text")]
    return list(
        zip(
            labels, map(Fraction, re.findall(r"M([\d.]+) ", find_by_class(drawing, "grid")[1].attrib["d"])), strict=True
        )
    )


def parse_label(label: str) -> Fraction:
    return Fraction(label.replace(",", "").replace("−", "-"))


def measure_texts(drawing: Element) -> Iterator[tuple[str, float, float, float]]:
    """Yield each visible text with its start, its end and its base line; the width is an estimate."""
    size = TEXT_SIZES[read_size(drawing)[0]]

    def walk(node: Element, x: float, y: float, anchor: str) -> Iterator[tuple[str, float, float, float]]:
        anchor = node.get("text-anchor", anchor)
        if moved := re.fullmatch(r"translate\((\S+) (\S+)\)", node.get("transform", "")):
            x, y = x + float(moved[1]), y + float(moved[2])
        if node.tag == "text":
            width = (
                sum(0.3 if letter in ",. " else 1 if letter > "\u2fff" else 0.58 for letter in node.text or "") * size
            )
            start = x + float(node.attrib["x"]) - {"start": 0, "middle": width / 2, "end": width}[anchor]
            yield node.text or "", start, start + width, y + float(node.attrib["y"])
        for child in node:
            yield from walk(child, x, y, anchor)

    yield from walk(drawing, 0, 0, "start")


def assert_readable(chart: str) -> None:
    """Assert that no text of a drawing overlaps another or leaves the drawing."""
    for drawing in parse_drawings(chart):
        (width, height), size = read_size(drawing), TEXT_SIZES[read_size(drawing)[0]]
        measured_texts = list(measure_texts(drawing))
        for index, (text, start, end, base) in enumerate(measured_texts):
            assert start >= -1, text
            assert end <= width + 1, text
            assert size * 0.7 <= base <= height, text
            for other_text, other_start, other_end, other_base in measured_texts[index + 1 :]:
                is_apart = start > other_end or other_start > end or abs(base - other_base) >= size * 0.9
                assert is_apart, f"{text!r} overlaps {other_text!r} at {width}"


def test_chart_has_a_title_and_a_description() -> None:
    """Each of a chart's two drawings is an image with a title and a description under its own ids."""
    chart = draw_steps([MIRA], **LABELS)
    ids = [node.attrib["id"] for node in ElementTree.fromstring(chart).iter() if "id" in node.attrib]
    assert len(ids) == len(set(ids)) == 4
    assert all(id_.startswith("points-") for id_ in ids)
    for drawing in parse_drawings(chart):
        [picture] = drawing.findall(".//*[@role='img']")
        labels = [
            next(child for child in picture if child.get("id") == name)
            for name in picture.attrib["aria-labelledby"].split()
        ]
        assert [(label.tag, label.text) for label in labels] == [
            ("title", LABELS["title"]),
            ("desc", LABELS["description"]),
        ]
    other_chart = draw_steps([MIRA], **{**LABELS, "prefix": "rank"})
    assert not set(ids) & set(re.findall(r'id="([^"]+)"', other_chart))


def test_same_points_give_the_same_bytes() -> None:
    """The same points give the same text, regardless of other drawings in between."""
    first = draw_steps([MIRA], **LABELS)
    draw_distribution([Fraction(1)], **LABELS)
    assert draw_steps([Series("mira", list(MIRA.points))], **LABELS) == first


@pytest.mark.parametrize("index", [0, 1], ids=["wide", "narrow"])
def test_points_lie_on_the_scales(index: int) -> None:
    """Each dot, tick and diamond lies on the scale of the axes, to a tenth of a unit."""
    drawing = parse_drawings(draw_steps([MIRA], **LABELS))[index]
    labels = read_vertical_axis(drawing)
    assert list(labels) == ["960", "980", "1,000", "1,020", "1,040", "1,060"]
    (low, bottom), *_, (high, top) = labels.items()
    per_unit = (bottom - top) / (parse_label(high) - parse_label(low))
    positions = find_titled_shapes(drawing)
    assert positions.keys() == {point.title for point in MIRA.points if point.title}
    first, last = positions["wl-03: 967.76"][0], positions["wl-32: 962.82"][0]
    whole_seconds = (parse_evening("2025-04-04") - parse_evening("2024-10-18")) / timedelta(seconds=1)
    for point in MIRA.points[1:]:
        x, y = positions[point.title]
        assert isinstance(point.x, datetime)
        share = Fraction((point.x - parse_evening("2024-10-18")) // timedelta(seconds=1)) / Fraction(whole_seconds)
        assert abs(y - (bottom - (point.value - parse_label(low)) * per_unit)) <= Fraction("0.051")
        assert abs(x - (first + (last - first) * share)) <= Fraction("0.151")


def test_date_labels_lie_on_the_scale_of_the_games() -> None:
    """Over half a year the labels are months on the scale of the games, with the year on the first label and in
    January."""
    for drawing in parse_drawings(draw_steps([MIRA], **LABELS)):
        positions, day = find_titled_shapes(drawing), timedelta(days=1)
        first, last = positions["wl-03: 967.76"][0], positions["wl-32: 962.82"][0]
        begin = parse_evening("2024-10-18")
        labels = read_horizontal_axis(drawing)
        months = {
            "Nov 2024": "2024-11-01",
            "Dec": "2024-12-01",
            "Jan 2025": "2025-01-01",
            "Feb": "2025-02-01",
            "Mar": "2025-03-01",
            "Apr": "2025-04-01",
        }
        assert [label for label, _ in labels] in (list(months), ["Nov 2024", "Jan 2025", "Mar"])
        for label, x in labels:
            instant = datetime.fromisoformat(months[label]).replace(tzinfo=UTC)
            share = Fraction((instant - begin) / day) / Fraction((parse_evening("2025-04-04") - begin) / day)
            assert abs(x - (first + (last - first) * share)) <= Fraction("0.151")


def test_step_line_passes_through_every_game_and_change() -> None:
    """The line has only horizontal and vertical parts and passes through every game and change, but not published
    values."""
    for drawing in parse_drawings(
        draw_steps([MIRA], span=(parse_evening("2024-10-18"), parse_evening("2025-05-30")), **LABELS)
    ):
        [line], positions = list_step_lines(drawing), find_titled_shapes(drawing)
        on_line = {title: position for title, position in positions.items() if not title.startswith("published")}
        assert set(on_line.values()) <= set(line)
        assert positions["published: 1,042.55"][1] not in {y for _, y in line}
        assert line[0][1] == read_vertical_axis(drawing)["1,000"]
        assert line[-1][1] == positions["wl-32: 962.82"][1]
        assert line[-1][0] > positions["wl-32: 962.82"][0] + 30
        assert line[-1][0] <= read_size(drawing)[0]


def test_kinds_of_points_have_different_shapes() -> None:
    """A game is a dot, a change a tick and a published value a diamond; a legend explains the last two."""
    for drawing in parse_drawings(draw_steps([MIRA], **LABELS)):
        over = drawing.findall("./g[@aria-hidden='true']//")
        kinds = {read_title(shape): shape.get("class") for shape in over if read_title(shape) and shape.tag != "a"}
        assert kinds["wl-14: 1,004.65"] == "dot"
        assert kinds["adjusted: -4.50"] == "tick"
        assert kinds["published: 1,042.55"] == "published"
        assert {"published", "change without a game"} <= {text for text, *_ in measure_texts(drawing)}


def test_links_lie_outside_the_image() -> None:
    """Links lie over the image, outside its element, and Tab skips them."""
    for drawing in parse_drawings(draw_steps([MIRA], **LABELS)):
        assert drawing.findall(".//*[@role='img']//a") == []
        links = drawing.findall(".//a")
        assert [link.attrib["href"] for link in links] == [point.link for point in MIRA.points if point.link]
        assert {link.attrib["tabindex"] for link in links} == {"-1"}


def test_horizontal_axis_can_count_games() -> None:
    """Points by number of games lie at equal distances, and the last label names the unit."""
    series = Series("mira", [Point(n, Fraction(1000 + n * n), title=f"game {n}") for n in range(21)])
    for drawing in parse_drawings(draw_steps([series], **LABELS)):
        xs = [x for x, _ in find_titled_shapes(drawing).values()]
        gaps = [after - before for before, after in pairwise(xs)]
        assert max(gaps) - min(gaps) <= Fraction("0.1")
        labels = read_horizontal_axis(drawing)
        assert labels[0][0] == "0"
        assert labels[-1][0] == "20 games"
        assert all(xs[int(label.split()[0])] == x for label, x in labels)


def test_rank_1_is_at_the_top() -> None:
    """The first rank is highest, better ranks lie above worse ones, and every label is a whole number."""
    series = Series("mira", [Point(n, Fraction(rank), title=f"{n}") for n, rank in enumerate([4, 2, 1, 3, 3, 38], 1)])
    for drawing in parse_drawings(draw_steps([series], values_are_ranks=True, **LABELS)):
        labels, positions = read_vertical_axis(drawing), find_titled_shapes(drawing)
        assert labels["1"] == min(labels.values()) == positions["3"][1]
        assert all(re.fullmatch("[0-9]+", label) for label in labels)
        assert (
            positions["3"][1]
            < positions["2"][1]
            < positions["4"][1]
            == positions["5"][1]
            < positions["1"][1]
            < positions["6"][1]
        )


def test_series_differ_in_more_than_colour() -> None:
    """Each of six series has its own dash and shape, and the legend names it."""
    series = [
        Series(f"player {n}", [Point(x, Fraction(n * 10 + x), title=f"{n} {x}") for x in (1, 2)]) for n in range(6)
    ]
    for drawing in parse_drawings(draw_steps(series, **LABELS)):
        assert len(list_step_lines(drawing)) == 6
        assert {f"player {n}" for n in range(6)} <= {text for text, *_ in measure_texts(drawing)}
        shapes = set()
        for group in drawing.findall("./g[@aria-hidden='true']/g"):
            is_hollow = f".{group.attrib['class']} .dot" in STYLE
            outlines = {re.sub(r"^M\S+ [\d.]+", "", shape.get("d", "circle")) for shape in find_by_class(group, "dot")}
            shapes |= {(outline, is_hollow) for outline in outlines}
        assert len(shapes) == 6
    dashes = re.findall(r"\.s(\d) \.step\{stroke-dasharray:([\d ]+)\}", STYLE)
    assert [name for name, _ in dashes] == ["2", "3", "4", "5", "6"]
    assert len({dash for _, dash in dashes}) == 5


def test_vertical_marks_keep_titles_and_drop_overlapping_labels() -> None:
    """Vertical marks close to each other all keep their titles, and labels that would overlap are dropped."""
    days = ["2024-11-08", "2024-11-10", "2024-12-13", "2025-04-03"]
    marks = [VerticalLine(parse_evening(day), "changed later", f"corrected: {day}") for day in days]
    chart = draw_steps([MIRA], vertical_lines=marks, **LABELS)
    assert_readable(chart)
    for drawing in parse_drawings(chart):
        mark_positions = {}
        for group in drawing.findall(".//g"):
            for path in group.findall("path[@class='mark']"):
                mark_positions[read_title(group)] = Fraction(re.match(r"M([\d.]+)", path.attrib["d"])[1])  # type: ignore[index]
        assert list(mark_positions) == [f"corrected: {day}" for day in days]
        assert mark_positions["corrected: 2024-11-08"] == find_titled_shapes(drawing)["wl-06: 985.32"][0]
        assert 2 <= sum(text == "changed later" for text, *_ in measure_texts(drawing)) < len(days)


ANY_TEXT = st.text(st.characters(), max_size=70)
TAGS = {"div", "svg", "g", "title", "desc", "path", "text", "circle", "a", "rect"}
ATTRIBUTES = {"class", "viewBox", "role", "aria-labelledby", "aria-hidden", "id", "d", "x", "y", "cx", "cy", "r",
              "href", "tabindex", "text-anchor", "transform", "width", "height"}  # fmt: skip
HOSTILE_TEXTS = ["", '"><script>alert(1)</script>', "]]>&amp;<!--", "\x00\x1b[2J\u202e\ufffe\ud800"]


@pytest.mark.slow
@given(ANY_TEXT, ANY_TEXT, ANY_TEXT, st.sampled_from(HOSTILE_TEXTS))
def test_hostile_text_is_escaped(first_text: str, second_text: str, third_text: str, hostile_text: str) -> None:
    """With any text in any place, a chart parses, adds no elements or attributes, and has no control characters."""
    points = [
        Point(1, Fraction(1), title=first_text + hostile_text, link=third_text + hostile_text),
        Point(2, Fraction(2), "published", hostile_text + second_text),
    ]
    labels = {"title": third_text + hostile_text, "description": hostile_text + first_text, "prefix": "x"}
    charts = [
        draw_steps(
            [Series(hostile_text + first_text, points), Series(second_text + hostile_text, points)],
            vertical_lines=[VerticalLine(1, first_text + hostile_text, hostile_text)],
            **labels,
        ),
        draw_distribution(
            [Fraction(1), Fraction(2)],
            highlighted=VerticalLine(Fraction(2), hostile_text + second_text, third_text),
            **labels,
        ),
    ]
    for chart in charts:
        page = ElementTree.fromstring(chart)
        assert {node.tag for node in page.iter()} <= TAGS
        assert {name for node in page.iter() for name in node.attrib} <= ATTRIBUTES
        assert all(character.isprintable() or character.isspace() for character in chart)
        assert not {"\n", "\t", "\u2028", "\x85"} & set(chart)


def test_markup_and_invisible_characters_are_shown() -> None:
    """Markup is shown as text, and a character that reverses text as an escape, in labels, titles and links."""
    names = ["Ben & <b>Jerry</b>", "a\u202eb"]
    chart = draw_steps([Series(name, [Point(1, Fraction(1), title=name, link=name)]) for name in names], **LABELS)
    for drawing in parse_drawings(chart):
        expected = ["Ben & <b>Jerry</b>", "a\\u202eb"]
        assert [text for text, *_ in measure_texts(drawing) if text in expected] == expected
        assert list(find_titled_shapes(drawing)) == expected
        assert [link.attrib["href"] for link in drawing.findall(".//a")] == expected


def test_long_names_are_shortened_to_fit() -> None:
    """Names of 64 letters stay within the drawing; a name that is shortened in the legend is complete in its title."""
    names = ["W" * 64, "名" * 64, "x" * 64]
    chart = draw_steps([Series(name, [Point(1, Fraction(n))]) for n, name in enumerate(names)], **LABELS)
    wide, narrow = parse_drawings(chart)
    for drawing in (wide, narrow):
        assert all(end <= read_size(drawing)[0] for _, _, end, _ in measure_texts(drawing))
        [shortened] = [text for text, *_ in measure_texts(drawing) if text.startswith("名")]
        assert shortened.endswith("…")
        assert "名" * 64 in [node.text for node in drawing.iter("title")]


DAYS = (1, 2, 3, 6, 10, 17, 28, 45, 60, 90, 130, 200, 366, 500, 800, 1_500, 4_000, 9_000, 30_000, 250_000, 2_800_000)
SPANS = [timedelta(minutes=5), *(timedelta(days=days) for days in DAYS)]


@pytest.mark.parametrize("start", [parse_evening("2023-12-30"), datetime(1, 1, 1, tzinfo=UTC)])
@pytest.mark.parametrize("span", SPANS, ids=str)
def test_date_labels_do_not_overlap(span: timedelta, start: datetime) -> None:
    """For spans from minutes to millennia, dates below the axis are in order, do not overlap, and are not missing."""
    series = Series("mira", [Point(start, Fraction(1000)), Point(start + span, Fraction(1100))])
    chart = draw_steps([series, Series("ben", series.points)], **LABELS)
    assert_readable(chart)
    for drawing in parse_drawings(chart):
        labels = read_horizontal_axis(drawing)
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
def test_any_values_fit_into_the_drawing(values: Sequence[Fraction], first: int) -> None:
    """For any values, labels are ordered and apart, and every line and dot lies within the drawing."""
    series = Series("mira", [Point(first + n, value, title=f"{n}") for n, value in enumerate(values)])
    chart = draw_steps([series], **LABELS)
    assert_readable(chart)
    for drawing in parse_drawings(chart):
        (width, height), labels = read_size(drawing), read_vertical_axis(drawing)
        assert len(labels) <= 8
        assert list(labels.values()) == sorted(labels.values(), reverse=True)
        assert all(0 <= x <= width and 0 <= y <= height for x, y in find_titled_shapes(drawing).values())
        assert all(0 <= x <= width and 0 <= y <= height for line in list_step_lines(drawing) for x, y in line)


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
def test_value_labels_are_short_and_distinct(values: list[int], labels: list[str]) -> None:
    """Labels of values of any size are round, complete if that is short, and distinct."""
    series = Series("mira", [Point(n, Fraction(value)) for n, value in enumerate(values)])
    for drawing in parse_drawings(draw_steps([series], **LABELS)):
        assert list(read_vertical_axis(drawing)) == labels


def test_empty_chart_says_so() -> None:
    """A chart without series or points shows `Nothing to show yet.` and keeps its title."""
    for chart in (
        draw_steps([], **LABELS),
        draw_steps([Series("mira", [])], **LABELS),
        draw_distribution([], **LABELS),
    ):
        for drawing in parse_drawings(chart):
            assert [text for text, *_ in measure_texts(drawing)] == ["Nothing to show yet."]
            assert drawing.findtext(".//title") == LABELS["title"]


@pytest.mark.slow
def test_chart_of_many_games_is_small_and_keeps_extremes() -> None:
    """A chart of 10,000 titled and linked games takes under 200 kB, and its line keeps the highest and lowest
    values."""
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
    chart = draw_steps([Series("mira", points)], **LABELS)
    assert len(chart.encode()) < 200_000
    for drawing in parse_drawings(chart):
        [line], labels, positions = list_step_lines(drawing), read_vertical_axis(drawing), find_titled_shapes(drawing)
        assert min(y for _, y in line) == labels["2,000"]
        bottom, top = labels["0"], labels["2,000"]
        assert abs(max(y for _, y in line) - (bottom - (bottom - top) / 10)) <= Fraction("0.1")
        assert len(positions) < 200
        assert {"6001", "7003", "9999"} <= {title.split()[0] for title in positions}
        assert "Not every point has a marker." in drawing.findtext(".//desc", "")
        for title, (x, y) in positions.items():
            near = [edge for edge in line if abs(edge[0] - x) <= 1]
            assert min(height for _, height in near) <= y <= max(height for _, height in near), title


@pytest.mark.parametrize("count", [1, 2, 30, 4_000])
def test_deviation_band_spans_value_plus_and_minus_deviation(count: int) -> None:
    """A single series has a band behind its line, from value minus deviation to value plus deviation at every game."""
    points = [Point(0, Fraction(1500), "start")]
    points += [
        Point(n, Fraction(1500 + n * 7919 % 300), deviation=Fraction(700, n + 1), title=f"{n}")
        for n in range(1, count + 1)
    ]
    points.append(Point(count, Fraction(1400), "published"))
    for drawing in parse_drawings(draw_steps([Series("mira", points)], **LABELS)):
        picture = [*drawing.iter()]
        *_, band = find_by_class(drawing, "band")
        assert picture.index(band) < picture.index(find_by_class(drawing, "step")[-1])
        assert "± deviation" in {text for text, *_ in measure_texts(drawing)}
        (low, bottom), *_, (high, top) = read_vertical_axis(drawing).items()
        per_unit = (bottom - top) / (parse_label(high) - parse_label(low))
        assert band.attrib["d"].endswith("z")
        edges, positions = parse_corners(band.attrib["d"].removesuffix("z")), find_titled_shapes(drawing)
        assert bottom >= max(y for _, y in edges) > min(y for _, y in edges) >= top
        for point in points[1:-1]:
            if point.title in positions:
                x, _ = positions[str(point.title)]
                reach = [y for edge_x, y in edges if abs(edge_x - x) <= Fraction("0.5")]
                for sign in (1, -1):
                    assert point.deviation is not None
                    y = bottom - (point.value + sign * point.deviation - parse_label(low)) * per_unit
                    assert min(reach) - Fraction("0.051") <= y <= max(reach) + Fraction("0.051")
                    if count < 1_000:
                        assert any(abs(y - edge_y) <= Fraction("0.051") for edge_y in reach)
        # the outline closes at its left end
        assert edges[0][0] == edges[-1][0] == min(x for x, _ in edges)


def test_several_series_have_no_bands() -> None:
    """Several series have no bands, which would hide the lines, and no space for them; nor has one with deviation 0."""
    series = [
        Series(name, [Point(n, Fraction(1000 + n), deviation=Fraction(spread)) for n in range(5)])
        for name, spread in (("mira", 50), ("jonas", 60), ("sure", 0))
    ]
    for drawn_series in (series, series[2:]):
        chart = draw_steps(drawn_series, **LABELS)
        assert 'class="band"' not in chart
        assert "± deviation" not in chart
        assert all([*read_vertical_axis(drawing)][-1] in ("1,004", "1,005") for drawing in parse_drawings(chart))


@pytest.mark.parametrize("kind", ["start", "published"])
def test_deviation_without_games_draws_no_band(kind: PointKind) -> None:
    """A band follows games and changes; the deviation of a start or a published value alone draws none."""
    points = [Point(0, Fraction(1500), kind, deviation=Fraction(350)), Point(1, Fraction(1510))]
    chart = draw_steps([Series("mira", points)], **LABELS)
    assert 'class="band"' not in chart
    assert "± deviation" not in chart


def test_coordinates_have_at_most_one_decimal() -> None:
    """No coordinate has more than one decimal or an exponent, even for fractions without a short decimal."""
    series = Series("mira", [Point(n, Fraction(n**3, 7)) for n in range(1, 60)])
    for drawing in parse_drawings(draw_steps([series], **LABELS)):
        for node in drawing.iter():
            for name in ("d", "x", "y", "cx", "cy", "r", "transform"):
                assert not re.search(r"\.\d\d|e", node.get(name, "").replace("translate", "")), node.attrib


def test_colours_come_from_the_stylesheet() -> None:
    """Charts name no colours, every class has a rule, and the light and dark themes set the same properties."""
    chart = draw_steps([MIRA, MIRA], vertical_lines=[VerticalLine(parse_evening("2025-01-01"), "x")], **LABELS)
    bars = draw_distribution([Fraction(1), Fraction(2)], highlighted=VerticalLine(Fraction(1), "x"), **LABELS)
    assert not re.search(r"#[0-9a-f]{3}|style=|fill=|stroke=", chart + bars + draw_sparkline([Fraction(1)]))
    used = {name for names in re.findall(r'class="([^"]+)"', chart + bars) for name in names.split()}
    assert {name for name in used if f".{name}" not in STYLE} == set()
    light, dark = (
        set(re.findall(r"(--chart-[\w]+):", block)) for block in re.findall(r"\.chart\{(--[^}]+)\}", STYLE)[:2]
    )
    assert light == dark
    assert len(light) == 10


def test_standalone_chart_loads_nothing() -> None:
    """With `standalone` a chart is one SVG file with its size, style, background and title, and refers to no other
    file."""
    for chart in (
        draw_steps([MIRA], standalone=True, **LABELS),
        draw_distribution([Fraction(1)], standalone=True, **LABELS),
        draw_steps([], standalone=True, **LABELS),
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
        assert file.findtext(f"{SVG}text[@class='heading']") == LABELS["title"]
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|url\(|@import|<image|<script", chart)


def test_sparkline_is_small_and_hidden_from_screen_readers() -> None:
    """A sparkline spans the lowest to the highest value, ends in a dot, and is hidden from screen readers."""
    for values in ([], [5], [5, 5, 5], [1, 9, 4], list(range(5_000))):
        sparkline = draw_sparkline([Fraction(value) for value in values])
        line = ElementTree.fromstring(sparkline)
        assert line.get("aria-hidden") == "true"
        assert len(sparkline) < 5_000
        assert len(line) == (2 if values else 0)
    line = ElementTree.fromstring(draw_sparkline([Fraction(1), Fraction(9), Fraction(4)]))
    path, dot = parse_corners(line[0].attrib["d"]), line[1]
    heights = [y for _, y in path]
    assert heights.index(max(heights)) == 0
    assert path[-1] == (Fraction(dot.attrib["cx"]), Fraction(dot.attrib["cy"]))
    assert path[-1][1] == min(heights) + (max(heights) - min(heights)) * Fraction(5, 8)


def test_bars_are_as_high_as_their_player_counts() -> None:
    """Each bar is as high as its number of players, and the ranges of the bars cover every player once."""
    values = [Fraction(n) for n in (900, 949, 950, 999, 1000, 1000, 1003, 1049, 1120, 1200)]
    chart = draw_distribution(values, highlighted=VerticalLine(Fraction(1003), "anouk, 1,003"), **LABELS)
    assert_readable(chart)
    for drawing in parse_drawings(chart):
        labels, counted = read_vertical_axis(drawing), 0
        per_player = (labels["0"] - labels["2"]) / 2
        for bar in drawing.findall(".//rect"):
            low, high, number = re.fullmatch(r"(\S+) to (\S+): (\d+) players?", read_title(bar) or "").groups()  # type: ignore[union-attr]
            inside = sum(parse_label(low) <= points < parse_label(high) for points in values)
            assert int(number) == inside
            assert abs(Fraction(bar.attrib["height"]) - inside * per_player) <= Fraction("0.1")
            assert (bar.get("class") == "bar here") == (parse_label(low) <= 1003 < parse_label(high))
            counted += inside
        assert counted == len(values)
        assert "anouk, 1,003" in [text for text, *_ in measure_texts(drawing)]


@pytest.mark.slow
@given(st.lists(st.fractions(-(10**9), 10**9, max_denominator=100), min_size=1, max_size=80))
def test_bars_hold_every_player_once(values: Sequence[Fraction]) -> None:
    """For any points, at most 18 bars hold every player once."""
    for drawing in parse_drawings(draw_distribution(values, **LABELS)):
        titles = [read_title(bar) or "" for bar in drawing.findall(".//rect")]
        assert sum(int(re.findall(r": (\d+) player", title)[0]) for title in titles) == len(values)
        assert len(titles) <= 18


@pytest.mark.parametrize(
    ("series", "more", "message"),
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
def test_impossible_charts_are_refused(series: list[Series], more: dict[str, object], message: str) -> None:
    """Input that makes no chart raises a ValueError with the reason."""
    with pytest.raises(ValueError, match=message):
        draw_steps(series, **{**LABELS, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("module", [axes, svg], ids=lambda module: module.__name__)
def test_examples_are_right(module: object) -> None:
    """The examples in docstrings give the shown results."""
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert (result.failed, result.attempted > 0) == (0, True)

"""Render a page as HTML, JSON or CSV. Equal input gives equal bytes.

HTML comes from a template that computes nothing. JSON is the answer as the command prints it. CSV has a line for each
row of the answer, with its members as columns.
"""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cache, cached_property, partial
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ratings_ledger.ledger.events.canonical import EPOCH
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.ledger.rejections import count, formula_safe
from ratings_ledger.ledger.validation.repeated_games import describe_sets
from ratings_ledger.projections.diff.other_results import OtherResult
from ratings_ledger.projections.diff.published_lists import PublishedListDiff
from ratings_ledger.projections.queries.coordinates import UTC_TIMES, TimeFormat
from ratings_ledger.projections.queries.event_texts import find_score, list_opponents, list_partners
from ratings_ledger.projections.queries.game_explanations import GameExplanation
from ratings_ledger.projections.queries.game_timelines import GameTimeline
from ratings_ledger.projections.queries.history import CAUSES, Change, History
from ratings_ledger.projections.queries.players import Person, Profile
from ratings_ledger.projections.queries.rank_history import Ranks
from ratings_ledger.projections.queries.results import ABSENT, LastEvent, Result
from ratings_ledger.projections.queries.standings import Overview
from ratings_ledger.projections.queries.visible_states import format_rating
from ratings_ledger.projections.replay.ladder_names import short_name
from ratings_ledger.web import addresses
from ratings_ledger.web.addresses import PagePath
from ratings_ledger.web.charts import STYLE as CHART_STYLE

# the answers whose `known_at` can be pinned
Pinnable = TypeVar(
    "Pinnable",
    History,
    Overview,
    Profile,
    Ranks,
    Person,
    GameTimeline,
    OtherResult,
    GameExplanation,
    PublishedListDiff,
)
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
MINUS = "−"
DECIMAL_DENOMINATOR = 10**6  # fractions whose denominator divides this are written as decimals
MICROSECOND = timedelta(microseconds=1)
CSS = files("ratings_ledger.web").joinpath("style.css").read_bytes() + CHART_STYLE.encode()
STYLE: PagePath = (f"_style-{sha256(CSS).hexdigest()[:16]}",)


class Site(NamedTuple):
    """Settings shared by all pages: title, display names, file extension, and whether each game has a page.

    Without game pages, games are only rows on the pages of their players.
    """

    title: str = "Ratings"
    names: Mapping[str, str] = {}
    extension: str = ""
    game_pages: bool = True

    @property
    def is_static(self) -> bool:
        """Tell whether the pages are static files, which ignore query parameters."""
        return bool(self.extension)


@dataclass(frozen=True)
class Page:
    """A page: its template, the variables of the template, and the answer.

    `table` names the member of the answer that holds the rows of the CSV; it is empty if the answer itself is the rows,
    and None for a page without CSV. `query` holds the requested coordinates, and `parameters` this page's other query
    parameters. `find_listing_page` returns the page with a row for a game, possibly this page; None if there is none.
    """

    path: PagePath
    template: str
    title: str
    answer: Any
    times: TimeFormat
    variables: Mapping[str, Any]
    table: str | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    find_listing_page: Callable[[str], PagePath | None] = lambda _: None

    @cached_property
    def data(self) -> Any:
        """Return the answer as plain data."""
        return self.answer.model_dump() if isinstance(self.answer, Result) else self.answer


ERROR_TITLES = {
    400: "Invalid request",
    404: "Not found",
    405: "Method not allowed",
    421: "Unknown host",
    503: "Temporarily unavailable",
}


def build_error_page(path: PagePath, status: int, reason: str) -> Page:
    """Return the error page for an HTTP status."""
    answer = {"error": {"status": status, "reason": reason}}
    return Page(
        path=path,
        template="error",
        title=ERROR_TITLES.get(status, "Request refused"),
        answer=answer,
        times=UTC_TIMES,
        variables={"reason": reason},
    )


def render_html(page: Page, site: Site) -> bytes:
    """Render the page as HTML."""
    return _render(page, site, _create_templates(), style=addresses.build_relative_link(page.path, STYLE, ".css"))


def render_file(page: Page, site: Site) -> bytes:
    """Render the page as one self-contained HTML file, with exact points and no links to other pages."""
    return _render(page, site._replace(game_pages=False), _create_templates(format_exact), css=Markup(CSS.decode()))


def _render(page: Page, site: Site, templates: Environment, **extra: str) -> bytes:
    helpers = {
        "page": page,
        "site": site,
        "link": partial(_link, page, site),
        "game_link": partial(_link_game, page, site),
        "player_link": partial(_link_player, page, site),
        "name": lambda player: site.names.get(player, player),
        "day": partial(format_day, page.times),
        "minute": partial(format_minute, page.times),
        "time_played": partial(format_time_played, page.times),
    }
    return templates.get_template(f"{page.template}.html").render({**page.variables, **helpers, **extra}).encode()


def render_json(page: Page, site: Site) -> bytes:
    """Return the answer as its command prints it."""
    return (_JSON.encode(page.data) + "\n").encode()


def render_csv(page: Page, site: Site) -> bytes:
    """Return one line per row of the answer, with the JSON members as columns; nested members become OUTER.INNER.

    A list is joined by spaces. Cells that a spreadsheet would evaluate as formulas get a leading apostrophe.
    """
    assert page.table is not None
    data = page.data
    rows = [_flatten(row) for row in (data if isinstance(data, list) else data[page.table])]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([_format_cell(row.get(name)) for name in columns] for row in rows)
    return text.getvalue().encode()


_JSON = json.JSONEncoder(ensure_ascii=False)
# the content type and the renderer for each file extension
FORMATS: dict[str, tuple[str, Callable[[Page, Site], bytes]]] = {
    "": ("text/html", render_html),
    ".json": ("application/json", render_json),
    ".csv": ("text/csv", render_csv),
}


def pin_known_at(answer: Pinnable, last: LastEvent) -> Pinnable:
    """Set an answer's `known_at` to the last event that affects the answer, so that later events do not change it."""
    return replace(answer, at=answer.at._replace(known_at=last.position))


def _flatten(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            cells |= _flatten(value, f"{prefix}{name}.")
        else:
            cells[prefix + name] = value
    return cells


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(map(_format_cell, value))
    if not isinstance(value, str):
        return _JSON.encode(value)
    return formula_safe(value)


PointsFormatter = Callable[[Fraction | None], str]


@cache
def _create_templates(points_formatter: PointsFormatter | None = None) -> Environment:
    """Return the template environment; `points_formatter` formats points."""
    formatter = points_formatter or format_points
    environment = Environment(
        loader=PackageLoader("ratings_ledger.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    environment.filters |= {
        "points": formatter,
        "signed": partial(format_change, formatter=formatter),
        "points_after": partial(format_points_after, formatter=formatter),
        "escape_css": escape_css,
        "pluralize": count,
        "percent": format_percent,
        "ordinal": format_ordinal,
        "seconds": format_seconds,
        "describe_effect": describe_effect,
        "short_name": short_name,
    }
    environment.globals |= {
        "addresses": addresses,
        "change": partial(format_change_html, formatter=formatter),
        "build_row_id": build_row_id,
        "find_score": find_score,
        "describe_sets": describe_sets,
        "list_opponents": list_opponents,
        "list_partners": list_partners,
        "format_month": format_month,
        "causes_in_words": CAUSES,
    }
    return environment


def _link(page: Page, site: Site, target: PagePath, extension: str | None = None, **query: object) -> str:
    """Return a link to another page, at the same coordinates unless overridden."""
    parameters = {} if site.is_static else {**page.query, **query}
    return addresses.build_relative_link(
        page.path, target, site.extension if extension is None else extension, **parameters
    )


def _link_game(page: Page, site: Site, game_id: str) -> str:
    """Return a link to a game's page or, if games have no pages, to the row that lists it; empty if no row does."""
    if site.game_pages:
        return _link(page, site, addresses.game(game_id))
    path = page.find_listing_page(game_id)
    if path is None:
        return ""
    return f"{'' if path == page.path else _link(page, site, path)}#{build_row_id(game_id)}"


def _link_player(page: Page, site: Site, player: str, ladder: str, has_page: bool) -> Markup:
    """Return a player's name, linked to their ladder page if they have one."""
    name = Markup("<bdi>{}</bdi>").format(site.names.get(player, player))
    if not has_page:
        return name
    return Markup('<a href="{}">{}</a>').format(_link(page, site, addresses.player_ladder(player, ladder)), name)


def build_row_id(game_id: str) -> str:
    """Return the HTML id of a game's row."""
    return f"game-{addresses.encode_segment(game_id)}"


def format_points(value: Fraction | None, places: int = 2) -> str:
    """Format points to this many decimal places, or as a whole number if they are whole; None as a dash.

    >>> format_points(Fraction(113698, 100)), format_points(Fraction(12)), format_points(Fraction(-1, 3))
    ('1,136.98', '12', '−0.33')
    """
    if value is None:
        return "–"
    number, divisor = value.numerator, value.denominator
    sign = MINUS if number < 0 else ""
    if divisor == 1:
        return f"{sign}{abs(number):,}"
    power = 10**places
    whole, decimals = divmod((2 * power * abs(number) + divisor) // (2 * divisor), power)
    return f"{sign}{whole:,}.{decimals:0{places}d}"


def format_exact(value: Fraction | None) -> str:
    """Format points exactly: all decimals, or a fraction with its approximate value.

    >>> format_exact(Fraction(1136984471, 10**6)), format_exact(Fraction(-3, 2)), format_exact(Fraction(20, 3))
    ('1,136.984471', '−1.5', '20/3 (6.67)')
    """
    if value is None or DECIMAL_DENOMINATOR % value.denominator == 0:
        text = format_points(value, 6)
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{MINUS if value < 0 else ''}{abs(value)} ({format_points(value)})"


def format_points_after(row: Change, formatter: PointsFormatter = format_points) -> str:
    """Format the points after a change, with deviation and provisional mark if the rule has them."""
    text = formatter(row.after)
    return text if row.state is ABSENT else format_rating(text, row.state, is_provisional=row.provisional is True)


def format_change(value: Fraction | None, formatter: PointsFormatter = format_points) -> str:
    """Format a change of points with its sign.

    >>> format_change(Fraction(971, 100)), format_change(Fraction(-7)), format_change(Fraction(0))
    ('+9.71', '−7', '±0')
    """
    if not value:
        return "–" if value is None else "±0"
    return ("+" if value.numerator > 0 else "") + formatter(value)


def format_change_html(value: Fraction | None, formatter: PointsFormatter = format_points) -> Markup:
    """Format a change of points as HTML, coloured by gain or loss.

    >>> format_change_html(Fraction(-7))
    Markup('<span class="loss">−7</span>')
    """
    css_class = "soft" if not value else "gain" if value.numerator > 0 else "loss"
    return Markup(f'<span class="{css_class}">{format_change(value, formatter)}</span>')


def format_ordinal(number: int) -> str:
    """Format a place as an ordinal.

    >>> [format_ordinal(number) for number in (1, 2, 3, 4, 11, 12, 21, 102)]
    ['1st', '2nd', '3rd', '4th', '11th', '12th', '21st', '102nd']
    """
    digit = 0 if number // 10 % 10 == 1 else number % 10
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(digit, 'th') }"


def escape_css(text: str) -> Markup:
    r"""Escape text for a quoted CSS string.

    >>> print(escape_css("a </b>"))
    a\000020\00003c\00002fb\00003e
    """
    return Markup("".join(char if char.isascii() and char.isalnum() else f"\\{ord(char):06x}" for char in text))


def describe_effect(type_name: str) -> str:
    """Return the past participle for an event type, such as corrected; return an unknown type as it is.

    >>> describe_effect("game.recorded"), describe_effect("game.corrected"), describe_effect("game.reinstated")
    ('recorded', 'corrected', 'counted again')
    """
    if type_name == "game.reinstated":
        return "counted again"
    return TYPES[type_name].decided or "recorded" if type_name in TYPES else type_name


def format_seconds(ms: int) -> str:
    """Format milliseconds as seconds, exactly.

    >>> format_seconds(90500), format_seconds(-7), format_seconds(3000)
    ('90.5 s', '−0.007 s', '3 s')
    """
    seconds, remaining_ms = divmod(abs(ms), 1000)
    decimals = f".{remaining_ms:03d}".rstrip("0") if remaining_ms else ""
    return f"{MINUS if ms < 0 else ''}{seconds:,}{decimals} s"


def format_percent(value: Fraction | float) -> str:
    """Format a share as a percentage.

    >>> format_percent(0.602), format_percent(Fraction(1, 3))
    ('60.2%', '33.3%')
    """
    return f"{float(value):.1%}"


def to_local(times: TimeFormat, instant: datetime | str | int) -> datetime:
    """Convert an instant, as a datetime, ISO 8601 text or microseconds since 1970, to the display time zone."""
    if isinstance(instant, str):
        instant = datetime.fromisoformat(instant)
    if isinstance(instant, datetime):
        instant = (instant - EPOCH) // MICROSECOND
    return local_time(instant, times.zone)


def format_day(times: TimeFormat, instant: datetime | str | int) -> str:
    """Format the day of an instant, such as 25 Apr 2025. If only a date was recorded, it is that date."""
    date_only = times.format_if_day_only(instant)
    return format_date(to_local(times, instant) if date_only is None else date.fromisoformat(date_only))


def format_minute(times: TimeFormat, instant: datetime | str | int) -> str:
    """Format an instant to the minute, such as 25 Apr 2025, 20:05."""
    local = to_local(times, instant)
    return f"{format_date(local)}, {local:%H:%M}"


def format_time_played(times: TimeFormat, instant: datetime | str | int) -> str:
    """Format the time of a game to the minute, or only the day if no time was recorded."""
    return format_minute(times, instant) if times.format_if_day_only(instant) is None else format_day(times, instant)


def describe_dated_change(times: TimeFormat, row: Change) -> str:
    """Describe a change of points: its game or reason, its time, its amount, and the points after it."""
    subject = row.reason if row.game_id is None else row.game_id
    played = format_time_played(times, row.occurred_at)
    return f"{subject}, {played}: {format_change(row.change)}, {format_points_after(row)}"


def format_month(day: date) -> str:
    """Format a month, such as April 2025.

    >>> format_month(date(2025, 4, 5))
    'April 2025'
    """
    return f"{MONTHS[day.month - 1]} {day.year}"


def format_date(day: date) -> str:
    """Format a date, such as 25 Apr 2025.

    >>> format_date(date(2025, 4, 5))
    '5 Apr 2025'
    """
    return f"{day.day} {MONTHS[day.month - 1][:3]} {day.year}"

"""A page: what is at an address, as HTML for people, as JSON and as CSV. The same input gives the same bytes.

HTML comes from a template that computes nothing; JSON is the answer as the command prints it; CSV has a line for each
of the answer's rows, with their members as columns.
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
from ratings_ledger.ledger.rejections import formula_safe
from ratings_ledger.ledger.validation.repeated_games import describe_sets
from ratings_ledger.projections.diff.other_results import OtherResult
from ratings_ledger.projections.diff.published_lists import PublishedListDiff
from ratings_ledger.projections.queries.coordinates import UTC_TIMES, Times
from ratings_ledger.projections.queries.event_texts import opponents_of, partners_of, score_of
from ratings_ledger.projections.queries.explain import GameExplanation
from ratings_ledger.projections.queries.game_timelines import GameTimeline
from ratings_ledger.projections.queries.history import CAUSES, Change, History, Ranks
from ratings_ledger.projections.queries.players import Person, Profile
from ratings_ledger.projections.queries.results import ABSENT, LastEvent, Result
from ratings_ledger.projections.queries.shown_states import mark_rating
from ratings_ledger.projections.queries.standings import Overview
from ratings_ledger.projections.replay.ladders import short_name
from ratings_ledger.web import addresses
from ratings_ledger.web.addresses import Path
from ratings_ledger.web.charts import STYLE as CHARTS

A = TypeVar(
    "A", History, Overview, Profile, Ranks, Person, GameTimeline, OtherResult, GameExplanation, PublishedListDiff
)  # fmt: skip
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December")  # fmt: skip
MINUS = "−"
DIGITS = 10**6  # a fraction of these is written as a decimal
MICROSECOND = timedelta(microseconds=1)
CSS = files("ratings_ledger.web").joinpath("style.css").read_bytes() + CHARTS.encode()
STYLE: Path = (f"_style-{sha256(CSS).hexdigest()[:16]}",)


class Site(NamedTuple):
    """What all pages share: a title, the names of people by their ids, what addresses end in, and whether games have
    pages of their own; if not, they are lines on the pages of their players.
    """

    title: str = "Ratings"
    names: Mapping[str, str] = {}
    ending: str = ""
    game_pages: bool = True

    @property
    def is_folder(self) -> bool:
        """Tell whether the pages are files, so that nothing can be asked of them."""
        return bool(self.ending)


@dataclass(frozen=True)
class Page:
    """What is at a path: the template with what it shows, and the answer behind it, whose member `table` has the rows.

    `query` are the coordinates that were asked for, by name, and `asked` what else was asked of this page alone;
    `line_of` tells of a game which page of this subject has its line, this one perhaps.
    """

    path: Path
    template: str
    title: str
    answer: Any
    times: Times
    shown: Mapping[str, Any]
    table: str | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, Sequence[str]] = field(default_factory=dict)
    line_of: Callable[[str], Path | None] = lambda _: None

    @cached_property
    def plain(self) -> Any:
        """Return the answer as plain data."""
        return self.answer.model_dump() if isinstance(self.answer, Result) else self.answer


TITLES = {400: "That cannot be asked", 404: "Not here", 405: "Not that way", 421: "Not this host", 503: "Not now"}


def refusal(path: Path, status: int, reason: str) -> Page:
    """Return what is shown in place of a page that there is not, with the status of HTTP."""
    answer = {"error": {"status": status, "reason": reason}}
    return Page(path, "refused", TITLES.get(status, "Not possible"), answer, UTC_TIMES, {"reason": reason})


def as_html(page: Page, site: Site) -> bytes:
    """Return the page for people."""
    return _rendered(page, site, _templates(), style=addresses.relative(page.path, STYLE, ".css"))


def as_file(page: Page, site: Site) -> bytes:
    """Return the page as a file that stands alone: with its style, exact numbers, and links to itself only."""
    return _rendered(page, site._replace(game_pages=False), _templates(exact), css=Markup(CSS.decode()))


def _rendered(page: Page, site: Site, templates: Environment, **more: str) -> bytes:
    shown = dict(page.shown) | {
        "page": page, "site": site, "link": partial(_link, page, site), "game_link": partial(_game_link, page, site),
        "name": lambda player: site.names.get(player, player), "somebody": partial(_somebody, page, site),
        "day": partial(day, page.times), "minute": partial(minute, page.times),
        "time_played": partial(time_played, page.times), **more,
    }  # fmt: skip
    return templates.get_template(f"{page.template}.html").render(shown).encode()


def as_json(page: Page, site: Site) -> bytes:
    """Return the answer as its command prints it."""
    return (_JSON.encode(page.plain) + "\n").encode()


def as_csv(page: Page, site: Site) -> bytes:
    """Return the rows of the answer, one a line. A column is a member of the rows in JSON; one in another is
    OUTER.INNER.

    A list is joined by spaces. What a spreadsheet would run as a formula has an apostrophe before it.
    """
    assert page.table is not None
    told = page.plain
    rows = [_flat(row) for row in (told if isinstance(told, list) else told[page.table])]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(name)) for name in columns] for row in rows)
    return out.getvalue().encode()


_JSON = json.JSONEncoder(ensure_ascii=False)
# by what an address ends in: the type of the content, and what writes it
FORMATS: dict[str, tuple[str, Callable[[Page, Site], bytes]]] = {
    "": ("text/html", as_html), ".json": ("application/json", as_json), ".csv": ("text/csv", as_csv),
}  # fmt: skip


def known_at_last(found: A, last: LastEvent) -> A:
    """Return an answer that says it is known at the last event that it depends on: there it is the same."""
    return replace(found, at=found.at._replace(known_at=last.position))


def _flat(row: Mapping[str, Any], outer: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{outer}{name}.")
        else:
            found[outer + name] = value
    return found


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(map(_cell, value))
    if not isinstance(value, str):
        return _JSON.encode(value)
    return formula_safe(value)


Written = Callable[[Fraction | None], str]


@cache
def _templates(written: Written | None = None) -> Environment:
    """Return the templates, with points as they are written there."""
    written = written or points
    found = Environment(
        loader=PackageLoader("ratings_ledger.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True, auto_reload=False,
    )  # fmt: skip
    found.filters |= {"points": written, "signed": partial(signed, written=written), "in_css": in_css, "many": many,
                      "percent": percent, "ordinal": ordinal, "seconds": seconds, "became": became}  # fmt: skip
    found.filters["short_name"] = short_name
    found.filters["rating_after"] = partial(rating_after, written=written)
    found.globals["addresses"] = addresses
    found.globals["safe"] = Markup
    found.globals["gain_or_loss"] = partial(gain_or_loss, written=written)
    found.globals |= {
        "line_id": line_id,
        "score_of": score_of,
        "describe_sets": describe_sets,
        "opponents_of": opponents_of,
        "partners_of": partners_of,
    }
    found.globals |= {"month_of": month_of, "causes_in_words": CAUSES}
    return found


def _link(page: Page, site: Site, target: Path, ending: str | None = None, **query: object) -> str:
    """Return a link to another page at the same coordinates, or at others where they are given."""
    members = {} if site.is_folder else {**page.query, **query}
    return addresses.relative(page.path, target, site.ending if ending is None else ending, **members)


def _game_link(page: Page, site: Site, game_id: str) -> str:
    """Return a link to a game's page; without such pages to its line, on this page or another, or nothing."""
    if site.game_pages:
        return _link(page, site, addresses.game(game_id))
    there = page.line_of(game_id)
    if there is None:
        return ""
    return f"{'' if there == page.path else _link(page, site, there)}#{line_id(game_id)}"


def _somebody(page: Page, site: Site, player: str, ladder: str, has_page: bool) -> Markup:
    """Return somebody on a ladder by name, as a link where they have a page of it: who does not count there may have
    none.
    """
    shown = Markup("<bdi>{}</bdi>").format(site.names.get(player, player))
    if not has_page:
        return shown
    return Markup('<a href="{}">{}</a>').format(_link(page, site, addresses.player_on(player, ladder)), shown)


def line_id(game_id: str) -> str:
    """Return what the line of a game is found by on a page."""
    return f"game-{addresses.segment(game_id)}"


def points(value: Fraction | None, places: int = 2) -> str:
    """Points for people: to hundredths, or whole where they are.

    >>> points(Fraction(113698, 100)), points(Fraction(12)), points(Fraction(-1, 3)), points(None)
    ('1,136.98', '12', '−0.33', '–')
    """
    if value is None:
        return "–"
    number, divisor = value.numerator, value.denominator
    sign = MINUS if number < 0 else ""
    if divisor == 1:
        return f"{sign}{abs(number):,}"
    power = 10**places
    whole, rest = divmod((2 * power * abs(number) + divisor) // (2 * divisor), power)
    return f"{sign}{whole:,}.{rest:0{places}d}"


def exact(value: Fraction | None) -> str:
    """Points for whoever adds them up: every digit, or a fraction with what it is about.

    >>> exact(Fraction(1136984471, 10**6)), exact(Fraction(-3, 2)), exact(Fraction(20, 3))
    ('1,136.984471', '−1.5', '20/3 (6.67)')
    """
    if value is None or DIGITS % value.denominator == 0:
        told = points(value, 6)
        return told.rstrip("0").rstrip(".") if "." in told else told
    return f"{MINUS if value < 0 else ''}{abs(value)} ({points(value)})"


def rating_after(row: Change, written: Written = points) -> str:
    """Return the points after a change, with their deviation and mark under a rule that keeps these."""
    text = written(row.after)
    return text if row.state is ABSENT else mark_rating(text, row.state, is_provisional=row.provisional is True)


def signed(value: Fraction | None, written: Written = points) -> str:
    """Return a change of points for people.

    >>> signed(Fraction(971, 100)), signed(Fraction(-7)), signed(Fraction(0))
    ('+9.71', '−7', '±0')
    """
    if not value:
        return "–" if value is None else "±0"
    return ("+" if value.numerator > 0 else "") + written(value)


def gain_or_loss(value: Fraction | None, written: Written = points) -> Markup:
    """Return a change of points for people, as HTML: gains and losses can be told apart by their colours, too.

    >>> gain_or_loss(Fraction(-7))
    Markup('<span class="loss">−7</span>')
    """
    kind = "soft" if not value else "gain" if value.numerator > 0 else "loss"
    return Markup(f'<span class="{kind}">{signed(value, written)}</span>')


def many(count: int, one: str, several: str | None = None) -> str:
    """Return a number with what it counts.

    >>> many(1, "game"), many(1200, "game"), many(2, "person", "people")
    ('1 game', '1,200 games', '2 people')
    """
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def ordinal(number: int) -> str:
    """Return a place for people.

    >>> [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 21, 102)]
    ['1st', '2nd', '3rd', '4th', '11th', '12th', '21st', '102nd']
    """
    last = 0 if number // 10 % 10 == 1 else number % 10
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"


def in_css(text: str) -> Markup:
    r"""Text between quotes in a style, where it can end neither.

    >>> print(in_css("a </b>"))
    a\000020\00003c\00002fb\00003e
    """
    written = (one if one.isascii() and one.isalnum() else f"\\{ord(one):06x}" for one in text)
    return Markup("".join(written))


def became(type_name: str) -> str:
    """Return what an event of a type did to a game or a player, such as corrected.

    >>> became("game.recorded"), became("game.corrected"), became("game.reinstated")
    ('recorded', 'corrected', 'counted again')
    """
    if type_name == "game.reinstated":
        return "counted again"
    return TYPES[type_name].decided or "recorded" if type_name in TYPES else type_name


def seconds(ms: int) -> str:
    """Milliseconds as seconds, exactly.

    >>> seconds(90500), seconds(-7), seconds(3000)
    ('90.5 s', '−0.007 s', '3 s')
    """
    whole, rest = divmod(abs(ms), 1000)
    return f"{MINUS if ms < 0 else ''}{whole:,}" + (f".{rest:03d}".rstrip("0") if rest else "") + " s"


def percent(value: Fraction | float) -> str:
    """Return a share for people.

    >>> percent(0.602), percent(Fraction(1, 3))
    ('60.2%', '33.3%')
    """
    return f"{float(value):.1%}"


def local(times: Times, instant: datetime | str | int) -> datetime:
    """Return an instant in the zone that times are shown in."""
    if isinstance(instant, str):
        instant = datetime.fromisoformat(instant)
    if isinstance(instant, datetime):
        instant = (instant - EPOCH) // MICROSECOND
    return local_time(instant, times.zone)


def day(times: Times, instant: datetime | str | int) -> str:
    """Return the day of an instant, such as 25 Apr 2025."""
    alone = times.day_alone(instant)
    return written(local(times, instant) if alone is None else date.fromisoformat(alone))


def minute(times: Times, instant: datetime | str | int) -> str:
    """Return the day and the minute of an instant, such as 25 Apr 2025, 20:05."""
    there = local(times, instant)
    return f"{written(there)}, {there:%H:%M}"


def time_played(times: Times, instant: datetime | str | int) -> str:
    """Return when a game was played: the day and the minute, or the day alone if no time was recorded."""
    return minute(times, instant) if times.day_alone(instant) is None else day(times, instant)


def month_of(there: date) -> str:
    """Return a month, such as April 2025.

    >>> month_of(date(2025, 4, 5))
    'April 2025'
    """
    return f"{MONTHS[there.month - 1]} {there.year}"


def written(there: date) -> str:
    """Return a day, such as 25 Apr 2025.

    >>> written(date(2025, 4, 5))
    '5 Apr 2025'
    """
    return f"{there.day} {MONTHS[there.month - 1][:3]} {there.year}"

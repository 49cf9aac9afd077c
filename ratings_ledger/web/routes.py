"""Map addresses to pages: the routes as path patterns, and the complete list of pages of a site."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections.diff.comparison import Differences
from ratings_ledger.projections.diff.event_impacts import EventImpact
from ratings_ledger.projections.diff.other_results import OtherResult
from ratings_ledger.projections.diff.published_lists import PublishedListDiff
from ratings_ledger.projections.queries.clocks import ClockState
from ratings_ledger.projections.queries.game_timelines import GameTimeline
from ratings_ledger.projections.queries.history import History, Ranks
from ratings_ledger.projections.queries.leagues import LeagueState
from ratings_ledger.projections.queries.players import Person, Profile
from ratings_ledger.projections.queries.recorded_events import RecordedEvents
from ratings_ledger.projections.queries.ruleset_states import AllRulesets, RulesetState
from ratings_ledger.projections.queries.standings import Overview
from ratings_ledger.projections.queries.survey import AllLadders, AllLists
from ratings_ledger.web import addresses
from ratings_ledger.web.addresses import INDEX, LISTS, LOG, STATUS, Path
from ratings_ledger.web.changes import change_page
from ratings_ledger.web.compare import compare_page, compare_players_page
from ratings_ledger.web.games import clock_page, game_page, hypothetical_result_page
from ratings_ledger.web.ladders import ladder_page, list_page_numbers
from ratings_ledger.web.leagues import league_page
from ratings_ledger.web.lists import list_page, lists_page
from ratings_ledger.web.log import FILTERS, PAGE_EVENTS, count_complete_pages, log_page, part_page
from ratings_ledger.web.overview import index_page
from ratings_ledger.web.page import Page
from ratings_ledger.web.players import ACCOUNT_LINES, RANKED_MAX, games_page, person_page, player_page, ranks_page
from ratings_ledger.web.rules import RULES, rules_page, ruleset_page
from ratings_ledger.web.status import LogState, status_page
from ratings_ledger.web.visits import AXES, Visit

REPEATED = ("player", "place")  # query parameters that may occur several times


@dataclass(frozen=True)
class Route:
    """A kind of page.

    `name` is its stable name in operation ids of OpenAPI. {ladder} in `pattern` stands for one segment per part of a
    ladder's name; any other name in braces stands for one segment. `make` builds the page from a visit and these names.
    `answer` is the type of its result, and `parameters` are the query parameters it takes. Only tables have CSV.
    """

    name: str
    pattern: str
    make: Callable[..., Page]
    answer: Any
    is_table: bool = True
    parameters: tuple[str, ...] = AXES

    @cached_property
    def segment_names(self) -> list[str]:
        """Return the names of the variable segments, in order."""
        return NAME.findall(self.pattern)

    @cached_property
    def path_pattern(self) -> re.Pattern[str]:
        """Return the regular expression that matches the paths of such pages."""
        expressions = NUMBERS | {"ladder": f"{SEGMENT}(?:/{SEGMENT})*"}
        return re.compile(NAME.sub(lambda match: f"(?P<{match[1]}>{expressions.get(match[1], SEGMENT)})", self.pattern))


NAME = re.compile(r"\{(\w+)\}")
SEGMENT = "[^_/][^/]*"  # segments that begin with _ are the site's own path words
NUMBERS = {"position": "[1-9][0-9]{0,17}", "part": "[1-9][0-9]{0,11}", "page": "[2-9]|[1-9][0-9]{1,6}"}
ROUTES = (
    Route("index", "/", index_page, AllLadders),
    Route("ladder", "/ladders/{ladder}", ladder_page, Overview, parameters=(*AXES, "active_since")),
    Route("ladder", "/ladders/{ladder}/_{page}", ladder_page, Overview, parameters=(*AXES, "active_since")),
    Route("person", "/players/{player}", person_page, Person),
    Route("player", "/players/{player}/{ladder}", player_page, Profile),
    Route("games", "/players/{player}/{ladder}/_games", games_page, History),
    Route("ranks", "/players/{player}/{ladder}/_ranks", ranks_page, Ranks),
    Route("game", "/games/{game_id}", game_page, GameTimeline, is_table=False),
    Route(
        "otherwise",
        "/games/{game_id}/_otherwise",
        hypothetical_result_page,
        OtherResult,
        parameters=(*AXES, "place"),
    ),
    Route("clock", "/games/{game_id}/_clock", clock_page, ClockState),
    Route("rules", "/rules", rules_page, AllRulesets),
    Route("ruleset", "/rules/{ruleset_id}", ruleset_page, RulesetState, is_table=False),
    Route("ruleset", "/rules/{ruleset_id}/{version}", ruleset_page, RulesetState, is_table=False),
    Route("lists", "/lists", lists_page, AllLists),
    Route("list", "/lists/{ladder}", list_page, PublishedListDiff),
    Route("list", "/lists/{ladder}/_{position}", list_page, PublishedListDiff),
    Route("change", "/changes/{position}", change_page, EventImpact),
    Route("league", "/leagues/{league}", league_page, LeagueState),
    Route("log", "/log", log_page, RecordedEvents, parameters=(*AXES, *FILTERS)),
    Route("part", "/log/{part}", part_page, RecordedEvents),
    Route("status", "/status", status_page, LogState, is_table=False),
    Route("compare", "/compare", compare_page, Differences, is_table=False, parameters=("a", "b", "ladder")),
    Route(
        "compared",
        "/compare/players",
        compare_players_page,
        list[Profile],
        is_table=False,
        parameters=(*AXES, "ladder", "player"),
    ),
)


def _match_route(path: Path) -> tuple[Route, dict[str, str]] | None:
    """Return the route of a path and its variable segments by name."""
    text = "/" + "/".join(path)
    matches = ((route, route.path_pattern.fullmatch(text)) for route in ROUTES)
    return next(((route, match.groupdict()) for route, match in matches if match), None)


def list_parameters(path: Path) -> tuple[str, ...]:
    """Return the query parameters of the page at a path."""
    match = _match_route(path)
    return AXES if match is None else match[0].parameters


def build_page_at(visit: Visit, path: Path) -> Page:
    """Build the page at a path. Raises `Unknown` for an unknown path, and the errors of the page's query."""
    match = _match_route(path)
    if match is None:
        prefixes = ", ".join(dict.fromkeys(route.pattern.partition("/{")[0] for route in ROUTES[1:]))
        raise Unknown("page-unknown", f"no page has this address; addresses are / or begin with {prefixes}")
    route, segments = match
    return route.make(visit, **{name: _decode_value(visit, name, text) for name, text in segments.items()})


def _decode_value(visit: Visit, name: str, text: str) -> str | int:
    """Return the number, id or ladder that a part of a path stands for. Raises `Unknown`."""
    if name in NUMBERS:
        return int(text)
    value = "/".join(_decode_id(visit, name, segment) for segment in text.split("/"))
    return visit.view.full_name(value) if name == "ladder" else value


def _decode_id(visit: Visit, name: str, segment: str) -> str:
    """Return the id of a segment; look up a truncated segment among all ids. Raises `Unknown`."""
    text = addresses.decode_segment(segment)
    if text is None and addresses.is_truncated(segment):
        text = addresses.resolve_truncated(segment, _list_ids(visit, name))
    if text is None:
        raise Unknown(
            "page-unknown",
            f"{quote(segment)} is not an id in an address; write lower-case letters, digits and hyphens unchanged, "
            "and every other byte as ~ and two hex digits",
        )
    return text


def _list_ids(visit: Visit, name: str) -> Iterable[str]:
    """Return all ids of a kind, or all parts of ladder names, including those without games at the visit's `as_of`."""
    undated = Visit(visit.ledger, {axis: value for axis, value in visit.query.items() if axis != "as_of"})
    if name == "ladder":
        return (part for row in undated.ladders.rows for part in row.ladder.split("/"))
    if name == "player":
        return undated.rows_by_player
    if name == "league":
        return (row.league for row in visit.view.leagues().rows)
    if name == "game_id":
        return (row.data["game_id"] for row in visit.view.games().rows)
    return ()


class PageTask(NamedTuple):
    """A page of a site, the data on which it depends besides the site and the program, and the function that builds it.

    A page with an equal `basis` is unchanged; None means that it must always be built.
    """

    path: Path
    basis: Any
    make: Callable[[], Page]


def iterate_pages(visit: Visit) -> Iterator[PageTask]:
    """Yield all pages at the visit's coordinates, except those of games."""
    yield PageTask(INDEX, visit.ladders.at.known_at, partial(index_page, visit))
    for ladder in (row.ladder for row in visit.ladders.rows):
        # there is no basis, because the current time decides whether a ladder's period is still running
        for number in list_page_numbers(len(visit.rows_by_ladder.get(ladder, ()))):
            yield PageTask(addresses.ladder(ladder, number), None, partial(ladder_page, visit, ladder, number))
    yield from _list_player_pages(visit)
    yield PageTask(RULES, None, partial(rules_page, visit))
    versions = [row.version.split("@", 1) for row in visit.view.rulesets().rows]
    for ruleset_id in dict.fromkeys(ruleset_id for ruleset_id, _ in versions):
        yield PageTask(addresses.ruleset(ruleset_id), None, partial(ruleset_page, visit, ruleset_id))
    for ruleset_id, version in versions:
        yield PageTask(addresses.ruleset(ruleset_id, version), None, partial(ruleset_page, visit, ruleset_id, version))
    yield from _list_recorded_pages(visit)


def _list_player_pages(visit: Visit) -> Iterator[PageTask]:
    """Yield the pages of players, and of players on each ladder."""
    view = visit.view
    positions = {
        ladder: view.last_positions(ladder, [row.player for row in rows])
        for ladder, rows in visit.rows_by_ladder.items()
    }
    # time alone closes a list and pays its gold
    person_positions = view.last_positions_of_people()
    closed_count = sum(row.state == "closed" for row in view.lists().rows)
    for player, rows in visit.rows_by_player.items():
        ranks = [(row.ladder, positions[row.ladder][player], row.rank) for row in rows]
        # the page reports the failures of all ladders
        basis = None if visit.all_players.failed else (ranks, person_positions.get(player), closed_count)
        yield PageTask(addresses.player(player), basis, partial(person_page, visit, player))
    running = {row.ladder for row in visit.ladders.rows if row.has_running_points}
    for ladder, rows in visit.rows_by_ladder.items():
        sizes = sum(row.rank is not None for row in rows), len(rows)
        for row in rows:
            player, position = row.player, positions[ladder][row.player]
            path = addresses.player_ladder(player, ladder)
            yield PageTask(path, (position, row.rank, sizes), partial(player_page, visit, player, ladder))
            if ladder in running and (row.games > ACCOUNT_LINES or ladder in visit.published_ladders):
                path = addresses.player_games(player, ladder)
                yield PageTask(path, position, partial(games_page, visit, player, ladder))
            if len(rows) <= RANKED_MAX:
                path = addresses.player_ranks(player, ladder)
                yield PageTask(path, visit.last_event(ladder).position, partial(ranks_page, visit, player, ladder))


def _list_recorded_pages(visit: Visit) -> Iterator[PageTask]:
    """Yield the pages of lists, changes, leagues, clocks, the log and the status."""
    yield PageTask(LISTS, None, partial(lists_page, visit))
    for ladder, last_position in visit.published_ladders.items():
        yield PageTask(addresses.published(ladder), last_position, partial(list_page, visit, ladder))
    for position, ladder in visit.list_pages.items():
        basis = visit.published_ladders[ladder], tuple(visit.list_pages)
        yield PageTask(addresses.published(ladder, position), basis, partial(list_page, visit, ladder, position))
    # a decision may remove linked pages, and a new player may add pages
    links = visit.last_decision, len(visit.player_pages), tuple(visit.published_ladders)
    for position in sorted(visit.impact_positions):
        yield PageTask(addresses.change(position), links, partial(change_page, visit, position))
    for row in visit.view.leagues().rows:
        yield PageTask(addresses.league(row.league), None, partial(league_page, visit, row.league))
    for game_id in sorted(visit.games_with_clock):
        if visit.view.has_game(game_id):
            yield PageTask(addresses.clock(game_id), None, partial(clock_page, visit, game_id))
    yield PageTask(LOG, None, partial(log_page, visit))
    pages, positions = count_complete_pages(visit.head), sorted(visit.impact_positions)
    for number in range(1, pages + 1):
        start, end = (number - 1) * PAGE_EVENTS, number * PAGE_EVENTS
        linked = positions[bisect_right(positions, start) : bisect_right(positions, end)]
        yield PageTask(addresses.log_page(number), (number == pages, linked), partial(part_page, visit, number))
    yield PageTask(STATUS, None, partial(status_page, visit))

"""Map addresses to pages: the routes as path patterns, and the pages of a site other than those of single games."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections.diff.differences import Differences
from ratings_ledger.projections.diff.event_impacts import EventImpact
from ratings_ledger.projections.diff.other_results import OtherResult
from ratings_ledger.projections.diff.published_lists import PublishedListDiff
from ratings_ledger.projections.queries.clocks import ClockState
from ratings_ledger.projections.queries.game_timelines import GameTimeline
from ratings_ledger.projections.queries.history import History
from ratings_ledger.projections.queries.leagues import LeagueState
from ratings_ledger.projections.queries.players import Person, Profile
from ratings_ledger.projections.queries.rank_history import Ranks
from ratings_ledger.projections.queries.recorded_events import RecordedEvents
from ratings_ledger.projections.queries.ruleset_states import AllRulesets, RulesetState
from ratings_ledger.projections.queries.standings import Overview
from ratings_ledger.projections.queries.survey import AllLadders, AllLists
from ratings_ledger.web import addresses
from ratings_ledger.web.addresses import INDEX, LISTS, LOG, STATUS, PagePath
from ratings_ledger.web.changes import build_change_page
from ratings_ledger.web.compare import build_compare_page, build_compare_players_page
from ratings_ledger.web.games import build_clock_page, build_game_page, build_hypothetical_result_page
from ratings_ledger.web.home import build_index_page
from ratings_ledger.web.ladders import build_ladder_page, list_page_numbers
from ratings_ledger.web.leagues import build_league_page
from ratings_ledger.web.lists import build_list_page, build_lists_page
from ratings_ledger.web.log import FILTERS, PAGE_EVENTS, build_log_page, build_part_page, count_complete_pages
from ratings_ledger.web.page import Page
from ratings_ledger.web.players import (
    RANKED_MAX,
    STATEMENT_LINES_MAX,
    build_games_page,
    build_person_page,
    build_player_page,
    build_ranks_page,
)
from ratings_ledger.web.rules import RULES, build_rules_page, build_ruleset_page
from ratings_ledger.web.status import LogState, build_status_page
from ratings_ledger.web.visits import AXES, Visit

REPEATED = ("player", "place")  # query parameters that may occur several times


@dataclass(frozen=True)
class Route:
    """A kind of page.

    `name` is the stable name of the kind in operation ids of OpenAPI. In `pattern`, {ladder} stands for one path
    segment per part of a ladder's name; any other name in braces stands for one path segment. `make` builds the page
    from a visit and the values of these names. `answer` is the type of the page's result, and `parameters` are its
    query parameters. Only pages with a table have CSV.
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
        return NAME_PATTERN.findall(self.pattern)

    @cached_property
    def path_pattern(self) -> re.Pattern[str]:
        """Return the regular expression that matches the paths of such pages."""
        expressions = NUMBER_PATTERNS | {"ladder": f"{SEGMENT_PATTERN}(?:/{SEGMENT_PATTERN})*"}

        def build_group(match: re.Match[str]) -> str:
            return f"(?P<{match[1]}>{expressions.get(match[1], SEGMENT_PATTERN)})"

        return re.compile(NAME_PATTERN.sub(build_group, self.pattern))


NAME_PATTERN = re.compile(r"\{(\w+)\}")
SEGMENT_PATTERN = "[^_/][^/]*"  # segments that begin with _ are the site's own path words
NUMBER_PATTERNS = {"position": "[1-9][0-9]{0,17}", "part": "[1-9][0-9]{0,11}", "page": "[2-9]|[1-9][0-9]{1,6}"}
ROUTES = (
    Route("index", "/", build_index_page, AllLadders),
    Route("ladder", "/ladders/{ladder}", build_ladder_page, Overview, parameters=(*AXES, "active_since")),
    Route("ladder", "/ladders/{ladder}/_{page}", build_ladder_page, Overview, parameters=(*AXES, "active_since")),
    Route("person", "/players/{player}", build_person_page, Person),
    Route("player", "/players/{player}/{ladder}", build_player_page, Profile),
    Route("games", "/players/{player}/{ladder}/_games", build_games_page, History),
    Route("ranks", "/players/{player}/{ladder}/_ranks", build_ranks_page, Ranks),
    Route("game", "/games/{game_id}", build_game_page, GameTimeline, is_table=False),
    Route(
        "otherwise",
        "/games/{game_id}/_otherwise",
        build_hypothetical_result_page,
        OtherResult,
        parameters=(*AXES, "place"),
    ),
    Route("clock", "/games/{game_id}/_clock", build_clock_page, ClockState),
    Route("rules", "/rules", build_rules_page, AllRulesets),
    Route("ruleset", "/rules/{ruleset_id}", build_ruleset_page, RulesetState, is_table=False),
    Route("ruleset", "/rules/{ruleset_id}/{version}", build_ruleset_page, RulesetState, is_table=False),
    Route("lists", "/lists", build_lists_page, AllLists),
    Route("list", "/lists/{ladder}", build_list_page, PublishedListDiff),
    Route("list", "/lists/{ladder}/_{position}", build_list_page, PublishedListDiff),
    Route("change", "/changes/{position}", build_change_page, EventImpact),
    Route("league", "/leagues/{league}", build_league_page, LeagueState),
    Route("log", "/log", build_log_page, RecordedEvents, parameters=(*AXES, *FILTERS)),
    Route("part", "/log/{part}", build_part_page, RecordedEvents),
    Route("status", "/status", build_status_page, LogState, is_table=False, parameters=()),
    Route("compare", "/compare", build_compare_page, Differences, is_table=False, parameters=("a", "b", "ladder")),
    Route(
        "compared",
        "/compare/players",
        build_compare_players_page,
        list[Profile],
        is_table=False,
        parameters=(*AXES, "ladder", "player"),
    ),
)


def _match_route(path: PagePath) -> tuple[Route, dict[str, str]] | None:
    """Return the route of a path and its variable segments by name."""
    text = "/" + "/".join(path)
    matches = ((route, route.path_pattern.fullmatch(text)) for route in ROUTES)
    return next(((route, match.groupdict()) for route, match in matches if match), None)


def list_parameters(path: PagePath) -> tuple[str, ...]:
    """Return the query parameters of the page at a path."""
    match = _match_route(path)
    return AXES if match is None else match[0].parameters


def build_page_at(visit: Visit, path: PagePath) -> Page:
    """Build the page at a path. Raises `Unknown` for an unknown path, and the errors of the page's query."""
    match = _match_route(path)
    if match is None:
        prefixes = ", ".join(dict.fromkeys(route.pattern.partition("/{")[0] for route in ROUTES[1:]))
        raise Unknown("page-unknown", f"no page has this address; addresses are / or begin with {prefixes}")
    route, segments = match
    return route.make(visit, **{name: _decode_value(visit, name, text) for name, text in segments.items()})


def _decode_value(visit: Visit, name: str, text: str) -> str | int:
    """Return the number, id or ladder that a part of a path stands for. Raises `Unknown`."""
    if name in NUMBER_PATTERNS:
        return int(text)
    value = "/".join(_decode_id(visit, name, segment) for segment in text.split("/"))
    return visit.view.full_name(value) if name == "ladder" else value


def _decode_id(visit: Visit, name: str, segment: str) -> str:
    """Return the id of a segment; look up a truncated segment among all ids. Raises `Unknown`."""
    text = addresses.decode_segment(segment)
    if text is None and addresses.is_truncated(segment):
        text = addresses.resolve_truncated(segment, _list_ids(visit, name))
        if text is None:
            raise Unknown("page-unknown", f"no id that is known at these coordinates is shortened to {quote(segment)}")
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

    path: PagePath
    basis: Any
    make: Callable[[], Page]


def iterate_pages(visit: Visit) -> Iterator[PageTask]:
    """Yield the pages of a site at the visit's coordinates, except `/games/ID`.

    Clocks of games are included. Pages that answer query parameters are not part of a site.
    """
    yield PageTask(INDEX, visit.ladders.at.known_at, partial(build_index_page, visit))
    for ladder in (row.ladder for row in visit.ladders.rows):
        # without a basis, because the current time decides whether a ladder's period is still open
        for number in list_page_numbers(len(visit.rows_by_ladder.get(ladder, ()))):
            yield PageTask(addresses.ladder(ladder, number), None, partial(build_ladder_page, visit, ladder, number))
    yield from _list_player_pages(visit)
    yield PageTask(RULES, None, partial(build_rules_page, visit))
    versions = [row.version.split("@", 1) for row in visit.view.rulesets().rows]
    for ruleset_id in dict.fromkeys(ruleset_id for ruleset_id, _ in versions):
        yield PageTask(addresses.ruleset(ruleset_id), None, partial(build_ruleset_page, visit, ruleset_id))
    for ruleset_id, version in versions:
        yield PageTask(
            addresses.ruleset(ruleset_id, version), None, partial(build_ruleset_page, visit, ruleset_id, version)
        )
    yield from _list_recorded_pages(visit)


def _list_player_pages(visit: Visit) -> Iterator[PageTask]:
    """Yield the pages of players, and of players on each ladder."""
    view = visit.view
    positions = {
        ladder: view.last_positions(ladder, [row.player for row in rows])
        for ladder, rows in visit.rows_by_ladder.items()
    }
    person_positions = view.last_positions_of_people()
    # the passing of time, without an event, closes a list and pays its gold
    closed_count = sum(row.state == "closed" for row in view.lists().rows)
    for player, rows in visit.rows_by_player.items():
        ranks = [(row.ladder, positions[row.ladder][player], row.rank) for row in rows]
        # the page reports the failures of all ladders
        basis = None if visit.all_players.failed else (ranks, person_positions.get(player), closed_count)
        yield PageTask(addresses.player(player), basis, partial(build_person_page, visit, player))
    running = {row.ladder for row in visit.ladders.rows if row.has_running_points}
    for ladder, rows in visit.rows_by_ladder.items():
        sizes = sum(row.rank is not None for row in rows), len(rows)
        for row in rows:
            player, position = row.player, positions[ladder][row.player]
            path = addresses.player_ladder(player, ladder)
            yield PageTask(path, (position, row.rank, sizes), partial(build_player_page, visit, player, ladder))
            if ladder in running and (row.games > STATEMENT_LINES_MAX or ladder in visit.published_ladders):
                path = addresses.player_games(player, ladder)
                yield PageTask(path, position, partial(build_games_page, visit, player, ladder))
            if len(rows) <= RANKED_MAX:
                path = addresses.player_ranks(player, ladder)
                yield PageTask(
                    path, visit.last_event(ladder).position, partial(build_ranks_page, visit, player, ladder)
                )


def _list_recorded_pages(visit: Visit) -> Iterator[PageTask]:
    """Yield the pages of lists, changes, leagues, clocks, the log and the status."""
    yield PageTask(LISTS, None, partial(build_lists_page, visit))
    for ladder, last_position in visit.published_ladders.items():
        yield PageTask(addresses.published_list(ladder), last_position, partial(build_list_page, visit, ladder))
    for position, ladder in visit.list_pages.items():
        basis = visit.published_ladders[ladder], tuple(visit.list_pages)
        yield PageTask(
            addresses.published_list(ladder, position), basis, partial(build_list_page, visit, ladder, position)
        )
    # a decision may remove linked pages, and a new player may add pages
    links = visit.last_decision, len(visit.player_pages), tuple(visit.published_ladders)
    for position in sorted(visit.impact_positions):
        yield PageTask(addresses.event_impact(position), links, partial(build_change_page, visit, position))
    for row in visit.view.leagues().rows:
        yield PageTask(addresses.league(row.league), None, partial(build_league_page, visit, row.league))
    for game_id in sorted(visit.games_with_clock):
        if visit.view.has_game(game_id):
            yield PageTask(addresses.clock(game_id), None, partial(build_clock_page, visit, game_id))
    yield PageTask(LOG, None, partial(build_log_page, visit))
    pages, positions = count_complete_pages(visit.head), sorted(visit.impact_positions)
    for number in range(1, pages + 1):
        start, end = (number - 1) * PAGE_EVENTS, number * PAGE_EVENTS
        linked = positions[bisect_right(positions, start) : bisect_right(positions, end)]
        yield PageTask(addresses.log_page(number), (number == pages, linked), partial(build_part_page, visit, number))
    yield PageTask(STATUS, None, partial(build_status_page, visit))

"""What is at which address: the routes, as patterns of paths, and all pages that there are."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.projections.diff.comparison import Differences
from ratings_ledger.projections.diff.event_impacts import EventImpact
from ratings_ledger.projections.diff.other_results import OtherResult
from ratings_ledger.projections.diff.published_lists import PublishedListDiff
from ratings_ledger.projections.queries.clocks import ClockState
from ratings_ledger.projections.queries.game_timelines import GameTimeline
from ratings_ledger.projections.queries.games_log import RecordedEvents
from ratings_ledger.projections.queries.history import History, Ranks
from ratings_ledger.projections.queries.leagues import LeagueState
from ratings_ledger.projections.queries.players import Person, Profile
from ratings_ledger.projections.queries.ruleset_states import AllRulesets, RulesetState
from ratings_ledger.projections.queries.standings import Overview
from ratings_ledger.projections.queries.survey import AllLadders, AllLists
from ratings_ledger.web import addresses
from ratings_ledger.web.addresses import INDEX, LISTS, LOG, STATUS, Path
from ratings_ledger.web.changes import change_page
from ratings_ledger.web.compare import compare_page, compared_page
from ratings_ledger.web.games import clock_page, game_page, otherwise_page
from ratings_ledger.web.ladders import ladder_page, pages_of
from ratings_ledger.web.leagues import league_page
from ratings_ledger.web.lists import list_page, lists_page
from ratings_ledger.web.log import FILTERS, PAGE_EVENTS, complete_pages, log_page, part_page
from ratings_ledger.web.overview import index_page
from ratings_ledger.web.page import Page
from ratings_ledger.web.players import LINES, RANKED_MAX, games_page, person_page, player_page, ranks_page
from ratings_ledger.web.rules import RULES, rules_page, ruleset_page
from ratings_ledger.web.status import LogState, status_page
from ratings_ledger.web.visits import AXES, Visit

REPEATED = ("player", "place")  # what can be asked for several times


@dataclass(frozen=True)
class Route:
    """A kind of page: the pattern of its path, what makes it of a visit and what the path names, and what it answers
    with; whether that is a table, so that there is CSV; and what can be asked for behind the ?.

    {ladder} in a pattern stands for a segment for each part of a ladder's name; any other name for one segment.
    """

    pattern: str
    make: Callable[..., Page]
    answer: Any
    is_table: bool = True
    members: tuple[str, ...] = AXES

    @cached_property
    def names(self) -> list[str]:
        """Return what a path names, in its order."""
        return NAME.findall(self.pattern)

    @cached_property
    def paths(self) -> re.Pattern[str]:
        """Return the paths of such pages."""
        return re.compile(NAME.sub(lambda name: f"(?P<{name[1]}>{WRITTEN.get(name[1], SEGMENT)})", self.pattern))


NAME = re.compile(r"\{(\w+)\}")
SEGMENT = "[^_/][^/]*"  # what begins with _ is a word of the pages themselves
NUMBERS = {"position": "[1-9][0-9]{0,17}", "part": "[1-9][0-9]{0,11}", "page": "[2-9]|[1-9][0-9]{1,6}"}
WRITTEN = NUMBERS | {"ladder": f"{SEGMENT}(?:/{SEGMENT})*"}
ROUTES = (
    Route("/", index_page, AllLadders),
    Route("/ladders/{ladder}", ladder_page, Overview, members=(*AXES, "active_since")),
    Route("/ladders/{ladder}/_{page}", ladder_page, Overview, members=(*AXES, "active_since")),
    Route("/players/{player}", person_page, Person),
    Route("/players/{player}/{ladder}", player_page, Profile),
    Route("/players/{player}/{ladder}/_games", games_page, History),
    Route("/players/{player}/{ladder}/_ranks", ranks_page, Ranks),
    Route("/games/{game_id}", game_page, GameTimeline, is_table=False),
    Route("/games/{game_id}/_otherwise", otherwise_page, OtherResult, members=(*AXES, "place")),
    Route("/games/{game_id}/_clock", clock_page, ClockState),
    Route("/rules", rules_page, AllRulesets),
    Route("/rules/{ruleset_id}", ruleset_page, RulesetState, is_table=False),
    Route("/rules/{ruleset_id}/{version}", ruleset_page, RulesetState, is_table=False),
    Route("/lists", lists_page, AllLists),
    Route("/lists/{ladder}", list_page, PublishedListDiff),
    Route("/lists/{ladder}/_{position}", list_page, PublishedListDiff),
    Route("/changes/{position}", change_page, EventImpact),
    Route("/leagues/{league}", league_page, LeagueState),
    Route("/log", log_page, RecordedEvents, members=(*AXES, *FILTERS)),
    Route("/log/{part}", part_page, RecordedEvents),
    Route("/status", status_page, LogState, is_table=False),
    Route("/compare", compare_page, Differences, is_table=False, members=("a", "b", "ladder")),
    Route("/compare/players", compared_page, list[Profile], is_table=False, members=(*AXES, "ladder", "player")),
)


def _found(path: Path) -> tuple[Route, dict[str, str]] | None:
    """Return the route of a path, and the segments that it names."""
    text = "/" + "/".join(path)
    return next(((route, found.groupdict()) for route in ROUTES if (found := route.paths.fullmatch(text))), None)


def members_of(path: Path) -> tuple[str, ...]:
    """Return what can be asked for behind the ? of an address."""
    found = _found(path)
    return AXES if found is None else found[0].members


def page_at(visit: Visit, path: Path) -> Page:
    """Return the page at a path. Raises `Unknown` where there is none, and as the page's question does."""
    if (found := _found(path)) is None:
        there = ", ".join(dict.fromkeys(route.pattern.partition("/{")[0] for route in ROUTES[1:]))
        raise Unknown(
            "page-unknown", f"there is no page at this address; addresses begin with {there}, or are / itself"
        )
    route, segments = found
    return route.make(visit, **{name: _meant(visit, name, text) for name, text in segments.items()})


def _meant(visit: Visit, name: str, text: str) -> str | int:
    """Return what a path names: a number, an id, or a ladder. Raises `Unknown`."""
    if name in NUMBERS:
        return int(text)
    told = "/".join(_id(visit, name, one) for one in text.split("/"))
    return visit.view.full_name(told) if name == "ladder" else told


def _id(visit: Visit, name: str, found: str) -> str:
    """Return the id of a segment; one that was cut is looked for among all that there are. Raises `Unknown`."""
    text = addresses.text_of(found)
    if text is None and addresses.is_cut(found):
        text = addresses.among(found, _every(visit, name))
    if text is None:
        told = "an id in an address has lower-case letters, digits and hyphens, and ~ with two hex digits for the rest"
        raise Unknown("page-unknown", told)
    return text


def _every(visit: Visit, name: str) -> Iterable[str]:
    """Return all ids of a kind, or all parts of ladders, also of those who had not played by the time that is asked
    for.
    """
    whenever = Visit(visit.ledger, {axis: value for axis, value in visit.query.items() if axis != "as_of"})
    if name == "ladder":
        return (part for row in whenever.ladders.rows for part in row.ladder.split("/"))
    if name == "player":
        return whenever.people
    if name == "league":
        return (row.league for row in visit.view.leagues().rows)
    if name == "game_id":
        return (row.data["game_id"] for row in visit.view.games().rows)
    return ()


class Due(NamedTuple):
    """A page that there is, what decides about it besides the site and the program, and how it is made."""

    path: Path
    basis: Any
    make: Callable[[], Page]


def every_page(visit: Visit) -> Iterator[Due]:
    """Yield all pages at the visit's coordinates but those of games."""
    view = visit.view
    yield Due(INDEX, visit.ladders.at.known_at, partial(index_page, visit))
    for ladder in (row.ladder for row in visit.ladders.rows):
        # a list says whether its period still runs, which the clock decides
        for number in pages_of(len(visit.by_ladder.get(ladder, ()))):
            page = partial(ladder_page, visit, ladder, number)
            yield Due(addresses.ladder(ladder, number), None, page)
    lasts = {
        ladder: view.last_positions(ladder, [row.player for row in rows]) for ladder, rows in visit.by_ladder.items()
    }
    # the clock decides when a list is over, and pays its gold
    own, over = view.last_positions_of_people(), sum(row.state == "closed" for row in view.lists().rows)
    for player, rows in visit.people.items():
        # it tells what fails anywhere
        stands = [(row.ladder, lasts[row.ladder][player], row.rank) for row in rows]
        basis = None if visit.everybody.failed else (stands, own.get(player), over)
        yield Due(addresses.player(player), basis, partial(person_page, visit, player))
    running = {row.ladder for row in visit.ladders.rows if row.running}
    for ladder, rows in visit.by_ladder.items():
        among = sum(row.rank is not None for row in rows), len(rows)
        for row in rows:
            path = addresses.player_on(row.player, ladder)
            on_it = lasts[ladder][row.player], row.rank, among
            yield Due(path, on_it, partial(player_page, visit, row.player, ladder))
            if ladder in running and (row.games > LINES or ladder in visit.published):
                games = partial(games_page, visit, row.player, ladder)
                yield Due(addresses.games_of(row.player, ladder), lasts[ladder][row.player], games)
            if len(rows) <= RANKED_MAX:
                ranks = partial(ranks_page, visit, row.player, ladder)
                yield Due(addresses.ranks(row.player, ladder), visit.last_event(ladder).position, ranks)
    yield Due(RULES, None, partial(rules_page, visit))
    versions = [row.version.split("@", 1) for row in view.rulesets().rows]
    for ruleset_id in dict.fromkeys(ruleset_id for ruleset_id, _ in versions):
        yield Due(addresses.ruleset(ruleset_id), None, partial(ruleset_page, visit, ruleset_id))
    for ruleset_id, version in versions:
        yield Due(addresses.ruleset(ruleset_id, version), None, partial(ruleset_page, visit, ruleset_id, version))
    yield from _recorded_pages(visit)


def _recorded_pages(visit: Visit) -> Iterator[Due]:
    """Yield the pages of what is recorded: lists, changes, leagues, clocks, the log, the status."""
    yield Due(LISTS, None, partial(lists_page, visit))
    for ladder, last in visit.published.items():
        yield Due(addresses.published(ladder), last, partial(list_page, visit, ladder))
    for position, ladder in visit.lists.items():
        basis = visit.published[ladder], tuple(visit.lists)
        yield Due(addresses.published(ladder, position), basis, partial(list_page, visit, ladder, position))
    # names lead to pages, which a decision may take away, and a new player bring back
    linked = visit.decided, len(visit.standing), tuple(visit.published)
    for position in sorted(visit.telling):
        yield Due(addresses.change(position), linked, partial(change_page, visit, position))
    for row in visit.view.leagues().rows:
        yield Due(addresses.league(row.league), None, partial(league_page, visit, row.league))
    for game_id in sorted(visit.clocks):
        if visit.view.has_game(game_id):
            yield Due(addresses.clock(game_id), None, partial(clock_page, visit, game_id))
    yield Due(LOG, None, partial(log_page, visit))
    most = complete_pages(visit.head)
    told = sorted(visit.telling)
    for number in range(1, most + 1):
        ends = (number - 1) * PAGE_EVENTS, number * PAGE_EVENTS
        linked_here = told[bisect_right(told, ends[0]) : bisect_right(told, ends[1])]
        yield Due(addresses.log_page(number), (number == most, linked_here), partial(part_page, visit, number))
    yield Due(STATUS, None, partial(status_page, visit))

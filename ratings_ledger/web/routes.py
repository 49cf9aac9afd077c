"""What is at which address: the pages by the words that their paths begin with, and all pages that there are."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from ledger.errors import Unknown
from ledger.rejections import shown
from ratings_ledger.web import addresses
from ratings_ledger.web.addresses import CLOCK, INDEX, LISTS, LOG, STATUS, Path
from ratings_ledger.web.changes import change_page
from ratings_ledger.web.compare import compare_page, compared_page
from ratings_ledger.web.games import clock_page, game_page
from ratings_ledger.web.ladders import ladder_page, pages_of
from ratings_ledger.web.leagues import league_page
from ratings_ledger.web.lists import list_page, lists_page
from ratings_ledger.web.log import FILTERS, PAGE_EVENTS, complete_pages, log_page, part_page
from ratings_ledger.web.overview import index_page
from ratings_ledger.web.page import Page
from ratings_ledger.web.players import RANKED_MAX, person_page, player_page, ranks_page
from ratings_ledger.web.rules import RULES, rules_page, ruleset_page
from ratings_ledger.web.status import status_page
from ratings_ledger.web.visits import AXES, Visit

# by the first segment: how many ids follow at least and at most, None for the parts of a ladder, and the page
ROUTES: dict[str, list[tuple[int, int | None, Callable[..., Page]]]] = {
    "ladders": [(1, None, ladder_page)],
    "players": [(1, 1, person_page), (2, None, player_page)],
    "games": [(1, 1, game_page)],
    "rules": [(0, 0, rules_page), (1, 2, ruleset_page)],
    "lists": [(0, 0, lists_page), (1, None, list_page)],
    "changes": [(1, 1, change_page)],
    "leagues": [(1, 1, league_page)],
    "log": [(0, 0, log_page), (1, 1, part_page)],
    "status": [(0, 0, status_page)],
    "compare": [(0, 0, compare_page), (1, 1, compared_page)],
}
# a page of a long ladder
NUMBER = re.compile(r"_([2-9]|[1-9][0-9]{1,6})", re.ASCII)
# by the path, or its beginning: what can be asked for behind the ?; of REPEATED several
MEMBERS: dict[Path, tuple[str, ...]] = {
    ("ladders",): (*AXES, "active_since"),
    LOG: (*AXES, *FILTERS),
    ("compare",): ("a", "b", "ladder"),
    ("compare", "players"): (*AXES, "ladder", "player"),
}
REPEATED = ("player",)


def members_of(path: Path) -> tuple[str, ...]:
    """What can be asked for behind the ? of an address."""
    return MEMBERS.get(path, MEMBERS.get(path[:1], AXES))


def page_at(visit: Visit, path: Path) -> Page:
    """The page at a path. Raises `Unknown` where there is none, and as the page's question does."""
    if path == INDEX:
        return index_page(visit)
    if len(path) == 3 and path[0] == "games" and path[2] == CLOCK:
        return clock_page(visit, _id(visit, "games", 0, path[1]))
    if len(path) > 2 and path[-1].startswith("_"):
        return _page_behind(visit, path)
    for least, most, page in ROUTES.get(path[0], ()):
        if least <= len(path) - 1 and (most is None or len(path) - 1 <= most):
            return page(visit, *(_id(visit, path[0], number, one) for number, one in enumerate(path[1:])))
    there = ", ".join(f"/{name}" for name in ROUTES)
    raise Unknown("page-unknown", f"there is no page at this address; addresses begin with {there}, or are / itself")


def _page_behind(visit: Visit, path: Path) -> Page:
    """The page of a ladder or a player that a word at the end of the path names. Raises `Unknown`."""
    first, *found, word = path
    ids = [_id(visit, first, number, one) for number, one in enumerate(found)]
    if first == "ladders" and NUMBER.fullmatch(word):
        return ladder_page(visit, *ids, number=int(word[1:]))
    if first == "players" and word == "_ranks" and len(ids) > 1:
        return ranks_page(visit, *ids)
    raise Unknown("page-unknown", f"{shown(word)} is no page of a ladder or a player")


def _id(visit: Visit, first: str, number: int, found: str) -> str:
    """The id of a segment; one that was cut is looked for. Raises `Unknown`."""
    text = addresses.text_of(found)
    if text is None and addresses.is_cut(found) and first in ("ladders", "players", "lists"):
        parts = (part for row in visit.ladders.rows for part in row.ladder.split("/"))
        text = addresses.among(found, visit.people if first == "players" and number == 0 else parts)
    if text is None and addresses.is_cut(found) and first == "leagues":
        text = addresses.among(found, (row.league for row in visit.view.leagues().rows))
    if text is None and addresses.is_cut(found) and first == "games":
        text = addresses.among(found, (row.data["game_id"] for row in visit.view.games().rows))
    if text is None:
        told = "an id in an address has lower-case letters, digits and hyphens, and ~ with two hex digits for the rest"
        raise Unknown("page-unknown", told)
    return text


class Due(NamedTuple):
    """A page that there is, what decides about it besides the site and the program, and how it is made."""

    path: Path
    basis: Any
    make: Callable[[], Page]


def every_page(visit: Visit) -> Iterator[Due]:
    """All pages at the visit's coordinates but those of games."""
    view = visit.view
    yield Due(INDEX, visit.ladders.at.known_at, partial(index_page, visit))
    for ladder in (row.ladder for row in visit.ladders.rows):
        # a list says whether its period still runs, which the clock decides
        for number in pages_of(len(visit.by_ladder.get(ladder, ()))):
            page = partial(ladder_page, visit, *ladder.split("/"), number=number)
            yield Due(addresses.ladder(ladder, number), None, page)
    for player, rows in visit.people.items():
        # it tells what fails anywhere
        lasts = [(row.ladder, visit.last_event(row.ladder).position) for row in rows]
        basis = None if visit.everybody.failed else lasts
        yield Due(addresses.player(player), basis, partial(person_page, visit, player))
    for ladder, rows in visit.by_ladder.items():
        own = view.last_positions(ladder, [row.player for row in rows])
        among = sum(row.rank is not None for row in rows), len(rows)
        for row in rows:
            path = addresses.player_on(row.player, ladder)
            on_it = own[row.player], row.rank, among
            yield Due(path, on_it, partial(player_page, visit, row.player, *ladder.split("/")))
            if len(rows) <= RANKED_MAX:
                ranks = partial(ranks_page, visit, row.player, *ladder.split("/"))
                yield Due(addresses.ranks(row.player, ladder), visit.last_event(ladder).position, ranks)
    yield Due(RULES, None, partial(rules_page, visit))
    versions = [row.version.split("@", 1) for row in view.rulesets().rows]
    for ruleset_id in dict.fromkeys(ruleset_id for ruleset_id, _ in versions):
        yield Due(addresses.ruleset(ruleset_id), None, partial(ruleset_page, visit, ruleset_id))
    for ruleset_id, version in versions:
        yield Due(addresses.ruleset(ruleset_id, version), None, partial(ruleset_page, visit, ruleset_id, version))
    yield from _recorded_pages(visit)


def _recorded_pages(visit: Visit) -> Iterator[Due]:
    """The pages of what is recorded: lists, changes, leagues, clocks, the log, the status."""
    yield Due(LISTS, None, partial(lists_page, visit))
    for ladder, last in visit.published.items():
        yield Due(addresses.published(ladder), last, partial(list_page, visit, *ladder.split("/")))
    # names lead to pages, which a decision may take away, and a new player bring back
    linked = visit.decided, len(visit.standing), tuple(visit.published)
    for position in sorted(visit.telling):
        yield Due(addresses.change(position), linked, partial(change_page, visit, str(position)))
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
        yield Due(addresses.log_page(number), (number == most, linked_here), partial(part_page, visit, str(number)))
    yield Due(STATUS, None, partial(status_page, visit))

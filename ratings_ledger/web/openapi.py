"""What programs can ask of the pages, as an OpenAPI document: made of the routes, and of the results they answer with.

A ladder's name is several segments of an address, and a parameter of OpenAPI is one; so each page of a ladder is there
once for every number of segments that a name may have.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from inspect import Parameter, getdoc, signature
from typing import Any, get_args, get_origin

from projections.queries.answers_beside import EventImpact, ListBeside
from projections.queries.answers_compared import Differences
from projections.queries.answers_profiled import Overview, Profile, Ranks
from projections.queries.answers_recorded import AllRulesets, ClockState, LeagueState, RecordedEvents, RulesetState
from projections.queries.answers_surveyed import AllLadders, AllLists, Everybody
from projections.queries.answers_told import GameStory
from projections.queries.results import Result
from projections.queries.shapes import Shape, shapes_of
from ratings_ledger.web.addresses import SEGMENT_MAX
from ratings_ledger.web.changes import change_page
from ratings_ledger.web.compare import compare_page, compared_page
from ratings_ledger.web.games import GAMES, clock_page, game_page
from ratings_ledger.web.ladders import ladder_page
from ratings_ledger.web.leagues import league_page
from ratings_ledger.web.lists import list_page, lists_page
from ratings_ledger.web.log import log_page, part_page
from ratings_ledger.web.overview import index_page
from ratings_ledger.web.page import Page
from ratings_ledger.web.players import person_page, player_page, ranks_page
from ratings_ledger.web.routes import REPEATED, ROUTES, members_of
from ratings_ledger.web.rules import rules_page, ruleset_page
from ratings_ledger.web.status import LogState, status_page
from ratings_ledger.web.visits import AXES

OPENAPI = "openapi.json"
LADDER_PARTS = 5  # a ruleset, and at most four values of its partition
# by page: what it answers with, and whether that is a table, so that there is CSV as well
ANSWERS: dict[Callable[..., Page], tuple[type[Any], bool]] = {
    index_page: (AllLadders, True), ladder_page: (Overview, True), person_page: (Everybody, True),
    player_page: (Profile, True), game_page: (GameStory, False), rules_page: (AllRulesets, True),
    ruleset_page: (RulesetState, False), lists_page: (AllLists, True), list_page: (ListBeside, True),
    change_page: (EventImpact, True), league_page: (LeagueState, True), log_page: (RecordedEvents, True),
    part_page: (RecordedEvents, True), status_page: (LogState, False), compare_page: (Differences, False),
    compared_page: (list[Profile], False),
}  # fmt: skip
# the same of pages behind others, at a word that begins with _
BEHIND: dict[Callable[..., Page], tuple[type[Any], bool]] = {
    ranks_page: (Ranks, True), clock_page: (ClockState, True),
}  # fmt: skip
WORDS: dict[Callable[..., Page], list[tuple[str, Callable[..., Page], list[str]]]] = {
    ladder_page: [("_{part}", ladder_page, ["part"])], player_page: [("_ranks", ranks_page, [])],
    game_page: [("_clock", clock_page, [])],
}  # fmt: skip
SEGMENT = "^([a-z0-9-]|~[0-9a-f]{2})+(~~[0-9a-f]{32})?$"
TOLD = {
    "as_of": "What was played up to then: a date, which means its end, or a time, such as 2024-12-31T12:00Z.",
    "known_at": "What was recorded up to then: a position of the log, a date, which means its end, or a time.",
    "rules": "A version, ID@VERSION, that scores all games of its ruleset.",
    "active_since": "Only who played from then on: a date, which means its start, or a time.",
    "about": "Only events about this game or player, or the one of this id.",
    "type": "Only events of this type.",
    "by": "Only what somebody recorded.",
    "a": "Coordinates, written as for `ratings diff`, such as published or now.",
    "b": "The other coordinates.",
    "ladder": "A ladder, such as elo-catan/all.",
    "player": "A player; up to six.",
}
REFUSALS = {
    "400": "The coordinates cannot be meant.", "404": "There is no such page, player, game, ladder or version.",
    "414": "The address is too long.", "421": "The server does not answer for this host.",
    "503": "The ledger cannot be read now, or the answer takes too long; Retry-After says when to come back.",
}  # fmt: skip
ABOUT = (
    "Every page of the ledger as JSON, and every table as CSV; without the ending of its address a page is for people. "
    "Nothing can be changed. Points are exact: fractions as strings, with a decimal beside them. Every answer has an "
    "ETag. In a folder of files the same addresses are files, which take no parameters."
)


@cache
def as_openapi() -> bytes:
    """The document, as it is served."""
    return (json.dumps(document(), ensure_ascii=False, indent=1) + "\n").encode()


def document() -> Shape:
    """The document: OpenAPI 3.1."""
    error = {
        "type": "object", "required": ["error"],
        "properties": {"error": {
            "type": "object", "required": ["status", "reason"],
            "properties": {"status": {"type": "integer"}, "reason": {"type": "string"}},
        }},
    }  # fmt: skip
    return {
        "openapi": "3.1.0",
        "info": {"title": "Ratings ledger", "version": "1", "description": ABOUT},
        "servers": [{"url": "."}],
        "paths": dict(_paths()),
        "components": {
            "parameters": {name: _member(name) for name in TOLD},
            "responses": {
                **{f"{name}{status}": {"description": told, "content": content}
                   for name, content in (
                       ("json", {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}),
                       ("page", {"text/html": {"schema": {"type": "string"}}}),
                   ) for status, told in REFUSALS.items()},
                "same": {"description": "The answer has the ETag that If-None-Match names."},
            },
            "schemas": {
                "Segment": {"type": "string", "maxLength": SEGMENT_MAX, "pattern": SEGMENT}, "Refusal": error,
                **shapes_of(_results()),
            },
        },
    }  # fmt: skip


def _results() -> Iterator[type[Result]]:
    """The kinds of results that pages answer with."""
    for kind, _ in (*ANSWERS.values(), *BEHIND.values()):
        yield get_args(kind)[0] if get_origin(kind) is list else kind


def _paths() -> Iterator[tuple[str, Shape]]:
    yield from _page("/index", index_page, [])
    yield from _page("/compare/players", compared_page, [])
    routed = ((first, *route) for first, routes in ROUTES.items() for route in routes if route[2] is not compared_page)
    for first, least, most, page in routed:
        for count in range(least, _longest(page, most) + 1):
            names = _names(page, count)
            path = "/".join(["", first, *(f"{{{name}}}" for name in names)])
            yield from _page(path, page, names)
            for word, behind, more in WORDS.get(page, ()):
                yield from _page(f"{path}/{word}", behind, [*names, *more])
    lines = {"application/jsonl": {"schema": {"type": "string"}}}
    told = "All games that are not voided, each as a line that `ratings import` takes."
    yield f"/{GAMES}", _get("games", told, [], AXES, lines, "json")
    content = {"application/json": {"schema": {"type": "object"}}}
    yield f"/{OPENAPI}", _get("openapi", "This document.", [], (), content, "json")


def _longest(page: Callable[..., Page], most: int | None) -> int:
    """How many segments follow the first at most."""
    return most if most is not None else len(_ids(page)[:-1]) + LADDER_PARTS


def _ids(page: Callable[..., Page]) -> list[Parameter]:
    """The ids that a page takes, of which the last may be the parts of a ladder."""
    every = list(signature(page).parameters.values())[1:]
    return [one for one in every if one.kind is not Parameter.KEYWORD_ONLY]


def _names(page: Callable[..., Page], count: int) -> list[str]:
    """What the segments of a page's address are called."""
    names = [one.name for one in _ids(page) if one.kind is not Parameter.VAR_POSITIONAL]
    if len(names) >= count:
        return names[:count]
    values = [f"value_{number}" for number in range(1, count - len(names))]
    return [*names, "ruleset", *values]


def _page(path: str, page: Callable[..., Page], names: list[str]) -> Iterator[tuple[str, Shape]]:
    """A page's addresses."""
    kind, is_table = BEHIND[page] if page in BEHIND else ANSWERS[page]
    name = "_".join([page.__name__.removesuffix("_page"), *names])
    told = (getdoc(page) or "").partition(" Raises")[0].split("\n\n")[0].replace("\n", " ")
    asked = members_of(tuple(part for part in path.split("/")[1:] if not part.startswith("{")))
    shape = {"application/json": {"schema": _schema(kind)}}
    yield f"{path}.json", _get(f"{name}_json", told, names, asked, shape, "json")
    if is_table:
        rows = {"text/csv": {"schema": {"type": "string"}}}
        yield f"{path}.csv", _get(f"{name}_csv", f"{told} The rows alone.", names, asked, rows, "page")


def _schema(kind: Any) -> Shape:
    if get_origin(kind) is list:
        return {"type": "array", "items": _schema(get_args(kind)[0])}
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _get(name: str, told: str, ids: list[str], asked: Sequence[str], content: Shape, refused: str) -> Shape:
    segments = [{"name": one, "in": "path", "required": True, "description": "An id as a segment of an address.",
                 "schema": {"$ref": "#/components/schemas/Segment"}} for one in ids]  # fmt: skip
    return {"get": {
        "operationId": name, "summary": told,
        "parameters": [*segments, *({"$ref": f"#/components/parameters/{one}"} for one in asked)],
        "responses": {
            "200": {"description": "The answer.", "content": content},
            "304": {"$ref": "#/components/responses/same"},
            **{status: {"$ref": f"#/components/responses/{refused}{status}"} for status in REFUSALS},
        },
    }}  # fmt: skip


def _member(name: str) -> Shape:
    one = {"type": "string"}
    return {"name": name, "in": "query", "required": False, "description": TOLD[name],
            "schema": {"type": "array", "items": one} if name in REPEATED else one}  # fmt: skip

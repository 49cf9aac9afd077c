"""What programs can ask of the pages, as an OpenAPI document: made of the routes, and of the results they answer with.

A ladder's name is several segments of an address, and a parameter of OpenAPI is one; so each page of a ladder is there
once for every number of segments that a name may have.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from inspect import getdoc
from typing import Any, get_args, get_origin

from ratings_ledger.projections.queries.result_schemas import Shape, shapes_of
from ratings_ledger.projections.queries.results import Result
from ratings_ledger.web.addresses import SEGMENT_MAX
from ratings_ledger.web.games import GAMES
from ratings_ledger.web.routes import REPEATED, ROUTES, Route
from ratings_ledger.web.visits import AXES

OPENAPI = "openapi.json"
LADDER_PARTS = 5  # a ruleset, and at most four values of its partition
SEGMENT = "^([a-z0-9-]|~[0-9a-f]{2})+(~~[0-9a-f]{32})?$"
TOLD = {
    "as_of": "What was played up to then: a date, month or year, which means its end, or a time, such as "
    "2024-12-31T12:00Z.",
    "known_at": "What was recorded up to then: a position of the log, a date or month, which means its end, or a time.",
    "rules": "A version, ID@VERSION, that scores all games of its ruleset.",
    "active_since": "Only who played from then on: a date, which means its start, or a time.",
    "about": "Only events about this game or player, or the one of this id.",
    "type": "Only events of this type.",
    "by": "Only what somebody recorded.",
    "a": "Coordinates, written as for `ratings diff`, such as published or now.",
    "b": "The other coordinates.",
    "ladder": "A ladder, such as elo-catan/all.",
    "player": "A player; up to six.",
    "place": "A place for each participant, in their order.",
}
REFUSALS = {
    "400": "The coordinates cannot be meant.", "404": "There is no such page, player, game, ladder or version.",
    "414": "The address is too long.", "421": "The server does not answer for this host.",
    "503": "The ledger or ladder cannot be read now, or the answer takes too long; Retry-After says when to come back.",
}  # fmt: skip
ABOUT = (
    "Every page of the ledger as JSON, and every table as CSV; without the ending of its address a page is for people. "
    "Nothing can be changed. Points are exact: fractions as strings, with a decimal beside them. Every answer has an "
    "ETag. In a folder of files the same addresses are files, which take no parameters."
)


@cache
def as_openapi() -> bytes:
    """Return the document, as it is served."""
    return (json.dumps(document(), ensure_ascii=False, indent=1) + "\n").encode()


def document() -> Shape:
    """Return the document: OpenAPI 3.1."""
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
    """Yield the kinds of results that pages answer with."""
    for route in ROUTES:
        yield get_args(route.answer)[0] if get_origin(route.answer) is list else route.answer


def _paths() -> Iterator[tuple[str, Shape]]:
    for route in ROUTES:
        for parts in range(1, LADDER_PARTS + 1 if "ladder" in route.names else 2):
            yield from _addresses(route, ["ruleset", *(f"value_{number}" for number in range(1, parts))])
    lines = {"application/jsonl": {"schema": {"type": "string"}}}
    told = "All games that are not voided, each as a line that `ratings import` takes."
    yield f"/{GAMES}", _get("games", told, [], AXES, lines, "json")
    content = {"application/json": {"schema": {"type": "object"}}}
    yield f"/{OPENAPI}", _get("openapi", "This document.", [], (), content, "json")


def _addresses(route: Route, ladder: list[str]) -> Iterator[tuple[str, Shape]]:
    """Yield the addresses of a route's pages, where a ladder's name has such parts."""
    names = [one for name in route.names for one in (ladder if name == "ladder" else [name])]
    path = route.pattern.replace("{ladder}", "/".join(f"{{{part}}}" for part in ladder))
    path = "/index" if path == "/" else path
    name = "_".join([route.make.__name__.removesuffix("_page"), *names])
    told = (getdoc(route.make) or "").partition(" Raises")[0].split("\n\n")[0].replace("\n", " ")
    shape = {"application/json": {"schema": _schema(route.answer)}}
    yield f"{path}.json", _get(f"{name}_json", told, names, route.members, shape, "json")
    if route.is_table:
        rows = {"text/csv": {"schema": {"type": "string"}}}
        yield f"{path}.csv", _get(f"{name}_csv", f"{told} The rows alone.", names, route.members, rows, "page")


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

"""Describe the pages as an OpenAPI document, generated from the routes and the types of their results.

A ladder's name is several segments of an address, but a path parameter of OpenAPI is one. So each page of a ladder is
listed once for every number of segments that a name may have.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from inspect import getdoc
from typing import Any, get_args, get_origin

from ratings_ledger.projections.queries.result_schemas import Schema, build_schemas
from ratings_ledger.projections.queries.results import Result
from ratings_ledger.web.addresses import SEGMENT_MAX
from ratings_ledger.web.games import GAMES
from ratings_ledger.web.routes import REPEATED, ROUTES, Route
from ratings_ledger.web.visits import AXES

OPENAPI = "openapi.json"
LADDER_PARTS = 5  # a ruleset, and at most four values of its partition
SEGMENT = "^([a-z0-9-]|~[0-9a-f]{2})+(~~[0-9a-f]{32})?$"
PARAMETERS = {
    "as_of": "Games played up to then: a date, month or year, which means its end, or a time, such as "
    "2024-12-31T12:00Z.",
    "known_at": "Events recorded up to then: a position of the log, a date or month, which means its end, or a time.",
    "rules": "A version, ID@VERSION, that scores all games of its ruleset.",
    "active_since": "Only players who have played since then: a date, which means its start, or a time.",
    "about": "Only events about this game or player, or the event with this id.",
    "type": "Only events of this type.",
    "by": "Only events recorded by this person.",
    "a": "The first coordinates, written as for `ratings diff`, such as published or now.",
    "b": "The second coordinates.",
    "ladder": "A ladder, such as elo-catan/all.",
    "player": "A player; up to six.",
    "place": "A place for each participant, in their order.",
}
ERRORS = {
    "400": "The coordinates or another parameter are invalid.",
    "404": "There is no such page, player, game, ladder or version.",
    "414": "The address is too long.",
    "421": "The server does not answer for this host.",
    "503": "The ledger or ladder cannot be read now, or the answer takes too long; retry after Retry-After.",
}
DESCRIPTION = (
    "Every page of the ledger as JSON, and every table as CSV; the address without an extension is the HTML page. "
    "The interface is read-only. Points are exact: fractions as strings, with a decimal beside them. Every answer has "
    "an ETag. In an exported folder, the same addresses are files, which take no parameters."
)


@cache
def render_openapi() -> bytes:
    """Return the document as it is served."""
    return (json.dumps(build_document(), ensure_ascii=False, indent=1) + "\n").encode()


def build_document() -> Schema:
    """Return the document: OpenAPI 3.1."""
    error = {
        "type": "object",
        "required": ["status", "reason"],
        "properties": {"status": {"type": "integer"}, "reason": {"type": "string"}},
    }
    json_content = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}
    html_content = {"text/html": {"schema": {"type": "string"}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Ratings ledger", "version": "1", "description": DESCRIPTION},
        "servers": [{"url": "."}],
        "paths": dict(_paths()),
        "components": {
            "parameters": {name: _parameter(name) for name in PARAMETERS},
            "responses": {
                **_error_responses("json", json_content),
                **_error_responses("page", html_content),
                "same": {"description": "The answer has the ETag that If-None-Match names."},
            },
            "schemas": {
                "Segment": {"type": "string", "maxLength": SEGMENT_MAX, "pattern": SEGMENT},
                "Refusal": {"type": "object", "required": ["error"], "properties": {"error": error}},
                **build_schemas(_result_types()),
            },
        },
    }


def _error_responses(kind: str, content: Schema) -> Schema:
    return {f"{kind}{status}": {"description": text, "content": content} for status, text in ERRORS.items()}


def _result_types() -> Iterator[type[Result]]:
    """Yield the types of the pages' results."""
    for route in ROUTES:
        yield get_args(route.answer)[0] if get_origin(route.answer) is list else route.answer


def _paths() -> Iterator[tuple[str, Schema]]:
    for route in ROUTES:
        for parts in range(1, LADDER_PARTS + 1 if "ladder" in route.segment_names else 2):
            yield from _route_paths(route, ["ruleset", *(f"value_{number}" for number in range(1, parts))])
    content = {"application/jsonl": {"schema": {"type": "string"}}}
    summary = "All games that are not voided, each as a line that `ratings import` takes."
    yield f"/{GAMES}", _operation("games", summary, [], AXES, content=content, error_kind="json")
    content = {"application/json": {"schema": {"type": "object"}}}
    yield f"/{OPENAPI}", _operation("openapi", "This document.", [], (), content=content, error_kind="json")


def _route_paths(route: Route, ladder: list[str]) -> Iterator[tuple[str, Schema]]:
    """Yield the paths of a route's pages; `ladder` names the parts of a ladder's name."""
    names = [part for name in route.segment_names for part in (ladder if name == "ladder" else [name])]
    path = route.pattern.replace("{ladder}", "/".join(f"{{{part}}}" for part in ladder))
    path = "/index" if path == "/" else path
    operation = "_".join([route.name, *names])
    summary = (getdoc(route.make) or "").partition(" Raises")[0].split("\n\n")[0].replace("\n", " ")
    content = {"application/json": {"schema": _schema(route.answer)}}
    yield (
        f"{path}.json",
        _operation(f"{operation}_json", summary, names, route.parameters, content=content, error_kind="json"),
    )
    if route.is_table:
        content = {"text/csv": {"schema": {"type": "string"}}}
        summary = f"{summary} Rows only."
        yield (
            f"{path}.csv",
            _operation(f"{operation}_csv", summary, names, route.parameters, content=content, error_kind="page"),
        )


def _schema(kind: Any) -> Schema:
    if get_origin(kind) is list:
        return {"type": "array", "items": _schema(get_args(kind)[0])}
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _operation(
    name: str, summary: str, ids: list[str], parameters: Sequence[str], *, content: Schema, error_kind: str
) -> Schema:
    segments = [
        {
            "name": segment,
            "in": "path",
            "required": True,
            "description": "An id as a segment of an address.",
            "schema": {"$ref": "#/components/schemas/Segment"},
        }
        for segment in ids
    ]
    return {
        "get": {
            "operationId": name,
            "summary": summary,
            "parameters": [*segments, *({"$ref": f"#/components/parameters/{each}"} for each in parameters)],
            "responses": {
                "200": {"description": "The answer.", "content": content},
                "304": {"$ref": "#/components/responses/same"},
                **{status: {"$ref": f"#/components/responses/{error_kind}{status}"} for status in ERRORS},
            },
        }
    }


def _parameter(name: str) -> Schema:
    value = {"type": "string"}
    return {
        "name": name,
        "in": "query",
        "required": False,
        "description": PARAMETERS[name],
        "schema": {"type": "array", "items": value} if name in REPEATED else value,
    }

"""Describe the pages as an OpenAPI document, generated from the routes and the types of their results.

A ladder's name takes up several segments of an address, but an OpenAPI path parameter matches only one. So the document
lists each page of a ladder once for every number of segments that a name can have.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from inspect import getdoc
from typing import Any, get_args, get_origin

from ratings_ledger.projections.queries.result_schemas import Schema, build_schemas
from ratings_ledger.projections.queries.results import Result
from ratings_ledger.web.addresses import SEGMENT_MAX
from ratings_ledger.web.games import GAMES_FILE
from ratings_ledger.web.routes import REPEATED, ROUTES, Route
from ratings_ledger.web.visits import AXES

OPENAPI = "openapi.json"
LADDER_PARTS = 5  # a ruleset, and at most four values of its partition
SEGMENT_PATTERN = "^([a-z0-9-]|~[0-9a-f]{2})+(~~[0-9a-f]{32})?$"
PARAMETERS = {
    "as_of": "Only games played up to this time: a date, month or year, which means its end, or an instant, such as "
    "2024-12-31T12:00Z.",
    "known_at": "Only events recorded up to this point: a position of the log, an instant, or a date or month, which "
    "means its end.",
    "rules": "A version, ID@VERSION, that scores all games of its ruleset.",
    "active_since": "Only players who have played since this time: a date, month or year, which means its start, or an "
    "instant.",
    "about": "Only events about this game or player, or withdrawals of the event with this id.",
    "type": "Only events of this type.",
    "by": "Only events recorded by this person.",
    "a": "The first coordinates, written as for `ratings diff`, such as published or now.",
    "b": "The second coordinates.",
    "ladder": "A ladder, such as elo-catan/all.",
    "player": "A player; repeat the parameter for up to six players.",
    "place": "A place; repeat the parameter for each participant, in the order of the game's participants.",
}
ERRORS = {
    "400": "The coordinates or other parameters are invalid.",
    "404": "There is no such page, player, game, ladder, version, league, list or event.",
    "414": "The address is too long.",
    "421": "The server does not answer for this host.",
    "503": "The ledger or ladder cannot be read now, or the answer takes too long; retry after the number of seconds "
    "in the Retry-After header.",
}
DESCRIPTION = (
    "Every page of the ledger as JSON, and every table as CSV; the address without an extension is the HTML page. "
    "The interface is read-only. Points are exact: fractions as strings, with a decimal beside them. Every answer has "
    "an ETag. In an exported folder, the same addresses are files, which take no parameters."
)


@cache
def render_openapi() -> bytes:
    """Return the document as JSON."""
    return (json.dumps(build_document(), ensure_ascii=False, indent=1) + "\n").encode()


def build_document() -> Schema:
    """Build the document in OpenAPI 3.1 format."""
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
        "paths": dict(_list_paths()),
        "components": {
            "parameters": {name: _describe_parameter(name) for name in PARAMETERS},
            "responses": {
                **_describe_errors("json", json_content),
                **_describe_errors("page", html_content),
                "same": {"description": "The answer has the ETag that If-None-Match names."},
            },
            "schemas": {
                "Segment": {"type": "string", "maxLength": SEGMENT_MAX, "pattern": SEGMENT_PATTERN},
                "Refusal": {"type": "object", "required": ["error"], "properties": {"error": error}},
                **build_schemas(_list_result_types()),
            },
        },
    }


def _describe_errors(prefix: str, content: Schema) -> Schema:
    return {f"{prefix}{status}": {"description": text, "content": content} for status, text in ERRORS.items()}


def _list_result_types() -> Iterator[type[Result]]:
    """Yield the result type of each route; if the result is a list, the type of its items."""
    for route in ROUTES:
        yield get_args(route.answer)[0] if get_origin(route.answer) is list else route.answer


def _list_paths() -> Iterator[tuple[str, Schema]]:
    for route in ROUTES:
        for part_count in range(1, LADDER_PARTS + 1 if "ladder" in route.segment_names else 2):
            yield from _list_route_paths(route, ["ruleset", *(f"value_{number}" for number in range(1, part_count))])
    content = {"application/jsonl": {"schema": {"type": "string"}}}
    summary = "All games that are not voided, each as a line that `ratings import` takes."
    yield f"/{GAMES_FILE}", _describe_operation("games", summary, [], AXES, content=content, error_prefix="json")
    content = {"application/json": {"schema": {"type": "object"}}}
    yield f"/{OPENAPI}", _describe_operation("openapi", "This document.", [], (), content=content, error_prefix="json")


def _list_route_paths(route: Route, ladder: list[str]) -> Iterator[tuple[str, Schema]]:
    """Yield the paths of a route's pages; `ladder` lists the path parameters that make up a ladder's name."""
    names = [part for name in route.segment_names for part in (ladder if name == "ladder" else [name])]
    path = route.pattern.replace("{ladder}", "/".join(f"{{{part}}}" for part in ladder))
    path = "/index" if path == "/" else path
    operation = "_".join([route.name, *names])
    summary = (getdoc(route.make) or "").partition(" Raises")[0].split("\n\n")[0].replace("\n", " ")
    content = {"application/json": {"schema": _reference_schema(route.answer)}}
    yield (
        f"{path}.json",
        _describe_operation(
            f"{operation}_json", summary, names, route.parameters, content=content, error_prefix="json"
        ),
    )
    if route.is_table:
        content = {"text/csv": {"schema": {"type": "string"}}}
        summary = f"{summary} Rows only."
        yield (
            f"{path}.csv",
            _describe_operation(
                f"{operation}_csv", summary, names, route.parameters, content=content, error_prefix="page"
            ),
        )


def _reference_schema(result_type: Any) -> Schema:
    if get_origin(result_type) is list:
        return {"type": "array", "items": _reference_schema(get_args(result_type)[0])}
    return {"$ref": f"#/components/schemas/{result_type.__name__}"}


def _describe_operation(
    name: str, summary: str, segment_names: list[str], parameters: Sequence[str], *, content: Schema, error_prefix: str
) -> Schema:
    segments = [
        {
            "name": segment,
            "in": "path",
            "required": True,
            "description": "An id as a segment of an address.",
            "schema": {"$ref": "#/components/schemas/Segment"},
        }
        for segment in segment_names
    ]
    return {
        "get": {
            "operationId": name,
            "summary": summary,
            "parameters": [*segments, *({"$ref": f"#/components/parameters/{parameter}"} for parameter in parameters)],
            "responses": {
                "200": {"description": "The answer.", "content": content},
                "304": {"$ref": "#/components/responses/same"},
                **{status: {"$ref": f"#/components/responses/{error_prefix}{status}"} for status in ERRORS},
            },
        }
    }


def _describe_parameter(name: str) -> Schema:
    schema = {"type": "string"}
    return {
        "name": name,
        "in": "query",
        "required": False,
        "description": PARAMETERS[name],
        "schema": {"type": "array", "items": schema} if name in REPEATED else schema,
    }

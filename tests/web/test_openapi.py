"""The OpenAPI document describes every page, every answer conforms to it, and no allowed request does harm."""

import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
from asking import Response, get, serve, write_pages
from club import HOSTILE, LADDER, create_club, run_ok
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator
from sqlalchemy import make_url, text

import ratings_ledger
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.queries.result_schemas import build_schemas
from ratings_ledger.web.addresses import encode_segment
from ratings_ledger.web.openapi import build_document
from ratings_ledger.web.routes import ROUTES

Ratings = Callable[..., Any]


def create_with_decisions(ratings: Ratings, url: str) -> None:
    """Create the club with further changes of points: an adjustment, a rename, a void, and lists of months."""
    create_club(ratings, url)
    run_ok(ratings, "adjust", LADDER, "anna", "-7", "--reason", "late", "--by", "mira", db=url)
    run_ok(ratings, "player", "rename", "美咲", "misaki", "--by", "mira", db=url)
    run_ok(ratings, "void", "g-5", "--reason", "never played", "--by", "mira", db=url)
    run_ok(ratings, "rules", "publish", "--shipped", "catan-monthly", "--by", "mira", db=url)


@pytest.fixture
def url(copy_ledger: Callable[..., str]) -> str:
    """Return the URL of the ledger, in each kind of store in turn."""
    return copy_ledger(create_with_decisions)


def build_strict_document() -> Any:
    """Return the document with `additionalProperties: false` for every object that lists its members."""

    def close_objects(part: Any) -> Any:
        if isinstance(part, list):
            return [close_objects(item) for item in part]
        if not isinstance(part, dict):
            return part
        schema = {name: close_objects(member) for name, member in part.items()}
        is_object = schema.get("type") == "object" and "properties" in schema
        return {"additionalProperties": False} | schema if is_object else schema

    return close_objects(json.loads(json.dumps(build_document())))


DOCUMENT = build_strict_document()


def find_responses(path: str) -> dict[str, Any] | None:
    """Return the documented responses of an address without its query, or None."""
    for template, item in DOCUMENT["paths"].items():
        if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/_][^/]*", re.escape(template)), path):
            responses: dict[str, Any] = item["get"]["responses"]
            return responses
    return None


def assert_conforms(path: str, response: Response) -> None:
    """Assert that the document describes the status and the content of a response."""
    responses = find_responses(path)
    assert responses is not None, path
    documented = responses[str(response.status)]
    if "$ref" in documented:
        documented = DOCUMENT["components"]["responses"][documented["$ref"].rpartition("/")[2]]
    (kind, content), *other_types = documented["content"].items()
    assert (response.headers["content-type"].partition(";")[0], other_types) == (kind, []), path
    if kind == "application/json":
        schema = {**content["schema"], "components": DOCUMENT["components"]}
        validator = Draft202012Validator(schema, validate_formats=True)
        problems = [
            f"{error.instance_path}: {error.message}" for error in validator.iter_errors(json.loads(response.text))
        ]
        assert problems == [], path


def test_every_route_is_described() -> None:
    """Every route is in the document, with every number of parts that a ladder may have."""
    documented_paths = {re.sub(r"\.(json|csv)$", "", path) for path in DOCUMENT["paths"]}
    for route in ROUTES:
        parts = ["{ruleset}", "{value_1}", "{value_2}", "{value_3}", "{value_4}"]
        for count in range(1, 6):
            expected = route.pattern.replace("{ladder}", "/".join(parts[:count]))
            assert (expected if expected != "/" else "/index") in documented_paths


def test_every_public_result_has_a_schema() -> None:
    """The schema of every result of the library is valid JSON Schema and lists the required members."""
    public = [getattr(ratings_ledger, name) for name in ratings_ledger.__all__]
    kinds = [value for value in public if isinstance(value, type) and issubclass(value, ratings_ledger.Result)]
    shapes = build_schemas([kind for kind in kinds if kind is not ratings_ledger.Result])
    assert len(shapes) > 50
    for name, shape in shapes.items():
        Draft202012Validator({**shape, "components": {"schemas": shapes}})
        assert {*shape.get("required", ())} <= {*shape.get("properties", ())}, name
    assert shapes["Standing"]["properties"]["rank"] == {"type": ["integer", "null"]}
    assert {"points", "points_decimal"} <= {*shapes["Standing"]["required"]}
    assert "gold" not in shapes["Standing"]["required"]
    # events and versions have the members of their data, too; every other result lists all its members
    assert sorted(name for name, shape in shapes.items() if "additionalProperties" in shape) == [
        "RecordedEvent",
        "RecordedGame",
        "RulesetState",
    ]
    assert shapes["Ranks"]["properties"]["every"]["enum"] == ["step", "day", "month", "year"]


@pytest.mark.slow
def test_document_is_valid_openapi() -> None:
    """The document is valid OpenAPI 3.1, and each operation has an id of its own."""
    schemathesis.openapi.from_dict(build_document()).validate()
    names = [item["get"]["operationId"] for item in build_document()["paths"].values()]
    assert len(set(names)) == len(names)


@pytest.mark.slow
def test_every_file_of_a_site_conforms(url: str, tmp_path: Path) -> None:
    """Each JSON file of a site conforms to the document, and CSV files exist exactly where it says so."""
    write_pages(url, tmp_path / "site")
    pages = serve(url)
    folders = set()
    for file in (tmp_path / "site").rglob("*.json"):
        path = "/" + file.relative_to(tmp_path / "site").as_posix()
        if file.name == "MANIFEST.json":
            continue
        response = get(pages, path)
        assert (response.status, response.body) == (200, file.read_bytes())
        assert_conforms(path, response)
        folders.add(path.split("/")[1])
        assert file.with_suffix(".csv").exists() == (find_responses(path.removesuffix(".json") + ".csv") is not None), (
            path
        )
    assert folders >= {
        "index.json",
        "ladders",
        "players",
        "games",
        "rules",
        "rules.json",
        "openapi.json",
        "lists",
        "changes",
    }


REFUSED_ADDRESSES = {
    "/ladders/elo-chess/all.json": 404, "/players/nobody.json": 404, "/games/g-99.json": 404,
    "/games.jsonl?as_of=x": 400,
    f"/ladders/{LADDER}.json?known_at=0": 400, "/rules/elo-catan/9.json": 404, "/players/nobody.csv": 404,
    "/games/" + "a" * 3_000 + ".json": 414, "/rules.json?" + "a" * 3_000: 414,
}  # fmt: skip


def test_refusals_conform(url: str) -> None:
    """Each refusal conforms to the document."""
    pages = serve(url)
    for address, status in REFUSED_ADDRESSES.items():
        response = get(pages, address)
        assert response.status == status, address
        assert_conforms(address.partition("?")[0], response)
    response = get(pages, "/rules.json", {"host": "elsewhere.example"})
    assert response.status == 421
    assert_conforms("/rules.json", response)


IDS = ["anna", "ben", "misaki", "elo-catan", "catan-monthly", "all", "g-1", "g-3", "g-5", "1", "2025-01", HOSTILE, "Ł"]
# existing values, by the name of the segment
EXISTING_VALUES = {
    "ruleset": ["elo-catan", "catan-monthly"], "ruleset_id": ["elo-catan"], "value_1": ["all"], "version": ["1"],
    "player": ["anna", "ben", "misaki"], "game_id": ["g-1", "g-3"], "position": ["3", "9"], "page": ["2"],
}  # fmt: skip
QUERY_VALUES = {
    "as_of": ["2025-01-31", "2025-02-28T12:00Z", "2024-01-01", "", "9999-12-31"],
    "known_at": ["1", "7", "12", "2025-01-31"],
    "rules": ["elo-catan@1", "catan-monthly@2008-03"],
}  # fmt: skip


def read_state(url: str) -> Any:
    """Return the content of a store: the hash of its file, or the hashes of its tables' rows."""
    if url.startswith("sqlite"):
        return sha256(Path(str(make_url(url).database)).read_bytes()).hexdigest()
    with open_ledger(url).reading() as connection:
        names = connection.scalars(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).all()
        rows = {name: f'SELECT md5(string_agg(t::text, chr(10) ORDER BY t::text)) FROM "{name}" t' for name in names}
        return {name: connection.scalar(text(query)) for name, query in rows.items()}


@pytest.mark.slow
def test_allowed_requests_do_no_harm(
    url: str, store_kind: str, at_length: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every request that fits the document is answered as documented or refused with a reason, and the store is
    unchanged.

    A short run asks fewer questions in the second store, and always the same ones.
    """
    is_short = store_kind == "postgres" and not at_length
    examples = 60 if is_short else 10_000 if at_length else 200
    pages, before = serve(url), read_state(url)
    statuses: dict[int, int] = {}
    segments = st.sampled_from([encode_segment(id_) for id_ in IDS])
    existing_values = {name: st.sampled_from(values) for name, values in EXISTING_VALUES.items()}
    query_values = {name: st.sampled_from(values) for name, values in QUERY_VALUES.items()}

    @settings(max_examples=examples, derandomize=is_short, **({"database": None} if is_short else {}))
    @given(case=schemathesis.openapi.from_dict(build_document()).as_strategy(), data=st.data())
    def request(case: Any, data: st.DataObject) -> None:
        path, query = case.path, dict(case.query or {})
        anything = data.draw(st.booleans())  # otherwise only existing values
        for name, value in case.path_parameters.items() if case.path_parameters else ():
            known = existing_values.get(name, segments)
            path = path.replace(f"{{{name}}}", data.draw(st.one_of(st.just(value), segments) if anything else known))
        if not anything:
            query = {name: data.draw(values) for name, values in query_values.items() if name in query}
        response = get(pages, path + ("?" + urlencode(query, doseq=True) if query else ""))
        statuses[response.status] = statuses.get(response.status, 0) + 1
        assert_conforms(path, response)
        assert "Traceback" not in response.text

    request()
    assert statuses.keys() <= {200, 400, 404, 414}, statuses
    assert statuses[200] > min(examples // 20, 10), statuses
    assert read_state(url) == before
    assert "Traceback" not in capfd.readouterr().err

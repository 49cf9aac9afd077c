"""The OpenAPI document: it describes every page, every answer is as it says, and nothing that it allows does harm."""

import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
from asking import TimelineEntry, get, serve, write_pages
from club import HOSTILE, LADDER, made, ok
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


def with_decisions(ratings: Ratings, url: str) -> None:
    """The club, with what changes points beside games: an adjustment, a rename, a void, and lists of months."""
    made(ratings, url)
    ok(ratings, "adjust", LADDER, "anna", "-7", "--reason", "late", "--by", "mira", db=url)
    ok(ratings, "player", "rename", "美咲", "misaki", "--by", "mira", db=url)
    ok(ratings, "void", "g-5", "--reason", "never played", "--by", "mira", db=url)
    ok(ratings, "rules", "publish", "--shipped", "catan-monthly", "--by", "mira", db=url)


@pytest.fixture
def url(copied: Callable[..., str]) -> str:
    """The ledger, in each kind of store."""
    return copied(with_decisions)


def strict() -> Any:
    """The document, in which an object has no members but those that are listed."""

    def closed(part: Any) -> Any:
        if isinstance(part, list):
            return [closed(one) for one in part]
        if not isinstance(part, dict):
            return part
        found = {name: closed(one) for name, one in part.items()}
        is_object = found.get("type") == "object" and "properties" in found
        return {"additionalProperties": False} | found if is_object else found

    return closed(json.loads(json.dumps(build_document())))


DOCUMENT = strict()


def described(path: str) -> dict[str, Any] | None:
    """What the document says of an address without its query; None if it says nothing."""
    for template, item in DOCUMENT["paths"].items():
        if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/_][^/]*", re.escape(template)), path):
            responses: dict[str, Any] = item["get"]["responses"]
            return responses
    return None


def assert_as_described(path: str, told: TimelineEntry) -> None:
    """That an answer has a status and a content of which the document says so."""
    responses = described(path)
    assert responses is not None, path
    response = responses[str(told.status)]
    if "$ref" in response:
        response = DOCUMENT["components"]["responses"][response["$ref"].rpartition("/")[2]]
    (kind, content), *others = response["content"].items()
    assert (told.headers["content-type"].partition(";")[0], others) == (kind, []), path
    if kind == "application/json":
        schema = {**content["schema"], "components": DOCUMENT["components"]}
        validator = Draft202012Validator(schema, validate_formats=True)
        problems = [f"{one.instance_path}: {one.message}" for one in validator.iter_errors(json.loads(told.text))]
        assert problems == [], path


def test_every_route_is_described() -> None:
    """Every page that has an address is in the document, with every number of parts that a ladder may have."""
    described = {re.sub(r"\.(json|csv)$", "", path) for path in DOCUMENT["paths"]}
    for route in ROUTES:
        parts = ["{ruleset}", "{value_1}", "{value_2}", "{value_3}", "{value_4}"]
        for count in range(1, 6):
            wanted = route.pattern.replace("{ladder}", "/".join(parts[:count]))
            assert (wanted if wanted != "/" else "/index") in described


def test_every_public_result_has_a_shape() -> None:
    """The shape of every result of the library is JSON Schema, and names what is always there."""
    public = [getattr(ratings_ledger, name) for name in ratings_ledger.__all__]
    kinds = [one for one in public if isinstance(one, type) and issubclass(one, ratings_ledger.Result)]
    shapes = build_schemas([one for one in kinds if one is not ratings_ledger.Result])
    assert len(shapes) > 50
    for name, shape in shapes.items():
        Draft202012Validator({**shape, "components": {"schemas": shapes}})
        assert {*shape.get("required", ())} <= {*shape.get("properties", ())}, name
    assert shapes["Standing"]["properties"]["rank"] == {"type": ["integer", "null"]}
    assert {"points", "points_decimal"} <= {*shapes["Standing"]["required"]}
    assert "gold" not in shapes["Standing"]["required"]
    # events and versions bring the members of their data along; every other result names all its members
    assert sorted(name for name, shape in shapes.items() if "additionalProperties" in shape) == [
        "RecordedEvent",
        "RecordedGame",
        "RulesetState",
    ]
    assert shapes["Ranks"]["properties"]["every"]["enum"] == ["step", "day", "month", "year"]


@pytest.mark.slow
def test_document_is_openapi() -> None:
    """The document is what OpenAPI 3.1 asks for, with an id for each operation, and is served as it is kept."""
    schemathesis.openapi.from_dict(build_document()).validate()
    names = [item["get"]["operationId"] for item in build_document()["paths"].values()]
    assert len(set(names)) == len(names)


@pytest.mark.slow
def test_every_file_is_as_described(url: str, tmp_path: Path) -> None:
    """Each JSON of a site validates, and has no other members; there is CSV where the document says so."""
    write_pages(url, tmp_path / "site")
    pages = serve(url)
    seen = set()
    for file in (tmp_path / "site").rglob("*.json"):
        path = "/" + file.relative_to(tmp_path / "site").as_posix()
        if file.name == "MANIFEST.json":
            continue
        told = get(pages, path)
        assert (told.status, told.body) == (200, file.read_bytes())
        assert_as_described(path, told)
        seen.add(path.split("/")[1])
        assert file.with_suffix(".csv").exists() == (described(path.removesuffix(".json") + ".csv") is not None), path
    assert seen >= {
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


REFUSED = {
    "/ladders/elo-chess/all.json": 404, "/players/nobody.json": 404, "/games/g-99.json": 404,
    "/games.jsonl?as_of=x": 400,
    f"/ladders/{LADDER}.json?known_at=0": 400, "/rules/elo-catan/9.json": 404, "/players/nobody.csv": 404,
    "/games/" + "a" * 3_000 + ".json": 414, "/rules.json?" + "a" * 3_000: 414,
}  # fmt: skip


def test_refusals_are_as_described(url: str) -> None:
    """What is refused validates, too, whatever it is refused for."""
    pages = serve(url)
    for address, status in REFUSED.items():
        told = get(pages, address)
        assert told.status == status, address
        assert_as_described(address.partition("?")[0], told)
    told = get(pages, "/rules.json", {"host": "elsewhere.example"})
    assert told.status == 421
    assert_as_described("/rules.json", told)


IDS = ["anna", "ben", "misaki", "elo-catan", "catan-monthly", "all", "g-1", "g-3", "g-5", "1", "2025-01", HOSTILE, "Ł"]
# by what a segment is called, what is there
THERE = {
    "ruleset": ["elo-catan", "catan-monthly"], "ruleset_id": ["elo-catan"], "value_1": ["all"], "version": ["1"],
    "player": ["anna", "ben", "misaki"], "game_id": ["g-1", "g-3"], "position": ["3", "9"], "page": ["2"],
}  # fmt: skip
WORTH_ASKING = {
    "as_of": ["2025-01-31", "2025-02-28T12:00Z", "2024-01-01", "", "9999-12-31"],
    "known_at": ["1", "7", "12", "2025-01-31"],
    "rules": ["elo-catan@1", "catan-monthly@2008-03"],
}  # fmt: skip


def state(url: str) -> Any:
    """What a store holds: the hash of its file, or the rows of its tables."""
    if url.startswith("sqlite"):
        return sha256(Path(str(make_url(url).database)).read_bytes()).hexdigest()
    with open_ledger(url).reading() as connection:
        names = connection.scalars(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).all()
        rows = {name: f'SELECT md5(string_agg(t::text, chr(10) ORDER BY t::text)) FROM "{name}" t' for name in names}
        return {name: connection.scalar(text(query)) for name, query in rows.items()}


@pytest.mark.slow
def test_nothing_that_is_allowed_does_harm(
    url: str, store_kind: str, at_length: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever fits the document is answered as it says, or refused for a reason; the store stays as it is.

    In the second store fewer questions are asked, and always the same, unless it is to be at length.
    """
    few = store_kind == "postgres" and not at_length
    examples = 60 if few else 10_000 if at_length else 200
    pages, before = serve(url), state(url)
    statuses: dict[int, int] = {}
    segments = st.sampled_from([encode_segment(one) for one in IDS])
    there = {name: st.sampled_from(values) for name, values in THERE.items()}
    worth_asking = {name: st.sampled_from(values) for name, values in WORTH_ASKING.items()}

    @settings(max_examples=examples, derandomize=few, **({"database": None} if few else {}))
    @given(case=schemathesis.openapi.from_dict(build_document()).as_strategy(), data=st.data())
    def ask(case: Any, data: st.DataObject) -> None:
        path, query = case.path, dict(case.query or {})
        anything = data.draw(st.booleans())  # or only what may be there
        for name, value in case.path_parameters.items() if case.path_parameters else ():
            known = there.get(name, segments)
            path = path.replace(f"{{{name}}}", data.draw(st.one_of(st.just(value), segments) if anything else known))
        if not anything:
            query = {name: data.draw(values) for name, values in worth_asking.items() if name in query}
        told = get(pages, path + ("?" + urlencode(query, doseq=True) if query else ""))
        statuses[told.status] = statuses.get(told.status, 0) + 1
        assert_as_described(path, told)
        assert "Traceback" not in told.text

    ask()
    assert statuses.keys() <= {200, 400, 404, 414}, statuses
    assert statuses[200] > min(examples // 20, 10), statuses
    assert state(url) == before
    assert "Traceback" not in capfd.readouterr().err

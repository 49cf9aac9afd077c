"""The server: pages at coordinates, each refusal with its reason, never a traceback, and nothing is ever changed."""

import asyncio
import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asking import Application, get, get_async, serve
from club import LADDER, LATE, create_club, run_ok
from hypothesis import given, settings
from hypothesis import strategies as st
from serving import fetch_page, run_server
from sqlalchemy import make_url
from thresholds import set_thresholds

from ratings_ledger.ledger.errors import WorkerLost
from ratings_ledger.web import server, workers
from ratings_ledger.web.routes import ROUTES
from ratings_ledger.web.server import CACHE_BYTES

Ratings = Callable[..., Any]


def test_pages_have_safe_headers(pages: Application) -> None:
    """Every response has the security policy and must be revalidated; its ETag saves sending a page twice."""
    for address in ("/", f"/ladders/{LADDER}", f"/ladders/{LADDER}.json", "/nothing"):
        response = get(pages, address)
        assert response.headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'")
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cache-control"] == "no-cache"
        if response.status == 200:
            again = get(pages, address, {"if-none-match": response.headers["etag"]})
            assert (again.status, again.body) == (304, b"")
    style = "/" + get(pages, "/").text.split('href="')[1].split('"')[0]
    assert "immutable" in get(pages, style).headers["cache-control"]
    assert get(pages, "/", method="HEAD").body == b""


def test_pages_at_coordinates(pages: Application, url: str, ratings: Ratings) -> None:
    """A page at coordinates has the standings of the command there, and is not for search engines."""
    response = get(pages, f"/ladders/{LADDER}.json?as_of=2025-01-31&known_at=6")
    expected = json.loads(
        run_ok(
            ratings, "standings", LADDER, "--as-of", "2025-01-31", "--known-at", "6", "--format", "json", db=url
        ).stdout
    )
    output = json.loads(response.text)
    assert {row["player"]: row["points"] for row in output["rows"]} == {
        row["player"]: row["points"] for row in expected["rows"]
    }
    assert (output["digest"], output["as_of"]) == (expected["digest"], expected["as_of"])
    assert response.headers["x-robots-tag"] == "noindex"


def record_go_game(ratings: Ratings, url: str) -> None:
    """Publish a ruleset for go, and record its only game, go-1."""
    run_ok(ratings, "rules", "publish", "--shipped", "elo", "--game", "go", "--by", "mira", db=url)
    game = ("--game", "go", "--game-id", "go-1", "--at", "2025-03-20T20:00Z", "anna", "ben")
    run_ok(ratings, "record", "-q", "--by", "mira", *game, db=url)


@pytest.mark.parametrize("rules", ["elo-go%401", "elo-catan%401"])
def test_rules_count_only_for_ladders_of_their_ruleset(
    pages: Application, url: str, ratings: Ratings, rules: str
) -> None:
    """With a version of one ruleset, pages about several rulesets show the other ladders with their own versions."""
    record_go_game(ratings, url)
    for address in ("/", "/players/anna", "/lists"):
        response = get(pages, f"{address}?rules={rules}")
        assert (response.status, LADDER in response.text) == (200, True), response.text


def test_game_that_does_not_count_links_to_no_ladder(pages: Application, url: str, ratings: Ratings) -> None:
    """The page of a voided game names the ladder without a link, because the ladder may have no page."""
    record_go_game(ratings, url)
    run_ok(ratings, "void", "go-1", "--reason", "not played", "--by", "mira", db=url)
    assert 'ladders/elo-catan/all"' in get(pages, "/games/g-1").text
    page = get(pages, "/games/go-1").text
    assert ("does not count on this ladder" in page, "ladders/elo-go" in page) == (True, False)


REFUSALS = {
    "/ladders/elo-chess/all": (404, "no ruleset is called"),
    "/ladders/catan-elo": (404, ""),
    "/players/nobody": (404, "not on any ladder"),
    "/players/ana/elo-catan/all": (404, "did you mean"),
    "/games/g-99": (404, "no game"),
    "/games/G-1": (404, "lower-case"),
    "/games/%2e%2e%2f": (404, "lower-case"),
    "/games/g~~" + "0" * 32: (404, "is shortened to"),
    "/rules/elo-catan/9": (404, ""),
    "/elsewhere": (404, "begin with"),
    "/games/g-1.csv": (404, "no table"),
    f"/ladders/{LADDER}?as_of=yesterday": (400, "yesterday"),
    f"/ladders/{LADDER}?known_at=99999999": (400, "the log ends at position"),
    f"/ladders/{LADDER}?colour=red": (400, "colour"),
    f"/ladders/{LADDER}?as_of=2025-01-01&as_of=2025-01-02": (400, "twice"),
    f"/ladders/{LADDER}?%ff": (400, ""),
    f"/ladders/{LADDER}?rules=elo-catan@9": (404, "not a published version"),
    "/" + "a" * 10_000: (414, "at most"),
}


@pytest.mark.parametrize("address", REFUSALS)
def test_refusals_tell_the_reason(pages: Application, address: str) -> None:
    """A request that cannot be answered has the right status and states the reason; JSON has the same status."""
    status, reason = REFUSALS[address]
    response = get(pages, address)
    assert response.status == status, response.text
    assert reason in response.text.replace("&#39;", "'").replace("&#34;", '"')
    assert "Traceback" not in response.text
    path, _, query = address.partition("?")
    if not path.endswith(".csv"):
        as_json = get(pages, f"{path}.json" + (f"?{query}" if query else ""))
        assert as_json.status == status
        if status != 414:
            assert json.loads(as_json.text)["error"]["status"] == status


def test_other_hosts_and_methods_are_refused(pages: Application) -> None:
    """A request for another host, or with a method other than GET and HEAD, is refused."""
    assert get(pages, "/", {"host": "evil.example"}).status == 421
    assert get(pages, "/", {"host": "pages.example:443"}).status == 200
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        response = get(pages, "/", method=method)
        assert (response.status, response.headers["allow"]) == (405, "GET, HEAD")


WORDS = sorted({word for route in ROUTES for word in route.pattern.split("/") if "{" not in word})
SEGMENTS = st.one_of(
    st.sampled_from([*WORDS, "elo-catan", "all", "anna", "g-1", "1", "", "..", "~", "~~"]),
    st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="?#"), max_size=20),
)
QUERIES = st.lists(
    st.tuples(
        st.sampled_from(["as_of", "known_at", "rules", "page", ""]),
        st.sampled_from(
            ["", "0", "5", "-1", "2025-01-31", "2025-13-01", "1e9", "elo-catan@1", "%", "%00", "%ff", "9" * 40]
        ),
    ),
    max_size=3,
)


@pytest.mark.slow
@settings(max_examples=200)
@given(path=st.lists(SEGMENTS, max_size=5), ending=st.sampled_from(["", ".json", ".csv", ".xml"]), query=QUERIES)
def test_no_address_breaks_the_server(
    shared_club: Application, path: list[str], ending: str, query: list[tuple[str, str]]
) -> None:
    """Whatever the address, the response is a page or a refusal, and has a body."""
    address = (
        "/" + "/".join(path) + ending + ("?" + "&".join(f"{name}={value}" for name, value in query) if query else "")
    )
    response = get(shared_club, address)
    assert response.status in (200, 400, 404, 414), (address, response.status)
    assert response.body


@pytest.fixture(scope="module")
def shared_club(original_files: Callable[..., str]) -> Application:
    """Return pages of a ledger that no test writes to."""
    return serve(original_files(create_club), "The club")


@pytest.mark.slow_cases
def test_new_events_are_followed(
    pages: Application, url: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event that is recorded while the server runs changes the pages that it concerns, and no byte of another."""
    set_thresholds(monkeypatch, head_us=0)
    before = {address: get(pages, address) for address in (f"/ladders/{LADDER}", "/games/g-2", "/")}
    run_ok(ratings, *LATE, db=url)
    assert get(pages, f"/ladders/{LADDER}").body != before[f"/ladders/{LADDER}"].body
    assert get(pages, "/games/g-2").headers["etag"] == before["/games/g-2"].headers["etag"]
    assert get(pages, "/").body != before["/"].body
    assert get(pages, "/games/g-6").status == 200


@pytest.mark.slow_cases
def test_memory_of_answers_is_bounded(pages: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many coordinates are requested, the cached responses stay below the bound."""
    set_thresholds(monkeypatch, answers_bytes=50_000)
    assert CACHE_BYTES > 50_000
    for day in range(1, 29):
        assert get(pages, f"/ladders/{LADDER}?as_of=2025-02-{day:02d}").status == 200
    assert 0 < sum(len(cached.content) for cached in pages._cache._responses.values()) <= 50_000


def test_slow_answers_are_given_up(pages: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that take too long get 503 and the time to retry; meanwhile, cached pages are sent."""
    assert get(pages, "/").status == 200
    set_thresholds(monkeypatch, answer_seconds=0.2, head_us=60_000_000)
    monkeypatch.setattr(server, "build_page_at", lambda *_: time.sleep(0.6))

    async def request_together() -> list[Any]:
        slow = [get_async(pages, f"/ladders/{LADDER}?known_at={position}") for position in range(5, 9)]
        return await asyncio.gather(*slow, get_async(pages, "/"))

    *slow, quick = asyncio.run(request_together())
    assert [answer.status for answer in slow] == [503] * 4
    assert "retry-after" in slow[0].headers
    assert quick.status == 200


def test_missing_file_is_unavailable_until_restored(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the ledger's file is missing or no database, pages give the reason; once it is back, they are shown."""
    if not url.startswith("sqlite"):
        pytest.skip("only a ledger in SQLite is a file")
    set_thresholds(monkeypatch, head_us=0)
    path = Path(str(make_url(url).database))
    pages = serve(url)
    assert get(pages, "/").status == 200
    path.rename(tmp_path / "away.db")
    response = get(pages, "/")
    assert (response.status, "retry-after" in response.headers) == (503, True)
    assert "no ledger exists at the location" in response.text
    (tmp_path / "away.db").rename(path)
    assert get(pages, "/").status == 200
    path.write_bytes(b"no database at all, and longer than a header of one" * 20)
    response = get(pages, "/")
    assert (response.status, "does not name a ledger" in response.text) == (503, True)


@pytest.mark.slow
def test_serve_listens_and_ends(url: str, tmp_path: Path) -> None:
    """`ratings serve` says where it listens, answers, and ends cleanly on SIGTERM."""
    with run_server(url, tmp_path) as (port, process):
        status, body = fetch_page(port, f"/ladders/{LADDER}")
        assert (status, b"anna" in body) == (200, True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) in (0, -signal.SIGTERM)
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_worker_names_the_limit_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that takes too long while no rule is being called ends its process, with the limit as the reason."""
    monkeypatch.setattr(workers, "UNIT_SECONDS_MAX", 1)
    worker = workers.Worker(time.sleep, seconds=60, disabled={})
    with pytest.raises(WorkerLost, match=r"^the page took more than 1 s$"):
        worker.call(60)

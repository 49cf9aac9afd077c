"""Ladders whose rule fails: their pages say so, on a server and in a folder, and all other pages are made."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asking import get, serve, share_pages
from club import LADDER
from own_rules import load_built_in_rule, substitute_rule
from test_sites import find_linked_files

Ratings = Callable[..., Any]
FAILURE = f"{LADDER}: the rule failed at position 5 (game g-3): ZeroDivisionError: of the rule"


@pytest.fixture(params=["check", "score"])
def failing_function(url: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a function of the rule fail at the game of four players, and return the function's name.

    Two of the three ladders cannot be replayed.
    """

    def fail(n: int, *arguments: Any) -> int | None:
        if n == 4:
            raise ZeroDivisionError("of the rule")
        return None if request.param == "check" else load_built_in_rule("pairwise-elo/1").score(n, *arguments)

    rule = load_built_in_rule("pairwise-elo/1")._replace(**{request.param: fail})
    substitute_rule(monkeypatch, rule)
    return str(request.param)


@pytest.mark.usefixtures("failing_function")
def test_server_says_what_fails(url: str) -> None:
    """For a ladder whose rule fails, a server answers 503 with the reason; it shows the other ladders."""
    pages = serve(url)
    response = get(pages, f"/ladders/{LADDER}.json")
    assert (response.status, response.headers["retry-after"]) == (503, "5")
    assert json.loads(response.text)["error"]["reason"].startswith(FAILURE)
    assert "<h1>Temporarily unavailable</h1>" in get(pages, f"/ladders/{LADDER}").text
    assert get(pages, "/ladders/elo-catan/2").status == 200


@pytest.mark.slow_cases
@pytest.mark.parametrize("cores", [1, 2])
def test_folder_has_all_other_pages(
    cores: int, url: str, failing_function: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder has all other pages, and a server's error for a failing ladder that is listed; the command names each.

    The same holds if other processes make the pages.
    """
    share_pages(monkeypatch, cores)
    result = ratings("site", tmp_path / "site", db=url)
    assert (result.exit_code, " files, " in result.stdout) == (1, True)
    assert [line.partition(" (game")[0] for line in result.stderr.splitlines()] == [
        f"ratings: {ladder}: the rule failed at position 5" for ladder in ("elo-catan/3-4", LADDER)
    ]
    files = {
        path.relative_to(tmp_path / "site").as_posix(): path.read_bytes()
        for path in (tmp_path / "site").rglob("*")
        if path.is_file()
    }
    pages = [name for name in files if name.startswith(f"ladders/{LADDER}")]
    if failing_function == "score":
        error = json.loads(files[f"ladders/{LADDER}.json"])["error"]
        assert (error["status"], error["reason"].startswith(FAILURE)) == (503, True)
        assert FAILURE.encode() in files[f"ladders/{LADDER}.html"]
    assert len(pages) == (2 if failing_function == "score" else 0)
    assert b"anna" in files["ladders/elo-catan/2.html"]
    assert b"as published" in files[f"lists/{LADDER}.html"]
    assert find_linked_files(files) == files.keys() - {"MANIFEST.json"}

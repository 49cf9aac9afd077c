"""The pages of leagues and clocks, on a server and in a folder: who plays, what is open, who was removed and why."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from asking import Application, get, serve
from builders import format_game_line, format_line
from club import run_ok
from test_sites import CLUB, Links, strip_server_parts, write_site

Ratings = Callable[..., Any]
PLAYERS = ["anna", "ben", "Łukasz", "<b>dora", "emil", "fay", "gus", "hana"]


def format_placed_game(game_id: str, name: str, at: str, *players: str, **members: Any) -> str:
    """Return a line with a game whose players are in the order of their places."""
    return format_game_line(game_id, *players, at=at, game=name, **members)


def format_clock_line(name: str, at: int, **members: Any) -> str:
    """Return a line with an event of the clock of the game `timed`."""
    data = {"game_id": "timed", "at": at, **members}
    return format_line({"type": f"clock.{name}", "occurred_at": "2026-01-20T20:00:00Z", "data": data})


def make_ledger(ratings: Ratings, url: str) -> None:
    """Make a league of eight with one played game, and a game in which ben ran out of time."""
    run_ok(ratings, "init", db=url)
    games = [  # enough of them to subscribe to a league
        format_placed_game(f"{number}-{evening}", "gonzaga", f"2026-01-0{evening}T20:00:00Z", player, "guest")
        for number, player in enumerate(PLAYERS)
        for evening in range(1, 6)
    ]
    heartbeats = [format_clock_line("heartbeat", at, player="ben") for at in range(30_000, 150_000, 30_000)]
    clock = [
        format_clock_line("started", 0, players=["anna", "ben"]),
        format_clock_line("offered", 5, player="ben", choice="fortune"),
        *heartbeats,
        format_clock_line("heartbeat", 130_000, player="anna"),
    ]
    timed = format_placed_game("timed", "galactic-magnate", "2026-01-20T21:00:00Z", "anna", "ben")
    result = ratings("import", "-", "--new-names", "accept", db=url, input="".join([*games, *clock, timed]))
    assert result.exit_code == 0, result
    at = ("--at", "2026-02-02T12:00Z")
    run_ok(ratings, "league", "create", "L 1", "--game", "cartagena", "--players-per-game", "3", *at, db=url)
    for player in PLAYERS:
        run_ok(ratings, "league", "join", "L 1", player, "--seed", "2026", *at, db=url)
    first = json.loads(run_ok(ratings, "league", "show", "L 1", "--format", "json", db=url).stdout)["games"][0]
    played = format_placed_game(first["game_id"], "cartagena", "2026-02-05T20:00:00Z", *first["seats"], league="L 1")
    assert ratings("import", "-", db=url, input=played).exit_code == 0


@pytest.fixture
def url(copy_ledger: Callable[..., str]) -> str:
    """Return the URL of the ledger of `make_ledger`, in each kind of store."""
    return copy_ledger(make_ledger)


@pytest.fixture
def pages(url: str) -> Application:
    """Return the pages of the ledger on a server."""
    return serve(url, **CLUB)


@pytest.mark.slow
def test_league_has_its_table_and_schedule(pages: Application, url: str, ratings: Ratings) -> None:
    """The JSON of a league's page equals the command's; the page shows which games are played and which are open."""
    expected = json.loads(run_ok(ratings, "league", "show", "L 1", "--format", "json", db=url).stdout)
    assert json.loads(get(pages, "/leagues/~4c~201.json").text) == expected
    page = get(pages, "/leagues/~4c~201").text
    assert page.count(">open<") == len(expected["games"]) - 1
    assert f">{expected['games'][0]['game_id']}</a>" in page
    assert "&lt;b&gt;dora" in page
    assert "<b>" not in page
    assert 'leagues/~4c~201"' in get(pages, "/").text
    assert get(pages, "/leagues/another").status == 404


def test_clock_says_who_was_removed_and_why(pages: Application, url: str, ratings: Ratings) -> None:
    """A clock's page has the timers at its last event, and explains only for a removed player why they were removed."""
    expected = json.loads(run_ok(ratings, "clock", "show", "timed", "--format", "json", db=url).stdout)
    assert json.loads(get(pages, "/games/timed/_clock.json").text) == expected
    assert expected["players"][1]["removed_at"] is not None
    page = get(pages, "/games/timed/_clock").text
    assert "Why <bdi>ben</bdi> was removed" in page
    assert "Why <bdi>anna</bdi>" not in page
    assert 'timed/_clock"' in get(pages, "/games/timed").text
    assert "_clock" not in get(pages, "/games/0-1").text
    assert get(pages, "/games/0-1/_clock").status == 404


@pytest.mark.slow
def test_links_lead_to_files_that_the_server_has(pages: Application, url: str, tmp_path: Path) -> None:
    """Every file of the folder is linked, every page equals the server's, and no link leads to a missing file."""
    files = write_site(url, tmp_path / "site")
    linked = {"index.html", "MANIFEST.json"}
    for name in (name for name in files if name.endswith(".html")):
        for link in Links(files[name]).links:
            target = unquote(urlsplit(urljoin(f"http://site/{name}", link)).path)[1:]
            assert link.startswith("#") or target in files, (name, link)
            linked.add(target)
        if name != "status.html":
            address = "/" + re.sub(r"(^|/)index$", "", name.removesuffix(".html"))
            assert strip_server_parts(get(pages, address).text) == strip_server_parts(files[name].decode()), name
    assert files.keys() <= linked
    assert {"leagues/~4c~201.html", "games/timed/_clock.html"} <= files.keys()

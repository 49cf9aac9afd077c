"""Let many players join a league at once: it gives away each of its seats once and draws one schedule."""

import io
import json
import os
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import pytest
from fault_helpers import fork_child, list_findings, wait_for_exits
from ledgers import run_command
from stores import make_ruled_ledger

pytestmark = pytest.mark.slow

Ratings = Callable[..., Any]
SEATS = 8


def format_finished_game(player: str, number: int) -> str:
    """Return a game that a player won against a guest, as a line of JSON."""
    participants = [{"player": player, "place": 1}, {"player": f"{player}'s guest", "place": 2}]
    data = {"game_id": f"{player}-{number}", "game": "gonzaga", "participants": participants}
    return json.dumps({"type": "game.recorded", "occurred_at": f"2026-01-{number:02d}T20:00:00Z", "data": data})


def make_league_ledger(ratings: Ratings, url: str, players: int) -> None:
    """Make a ledger with a league without players, and with this many players who may join it: p0, p1 and so on."""
    make_ruled_ledger(ratings, url)
    games = [format_finished_game(f"p{player}", number) for player in range(players) for number in range(1, 6)]
    assert ratings("import", "-", db=url, input="\n".join(games)).exit_code == 0
    create = ("league", "create", "L1", "--game", "cartagena", "--players-per-game", 4, "--at", "2026-02-01T12:00Z")
    assert ratings(*create, db=url).exit_code == 0


@pytest.fixture
def rival_count(at_length: bool) -> int:
    """Return how many players want the last seat."""
    return 20 if at_length else 8


@pytest.fixture
def url(copy_ledger: Callable[..., str], rival_count: int) -> str:
    """Return the ledger of `make_league_ledger`, in each kind of store."""
    return copy_ledger(make_league_ledger, SEATS - 1 + rival_count)


def subscribe(url: str, player: str) -> None:
    """Try to join the league, and exit this process with the exit code of the command."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        code = run_command("league", "join", "L1", player, "--at", "2026-02-02T12:00Z", db=url)
    os._exit(code)


def test_one_player_gets_the_last_seat(url: str, rival_count: int, ratings: Ratings) -> None:
    """Of many players who compete for the last seat, one gets it, and one schedule is drawn."""
    for number in range(SEATS - 1):
        assert ratings("league", "join", "L1", f"p{number}", "--at", "2026-02-02T12:00Z", db=url).exit_code == 0

    codes = wait_for_exits([fork_child(subscribe, url, f"p{SEATS - 1 + number}") for number in range(rival_count)])

    assert sorted(codes) == [0] + [1] * (rival_count - 1)
    log = json.loads(ratings("log", "--format", "json", "--limit", "0", db=url).stdout)["rows"]
    assert [row["type"] for row in log if row["type"] in ("league.joined", "league.scheduled")] == (
        ["league.joined"] * SEATS + ["league.scheduled"]
    )
    (scheduled,) = (row["data"] for row in log if row["type"] == "league.scheduled")
    seated = {player for game in scheduled["games"] for player in game["seats"]}
    assert seated == {row["data"]["player"] for row in log if row["type"] == "league.joined"}
    assert list_findings(url) == []


def test_eight_of_ten_get_a_seat(url: str, ratings: Ratings) -> None:
    """Of ten players who join a league of eight at once, eight get a seat and the games are drawn."""
    codes = wait_for_exits([fork_child(subscribe, url, f"p{number}") for number in range(10)])

    output = json.loads(ratings("league", "show", "L1", "--format", "json", db=url).stdout)
    assert (sorted(codes), len(output["players"]), len(output["games"])) == ([0] * 8 + [1] * 2, 8, 32)

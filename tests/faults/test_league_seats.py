"""Many who want the last seat of a league at once: one gets it, and one schedule is drawn."""

import io
import json
import os
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from fault_helpers import findings, fork, wait_for

from cli.main import invoke

PROCESSES = 20


def evening(player: str, number: int) -> str:
    """A game that somebody finished."""
    participants = [{"player": player, "place": 1}, {"player": f"{player}'s guest", "place": 2}]
    data = {"game_id": f"{player}-{number}", "game": "gonzaga", "participants": participants}
    return json.dumps({"type": "game.recorded", "occurred_at": f"2026-01-{number:02d}T20:00:00Z", "data": data})


def subscribe(url: str, player: str) -> None:
    """Try to get a seat; the process ends with what the command ended with."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        code = invoke(["--db", url, "league", "join", "L1", player, "--at", "2026-02-02T12:00Z"])
    os._exit(code)


def test_one_player_gets_the_last_seat(ruled_url: str, ratings: Callable[..., Any]) -> None:
    """Of twenty players who want the last seat at once, one gets it, and one schedule is drawn."""
    players = [f"p{number}" for number in range(7 + PROCESSES)]
    games = [evening(player, number) for player in players for number in range(1, 6)]
    assert ratings("import", "-", db=ruled_url, input="\n".join(games)).exit_code == 0
    create = ("league", "create", "L1", "--game", "cartagena", "--players-per-game", 4, "--at", "2026-02-01T12:00Z")
    assert ratings(*create, db=ruled_url).exit_code == 0
    for player in players[:7]:
        assert ratings("league", "join", "L1", player, "--at", "2026-02-02T12:00Z", db=ruled_url).exit_code == 0

    codes = wait_for([fork(subscribe, ruled_url, player) for player in players[7:]])

    assert sorted(codes) == [0] + [1] * (PROCESSES - 1)
    log = json.loads(ratings("log", "--format", "json", "--limit", "0", db=ruled_url).stdout)["rows"]
    assert [row["type"] for row in log if row["type"] in ("league.joined", "league.scheduled")] == (
        ["league.joined"] * 8 + ["league.scheduled"]
    )
    (scheduled,) = (row["data"] for row in log if row["type"] == "league.scheduled")
    seated = {player for game in scheduled["games"] for player in game["seats"]}
    assert seated == {row["data"]["player"] for row in log if row["type"] == "league.joined"}
    assert findings(ruled_url) == []


def test_eight_of_ten_get_a_seat(ruled_url: str, ratings: Callable[..., Any]) -> None:
    """Of ten players who join a league of eight at once, eight get a seat and the games are drawn."""
    players = [f"p{number}" for number in range(PROCESSES // 2)]
    games = [evening(player, number) for player in players for number in range(1, 6)]
    assert ratings("import", "-", db=ruled_url, input="\n".join(games)).exit_code == 0
    create = ("league", "create", "L1", "--game", "cartagena", "--players-per-game", 4, "--at", "2026-02-01T12:00Z")
    assert ratings(*create, db=ruled_url).exit_code == 0

    codes = wait_for([fork(subscribe, ruled_url, player) for player in players])

    shown = json.loads(ratings("league", "show", "L1", "--format", "json", db=ruled_url).stdout)
    assert (sorted(codes), len(shown["players"]), len(shown["games"])) == ([0] * 8 + [1] * 2, 8, 32)

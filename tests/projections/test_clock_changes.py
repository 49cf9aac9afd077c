"""Months of games where clocks go back over midnight."""

from pathlib import Path
from typing import Any

from builders import build_participants
from histories import build_ruleset_event, fill
from ledgers import create_ledger

import ratings_ledger as rl

MONTHLY = """
id = "monthly"
version = "1"
rule = "pairwise-elo/2"
effective_from = 2000-01-01
time_zone = "America/St_Johns"

[scope]
game = ["chess"]

[partition]
by = ["month"]
"""
# on 2009-11-01, 0:01 daylight time (02:31 UTC) was followed by 23:01 standard time of October 31
MIDNIGHT, IN_REPEATED_HOUR, NEXT_DAY = "2009-11-01T02:30:00Z", "2009-11-01T02:45:00Z", "2009-11-02T12:00:00Z"


def build_chess_game(game_id: str, instant: str) -> dict[str, Any]:
    """Return a game that anna wins against ben."""
    data = {"game_id": game_id, "game": "chess", "participants": build_participants("anna", "ben")}
    return {"type": "game.recorded", "occurred_at": instant, "data": data}


def test_game_in_the_repeated_hour_keeps_its_month(tmp_path: Path) -> None:
    """A game in the hour of October that is repeated after the first midnight of November is in November.

    This holds before and after a later game is recorded, in the list of ladders and where the game names its ladder.
    """
    url = create_ledger(str(tmp_path / "ratings.db"))
    fill(url, [build_ruleset_event(MONTHLY), build_chess_game("repeated", IN_REPEATED_HOUR)])
    with rl.open(url) as ledger:
        for later in ([], [build_chess_game("midnight", MIDNIGHT)], [build_chess_game("later", NEXT_DAY)]):
            fill(url, later)
            snapshot = ledger.at()
            assert [row.ladder for row in snapshot.ladders().rows] == ["monthly/2009-11"]
            assert [entry.ladder for entry in snapshot.timeline("repeated").ladders] == ["monthly/2009-11"]

"""Create a ledger for tests of web pages: a ladder for each sort of rule with state, and every cause of a change."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from club import run_ok

from tests.builders import Event, build_draft, build_event
from tests.ledgers import append_drafts
from tests.own_rules import publish_without_trial

Ratings = Callable[..., Any]
PLAYERS = ("anna", "ben", "cleo", "dora", "emil")
SYSTEMS = {"glicko": "chess", "club-elo": "football", "weng-lin": "padel"}
LADDERS = {
    "month": "glicko-month/all",
    "game": "glicko-chess/all",
    "season": "club-elo-football/all",
    "doubles": "weng-lin-padel/all",
    "championship": "cup/2024",
}
BY_MONTH = """
id = "glicko-month"
version = "1"
rule = "glicko-1/1"
effective_from = 1900-01-01
time_zone = "Europe/Berlin"
period = "month"
scope = {game = ["chess"], kind = ["placing"], players_min = 2}
partition = {by = ["players"], bands = ["all"]}
params = {start = 1500, start_deviation = 350, c = "8.1", deviation_floor = 30}
"""
CUP = """
id = "cup"
version = "1"
rule = "placement-points/2"
effective_from = 1900-01-01
time_zone = "Europe/Berlin"
scope = {game = ["dinghy"], kind = ["placing"], players_min = 2}
partition = {by = ["season"]}
params = {points = [8, 5, 3, 1], parts = [{best = 2}]}
"""


def create_systems(ratings: Ratings, url: str) -> None:
    """Create the ledger: games of four years, a seed, adjustments, corrections, a published list, and an open month."""
    run_ok(ratings, "init", "--for", "chess", "--system", "glicko", "--zone", "Europe/Berlin", "--by", "mira", db=url)
    for name, game in [*SYSTEMS.items()][1:]:
        run_ok(
            ratings,
            "rules",
            "publish",
            "--shipped",
            name,
            "--game",
            game,
            "--zone",
            "Europe/Berlin",
            "--by",
            "mira",
            db=url,
        )
    publish_without_trial(url, BY_MONTH)
    publish_without_trial(url, CUP)
    append_drafts(url, *map(build_draft, [*_list_seeds(), *_list_games(Random(7))]), by="mira")
    run_ok(ratings, "publish", LADDERS["season"], "--as-of", "2023-06-30", "--by", "mira", db=url)
    for ladder in (LADDERS["month"], LADDERS["game"], LADDERS["season"]):
        player = "rovers" if ladder == LADDERS["season"] else "anna"
        run_ok(ratings, "adjust", ladder, player, "-25", "--at", "2024-02-10T12:00:00Z", "--reason", "a late <fee>",
           "--by", "mira", db=url)  # fmt: skip
    run_ok(ratings, "correct", "chess-3", "ben", "anna", "--reason", "swapped", "--by", "mira", db=url)
    run_ok(ratings, "void", "football-5", "--reason", "a friendly", "--by", "mira", db=url)


def _list_seeds() -> Iterator[Event]:
    """Yield the seeds of one player on two ladders."""
    for ladder in (LADDERS["month"], LADDERS["game"]):
        state = {"rating": "1710.5", "deviation": "90"}
        yield build_event(
            "player.seeded", ladder=ladder, player="emil", state=state, games=12, reason="from the old list"
        )


def _list_games(random: Random) -> Iterator[Event]:
    """Yield games of chess, football matches with scores and a season, padel doubles, and the races of a cup."""
    for number in range(36):
        year, month = 2021 + number // 12, number % 12 + 1
        at = f"{year}-{month:02}-{random.randint(1, 28):02}T20:00:00Z"
        participants = [{"player": name, "place": place} for place, name in enumerate(random.sample(PLAYERS, 2), 1)]
        yield _record(f"chess-{number}", at, "chess", participants)
        home, away = random.sample(["rovers", "united", "city"], 2)
        goals = sorted((random.randint(0, 4), random.randint(0, 3)), reverse=True)
        places = (1, 1) if goals[0] == goals[1] else (1, 2)
        participants = [
            {"player": name, "place": place, "score": str(score), "home": is_home}
            for name, place, score, is_home in zip((home, away), places, goals, (True, False), strict=True)
        ]
        yield _record(f"football-{number}", at, "football", participants, season=str(year))
        four = random.sample(PLAYERS, 4)
        participants = [{"player": name, "place": 1 + n // 2, "team": 1 + n // 2} for n, name in enumerate(four)]
        yield _record(f"padel-{number}", at, "padel", participants)
    for number in range(4):
        participants = [{"player": name, "place": place} for place, name in enumerate(random.sample(PLAYERS, 5), 1)]
        yield _record(f"cup-{number}", f"2024-0{number + 1}-01T12:00:00Z", "dinghy", participants, season="2024")


def _record(game_id: str, at: str, game: str, participants: list[dict[str, Any]], **labels: str) -> Event:
    return build_event("game.recorded", at, game_id=game_id, game=game, participants=participants, **labels)

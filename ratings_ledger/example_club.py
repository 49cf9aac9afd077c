"""Build the example ledger of an invented club from the example files.

The games and standings are the same each time; the ledger's id and the times of recording and publishing are not.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.intake.files import read_items
from ratings_ledger.ledger.intake.intake import ImportPolicy
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.store.log import Log
from ratings_ledger.ledger.store.opening import IN_MEMORY, Ledger
from ratings_ledger.ledger.validation.leagues import require_league
from ratings_ledger.projections.admission.known_ladders import KnownLadders
from ratings_ledger.projections.admission.leagues import build_schedule_event
from ratings_ledger.projections.admission.new_ledgers import create_ledger, publish_source
from ratings_ledger.projections.admission.proposals import propose, propose_files
from ratings_ledger.projections.admission.publishing_lists import build_list_events
from ratings_ledger.projections.queries.leagues import LeagueGame
from ratings_ledger.projections.queries.snapshot_reader import LadderCache
from ratings_ledger.projections.snapshot import Snapshot

Append = Callable[[Iterable[dict[str, Any]]], None]
EXAMPLES = Path(__file__).parent / "examples"
ZONE, SECRETARY = "Europe/Berlin", "mira"
RULESETS, LEAGUE_RULESET = ("elo-catan", "galactic-points", "b5-league"), "youplay-league"
PUBLISHED_LADDER, END_OF_YEAR = "elo-catan/all", "2024-12-31"
LEAGUE = "spring"
LEAGUE_PLAYERS = ("Ольга", "Jürgen", "mira", "anouk", "美咲", "yusuf", "María José", "Łukasz")  # strongest first
LEAGUE_START = "2025-05-05T18:00:00Z"
FIRST_LEAGUE_DAY, LEAGUE_GAME_TIME = 6, "2025-05-{:02}T19:30:00Z"  # one game each day
LEAGUE_GAMES_PLAYED = 4
CORRECTION: dict[str, Any] = {
    "type": "game.corrected",
    "occurred_at": "2025-05-04T10:00:00Z",
    "data": {"game_id": "gm-4", "reason": "Ada and Åke were swapped"},
}
ADJUSTMENT = {
    "type": "points.adjusted",
    "occurred_at": "2025-05-02T12:00:00Z",
    "data": {"ladder": "galactic-points", "player": "Ada", "points": "25", "reason": "brought the game"},
}


def create_example() -> Ledger:
    """Return a ledger in memory with the club's season.

    Raises `NotALedger` if this build of SQLite cannot share a database in memory among connections.
    """
    ledger = create_ledger(IN_MEMORY, ZONE, RULESETS, SECRETARY)
    cache = LadderCache()
    policy = ImportPolicy(SECRETARY)

    def append(events: Iterable[dict[str, Any]]) -> None:
        propose(ledger, events, policy, KnownLadders(strict=False, load_newest=cache.load_newest)).commit()

    def import_file(name: str, options: TableOptions) -> None:
        items = read_items(str(EXAMPLES / name), options)
        propose_files(ledger, items, policy, KnownLadders(strict=False, load_newest=cache.load_newest)).commit()

    try:
        import_file("winter-league.csv", TableOptions(zone=ZONE, fixed={"game": "catan"}))
        for name in ("late-game.jsonl", "magnate-night.jsonl", "b5-season.jsonl"):
            import_file(name, TableOptions())
        _correct_game(ledger, cache, append)
        _publish_list(ledger, cache, append)
        _play_league(ledger, cache, append)
        append([ADJUSTMENT])
    except BaseException:
        ledger.close()
        raise
    return ledger


def _publish_list(ledger: Ledger, cache: LadderCache, append: Append) -> None:
    """Publish the standings as they stood at the end of the year."""
    view = Snapshot(ledger, END_OF_YEAR, cache=cache)
    with view.query(PUBLISHED_LADDER) as query:
        ladders = query.ladders
        now = clock.now()
        events = build_list_events(ladders, ladders.standings(PUBLISHED_LADDER), now, query.times)
    at = format_instant(now)
    append({"type": name, "occurred_at": at, "data": data} for name, data in events)


def _correct_game(ledger: Ledger, cache: LadderCache, append: Append) -> None:
    """Correct a game in which two players were recorded with each other's places."""
    game = Snapshot(ledger, cache=cache).games("gm-4").rows[0].data
    swapped = {"Åke": "Ada", "Ada": "Åke"}
    participants = [
        {**participant, "player": swapped.get(participant["player"], participant["player"])}
        for participant in game["participants"]
    ]
    append([{**CORRECTION, "data": {**CORRECTION["data"], "game": {**game, "participants": participants}}}])


def _play_league(ledger: Ledger, cache: LadderCache, append: Append) -> None:
    """Create a league, subscribe eight players to it and record its first games."""
    publish_source(ledger, LEAGUE_RULESET, ZONE, SECRETARY)
    data = {"league": LEAGUE, "game": "cartagena", "players_per_game": 4}
    append([{"type": "league.created", "occurred_at": LEAGUE_START, "data": data}])
    join_events = [
        {"type": "league.joined", "occurred_at": LEAGUE_START, "data": {"league": LEAGUE, "player": player}}
        for player in LEAGUE_PLAYERS
    ]
    with ledger.reading() as connection:
        league = require_league(Log(connection), LEAGUE)
        league.players += LEAGUE_PLAYERS
        schedule_event = build_schedule_event(connection, league, LEAGUE_START, LEAGUE)
    append([*join_events, schedule_event])
    games = Snapshot(ledger, cache=cache).league(LEAGUE).games[:LEAGUE_GAMES_PLAYED]
    append(_build_game_event(game, day) for day, game in enumerate(games, FIRST_LEAGUE_DAY))


def _build_game_event(game: LeagueGame, day: int) -> dict[str, Any]:
    """Return the event of a league game on a day of May, with the players placed by strength."""
    players = sorted(game.seats, key=LEAGUE_PLAYERS.index)
    data = {
        "game_id": game.game_id,
        "game": "cartagena",
        "league": LEAGUE,
        "participants": [{"player": player, "place": place} for place, player in enumerate(players, 1)],
    }
    return {"type": "game.recorded", "occurred_at": LEAGUE_GAME_TIME.format(day), "data": data}

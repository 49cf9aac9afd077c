"""The example ledger: what an invented club played, decided and corrected, made from the files of the examples.

The answers are the same each time; only the times at which events were recorded are those of the call.
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
from ratings_ledger.projections.admission.leagues import schedule_event
from ratings_ledger.projections.admission.new_ledgers import create_ledger, publish_source
from ratings_ledger.projections.admission.proposals import Known, propose, propose_files
from ratings_ledger.projections.admission.publishing_lists import publication
from ratings_ledger.projections.queries.ladders_at import LadderCache
from ratings_ledger.projections.snapshot import Snapshot

Take = Callable[[Iterable[dict[str, Any]]], None]
EXAMPLES = Path(__file__).parent / "examples"
ZONE, SECRETARY = "Europe/Berlin", "mira"
RULESETS, OF_LEAGUES = ("elo-catan", "galactic-points", "b5-league"), "youplay-league"
LADDER, END_OF_YEAR = "elo-catan/all", "2024-12-31"
# the league's players, the strongest first
LEAGUE, PLAYERS = "spring", ("Ольга", "Jürgen", "mira", "anouk", "美咲", "yusuf", "María José", "Łukasz")
LEAGUE_BEGINS, LEAGUE_PLAYED, LEAGUE_GAMES = "2025-05-05T18:00:00Z", "2025-05-{:02}T19:30:00Z", 4
CORRECTED: dict[str, Any] = {
    "type": "game.corrected",
    "occurred_at": "2025-05-04T10:00:00Z",
    "data": {"game_id": "gm-4", "reason": "Ada and Åke were swapped"},
}
ADJUSTED = {
    "type": "points.adjusted",
    "occurred_at": "2025-05-02T12:00:00Z",
    "data": {"ladder": "galactic-points", "player": "Ada", "points": "25", "reason": "brought the game"},
}


def fill_example() -> Ledger:
    """Return a ledger in memory with the club's season. Raises `NotALedger` where SQLite cannot share memory."""
    ledger = create_ledger(IN_MEMORY, ZONE, RULESETS, SECRETARY)
    cache = LadderCache()
    policy = ImportPolicy(SECRETARY)

    def take(events: Iterable[dict[str, Any]]) -> None:
        propose(ledger, events, policy, Known(False, cache.load_newest)).commit()

    def import_file(name: str, options: TableOptions) -> None:
        items = read_items(str(EXAMPLES / name), options)
        propose_files(ledger, items, policy, Known(False, cache.load_newest)).commit()

    try:
        import_file("winter-league.csv", TableOptions(zone=ZONE, fixed={"game": "catan"}))
        for name in ("late-game.jsonl", "magnate-night.jsonl", "b5-season.jsonl"):
            import_file(name, TableOptions())
        _correct(ledger, cache, take)
        _publish(ledger, cache, take)
        _play_league(ledger, cache, take)
        take([ADJUSTED])
    except BaseException:
        ledger.close()
        raise
    return ledger


def _publish(ledger: Ledger, cache: LadderCache, take: Take) -> None:
    """Publish the standings of New Year's Eve."""
    view = Snapshot(ledger, END_OF_YEAR, cache=cache)
    with view.query(LADDER) as query:
        ladders = query.ladders
        now = clock.now()
        events = publication(ladders, ladders.standings(LADDER), now, query.times)
    at = format_instant(now)
    take({"type": name, "occurred_at": at, "data": data} for name, data in events)


def _correct(ledger: Ledger, cache: LadderCache, take: Take) -> None:
    """Exchange the two players who stand at each other's place in the sheet."""
    game = Snapshot(ledger, cache=cache).games("gm-4").rows[0].data
    other = {"Åke": "Ada", "Ada": "Åke"}
    seats = [{**seat, "player": other.get(seat["player"], seat["player"])} for seat in game["participants"]]
    take([{**CORRECTED, "data": {**CORRECTED["data"], "game": {**game, "participants": seats}}}])


def _play_league(ledger: Ledger, cache: LadderCache, take: Take) -> None:
    """Let eight players subscribe to a league, and play the first of its games."""
    publish_source(ledger, OF_LEAGUES, ZONE, SECRETARY)
    data = {"league": LEAGUE, "game": "cartagena", "players_per_game": 4}
    take([{"type": "league.created", "occurred_at": LEAGUE_BEGINS, "data": data}])
    with ledger.reading() as connection:
        league = require_league(Log(connection), LEAGUE)
    joined = [
        {"type": "league.joined", "occurred_at": LEAGUE_BEGINS, "data": {"league": LEAGUE, "player": player}}
        for player in PLAYERS
    ]
    league.players += PLAYERS
    take([*joined, schedule_event(league, LEAGUE_BEGINS, LEAGUE)])
    games = Snapshot(ledger, cache=cache).league(LEAGUE).games[:LEAGUE_GAMES]
    take(
        {"type": "game.recorded", "occurred_at": LEAGUE_PLAYED.format(6 + number), "data": {
            "game_id": game.game_id, "game": "cartagena", "league": LEAGUE,
            "participants": [{"player": player, "place": place}
                             for place, player in enumerate(sorted(game.seats, key=PLAYERS.index), 1)],
        }}
        for number, game in enumerate(games)
    )  # fmt: skip

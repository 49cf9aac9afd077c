"""Questions to a long log whose columns are cached."""

from collections.abc import Iterator

from benchmarks.histories import History, game_id, player_id
from benchmarks.measuring import Call, in_turn, measure
from benchmarks.results import Bar, Line, series
from benchmarks.setting import Setting

LADDER = "bench-elo"
AS_OF = "2017-01-01"
SECONDS_MAX = 1


def questions(setting: Setting) -> Iterator[Line]:
    """Each asked in a process that has run it once before, and as a command from start to end."""
    games = setting.games(10_000_000)
    history = History(games=games)
    url = setting.sqlite.ledger(history)
    ordinary, busiest = (player_id(history.player_at(rank)) for rank in (history.players // 2, 0))
    asked = {
        f"standings as of {AS_OF}": ["standings", LADDER, "--as-of", AS_OF],
        "history of an ordinary player": ["history", ordinary, LADDER],
        "history of the busiest player": ["history", busiest, LADDER],
        "explain a game": ["explain", game_id(games * 2 // 3), LADDER],
    }
    calls = {}
    for name, arguments in asked.items():
        given = {"url": url, "arguments": [*arguments, "--format", "json"]}
        calls[f"{name}, in process"] = Call("benchmarks.ours:command", {**given, "repeated": True})
        calls[f"{name}, cold process"] = Call("benchmarks.ours:cold_command", given)
    measure(calls["explain a game, cold process"])  # after it, everything cacheable is cached
    for name, runs in in_turn(calls, setting.repetitions).items():
        bar = None if "busiest" in name else Bar("seconds", SECONDS_MAX)
        yield Line(f"{name}, {games:,} games, columns cached", series("answer", "answers", 1, runs), bar=bar)

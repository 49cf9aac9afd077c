"""`undo` after every command that records something, on a ledger with every kind of ladder.

It restores the state before the command, and undoing the undo restores the state after it. The publication of a shipped
ruleset cannot be undone; the refusal names the command that withdraws it.
"""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from correction_helpers import Ratings, build_event_line, build_game_data, read_digests, read_json
from every_ladder import create_every_ladder
from stores import make_empty_ledger, record_lines

CLUB = """game_id,occurred_at,game,1st,2nd
s-1,2010-04-01T18:00:00Z,chess,hans,ida
s-2,2010-04-01T19:00:00Z,chess,ida,hans
"""
ELO = """id = "{id}"
version = "{version}"
rule = "pairwise-elo/1"
effective_from = 1900-01-01
time_zone = "UTC"
scope = {{ game = ["{game}"] }}
{partition}
params = {{ start = 1000, k_total = 16, scale = 400 }}
"""
BY_PLAYERS = 'partition = { by = ["players"], bands = ["all", "2", "3-4", "5-6", "7-8"] }'
BY_LEAGUE = 'partition = { by = ["league"] }'
FILES = {
    "club.csv": CLUB.replace("ida,hans", "anna,hans") + "s-3,2010-04-01T20:00:00Z,chess,hans,ida\n",
    "night.csv": CLUB.replace("s-", "n-"),
    "more.csv": CLUB.replace("s-", "m-"),
    "right.csv": "game_id,occurred_at,game,1st,2nd,3rd\nchess-4,2010-03-08T12:00:00Z,chess,cleo,anna,benno\n",
    "wrong.txt": "chess-4\nmagnate-5\n",
    "points.csv": "player,points\nanna,5\ncleo,-3\n",
    "elo-2.toml": ELO.format(id="elo-chess", version="2", game="chess", partition=BY_PLAYERS),
    "shogi.toml": ELO.format(id="shogi", version="1", game="shogi", partition=""),
    "all.jsonl": "".join(
        [
            build_event_line("game.recorded", **build_game_data("a-1", "anna", "cleo", game="chess")),
            build_event_line(
                "game.corrected", game_id="a-1", reason="r", game=build_game_data("a-1", "cleo", "anna", game="chess")
            ),
            build_event_line("game.voided", game_id="chess-4", reason="r"),
            build_event_line("game.reinstated", game_id="chess-3", reason="r"),
            build_event_line("points.adjusted", ladder="galactic-points", player="cleo", points="9", reason="r"),
            build_event_line("player.renamed", player="hans", new_player="johann"),
            build_event_line("player.account_changed", player="anna", account="free"),
            build_event_line("league.created", league="winter", game="go", players_per_game=4),
            build_event_line("league.joined", league="winter", player="anna"),
        ]
    ),
    "clock.jsonl": """{"type": "clock.started", "occurred_at": "2010-03-27T20:00:00Z",
"data": {"game_id": "k-1", "at": 0, "players": ["anna", "cleo"]}}""".replace("\n", " "),
}


class UndoCase(NamedTuple):
    """A command that records something, and a query that shows it; without a query, the ladders show it."""

    command: str
    query: str = ""


COMMANDS = {
    "import": UndoCase("import night.csv"),
    "import several": UndoCase("import night.csv more.csv"),
    "import of all kinds": UndoCase("import all.jsonl", "league list"),
    "import of a clock": UndoCase("import clock.jsonl", "clock show k-1"),
    "import --sync": UndoCase("import club.csv --sync --yes"),
    "record": UndoCase("record --game chess --game-id r-1 --at 2010-04-02T20:00Z cleo anna=benno"),
    "correct": UndoCase("correct chess-4 cleo benno anna --reason r"),
    "correct --at": UndoCase("correct chess-4 --at 2010-03-21T20:00Z --reason r"),
    "correct --city": UndoCase("correct catan-4 --city 8 --reason r"),
    "correct --file": UndoCase("correct --file right.csv --reason r"),
    "void": UndoCase("void b5-4 --reason r"),
    "void --file": UndoCase("void --file wrong.txt --reason r"),
    "void --batch": UndoCase("void --batch club.csv --reason r"),
    "void --event, an adjustment": UndoCase("void --event {1} --reason r"),
    "void --event, a rename": UndoCase("void --event {2} --reason r"),
    "void --event, rules": UndoCase("void --event {0} --reason r"),
    "reinstate": UndoCase("reinstate ships-3 --reason r"),
    "adjust": UndoCase("adjust galactic-points anna 25 --reason r"),
    "adjust --to": UndoCase("adjust elo-chess/all cleo --to 1200 --reason r"),
    "adjust --file": UndoCase("adjust youplay-league/L1 --file points.csv --reason r"),
    "player rename": UndoCase("player rename cleo clara"),
    "player rename, two are one": UndoCase("player rename hans cleo"),
    "player account": UndoCase("player account anna free --at 2010-06-01T00:00Z"),
    "publish": UndoCase("publish galactic-points", "standings galactic-points --as-published"),
    "publish --as-of": UndoCase(
        "publish elo-chess/all --as-of 2010-03-10", "standings elo-chess/all --as-published --as-of 2010-03-10"
    ),
    "publish --due": UndoCase("publish --due", "standings catan-annual/7/basic/2010 --as-published"),
    "rules publish": UndoCase("rules publish elo-2.toml"),
    "rules publish, new": UndoCase("rules publish shogi.toml", "standings shogi"),
    "league create": UndoCase("league create summer --game go --players-per-game 4", "league list"),
    "league join": UndoCase("league join spring gus", "league show spring"),
    "league join, last player": UndoCase("league join autumn gus", "league show autumn"),
    "league schedule": UndoCase("league schedule drawn", "league show drawn"),
}
# a version of rules, an adjustment, and a rename, in the order of the log
EVENTS_TO_VOID = [("version", "v2"), ("ladder", "galactic-points"), ("player", "Anna G.")]
PLAYERS = ["anna", "benno", "cleo", "dora", "emil", "eve", "fay", "gus"]


def make_stocked_ledger(ratings: Ratings, url: str) -> None:
    """Make a ledger with every kind of ladder, a sheet, rules for go, seven games for an annual list of premium
    accounts, and three leagues.
    """
    create_every_ladder(ratings, url)
    files = {"club.csv": CLUB, "go.toml": ELO.format(id="go", version="1", game="go", partition=BY_LEAGUE)}
    with TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text)
        for command in (["import", Path(folder) / "club.csv"], ["rules", "publish", Path(folder) / "go.toml"]):
            assert ratings(*command, "--by", "mira", db=url).exit_code == 0
    knights = {"game": "catan", "group": "cities-knights", "city": "7"}
    lines = [
        build_event_line(
            "game.recorded", f"2010-05-{day:02d}T12:00:00Z", **build_game_data(f"ck-{day}", "anna", "cleo", **knights)
        )
        for day in range(1, 8)
    ]
    for league, players in (("spring", 3), ("autumn", 7), ("drawn", 8)):
        lines.append(build_event_line("league.created", league=league, game="go", players_per_game=4))
        lines += [build_event_line("league.joined", league=league, player=player) for player in PLAYERS[:players]]
    result = record_lines(url, "".join(lines), by="mira")
    assert not result.rejected, result.rejected


@pytest.fixture(scope="module")
def stocked_digests(original_files: Callable[..., str], ratings: Ratings) -> dict[str, str]:
    """Return the digests of all ladders of `make_stocked_ledger`."""
    return read_digests(ratings, original_files(make_stocked_ledger))


def read_state(ratings: Ratings, db: str, query: str) -> tuple[dict[str, str], Any]:
    """Return the digests of all ladders, and the output of a query."""
    return read_digests(ratings, db), read_query(ratings, db, query)


def read_query(ratings: Ratings, db: str, query: str) -> Any:
    """Return the output of a query, if there is one, without `known_at`; return its exit code if it fails."""
    if not query:
        return None
    result = ratings(*shlex.split(query), "--format", "json", db=db)
    return {**json.loads(result.stdout), "known_at": None} if result.exit_code == 0 else result.exit_code


def undo_last(ratings: Ratings, db: str) -> None:
    """Undo zora's last act, which must be possible."""
    result = ratings("undo", "--yes", "--by", "zora", db=db)
    assert result.exit_code == 0, result


@pytest.mark.slow
@pytest.mark.parametrize("case", COMMANDS.values(), ids=COMMANDS)
def test_undo_restores_what_was_before(
    case: UndoCase,
    copy_ledger: Callable[..., str],
    stocked_digests: dict[str, str],
    ratings: Ratings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After any command, `undo` restores the state before it, and undoing the undo restores the state after it."""
    db = copy_ledger(make_stocked_ledger)
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    command = case.command
    if "--event" in command:
        events = read_json(ratings, db, "log", "--limit", "0")["rows"]
        positions = [
            event["position"]
            for event in events
            if any(event["data"].get(key) == value for key, value in EVENTS_TO_VOID)
        ]
        command = command.format(*positions)
    before = stocked_digests, read_query(ratings, db, case.query)

    result = ratings(*shlex.split(command), "--by", "zora", db=db)
    assert result.exit_code == 0, result
    after = read_state(ratings, db, case.query)
    assert after != before

    undo_last(ratings, db)
    assert read_state(ratings, db, case.query) == before
    undo_last(ratings, db)
    assert read_state(ratings, db, case.query) == after


def test_shipped_rules_are_withdrawn_by_their_position(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """Publishing a shipped ruleset cannot be undone, even as the last act; the message says how to withdraw it.

    The withdrawal can be undone.
    """
    db = copy_ledger_file(make_empty_ledger)
    for command in ("init --for chess --by mira", "rules publish --shipped youplay-league --by zora"):
        assert ratings(*command.split(), db=db).exit_code == 0
    advice = "to withdraw it: ratings void --event 2 --reason TEXT"
    for position in ([], ["2"]):
        result = ratings("undo", *position, "--yes", "--by", "zora", db=db)
        assert (result.exit_code, advice in result.stderr) == (1, True)
    assert ratings("void", "--event", "2", "--reason", "r", "--by", "zora", db=db).exit_code == 0
    assert read_json(ratings, db, "rules", "show", "youplay-league")["versions"] == []
    undo_last(ratings, db)
    assert read_json(ratings, db, "rules", "show", "youplay-league")["versions"] == ["1"]

"""The command line suggests the name probably meant, takes arguments in either order, and counts hidden rows."""

import json
import re

import pytest
from correction_helpers import Ratings, append_lines, build_event_line, build_game_data, read_json

CHESS_LADDER = "elo-chess/all"


def create_club(ratings: Ratings, url: str) -> None:
    """Create a ledger for chess and Catan: games of mira, Jürgen, anouk and dora, the account of emil, and a league."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    assert ratings("rules", "publish", "--shipped", "catan-elo", db=url).exit_code == 0
    games = [("g-1", "mira", "Jürgen"), ("g-2", "Jürgen", "anouk", "mira"), ("g-3", "anouk", "dora")]
    lines = [
        build_event_line("game.recorded", f"2024-03-0{day}T12:00:00Z", **build_game_data(*game, game="chess"))
        for day, game in enumerate(games, 1)
    ]
    catan = build_game_data("c-1", "mira", "anouk", game="catan", group="basic")
    append_lines(ratings, url, *lines, build_event_line("game.recorded", "2024-03-04T12:00:00Z", **catan))
    assert ratings("player", "account", "emil", "free", db=url).exit_code == 0
    league = build_event_line("league.created", "2024-01-01T12:00:00Z", league="spring", game="b5", players_per_game=4)
    append_lines(ratings, url, league)


pytestmark = pytest.mark.ledger(make=create_club, store="sqlite")


TYPOS = {
    "a command": (["standing"], 2, "did you mean standings?"),
    "another command": (["histroy"], 2, "did you mean history?"),
    "a command of a group": (["rules", "lst"], 2, "did you mean list?"),
    "an option": (["standings", CHESS_LADDER, "--as-off", "2024"], 2, "Did you mean '--as-of'?"),
    "a ruleset": (["standings", "elo-ches/all"], 2, "did you mean elo-chess?"),
    "a ruleset shown": (["rules", "show", "elo-ches"], 2, "did you mean elo-chess?"),
    "a version": (["rules", "show", "elo-chess@2"], 2, "did you mean elo-chess@1?"),
    "a band": (["standings", "elo-chess/3-5"], 2, "did you mean 3-4?"),
    "a ladder without games": (["standings", "catan-elo/bassic"], 0, "did you mean the group basic?"),
    "a player's history": (["history", "mria", CHESS_LADDER], 1, "did you mean mira?"),
    "a player's row": (["standings", CHESS_LADDER, "--player", "jurgen"], 1, "did you mean Jürgen?"),
    "a player explained": (["explain", "Mira", CHESS_LADDER], 1, "did you mean mira?"),
    "a player's games": (["games", "--player", "anuok"], 0, "did you mean anouk?"),
    "a zone": (["zone", "Europe/Berln"], 2, "did you mean Europe/Berlin?"),
    "a game shown": (["games", "cc-1"], 0, "did you mean c-1?"),
    "a game explained": (["explain", "cc-1", CHESS_LADDER], 1, "did you mean c-1?"),
    "a game corrected": (["correct", "cc-1", "mira", "anouk", "--reason", "x"], 1, "did you mean c-1?"),
    "a game voided": (["void", "cc-1", "--reason", "x"], 1, "did you mean c-1?"),
    "a game's events": (["log", "cc-1"], 0, "did you mean c-1?"),
    "a player's events": (["log", "anuok"], 0, "did you mean anouk?"),
    "a player renamed": (["player", "rename", "anuok", "a-1", "--reason", "x"], 1, "did you mean anouk?"),
    "what is played": (["games", "--game", "chss"], 0, "did you mean chess?"),
    "a league": (["league", "show", "sprng"], 2, "did you mean spring?"),
    "a league joined": (["league", "join", "sprng", "mira"], 1, "did you mean spring?"),
    "a layout": (["import", "-", "--layout", "plces"], 2, "did you mean places?"),
    "a format": (["standings", CHESS_LADDER, "--format", "jsn"], 2, "did you mean json?"),
    "a member": (["import", "-", "--set", "gme=chess"], 2, "did you mean game?"),
    "a shipped ruleset": (["rules", "publish", "--shipped", "catan-el"], 2, "did you mean catan-elo?"),
    "a published list": (["diff", "now", "publshed"], 2, "did you mean published?"),
    "a coordinate": (["diff", "now", "knwn-at=3"], 2, "did you mean known-at?"),
}


@pytest.mark.parametrize(("command", "code", "hint"), TYPOS.values(), ids=TYPOS)
def test_typo_gets_a_suggestion(command: list[str], code: int, hint: str, db: str, ratings: Ratings) -> None:
    """A message about a mistyped name suggests the name that was probably meant."""
    result = ratings(*command, db=db)
    assert (result.exit_code, hint in result.stderr) == (code, True), result
    assert "Traceback" not in result.stderr


def test_unknown_word_gets_no_suggestion(db: str, ratings: Ratings) -> None:
    """A word that resembles no known name is refused without a suggestion."""
    for command, code in ((["xyzzy"], 2), (["standings", "xyzzy/all"], 2), (["history", "xyzzy", CHESS_LADDER], 1)):
        result = ratings(*command, db=db)
        assert (result.exit_code, "xyzzy" in result.stderr, "did you mean" in result.stderr) == (code, True, False)


ORDERS = {
    "history": ("history", "mira", CHESS_LADDER),
    "explain a game": ("explain", "g-2", CHESS_LADDER),
    "explain a player": ("explain", "mira", CHESS_LADDER),
    "explain a change": ("explain", "--change", "--from", "as-of=2024-03-01", "mira", CHESS_LADDER),
}


@pytest.mark.parametrize("command", ORDERS.values(), ids=ORDERS)
def test_arguments_work_in_either_order(command: tuple[str, ...], db: str, ratings: Ratings) -> None:
    """Commands that take a subject and a ladder accept them in either order."""
    *words, subject, ladder = command
    assert read_json(ratings, db, *words, subject, ladder) == read_json(ratings, db, *words, ladder, subject)


def test_unknown_ladder_is_named(db: str, ratings: Ratings) -> None:
    """An unknown ladder is named in the refusal, whichever argument comes first."""
    for arguments in (("mira", "elo-go/all"), ("elo-go/all", "mira")):
        result = ratings("history", *arguments, db=db)
        assert (result.exit_code, "no ruleset is called 'elo-go'" in result.stderr) == (2, True)


def test_unknown_player_is_refused(db: str, ratings: Ratings) -> None:
    """An unknown player is refused; a known player without a game on the ladder has no rows."""
    for command in (["history", "nobody"], ["explain", "nobody"], ["standings", "--player", "nobody"]):
        result = ratings(*command, CHESS_LADDER, "--format", "json", db=db)
        assert (result.exit_code, result.stdout, "player-unknown: " in result.stderr) == (1, "", True)
    for player in ("emil", "dora"):
        assert read_json(ratings, db, "history", player, "catan-elo/basic")["rows"] == []
    assert read_json(ratings, db, "standings", CHESS_LADDER, "--player", "emil")["rows"] == []
    # dora's first game is at position 5
    assert ratings("history", "dora", CHESS_LADDER, "--known-at", "4", db=db).exit_code == 1
    assert len(read_json(ratings, db, "history", "dora", CHESS_LADDER, "--known-at", "5")["rows"]) == 1


def test_standings_can_be_limited(db: str, ratings: Ratings) -> None:
    """Standings can show only the first rows, or only the rows of given players, who are found by old and new ids."""
    whole = read_json(ratings, db, "standings", CHESS_LADDER)
    assert len(whole["rows"]) == 4
    first_rows = read_json(ratings, db, "standings", CHESS_LADDER, "--limit", "2")
    assert first_rows == {**whole, "rows": whole["rows"][:2]}
    rows_of_two = read_json(ratings, db, "standings", CHESS_LADDER, "--player", "dora", "--player", "mira")
    assert rows_of_two == {**whole, "rows": [row for row in whole["rows"] if row["player"] in ("dora", "mira")]}
    assert len(ratings("standings", CHESS_LADDER, "--limit", "1", "--format", "csv", db=db).stdout.splitlines()) == 2
    assert ratings("standings", CHESS_LADDER, "--limit", "0", db=db).exit_code == 2
    ratings("publish", CHESS_LADDER, db=db)
    ratings("player", "rename", "mira", "mirabel", db=db)
    listed = read_json(ratings, db, "standings", CHESS_LADDER, "--as-published", "--player", "mirabel")
    assert ([row["player"] for row in listed["rows"]], listed["digest"]) == (["mira"], whole["digest"])
    assert [row["player"] for row in read_json(ratings, db, "standings", CHESS_LADDER, "--player", "mira")["rows"]] == [
        "mirabel"
    ]


def test_games_fit_a_terminal(db: str, ratings: Ratings) -> None:
    """`games` fits in 80 columns, and leaves out the columns `game` and `group` if they would say nothing.

    The first output has only games of chess, without a group.
    """
    lines = ratings("games", "--game", "chess", db=db).stdout.splitlines()
    assert lines[0].split() == ["position", "played", "(UTC)", "game_id", "result"]
    assert max(map(len, lines)) <= 80
    header = ratings("games", db=db).stdout.splitlines()[0]
    assert header.split() == ["position", "played", "(UTC)", "game_id", "game", "group", "result"]
    header = ratings("games", "--format", "csv", db=db).stdout.splitlines()[0]
    assert header == "position,occurred_at,game_id,game,group,result"


def test_games_show_current_ids(db: str, ratings: Ratings) -> None:
    """After a chain of renames, games show the players' current ids in every format."""
    ratings("player", "rename", "mira", "miranda", db=db)
    ratings("player", "rename", "miranda", "mirabel", db=db)
    for options in ([], ["g-2"], ["--format", "csv"], ["--format", "json"], ["g-2", "--format", "json"]):
        stdout = ratings("games", *options, db=db).stdout
        assert {*re.findall(r"\bmira\w*", stdout)} == {"mirabel"}, options
    assert len(read_json(ratings, db, "games", "--player", "mira")["rows"]) == 3


def test_shown_game_can_be_corrected(db: str, ratings: Ratings) -> None:
    """A game of a renamed player can be corrected with its JSON. Unchanged JSON is refused; edited JSON is recorded."""
    ratings("player", "rename", "mira", "mirabel", db=db)
    stdout = ratings("games", "g-2", "--format", "json", db=db).stdout
    unchanged = ratings("correct", "g-2", "--reason", "x", "--format", "json", db=db, input=stdout)
    assert [rejection["code"] for rejection in json.loads(unchanged.stdout)["rejected"]] == ["nothing-to-correct"]
    game = json.loads(stdout)["rows"][0]
    for place, participant in zip((2, 1, 3), game["participants"], strict=True):
        participant["place"] = place
    assert ratings("correct", "g-2", "--reason", "x", db=db, input=json.dumps(game)).exit_code == 0
    (event,) = read_json(ratings, db, "log", "--limit", "1")["rows"]
    places = {participant["player"]: participant["place"] for participant in event["data"]["game"]["participants"]}
    assert places == {"Jürgen": 2, "anouk": 1, "mira": 3}


def test_hidden_older_rows_are_counted(db: str, ratings: Ratings) -> None:
    """`games` and `log` say how many older rows they leave out, unless a limit was given."""
    lines = "".join(f"x-{n},2024-03-{n:02d}T12:00:00Z,chess,anna,ben\n" for n in range(1, 26))
    ratings("import", "-", db=db, input="game_id,occurred_at,game,1st,2nd\n" + lines)
    game_count = len(json.loads(ratings("games", "--limit", 0, "--format", "json", db=db).stdout)["rows"])

    assert (
        ratings("games", db=db).stderr == f"{game_count - 20:,} older entries are not shown; to show all: --limit 0\n"
    )
    assert ratings("games", "--limit", 3, db=db).stderr == ""
    assert ratings("log", db=db).stderr == ""
    ratings("import", "-", db=db, input="game_id,occurred_at,game,1st,2nd\n" + lines.replace("x-", "y-"))
    head = json.loads(ratings("status", "--format", "json", db=db).stdout)["position"]
    assert ratings("log", db=db).stderr == f"{head - 50:,} older entries are not shown; to show all: --limit 0\n"


def test_unscored_ledger_says_how_to_score(db: str, ratings: Ratings) -> None:
    """If no ruleset scores the games of a ledger, `ladders` and `standings` print the command that publishes one."""
    assert ratings("init", "--no-rules", db=db + "2").exit_code == 0
    empty_stderr = ratings("ladders", db=db + "2").stderr
    assert empty_stderr == "No ladder has a game yet; to import results: ratings import FILE\n"
    record_stderr = ratings("record", "--game", "azul", "--game-id", "a", "anna", "ben", db=db + "2").stderr
    assert "no ladder" not in record_stderr
    for command in ("ladders", "standings"):
        stderr = ratings(command, db=db + "2").stderr
        # `ladders` begins the sentence with a capital
        assert "o ruleset scores games of azul; to rate them: ratings rules publish --shipped elo --game azul" in stderr
    unknown_stderr = ratings("standings", "elo-azul", db=db + "2").stderr
    assert "to add it: ratings rules publish --shipped elo --game azul\n" in unknown_stderr
    assert ratings("rules", "publish", "--shipped", "elo", "--game", "azul", db=db + "2").exit_code == 0
    assert ratings("standings", db=db + "2").stdout.startswith("elo-azul: 1 game ")

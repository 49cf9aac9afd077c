"""`record` at a terminal asks for what is missing, shows what it would do, and records it after one key."""

import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import Ratings, event, placing, read, take_in
from terminals import CTRL_C, CTRL_D, type_answers

GAME = "game [chess]: "
KEYS = "r: record it   p: change players   g: game   t: time   i: id   q: leave "
LEFT = KEYS.removeprefix("r: record it   ")
WHEN = "when [now]: "
YES = "did you mean 'María José', 1 game? [yes, new, stop] "


def a_club(ratings: Ratings, url: str) -> None:
    """Make a ledger for chess and catan with games of mira, Jürgen, anouk and María José; the last was of chess."""
    assert ratings("init", "--for", "chess", "--for", "catan", db=url).exit_code == 0
    games = [("c-1", "catan", "mira", "anouk"), ("g-1", "chess", "Jürgen", "María José")]
    take_in(ratings, url, *(
        event("game.recorded", f"2024-03-0{n}T12:00:00Z", **placing(game_id, *players, game=game))
        for n, (game_id, game, *players) in enumerate(games, 1)
    ))  # fmt: skip


pytestmark = pytest.mark.ledger(make=a_club)


def places(*cells: str) -> list[tuple[str, str]]:
    """The players by their places, and the empty line that ends them."""
    asked, place = [], 1
    for cell in (*cells, ""):
        asked.append((f"place {place}: ", f"{cell}\r"))
        place += cell.count("=") + 1
    return asked


def recorded(ratings: Ratings, db: str) -> dict[str, Any]:
    """The data of the last event."""
    (last,) = read(ratings, db, "log", "--limit", "1")["rows"]
    return dict(last["data"])


def head_of(ratings: Ratings, db: str) -> int:
    """The last position."""
    return int(read(ratings, db, "status")["position"])


@pytest.mark.slow
def test_what_is_missing_is_asked_for(db: str, ratings: Ratings) -> None:
    """Given a game typed in at a terminal, it is recorded like one given by arguments, and shown as --dry-run does."""
    shown_before = ratings("record", "--game", "chess", "--game-id", "g-2", "mira", "Jürgen=anouk", "María José",
                           "--dry-run", db=db).stdout.split("\n", 1)[1]  # fmt: skip
    before = head_of(ratings, db)
    asked = [(GAME, "\r"), *places("mira", "Jürgen = anouk", "María José"), (WHEN, "\r"), ("]: ", "g-2\r"), (KEYS, "r")]
    code, stdout, shown = type_answers(["--db", db, "record"], asked)

    assert (code, stdout) == (0, f"1 appended; the head is {before + 1}.\n"), shown
    assert recorded(ratings, db) == placing("g-2", "mira", "Jürgen=anouk", "María José", game="chess")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.replace("\r", ""))
    assert " ".join(shown_before.split()) in " ".join(plain.split())
    assert max(map(len, plain.split("\n"))) <= 80


def test_only_what_is_missing_is_asked_for(one_db: str, ratings: Ratings) -> None:
    """What the arguments say is not asked for, and the other options are those of any other game."""
    arguments = [
        "--db",
        one_db,
        "record",
        "--game",
        "catan",
        "--at",
        "2024-05-01T12:00Z",
        "--group",
        "basic",
        "mira",
        "anouk",
    ]
    code, stdout, _ = type_answers(arguments, [("]: ", "\r"), (KEYS, "r")])

    assert (code, "1 appended" in stdout) == (0, True)
    found = recorded(ratings, one_db)
    assert (found["game"], found["group"], found["game_id"][-2:]) == ("catan", "basic", "-1")
    (last,) = read(ratings, one_db, "log", "--limit", "1")["rows"]
    assert last["occurred_at"] == "2024-05-01T12:00:00.000000Z"


@pytest.mark.slow
def test_default_id_is_free(one_db: str, ratings: Ratings) -> None:
    """The default id is the first of the day that no game has."""
    ids = []
    for _ in range(3):
        assert (
            type_answers(
                ["--db", one_db, "record", "--game", "chess", "mira", "anouk"],
                [(WHEN, "\r"), ("]: ", "\r"), (KEYS, "r")],
            )[0]
            == 0
        )
        ids.append(recorded(ratings, one_db)["game_id"])
    day = ids[0][:-2]
    assert ids == [f"{day}-1", f"{day}-2", f"{day}-3"]


MEANT = {"yes": ("yes\r", "María José"), "new": ("new\r", "maria jose")}


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "player"), MEANT.values(), ids=MEANT)
def test_close_name_is_asked_about(answer: str, player: str, one_db: str, ratings: Ratings) -> None:
    """A new name that is close to a known one is asked about, and is that one or a new player."""
    asked = [(GAME, "\r"), *places("maria jose", "mira"), (WHEN, "\r"), ("]: ", "g-2\r"), (YES, answer), (KEYS, "r")]
    code, _, shown = type_answers(["--db", one_db, "record"], asked)
    assert code == 0, shown
    assert recorded(ratings, one_db) == placing("g-2", player, "mira", game="chess")


@pytest.mark.slow
def test_close_name_of_a_partner_is_asked_about(one_db: str, ratings: Ratings) -> None:
    """A new name within a cell of partners is asked about like any other; places count all partners."""
    assert ratings("init", "--for", "padel", "--system", "weng-lin", db=one_db).exit_code == 0
    asked = [("place 1: ", "maria jose + mira\r"), ("place 3: ", "anouk +\r"), ("place 3: ", "mira + anouk\r"),
             ("place 3: ", "anouk+Jürgen\r"), ("place 5: ", "\r"), (WHEN, "\r"), ("]: ", "d-1\r"), (YES, "yes\r"),
             (KEYS, "r")]  # fmt: skip
    code, _, shown = type_answers(["--db", one_db, "record", "--game", "padel", "--partners", "+"], asked)
    assert code == 0, shown
    assert "partners by +" in shown
    assert "contains an empty name" in shown
    assert "'mira' has a place already" in shown
    sides = [(seat["player"], seat["place"], seat["team"]) for seat in recorded(ratings, one_db)["participants"]]
    assert sides == [("María José", 1, 1), ("mira", 1, 1), ("anouk", 3, 2), ("Jürgen", 3, 2)]


@pytest.mark.slow
def test_stopping_at_a_close_name_asks_for_players(one_db: str, ratings: Ratings) -> None:
    """Somebody who stops at a close name types the players again."""
    asked = [(GAME, "\r"), *places("maria jose", "mira"), (WHEN, "\r"), ("]: ", "g-2\r"), (YES, "stop\r"),
             *places("mira", "anouk"),
             (KEYS, "r")]  # fmt: skip
    assert type_answers(["--db", one_db, "record"], asked)[0] == 0
    assert recorded(ratings, one_db) == placing("g-2", "mira", "anouk", game="chess")


@pytest.mark.slow
def test_another_key_goes_back(one_db: str, ratings: Ratings) -> None:
    """Other keys change the players, the game or the id; a key without a meaning does nothing."""
    asked = [(GAME, "\r"), *places("mira", "anouk"), (WHEN, "\r"), ("]: ", "g-2\r"), (KEYS, "xp"),
             *places("anouk", "mira"),
             (KEYS, "g"), (GAME, "catan\r"), (KEYS, "i"), ("]: ", "g-3\r"), (KEYS, "r")]  # fmt: skip
    code, _, shown = type_answers(["--db", one_db, "record"], asked)
    assert code == 0, shown
    assert recorded(ratings, one_db) == placing("g-3", "anouk", "mira", game="catan")


@pytest.mark.slow
def test_refused_game_can_be_changed(one_db: str, ratings: Ratings) -> None:
    """A game whose id is taken is refused with its code, cannot be recorded, and gets another id."""
    asked = [
        (GAME, "\r"),
        *places("mira", "anouk"),
        (WHEN, "\r"),
        ("]: ", "g-1\r"),
        (LEFT, "ri"),
        ("]: ", "g-2\r"),
        (KEYS, "r"),
    ]
    code, _, shown = type_answers(["--db", one_db, "record"], asked)
    assert (code, "id-conflict: " in shown or "game-exists: " in shown) == (0, True), shown
    assert recorded(ratings, one_db)["game_id"] == "g-2"


@pytest.mark.slow
def test_mistakes_are_asked_again(one_db: str, ratings: Ratings) -> None:
    """An unknown game, a player twice, a missing name and an end too soon are asked again."""
    asked = [
        (GAME, "ches\r"), ("did you mean 'chess'? [yes, new] ", "y\r"), ("place 1: ", "\r"), ("place 1: ", "mira\r"),
        ("place 2: ", "mira\r"), ("place 2: ", "anouk=\r"), ("place 2: ", "\r"), ("place 2: ", "anouk\r"),
        ("place 3: ", "\r"), (WHEN, "\r"), ("]: ", "g-2\r"), (KEYS, "r"),
    ]  # fmt: skip
    code, _, shown = type_answers(["--db", one_db, "record"], asked)
    assert (code, shown.count("at least two players"), "has a place already" in shown) == (0, 2, True), shown
    assert recorded(ratings, one_db) == placing("g-2", "mira", "anouk", game="chess")


@pytest.mark.slow
def test_time_is_asked_for_and_checked_at_once(one_db: str, ratings: Ratings) -> None:
    """A moment is taken as tables have it, in the home zone; another, and a name that no game has, is asked again."""
    assert ratings("zone", "Europe/Berlin", db=one_db).exit_code == 0
    asked = [
        (GAME, "Chess Club\r"), (GAME, "\r"), *places("mira", "anouk"), (WHEN, "soon\r"), (WHEN, "5/6/2024\r"),
        (WHEN, "2999-01-01\r"), (WHEN, "22.11.2024 8:05 PM\r"), ("its own id [2024-11-22-1]: ", "\r"), (KEYS, "t"),
        (WHEN, "2024-11-23\r"), (KEYS, "r"),
    ]  # fmt: skip
    code, _, shown = type_answers(["--db", one_db, "record"], asked)

    assert code == 0, shown
    for told in ("'Chess Club'", "'soon'", "the day or the month first", "is in the future", "2024-11-22 20:05"):
        assert told in shown, told
    (last,) = read(ratings, one_db, "log", "--limit", "1")["rows"]
    assert (last["occurred_at"], last["data"]["game_id"]) == ("2024-11-23T11:00:00.000000Z", "2024-11-22-1")


@pytest.mark.slow
def test_leaving_records_nothing(one_db: str, ratings: Ratings) -> None:
    """The key q ends it like Ctrl-C, with exit code 1."""
    before = head_of(ratings, one_db)
    asked = [(GAME, "\r"), *places("mira", "anouk"), (WHEN, "now\r"), ("]: ", "g-2\r"), (KEYS, "q")]
    code, stdout, shown = type_answers(["--db", one_db, "record"], asked)
    assert (code, stdout, head_of(ratings, one_db)) == (1, "", before)
    assert shown.endswith("q\r\nnothing was recorded\r\n")


KEYS_NAMED = {"Ctrl-C": CTRL_C, "Ctrl-D": CTRL_D}
DIALOGUE = [(GAME, "\r"), *places("maria jose", "mira"), (WHEN, "\r"), ("]: ", "g-2\r"), (YES, "y\r"), (KEYS, "r")]


def interruptions() -> Iterator[Any]:
    """Both keys at each question, in turn with a pipe and without one; at length with both."""
    for at, (name, key), piped in product(range(len(DIALOGUE)), KEYS_NAMED.items(), (True, False)):
        marks = pytest.mark.at_length if (at + (key == CTRL_D) + piped) % 2 else ()
        yield pytest.param(at, key, piped, marks=marks, id=f"{at}-{name}-{'piped' if piped else 'on a terminal'}")


@pytest.mark.slow
@pytest.mark.parametrize(("at", "key", "piped"), [*interruptions()])
def test_ctrl_c_and_ctrl_d_record_nothing(at: int, key: str, piped: bool, one_db: str, ratings: Ratings) -> None:
    """Ctrl-C and Ctrl-D at any question end the command with a clear word, and nothing is recorded."""
    before = head_of(ratings, one_db)
    asked = [*DIALOGUE[:at], (DIALOGUE[at][0], key)]
    code, stdout, shown = type_answers(["--db", one_db, "record"], asked, piped=piped)
    assert (code, stdout, head_of(ratings, one_db)) == (130, "", before)
    assert "nothing was recorded\r\nratings: interrupted\r\n" in shown
    assert "Traceback" not in shown


def test_tabulator_key_completes(one_db: str, ratings: Ratings) -> None:
    """With all of it at a terminal, games and players are completed, tied ones and other capitals, too."""
    asked = [(GAME, "cat\t\r"), ("place 1: ", "mi\t=jür\t\r"), ("place 3: ", "mar\t\r"), ("place 4: ", "\r"),
             (WHEN, "\r"), ("]: ", "c-2\r"), (KEYS, "r")]  # fmt: skip
    code, _, shown = type_answers(["--db", one_db, "record"], asked, piped=False)
    assert code == 0, shown
    assert recorded(ratings, one_db) == placing("c-2", "mira=Jürgen", "María José", game="catan")


def test_dry_run_asks_and_records_nothing(one_db: str, ratings: Ratings) -> None:
    """With --dry-run the game is asked for and shown, and no key records it."""
    before = head_of(ratings, one_db)
    asked = [(GAME, "\r"), *places("mira", "anouk"), (WHEN, "\r"), ("]: ", "g-2\r")]
    code, stdout, _ = type_answers(["--db", one_db, "record", "--dry-run"], asked)
    assert (code, stdout.splitlines()[0]) == (0, f"1 would be appended; the head is {before}.")
    assert head_of(ratings, one_db) == before


def test_result_can_be_json(one_db: str) -> None:
    """Questions are for the terminal alone: the result on standard output is JSON, with all that it changes."""
    asked = [(GAME, "\r"), *places("mira", "anouk"), (WHEN, "\r"), ("]: ", "g-2\r"), (KEYS, "r")]
    code, stdout, _ = type_answers(["--db", one_db, "record", "--format", "json"], asked)
    told = json.loads(stdout)
    assert (code, told["appended"], {one["player"] for one in told["changes"]}) == (0, 1, {"mira", "anouk"})


MISSING = {
    "a game": (["mira", "anouk", "--game-id", "x"], "a game needs --game, such as --game catan, too"),
    "an id": (["mira", "anouk", "--game", "chess"], "a game needs --game-id, a new id such as chess-0042, too"),
    "players": (["--game", "chess"], "these options describe a game with PLAYERS"),
}


@pytest.mark.slow_cases
@pytest.mark.parametrize(("arguments", "told"), MISSING.values(), ids=MISSING)
def test_without_a_terminal_it_is_wrong_usage(
    arguments: list[str], told: str, one_db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """Without a terminal nothing is asked: what is missing is named, and the exit code is 2."""
    done = ratings("record", *arguments, db=one_db)
    assert (done.exit_code, told in done.stderr) == (2, True)


@pytest.mark.slow
def test_empty_ledger_suggests_what_is_rated(ratings: Ratings, tmp_path: Path) -> None:
    """In a ledger without games the game is the one that its ruleset rates."""
    db = str(tmp_path / "new.db")
    assert ratings("init", "--for", "go", db=db).exit_code == 0
    asked = [*places("mira", "anouk"), (WHEN, "\r"), ("]: ", "g-1\r"), (KEYS, "r")]
    assert type_answers(["--db", db, "record"], asked)[0] == 0
    assert recorded(ratings, db)["game"] == "go"


def test_scores_are_asked_again(one_db: str, ratings: Ratings) -> None:
    """Scores that contradict the places are explained, and the players are asked for again."""
    asked = [*places("ben:1", "mira:3"), *places("mira:3", "ben:1"), (KEYS, "r")]
    given = ["--game", "catan", "--game-id", "s-1", "--at", "now"]
    code, _, shown = type_answers(["--db", one_db, "record", *given], asked)
    assert (code, "has the better score; write the winner first" in shown) == (0, True), shown
    assert [(one["player"], one["score"]) for one in recorded(ratings, one_db)["participants"]] == [
        ("mira", 3),
        ("ben", 1),
    ]

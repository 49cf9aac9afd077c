"""`record` at a terminal asks for missing values, shows the effect, and records the game after one key."""

import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import Ratings, append_lines, build_event_line, build_game_data, read_json
from terminals import CTRL_C, CTRL_D, type_answers

GAME_QUESTION = "game [chess]: "
KEYS_QUESTION = "r: record it   p: change players   g: game   t: time   i: id   q: leave "
KEYS_WITHOUT_RECORD = KEYS_QUESTION.removeprefix("r: record it   ")
TIME_QUESTION = "when [now]: "
CLOSE_NAME_QUESTION = "did you mean 'María José', 1 game? [yes, new, stop] "


def create_club(ratings: Ratings, url: str) -> None:
    """Create a ledger for chess and catan with games of mira, Jürgen, anouk and María José, the last one of chess."""
    assert ratings("init", "--for", "chess", "--for", "catan", db=url).exit_code == 0
    games = [("c-1", "catan", "mira", "anouk"), ("g-1", "chess", "Jürgen", "María José")]
    append_lines(
        ratings,
        url,
        *(
            build_event_line(
                "game.recorded", f"2024-03-0{n}T12:00:00Z", **build_game_data(game_id, *players, game=game)
            )
            for n, (game_id, game, *players) in enumerate(games, 1)
        ),
    )


pytestmark = pytest.mark.ledger(make=create_club)


def type_places(*entries: str) -> list[tuple[str, str]]:
    """Return the questions and answers that type players by place, with the empty line that ends them."""
    dialogue, place = [], 1
    for entry in (*entries, ""):
        dialogue.append((f"place {place}: ", f"{entry}\r"))
        place += entry.count("=") + 1
    return dialogue


def read_last_data(ratings: Ratings, db: str) -> dict[str, Any]:
    """Return the data of the last event."""
    (last,) = read_json(ratings, db, "log", "--limit", "1")["rows"]
    return dict(last["data"])


def read_last_position(ratings: Ratings, db: str) -> int:
    """Return the last position."""
    return int(read_json(ratings, db, "status")["position"])


@pytest.mark.slow
def test_typed_game_is_recorded_and_previewed(db: str, ratings: Ratings) -> None:
    """A game typed at a terminal is recorded like one from arguments, after the preview that --dry-run prints."""
    preview = ratings(
        "record", "--game", "chess", "--game-id", "g-2", "mira", "Jürgen=anouk", "María José", "--dry-run", db=db
    ).stdout.split("\n", 1)[1]
    before = read_last_position(ratings, db)
    dialogue = [
        (GAME_QUESTION, "\r"),
        *type_places("mira", "Jürgen = anouk", "María José"),
        (TIME_QUESTION, "\r"),
        ("]: ", "g-2\r"),
        (KEYS_QUESTION, "r"),
    ]
    code, stdout, terminal_text = type_answers(["--db", db, "record"], dialogue)

    assert (code, stdout) == (0, f"1 appended; the head is {before + 1}.\n"), terminal_text
    assert read_last_data(ratings, db) == build_game_data("g-2", "mira", "Jürgen=anouk", "María José", game="chess")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", terminal_text.replace("\r", ""))
    assert " ".join(preview.split()) in " ".join(plain.split())
    assert max(map(len, plain.split("\n"))) <= 80


def test_given_arguments_are_not_asked_for(one_db: str, ratings: Ratings) -> None:
    """Values from arguments are not asked for."""
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
    code, stdout, _ = type_answers(arguments, [("]: ", "\r"), (KEYS_QUESTION, "r")])

    assert (code, "1 appended" in stdout) == (0, True)
    game = read_last_data(ratings, one_db)
    assert (game["game"], game["group"], game["game_id"][-2:]) == ("catan", "basic", "-1")
    (last,) = read_json(ratings, one_db, "log", "--limit", "1")["rows"]
    assert last["occurred_at"] == "2024-05-01T12:00:00.000000Z"


@pytest.mark.slow
def test_default_id_is_free(one_db: str, ratings: Ratings) -> None:
    """The default id is the first free id of the day."""
    ids = []
    for _ in range(3):
        assert (
            type_answers(
                ["--db", one_db, "record", "--game", "chess", "mira", "anouk"],
                [(TIME_QUESTION, "\r"), ("]: ", "\r"), (KEYS_QUESTION, "r")],
            )[0]
            == 0
        )
        ids.append(read_last_data(ratings, one_db)["game_id"])
    day = ids[0][:-2]
    assert ids == [f"{day}-1", f"{day}-2", f"{day}-3"]


CLOSE_NAME_ANSWERS = {"yes": ("yes\r", "María José"), "new": ("new\r", "maria jose")}


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "player"), CLOSE_NAME_ANSWERS.values(), ids=CLOSE_NAME_ANSWERS)
def test_close_name_is_questioned(answer: str, player: str, one_db: str, ratings: Ratings) -> None:
    """For a new name close to a known one, `record` asks whether the known player is meant, and follows the answer."""
    dialogue = [
        (GAME_QUESTION, "\r"),
        *type_places("maria jose", "mira"),
        (TIME_QUESTION, "\r"),
        ("]: ", "g-2\r"),
        (CLOSE_NAME_QUESTION, answer),
        (KEYS_QUESTION, "r"),
    ]
    code, _, terminal_text = type_answers(["--db", one_db, "record"], dialogue)
    assert code == 0, terminal_text
    assert read_last_data(ratings, one_db) == build_game_data("g-2", player, "mira", game="chess")


@pytest.mark.slow
def test_close_name_of_a_partner_is_questioned(one_db: str, ratings: Ratings) -> None:
    """A close name among partners is questioned like any other; places count all partners."""
    assert ratings("init", "--for", "padel", "--system", "weng-lin", db=one_db).exit_code == 0
    dialogue = [
        ("place 1: ", "maria jose + mira\r"),
        ("place 3: ", "anouk +\r"),
        ("place 3: ", "mira + anouk\r"),
        ("place 3: ", "anouk+Jürgen\r"),
        ("place 5: ", "\r"),
        (TIME_QUESTION, "\r"),
        ("]: ", "d-1\r"),
        (CLOSE_NAME_QUESTION, "yes\r"),
        (KEYS_QUESTION, "r"),
    ]
    code, _, terminal_text = type_answers(["--db", one_db, "record", "--game", "padel", "--partners", "+"], dialogue)
    assert code == 0, terminal_text
    assert "partners with +" in terminal_text
    assert "contains an empty name" in terminal_text
    assert "'mira' already has a place" in terminal_text
    participants = read_last_data(ratings, one_db)["participants"]
    assert [(participant["player"], participant["place"], participant["team"]) for participant in participants] == [
        ("María José", 1, 1),
        ("mira", 1, 1),
        ("anouk", 3, 2),
        ("Jürgen", 3, 2),
    ]


@pytest.mark.slow
def test_stopping_at_a_close_name_asks_for_players(one_db: str, ratings: Ratings) -> None:
    """After `stop` at a close name, the players are asked for again."""
    dialogue = [
        (GAME_QUESTION, "\r"),
        *type_places("maria jose", "mira"),
        (TIME_QUESTION, "\r"),
        ("]: ", "g-2\r"),
        (CLOSE_NAME_QUESTION, "stop\r"),
        *type_places("mira", "anouk"),
        (KEYS_QUESTION, "r"),
    ]
    assert type_answers(["--db", one_db, "record"], dialogue)[0] == 0
    assert read_last_data(ratings, one_db) == build_game_data("g-2", "mira", "anouk", game="chess")


@pytest.mark.slow
def test_keys_change_players_game_and_id(one_db: str, ratings: Ratings) -> None:
    """Keys change the players, the game or the id; a key without a meaning does nothing."""
    dialogue = [
        (GAME_QUESTION, "\r"),
        *type_places("mira", "anouk"),
        (TIME_QUESTION, "\r"),
        ("]: ", "g-2\r"),
        (KEYS_QUESTION, "xp"),
        *type_places("anouk", "mira"),
        (KEYS_QUESTION, "g"),
        (GAME_QUESTION, "catan\r"),
        (KEYS_QUESTION, "i"),
        ("]: ", "g-3\r"),
        (KEYS_QUESTION, "r"),
    ]
    code, _, terminal_text = type_answers(["--db", one_db, "record"], dialogue)
    assert code == 0, terminal_text
    assert read_last_data(ratings, one_db) == build_game_data("g-3", "anouk", "mira", game="catan")


@pytest.mark.slow
def test_refused_game_can_be_changed(one_db: str, ratings: Ratings) -> None:
    """A game whose id is taken is refused with a code, cannot be recorded, and can be given another id."""
    dialogue = [
        (GAME_QUESTION, "\r"),
        *type_places("mira", "anouk"),
        (TIME_QUESTION, "\r"),
        ("]: ", "g-1\r"),
        (KEYS_WITHOUT_RECORD, "ri"),
        ("]: ", "g-2\r"),
        (KEYS_QUESTION, "r"),
    ]
    code, _, terminal_text = type_answers(["--db", one_db, "record"], dialogue)
    assert (code, "id-conflict: " in terminal_text) == (0, True), terminal_text
    assert read_last_data(ratings, one_db)["game_id"] == "g-2"


@pytest.mark.slow
def test_questions_are_repeated_after_invalid_answers(one_db: str, ratings: Ratings) -> None:
    """After an unknown game, a repeated player, a missing name or an early end, the question is asked again."""
    dialogue = [
        (GAME_QUESTION, "ches\r"),
        ("did you mean 'chess'? [yes, new] ", "y\r"),
        ("place 1: ", "\r"),
        ("place 1: ", "mira\r"),
        ("place 2: ", "mira\r"),
        ("place 2: ", "anouk=\r"),
        ("place 2: ", "\r"),
        ("place 2: ", "anouk\r"),
        ("place 3: ", "\r"),
        (TIME_QUESTION, "\r"),
        ("]: ", "g-2\r"),
        (KEYS_QUESTION, "r"),
    ]
    code, _, terminal_text = type_answers(["--db", one_db, "record"], dialogue)
    assert (code, terminal_text.count("at least two players"), "already has a place" in terminal_text) == (
        0,
        2,
        True,
    ), terminal_text
    assert read_last_data(ratings, one_db) == build_game_data("g-2", "mira", "anouk", game="chess")


@pytest.mark.slow
def test_time_is_checked_when_typed(one_db: str, ratings: Ratings) -> None:
    """A time is read in the home zone and in the formats of tables; an invalid time or game repeats the question."""
    assert ratings("zone", "Europe/Berlin", db=one_db).exit_code == 0
    dialogue = [
        (GAME_QUESTION, "Chess Club\r"),
        (GAME_QUESTION, "\r"),
        *type_places("mira", "anouk"),
        (TIME_QUESTION, "soon\r"),
        (TIME_QUESTION, "5/6/2024\r"),
        (TIME_QUESTION, "2999-01-01\r"),
        (TIME_QUESTION, "22.11.2024 8:05 PM\r"),
        ("game id [2024-11-22-1]: ", "\r"),
        (KEYS_QUESTION, "t"),
        (TIME_QUESTION, "2024-11-23\r"),
        (KEYS_QUESTION, "r"),
    ]
    code, _, terminal_text = type_answers(["--db", one_db, "record"], dialogue)

    assert code == 0, terminal_text
    for message in ("'Chess Club'", "'soon'", "the order of day and month", "is in the future", "2024-11-22 20:05"):
        assert message in terminal_text, message
    (last,) = read_json(ratings, one_db, "log", "--limit", "1")["rows"]
    assert (last["occurred_at"], last["data"]["game_id"]) == ("2024-11-23T11:00:00.000000Z", "2024-11-22-1")


@pytest.mark.slow
def test_quitting_records_nothing(one_db: str, ratings: Ratings) -> None:
    """The key q ends the command with exit code 1 and records nothing."""
    before = read_last_position(ratings, one_db)
    dialogue = [
        (GAME_QUESTION, "\r"),
        *type_places("mira", "anouk"),
        (TIME_QUESTION, "now\r"),
        ("]: ", "g-2\r"),
        (KEYS_QUESTION, "q"),
    ]
    code, stdout, terminal_text = type_answers(["--db", one_db, "record"], dialogue)
    assert (code, stdout, read_last_position(ratings, one_db)) == (1, "", before)
    assert terminal_text.endswith("q\r\nnothing was recorded\r\n")


INTERRUPT_KEYS = {"Ctrl-C": CTRL_C, "Ctrl-D": CTRL_D}
DIALOGUE = [
    (GAME_QUESTION, "\r"),
    *type_places("maria jose", "mira"),
    (TIME_QUESTION, "\r"),
    ("]: ", "g-2\r"),
    (CLOSE_NAME_QUESTION, "y\r"),
    (KEYS_QUESTION, "r"),
]


def list_interruptions() -> Iterator[Any]:
    """Yield both keys at each question, with and without a pipe; half of the cases run only at length."""
    for at, (name, key), piped in product(range(len(DIALOGUE)), INTERRUPT_KEYS.items(), (True, False)):
        marks = pytest.mark.at_length if (at + (key == CTRL_D) + piped) % 2 else ()
        yield pytest.param(at, key, piped, marks=marks, id=f"{at}-{name}-{'piped' if piped else 'on a terminal'}")


@pytest.mark.slow
@pytest.mark.parametrize(("at", "key", "piped"), [*list_interruptions()])
def test_ctrl_c_and_ctrl_d_record_nothing(at: int, key: str, piped: bool, one_db: str, ratings: Ratings) -> None:
    """Ctrl-C and Ctrl-D at any question end the command with a clear message and record nothing."""
    before = read_last_position(ratings, one_db)
    dialogue = [*DIALOGUE[:at], (DIALOGUE[at][0], key)]
    code, stdout, terminal_text = type_answers(["--db", one_db, "record"], dialogue, piped=piped)
    assert (code, stdout, read_last_position(ratings, one_db)) == (130, "", before)
    assert "nothing was recorded\r\nratings: interrupted\r\n" in terminal_text
    assert "Traceback" not in terminal_text


def test_tab_completes_games_and_players(one_db: str, ratings: Ratings) -> None:
    """Tab completes games and players, including tied players, and ignores case."""
    dialogue = [
        (GAME_QUESTION, "cat\t\r"),
        ("place 1: ", "mi\t=jür\t\r"),
        ("place 3: ", "mar\t\r"),
        ("place 4: ", "\r"),
        (TIME_QUESTION, "\r"),
        ("]: ", "c-2\r"),
        (KEYS_QUESTION, "r"),
    ]
    code, _, terminal_text = type_answers(["--db", one_db, "record"], dialogue, piped=False)
    assert code == 0, terminal_text
    assert read_last_data(ratings, one_db) == build_game_data("c-2", "mira=Jürgen", "María José", game="catan")


def test_dry_run_asks_and_records_nothing(one_db: str, ratings: Ratings) -> None:
    """With --dry-run the game is asked for and shown, and nothing is recorded."""
    before = read_last_position(ratings, one_db)
    dialogue = [(GAME_QUESTION, "\r"), *type_places("mira", "anouk"), (TIME_QUESTION, "\r"), ("]: ", "g-2\r")]
    code, stdout, _ = type_answers(["--db", one_db, "record", "--dry-run"], dialogue)
    assert (code, stdout.splitlines()[0]) == (0, f"1 would be appended; the head is {before}.")
    assert read_last_position(ratings, one_db) == before


def test_result_of_questions_can_be_json(one_db: str) -> None:
    """With --format json the questions go to the terminal, and standard output has only JSON."""
    dialogue = [
        (GAME_QUESTION, "\r"),
        *type_places("mira", "anouk"),
        (TIME_QUESTION, "\r"),
        ("]: ", "g-2\r"),
        (KEYS_QUESTION, "r"),
    ]
    code, stdout, _ = type_answers(["--db", one_db, "record", "--format", "json"], dialogue)
    output = json.loads(stdout)
    assert (code, output["appended"], {change["player"] for change in output["changes"]}) == (0, 1, {"mira", "anouk"})


MISSING_VALUES = {
    "a game": (
        ["mira", "anouk", "--game-id", "x"],
        "--game is missing; add the name of the game, such as --game catan",
    ),
    "an id": (["mira", "anouk", "--game", "chess"], "--game-id is missing; add a new id, such as --game-id chess-0042"),
    "an id for a game with a space in its name": (
        ["mira", "anouk", "--game", "blitz chess"],
        "--game-id is missing; add a new id, such as --game-id 'blitz chess-0042'",
    ),
    "players": (["--game", "chess"], "options such as --game need PLAYERS"),
}


@pytest.mark.slow_cases
@pytest.mark.parametrize(("arguments", "message"), MISSING_VALUES.values(), ids=MISSING_VALUES)
def test_missing_values_without_terminal_are_usage_errors(
    arguments: list[str], message: str, one_db: str, ratings: Ratings
) -> None:
    """Without a terminal, missing values are named and the exit code is 2."""
    result = ratings("record", *arguments, db=one_db)
    assert (result.exit_code, message in result.stderr) == (2, True)


@pytest.mark.slow
def test_only_rated_game_needs_no_question(ratings: Ratings, tmp_path: Path) -> None:
    """In a ledger without games, the only game that a ruleset rates is recorded without a question about it."""
    db = str(tmp_path / "new.db")
    assert ratings("init", "--for", "go", db=db).exit_code == 0
    dialogue = [*type_places("mira", "anouk"), (TIME_QUESTION, "\r"), ("]: ", "g-1\r"), (KEYS_QUESTION, "r")]
    assert type_answers(["--db", db, "record"], dialogue)[0] == 0
    assert read_last_data(ratings, db)["game"] == "go"


def test_players_are_asked_for_again_after_contradicting_scores(one_db: str, ratings: Ratings) -> None:
    """Scores that contradict the places are explained, and the players are asked for again."""
    dialogue = [*type_places("ben:1", "mira:3"), *type_places("mira:3", "ben:1"), (KEYS_QUESTION, "r")]
    options = ["--game", "catan", "--game-id", "s-1", "--at", "now"]
    code, _, terminal_text = type_answers(["--db", one_db, "record", *options], dialogue)
    assert (code, "has the better score; write the better one" in terminal_text) == (0, True), terminal_text
    assert [
        (participant["player"], participant["score"]) for participant in read_last_data(ratings, one_db)["participants"]
    ] == [
        ("mira", 3),
        ("ben", 1),
    ]

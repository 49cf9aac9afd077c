"""`correct`, `void` and `reinstate`: every form of a corrected game, and everything that depends on it."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import (
    BASIC,
    GALACTIC,
    NOON,
    REASON_OPTION,
    Ratings,
    append_lines,
    build_catan_line,
    build_event_line,
    build_galactic_line,
    build_game_data,
    create_ledger,
    create_small_ledger,
    get_refusal_code,
    read_head,
    read_json,
    read_points,
    run_correction,
    run_json_command,
)

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.revisions import KnownEvent, RevisedGame
from ratings_ledger.ledger.intake.corrections import add_scores
from ratings_ledger.ledger.intake.parsing import CellSyntax
from ratings_ledger.ledger.validation.identities import Identities

pytestmark = pytest.mark.ledger(make=create_small_ledger, store="sqlite")


def read_game_row(ratings: Ratings, db: str, game_id: str) -> dict[str, Any]:
    """Return a game's row of `games`."""
    (game_row,) = [row for row in read_json(ratings, db, "games", "--limit", "0")["rows"] if row["game_id"] == game_id]
    return dict(game_row)


def write_editor(tmp_path: Path, body: str) -> str:
    """Write an editor that runs lines of Python over the `text` of a file, and return its command."""
    script = tmp_path / "editor.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\npath = Path(sys.argv[1])\n"
        f"text = path.read_text(encoding='utf-8')\n{body}\npath.write_text(text, encoding='utf-8')\n"
    )
    return shlex.join([sys.executable, str(script)])


def test_correction_updates_dependent_points(db: str, ratings: Ratings) -> None:
    """Correcting a game updates all that depends on it, and the first record stays in the log."""
    report = run_correction(ratings, db, "correct", "g-1", "ben", "anna", "cleo", *REASON_OPTION)

    # g-2 is scored again, too: ben takes 16 % of anna's new points
    assert report["changes"] == {
        (GALACTIC, "anna"): ("1034", "-219", "815"),
        (GALACTIC, "ben"): ("1166", "219", "1385"),
    }
    first, second = read_json(ratings, db, "log", "g-1")["rows"]
    assert (first["position"], first["type"], first["data"]) == (
        3,
        "game.recorded",
        build_game_data("g-1", "anna", "ben", "cleo"),
    )
    assert (second["position"], second["type"], second["id"], second["supersedes"]) == (
        6,
        "game.corrected",
        report["event_id"],
        "game:g-1",
    )
    assert second["data"] == {
        "game_id": "g-1",
        "reason": "wrong way round",
        "game": build_game_data("g-1", "ben", "anna", "cleo"),
    }
    assert ratings("verify", db=db) == (0, "", "")


FORMS = {
    "players": lambda row: (["ben=cleo", "anna", "--group", "night"], None),
    "the data of a game": lambda row: ([], {**extract_data(row), **CORRECTED_MEMBERS}),
    "the row of the list of games": lambda row: ([], {**row, **CORRECTED_MEMBERS}),
    "the list of this one game": lambda row: ([], {"rows": [{**row, **CORRECTED_MEMBERS}]}),
    "a whole event": lambda row: (
        [],
        {
            "type": "game.recorded",
            "id": "game:g-1",
            "occurred_at": NOON,
            "data": {**extract_data(row), **CORRECTED_MEMBERS},
        },
    ),
}
CORRECTED_MEMBERS = {"group": "night", "participants": build_game_data("g-1", "ben=cleo", "anna")["participants"]}


def extract_data(row: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a row that are the game's data."""
    return {name: value for name, value in row.items() if name not in ("position", "occurred_at", "voided")}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_correction_records_the_same_game(form: str, db: str, ratings: Ratings) -> None:
    """The corrected game can be given in several forms; each records the same game."""
    before = read_game_row(ratings, db, "g-1")
    arguments, corrected_game = FORMS[form](before)
    run_correction(
        ratings,
        db,
        "correct",
        "g-1",
        *arguments,
        *REASON_OPTION,
        input=None if corrected_game is None else json.dumps(corrected_game),
    )

    assert read_game_row(ratings, db, "g-1") == {**before, **CORRECTED_MEMBERS}


def test_edit_records_what_the_editor_saves(
    db: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`correct --edit` opens the game in its current form and records the saved version."""
    opened_file = tmp_path / "seen.json"
    run_json_command(
        ratings, db, "correct", "g-1", "cleo", "ben", "anna", "--at", "2010-03-05T13:00:00Z", *REASON_OPTION
    )
    body = (
        f"Path({str(opened_file)!r}).write_text(text)\ntext = text.replace('13:00', '13:30').replace('cleo', 'Chloé')"
    )
    monkeypatch.setenv("EDITOR", write_editor(tmp_path, body))
    run_correction(ratings, db, "correct", "g-1", "--edit", *REASON_OPTION)

    assert json.loads(opened_file.read_text()) == {
        "occurred_at": "2010-03-05T13:00:00.000000Z",
        **build_game_data("g-1", "cleo", "ben", "anna"),
    }
    assert read_game_row(ratings, db, "g-1") == {
        "position": 3,
        "occurred_at": "2010-03-05T13:30:00.000000Z",
        **build_game_data("g-1", "Chloé", "ben", "anna"),
    }


def test_unsaved_or_equal_edit_records_nothing(
    db: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is recorded if the editor saves nothing or leaves the game the same."""
    before = read_head(ratings, db)
    monkeypatch.setenv("EDITOR", "true")
    result = ratings("correct", "g-1", "--edit", *REASON_OPTION, db=db)
    assert (result.exit_code, "without saving" in result.stderr) == (1, True)
    assert read_head(ratings, db) == before

    monkeypatch.setenv(
        "EDITOR", write_editor(tmp_path, "text = text.replace('2010-03-05T12:00:00.000000Z', '2010-03-05T12:00:00Z')")
    )
    assert get_refusal_code(ratings, db, "correct", "g-1", "--edit", *REASON_OPTION) == "nothing-to-correct"


@pytest.mark.parametrize("text", ["nonsense", "", "[1]", '{"data": 5}', '{"data": [1]}', '{"a": 1, "a": 2}'])
def test_invalid_game_is_refused(
    text: str, db: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Input that is not a game is refused with a code, from standard input and from the editor."""
    monkeypatch.setenv("EDITOR", write_editor(tmp_path, f"text = {text!r}"))

    assert get_refusal_code(ratings, db, "correct", "g-1", *REASON_OPTION, input=text)
    assert get_refusal_code(ratings, db, "correct", "g-1", "--edit", *REASON_OPTION)


def test_game_of_another_kind_is_corrected_as_json(tmp_path: Path, ratings: Ratings) -> None:
    """A game of another kind is corrected with JSON; naming players is a usage error."""
    db = create_ledger(ratings, tmp_path / "league.db", "b5-league-1")
    powers = {"anna": 20, "ben": 15, "cleo": 9}
    participants = [
        {"player": player, "power": power, "influence": 0, "vp": int(player == "ben")}
        for player, power in powers.items()
    ]
    data = {"game_id": "b-1", "game": "babylon5", "kind": "b5", "season": "2010-1", "participants": participants}
    append_lines(ratings, db, build_event_line("game.recorded", **data))
    before = read_head(ratings, db)
    assert ratings("correct", "b-1", "ben", "anna", "cleo", *REASON_OPTION, db=db).exit_code == 2
    assert read_head(ratings, db) == before
    participants[2]["power"] = 30
    report = run_correction(ratings, db, "correct", "b-1", *REASON_OPTION, input=json.dumps(data))

    # 50, 30 and 20 % of 30 by place: cleo wins now, and ben keeps his victory point
    assert report["changes"] == {
        ("b5-league/2010-1", "anna"): ("105", "-6", "99"),
        ("b5-league/2010-1", "ben"): ("100", "-3", "97"),
        ("b5-league/2010-1", "cleo"): ("96", "9", "105"),
    }


def test_players_keep_their_other_details(db: str, ratings: Ratings) -> None:
    """A correction by players keeps the other recorded details of each player and of the game."""
    participants = [
        {"player": "anna", "place": 1, "seconds_played": 700, "seat": 2},
        {"player": "ben", "place": 2, "seat": 1},
    ]
    append_lines(ratings, db, build_galactic_line("g-3", participants=participants, extra={"table": "7"}))
    run_correction(ratings, db, "correct", "g-3", "ben", "anna", *REASON_OPTION)

    game = read_game_row(ratings, db, "g-3")
    assert game["extra"] == {"table": "7"}
    assert game["participants"] == [
        {"player": "ben", "place": 1, "seat": 1},
        {"player": "anna", "place": 2, "seconds_played": 700, "seat": 2},
    ]


@pytest.mark.parametrize("players", [["ben", "dora=emil", "anna"], ["dora=emil", "anna", "ben"]])
def test_shared_seat_counts_once(players: list[str], db: str, ratings: Ratings) -> None:
    """A seat that changed hands counts as one place in a correction by players."""
    participants = [
        {"player": "anna", "place": 1},
        {"player": "ben", "place": 2},
        {"player": "dora", "place": 3, "status": "abandoned"},
        {"player": "emil", "place": 3, "status": "substitute", "replaces": "dora"},
    ]
    append_lines(ratings, db, build_catan_line("c-3", participants=participants))
    run_correction(ratings, db, "correct", "c-3", *players, *REASON_OPTION)

    explained_players = read_json(ratings, db, "explain", "c-3", BASIC)["players"]
    places = {player: place for place, seat in enumerate(players, 1) for player in seat.split("=")}
    assert {player["player"]: player["place"] for player in explained_players} == places


def test_labels_move_game_to_other_ladder(db: str, ratings: Ratings) -> None:
    """Correcting labels changes nothing else and moves the game to the other ladder."""
    before = read_game_row(ratings, db, "c-1")
    labels = {"group": "domaine", "city": "7", "league": "spring", "season": "one"}
    options = [part for name, value in labels.items() for part in (f"--{name}", value)]
    report = run_correction(ratings, db, "correct", "c-1", *options, *REASON_OPTION)

    assert read_game_row(ratings, db, "c-1") == {**before, **labels}
    points = {"anna": "1008", "ben": "1000", "cleo": "992"}
    assert report["changes"] == {
        **{(BASIC, player): (points[player], None, None) for player in points},
        **{("catan-elo/domaine", player): (None, None, points[player]) for player in points},
    }
    assert read_points(ratings, db, BASIC) == {}


def test_empty_label_is_removed(db: str, ratings: Ratings) -> None:
    """An empty label is removed, and the game leaves every ladder that needs it."""
    report = run_correction(ratings, db, "correct", "c-1", "--group", "", *REASON_OPTION)

    assert "group" not in read_game_row(ratings, db, "c-1")
    assert {after for _, _, after in report["changes"].values()} == {None}


def test_any_id_of_a_renamed_player_is_accepted(db: str, ratings: Ratings) -> None:
    """A correction by players accepts any id of a renamed player and keeps the recorded id."""
    participants = [{"player": "anna", "place": 1, "seconds_played": 700}, {"player": "ben", "place": 2}]
    append_lines(ratings, db, build_galactic_line("g-3", participants=participants))
    run_json_command(ratings, db, "player", "rename", "anna", "anne")
    run_correction(ratings, db, "correct", "g-3", "ben", "anne", *REASON_OPTION)

    assert read_game_row(ratings, db, "g-3")["participants"] == [
        {"player": "ben", "place": 1},
        {"player": "anne", "place": 2, "seconds_played": 700},
    ]
    (last,) = read_json(ratings, db, "log", "--limit", "1")["rows"]
    assert [participant["player"] for participant in last["data"]["game"]["participants"]] == ["ben", "anna"]
    assert get_refusal_code(ratings, db, "correct", "g-3", "ben", "anna", *REASON_OPTION) == "nothing-to-correct"
    assert get_refusal_code(ratings, db, "correct", "g-3", "anne", "anna", *REASON_OPTION) == "player-twice"


CONCURRENT_COMMANDS = {
    "voided": (["void", "g-1", *REASON_OPTION], "game-voided"),
    "corrected": (["correct", "g-1", "cleo", "ben", "anna", *REASON_OPTION], "changed-meanwhile"),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CONCURRENT_COMMANDS)
def test_change_during_edit_is_refused(
    change: str, db: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit is refused if another user changes the game while the editor is open."""
    command, code = CONCURRENT_COMMANDS[change]
    editor_lines = [
        f"sys.path.insert(0, {str(Path(__file__).parents[2])!r})",
        "from ratings_ledger.cli.main import invoke",
        f"assert invoke({['--db', db, *command]!r}) == 0",
        "text = text.replace('anna', 'dora')",
    ]
    monkeypatch.setenv("EDITOR", write_editor(tmp_path, "\n".join(editor_lines)))
    result = ratings("correct", "g-1", "--edit", *REASON_OPTION, "--format", "json", db=db)

    assert (result.exit_code, json.loads(result.stdout)["rejected"][0]["code"]) == (1, code)
    assert [entry["position"] for entry in read_json(ratings, db, "log", "g-1")["rows"]] == [3, 6]


def test_edit_takes_no_other_data(db: str, ratings: Ratings) -> None:
    """With --edit, a result or a label on the command line is refused instead of ignored."""
    for arguments in (
        ["ben", "anna", "cleo"],
        ["--city", "Bonn"],
        ["--score", "3:2:1"],
        ["--at", "2010-03-05"],
        ["--zone", "UTC"],
    ):
        result = ratings("correct", "g-1", *arguments, "--edit", *REASON_OPTION, db=db)
        assert (result.exit_code, "--edit opens the complete game" in result.stderr) == (2, True), result


def test_void_of_an_unknown_number_names_id_and_position(db: str, ratings: Ratings) -> None:
    """A number that is neither the id nor the position of an event is refused, and the message names both."""
    result = ratings("void", "--event", "999", *REASON_OPTION, db=db)
    message = "event-unknown: no event has the id '999' or is at this position; see: ratings log"
    assert (result.exit_code, message in result.stderr) == (1, True), result


def test_correcting_the_game_changes_both_ladders(db: str, ratings: Ratings) -> None:
    """Correcting which game was played reports the changes on both games' ladders."""
    report = run_correction(ratings, db, "correct", "c-1", "--game", "galactic-magnate", *REASON_OPTION)

    assert {ladder for ladder, _ in report["changes"]} == {BASIC, GALACTIC}


UNCHANGED_CORRECTIONS = {
    "the same players": (["anna", "ben", "cleo"], None),
    "the same time elsewhere": (["--at", "2010-03-05 13:00", "--zone", "Europe/Berlin"], None),
    "the same game": (["--game", "galactic-magnate"], None),
    "the same data": ([], build_game_data("g-1", "anna", "ben", "cleo")),
    "defaults spelled out": ([], {**build_game_data("g-1", "anna", "ben", "cleo"), "rated": True, "city": None}),
}


@pytest.mark.parametrize(("arguments", "data"), UNCHANGED_CORRECTIONS.values(), ids=UNCHANGED_CORRECTIONS)
def test_correction_without_change_is_refused(
    arguments: list[str], data: dict[str, Any] | None, db: str, ratings: Ratings
) -> None:
    """A correction that equals the record is refused as `nothing-to-correct`."""
    stdin = None if data is None else json.dumps(data)

    assert (
        get_refusal_code(ratings, db, "correct", "g-1", *arguments, *REASON_OPTION, input=stdin) == "nothing-to-correct"
    )


def test_void_and_reinstate_undo_each_other(db: str, ratings: Ratings) -> None:
    """A voided game counts for nothing, and once reinstated it counts as before."""
    before = read_points(ratings, db, GALACTIC)
    voided = run_correction(ratings, db, "void", "g-1", *REASON_OPTION)

    assert voided["changes"][(GALACTIC, "cleo")] == ("800", None, None)
    assert read_points(ratings, db, GALACTIC) == {"ben": "1160", "anna": "840"}
    explanation = read_json(ratings, db, "explain", "g-1", GALACTIC)
    assert (explanation["counted"], explanation["why_not"]) == (False, "the game is voided")
    assert read_game_row(ratings, db, "g-1")["voided"] is True
    assert [entry["game_id"] for entry in read_json(ratings, db, "history", "anna", GALACTIC)["rows"]] == ["g-2"]

    reinstated = run_correction(ratings, db, "reinstate", "g-1", *REASON_OPTION)

    assert {key: (old, new) for key, (new, _, old) in reinstated["changes"].items()} == {
        key: (old, new) for key, (old, _, new) in voided["changes"].items()
    }
    assert read_points(ratings, db, GALACTIC) == before
    assert "voided" not in read_game_row(ratings, db, "g-1")


def test_row_marked_voided_is_accepted(db: str, ratings: Ratings) -> None:
    """A row marked as voided is accepted as a correction after the game was reinstated."""
    run_json_command(ratings, db, "void", "g-1", *REASON_OPTION)
    voided = read_game_row(ratings, db, "g-1")
    run_json_command(ratings, db, "reinstate", "g-1", *REASON_OPTION)
    run_correction(ratings, db, "correct", "g-1", *REASON_OPTION, input=json.dumps({**voided, "city": "7"}))

    assert read_game_row(ratings, db, "g-1")["city"] == "7"


EXPECTING_COMMANDS = {
    "correct": ["correct", "g-1", "cleo", "ben", "anna"],
    "void": ["void", "g-1"],
    "reinstate": ["reinstate", "g-2"],
    "void an event": ["void", "--event", "1"],
}
LAST_POSITIONS = {"correct": 3, "void": 3, "reinstate": 6, "void an event": 1}


@pytest.mark.slow_cases
@pytest.mark.parametrize("command", EXPECTING_COMMANDS)
def test_expect_refuses_another_position(command: str, db: str, ratings: Ratings) -> None:
    """With --expect, a command is refused unless the subject's last position is the expected one."""
    run_json_command(ratings, db, "void", "g-2", *REASON_OPTION)
    for wrong_position in {3, 5, 99} - {LAST_POSITIONS[command]}:
        arguments = (*EXPECTING_COMMANDS[command], "--expect", str(wrong_position), *REASON_OPTION)
        assert get_refusal_code(ratings, db, *arguments) == "changed-meanwhile"
        assert get_refusal_code(ratings, db, *arguments, "--dry-run") == "changed-meanwhile"
    run_correction(ratings, db, *EXPECTING_COMMANDS[command], "--expect", str(LAST_POSITIONS[command]), *REASON_OPTION)


@pytest.mark.slow_cases
@pytest.mark.parametrize("has_places", [True, False])
def test_scores_follow_corrected_places(has_places: bool, ratings: Ratings, copy_ledger: Callable[..., str]) -> None:
    """If scores would contradict the new places, each place keeps its score, and a note says so."""
    db = copy_ledger(create_ledger)
    placings = (("anna", 1, 10), ("ben", 2, 8), ("cleo", 3, 8))
    participants = [
        {"player": player, "score": score} | ({"place": place} if has_places else {})
        for player, place, score in placings
    ]
    append_lines(ratings, db, build_catan_line("s-1", participants=participants))
    order = ("ben", "cleo", "anna") if has_places else ("ben", "cleo=anna")
    correction = ratings("correct", "s-1", *order, "--reason", "wrong way round", db=db)
    assert correction.exit_code == 0
    assert "note: the scores were adapted to the new places: ben 10, anna 8\n" in correction.stderr
    (row,) = read_json(ratings, db, "games", "s-1")["rows"]
    assert {participant["player"]: participant["score"] for participant in row["participants"]} == {
        "ben": 10,
        "cleo": 8,
        "anna": 8,
    }
    refused = ratings("correct", "s-1", "cleo", "ben", "--reason", "anna was not there", db=db)
    assert refused.exit_code == 1
    assert "pass --score with the scores in the order of the places, such as --score 3:2" in refused.stderr


def record_duel(ratings: Ratings, db: str) -> None:
    """Record a game that anna won 3:1."""
    participants = [{"player": "anna", "place": 1, "score": 3}, {"player": "ben", "place": 2, "score": 1}]
    append_lines(ratings, db, build_catan_line("s-1", participants=participants))


CORRECTED_SCORES = {
    "the scores of the places": (("ben", "anna"), {"ben": 3, "anna": 1}),
    "a new player": (("cleo", "ben"), {"cleo": 3, "ben": 1}),
    "new scores": (("ben", "anna", "--score", "3:2"), {"ben": 3, "anna": 2}),
    "the same players": (("--score", "3:2"), {"anna": 3, "ben": 2}),
    "players with scores": (("ben:3", "anna:2"), {"ben": 3, "anna": 2}),
    "a tie": (("ben=anna", "--score", "2"), {"ben": 2, "anna": 2}),
}


@pytest.mark.parametrize(("arguments", "expected"), CORRECTED_SCORES.values(), ids=CORRECTED_SCORES)
def test_corrected_result_has_scores(
    arguments: tuple[str, ...], expected: dict[str, int], ratings: Ratings, copy_ledger: Callable[..., str]
) -> None:
    """A corrected result has the typed scores or those of its places; a note says if a recorded player's score
    follows the place."""
    db = copy_ledger(create_ledger)
    record_duel(ratings, db)
    correction = ratings("correct", "s-1", *arguments, *REASON_OPTION, db=db)
    assert correction.exit_code == 0
    assert ("scores were adapted" in correction.stderr) == (arguments == ("ben", "anna"))
    (row,) = read_json(ratings, db, "games", "s-1")["rows"]
    assert {participant["player"]: participant["score"] for participant in row["participants"]} == expected


REFUSED_SCORES = {
    "too few": (("ben", "anna", "--score", "3"), "score-missing"),
    "no number": (("ben", "anna", "--score", "3-2"), "score-missing"),
    "both ways": (("ben:3", "anna:2", "--score", "3:2"), "score-missing"),
    "one alone": (("ben:3", "anna"), "score-missing"),
    "the loser first": (("ben", "anna", "--score", "2:3"), "score-contradicts-place"),
    "a new tie without a score": (("ben=anna",), "score-contradicts-place"),
    "a third player": (("ben", "anna", "cleo"), "score-contradicts-place"),
}


@pytest.mark.parametrize(("arguments", "code"), REFUSED_SCORES.values(), ids=REFUSED_SCORES)
def test_scores_that_do_not_fit_are_refused(
    arguments: tuple[str, ...], code: str, ratings: Ratings, copy_ledger: Callable[..., str]
) -> None:
    """Scores that are missing, given twice or against the order are refused, and nothing is recorded."""
    db = copy_ledger(create_ledger)
    record_duel(ratings, db)
    assert get_refusal_code(ratings, db, "correct", "s-1", *arguments, *REASON_OPTION) == code


@pytest.mark.parametrize("players", [(), ("ben", "anna")])
def test_score_cannot_correct_a_battle(players: tuple[str, ...]) -> None:
    """A game of another kind than placing has no places to which the parts of a score belong."""
    game = RevisedGame({"kind": "battle", "participants": []}, 0, voided=False, last=KnownEvent("e", "game", 0, {}))
    with pytest.raises(BadArgument, match="cannot correct a game of kind battle; use --edit, or JSON"):
        add_scores(game, players, Identities(), score="3:2", syntax=CellSyntax())


def import_and_correct_sets(tmp_path: Path, ratings: Ratings, row: str, *arguments: str) -> tuple[Any, str]:
    """Import a game of sets from a table and correct it; return the result and the output of `games`."""
    db, table = str(tmp_path / "club.db"), tmp_path / "sets.csv"
    table.write_text(f"Date,Player 1,Player 2,S1,S2,S3,S4\n2026-11-21,{row}\n", encoding="utf-8")
    assert ratings("init", "--for", "tt", "--zone", "UTC", db=db).exit_code == 0
    assert ratings("import", str(table), db=db).exit_code == 0
    result = ratings("correct", "2026-11-21-1", *arguments, "--reason", "from the score sheet", db=db)
    return result, ratings("games", db=db).stdout


@pytest.mark.parametrize(
    ("row", "players", "sets"),
    [
        ("Anna,Ben,11:7,9:11,11:3,11:8", ("Ben", "Anna"), "11:7 9:11 11:3 11:8"),
        ("Anna,Ben,7:11,11:9,3:11,8:11", ("Anna", "Ben"), "11:7 9:11 11:3 11:8"),
        ("Anna,Ben,11:7,9:11,11:3,11:8", ("Ben", "Anna", "--score", "3:2"), ""),
    ],
)
def test_sets_follow_corrected_places_or_are_left_out(
    tmp_path: Path, ratings: Ratings, row: str, players: tuple[str, ...], sets: str
) -> None:
    """A result with corrected places keeps its sets, which now count for the new winner; another score leaves them
    out."""
    result, games_output = import_and_correct_sets(tmp_path, ratings, row, *players)
    assert result.exit_code == 0
    assert ("contradict the new result and are left out" in result.stderr) == (not sets)
    if sets and players == ("Ben", "Anna"):
        assert f"the sets {sets} now count for Ben;" in result.stderr
    assert games_output.splitlines()[-1].endswith(f"sets {sets}" if sets else "Anna (2)")


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("row", "arguments", "placings"),
    [
        ("Anna,Ben,11:7,9:11,11:3,11:8", ("--sets", "11:7 12:14 11:3 11:9"), "1 Anna (3), 2 Ben (1)"),
        ("Anna,Ben,7:11,11:9,3:11,8:11", ("--sets", "11:7 12:14 11:3 11:9"), "1 Ben (3), 2 Anna (1)"),
        ("Anna,Ben,11:7,9:11,11:3,11:8", ("Ben", "Anna", "--sets", "11-7, 12-14, 11-3, 11-9"), "1 Ben (3), 2 Anna (1)"),
        ("Anna,Ben,11:7,11:3,11:8,", ("--sets", "11:7 12:14 11:3 11:9", "--score", "3:1"), "1 Anna (3), 2 Ben (1)"),
    ],
)
def test_corrected_sets_determine_the_scores(
    tmp_path: Path, ratings: Ratings, row: str, arguments: tuple[str, ...], placings: str
) -> None:
    """--sets takes the winner's points first, whichever player the record names first, and determines the scores."""
    result, games_output = import_and_correct_sets(tmp_path, ratings, row, *arguments)
    assert "the sets " not in result.stderr
    assert f"{placings}, sets 11:7 12:14 11:3 11:9" in games_output


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--sets", "7:11 9:11 11:3"), "results-disagree"),
        (("--sets", "11:7 9:11", "--score", "2:0"), "results-disagree"),
        (("--sets", "11 to 7"), "bad-value"),
        (("--sets", ""), "bad-value"),
        (("--sets", "11:7 9:11"), "score-contradicts-place"),
        (("Anna=Ben", "--sets", "11:7 9:11"), "score-missing"),
        (("Anna", "Ben", "Cleo", "--sets", "11:7 9:11 11:7"), "score-missing"),
    ],
)
def test_sets_that_do_not_fit_are_refused(
    tmp_path: Path, ratings: Ratings, arguments: tuple[str, ...], code: str
) -> None:
    """Sets that are invalid, or that give another winner or score than the command, are refused."""
    result, games_output = import_and_correct_sets(tmp_path, ratings, "Anna,Ben,11:7,9:11,11:3,11:8", *arguments)
    assert (result.exit_code, f"{code}: " in result.stderr) == (1, True)
    assert "sets 11:7 9:11 11:3 11:8" in games_output

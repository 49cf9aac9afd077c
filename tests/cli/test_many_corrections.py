"""`void --file` and `correct --file`: many corrections in one command, all or nothing, with their combined effect."""

import json
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import (
    Ratings,
    build_galactic_line,
    compare_points,
    create_ledger,
    read_all_points,
    read_head,
    read_json,
)
from interleaving import act_before_next
from output_filters import strip_decimals
from stores import record_lines

REASON_OPTION = ("--reason", "entered twice")


def create_season_ledger(ratings: Ratings, url: str) -> None:
    """Create a ledger with eight games of Galactic Magnate; g-8 also has a group, a city and extra data."""
    create_ledger(ratings, url, "galactic-points-1")
    results = ["anna=ben cleo", "ben cleo", "cleo anna dora", "dora anna", "anna dora", "ben anna", "cleo ben"]
    lines = [
        build_galactic_line(f"g-{n}", *players.split(), at=f"2010-03-0{n}T12:00:00Z")
        for n, players in enumerate(results, 1)
    ]
    lines.append(
        build_galactic_line(
            "g-8", "anna", "ben", at="2010-03-08T12:00:00Z", group="club", city="Ulm", extra={"table": "4"}
        )
    )
    assert not record_lines(url, "".join(lines)).rejected


pytestmark = pytest.mark.ledger(make=create_season_ledger)


def run_command_json(
    ratings: Ratings, db: str, *command: str, stdin: str | bytes | None = None, code: int = 0
) -> dict[str, Any]:
    """Run a command and return the JSON."""
    result = ratings(*command, "--format", "json", db=db, input=stdin)
    assert result.exit_code == code, result
    return dict(strip_decimals(json.loads(result.stdout)))


@pytest.mark.slow_cases
def test_file_of_ids_voids_every_game(db: str, ratings: Ratings) -> None:
    """Every game in a file of ids is voided, and the changes are shown once for all of them."""
    before, points_before = read_head(ratings, db), read_all_points(ratings, db)
    preview = run_command_json(
        ratings, db, "void", "--file", "-", "--dry-run", *REASON_OPTION, stdin="g-2\n\ng-5\r\n g-7 \ng-5"
    )
    assert (read_head(ratings, db), preview["appended"], preview["unchanged"]) == (before, 0, [])
    report = run_command_json(ratings, db, "void", "--file", "-", *REASON_OPTION, stdin="\ufeffg-2\ng-5\ng-7\n")
    assert (report["type"], report["appended"], report["changes"]) == ("game.voided", 3, preview["changes"])
    changes = {(c["ladder"], c["player"]): (c["before"], c["change"], c["after"]) for c in report["changes"]}
    assert changes == compare_points(points_before, read_all_points(ratings, db), str, str)
    voided = [row["game_id"] for row in read_json(ratings, db, "games")["rows"] if row.get("voided")]
    assert voided == ["g-2", "g-5", "g-7"]


def test_one_wrong_id_voids_nothing(db: str, ratings: Ratings) -> None:
    """One wrong id in the file means that no game is voided."""
    before = read_head(ratings, db)
    report = run_command_json(
        ratings, db, "void", "--file", "-", *REASON_OPTION, stdin="g-2\nnobody\ng-7\nneither\n", code=1
    )
    assert [(rejection["line"], rejection["code"]) for rejection in report["rejected"]] == [
        (2, "game-unknown"),
        (4, "game-unknown"),
    ]
    result = ratings("void", "--file", "-", *REASON_OPTION, db=db, input="g-2\nnobody\n")
    assert (result.exit_code, result.stdout) == (1, "Nothing was recorded.\n")
    assert result.stderr.startswith("-:2: game-unknown: no game 'nobody' is recorded")
    assert read_head(ratings, db) == before


def test_already_voided_games_are_reported(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Games that are already voided are reported, and the rest of the file is voided."""
    ids = tmp_path / "ids.txt"
    ids.write_text("g-2\ng-3\n")
    ratings("void", "g-2", *REASON_OPTION, db=db)
    result = ratings("void", "--file", ids, *REASON_OPTION, db=db)
    assert (result.exit_code, result.stderr) == (0, "note: 1 game already voided: g-2\n")
    assert result.stdout.startswith("game.voided is recorded at position 11.\n")
    before = read_head(ratings, db)
    again = ratings("void", "--file", ids, *REASON_OPTION, db=db)
    assert (again.exit_code, again.stdout) == (0, "This is already recorded.\n")
    assert run_command_json(ratings, db, "void", "--file", str(ids), *REASON_OPTION)["unchanged"] == ["g-2", "g-3"]
    assert read_head(ratings, db) == before


@pytest.mark.parametrize("content", [b"", b"\n  \n", b"g-2\n\xff\xfe\n"], ids=["nothing", "blank lines", "not UTF-8"])
def test_file_without_ids_is_refused(content: bytes, one_db: str, ratings: Ratings) -> None:
    """A file that has no ids, or is not UTF-8, is refused and voids nothing."""
    before = read_head(ratings, one_db)
    report = run_command_json(ratings, one_db, "void", "--file", "-", *REASON_OPTION, stdin=content, code=1)
    assert [rejection["code"] for rejection in report["rejected"]] == [
        "bad-utf8" if b"\xff" in content else "empty-file"
    ]
    assert read_head(ratings, one_db) == before


HEADER = "game_id,occurred_at,game,1st,2nd,3rd\n"
LONG_HEADER = "game_id,occurred_at,game,player,place\n"


def build_row(number: int, *cells: str, day: int | None = None) -> str:
    """Return a game of Galactic Magnate as a row of the wide form."""
    return ",".join([f"g-{number}", f"2010-03-0{day or number}T12:00:00Z", "galactic-magnate", *cells]) + "\n"


def test_table_corrects_only_what_differs(db: str, ratings: Ratings) -> None:
    """A table corrects the games that differ from it and leaves equal ones alone.

    It has a different result, a different date, a game that is equal except for the order of tied players, and an
    equal game.
    """
    before = read_json(ratings, db, "games")["rows"]
    table = (
        HEADER
        + build_row(1, "ben=anna", "", "cleo")
        + build_row(2, "cleo", "ben")
        + build_row(3, "cleo", "anna", "dora", day=4)
    )
    table += build_row(4, "dora", "anna")
    report = run_command_json(ratings, db, "correct", "--file", "-", *REASON_OPTION, stdin=table)
    assert (report["appended"], report["unchanged"]) == (2, ["g-1", "g-4"])
    games_after = {game["game_id"]: game for game in read_json(ratings, db, "games")["rows"]}
    assert [(p["player"], p["place"]) for p in games_after["g-2"]["participants"]] == [("cleo", 1), ("ben", 2)]
    assert games_after["g-3"]["occurred_at"] == "2010-03-04T12:00:00.000000Z"
    games_before = {game["game_id"]: game for game in before}
    assert [name for name in games_before if games_before[name] != games_after[name]] == ["g-2", "g-3"]
    result = ratings("correct", "--file", "-", *REASON_OPTION, db=db, input=table)
    assert (result.exit_code, result.stdout) == (0, "This is already recorded.\n")
    assert result.stderr == "note: 4 games already recorded like this: g-1, g-2, g-3, g-4\n"


def test_missing_columns_keep_members(db: str, ratings: Ratings) -> None:
    """A game keeps members for which a table has no column; an empty cell removes its member."""
    run_command_json(ratings, db, "correct", "--file", "-", *REASON_OPTION, stdin=HEADER + build_row(8, "ben", "anna"))
    (game,) = read_json(ratings, db, "games", "g-8")["rows"]
    assert (game["group"], game["city"], game["extra"]) == ("club", "Ulm", {"table": "4"})
    table = "game_id,occurred_at,game,city,player,place,score\n"
    table += "".join(
        f"g-8,2010-03-08T12:00:00Z,galactic-magnate,,{name},{place},{9 - place}\n"
        for place, name in enumerate(["ben", "anna"], 1)
    )
    run_command_json(ratings, db, "correct", "--file", "-", *REASON_OPTION, stdin=table)
    (game,) = read_json(ratings, db, "games", "g-8")["rows"]
    assert ("city" in game, game["group"], game["extra"]) == (False, "club", {"table": "4"})
    assert [p["score"] for p in game["participants"]] == [8, 7]


@pytest.mark.parametrize(
    ("table", "result", "city"),
    [
        ("game_id,1st,2nd\ng-8,ben,anna\n", "ben 1 anna 2", "Ulm"),
        ("Nr;Ganador;Perdedor\ng-8;ben;anna\n", "ben 1 anna 2", "Ulm"),
        ("Nr;White;Black;Result\ng-8;anna;ben;0-1\n", "ben 1 anna 2", "Ulm"),
        ("game_id,player,place\ng-8,ben,1\ng-8,anna,2\n", "ben 1 anna 2", "Ulm"),
        ("game_id,city\ng-8,Bonn\n", "anna 1 ben 2", "Bonn"),
    ],
)
def test_table_needs_only_ids_and_the_corrected_columns(
    table: str, result: str, city: str, one_db: str, ratings: Ratings
) -> None:
    """A table of ids and corrected columns changes only these; date, game and other members stay the same."""
    (before,) = read_json(ratings, one_db, "games", "g-8")["rows"]
    report = run_command_json(ratings, one_db, "correct", "--file", "-", *REASON_OPTION, stdin=table)
    (game,) = read_json(ratings, one_db, "games", "g-8")["rows"]
    assert report["appended"] == 1
    participants = sorted(game["participants"], key=lambda participant: participant["place"])
    assert (" ".join(f"{p['player']} {p['place']}" for p in participants), game["city"]) == (result, city)
    other_members = ("occurred_at", "game", "group", "extra")
    assert [game[name] for name in other_members] == [before[name] for name in other_members]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            "game_id\ng-8\n",
            "no row has more than one filled cell (a text file needs commas, semicolons, tabs or | between cells)",
        ),
        ("game_id,place\ng-8,2\n", "there is no column 'player'"),
        ("1st,2nd\nben,anna\n", "there is no column 'game_id'"),
    ],
)
def test_table_without_ids_or_corrections_is_refused(table: str, message: str, one_db: str, ratings: Ratings) -> None:
    """A table without ids, or without something to correct, is refused with a message that says what is missing."""
    report = run_command_json(ratings, one_db, "correct", "--file", "-", *REASON_OPTION, stdin=table, code=1)
    assert [(rejection["code"], rejection["message"].partition(";")[0]) for rejection in report["rejected"]] == [
        ("missing-column", message)
    ]


def test_renamed_player_matches_by_either_id(db: str, ratings: Ratings) -> None:
    """A table that names a renamed player by either id equals the record; a correction keeps the recorded id."""
    ratings("player", "rename", "anna", "annika", db=db)
    for name in ("anna", "annika"):
        report = run_command_json(
            ratings, db, "correct", "--file", "-", *REASON_OPTION, stdin=HEADER + build_row(4, "dora", name)
        )
        assert (report["appended"], report["unchanged"]) == (0, ["g-4"])
    run_command_json(
        ratings, db, "correct", "--file", "-", *REASON_OPTION, stdin=HEADER + build_row(4, "annika", "dora")
    )
    rows = read_json(ratings, db, "log", "g-4")["rows"]
    assert [p["player"] for p in rows[-1]["data"]["game"]["participants"]] == ["anna", "dora"]


REFUSED_TABLES = {
    "an unknown game": (HEADER + build_row(4, "anna", "dora") + build_row(9, "anna", "ben"), [(3, "game-unknown")]),
    "a new name close to another": (HEADER + build_row(4, "anna", "Dora"), [(2, "close-name")]),
    "a player twice": (HEADER + build_row(4, "anna", "anna"), [(2, "player-twice")]),
    "an unknown column": ("game_id,occurred_at,game,1st,colour\n", [(1, "unknown-column")]),
    "a bad cell": (LONG_HEADER + "g-4,2010-03-04T12:00:00Z,galactic-magnate,anna,first\n", [(2, "not-an-integer")]),
    "a time without a zone": (HEADER + "g-4,2010-03-04 20:05,galactic-magnate,anna,dora\n", [(2, "naive-time")]),
    "JSON": (build_galactic_line("g-4", "anna", "dora"), [(1, "bad-csv")]),
    "nothing": ("", [(None, "empty-file")]),
}


@pytest.mark.parametrize(("table", "codes"), REFUSED_TABLES.values(), ids=REFUSED_TABLES)
def test_table_with_an_error_corrects_nothing(
    table: str, codes: list[tuple[int | None, str]], one_db: str, ratings: Ratings
) -> None:
    """A table with an error corrects nothing, and its bad lines are named."""
    before = read_head(ratings, one_db)
    report = run_command_json(ratings, one_db, "correct", "--file", "-", *REASON_OPTION, stdin=table, code=1)
    assert [(rejection.get("line"), rejection["code"]) for rejection in report["rejected"]] == codes
    assert read_head(ratings, one_db) == before


@pytest.mark.parametrize("step", ["proposed", "committed"])
def test_concurrent_change_prevents_all_corrections(db: str, ratings: Ratings, step: str) -> None:
    """If one of two games is changed before their corrections are recorded, neither is corrected."""

    def change_game() -> None:
        assert ratings("correct", "g-5", "dora", "anna", "--reason", "quicker", db=db).exit_code == 0

    act_before_next(step, change_game)
    table = HEADER + build_row(4, "anna", "dora") + build_row(5, "ben", "anna")
    report = run_command_json(ratings, db, "correct", "--file", "-", *REASON_OPTION, stdin=table, code=1)
    assert [rejection["code"] for rejection in report["rejected"]] == ["changed-meanwhile"]
    assert report["appended"] == 0


USAGE_ERRORS = [
    ["void", "g-1", "--file", "-"],
    ["void", "--file", "-", "--batch", "a"],
    ["void", "--batch", "a", "--expect", "3"],
    ["void", "--file", "-", "--expect", "3"],
    ["void", "--file", "-", "--event", "1"],
    ["correct"],
    ["correct", "g-1", "--file", "-"],
    ["correct", "--file", "-", "--group", "x"],
    ["correct", "--file", "-", "--edit"],
    ["correct", "--file", "-", "--at", "2010-03-05T12:00Z"],
]


@pytest.mark.parametrize("command", USAGE_ERRORS, ids=map(" ".join, USAGE_ERRORS))
def test_incompatible_options_are_usage_errors(command: list[str], one_db: str, ratings: Ratings) -> None:
    """Arguments and options that exclude each other are a usage error, and so is `correct` without a game."""
    result = ratings(*command, *REASON_OPTION, db=one_db, input="g-1\n")
    assert (result.exit_code, result.stdout) == (2, "")


def test_suggested_options_correct_the_table(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """`correct --file` reads a table with the options of `import`, given or in a profile; a refusal suggests --map."""
    table = tmp_path / "fixed.csv"
    table.write_text("Nr.;Datum;Sieger;2.;Halle\ng-2;02.03.2010;cleo;ben/anna;typo\n", encoding="utf-8")
    profile = tmp_path / "club.toml"
    profile.write_text('dates = "dmy"\nties = "/"\n[columns]\nHalle = ""\n[set]\ngame = "galactic-magnate"\n')
    correct = ("correct", "--file", table, "--reason", "r", "--zone", "UTC")
    options = ("--set", "game=galactic-magnate", "--map", "Halle=", "--dates", "dmy", "--ties", "/")

    refused = ratings(*correct, db=one_db).stderr
    corrected = run_command_json(ratings, one_db, *correct, *options, "--dry-run")
    by_profile = run_command_json(ratings, one_db, *correct, "--profile", profile, "--dry-run")

    assert "--set game=" not in refused  # the recorded games name it
    assert "--map 'Halle='" in refused
    assert {change["player"] for change in corrected["changes"]} == {"anna", "ben", "cleo", "dora"}
    assert by_profile["changes"] == corrected["changes"]
    result_without_file = ratings("correct", "g-2", "cleo", "ben", "--reason", "r", "--map", "A=player", db=one_db)
    assert (result_without_file.exit_code, "work only with --file" in result_without_file.stderr) == (2, True)
    profile.write_text('dates = "summer"\n')
    bad_profile_result = ratings(*correct, "--profile", profile, db=one_db)
    assert (
        bad_profile_result.exit_code,
        "1: bad-profile: dates: 'summer' is not one of" in bad_profile_result.stderr,
    ) == (1, True)

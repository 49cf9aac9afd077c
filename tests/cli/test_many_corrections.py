"""`void --file` and `correct --file`: a day of corrections in one call, all or nothing, with what they do together."""

import json
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import Ratings, all_points, difference, galactic, head, new_ledger, read
from interleaving import act_before_next
from output_filters import strip_decimals
from stores import record_lines

WHY = ("--reason", "entered twice")


def a_season(ratings: Ratings, url: str) -> None:
    """Make a ledger with eight games of Galactic Magnate; g-8 has more members than a table."""
    new_ledger(ratings, url, "galactic-points-1")
    results = ["anna=ben cleo", "ben cleo", "cleo anna dora", "dora anna", "anna dora", "ben anna", "cleo ben"]
    lines = [galactic(f"g-{n}", *players.split(), at=f"2010-03-0{n}T12:00:00Z") for n, players in enumerate(results, 1)]
    lines.append(
        galactic("g-8", "anna", "ben", at="2010-03-08T12:00:00Z", group="club", city="Ulm", extra={"table": "4"})
    )
    assert not record_lines(url, "".join(lines)).rejected


pytestmark = pytest.mark.ledger(make=a_season)


def told(ratings: Ratings, db: str, *command: str, given: str | bytes | None = None, code: int = 0) -> dict[str, Any]:
    """What a command tells as JSON."""
    done = ratings(*command, "--format", "json", db=db, input=given)
    assert done.exit_code == code, done
    return dict(strip_decimals(json.loads(done.stdout)))


@pytest.mark.slow_cases
def test_file_of_ids_voids_every_game(db: str, ratings: Ratings) -> None:
    """Every game in a file of ids is voided, and what changes is shown once for all."""
    before, standing = head(ratings, db), all_points(ratings, db)
    dry = told(ratings, db, "void", "--file", "-", "--dry-run", *WHY, given="g-2\n\ng-5\r\n g-7 \ng-5")
    assert (head(ratings, db), dry["appended"], dry["unchanged"]) == (before, 0, [])
    done = told(ratings, db, "void", "--file", "-", *WHY, given="\ufeffg-2\ng-5\ng-7\n")
    assert (done["type"], done["appended"], done["changes"]) == ("game.voided", 3, dry["changes"])
    changes = {(c["ladder"], c["player"]): (c["before"], c["change"], c["after"]) for c in done["changes"]}
    assert changes == difference(standing, all_points(ratings, db), str, str)
    voided = [row["game_id"] for row in read(ratings, db, "games")["rows"] if row.get("voided")]
    assert voided == ["g-2", "g-5", "g-7"]


def test_one_wrong_id_voids_nothing(db: str, ratings: Ratings) -> None:
    """One wrong id in the file means that no game is voided."""
    before = head(ratings, db)
    done = told(ratings, db, "void", "--file", "-", *WHY, given="g-2\nnobody\ng-7\nneither\n", code=1)
    assert [(one["line"], one["code"]) for one in done["rejected"]] == [(2, "game-unknown"), (4, "game-unknown")]
    shown = ratings("void", "--file", "-", *WHY, db=db, input="g-2\nnobody\n")
    assert (shown.exit_code, shown.stdout) == (1, "Nothing was recorded.\n")
    assert shown.stderr.startswith("-:2: game-unknown: no game 'nobody' is recorded")
    assert head(ratings, db) == before


def test_already_voided_games_are_reported(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Games that are already voided are reported, and the rest of the file is voided."""
    ids = tmp_path / "ids.txt"
    ids.write_text("g-2\ng-3\n")
    ratings("void", "g-2", *WHY, db=db)
    done = ratings("void", "--file", ids, *WHY, db=db)
    assert (done.exit_code, done.stderr) == (0, "note: 1 game already voided: g-2\n")
    assert done.stdout.startswith("game.voided is recorded at position 11.\n")
    before = head(ratings, db)
    again = ratings("void", "--file", ids, *WHY, db=db)
    assert (again.exit_code, again.stdout) == (0, "This is already recorded.\n")
    assert told(ratings, db, "void", "--file", str(ids), *WHY)["unchanged"] == ["g-2", "g-3"]
    assert head(ratings, db) == before


@pytest.mark.parametrize("given", [b"", b"\n  \n", b"g-2\n\xff\xfe\n"], ids=["nothing", "blank lines", "no UTF-8"])
def test_file_without_ids_is_refused(given: bytes, one_db: str, ratings: Ratings) -> None:
    """A file without readable ids is refused and voids nothing."""
    before = head(ratings, one_db)
    done = told(ratings, one_db, "void", "--file", "-", *WHY, given=given, code=1)
    assert [one["code"] for one in done["rejected"]] == ["bad-utf8" if b"\xff" in given else "empty-file"]
    assert head(ratings, one_db) == before


HEADER = "game_id,occurred_at,game,1st,2nd,3rd\n"
LONG = "game_id,occurred_at,game,player,place\n"


def row(number: int, *cells: str, day: int | None = None) -> str:
    """A game of Galactic Magnate as a row of the wide form."""
    return ",".join([f"g-{number}", f"2010-03-0{day or number}T12:00:00Z", "galactic-magnate", *cells]) + "\n"


def test_table_corrects_only_what_differs(db: str, ratings: Ratings) -> None:
    """A table corrects the games that differ from it and leaves equal ones alone.

    It holds a different result, a different date, a game that is equal except for the order of the
    tied, and one that is equal.
    """
    before = read(ratings, db, "games")["rows"]
    table = HEADER + row(1, "ben=anna", "", "cleo") + row(2, "cleo", "ben") + row(3, "cleo", "anna", "dora", day=4)
    table += row(4, "dora", "anna")
    done = told(ratings, db, "correct", "--file", "-", *WHY, given=table)
    assert (done["appended"], done["unchanged"]) == (2, ["g-1", "g-4"])
    after = {one["game_id"]: one for one in read(ratings, db, "games")["rows"]}
    assert [(p["player"], p["place"]) for p in after["g-2"]["participants"]] == [("cleo", 1), ("ben", 2)]
    assert after["g-3"]["occurred_at"] == "2010-03-04T12:00:00.000000Z"
    same = {one["game_id"]: one for one in before}
    assert [name for name in same if same[name] != after[name]] == ["g-2", "g-3"]
    again = ratings("correct", "--file", "-", *WHY, db=db, input=table)
    assert (again.exit_code, again.stdout) == (0, "This is already recorded.\n")
    assert again.stderr == "note: 4 games already recorded like this: g-1, g-2, g-3, g-4\n"


def test_missing_columns_keep_members(db: str, ratings: Ratings) -> None:
    """A game keeps members for which a table has no column; an empty cell removes its member."""
    told(ratings, db, "correct", "--file", "-", *WHY, given=HEADER + row(8, "ben", "anna"))
    (now,) = read(ratings, db, "games", "g-8")["rows"]
    assert (now["group"], now["city"], now["extra"]) == ("club", "Ulm", {"table": "4"})
    table = "game_id,occurred_at,game,city,player,place,score\n"
    table += "".join(f"g-8,2010-03-08T12:00:00Z,galactic-magnate,,{name},{place},{9 - place}\n"
                     for place, name in enumerate(["ben", "anna"], 1))  # fmt: skip
    told(ratings, db, "correct", "--file", "-", *WHY, given=table)
    (now,) = read(ratings, db, "games", "g-8")["rows"]
    assert ("city" in now, now["group"], now["extra"]) == (False, "club", {"table": "4"})
    assert [p["score"] for p in now["participants"]] == [8, 7]


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
def test_only_ids_and_something_to_change_are_needed(
    table: str, result: str, city: str, one_db: str, ratings: Ratings
) -> None:
    """A table of ids and what was wrong corrects just that; date, game and other members stay as they are."""
    (before,) = read(ratings, one_db, "games", "g-8")["rows"]
    done = told(ratings, one_db, "correct", "--file", "-", *WHY, given=table)
    (now,) = read(ratings, one_db, "games", "g-8")["rows"]
    assert done["appended"] == 1
    seats = sorted(now["participants"], key=lambda seat: seat["place"])
    assert (" ".join(f"{seat['player']} {seat['place']}" for seat in seats), now["city"]) == (result, city)
    rest = ("occurred_at", "game", "group", "extra")
    assert [now[name] for name in rest] == [before[name] for name in rest]


@pytest.mark.parametrize(
    ("table", "refused"),
    [
        ("game_id\ng-8\n", "the file has no columns: it has no commas, semicolons, tabs or | between cells"),
        ("game_id,place\ng-8,2\n", "there is no column 'player'"),
        ("1st,2nd\nben,anna\n", "there is no column 'game_id'"),
    ],
)
def test_table_that_says_too_little_corrects_nothing(table: str, refused: str, one_db: str, ratings: Ratings) -> None:
    """A table without ids, or with nothing to change, is refused with the column that it lacks."""
    done = told(ratings, one_db, "correct", "--file", "-", *WHY, given=table, code=1)
    assert [(one["code"], one["message"].partition(";")[0]) for one in done["rejected"]] == [
        ("missing-column", refused)
    ]


def test_renamed_player_matches_by_either_id(db: str, ratings: Ratings) -> None:
    """A table that names renamed players by either id is equal to the record."""
    ratings("player", "rename", "anna", "annika", db=db)
    for name in ("anna", "annika"):
        done = told(ratings, db, "correct", "--file", "-", *WHY, given=HEADER + row(4, "dora", name))
        assert (done["appended"], done["unchanged"]) == (0, ["g-4"])
    told(ratings, db, "correct", "--file", "-", *WHY, given=HEADER + row(4, "annika", "dora"))
    rows = read(ratings, db, "log", "g-4")["rows"]
    assert [p["player"] for p in rows[-1]["data"]["game"]["participants"]] == ["anna", "dora"]


REFUSED = {
    "an unknown game": (HEADER + row(4, "anna", "dora") + row(9, "anna", "ben"), [(3, "game-unknown")]),
    "a new name close to another": (HEADER + row(4, "anna", "Dora"), [(2, "close-name")]),
    "a player twice": (HEADER + row(4, "anna", "anna"), [(2, "player-twice")]),
    "an unknown column": ("game_id,occurred_at,game,1st,colour\n", [(1, "unknown-column")]),
    "a bad cell": (LONG + "g-4,2010-03-04T12:00:00Z,galactic-magnate,anna,first\n", [(2, "not-an-integer")]),
    "a time without a zone": (HEADER + "g-4,2010-03-04 20:05,galactic-magnate,anna,dora\n", [(2, "naive-time")]),
    "JSON": (galactic("g-4", "anna", "dora"), [(1, "bad-csv")]),
    "nothing": ("", [(None, "empty-file")]),
}


@pytest.mark.parametrize(("table", "codes"), REFUSED.values(), ids=REFUSED)
def test_table_with_mistake_corrects_nothing(
    table: str, codes: list[tuple[int | None, str]], one_db: str, ratings: Ratings
) -> None:
    """A table with a mistake corrects nothing, and its bad lines are named."""
    before = head(ratings, one_db)
    done = told(ratings, one_db, "correct", "--file", "-", *WHY, given=table, code=1)
    assert [(one.get("line"), one["code"]) for one in done["rejected"]] == codes
    assert head(ratings, one_db) == before


@pytest.mark.parametrize("step", ["proposed", "committed"])
def test_concurrent_change_refuses_the_call(db: str, ratings: Ratings, step: str) -> None:
    """If one of two games is changed before their corrections are entered, neither is corrected."""

    def meanwhile() -> None:
        assert ratings("correct", "g-5", "dora", "anna", "--reason", "quicker", db=db).exit_code == 0

    act_before_next(step, meanwhile)
    table = HEADER + row(4, "anna", "dora") + row(5, "ben", "anna")
    done = told(ratings, db, "correct", "--file", "-", *WHY, given=table, code=1)
    assert [one["code"] for one in done["rejected"]] == ["changed-meanwhile"]
    assert done["appended"] == 0


USAGE = [
    ["void", "g-1", "--file", "-"], ["void", "--file", "-", "--batch", "a"], ["void", "--batch", "a", "--expect", "3"],
    ["void", "--file", "-", "--expect", "3"], ["void", "--file", "-", "--event", "1"],
    ["correct"], ["correct", "g-1", "--file", "-"], ["correct", "--file", "-", "--group", "x"],
    ["correct", "--file", "-", "--edit"], ["correct", "--file", "-", "--at", "2010-03-05T12:00Z"],
]  # fmt: skip


@pytest.mark.parametrize("command", USAGE, ids=map(" ".join, USAGE))
def test_file_excludes_other_options(command: list[str], one_db: str, ratings: Ratings) -> None:
    """Arguments and options that do not go with `--file` are a usage error."""
    done = ratings(*command, *WHY, db=one_db, input="g-1\n")
    assert (done.exit_code, done.stdout) == (2, "")


def test_advice_about_a_table_works(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """What a refusal of a table advises is an option of `correct`, too: with it, or with a profile that says the same,
    the games are corrected.
    """
    table = tmp_path / "fixed.csv"
    table.write_text("Nr.;Datum;Sieger;2.;Halle\ng-2;02.03.2010;cleo;ben/anna;typo\n", encoding="utf-8")
    profile = tmp_path / "club.toml"
    profile.write_text('dates = "dmy"\nties = "/"\n[columns]\nHalle = ""\n[set]\ngame = "galactic-magnate"\n')
    correct = ("correct", "--file", table, "--reason", "r", "--zone", "UTC")
    options = ("--set", "game=galactic-magnate", "--map", "Halle=", "--dates", "dmy", "--ties", "/")

    refused = ratings(*correct, db=one_db).stderr
    corrected = told(ratings, one_db, *correct, *options, "--dry-run")
    by_profile = told(ratings, one_db, *correct, "--profile", profile, "--dry-run")

    assert "--set game=" not in refused  # which is that of the recorded game
    assert "--map 'Halle='" in refused
    assert {one["player"] for one in corrected["changes"]} == {"anna", "ben", "cleo", "dora"}
    assert by_profile["changes"] == corrected["changes"]
    without = ratings("correct", "g-2", "cleo", "ben", "--reason", "r", "--map", "A=player", db=one_db)
    assert (without.exit_code, "go with --file" in without.stderr) == (2, True)
    profile.write_text('dates = "summer"\n')
    wrong = ratings(*correct, "--profile", profile, db=one_db)
    assert (wrong.exit_code, "1: bad-profile: dates: 'summer' is not one of" in wrong.stderr) == (1, True)

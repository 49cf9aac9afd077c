"""`import --preview`: how a file is understood, before anything of it is recorded."""

import hashlib
import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import Ratings, head
from rich.cells import cell_len
from sheet_files import ods, xlsx
from sheets_synced import a_club_of_catan
from terminals import run_on_terminal, type_answers

SET = ("--set", "game=catan")

GERMAN = """\
Winterrunde;;;;
;;;;
Datum;Sieger;2.;3.;Bemerkung
22.11.2024;Jürgen;Zoë;Ben;lang
23.11.2024;Zoë;Jürgen/Ben;;
Datum;Sieger;2.;3.;Bemerkung
24.11.2024;Ben;Ümit;;
Summe;3;;;
"""


def with_a_game(ratings: Ratings, url: str) -> None:
    """Make a ledger for catan, at home in Berlin, with a game of Anna, Ben and Cleo."""
    a_club_of_catan(ratings, url)
    table = "game_id,occurred_at,game,1st,2nd,3rd\ng-1,2024-11-20,catan,Johanna,Ben,Cleo\n"
    assert ratings("import", "-", db=url, input=table).exit_code == 0


pytestmark = pytest.mark.ledger(make=with_a_game)


def told(ratings: Ratings, db: str, file: object, *options: object, code: int = 0) -> dict[str, Any]:
    """What a preview tells as JSON; the head stays where it is."""
    before = head(ratings, db)
    done = ratings("import", file, "--preview", "--format", "json", *options, db=db)
    assert done.exit_code == code, done
    assert head(ratings, db) == before
    return dict(json.loads(done.stdout))


def results(found: dict[str, Any]) -> list[str]:
    """The first games of the first file."""
    return [one["result"] for one in found["preview"]["files"][0]["first_games"]]


@pytest.mark.slow_cases
def test_table_is_shown_as_it_is_understood(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Of a sheet with all that sheets have, one sees what was read and left out, the games, who is new, the ladders."""
    sheet = tmp_path / "winter.csv"
    sheet.write_text(GERMAN, encoding="cp1252")
    before = head(ratings, db)

    done = ratings("import", sheet, *SET, "--map", "Bemerkung=", "--ties", "/", "--preview", db=db)

    assert (done.exit_code, done.stderr) == (0, ""), done
    assert done.stdout == (
        f"{sheet}\n"
        "read as   a row per game, a column per place; cells separated by semicolons; cp1252; header in line 3\n"
        "columns   Datum = occurred_at, Sieger = 1st, 2. = 2nd, 3. = 3rd\n"
        "dates     day/month/year, from 22.11.2024 in line 4\n"
        "games     without numbers of their own; numbered by day, such as 2024-11-22-1\n"
        "skipped   line 1 above the header; line 6, the header again; line 8, 'Summe'; 1 blank line; column Bemerkung\n"
        "\n"
        "line  played (Berlin)  result\n"
        "   4  2024-11-22       1 Jürgen, 2 Zoë, 3 Ben\n"
        "   5  2024-11-23       1 Zoë, 2 Ben, 2 Jürgen\n"
        "   7  2024-11-24       1 Ben, 2 Ümit\n"
        "\n"
        "3 games of catan, 2024-11-22 to 2024-11-24, 1 with a tie, 4 players\n"
        "3 new players: Jürgen, Zoë, Ümit\n"
        "\n"
        "3 would be appended; the head is 4.\n"
        "\n"
        "elo-catan/2\n"
        "player  after   rank\n"
        "Ben      1016  - → 1\n"
        "Ümit      984  - → 2\n"
    ) + done.stdout.partition("Ümit      984  - → 2\n")[2]  # fmt: skip
    assert "\nelo-catan\n" in done.stdout
    assert head(ratings, db) == before


LAYOUTS = {
    "rows": ("Datum;Spieler;Platz\n22.11.24 20:05;Anna;1\n;Ben;2\n", ["1 Anna, 2 Ben"]),
    "places": ("Date,Winner,2nd\n2024-11-22,Anna,Ben\n", ["1 Anna, 2 Ben"]),
    "player-places": ("Date,Anna,Ben,Dora\n2024-11-22,2,1,\n2024-11-23,1,,2\n", ["1 Ben, 2 Anna", "1 Anna, 2 Dora"]),
    "player-scores": ("Datum;Anna;Ben\n22.11.2024;9,5;10\n", ["1 Ben (10), 2 Anna (9.5)"]),
    "pair": ("Date,White,Black,Result\n2024-11-22,Anna,Ben,½-½\n", ["1 Anna, 1 Ben"]),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_are_named(layout: str, one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Each layout is named, and shows its games with the places or scores that were read."""
    content, expected = LAYOUTS[layout]
    sheet = tmp_path / "games.csv"
    sheet.write_text(content, encoding="utf-8")

    found = told(ratings, one_db, sheet, *SET, "--new-names", "accept")

    (file,) = found["preview"]["files"]
    assert (file["table"]["layout"], results(found)) == (layout, expected)
    assert found["preview"]["ties"] == (layout == "pair")


def test_usual_form_is_shown_alike(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A table of the usual form, which is read line by line, tells the same: in the end also its blank lines."""
    sheet = tmp_path / "games.csv"
    sheet.write_text("\ngame_id,occurred_at,game,Note,player,place\ng-2,2024-11-22,catan,,Cleo,1\n\n,,,,,\n"
                     "g-2,2024-11-22,catan,late,Ben,2\n", encoding="utf-8")  # fmt: skip

    found = told(ratings, one_db, sheet, "--map", "Note=")

    (file,) = found["preview"]["files"]
    assert results(found) == ["1 Cleo, 2 Ben"]
    assert file["table"] == {
        "layout": "rows", "header": 2, "blank": 3, "dropped": ["Note"], "delimiter": ",", "encoding": "utf-8",
        "columns": {name: name for name in ("game_id", "occurred_at", "game", "player", "place")}, "above": [],
        "repeated": [], "totals": [], "gameless": [], "hidden": [], "dates": None, "dates_from": None,
        "is_numbered": False, "sheet": None, "other_sheets": [], "unknown": [],
    }  # fmt: skip


def test_spreadsheet_tells_sheets_and_hidden_rows(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Of a spreadsheet one sees which sheet is read and which are not, and that hidden rows are read."""
    pytest.importorskip("python_calamine")
    rows = [["Date", "1st", "2nd"], [date(2024, 11, 22), "Ben", "Cleo"], [], [date(2024, 11, 23), "Cleo", "Ben"]]
    book, other = tmp_path / "club.xlsx", tmp_path / "club.ods"
    book.write_bytes(xlsx(rows, ("Members", "hidden", [["Name"], ["Ben"]]), hidden_rows=[4]))
    other.write_bytes(ods(rows))

    done = ratings("import", book, *SET, "--preview", db=one_db)
    found = told(ratings, one_db, other, *SET)

    assert "read as   a row per game, a column per place; sheet Results; header in line 1\n" in done.stdout
    assert "skipped   1 blank line; sheet Members\nhidden    line 4, read like the others\n" in done.stdout
    assert (found["preview"]["files"][0]["table"]["blank"], results(found)) == (1, ["1 Ben, 2 Cleo", "1 Cleo, 2 Ben"])


@pytest.mark.slow_cases
def test_close_names_are_told_and_counted_as_new(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A name close to another is neither refused nor asked about: one sees who may be meant."""
    sheet = tmp_path / "games.csv"
    sheet.write_text("Date,Winner,2nd\n2024-11-22,Johana,Ben\n", encoding="utf-8")

    done = ratings("import", sheet, *SET, "--preview", db=db)
    found = told(ratings, db, sheet, *SET)
    accepted = ratings("import", sheet, *SET, "--preview", "--new-names", "accept", db=db)

    assert (done.exit_code, done.stderr) == (0, "")
    question = "'Johana' (line 2): did you mean 'Johanna', 1 game?\n"
    assert f"1 new name close to others, which the import asks about:\n  {question}" in done.stdout
    assert f"1 new name close to others:\n  {question}" in accepted.stdout
    decided = " once 1 close name is decided (--aliases FILE, --new-names accept);"
    assert (f"1 would be appended{decided}" in done.stdout, decided in accepted.stdout) == (True, False)
    assert (found["preview"]["undecided"], found["would_append"], found["rejected"]) == (["Johana"], 1, [])
    assert {one["player"] for one in found["changes"]} >= {"Johana", "Ben"}
    refused = ratings("import", sheet, *SET, db=db)
    assert refused.exit_code == 1
    assert "close-name" in refused.stderr


def test_close_names_are_counted_as_an_import_counts_them(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A preview and the import that refuses tell the same number of close names, however many games have them, and
    without a cell of two players, which is refused by both.
    """
    sheet = tmp_path / "games.csv"
    sheet.write_text(
        "Date,Winner,2nd\n2024-11-22,Johana,Ben\n2024-11-23,Johana,ben\n2024-11-24,Dora,Johana\n"
        "2024-11-25,Dora & Emil,ben\n2024-11-26,Dora & Emill,ben\n", encoding="utf-8",
    )  # fmt: skip

    previewed = ratings("import", sheet, *SET, "--preview", db=one_db)
    refused = ratings("import", sheet, *SET, db=one_db)

    assert "\n2 new names close to others, which the import asks about:\n  'Johana' (line 2)" in previewed.stdout
    assert refused.stderr.count("close-name") == 2
    assert refused.stderr.endswith("\nnote: 2 new names close to others\n")


@pytest.mark.slow
def test_nobody_is_asked_at_a_terminal(one_db: str, tmp_path: Path) -> None:
    """At a terminal, too, a preview asks nothing, and what it shows fits into 80 columns."""
    sheet = tmp_path / "games.csv"
    sheet.write_text(
        "Datum;Uhrzeit;Johana Müller-Lüdenscheidt;美咲の母;Ольга Иванова;Bemerkung\n"
        + "".join(f"{day}.10.2024;20:05;7;{day};9;lang\n" for day in range(1, 29)), encoding="utf-8",
    )  # fmt: skip
    options = ["import", str(sheet), *SET, "--map", "Bemerkung=", "--preview"]

    code, _, shown = type_answers(["--db", one_db, *options], [], piped=False)
    whole, _ = run_on_terminal("--db", one_db, *options, piped=True)

    assert code == 0
    shown = shown[shown.index(str(sheet)):].replace("\r", "")  # fmt: skip
    assert "... and 18 more games" in shown
    assert max(cell_len(line) for line in shown.splitlines()[1:] if "\x1b" not in line) <= 80
    assert "1 Ольга Иванова (9), 2 Johana Müller-Lüdenscheidt (7), 3 美咲の母 (1)" in whole


def test_all_problems_are_listed_as_in_an_import(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A file with mistakes shows what could be understood, and all that an import refuses, with the same exit code."""
    sheet = tmp_path / "games.csv"
    sheet.write_text(
        "Date,Winner,2nd\n2024-11-22,Dora,Ben/Cleo\n2024-11-23,Ben,Ben\n2024-11-24,Cleo,Dora\nsoon,Ben,Cleo\n",
        encoding="utf-8",
    )

    found = told(ratings, db, sheet, *SET, code=1)
    refused = json.loads(ratings("import", sheet, *SET, "--format", "json", db=db).stdout)

    assert found["rejected"] == refused["rejected"]
    assert [(one["line"], one["code"]) for one in found["rejected"]] == [
        (2, "tied-players"), (3, "player-twice"), (5, "bad-time"),
    ]  # fmt: skip
    assert (results(found), found["preview"]["games"], found["would_append"]) == (["1 Cleo, 2 Dora"], 1, 0)


@pytest.mark.slow_cases
def test_unknown_columns_hide_nothing(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A column that is not known is refused, and beside it one sees the games and all else that is wrong with them."""
    sheet = tmp_path / "games.csv"
    sheet.write_text("Date,Winner,2nd,Mood\n2024-11-22,Ben,Cleo,good\n2024-11-23,Ben,Dora/Cleo,\n", encoding="utf-8")

    found = told(ratings, db, sheet, *SET, code=1)
    done = ratings("import", sheet, *SET, "--preview", db=db)
    dropped = told(ratings, db, sheet, *SET, "--map", "Mood=", "--ties", "/")

    assert [(one["line"], one["code"]) for one in found["rejected"]] == [(1, "unknown-column"), (3, "tied-players")]
    assert (results(found), found["would_append"]) == (["1 Ben, 2 Cleo"], 0)
    (table, later) = (one["preview"]["files"][0]["table"] for one in (found, dropped))
    assert (table["unknown"], table["dropped"], later["unknown"], later["dropped"]) == (["Mood"], [], [], ["Mood"])
    assert "\nunknown   column Mood, not read\n" in done.stdout
    assert "unknown-column: unknown column: 'Mood'; rename a column with --map" in done.stderr


def test_unreadable_table_says_what_was_seen(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Of a table that lacks a column one still sees where the header was found, and what was left out."""
    sheet = tmp_path / "games.csv"
    sheet.write_text("Our games,,\nDate,Winner,Mood\n2024-11-22,Ben,good\n", encoding="utf-8")

    done = ratings("import", sheet, "--preview", db=one_db)

    assert done.exit_code == 1
    assert done.stdout == (
        f"{sheet}\n"
        "read as   a row per game, a column per place; cells separated by commas; utf-8; header in line 2\n"
        "columns   Date = occurred_at, Winner = 1st\n"
        "games     without numbers of their own; numbered by day\n"
        "skipped   line 1 above the header\n"
        "unknown   column Mood, not read\n"
        "\n"
        "0 would be appended, 2 refused; the head is 4.\n"
    )
    assert "unknown-column: unknown column: 'Mood'" in done.stderr
    assert "too-few-participants" in done.stderr


def test_preview_tells_what_a_dry_run_does(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """What is there already, what would be appended and what it changes is told as by a dry run."""
    sheet = tmp_path / "games.csv"
    sheet.write_text(
        "game_id,occurred_at,game,1st,2nd,3rd\ng-1,2024-11-20,catan,Johanna,Ben,Cleo\ng-2,2024-11-21,catan,Cleo,Ben,\n",
        encoding="utf-8",
    )

    found = told(ratings, db, sheet)
    dry = json.loads(ratings("import", sheet, "--dry-run", "--format", "json", db=db).stdout)

    preview = found.pop("preview")
    assert found == dry
    assert (found["existing"], found["would_append"], preview["games"], preview["players"]) == (1, 1, 2, 3)
    assert found["changes"]


def test_nothing_is_written(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Neither the ledger nor a file of refusals is written, also if what is valid would be taken."""
    sheet = tmp_path / "games.csv"
    sheet.write_text("Date,Winner,2nd\n2024-11-22,Cleo,Ben\nsoon,Ben,Cleo\n", encoding="utf-8")
    before = hashlib.sha256(Path(one_db).read_bytes()).hexdigest()

    found = told(ratings, one_db, sheet, *SET, "--keep-going", code=1)

    assert (found["would_append"], len(found["rejected"])) == (1, 1)
    assert hashlib.sha256(Path(one_db).read_bytes()).hexdigest() == before
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".csv", ".db"]


def test_json_lines_and_several_files(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Events of JSON Lines count by type, games of several kinds by name, and each file has its own games."""
    lines, sheet = tmp_path / "games.jsonl", tmp_path / "games.csv"
    game = {"game_id": "g-2", "game": "chess", "league": "L1", "participants": [
        {"player": "Ben", "place": 1}, {"player": "Johana", "place": 2, "status": "abandoned"}]}  # fmt: skip
    events = [("game.recorded", game), ("player.registered", {"player": "Dora"})]
    lines.write_text("".join(
        json.dumps({"type": name, "occurred_at": "2024-11-21T12:00:00Z", "data": data}) + "\n" for name, data in events
    ), encoding="utf-8")  # fmt: skip
    sheet.write_text("Date,Winner,2nd\n2024-11-22,Cleo,Ben\n", encoding="utf-8")

    done = ratings("import", lines, sheet, *SET, "--preview", db=one_db)

    assert done.exit_code == 0
    assert f"{lines}\nread as   events, not a table\n" in done.stdout
    assert "   1  chess  g-2  2024-11-21 13:00  1 Ben, 2 Johana (abandoned) [league L1]\n" in done.stdout
    assert "   2  catan  2024-11-22       1 Cleo, 2 Ben\n" in done.stdout
    assert "2 games (1 chess, 1 catan), 2024-11-21 to 2024-11-22, 3 players\n" in done.stdout
    assert "other events: 1 player.registered\n" in done.stdout
    # a program's names are told, and never asked about
    assert "1 new name close to others:\n" in done.stdout
    assert "note: on no ladder, such as g-2" in done.stderr


@pytest.mark.slow
def test_long_files_are_counted_whole(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A file that is so long that another process reads it is counted to its end."""
    sheet = tmp_path / "games.csv"
    rows = (f"c-{number},2024-11-{number % 28 + 1:02d},catan,Ben,Cleo\n" for number in range(4_200))
    sheet.write_text("game_id,occurred_at,game,1st,2nd\n" + "".join(rows) + "\nlast,2025-01-01,catan,Ben=Dora,\n",
                     encoding="utf-8")  # fmt: skip

    preview = told(ratings, one_db, sheet)["preview"]

    assert (preview["games"], preview["players"], preview["ties"]) == (4_201, 3, 1)
    assert (preview["first_tie"]["line"], preview["first_tie"]["result"]) == (4_203, "1 Ben, 1 Dora")
    assert preview["last_played"] == "2025-01-01T11:00:00.000000Z"
    assert (preview["files"][0]["table"]["blank"], len(preview["files"][0]["first_games"])) == (1, 10)


def test_aliases_profile_and_zone_are_seen(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Games are shown under the names that aliases give, and at the times of the zone that they are read in."""
    sheet, profile = tmp_path / "games.csv", tmp_path / "club.toml"
    sheet.write_text("Date,Winner,2nd\n11/22/24 8:05 PM,Hanna,Ben\n", encoding="utf-8")
    profile.write_text('zone = "America/New_York"\n[set]\ngame = "catan"\n[aliases]\nHanna = "Johanna"\n', "utf-8")

    done = ratings("import", sheet, "--profile", profile, "--preview", db=one_db)

    assert "dates     month/day/year, from 11/22/24 8:05 PM in line 2\n" in done.stdout
    assert "note      aliases: Hanna = Johanna\n" in done.stdout
    assert "   2  2024-11-22 20:05   1 Johanna, 2 Ben\n" in done.stdout
    assert "played (New York)" in done.stdout


def test_unusual_games_come_first(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Forfeits, games without sets and close names stand above the first games, wherever they are in the file."""
    rows = [f"2024-11-{day:02},Cleo,Ben,3:0,11:5,11:6,11:7" for day in range(1, 15)]
    rows[11:13] = ["2024-11-12,Cleo,Ben,+:-,,,", "2024-11-13,Cleo,Ben,3:0,,,"]
    rows.append("2024-11-15,Cleo,Johana,3:0,11:5,11:6,11:7")
    rows += [f"2024-12-{day:02},Cleo,Ben,+:-,,," for day in range(1, 6)]
    sheet = tmp_path / "games.csv"
    sheet.write_text("\n".join(["Date,Player 1,Player 2,Result,S1,S2,S3", *rows]), encoding="utf-8")

    (file,) = told(ratings, one_db, sheet, *SET)["preview"]["files"]
    shown = ratings("import", sheet, *SET, "--preview", db=one_db).stdout

    assert [(game["line"], game["why"]) for game in file["unusual"]] == [
        (13, ["forfeit"]),
        (14, ["no sets"]),
        (16, ["close name 'Johana'"]),
        *((line, ["forfeit"]) for line in range(17, 21)),
    ]
    assert file["unusual_by_kind"] == {"forfeit": 6, "no sets": 1}
    block, _, games = shown.partition("\nPlease check:\n")[2].partition("\n\n")
    assert block.splitlines()[0].split() == ["line", "played", "(Berlin)", "because", "result"]
    assert block.endswith("\n... and 1 more: forfeit")
    assert games.startswith("line  played (Berlin)  result\n")


def test_usual_games_are_not_unusual(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Where no game has sets, or all are unrated, nothing is said of that."""
    sheet = tmp_path / "games.csv"
    sheet.write_text("Date,Winner,Loser,rated\n" + "2024-11-22,Cleo,Ben,no\n" * 3, encoding="utf-8")
    (file,) = told(ratings, one_db, sheet, *SET)["preview"]["files"]
    assert (file["games"], file["unusual"], file["unusual_by_kind"]) == (3, [], {})


@pytest.mark.parametrize("more", [("--sync",), ("--follow",), ("--restore",)])
def test_preview_only_shows(more: tuple[str, ...], one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """What writes a profile, corrects, restores or follows is no preview."""
    sheet = tmp_path / "games.csv"
    sheet.write_text("Date,Winner,2nd\n2024-11-22,Cleo,Ben\n", encoding="utf-8")
    done = ratings("import", sheet, *SET, "--preview", *more, db=one_db)
    assert done.exit_code == 2
    assert "--preview" in done.stderr

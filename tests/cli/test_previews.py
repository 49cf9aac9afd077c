"""`import --preview`: how a file is read, before any of it is recorded."""

import hashlib
import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import Ratings, read_head
from rich.cells import cell_len
from sheet_files import ods, xlsx
from sync_helpers import create_catan_ledger
from terminals import run_on_terminal, type_answers

GAME_OPTION = ("--set", "game=catan")

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


def create_with_game(ratings: Ratings, url: str) -> None:
    """Create a ledger for catan with the home zone Berlin and a game of Johanna, Ben and Cleo."""
    create_catan_ledger(ratings, url)
    table = "game_id,occurred_at,game,1st,2nd,3rd\ng-1,2024-11-20,catan,Johanna,Ben,Cleo\n"
    assert ratings("import", "-", db=url, input=table).exit_code == 0


pytestmark = pytest.mark.ledger(make=create_with_game)


def preview_file(ratings: Ratings, db: str, file: object, *options: object, code: int = 0) -> dict[str, Any]:
    """Preview a file and return the JSON, and assert that the head stays the same."""
    before = read_head(ratings, db)
    result = ratings("import", file, "--preview", "--format", "json", *options, db=db)
    assert result.exit_code == code, result
    assert read_head(ratings, db) == before
    return dict(json.loads(result.stdout))


def list_results(report: dict[str, Any]) -> list[str]:
    """Return the results of the first games of the first file."""
    return [game["result"] for game in report["preview"]["files"][0]["first_games"]]


@pytest.mark.slow_cases
def test_preview_shows_how_a_table_is_read(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """The preview of a table shows its layout, the skipped parts, the games, the new players and the changes of
    ladders."""
    sheet = tmp_path / "winter.csv"
    sheet.write_text(GERMAN, encoding="cp1252")
    before = read_head(ratings, db)

    result = ratings("import", sheet, *GAME_OPTION, "--map", "Bemerkung=", "--ties", "/", "--preview", db=db)

    assert (result.exit_code, result.stderr) == (0, ""), result
    assert (
        result.stdout
        == (
            f"{sheet}\n"
            "read as   a row per game, a column per place; cells separated by semicolons; cp1252; header in line 3\n"
            "columns   Datum = occurred_at, Sieger = 1st, 2. = 2nd, 3. = 3rd\n"
            "dates     day/month/year, from 22.11.2024 in line 4\n"
            "games     without ids of their own; numbered by day, such as 2024-11-22-1\n"
            "skipped   line 1 above the header; line 6, the header again; line 8, 'Summe'; 1 blank line; "
            "column Bemerkung\n"
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
        )
        + result.stdout.partition("Ümit      984  - → 2\n")[2]
    )
    assert "\nelo-catan\n" in result.stdout
    assert read_head(ratings, db) == before


LAYOUTS = {
    "rows": ("Datum;Spieler;Platz\n22.11.24 20:05;Anna;1\n;Ben;2\n", ["1 Anna, 2 Ben"]),
    "places": ("Date,Winner,2nd\n2024-11-22,Anna,Ben\n", ["1 Anna, 2 Ben"]),
    "player-places": ("Date,Anna,Ben,Dora\n2024-11-22,2,1,\n2024-11-23,1,,2\n", ["1 Ben, 2 Anna", "1 Anna, 2 Dora"]),
    "player-scores": ("Datum;Anna;Ben\n22.11.2024;9,5;10\n", ["1 Ben (10), 2 Anna (9.5)"]),
    "pair": ("Date,White,Black,Result\n2024-11-22,Anna,Ben,½-½\n", ["1 Anna, 1 Ben"]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_preview_names_the_layout(layout: str, one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """The preview names each layout and shows its games with the places or scores that were read."""
    content, expected = LAYOUTS[layout]
    sheet = tmp_path / "games.csv"
    sheet.write_text(content, encoding="utf-8")

    preview = preview_file(ratings, one_db, sheet, *GAME_OPTION, "--new-names", "accept")

    (file,) = preview["preview"]["files"]
    assert (file["table"]["layout"], list_results(preview)) == (layout, expected)
    assert preview["preview"]["ties"] == (layout == "pair")


def test_preview_of_a_plain_table_has_the_same_members(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """The preview of a plain table, which is read line by line, has the same members as that of other tables, and
    counts blank lines to the end."""
    sheet = tmp_path / "games.csv"
    sheet.write_text(
        "\ngame_id,occurred_at,game,Note,player,place\ng-2,2024-11-22,catan,,Cleo,1\n\n,,,,,\n"
        "g-2,2024-11-22,catan,late,Ben,2\n",
        encoding="utf-8",
    )

    preview = preview_file(ratings, one_db, sheet, "--map", "Note=")

    (file,) = preview["preview"]["files"]
    assert list_results(preview) == ["1 Cleo, 2 Ben"]
    assert file["table"] == {
        "layout": "rows", "header": 2, "blank": 3, "dropped": ["Note"], "delimiter": ",", "encoding": "utf-8",
        "columns": {name: name for name in ("game_id", "occurred_at", "game", "player", "place")}, "above": [],
        "repeated": [], "totals": [], "gameless": [], "hidden": [], "dates": None, "dates_from": None,
        "is_numbered": False, "sheet": None, "other_sheets": [], "unknown": [],
    }  # fmt: skip


def test_preview_of_a_spreadsheet_names_sheets_and_hidden_rows(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """The preview of a spreadsheet names the sheet read, the other sheets, and the hidden rows."""
    pytest.importorskip("python_calamine")
    rows = [["Date", "1st", "2nd"], [date(2024, 11, 22), "Ben", "Cleo"], [], [date(2024, 11, 23), "Cleo", "Ben"]]
    book, document = tmp_path / "club.xlsx", tmp_path / "club.ods"
    book.write_bytes(xlsx(rows, ("Members", "hidden", [["Name"], ["Ben"]]), hidden_rows=[4]))
    document.write_bytes(ods(rows))

    result = ratings("import", book, *GAME_OPTION, "--preview", db=one_db)
    preview = preview_file(ratings, one_db, document, *GAME_OPTION)

    assert "read as   a row per game, a column per place; sheet Results; header in line 1\n" in result.stdout
    assert "skipped   1 blank line; sheet Members\nhidden    line 4, read like the others\n" in result.stdout
    assert (preview["preview"]["files"][0]["table"]["blank"], list_results(preview)) == (
        1,
        ["1 Ben, 2 Cleo", "1 Cleo, 2 Ben"],
    )


@pytest.mark.slow_cases
def test_preview_lists_close_names_as_new_players(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A close name is neither refused nor asked about in a preview, but listed with the known player."""
    sheet = tmp_path / "games.csv"
    sheet.write_text("Date,Winner,2nd\n2024-11-22,Johana,Ben\n", encoding="utf-8")

    result = ratings("import", sheet, *GAME_OPTION, "--preview", db=db)
    preview = preview_file(ratings, db, sheet, *GAME_OPTION)
    accepted = ratings("import", sheet, *GAME_OPTION, "--preview", "--new-names", "accept", db=db)

    assert (result.exit_code, result.stderr) == (0, "")
    question = "'Johana' (line 2): did you mean 'Johanna', 1 game?\n"
    assert f"1 new name close to others, which the import asks about:\n  {question}" in result.stdout
    assert f"1 new name close to others:\n  {question}" in accepted.stdout
    condition = " once 1 close name is decided (--aliases FILE, --new-names accept);"
    assert (f"1 would be appended{condition}" in result.stdout, condition in accepted.stdout) == (True, False)
    assert (preview["preview"]["undecided"], preview["would_append"], preview["rejected"]) == (["Johana"], 1, [])
    assert {change["player"] for change in preview["changes"]} >= {"Johana", "Ben"}
    refused = ratings("import", sheet, *GAME_OPTION, db=db)
    assert refused.exit_code == 1
    assert "close-name" in refused.stderr


def test_preview_and_import_count_the_same_close_names(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A preview and the refused import report the same number of close names, not counting cells with two players."""
    sheet = tmp_path / "games.csv"
    sheet.write_text(
        "Date,Winner,2nd\n2024-11-22,Johana,Ben\n2024-11-23,Johana,ben\n2024-11-24,Dora,Johana\n"
        "2024-11-25,Dora & Emil,ben\n2024-11-26,Dora & Emill,ben\n",
        encoding="utf-8",
    )

    previewed = ratings("import", sheet, *GAME_OPTION, "--preview", db=one_db)
    refused = ratings("import", sheet, *GAME_OPTION, db=one_db)

    assert "\n2 new names close to others, which the import asks about:\n  'Johana' (line 2)" in previewed.stdout
    assert refused.stderr.count("close-name") == 2
    assert refused.stderr.endswith("\nnote: 2 new names close to others\n")


@pytest.mark.slow
def test_preview_asks_no_questions_at_a_terminal(one_db: str, tmp_path: Path) -> None:
    """At a terminal a preview asks nothing, and its output fits into 80 columns."""
    sheet = tmp_path / "games.csv"
    sheet.write_text(
        "Datum;Uhrzeit;Johana Müller-Lüdenscheidt;美咲の母;Ольга Иванова;Bemerkung\n"
        + "".join(f"{day}.10.2024;20:05;7;{day};9;lang\n" for day in range(1, 29)),
        encoding="utf-8",
    )
    options = ["import", str(sheet), *GAME_OPTION, "--map", "Bemerkung=", "--preview"]

    code, _, terminal_text = type_answers(["--db", one_db, *options], [], piped=False)
    piped_text, _ = run_on_terminal("--db", one_db, *options, piped=True)

    assert code == 0
    terminal_text = terminal_text[terminal_text.index(str(sheet)) :].replace("\r", "")
    assert "... and 18 more games" in terminal_text
    assert max(cell_len(line) for line in terminal_text.splitlines()[1:] if "\x1b" not in line) <= 80
    assert "1 Ольга Иванова (9), 2 Johana Müller-Lüdenscheidt (7), 3 美咲の母 (1)" in piped_text


def test_preview_lists_all_errors_of_the_import(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """The preview of a file with errors shows the valid games and all rejections of the import, with the same exit
    code."""
    sheet = tmp_path / "games.csv"
    sheet.write_text(
        "Date,Winner,2nd\n2024-11-22,Dora,Ben/Cleo\n2024-11-23,Ben,Ben\n2024-11-24,Cleo,Dora\nsoon,Ben,Cleo\n",
        encoding="utf-8",
    )

    preview = preview_file(ratings, db, sheet, *GAME_OPTION, code=1)
    import_report = json.loads(ratings("import", sheet, *GAME_OPTION, "--format", "json", db=db).stdout)

    assert preview["rejected"] == import_report["rejected"]
    assert [(rejection["line"], rejection["code"]) for rejection in preview["rejected"]] == [
        (2, "tied-players"),
        (3, "player-twice"),
        (5, "bad-time"),
    ]
    assert (list_results(preview), preview["preview"]["games"], preview["would_append"]) == (["1 Cleo, 2 Dora"], 1, 0)


@pytest.mark.slow_cases
def test_preview_with_unknown_column_shows_the_games(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A preview refuses an unknown column and still shows the games and their other errors."""
    sheet = tmp_path / "games.csv"
    sheet.write_text("Date,Winner,2nd,Mood\n2024-11-22,Ben,Cleo,good\n2024-11-23,Ben,Dora/Cleo,\n", encoding="utf-8")

    preview = preview_file(ratings, db, sheet, *GAME_OPTION, code=1)
    result = ratings("import", sheet, *GAME_OPTION, "--preview", db=db)
    preview_without_column = preview_file(ratings, db, sheet, *GAME_OPTION, "--map", "Mood=", "--ties", "/")

    assert [(rejection["line"], rejection["code"]) for rejection in preview["rejected"]] == [
        (1, "unknown-column"),
        (3, "tied-players"),
    ]
    assert (list_results(preview), preview["would_append"]) == (["1 Ben, 2 Cleo"], 0)
    (table, later_table) = (report["preview"]["files"][0]["table"] for report in (preview, preview_without_column))
    assert (table["unknown"], table["dropped"], later_table["unknown"], later_table["dropped"]) == (
        ["Mood"],
        [],
        [],
        ["Mood"],
    )
    assert "\nunknown   column Mood, not read\n" in result.stdout
    assert "unknown-column: unknown column: 'Mood'; rename a column with --map" in result.stderr


def test_preview_of_unreadable_table_shows_the_header(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """The preview of a table in which no game can be read shows the line of the header and the skipped parts."""
    sheet = tmp_path / "games.csv"
    sheet.write_text("Our games,,\nDate,Winner,Mood\n2024-11-22,Ben,good\n", encoding="utf-8")

    result = ratings("import", sheet, "--preview", db=one_db)

    assert result.exit_code == 1
    assert result.stdout == (
        f"{sheet}\n"
        "read as   a row per game, a column per place; cells separated by commas; utf-8; header in line 2\n"
        "columns   Date = occurred_at, Winner = 1st\n"
        "games     without ids of their own; numbered by day\n"
        "skipped   line 1 above the header\n"
        "unknown   column Mood, not read\n"
        "\n"
        "0 would be appended, 2 refused; the head is 4.\n"
    )
    assert "unknown-column: unknown column: 'Mood'" in result.stderr
    assert "too-few-participants" in result.stderr


def test_preview_agrees_with_dry_run(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A preview reports the same existing events, appended events and changes as a dry run."""
    sheet = tmp_path / "games.csv"
    sheet.write_text(
        "game_id,occurred_at,game,1st,2nd,3rd\ng-1,2024-11-20,catan,Johanna,Ben,Cleo\ng-2,2024-11-21,catan,Cleo,Ben,\n",
        encoding="utf-8",
    )

    preview_report = preview_file(ratings, db, sheet)
    dry_run_report = json.loads(ratings("import", sheet, "--dry-run", "--format", "json", db=db).stdout)

    preview = preview_report.pop("preview")
    assert preview_report == dry_run_report
    assert (preview_report["existing"], preview_report["would_append"], preview["games"], preview["players"]) == (
        1,
        1,
        2,
        3,
    )
    assert preview_report["changes"]


def test_preview_writes_nothing(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A preview writes neither to the ledger nor a file of rejects, even with --keep-going."""
    sheet = tmp_path / "games.csv"
    sheet.write_text("Date,Winner,2nd\n2024-11-22,Cleo,Ben\nsoon,Ben,Cleo\n", encoding="utf-8")
    before = hashlib.sha256(Path(one_db).read_bytes()).hexdigest()

    preview = preview_file(ratings, one_db, sheet, *GAME_OPTION, "--keep-going", code=1)

    assert (preview["would_append"], len(preview["rejected"])) == (1, 1)
    assert hashlib.sha256(Path(one_db).read_bytes()).hexdigest() == before
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".csv", ".db"]


def test_preview_counts_json_lines_and_several_files(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A preview counts events of JSON Lines by type and games by name, and shows each file's own games."""
    lines, sheet = tmp_path / "games.jsonl", tmp_path / "games.csv"
    game = {
        "game_id": "g-2",
        "game": "chess",
        "league": "L1",
        "participants": [{"player": "Ben", "place": 1}, {"player": "Johana", "place": 2, "status": "abandoned"}],
    }
    events = [("game.recorded", game), ("player.registered", {"player": "Dora"})]
    lines.write_text(
        "".join(
            json.dumps({"type": name, "occurred_at": "2024-11-21T12:00:00Z", "data": data}) + "\n"
            for name, data in events
        ),
        encoding="utf-8",
    )
    sheet.write_text("Date,Winner,2nd\n2024-11-22,Cleo,Ben\n", encoding="utf-8")

    result = ratings("import", lines, sheet, *GAME_OPTION, "--preview", db=one_db)

    assert result.exit_code == 0
    assert f"{lines}\nread as   events, not a table\n" in result.stdout
    assert "   1  chess  g-2  2024-11-21 13:00  1 Ben, 2 Johana (abandoned) [league L1]\n" in result.stdout
    assert "   2  catan  2024-11-22       1 Cleo, 2 Ben\n" in result.stdout
    assert "2 games (1 chess, 1 catan), 2024-11-21 to 2024-11-22, 3 players\n" in result.stdout
    assert "other events: 1 player.registered\n" in result.stdout
    # close names in JSON Lines are listed, but not asked about
    assert "1 new name close to others:\n" in result.stdout
    assert "note: g-2 is on no ladder" in result.stderr


@pytest.mark.slow
def test_preview_counts_long_files_to_the_end(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A file so long that another process reads it is counted to its end."""
    sheet = tmp_path / "games.csv"
    rows = (f"c-{number},2024-11-{number % 28 + 1:02d},catan,Ben,Cleo\n" for number in range(4_200))
    sheet.write_text(
        "game_id,occurred_at,game,1st,2nd\n" + "".join(rows) + "\nlast,2025-01-01,catan,Ben=Dora,\n", encoding="utf-8"
    )

    preview = preview_file(ratings, one_db, sheet)["preview"]

    assert (preview["games"], preview["players"], preview["ties"]) == (4_201, 3, 1)
    assert (preview["first_tie"]["line"], preview["first_tie"]["result"]) == (4_203, "1 Ben, 1 Dora")
    assert preview["last_played"] == "2025-01-01T11:00:00.000000Z"
    assert (preview["files"][0]["table"]["blank"], len(preview["files"][0]["first_games"])) == (1, 10)


def test_preview_applies_aliases_profile_and_zone(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A preview shows games under the names that aliases give and in the zone of the profile."""
    sheet, profile = tmp_path / "games.csv", tmp_path / "club.toml"
    sheet.write_text("Date,Winner,2nd\n11/22/24 8:05 PM,Hanna,Ben\n", encoding="utf-8")
    profile.write_text('zone = "America/New_York"\n[set]\ngame = "catan"\n[aliases]\nHanna = "Johanna"\n', "utf-8")

    result = ratings("import", sheet, "--profile", profile, "--preview", db=one_db)

    assert "dates     month/day/year, from 11/22/24 8:05 PM in line 2\n" in result.stdout
    assert "note      aliases: Hanna = Johanna\n" in result.stdout
    assert "   2  2024-11-22 20:05   1 Johanna, 2 Ben\n" in result.stdout
    assert "played (New York)" in result.stdout


def test_preview_lists_unusual_games_first(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Forfeits, games without sets and close names are listed before the first games."""
    rows = [f"2024-11-{day:02},Cleo,Ben,3:0,11:5,11:6,11:7" for day in range(1, 15)]
    rows[11:13] = ["2024-11-12,Cleo,Ben,+:-,,,", "2024-11-13,Cleo,Ben,3:0,,,"]
    rows.append("2024-11-15,Cleo,Johana,3:0,11:5,11:6,11:7")
    rows += [f"2024-12-{day:02},Cleo,Ben,+:-,,," for day in range(1, 6)]
    sheet = tmp_path / "games.csv"
    sheet.write_text("\n".join(["Date,Player 1,Player 2,Result,S1,S2,S3", *rows]), encoding="utf-8")

    (file,) = preview_file(ratings, one_db, sheet, *GAME_OPTION)["preview"]["files"]
    stdout = ratings("import", sheet, *GAME_OPTION, "--preview", db=one_db).stdout

    assert [(game["line"], game["why"]) for game in file["unusual"]] == [
        (13, ["forfeit"]),
        (14, ["no sets"]),
        (16, ["close name 'Johana'"]),
        *((line, ["forfeit"]) for line in range(17, 21)),
    ]
    assert file["unusual_by_kind"] == {"forfeit": 6, "no sets": 1}
    block, _, games = stdout.partition("\nPlease check:\n")[2].partition("\n\n")
    assert block.splitlines()[0].split() == ["line", "played", "(Berlin)", "because", "result"]
    assert block.endswith("\n... and 1 more: forfeit")
    assert games.startswith("line  played (Berlin)  result\n")


def test_preview_lists_close_names_of_each_file(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Each file lists its first five close names, however many the files before it have."""
    typos = [["Johana", "Johannna", "Johanma", "Johamna", "Jonanna", "Jahanna"], ["Johanni"]]
    for number, names in enumerate(typos, 1):
        rows = [f"2024-1{number}-{day:02},Cleo,{name}\n" for day, name in enumerate(names, 1)]
        (tmp_path / f"{number}.csv").write_text("Date,Winner,Loser\n" + "".join(rows), encoding="utf-8")

    report = preview_file(ratings, one_db, tmp_path / "1.csv", tmp_path / "2.csv", *GAME_OPTION)

    reasons = [[reason for game in file["unusual"] for reason in game["why"]] for file in report["preview"]["files"]]
    assert reasons == [[f"close name '{name}'" for name in names[:5]] for names in typos]


def test_preview_of_usual_games_lists_none_as_unusual(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """If no game has sets and all are unrated, none is listed as unusual."""
    sheet = tmp_path / "games.csv"
    sheet.write_text("Date,Winner,Loser,rated\n" + "2024-11-22,Cleo,Ben,no\n" * 3, encoding="utf-8")
    (file,) = preview_file(ratings, one_db, sheet, *GAME_OPTION)["preview"]["files"]
    assert (file["games"], file["unusual"], file["unusual_by_kind"]) == (3, [], {})


@pytest.mark.parametrize("option", [("--incomplete",), ("--head", f"1:{'0' * 64}")], ids=lambda option: option[0])
@pytest.mark.parametrize("mode", [(), ("--follow",), ("--preview",)])
def test_head_and_incomplete_need_restore(
    option: tuple[str, ...], mode: tuple[str, ...], one_db: str, ratings: Ratings
) -> None:
    """Without --restore, --head and --incomplete are refused instead of ignored."""
    result = ratings("import", "-", *option, *mode, db=one_db, input="")
    assert (result.exit_code, "work only with --restore" in result.stderr) == (2, True), result


@pytest.mark.parametrize("option", [("--sync",), ("--follow",), ("--restore",)])
def test_preview_excludes_other_modes(option: tuple[str, ...], one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """--preview is refused together with --sync, --follow or --restore."""
    sheet = tmp_path / "games.csv"
    sheet.write_text("Date,Winner,2nd\n2024-11-22,Cleo,Ben\n", encoding="utf-8")
    result = ratings("import", sheet, *GAME_OPTION, "--preview", *option, db=one_db)
    assert result.exit_code == 2
    assert "--preview" in result.stderr

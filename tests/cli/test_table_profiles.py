"""Profiles: how a table was read, kept in a file for the next one."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import Ratings, head, read
from terminals import type_answers

JANUARY = """Vereinsabend;;;
Datum;Spieler;Platz;Bemerkung
22.01.2024;Anna;1;
22.01.2024;Johanna;2;toll
23.01.2024;Johanna;1;
23.01.2024;Anna;2;
"""
FEBRUARY = "Datum;Spieler;Platz\n05.02.2024;Anna;1\n05.02.2024;Johanna;2\n"
GIVEN = ("--set", "game=chess", "--map", "Bemerkung=")
SAID = {
    "layout": "rows", "dates": "dmy", "set": {"game": "chess"},
    "columns": {"Datum": "occurred_at", "Spieler": "player", "Platz": "place", "Bemerkung": ""},
}  # fmt: skip


def a_club(ratings: Ratings, url: str) -> None:
    """Make a ledger for chess in Berlin."""
    assert ratings("init", "--for", "chess", "--zone", "Europe/Berlin", db=url).exit_code == 0


pytestmark = pytest.mark.ledger(make=a_club)


@pytest.fixture
def club(tmp_path: Path) -> Path:
    """Where a profile goes, beside the tables of January and February."""
    (tmp_path / "january.csv").write_text(JANUARY, encoding="utf-8")
    (tmp_path / "february.csv").write_text(FEBRUARY, encoding="utf-8")
    return tmp_path / "club.toml"


def table(club: Path, name: str = "january.csv") -> Path:
    """A table beside a profile."""
    return club.parent / name


def said(club: Path) -> dict[str, Any]:
    """What a profile says."""
    return tomllib.loads(club.read_text(encoding="utf-8"))


@pytest.mark.slow_cases
def test_profile_reads_the_next_table_alike(db: str, ratings: Ratings, club: Path) -> None:
    """A profile keeps what was given and what was recognised, and the next table is read as it says.

    February alone does not say which number of its dates is the month.
    """
    saved = ratings("import", table(club), *GIVEN, "--save-profile", club, db=db)
    assert (saved.exit_code, said(club)) == (0, SAID)
    assert f"note: {club} keeps how this table is read\n" in saved.stderr
    february = table(club, "february.csv")
    february.write_text(FEBRUARY.replace(".", "/"), encoding="utf-8")  # dots would mean day.month.year
    unclear = ratings("import", table(club, "february.csv"), "--set", "game=chess", db=db)
    assert (unclear.exit_code, "unclear-dates" in unclear.stderr) == (1, True)
    assert ratings("import", table(club, "february.csv"), "--profile", club, db=db).exit_code == 0
    games = read(ratings, db, "games")["rows"]
    assert sorted(game["occurred_at"][:10] for game in games) == ["2024-01-22", "2024-01-23", "2024-02-05"]


def test_options_count_before_the_profile(one_db: str, ratings: Ratings, club: Path) -> None:
    """What an option says counts before what the profile says, column by column and value by value."""
    club.write_text(
        'dates = "mdy"\nzone = "Asia/Tokyo"\n[set]\ngame = "go"\ncity = "Bonn"\n[columns]\nbemerkung = "city"\n'
        '[aliases]\nAnna = "Ole"\nJohanna = "Ida"\n', encoding="utf-8",
    )  # fmt: skip
    who = club.with_suffix(".txt")
    who.write_text("Anna = Zoe", encoding="utf-8")
    options = ("--dates", "dmy", "--zone", "UTC", *GIVEN, "--aliases", who)
    assert ratings("import", table(club), "--profile", club, *options, db=one_db).exit_code == 0
    game = read(ratings, one_db, "games", "2024-01-22-1")["rows"][0]
    assert (game["game"], game["city"], game["occurred_at"][:16]) == ("chess", "Bonn", "2024-01-22T12:00")
    assert [one["player"] for one in game["participants"]] == ["Zoe", "Ida"]


def test_answers_are_kept_in_the_profile(one_db: str, ratings: Ratings, club: Path) -> None:
    """Who was meant, answered at a terminal or said by a file, is kept as aliases, and not asked again."""
    ratings("import", table(club), *GIVEN, db=one_db)
    slips = club.parent / "slips.csv"
    slips.write_text("Datum;Spieler;Platz\n25.02.2024;johana;1\n25.02.2024;A.;2\n", encoding="utf-8")
    who = club.with_suffix(".txt")
    who.write_text("A. = Anna", encoding="utf-8")
    command = ["--db", one_db, "import", str(slips), "--set", "game=chess", "--aliases", str(who)]
    code, _, shown = type_answers([*command, "--save-profile", str(club)], [("stop] ", "yes\r")])
    assert (code, said(club)["aliases"]) == (0, {"A.": "Anna", "johana": "Johanna"}), shown
    slips.write_text("Datum;Spieler;Platz\n26.02.2024;A.;1\n26.02.2024;johana;2\n", encoding="utf-8")
    done = ratings("import", slips, "--profile", club, db=one_db)
    assert (done.exit_code, "aliases: A. = Anna, johana = Johanna" in done.stderr) == (0, True)


def test_sheet_of_a_spreadsheet_is_kept(one_db: str, ratings: Ratings, club: Path) -> None:
    """Of a spreadsheet the profile keeps the sheet, and what joins tied players."""
    pytest.importorskip("python_calamine")
    from sheet_files import xlsx

    path = club.with_suffix(".xlsx")
    path.write_bytes(xlsx([["Date", "1st", "2nd"], ["2024-01-31", "Anna/Ben", "Cleo"]], name="Blitz"))
    options = ("--set", "game=chess", "--ties", "/", "--save-profile", club)
    assert ratings("import", path, *options, db=one_db).exit_code == 0
    assert said(club) == {
        "sheet": "Blitz", "layout": "places", "ties": "/", "columns": {"Date": "occurred_at"}, "set": {"game": "chess"},
    }  # fmt: skip


@pytest.mark.parametrize("how", ["--preview", "--dry-run"])
def test_profile_is_kept_when_looking(how: str, one_db: str, ratings: Ratings, club: Path) -> None:
    """Whoever looks before it is done can keep how the table was read, and import it so; nothing is recorded yet."""
    before = head(ratings, one_db)
    assert ratings("import", table(club), *GIVEN, how, "--save-profile", club, db=one_db).exit_code == 0
    assert (said(club), head(ratings, one_db)) == (SAID, before)
    assert ratings("import", table(club), "--profile", club, db=one_db).exit_code == 0
    assert len(read(ratings, one_db, "games")["rows"]) == 2


def test_somebody_of_their_own_is_kept_in_the_profile(one_db: str, ratings: Ratings, club: Path) -> None:
    """Who is new although close to somebody else is kept as standing for themselves, and not asked about again."""
    ratings("import", table(club), *GIVEN, db=one_db)
    slips = club.parent / "slips.csv"
    slips.write_text("Datum;Spieler;Platz\n25.02.2024;johana;1\n25.02.2024;Anna;2\n", encoding="utf-8")
    command = ["--db", one_db, "import", str(slips), "--set", "game=chess", "--dry-run"]
    assert ratings(*command[2:], db=one_db).exit_code == 1
    command.pop()
    code, _, shown = type_answers([*command, "--save-profile", str(club)], [("stop] ", "new\r")])
    assert (code, said(club)["aliases"]) == (0, {"johana": "johana"}), shown
    assert ratings("void", "--batch", "slips.csv", "--reason", "again", db=one_db).exit_code == 0
    slips.write_text("Datum;Spieler;Platz\n26.02.2024;johana;1\n26.02.2024;Anna;2\n", encoding="utf-8")
    assert ratings("import", slips, "--profile", club, db=one_db).exit_code == 0


def test_profile_is_kept_only_with_its_import(one_db: str, ratings: Ratings, club: Path) -> None:
    """Of an import that is refused and of several files nothing is kept, nor in a folder that is not."""
    before = head(ratings, one_db)
    for more, code in ((("--set", "game=ches"), 1), ((*GIVEN, table(club, "february.csv")), 2)):
        done = ratings("import", table(club), *more, "--save-profile", club, db=one_db)
        assert (done.exit_code, club.exists()) == (code, False), done
    nowhere = ratings("import", table(club), *GIVEN, "--save-profile", club.parent / "no" / "club.toml", db=one_db)
    assert (nowhere.exit_code, head(ratings, one_db)) == (3, before)


def test_other_files_are_not_overwritten(one_db: str, ratings: Ratings, club: Path) -> None:
    """An existing file is replaced only if it is the profile that was read; one that says the same stays as it is."""
    before, mine = head(ratings, one_db), '# ours\ndates = "dmy"\n'
    club.write_text(mine, encoding="utf-8")
    refused = ratings("import", table(club), *GIVEN, "--save-profile", club, db=one_db)
    assert (refused.exit_code, club.read_text(encoding="utf-8")) == (2, mine)
    assert f"{club} exists; add --profile {club}" in refused.stderr
    assert head(ratings, one_db) == before
    update = ("--profile", club, "--save-profile", club)
    assert ratings("import", table(club), *GIVEN, *update, db=one_db).exit_code == 0
    assert said(club) == SAID
    club.write_text("# ours\n" + club.read_text(encoding="utf-8"), encoding="utf-8")
    assert ratings("import", table(club), *update, db=one_db).exit_code == 0
    assert club.read_text(encoding="utf-8").startswith("# ours\n")


def test_a_table_that_a_profile_does_not_fit(one_db: str, ratings: Ratings, club: Path) -> None:
    """A table that is refused for its columns says in one message which profile lacks which of them, and which of the
    profile's it lacks itself; by a preview, too. One that the profile fits, though not in all columns, says nothing.
    """
    assert ratings("import", table(club), *GIVEN, "--save-profile", club, "--dry-run", db=one_db).exit_code == 0
    others = table(club, "others.csv")
    others.write_text("Datum;Wer;Platz;Kommentar\n05.02.2024;Anna;1;gut\n05.02.2024;Johanna;2;\n", encoding="utf-8")
    told = (
        f"{others}:1: bad-profile: the profile {club} does not fit this table; columns missing from the table: "
        "'Spieler', 'Bemerkung'; columns missing from the profile: 'Wer'\n"
    )

    for more in ((), ("--preview",)):
        refused = ratings("import", others, "--profile", club, *more, db=one_db)
        assert (refused.exit_code, refused.stderr.count(told), refused.stderr.count("bad-profile")) == (1, 1, 1)
    without = ratings("import", others, *GIVEN[:2], db=one_db)
    assert (without.exit_code, "bad-profile" in without.stderr) == (1, False)
    renamed = ("--profile", club, "--map", "Wer=player", "--map", "Kommentar=")
    for done in (
        ratings("import", others, *renamed, db=one_db),
        ratings("import", table(club, "february.csv"), "--profile", club, "--dry-run", db=one_db),
    ):
        assert (done.exit_code, "bad-profile" in done.stderr) == (0, False)


BAD = {
    "an unknown member": ('layuot = "rows"', 1, "layuot: unknown member; did you mean layout?"),
    "another type": ("\nsheet = 3", 2, "sheet: 3 is not a text; write it in quotation marks"),
    "no such layout": ('layout = "row"', 1, "layout: 'row' is not one of rows, winner-loser, winner"),
    "no such order": ('dates = "dd.mm."', 1, "dates: 'dd.mm.' is not one of dmy, mdy, ymd"),
    "no such zone": ('zone = "Europe/Berln"', 1, "'Europe/Berln' is not a time zone; did you mean Europe/Berlin?"),
    "no such encoding": ('encoding = "latin-x"', 1, "encoding: 'latin-x' is not an encoding such as cp1252"),
    "an empty text": ('ties = ""', 1, "ties: the value is empty; leave out the member"),
    "no table": ("columns = 5", 1, "columns: 5 is not a table; write [columns] and lines"),
    "no such column": (
        '[columns]\nWer = "plaier"',
        2,
        "columns.Wer: 'plaier' is not the word for a column; did you",
    ),
    "no such value": (
        '[set]\ngmae = "chess"',
        2,
        "set.gmae: unknown member; did you mean game? (known: game_id, occurred_at, game",
    ),
    "a value that is no text": ("[set]\nrated = true", 2, "set.rated: True is not a text"),
    "nobody's name": ('[aliases]\nana = "a/b"', 2, "aliases.ana: the player of 'ana' is not valid"),
    "an alias of an alias": ('[aliases]\na = "b"\nb = "c"', 2, "'b' is itself an alias, of 'c' (line 3); write a = c"),
    "no TOML": ("sheet = Results", 1, "the file is not TOML: Invalid value"),
    "deep tables": ("a = " + "[" * 5_000, 1, "the line has too many dots or brackets"),
    "too much": ("#" * 4_000_001, None, "the file has more than 4,000,000 bytes"),
    "a long number": ("a = 1" + "0" * 5_000, None, "the file is not TOML: Exceeds the limit"),
}


@pytest.mark.parametrize(("content", "line", "message"), BAD.values(), ids=BAD)
def test_bad_profiles_are_refused(
    content: str, line: int | None, message: str, one_db: str, ratings: Ratings, club: Path
) -> None:
    """What is wrong with a profile is refused with its line and what would be right, before the table is read."""
    club.write_text(content, encoding="utf-8")
    done = ratings("import", table(club), "--profile", club, "--format", "json", db=one_db)
    (rejection,) = json.loads(done.stdout)["rejected"]
    assert (done.exit_code, rejection["file"], rejection["line"]) == (1, str(club), line)
    assert rejection["code"] == ("bad-alias" if "itself an alias" in message else "bad-profile")
    assert message in rejection["message"]


def test_all_that_is_wrong_with_a_profile_is_listed(one_db: str, ratings: Ratings, club: Path) -> None:
    """Everything that is wrong with a profile is listed at once, in the order of its lines."""
    club.write_text('[columns]\nWer = 3\n[set]\ngame = ""\n[aliases]\n"" = "b"\n', encoding="utf-8")
    done = ratings("import", table(club), "--profile", club, db=one_db)
    assert [line.split(":")[1] for line in done.stderr.splitlines()] == ["2", "4", "6"]
    club.write_bytes(b'sheet = "\xff"')
    assert "byte 10 is not UTF-8" in ratings("import", table(club), "--profile", club, db=one_db).stderr


def test_columns_of_a_profile_may_be_absent(one_db: str, ratings: Ratings, club: Path) -> None:
    """A column that a profile names may be absent, while one that --map names may not."""
    club.write_text('[columns]\nBemerkung = ""\n[set]\ngame = "chess"\n', encoding="utf-8")
    command = ("import", table(club, "february.csv"), "--profile", club, "--dates", "dmy")
    mapped = ratings(*command, "--map", "Bemerkung=", db=one_db)
    assert (mapped.exit_code, "--map: left of the =, 'Bemerkung' is not a column" in mapped.stderr) == (1, True)
    assert ratings(*command, db=one_db).exit_code == 0

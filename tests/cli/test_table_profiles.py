"""Profiles: how a table was read, kept in a file for the next table."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import Ratings, read_head, read_json
from terminals import type_answers

JANUARY = """Vereinsabend;;;
Datum;Spieler;Platz;Bemerkung
22.01.2024;Anna;1;
22.01.2024;Johanna;2;toll
23.01.2024;Johanna;1;
23.01.2024;Anna;2;
"""
FEBRUARY = "Datum;Spieler;Platz\n05.02.2024;Anna;1\n05.02.2024;Johanna;2\n"
TABLE_OPTIONS = ("--set", "game=chess", "--map", "Bemerkung=")
PROFILE = {
    "layout": "rows",
    "dates": "dmy",
    "set": {"game": "chess"},
    "columns": {"Datum": "occurred_at", "Spieler": "player", "Platz": "place", "Bemerkung": ""},
}


def create_chess_ledger(ratings: Ratings, url: str) -> None:
    """Create a ledger for chess with the home zone Berlin."""
    assert ratings("init", "--for", "chess", "--zone", "Europe/Berlin", db=url).exit_code == 0


pytestmark = pytest.mark.ledger(make=create_chess_ledger)


@pytest.fixture
def profile_path(tmp_path: Path) -> Path:
    """Return the path of a profile, beside the tables of January and February."""
    (tmp_path / "january.csv").write_text(JANUARY, encoding="utf-8")
    (tmp_path / "february.csv").write_text(FEBRUARY, encoding="utf-8")
    return tmp_path / "club.toml"


def find_table(profile_path: Path, name: str = "january.csv") -> Path:
    """Return the path of a table beside a profile."""
    return profile_path.parent / name


def parse_profile(profile_path: Path) -> dict[str, Any]:
    """Return the content of a profile."""
    return tomllib.loads(profile_path.read_text(encoding="utf-8"))


@pytest.mark.slow_cases
def test_profile_applies_to_the_next_table(db: str, ratings: Ratings, profile_path: Path) -> None:
    """A profile keeps the given and the recognised options, and the next table is read with them.

    February alone does not show which number of its dates is the month.
    """
    result = ratings("import", find_table(profile_path), *TABLE_OPTIONS, "--save-profile", profile_path, db=db)
    assert (result.exit_code, parse_profile(profile_path)) == (0, PROFILE)
    assert (
        f"note: {profile_path} records how this table was read; reuse it with --profile {profile_path}\n"
        in result.stderr
    )
    february = find_table(profile_path, "february.csv")
    february.write_text(FEBRUARY.replace(".", "/"), encoding="utf-8")  # dots would mean day.month.year
    unclear_result = ratings("import", find_table(profile_path, "february.csv"), "--set", "game=chess", db=db)
    assert (unclear_result.exit_code, "unclear-dates" in unclear_result.stderr) == (1, True)
    assert ratings("import", find_table(profile_path, "february.csv"), "--profile", profile_path, db=db).exit_code == 0
    games = read_json(ratings, db, "games")["rows"]
    assert sorted(game["occurred_at"][:10] for game in games) == ["2024-01-22", "2024-01-23", "2024-02-05"]


def test_options_override_the_profile(one_db: str, ratings: Ratings, profile_path: Path) -> None:
    """Options override the profile, column by column and value by value."""
    profile_path.write_text(
        'dates = "mdy"\nzone = "Asia/Tokyo"\n[set]\ngame = "go"\ncity = "Bonn"\n[columns]\nbemerkung = "city"\n'
        '[aliases]\nAnna = "Ole"\nJohanna = "Ida"\n',
        encoding="utf-8",
    )
    aliases_file = profile_path.with_suffix(".txt")
    aliases_file.write_text("Anna = Zoe", encoding="utf-8")
    options = ("--dates", "dmy", "--zone", "UTC", *TABLE_OPTIONS, "--aliases", aliases_file)
    assert ratings("import", find_table(profile_path), "--profile", profile_path, *options, db=one_db).exit_code == 0
    game = read_json(ratings, one_db, "games", "2024-01-22-1")["rows"][0]
    assert (game["game"], game["city"], game["occurred_at"][:16]) == ("chess", "Bonn", "2024-01-22T12:00")
    assert [participant["player"] for participant in game["participants"]] == ["Zoe", "Ida"]


def test_answers_are_kept_in_the_profile(one_db: str, ratings: Ratings, profile_path: Path) -> None:
    """Answers about close names, and aliases from a file, are kept in the profile; the next import asks nothing."""
    ratings("import", find_table(profile_path), *TABLE_OPTIONS, db=one_db)
    slips = profile_path.parent / "slips.csv"
    slips.write_text("Datum;Spieler;Platz\n25.02.2024;johana;1\n25.02.2024;A.;2\n", encoding="utf-8")
    aliases_file = profile_path.with_suffix(".txt")
    aliases_file.write_text("A. = Anna", encoding="utf-8")
    command = ["--db", one_db, "import", str(slips), "--set", "game=chess", "--aliases", str(aliases_file)]
    code, _, terminal_text = type_answers([*command, "--save-profile", str(profile_path)], [("stop] ", "yes\r")])
    assert (code, parse_profile(profile_path)["aliases"]) == (0, {"A.": "Anna", "johana": "Johanna"}), terminal_text
    slips.write_text("Datum;Spieler;Platz\n26.02.2024;A.;1\n26.02.2024;johana;2\n", encoding="utf-8")
    result = ratings("import", slips, "--profile", profile_path, db=one_db)
    assert (result.exit_code, "aliases: A. = Anna, johana = Johanna" in result.stderr) == (0, True)


def test_sheet_of_a_spreadsheet_is_kept(one_db: str, ratings: Ratings, profile_path: Path) -> None:
    """For a spreadsheet, the profile keeps the sheet and the text that joins tied players."""
    pytest.importorskip("python_calamine")
    from sheet_files import xlsx

    path = profile_path.with_suffix(".xlsx")
    path.write_bytes(xlsx([["Date", "1st", "2nd"], ["2024-01-31", "Anna/Ben", "Cleo"]], name="Blitz"))
    options = ("--set", "game=chess", "--ties", "/", "--save-profile", profile_path)
    assert ratings("import", path, *options, db=one_db).exit_code == 0
    assert parse_profile(profile_path) == {
        "sheet": "Blitz",
        "layout": "places",
        "ties": "/",
        "columns": {"Date": "occurred_at"},
        "set": {"game": "chess"},
    }


@pytest.mark.parametrize("option", ["--preview", "--dry-run"])
def test_profile_can_be_saved_without_recording(option: str, one_db: str, ratings: Ratings, profile_path: Path) -> None:
    """A preview or dry run saves the profile and records nothing; an import with that profile then succeeds."""
    before = read_head(ratings, one_db)
    assert (
        ratings(
            "import", find_table(profile_path), *TABLE_OPTIONS, option, "--save-profile", profile_path, db=one_db
        ).exit_code
        == 0
    )
    assert (parse_profile(profile_path), read_head(ratings, one_db)) == (PROFILE, before)
    assert ratings("import", find_table(profile_path), "--profile", profile_path, db=one_db).exit_code == 0
    assert len(read_json(ratings, one_db, "games")["rows"]) == 2


def test_new_player_with_a_close_name_is_kept_in_the_profile(one_db: str, ratings: Ratings, profile_path: Path) -> None:
    """A new player with a close name is kept as an alias of itself and not asked about again."""
    ratings("import", find_table(profile_path), *TABLE_OPTIONS, db=one_db)
    slips = profile_path.parent / "slips.csv"
    slips.write_text("Datum;Spieler;Platz\n25.02.2024;johana;1\n25.02.2024;Anna;2\n", encoding="utf-8")
    command = ["--db", one_db, "import", str(slips), "--set", "game=chess", "--dry-run"]
    assert ratings(*command[2:], db=one_db).exit_code == 1
    command.pop()
    code, _, terminal_text = type_answers([*command, "--save-profile", str(profile_path)], [("stop] ", "new\r")])
    assert (code, parse_profile(profile_path)["aliases"]) == (0, {"johana": "johana"}), terminal_text
    assert ratings("void", "--batch", "slips.csv", "--reason", "again", db=one_db).exit_code == 0
    slips.write_text("Datum;Spieler;Platz\n26.02.2024;johana;1\n26.02.2024;Anna;2\n", encoding="utf-8")
    assert ratings("import", slips, "--profile", profile_path, db=one_db).exit_code == 0


def test_profile_is_saved_only_with_a_successful_import(one_db: str, ratings: Ratings, profile_path: Path) -> None:
    """No profile is saved for a refused import, for several files, or into a missing folder."""
    before = read_head(ratings, one_db)
    for options, code in ((("--set", "game=ches"), 1), ((*TABLE_OPTIONS, find_table(profile_path, "february.csv")), 2)):
        result = ratings("import", find_table(profile_path), *options, "--save-profile", profile_path, db=one_db)
        assert (result.exit_code, profile_path.exists()) == (code, False), result
    result_without_folder = ratings(
        "import",
        find_table(profile_path),
        *TABLE_OPTIONS,
        "--save-profile",
        profile_path.parent / "no" / "club.toml",
        db=one_db,
    )
    assert (result_without_folder.exit_code, read_head(ratings, one_db)) == (3, before)


def test_existing_file_is_replaced_only_by_its_own_update(one_db: str, ratings: Ratings, profile_path: Path) -> None:
    """An existing file is replaced only if it is the profile that was read and says something else."""
    before, former_text = read_head(ratings, one_db), '# ours\ndates = "dmy"\n'
    profile_path.write_text(former_text, encoding="utf-8")
    refused = ratings("import", find_table(profile_path), *TABLE_OPTIONS, "--save-profile", profile_path, db=one_db)
    assert (refused.exit_code, profile_path.read_text(encoding="utf-8")) == (2, former_text)
    assert f"{profile_path} exists; choose another file, or pass --profile {profile_path} to" in refused.stderr
    assert read_head(ratings, one_db) == before
    update = ("--profile", profile_path, "--save-profile", profile_path)
    assert ratings("import", find_table(profile_path), *TABLE_OPTIONS, *update, db=one_db).exit_code == 0
    assert parse_profile(profile_path) == PROFILE
    profile_path.write_text("# ours\n" + profile_path.read_text(encoding="utf-8"), encoding="utf-8")
    assert ratings("import", find_table(profile_path), *update, db=one_db).exit_code == 0
    assert profile_path.read_text(encoding="utf-8").startswith("# ours\n")


def test_profile_that_does_not_fit_is_named(one_db: str, ratings: Ratings, profile_path: Path) -> None:
    """If a table is refused for its columns, the message names the profile, the columns that the profile lacks, and
    those that the table lacks.

    A preview says the same. A table that the profile fits, though not in all columns, gives no such message.
    """
    assert (
        ratings(
            "import", find_table(profile_path), *TABLE_OPTIONS, "--save-profile", profile_path, "--dry-run", db=one_db
        ).exit_code
        == 0
    )
    other_table = find_table(profile_path, "others.csv")
    other_table.write_text(
        "Datum;Wer;Platz;Kommentar\n05.02.2024;Anna;1;gut\n05.02.2024;Johanna;2;\n", encoding="utf-8"
    )
    message = (
        f"{other_table}:1: bad-profile: the profile {profile_path} does not fit this table; columns missing from the "
        "table: 'Spieler', 'Bemerkung'; columns missing from the profile: 'Wer'; to read the table anew, leave out "
        "--profile\n"
    )

    for options in ((), ("--preview",)):
        refused = ratings("import", other_table, "--profile", profile_path, *options, db=one_db)
        assert (refused.exit_code, refused.stderr.count(message), refused.stderr.count("bad-profile")) == (1, 1, 1)
    result_without_profile = ratings("import", other_table, *TABLE_OPTIONS[:2], db=one_db)
    assert (result_without_profile.exit_code, "bad-profile" in result_without_profile.stderr) == (1, False)
    mapping_options = ("--profile", profile_path, "--map", "Wer=player", "--map", "Kommentar=")
    for result in (
        ratings("import", other_table, *mapping_options, db=one_db),
        ratings("import", find_table(profile_path, "february.csv"), "--profile", profile_path, "--dry-run", db=one_db),
    ):
        assert (result.exit_code, "bad-profile" in result.stderr) == (0, False)


BAD_PROFILES = {
    "an unknown member": ('layuot = "rows"', 1, "layuot: unknown member; did you mean layout?"),
    "another type": ("\nsheet = 3", 2, "sheet: 3 is not a string; write it in quotation marks"),
    "no such layout": ('layout = "row"', 1, "layout: 'row' is not one of rows, winner-loser, winner"),
    "no such order": ('dates = "dd.mm."', 1, "dates: 'dd.mm.' is not one of dmy, mdy, ymd"),
    "no such zone": ('zone = "Europe/Berln"', 1, "'Europe/Berln' is not a time zone; did you mean Europe/Berlin?"),
    "no such encoding": ('encoding = "latin-x"', 1, "encoding: 'latin-x' is not an encoding such as cp1252"),
    "an empty text": ('ties = ""', 1, "ties: the value is empty; leave out the member"),
    "not a table": ("columns = 5", 1, "columns: 5 is not a table; write [columns] and lines"),
    "no such column": (
        '[columns]\nWer = "plaier"',
        2,
        "columns.Wer: 'plaier' is not a word for a column; did you",
    ),
    "no such value": (
        '[set]\ngmae = "chess"',
        2,
        "set.gmae: unknown member; did you mean game? (known: game_id, occurred_at, game",
    ),
    "a value that is not a string": ("[set]\nrated = true", 2, "set.rated: True is not a string"),
    "an invalid player id": ('[aliases]\nana = "a/b"', 2, "aliases.ana: the player of 'ana' is not valid"),
    "an alias of an alias": ('[aliases]\na = "b"\nb = "c"', 2, "'b' is itself an alias, of 'c' (line 3); write a = c"),
    "not TOML": ("sheet = Results", 1, "the file is not TOML: Invalid value"),
    "deep tables": ("a = " + "[" * 5_000, 1, "the line has too many dots or brackets"),
    "too many bytes": ("#" * 4_000_001, None, "the file has more than 4,000,000 bytes"),
    "a long number": ("a = 1" + "0" * 5_000, None, "a number has too many digits; write only strings"),
}


@pytest.mark.parametrize(("content", "line", "message"), BAD_PROFILES.values(), ids=BAD_PROFILES)
def test_bad_profile_is_refused_with_its_line(
    content: str, line: int | None, message: str, one_db: str, ratings: Ratings, profile_path: Path
) -> None:
    """An error in a profile is refused with its line and the valid values, before the table is read."""
    profile_path.write_text(content, encoding="utf-8")
    result = ratings("import", find_table(profile_path), "--profile", profile_path, "--format", "json", db=one_db)
    (rejection,) = json.loads(result.stdout)["rejected"]
    assert (result.exit_code, rejection["file"], rejection["line"]) == (1, str(profile_path), line)
    assert rejection["code"] == ("bad-alias" if "itself an alias" in message else "bad-profile")
    assert message in rejection["message"]


def test_all_errors_of_a_profile_are_listed(one_db: str, ratings: Ratings, profile_path: Path) -> None:
    """All errors of a profile are listed at once, in the order of its lines."""
    profile_path.write_text('[columns]\nWer = 3\n[set]\ngame = ""\n[aliases]\n"" = "b"\n', encoding="utf-8")
    result = ratings("import", find_table(profile_path), "--profile", profile_path, db=one_db)
    assert [line.split(":")[1] for line in result.stderr.splitlines()] == ["2", "4", "6"]
    profile_path.write_bytes(b'sheet = "\xff"')
    assert (
        "byte 10 is not UTF-8"
        in ratings("import", find_table(profile_path), "--profile", profile_path, db=one_db).stderr
    )


def test_columns_of_a_profile_may_be_absent(one_db: str, ratings: Ratings, profile_path: Path) -> None:
    """A column that a profile names may be absent from a table; a column that --map names may not."""
    profile_path.write_text('[columns]\nBemerkung = ""\n[set]\ngame = "chess"\n', encoding="utf-8")
    command = ("import", find_table(profile_path, "february.csv"), "--profile", profile_path, "--dates", "dmy")
    mapped = ratings(*command, "--map", "Bemerkung=", db=one_db)
    assert (mapped.exit_code, "--map: left of the =, 'Bemerkung' is not a column" in mapped.stderr) == (1, True)
    assert ratings(*command, db=one_db).exit_code == 0

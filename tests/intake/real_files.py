"""Files that scripts/make_sheet_files.py made with LibreOffice, each with the expected result of its import."""

from pathlib import Path

from cases import SET, Case

FOLDER = Path(__file__).parent / "files"
DROP_OPTIONS = (*SET, "--map", "Beitrag=", "--map", "Anteil=")
CLUB = [
    "2024-11-05-1 2024-11-05T11:00 Anna =10 Jürgen =8 Łukasz =8",
    "2024-11-12-1 2024-11-12T11:00 Jürgen =10 Anna =7",
    "2024-11-22-1 2024-11-22T11:00 Łukasz =10 Anna =9",
]
CLUB_NOTES = ["read sheet Ergebnisse, not Alt", "line 9 is hidden", "line 1, line 3 above the header; line 12, 'Summe'"]
MOMENTS = ["2024-11-22-1 2024-11-22T19:05 anna 1 ben 2", "2024-11-23-1 2024-11-22T23:00 ben 1 anna 2"]
CLOCKS = ["2024-11-22-2 2024-11-22T11:00 ben 1 anna 2", "2024-11-22-1 2024-11-22T19:05 anna 1 ben 2"]
FAULTS = [
    ("3 bad-cell", "Ergebnisse!C3: the error #N/A"),
    ("4 bad-cell", "Ergebnisse!B4: the error #N/A"),
    ("5 bad-cell", "Ergebnisse!B5: the error #REF!"),
]
ALONE = ("2 too-few-participants", "this game has 1 seat; it needs at least two")
MEMBERS = [
    "2024-11-05-1 2024-11-05T11:00 Anna =10 Jürgen =7.5",
    "2024-11-12-1 2024-11-12T11:00 Jürgen =8 Łukasz =8.25",
    "2024-11-22-1 2024-11-22T11:00 Anna =6 Jürgen =10 Łukasz =9",
]
MEMBERS_NOTES = ["left out: column Bemerkung; remarks are not read"]
CHESS = [
    "2024-11-05-1 2024-11-05T11:00 Anna 1 José 2",
    "2024-11-12-1 2024-11-12T11:00 José 1 Anna 1",
    "2024-11-22-1 2024-11-22T11:00 Anna 2 José 1",
]
TWO_SHEETS = [("None which-sheet", "several sheets have content: 'Games', 'Members'; name one with --sheet")]
PASSWORD = [("None bad-spreadsheet", "it is protected by a password; save it without one")]
EMPTY = [("None empty-file", "all visible sheets are empty")]


def load_case(name: str, **case_members: object) -> Case:
    """Return a case of a file in the folder `files`."""
    return Case((FOLDER / name).read_bytes(), name=name, **case_members)  # type: ignore[arg-type]


FILES = {
    "club.xlsx": load_case("club.xlsx", games=CLUB, notes=CLUB_NOTES, options=DROP_OPTIONS),
    "club.xlsm": load_case("club.xlsm", games=CLUB, notes=CLUB_NOTES, options=DROP_OPTIONS),
    "club.ods": load_case("club.ods", games=CLUB, notes=CLUB_NOTES, options=DROP_OPTIONS),
    "club.xlsx with all its columns": load_case(
        "club.xlsx", refused=[("4 unknown-column", "Ergebnisse!4: unknown columns: 'Beitrag', 'Anteil'")]
    ),
    "club.xls": load_case(
        "club.xls", refused=[("None is-a-spreadsheet", "of old Office programs; save its table as .xlsx")]
    ),
    "club-geheim.xlsx": load_case("club-geheim.xlsx", refused=PASSWORD),
    "club-geheim.ods": load_case("club-geheim.ods", refused=PASSWORD),
    **{name: load_case(name, games=MOMENTS) for name in ("moments.xlsx", "moments.ods")},
    **{name: load_case(name, games=MOMENTS) for name in ("moments-1904.xlsx", "moments-1904.ods")},
    **{name: load_case(name, games=CLOCKS) for name in ("clocks.xlsx", "clocks.ods")},
    **{
        name: load_case(name, refused=[ALONE, *FAULTS], options=(*SET, "--map", "Rating="))
        for name in ("faults.xlsx", "faults.ods")
    },
    "faults.ods with all its columns": load_case(
        "faults.ods", refused=[("1 unknown-column", "Ergebnisse!1: unknown column: 'Rating'"), ALONE, *FAULTS]
    ),
    **{
        name: load_case(name, games=MEMBERS, options=(*SET, "--map", "Bemerkung="))
        for name in ("members.xlsx", "members.ods", "members.csv")
    },
    **{
        f"{name} with its notes": load_case(name, games=MEMBERS, notes=MEMBERS_NOTES)
        for name in ("members.xlsx", "members.ods", "members.csv")
    },
    "members-cp1250.csv": load_case(
        "members-cp1250.csv", refused=[("1 bad-utf8", "or name its encoding with --encoding")]
    ),
    "members-cp1250.csv with its encoding": load_case(
        "members-cp1250.csv", games=MEMBERS, options=(*SET, "--map", "Bemerkung=", "--encoding", "cp1250")
    ),
    **{name: load_case(name, games=CHESS) for name in ("chess.csv", "chess-cp1252.csv", "chess-utf16.txt")},
    **{name: load_case(name, refused=TWO_SHEETS) for name in ("chess.xlsx", "chess.ods")},
    **{
        f"{name}, one of its sheets": load_case(name, games=CHESS, options=(*SET, "--sheet", "games"))
        for name in ("chess.xlsx", "chess.ods")
    },
    **{name: load_case(name, refused=EMPTY) for name in ("empty.xlsx", "empty.ods")},
}

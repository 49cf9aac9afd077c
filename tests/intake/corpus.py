"""Tables as people keep them, each with what comes out of it: games, or the exact refusal."""

from datetime import date, datetime
from typing import Any, NamedTuple

from sheet_files import CURRENCY, DATETIME, EPOCH_1904, ERROR, PERCENT, UNWORKED, WORKED, Raw, ods, xlsx

SET = ("--set", "game=catan")
NUMBERED = "numbered by day"


class Case(NamedTuple):
    """A file's content, under a name; the games in it, as `ID DATE PLAYER PLACE-OR-SCORE ...`, or what is refused, as
    `LINE CODE` with a part of the message; what is told about it; and the options of the import.
    """

    content: bytes
    games: list[str] = []
    refused: list[tuple[str, str]] = []
    told: list[str] = []
    options: tuple[str, ...] = SET
    name: str = "results.csv"


def sheet(*rows: list[Any], name: str = "results.xlsx", **more: Any) -> Case:
    """A case of an .xlsx file with these rows."""
    parts = {part: more.pop(part) for part in ("others", "merged", "epoch", "more", "name_of_sheet") if part in more}
    others = parts.pop("others", ())
    if "name_of_sheet" in parts:
        parts["name"] = parts.pop("name_of_sheet")
    return Case(xlsx([*rows], *others, **parts), name=name, **more)


def csv(text: str, encoding: str = "utf-8", **more: Any) -> Case:
    """A case of a CSV file."""
    return Case(text.encode(encoding), **more)


D22, D23 = date(2024, 11, 22), date(2024, 11, 23)
ONE = ["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2"]
TWO = [*ONE, "2024-11-23-1 2024-11-23T11:00 ben 1 anna 2"]
WIDE = [["Date", "1st", "2nd"], [D22, "anna", "ben"], [D23, "ben", "anna"]]
LONG = [["Datum", "Spieler", "Platz"], [D22, "anna", 1], [D22, "ben", 2], [D23, "ben", 1], [D23, "anna", 2]]
ODS_ERROR = Raw(
    ' table:formula="of:=1/0" office:value-type="string" calcext:value-type="error"', "<text:p>#DIV/0!</text:p>"
)
# what is said of the row after one that cannot be read, where a game has several
AFTER = ("3 bad-csv", "the row before it (line 2) may belong to this game")
HEAD = ["Date", "1st", "2nd"]

CASES = {
    # layouts
    "a column per place": sheet(*WIDE, games=TWO, told=["Date = occurred_at", NUMBERED]),
    "a row per player, in German": sheet(*LONG, games=TWO, told=["Spieler = player, Platz = place"]),
    "winner and loser": sheet(["When", "Winner", "Loser"], [D22, "anna", "ben"], games=ONE),
    "a column per player with places": sheet(
        ["Date", "anna", "ben", "cleo"], [D22, 1, 2, None], [D23, 3, 1, 2],
        games=[*ONE, "2024-11-23-1 2024-11-23T11:00 anna 3 ben 1 cleo 2"], told=["a column per player with the place"],
    ),
    "a column per player with scores": sheet(
        ["Date", "anna", "ben", "cleo"], [D22, 10, 7, None], [D23, 4, 8, 8],
        games=["2024-11-22-1 2024-11-22T11:00 anna =10 ben =7", "2024-11-23-1 2024-11-23T11:00 anna =4 ben =8 cleo =8"],
        told=["a column per player with the score"],
    ),
    "numbers that are scores, whatever they look like": sheet(
        ["Date", "anna", "ben"], [D22, 1, 2], options=(*SET, "--layout", "player-scores"),
        games=["2024-11-22-1 2024-11-22T11:00 anna =1 ben =2"],
    ),
    "chess": sheet(
        ["Date", "White", "Black", "Result"], [D22, "anna", "ben", "1-0"], [D23, "ben", "anna", "½-½"],
        [D23, "ben", "anna", "0 - 1"], options=("--set", "game=chess"),
        games=[*ONE, "2024-11-23-1 2024-11-23T11:00 ben 1 anna 1", "2024-11-23-2 2024-11-23T11:00 ben 2 anna 1"],
    ),
    "goals": sheet(
        ["Tag", "Heim", "Gast", "Ergebnis"], [D22, "anna", "ben", "3:1"],
        games=["2024-11-22-1 2024-11-22T11:00 anna =3 ben =1"],
    ),
    "two names, and a score for each": sheet(
        ["Date", "Player 1", "Score 1", "Player 2", "Score 2"], [D22, "anna", 11, "ben", 9],
        games=["2024-11-22-1 2024-11-22T11:00 anna =11 ben =9"],
    ),
    "a result that is none": sheet(
        ["Date", "White", "Black", "Result"], [D22, "anna", "ben", "won"],
        refused=[("2 bad-value", "Results!2: result: 'won' is no result such as 1-0, 3:2 or draw")],
    ),
    "ties in a cell": sheet([*HEAD, "3rd"], [D22, "anna", "ben=cleo"], games=[ONE[0] + " cleo 2"]),
    "ties with a slash, as said": sheet(
        [*HEAD, "3rd"], [D22, "anna", "ben/cleo"], options=(*SET, "--ties", "/"), games=[ONE[0] + " cleo 2"]
    ),
    "ties with a slash, unsaid": sheet(
        [*HEAD, "3rd"], [D22, "anna", "ben/cleo"], refused=[("2 tied-players", "'ben/cleo' looks like more than one")]
    ),
    "the date once for each game": sheet(
        LONG[0], [D22, "anna", 1], [None, "ben", 2], [D23, "ben", 1], [None, "anna", 2], games=TWO
    ),
    "two games in an evening": sheet(
        LONG[0], [D22, "anna", 1], [D22, "ben", 2], [D22, "ben", 1], [D22, "anna", 2],
        games=[*ONE, "2024-11-22-2 2024-11-22T11:00 ben 1 anna 2"],
    ),
    "an empty line between games": sheet(
        ["Date", "Name", "Points"], [D22, "anna", 9], [D22, "ben", 8], [], [D22, "ben", 9], [D22, "anna", 8],
        games=["2024-11-22-1 2024-11-22T11:00 anna =9 ben =8", "2024-11-22-2 2024-11-22T11:00 ben =9 anna =8"],
    ),
    "numbers of its own": sheet(
        ["Nr.", *HEAD], [7, D22, "anna", "ben"], games=["7" + ONE[0][12:]], told=["Nr. = game_id"]
    ),
    "games called by their number": sheet(["Game", *HEAD], ["7", D22, "anna", "ben"], games=["7" + ONE[0][12:]]),
    # dates
    "real dates with times": sheet(
        HEAD, [datetime(2024, 11, 22, 20, 5), "anna", "ben"], games=["2024-11-22-1 2024-11-22T19:05 anna 1 ben 2"]
    ),
    "a time in a column of its own": sheet(
        ["Datum", "Uhrzeit", "1.", "2."], [D22, "20:05 Uhr", "anna", "ben"],
        games=["2024-11-22-1 2024-11-22T19:05 anna 1 ben 2"],
    ),
    "the system of 1904": sheet(*WIDE, epoch=EPOCH_1904, games=TWO),
    "a date as text in one row": sheet(
        HEAD, [D22, "anna", "ben"], ["23.11.2024", "ben", "anna"], games=TWO, told=["day/month/year, from 23.11.2024"]
    ),
    "a date that is a number": sheet(
        HEAD, [45618, "anna", "ben"], refused=[("2 bad-time", "'45618' is a number; format the column as dates")]
    ),
    "a date that is a word": sheet(
        HEAD, ["Friday", "anna", "ben"], refused=[("2 bad-time", "Results!2: 'Friday' is not a time")]
    ),
    "no date at all": sheet(
        HEAD, [None, "anna", "ben"], refused=[("2 missing-member", "Results!2: the row has no date")]
    ),
    "day first, decided by another row": csv(
        "Date,1st,2nd\n05/03/2024,anna,ben\n22/11/2024,ben,anna\n", told=["day/month/year, from 22/11/2024 in line 3"],
        games=["2024-03-05-1 2024-03-05T11:00 anna 1 ben 2", "2024-11-22-1 2024-11-22T11:00 ben 1 anna 2"],
    ),
    "month first": csv(
        "Date,1st,2nd\n11/22/24,anna,ben\n", games=ONE, told=["month/day/year, from 11/22/24 in line 2"]
    ),
    "with a time of twelve hours": csv(
        "Date,1st,2nd\n11/22/24 8:05 PM,anna,ben\n", games=["2024-11-22-1 2024-11-22T19:05 anna 1 ben 2"]
    ),
    "nothing decides": csv(
        "Date,1st,2nd\n03/05/2024,anna,ben\n",
        refused=[
            ("1 unclear-dates", "'03/05/2024' (line 2) may be 3 May 2024 (--dates dmy) or 5 March 2024 (--dates mdy)")
        ],
    ),
    "nothing decides, and somebody says it": csv(
        "Date,1st,2nd\n03/05/2024,anna,ben\n", options=(*SET, "--dates", "mdy"),
        games=["2024-03-05-1 2024-03-05T11:00 anna 1 ben 2"],
    ),
    "two orders": csv(
        "Date,1st,2nd\n22/11/2024,anna,ben\n11/23/2024,ben,anna\n", refused=[("1 unclear-dates", "no order fits all")]
    ),
    "the year first": csv("Date,1st,2nd\n2024/11/22,anna,ben\n", games=ONE),
    "a day that no month has": csv(
        "Date;1st;2nd\n22.11.2024;anna;ben\n31.11.2024;ben;anna\n",
        refused=[("3 bad-time", "'31.11.2024' is no date as day/month/year")],
    ),
    # around the table
    "a title above": sheet(
        ["Catan Club 2024"], [], *WIDE, games=TWO, told=["left out: line 1 above the header"]
    ),
    "two rows of headers": sheet(
        [None, "Result", "Result"], *WIDE, games=TWO, told=["left out: line 1 above the header"]
    ),
    "a total below": sheet(
        ["Date", "Name", "Points"], [D22, "anna", 9], [D22, "ben", 8], ["Total", None, 17],
        games=["2024-11-22-1 2024-11-22T11:00 anna =9 ben =8"], told=["left out: line 4, 'Total'"],
    ),
    "the header again": sheet(
        *WIDE[:2], HEAD, WIDE[2], games=TWO, told=["left out: line 3, the header again"]
    ),
    "a blank column": sheet(["Date", None, "1st", "2nd"], [D22, None, "anna", "ben"], games=ONE),
    "a column without a name": sheet(
        ["Date", None, "1st", "2nd"], [D22, "x", "anna", "ben"],
        refused=[("1 unknown-column", "Results!1: column B has no name, and 'x' is in it (line 2)")],
    ),
    "notes beside the table": sheet(
        [*HEAD, "Notes"], [D22, "anna", "ben", "at Ben's"],
        refused=[("1 unknown-column", "not known: 'Notes'; rename a column with --map 'Notes=OURS', drop it with")],
    ),
    "notes that are dropped": sheet(
        [*HEAD, "Notes"], [D22, "anna", "ben", "at Ben's"], options=(*SET, "--map", "Notes="), games=ONE
    ),
    "columns with one name": sheet(
        ["Date", "Name", "Name"], [D22, "anna", "ben"], refused=[("1 bad-csv", "two columns are called 'player'")]
    ),
    "no header": sheet(
        [D22, "anna", "ben"], [D23, "ben", "anna"],
        refused=[("1 unknown-column", "not known: '2024-11-22', 'anna', 'ben'"), ("1 missing-column", "no columns")],
    ),
    "no game, nor who played": sheet(
        ["Date", "Points"], [D22, 3], options=(), refused=[("1 missing-column", "are no columns 'game', 'player'")]
    ),
    # cells
    "merged cells": sheet(
        LONG[0], [D22, "anna", 1], [None, "ben", 2], [D23, "ben", 1], [None, "anna", 2], merged="A2:A3", games=TWO
    ),
    "an error": sheet(
        HEAD, [D22, "anna", ERROR], [D23, "ben", "anna"], refused=[("2 bad-cell", "Results!C2: the error #REF!")]
    ),
    "an error in a dropped column": sheet(
        [*HEAD, "x"], [D22, "anna", "ben", ERROR], options=(*SET, "--map", "x="), games=ONE
    ),
    "a formula with its value": sheet(
        ["Date", "Name", "Points"], [D22, "anna", WORKED], [D22, "ben", 2],
        games=["2024-11-22-1 2024-11-22T11:00 anna =3 ben =2"],
    ),
    "a formula without its value": sheet(
        ["Date", "Name", "Points"], [D22, "anna", UNWORKED], [D22, "ben", 2],
        refused=[("2 bad-cell", "Results!C2: a formula without a value; open the file in a spreadsheet"), AFTER],
    ),
    "numbers as text": sheet(
        ["Date", "Name", "Points"], [D22, "anna", "9"], [D22, "ben", " 8 "],
        games=["2024-11-22-1 2024-11-22T11:00 anna =9 ben =8"],
    ),
    "percent and currency": sheet(
        ["Date", "Name", "Points"],
        [D22, "anna", Raw(f' s="{PERCENT}"', "<v>0.5</v>")], [D22, "ben", Raw(f' s="{CURRENCY}"', "<v>0.25</v>")],
        games=["2024-11-22-1 2024-11-22T11:00 anna =0.5 ben =0.25"],
    ),
    "a fraction as computers hold it": sheet(
        ["Date", "Name", "Points"], [D22, "anna", 0.1 + 0.2], [D22, "ben", 0.25],
        games=["2024-11-22-1 2024-11-22T11:00 anna =0.3 ben =0.25"],
    ),
    "a moment as computers hold it": sheet(
        HEAD, [Raw(f' s="{DATETIME}"', "<v>45618.836805555554</v>"), "anna", "ben"],
        games=["2024-11-22-1 2024-11-22T19:05 anna 1 ben 2"],
    ),
    "names with blanks around": sheet(HEAD, [D22, " anna ", "ben\u00a0"], games=ONE),
    # sheets
    "a hidden sheet": sheet(
        *WIDE, others=[("Old", "hidden", [["x"]])], games=TWO, told=["sheet Results, not Old"]
    ),
    "an empty sheet besides": sheet(*WIDE, others=[("Sheet2", "visible", [])], games=TWO),
    "two sheets": sheet(
        *WIDE, others=[("Players", "visible", [["x"]])],
        refused=[("None which-sheet", "there are several sheets: 'Results', 'Players'; name one with --sheet")],
    ),
    "two sheets, one named": sheet(
        ["x"], others=[("Games", "visible", WIDE)], options=(*SET, "--sheet", "games"), games=TWO
    ),
    "a sheet that is not there": sheet(
        *WIDE, options=(*SET, "--sheet", "Gmaes"),
        refused=[("None which-sheet", "there is no sheet 'Gmaes'; there are 'Results'")],
    ),
    "nothing in it": sheet(refused=[("None empty-file", "no sheet that is not hidden has anything in it")]),
    "nothing but empty texts": sheet(
        ["", ""], [""], refused=[("None empty-file", "the sheet 'Results' has nothing in it")]
    ),
    "nothing but a header": sheet(HEAD, refused=[("None empty-file", "")]),
    "a long sheet": sheet(
        HEAD, *[[D22, "anna", "ben"]] * 600,
        games=[f"2024-11-22-{number} {ONE[0].partition(' ')[2]}" for number in range(1, 601)],
    ),
    "a sheet of empty rows": sheet(*WIDE, *[[] for _ in range(3_000)], games=TWO),
    "a formula's error in LibreOffice": Case(
        ods([HEAD, [D22, "anna", ODS_ERROR]]),
        refused=[("2 bad-cell", "Results!C2: the error #DIV/0!")], name="results.ods",
    ),
    "rows that repeat": Case(
        ods([*WIDE, *[[None]] * 1_048_000]), games=TWO, name="results.ods",
    ),
    # text
    "semicolons and decimal commas": csv(
        "Datum;Spieler;Punkte\n22.11.2024;anna;7,5\n22.11.2024;ben;7\n",
        games=["2024-11-22-1 2024-11-22T11:00 anna =7.5 ben =7"],
    ),
    "a comma for thousands": csv(
        "Datum;Spieler;Punkte\n22.11.2024;anna;1,500\n22.11.2024;ben;7\n",
        refused=[("2 bad-decimal", "'1,500' may be a whole number or a fraction; write a point"), AFTER],
    ),
    "tabs": csv("Date\t1st\t2nd\n22.11.2024\tanna\tben\n", games=ONE, name="results.tsv"),
    "text of another name": csv("Date;1st;2nd\n22.11.2024;anna;ben\n", games=ONE, name="results.txt"),
    "Excel in Western Europe": csv(
        "Datum;1.;2.\n22.11.2024;Müller;Jörg\n", "cp1252",
        told=["read as cp1252 (Western Europe), such as Müller, Jörg"],
        games=["2024-11-22-1 2024-11-22T11:00 Müller 1 Jörg 2"],
    ),
    "Excel in Poland": csv(
        "Data;1.;2.\n22.11.2024;Łukasz;Żaneta\n", "cp1250", refused=[("2 bad-utf8", "is not UTF-8"), ]
    ),
    "Excel in Poland, as said": csv(
        "Data;1.;2.\n22.11.2024;Łukasz;Żaneta\n", "cp1250", options=(*SET, "--encoding", "cp1250"),
        games=["2024-11-22-1 2024-11-22T11:00 Łukasz 1 Żaneta 2"],
    ),
    "an encoding that it has not": csv(
        "Data;1.;2.\n22.11.2024;Łukasz;ben\n", options=(*SET, "--encoding", "ascii"),
        refused=[("2 bad-utf8", "byte 23 is not ascii; name another encoding with --encoding")],
    ),
    "Unicode text of Excel": csv(
        "Date\t1st\t2nd\r\n22.11.2024\tanna\tben\r\n", "utf-16", games=ONE, name="results.txt"
    ),
    "mixed ends of lines": csv("Date,1st,2nd\r\n22/11/2024,anna,ben\n23/11/2024,ben,anna\r\n", games=TWO),
    "NUL bytes": csv("Date,1st,2nd\n22/11/2024,an\0na,ben\n", refused=[("2 bad-identifier", "")]),
    "an export of Google Sheets": csv('Date,1st,2nd\r\n"11/22/2024","anna","ben"\r\n', games=ONE),
    # what a file is
    "a spreadsheet called CSV": sheet(*WIDE, name="results.csv", games=TWO),
    "CSV called a spreadsheet": csv("Date,1st,2nd\n22/11/2024,anna,ben\n", games=ONE, name="results.xlsx"),
    "with macros": sheet(
        *WIDE, more={"xl/vbaProject.bin": b"\xd0\xcf\x11\xe0" + bytes(64)}, name="results.xlsm", games=TWO
    ),
    "old Excel": Case(
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), name="results.xls",
        refused=[("None is-a-spreadsheet", "it has the old format of Excel; save it as .xlsx")],
    ),
    "with a password": Case(
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "EncryptedPackage".encode("utf-16-le"), name="results.xlsx",
        refused=[("None bad-spreadsheet", "it is protected by a password; save it without one")],
    ),
    "cut off": Case(
        xlsx(WIDE)[:900], name="results.xlsx", refused=[("None bad-spreadsheet", "it is cut off or damaged")]
    ),
    "an archive of something else": Case(
        xlsx([])[:30] + b"", name="results.xlsx", refused=[("None bad-spreadsheet", "it is cut off or damaged")]
    ),
    "a document type": sheet(
        more={"xl/worksheets/sheet1.xml": b'<!DOCTYPE x [<!ENTITY a "b">]><worksheet/>'},
        options=(*SET, "--sheet", "Results"), refused=[("None bad-spreadsheet", "it declares a document type")],
    ),
}  # fmt: skip

"""Tables as people keep them, each with what comes out of it: games, or the exact refusal."""

import gzip
from datetime import date, datetime
from typing import Any, NamedTuple

from sheet_files import CURRENCY, DATETIME, EPOCH_1904, ERROR, PERCENT, UNWORKED, WORKED, Raw, archive, ods, xlsx

PARTS = ("others", "merged", "epoch", "more", "name_of_sheet", "hidden_rows", "hidden_columns")
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
    parts = {part: more.pop(part) for part in PARTS if part in more}
    others = parts.pop("others", ())
    if "name_of_sheet" in parts:
        parts["name"] = parts.pop("name_of_sheet")
    return Case(xlsx([*rows], *others, **parts), name=name, **more)


def csv(text: str, encoding: str = "utf-8", **more: Any) -> Case:
    """A case of a CSV file."""
    return Case(text.encode(encoding), **more)


# a worksheet, and rows for it, as text
MAIN = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
WORKSHEET = b"<worksheet " + MAIN + b"><sheetData>%s</sheetData></worksheet>"
SHEET_ROWS = b"".join(
    b"<row>" + b"".join(b'<c t="inlineStr"><is><t>' + cell + b"</t></is></c>" for cell in row.split()) + b"</row>"
    for row in (b"Date 1st 2nd", b"2024-11-22 anna ben")
)
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
    "a column of totals among players": sheet(
        ["Date", "anna", "ben", "Summe"], [D22, 10, 7, 17], [D23, 4, 8, 12],
        refused=[("1 unknown-column", "not known: 'Summe'; rename a column with --map 'Summe=OURS', drop it with")],
    ),
    "a column of totals that is dropped": sheet(
        ["Date", "anna", "ben", "Total"], [D22, 1, 2, 3], options=(*SET, "--map", "Total="), games=ONE,
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
    "a date as ISO 8601 in a cell": sheet(
        HEAD, [Raw(' t="d"', "<v>2024-11-22T20:05:00</v>"), "anna", "ben"],
        games=["2024-11-22-1 2024-11-22T19:05 anna 1 ben 2"],
    ),
    "a moment that falls on midnight": sheet(
        HEAD, [datetime(2024, 11, 22, 20, 5), "anna", "ben"], [datetime(2024, 11, 24), "ben", "anna"],
        games=["2024-11-22-1 2024-11-22T19:05 anna 1 ben 2", "2024-11-24-1 2024-11-23T23:00 ben 1 anna 2"],
    ),
    "moments that all fall on midnight": sheet(
        HEAD, [datetime(2024, 11, 24), "ben", "anna"], games=["2024-11-24-1 2024-11-23T23:00 ben 1 anna 2"],
    ),
    "a moment on midnight in LibreOffice": Case(
        ods([HEAD, [D22, "anna", "ben"], [datetime(2024, 11, 24), "ben", "anna"]]), name="results.ods",
        games=[*ONE, "2024-11-24-1 2024-11-23T23:00 ben 1 anna 2"],
    ),
    "a day among moments": sheet(
        HEAD, [datetime(2024, 11, 22, 20, 5), "anna", "ben"], [D23, "ben", "anna"],
        games=["2024-11-22-1 2024-11-22T19:05 anna 1 ben 2", TWO[1]],
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
    "a header with the mark of Excel for its delimiter": csv(
        "sep=;\nDatum;1.;2.\n22.11.2024;anna;ben\n", games=ONE, told=["left out: line 1 above the header"]
    ),
    "totals in a row with a date": sheet(
        ["Date", "Name", "Points"], [D22, "anna", 9], [D22, "ben", 8], ["Summe", None, 17], ["Average", None, 8.5],
        games=["2024-11-22-1 2024-11-22T11:00 anna =9 ben =8"],
        told=["left out: line 4, 'Summe'; line 5, 'Average'"],
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
    "all that is wrong at once": sheet(
        ["Date", "Name", "Place", "Place", "Notes", None], [D22, "anna", 1, 1, ERROR, None], [D22, "ben", ERROR, 2],
        ["soon", UNWORKED, 1, 1, None, "x"], options=(),
        refused=[
            ("1 unknown-column", "not known: 'Notes'"), ("1 bad-csv", "two columns are called 'place'"),
            ("1 missing-column", "there is no column 'game'"),
            ("1 unknown-column", "column F has no name, and 'x' is in it (line 4)"),
            ("3 bad-cell", "Results!C3: the error #REF!"), ("4 bad-cell", "Results!B4: a formula without a value"),
        ],
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
    "errors all over a dropped column, and one beside it": sheet(
        [*HEAD, "x"], *[[D22, "anna", "ben", ERROR]] * 1_200, [D22, "anna", ERROR], options=(*SET, "--map", "x="),
        refused=[("1202 bad-cell", "Results!C1202: the error #REF!")],
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
    "percent and currency that are shown otherwise": sheet(
        ["Date", "Name", "Points"], [D22, "anna", "50 %"], [D22, "ben", "€ 3"],
        refused=[("2 bad-decimal", "'50 %' is not a decimal number")],
    ),
    "names with blanks around": sheet(HEAD, [D22, " anna ", "ben\u00a0"], games=ONE),
    # sheets
    "a hidden sheet": sheet(
        *WIDE, others=[("Old", "hidden", [["x"]])], games=TWO, told=["sheet Results, not Old"]
    ),
    "hidden rows and columns": sheet(
        *WIDE, hidden_rows=[3], hidden_columns=[1], games=TWO, told=["line 3 is hidden, and read like the others"]
    ),
    "many hidden rows": sheet(
        HEAD, *[[D22, "anna", "ben"]] * 7, hidden_rows=range(2, 9), told=["lines 2, 3, 4, 5, 6 and 2 more are hidden"],
        games=[f"2024-11-22-{number} {ONE[0].partition(' ')[2]}" for number in range(1, 8)],
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
    "a sheet of 1,048,576 rows of nothing": sheet(
        more={"xl/worksheets/sheet1.xml": WORKSHEET % (b'<row><c s="1"/></row>' * 1_048_576)},
        refused=[("None empty-file", "no sheet that is not hidden has anything in it")],
    ),
    "a table above 1,048,573 rows of nothing": sheet(
        more={"xl/worksheets/sheet1.xml": WORKSHEET % (SHEET_ROWS + b'<row><c s="1"/></row>' * 1_048_574)},
        games=ONE,
    ),
    "a cell in the last corner": sheet(
        more={"xl/worksheets/sheet1.xml": WORKSHEET % (SHEET_ROWS + b'<row><c r="XFD1048576"><v>1</v></c></row>')},
        refused=[("None bad-spreadsheet", "save the table alone as .xlsx or as CSV UTF-8")],
    ),
    "an export of Google Sheets as a spreadsheet": sheet(
        *WIDE, *[[Raw(' s="1"', ""), Raw(' s="0"', ""), Raw(' s="0"', "")]] * 997, games=TWO
    ),
    "rows with errors that repeat": Case(
        ods([HEAD, *[[D22, "anna", ODS_ERROR]] * 3]), name="results.ods",
        refused=[(f"{line} bad-cell", f"Results!C{line}: the error #DIV/0!") for line in (2, 3, 4)],
    ),
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
    "decimal commas in a table of the usual form": csv(
        "game_id;occurred_at;player;score\n7;2024-11-22;anna;7,5\n7;2024-11-22;ben;7\n",
        games=["7 2024-11-22T11:00 anna =7.5 ben =7"],
    ),
    "a comma for thousands in a table of the usual form": csv(
        "game_id;occurred_at;player;score\n7;2024-11-22;anna;1,500\n7;2024-11-22;ben;7\n",
        refused=[("2 bad-decimal", "'1,500' may be a whole number or a fraction; write a point"), AFTER],
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
    "a word without end, in Western Europe": csv(
        f"Datum;1.;2.\n22.11.2024;{'x' * 300_000};Jörg\n", "cp1252",
        refused=[("2 bad-csv", "a cell has more than 131,072 characters, perhaps for want of a quotation mark")],
    ),
    "blanks without end between two names": csv(
        f"Date,1st,2nd\n2024-11-22,a{' ' * 130_000}b/c,d\n", refused=[("2 tied-players", "looks like more than one")],
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
    "ends of lines as old Macs write them": csv("Date,1st,2nd\r22/11/2024,anna,ben\r23/11/2024,ben,anna\r", games=TWO),
    "all three ends of lines": csv("Date,1st,2nd\r\n22/11/2024,anna,ben\r23/11/2024,ben,anna\n", games=TWO),
    "mixed ends of lines": csv("Date,1st,2nd\r\n22/11/2024,anna,ben\n23/11/2024,ben,anna\r\n", games=TWO),
    "NUL bytes": csv("Date,1st,2nd\n22/11/2024,an\0na,ben\n", refused=[("2 bad-identifier", "")]),
    "NUL bytes in the header": csv(
        "Da\0te,1st,2nd\n22/11/2024,anna,ben\n", refused=[("1 bad-csv", "the file is neither text nor a spreadsheet")]
    ),
    "names with the delimiter in them": csv(
        'Date,1st,2nd\n2024-11-22,"van Dam, Jan","O""Neill"\n',
        games=['2024-11-22-1 2024-11-22T11:00 van Dam, Jan 1 O"Neill 2'],
    ),
    "a quotation mark that is never closed": csv(
        'Date,1st,2nd\n22/11/2024,"anna,ben\n23/11/2024,ben,anna\n',
        refused=[("2 bad-csv", "the row cannot be split into cells: unexpected end of data; the rest was not read")],
    ),
    "a row with more cells than the header": csv(
        "Date,1st,2nd\n22/11/2024,anna,ben,x\n", refused=[("2 row-length", "the row has 4 cells, the header 3")]
    ),
    "an export of Google Sheets": csv('Date,1st,2nd\r\n"11/22/2024","anna","ben"\r\n', games=ONE),
    # what a file is
    "a spreadsheet called CSV": sheet(*WIDE, name="results.csv", games=TWO),
    "a spreadsheet in gzip": Case(gzip.compress(xlsx(WIDE)), name="results.csv.gz", games=TWO),
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
    "the start of an archive": Case(
        xlsx([])[:30] + b"", name="results.xlsx", refused=[("None bad-spreadsheet", "it is cut off or damaged")]
    ),
    "binary Excel": Case(
        archive({"xl/workbook.bin": b""}), name="results.xlsb",
        refused=[("None is-a-spreadsheet", "it has the binary format of Excel; save it as .xlsx")],
    ),
    "Numbers": Case(
        archive({"Index/Document.iwa": b""}), name="results.numbers",
        refused=[("None is-a-spreadsheet", "it is a document of Numbers, Pages or Keynote; export it as .xlsx")],
    ),
    "a text of Word": Case(
        archive({"word/document.xml": b""}), name="results.xlsx",
        refused=[("None is-a-spreadsheet", "it is a text, not a spreadsheet; copy its table into one")],
    ),
    "a text of LibreOffice": Case(
        archive({"mimetype": b"application/vnd.oasis.opendocument.text", "content.xml": b"<x/>"}), name="results.ods",
        refused=[("None is-a-spreadsheet", "it is an OpenDocument, but no spreadsheet")],
    ),
    "an archive of tables": Case(
        archive({"results.csv": b"Date,1st,2nd\n", "more.csv": b""}), name="results.zip",
        refused=[("None is-a-spreadsheet", "it is an archive of 2 files, such as 'more.csv'; take")],
    ),
    "a web page": csv(
        "<html><table><tr><td>Date", name="results.xls", refused=[("None is-a-spreadsheet", "it is XML or HTML; save")]
    ),
    "an old spreadsheet in XML": csv(
        '<?xml version="1.0"?><Workbook/>', name="results.xml",
        refused=[("None is-a-spreadsheet", "it is XML or HTML; save")],
    ),
    "a PDF": csv("%PDF-1.7\n", name="results.pdf", refused=[("None is-a-spreadsheet", "it is a PDF; save")]),
    "a part that is missing": Case(
        archive({"xl/styles.xml": b"<styleSheet/>"}), name="results.xlsx",
        refused=[("None bad-spreadsheet", "it is damaged: xl/workbook.xml is missing; open it")],
    ),
    "a document type": sheet(
        more={"xl/worksheets/sheet1.xml": b'<!DOCTYPE x [<!ENTITY a "b">]><worksheet/>'},
        options=(*SET, "--sheet", "Results"), refused=[("None bad-spreadsheet", "it declares a document type")],
    ),
}  # fmt: skip

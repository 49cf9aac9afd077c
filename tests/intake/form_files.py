"""Responses to forms, tables copied from web pages, and dates as people type them, each with the expected result."""

from cases import NUMBERED, SET, Case, csv, sheet
from sheet_files import ods

FORM = [
    ["Timestamp", "Email Address", "Winner", "Loser"],
    ["2026/11/15 8:01:02 PM GMT+1", "anna@example.org", "anna", "ben"],
    ["2026/11/16 12:05:00 AM GMT+1", "ben@example.org", "ben", "anna"],
]
FORM_GAMES = ["2026-11-15-1 2026-11-15T19:01 anna 1 ben 2", "2026-11-16-1 2026-11-15T23:05 ben 1 anna 2"]
FORM_NOTES = ["Timestamp = occurred_at", "left out: column Email Address; e-mail addresses do not belong in a ledger"]
DATE_FORM = [
    ["Zeitstempel", "E-Mail-Adresse", "Datum", "Sieger", "Verlierer"],
    ["2024/11/25 8:01:02 AM GMT+1", "a@example.org", "22.11.2024", "anna", "ben"],
]
DATE_FORM_GAMES = ["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2"]
DATE_FORM_NOTES = ["left out: column Zeitstempel; another column says when games were played"]
YEARLESS = [["Date", "1st", "2nd"], ["22.11.", "anna", "ben"], ["Nov 23", "anna", "ben"]]
YEARLESS_REJECTIONS = [
    ("2 bad-time", "'22.11.' has no year; write the whole date"),
    ("3 bad-time", "'Nov 23' has no year"),
]
DOTS = [["Date", "1st", "2nd"], ["5.11.2024", "anna", "ben"], ["2024.11.06", "anna", "ben"]]
DOTS_GAMES = ["2024-11-05-1 2024-11-05T11:00 anna 1 ben 2", "2024-11-06-1 2024-11-06T11:00 anna 1 ben 2"]

TWO_NAMES = [
    ["Nachname", "Vorname", "Datum", "Platz"],
    ["Adler", "Anna", "22.11.2024", "1"],
    ["Berg", "Ben", "22.11.2024", "2"],
    ["", "Cleo", "22.11.2024", "3"],
]
TWO_NAMES_GAMES = ["2024-11-22-1 2024-11-22T11:00 Anna Adler 1 Ben Berg 2 Cleo 3"]
TWO_NAMES_NOTES = ["Vorname + Nachname = player"]
MATCHES = [
    ["Datum", "Paarung", "Ergebnis"],
    ["22.11.2024", "Anna - Ben", "3:1"],
    ["23.11.2024", "Ann-Kathrin vs. Ben", "1:3"],
    ["Datum", "Paarung", "Ergebnis"],
    ["24.11.2024", "Cleo – Anna", "3:2"],
]
MATCHES_GAMES = [
    "2024-11-22-1 2024-11-22T11:00 Anna =3 Ben =1",
    "2024-11-23-1 2024-11-23T11:00 Ann-Kathrin =1 Ben =3",
    "2024-11-24-1 2024-11-24T11:00 Cleo =3 Anna =2",
]
MATCHES_NOTES = [
    "left out: line 4, the header again",
    "1st of Paarung = first player",
    "2nd of Paarung = second player",
]


def _format_csv(rows: list[list[str]], delimiter: str = ",") -> str:
    return "".join(delimiter.join(row) + "\n" for row in rows)


CASES = {
    "responses to a form": csv(_format_csv(FORM), games=FORM_GAMES, notes=FORM_NOTES),
    "responses to a form in a spreadsheet": sheet(*FORM, games=FORM_GAMES, notes=FORM_NOTES),
    "responses to a form in LibreOffice": Case(ods(FORM), games=FORM_GAMES, notes=FORM_NOTES, name="results.ods"),
    "a form that asks for the date": csv(_format_csv(DATE_FORM), games=DATE_FORM_GAMES, notes=DATE_FORM_NOTES),
    "a form that asks for the date, in a spreadsheet": sheet(*DATE_FORM, games=DATE_FORM_GAMES, notes=DATE_FORM_NOTES),
    "a form's times in UTC and with an offset": csv(
        "Timestamp,Winner,Loser\n2024/11/22 8:01:02 AM UTC,anna,ben\n2024/11/22 9:00:00 AM GMT-4:30,ben,anna\n",
        games=["2024-11-22-1 2024-11-22T08:01 anna 1 ben 2", "2024-11-22-2 2024-11-22T13:30 ben 1 anna 2"],
    ),
    "a table copied from a web page": csv(
        "Date\tWhite\tBlack\tResult\xa0\n5.11.2024\tanna \t\xa0ben\t1-0\n",
        notes=[NUMBERED],
        games=["2024-11-05-1 2024-11-05T11:00 anna 1 ben 2"],
        name="results.tsv",
    ),
    "dates with dots, day or year first": csv(_format_csv(DOTS), games=DOTS_GAMES),
    "dates with dots, day or year first, in a spreadsheet": sheet(*DOTS, games=DOTS_GAMES),
    "dates with dots, day or year first, in LibreOffice": Case(ods(DOTS), games=DOTS_GAMES, name="results.ods"),
    "a month before a day with dots": csv(
        "Date,1st,2nd\n11.30.2026,anna,ben\n",
        refused=[("1 unclear-dates", "'11.30.2026' (line 2) is not day.month.year; if the month comes first, pass")],
    ),
    "a month before a day with dots, with --dates": csv(
        "Date,1st,2nd\n11.30.2024,anna,ben\n",
        options=(*SET, "--dates", "mdy"),
        games=["2024-11-30-1 2024-11-30T11:00 anna 1 ben 2"],
    ),
    "first and last names in columns of their own": csv(
        _format_csv(TWO_NAMES, ";"), games=TWO_NAMES_GAMES, notes=TWO_NAMES_NOTES
    ),
    "first and last names in a spreadsheet": sheet(*TWO_NAMES, games=TWO_NAMES_GAMES, notes=TWO_NAMES_NOTES),
    "first and last names in LibreOffice": Case(
        ods(TWO_NAMES), games=TWO_NAMES_GAMES, notes=TWO_NAMES_NOTES, name="results.ods"
    ),
    "first names beside a column of last names that is called Name": csv(
        "Name;Vorname;Datum;Punkte\nAdler;Anna;22.11.2024;9\nBerg;Ben;22.11.2024;8\n",
        games=["2024-11-22-1 2024-11-22T11:00 Anna Adler =9 Ben Berg =8"],
        notes=["Vorname + Name = player"],
    ),
    "first names beside whole names": csv(
        "Name;Vorname;Datum;Punkte\nAnna Adler;Anna;22.11.2024;9\nBen Berg;Ben;22.11.2024;8\n",
        refused=[("1 unknown-column", "unknown column: 'Vorname'")],
    ),
    "both players in one cell": csv(_format_csv(MATCHES, ";"), games=MATCHES_GAMES, notes=MATCHES_NOTES),
    "both players in one cell of a spreadsheet": sheet(*MATCHES, games=MATCHES_GAMES, notes=MATCHES_NOTES),
    "both players in one cell, in LibreOffice": Case(
        ods(MATCHES), games=MATCHES_GAMES, notes=MATCHES_NOTES, name="results.ods"
    ),
    "both teams in one cell": csv(
        "Date,Match,Result\n2024-11-22,anna/ben v cleo/dora,1-0\n",
        options=(*SET, "--partners", "/"),
        games=["2024-11-22-1 2024-11-22T11:00 anna 1 ben 1 cleo 2 dora 2"],
    ),
    "a row with one player among rows with both": csv(
        "Date,Home - Away,Score\n2024-11-22,anna - ben,3:1\n2024-11-23,cleo - anna,0:3\n2024-11-24,anna,3:1\n",
        refused=[("4 missing-member", "the row has no second player")],
    ),
    "three names in one cell": csv(
        "Date,Match,Result\n2024-11-22,anna - ben - cleo,3:1\n",
        refused=[("1 missing-column", "")],
    ),
    "a game with a dash in its name": csv(
        "Date,Game,Winner,Loser\n2024-11-22,Catan - Seafarers,anna,ben\n",
        options=(),
        games=["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2"],
        notes=["Catan - Seafarers = catan-seafarers"],
    ),
    "dates without a year": csv(_format_csv(YEARLESS), refused=YEARLESS_REJECTIONS),
    "dates without a year in a spreadsheet": sheet(*YEARLESS, refused=YEARLESS_REJECTIONS),
    "dates without a year in LibreOffice": Case(ods(YEARLESS), refused=YEARLESS_REJECTIONS, name="results.ods"),
}

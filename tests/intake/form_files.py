"""Answers of forms, copies of tables from web pages, and dates as people type them, each with what comes out of it."""

from cases import NUMBERED, SET, Case, csv, sheet
from sheet_files import ods

FORM = [
    ["Timestamp", "Email Address", "Winner", "Loser"],
    ["2026/11/15 8:01:02 PM GMT+1", "anna@example.org", "anna", "ben"],
    ["2026/11/16 12:05:00 AM GMT+1", "ben@example.org", "ben", "anna"],
]
FORM_GAMES = ["2026-11-15-1 2026-11-15T19:01 anna 1 ben 2", "2026-11-16-1 2026-11-15T23:05 ben 1 anna 2"]
FORM_TOLD = ["Timestamp = occurred_at", "left out: column Email Address; e-mail addresses do not belong in a ledger"]
DATED = [
    ["Zeitstempel", "E-Mail-Adresse", "Datum", "Sieger", "Verlierer"],
    ["2024/11/25 8:01:02 AM GMT+1", "a@example.org", "22.11.2024", "anna", "ben"],
]
DATED_GAMES = ["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2"]
DATED_TOLD = ["left out: column Zeitstempel; another column says when games were played"]
YEARLESS = [["Date", "1st", "2nd"], ["22.11.", "anna", "ben"], ["Nov 23", "anna", "ben"]]
NO_YEAR = [("2 bad-time", "'22.11.' has no year; write the whole date"), ("3 bad-time", "'Nov 23' has no year")]
DOTS = [["Date", "1st", "2nd"], ["5.11.2024", "anna", "ben"], ["2024.11.06", "anna", "ben"]]
DOTS_GAMES = ["2024-11-05-1 2024-11-05T11:00 anna 1 ben 2", "2024-11-06-1 2024-11-06T11:00 anna 1 ben 2"]


def _text(rows: list[list[str]], mark: str = ",") -> str:
    return "".join(mark.join(row) + "\n" for row in rows)


CASES = {
    "answers of a form": csv(_text(FORM), games=FORM_GAMES, told=FORM_TOLD),
    "answers of a form in a spreadsheet": sheet(*FORM, games=FORM_GAMES, told=FORM_TOLD),
    "answers of a form in LibreOffice": Case(ods(FORM), games=FORM_GAMES, told=FORM_TOLD, name="results.ods"),
    "a form that asks for the date": csv(_text(DATED), games=DATED_GAMES, told=DATED_TOLD),
    "a form that asks for the date, in a spreadsheet": sheet(*DATED, games=DATED_GAMES, told=DATED_TOLD),
    "a form's times in UTC": csv(
        "Timestamp,Winner,Loser\n2024/11/22 8:01:02 AM UTC,anna,ben\n2024/11/22 9:00:00 AM GMT-4:30,ben,anna\n",
        games=["2024-11-22-1 2024-11-22T08:01 anna 1 ben 2", "2024-11-22-2 2024-11-22T13:30 ben 1 anna 2"],
    ),
    "a table copied from a web page": csv(
        "Date\tWhite\tBlack\tResult\xa0\n5.11.2024\tanna \t\xa0ben\t1-0\n", told=[NUMBERED],
        games=["2024-11-05-1 2024-11-05T11:00 anna 1 ben 2"], name="results.tsv",
    ),
    "days before months with dots": csv(_text(DOTS), games=DOTS_GAMES),
    "days before months with dots, in a spreadsheet": sheet(*DOTS, games=DOTS_GAMES),
    "days before months with dots, in LibreOffice": Case(ods(DOTS), games=DOTS_GAMES, name="results.ods"),
    "a month before a day with dots": csv(
        "Date,1st,2nd\n11.30.2026,anna,ben\n",
        refused=[("1 unclear-dates", "'11.30.2026' (line 2) is no day.month.year; if the month comes first, pass")],
    ),
    "a month before a day with dots, as said": csv(
        "Date,1st,2nd\n11.30.2024,anna,ben\n", options=(*SET, "--dates", "mdy"),
        games=["2024-11-30-1 2024-11-30T11:00 anna 1 ben 2"],
    ),
    "dates without a year": csv(_text(YEARLESS), refused=NO_YEAR),
    "dates without a year in a spreadsheet": sheet(*YEARLESS, refused=NO_YEAR),
    "dates without a year in LibreOffice": Case(ods(YEARLESS), refused=NO_YEAR, name="results.ods"),
}  # fmt: skip

"""Tables as people keep them, each with the expected games or the exact rejections."""

from datetime import date, datetime

import exported_files
import file_kinds
import form_files
import program_files
import team_files
import text_files
from cases import (
    AFTER,
    D22,
    D23,
    HEAD,
    LONG,
    MERGED_DAY,
    NUMBERED,
    ODS_ERROR,
    OLD_ERROR,
    ONE,
    SET,
    SHEET_ROWS,
    TWO,
    WIDE,
    WORKSHEET,
    Case,
    csv,
    sheet,
)
from sheet_files import CURRENCY, DATETIME, EPOCH_1904, ERROR, FORMULA, NO_VALUE, PERCENT, Raw, ods

TABLES = {
    # layouts
    "a column per place": sheet(*WIDE, games=TWO, notes=["Date = occurred_at", NUMBERED]),
    "a row per player, in German": sheet(*LONG, games=TWO, notes=["Spieler = player, Platz = place"]),
    "thousands in a text": sheet(
        ["Date", "Player", "Points"], [D22, "anna", "1.000"], [D22, "ben", 950],
        refused=[("2 bad-decimal", "'1.000' could be a whole number or a fraction; write 1000 or 1.0"), AFTER],
    ),
    "a number with three places, and a name that looks like one": sheet(
        ["Date", "Player", "Points"], [D22, "1.000", 1.125], [D22, "ben", 1],
        games=["2024-11-22-1 2024-11-22T11:00 1.000 =1.125 ben =1"],
    ),
    "winner and loser": sheet(["When", "Winner", "Loser"], [D22, "anna", "ben"], games=ONE),
    "a column per player with places": sheet(
        ["Date", "anna", "ben", "cleo"], [D22, 1, 2, None], [D23, 3, 1, 2],
        games=[*ONE, "2024-11-23-1 2024-11-23T11:00 anna 3 ben 1 cleo 2"], notes=["a column per player with the place"],
    ),
    "places of which one is mistyped": csv(
        "Datum;Anna;Ben;Cleo\n17.01.2025;3;1;2\n18.01.2025;2;1;2\n19.01.2025;1;2;4\n",
        refused=[("4 unclear-layout", "most rows have places, but this row has other numbers")],
    ),
    "scores that look like places now and then": csv(
        "Date,Anna,Ben,Cleo\n2024-11-22,3,1,2\n2024-11-23,10,7,8\n",
        games=["2024-11-22-1 2024-11-22T11:00 Anna =3 Ben =1 Cleo =2",
               "2024-11-23-1 2024-11-23T11:00 Anna =10 Ben =7 Cleo =8"],
    ),
    "a column per player with scores": sheet(
        ["Date", "anna", "ben", "cleo"], [D22, 10, 7, None], [D23, 4, 8, 8],
        games=["2024-11-22-1 2024-11-22T11:00 anna =10 ben =7", "2024-11-23-1 2024-11-23T11:00 anna =4 ben =8 cleo =8"],
        notes=["a column per player with the score"],
    ),
    "scores that look like places, with their layout as an option": sheet(
        ["Date", "anna", "ben"], [D22, 1, 2], options=(*SET, "--layout", "player-scores"),
        games=["2024-11-22-1 2024-11-22T11:00 anna =1 ben =2"],
    ),
    "places as people write them": sheet(
        LONG[0], [D23, "anna", "1."], [D23, "ben", "2nd"], [D23, "ben", "1er"], [D23, "anna", "2º"],
        games=["2024-11-23-1 2024-11-23T11:00 anna 1 ben 2", "2024-11-23-2 2024-11-23T11:00 ben 1 anna 2"],
        notes=["they are numbered by day, such as 2024-11-23-1"],
    ),
    "places as people write them, in a column per player": sheet(
        ["Date", "anna", "ben"], [D22, "1.", "2."], games=ONE, notes=["a column per player with the place"],
    ),
    "chess": sheet(
        ["Date", "White", "Black", "Result"], [D22, "anna", "ben", "1-0"], [D23, "ben", "anna", "½-½"],
        [D23, "ben", "anna", "0 - 1"], options=("--set", "game=chess"),
        games=[*ONE, "2024-11-23-1 2024-11-23T11:00 ben 1 anna 1", "2024-11-23-2 2024-11-23T11:00 ben 2 anna 1"],
    ),
    "dashes where nobody was third": csv(
        "Date,1st,2nd,3rd\n2024-11-22,anna,ben,-\n2024-11-23,ben,anna,–\n2024-11-24,?,-,...\n", games=TWO,
        notes=["left out: line 4, '2024-11-24'"],
    ),
    "a row of dashes": csv(
        "Date,1st,2nd,3rd\n2024-11-22,anna,ben,-\n,?,-,...\n2024-11-23,ben,anna,-\n", games=TWO,
        notes=["left out: line 3, '-'"],
    ),
    "dashes where nobody was third, in the usual form": csv(
        "game_id,occurred_at,game,1st,2nd,3rd\n2024-11-22-1,2024-11-22 11:00Z,catan,anna,ben, - \n", options=(),
        games=ONE,
    ),
    "a dash that is tied with somebody": csv(
        "Date,1st,2nd\n2024-11-22,anna,ben=-\n", refused=[("2 bad-identifier", "'' has 0 characters")]
    ),
    "a dash in the place of an opponent": sheet(
        ["Date", "White", "Black", "Result"], [D22, "anna", "-", "1-0"],
        refused=[("2 missing-member", "the row has no second player")],
    ),
    "a dash in the place of a player": csv(
        "game_id,occurred_at,game,player,place\ng-1,2024-11-22,catan,anna,1\ng-1,2024-11-22,catan,-,2\n", options=(),
        refused=[("3 missing-member", "the row has no player; fill in the name, or delete the row")],
    ),
    "dashes in the columns of players who did not play": sheet(
        ["Date", "anna", "ben", "cleo", "dora"], [D22, 1, 2, "-", "-"], [D23, "-", 1, 2, None],
        games=[*ONE, "2024-11-23-1 2024-11-23T11:00 ben 1 cleo 2"], notes=["a column per player with the place"],
    ),
    "dashes in the columns of scores": sheet(
        ["Date", "anna", "ben", "cleo"], [D22, 10, 7, "—"], games=["2024-11-22-1 2024-11-22T11:00 anna =10 ben =7"],
    ),
    "an emoji that is a name": csv(
        "Date,1st,2nd\n2024-11-22,🦊,ben\n", games=["2024-11-22-1 2024-11-22T11:00 🦊 1 ben 2"]
    ),
    "words for nobody": csv(
        "Date,1st,2nd\n2024-11-22,anna,BYE\n2024-11-23,anna,(spielfrei)\n2024-11-24,anna,n/a\n",
        refused=[
            ("2 nobody", "'BYE' does not name a player; leave the cell empty, or omit the row if there was no game"),
            ("3 nobody", "'(spielfrei)' does not name a player"), ("4 nobody", "'n/a' does not name a player"),
        ],
    ),
    "a word for nobody, accepted": csv(
        "Date,1st,2nd\n2024-11-22,None,ben\n", options=(*SET, "--new-names", "accept"),
        games=["2024-11-22-1 2024-11-22T11:00 None 1 ben 2"],
    ),
    "half a point for one player alone": csv(
        "Date,White,Black,Result\n2024-11-22,anna,ben,½-0\n2024-11-23,anna,ben,1 - 0.5\n2024-11-24,anna,ben,1.5-0.5\n",
        refused=[
            ("2 bad-value", "D2 (Result): '½-0' gives half a point to only one player; write ½-½, 1-0 or 0-1"),
            ("3 bad-value", "D3 (Result): '1 - 0.5' gives half a point to only one player"),
        ],
    ),
    "games won and drawn in a match": csv(
        "Date,White,Black,Result\n2024-11-22,anna,ben,1.5-0.5\n2024-11-23,anna,ben,0-0\n",
        games=["2024-11-22-1 2024-11-22T11:00 anna =1.5 ben =0.5", "2024-11-23-1 2024-11-23T11:00 anna =0 ben =0"],
    ),
    "goals": sheet(
        ["Tag", "Heim", "Gast", "Ergebnis"], [D22, "anna", "ben", "3:1"],
        games=["2024-11-22-1 2024-11-22T11:00 anna =3 ben =1"],
    ),
    "a column of totals among players": sheet(
        ["Date", "anna", "ben", "Summe"], [D22, 10, 7, 17], [D23, 4, 8, 12],
        refused=[("1 unknown-column", "unknown column: 'Summe'; rename a column with --map 'Summe=OURS', or drop it")],
    ),
    "a column of totals that is dropped": sheet(
        ["Date", "anna", "ben", "Total"], [D22, 1, 2, 3], options=(*SET, "--map", "Total="), games=ONE,
    ),
    "two names, and a score for each": sheet(
        ["Date", "Player 1", "Score 1", "Player 2", "Score 2"], [D22, "anna", 11, "ben", 9],
        games=["2024-11-22-1 2024-11-22T11:00 anna =11 ben =9"],
    ),
    "an unknown result": sheet(
        ["Date", "White", "Black", "Result"], [D22, "anna", "ben", "tbd"],
        refused=[("2 bad-value", "Results!D2 (Result): 'tbd' is not a result; examples: 1-0, 3:2, draw, 11:7")],
    ),
    "ties in a cell": sheet([*HEAD, "3rd"], [D22, "anna", "ben=cleo"], games=[ONE[0] + " cleo 2"]),
    "ties with a slash, by option": sheet(
        [*HEAD, "3rd"], [D22, "anna", "ben/cleo"], options=(*SET, "--ties", "/"), games=[ONE[0] + " cleo 2"]
    ),
    "a formula for a name": csv(
        "Date,1st,2nd\n2024-11-22,=cmd,ben\n",
        refused=[("2 bad-identifier", "1st: '=cmd' contains an empty name; write names on both sides of =")],
    ),
    "an empty name beside =, with / for ties as well": csv(
        "Date,1st,2nd\n2024-11-22,anna,=ben\n",
        options=(*SET, "--ties", "/"),
        refused=[("2 bad-identifier", "2nd: '=ben' contains an empty name; write names on both sides of =")],
    ),
    "ties with a slash, without the option": sheet(
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
    "a column of game numbers": sheet(
        ["Nr.", *HEAD], [7, D22, "anna", "ben"], games=["7" + ONE[0][12:]], notes=["Nr. = game_id"]
    ),
    "games called by their number": sheet(["Game", *HEAD], ["7", D22, "anna", "ben"], games=["7" + ONE[0][12:]]),
    # games
    "games as people write them": sheet(
        ["Date", "Spiel", "1st", "2nd"], [D22, "Settlers of Catan", "anna", "ben"],
        [D23, "SÉTTLERS OF CATAN!", "ben", "anna"], options=(), games=TWO,
        notes=["games: Settlers of Catan = settlers-of-catan, SÉTTLERS OF CATAN! = settlers-of-catan"],
    ),
    "a game as people write it, for all rows": sheet(
        *WIDE, options=("--set", "game=Catan"), games=TWO, notes=["games: Catan = catan"]
    ),
    "games in letters that no id of a game can have": sheet(
        ["Date", "Spiel", "1st", "2nd"], [D22, "囲碁 9", "anna", "ben"], [D23, "!", "ben", "anna"], options=(),
        refused=[
            ("2 bad-slug", "'囲碁 9' is not a name like blue-max; write one with letters a to z"),
            ("3 bad-slug", "'!' is not a name like blue-max"),
        ],
    ),
    "a column of games that one value replaces": sheet(
        ["Date", "Spiel", "1st", "2nd"], [D22, "catan", "anna", "ben"], [D23, "schach", "ben", "anna"], games=TWO,
        notes=["game=catan replaces column Spiel (catan, schach)", "columns: Date = occurred_at\n"],
    ),
    "a column of dates that one value replaces": sheet(
        HEAD, ["soon", "anna", "ben"], options=(*SET, "--set", "occurred_at=2024-11-22"), games=ONE,
        notes=["occurred_at=2024-11-22 replaces column Date (soon)"],
    ),
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
        HEAD, [D22, "anna", "ben"], ["23.11.2024", "ben", "anna"], games=TWO, notes=["day/month/year, from 23.11.2024"]
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
        HEAD, ["Friday", "anna", "ben"],
        refused=[("2 bad-time", "'Friday' is not a time like 2010-03-05T19:30:00Z, 2010-03-05 20:30, 05.03.2010, 5")],
    ),
    "a date that no calendar has": sheet(
        HEAD, [Raw(' s="1"', "<v>99999999</v>"), "anna", "ben"],
        refused=[("2 bad-time", "Results!2: '99999999' is a number; format the column as dates")],
    ),
    "a date to come": sheet(
        HEAD, [date(2999, 1, 1), "anna", "ben"], refused=[("2 unlikely-date", "2999-01-01T11:00:00Z is in the future")]
    ),
    "an hour that the clocks leave out": csv(
        "Date,1st,2nd\n31.03.2024 02:30,anna,ben\n",
        refused=[("2 nonexistent-time", "does not exist in Europe/Berlin, because the clocks change; write")],
    ),
    "an hour that occurs twice": csv(
        "Date,1st,2nd\n27.10.2024 02:30,anna,ben\n27.10.2024 02:30+02:00,anna,ben\n27.10.2024 02:30 +01:00,ben,anna\n",
        refused=[("2 ambiguous-time", "write the time with its offset, such as 2024-10-27 02:30+02:00")],
    ),
    "times of day with their offsets": csv(
        "Date,Time,1st,2nd\n27.10.2024,2:30 AM +02:00,anna,ben\n27.10.2024,02:30+01:00,ben,anna\n",
        games=["2024-10-27-1 2024-10-27T00:30 anna 1 ben 2", "2024-10-27-2 2024-10-27T01:30 ben 1 anna 2"],
    ),
    "no date at all": sheet(
        HEAD, [None, "anna", "ben"], refused=[("2 missing-member", "Results!2: the row has no date")]
    ),
    "day first, decided by another row": csv(
        "Date,1st,2nd\n05/03/2024,anna,ben\n22/11/2024,ben,anna\n", notes=["day/month/year, from 22/11/2024 in line 3"],
        games=["2024-03-05-1 2024-03-05T11:00 anna 1 ben 2", "2024-11-22-1 2024-11-22T11:00 ben 1 anna 2"],
    ),
    "month first": csv(
        "Date,1st,2nd\n11/22/24,anna,ben\n", games=ONE, notes=["month/day/year, from 11/22/24 in line 2"]
    ),
    "with a time of twelve hours": csv(
        "Date,1st,2nd\n11/22/24 8:05 PM,anna,ben\n", games=["2024-11-22-1 2024-11-22T19:05 anna 1 ben 2"]
    ),
    "nothing decides the order": csv(
        "Date,1st,2nd\n03/05/2024,anna,ben\n",
        refused=[
            ("1 unclear-dates", "'03/05/2024' (line 2) could be 3 May 2024 (--dates dmy) or 5 March 2024 (--dates mdy)")
        ],
    ),
    "nothing decides the order, but an option says it": csv(
        "Date,1st,2nd\n03/05/2024,anna,ben\n", options=(*SET, "--dates", "mdy"),
        games=["2024-03-05-1 2024-03-05T11:00 anna 1 ben 2"],
    ),
    "two orders": csv(
        "Date,1st,2nd\n22/11/2024,anna,ben\n11/23/2024,ben,anna\n", refused=[("1 unclear-dates", "no order fits all")]
    ),
    "the year first": csv("Date,1st,2nd\n2024/11/22,anna,ben\n", games=ONE),
    "months and weekdays by name": sheet(
        HEAD, ["Fri 22 Nov 2024", "anna", "ben"], ["Samstag, 23. Nov. 24", "ben", "anna"],
        ["November 24th, 2024", "anna", "ben"], ["lunes 25 de noviembre de 2024 20:05", "ben", "anna"],
        ["wtorek, 26 listopada 2024 r.", "anna", "ben"], ["27-NOV-24 8:05 PM", "ben", "anna"],
        games=[
            *TWO, "2024-11-24-1 2024-11-24T11:00 anna 1 ben 2", "2024-11-25-1 2024-11-25T19:05 ben 1 anna 2",
            "2024-11-26-1 2024-11-26T11:00 anna 1 ben 2", "2024-11-27-1 2024-11-27T19:05 ben 1 anna 2",
        ],
    ),
    "months by name in a table of the usual form": csv(
        'game_id,occurred_at,1st,2nd\n7,"November 22, 2024",anna,ben\n', games=["7" + ONE[0][12:]]
    ),
    "weekdays before figures": csv(
        "Date,1st,2nd\nSa 23.11.2024,ben,anna\nFri. 22.11.2024 20:05,anna,ben\nfri 2024-11-22,ben,anna\n",
        notes=["day/month/year, from Sa 23.11.2024 in line 2"],
        games=["2024-11-22-2 2024-11-22T11:00 ben 1 anna 2", "2024-11-22-1 2024-11-22T19:05 anna 1 ben 2", TWO[1]],
    ),
    "a weekday does not decide the order": csv(
        "Date,1st,2nd\nTue 05/03/2024,anna,ben\n",
        refused=[("1 unclear-dates", "'Tue 05/03/2024' (line 2) could be 5 March 2024 (--dates dmy) or 3 May 2024")],
    ),
    "what is a month in one date and a weekday in another": csv(
        "Date;1st;2nd\nmar. 5, 2024;anna;ben\nmar. 12 mars 2024;anna;ben\nMar 12/11/24;anna;ben\nmar 19-11;anna;ben\n",
        options=(*SET, "--dates", "dmy", "--keep-going"), refused=[("5 bad-time", "'mar 19-11' is not a time")],
        games=[
            f"{day}-1 {day}T11:00 anna 1 ben 2" for day in ("2024-03-05", "2024-03-12", "2024-11-12")
        ],
    ),
    "weekdays of other dates": sheet(
        HEAD, ["Sat 22 Nov 2024", "anna", "ben"], ["vendredi 23/11/2024", "ben", "anna"],
        refused=[
            ("2 bad-time", "'Sat 22 Nov 2024' says Saturday, but 2024-11-22 is a Friday; correct the date"),
            ("3 bad-time", "'vendredi 23/11/2024' says Friday, but 2024-11-23 is a Saturday"),
        ],
    ),
    "unknown months, and days that a month lacks": sheet(
        HEAD, ["22 Nev 2024", "anna", "ben"], ["31 Nov 2024", "ben", "anna"], ["22 November", "ben", "anna"],
        refused=[
            ("2 bad-time", "'22 Nev 2024' is not a time like"),
            ("3 bad-time", "'31 Nov 2024' does not exist in the calendar"),
            ("4 bad-time", "'22 November' has no year"),
        ],
    ),
    "a date by name without a game": sheet(
        *WIDE, ["24 Nov 2024"], ["Mon 25 Nov 2024"], games=TWO,
        notes=["left out: line 4, '24 Nov 2024'; line 5, 'Mon 25 Nov 2024'"],
    ),
    "a day that no month has": csv(
        "Date;1st;2nd\n22.11.2024;anna;ben\n31.11.2024;ben;anna\n",
        refused=[("3 bad-time", "'31.11.2024' is not a valid date in the order day/month/year; correct it")],
    ),
    # around the table
    "a title above": sheet(
        ["Catan Club 2024"], [], *WIDE, games=TWO, notes=["left out: line 1 above the header"]
    ),
    "two rows of headers": sheet(
        [None, "Result", "Result"], *WIDE, games=TWO, notes=["left out: line 1 above the header"]
    ),
    "a title merged over the table": sheet(
        ["Catan Club 2024"], *WIDE, merged="A1:C1", games=TWO, notes=["left out: line 1 above the header"]
    ),
    "a header of two rows, merged": sheet(
        ["Date", "Players"], [None, "1st", "2nd"], [D22, "anna", "ben"], merged="B1:C1",
        refused=[
            ("1 missing-column", "there is no column 'player', and 'Players' is unknown; if it is that column"),
            ("1 unknown-column", "column C has no name, but contains '2nd' (line 2); give the column a name"),
        ],
    ),
    "a second row of headers below": sheet(
        HEAD, [None, "(winner)", "(loser)"], [D22, "anna", "ben"],
        refused=[("2 missing-member", "Results!2: the row has no date")],
    ),
    "a remark below": sheet(*WIDE, [], ["Played at Ben's"], games=TWO, notes=["left out: line 5, \"Played at Ben's\""]),
    "remarks between games": sheet(
        WIDE[0], WIDE[1], ["no game this week"], WIDE[2], [D23], games=TWO,
        notes=["left out: line 3, 'no game this week'; line 5, '2024-11-23'"],
    ),
    "remarks between games of a column per player": sheet(
        ["Date", "anna", "ben", "Notes"], [D22, 1, 2], ["no game", None, None, "holidays"], [None, "closed"],
        [D23, 2, 1], [D23, None, None, "nobody came"],
        games=[*ONE, "2024-11-23-1 2024-11-23T11:00 anna 2 ben 1"], options=(*SET, "--map", "Notes="),
        notes=["left out: line 3, 'no game'; line 4, 'closed'; line 6, '2024-11-23'"],
    ),
    "remarks between games of two names": sheet(
        ["Date", "White", "Black", "Result"], [D22, "anna", "ben", "1-0"], [None, None, None, "1-0"], ["break"],
        [D23, "ben", "anna", "1-0"], refused=[("3 missing-member", "Results!3: the row has no date")],
    ),
    "an error in a row without a player": sheet(
        HEAD, [D22, "anna", "ben"], [D23, ERROR], refused=[("3 bad-cell", "Results!B3: the error #REF!")],
    ),
    "a row that cannot be read, among those of two names": sheet(
        ["Date", "White", "Black", "Result"], [D22, "anna", "ben", "1-0"], ["soon", "ben", "anna", "1-0"],
        [D23, "ben", "anna", "1-0"], refused=[("3 bad-time", "Results!3: 'soon' is not a time")],
    ),
    "a remark beside the table": sheet(
        HEAD, [D22, "anna", "ben", None, None, "ask Ben"], [D23, "ben", "anna"],
        refused=[("1 unknown-column", "Results!1: column F has no name, but contains 'ask Ben' (line 2); give the")],
    ),
    "a total without a label": sheet(
        ["Date", "Name", "Points"], [D22, "anna", 9], [D22, "ben", 8], [None, None, 17],
        refused=[("4 missing-member", "Results!4: the row has no player; fill in the name, or delete the row")],
    ),
    "a column of totals in a row per player": sheet(
        ["Date", "Name", "Points", "Total"], [D22, "anna", 9, 9], [D22, "ben", 8, 8],
        refused=[("1 unknown-column", "Results!1: unknown column: 'Total'; rename a column with --map 'Total=OURS'")],
    ),
    "a total below": sheet(
        ["Date", "Name", "Points"], [D22, "anna", 9], [D22, "ben", 8], ["Total", None, 17],
        games=["2024-11-22-1 2024-11-22T11:00 anna =9 ben =8"], notes=["left out: line 4, 'Total'"],
    ),
    "the header again": sheet(
        *WIDE[:2], HEAD, WIDE[2], games=TWO, notes=["left out: line 3, the header again"]
    ),
    "a header with the mark of Excel for its delimiter": csv(
        "sep=;\nDatum;1.;2.\n22.11.2024;anna;ben\n", games=ONE, notes=["left out: line 1 above the header"]
    ),
    "totals in a row with a date": sheet(
        ["Date", "Name", "Points"], [D22, "anna", 9], [D22, "ben", 8], ["Summe", None, 17], ["Average", None, 8.5],
        games=["2024-11-22-1 2024-11-22T11:00 anna =9 ben =8"],
        notes=["left out: line 4, 'Summe'; line 5, 'Average'"],
    ),
    "a blank column": sheet(["Date", None, "1st", "2nd"], [D22, None, "anna", "ben"], games=ONE),
    "a column without a name": sheet(
        ["Date", None, "1st", "2nd"], [D22, "x", "anna", "ben"],
        refused=[("1 unknown-column", "Results!1: column B has no name, but contains 'x' (line 2)")],
    ),
    "notes beside the table": sheet(
        [*HEAD, "Notes"], [D22, "anna", "ben", "at Ben's"],
        games=ONE, notes=["left out: column Notes; remarks are not read"],
    ),
    "prices beside the table": sheet(
        [*HEAD, "Fee"], [D22, "anna", "ben", "2 EUR"],
        refused=[("1 unknown-column", "unknown column: 'Fee'; rename a column with --map 'Fee=OURS', or drop it with")],
    ),
    "notes that are dropped": sheet(
        [*HEAD, "Notes"], [D22, "anna", "ben", "at Ben's"], options=(*SET, "--map", "Notes="), games=ONE
    ),
    "columns with one name": sheet(
        ["Date", "Name", "Name"], [D22, "anna", "ben"], refused=[("1 column-twice", "two columns are read as 'player'")]
    ),
    "many errors at once": sheet(
        ["Date", "Name", "Place", "Place", "Fee", None], [D22, "anna", 1, 1, ERROR, None], [D22, "ben", ERROR, 2],
        ["soon", NO_VALUE, 1, 1, None, "x"], options=(),
        refused=[
            ("1 column-twice", "two columns are read as 'place'"),
            ("1 missing-column", "there is no column 'game', and 'Fee' is unknown; if it is that column"),
            ("1 unknown-column", "column F has no name, but contains 'x' (line 4)"),
            ("3 bad-cell", "Results!C3: the error #REF!"), ("4 bad-cell", "Results!B4: a formula without a value"),
        ],
    ),
    "no header": sheet(
        [D22, "anna", "ben"], [D23, "ben", "anna"],
        refused=[
            ("1 unknown-column", "unknown columns: '2024-11-22', 'anna', 'ben'"), ("1 missing-column", "no columns"),
        ],
    ),
    "no columns of games and players": sheet(
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
    "an error in the header": sheet(
        ["Date", "1st", ERROR], [D22, "anna", "ben"], refused=[("1 bad-cell", "Results!C1: the error #REF!")]
    ),
    "an error in a column without a name": sheet(
        HEAD, [D22, "anna", "ben", ERROR], refused=[("2 bad-cell", "Results!D2: the error #REF!")]
    ),
    "a formula that gives a text, a date, and nothing": sheet(
        [*HEAD, "3rd"],
        [Raw(' s="1"', "<f>A1</f><v>45618</v>"), Raw(' t="str"', "<f>A1</f><v>anna</v>"), "ben",
         Raw(' t="str"', "<f>A1</f><v></v>")],
        games=ONE,
    ),
    "a wrong score in the second row of a game": sheet(
        ["Date", "Name", "Points"], [D22, "anna", 9], [D22, "ben", "eight"],
        refused=[("3 bad-decimal", "Results!3: score: 'eight' is not a decimal number such as 12 or -0.5")],
    ),
    "a wrong place in the third row of a game": sheet(
        LONG[0], [D22, "anna", 1], [D22, "ben", 2], [D22, "cleo", "last"],
        refused=[("4 not-an-integer", "Results!4: place: 'last' is not a whole number")],
    ),
    "a boolean as a score": sheet(
        ["Date", "Name", "Points"], [D22, "anna", True], [D22, "ben", 2],
        refused=[("2 bad-decimal", "Results!2: score: 'true' is not a decimal number")],
    ),
    "a number too large for a score": sheet(
        ["Date", "Name", "Points"], [D22, "anna", 1e20], [D22, "ben", 1],
        refused=[("2 bad-decimal", "Results!2: score: '1e+20' is not a decimal number")],
    ),
    "an error in a dropped column": sheet(
        [*HEAD, "x"], [D22, "anna", "ben", ERROR], options=(*SET, "--map", "x="), games=ONE
    ),
    "a formula with its value": sheet(
        ["Date", "Name", "Points"], [D22, "anna", FORMULA], [D22, "ben", 2],
        games=["2024-11-22-1 2024-11-22T11:00 anna =3 ben =2"],
    ),
    "a formula without its value": sheet(
        ["Date", "Name", "Points"], [D22, "anna", NO_VALUE], [D22, "ben", 2],
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
    "percent and currency as text": sheet(
        ["Date", "Name", "Points"], [D22, "anna", "50 %"], [D22, "ben", "€ 3"],
        refused=[("2 bad-decimal", "'50 %' is not a decimal number")],
    ),
    "names with blanks around": sheet(HEAD, [D22, " anna ", "ben\u00a0"], games=ONE),
    # sheets
    "a line break in a name": sheet(
        HEAD, [D22, "anna\nmaria", "ben"], refused=[("2 line-break", "Results!2: 1st: 'anna\\nmaria' contains")]
    ),
    "line breaks in the header": sheet(["Date", "1st\nplace", "2nd\nplace"], [D22, "anna", "ben"], games=ONE),
    "a player against themselves": sheet(
        HEAD, [D22, "anna", "anna"], refused=[("2 player-twice", "'anna' takes part twice")]
    ),
    "a gap between places": sheet(
        LONG[0], [D22, "anna", 1], [D22, "ben", 3],
        refused=[("2 place-gap", "the places 1, 3 have a gap; add the missing player, or write ties as 1, 2, 2, 4 or")],
    ),
    "a hidden sheet": sheet(
        *WIDE, others=[("Old", "hidden", [["x"]])], games=TWO, notes=["read sheet Results, not Old"]
    ),
    "hidden rows and columns": sheet(
        *WIDE, hidden_rows=[3], hidden_columns=[1], games=TWO, notes=["line 3 is hidden, and read like the others"]
    ),
    "many hidden rows": sheet(
        HEAD, *[[D22, "anna", "ben"]] * 7, hidden_rows=range(2, 9), notes=["lines 2, 3, 4, 5, 6 and 2 more are hidden"],
        games=[f"2024-11-22-{number} {ONE[0].partition(' ')[2]}" for number in range(1, 8)],
    ),
    "an empty sheet besides": sheet(*WIDE, others=[("Sheet2", "visible", [])], games=TWO),
    "two sheets": sheet(
        *WIDE, others=[("Players", "visible", [["x"]])],
        refused=[("None which-sheet", "several sheets have content: 'Results', 'Players'; name one with --sheet")],
    ),
    "two sheets, one named": sheet(
        ["x"], others=[("Games", "visible", WIDE)], options=(*SET, "--sheet", "games"), games=TWO
    ),
    "a hidden sheet, named": sheet(
        ["x"], others=[("Old", "hidden", WIDE)], options=(*SET, "--sheet", "old"), games=TWO
    ),
    "a sheet that Excel's menu cannot show again": sheet(
        others=[("Old", "veryHidden", WIDE)],
        refused=[("None empty-file", "all visible sheets are empty")],
    ),
    "a sheet that is not there": sheet(
        *WIDE, options=(*SET, "--sheet", "Gmaes"),
        refused=[("None which-sheet", "there is no sheet 'Gmaes'; name one of 'Results'")],
    ),
    "an empty workbook": sheet(refused=[("None empty-file", "all visible sheets are empty")]),
    "nothing but empty texts": sheet(
        ["", ""], [""], refused=[("None empty-file", "the sheet 'Results' is empty")]
    ),
    "nothing but a header": sheet(HEAD, refused=[("None empty-file", "")]),
    "a long sheet": sheet(
        HEAD, *[[D22, "anna", "ben"]] * 600,
        games=[f"2024-11-22-{number} {ONE[0].partition(' ')[2]}" for number in range(1, 601)],
    ),
    "a sheet of empty rows": sheet(*WIDE, *[[] for _ in range(3_000)], games=TWO),
    "a sheet of 1,048,576 rows of nothing": sheet(
        more={"xl/worksheets/sheet1.xml": WORKSHEET % (b'<row><c s="1"/></row>' * 1_048_576)},
        refused=[("None empty-file", "all visible sheets are empty")],
    ),
    "a table above 1,048,573 rows of nothing": sheet(
        more={"xl/worksheets/sheet1.xml": WORKSHEET % (SHEET_ROWS + b'<row><c s="1"/></row>' * 1_048_574)},
        games=ONE,
    ),
    "a cell in the last corner": sheet(
        more={"xl/worksheets/sheet1.xml": WORKSHEET % (SHEET_ROWS + b'<row><c r="XFD1048576"><v>1</v></c></row>')},
        refused=[("None bad-spreadsheet", "save only the table as .xlsx or as CSV UTF-8")],
    ),
    "an export of Google Sheets as a spreadsheet": sheet(
        *WIDE, *[[Raw(' s="1"', ""), Raw(' s="0"', ""), Raw(' s="0"', "")]] * 997, games=TWO
    ),
    "rows with errors that repeat": Case(
        ods([HEAD, *[[D22, "anna", ODS_ERROR]] * 3]), name="results.ods",
        refused=[(f"{line} bad-cell", f"Results!C{line}: the error #DIV/0!") for line in (2, 3, 4)],
    ),
    "an error as old programs write it": Case(
        ods([HEAD, [D22, "anna", OLD_ERROR]]), name="results.ods",
        refused=[("2 bad-cell", "Results!C2: the error Err:502")],
    ),
    "cells merged downwards in LibreOffice": Case(
        ods([LONG[0], [MERGED_DAY, "anna", 1], [None, "ben", 2]]), name="results.ods", games=ONE
    ),
    "a formula's error in LibreOffice": Case(
        ods([HEAD, [D22, "anna", ODS_ERROR]]),
        refused=[("2 bad-cell", "Results!C2: the error #DIV/0!")], name="results.ods",
    ),
    "rows that repeat": Case(
        ods([*WIDE, *[[None]] * 1_048_000]), games=TWO, name="results.ods",
    ),
}  # fmt: skip
CASES = (
    TABLES
    | text_files.CASES
    | file_kinds.CASES
    | program_files.CASES
    | form_files.CASES
    | team_files.CASES
    | exported_files.CASES
)

"""Files that other programs export, and copies from pages and chats, with their results; the players are invented."""

import json

from cases import Case, csv
from program_files import HEADER_LINES, ROUND_DATES, format_trf_player, pgn, trf

CHESS = ("--set", "game=chess")
EVENING = ["2024-11-22-1 2024-11-22T11:00 Jürgen =3 Anna =1", "2024-11-29-1 2024-11-29T11:00 Anna =3 Jürgen =2"]
WINS = ["2024-11-22-1 2024-11-22T11:00 Anna 1 Ben 2", "2024-11-29-1 2024-11-29T11:00 Ben 1 Anna 2"]
NO_COLUMNS = (
    "no row has more than one filled cell (a text file needs commas, semicolons, tabs or | between cells); write a row "
    "for each game under a header"
)

SPREADSHEETS = {
    "LibreOffice: CSV with semicolons, decimal commas and a byte order mark": csv(
        "\ufeffDatum;Spieler;Punkte;Bemerkung\r\n22.11.24;Jürgen;7,5;\r\n22.11.24;Łukasz;10;neues Brett\r\n"
        "29.11.24;Jürgen;8,25;\r\n29.11.24;Łukasz;6;\r\n;;;\r\n;;;\r\n",
        games=["2024-11-22-1 2024-11-22T11:00 Jürgen =7.5 Łukasz =10",
               "2024-11-29-1 2024-11-29T11:00 Jürgen =8.25 Łukasz =6"],
        notes=["left out: column Bemerkung; remarks are not read"],
    ),
    "Excel: CSV that names its delimiter": csv(
        "sep=;\r\nDatum;Sieger;Verlierer;Ergebnis\r\n22.11.2024;Jürgen;Anna;3:1\r\n29.11.2024;Anna;Jürgen;3:2\r\n",
        "cp1252", games=EVENING, notes=["(Western Europe), with texts such as Jürgen", "line 1 above the header"],
    ),
    "Excel: Unicode text that names its delimiter": csv(
        "sep=\t\r\nDatum\tSieger\tVerlierer\tErgebnis\r\n22.11.2024\tJürgen\tAnna\t3:1\r\n29.11.2024\tAnna\tJürgen\t3:2\r\n",
        "utf-16", games=EVENING, name="abend.txt",
    ),
    "Excel: Unicode text with quoted names": csv(
        'Datum\tSpieler\tPlatz\r\n22.11.2024\t"Müller, Jörg"\t1\r\n22.11.2024\tŁukasz\t2\r\n', "utf-16",
        games=["2024-11-22-1 2024-11-22T11:00 Müller, Jörg 1 Łukasz 2"], name="abend.txt",
    ),
    "Excel in America: CSV with empty rows": csv(
        "Date,Player 1,Score 1,Player 2,Score 2\r\n11/22/2024,Anna,21,Ben,15\r\n11/29/2024,Ben,21,Anna,19\r\n,,,,\r\n",
        games=["2024-11-22-1 2024-11-22T11:00 Anna =21 Ben =15", "2024-11-29-1 2024-11-29T11:00 Ben =21 Anna =19"],
        notes=["dates are read as month/day/year, from 11/22/2024 in line 2"],
    ),
    "Excel in Germany: CSV with a time of day and a column for each set": csv(
        "Datum;Uhrzeit;Spieler 1;Spieler 2;Satz 1;Satz 2;Satz 3;Satz 4;Satz 5\r\n"
        "22.11.2024;20:05;Jürgen;Anna;11:7;9:11;11:3;11:9;\r\n",
        "cp1252", games=["2024-11-22-1 2024-11-22T19:05 Jürgen =3 Anna =1"],
    ),
    "Numbers in Germany: CSV with the table's name": csv(
        "Tabelle 1\n;;;\nDatum;Sieger;Verlierer;Ergebnis\n22.11.2024;Jürgen;Anna;3:1\n"
        "29.11.2024;Anna;Jürgen;3:2\n;;;\n",
        games=EVENING, notes=["left out: line 1 above the header"],
    ),
    "Numbers in America: CSV with the table's name and empty columns": csv(
        "Table 1\nDate,Winner,Loser,Score,,\n11/22/2024,Jürgen,Anna,3-1,,\n11/29/2024,Anna,Jürgen,3-2,,\n,,,,,\n",
        games=EVENING, notes=["dates are read as month/day/year, from 11/22/2024 in line 3"],
    ),
    "Notion: CSV with the names of months": csv(
        '\ufeffDate,Winner,Loser,Score\n"November 22, 2024",Jürgen,Anna,3-1\n'
        '"November 29, 2024 8:05 PM",Anna,Jürgen,3-2\n',
        games=[EVENING[0], EVENING[1].replace("T11:00", "T19:05")],
    ),
    "Airtable: CSV with times of day": csv(
        "\ufeffDate,Winner,Loser\n11/22/2024 8:05pm,Anna,Ben\n11/29/2024 8:05pm,Ben,Anna\n",
        games=[game.replace("T11:00", "T19:05") for game in WINS],
    ),
    "pandas: CSV with a column without a name": csv(
        ",Date,Winner,Loser\n0,2024-11-22,Anna,Ben\n1,2024-11-29,Ben,Anna\n", games=WINS,
        notes=["left out: column A without a name; it counts the rows"],
    ),
    "R: CSV with quoted rows": csv(
        '"","Date","Winner","Loser"\n"1",2024-11-22,"Anna","Ben"\n"2",2024-11-29,"Ben","Anna"\n', games=WINS,
        notes=["left out: column A without a name; it counts the rows"],
    ),
    "a column without a name that may have places": csv(
        ";Spieler;Datum\n1;Anna;22.11.2024\n2;Ben;22.11.2024\n",
        refused=[("1 unknown-column", "column A has no name, but contains '1' (line 2); give the column a name"),
                 ("2 place-missing", "'Anna' has no place")],
    ),
    "an old Macintosh: CSV with carriage returns": csv(
        "Datum;Sieger;Verlierer\r22.11.2024;Anna;Ben\r29.11.2024;Ben;Anna\r", games=WINS
    ),
}  # fmt: skip
GAME = ["2024-11-22-1 2024-11-22T11:00 Anna =3 Ben =1"]
# the headers of tables with a row per game, as leagues and clubs write them, each with a game
HEADERS = {
    "Datum;Spieler A;Spieler B;Sätze A;Sätze B": "22.11.2024;Anna;Ben;3;1",
    "Datum;Heim;Gast;Tore Heim;Tore Gast": "22.11.2024;Anna;Ben;3;1",
    "Datum;Heimspieler;Gastspieler;Erg.": "22.11.2024;Anna;Ben;3:1",
    "Date;Home Team;Away Team;Home Score;Away Score": "2024-11-22;Anna;Ben;3;1",
    "Date;Winner Name;Loser Name;Winner Score;Loser Score": "2024-11-22;Anna;Ben;3;1",
    "Match Date;Player 1 Name;Player 2 Name;Result": "2024-11-22;Anna;Ben;3-1",
    "Date;Player A;Player B;A score;B score": "2024-11-22;Anna;Ben;3;1",
    "Date;Team 1;Team 2;Team 1 Score;Team 2 Score": "2024-11-22;Anna;Ben;3;1",
    "Date;Player;Opponent;W/L;Score": "2024-11-22;Anna;Ben;W;3-1",
    "Spieltag;Datum;Heim;Gast;Ergebnis": "4;22.11.2024;Anna;Ben;3:1",
    "Runde;Spieltag;Heim;Gast;Ergebnis": "4;22.11.2024;Anna;Ben;3:1",
}
LEAGUES = {f"a league's columns: {header}": csv(f"{header}\n{row}\n", games=GAME) for header, row in HEADERS.items()}
LEAGUES["a day of play beside a date is a round"] = csv(
    "Spieltag;Datum;Heim;Gast;Ergebnis\n4;22.11.2024;Anna;Ben;3:1\n",
    games=GAME,
    notes=["left out: column Spieltag; rounds are not read"],
)
FORMS = {
    "Google Forms in German: CSV": csv(
        '"Zeitstempel","Wer hat gewonnen?","Wer hat verloren?","Ergebnis"\n'
        '"2024/11/22 12:00:00 PM GMT+1","Jürgen","Anna","3:1"\n"2024/11/29 12:00:00 PM GMT+1","Anna","Jürgen","3:2"',
        games=EVENING,
        notes=["Wer hat gewonnen? = winner, Wer hat verloren? = loser"],
    ),
    "Google Forms in German: CSV of its spreadsheet": csv(
        "Zeitstempel,E-Mail-Adresse,Spieler 1,Spieler 2,Gewinner,Kommentare\n"
        '22.11.2024 12:00:00,a@example.org,Anna,Ben,Anna,\n29.11.2024 12:00:00,b@example.org,Ben,Anna,Ben,"Kurz, gut"',
        games=WINS,
        notes=["left out: column E-Mail-Adresse", "left out: column Kommentare"],
    ),
    "Google Forms in English: CSV": csv(
        '"Timestamp","Email Address","Who won?","Who lost?","Score"\n'
        '"2024/11/22 6:00:00 AM GMT-5","a@example.org","Jürgen","Anna","3-1"\n'
        '"2024/11/29 6:00:00 AM GMT-5","a@example.org","Anna","Jürgen","3-2"\n',
        games=EVENING,
        notes=["Who won? = winner, Who lost? = loser"],
    ),
    "Google Forms in English: CSV of its spreadsheet": csv(
        "Timestamp,Date of game,Winner,Loser,Final score\n11/23/2024 9:15:00,11/22/2024,Jürgen,Anna,3-1\n"
        "11/30/2024 9:15:00,11/29/2024,Anna,Jürgen,3-2\n",
        games=EVENING,
        notes=["left out: column Timestamp; another column says when games were played"],
    ),
    "Google Forms with a zone's abbreviation": csv(
        '"Timestamp","Winner","Loser"\n"2024/11/22 8:01:02 PM EST","Anna","Ben"\n',
        refused=[("2 bad-time", "the abbreviation EST may mean several offsets from UTC; write an offset")],
    ),
}
COPIES = {
    "a league table copied from a web page": csv(
        "# \tDatum \tHeim \tGast \tErgebnis \n1 \tFr, 22.11.2024 20:05 \tAnna\xa0\tBen \t3 – 1 \n"
        "2 \tFr, 29.11.2024 20:05 \tBen \tAnna \t3 – 2 \nShowing 1 to 2 of 2 entries\n",
        games=["1 2024-11-22T19:05 Anna =3 Ben =1", "2 2024-11-29T19:05 Ben =3 Anna =2"],
        name="liga.txt",
        notes=["left out: line 4, 'Showing 1 to 2 of 2 entries'"],
    ),
    "a table in Markdown": csv(
        "| Date | Winner | Loser |\n|------|:------:|------:|\n| 2024-11-22 | Anna | Ben |\n"
        "| 2024-11-29 | Ben | Anna |\n",
        games=WINS,
        name="README.md",
    ),
    "messages copied from WhatsApp": csv(
        "[22.11.24, 20:05:12] Anna: Anna - Ben 3:1\n[22.11.24, 20:45:00] Ben: Ben - Cleo 3:0\n",
        name="chat.txt",
        refused=[("None missing-column", "it is a chat, which has no columns; write a row for each game under")],
    ),
    "a chat exported from WhatsApp": csv(
        "11/22/24, 8:05 PM - Anna: Anna - Ben 3:1\n11/22/24, 8:45 PM - Ben: Ben - Cleo 3:0\n",
        name="chat.txt",
        refused=[("None missing-column", "it is a chat, which has no columns")],
    ),
    "a list typed into a chat": csv(
        "22.11. Anna Ben 3:1\n22.11. Ben Cleo 3:0\n", refused=[("1 missing-column", NO_COLUMNS)], name="liste.txt"
    ),
    "a list under a date": csv(
        "Spieltag 22.11.2024\nAnna - Ben 3:1\nBen - Cleo 3:0\n", refused=[("1 missing-column", NO_COLUMNS)]
    ),
}
PAIRINGS = (
    "Bo.;No.;White;Rtg;Pts.;Result;Pts.;Black;Rtg;No.\n1;1;Adler, Anna;2400;0;1 - 0;0;Berg, Ben;2300;2\n"
    "2;3;Dorn, Cleo;2200;0;½ - ½;0;Eder, Dora;2100;4\n"
)
CROSS_TABLE = [("1 missing-column", "it is a cross table, which has neither the dates nor the order of its games")]
SWISS = (
    "012 Vereinspokal 2024\r\n022 Berlin\r\n032 GER\r\n042 2024/11/22\r\n052 2024/11/29\r\n062 3 (3)\r\n"
    "072 0\r\n082 0\r\n092 Individual: Swiss-System\r\n102 Adler, Anna (1234567)\r\n112  \r\n"
    "122 90 min/40 moves + 30 min\r\n"
)
CHESS_FILES = {
    "chess-results: pairings": csv(
        PAIRINGS,
        options=CHESS,
        refused=[
            ("1 column-twice", "two columns are read as 'game_id' ('No.', 'No.'); --map 'No.=' drops the columns with"),
            ("1 column-twice", "two columns are read as 'score' ('Pts.', 'Pts.'); --map 'Pts.=' drops"),
            ("1 unknown-column", "unknown columns: 'Bo.', 'Rtg'"),
            ("1 missing-column", "there is no column 'occurred_at'"),
        ],
    ),
    "chess-results: pairings, with options": csv(
        PAIRINGS,
        options=(
            *CHESS,
            "--set",
            "occurred_at=2024-11-22",
            *(word for name in ("Bo.", "No.", "Rtg", "Pts.") for word in ("--map", f"{name}=")),
        ),
        games=[
            "2024-11-22-1 2024-11-22T11:00 Adler, Anna 1 Berg, Ben 2",
            "2024-11-22-2 2024-11-22T11:00 Dorn, Cleo 1 Eder, Dora 1",
        ],
    ),
    "chess-results: a cross table by rank": csv(
        "Rk.;;Name;Rtg;FED;1;2;3;Pts.\n1;GM;Adler, Anna;2400;GER;*;1;½;1,5\n2;;Berg, Ben;2300;GER;0;*;1;1\n"
        "3;;Dorn, Cleo;2200;GER;½;0;*;0,5\n",
        options=CHESS,
        refused=CROSS_TABLE,
    ),
    "a cross table by name": csv(
        "Name;Anna;Ben;Cleo\nAnna;;3:1;3:0\nBen;1:3;;3:2\nCleo;0:3;2:3;\n", options=CHESS, refused=CROSS_TABLE
    ),
    "Swiss-Manager: TRF with the lines of its header": trf(
        SWISS,
        ROUND_DATES,
        format_trf_player(1, "Adler, Anna", "   2 w 1", "   3 b ="),
        format_trf_player(2, "Berg, Jürgen", "   1 b 0", "0000 - U"),
        format_trf_player(3, "Dorn, Cleo", "0000 - H", "   1 w ="),
        encoding="cp1252",
        games=[
            "vereinspokal-2024-2024-11-22-r1-1-2 2024-11-22T11:00 Adler, Anna 1 Berg, Jürgen 2",
            "vereinspokal-2024-2024-11-22-r2-3-1 2024-11-29T11:00 Dorn, Cleo 1 Adler, Anna 1",
        ],
        notes=["2 games without an opponent (byes), left out"],
    ),
    "TRF of a tournament that has only begun": trf(
        HEADER_LINES,
        ROUND_DATES,
        format_trf_player(1, "Adler, Anna", "   2 w 1", "   2 b  "),
        format_trf_player(2, "Berg, Ben", "   1 b 0", "   1 w  "),
        games=["club-open-2024-11-22-r1-1-2 2024-11-22T11:00 Adler, Anna 1 Berg, Ben 2"],
    ),
    "Lichess: the PGN of a study, with comments, clocks and a chapter without players": pgn(
        """\
[Event "Club evening: Anna - Ben"]
[Date "2024.11.22"]
[White "Adler, Anna"]
[Black "Berg, Ben"]
[Result "1-0"]
[WhiteElo "1500"]
[UTCDate "2024.11.23"]
[UTCTime "09:15:00"]
[Variant "Standard"]
[ECO "C50"]
[Opening "Italian Game"]
[StudyName "Club evening"]
[ChapterName "Anna - Ben"]
[Site "https://lichess.org/study/AbCdEfGh/IjKlMnOp"]
[Annotator "https://lichess.org/@/annablitz"]

{ [%csl Ge4][%cal Ge2e4] A good game. }
1. e4 { [%clk 1:30:00] [%eval 0.3] } 1... e5 { [%clk 1:29:50] } (1... c5 { A sideline }) 2. Nf3 $1 1-0


[Event "Club evening: Analysis"]
[Result "*"]
[Variant "Standard"]
[ECO "?"]
[Opening "?"]
[StudyName "Club evening"]
[ChapterName "Analysis"]
[Annotator "https://lichess.org/@/annablitz"]

1. d4 *


""",
        games=["lichess.org/study/AbCdEfGh/IjKlMnOp 2024-11-23T09:15 Adler, Anna 1 Berg, Ben 2"],
        notes=["1 game without a result (*), left out"],
    ),
    "Chess.com: a month in PGN, with clocks and openings": pgn(
        "".join(
            f"""\
[Event "Live Chess"]
[Site "Chess.com"]
[Date "2024.11.22"]
[Round "-"]
[White "{white}"]
[Black "{black}"]
[Result "{result}"]
[CurrentPosition "8/8/8/8/8/8/8/8 w - - 0 1"]
[Timezone "UTC"]
[ECO "C50"]
[ECOUrl "https://www.chess.com/openings/Italian-Game-3...Nf6"]
[UTCDate "2024.11.22"]
[UTCTime "19:00:01"]
[WhiteElo "1500"]
[BlackElo "1480"]
[TimeControl "600+5"]
[Termination "{termination}"]
[StartTime "19:00:01"]
[EndDate "2024.11.22"]
[EndTime "19:20:30"]
[Link "https://www.chess.com/game/live/10020030{number}"]

1. e4 {{[%clk 0:10:05]}} 1... e5 {{[%clk 0:10:04.9]}} 2. Nf3 {{[%clk 0:10:01.1]}} {result}

"""
            for number, (white, black, result, termination) in enumerate(
                (
                    ("annablitz", "benchess", "1/2-1/2", "Game drawn by agreement"),
                    ("benchess", "annablitz", "0-1", "annablitz won on time"),
                )
            )
        ),
        games=[
            "chess.com/game/live/100200300 2024-11-22T19:20 annablitz 1 benchess 1",
            "chess.com/game/live/100200301 2024-11-22T19:20 benchess 2 annablitz 1",
        ],
    ),
}


def build_bg_stats_export() -> bytes:
    """Return an export of BG Stats with all members that the app writes."""
    play = {
        "bggId": 0, "bggLastSync": "1970-01-01 00:00:00", "board": "", "comments": "with the new expansion",
        "durationMin": 95, "entryDate": "2024-11-22 22:10:00", "expansionPlays": [], "gameRefId": 7, "ignored": False,
        "importPlayId": 0, "locationRefId": 1, "manualWinner": False, "metaData": "{\"origin\":\"app\"}",
        "modificationDate": "2024-11-22 22:15:10", "nemestatsId": 0, "playDate": "2024-11-22 20:05:00",
        "playDateYmd": 20241122, "playImages": "[]", "rating": 0, "rounds": 0, "scoringSetting": 0, "tags": [],
        "usesTeams": False, "uuid": "8f14e45f-ceea-467f-a1d6-0b5c5f1c2d3e",
        "playerScores": [
            {"metaData": "", "newPlayer": False, "playerRefId": 3, "rank": 2, "role": "", "score": "8",
             "seatOrder": 0, "startPlayer": True, "team": "", "teamRole": "", "winner": False},
            {"metaData": "", "newPlayer": False, "playerRefId": 5, "rank": 1, "role": "", "score": "4+6",
             "seatOrder": 1, "startPlayer": False, "team": "", "teamRole": "", "winner": True},
        ],
    }  # fmt: skip
    catan = {
        "bggId": 13, "bggName": "Catan", "bggYear": 1995, "cooperative": False, "copies": [], "currentUrlImage": "",
        "designers": "Klaus Teuber", "highestWins": True, "id": 7, "isBaseGame": 1, "isExpansion": 0,
        "maxPlayerCount": 4, "maxPlayTime": 120, "metaData": "", "minAge": 10, "minPlayerCount": 3, "minPlayTime": 60,
        "modificationDate": "2024-01-01 10:00:00", "name": "Catan", "noPoints": False, "preferredImage": 0,
        "previouslyPlayedAmount": 0, "rating": 0, "tags": [], "urlThumb": "", "usesTeams": False,
        "uuid": "45c48cce-2e2d-4fdb-9a1a-fc51c51c9264",
    }  # fmt: skip
    players = [
        {
            "bggUsername": "",
            "id": number,
            "isAnonymous": False,
            "metaData": "",
            "modificationDate": "2024-01-01 10:00:00",
            "name": name,
            "tags": [],
            "uuid": f"player-{number}",
        }
        for number, name in ((3, "Anna"), (5, "Łukasz"))
    ]
    location = {
        "id": 1,
        "metaData": "",
        "modificationDate": "2024-01-01 10:00:00",
        "name": "At home",
        "uuid": "place-1",
    }
    export = {
        "about": {"app": "Board Game Stats", "exportDate": "2024-11-23 09:00:00"},
        "challenges": [],
        "deletedObjects": [],
        "games": [catan],
        "groups": [],
        "locations": [location],
        "players": players,
        "plays": [play],
        "tags": [],
        "userInfo": {"meRefId": 3},
    }
    return json.dumps(export, ensure_ascii=False, separators=(",", ":")).encode()


APPS = {
    "BG Stats: an export with all its members": Case(
        build_bg_stats_export(),
        name="BGStatsExport.json",
        options=(),
        games=["8f14e45f-ceea-467f-a1d6-0b5c5f1c2d3e 2024-11-22T19:05 Anna =8 Łukasz =10"],
    ),
    "Lichess: one game as JSON over several lines": Case(
        json.dumps({"id": "q7ZvsdUF", "rated": True, "players": {}}, indent=2).encode(),
        name="game.json",
        options=(),
        refused=[("None bad-json", "this is one JSON object over several lines, not JSON Lines")],
    ),
}
CASES = SPREADSHEETS | LEAGUES | FORMS | COPIES | CHESS_FILES | APPS

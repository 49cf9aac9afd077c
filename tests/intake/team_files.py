"""Tables of teams and doubles, as clubs keep them, each with the expected result of its import."""

from cases import SET, Case, csv, sheet
from sheet_files import ERROR, ods

DOUBLES = [["Date", "Winners", "Losers"], ["2024-11-22", "anna & ben", "cleo / dora"]]
DOUBLES_GAMES = ["2024-11-22-1 2024-11-22T11:00 anna 1 ben 1 cleo 2 dora 2"]
TEAMS = [["Datum", "Mannschaft 1", "Mannschaft 2", "Ergebnis"], ["22.11.2024", "anna + ben", "cleo + dora", "3:1"]]
TEAMS_GAMES = ["2024-11-22-1 2024-11-22T11:00 anna =3 ben =3 cleo =1 dora =1"]

FOUR = [
    ["Datum", "Sieger 1", "Sieger 2", "Verlierer 1", "Verlierer 2", "Ergebnis"],
    ["22.11.2024", "anna", "ben", "cleo", "dora", "6:4 6:3"],
]
FOUR_GAMES = ["2024-11-22-1 2024-11-22T11:00 anna =2 ben =2 cleo =0 dora =0"]
FOUR_NOTE = "Sieger 1 + Sieger 2 = winner, Verlierer 1 + Verlierer 2 = loser"


def _format_csv(rows: list[list[str]], delimiter: str = ",") -> str:
    return "".join(delimiter.join(row) + "\n" for row in rows)


CASES = {
    "winners and losers": csv(_format_csv(DOUBLES), games=DOUBLES_GAMES),
    "winners and losers in a spreadsheet": sheet(*DOUBLES, games=DOUBLES_GAMES),
    "winners and losers in LibreOffice": Case(ods(DOUBLES), games=DOUBLES_GAMES, name="results.ods"),
    "teams with a result": csv(_format_csv(TEAMS, ";"), games=TEAMS_GAMES),
    "teams with a result in a spreadsheet": sheet(*TEAMS, games=TEAMS_GAMES),
    "teams with a result in LibreOffice": Case(ods(TEAMS), games=TEAMS_GAMES, name="results.ods"),
    "teams with sets": csv(
        "Date,Team A,Team B,Set 1,Set 2\n2024-11-22,anna / ben,cleo / dora,11:7,11:9\n",
        games=["2024-11-22-1 2024-11-22T11:00 anna =2 ben =2 cleo =0 dora =0"],
    ),
    "partners against one": csv(
        "Date,Winners,Losers,Score\n2024-11-22,anna & ben,cleo,3-1\n",
        games=["2024-11-22-1 2024-11-22T11:00 anna =3 ben =3 cleo =1"],
    ),
    "winners who tied, by an option": csv(
        _format_csv(DOUBLES),
        options=(*SET, "--ties", "&"),
        refused=[("2 tied-players", "'anna & ben' are partners according to the column, not opponents who tied")],
    ),
    "partners in columns that do not say so": csv(
        "Date,Winner,Loser\n2024-11-22,anna & ben,cleo & dora\n",
        refused=[("2 tied-players", "if they are partners on one side, pass --partners '&'")] * 2,
    ),
    "partners in columns that do not say so, with --partners": csv(
        "Date,Winner,Loser,Score\n2024-11-22,anna & ben,cleo & dora,3-1\n",
        options=(*SET, "--partners", "&"),
        games=["2024-11-22-1 2024-11-22T11:00 anna =3 ben =3 cleo =1 dora =1"],
    ),
    "doubles in four columns": csv(_format_csv(FOUR, ";"), games=FOUR_GAMES, notes=[FOUR_NOTE]),
    "doubles in four columns of a spreadsheet": sheet(*FOUR, games=FOUR_GAMES, notes=[FOUR_NOTE]),
    "doubles in four columns of LibreOffice": Case(ods(FOUR), games=FOUR_GAMES, notes=[FOUR_NOTE], name="results.ods"),
    "players of teams in columns of their own, one of them alone": csv(
        "Date,Team A Player 1,Team A Player 2,Team B Player 1,Team B Player 2,Score\n"
        "2024-11-22,anna,ben,cleo,dora,10:7\n2024-11-23,anna,ben,cleo,,10:9\n",
        games=[
            "2024-11-22-1 2024-11-22T11:00 anna =10 ben =10 cleo =7 dora =7",
            "2024-11-23-1 2024-11-23T11:00 anna =10 ben =10 cleo =9",
        ],
    ),
    "a partner beside each player, one player on both sides": csv(
        "Date,Player 1,Partner 1,Player 2,Partner 2,Winner\n2024-11-22,anna,ben,cleo,dora,dora\n"
        "2024-11-23,anna,ben,cleo,dora,Player 1\n2024-11-24,anna,ben,ben,dora,ben\n",
        refused=[("4 winner-not-in-row", "'ben' is not one of the row's players, 'anna & ben' and 'ben & dora'")],
    ),
    "a partner beside each player, the winners by one of them or by a column": csv(
        "Date,Player 1,Partner 1,Player 2,Partner 2,Winner\n2024-11-22,anna,ben,cleo,dora,dora\n"
        "2024-11-23,anna,ben,cleo,dora,Player 1\n",
        games=[
            "2024-11-22-1 2024-11-22T11:00 anna 2 ben 2 cleo 1 dora 1",
            "2024-11-23-1 2024-11-23T11:00 anna 1 ben 1 cleo 2 dora 2",
        ],
    ),
    "partners as 1a and 1b": csv(
        "Date,Player 1a,Player 1b,Player 2a,Player 2b,Result\n2024-11-22,anna,ben,cleo,dora,0-1\n",
        games=["2024-11-22-1 2024-11-22T11:00 anna 2 ben 2 cleo 1 dora 1"],
    ),
    "winners without losers": csv(
        "Date,Winner 1,Winner 2,Winner 3\n2024-11-22,anna,ben,cleo\n",
        refused=[("1 unknown-column", "unknown columns: 'Winner 1', 'Winner 2', 'Winner 3'"), ("1 missing-column", "")],
    ),
    "numbers for each half, which are no partners": csv(
        "Date,Home,Away,Home 1,Home 2,Away 1,Away 2,Result\n2024-11-22,anna,ben,2,1,0,0,3:0\n",
        refused=[("1 unknown-column", "unknown columns: 'Home 1', 'Home 2', 'Away 1', 'Away 2'")],
    ),
    "an error in one of four columns": csv(
        _format_csv([FOUR[0], ["22.11.2024", "anna", "#NV", "cleo", "dora", "6:4 6:3"]], ";"),
        refused=[("2 bad-cell", "column B: the error #NV")],
    ),
    "an error in one of four columns of a spreadsheet": sheet(
        FOUR[0],
        ["22.11.2024", "anna", ERROR, "cleo", "dora", "6:4 6:3"],
        refused=[("2 bad-cell", "Results!C2: ")],
    ),
    "one of four columns dropped by an option": csv(
        _format_csv(FOUR, ";"),
        options=(*SET, "--map", "Sieger 2="),
        refused=[("1 unknown-column", "columns: 'Sieger 1', 'Verlierer 1 + Verlierer 2'"), ("1 missing-column", "")],
    ),
    "a partner without a name": csv(
        "Date,Winners,Losers\n2024-11-22,anna &  & ben,cleo\n",
        refused=[("2 bad-identifier", "contains an empty name")],
    ),
}

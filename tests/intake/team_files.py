"""Tables of teams and doubles, as clubs keep them, each with what comes out of it."""

from cases import SET, Case, csv, sheet
from sheet_files import ods

DOUBLES = [["Date", "Winners", "Losers"], ["2024-11-22", "anna & ben", "cleo / dora"]]
DOUBLES_GAMES = ["2024-11-22-1 2024-11-22T11:00 anna 1 ben 1 cleo 2 dora 2"]
TEAMS = [["Datum", "Mannschaft 1", "Mannschaft 2", "Ergebnis"], ["22.11.2024", "anna + ben", "cleo + dora", "3:1"]]
TEAMS_GAMES = ["2024-11-22-1 2024-11-22T11:00 anna =3 ben =3 cleo =1 dora =1"]


def _text(rows: list[list[str]], mark: str = ",") -> str:
    return "".join(mark.join(row) + "\n" for row in rows)


CASES = {
    "winners and losers": csv(_text(DOUBLES), games=DOUBLES_GAMES),
    "winners and losers in a spreadsheet": sheet(*DOUBLES, games=DOUBLES_GAMES),
    "winners and losers in LibreOffice": Case(ods(DOUBLES), games=DOUBLES_GAMES, name="results.ods"),
    "teams with a result": csv(_text(TEAMS, ";"), games=TEAMS_GAMES),
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
        _text(DOUBLES), options=(*SET, "--ties", "&"),
        refused=[("2 tied-players", "'anna & ben' are partners according to the column, not opponents who tied")],
    ),
    "partners in columns that do not say so": csv(
        "Date,Winner,Loser\n2024-11-22,anna & ben,cleo & dora\n",
        refused=[("2 tied-players", "if they are partners on one side, pass --partners '&'")] * 2,
    ),
    "partners in columns that do not say so, as said": csv(
        "Date,Winner,Loser,Score\n2024-11-22,anna & ben,cleo & dora,3-1\n", options=(*SET, "--partners", "&"),
        games=["2024-11-22-1 2024-11-22T11:00 anna =3 ben =3 cleo =1 dora =1"],
    ),
    "a partner without a name": csv(
        "Date,Winners,Losers\n2024-11-22,anna &  & ben,cleo\n",
        refused=[("2 bad-identifier", "joins a player with an empty name")],
    ),
}  # fmt: skip

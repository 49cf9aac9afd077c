"""Seasons of four clubs, and the sheets in which people and programs keep them: one description of each season, from
which every layout is written, in the languages and with the dates of those who would keep it so.
"""

import csv
import io
from collections.abc import Callable
from datetime import date
from typing import Any, NamedTuple

from cases import Case
from sheet_files import ods, xlsx

Rows = list[list[Any]]


class Duel(NamedTuple):
    """A game of two: the day, who played, the score of each, and the sets as `11:7 9:11`, if it had any."""

    day: date
    first: str
    second: str
    scores: tuple[int, int]
    sets: str = ""

    @property
    def winner(self) -> str | None:
        """Who won; None for a draw."""
        a, b = self.scores
        return None if a == b else self.first if a > b else self.second

    def turned(self) -> "Duel":
        """The same game with the winner first."""
        if self.winner in (None, self.first):
            return self
        sets = " ".join(":".join(reversed(one.split(":"))) for one in self.sets.split())
        return Duel(self.day, self.second, self.first, (self.scores[1], self.scores[0]), sets)


class Round(NamedTuple):
    """A game of several: the day, and every player's score."""

    day: date
    scores: dict[str, int]


TENNIS = [
    Duel(date(2024, 9, 3), "Anna", "Jürgen", (3, 1), "11:7 9:11 11:3 11:8"),
    Duel(date(2024, 9, 3), "Łukasz", "Anna", (1, 3), "7:11 11:9 5:11 10:12"),
    Duel(date(2024, 9, 17), "Jürgen", "Łukasz", (3, 0), "11:5 11:9 12:10"),
    Duel(date(2024, 10, 1), "Mireille", "Anna", (3, 2), "11:8 8:11 11:6 4:11 11:9"),
    Duel(date(2024, 10, 15), "Jürgen", "Mireille", (0, 3), "2:11 7:11 9:11"),
]
CHESS = [
    Duel(date(2024, 9, 6), "José", "Dmitri", (1, 0)),
    Duel(date(2024, 9, 6), "Anouk", "José", (0, 0)),
    Duel(date(2024, 9, 20), "Dmitri", "Anouk", (0, 1)),
    Duel(date(2024, 10, 25), "José", "Anouk", (0, 0)),
    Duel(date(2024, 11, 8), "Dmitri", "José", (1, 0)),
]
DARTS = [
    Duel(date(2024, 9, 13), "Big Al", "Steffi", (3, 2)),
    Duel(date(2024, 9, 13), "Tomek", "Big Al", (1, 3)),
    Duel(date(2024, 9, 27), "Steffi", "Tomek", (3, 0)),
    Duel(date(2024, 10, 11), "Steffi", "Big Al", (0, 3)),
]
BOARD = [
    Round(date(2024, 9, 21), {"Hanna": 10, "Piet": 7, "Chloé": 8}),
    Round(date(2024, 9, 21), {"Piet": 9, "Sven": 4, "Hanna": 6, "Chloé": 10}),
    Round(date(2024, 10, 19), {"Chloé": 5, "Sven": 12, "Piet": 11}),
    Round(date(2024, 11, 16), {"Hanna": 8, "Sven": 7}),
]
SEASONS: dict[str, list[Any]] = {"table-tennis": TENNIS, "chess": CHESS, "darts": DARTS, "catan": BOARD}


class ClubSheet(NamedTuple):
    """A sheet: its season, its rows, how it writes dates and separates cells, and options of the import."""

    season: str
    rows: Rows
    dates: str = "%Y-%m-%d"
    delimiter: str = ","
    options: tuple[str, ...] = ()

    def case(self, kind: str) -> Case:
        """The sheet as a file of a kind, with the options of its import."""
        return Case(self.content(kind), options=("--set", f"game={self.season}", *self.options), name=f"club.{kind}")

    def content(self, kind: str) -> bytes:
        """The sheet as a file of a kind."""
        if kind == "csv":
            text = io.StringIO()
            writer = csv.writer(text, delimiter=self.delimiter, lineterminator="\r\n")
            writer.writerows([[c.strftime(self.dates) if isinstance(c, date) else c for c in row] for row in self.rows])
            return text.getvalue().encode()
        return (xlsx if kind == "xlsx" else ods)(self.rows)


KINDS = ("csv", "xlsx", "ods")
GERMAN, FRENCH, AMERICAN = ("%d.%m.%Y", ";"), ("%d/%m/%Y", ";"), ("%m/%d/%Y", ",")


def duels(season: list[Duel], header: str, cells: Callable[[Duel], list[Any]], winner_first: bool = False) -> Rows:
    """A header, as one text, and a row for each game."""
    games = [game.turned() if winner_first else game for game in season]
    return [header.split(","), *([game.day, *cells(game)] for game in games)]


def named(*cells: Callable[[Duel], Any]) -> Callable[[Duel], list[Any]]:
    """Both names, and more cells."""
    return lambda game: [game.first, game.second, *(cell(game) for cell in cells)]


def score(mark: str) -> Callable[[Duel], str]:
    """The score, as in 3:1."""
    return lambda game: f"{game.scores[0]}{mark}{game.scores[1]}"


def points(drawn: str, mark: str = "-") -> Callable[[Duel], str]:
    """The result of a game of chess."""
    return lambda game: drawn if game.winner is None else score(mark)(game)


def sets_apart(game: Duel) -> list[Any]:
    """Both names and a cell for each of five sets."""
    return [game.first, game.second, *[*game.sets.split(), None, None, None][:5]]


def places(game: Duel) -> list[Any]:
    """A cell for each place; those who draw share the first."""
    turned = game.turned()
    return [f"{turned.first}={turned.second}", None] if game.winner is None else [turned.first, turned.second]


def a_row_each(season: list[Duel], header: str) -> Rows:
    """A row for each player, with the place."""
    rows: Rows = [header.split(",")]
    for game in season:
        turned = game.turned()
        rows += [[game.day, turned.first, 1], [game.day, turned.second, 1 if game.winner is None else 2], [None] * 3]
    return rows[:-1]


def seats(header: str, together: bool = True) -> Rows:
    """A name and a score for each of up to four players."""
    rows: Rows = [header.split(",")]
    for game in BOARD:
        names = [*game.scores, *[None] * (4 - len(game.scores))]
        scores = [*game.scores.values(), *[None] * (4 - len(game.scores))]
        cells = [cell for pair in zip(names, scores, strict=True) for cell in pair] if together else [*names, *scores]
        rows.append([game.day, *cells])
    return rows


def player_columns(rounds: list[Round], first: str) -> Rows:
    """A column for each player with the score in it."""
    names = list(dict.fromkeys(name for game in rounds for name in game.scores))
    return [[first, *names], *([game.day, *(game.scores.get(name) for name in names)] for game in rounds)]


def ranked(header: str) -> Rows:
    """A column for each place."""
    rows: Rows = [header.split(",")]
    for game in BOARD:
        names = sorted(game.scores, key=lambda name: -game.scores[name])
        rows.append([game.day, *names, *[None] * (4 - len(names))])
    return rows


LEGS = [Round(game.day, {game.first: game.scores[0], game.second: game.scores[1]}) for game in DARTS]
BOARD_ROWS: Rows = [["Datum", "Spieler", "Punkte"]]
for number, one_game in enumerate(BOARD):
    BOARD_ROWS += [[None] * 3] * (number > 0) + [[one_game.day, *seat] for seat in one_game.scores.items()]
TWELVE = "Date,Player 1,Score 1,Player 2,Score 2,Player 3,Score 3,Player 4,Score 4"

SHEETS = {
    # table tennis
    "a German club with sets won": ClubSheet(
        "table-tennis", duels(TENNIS, "Datum,Heim,Gast,Sätze", named(score(":"))), *GERMAN
    ),
    "a German club with sets in parentheses": ClubSheet(
        "table-tennis",
        duels(TENNIS, "Spieltag,Spieler 1,Spieler 2,Ergebnis",
              named(lambda game: f"{score(':')(game)} ({', '.join(game.sets.split())})")), *GERMAN,
    ),
    "a German club with a column for each set": ClubSheet(
        "table-tennis",
        duels(TENNIS, "Datum,Spieler A,Spieler B,Satz 1,Satz 2,Satz 3,Satz 4,Satz 5", sets_apart), *GERMAN,
    ),
    "a score sheet with sets and their result": ClubSheet(
        "table-tennis",
        duels(TENNIS, "Date,Player 1,Player 2,S1,S2,S3,S4,S5,Result", lambda g: [*sets_apart(g), score("-")(g)]),
    ),
    "winners and losers with their score": ClubSheet(
        "table-tennis", duels(TENNIS, "Date,Winner,Loser,Score", named(score("-")), True), *AMERICAN
    ),
    "winners and losers with all sets": ClubSheet(
        "table-tennis",
        duels(TENNIS, "Date,Winner,Loser,Score", named(lambda game: game.sets.replace(":", "-")), True),
    ),
    "a French club": ClubSheet(
        "table-tennis", duels(TENNIS, "Date,Vainqueur,Perdant,Manches", named(score("-")), True), *FRENCH
    ),
    "a Spanish club": ClubSheet(
        "table-tennis", duels(TENNIS, "Fecha,Jugador 1,Jugador 2,Resultado", named(score("-"))), *FRENCH
    ),
    "an Italian club": ClubSheet(
        "table-tennis", duels(TENNIS, "Data,Giocatore 1,Giocatore 2,Risultato", named(score(" - "))), *FRENCH
    ),
    "a Dutch club": ClubSheet(
        "table-tennis", duels(TENNIS, "Datum,Speler 1,Speler 2,Uitslag", named(score("-"))), "%d-%m-%Y", ";"
    ),
    "names and who won": ClubSheet(
        "table-tennis", duels(TENNIS, "Date,Player 1,Player 2,Winner", named(lambda game: game.winner)), *AMERICAN
    ),
    "a player, an opponent, W or L": ClubSheet(
        "table-tennis",
        duels(TENNIS, "Date,Player,Opponent,Result", named(lambda game: "W" if game.winner == game.first else "L")),
    ),
    # chess
    "a chess club": ClubSheet("chess", duels(CHESS, "Date,White,Black,Result", named(points("1/2-1/2")))),
    "a German chess club": ClubSheet(
        "chess", duels(CHESS, "Datum,Weiß,Schwarz,Ergebnis", named(points("½:½", ":"))), *GERMAN
    ),
    "a German chess club with words": ClubSheet(
        "chess", duels(CHESS, "Datum,Weiß,Schwarz,Ergebnis", named(points("remis", ":"))), *GERMAN
    ),
    "a Spanish chess club": ClubSheet(
        "chess", duels(CHESS, "Fecha,Blancas,Negras,Resultado", named(points("tablas"))), *FRENCH
    ),
    "a French chess club": ClubSheet(
        "chess", duels(CHESS, "Date,Blancs,Noirs,Résultat", named(points("nul"))), *FRENCH
    ),
    "a Polish chess club": ClubSheet(
        "chess", duels(CHESS, "Data,Gracz 1,Gracz 2,Wynik", named(points("½-½"))), *GERMAN
    ),
    "colours and who won": ClubSheet(
        "chess",
        duels(CHESS, "Date,White,Black,Winner",
              named(lambda g: "draw" if g.winner is None else "White" if g.winner == g.first else "Black")),
    ),
    "a row for each player of chess": ClubSheet("chess", a_row_each(CHESS, "Datum,Spieler,Platz"), *GERMAN),
    "places of chess": ClubSheet("chess", duels(CHESS, "Date,1st,2nd", places)),
    # darts
    "a name and a score for each of two": ClubSheet(
        "darts",
        duels(DARTS, "Date,Player 1,Score 1,Player 2,Score 2", lambda g: [g.first, g.scores[0], g.second, g.scores[1]]),
    ),
    "names, then scores": ClubSheet(
        "darts", duels(DARTS, "Datum,Spieler 1,Spieler 2,Punkte 1,Punkte 2", lambda g: [g.first, g.second, *g.scores]),
        *GERMAN,
    ),
    "legs at home and away": ClubSheet(
        "darts", duels(DARTS, "Date,Home,Away,Legs", named(score("-"))), *AMERICAN
    ),
    "a Swedish club": ClubSheet("darts", duels(DARTS, "Datum,Spelare 1,Spelare 2,Resultat", named(score("-")))),
    "a column for each thrower": ClubSheet("darts", player_columns(LEGS, "Date")),
    # board games
    "a name and a score for each of four": ClubSheet("catan", seats(TWELVE), *AMERICAN),
    "names, then points": ClubSheet(
        "catan",
        seats("Datum,Spieler 1,Spieler 2,Spieler 3,Spieler 4,Punkte 1,Punkte 2,Punkte 3,Punkte 4", False), *GERMAN,
    ),
    "French players and points": ClubSheet(
        "catan", seats("Date,Joueur 1,Points 1,Joueur 2,Points 2,Joueur 3,Points 3,Joueur 4,Points 4"), *FRENCH
    ),
    "Spanish players and points": ClubSheet(
        "catan", seats("Fecha,Jugador 1,Puntos 1,Jugador 2,Puntos 2,Jugador 3,Puntos 3,Jugador 4,Puntos 4"), *FRENCH
    ),
    "a column for each player of a club": ClubSheet("catan", player_columns(BOARD, "Datum"), *GERMAN),
    "a row for each player of a club": ClubSheet("catan", BOARD_ROWS, *GERMAN),
    "the winner and the others": ClubSheet("catan", ranked("Datum,Sieger,2.,3.,4."), *GERMAN),
}  # fmt: skip

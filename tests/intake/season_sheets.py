"""Seasons of four clubs, and the sheets that represent them in many layouts, languages and date formats."""

import csv
import io
from collections.abc import Callable
from datetime import date
from typing import Any, NamedTuple

from cases import Case
from sheet_files import ods, xlsx

Rows = list[list[Any]]


class Duel(NamedTuple):
    """A game of two players: the day, the players, their scores, and the sets as `11:7 9:11`, if there are any."""

    day: date
    first: str
    second: str
    scores: tuple[int, int]
    sets: str = ""

    @property
    def winner(self) -> str | None:
        """Return the winner; None for a draw."""
        first_score, second_score = self.scores
        return None if first_score == second_score else self.first if first_score > second_score else self.second

    def put_winner_first(self) -> "Duel":
        """Return the same game with the winner first."""
        if self.winner in (None, self.first):
            return self
        sets = " ".join(":".join(reversed(played_set.split(":"))) for played_set in self.sets.split())
        return Duel(self.day, self.second, self.first, (self.scores[1], self.scores[0]), sets)


class Round(NamedTuple):
    """A game of several players: the day and the score of each player."""

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
    """A sheet: its season and rows, its date format and separator, and the options of the import."""

    season: str
    rows: Rows
    dates: str = "%Y-%m-%d"
    delimiter: str = ","
    options: tuple[str, ...] = ()

    def build_case(self, kind: str) -> Case:
        """Return the sheet as a file of a kind, with the options of its import."""
        return Case(self.write(kind), options=("--set", f"game={self.season}", *self.options), name=f"club.{kind}")

    def write(self, kind: str) -> bytes:
        """Return the content of a file of a kind with the sheet."""
        if kind == "csv":
            text = io.StringIO()
            writer = csv.writer(text, delimiter=self.delimiter, lineterminator="\r\n")
            writer.writerows(
                [[cell.strftime(self.dates) if isinstance(cell, date) else cell for cell in row] for row in self.rows]
            )
            return text.getvalue().encode()
        return (xlsx if kind == "xlsx" else ods)(self.rows)


KINDS = ("csv", "xlsx", "ods")
GERMAN, FRENCH, AMERICAN = ("%d.%m.%Y", ";"), ("%d/%m/%Y", ";"), ("%m/%d/%Y", ",")


def build_duel_rows(
    season: list[Duel], header: str, cells: Callable[[Duel], list[Any]], winner_first: bool = False
) -> Rows:
    """Return a header, given as one text, and a row for each game."""
    games = [game.put_winner_first() if winner_first else game for game in season]
    return [header.split(","), *([game.day, *cells(game)] for game in games)]


def with_names(*cells: Callable[[Duel], Any]) -> Callable[[Duel], list[Any]]:
    """Return a function that returns the cells of a game: both names, and further cells."""
    return lambda game: [game.first, game.second, *(cell(game) for cell in cells)]


def build_score_cell(mark: str) -> Callable[[Duel], str]:
    """Return a function that formats a score such as 3:1 with this mark."""
    return lambda game: f"{game.scores[0]}{mark}{game.scores[1]}"


def build_point_cell(draw_text: str, mark: str = "-") -> Callable[[Duel], str]:
    """Return a function that formats the result of a game of chess, with this text for a draw."""
    return lambda game: draw_text if game.winner is None else build_score_cell(mark)(game)


def build_set_cells(game: Duel) -> list[Any]:
    """Return both names and a cell for each of five sets."""
    return [game.first, game.second, *[*game.sets.split(), None, None, None][:5]]


def build_place_cells(game: Duel) -> list[Any]:
    """Return a cell for each place; both players of a draw share the first."""
    ordered = game.put_winner_first()
    return [f"{ordered.first}={ordered.second}", None] if game.winner is None else [ordered.first, ordered.second]


def build_player_rows(season: list[Duel], header: str) -> Rows:
    """Return a row for each player of each game, with the place, and an empty row between games."""
    rows: Rows = [header.split(",")]
    for game in season:
        ordered = game.put_winner_first()
        rows += [[game.day, ordered.first, 1], [game.day, ordered.second, 1 if game.winner is None else 2], [None] * 3]
    return rows[:-1]


def build_seat_rows(header: str, in_pairs: bool = True) -> Rows:
    """Return a row for each board game: its names and scores in pairs, or all names before the scores."""
    rows: Rows = [header.split(",")]
    for game in BOARD:
        names = [*game.scores, *[None] * (4 - len(game.scores))]
        scores = [*game.scores.values(), *[None] * (4 - len(game.scores))]
        cells = [cell for pair in zip(names, scores, strict=True) for cell in pair] if in_pairs else [*names, *scores]
        rows.append([game.day, *cells])
    return rows


def build_player_columns(rounds: list[Round], date_header: str) -> Rows:
    """Return a row for each game, with a column for the score of each player."""
    names = list(dict.fromkeys(name for game in rounds for name in game.scores))
    return [[date_header, *names], *([game.day, *(game.scores.get(name) for name in names)] for game in rounds)]


def build_ranked_rows(header: str) -> Rows:
    """Return a row for each board game, with a column for each place."""
    rows: Rows = [header.split(",")]
    for game in BOARD:
        names = sorted(game.scores, key=lambda name: -game.scores[name])
        rows.append([game.day, *names, *[None] * (4 - len(names))])
    return rows


LEGS = [Round(game.day, {game.first: game.scores[0], game.second: game.scores[1]}) for game in DARTS]
BOARD_ROWS: Rows = [["Datum", "Spieler", "Punkte"]]
for number, one_game in enumerate(BOARD):
    BOARD_ROWS += [[None] * 3] * (number > 0) + [[one_game.day, *seat] for seat in one_game.scores.items()]
FOUR_PAIRS = "Date,Player 1,Score 1,Player 2,Score 2,Player 3,Score 3,Player 4,Score 4"

SHEETS = {
    # table tennis
    "a German club with sets won": ClubSheet(
        "table-tennis", build_duel_rows(TENNIS, "Datum,Heim,Gast,Sätze", with_names(build_score_cell(":"))), *GERMAN
    ),
    "a German club with sets in parentheses": ClubSheet(
        "table-tennis",
        build_duel_rows(
            TENNIS,
            "Spieltag,Spieler 1,Spieler 2,Ergebnis",
            with_names(lambda game: f"{build_score_cell(':')(game)} ({', '.join(game.sets.split())})"),
        ),
        *GERMAN,
    ),
    "a German club with a column for each set": ClubSheet(
        "table-tennis",
        build_duel_rows(TENNIS, "Datum,Spieler A,Spieler B,Satz 1,Satz 2,Satz 3,Satz 4,Satz 5", build_set_cells),
        *GERMAN,
    ),
    "a score sheet with sets and their result": ClubSheet(
        "table-tennis",
        build_duel_rows(
            TENNIS,
            "Date,Player 1,Player 2,S1,S2,S3,S4,S5,Result",
            lambda g: [*build_set_cells(g), build_score_cell("-")(g)],
        ),
    ),
    "winners and losers with their score": ClubSheet(
        "table-tennis",
        build_duel_rows(TENNIS, "Date,Winner,Loser,Score", with_names(build_score_cell("-")), True),
        *AMERICAN,
    ),
    "winners and losers with all sets": ClubSheet(
        "table-tennis",
        build_duel_rows(TENNIS, "Date,Winner,Loser,Score", with_names(lambda game: game.sets.replace(":", "-")), True),
    ),
    "a French club": ClubSheet(
        "table-tennis",
        build_duel_rows(TENNIS, "Date,Vainqueur,Perdant,Manches", with_names(build_score_cell("-")), True),
        *FRENCH,
    ),
    "a Spanish club": ClubSheet(
        "table-tennis",
        build_duel_rows(TENNIS, "Fecha,Jugador 1,Jugador 2,Resultado", with_names(build_score_cell("-"))),
        *FRENCH,
    ),
    "an Italian club": ClubSheet(
        "table-tennis",
        build_duel_rows(TENNIS, "Data,Giocatore 1,Giocatore 2,Risultato", with_names(build_score_cell(" - "))),
        *FRENCH,
    ),
    "a Dutch club": ClubSheet(
        "table-tennis",
        build_duel_rows(TENNIS, "Datum,Speler 1,Speler 2,Uitslag", with_names(build_score_cell("-"))),
        "%d-%m-%Y",
        ";",
    ),
    "names and who won": ClubSheet(
        "table-tennis",
        build_duel_rows(TENNIS, "Date,Player 1,Player 2,Winner", with_names(lambda game: game.winner)),
        *AMERICAN,
    ),
    "a player, an opponent, W or L": ClubSheet(
        "table-tennis",
        build_duel_rows(
            TENNIS, "Date,Player,Opponent,Result", with_names(lambda game: "W" if game.winner == game.first else "L")
        ),
    ),
    # chess
    "a chess club": ClubSheet(
        "chess", build_duel_rows(CHESS, "Date,White,Black,Result", with_names(build_point_cell("1/2-1/2")))
    ),
    "a German chess club": ClubSheet(
        "chess",
        build_duel_rows(CHESS, "Datum,Weiß,Schwarz,Ergebnis", with_names(build_point_cell("½:½", ":"))),
        *GERMAN,
    ),
    "a German chess club with words": ClubSheet(
        "chess",
        build_duel_rows(CHESS, "Datum,Weiß,Schwarz,Ergebnis", with_names(build_point_cell("remis", ":"))),
        *GERMAN,
    ),
    "a Spanish chess club": ClubSheet(
        "chess",
        build_duel_rows(CHESS, "Fecha,Blancas,Negras,Resultado", with_names(build_point_cell("tablas"))),
        *FRENCH,
    ),
    "a French chess club": ClubSheet(
        "chess", build_duel_rows(CHESS, "Date,Blancs,Noirs,Résultat", with_names(build_point_cell("nul"))), *FRENCH
    ),
    "a Polish chess club": ClubSheet(
        "chess", build_duel_rows(CHESS, "Data,Gracz 1,Gracz 2,Wynik", with_names(build_point_cell("½-½"))), *GERMAN
    ),
    "colours and who won": ClubSheet(
        "chess",
        build_duel_rows(
            CHESS,
            "Date,White,Black,Winner",
            with_names(lambda g: "draw" if g.winner is None else "White" if g.winner == g.first else "Black"),
        ),
    ),
    "a row for each player of chess": ClubSheet("chess", build_player_rows(CHESS, "Datum,Spieler,Platz"), *GERMAN),
    "places of chess": ClubSheet("chess", build_duel_rows(CHESS, "Date,1st,2nd", build_place_cells)),
    # darts
    "a name and a score for each of two": ClubSheet(
        "darts",
        build_duel_rows(
            DARTS, "Date,Player 1,Score 1,Player 2,Score 2", lambda g: [g.first, g.scores[0], g.second, g.scores[1]]
        ),
    ),
    "names, then scores": ClubSheet(
        "darts",
        build_duel_rows(DARTS, "Datum,Spieler 1,Spieler 2,Punkte 1,Punkte 2", lambda g: [g.first, g.second, *g.scores]),
        *GERMAN,
    ),
    "legs at home and away": ClubSheet(
        "darts", build_duel_rows(DARTS, "Date,Home,Away,Legs", with_names(build_score_cell("-"))), *AMERICAN
    ),
    "a Swedish club": ClubSheet(
        "darts", build_duel_rows(DARTS, "Datum,Spelare 1,Spelare 2,Resultat", with_names(build_score_cell("-")))
    ),
    "a column for each thrower": ClubSheet("darts", build_player_columns(LEGS, "Date")),
    # board games
    "a name and a score for each of four": ClubSheet("catan", build_seat_rows(FOUR_PAIRS), *AMERICAN),
    "names, then points": ClubSheet(
        "catan",
        build_seat_rows("Datum,Spieler 1,Spieler 2,Spieler 3,Spieler 4,Punkte 1,Punkte 2,Punkte 3,Punkte 4", False),
        *GERMAN,
    ),
    "French players and points": ClubSheet(
        "catan",
        build_seat_rows("Date,Joueur 1,Points 1,Joueur 2,Points 2,Joueur 3,Points 3,Joueur 4,Points 4"),
        *FRENCH,
    ),
    "Spanish players and points": ClubSheet(
        "catan",
        build_seat_rows("Fecha,Jugador 1,Puntos 1,Jugador 2,Puntos 2,Jugador 3,Puntos 3,Jugador 4,Puntos 4"),
        *FRENCH,
    ),
    "a column for each player of a club": ClubSheet("catan", build_player_columns(BOARD, "Datum"), *GERMAN),
    "a row for each player of a club": ClubSheet("catan", BOARD_ROWS, *GERMAN),
    "the winner and the others": ClubSheet("catan", build_ranked_rows("Datum,Sieger,2.,3.,4."), *GERMAN),
}

"""What columns are called: one list of words, in the languages of many clubs, for each thing that a column can hold.

Spieler, Joueur, Name   player          White, Weiss, Player 1   the first of two players
Platz, Rank             place           2nd, Loser, Zweiter      the players of a place
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import zip_longest

from ratings_ledger.ledger.intake.tables.columns import GAME_COLUMNS, PLAYER_COLUMNS, is_number
from ratings_ledger.ledger.validation.names import folded

# columns that are put together with others: a time of day, and two players with their result
TIME, FIRST, SECOND, RESULT = "time", "first player", "second player", "their result"
FIRST_SCORE, SECOND_SCORE = "first score", "second score"
TOTAL = "total"  # what begins a row that sums up others
OF_PAIR = (FIRST, SECOND, RESULT, FIRST_SCORE, SECOND_SCORE)
BESIDES = (TIME, *OF_PAIR)
OF_PLAYER = "player "  # what the column of a player is called, with the name behind it
# without accents, capitals, blanks and punctuation
_WORDS = {
    "occurred_at": """date datum dato data fecha jour day tag giorno dia when played playedon dateplayed gamedate
        dateofgame spieltag gespieltam spieldatum termin datetime dateandtime datedujeu datapartita fechadejuego""",
    TIME: """time uhrzeit zeit heure hora ora tijd godzina tid klockan timeofday endtime start starttime startzeit
        beginn begin uhr""",
    "game_id": """id gameid nr no number gameno gamenumber gamenr game# # spielnr spielnummer partie partienr
        partienummer matchid matchno matchnr match partienumero numero num partita nropartida npartida""",
    "game": "spiel jeu juego gioco spel gra jogo spil peli gametype",
    "player": """name spieler spielerin joueur joueuse jugador jugadora giocatore giocatrice speler gracz jogador
        spelare spiller pelaaja playername member mitglied teilnehmer teilnehmerin""",
    "place": """rank position pos platz platzierung rang classement posicion lugar puesto posto posizione plaats
        miejsce plats placering plassering sija finish finished finishingplace""",
    "score": """points pts pt punkte punkt siegpunkte endpunkte vp victorypoints puntos punti punten punkty poang poeng
        pontos pisteet""",
    "city": "ort stadt ville ciudad citta stad miasto cidade",
    "group": "gruppe groupe grupo gruppo groep grupa",
    "league": "liga ligue lega",
    "season": "saison temporada stagione seizoen sezon",
    FIRST: """player1 spieler1 joueur1 jugador1 giocatore1 speler1 playera spielera white weiss home heim blancs
        blancas""",
    SECOND: """player2 spieler2 joueur2 jugador2 giocatore2 speler2 playerb spielerb black schwarz away guest gast
        noirs negras""",
    RESULT: "result ergebnis resultat resultado risultato uitslag wynik tulos",
    FIRST_SCORE: "score1 points1 punkte1 puntos1 scorea punktea homescore whitescore heimpunkte",
    SECOND_SCORE: "score2 points2 punkte2 puntos2 scoreb punkteb awayscore blackscore gastpunkte",
    "1st": """winner sieger siegerin gewinner gewinnerin vainqueur gagnant ganador ganadora vincitore winnaar
        zwyciezca vinnare vinder first erster erste premier primero primo""",
    "2nd": """second zweiter zweite deuxieme segundo secondo runnerup loser verlierer verliererin perdant perdedor
        perdente""",
    "3rd": "third dritter dritte troisieme tercero terzo",
    "4th": "fourth vierter vierte quatrieme cuarto quarto",
    "5th": "fifth funfter funfte cinquieme quinto",
    "6th": "sixth sechster sechste sixieme sexto sesto",
    TOTAL: """total totals sum summe gesamt insgesamt somme totale suma totaal ogolem summa average mittelwert
        durchschnitt moyenne media""",
}
_MEANINGS = {word: meaning for meaning, words in _WORDS.items() for word in words.split()}
_OF_PLACE = "platz|place|rank|rang|pos|position|puesto|posto|plats|plaats|lugar|miejsce"
_PLACE = re.compile(
    rf"(?:(?:{_OF_PLACE})([1-9]\d?)|([1-9]\d?)(?:st|nd|rd|th|er|ere|e|eme|o|a)?(?:{_OF_PLACE})?)", re.ASCII
)
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


@lru_cache(maxsize=10_000)  # most cells that are asked about repeat
def plain_word(name: str) -> str:
    """Return a column's name without what people leave out."""
    return re.sub(r"[^\w#]|_", "", folded(name))


def column_meaning(name: str) -> str | None:
    """Return what a column holds, under this program's name, as far as its own name says."""
    plain = " ".join(name.split()).casefold()
    # in a row per game, home is the first of two players
    if (plain in (*GAME_COLUMNS, *PLAYER_COLUMNS) and plain not in _MEANINGS) or is_number(plain):
        return plain
    found = plain_word(name)
    if (known := _MEANINGS.get(found)) is not None:
        return None if known == TOTAL else known
    if place := _PLACE.fullmatch(found):
        number = int(place[1] or place[2])
        return f"{number}{_ENDINGS.get(number, 'th')}"
    return None


def is_total(cells: list[str]) -> bool:
    """Tell whether a row sums up others: its first word says so."""
    return _MEANINGS.get(plain_word(next((cell for cell in cells if cell.strip()), ""))) == TOTAL


def repeats(cells: list[str], names: list[str]) -> bool:
    """Tell whether a row is the header again."""
    found, wanted = filter(str.strip, cells), filter(str.strip, names)
    return all(one is not None and other is not None and plain_word(one) == plain_word(other)
               for one, other in zip_longest(found, wanted))  # fmt: skip

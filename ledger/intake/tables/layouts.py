"""How tables lay out games, and each rewritten as the long or the wide form.

rows    a row per player                    Date   Player  Place
places  a row per game, a column per place  Date   1st     2nd
players a row per game, a column per player Date   Anna    Ben     Cleo
pair    two names with their result         Date   White   Black   Result
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise, zip_longest

from ratings_ledger.ledger.intake.tables.columns import (
    GAME_COLUMNS,
    PLAYER_COLUMNS,
    Cells,
    is_number,
    place_text,
    with_point,
)
from ratings_ledger.ledger.rejections import Refused, shown
from ratings_ledger.ledger.validation.names import folded

# columns that are put together with others: a time of day, and two players with their result
TIME, FIRST, SECOND, RESULT = "time", "first player", "second player", "their result"
FIRST_SCORE, SECOND_SCORE = "first score", "second score"
TOTAL = "total"  # what begins a row that sums up others
BESIDES = (TIME, FIRST, SECOND, RESULT, FIRST_SCORE, SECOND_SCORE)
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


ROWS, PLACES, PAIR, PLAYER_PLACES, PLAYER_SCORES = "rows", "places", "pair", "player-places", "player-scores"
LAYOUTS = {
    ROWS: "a row per player",
    PLACES: "a row per game, a column per place",
    PAIR: "a row per game, two names with their result",
    PLAYER_PLACES: "a row per game, a column per player with the place in it",
    PLAYER_SCORES: "a row per game, a column per player with the score in it",
}
OF_PLAYER = "player "  # what the column of a player is called, with the name behind it
_HALF = {"½": "0.5", "1/2": "0.5"}
_NUMBER = r"\d+(?:[.,]\d+)?|½|1/2"
_RESULT = re.compile(rf"({_NUMBER})\s*[-–—:]\s*({_NUMBER})", re.ASCII)
_DRAWN = (
    "½",
    "1/2",
    "draw",
    "drawn",
    "tie",
    "remis",
    "unentschieden",
    "nulle",
    "tablas",
    "empate",
    "patta",
    "gelijk",
    "=",
)
Rows = Iterable[tuple[int, Cells | Refused]]


def numbered(rows: Rows, layout: str) -> Iterator[tuple[int, Cells | Refused]]:
    """Rows without numbers of games, with those: date and number of the day, in the order of the rows.

    In the layout `rows` a game begins where there is another date, a better place than in the row before, or an empty
    line in between; a row without a date has that of the row before.
    """
    days, game_id, before, date = Counter[str](), "", 0, ""
    place = 0
    for line, cells in rows:
        if isinstance(cells, Refused):
            yield line, cells
            before = line
            continue
        given = cells.get("occurred_at", date if layout == ROWS else "")
        if not given:
            yield line, Refused("missing-member", "the row has no date")
            continue
        own = int(text) if (text := place_text(cells.get("place", ""))).isdecimal() else 0
        if layout != ROWS or given != date or line > before + 1 or own < place or not game_id:
            days[given[:10]] += 1
            game_id = f"{given[:10]}-{days[given[:10]]}"
        date, place, before = given, own, line
        yield line, {**cells, "game_id": game_id, "occurred_at": given}


def by_player(rows: Rows, layout: str) -> Iterator[tuple[int, Cells | Refused]]:
    """Yield a row for each player whose column is filled in a row, with the place or score in it."""
    member = "place" if layout == PLAYER_PLACES else "score"
    for line, cells in rows:
        if isinstance(cells, Refused):
            yield line, cells
            continue
        shared = {name: text for name, text in cells.items() if not name.startswith(OF_PLAYER)}
        for name, text in cells.items():
            if name.startswith(OF_PLAYER):
                yield line, {**shared, "player": name.removeprefix(OF_PLAYER), member: text}


def by_pair(rows: Rows) -> Iterator[tuple[int, Cells | Refused]]:
    """Two rows for each: with places for 1-0, 0-1, a draw; with scores for anything else."""
    for line, cells in rows:
        if isinstance(cells, Refused):
            yield line, cells
            continue
        shared = {name: text for name, text in cells.items() if name not in OF_PAIR}
        try:
            found = _sides(cells)
        except Refused as problem:
            yield line, problem
            continue
        for name, outcome in zip((FIRST, SECOND), found, strict=True):
            yield line, {**shared, "player": cells[name], **outcome}


OF_PAIR = (FIRST, SECOND, RESULT, FIRST_SCORE, SECOND_SCORE)


def _sides(cells: Cells) -> tuple[Cells, Cells]:
    """Return what two players got. Raises `Refused`."""
    for name in (FIRST, SECOND):
        if name not in cells:
            raise Refused("missing-member", f"the row has no {name}")
    if FIRST_SCORE in cells and SECOND_SCORE in cells:
        return {"score": cells[FIRST_SCORE]}, {"score": cells[SECOND_SCORE]}
    text = cells.get(RESULT)
    if text is None:
        raise Refused("missing-member", "the row has no result")
    if text.casefold() in _DRAWN:
        return {"place": "1"}, {"place": "1"}
    match = _RESULT.fullmatch(text)
    if match is None:
        raise Refused("bad-value", f"result: {shown(text)} is no result such as 1-0, 3:2 or draw")
    one, other = (_HALF.get(part) or with_point(RESULT, part) for part in match.groups())
    if (one, other) in (("1", "0"), ("0", "1"), ("0.5", "0.5")):
        places = {"1": "1", "0": "2", "0.5": "1"}
        return {"place": places[one]}, {"place": places[other]}
    if "0.5" in (one, other) and not {one, other}.isdisjoint(("0", "1")):
        raise Refused("bad-value", f"result: {shown(text)} gives one player half a point alone; write ½-½, 1-0 or 0-1")
    return {"score": one}, {"score": other}


def are_places(rows: Iterable[list[str]]) -> bool:
    """Tell whether the numbers of each row are places: 1 is there, and after it none is left out but for ties."""
    for row in rows:
        found = sorted(int(text) for text in map(place_text, row) if text.isdecimal())
        if len(found) != len(row) or not found or found[0] != 1:
            return False
        for index, (before, place) in enumerate(pairwise(found), 1):
            if place not in (before, before + 1, index + 1):
                return False
    return True

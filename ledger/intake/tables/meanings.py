"""Find what a column contains by its name. Each meaning has a list of words in the languages of many clubs.

Spieler, Joueur, Name   player          White, Weiss, Player 1   the first of two players or more
Platz, Rank             place           2nd, Zweiter             the players of a place
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import zip_longest

from ratings_ledger.ledger.intake.tables.columns import (
    GAME_COLUMNS,
    PLAYER_COLUMNS,
    is_number,
    is_place,
    list_column_words,
)
from ratings_ledger.ledger.rejections import Refused, did_you_mean, quote
from ratings_ledger.ledger.validation.close_names import fold_name

# meanings that an event does not have: a time of day, and the sides of a game with its result
TIME, WINNER, LOSER, RESULT, SETS = "time", "winner", "loser", "their result", "sets"
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
SIDES = tuple(f"{ordinal} player" for ordinal in _ORDINALS)
SIDE_SCORES = tuple(f"{ordinal} score" for ordinal in _ORDINALS)
SET_COLUMNS = tuple(f"set {number}" for number in range(1, 10))
FIRST, SECOND = SIDES[:2]
FIRST_SCORE, SECOND_SCORE = SIDE_SCORES[:2]
# meanings of columns that are not read
EMAIL, REMARK, ROUND = "e-mail address", "remark", "round"
TOTAL = "total"  # the first word of a row that sums up others
SIDE_COLUMNS = (*SIDES, WINNER, LOSER, RESULT, SETS, *SIDE_SCORES, *SET_COLUMNS)
LAYOUT_COLUMNS = (TIME, *SIDE_COLUMNS)
PLAYER_PREFIX = "player "  # the meaning of a player's own column is this and the name
_TIMESTAMP_WORDS = (
    "timestamp zeitstempel horodateur marcatemporal tijdstempel informazionicronologiche carimbodedatahora tidsstampel"
)
# words for columns of sides with several players
_TEAMS = ["team", "mannschaft", "equipe", "equipo", "squadra", "ploeg", "druzyna", "lag"]
_FIRST_TEAM = " ".join(f"{team}{which}" for team in _TEAMS for which in "1a")
_SECOND_TEAM = " ".join(f"{team}{which}" for team in _TEAMS for which in "2b")
_WINNERS = """winners winningteam winnerteam siegerteam gewinnerteam siegerpaar vainqueurs gagnants ganadores vencedores
    vincitori winnaars zwyciezcy"""
_LOSERS = (
    """losers losingteam loserteam verliererteam verliererpaar perdants perdedores perdenti verliezers przegrani"""
)
# without accents, capitals, blanks and punctuation
_WORDS = {
    "occurred_at": f"""{_TIMESTAMP_WORDS}
        date datum dato data fecha jour day tag giorno dia when wann quand cuando quando played playedon dateplayed
        matchdate dateofmatch playdate gamedate dateofgame spieltag gespieltam spieldatum termin datetime dateandtime
        datedujeu datapartita
        fechadejuego""",
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
    EMAIL: """email mail emailaddress emailadresse emailadres adresseemail adresseelectronique correo
        direcciondecorreoelectronico indirizzoemail""",
    REMARK: """remark remarks comment comments note notes bemerkung bemerkungen kommentar kommentare anmerkung
        anmerkungen notiz notizen hinweis hinweise commentaire commentaires remarque remarques comentario comentarios
        observaciones commento commenti osservazioni opmerking opmerkingen uwagi kommentarer anmarkningar""",
    ROUND: """round rd roundno roundnumber runde rundennr ronde ronda tour turno runda omgang matchday journee jornada
        giornata""",
    "city": "ort stadt ville ciudad citta stad miasto cidade",
    "group": "gruppe groupe grupo gruppo groep grupa",
    "league": "liga ligue lega",
    "season": "saison temporada stagione seizoen sezon",
    FIRST: f"""{_FIRST_TEAM} white weiss home heim hometeam homeplayer heimteam heimmannschaft
        heimspieler heimverein whiteplayer blancs blancas bianco branco wit biale hemma""",
    SECOND: f"""{_SECOND_TEAM}
        black schwarz away guest gast awayteam awayplayer visitor visitors gastteam gastmannschaft gastspieler
        gastverein blackplayer noirs negras nero preto zwart czarne borta opponent gegner gegnerin
        adversaire adversario adversaria oponente rival avversario tegenstander przeciwnik motstander modstander
        motstandare""",
    RESULT: """result ergebnis resultat resultado risultato uitslag wynik tulos endergebnis endstand spielstand marcador
        punteggio outcome finalscore finalresult res erg wl winloss""",
    SETS: "sets satze saetze manches legs frames",
    FIRST_SCORE: """homescore scorehome homepoints homegoals goalshome homesets heimpunkte punkteheim heimtore toreheim
        heimsatze satzeheim whitescore winnerscore winnerpoints siegerpunkte""",
    SECOND_SCORE: """awayscore scoreaway awaypoints awaygoals goalsaway awaysets gastpunkte punktegast gasttore toregast
        gastsatze satzegast blackscore loserscore loserpoints verliererpunkte""",
    WINNER: f"""{_WINNERS}
        winnername nameofwinner winnersname whowon werhatgewonnen quiagagne quienhaganado quiengano chihavinto
        wieheeftgewonnen ktowygral vemvann
        winner sieger siegerin gewinner gewinnerin vainqueur gagnant gagnante ganador ganadora vencedor vencedora
        vincitore vincitrice winnaar zwyciezca vinnare vinner vinder voittaja""",
    LOSER: f"""{_LOSERS}
        losername nameofloser losersname wholost werhatverloren quiaperdu quienhaperdido quienperdio chihaperso
        wieheeftverloren ktoprzegral
        loser verlierer verliererin perdant perdante perdedor perdedora perdente verliezer przegrany forlorare
        taper taber haviaja""",
    "1st": "first erster erste premier primero primo",
    "2nd": "second zweiter zweite deuxieme segundo secondo runnerup",
    "3rd": "third dritter dritte troisieme tercero terzo",
    "4th": "fourth vierter vierte quatrieme cuarto quarto",
    "5th": "fifth funfter funfte cinquieme quinto",
    "6th": "sixth sechster sechste sixieme sexto sesto",
    TOTAL: """total totals sum summe gesamt insgesamt somme totale suma totaal ogolem summa average mittelwert
        durchschnitt moyenne media""",
}
_TEAM_WORDS = frozenset(f"{_FIRST_TEAM} {_SECOND_TEAM} {_WINNERS} {_LOSERS}".split())
_MEANINGS = {word: meaning for meaning, words in _WORDS.items() for word in words.split()}
# a result such as 3:1 is not a place
_PAIR = re.compile(r"\d\s*[-–—:/.]\s*\d", re.ASCII)
_PLACE_WORDS = "platz|place|rank|rang|pos|position|puesto|posto|plats|plaats|lugar|miejsce"
_PLACE = re.compile(
    rf"(?:(?:{_PLACE_WORDS})([1-9]\d?)|([1-9]\d?)(?:st|nd|rd|th|er|ere|e|eme|o|a)?(?:{_PLACE_WORDS})?)", re.ASCII
)
_PLAYERS = "player|spieler|spielerin|joueur|joueuse|jugador|giocatore|speler|gracz|jogador|spelare|spiller|pelaaja|name"
_SCORES = "score|points|pts|punkte|puntos|punti|punten|punkty|poang|poeng|pontos|pisteet"
_NTH = "(?:st|nd|rd|th|er|ere|e|eme|o|a)?"
# Player 1, 1st player, Player A; Score 1, Player 1 score, Score of A; S1, Set 1, 1. Satz
_SIDE = re.compile(
    rf"(?:{_PLAYERS})([1-6])(?:name)?|([1-6]){_NTH}(?:{_PLAYERS})|(?:player|spieler)([a-f])(?:name)?", re.ASCII
)
_GAINED = f"{_SCORES}|tore|goals|sets|satze"
_SIDE_SCORE = re.compile(
    rf"(?:{_SCORES})(?:{_PLAYERS}|team)?([1-6])|(?:{_PLAYERS}|team)([1-6])(?:{_SCORES})"
    rf"|(?:{_GAINED})(?:of)?(?:{_PLAYERS}|team)?([a-f])|(?:{_PLAYERS}|team)?([a-f])(?:{_GAINED})",
    re.ASCII,
)
_SET = re.compile(rf"(?:s|satz|set|manche|parcial|parziale|leg)([1-9])|([1-9]){_NTH}(?:satz|set|manche)", re.ASCII)
# what stands between the words for a date and a time of day in the name of one column: Datum/Zeit, Date and time
_AND = re.compile(r"\s*[/+&,;]\s*|\s+(?:and|und|u\.|et|y|e|en|og|och|i|ja)\s+")
# the form in which dates are typed: Datum (TT.MM.JJJJ)
_TYPED_LIKE = re.compile(r"\s*\((?:(?:tt|dd|jj|mm|jjjj|yyyy|aaaa|yy|aa|hh|ss)[ .:/-]*)+\)", re.ASCII)
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
# first and last names in two columns
_FIRST_NAMES = """firstname givenname forename vorname prenom nombre nombredepila nome imie voornaam fornamn fornavn
    etunimi"""
_LAST_NAMES = """lastname surname familyname nachname familienname zuname nom nomdefamille apellido apellidos cognome
    achternaam nazwisko sobrenome efternamn efternavn etternavn sukunimi"""
# Winner 1, Team A Player 2, Player 1b; Partner 2; Winner's partner
_PARTNER_OF_SIDE = re.compile(rf"(.+?)(?:{_PLAYERS})?([1-4])|(.+[1-6])([ab])", re.ASCII)
_SIDES_PARTNER = re.compile(r"partner(?:of)?(?:the)?(.+)|(.+?)s?partner", re.ASCII)
# between the names of columns that are combined
JOIN = " + "
_DIVIDED = re.compile(r"(1st|2nd) of .+")


# columns with the time when a form was filled in; it is the time of the game only if no other column has dates
TIMESTAMP_WORDS = frozenset(_TIMESTAMP_WORDS.split())
# columns with a day of play; if another column has dates, the day of play is a round
DAYS_OF_PLAY = frozenset(("spieltag", "speeldag"))


@lru_cache(maxsize=10_000)  # most words are folded many times
def fold_word(name: str) -> str:
    """Fold a column's name to letters, digits and #, in lower case and without accents."""
    return re.sub(r"[^\w#]|_", "", fold_name(name))


def find_meaning(name: str) -> str | None:
    """Return the meaning of a column according to its name, or None if the name is unknown."""
    plain = " ".join(name.split()).casefold()
    # a column called home contains the first of two players, so its name is not read as the member `home`
    if (plain in (*GAME_COLUMNS, *PLAYER_COLUMNS) and plain not in _MEANINGS) or is_number(plain):
        return plain
    word = fold_word(name)
    if (known := _MEANINGS.get(word)) is not None:
        return None if known == TOTAL else known
    if JOIN in name:
        return _find_combined_meaning(name.split(JOIN))
    if match := _DIVIDED.fullmatch(name):
        return FIRST if match[1] == "1st" else SECOND
    for pattern, meanings in ((_SIDE, SIDES), (_SIDE_SCORE, SIDE_SCORES), (_SET, SET_COLUMNS)):
        if match := pattern.fullmatch(word):
            number = match[match.lastindex or 0]
            return meanings[int(number) - 1 if number.isdecimal() else ord(number) - ord("a")]
    if (match := _PLACE.fullmatch(word)) and not _PAIR.search(name):
        place = int(match[1] or match[2])
        return f"{place}{_ENDINGS.get(place, 'th')}"
    return "occurred_at" if _is_date_name(plain) else None


def _find_combined_meaning(names: list[str]) -> str | None:
    """Return the meaning of a column that was combined from columns with these names, or None."""
    if len(names) == 2 and is_first_name(names[0]) and (is_last_name(names[1]) or find_meaning(names[1]) == "player"):
        return "player"
    sides = {partner[0] if (partner := find_partner(name)) is not None else find_meaning(name) for name in names}
    return sides.pop() if len(sides) == 1 and not sides.isdisjoint((WINNER, LOSER, *SIDES)) else None


def name_divided_column(name: str, *, first: bool) -> str:
    """Return the name of the column for the first or second player of a column with both players."""
    return f"{'1st' if first else '2nd'} of {name}"


def is_first_name(name: str) -> bool:
    """Tell whether a column contains first names according to its name."""
    return fold_word(name) in _FIRST_NAMES.split()


def is_last_name(name: str) -> bool:
    """Tell whether a column contains last names according to its name."""
    return fold_word(name) in _LAST_NAMES.split()


def find_partner(name: str) -> tuple[str, int] | None:
    """Return (side, number of the partner from 1) if a column contains partners according to its name, else None.

    >>> find_partner("Winner 2"), find_partner("Team B Player 1"), find_partner("Player 1b"), find_partner("Player 1")
    (('winner', 2), ('second player', 1), ('first player', 2), None)
    >>> find_partner("Partner 1"), find_partner("Winner's partner")
    (('first player', 2), ('winner', 2))
    """
    word = fold_word(name)
    if word in _MEANINGS or (find_meaning(name) is not None and JOIN not in name):
        return None
    if match := _SIDES_PARTNER.fullmatch(word):
        side, number = match[1] or match[2], "2"
        meaning = find_meaning(f"player {side}" if len(side) == 1 else side)
    elif match := _PARTNER_OF_SIDE.fullmatch(word):
        side, number = match[1] or match[3], match[2] or match[4]
        meaning = find_meaning(side)
    else:
        return None
    if meaning not in (WINNER, LOSER, *SIDES):
        return None
    return meaning, int(number) if number.isdecimal() else ord(number) - ord("a") + 1


def _is_date_name(name: str) -> bool:
    """Tell whether a name combines the words for a date and a time, or states the form in which dates are typed.

    >>> _is_date_name("datum / uhrzeit"), _is_date_name("datum (tt.mm.jjjj)"), _is_date_name("date / place")
    (True, True, False)
    """
    is_typed_like = _TYPED_LIKE.search(name) is not None
    meanings = [_MEANINGS.get(fold_word(part)) for part in _AND.split(_TYPED_LIKE.sub("", name))]
    return meanings == ["occurred_at", TIME] or (is_typed_like and meanings == ["occurred_at"])


_SUGGESTIONS = (
    *("date", "time", "game", "player", "place", "score", "winner", "loser", "player 1", "player 2"),
    *("score 1", "score 2", "result", "sets", "set 1", "1st", "2nd", "numbers."),
)


def parse_meaning(text: str) -> str:
    """Return the meaning that a word in an option or profile stands for. Raises `Refused` (bad-value).

    >>> parse_meaning("date"), parse_meaning("player 1"), parse_meaning("Sieger"), parse_meaning("score")
    ('occurred_at', 'first player', 'winner', 'score')
    """
    plain = " ".join(text.split()).casefold()
    if plain in (*GAME_COLUMNS, *PLAYER_COLUMNS, *LAYOUT_COLUMNS) or is_place(plain) or is_number(plain):
        return plain
    if (meaning := find_meaning(plain)) is None:
        hint = did_you_mean(plain, [*_SUGGESTIONS, *GAME_COLUMNS, *PLAYER_COLUMNS])
        raise Refused("bad-value", f"{quote(text)} is not a word for a column{hint} (known: {list_column_words()})")
    return meaning


def is_team_name(name: str) -> bool:
    """Tell whether a column contains the partners of a side according to its name.

    >>> is_team_name("Winners"), is_team_name("Team A"), is_team_name("Winner"), is_team_name("Winner 1 + Winner 2")
    (True, True, False, True)
    """
    return fold_word(name) in _TEAM_WORDS or (JOIN in name and find_meaning(name) not in (None, "player"))


def is_total(cells: list[str]) -> bool:
    """Tell whether a row is a total of other rows according to its first word."""
    return _MEANINGS.get(fold_word(next((cell for cell in cells if cell.strip()), ""))) == TOTAL


def repeats_header(cells: list[str], names: list[str]) -> bool:
    """Tell whether a row repeats the header, apart from empty cells."""
    pairs = zip_longest(filter(str.strip, cells), filter(str.strip, names))
    return all(cell and name and fold_word(cell) == fold_word(name) for cell, name in pairs)

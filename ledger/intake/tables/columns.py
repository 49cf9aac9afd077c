"""What the columns of a table are called, and what its cells mean.

The delimiter is taken from the header. An empty cell is an absent member.

Errors of formulas come as spreadsheet programs write them in the languages of many clubs:

#REF!   #BEZUG!   #N/D   #NOMBRE?   Err:502
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.canonical import INTEGER_MAX, format_instant
from ratings_ledger.ledger.events.fields import NUMBER_NAME, read_decimal
from ratings_ledger.ledger.events.zones import read_instant
from ratings_ledger.ledger.rejections import Refused, did_you_mean, quote

GAME_COLUMNS = (
    "game_id",
    "occurred_at",
    "game",
    "group",
    "city",
    "league",
    "season",
    "rated",
    "aborted",
    "score_order",
)
PLAYER_COLUMNS = ("player", "place", "score", "status", "seat", "seconds_played", "replaces", "team", "club", "home")
# what columns may be called, for those who are told that one is not known, and what a column of that name holds
_WORDS = {
    "date": "occurred_at", "time": "time", "game": "game", "player": "player", "place": "place", "score": "score",
    "winner": "winner", "loser": "loser", "player 1 to 6": "first player", "score 1 to 6": "first score",
    "result": "their result", "sets": "sets", "set 1 to 9": "set 1", "1st, 2nd ...": "1st", "game_id": "game_id",
    **{name: name for name in (*GAME_COLUMNS[3:], *PLAYER_COLUMNS[3:])}, "numbers.NAME": "numbers.name",
}  # fmt: skip
INTEGER_COLUMNS = frozenset({"place", "seat", "seconds_played"})
BOOLEAN_COLUMNS = frozenset({"rated", "aborted", "home"})
# how the names of columns of custom numbers begin
NUMBERS = "numbers."
# how cells are called that a layout puts together for the game's `extra`
EXTRA = "extra."
NEEDED = ("game_id", "occurred_at", "game")  # of a game that is recorded
READ_COLUMNS = INTEGER_COLUMNS | BOOLEAN_COLUMNS | {"score"}
DELIMITERS = ",;\t|"
_ORDINAL = re.compile(r"([1-9]\d{0,3})(st|nd|rd|th)", re.ASCII | re.IGNORECASE)
_PLACE = re.compile(r"(\d+)(?:\.|st|nd|rd|th|er|ère|e|ème|eme|\.?[ºª°])", re.IGNORECASE)
# what the names of columns hold that say who played, or how it ended
_OF_RESULT = re.compile(
    r"\d|player|spieler|joueu|jugador|giocat|speler|team|mannschaft|partner|winner|loser|sieger|verlierer|score|points"
    r"|punkte|place|platz|rank|result|ergebnis|opponent|gegner",
    re.IGNORECASE,
)
_NUMBER = re.compile(re.escape(NUMBERS) + NUMBER_NAME)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
# control characters that no text has
_NO_TEXT = re.compile(r"[\0-\x08\x0e-\x1a]")
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
Header = list[str | None]
Cells = dict[str, str]


def column_words(holds: Callable[[str], bool] = lambda meaning: True) -> str:
    """Return the words for columns, those of a layout if it is said what that holds."""
    return ", ".join(word for word, meaning in _WORDS.items() if holds(meaning))


class CsvColumns(NamedTuple):
    """The columns of a table: those of the whole game, of a player, and those that hold the players of a place; whether
    its games have no numbers but those of the day; and of a spreadsheet, the name of the sheet.
    """

    game: tuple[str, ...]
    player: tuple[str, ...]
    places: dict[str, int]
    is_numbered: bool = False
    sheet: str | None = None


class TableOptions(NamedTuple):
    """How a table is read: the zone of times without an offset, columns renamed ("" drops one), values for all rows.

    `found` is called with the columns it has. What a table does not say itself: the sheet of a spreadsheet, the
    layout, the order of dates (dmy, mdy, ymd), the encoding of a text, and what joins tied players besides =. Each
    of `partners` joins the players of one side in a cell; the ids in `whole` are not taken apart. `aliases` are the
    players whom names in it stand for, the names in `answered` by the answer to a question. `columns` are renamed like
    `renamed`, which count first, but may be absent: they are those of the file `profile`. `forfeits` says whether games
    that were not played are rated, `others` where those finished who did not win. `games` are those that published
    rulesets score. `team_columns` are those whose own names say that they hold the partners of a side. `needed` is
    what has to be said of each game: less if it is recorded already. `checks_all` asks for the games of a table that
    is refused, too, for what else is wrong with them.
    """

    zone: str | None = None
    renamed: dict[str, str] = {}
    fixed: dict[str, str] = {}
    found: Callable[[CsvColumns], None] | None = None
    sheet: str | None = None
    layout: str | None = None
    dates: str | None = None
    encoding: str | None = None
    ties: tuple[str, ...] = ()
    partners: tuple[str, ...] = ()
    whole: frozenset[str] = frozenset()
    aliases: Mapping[str, str] = {}
    answered: frozenset[str] = frozenset()
    columns: Mapping[str, str] = {}
    profile: str | None = None
    forfeits: str | None = None
    others: str | None = None
    games: tuple[str, ...] = ()
    team_columns: frozenset[str] = frozenset()
    needed: tuple[str, ...] = NEEDED
    checks_all: bool = False

    @property
    def only_game(self) -> str | None:
        """Return the only game that rulesets score, if there is one: it is that of tables that do not say which."""
        return self.games[0] if len(self.games) == 1 else None

    @property
    def named(self) -> dict[str, str]:
        """Return what somebody said that columns hold, by their names without capitals."""
        return {theirs.casefold(): ours for theirs, ours in [*self.columns.items(), *self.renamed.items()]}


def split_header(line: str) -> tuple[str, list[str]]:
    """Return the delimiter of a header, and its names. Raises `Refused` if the line cannot be split into names."""
    delimiter = max(DELIMITERS, key=line.count)
    if _NO_TEXT.search(line):
        raise Refused("bad-csv", "the file is neither text nor a spreadsheet; save its table as .xlsx or as CSV UTF-8")
    if not_utf8(line):
        raise Refused("bad-utf8", f"the header {told_not_utf8(line.strip())}")
    try:
        return delimiter, [name.strip() for name in next(csv.reader([line], delimiter=delimiter))]
    except csv.Error as error:
        raise Refused("bad-csv", f"the header cannot be split into columns: {error}") from None


def is_usual(meaning: str) -> bool:
    """Tell whether a table of the usual form may have a column of this name."""
    return meaning in GAME_COLUMNS or meaning in PLAYER_COLUMNS or is_place(meaning) or is_number(meaning)


def resolve_columns(
    names: list[str],
    options: TableOptions,
    holds: Callable[[str], bool] = is_usual,
    given_besides: Collection[str] = (),
) -> tuple[Header, list[Refused]]:
    """Return the columns under this program's names (None for those that are dropped or unknown), and all that is
    wrong.

    `holds` says what the table may have columns of; columns may be given that the header does not have.
    """
    folded = options.named
    header: Header = [folded.get(name.casefold(), name.casefold()) for name in names]
    header = [None if name and not ours else ours for name, ours in zip(names, header, strict=True)]
    there = {name.casefold() for name in names}
    problems = [_no_such_column(theirs, names) for theirs in options.renamed if theirs.casefold() not in there]
    odd = {name: ours for name, ours in zip(names, header, strict=True) if ours and not holds(ours)}
    sources = {theirs.casefold(): f"the profile {options.profile}" for theirs in options.columns if options.profile}
    sources |= {theirs.casefold(): "--map" for theirs in options.renamed}
    problems += [
        _misplaced_column(sources[name.casefold()], name, ours, holds)
        for name, ours in odd.items()
        if name.casefold() in sources
    ]
    unknown = [name for name in odd if name.casefold() not in sources]
    header = [None if name in odd else ours for name, ours in zip(names, header, strict=True)]
    given = [name for name in header if name]
    # 1st and 1th would be the same place
    places = {name: match.group(1) for name in given if (match := _ORDINAL.fullmatch(name))}
    kinds = [places.get(name, name) for name in given]
    twice = dict.fromkeys(name for name, kind in zip(given, kinds, strict=True) if kinds.count(kind) > 1)
    problems += [_column_twice(ours, names, header) for ours in twice]
    wide = bool(places)
    if wide and (of_rows := [name for name in given if name in PLAYER_COLUMNS]):
        listed = ", ".join(map(quote, of_rows))
        message = (
            f"columns of one row per player do not go with 1st, 2nd ..., which belong to one row per game: {listed}"
        )
        problems.append(Refused("unknown-column", message))
    said = {*given, *options.fixed} - {"game_id"}
    # of a recorded game, it may say only what is not about players
    has_players = options.needed == NEEDED or not said or not said.isdisjoint(PLAYER_COLUMNS)
    needed = (*options.needed, *(("player",) if has_players and not wide else ()))
    given_besides = (*given_besides, *(["game"] if options.only_game else []))
    absent = [name for name in needed if name not in (*given, *options.fixed, *given_besides)]
    # a single unknown column is probably the missing one
    is_it = len(unknown) == len(absent) == 1
    if unknown and not is_it:
        message = (
            f"not known: {', '.join(map(quote, unknown))}; rename a column with --map '{unknown[0]}=OURS'"
            f"{_how_to_drop(unknown)} (known: {column_words(holds)})"
        )
        problems.append(Refused("unknown-column", message))
    if absent:
        numbered = next((theirs for theirs, ours in zip(names, header, strict=True) if ours == "game_id"), "game_id")
        problems.append(_no_columns(absent, options.games, numbered, unknown[0] if is_it else None))
    return header, problems


def _no_columns(absent: Sequence[str], games: Sequence[str], numbered: str, unknown: str | None) -> Refused:
    """Return the refusal of a table that does not say something of its games.

    `games` are those that rulesets score, `numbered` is the column that is read as the number of a game, and `unknown`
    one that may be the missing one.
    """
    another = "for another game first: ratings rules publish --shipped elo --game NAME"
    known = f" (rulesets here score {', '.join(games)}; {another})" if games else ""
    fixed = f", or say it of all rows: --set game=NAME{known}" if "game" in absent else ""
    listed = f"{'are no columns' if len(absent) > 1 else 'is no column'} {', '.join(map(repr, absent))}"
    if "game" in absent and numbered != "game_id":
        listed += f" ({quote(numbered)} is read as game_id)"
    rename = f"rename yours with --map THEIRS={absent[0]}"
    if unknown is not None:
        listed += f", and {quote(unknown)} is not known"
        rename = f"if it is that one, rename it with --map '{unknown}={absent[0]}'{_how_to_drop([unknown])}"
    message = f"there {listed}; {rename}{fixed}"
    if "game_id" in absent:
        message += "; game_id is the game's own number or name, different for each game: number the rows"
    if "player" in absent:
        message += "; with one row per game, there are columns 1st, 2nd ... instead of player"
    return Refused("missing-column", message)


def _column_twice(ours: str, names: Sequence[str], header: Header) -> Refused:
    """Return the refusal of two columns that hold the same."""
    theirs = [name for name, meaning in zip(names, header, strict=True) if meaning == ours]
    message = f"two columns are called {quote(ours)}"
    if {*theirs} != {ours}:
        message += f" ({', '.join(map(quote, theirs))})"
        if not is_of_result(theirs[-1]):
            message += f"; --map '{theirs[-1]}=' drops the columns of that name"
    return Refused("column-twice", message)


def _no_such_column(theirs: str, names: Sequence[str]) -> Refused:
    """Return the refusal of a column that --map names and that the table does not have."""
    listed = ", ".join(quote(name) for name in names if name)
    message = f"left of the =, {quote(theirs)} is no column of the table{did_you_mean(theirs, filter(None, names))}"
    return Refused("missing-column", f"--map: {message} (columns: {listed})")


def _misplaced_column(where: str, name: str, ours: str, holds: Callable[[str], bool]) -> Refused:
    """Return the refusal of a word that means something, but nothing that the table's layout has."""
    word = next((word for word, meaning in _WORDS.items() if meaning == ours), ours)
    ours = re.split(" to |,", word)[0]
    message = f"right of the =, {quote(ours)} is nothing that a table of this layout holds"
    return Refused("unknown-column", f"{where}: '{name}={ours}': {message} (known: {column_words(holds)})")


def is_of_result(name: str) -> bool:
    """Tell whether the name of a column says that it holds who played, or how it ended."""
    return _OF_RESULT.search(name) is not None


def _how_to_drop(unknown: Sequence[str]) -> str:
    """Return how a column that is not known is dropped, unless games would then lack players or results.

    >>> _how_to_drop(["Player 3", "Fee"]), _how_to_drop(["Spieler 7"])
    (", drop one that holds no player and no result with --map 'Fee='", '; without it games would be wrong, so do not \
drop it')
    """
    name = next((name for name in unknown if not is_of_result(name)), None)
    if name is None:
        return "; without it games would be wrong, so do not drop it"
    if name == unknown[0]:
        return f", drop it with --map '{name}=' if it holds no player and no result"
    return f", drop one that holds no player and no result with --map '{name}='"


def place_text(text: str) -> str:
    """Return a place without what marks it as one.

    >>> [place_text(text) for text in ("1.", "2nd", "3er", "1º", "4", "last")]
    ['1', '2', '3', '1', '4', 'last']
    """
    match = _PLACE.fullmatch(text)
    return match[1] if match else text


def is_place(name: str) -> bool:
    """Tell whether a column is called for the place of those in it, such as 1st."""
    return _ORDINAL.fullmatch(name) is not None


def is_number(name: str) -> bool:
    """Tell whether a column is called for a custom number, such as numbers.length."""
    return _NUMBER.fullmatch(name) is not None


def only_game_told(header: Collection[str | None], options: TableOptions) -> tuple[str, ...]:
    """Return the sentence that says which game all games are of, where neither the table nor an option says it."""
    is_said = options.only_game is None or options.profile is not None or "game" in (*header, *options.fixed)
    return () if is_said else (f"all games are {options.only_game}, the only game that rulesets here score",)


def header_columns(header: Header) -> CsvColumns:
    """Return the columns that a header names; custom numbers belong to players where each has a row."""
    game, player = (tuple(name for name in names if name in header) for names in (GAME_COLUMNS, PLAYER_COLUMNS))
    numbers = tuple(name for name in header if name and is_number(name))
    game, player = (game, player + numbers) if "player" in player else (game + numbers, player)
    matches = {name: _ORDINAL.fullmatch(name) for name in header if name}
    return CsvColumns(game, player, {name: int(match.group(1)) for name, match in matches.items() if match})


def not_utf8(text: str) -> bool:
    """Tell whether a text, read with `surrogateescape`, is not UTF-8."""
    return any("\udc80" <= character <= "\udcff" for character in text)


def told_not_utf8(text: str, right: str = "save the file as UTF-8, or name its encoding with --encoding") -> str:
    """Return what is said of a text, read with `surrogateescape`, that is not UTF-8."""
    byte = next(ord(character) - 0xDC00 for character in text if "\udc80" <= character <= "\udcff")
    return f"{quote(legible(text))} is not UTF-8 (byte 0x{byte:02X}); {right}"


def legible(text: str) -> str:
    """Return a text read with `surrogateescape`, with a question mark for each byte that is not UTF-8."""
    return text.encode("utf-8", "replace").decode()


def read_game(cells: Cells, columns: CsvColumns, options: TableOptions) -> dict[str, Any]:
    """Return the event of a game without its participants, and without a time if it need not have one. Raises
    `Refused`.
    """
    members = {name: cells[name] for name in columns.game if name in cells} | options.fixed
    for needed in ("game_id", "occurred_at"):
        if needed not in members and needed in (*options.needed, *columns.game):
            raise Refused("missing-member", f"the row has no {needed}")
    if options.only_game:
        members.setdefault("game", options.only_game)
    at = members.pop("occurred_at", None)
    dated = {} if at is None else {"occurred_at": instant_text(at, options.zone)}
    return {"type": "game.recorded", **dated, "data": read_members(members)}


def read_members(cells: Mapping[str, str]) -> dict[str, Any]:
    """Return the members of a game or a player in some cells, by column. Raises `Refused`."""
    members: dict[str, Any] = dict(cells)
    for name in _converted_columns(tuple(cells)):
        if name in READ_COLUMNS:
            members[name] = read_value(name, cells[name])
            continue
        group, _, own = name.partition(".")
        text = members.pop(name)
        members.setdefault(group, {})[own] = text if group == EXTRA[:-1] else read_value(name, text)
    return members


@lru_cache(maxsize=1_024)
def _converted_columns(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns among these whose cells are more than text; rows of one table have few different sets."""
    return tuple(name for name in names if name in READ_COLUMNS or name.startswith((NUMBERS, EXTRA)))


def instant_text(text: str, zone: str | None) -> str:
    """Return a time as an event has it. Raises `Refused` if a time without an offset is none in that zone."""
    # with Z, no zone matters; whether the time is valid is checked when the event is read
    return text if text.endswith("Z") else _local_instant(text, zone)


@lru_cache(maxsize=1_024)
def _local_instant(text: str, zone: str | None) -> str:
    return format_instant(read_instant(text, zone))


@lru_cache(maxsize=1_024)
def read_value(name: str, text: str) -> Any:
    """Return the number or truth value in a cell of one of the `READ_COLUMNS`. Raises `Refused`."""
    if name in BOOLEAN_COLUMNS:
        if text.casefold() not in _BOOLEANS:
            raise Refused("bad-value", f"{name}: {quote(text)} is neither true nor false")
        return _BOOLEANS[text.casefold()]
    text = place_text(text) if name == "place" else text
    whole = _WHOLE.fullmatch(text)
    is_whole = name in INTEGER_COLUMNS or name.startswith(NUMBERS)
    if is_whole and not whole:
        raise Refused("not-an-integer", f"{name}: {quote(text)} is not a whole number")
    if is_whole or (name == "score" and whole):
        if len(text) > 17 or abs(int(text)) > INTEGER_MAX:
            raise Refused("integer-too-large", f"{name}: {quote(text)} is outside +-(2^53 - 1)")
        return int(text)
    try:
        read_decimal(text)
    except Refused as problem:
        raise Refused(problem.code, f"{name}: {problem.message}") from None
    return text


COMMA_DELIMITERS = (";", "\t")  # with which a comma in a score is a decimal one
_COMMA = re.compile(r"-?\d+,\d+", re.ASCII)
# a whole number with its thousands apart, or a fraction: the number alone does not say which
_THOUSANDS = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|[1-9]\d{0,2}(?:\.\d{3})+)", re.ASCII)


def is_doubtful(text: str) -> bool:
    """Tell whether a text may be a whole number with its thousands apart, or a fraction."""
    return _THOUSANDS.fullmatch(text) is not None


def with_point(name: str, text: str) -> str:
    """Return a number in a column with a decimal point in the place of a comma. Raises `Refused` (bad-decimal)."""
    if is_doubtful(text):
        whole, *parts = text.replace(",", ".").split(".")
        digits = parts[0].rstrip("0") or "0"
        fraction = f" or {whole}.{digits}{'0' * (len(digits) == 3)}" if len(parts) == 1 else ""
        message = f"may be a whole number or a fraction; write {whole}{''.join(parts)}{fraction}"
        raise Refused("bad-decimal", f"{name}: {quote(text)} {message}")
    return text.replace(",", ".") if _COMMA.fullmatch(text) else text


PUT_RIGHT = "; put it right in a spreadsheet program"
# English, German, French, Spanish, Italian, Dutch, Polish, Portuguese, the Nordic languages
_WRITTEN = """#NULL! #DIV/0! #VALUE! #REF! #NAME? #NUM! #N/A #SPILL! #CALC! #ERROR! #GETTING_DATA
    #WERT! #BEZUG! #ZAHL! #NV #ÜBERLAUF! #KALK!
    #NUL! #VALEUR! #NOM? #NOMBRE! #PROPAGATION!
    #¡NULO! #¡DIV/0! #¡VALOR! #¡REF! #¿NOMBRE? #¡NUM! #NULO! #VALOR! #NOMBRE? #N/D #¡DESBORDAMIENTO! #DESBORDAMIENTO!
    #NULLO! #VALORE! #RIF! #NOME? #N/D! #ESPANSIONE!
    #LEEG! #DEEL/0! #WAARDE! #VERW! #NAAM? #GETAL! #N/B #OVERLOOP!
    #ZERO! #DZIEL/0! #ARG! #ADR! #NAZWA? #LICZBA! #ROZLANIE!
    #NÚM! #DESPEJAR! #DESPEJO!
    #SKÄRNING! #DIVISION/0! #VÄRDEFEL! #REFERENS! #NAMN? #OGILTIGT! #SAKNAS! #VÆRDI! #REFERENCE! #NAVN? #I/T
    #VERDI! #TYHJÄ! #JAKO/0! #ARVO! #VIITTAUS! #NIMI? #LUKU! #PUUTTUU!"""
ERRORS = frozenset(_WRITTEN.split())
_NUMBERED = re.compile(r"Err:\d{3}", re.ASCII)


def may_hold_errors(text: str) -> bool:
    """Tell whether there may be errors in cells, given all of their text."""
    return "#" in text or "Err:" in text


def error_told(text: str) -> str | None:
    """Return what is said of a cell that has an error for its text; of any other nothing.

    >>> error_told("#BEZUG!"), error_told("#1")
    ('the error #BEZUG!; put it right in a spreadsheet program', None)
    """
    return f"the error {text}{PUT_RIGHT}" if text in ERRORS or _NUMBERED.fullmatch(text) else None


def column_letters(column: int) -> str:
    """Return what spreadsheets call a column, from 0: A, B ... Z, AA ..."""
    found = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        found = chr(65 + rest) + found
    return found

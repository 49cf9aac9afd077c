"""Read the columns of tables, and the values in their cells.

The header of a table in the usual form determines its delimiter. An empty cell is an absent member.

Errors of formulas are recognised in the spelling of many languages:

#REF!   #BEZUG!   #N/D   #NOMBRE?   Err:502
"""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
# the words that messages list for columns; each with its meaning, or one of its meanings
_COLUMN_WORDS = {
    "date": "occurred_at", "time": "time", "game": "game", "player": "player", "place": "place", "score": "score",
    "winner": "winner", "loser": "loser", "player 1 to 6": "first player", "score 1 to 6": "first score",
    "result": "their result", "sets": "sets", "set 1 to 9": "set 1", "1st, 2nd ...": "1st", "game_id": "game_id",
    **{name: name for name in (*GAME_COLUMNS[3:], *PLAYER_COLUMNS[3:])}, "numbers.NAME": "numbers.name",
}  # fmt: skip
INTEGER_COLUMNS = frozenset({"place", "seat", "seconds_played"})
BOOLEAN_COLUMNS = frozenset({"rated", "aborted", "home"})
NUMBERS = "numbers."  # the prefix of columns with custom numbers
EXTRA = "extra."  # the prefix of cells that a layout composes for the game's `extra`
REQUIRED_COLUMNS = ("game_id", "occurred_at", "game")  # the columns that a table of new games needs
CONVERTED_COLUMNS = INTEGER_COLUMNS | BOOLEAN_COLUMNS | {"score"}
DELIMITERS = ",;\t|"
SPLIT_ADVICE = "check its quotation marks and line ends"
_ORDINAL = re.compile(r"([1-9]\d{0,3})(st|nd|rd|th)", re.ASCII | re.IGNORECASE)
_PLACE = re.compile(r"(\d+)(?:\.|st|nd|rd|th|er|ère|e|ème|eme|\.?[ºª°])", re.IGNORECASE)
# parts of column names that say who played, or how the game ended
_OF_RESULT = re.compile(
    r"\d|player|spieler|joueu|jugador|giocat|speler|team|mannschaft|partner|winner|loser|sieger|verlierer|score|points"
    r"|punkte|place|platz|rank|result|ergebnis|opponent|gegner",
    re.IGNORECASE,
)
_NUMBER = re.compile(re.escape(NUMBERS) + NUMBER_NAME)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
# control characters that do not occur in text files
_CONTROL_CHARACTER = re.compile(r"[\0-\x08\x0e-\x1a]")
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
Header = list[str | None]
Cells = dict[str, str]


def list_column_words(accepts: Callable[[str], bool] = lambda meaning: True) -> str:
    """List the words for the columns with meanings that `accepts` allows."""
    return ", ".join(word for word, meaning in _COLUMN_WORDS.items() if accepts(meaning))


class CsvColumns(NamedTuple):
    """The columns of a table.

    game:        the columns about the whole game
    player:      the columns about one player
    places:      the place of each column with the players of a place, by name
    is_numbered: whether the games have no ids, and are numbered by day
    sheet:       the name of the sheet of a spreadsheet
    """

    game: tuple[str, ...]
    player: tuple[str, ...]
    places: dict[str, int]
    is_numbered: bool = False
    sheet: str | None = None


class TableOptions(NamedTuple):
    """The options that determine how a table is read.

    zone:         the zone of times without an offset
    renamed:      the meanings of columns by name; "" drops a column. The table must have these columns
    fixed:        values for all rows, by meaning
    on_columns:   a function that is called with the columns of the table
    sheet:        the name of the sheet of a spreadsheet
    layout:       the name of the layout
    dates:        the order of dates: dmy, mdy or ymd
    encoding:     the encoding of a text file
    ties:         the separators of tied players, in addition to =
    partners:     the separators of the players of one side
    unsplit_ids:  ids that contain a separator and are not split
    aliases:      the players' ids by name in the table
    answered_names: the names whose aliases come from answers to questions
    columns:      the same as `renamed`, but from a profile; the table may lack these columns
    profile:      the name of the profile
    forfeits:     "rated" if forfeits are rated
    others:       "tied" if the players other than the winner tie when only the winner is known
    games:        the games that published rulesets score
    team_columns: the columns whose names say that they contain partners
    required:     the required columns; fewer if the games are already recorded
    checks_all:   whether to check the games of a refused table, too, to report all problems at once
    """

    zone: str | None = None
    renamed: dict[str, str] = {}
    fixed: dict[str, str] = {}
    on_columns: Callable[[CsvColumns], None] | None = None
    sheet: str | None = None
    layout: str | None = None
    dates: str | None = None
    encoding: str | None = None
    ties: tuple[str, ...] = ()
    partners: tuple[str, ...] = ()
    unsplit_ids: frozenset[str] = frozenset()
    aliases: Mapping[str, str] = {}
    answered_names: frozenset[str] = frozenset()
    columns: Mapping[str, str] = {}
    profile: str | None = None
    forfeits: str | None = None
    others: str | None = None
    games: tuple[str, ...] = ()
    team_columns: frozenset[str] = frozenset()
    required: tuple[str, ...] = REQUIRED_COLUMNS
    checks_all: bool = False

    @property
    def only_game(self) -> str | None:
        """Return the game of tables that do not name it: the only game that rulesets score, or None."""
        return self.games[0] if len(self.games) == 1 else None

    @property
    def meanings_by_name(self) -> dict[str, str]:
        """Return the meanings that the options give to columns, by name in lower case."""
        return {theirs.casefold(): ours for theirs, ours in [*self.columns.items(), *self.renamed.items()]}


def split_header(line: str) -> tuple[str, list[str]]:
    """Return the delimiter of a header and the names of its columns. Raises `Refused` (bad-csv, bad-utf8)."""
    delimiter = max(DELIMITERS, key=line.count)
    if _CONTROL_CHARACTER.search(line):
        raise Refused("bad-csv", "the file is neither text nor a spreadsheet; save its table as .xlsx or as CSV UTF-8")
    if has_invalid_utf8(line):
        raise Refused("bad-utf8", f"the header {describe_invalid_utf8(line.strip())}")
    try:
        return delimiter, [name.strip() for name in next(csv.reader([line], delimiter=delimiter))]
    except csv.Error as error:
        raise Refused("bad-csv", f"the header cannot be split into columns: {error}; {SPLIT_ADVICE}") from None


def is_usual_meaning(meaning: str) -> bool:
    """Tell whether a column of a table in the usual form may have this meaning."""
    return meaning in GAME_COLUMNS or meaning in PLAYER_COLUMNS or is_place(meaning) or is_number(meaning)


def resolve_columns(
    names: list[str],
    options: TableOptions,
    accepts: Callable[[str], bool] = is_usual_meaning,
    implied: Collection[str] = (),
) -> tuple[Header, list[Refused]]:
    """Return the meaning of each column, and all problems of the header.

    Args:
        names: The names of the columns in the table.
        options: How to read the table.
        accepts: Tells whether the table may have a column with a meaning.
        implied: Meanings that need no column.

    Returns:
        The meaning of each column ("" without a name, None if the column is dropped or unknown), and the problems.
    """
    meanings_by_name = options.meanings_by_name
    header: Header = [meanings_by_name.get(name.casefold(), name.casefold()) for name in names]
    header = [None if name and not ours else ours for name, ours in zip(names, header, strict=True)]
    folded_names = {name.casefold() for name in names}
    problems = [_explain_missing_name(name, names) for name in options.renamed if name.casefold() not in folded_names]
    misplaced = {name: ours for name, ours in zip(names, header, strict=True) if ours and not accepts(ours)}
    sources = {theirs.casefold(): f"the profile {options.profile}" for theirs in options.columns if options.profile}
    sources |= {theirs.casefold(): "--map" for theirs in options.renamed}
    problems += [
        _explain_misplaced_column(sources[name.casefold()], name, ours, accepts)
        for name, ours in misplaced.items()
        if name.casefold() in sources
    ]
    unknown = [name for name in misplaced if name.casefold() not in sources]
    header = [None if name in misplaced else ours for name, ours in zip(names, header, strict=True)]
    present = [name for name in header if name]
    has_places = any(map(is_place, present))
    problems += _find_contradictions(names, header)
    known = {*present, *options.fixed} - {"game_id"}
    # a table about recorded games may have no columns about players
    needs_player = options.required == REQUIRED_COLUMNS or not known or not known.isdisjoint(PLAYER_COLUMNS)
    required = (*options.required, *(("player",) if needs_player and not has_places else ()))
    implied = (*implied, *(["game"] if options.only_game else []))
    missing = [name for name in required if name not in (*present, *options.fixed, *implied)]
    # a single unknown column is probably the missing one
    is_probably_missing = len(unknown) == len(missing) == 1
    if unknown and not is_probably_missing:
        message = (
            f"unknown column{'s' if len(unknown) > 1 else ''}: {', '.join(map(quote, unknown))}; rename a column with "
            f"--map {quote_for_shell(f'{unknown[0]}=OURS')}{_advise_dropping(unknown)} "
            f"(known: {list_column_words(accepts)})"
        )
        problems.append(Refused("unknown-column", message))
    if missing:
        id_column = next((theirs for theirs, ours in zip(names, header, strict=True) if ours == "game_id"), "game_id")
        problem = _explain_missing_columns(
            missing,
            games=options.games,
            id_column=id_column,
            unknown=unknown[0] if is_probably_missing else None,
        )
        problems.append(problem)
    return header, problems


def _find_contradictions(names: Sequence[str], header: Header) -> Iterator[Refused]:
    """Yield refusals of columns with the same meaning, and of columns for players next to columns for places."""
    present = [meaning for meaning in header if meaning]
    # 1st and 1th mean the same place
    places = {name: match.group(1) for name in present if (match := _ORDINAL.fullmatch(name))}
    meanings = [places.get(name, name) for name in present]
    repeated = dict.fromkeys(
        name for name, meaning in zip(present, meanings, strict=True) if meanings.count(meaning) > 1
    )
    yield from (_explain_repeated_column(meaning, names, header) for meaning in repeated)
    if places and (player_columns := [name for name in present if name in PLAYER_COLUMNS]):
        listed = ", ".join(map(quote, player_columns))
        message = f"the table has columns for one player per row, {listed}, and columns 1st, 2nd ... for one game per"
        yield Refused("unknown-column", f"{message} row; drop one kind with --map NAME=")


def _explain_missing_columns(
    missing: Sequence[str], *, games: Sequence[str], id_column: str, unknown: str | None
) -> Refused:
    """Build the refusal of a table without some columns.

    Args:
        missing: The missing columns.
        games: The games that rulesets score.
        id_column: The name of the column that is read as the game's id.
        unknown: The name of an unknown column that may be the missing one.
    """
    other_game = "for another game first run: ratings rules publish --shipped elo --game NAME"
    known = f" (the ledger's rulesets score {', '.join(games)}; {other_game})" if games else ""
    fixed = f", or set the game of all rows: --set game=NAME{known}" if "game" in missing else ""
    listed = f"{'are no columns' if len(missing) > 1 else 'is no column'} {', '.join(map(repr, missing))}"
    if "game" in missing and id_column != "game_id":
        listed += f" ({quote(id_column)} is read as game_id)"
    rename = f"rename yours with --map THEIRS={missing[0]}"
    if unknown is not None:
        listed += f", and {quote(unknown)} is unknown"
        option = f"--map {quote_for_shell(f'{unknown}={missing[0]}')}"
        rename = f"if it is that column, rename it with {option}{_advise_dropping([unknown])}"
    message = f"there {listed}; {rename}{fixed}"
    if "game_id" in missing:
        message += "; game_id is a number or name that differs for each game: number the rows"
    if "player" in missing:
        message += "; a table with one row per game has columns 1st, 2nd ... instead of player"
    return Refused("missing-column", message)


def _explain_repeated_column(ours: str, names: Sequence[str], header: Header) -> Refused:
    """Build the refusal of several columns with the same meaning."""
    theirs = [name for name, meaning in zip(names, header, strict=True) if meaning == ours]
    is_pair = len(theirs) <= 2  # it has one name if the other column is another spelling of a place, such as 1th
    message = f"{'two' if is_pair else len(theirs)} columns are read as {quote(ours)}"
    if {*theirs} != {ours}:
        message += f" ({', '.join(map(quote, theirs))})"
    if {*theirs} == {ours} or is_result_name(theirs[-1]):
        return Refused("column-twice", f"{message}; rename or delete {'one of them' if is_pair else 'all but one'}")
    option = f"--map {quote_for_shell(f'{theirs[-1]}=')}"
    return Refused("column-twice", f"{message}; {option} drops the columns with this name")


def _explain_missing_name(name: str, names: Sequence[str]) -> Refused:
    """Build the refusal of --map for a column that the table lacks."""
    listed = ", ".join(quote(column) for column in names if column)
    message = f"left of the =, {quote(name)} is not a column of the table{did_you_mean(name, filter(None, names))}"
    return Refused("missing-column", f"--map: {message} (columns: {listed})")


def _explain_misplaced_column(where: str, name: str, ours: str, accepts: Callable[[str], bool]) -> Refused:
    """Build the refusal of a meaning that the layout does not have; `where` names the option or the profile."""
    word = next((word for word, meaning in _COLUMN_WORDS.items() if meaning == ours), ours)
    ours = re.split(" to |,", word)[0]
    message = f"right of the =, {quote(ours)} is not a column of this layout"
    return Refused("unknown-column", f"{where}: '{name}={ours}': {message} (known: {list_column_words(accepts)})")


def is_result_name(name: str) -> bool:
    """Tell whether a column contains players or results according to its name."""
    return _OF_RESULT.search(name) is not None


def _advise_dropping(unknown: Sequence[str]) -> str:
    """Return advice on how to drop an unknown column, or not to drop any if all may contain players or results.

    >>> _advise_dropping(["Player 3", "Fee"]), _advise_dropping(["Spieler 7"])
    (", or drop one without players and results with --map 'Fee='", '; do not drop it, because games would be wrong')
    """
    name = next((name for name in unknown if not is_result_name(name)), None)
    if name is None:
        return "; do not drop it, because games would be wrong"
    option = f"--map {quote_for_shell(f'{name}=')}"
    if name == unknown[0]:
        return f", or drop it with {option} if it contains no players and no results"
    return f", or drop one without players and results with {option}"


def quote_for_shell(argument: str) -> str:
    """Quote an argument of a command for a shell, with single quotation marks even where it needs none.

    >>> print(quote_for_shell("Fee="), quote_for_shell("Anna's fee="))
    'Fee=' 'Anna'"'"'s fee='
    """
    return shlex.quote(argument) if "'" in argument else f"'{argument}'"


def strip_place_mark(text: str) -> str:
    """Strip the mark of an ordinal number from a place.

    >>> [strip_place_mark(text) for text in ("1.", "2nd", "3er", "1º", "4", "last")]
    ['1', '2', '3', '1', '4', 'last']
    """
    match = _PLACE.fullmatch(text)
    return match[1] if match else text


def is_place(name: str) -> bool:
    """Tell whether a meaning is a place, such as 1st."""
    return _ORDINAL.fullmatch(name) is not None


def is_number(name: str) -> bool:
    """Tell whether a meaning is a custom number, such as numbers.length."""
    return _NUMBER.fullmatch(name) is not None


def describe_only_game(header: Collection[str | None], options: TableOptions) -> tuple[str, ...]:
    """Return one sentence that names the only game of the rulesets if all rows are read as that game, else none.

    A profile needs no such sentence.
    """
    is_named = options.only_game is None or options.profile is not None or "game" in (*header, *options.fixed)
    return () if is_named else (f"all games are {options.only_game}, the only game that the ledger's rulesets score",)


def group_columns(header: Header) -> CsvColumns:
    """Group the columns of a header; custom numbers are about players if each player has a row."""
    game, player = (tuple(name for name in names if name in header) for names in (GAME_COLUMNS, PLAYER_COLUMNS))
    numbers = tuple(name for name in header if name and is_number(name))
    game, player = (game, player + numbers) if "player" in player else (game + numbers, player)
    matches = {name: _ORDINAL.fullmatch(name) for name in header if name}
    return CsvColumns(game, player, {name: int(match.group(1)) for name, match in matches.items() if match})


def has_invalid_utf8(text: str) -> bool:
    """Tell whether a text that was read with `surrogateescape` contains bytes that are not UTF-8."""
    return any("\udc80" <= character <= "\udcff" for character in text)


def describe_invalid_utf8(
    text: str, remedy: str = "save the file as UTF-8, or name its encoding with --encoding"
) -> str:
    """Return a message about a text that is not UTF-8 and was read with `surrogateescape`."""
    byte = next(ord(character) - 0xDC00 for character in text if "\udc80" <= character <= "\udcff")
    return f"{quote(make_legible(text))} is not UTF-8 (byte 0x{byte:02X}); {remedy}"


def make_legible(text: str) -> str:
    """Replace bytes that are not UTF-8 by question marks in a text that was read with `surrogateescape`."""
    return text.encode("utf-8", "replace").decode()


def read_game(cells: Cells, columns: CsvColumns, options: TableOptions) -> dict[str, Any]:
    """Return the event of a game, without participants; the time is missing only if the options do not require it.

    Raises `Refused` (missing-member, and the codes of `normalise_instant` and `read_members`).
    """
    members = {name: cells[name] for name in columns.game if name in cells} | options.fixed
    for name in ("game_id", "occurred_at"):
        if name not in members and name in (*options.required, *columns.game):
            raise Refused("missing-member", f"the row has no {name}; fill in the cell")
    if options.only_game:
        members.setdefault("game", options.only_game)
    time = members.pop("occurred_at", None)
    time_member = {} if time is None else {"occurred_at": normalise_instant(time, options.zone)}
    return {"type": "game.recorded", **time_member, "data": read_members(members)}


def read_members(cells: Mapping[str, str]) -> dict[str, Any]:
    """Return the members of a game or a player from cells by meaning. Raises the same `Refused` as `read_value`."""
    members: dict[str, Any] = dict(cells)
    for name in _select_converted(tuple(cells)):
        if name in CONVERTED_COLUMNS:
            members[name] = read_value(name, cells[name])
            continue
        group, _, member = name.partition(".")
        text = members.pop(name)
        members.setdefault(group, {})[member] = text if group == EXTRA[:-1] else read_value(name, text)
    return members


# the rows of a table have few different sets of columns
@lru_cache(maxsize=1_024)
def _select_converted(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns whose cells are converted, or become members of `numbers` or `extra`."""
    return tuple(name for name in names if name in CONVERTED_COLUMNS or name.startswith((NUMBERS, EXTRA)))


def normalise_instant(text: str, zone: str | None) -> str:
    """Return a time in UTC as events write it. Raises `Refused` for an invalid time, unless it ends with Z."""
    # a time with Z needs no zone; it is validated with the event
    return text if text.endswith("Z") else _convert_local_time(text, zone)


@lru_cache(maxsize=1_024)
def _convert_local_time(text: str, zone: str | None) -> str:
    return format_instant(read_instant(text, zone))


@lru_cache(maxsize=1_024)
def read_value(name: str, text: str) -> Any:
    """Return the whole number or truth value in a cell, or the text of a decimal.

    `name` is one of `CONVERTED_COLUMNS` or a custom number.

    Raises `Refused` (bad-value, not-an-integer, integer-too-large, bad-decimal).
    """
    if name in BOOLEAN_COLUMNS:
        if text.casefold() not in _BOOLEANS:
            raise Refused("bad-value", f"{name}: {quote(text)} is neither true nor false; write yes or no")
        return _BOOLEANS[text.casefold()]
    text = strip_place_mark(text) if name == "place" else text
    whole = _WHOLE.fullmatch(text)
    is_whole = name in INTEGER_COLUMNS or name.startswith(NUMBERS)
    if is_whole and not whole:
        raise Refused("not-an-integer", f"{name}: {quote(text)} is not a whole number")
    if is_whole or (name == "score" and whole):
        if len(text) > 17 or abs(int(text)) > INTEGER_MAX:
            raise Refused("integer-too-large", f"{name}: {quote(text)} is not between -(2^53 - 1) and 2^53 - 1")
        return int(text)
    try:
        read_decimal(text)
    except Refused as problem:
        raise Refused(problem.code, f"{name}: {problem.message}") from None
    return text


COMMA_DELIMITERS = (";", "\t")  # with these, a comma in a score is a decimal comma
_COMMA = re.compile(r"-?\d+,\d+", re.ASCII)
# whole numbers with separated thousands; with only one separator, the text could also be a fraction
_THOUSANDS = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|[1-9]\d{0,2}(?:\.\d{3})+)", re.ASCII)


def is_doubtful(text: str) -> bool:
    """Tell whether a text could be a whole number with separated thousands."""
    return _THOUSANDS.fullmatch(text) is not None


def convert_decimal_comma(name: str, text: str) -> str:
    """Return a number with a decimal point instead of a comma; `name` is its column.

    Raises `Refused` (bad-decimal) if the number is doubtful.
    """
    if is_doubtful(text):
        whole, *parts = text.replace(",", ".").split(".")
        digits = parts[0].rstrip("0") or "0"
        # a fourth digit if there are three, because 1.234 could be a whole number, too
        fraction = f"{whole}.{digits}{'0' * (len(digits) == 3)}"
        number = f"{whole}{''.join(parts)}"
        message = (
            f"could be a whole number or a fraction; write {number} or {fraction}"
            if len(parts) == 1
            else f"has separators between thousands; write {number}"
        )
        raise Refused("bad-decimal", f"{name}: {quote(text)} {message}")
    return text.replace(",", ".") if _COMMA.fullmatch(text) else text


CELL_REMEDY = "; correct it in a spreadsheet program"
# English, German, French, Spanish, Italian, Dutch, Polish, Portuguese, the Nordic languages
_ERROR_TEXTS = """#NULL! #DIV/0! #VALUE! #REF! #NAME? #NUM! #N/A #SPILL! #CALC! #ERROR! #GETTING_DATA
    #WERT! #BEZUG! #ZAHL! #NV #ÜBERLAUF! #KALK!
    #NUL! #VALEUR! #NOM? #NOMBRE! #PROPAGATION!
    #¡NULO! #¡DIV/0! #¡VALOR! #¡REF! #¿NOMBRE? #¡NUM! #NULO! #VALOR! #NOMBRE? #N/D #¡DESBORDAMIENTO! #DESBORDAMIENTO!
    #NULLO! #VALORE! #RIF! #NOME? #N/D! #ESPANSIONE!
    #LEEG! #DEEL/0! #WAARDE! #VERW! #NAAM? #GETAL! #N/B #OVERLOOP!
    #ZERO! #DZIEL/0! #ARG! #ADR! #NAZWA? #LICZBA! #ROZLANIE!
    #NÚM! #DESPEJAR! #DESPEJO!
    #SKÄRNING! #DIVISION/0! #VÄRDEFEL! #REFERENS! #NAMN? #OGILTIGT! #SAKNAS! #VÆRDI! #REFERENCE! #NAVN? #I/T
    #VERDI! #TYHJÄ! #JAKO/0! #ARVO! #VIITTAUS! #NIMI? #LUKU! #PUUTTUU!"""
ERRORS = frozenset(_ERROR_TEXTS.split())
_NUMBERED_ERROR = re.compile(r"Err:\d{3}", re.ASCII)


def may_hold_errors(text: str) -> bool:
    """Tell whether one of the cells whose texts are joined in `text` may be an error of a formula."""
    return "#" in text or "Err:" in text


def describe_cell_error(text: str) -> str | None:
    """Return a message about a cell whose text is an error of a formula; None for other texts.

    >>> describe_cell_error("#BEZUG!"), describe_cell_error("#1")
    ('the error #BEZUG!; correct it in a spreadsheet program', None)
    """
    return f"the error {text}{CELL_REMEDY}" if text in ERRORS or _NUMBERED_ERROR.fullmatch(text) else None


def write_column_letters(column: int) -> str:
    """Return the letters of a column, counted from 0, in a spreadsheet: A, B ... Z, AA ..."""
    letters = ""
    column += 1
    while column:
        column, digit = divmod(column - 1, 26)
        letters = chr(65 + digit) + letters
    return letters

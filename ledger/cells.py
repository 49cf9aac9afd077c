"""What the columns of a table are called, and what its cells mean.

The delimiter is found from the header. An empty cell is an absent member.
"""

import csv
import re
from functools import lru_cache
from typing import Any, NamedTuple

from ledger.canonical import INTEGER_MAX, format_instant
from ledger.rejections import Refused, shown
from ledger.zones import read_instant

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
PLAYER_COLUMNS = ("player", "place", "score", "status", "seat", "seconds_played", "replaces")
INTEGER_COLUMNS = frozenset({"place", "seat", "seconds_played"})
BOOLEAN_COLUMNS = frozenset({"rated", "aborted"})
READ_COLUMNS = INTEGER_COLUMNS | BOOLEAN_COLUMNS | {"score"}
DELIMITERS = ",;\t|"

_ORDINAL = re.compile(r"([1-9]\d{0,3})(st|nd|rd|th)", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

Header = list[str | None]
Cells = dict[str, str]


class Columns(NamedTuple):
    """The columns that a table has: of the whole game, of a player, and those that hold the players of a place."""

    game: tuple[str, ...]
    player: tuple[str, ...]
    places: dict[str, int]


class TableOptions(NamedTuple):
    """How a table is read: the zone of times without an offset, columns renamed ("" drops one), values for all rows."""

    zone: str | None = None
    renamed: dict[str, str] = {}
    fixed: dict[str, str] = {}


def read_header(line: str, options: TableOptions) -> tuple[str, Header]:
    """The delimiter and the columns' names in this program's words, None for those dropped. Raises `Refused`."""
    delimiter = max(DELIMITERS, key=line.count)
    if not_utf8(line):
        raise Refused("bad-utf8", f"the header {shown(line.strip())} is not UTF-8; save the file as UTF-8")
    try:
        names = [name.strip() for name in next(csv.reader([line], delimiter=delimiter))]
    except csv.Error as error:
        raise Refused("bad-csv", f"the header cannot be split into columns: {error}") from None
    folded = {theirs.casefold(): ours for theirs, ours in options.renamed.items()}
    header: Header = [folded.get(name.casefold(), name.casefold()) for name in names]
    header = [None if name and not ours else ours for name, ours in zip(names, header, strict=True)]
    if missing := sorted(folded.keys() - {name.casefold() for name in names}):
        raise Refused("missing-column", f"--map names the column {shown(missing[0])}, which the file does not have")
    known = {*GAME_COLUMNS, *PLAYER_COLUMNS}
    unknown = [
        name
        for name, ours in zip(names, header, strict=True)
        if ours and ours not in known and not _ORDINAL.fullmatch(ours)
    ]
    if unknown:
        listed = ", ".join(map(shown, unknown))
        raise Refused(
            "unknown-column",
            f"not known: {listed}; rename a column with --map '{unknown[0]}=OURS', drop it with --map '{unknown[0]}=' "
            f"(known: {', '.join(GAME_COLUMNS + PLAYER_COLUMNS)}, 1st, 2nd ...)",
        )
    given = [name for name in header if name]
    ordinals = [match.group(1) for name in given if (match := _ORDINAL.fullmatch(name))]
    if twice := [name for name in (*given, *ordinals) if given.count(name) > 1 or ordinals.count(name) > 1]:
        raise Refused("bad-csv", f"two columns are called {shown(twice[0])}")
    wide = bool(ordinals)
    if wide and (odd := [name for name in given if name in PLAYER_COLUMNS]):
        raise Refused(
            "unknown-column",
            f"the column {shown(odd[0])} belongs to a row per player, but there are columns 1st, 2nd ...",
        )
    for needed in ("game_id", "occurred_at", "game", *(() if wide else ("player",))):
        if needed not in given and needed not in options.fixed:
            raise Refused(
                "missing-column", f"there is no column {needed!r}; rename yours with --map THEIRS={needed}"
                + (f", or give all rows one value with --set {needed}=..." if needed == "game" else "")
            )  # fmt: skip
    return delimiter, header


def columns_of(header: Header) -> Columns:
    """The columns that a header names."""
    game, player = (tuple(name for name in names if name in header) for names in (GAME_COLUMNS, PLAYER_COLUMNS))
    matches = {name: _ORDINAL.fullmatch(name) for name in header if name}
    return Columns(game, player, {name: int(match.group(1)) for name, match in matches.items() if match})


def not_utf8(text: str) -> bool:
    """Whether a text was read with `surrogateescape` and is not UTF-8."""
    return any("\udc80" <= character <= "\udcff" for character in text)


def read_game(cells: Cells, columns: Columns, options: TableOptions) -> dict[str, Any]:
    """The event of a game without its participants. Raises `Refused`."""
    members = {**{name: cells[name] for name in columns.game if name in cells}, **options.fixed}
    for needed in ("game_id", "occurred_at"):
        if needed not in members:
            raise Refused("missing-member", f"the row has no {needed}")
    occurred_at = _instant(members.pop("occurred_at"), options.zone)
    data = {name: _value(name, text) for name, text in members.items()}
    return {"type": "game.recorded", "occurred_at": occurred_at, "data": data}


def _instant(text: str, zone: str | None) -> str:
    # with Z, no zone matters; whether it is right is seen when the event is read
    return text if text.endswith("Z") else _local_instant(text, zone)


@lru_cache(maxsize=1_024)
def _local_instant(text: str, zone: str | None) -> str:
    return format_instant(read_instant(text, zone))


def _value(name: str, text: str) -> Any:
    return read_value(name, text) if name in READ_COLUMNS else text


@lru_cache(maxsize=1_024)
def read_value(name: str, text: str) -> Any:
    """The number or truth that a cell of one of the `READ_COLUMNS` holds. Raises `Refused`."""
    if name in BOOLEAN_COLUMNS:
        if text.casefold() not in _BOOLEANS:
            raise Refused("bad-value", f"{name}: {shown(text)} is neither true nor false")
        return _BOOLEANS[text.casefold()]
    whole = _WHOLE.fullmatch(text)
    if name in INTEGER_COLUMNS and not whole:
        raise Refused("not-an-integer", f"{name}: {shown(text)} is not a whole number")
    if name in INTEGER_COLUMNS or (name == "score" and whole):
        if len(text) > 17 or abs(int(text)) > INTEGER_MAX:
            raise Refused("integer-too-large", f"{name}: {shown(text)} is outside +-(2^53 - 1)")
        return int(text)
    return text

"""Combine columns with parts of one name or side, and divide a column that contains both players of a game.

First name  Last name             First name + Last name
Anna        Adler                 Anna Adler

Winner 1  Winner 2  Loser         Winner 1 + Winner 2  Loser
anna      ben       cleo          anna & ben           cleo

Match       Result                1st of Match  Result  2nd of Match
Anna - Ben  3:1                   Anna          3:1     Ben
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from ratings_ledger.ledger.intake.tables.columns import describe_cell_error, is_place
from ratings_ledger.ledger.intake.tables.layouts.layout import TextRows, read_cell, read_player_cell
from ratings_ledger.ledger.intake.tables.layouts.player_columns import NUMBER
from ratings_ledger.ledger.intake.tables.meanings import (
    JOIN,
    LOSER,
    RESULT,
    SET_COLUMNS,
    SETS,
    SIDES,
    WINNER,
    find_meaning,
    find_partner,
    is_first_name,
    is_last_name,
    name_divided_column,
)
from ratings_ledger.ledger.intake.tables.partners import PARTNER_SEPARATORS

# a match of two players in one cell
_VERSUS = re.compile(r"(\S.*?)\s+(?:[-–—]|vs?\.?|gegen|contre|contra|kontra)\s+(\S.*)", re.IGNORECASE)
_RESULTS = frozenset((RESULT, SETS, "score", *SET_COLUMNS))


def combine_columns(names: Sequence[str], body: TextRows, explained: Collection[str]) -> tuple[list[str], TextRows]:
    """Combine and divide the columns of a table; return their names and the rows.

    A combined column replaces its first part; the other parts lose their names and texts. A divided column keeps the
    first player, and a new last column has the second.

    Args:
        names: The names of the columns.
        body: The rows below the header.
        explained: The names, in lower case, of columns whose meanings an option or a profile gives; they do not change.
    """
    open_columns = {column: name for column, name in enumerate(names) if name and name.casefold() not in explained}
    meanings = {column: find_meaning(name) for column, name in open_columns.items()}
    columns, rows = [*names], body
    for parts, separator in _find_parts(open_columns, meanings, body):
        rows = [(line, _join_cells(row, parts, separator)) for line, row in rows]
        columns[parts[0]] = JOIN.join(names[part] for part in parts)
        for part in parts[1:]:
            columns[part] = ""
    if (column := _find_versus(open_columns, {*map(find_meaning, names)}, meanings, body)) is not None:
        rows = [(line, _divide_cell(row, column, names)) for line, row in rows]
        columns[column] = name_divided_column(names[column], first=True)
        columns.append(name_divided_column(names[column], first=False))
    return columns, rows


def _find_parts(
    names: Mapping[int, str], meanings: Mapping[int, str | None], body: TextRows
) -> Iterator[tuple[list[int], str]]:
    """Yield the columns to combine, in the order in which to join their texts, and the separator between the texts."""
    if (parts := _find_name_parts(names, meanings, body)) is not None:
        yield parts, " "
    sides: dict[str, dict[int, int]] = defaultdict(dict)
    for column, name in names.items():
        if (partner := find_partner(name)) is not None and _has_names(body, column):
            side, number = partner
            sides[side].setdefault(number, column)
    for column, meaning in meanings.items():
        # the first of several partners may be in the column of the side
        if meaning in sides and _has_names(body, column):
            sides[meaning].setdefault(1, column)
    present = {*sides, *meanings.values()}
    for side, columns in sides.items():
        opponent = {WINNER: LOSER, LOSER: WINNER, SIDES[0]: SIDES[1], SIDES[1]: SIDES[0]}.get(side)
        if len(columns) > 1 and sorted(columns) == [*range(1, len(columns) + 1)] and opponent in present:
            yield [columns[number] for number in sorted(columns)], PARTNER_SEPARATORS[0]


def _find_name_parts(names: Mapping[int, str], meanings: Mapping[int, str | None], body: TextRows) -> list[int] | None:
    """Return the columns of first and last names, if there is exactly one of each; else None.

    Next to first names, a column Name contains last names, unless its texts include the first names.
    """
    firsts = [column for column, name in names.items() if is_first_name(name)]
    lasts = [column for column, name in names.items() if is_last_name(name)]
    lasts = lasts or [column for column, meaning in meanings.items() if meaning == "player" and column not in firsts]
    if len(firsts) != 1 or len(lasts) != 1:
        return None
    pairs = [(read_cell(row, firsts[0]), read_cell(row, lasts[0])) for _, row in body]
    is_whole_name = any(first and first in last for first, last in pairs)
    return None if is_whole_name else [firsts[0], lasts[0]]


def _has_names(body: TextRows, column: int) -> bool:
    """Tell whether no cell of a column is a number."""
    return not any(NUMBER.fullmatch(read_cell(row, column)) for _, row in body)


def _join_cells(row: list[str], parts: Sequence[int], separator: str) -> list[str]:
    """Return a row with the texts of some columns joined in the first one; if one is an error, only that error."""
    texts = [text for part in parts if (text := read_player_cell(row, part))]
    texts = [text for text in texts if describe_cell_error(text)][:1] or texts
    joined = [*row, *[""] * (max(parts) + 1 - len(row))]
    for part in parts:
        joined[part] = ""
    joined[parts[0]] = separator.join(texts)
    return joined


def _find_versus(
    names: Mapping[int, str], all_meanings: Collection[str | None], meanings: Mapping[int, str | None], body: TextRows
) -> int | None:
    """Return the column that contains both players of a game, such as Anna - Ben.

    Return None if there is not exactly one such column, if another column has players, or if no column has results.
    """
    has_players = any(
        meaning in ("player", WINNER, LOSER, *SIDES) or (meaning and is_place(meaning)) for meaning in all_meanings
    )
    if has_players or _RESULTS.isdisjoint(all_meanings):
        return None
    candidates = [
        column
        for column, name in names.items()
        if meanings[column] in (None, "game", "game_id") and _has_matches(name, body, column)
    ]
    return candidates[0] if len(candidates) == 1 else None


def _has_matches(name: str, body: TextRows, column: int) -> bool:
    """Tell whether most texts of a column are matches of two players; repetitions of its name are ignored."""
    texts = [text for _, row in body if (text := read_cell(row, column)) and text != name]
    return 2 * sum(_split_match(text) is not None for text in texts) > len(texts)


def _split_match(text: str) -> tuple[str, str] | None:
    """Split a match into its two players; return None unless there is exactly one separator.

    >>> _split_match("Anna - Ben"), _split_match("Anna vs. Ben"), _split_match("a - b - c"), _split_match("Ann-Kathrin")
    (('Anna', 'Ben'), ('Anna', 'Ben'), None, None)
    """
    if (match := _VERSUS.fullmatch(text)) is None or _VERSUS.fullmatch(match[2]) is not None:
        return None
    return match[1], match[2]


def _divide_cell(row: list[str], column: int, names: Sequence[str]) -> list[str]:
    """Return a row with the first player in the divided column and the second in a new last column."""
    text = read_cell(row, column)
    # a repeated header is renamed as the header is
    first, second = _split_match(text) or (
        (name_divided_column(text, first=True), name_divided_column(text, first=False))
        if text == names[column]
        else (text, "")
    )
    divided = [*row[: len(names)], *[""] * (len(names) - len(row)), second]
    divided[column] = first
    return [*divided, *row[len(names) :]]

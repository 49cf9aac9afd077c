"""Recognise tables that no layout can read, so that a single message explains the problem.

Name;Anna;Ben;Cleo      a cross table: it has neither dates nor the order of the games
Anna;*;3:1;3:0
Ben;1:3;*;3:1
Cleo;0:3;1:3;*

22.11. Anna Ben 3:1     lines without columns
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile

from ratings_ledger.ledger.rejections import Refused

# marks in cells where the row and the column are the same player
_DIAGONAL = frozenset(("*", "**", "***", "x", "xx", "xxx", "\\", "■", "█", "●", "-", "–", "—", "/"))
_PLAYERS_MIN, COLUMNS_MAX = 3, 200  # of a cross table
_HEADER_ROWS_MAX = 3  # the number of first rows, one of which may be the header of a cross table
TABLE_ADVICE = "write a row for each game under a header such as Date;Winner;Loser;Result"


def explain_unreadable_table(rows: Sequence[tuple[int, list[str]]]) -> Refused | None:
    """Return the refusal of a cross table or of a table without columns; None for any other kind of table."""
    filled = [[cell.strip() for cell in row] for _, row in rows]
    if len(filled) >= 2 and all(sum(map(bool, row)) <= 1 for row in filled):
        problem = "no row has more than one filled cell (a text file needs commas, semicolons, tabs or | between cells)"
        return Refused("missing-column", f"{problem}; {TABLE_ADVICE}", rows[0][0])
    for index, header in enumerate(filled[:_HEADER_ROWS_MAX]):
        if _is_cross_table(header, filled[index + 1 :]):
            problem = "it is a cross table, which has neither the dates nor the order of its games"
            return Refused("missing-column", f"{problem}; {TABLE_ADVICE}", rows[index][0])
    return None


def _is_cross_table(header: list[str], body: list[list[str]]) -> bool:
    """Tell whether columns and rows stand for the same players, and the diagonal has no results.

    >>> _is_cross_table(["", "A", "B", "C"], [["A", "", "1", "0"], ["B", "0", "", "1"], ["C", "1", "0", ""]])
    True
    """
    rows = [row + [""] * (len(header) - len(row)) for row in body[: len(header)]]
    for first in range(1, len(header) if len(header) <= COLUMNS_MAX else 0):
        names = header[first:]
        number_count = _count_equal(names, map(str, range(1, len(rows) + 1)))
        name_count = max(_count_equal(names, (row[column] for row in rows)) for column in range(first))
        if name_count >= _PLAYERS_MIN and _has_marked_diagonal(rows, first, name_count, more_marks=("",)):
            return True
        if number_count >= _PLAYERS_MIN and _has_marked_diagonal(rows, first, number_count):
            return True
    return False


def _count_equal(names: Iterable[str], texts: Iterable[str]) -> int:
    """Count the names that equal the text at the same index, up to the first that differs or is empty."""
    pairs = takewhile(lambda pair: pair[0] == pair[1] != "", zip(names, texts, strict=False))
    return sum(1 for _ in pairs)


def _has_marked_diagonal(rows: Sequence[list[str]], first: int, size: int, more_marks: Collection[str] = ()) -> bool:
    """Tell whether all cells of the diagonal of a square have the same mark.

    The square has `size` rows and columns; its first column is `first`.
    """
    marks = {row[first + index].casefold() for index, row in enumerate(rows[:size])}
    return len(marks) == 1 and (marks <= _DIAGONAL or marks <= {*more_marks})

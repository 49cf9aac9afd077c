"""Tables that no layout reads, recognised so that one message says what they are.

Name;Anna;Ben;Cleo      a cross table, which says who played whom, but neither when nor in which order
Anna;*;3:1;3:0
Ben;1:3;*;3:1
Cleo;0:3;1:3;*

22.11. Anna Ben 3:1     lines without columns
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile

from ratings_ledger.ledger.rejections import Refused

# the cells in which players would meet themselves
_DIAGONAL = frozenset(("*", "**", "***", "x", "xx", "xxx", "\\", "■", "█", "●", "-", "–", "—", "/"))
_ROWS_MIN, COLUMNS_MAX = 3, 200
HOW = "write a row for each game under a header such as Date;Winner;Loser;Result"


def explain_other_table(rows: Sequence[tuple[int, list[str]]]) -> Refused | None:
    """Return a refusal that says what a table is if no layout can read it; None for other tables."""
    filled = [[cell.strip() for cell in row] for _, row in rows]
    if len(filled) >= 2 and all(sum(map(bool, row)) <= 1 for row in filled):
        problem = "the file has no columns: neither commas, semicolons, tabs nor | separate its cells"
        return Refused("missing-column", f"{problem}; {HOW}", rows[0][0])
    for at, header in enumerate(filled[:_ROWS_MIN]):
        if _is_cross_table(header, filled[at + 1 :]):
            problem = "it is a cross table, which says neither when games were played nor in which order"
            return Refused("missing-column", f"{problem}; {HOW}", rows[at][0])
    return None


def _is_cross_table(header: list[str], body: list[list[str]]) -> bool:
    """Tell whether columns and rows stand for the same players, who do not meet themselves.

    >>> _is_cross_table(["", "A", "B", "C"], [["A", "", "1", "0"], ["B", "0", "", "1"], ["C", "1", "0", ""]])
    True
    """
    rows = [row + [""] * (len(header) - len(row)) for row in body[: len(header)]]
    for first in range(1, len(header) if len(header) <= COLUMNS_MAX else 0):
        names = header[first:]
        numbered = _count_equal(names, map(str, range(1, len(rows) + 1)))
        named = max(_count_equal(names, (row[column] for row in rows)) for column in range(first))
        if named >= _ROWS_MIN and _is_diagonal(rows, first, named, ("",)):
            return True
        if numbered >= _ROWS_MIN and _is_diagonal(rows, first, numbered):
            return True
    return False


def _count_equal(names: Iterable[str], others: Iterable[str]) -> int:
    """Return how many names equal the others from the beginning on."""
    pairs = takewhile(lambda pair: pair[0] == pair[1] != "", zip(names, others, strict=False))
    return sum(1 for _ in pairs)


def _is_diagonal(rows: Sequence[list[str]], first: int, number: int, besides: Collection[str] = ()) -> bool:
    """Tell whether the diagonal of a square has one mark only, or one of those given besides."""
    marks = {row[first + place].casefold() for place, row in enumerate(rows[:number])}
    return len(marks) == 1 and (marks <= _DIAGONAL or marks <= {*besides})

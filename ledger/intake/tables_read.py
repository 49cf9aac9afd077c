"""How a table was read: for what its form was taken, and what of it was left out.

A title row                                 above the header
Date   Winner  2nd   Remark     header 2    columns Date = occurred_at ..., dropped Remark
1.2.   anna    ben   late
Date   Winner  2nd   Remark                 the header again
no game this week                           no game
Total  1                                    a total
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ratings_ledger.ledger.rejections import in_list, shown

LISTED_MAX = 5


class TableRead(NamedTuple):
    """How a table was read; rows are named by their lines.

    layout:       one of the `LAYOUTS`
    columns:      what each column that is used holds, by its own name
    header:       the line of the header; `above` it are titles
    repeated:     rows that are the header again
    totals:       rows that sum up others, with the word that says so
    gameless:     rows that hold a remark or a date, but no player, with the text
    blank:        how many rows are empty
    hidden:       rows that a spreadsheet hides, which are read like the others
    dropped:      columns that somebody said to leave out
    unknown:      columns of which nobody said what they hold, which is refused
    dates:        the order of day, month and year, if any date needs one
    dates_from:   the line and the text of the date that decided it
    is_numbered:  whether games have no numbers but those of the day
    told:         the sentences that say it
    """

    layout: str
    columns: Mapping[str, str]
    header: int
    above: tuple[int, ...] = ()
    repeated: tuple[int, ...] = ()
    totals: tuple[tuple[int, str], ...] = ()
    gameless: tuple[tuple[int, str], ...] = ()
    blank: int = 0
    hidden: tuple[int, ...] = ()
    dropped: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    dates: str | None = None
    dates_from: tuple[int, str] | None = None
    is_numbered: bool = False
    sheet: str | None = None
    other_sheets: tuple[str, ...] = ()
    delimiter: str | None = None
    encoding: str | None = None
    told: tuple[str, ...] = ()


def rows_left_out(table: TableRead) -> list[str]:
    """Which rows with something in them are no games, and why, in words.

    >>> rows_left_out(TableRead("rows", {}, 2, above=(1,), totals=((9, "Total"),)))
    ['line 1 above the header', "line 9, 'Total'"]
    """
    found = [(line, f"line {line}, the header again") for line in table.repeated]
    found += [(line, f"line {line}, {shown(text)}") for line, text in table.totals + table.gameless]
    listed = [told for _, told in sorted(found)]
    if len(listed) > LISTED_MAX:
        listed[LISTED_MAX:] = [f"and {len(listed) - LISTED_MAX:,} more such lines"]
    above = [f"{', '.join(f'line {line}' for line in table.above)} above the header"] if table.above else []
    return above + listed


def replaced_told(column: str, texts: Collection[str], ours: str, value: str) -> str:
    """A sentence that says that one value for all rows takes the place of what a column has; of many texts the first.

    >>> replaced_told("Spiel", ["catan", "schach"], "game", "catan")
    'game=catan replaces column Spiel (catan, schach)'
    """
    more = " and others" if len(texts) > LISTED_MAX else ""
    return f"{ours}={value} replaces column {column} ({', '.join(map(in_list, [*texts][:LISTED_MAX]))}{more})"

"""Print results: tables for people, exact values as JSON or CSV. Only this module writes to stdout.

`emit` prints a result in an output format: JSON comes from the result, any other format from a function for it. Text
from outside goes through `ledger.rejections.escape_unprintable`, except in the log itself and in CSV that goes to no
terminal.
"""

import csv
import io
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from typing import Any

import click

from ratings_ledger.ledger.rejections import count as count
from ratings_ledger.ledger.rejections import csv_item as csv_item
from ratings_ledger.ledger.rejections import escape_unprintable, formula_safe
from ratings_ledger.projections.contract import align_decimals, decimal
from ratings_ledger.projections.queries.coordinates import Coordinates, Times
from ratings_ledger.projections.queries.results import Result

# the minimum width of a folded column
FOLDED_MIN = 20
SPARKS = "▁▂▃▄▅▆▇█"
# narrower terminals have no room for sparklines
SPARKED_MIN = 60
NOTE_INDENT = 2
SAFELY = "write CSV safely"

Cell = str | int | bool | None
# the cells of a table by the header of their column
Columns = Mapping[str, Sequence[Cell]]


def echo(text: str = "", err: bool = False, nl: bool = True) -> None:
    """Print lines to stdout or stderr, in which text from outside cannot affect a terminal."""
    click.echo(escape_unprintable(text, kept="\n\t"), err=err, nl=nl)


def to_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON: letters as they are, anything a terminal may act on escaped, which parses to the same."""
    return escape_unprintable(json.dumps(value, ensure_ascii=False, indent=indent), kept="\n", halves=True)


def print_json(value: Any) -> None:
    """Print one JSON document, indented."""
    click.echo(to_json(value, indent=2))


def print_csv(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Print rows for a spreadsheet or a script, values unchanged except after `write_csv_safely` or on a terminal."""
    click.echo(to_csv([header, *rows], to_stdout=True), nl=False)


def write_csv_safely() -> None:
    """Make the running command write CSV that is safe to open in a spreadsheet, but not meant to be read back."""
    click.get_current_context().meta[SAFELY] = True


def to_csv(rows: Iterable[Sequence[Cell]], to_stdout: bool = False) -> str:
    """Return rows as lines of CSV; a terminal gets them escaped, a pipe or a file as they are."""
    context = click.get_current_context(silent=True)
    safely = context is not None and context.meta.get(SAFELY, False)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [["" if cell is None else formula_safe(cell) if safely else cell for cell in row] for row in rows]
    )
    text = out.getvalue()
    return escape_unprintable(text, kept="\n") if to_stdout and sys.stdout.isatty() else text


def print_table(header: Sequence[str], rows: Sequence[Sequence[Cell]], right: Sequence[str] = ()) -> None:
    """Print an aligned table; columns in `right` are flush right. A terminal folds long cells, a pipe gets
    whole lines.
    """
    texts = [[plain(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_folded(header, texts, right)
        return
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(header, *texts, strict=True)]
    lines = []
    for line in (header, *texts):
        cells = []
        for name, text, width in zip(header, line, widths, strict=True):
            space = " " * (width - cell_len(text))
            cells.append(space + text if name in right else text + space)
        lines.append("  ".join(cells).rstrip())
    echo("\n".join(lines))


def print_columns(columns: Columns, right: Sequence[str] = ()) -> None:
    """Print a table that is given by its columns."""
    print_table([*columns], rows_of(columns), right)


def rows_of(columns: Columns) -> list[tuple[Cell, ...]]:
    """Return the rows of a table that is given by its columns."""
    return list(zip(*columns.values(), strict=True))


def _print_folded(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]) -> None:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    columns = [*zip(header, *rows, strict=True)]
    widths = [max(map(cell_len, column)) for column in columns]
    is_narrow = sum(widths) + 2 * (len(widths) - 1) > console.width
    # a name that is longer than its cells gets several lines before any cell does
    titles = [
        name.split() if is_narrow and cell_len(name) == width else [name]
        for name, width in zip(header, widths, strict=True)
    ]
    columns = [(*title, *cells) for title, (_, *cells) in zip(titles, columns, strict=True)]
    widths = [max(map(cell_len, column)) for column in columns]
    words = [max(cell_len(word) for text in column for word in text.split() or [""]) for column in columns]
    whole = _choose_unfolded(widths, words, [name in right for name in header], console.width)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name, title, width, keep in zip(header, titles, widths, whole, strict=True):
        table.add_column(
            "\n".join(title),
            justify="right" if name in right else "left",
            overflow="fold",
            no_wrap=keep,
            min_width=width if keep else None,
        )
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _choose_unfolded(widths: Sequence[int], words: Sequence[int], numbers: Sequence[bool], width: int) -> list[bool]:
    """Return which columns are not folded: those with numbers, then the narrowest while the rest has room for words.

    `words` has the width of the longest word in each column.
    """
    unfolded = list(numbers)
    room = width - 2 * (len(widths) - 1) - sum(w for w, number in zip(widths, numbers, strict=True) if number)
    needed = [FOLDED_MIN if own_width > FOLDED_MIN else word for own_width, word in zip(widths, words, strict=True)]
    folded = sorted((w, index) for index, (w, number) in enumerate(zip(widths, numbers, strict=True)) if not number)
    for rank, (own_width, index) in enumerate(folded, 1):
        if room - own_width < sum(needed[wider] for _, wider in folded[rank:]):
            break
        unfolded[index], room = True, room - own_width
    return unfolded


def plain(cell: Cell) -> str:
    """Return a cell as text on one line, without characters that could move a terminal's cursor."""
    text = "" if cell is None else str(cell)
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " if character in "\n\t" else "?" for character in text)


def print_hanging(text: str, indent: int) -> None:
    """Print a long line to stdout; a terminal wraps it between words, with the following lines indented."""
    if sys.stdout.isatty():
        text = "\n".join(_wrap(text, indent, shutil.get_terminal_size().columns))
    echo(text)


def _wrap(text: str, indent: int, width: int) -> list[str]:
    """Return the lines of a text in a terminal of so many columns, some of whose characters may take two of them."""
    from rich.cells import cell_len

    lines = [""]
    for word in re.findall(r"\s*\S+", text):
        if lines[-1].strip() and cell_len(lines[-1] + word) > width:
            lines.append(" " * indent + word.lstrip())
        else:
            lines[-1] += word
    return lines


def format_decimal(points: Fraction | str, places: int = 2, signed: bool = False) -> str:
    """Return an exact number for people: a decimal rounded half away from zero, to at most so many places.

    >>> format_decimal("20/3"), format_decimal(Fraction(-3, 2), signed=True), format_decimal("8", signed=True)
    ('6.67', '-1.5', '+8')
    """
    value = points if isinstance(points, Fraction) else Fraction(points)
    if value.denominator == 1:
        return f"{value.numerator:+}" if signed and value else str(value.numerator)
    return decimal(value.numerator, value.denominator, places, signed)


def format_column(points: Sequence[Fraction | str | None], places: int = 2, signed: bool = False) -> list[str]:
    """Format the numbers of one column with as many decimal places as the longest needs, so that they align flush
    right.

    >>> format_column(["1", "3/2", None, "20/3"])
    ['1.00', '1.50', '-', '6.67']
    """
    return align_decimals(["-" if value is None else format_decimal(value, places, signed) for value in points])


def format_exact(points: Fraction | str | None) -> str:
    """Return an exact number as a decimal number if that is exact, else as a fraction; a missing one as an empty cell.

    >>> format_exact("3/8"), format_exact("20/3"), format_exact(None)
    ('0.375', '20/3', '')
    """
    if points is None:
        return ""
    value = Fraction(points)
    places = value.denominator.bit_length()  # as many as a power of two can need
    if 10**places % value.denominator:
        return str(value)
    return decimal(value.numerator, value.denominator, places)


def join_first(names: Sequence[str], shown: int) -> str:
    """Return the first names of a list, and how many more there are.

    >>> join_first(["anna", "ben", "cleo"], 2)
    'anna, ben and 1 more'
    """
    more = f" and {len(names) - shown:,} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def remaining_width(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> int:
    """Return the width that a table leaves for one more column, of the terminal's or of 80."""
    from rich.cells import cell_len

    widths = [max(cell_len(plain(cell)) for cell in cells) for cells in zip(header, *rows, strict=True)]
    return shutil.get_terminal_size().columns - sum(widths) - 2 * len(widths)


def is_folded(columns: Columns) -> bool:
    """Tell whether a terminal is too narrow for a table, whose cells would then be folded."""
    return sys.stdout.isatty() and remaining_width([*columns], rows_of(columns)) < -2


def fit_names(names: Sequence[str], width: int, players: int) -> str:
    """Join as many names as fit into a width, and count the rest; a single player is never left out.

    A name may be that of several partners; `players` counts them all.

    >>> [fit_names(["anna", "ben", "cleodora"], width, 3) for width in (19, 15, 14)]
    ['anna, ben, cleodora', 'anna and 2 more', '3 players']
    """
    from rich.cells import cell_len

    texts = (join_first(names, shown) for shown in range(len(names), 0, -1))
    shortest = join_first(names, 1) if players < 2 else count(players, "player")
    return next((text for text in texts if cell_len(plain(text)) <= width), shortest)


def print_title(subject: str, more: str) -> None:
    """Print what a result is about, and how it was computed: on one line, or on two if that is too long for a
    terminal.
    """
    echo(f"{subject}{more}" if len(subject + more) <= 80 else f"{subject}\n{more.lstrip(', ')}")


def shows_sparks() -> bool:
    """Tell whether stdout is a terminal that can show sparklines: UTF-8, and not narrow."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return sys.stdout.isatty() and encoding == "utf8" and shutil.get_terminal_size().columns >= SPARKED_MIN


def sparkline(values: Sequence[Fraction], width: int = 60) -> str:
    """Return a line of at most `width` characters that shows how some numbers develop."""
    if len(values) > width:
        values = [values[index * (len(values) - 1) // (width - 1)] for index in range(width)]
    low, high = min(values), max(values)
    span = high - low
    return "".join(SPARKS[int((value - low) * (len(SPARKS) - 1) / span) if span else 3] for value in values)


def note(text: str) -> None:
    """Print a line on stderr, alongside the result; a terminal wraps it between words."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        lines = escape_unprintable(text, kept="\n\t").split("\n")
        text = "\n".join(part for line in lines for part in _wrap(line, NOTE_INDENT, width))
    echo(text, err=True)


AXES = ("as_of", "known_at", "rules")


def print_csv_at(
    header: Sequence[str], rows: Sequence[Sequence[Cell]], at: Coordinates | Sequence[Coordinates]
) -> None:
    """Print rows for a spreadsheet, each ending with its coordinates, which are either the same for all or
    one per row.
    """
    places = [at] * len(rows) if isinstance(at, Coordinates) else at
    extended = [[*row, *place.axes().values()] for row, place in zip(rows, places, strict=True)]
    print_csv((*header, *AXES), extended)


def print_heading(subject: str, more: str, at: Coordinates, times: Times, played: str | None = None) -> None:
    """Print what a table is about, and in words its coordinates; `played` replaces the words of --as-of."""
    known = f"known at position {at.known_at}"
    if len(f"{more}, {known}".lstrip(", ")) > 80:
        print_title(subject, more)
        echo(known)
    else:
        print_title(subject, f"{more}, {known}")
    if played or at.as_of is not None:
        print_hanging(played or f"played up to {times.format_second(at.as_of or 0)}", 2)
    if at.rules is not None:
        ruleset_id, _, _ = at.rules.partition("@")
        print_hanging(f"all games of {ruleset_id} under {at.rules} (--rules)", 2)


Print = Callable[[Any], None]


def _print_as_json(result: Result) -> None:
    print_json(result.model_dump())


def print_records_csv(kind: type[Result], records: Iterable[Result]) -> None:
    """Print a line of CSV for each record, with the members of its kind as columns."""
    header = [member.name for member in fields(kind)]
    print_csv(header, [[*record.model_dump().values()] for record in records])


# the formats that every result has
GENERAL_FORMATS: dict[str, Print] = {"json": _print_as_json}


def emit(
    result: Result, output_format: str, table: Print | None = None, csv: Print | None = None, **others: Print
) -> int:
    """Print a result in a format, after what failed.

    Args:
        output_format: One of `GENERAL_FORMATS`, or one for which there is a function here.
        table, csv, others: The functions that print such a result in the formats of their names.

    Returns:
        The exit code: 1 if a part was refused or, where nothing is recorded, could not be computed, else 0.
    """
    failed: tuple[str, ...] = getattr(result, "failed", ())
    for reason in (*getattr(result, "unusable", ()), *failed):
        note(f"ratings: {reason}")
    printers = {**others, "table": table, "csv": csv, **GENERAL_FORMATS}
    print_result = printers[output_format]
    assert print_result is not None, f"{type(result).__name__} has no format {output_format}"
    print_result(result)
    return int(getattr(result, "is_refused", bool(failed)))

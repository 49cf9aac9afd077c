"""Print results as tables for people, or with exact values as JSON or CSV.

Commands write to stdout through this module, except for exports and for the answers of `import --follow`.

`emit` prints a result in an output format: every result has JSON, and a function prints each other format. Text from
outside is escaped with `ledger.rejections.escape_unprintable`, except in exports of the log and in CSV for a file or a
pipe.
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
from ratings_ledger.projections.queries.coordinates import Coordinates, TimeFormat
from ratings_ledger.projections.queries.results import Result

# the minimum width of a folded column
FOLDED_WIDTH_MIN = 20
SPARKLINE_CHARACTERS = "▁▂▃▄▅▆▇█"
# narrower terminals show no sparklines
SPARKLINE_TERMINAL_WIDTH_MIN = 60
NOTE_INDENT = 2
CSV_SAFE_KEY = "write CSV safely"

TableCell = str | int | bool | None
# the cells of a table by the header of their column
Columns = Mapping[str, Sequence[TableCell]]


def echo(text: str = "", err: bool = False, nl: bool = True) -> None:
    """Print lines to stdout or stderr, with control characters escaped."""
    click.echo(escape_unprintable(text, kept="\n\t"), err=err, nl=nl)


def to_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON, with letters of all languages readable and control characters escaped."""
    return escape_unprintable(json.dumps(value, ensure_ascii=False, indent=indent), kept="\n", halves=True)


def print_json(value: Any) -> None:
    """Print one JSON document, indented."""
    click.echo(to_json(value, indent=2))


def print_csv(header: Sequence[str], rows: Sequence[Sequence[TableCell]]) -> None:
    """Print rows as CSV, with unchanged values except after `enable_safe_csv` or on a terminal."""
    click.echo(to_csv([header, *rows], to_stdout=True), nl=False)


def enable_safe_csv() -> None:
    """Let the running command write CSV that is safe to open in a spreadsheet, but cannot be read back exactly."""
    click.get_current_context().meta[CSV_SAFE_KEY] = True


def to_csv(rows: Iterable[Sequence[TableCell]], to_stdout: bool = False) -> str:
    """Return rows as lines of CSV, with control characters escaped for a terminal."""
    context = click.get_current_context(silent=True)
    is_safe = context is not None and context.meta.get(CSV_SAFE_KEY, False)
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(
        [["" if cell is None else formula_safe(cell) if is_safe else cell for cell in row] for row in rows]
    )
    text = buffer.getvalue()
    return escape_unprintable(text, kept="\n") if to_stdout and sys.stdout.isatty() else text


def print_table(header: Sequence[str], rows: Sequence[Sequence[TableCell]], right: Sequence[str] = ()) -> None:
    """Print an aligned table, with the columns in `right` flush right. Long cells are folded only on a terminal."""
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
    """Print a table from its columns."""
    print_table([*columns], list_rows(columns), right)


def list_rows(columns: Columns) -> list[tuple[TableCell, ...]]:
    """Return the rows of a table from its columns."""
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
    # if the table is wider than the terminal, headers that widen columns are split first, so fewer cells are folded
    titles = [
        name.split() if is_narrow and cell_len(name) == width else [name]
        for name, width in zip(header, widths, strict=True)
    ]
    columns = [(*title, *cells) for title, (_, *cells) in zip(titles, columns, strict=True)]
    widths = [max(map(cell_len, column)) for column in columns]
    word_widths = [max(cell_len(word) for text in column for word in text.split() or [""]) for column in columns]
    unfolded = _choose_unfolded(widths, word_widths, [name in right for name in header], console.width)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name, title, width, is_unfolded in zip(header, titles, widths, unfolded, strict=True):
        table.add_column(
            "\n".join(title),
            justify="right" if name in right else "left",
            overflow="fold",
            no_wrap=is_unfolded,
            min_width=width if is_unfolded else None,
        )
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _choose_unfolded(
    widths: Sequence[int], word_widths: Sequence[int], number_flags: Sequence[bool], width: int
) -> list[bool]:
    """Choose the columns that are not folded: all numbers, and narrow texts while wider texts have room for words.

    `word_widths` has the width of the longest word in each column.
    """
    unfolded = list(number_flags)
    columns = [*zip(widths, number_flags, range(len(widths)), strict=True)]
    room = width - 2 * (len(widths) - 1) - sum(column_width for column_width, is_number, _ in columns if is_number)
    needed = [
        FOLDED_WIDTH_MIN if column_width > FOLDED_WIDTH_MIN else word_width
        for column_width, word_width in zip(widths, word_widths, strict=True)
    ]
    texts_by_width = sorted((column_width, index) for column_width, is_number, index in columns if not is_number)
    for wider_start, (column_width, index) in enumerate(texts_by_width, 1):
        if room - column_width < sum(needed[wider] for _, wider in texts_by_width[wider_start:]):
            break
        unfolded[index], room = True, room - column_width
    return unfolded


def plain(cell: TableCell) -> str:
    """Return a cell as text on one line, without control characters."""
    text = "" if cell is None else str(cell)
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " if character in "\n\t" else "?" for character in text)


def print_hanging(text: str, indent: int) -> None:
    """Print a long line to stdout. On a terminal, wrap it between words and indent the following lines."""
    if sys.stdout.isatty():
        text = "\n".join(_wrap(text, indent, shutil.get_terminal_size().columns))
    echo(text)


def _wrap(text: str, indent: int, width: int) -> list[str]:
    """Wrap a text to the width of a terminal, on which some characters take two columns."""
    from rich.cells import cell_len

    lines = [""]
    for word in re.findall(r"\s*\S+", text):
        if lines[-1].strip() and cell_len(lines[-1] + word) > width:
            lines.append(" " * indent + word.lstrip())
        else:
            lines[-1] += word
    return lines


def format_decimal(points: Fraction | str, places: int = 2, signed: bool = False) -> str:
    """Return a number as a decimal with at most `places` decimal places, rounded half away from zero.

    >>> format_decimal("20/3"), format_decimal(Fraction(-3, 2), signed=True), format_decimal("8", signed=True)
    ('6.67', '-1.5', '+8')
    """
    value = points if isinstance(points, Fraction) else Fraction(points)
    if value.denominator == 1:
        return f"{value.numerator:+}" if signed and value else str(value.numerator)
    return decimal(value.numerator, value.denominator, places, signed)


def format_column(points: Sequence[Fraction | str | None], places: int = 2, signed: bool = False) -> list[str]:
    """Format the numbers of a column with the same number of decimal places, so that they align flush right.

    >>> format_column(["1", "3/2", None, "20/3"])
    ['1.00', '1.50', '-', '6.67']
    """
    return align_decimals(["-" if value is None else format_decimal(value, places, signed) for value in points])


def format_exact(points: Fraction | str | None) -> str:
    """Return a number as a decimal if the decimal is exact, otherwise as a fraction; None as an empty string.

    >>> format_exact("3/8"), format_exact("20/3"), format_exact(None)
    ('0.375', '20/3', '')
    """
    if points is None:
        return ""
    value = Fraction(points)
    places = value.denominator.bit_length()  # enough for any power of two
    if 10**places % value.denominator:
        return str(value)
    return decimal(value.numerator, value.denominator, places)


def join_first(names: Sequence[str], shown_count: int) -> str:
    """Join the first `shown_count` names, and count the rest.

    >>> join_first(["anna", "ben", "cleo"], 2)
    'anna, ben and 1 more'
    """
    more = f" and {len(names) - shown_count:,} more" if len(names) > shown_count else ""
    return ", ".join(names[:shown_count]) + more


def compute_remaining_width(header: Sequence[str], rows: Sequence[Sequence[TableCell]]) -> int:
    """Return the width that a table leaves for another column on the terminal, which is 80 wide by default."""
    from rich.cells import cell_len

    widths = [max(cell_len(plain(cell)) for cell in cells) for cells in zip(header, *rows, strict=True)]
    return shutil.get_terminal_size().columns - sum(widths) - 2 * len(widths)


def is_folded(columns: Columns) -> bool:
    """Tell whether stdout is a terminal that is too narrow for a table, so cells would be folded."""
    return sys.stdout.isatty() and compute_remaining_width([*columns], list_rows(columns)) < -2


def fit_names(names: Sequence[str], width: int, players: int) -> str:
    """Join as many names as fit into a width, and count the rest. A single player is always named.

    `players` is the number of players, because a name can stand for several partners.

    >>> [fit_names(["anna", "ben", "cleodora"], width, 3) for width in (19, 15, 14)]
    ['anna, ben, cleodora', 'anna and 2 more', '3 players']
    """
    from rich.cells import cell_len

    texts = (join_first(names, shown_count) for shown_count in range(len(names), 0, -1))
    shortest = join_first(names, 1) if players < 2 else count(players, "player")
    return next((text for text in texts if cell_len(plain(text)) <= width), shortest)


def print_title(subject: str, details: str) -> None:
    """Print the subject of a result and how it was computed: on one line of at most 80 characters, otherwise on two."""
    echo(f"{subject}{details}" if len(subject + details) <= 80 else f"{subject}\n{details.lstrip(', ')}")


def can_show_sparklines() -> bool:
    """Tell whether stdout is a terminal that can show sparklines: wide, and with UTF-8."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return (
        sys.stdout.isatty()
        and encoding == "utf8"
        and shutil.get_terminal_size().columns >= SPARKLINE_TERMINAL_WIDTH_MIN
    )


def draw_sparkline(values: Sequence[Fraction], width: int = 60) -> str:
    """Return a line of at most `width` characters that shows the course of the numbers."""
    if len(values) > width:
        values = [values[index * (len(values) - 1) // (width - 1)] for index in range(width)]
    low, high = min(values), max(values)
    span = high - low
    return "".join(
        SPARKLINE_CHARACTERS[int((value - low) * (len(SPARKLINE_CHARACTERS) - 1) / span) if span else 3]
        for value in values
    )


def note(text: str) -> None:
    """Print a note on stderr, apart from the result. On a terminal, wrap the note between words."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        lines = escape_unprintable(text, kept="\n\t").split("\n")
        text = "\n".join(part for line in lines for part in _wrap(line, NOTE_INDENT, width))
    echo(text, err=True)


AXES = ("as_of", "known_at", "rules")


def print_csv_at(
    header: Sequence[str], rows: Sequence[Sequence[TableCell]], at: Coordinates | Sequence[Coordinates]
) -> None:
    """Print rows as CSV, each followed by its coordinates: the same for all rows, or one for each."""
    row_coordinates = [at] * len(rows) if isinstance(at, Coordinates) else at
    extended = [[*row, *coordinates.axes().values()] for row, coordinates in zip(rows, row_coordinates, strict=True)]
    print_csv((*header, *AXES), extended)


def print_heading(subject: str, details: str, at: Coordinates, times: TimeFormat, played: str | None = None) -> None:
    """Print the subject and the coordinates of a table; `played`, if given, replaces the text about --as-of."""
    known = f"known at position {at.known_at}"
    if len(f"{details}, {known}".lstrip(", ")) > 80:
        print_title(subject, details)
        echo(known)
    else:
        print_title(subject, f"{details}, {known}")
    if played or at.as_of is not None:
        print_hanging(played or f"played up to {times.format_second(at.as_of or 0)}", 2)
    if at.rules is not None:
        ruleset_id, _, _ = at.rules.partition("@")
        print_hanging(f"all games of {ruleset_id} under {at.rules} (--rules)", 2)


Printer = Callable[[Any], None]


def _print_as_json(result: Result) -> None:
    print_json(result.model_dump())


def print_records_csv(record_class: type[Result], records: Iterable[Result]) -> None:
    """Print a line of CSV for each record, with the fields of its class as columns."""
    header = [member.name for member in fields(record_class)]
    print_csv(header, [[*record.model_dump().values()] for record in records])


# the formats that every result has
GENERAL_FORMATS: dict[str, Printer] = {"json": _print_as_json}


def emit(
    result: Result,
    output_format: str,
    table: Printer | None = None,
    csv: Printer | None = None,
    **other_formats: Printer,
) -> int:
    """Print a result in a format, after notes about what is unusable and what failed.

    Args:
        result: The result.
        output_format: One of `GENERAL_FORMATS`, or a format with a function among the other arguments.
        table, csv, other_formats: The functions that print such a result, by format.

    Returns:
        The exit code: 1 if a part was refused or could not be computed, else 0.
    """
    failed: tuple[str, ...] = getattr(result, "failed", ())
    for reason in (*getattr(result, "unusable", ()), *failed):
        note(f"ratings: {reason}")
    printers = {**other_formats, "table": table, "csv": csv, **GENERAL_FORMATS}
    print_result = printers[output_format]
    assert print_result is not None, f"{type(result).__name__} has no format {output_format}"
    print_result(result)
    return int(getattr(result, "is_refused", bool(failed)))

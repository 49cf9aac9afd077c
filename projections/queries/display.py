"""Display results in a terminal and in a notebook: a line for each result, and tables of rows.

    >>> from ratings_ledger.projections.queries.results import ReplayFailure
    >>> describe(ReplayFailure("elo/all", "no rule"))
    "ReplayFailure(ladder='elo/all', reason='no rule')"

Numbers are rounded and times shown to the minute. Empty members, and members that only programs read, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from fractions import Fraction
from html import escape
from typing import Any

from ratings_ledger.projections.contract import decimal
from ratings_ledger.projections.queries.coordinates import UTC_TIMES, Coordinates, TimeFormat
from ratings_ledger.projections.queries.result_members import ABSENT, INSTANTS, convert_to_time

LINE_MAX = 110  # the maximum number of characters in a line
TEXT_MAX = 60  # the maximum number of characters in a value
ROWS_MAX, COLUMNS_MAX = 30, 12  # the maximum size of a table; a cell lists at most `COLUMNS_MAX` items
# members that only programs read
MACHINE_MEMBERS = frozenset(
    {"event_id", "ledger_id", "digest", "seed", "head", "record", "state_exact", "before_exact", "after_exact"}
)
ITEMS_MAX = 6  # longer dictionaries do not fit beside other values
# tables inherit the colours of the notebook, so that they are readable on light and dark backgrounds
STYLE = (
    ".ratings-ledger table{border-collapse:collapse;color:inherit;background:transparent}"
    ".ratings-ledger th,.ratings-ledger td{padding:.15em .7em;text-align:left;color:inherit;background:transparent;"
    "border-bottom:1px solid rgba(128,128,128,.35)}"
    ".ratings-ledger .n{text-align:right;font-variant-numeric:tabular-nums}"
    ".ratings-ledger p{margin:.3em 0}"
)


def describe(result: object, rows: Sequence[Any] | None = None) -> str:
    """Return a result in one line; `rows` are the rows of a result that is a sequence."""
    parts = [] if rows is None else [_count_rows(rows)]
    for name, value in list_scalars(result):
        parts.append(f"{name}={_format_brief(value)}")
    if rows is None:
        parts += [f"{name}: {len(value)}" for name, value in list_nested(result)]
        parts = parts or [f"{name}={value!r}" for name, value in _list_members(result) if is_dataclass(value)]
    line, part_count = "", 0
    for part in parts:
        longer = f"{line}, {part}" if line else part
        if part_count and len(longer) > LINE_MAX:
            line += ", …"
            break
        line, part_count = longer, part_count + 1
    return f"{type(result).__name__}({line})"


def build_notebook_table(result: object, rows: Sequence[Any] | None = None) -> str:
    """Return a result as an HTML table: its rows, or its members and a table for each sequence of rows in it."""
    times = getattr(result, "times", UTC_TIMES)
    parts = [f"<style>{STYLE}</style>"]
    if rows is not None:
        summary = " · ".join(
            f"{escape(name)} <bdi>{_format_cell(value, times)}</bdi>" for name, value in list_scalars(result)
        )
        parts.append(f"<p><b>{type(result).__name__}</b>{summary and ' · '}{summary}</p>{_build_table(rows, times)}")
    else:
        inner_results = ((name, repr(value)) for name, value in _list_members(result) if is_dataclass(value))
        lines = "".join(
            f"<tr><th>{escape(name)}</th>"
            f"<td{_format_attributes(value)}>{_format_cell(value, times, LINE_MAX)}</td></tr>"
            for name, value in (*list_scalars(result), *inner_results)
        )
        parts.append(f"<p><b>{type(result).__name__}</b></p><table>{lines}</table>")
        parts += [f"<p>{escape(name)}</p>{_build_table(inner_rows, times)}" for name, inner_rows in list_nested(result)]
    return f'<div class="ratings-ledger">{"".join(parts)}</div>'


def list_scalars(result: Any, *, deeply: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of the members that are displayed as a single value.

    Args:
        result: a result or a named tuple.
        deeply: include the members of results and of short dictionaries of texts in it, under names such as `if.win`.
    """
    names = set[str]()
    for member, value in _list_members(result):
        parts = value.axes_with_datetimes() if isinstance(value, Coordinates) else {member: value}
        for name, part in parts.items():
            is_empty = part is None or part is ABSENT
            is_empty = is_empty or (isinstance(part, tuple) and all(item is None for item in part))
            if is_empty or name in names or name in MACHINE_MEMBERS:
                continue
            names.add(name)
            if not _is_nested(part):
                yield name, convert_to_time(part) if name in INSTANTS and isinstance(part, str) else part
            elif deeply:
                inner = list_scalars(part) if is_dataclass(part) else _list_short_items(part)
                yield from ((f"{name}.{key}", inner_value) for key, inner_value in inner)


def _list_short_items(value: Any) -> Iterable[tuple[str, Any]]:
    """Return the items of a short dictionary of texts; empty for other values."""
    is_short = isinstance(value, dict) and len(value) <= ITEMS_MAX
    return value.items() if is_short and all(isinstance(text, str) for text in value.values()) else ()


def list_nested(result: Any) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the names and values of the members that are sequences of rows."""
    for name, value in _list_members(result):
        if isinstance(value, tuple) and value and all(is_dataclass(item) or isinstance(item, tuple) for item in value):
            yield name, value


def _list_members(result: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of a result's members, except hidden ones and those computed on demand."""
    if not is_dataclass(result):
        yield from result._asdict().items()
        return
    for member in fields(result):
        marker = member.metadata
        if marker.get("hidden") or "read" in marker:
            continue
        value = getattr(result, member.name)
        if not marker.get("inline"):
            yield marker.get("name", member.name), value
        elif isinstance(value, dict):
            leading_names = marker.get("columns", {})
            yield from ((name, value[name]) for name in dict.fromkeys([*leading_names, *value]) if name in value)
        else:
            yield from _list_members(value)


def _is_nested(value: object) -> bool:
    """Tell whether a value is a result or a dictionary, or contains one."""
    if isinstance(value, Coordinates | dict) or is_dataclass(value):
        return True
    return isinstance(value, tuple | list) and any(
        is_dataclass(item) or isinstance(item, tuple | dict | list) for item in value
    )


def _format_brief(value: Any) -> str:
    """Format a value for a result in one line."""
    if isinstance(value, Fraction | float):
        return _format_number(value)
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%MZ}"
    if isinstance(value, tuple | list):
        end = ", …" if len(value) > 4 else "," if len(value) == 1 else ""
        return f"({', '.join(map(_format_brief, value[:4]))}{end})"
    if isinstance(value, str):
        return repr(_truncate(value))
    return str(value)


def _format_number(value: Fraction | float) -> str:
    """Format a fraction with at most two decimals (four if it is below 1), and a float with four significant digits."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return decimal(value.numerator, value.denominator, 2 if abs(value) >= 1 else 4)


def _count_rows(rows: Sequence[Any]) -> str:
    return f"{len(rows):,} row{'' if len(rows) == 1 else 's'}"


def _truncate(text: str, width: int = TEXT_MAX) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _build_table(rows: Sequence[Any], times: TimeFormat) -> str:
    """Return the first rows as an HTML table, with a line that counts all rows."""
    lines = [dict(list_scalars(row, deeply=True)) for row in rows[:ROWS_MAX]]
    all_names = list(dict.fromkeys(name for line in lines for name in line))
    names, omitted = all_names[:COLUMNS_MAX], all_names[COLUMNS_MAX:]
    columns = [_build_column(name, [line.get(name) for line in lines], times) for name in names]
    headings = "".join(heading for heading, _ in columns)
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in zip(*(cells for _, cells in columns), strict=True))
    table = f"<table><thead><tr>{headings}</tr></thead><tbody>{body}</tbody></table>" if names else ""
    summary = f"the first {ROWS_MAX} of {_count_rows(rows)}" if len(rows) > ROWS_MAX else _count_rows(rows)
    more = f"; more columns: {', '.join(map(escape, omitted))}" if omitted else ""
    return f"{table}<p><small>{summary}{more}</small></p>"


def _build_column(name: str, values: Sequence[Any], times: TimeFormat) -> tuple[str, list[str]]:
    """Return the heading and the cells of a column, with the same number of decimals for all fractions."""
    present = [value for value in values if value is not None]
    if any(isinstance(value, datetime) for value in present):
        name = times.name_column(name)
    numbers = [value for value in present if isinstance(value, Fraction)]
    decimals_count = 4 if numbers and all(abs(value) <= 1 for value in numbers) and any(numbers) else 2
    cells = []
    for value in values:
        if isinstance(value, Fraction):
            whole, _, decimals = decimal(value.numerator, value.denominator, decimals_count).partition(".")
            text = f"{whole}.{decimals:0<{decimals_count}}"
        else:
            text = _format_cell(value, times)
        cells.append(f"<td{_format_attributes(value)}>{text}</td>")
    return f"<th{_format_attributes(next(iter(present), None))}>{escape(name)}</th>", cells


def _format_attributes(value: object) -> str:
    """Return the HTML attributes of a cell: numbers are aligned to the right, and each text has its own direction."""
    if isinstance(value, int | Fraction | float) and not isinstance(value, bool):
        return ' class="n"'
    return ' dir="auto"' if isinstance(value, str) else ""


def _format_cell(value: Any, times: TimeFormat, width: int = TEXT_MAX) -> str:
    """Format a value for a cell, as escaped HTML."""
    if value is None:
        return ""
    if isinstance(value, Fraction):
        return _format_number(value)
    if isinstance(value, datetime):
        return escape(times.format_minute(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value}"
    if isinstance(value, tuple | list):
        cells = ", ".join(_format_cell(item, times) for item in value[:COLUMNS_MAX])
        return cells + ", …" * (len(value) > COLUMNS_MAX)
    return escape(_format_brief(value) if isinstance(value, float) else _truncate(str(value), width))

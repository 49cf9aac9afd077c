"""How results look in a terminal and in a notebook: a line for each, and tables of their rows.

    >>> from ratings_ledger.projections.queries.results import Failed
    >>> describe(Failed("elo/all", "no rule"))
    "Failed(ladder='elo/all', reason='no rule')"

Numbers are rounded, times are to the minute; members that are empty or only names for machines are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from fractions import Fraction
from html import escape
from typing import Any

from ratings_ledger.projections.contract import decimal
from ratings_ledger.projections.queries.coordinates import UTC_TIMES, Coordinates, Times
from ratings_ledger.projections.queries.result_members import ABSENT, INSTANTS, as_time

LINE_MAX = 110  # characters of a line
TEXT_MAX = 60  # characters of one value
ROWS_SHOWN, COLUMNS_SHOWN = 30, 12
# what only machines read
UNSHOWN = frozenset(
    {"event_id", "ledger_id", "digest", "seed", "head", "record", "state_exact", "before_exact", "after_exact"}
)
MEMBERS_MAX = 6  # a dictionary with more is no value beside others
# colours come from the notebook, so that tables are readable on light and on dark ground
STYLE = (
    ".ratings-ledger table{border-collapse:collapse;color:inherit;background:transparent}"
    ".ratings-ledger th,.ratings-ledger td{padding:.15em .7em;text-align:left;color:inherit;background:transparent;"
    "border-bottom:1px solid rgba(128,128,128,.35)}"
    ".ratings-ledger .n{text-align:right;font-variant-numeric:tabular-nums}"
    ".ratings-ledger p{margin:.3em 0}"
)


def describe(result: object, rows: Sequence[Any] | None = None) -> str:
    """Return a result in one line; `rows` are those that it consists of, if it does."""
    parts = [] if rows is None else [_count(rows)]
    for name, value in scalars(result):
        parts.append(f"{name}={_brief(value)}")
    if rows is None:
        parts += [f"{name}: {len(value)}" for name, value in nested(result)]
        parts = parts or [f"{name}={value!r}" for name, value in _members(result) if is_dataclass(value)]
    line, shown = "", 0
    for part in parts:
        longer = f"{line}, {part}" if line else part
        if shown and len(longer) > LINE_MAX:
            line += ", …"
            break
        line, shown = longer, shown + 1
    return f"{type(result).__name__}({line})"


def notebook_table(result: object, rows: Sequence[Any] | None = None) -> str:
    """Return a result as a table for a notebook: the rows that it consists of, or its members and what they hold."""
    times = getattr(result, "times", UTC_TIMES)
    parts = [f"<style>{STYLE}</style>"]
    if rows is not None:
        told = " · ".join(f"{escape(name)} <bdi>{_cell(value, times)}</bdi>" for name, value in scalars(result))
        parts.append(f"<p><b>{type(result).__name__}</b>{told and ' · '}{told}</p>{_table(rows, times)}")
    else:
        parts_of = ((name, repr(value)) for name, value in _members(result) if is_dataclass(value))
        lines = "".join(
            f"<tr><th>{escape(name)}</th><td{_attributes(value)}>{_cell(value, times, LINE_MAX)}</td></tr>"
            for name, value in (*scalars(result), *parts_of)
        )
        parts.append(f"<p><b>{type(result).__name__}</b></p><table>{lines}</table>")
        parts += [f"<p>{escape(name)}</p>{_table(inner, times)}" for name, inner in nested(result)]
    return f'<div class="ratings-ledger">{"".join(parts)}</div>'


def scalars(result: Any, *, deeply: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the members of a result that are shown as one value, with their names.

    Args:
        result: a result, or a tuple with names.
        deeply: also those of the results and short dictionaries in it, as `stakes.win`.
    """
    names = set[str]()
    for name, value in _members(result):
        parts = value.named() if isinstance(value, Coordinates) else {name: value}
        for one, part in parts.items():
            is_empty = part is None or part is ABSENT or (isinstance(part, tuple) and all(one is None for one in part))
            if is_empty or one in names or one in UNSHOWN:
                continue
            names.add(one)
            if not _is_nested(part):
                yield one, as_time(part) if one in INSTANTS and isinstance(part, str) else part
            elif deeply:
                inner = scalars(part) if is_dataclass(part) else _short_items(part)
                yield from ((f"{one}.{key}", inside) for key, inside in inner)


def _short_items(value: Any) -> Iterable[tuple[str, Any]]:
    """Return the members of a short dictionary of texts."""
    is_short = isinstance(value, dict) and len(value) <= MEMBERS_MAX
    return value.items() if is_short and all(isinstance(one, str) for one in value.values()) else ()


def nested(result: Any) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the members of a result that are rows of their own, with their names."""
    for name, value in _members(result):
        if isinstance(value, tuple) and value and all(is_dataclass(one) or isinstance(one, tuple) for one in value):
            yield name, value


def _members(result: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of a result's members, without what is worked out only when it is read."""
    if not is_dataclass(result):
        yield from result._asdict().items()
        return
    for member in fields(result):
        how = member.metadata
        if how.get("hidden") or "read" in how:
            continue
        value = getattr(result, member.name)
        if not how.get("spread"):
            yield how.get("name", member.name), value
        elif isinstance(value, dict):
            first = how.get("columns", {})
            yield from ((one, value[one]) for one in dict.fromkeys([*first, *value]) if one in value)
        else:
            yield from _members(value)


def _is_nested(value: object) -> bool:
    """Tell whether a value is a result, a dictionary, or holds some of these."""
    if isinstance(value, Coordinates | dict) or is_dataclass(value):
        return True
    return isinstance(value, tuple | list) and any(
        is_dataclass(one) or isinstance(one, tuple | dict | list) for one in value
    )


def _brief(value: Any) -> str:
    """Return a value as a line shows it."""
    if isinstance(value, Fraction | float):
        return _rounded(value)
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%MZ}"
    if isinstance(value, tuple | list):
        told = ", ".join(map(_brief, value[:4])) + (", …" if len(value) > 4 else "," if len(value) == 1 else "")
        return f"({told})"
    if isinstance(value, str):
        return repr(_cut(value))
    return str(value)


def _rounded(value: Fraction | float) -> str:
    """Return a number with two places, or with four if it is less than one."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return decimal(value.numerator, value.denominator, 2 if abs(value) >= 1 else 4)


def _count(rows: Sequence[Any]) -> str:
    return f"{len(rows):,} row{'' if len(rows) == 1 else 's'}"


def _cut(text: str, width: int = TEXT_MAX) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _table(rows: Sequence[Any], times: Times) -> str:
    """Return the first rows as a table, and a line that says how many there are."""
    lines = [dict(scalars(row, deeply=True)) for row in rows[:ROWS_SHOWN]]
    every = list(dict.fromkeys(name for line in lines for name in line))
    names, others = every[:COLUMNS_SHOWN], every[COLUMNS_SHOWN:]
    columns = [_column(name, [line.get(name) for line in lines], times) for name in names]
    head = "".join(title for title, _ in columns)
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in zip(*(cells for _, cells in columns), strict=True))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if names else ""
    told = f"the first {ROWS_SHOWN} of {_count(rows)}" if len(rows) > ROWS_SHOWN else _count(rows)
    more = f"; more columns: {', '.join(map(escape, others))}" if others else ""
    return f"{table}<p><small>{told}{more}</small></p>"


def _column(name: str, values: Sequence[Any], times: Times) -> tuple[str, list[str]]:
    """Return the heading and the cells of a column; its numbers have the same number of places."""
    there = [value for value in values if value is not None]
    if any(isinstance(value, datetime) for value in there):
        name = times.column(name)
    numbers = [value for value in there if isinstance(value, Fraction)]
    places = 4 if numbers and all(abs(value) <= 1 for value in numbers) and any(numbers) else 2
    cells = []
    for value in values:
        if isinstance(value, Fraction):
            whole, _, rest = decimal(value.numerator, value.denominator, places).partition(".")
            text = f"{whole}.{rest:0<{places}}"
        else:
            text = _cell(value, times)
        cells.append(f"<td{_attributes(value)}>{text}</td>")
    return f"<th{_attributes(next(iter(there), None))}>{escape(name)}</th>", cells


def _attributes(value: object) -> str:
    """Return the attributes of a cell: numbers are flush right, and each text goes in its own direction."""
    if isinstance(value, int | Fraction | float) and not isinstance(value, bool):
        return ' class="n"'
    return ' dir="auto"' if isinstance(value, str) else ""


def _cell(value: Any, times: Times, width: int = TEXT_MAX) -> str:
    """Return a value as a cell shows it, escaped."""
    if value is None:
        return ""
    if isinstance(value, Fraction):
        return _rounded(value)
    if isinstance(value, datetime):
        return escape(times.minute(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value}"
    if isinstance(value, tuple | list):
        return ", ".join(_cell(one, times) for one in value[:COLUMNS_SHOWN]) + (", …" * (len(value) > COLUMNS_SHOWN))
    return escape(_brief(value) if isinstance(value, float) else _cut(str(value), width))

"""Print a result in an output format: JSON comes from the result, any other format from a function that prints it."""

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

from ratings_ledger.cli.output import render
from ratings_ledger.projections.queries.results import Result

Print = Callable[[Any], None]


def _print_as_json(result: Result) -> None:
    render.print_json(result.model_dump())


def print_records_csv(kind: type[Result], records: Iterable[Result]) -> None:
    """Print a line of CSV for each record, with the members of its kind as columns."""
    header = [member.name for member in fields(kind)]
    render.print_csv(header, [[*record.model_dump().values()] for record in records])


# the formats that every result has
GENERAL_FORMATS: dict[str, Print] = {"json": _print_as_json}


def emit(result: Result, form: str, table: Print | None = None, csv: Print | None = None, **others: Print) -> int:
    """Print a result in a format, after what failed.

    Args:
        form: The format: one of `GENERAL_FORMATS`, or one for which there is a function here.
        table, csv, others: The functions that print such a result in the formats of their names.

    Returns:
        The exit code: 1 if a part was refused or, where nothing is recorded, could not be computed, else 0.
    """
    failed: tuple[str, ...] = getattr(result, "failed", ())
    for reason in (*getattr(result, "unusable", ()), *failed):
        render.note(f"ratings: {reason}")
    printers = {**others, "table": table, "csv": csv, **GENERAL_FORMATS}
    print_result = printers[form]
    assert print_result is not None, f"{type(result).__name__} has no format {form}"
    print_result(result)
    return int(getattr(result, "is_refused", bool(failed)))

"""Points by decision: what is added for players who are to get some, or to have some, one by one or from a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.fields import read_decimal, to_nfc
from ratings_ledger.ledger.intake.files import read_simple_table
from ratings_ledger.ledger.intake.tables.columns import COMMA_DELIMITERS, Cells, with_point
from ratings_ledger.ledger.intake.tables.csv_files import SimpleTable
from ratings_ledger.ledger.intake.tables.dates import moment_text, order_of
from ratings_ledger.ledger.rejections import Refused, did_you_mean, quote
from ratings_ledger.projections.contract import decimal
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.replay import find_starting_points
from ratings_ledger.projections.rulesets.versions import in_force, oldest
from ratings_ledger.projections.snapshot import Snapshot

COLUMNS = ("player", "points", "to", "reason", "at")
NUMBERS = ("points", "to")


class AdjustRow(NamedTuple):
    """What a player is to get or to have: `points` or `to`; the other is None."""

    file: str
    line: int
    player: str
    points: str | None
    to: str | None
    reason: str
    instant: int


def rows_of_file(
    file: str, usual: AdjustRow, instant_of: Callable[[str], int], dates: str | None = None
) -> list[AdjustRow]:
    """Return the rows of a file, with the given reason and time where they have none; `dates` is the order of its dates
    where they do not say it. Raises `Refused`, with the file and the line.
    """
    try:
        if (table := read_simple_table(file)) is None:
            raise Refused("empty-file", "it holds no row")
        _check(table)
        order = order_of(((line, cells.get("at", "")) for line, cells in table.rows), dates)
        return [
            _row(usual._replace(file=file, line=line), cells, table.delimiter, instant_of, order.name)
            for line, cells in table.rows
        ]
    except Refused as problem:
        where = file if problem.line is None else f"line {problem.line} of {file}"
        raise Refused(problem.code, f"{where}: {problem.message}") from None


def _row(
    usual: AdjustRow, told: Cells, delimiter: str, instant_of: Callable[[str], int], order: str
) -> AdjustRow:  # fmt: skip
    """Return what a row says, and what is usual where it says nothing. Raises `Refused`, with the line."""
    try:
        if "player" not in told or ("points" in told) == ("to" in told):
            raise Refused("missing-member", "a row needs a player, and either points or to")
        if delimiter in COMMA_DELIMITERS:
            told |= {name: with_point(name, told[name]) for name in NUMBERS if name in told}
        return usual._replace(
            player=to_nfc(told["player"]), points=told.get("points"),
            to=read_decimal(told["to"]) if "to" in told else None, reason=told.get("reason", usual.reason),
            instant=instant_of(moment_text(told["at"], None, order)) if "at" in told else usual.instant,
        )  # fmt: skip
    except Refused as problem:
        raise Refused(problem.code, problem.message.removeprefix("occurred_at: "), usual.line) from None


def _check(table: SimpleTable) -> None:
    """Raises `Refused` if the columns are not those of adjustments."""
    header = table.header
    for name in header:
        if name not in COLUMNS:
            told = f"{quote(name)} is none of {', '.join(COLUMNS)}{did_you_mean(name, COLUMNS)}"
            raise Refused("unknown-column", told, table.line)
    if twice := [name for name in header if header.count(name) > 1]:
        raise Refused("unknown-column", f"the column {twice[0]} occurs twice", table.line)
    if "player" not in header or not {"points", "to"} & {*header}:
        raise Refused("missing-column", "the columns player, and points or to, are needed", table.line)


def adjustments(view: Snapshot, ladder: str, rows: list[AdjustRow]) -> list[tuple[AdjustRow, str]]:
    """Return the points to be added for each row; rows whose player already has theirs are left out.

    Raises `Refused`, and what `Snapshot.asking` does if somebody is to have a number of points.
    """
    lines: dict[tuple[Any, ...], int] = {}
    for row in rows:
        if (first := lines.setdefault(row._replace(line=0), row.line)) != row.line:
            raise Refused("player-twice", f"lines {first} and {row.line} of {row.file} say the same; leave one out")
    if all(row.to is None for row in rows):
        return [(row, str(row.points)) for row in rows]
    with view.query(ladder) as asked:
        return [*_differences(_Had(asked.ladders, ladder), rows)]


def _differences(had: _Had, rows: list[AdjustRow]) -> Iterator[tuple[AdjustRow, str]]:
    """Yield what somebody lacks of the points that they are to have."""
    seen: dict[str, int] = {}
    for row in rows:
        player = had.ladders.facts.current(row.player)
        if (first := seen.setdefault(player, row.line)) != row.line:
            raise Refused("player-twice", f"{quote(row.player)} is in lines {first} and {row.line} of {row.file}")
        if row.to is None:
            yield row, str(row.points)
            continue
        difference = Fraction(read_decimal(row.to)) - (before := had.points(player, row.instant))
        text = decimal(difference.numerator, difference.denominator, 15)
        if Fraction(text) != difference:
            raise Refused(
                "finer-than-scale",
                f"{quote(row.player)} has {before} points on {had.ladder}; {difference} more is not a decimal number",
            )
        if difference:
            yield row, text


class _Had:
    """What players have on a ladder at various times. Raises `UnknownLadder`, `RulesetUnusable`."""

    def __init__(self, ladders: Ladders, ladder: str) -> None:
        self.ladders, self.ladder = ladders, ladder
        self.versions = self.ladders.versions(ladder)
        self._of: dict[int, Any] = {}

    def points(self, player: str, instant: int) -> Fraction:
        """Return a player's points, or those they would start with. Raises `RuleFailure`."""
        if instant not in self._of:
            ladders = self.ladders.at(instant)
            trace = ladders.trace(self.ladder, keep=False)
            found = ladders.rank(trace)[0]
            self._of[instant] = {row.player: row.value(found.scale) for row in found.rows}, trace
        rows, trace = self._of[instant]
        if player in rows:
            return Fraction(rows[player])
        version = in_force(self.versions, instant) or oldest(self.versions)
        return Fraction(find_starting_points(trace.stream, player, version, trace.joining), version.rule.scale)

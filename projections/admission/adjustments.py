"""Read adjustments from a table. Where a row states the total that a player should have, compute the points to add."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.fields import read_decimal, to_nfc
from ratings_ledger.ledger.intake.files import open_simple_table
from ratings_ledger.ledger.intake.tables.columns import COMMA_DELIMITERS, Cells, convert_decimal_comma
from ratings_ledger.ledger.intake.tables.dates import find_date_order, normalise_date_time
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.projections.contract import decimal
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.replay import find_starting_points
from ratings_ledger.projections.rulesets.versions import in_force, oldest
from ratings_ledger.projections.snapshot import Snapshot

# the columns of a table of adjustments; each row has exactly one of `NUMBERS`
COLUMNS = ("player", "points", "to", "reason", "at")
NUMBERS = ("points", "to")


class AdjustmentRow(NamedTuple):
    """A requested adjustment: either the `points` to add, or the total to adjust `to`; the other member is None."""

    file: str
    line: int
    player: str
    points: str | None
    to: str | None
    reason: str
    instant: int


def read_rows(
    file: str, defaults: AdjustmentRow, parse_instant: Callable[[str], int], dates: str | None = None
) -> list[AdjustmentRow]:
    """Read the adjustments in a file. Raises `Refused`, with the file and the line.

    Args:
        file: the name of the table.
        defaults: an adjustment whose reason and time apply to rows that have none.
        parse_instant: the function that converts the text of a time to an instant.
        dates: the order of day, month and year, such as `dmy`, if the dates do not show it.
    """
    with open_simple_table(file, COLUMNS) as table:
        if "player" not in table.header or not {*NUMBERS} & {*table.header}:
            raise Refused(
                "missing-column",
                "the table needs a column `player`, and a column `points` or `to`; add them to its first line",
                table.line,
            )
        order = find_date_order(((line, cells.get("at", "")) for line, cells in table.rows), dates)

        def parse_time(text: str) -> int:
            return parse_instant(normalise_date_time(text, None, order.name))

        return [
            _read_row(defaults._replace(file=file, line=line), cells, table.delimiter, parse_time)
            for line, cells in table.rows
        ]


def _read_row(defaults: AdjustmentRow, cells: Cells, delimiter: str, parse_time: Callable[[str], int]) -> AdjustmentRow:
    """Return the adjustment in a row, with defaults for empty cells. Raises `Refused`, with the line."""
    try:
        if "player" not in cells or ("points" in cells) == ("to" in cells):
            raise Refused("missing-member", "the row needs a value for `player`, and one for either `points` or `to`")
        if delimiter in COMMA_DELIMITERS:
            cells |= {name: convert_decimal_comma(name, cells[name]) for name in NUMBERS if name in cells}
        return defaults._replace(
            player=to_nfc(cells["player"]),
            points=cells.get("points"),
            to=read_decimal(cells["to"]) if "to" in cells else None,
            reason=cells.get("reason", defaults.reason),
            instant=parse_time(cells["at"]) if "at" in cells else defaults.instant,
        )
    except Refused as problem:
        raise Refused(problem.code, problem.message.removeprefix("occurred_at: "), defaults.line) from None


def compute_adjustments(view: Snapshot, ladder: str, rows: list[AdjustmentRow]) -> list[tuple[AdjustmentRow, str]]:
    """Return each row with the points to add, without rows whose player already has the requested total.

    Raises `Refused` and, if a row requests a total, `RuleFailure` and the errors of `Snapshot.query`.
    """
    lines: dict[tuple[Any, ...], int] = {}
    for row in rows:
        if (first := lines.setdefault(row._replace(line=0), row.line)) != row.line:
            raise Refused("player-twice", f"lines {first} and {row.line} of {row.file} are equal; leave one out")
    if all(row.to is None for row in rows):
        return [(row, str(row.points)) for row in rows]
    with view.query(ladder) as query:
        return [*_compute_differences(_PointsLookup(query.ladders, ladder), rows)]


def _compute_differences(lookup: _PointsLookup, rows: list[AdjustmentRow]) -> Iterator[tuple[AdjustmentRow, str]]:
    """Yield each row with the points to add, without rows that need none. Raises `Refused`."""
    lines: dict[str, int] = {}
    for row in rows:
        player = lookup.ladders.facts.current(row.player)
        if (first := lines.setdefault(player, row.line)) != row.line:
            message = f"lines {first} and {row.line} of {row.file} are both for {quote(row.player)}; leave one out"
            raise Refused("player-twice", message)
        if row.to is None:
            yield row, str(row.points)
            continue
        points = lookup.find_points(player, row.instant)
        difference = Fraction(read_decimal(row.to)) - points
        text = decimal(difference.numerator, difference.denominator, 15)
        if Fraction(text) != difference:
            problem = f"{quote(row.player)} has {points} points on {lookup.ladder}"
            raise Refused(
                "finer-than-scale", f"{problem}; the difference {difference} has no exact decimal; choose another total"
            )
        if difference:
            yield row, text


class _PointsLookup:
    """A lookup of players' points on a ladder at any time. Raises `UnknownLadder`, `RulesetUnusable`."""

    def __init__(self, ladders: Ladders, ladder: str) -> None:
        self.ladders, self.ladder = ladders, ladder
        self.versions = self.ladders.versions(ladder)
        self._by_instant: dict[int, Any] = {}

    def find_points(self, player: str, instant: int) -> Fraction:
        """Return a player's points at an instant; before the first game, the starting points. Raises `RuleFailure`."""
        if instant not in self._by_instant:
            ladders = self.ladders.at(instant)
            trace = ladders.trace(self.ladder, keep_history=False)
            ranking = ladders.rank(trace)[0]
            self._by_instant[instant] = {row.player: row.exact_points(ranking.scale) for row in ranking.rows}, trace
        points_by_player, trace = self._by_instant[instant]
        if player in points_by_player:
            return Fraction(points_by_player[player])
        version = in_force(self.versions, instant) or oldest(self.versions)
        return Fraction(find_starting_points(trace.stream, player, version, trace.entry_states), version.rule.scale)

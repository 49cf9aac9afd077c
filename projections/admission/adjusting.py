"""Points by decision: what is added for players who are to get some, or to have some, one by one or from a table."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from ledger.events.fields import composed, read_decimal
from ledger.intake.columns import DELIMITERS
from ledger.intake.files import read_lines
from ledger.rejections import Refused, did_you_mean, shown
from projections.contract import decimal
from projections.queries.standings import Ladders
from projections.queries.view import View
from projections.replay.replay import starting_points
from projections.rulesets.versions import in_force, oldest

COLUMNS = ("player", "points", "to", "reason", "at")


class AdjustRow(NamedTuple):
    """What a player is to get or to have: `points` or `to`; the other is None."""

    file: str
    line: int
    player: str
    points: str | None
    to: str | None
    reason: str
    instant: int


def rows_of_file(file: str, usual: AdjustRow, instant_of: Callable[[str], int]) -> Iterator[AdjustRow]:
    """The rows of a file, with the given reason and time where they have none. Raises `Refused`, with the line."""
    header, delimiter = list[str](), ","
    for number, line in read_lines(file):
        try:
            text = line.decode("utf-8")
            if not header:
                delimiter = max(DELIMITERS, key=text.count)
            cells = [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter, strict=True))]
        except UnicodeDecodeError:
            raise Refused("bad-utf8", f"line {number} of {file} is not UTF-8") from None
        except csv.Error as error:
            raise Refused("bad-csv", f"line {number} of {file} cannot be split into cells: {error}") from None
        if not header:
            header = _checked(file, number, cells)
            continue
        if len(cells) > len(header):
            raise Refused("row-length", f"line {number} of {file} has {len(cells)} cells, the header {len(header)}")
        told = {name: cell for name, cell in zip(header, cells, strict=False) if cell}
        if "player" not in told or ("points" in told) == ("to" in told):
            raise Refused("missing-member", f"line {number} of {file} needs a player, and either points or to")
        try:
            instant = instant_of(told["at"]) if "at" in told else usual.instant
            to = read_decimal(told["to"]) if "to" in told else None
        except Refused as problem:
            raise Refused(problem.code, f"line {number} of {file}: {problem.message}") from None
        reason = told.get("reason", usual.reason)
        yield AdjustRow(file, number, composed(told["player"]), told.get("points"), to, reason, instant)
    if not header:
        raise Refused("empty-file", f"{file} holds no row")


def _checked(file: str, line: int, header: list[str]) -> list[str]:
    """The names of the columns. Raises `Refused`."""
    for name in header:
        if name not in COLUMNS:
            hint = did_you_mean(name, COLUMNS)
            raise Refused(
                "unknown-column", f"line {line} of {file}: {shown(name)} is none of {', '.join(COLUMNS)}{hint}"
            )
    if twice := [name for name in header if header.count(name) > 1]:
        raise Refused("unknown-column", f"line {line} of {file}: the column {twice[0]} occurs twice")
    if "player" not in header or not {"points", "to"} & {*header}:
        raise Refused("missing-column", f"line {line} of {file}: the columns player, and points or to, are needed")
    return header


def adjustments(view: View, ladder: str, rows: list[AdjustRow]) -> list[tuple[AdjustRow, str]]:
    """The points to be added for each row; rows whose player already has theirs are left out.

    Raises `Refused`, and what `View.asking` does if somebody is to have a number of points.
    """
    lines: dict[tuple[Any, ...], int] = {}
    for row in rows:
        if (first := lines.setdefault(row._replace(line=0), row.line)) != row.line:
            raise Refused("player-twice", f"lines {first} and {row.line} of {row.file} say the same; leave one out")
    if all(row.to is None for row in rows):
        return [(row, str(row.points)) for row in rows]
    with view.asking(ladder) as asked:
        return [*_differences(_Had(asked.ladders, ladder), rows)]


def _differences(had: _Had, rows: list[AdjustRow]) -> Iterator[tuple[AdjustRow, str]]:
    """What somebody lacks of the points that they are to have."""
    seen: dict[str, int] = {}
    for row in rows:
        player = had.ladders.facts.current(row.player)
        if (first := seen.setdefault(player, row.line)) != row.line:
            raise Refused("player-twice", f"{shown(row.player)} is in lines {first} and {row.line} of {row.file}")
        if row.to is None:
            yield row, str(row.points)
            continue
        difference = Fraction(read_decimal(row.to)) - (before := had.points(player, row.instant))
        text = decimal(difference.numerator, difference.denominator, 15)
        if Fraction(text) != difference:
            raise Refused(
                "finer-than-scale",
                f"{shown(row.player)} has {before} points on {had.ladder}; {difference} more is not a decimal number",
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
        """A player's points, or those they would start with. Raises `RuleFailure`."""
        if instant not in self._of:
            ladders = self.ladders.at(instant)
            trace = ladders.trace(self.ladder, keep=False)
            found = ladders.ranked(trace)[0]
            self._of[instant] = {row.player: row.value(found.scale) for row in found.rows}, trace.carried
        rows, carried = self._of[instant]
        if player in rows:
            return Fraction(rows[player])
        version = in_force(self.versions, instant) or oldest(self.versions)
        return Fraction(starting_points(player, version, carried), version.rule.scale)

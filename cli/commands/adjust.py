"""`adjust`: points by decision, for one player or for many in a file, by an amount or to a value."""

import csv
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import click
from sqlalchemy import Connection

from cli.arguments.command import command
from cli.arguments.facts import decoded
from cli.arguments.moments import instant_or_now, zone_option
from cli.arguments.one_ladder import failures_told
from cli.arguments.options import composed
from cli.arguments.writing import How, writing
from cli.commands.correct import reason_option
from ledger.events.canonical import format_instant
from ledger.events.fields import read_decimal
from ledger.intake.csv_cells import DELIMITERS
from ledger.intake.files import Item, read_lines
from ledger.rejections import Refused, did_you_mean, shown
from ledger.store.log import head
from ledger.store.opening import Ledger
from projections.contract import decimal
from projections.facts.columns import Facts
from projections.queries.standings import Ladders
from projections.replay.replay import replay, starting_points
from projections.rulesets.versions import in_force, oldest

TYPE = "points.adjusted"
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


@command(context_settings={"ignore_unknown_options": True})
@click.argument("ladder", type=composed)
@click.argument("player", type=composed, required=False)
@click.argument("points", required=False)
@click.option("--to", metavar="VALUE", help="The points that PLAYER is to have at that time.")
@click.option("--file", type=click.Path(exists=True, dir_okay=False, allow_dash=True),
              help="Many at once: CSV with player, and points or to; reason and at, if they differ.")  # fmt: skip
@reason_option
@click.option("--at", metavar="TIME", help="From when on it counts.  [default: now]")
@zone_option
@writing
def adjust(
    how: How, ladder: str, player: str | None, points: str | None, to: str | None, file: str | None, reason: str,
    at: str | None, zone: str | None,
) -> int:  # fmt: skip
    """Add POINTS such as 25 or -7.5 to those that PLAYER has on LADDER at that time, or starts with there.

    \b
        ratings adjust elo-chess/all anna --to 1500 --reason "rated elsewhere"
        ratings adjust elo-chess/all --file ratings.csv --reason "from the old list"

    From a file, all rows are recorded or none. Players who already have their points are left alone.
    """
    if (player is None) == (file is None) or (file is None and (points is None) == (to is None)) or (file and to):
        raise click.UsageError("name a PLAYER with POINTS or --to VALUE, or many with --file")
    try:
        usual = AdjustRow("", 0, str(player), points, to, reason, instant_or_now(how.ledger, at, zone))
        rows = [usual] if file is None else [*_rows(how.ledger, file, usual, zone)]
        with how.ledger.reading() as connection:
            seen = head(connection).position
            added = [*_added(connection, ladder, rows, seen)]
    except Refused as problem:
        return how.refuse(TYPE, problem)
    if not added:
        who = shown(rows[0].player) if file is None else "everybody"
        return how.refuse(TYPE, Refused("nothing-to-correct", f"{who} already has these points on {ladder}"))
    items = [
        Item(row.file, row.line, {"type": TYPE, "occurred_at": format_instant(row.instant), "data": {
            "ladder": ladder, "player": row.player, "points": units, "reason": row.reason}}, None)
        for row, units in added
    ]  # fmt: skip

    def still(connection: Connection) -> None:
        if any(row.to is not None for row in rows) and head(connection).position != seen:
            raise Refused("changed-meanwhile", "others recorded something meanwhile; try again")

    return how.enter(TYPE, how.propose(items, still=still))


def _rows(ledger: Ledger, file: str, usual: AdjustRow, zone: str | None) -> Iterator[AdjustRow]:
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
            instant = instant_or_now(ledger, told["at"], zone) if "at" in told else usual.instant
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


def _added(
    connection: Connection, ladder: str, rows: list[AdjustRow], known_at: int
) -> Iterator[tuple[AdjustRow, str]]:
    """What is added for each row, as known at a position; rows whose player already has the points are left out.

    Raises `Refused`.
    """
    lines: dict[tuple[Any, ...], int] = {}
    for row in rows:
        if (first := lines.setdefault(row._replace(line=0), row.line)) != row.line:
            raise Refused("player-twice", f"lines {first} and {row.line} of {row.file} say the same; leave one out")
    if all(row.to is None for row in rows):
        yield from ((row, str(row.points)) for row in rows)
        return
    facts = decoded(connection, known_at)
    with failures_told(facts, connection):
        yield from _to_values(facts, ladder, rows)


def _to_values(facts: Facts, ladder: str, rows: list[AdjustRow]) -> Iterator[tuple[AdjustRow, str]]:
    had = _Had(facts, ladder)
    seen: dict[str, int] = {}
    for row in rows:
        player = facts.current(row.player)
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
                f"{shown(row.player)} has {before} points on {ladder}; {difference} more is not a decimal number",
            )
        if difference:
            yield row, text


class _Had:
    """What players have on a ladder at various times. Raises `UnknownLadder`, `RulesetUnusable`."""

    def __init__(self, facts: Facts, ladder: str) -> None:
        self.ladders, self.ladder = Ladders(facts), ladder
        self.versions = self.ladders.versions(ladder)
        self._of: dict[int, Any] = {}

    def points(self, player: str, instant: int) -> Fraction:
        """A player's points, or those they would start with. Raises `RuleFailure`."""
        if instant not in self._of:
            ladders = self.ladders.at(instant)
            stream = ladders.stream(self.ladder)
            outcome, _ = replay(stream)
            rows = {row.player: row.value(stream.rule.scale) for row in ladders.ranked(stream, outcome)[0].rows}
            self._of[instant] = rows, outcome.carried
        rows, carried = self._of[instant]
        if player in rows:
            return Fraction(rows[player])
        version = in_force(self.versions, instant) or oldest(self.versions)
        return Fraction(starting_points(player, version, carried), version.rule.scale)

"""`export`: the log and the standings for other programs."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import IO, Any

import click

from cli import render
from cli.options import axes, composed, known_at_option, known_position
from cli.reading import as_json, note_other_ladder, places_told, reading_of, why_unfinished
from cli.survey import Survey, survey
from ledger.store import open_ledger, read_records
from projections.containment import RuleFailure
from projections.explaining import changes
from projections.ladders import parse_name
from projections.standings import Coordinates, Ladders, Standings, UnknownLadder

output_option = click.option(
    "--output", "-o", metavar="FILE", default="-", help="A file that does not exist yet.  [default: stdout]"
)


form_option = click.option(
    "--format", "form", type=click.Choice(["json", "csv"]), default="json", show_default=True,
    help="JSON Lines, or one table.",
)  # fmt: skip


@click.group()
def export() -> None:
    """Write the ledger's content for other programs."""


@export.command(name="events")
@known_at_option
@output_option
@click.pass_obj
def export_events(db: str, known_at: str | None, output: str) -> None:
    """Every record verbatim, one a line: a full backup that `import --restore` takes into an empty ledger.

    This is the log itself: nothing is computed, so only --known-at applies to it.
    """
    with open_ledger(db).reading() as connection:
        until = known_position(connection, known_at)
        with _opened(output) as file:
            for page in read_records(connection, until=until):
                file.writelines(f"{record}\n".encode() for _, record in page)
    if output != "-":
        render.note(f"{until:,} events in {output}")


@contextmanager
def _opened(output: str) -> Iterator[IO[bytes]]:
    """A new file, or standard output."""
    if output == "-":
        yield sys.stdout.buffer
        return
    try:
        file = open(output, "xb")  # noqa: SIM115
    except FileExistsError:
        raise click.UsageError(f"{output} exists; nothing was written") from None
    with file:
        yield file


COLUMNS = (
    "ladder", "rank", "player", "points", "games", "qualified", "points_exact", "gold", "places", "ruleset",
    *Coordinates._fields,
)  # fmt: skip


@export.command(name="standings")
@click.argument("ladders", metavar="[LADDER]...", nargs=-1)
@axes
@form_option
@output_option
@click.pass_obj
def export_standings(
    db: str, ladders: tuple[str, ...], as_of: str | None, known_at: str | None, rules: str | None, form: str,
    output: str,
) -> int:  # fmt: skip
    """The standings of each LADDER, by default of all that have games or adjustments.

    Lines are what `standings --format json` says of a ladder. The table has the same columns for all of them: points as
    a decimal number of at most six places, and exact. A ladder that cannot be replayed is left out and told; the exit
    code is then 1.
    """
    found = Export(survey(db, as_of, known_at, rules))
    names = found.checked(map(composed, ladders)) if ladders else None
    for name in names or ():
        if Ladders(found.seen.facts).first(name) is None:
            note_other_ladder(found.seen.facts, name)
    with _opened(output) as file:
        if form == "csv":
            file.write(render.csv_text([COLUMNS]).encode())
        for line in found.lines(names, form):
            file.write(line.encode())
    if output != "-":
        render.note(f"{render.count(found.written, 'ladder')} in {output}")
    return int(not found.complete)


CHANGES = ("player", "position", "event_id", "game_id", "occurred_at", "place", "before", "change", "after", "ruleset")


@export.command(name="changes")
@click.argument("ladder", type=composed)
@axes
@form_option
@output_option
@click.pass_obj
def export_changes(
    db: str, ladder: str, as_of: str | None, known_at: str | None, rules: str | None, form: str, output: str
) -> None:
    """Every change of everybody's points on LADDER, in the order of the games: `history` of all players in one pass.

    Points are exact, and as decimal numbers of at most six places.
    """
    with reading_of(open_ledger(db), ladder, as_of, known_at, rules) as reading:
        # what is wrong is told before a file is made
        rows = changes(reading.connection, reading.ladders, ladder)
        first = next(rows, None)
        written = 0
        with _opened(output) as file:
            if form == "csv":
                file.write(render.csv_text([(*CHANGES, "change_exact", "after_exact")]).encode())
            for row in () if first is None else chain([first], rows):
                written += 1
                file.write(_change(row, form).encode())
    if output != "-":
        render.note(f"{render.count(written, 'change')} in {output}")


def _change(row: dict[str, Any], form: str) -> str:
    if form == "json":
        return json.dumps(render.with_decimals(row), ensure_ascii=False) + "\n"
    points = [render.human(row[name], 6) for name in ("before", "change", "after")]
    plain = [row[name] for name in CHANGES if name not in ("before", "change", "after", "ruleset")]
    return render.csv_text([[*plain, *points, row["ruleset"], row["change"], row["after"]]])


class Export:
    """Standings of many ladders, one after the other, whatever happens to some of them."""

    def __init__(self, seen: Survey) -> None:
        self.seen = seen
        self.written = 0
        self.complete = not seen.facts.unusable

    def checked(self, ladders: Iterable[str]) -> list[str]:
        """The ladders that are named, each once; an unknown one is a usage error."""
        names = list(dict.fromkeys(ladders))
        self.complete = True
        try:
            for name in names:
                Ladders(self.seen.facts).versions(name)
        except UnknownLadder as problem:
            raise click.UsageError(str(problem)) from None
        return names

    def lines(self, names: list[str] | None, form: str) -> Iterator[str]:
        """What is written of each ladder."""
        for name in self._every() if names is None else names:
            ruleset_id = parse_name(name).ruleset_id
            ladders, at = self.seen.ladders(ruleset_id), self.seen.at(ruleset_id)
            try:
                found = ladders.standings(name)
            except RuleFailure as problem:
                self.complete = False
                self.seen.note(problem)
                continue
            self.written += 1
            if form == "csv":
                yield render.csv_text([*row, *at.axes().values()] for row in _rows(found))
            else:
                yield (
                    json.dumps(
                        render.with_decimals(as_json(found, at, why_unfinished(ladders, name))), ensure_ascii=False
                    )
                    + "\n"
                )

    def _every(self) -> Iterator[str]:
        for ruleset_id in self.seen.usable:
            yield from sorted(self.seen.ladders(ruleset_id).every(ruleset_id))


def _rows(found: Standings) -> Iterator[list[render.Cell]]:
    for row in found.rows:
        points = str(row.value(found.scale))
        yield [found.ladder, row.rank, row.player, render.human(points, 6), row.games, row.qualified, points, row.gold,
               places_told(row), found.ruleset]  # fmt: skip

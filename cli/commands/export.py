"""`export`: the log and the standings for other programs."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import IO

import click
from sqlalchemy import Connection

from cli.arguments.all_ladders import SurveyOfAll, survey
from cli.arguments.command import group
from cli.arguments.moments import known_position
from cli.arguments.one_ladder import note_other_ladder, reading_of
from cli.arguments.options import axes, format_of, known_at_option
from cli.output import render
from cli.output.coordinates import AXES
from ledger import clock
from ledger.events.fields import composed
from ledger.new_files import new_file
from ledger.store.exports import compressed, export_lines, place_at, read_place
from ledger.store.log import read_records
from ledger.store.opening import open_ledger
from projections.queries.answers import Change
from projections.queries.explanation import changes
from projections.queries.standings import Ladders, Ranking, standings_answer, why_unfinished
from projections.replay.containment import RuleFailure
from projections.replay.ladders import parse_name

output_option = click.option(
    "--output", "-o", metavar="FILE", default="-",
    help="A file that does not exist yet, compressed if it ends in .gz.  [default: stdout]",
)  # fmt: skip


form_option = format_of("json", "csv", meaning="JSON Lines, or one table.")


@group()
def export() -> None:
    """Write the ledger's contents for other programs."""


@export.command(name="events")
@known_at_option
@click.option("--since", metavar="POSITION", help="Only what was recorded after it: an increment of a backup.")
@output_option
@click.pass_obj
def export_events(db: str, known_at: str | None, since: str | None, output: str) -> None:
    """Every record verbatim, one per line: a full backup that `import --restore` takes into an empty ledger.

    A file gets a last line that names the head, and gets its name once it is whole; standard output gets only the
    records. --since also takes a head, POSITION:CHAINHASH, which the ledger must contain. This is the log itself:
    nothing is computed, so of the axes only --known-at applies.
    """
    with open_ledger(db).reading() as connection:
        until = known_position(connection, known_at)
        after = 0 if since is None else _since(connection, since, until)
        if output == "-":
            for page in read_records(connection, after, until):
                sys.stdout.buffer.writelines(f"{record}\n".encode() for _, record in page)
            return
        with output_file(output, 0o600) as file:
            for lines in export_lines(connection, after, until):
                file.write(lines)
    behind = "" if since is None else f" after position {after:,}"
    render.note(f"{render.count(until - after, 'event')}{behind} in {output}")


def _since(connection: Connection, text: str, until: int) -> int:
    """The position that --since means. Raises `click.BadParameter` if the log up to `until` has no such position."""
    place = read_place(text)
    if place is None and not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise _wrong_since("write a POSITION, such as 52, or POSITION:CHAINHASH as `ratings status` prints it")
    position = int(text) if place is None else place.position
    if position > until:
        raise _wrong_since(f"the log ends at position {until}; nothing comes after {position}")
    if place is not None and place_at(connection, position) != place:
        raise _wrong_since(f"the ledger does not contain this history; it has {place_at(connection, position)}")
    return position


def _wrong_since(message: str) -> click.BadParameter:
    return click.BadParameter(message, param_hint="--since")


@contextmanager
def output_file(output: str, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """A new file that appears once it is whole, compressed if its name says so; or standard output."""
    if output == "-":
        yield sys.stdout.buffer
        return
    try:
        with new_file(output, mode) as file:
            if not output.endswith(".gz"):
                yield file
                return
            with compressed(file) as lines:
                yield lines
    except FileExistsError:
        raise click.UsageError(f"{output} exists; nothing was written") from None


COLUMNS = (
    "ladder", "rank", "player", "points", "games", "qualified", "points_exact", "gold", "places", "ruleset",
    *AXES,
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

    Each line is what `standings --format json` says about a ladder. The table has the same columns for all of them:
    points as a decimal of at most six places, and exact. A ladder that cannot be replayed is reported and left out; the
    exit code is then 1.
    """
    found = Export(survey(db, as_of, known_at, rules))
    names = found.checked(map(composed, ladders)) if ladders else None
    for name in names or ():
        if Ladders(found.seen.facts).first(name) is None:
            note_other_ladder(found.seen.facts, name)
    with output_file(output) as file:
        if form == "csv":
            file.write(render.csv_text([COLUMNS]).encode())
        for line in found.lines(names, form, to_stdout=output == "-"):
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

    Points are given exactly, and as decimals of at most six places.
    """
    with reading_of(open_ledger(db), ladder, as_of, known_at, rules) as reading:
        # anything wrong is reported before a file is made
        rows = changes(reading.connection, reading.ladders, ladder)
        first = next(rows, None)
        written = 0
        with output_file(output) as file:
            if form == "csv":
                file.write(render.csv_text([(*CHANGES, "change_exact", "after_exact")]).encode())
            for player, change in () if first is None else chain([first], rows):
                written += 1
                file.write(_change(player, change, form, to_stdout=output == "-").encode())
    if output != "-":
        render.note(f"{render.count(written, 'change')} in {output}")


def _change(player: str, change: Change, form: str, to_stdout: bool) -> str:
    row = {"player": player, **change.model_dump()}
    if form == "json":
        return render.json_text(row) + "\n"
    points = [render.human(row[name], 6) for name in ("before", "change", "after")]
    plain = [row[name] for name in CHANGES if name not in ("before", "change", "after", "ruleset")]
    return render.csv_text([[*plain, *points, row["ruleset"], row["change"], row["after"]]], to_stdout)


class Export:
    """Standings of many ladders, one after another, whatever happens to some of them."""

    def __init__(self, seen: SurveyOfAll) -> None:
        self.seen = seen
        self.written = 0
        self.complete = not seen.facts.unusable

    def checked(self, ladders: Iterable[str]) -> list[str]:
        """The named ladders, each once; an unknown one is a usage error."""
        names = list(dict.fromkeys(ladders))
        self.complete = True
        for name in names:
            Ladders(self.seen.facts).versions(name)
        return names

    def lines(self, names: list[str] | None, form: str, to_stdout: bool) -> Iterator[str]:
        """What is written for each ladder."""
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
                yield render.csv_text(([*row, *at.axes().values()] for row in _rows(found)), to_stdout)
            else:
                unfinished = why_unfinished(ladders, name, clock.now())
                told = standings_answer(found, found.rows, at, self.seen.times, unfinished)
                yield render.json_text(told.model_dump()) + "\n"

    def _every(self) -> Iterator[str]:
        for ruleset_id in self.seen.usable:
            yield from sorted(self.seen.ladders(ruleset_id).every(ruleset_id))


def _rows(found: Ranking) -> Iterator[list[render.Cell]]:
    for row in found.rows:
        points = str(row.value(found.scale))
        yield [found.ladder, row.rank, row.player, render.human(points, 6), row.games, row.qualified, points, row.gold,
               " ".join(map(str, row.places or ())), found.ruleset]  # fmt: skip

"""`chart`: the points of players on a ladder, or their ranks, as a picture."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import click

from ratings_ledger.cli.arguments.command import OneOf, command
from ratings_ledger.cli.arguments.options import axes, read_new_path
from ratings_ledger.cli.arguments.views import open_for_command, open_view
from ratings_ledger.cli.commands.export import output_file
from ratings_ledger.cli.output import render
from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections.queries.coordinates import Times
from ratings_ledger.projections.queries.history import Change, History, Ranks
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.queries.shown_states import mark_rating
from ratings_ledger.projections.replay.ladders import short_name
from ratings_ledger.projections.snapshot import Snapshot
from ratings_ledger.web.axes import number_of
from ratings_ledger.web.charts import SERIES_MAX, Mark, Point, Series, steps
from ratings_ledger.web.courses import By, describe_band, points_line, rank_line, revisions, shown_otherwise, span_of


def _output(context: click.Context, parameter: click.Parameter, value: str) -> Path:
    return read_new_path(value, (".svg",), ".svg")


@command(name="chart")
@click.argument("names", metavar="PLAYER... LADDER", nargs=-1, required=True, type=to_nfc)
@click.option("--by", type=OneOf(["date", "games"]), default="date", show_default=True,
              help="What lies across: the time, or everybody's number of games.")  # fmt: skip
@click.option("--rank", "is_ranks", is_flag=True, help="Their ranks over time, not their points.")
@click.option("--output", "-o", metavar="FILE", required=True, callback=_output, help="A new file, FILE.svg.")
@axes
@click.pass_obj
def chart(
    db: str, names: tuple[str, ...], by: By, is_ranks: bool, output: Path, as_of: str | None, known_at: str | None,
    rules: str | None,
) -> None:  # fmt: skip
    """Draw the points of one or more PLAYERs on LADDER as FILE.svg. Any browser shows it.

    \b
        ratings chart mira jonas club-catan-elo -o both.svg
        ratings chart mira club-catan-elo --rank --by games -o ranks.svg

    Of one player also what published lists showed otherwise, and which games were corrected later. At most six players.
    """
    *given, ladder = names
    players = list(dict.fromkeys(given))
    if not 1 <= len(players) <= SERIES_MAX:
        raise click.UsageError(f"name one to {SERIES_MAX} players, and then a ladder")
    view = open_view(open_for_command(db), as_of, known_at, rules)
    if len(players) == 1:
        players[0], ladder = view.with_ladder(players[0], ladder)
    drawn = _ranks(view, ladder, players, by) if is_ranks else _points(view, ladder, players, by)
    with output_file(str(output)) as file:
        file.write(drawn.encode())
    render.note(f"{'Ranks' if is_ranks else 'Points'} of {render.count(len(players), 'player')} in {output}")


def _points(view: Snapshot, ladder: str, players: Sequence[str], by: By) -> str:
    """Return the picture of points. Raises as `Snapshot.history` does, `Unknown` for who has none there."""
    found = {one.player: one for one in (view.history(ladder, player) for player in players)}
    lines, marks = list[Series](), list[Mark]()
    for player, one in found.items():
        if not one.steps:
            raise Unknown(None, f"{quote(player)} has no game or adjustment on {short_name(ladder)}")
        published = list[Point]()
        if len(found) == 1:
            published = shown_otherwise(one.steps, lambda value: f"published: {render.human(value)}")
            marks = revisions(one.steps, by, lambda row: f"{row.game_id} was corrected later")
        lines.append(points_line(player, one.steps, by, partial(_step_told, one.times), published=published))
    return steps(
        lines, title=_title("Points", found, ladder), description=_ends(found, lines, _describe_spread(found)),
        prefix="points", marks=marks, standalone=True,
    )  # fmt: skip


def _ranks(view: Snapshot, ladder: str, players: Sequence[str], by: By) -> str:
    """Return the picture of ranks. Raises as `Snapshot.ranks` does, `Unknown` for who never had one."""
    found = {one.player: one for one in (view.ranks(ladder, player) for player in players)}
    lines = list[Series]()
    for player, one in found.items():
        if one.rows is None:
            raise Unknown(None, f"{short_name(ladder)} is too long to look up every rank on it")
        lines.append(rank_line(player, one.rows, by))
        if not lines[-1].points:
            raise Unknown(None, f"{quote(player)} never had a rank on {short_name(ladder)}")
    # ranks are drawn as far as the points are, also where they changed last before that
    spans = [span for player in found if (span := span_of(view.history(ladder, player).steps, by)) is not None]
    return steps(
        lines, title=_title("Ranks", found, ladder), description=_ends(found, lines), prefix="ranks", ranks=True,
        span=max(spans, key=lambda span: number_of(span[1]), default=None), standalone=True,
    )  # fmt: skip


def _step_told(times: Times, row: Change) -> str:
    change, after = render.human(row.change, signed=True), render.human(row.after)
    if row.state is not ABSENT:
        after = mark_rating(after, row.state, is_provisional=row.provisional is True)
    return f"{row.game_id or row.reason}, {times.minute(row.occurred_at)}: {change}, {after}"


def _title(what: str, players: Iterable[str], ladder: str) -> str:
    return f"{what} of {', '.join(players)} on {short_name(ladder)}"


def _describe_spread(players: Mapping[str, History]) -> str:
    """Describe the band behind the line of a player alone."""
    courses = [one.steps for one in players.values()]
    return describe_band(courses[0], render.human) if len(courses) == 1 else ""


def _ends(found: Mapping[str, History | Ranks], lines: Sequence[Series], spread: str = "") -> str:
    """Return what everybody has at the end, and where on the axes that is."""
    one = next(iter(found.values()))
    ends = ", ".join(f"{line.label} {render.human(line.points[-1].value)}" for line in lines)
    played = "" if one.at.as_of is None else f", played up to {one.times.stated(one.at.as_of)}"
    return f"At the end: {ends}{spread}. Known at position {one.at.known_at}{played}."

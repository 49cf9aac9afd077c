"""Implement `chart`: draw the points or ranks of players on a ladder."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import click

from ratings_ledger.cli.arguments.command import OneOf, command
from ratings_ledger.cli.arguments.options import axes_options, read_new_path
from ratings_ledger.cli.arguments.views import open_for_command, open_view
from ratings_ledger.cli.commands.export import open_output_file
from ratings_ledger.cli.output import render
from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections.queries.coordinates import TimeFormat
from ratings_ledger.projections.queries.history import Change, History
from ratings_ledger.projections.queries.rank_history import Ranks
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.queries.visible_states import format_rating
from ratings_ledger.projections.replay.ladder_names import short_name
from ratings_ledger.projections.snapshot import Snapshot
from ratings_ledger.web.axes import to_number
from ratings_ledger.web.charts import SERIES_MAX, Point, Series, VerticalLine, draw_steps
from ratings_ledger.web.course_charts import (
    HorizontalAxis,
    build_points_line,
    build_rank_line,
    describe_band,
    find_course_span,
    list_published_points,
    list_revision_marks,
)


def _parse_output_path(context: click.Context, parameter: click.Parameter, value: str) -> Path:
    return read_new_path(value, (".svg",), ".svg")


@command(name="chart")
@click.argument("names", metavar="PLAYER... LADDER", nargs=-1, required=True, type=to_nfc)
@click.option(
    "--by",
    type=OneOf(["date", "games"]),
    default="date",
    show_default=True,
    help="The horizontal axis: time, or each player's number of games.",
)
@click.option("--rank", "shows_ranks", is_flag=True, help="Draw ranks instead of points.")
@click.option(
    "--output", "-o", metavar="FILE", required=True, callback=_parse_output_path, help="A new file, FILE.svg."
)
@axes_options
@click.pass_obj
def chart(
    db: str,
    names: tuple[str, ...],
    by: HorizontalAxis,
    shows_ranks: bool,
    output: Path,
    as_of: str | None,
    known_at: str | None,
    rules: str | None,
) -> None:
    """Draw the points of one or more PLAYERs on LADDER as FILE.svg. Any browser can show the file.

    \b
        ratings chart mira jonas club-catan-elo -o both.svg
        ratings chart mira club-catan-elo --rank --by games -o ranks.svg

    Name at most six players. A chart of one player's points also marks later corrections, and published points that
    differ from the current ones.
    """
    *player_names, ladder = names
    players = list(dict.fromkeys(player_names))
    if not 1 <= len(players) <= SERIES_MAX:
        raise click.UsageError(f"name one to {SERIES_MAX} players, and then a ladder")
    view = open_view(open_for_command(db), as_of=as_of, known_at=known_at, rules=rules)
    if len(players) == 1:
        players[0], ladder = view.resolve_ladder(players[0], ladder)
    picture = _draw_ranks(view, ladder, players, by) if shows_ranks else _draw_points(view, ladder, players, by)
    with open_output_file(str(output)) as file:
        file.write(picture.encode())
    render.note(f"{'Ranks' if shows_ranks else 'Points'} of {render.count(len(players), 'player')} in {output}")


def _draw_points(view: Snapshot, ladder: str, players: Sequence[str], by: HorizontalAxis) -> str:
    """Return the chart of points.

    Raises the errors of `Snapshot.history`, and `Unknown` if a player has no points on the ladder.
    """
    histories = {history.player: history for history in (view.history(ladder, player) for player in players)}
    lines, marks = list[Series](), list[VerticalLine]()
    for player, history in histories.items():
        if not history.steps:
            raise Unknown(None, f"{quote(player)} has no game or adjustment on {short_name(ladder)}")
        published = list[Point]()
        if len(histories) == 1:
            published = list_published_points(history.steps, lambda value: f"published: {render.format_decimal(value)}")
            marks = list_revision_marks(history.steps, by, lambda row: f"{row.game_id} was changed later")
        lines.append(
            build_points_line(player, history.steps, by, partial(_describe_step, history.times), published=published)
        )
    return draw_steps(
        lines,
        title=_build_title("Points", histories, ladder),
        description=_describe_ends(histories, lines, _describe_deviation_band(histories)),
        prefix="points",
        vertical_lines=marks,
        standalone=True,
    )


def _draw_ranks(view: Snapshot, ladder: str, players: Sequence[str], by: HorizontalAxis) -> str:
    """Return the chart of ranks.

    Raises the errors of `Snapshot.ranks`, and `Unknown` if a player never had a rank or the ladder has too many games
    to compute ranks.
    """
    ranks_by_player = {
        player_ranks.player: player_ranks for player_ranks in (view.ranks(ladder, player) for player in players)
    }
    lines = list[Series]()
    for player, player_ranks in ranks_by_player.items():
        if player_ranks.rows is None:
            raise Unknown(
                None, f"{short_name(ladder)} has too many games to compute every rank; to draw points, leave out --rank"
            )
        lines.append(build_rank_line(player, player_ranks.rows, by))
        if not lines[-1].points:
            raise Unknown(None, f"{quote(player)} never had a rank on {short_name(ladder)}")
    # the horizontal axis covers the same span as in a chart of points, even if the ranks stayed the same at the end
    spans = [
        span
        for player in ranks_by_player
        if (span := find_course_span(view.history(ladder, player).steps, by)) is not None
    ]
    return draw_steps(
        lines,
        title=_build_title("Ranks", ranks_by_player, ladder),
        description=_describe_ends(ranks_by_player, lines),
        prefix="ranks",
        values_are_ranks=True,
        span=max(spans, key=lambda span: to_number(span[1]), default=None),
        standalone=True,
    )


def _describe_step(times: TimeFormat, row: Change) -> str:
    change, after = render.format_decimal(row.change, signed=True), render.format_decimal(row.after)
    if row.state is not ABSENT:
        after = format_rating(after, row.state, is_provisional=row.provisional is True)
    return f"{row.game_id or row.reason}, {times.format_minute(row.occurred_at)}: {change}, {after}"


def _build_title(quantity: str, players: Iterable[str], ladder: str) -> str:
    return f"{quantity} of {', '.join(players)} on {short_name(ladder)}"


def _describe_deviation_band(histories: Mapping[str, History]) -> str:
    """Describe the deviation band around the line of a single player; return an empty string for several players."""
    step_lists = [history.steps for history in histories.values()]
    return describe_band(step_lists[0], render.format_decimal) if len(step_lists) == 1 else ""


def _describe_ends(results: Mapping[str, History | Ranks], lines: Sequence[Series], deviation_band: str = "") -> str:
    """Describe the final value of each player, and the coordinates."""
    first = next(iter(results.values()))
    ends = ", ".join(f"{line.label} {render.format_decimal(line.points[-1].value)}" for line in lines)
    played = "" if first.at.as_of is None else f", played up to {first.times.format_with_zone(first.at.as_of)}"
    return f"At the end: {ends}{deviation_band}. Known at position {first.at.known_at}{played}."

"""Print a history: a player's changes on a ladder, as a table with a sparkline, and as CSV."""

import shlex
from collections.abc import Sequence

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.periods import print_waiting
from ratings_ledger.cli.output.render import Columns, print_csv_at, print_heading
from ratings_ledger.cli.output.states import list_extra_columns, list_state_columns
from ratings_ledger.ledger.rejections import csv_item
from ratings_ledger.projections.contract import align_decimals
from ratings_ledger.projections.queries.event_texts import describe_opponents, find_score, list_opponents, list_partners
from ratings_ledger.projections.queries.history import Change, History
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.queries.visible_states import DEVIATION, format_rating
from ratings_ledger.projections.replay.ladder_names import short_name

COLUMNS = ("position", "event_id", "game_id", "occurred_at", "place", "before", "change", "after", "ruleset")
POSITIONS_SHOWN_MAX = 2  # of the published lists with the same points
OPPONENTS_WIDTH_MIN = 14  # a column of partners must leave this many characters for the opponents


def print_history_csv(history: History) -> None:
    """Print one line per change."""
    points = {"before", "change", "after"}
    rows = [row.model_dump() for row in history.rows]
    columns: dict[str, Sequence[render.TableCell]] = {
        name: [render.format_exact(row[name]) if name in points else row[name] for row in rows] for name in COLUMNS
    }
    columns["published"] = [_format_published(row) for row in history.rows]
    columns |= list_state_columns(history.rows)
    print_csv_at([*columns], render.list_rows(columns), history.at)


def print_history(history: History) -> None:
    """Print a line per change, and on a terminal a sparkline of the points."""
    rows, player, ladder = history.rows, render.plain(history.player), short_name(history.ladder)
    command = shlex.join(["ratings", "history", history.player, ladder])
    explain_command = render.plain(shlex.join(["ratings", "explain", history.player, ladder]))
    if not rows:
        if history.sums_lists:
            render.note(
                f"{ladder} sums the places on monthly lists, so it has no changes of points; run: {explain_command}"
            )
        else:
            if history.period is not ABSENT:
                print_waiting(history.period, history.at, history.times, command)
            render.note(f"{player} has no game or adjustment on {ladder}.")
        return
    print_heading(f"{player} on {ladder}: {render.count(len(rows), 'change')}", "", history.at, history.times)
    if history.period is not ABSENT:
        print_waiting(history.period, history.at, history.times, command)
    if len(rows) > 1 and render.can_show_sparklines():
        render.echo(render.draw_sparkline([rows[0].before, *(row.after for row in rows)]))
    render.echo()
    columns: dict[str, Sequence[render.TableCell]] = {
        history.times.name_column("played"): [history.times.format_played(row.occurred_at) for row in rows],
        "game": [_name_change(row) for row in rows],
        "place": [_format_place(row, history.player) for row in rows],
        "before": render.format_column([row.before for row in rows]),
        "change": render.format_column([row.change for row in rows], signed=True),
        "after": _format_ratings(rows),
        **list_extra_columns(rows),
    }
    if has_published := any(row.published is not ABSENT for row in rows):
        columns["published"] = [_format_published(row, POSITIONS_SHOWN_MAX) for row in rows]
    if any(partners := [" & ".join(map(csv_item, _name_partners(row, history.player))) for row in rows]):
        with_partners = {**columns, "with": partners}
        if render.compute_remaining_width([*with_partners], render.list_rows(with_partners)) >= OPPONENTS_WIDTH_MIN:
            columns = with_partners
    with_opponents = _add_opponents(columns, history)
    if render.is_folded(with_opponents):
        del columns["before"]  # the row above has the same points, as `after`
        with_opponents = _add_opponents(columns, history)
    render.print_columns(with_opponents, right=("place", "before", "change", "after"))
    if has_published:
        render.echo("\npublished: points on lists that would differ today, with the lists' positions in the log")
    if not history.running:
        render.echo(f"\nHow the list uses these points: {explain_command}")


def _add_opponents(columns: Columns, history: History) -> Columns:
    """Append a column with as many opponents as fit into the terminal."""
    width = render.compute_remaining_width([*columns], render.list_rows(columns))
    return {**columns, "against": [_fit_opponents(row, history.player, width) for row in history.rows]}


def _format_ratings(rows: Sequence[Change]) -> list[str]:
    """Return the points after each change, with their deviations if the rule keeps some."""
    points = render.format_column([row.after for row in rows])
    deviations = align_decimals(["" if row.state is ABSENT else row.state.get(DEVIATION, "") for row in rows])
    return [
        format_rating(text, {DEVIATION: deviation}, is_provisional=row.provisional is True)
        for row, text, deviation in zip(rows, points, deviations, strict=True)
    ]


def _name_partners(row: Change, player: str) -> list[str]:
    return [] if row.game is None else list_partners(row.game, player)


def _fit_opponents(row: Change, player: str, width: int) -> str:
    """Describe the opponents of a game by side, as many as fit into a width."""
    if row.game is None:
        return ""
    players = sum(len(side.players) for side in list_opponents(row.game, player))
    return render.fit_names(describe_opponents(row.game, player), width, players)


def _name_change(row: Change) -> str:
    """Name the game, or what else changed the points."""
    return row.game_id or (f"adjusted: {row.reason}" if row.cause is ABSENT else str(row.reason))


def _format_place(row: Change, player: str) -> str:
    """Format the place, followed by the recorded score."""
    score = None if row.game is None else find_score(row.game, player)
    return " ".join([*([str(row.place)] if row.place else []), *([f"({score})"] if score else [])])


def _format_published(row: Change, shown_count: int | None = None) -> str:
    """Return the points on published lists that would differ today, and the lists' positions: `869.75 (268, 270)`.

    At most `shown_count` positions are listed for the same points; None means all.
    """
    positions_by_points: dict[str, list[str]] = {}
    for publication in () if row.published is ABSENT else row.published:
        points = "not listed" if publication.points is None else render.format_decimal(publication.points)
        positions_by_points.setdefault(points, []).append(str(publication.position))
    return ", ".join(
        f"{points} ({render.join_first(positions, shown_count or len(positions))})"
        for points, positions in positions_by_points.items()
    )

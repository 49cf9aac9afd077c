"""Print the causes of a change of points, as a table and as CSV."""

from collections.abc import Sequence
from fractions import Fraction

from ratings_ledger.cli.output import render
from ratings_ledger.projections.diff.change_explanations import PointsAttributed
from ratings_ledger.projections.diff.differences import ComparedSide
from ratings_ledger.projections.replay.ladder_names import short_name

HEADER = (
    "cause",
    "position",
    "event_id",
    "game_id",
    "occurred_at",
    "own",
    "ripple",
    "amount",
    "reason",
    "recorded_at",
    "by",
)
AMOUNTS = ("own", "ripple", "amount")


def print_attribution_csv(attribution: PointsAttributed) -> None:
    """Print one line per cause."""
    causes = [cause.model_dump() for cause in attribution.causes]
    rows = [[render.format_exact(row[name]) if name in AMOUNTS else row[name] for name in HEADER] for row in causes]
    render.print_csv(HEADER, rows)


def print_attribution(attribution: PointsAttributed) -> None:
    """Print the points on both sides, the causes and their sum, and the time, author and reason of each cause."""
    player, sides = render.plain(attribution.player), (attribution.before, attribution.to)
    if all(side.points is None for side in sides):
        render.note(f"{player} is not on {short_name(attribution.ladder)} on either side of the comparison.")
        return
    render.echo(f"{player} on {short_name(attribution.ladder)}")
    points = render.format_column([attribution.start if side.points is None else side.points for side in sides], 6)
    for name, value, side in zip(("from", "to  "), points, sides, strict=True):
        absent = " (start points: not on the ladder)" if side.points is None else ""
        render.print_hanging(
            f"{name}  {value}{absent}  {ComparedSide(side.at).describe(attribution.times.format_with_zone)}", 6
        )
    render.echo()
    if not attribution.causes:
        render.echo("Nothing changed their points.")
        return
    columns: dict[str, Sequence[render.TableCell]] = {
        "position": [*(cause.position or "" for cause in attribution.causes), ""],
        "cause": [*(cause.cause for cause in attribution.causes), "sum"],
        "what": [*(cause.what for cause in attribution.causes), ""],
    }
    for header, name in zip(("own", "ripple", "together"), AMOUNTS, strict=True):
        amounts = [getattr(cause, name) for cause in attribution.causes]
        columns[header] = render.format_column([*amounts, sum(amounts, Fraction(0))], 6, signed=True)
    render.print_columns(columns, right=("position", "own", "ripple", "together"))
    render.echo()
    for cause in attribution.causes:
        if cause.position is not None and cause.recorded_at is not None:
            reason = f": {cause.reason}" if cause.reason else ""
            time_text = attribution.times.format_with_zone(cause.recorded_at)
            render.print_hanging(render.plain(f"{cause.position:8}  recorded {time_text} by {cause.by}{reason}"), 10)

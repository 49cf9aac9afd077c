"""Format streams of standings and changes as JSON Lines or CSV."""

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.render import AXES
from ratings_ledger.cli.output.standings import format_places
from ratings_ledger.projections.queries.history import PlayerChange
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.queries.standings import Standing, Standings

STANDINGS_COLUMNS = (
    "ladder",
    "rank",
    "player",
    "points",
    "games",
    "qualified",
    "points_exact",
    "gold",
    "places",
    "ruleset",
    *AXES,
    "state",
    "provisional",
)
CHANGE_COLUMNS = (
    "player",
    "position",
    "event_id",
    "game_id",
    "occurred_at",
    "place",
    "before",
    "change",
    "after",
    "ruleset",
    "change_exact",
    "after_exact",
)


def format_standings(standings: Standings, output_format: str, to_stdout: bool) -> str:
    """Return the standings of a ladder as one line of JSON, or as a line of CSV for each row."""
    if output_format == "json":
        return render.to_json(standings.model_dump()) + "\n"
    axes = standings.at.axes().values()
    rows = (
        [
            standings.ladder,
            row.rank,
            row.player,
            render.format_decimal(row.points, 6),
            row.games,
            row.qualified,
            str(row.points),
            None if row.gold is ABSENT else row.gold,
            format_places(row),
            standings.ruleset,
            *axes,
            _format_state(row),
            None if row.provisional is ABSENT else row.provisional,
        ]
        for row in standings.rows
    )
    return render.to_csv(rows, to_stdout)


def _format_state(row: Standing) -> str:
    """Return the state of a player in the format that `ratings seed` accepts."""
    return "" if row.state is ABSENT else " ".join(f"{name}={value}" for name, value in row.state.items())


def format_change(change: PlayerChange, output_format: str, to_stdout: bool) -> str:
    """Return a change as one line of JSON or CSV."""
    members = change.model_dump()
    if output_format == "json":
        return render.to_json(members) + "\n"
    row = change.change
    points = [render.format_decimal(value, 6) for value in (row.before, row.change, row.after)]
    identifying_cells = [members[name] for name in CHANGE_COLUMNS[:6]]
    return render.to_csv([[*identifying_cells, *points, row.ruleset, members["change"], members["after"]]], to_stdout)

"""How standings look: the columns of each kind of list, as a table, CSV or JSON."""

from typing import Any

from cli.output import render
from cli.output.coordinates import heading, print_csv_at
from cli.output.times import Times
from ledger import clock
from projections.lists.contract import Standing
from projections.queries.standings import (
    Coordinates,
    Ladders,
    Standings,
)
from projections.replay.ladders import parse_name
from projections.rulesets.periods import is_running, period_of


def standings_json(
    found: Standings, at: Coordinates, unfinished: str | None, rows: list[Standing] | None = None
) -> dict[str, Any]:
    """Standings as the contract writes them, with all or only some rows."""
    shown = found if rows is None else found._replace(rows=rows)
    return {
        "ladder": found.ladder, "ruleset": found.ruleset, **at.stated(), "games": found.games, "digest": found.digest,
        **({"open": True} if unfinished else {}), "rows": shown.json_rows(),
    }  # fmt: skip


def why_unfinished(ladders: Ladders, ladder: str) -> str | None:
    """A sentence if a list's period still runs or has not begun, else None."""
    period = period_of(ladders.versions(ladder)[0].ruleset, parse_name(ladder).values)
    if period is None:
        return None
    now = clock.now()
    if now < period.start:
        return "The period of this list has not begun."
    if now <= period.end:
        return "The period of this list still runs."
    return "The period of this list still ran then." if is_running(period, now, ladders.as_of) else None


def print_standings_csv(found: Standings, at: Coordinates) -> None:
    header = ["rank", "player", "points", "games", "qualified"]
    rows = [
        [row.rank, row.player, render.spreadsheet(str(row.value(found.scale))), row.games, row.qualified]
        for row in found.rows
    ]  # fmt: skip
    if any("/" in str(row[2]) for row in rows):
        # a spreadsheet mistakes 7/4 for a date
        header.append("points_exact")
        rows = [[*cells[:2], render.human(str(cells[2]), 6), *cells[3:], str(row.value(found.scale))]
                for cells, row in zip(rows, found.rows, strict=True)]  # fmt: skip
    if any(row.gold is not None for row in found.rows):
        header.append("gold")
        rows = [[*cells, row.gold] for cells, row in zip(rows, found.rows, strict=True)]
    if any(row.places is not None for row in found.rows):
        header.append("places")
        rows = [[*cells, places_told(row)] for cells, row in zip(rows, found.rows, strict=True)]
    print_csv_at(header, rows, at)


def places_told(row: Standing) -> str:
    """The places that an annual list added up."""
    return " ".join(map(str, row.places or ()))


def print_standings(found: Standings, at: Coordinates, times: Times, remark: str | None) -> None:
    heading(f"{found.ladder}: {render.count(found.games, 'game')}", f" under {found.ruleset}", at, times)
    if remark:
        render.echo(remark)
    render.echo()
    if not found.rows:
        render.note("Nobody is on this ladder.")
        return
    print_rows(found)
    if any(row.rank is None for row in found.rows):
        render.hanging(f"\nWhy somebody has no rank (-): ratings explain PLAYER {found.ladder}", 2)


def print_rows(found: Standings) -> None:
    """The rows of standings as a table."""
    points = render.column([str(row.value(found.scale)) for row in found.rows])
    header = ["rank", "player", "points", "games"]
    rows: list[list[render.Cell]] = [
        [r.rank or "-", r.player, p, r.games] for r, p in zip(found.rows, points, strict=True)
    ]
    if any(row.gold is not None for row in found.rows):
        header.append("gold")
        rows = [[*cells, row.gold or ""] for cells, row in zip(rows, found.rows, strict=True)]
    if any(row.places is not None for row in found.rows):
        header.append("places")
        rows = [[*cells, places_told(row)] for cells, row in zip(rows, found.rows, strict=True)]
    render.print_table(header, rows, right=("rank", "points", "games", "gold"))

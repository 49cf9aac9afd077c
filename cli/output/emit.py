"""A result as a table, as JSON or as CSV: the one place where that is decided."""

from importlib import import_module

from cli.output import render
from projections.queries.results import Result

# by kind of result the file here and its function that prints a table; `_csv` behind its name is that for CSV
PRINTED = {
    "Standings": "standings:print_standings", "Balance": "standings:print_balance",
    "GameExplanation": "explanation:print_game", "PlayerExplanation": "explanation:print_player",
    "History": "history:print_history",
    "AllLadders": "survey:print_ladders", "AllLists": "survey:print_all_lists",
    "PlayerStatistics": "survey:print_statistics",
    "RecordedGames": "recorded:print_games", "RecordedEvents": "recorded:print_events",
    "AllLeagues": "leagues:print_leagues", "LeagueState": "leagues:print_league", "Unmet": "leagues:print_unmet",
    "Differences": "comparison:print_differences", "PointsAttributed": "attribution:print_attribution",
    "Simulation": "simulation:print_simulation",
    "ClockState": "clock:print_clock", "ClockExplanation": "clock:print_clock_lines",
}  # fmt: skip


def emit(result: Result, form: str) -> int:
    """Print a result in a form: `table`, `json` or `csv`; returns 1 if part of it could not be computed, else 0."""
    failed: tuple[str, ...] = getattr(result, "failed", ())
    for reason in (*getattr(result, "unusable", ()), *failed):
        render.note(f"ratings: {reason}")
    if form == "json":
        render.print_json(result.model_dump())
    else:
        module, _, name = PRINTED[type(result).__name__].partition(":")
        getattr(import_module(f"cli.output.{module}"), f"{name}_csv" if form == "csv" else name)(result)
    return int(bool(failed))

"""A result in an output format: the one place where that is decided.

A format is a function in `FORMATS`. How each kind of result looks as a table and as CSV stands in `cli.output`, in the
functions `print_NAME` and `print_NAME_csv` of a module that is loaded when it is needed, and so does a format that few
kinds have, such as `print_NAME_toml`; JSON comes from the result.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module

from ratings_ledger.cli.output import render
from ratings_ledger.projections.queries.results import Result

# by kind of result: the module in `cli.output`, and the name there; what became of proposed events has no CSV
PRINTED = {
    "Standings": ("standings", "standings"), "Overview": ("standings", "standings"),
    "Balance": ("standings", "balance"), "History": ("history", "history"),
    "GameExplanation": ("explanation", "game"), "PlayerExplanation": ("explanation", "player"),
    "AllLadders": ("survey", "ladders"), "AllLists": ("survey", "all_lists"),
    "PlayerStatistics": ("survey", "statistics"),
    "RecordedGames": ("recorded", "games"), "RecordedEvents": ("recorded", "events"),
    "AllRulesets": ("rulesets", "rulesets"), "RulesetState": ("rulesets", "ruleset"),
    "AllLeagues": ("leagues", "leagues"), "LeagueState": ("leagues", "league"), "Unmet": ("leagues", "unmet"),
    "Differences": ("comparison", "differences"), "PointsAttributed": ("attribution", "attribution"),
    "Simulation": ("simulation", "simulation"),
    "ClockState": ("clock", "clock"), "ClockExplanation": ("clock", "clock_lines"),
    "Recorded": ("appended", "recorded"), "Entered": ("appended", "entered"),
    "RulesetsPublished": ("appended", "rulesets_published"), "PublishedOutcome": ("appended", "list_published"),
    "DuePublished": ("appended", "due_published"), "Undone": ("undone", "undone"),
    "LedgerStatus": ("status", "status"), "Checks": ("upkeep", "checks"),
    "Verification": ("upkeep", "verification"), "RolledBack": ("upkeep", "rolled_back"), "Night": ("upkeep", "night"),
    "AllSegments": ("segments", "segments"), "Pruned": ("segments", "pruned"),
    "BackupMade": ("upkeep", "backup_made"), "BackupChecked": ("upkeep", "backup_checked"),
}  # fmt: skip


def _as_json(result: Result) -> None:
    render.print_json(result.model_dump())


def _printed(ending: str, result: Result) -> None:
    module, name = PRINTED[type(result).__name__]
    getattr(import_module(f"ratings_ledger.cli.output.{module}"), f"print_{name}{ending}")(result)


FORMATS: dict[str, Callable[[Result], None]] = {
    "table": partial(_printed, ""), "json": _as_json, "csv": partial(_printed, "_csv"),
}  # fmt: skip


def emit(result: Result, form: str) -> int:
    """Print a result in one of the `FORMATS`; returns the exit code: 1 if something of it was refused or, where nothing
    is recorded, could not be computed, else 0.
    """
    failed: tuple[str, ...] = getattr(result, "failed", ())
    for reason in (*getattr(result, "unusable", ()), *failed):
        render.note(f"ratings: {reason}")
    FORMATS.get(form, partial(_printed, f"_{form}"))(result)
    return int(getattr(result, "is_refused", bool(failed)))

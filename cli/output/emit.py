"""A result as a table, as JSON or as CSV: the one place where that is decided."""

from collections.abc import Callable
from typing import Any

from cli.output import (
    attribution,
    clock,
    comparison,
    explanation,
    history,
    leagues,
    recorded,
    render,
    simulation,
    standings,
    survey,
)
from projections.queries import answers, answers_compared, answers_recorded
from projections.queries.results import Result

# by kind of result how it is printed as a table, and as CSV
PRINTED: dict[type[Result], tuple[Callable[[Any], None], Callable[[Any], None]]] = {
    answers.Standings: (standings.print_standings, standings.print_standings_csv),
    answers.GameExplanation: (explanation.print_game, explanation.print_game_csv),
    answers.PlayerExplanation: (explanation.print_player, explanation.print_player_csv),
    answers.History: (history.print_history, history.print_history_csv),
    answers.Balance: (standings.print_balance, standings.print_balance_csv),
    answers.AllLadders: (survey.print_ladders, survey.print_all_csv),
    answers.AllLists: (survey.print_all_lists, survey.print_all_csv),
    answers_recorded.RecordedGames: (recorded.print_games, recorded.print_games_csv),
    answers_recorded.RecordedEvents: (recorded.print_events, recorded.print_events_csv),
    answers_recorded.AllLeagues: (leagues.print_leagues, leagues.print_leagues_csv),
    answers_recorded.LeagueState: (leagues.print_league, leagues.print_league_csv),
    answers_recorded.Unmet: (leagues.print_unmet, leagues.print_unmet_csv),
    answers_compared.Differences: (comparison.print_differences, comparison.print_differences_csv),
    answers_compared.PointsAttributed: (attribution.print_attribution, attribution.print_attribution_csv),
    answers_compared.Simulation: (simulation.print_simulation, simulation.print_simulation_csv),
    answers_recorded.ClockState: (clock.print_clock, clock.print_clock_csv),
    answers_recorded.ClockExplanation: (clock.print_clock_lines, clock.print_clock_lines_csv),
    answers.PlayerStatistics: (survey.print_statistics, survey.print_statistics_csv),
}


def emit(result: Result, form: str) -> int:
    """Print a result in a form: `table`, `json` or `csv`; returns 1 if part of it could not be computed, else 0."""
    failed: tuple[str, ...] = getattr(result, "failed", ())
    for reason in (*getattr(result, "unusable", ()), *failed):
        render.note(f"ratings: {reason}")
    if form == "json":
        render.print_json(result.model_dump())
    else:
        as_table, as_csv = PRINTED[type(result)]
        (as_csv if form == "csv" else as_table)(result)
    return int(bool(failed))

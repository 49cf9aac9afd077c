"""Print notes about open rating periods: the waiting games, the end, and the command that scores them now."""

from collections.abc import Iterator
from datetime import datetime

import click

from ratings_ledger.cli.output import render
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import to_microseconds
from ratings_ledger.projections.queries.coordinates import Coordinates, TimeFormat, format_end, to_datetime
from ratings_ledger.projections.queries.standings import PeriodState


def print_waiting(period: PeriodState, at: Coordinates, times: TimeFormat, command: str) -> None:
    """Print the number of games in open rating periods, when the first period ends, and how to score them now."""
    if period.closes_at is None:
        return
    games, end = render.count(period.open_games, "game"), times.format_with_zone(period.closes_at)
    if period.closed_now:
        render.print_hanging(f"As if rating periods closed now: {games} included; the first period ends {end}.", 2)
        return
    message = f"Not scored yet: {games} in open rating periods, the first of which ends {end}."
    subject = "the game" if period.open_games == 1 else "the games"
    description = _describe_command(subject, period.closes_at, at=at, times=times, command=command)
    render.print_hanging(f"{message} {description}", 2)


def print_open_period(period_end: datetime, at: Coordinates, times: TimeFormat, command: str) -> None:
    """Print the end of the open period of a game, and the command that scores the game as if the period were closed."""
    description = _describe_command("the game", period_end, at=at, times=times, command=command)
    render.print_hanging(f"The period ends {times.format_with_zone(period_end)}. {description}", 2)


def _describe_command(games: str, period_end: datetime, *, at: Coordinates, times: TimeFormat, command: str) -> str:
    """Describe the command that scores `games`, such as "the game"; `period_end` is the end of their first period."""
    if at.as_of is None and period_end < to_datetime(clock.now()):
        day = format_end(to_microseconds(period_end), times.zone)
        message = f"No later event has closed it; to score {games}: {command} --as-of {day}"
        return render.plain(" ".join([message, *_list_other_options(at)]))
    as_of = [] if at.as_of is None else [f"--as-of {format_end(at.as_of, times.zone)}"]
    message = f"To score {games} as if closed now: {command} --close-now"
    return render.plain(" ".join([message, *as_of, *_list_other_options(at)]))


def _list_other_options(at: Coordinates) -> Iterator[str]:
    """Yield the options for the position and the version, as far as the user chose them."""
    if click.get_current_context().params.get("known_at") is not None:
        yield f"--known-at {at.known_at}"
    if at.rules is not None:
        yield f"--rules {at.rules}"

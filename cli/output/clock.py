"""Print the clock of a game, as tables and as CSV."""

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.render import print_records_csv
from ratings_ledger.projections.queries.clocks import ClockExplanation, ClockState, PlayerTimers


def print_clock_csv(clock: ClockState) -> None:
    """Print one line per player."""
    print_records_csv(PlayerTimers, clock.players)


def print_clock(clock: ClockState) -> None:
    """Print the state of the game, and a line per player."""
    render.echo(f"{render.plain(clock.game_id)} at {clock.at} ms, recorded until {clock.recorded_until} ms")
    if clock.stopped_at is not None:
        render.echo(f"stopped at {clock.stopped_at} ms")
    if clock.paused_at is not None:
        render.echo(f"paused since {clock.paused_at} ms; {_format_seconds(clock.pause_left_ms)} of the pause left")
    if request := clock.pause_asked:
        votes = f"{len(request.yes)} of {request.yes_needed} required yes votes"
        time_left = f"{_format_seconds(request.left_ms)} left for answers"
        render.echo(f"{render.plain(request.asked_by)} asks for a pause: {votes}, {time_left}")
    render.echo()
    lines = [
        (
            player.player,
            _format_seconds(player.main_ms),
            player.choice or "",
            _format_seconds(player.auxiliary_ms),
            player.running or "",
            _describe_absence(player),
        )
        for player in clock.players
    ]
    right = ("main timer", "auxiliary")
    render.print_table(("player", "main timer", "choice", "auxiliary", "running", "state"), lines, right=right)


def print_clock_lines_csv(explanation: ClockExplanation) -> None:
    """Print one line per change."""
    render.print_csv(("at", "what", "change_ms", "main_ms", "detail"), explanation.lines)


def print_clock_lines(explanation: ClockExplanation) -> None:
    """Print a player's remaining time, and each change of it."""
    player, game = render.plain(explanation.player), render.plain(explanation.game_id)
    render.echo(f"{player} in {game}: {_format_seconds(explanation.main_ms)} on the main timer\n")
    lines = [
        (
            line.at,
            line.what,
            _format_seconds(line.change_ms or None),
            _format_seconds(line.main_ms),
            line.detail + (" (if nothing more is recorded)" if line.at > explanation.recorded_until else ""),
        )
        for line in explanation.lines
    ]
    render.print_table(("ms", "what", "change", "main timer", ""), lines, right=("ms", "change", "main timer"))


def _format_seconds(ms: int | None) -> str:
    """Return milliseconds as seconds, exactly."""
    return "" if ms is None else f"{'-' if ms < 0 else ''}{abs(ms) // 1000}.{abs(ms) % 1000:03d} s"


def _describe_absence(player: PlayerTimers) -> str:
    """Return when a player was removed, left or disconnected."""
    states = {"removed": player.removed_at, "left": player.left_at, "disconnected": player.disconnected_at}
    return ", ".join(f"{state} at {at} ms" for state, at in states.items() if at is not None)

"""How the clock of a game looks, as tables and as CSV."""

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.render import print_records_csv
from ratings_ledger.projections.queries.clocks import ClockExplanation, ClockState, PlayerTimers


def print_clock_csv(found: ClockState) -> None:
    """One line per player."""
    print_records_csv(PlayerTimers, found.players)


def print_clock(found: ClockState) -> None:
    """Where the game stands, and a line per player."""
    render.echo(f"{render.plain(found.game_id)} at {found.at} ms, recorded until {found.recorded_until} ms")
    if found.stopped_at is not None:
        render.echo(f"stopped at {found.stopped_at} ms")
    if found.paused_at is not None:
        render.echo(f"paused since {found.paused_at} ms; {_seconds(found.pause_left_ms)} of the pause are left")
    if asked := found.pause_asked:
        answers = f"{len(asked.yes)} of {asked.yes_needed} yes, {_seconds(asked.left_ms)} left for answers"
        render.echo(f"{render.plain(asked.asked_by)} asks for a pause: {answers}")
    render.echo()
    lines = [
        (one.player, _seconds(one.main_ms), one.choice or "", _seconds(one.auxiliary_ms), one.running or "", _gone(one))
        for one in found.players
    ]
    right = ("main timer", "auxiliary")
    render.print_table(("player", "main timer", "choice", "auxiliary", "running", "state"), lines, right=right)


def print_clock_lines_csv(found: ClockExplanation) -> None:
    """One line per step."""
    render.print_csv(("at", "what", "change_ms", "main_ms", "detail"), found.lines)


def print_clock_lines(found: ClockExplanation) -> None:
    """What a player has, and how that came about."""
    player, game = render.plain(found.player), render.plain(found.game_id)
    render.echo(f"{player} in {game}: {_seconds(found.main_ms)} on the main timer\n")
    lines = [
        (line.at, line.what, _seconds(line.change_ms or None), _seconds(line.main_ms),
         line.detail + (" (if nothing more is recorded)" if line.at > found.recorded_until else ""))
        for line in found.lines
    ]  # fmt: skip
    render.print_table(("ms", "what", "change", "main timer", ""), lines, right=("ms", "change", "main timer"))


def _seconds(ms: int | None) -> str:
    """Milliseconds as seconds, exactly."""
    return "" if ms is None else f"{'-' if ms < 0 else ''}{abs(ms) // 1000}.{abs(ms) % 1000:03d} s"


def _gone(player: PlayerTimers) -> str:
    """Return what became of a player."""
    states = {"removed": player.removed_at, "left": player.left_at, "disconnected": player.disconnected_at}
    return ", ".join(f"{state} at {at} ms" for state, at in states.items() if at is not None)

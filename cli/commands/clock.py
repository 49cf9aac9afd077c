"""Implement `clock`: show the timers of a game at an instant, and explain why a player was removed."""

import click

from ratings_ledger.cli.arguments.command import group
from ratings_ledger.cli.arguments.options import format_option, known_at_option
from ratings_ledger.cli.arguments.views import open_for_command, open_view
from ratings_ledger.cli.output.clock import print_clock, print_clock_csv, print_clock_lines, print_clock_lines_csv
from ratings_ledger.cli.output.render import emit
from ratings_ledger.ledger.events.fields import to_nfc

at_option = click.option(
    "--at", metavar="MS", type=int, help="The server's time in milliseconds.  [default: the last event]"
)


@group()
def clock() -> None:
    """Rebuild the clock of a game from its events."""


@clock.command(name="show")
@click.argument("game_id", metavar="GAME", type=to_nfc)
@at_option
@known_at_option
@format_option
@click.pass_obj
def show_(db: str, game_id: str, at: int | None, known_at: str | None, output_format: str) -> None:
    """Show the timers of every player in GAME, with removals, disconnections and pauses."""
    state = open_view(open_for_command(db), known_at=known_at).clock(game_id, at)
    emit(state, output_format, print_clock, print_clock_csv)


@clock.command(name="explain")
@click.argument("game_id", metavar="GAME", type=to_nfc)
@click.argument("player", type=to_nfc)
@at_option
@known_at_option
@format_option
@click.pass_obj
def explain_(db: str, game_id: str, player: str, at: int | None, known_at: str | None, output_format: str) -> None:
    """Explain PLAYER's main timer, line by line. The last line is the removal, if any."""
    explanation = open_view(open_for_command(db), known_at=known_at).clock_of(game_id, player, at)
    emit(explanation, output_format, print_clock_lines, print_clock_lines_csv)

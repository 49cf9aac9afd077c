"""Implement `log` and `games`: list the recorded events, and the games in their current state."""

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.options import as_of_option, format_option, known_at_option
from ratings_ledger.cli.arguments.views import open_for_command, open_view, report_ignored_events
from ratings_ledger.cli.output.recorded_events import print_events, print_events_csv, print_games, print_games_csv
from ratings_ledger.cli.output.render import emit
from ratings_ledger.ledger.events.fields import to_nfc


@command()
@click.argument("subject", metavar="[GAME|PLAYER]", type=to_nfc, required=False)
@click.option(
    "--since",
    metavar="TIME|POSITION",
    help="Only events recorded at or after TIME or POSITION; a date or month means its start.",
)
@click.option("--by", metavar="NAME", help="Only events that NAME recorded.")
@click.option(
    "--type", "types", metavar="TYPE", multiple=True, help="Only events of this type, such as game.voided; repeatable."
)
@click.option(
    "--batch",
    metavar="NAME|POSITION",
    type=to_nfc,
    help="Only events of the imports with this name, or of the import at a position.",
)
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=0), help="Only the newest N; 0: all.")
@known_at_option
@format_option
@click.pass_obj
def log(
    db: str,
    subject: str | None,
    since: str | None,
    by: str | None,
    types: tuple[str, ...],
    batch: str | None,
    limit: int,
    known_at: str | None,
    output_format: str,
) -> None:
    """List the raw events, with their authors and reasons. With GAME or PLAYER, list only the events about them."""
    view = open_view(open_for_command(db), known_at=known_at)
    events = view.events(subject, since=since, by=by, types=types, batch=batch, limit=limit)
    emit(events, output_format, print_events, print_events_csv)


@command()
@click.argument("game_id", metavar="[GAME]", type=to_nfc, required=False)
@click.option("--game", metavar="NAME", help="Only games of this name, such as catan.")
@click.option("--player", metavar="ID", type=to_nfc, help="Only games that this player took part in.")
@click.option("--since", metavar="TIME", help="Only games played since TIME; a date, month or year means its start.")
@click.option("--by", metavar="NAME", help="Only games that NAME recorded.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=0), help="Only the newest N; 0: all.")
@as_of_option
@known_at_option
@format_option
@click.pass_obj
def games(
    db: str,
    game_id: str | None,
    game: str | None,
    player: str | None,
    since: str | None,
    by: str | None,
    limit: int,
    as_of: str | None,
    known_at: str | None,
    output_format: str,
) -> None:
    """List the recorded games as they stand now, or show one.

    The games are sorted by the time at which they were played.
    """
    view = open_view(open_for_command(db), as_of=as_of, known_at=known_at)
    game_list = view.games(game_id, game=game, player=player, since=since, by=by, limit=limit)
    report_ignored_events(game_list.left_out)
    emit(game_list, output_format, print_games, print_games_csv)

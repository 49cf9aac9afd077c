"""Options of the commands that take results in, and players as they are typed in the order of their places."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ledger.intake.csv_games import TIE
from ledger.intake.files import STDIN
from ledger.validation.new_names import Refusing

# from so many games on, `record` does not work out what it changes
CHANGES_GAMES = 20_000

new_names_option = click.option(
    "--new-names", type=click.Choice(["refuse", "accept"]), default="refuse", show_default=True,
    help="What becomes of a new name that is close to another one, or looks like two.",
)  # fmt: skip
any_date_option = click.option(
    "--any-date", is_flag=True, help="Take games of more than a day ahead of the clock, or of before 1900."
)
strict_option = click.option(
    "--strict", is_flag=True, help="Refuse players who are new, and games that begin a ladder."
)
allow_uncounted_option = click.option(
    "--allow-uncounted", is_flag=True, help="Record games that a ladder's rule cannot score."
)
result_format = click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output format."
)


def refused_names(new_names: str, strict: bool, where: Refusing) -> Refusing:
    """Where new names are refused, if nothing else is asked for in `where`. Raises `click.UsageError`."""
    if strict and new_names == "accept":
        raise click.UsageError("--strict takes no new name, and --new-names accept takes them all")
    if strict:
        return "all"
    return where if new_names == "refuse" else ""


def refuse_unreadable_twice(files: Sequence[str], command: str) -> None:
    """Raises `click.UsageError` unless these are different files, which can be read a second time."""
    for number, name in enumerate(files):
        if name in files[:number]:
            raise click.UsageError(f"{name} is named twice")
        if name == STDIN or not (Path(name).is_file() or Path(name).is_dir()):
            what = "standard input" if name == STDIN else name
            raise click.UsageError(f"{command} reads {what} twice, so it has to be a file, not a pipe or a device")


def placed(players: tuple[str, ...]) -> list[dict[str, Any]]:
    """Participants in the order of their places, tied ones joined by =, as the members of a game."""
    found: list[dict[str, Any]] = []
    for seat in players:
        place = len(found) + 1
        found += [{"player": player.strip(), "place": place} for player in seat.split(TIE)]
    return found

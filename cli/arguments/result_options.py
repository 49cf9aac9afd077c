"""Options of the commands that take in results, and players as typed in the order of their places."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ledger.intake.csv_games import TIE
from ledger.intake.files import STDIN
from ledger.validation.new_names import Refusing

# with this many games or more, `record` does not work out what it changes
CHANGES_GAMES = 20_000

new_names_option = click.option(
    "--new-names", type=click.Choice(["refuse", "accept"]), default="refuse", show_default=True,
    help="What to do with a new name that is close to another one, or looks like two.",
)  # fmt: skip
any_date_option = click.option(
    "--any-date", is_flag=True, help="Take games dated more than a day ahead of the clock, or before 1900."
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
    """Where new names are refused: `where`, unless something else is asked for. Raises `click.UsageError`."""
    if strict and new_names == "accept":
        raise click.UsageError("--strict takes no new names, and --new-names accept takes them all")
    if strict:
        return "all"
    return where if new_names == "refuse" else ""


def refuse_unreadable_twice(files: Sequence[str], command: str) -> None:
    """Raises `click.UsageError` unless these are different files that can be read twice."""
    for number, name in enumerate(files):
        if name in files[:number]:
            raise click.UsageError(f"{name} is named twice")
        if name == STDIN or not (Path(name).is_file() or Path(name).is_dir()):
            what = "standard input" if name == STDIN else name
            raise click.UsageError(f"{command} reads {what} twice, so it has to be a file, not a pipe or a device")


def placed(players: tuple[str, ...]) -> list[dict[str, Any]]:
    """Players in the order of their places, tied ones joined by =, as the participants of a game."""
    found: list[dict[str, Any]] = []
    for seat in players:
        place = len(found) + 1
        found += [{"player": player.strip(), "place": place} for player in seat.split(TIE)]
    return found

"""Implement `demo`: run the main tasks on a small club's games, showing each command."""

import os
import shlex
import sys
import tempfile
import textwrap
from importlib.util import find_spec
from pathlib import Path

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.sites import WEB_EXTRA_MISSING
from ratings_ledger.cli.output import render
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger

EXAMPLES = Path(__file__).parents[2] / "examples"

SEASON_FILE = "winter-league.csv"

# for each step: its comment, and its commands without `ratings`
STEPS = (
    (
        "A new ledger for a club in Berlin that plays Catan. The rules of its ladders are events, too.",
        ("init --for catan --zone Europe/Berlin",),
    ),
    (
        "Results go in: a club's season from its spreadsheet. Standings come out.",
        (f"import {SEASON_FILE} --set game=catan", "standings elo-catan"),
    ),
    (
        "A December game turns up in spring. It counts from the day it was played: New Year's Eve standings as we know "
        "them today, and as they looked before.",
        (
            "import late-game.jsonl",
            "standings elo-catan --as-of 2024-12-31",
            "standings elo-catan --as-of 2024-12-31 --known-at {before_late_game}",
        ),
    ),
    (
        "How one player's rating moved at the tables of three and four.",
        ("history mira elo-catan/3-4 --as-of 2024-12-31",),
    ),
    ("And why: one game, pair by pair.", ("explain wl-44 elo-catan",)),
    (
        "Another evening, another rule. In Galactic Magnate each player pays everyone placed above. The bonus is "
        "minted; rounding remainders are burned.",
        (
            "rules publish --shipped galactic-points",
            "import magnate-night.jsonl --by mira",
            "explain gm-2 galactic-points",
        ),
    ),
    (
        "The Babylon 5 league: each player antes a tenth; two tie for second. Players with fewer than five games are "
        "unranked.",
        (
            "rules publish --shipped b5-league",
            "import b5-season.jsonl --by mira",
            "explain b5-5 b5-league/2025-1",
            "standings b5-league/2025-1",
        ),
    ),
    (
        "A mistake: Åke won gm-4, not Ada. What would a correction change? Then make it: every later game is rescored.",
        (
            "correct gm-4 Åke Ada --reason swapped --by mira --dry-run",
            "correct gm-4 Åke Ada --reason swapped --by mira",
        ),
    ),
    (
        "Nothing was overwritten: every event of that game. And the trial balance: points held = opening points + "
        "minted - burned.",
        ("log gm-4", "books galactic-points"),
    ),
    (
        "A rule is fixed. What would the new version change, and which predicts results better? Less log loss is "
        "better; random guessing scores 0.693.",
        ("whatif elo-catan-2.toml --ladder elo-catan",),
    ),
    (
        "The new version scores all games again; the old one can still be queried.",
        ("rules publish elo-catan-2.toml", "standings elo-catan", "standings elo-catan --rules elo-catan@1 --limit 3"),
    ),
    ("What cron does at night: store standings for other programs, and promote them in one step.", ("rebuild",)),
    ("What an auditor does: recompute every hash, and list what is wrong.", ("verify",)),
)

NEXT_STEPS = """Next, in a folder of your own:
  ratings init --for chess --zone Europe/Berlin
      a ledger with Elo for chess, in your own time zone
  ratings import games.csv --set game=chess --dry-run
      preview your own results: a table with Date, White, Black, Result
  ratings correct GAME WINNER LOSER --reason swapped --dry-run
      preview a correction
  ratings rules new house.toml
      start a ruleset of your own
  ratings --help
      everything else
"""


@command()
@click.option(
    "--keep",
    metavar="FOLDER",
    type=click.Path(file_okay=False),
    help="Keep the ledger in FOLDER and write its web pages there.",
)
def demo(keep: str | None) -> int:
    """Show the main tasks on a small club's games. The ledger is deleted unless --keep names a folder."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="ratings-demo-") as folder:
            return _run_steps(Path(folder))
    target = Path(keep).resolve()
    target.mkdir(parents=True, exist_ok=True)
    if (target / "ratings.db").exists():
        raise click.UsageError(f"{keep} already holds a ledger; name another folder")
    return _run_steps(target) or _write_pages(target)


def _run_steps(folder: Path) -> int:
    from ratings_ledger.cli.main import invoke

    database = str(folder / "ratings.db")
    placeholders: dict[str, int] = {}
    previous_folder = os.getcwd()
    try:
        os.chdir(EXAMPLES)
        for text, commands in STEPS:
            _print_comment(text)
            for command in (template.format(**placeholders) for template in commands):
                render.echo(f"$ ratings {command}")
                sys.stdout.flush()
                if code := invoke(["--db", database, *shlex.split(command)]):
                    return code
                if SEASON_FILE in command:
                    placeholders["before_late_game"] = _find_head_position(database)
                render.echo()
    finally:
        os.chdir(previous_folder)
    render.echo(NEXT_STEPS, nl=False)
    return 0


def _print_comment(text: str) -> None:
    """Print a text as lines of a shell comment."""
    render.echo(textwrap.fill(text, 80, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False))


def _write_pages(folder: Path) -> int:
    """Write the pages beside the ledger, and print which file to open."""
    from ratings_ledger.cli.main import invoke

    render.echo()
    _print_comment("Pages for members: every number with its explanation.")
    render.echo(f"$ ratings site {folder / 'site'}")
    if find_spec("jinja2") is None:
        render.note(WEB_EXTRA_MISSING)
        return 0
    sys.stdout.flush()
    return invoke(["--db", str(folder / "ratings.db"), "site", str(folder / "site"), "--title", "Demo club"])


def _find_head_position(database: str) -> int:
    with open_ledger(database).reading() as connection:
        return head(connection).position

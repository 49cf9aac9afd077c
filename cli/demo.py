"""`demo`: the main job on a small league, in a ledger that is thrown away, with the commands that do it."""

import os
import shlex
import sys
import tempfile
from pathlib import Path

import click

_INSTALLED = Path(__file__).parent / "_examples"
_CHECKOUT = Path(__file__).parent.parent / "examples"

STEPS = (
    ("Results go in: a club's season from a spreadsheet, and a game that turned up late.",
     ("import winter-league.csv --set game=club-catan --zone Europe/Berlin", "import late-game.jsonl")),
    ("Standings come out by replay. The late game counts where it was played.",
     ("standings club-catan-elo/all",)),
    ("Any moment of the past: the table on New Year's Eve.", ("standings club-catan-elo/all --as-of 2024-12-31",)),
    ("How one player's rating moved.", ("history mira club-catan-elo/3-4",)),
    ("And why: one game, pair by pair.", ("explain wl-18 club-catan-elo/3-4",)),
    ("What cron does at night: stored standings for other programs, promoted in one step.", ("rebuild",)),
    ("What an auditor does: recompute every hash. Silence means that all is well.", ("verify", "status")),
)  # fmt: skip

NEXT = """Next, in a folder of your own:
  ratings init                          a ledger in ratings.db
  ratings import games.csv --dry-run    what your own results would do
  ratings rules show club-catan-elo     what is scored, and what is assumed
  ratings --help                        everything else
"""


@click.command()
@click.option("--keep", metavar="FOLDER", type=click.Path(file_okay=False), help="Keep the ledger there.")
def demo(keep: str | None) -> int:
    """Show the main job on a small league, in a ledger that is thrown away."""
    if keep is not None:
        Path(keep).mkdir(parents=True, exist_ok=True)
        if (Path(keep) / "ratings.db").exists():
            raise click.UsageError(f"{keep} holds a ledger already; name another folder")
        return _play(Path(keep))
    with tempfile.TemporaryDirectory(prefix="ratings-demo-") as folder:
        return _play(Path(folder))


def _play(folder: Path) -> int:
    from cli.main import invoke

    examples = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
    database = str(folder / "ratings.db")
    before = os.getcwd()
    try:
        os.chdir(examples)
        for text, commands in (("A new ledger.", ("init",)), *STEPS):
            click.echo(f"\n# {text}")
            for command in commands:
                click.echo(f"$ ratings {command}")
                sys.stdout.flush()
                if code := invoke(["--db", database, *shlex.split(command)]):
                    return code
    finally:
        os.chdir(before)
    click.echo(f"\n{NEXT}", nl=False)
    return 0

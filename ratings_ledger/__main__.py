"""Run the program as `python -m ratings_ledger`, even if the command is not installed."""

from ratings_ledger.cli.start import run

run()

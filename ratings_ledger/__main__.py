"""Run the program as `python -m ratings_ledger`, also where no command is installed."""

from ratings_ledger.cli.start import run

run()

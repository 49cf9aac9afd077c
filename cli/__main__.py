"""`python -m cli`, where the program is not installed."""

from cli.start import run

run()

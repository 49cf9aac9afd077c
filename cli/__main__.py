"""`python -m cli`, for when the program is not installed."""

from cli.start import run

run()

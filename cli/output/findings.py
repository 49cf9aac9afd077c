"""A finding of `verify` as a line."""

from cli.output import render
from ledger.verification import Finding


def line_of(finding: Finding) -> str:
    """A finding as a line."""
    return render.plain(str(finding))

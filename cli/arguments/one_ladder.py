"""The ladder that a command asks for, at its coordinates; and what to say if there is none."""

from cli.arguments.command import print_note
from cli.arguments.facts import decoded
from ledger.store.opening import Ledger
from projections.queries.view import View


def view_of(ledger: Ledger, as_of: str | None, known_at: str | None, rules: str | None) -> View:
    """A ledger at the coordinates that were typed; what is odd is printed."""
    return View(ledger, as_of, known_at, rules, note=print_note, decode=decoded)

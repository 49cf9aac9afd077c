"""The ladder that a command asks for, at its coordinates; and what to say if there is none."""

from cli.arguments.command import print_note
from cli.arguments.facts import decoded
from ledger.store.opening import Ledger
from projections.queries.standings import ruleset_ids
from projections.queries.view import View
from projections.replay.ladders import parse_name


def view_of(ledger: Ledger, as_of: str | None, known_at: str | None, rules: str | None) -> View:
    """A ledger at the coordinates that were typed; what is odd is printed."""
    return View(ledger, as_of, known_at, rules, note=print_note, decode=decoded)


def ladder_second(ledger: Ledger, one: str, other: str) -> tuple[str, str]:
    """A player or game and a ladder, in whichever order they were given."""
    with ledger.reading() as connection:
        known = ruleset_ids(connection)
    if parse_name(other).ruleset_id in known:
        return one, other
    swapped = parse_name(one).ruleset_id in known or ("/" in one and "/" not in other)
    return (other, one) if swapped else (one, other)

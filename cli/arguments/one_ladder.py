"""The ladder that a command asks for, at its coordinates; and what to say if there is none."""

from collections.abc import Iterator
from contextlib import contextmanager

import click
from sqlalchemy import Connection

from cli.arguments.command import print_note
from cli.arguments.facts import decoded
from ledger.store.opening import Ledger
from projections.facts.columns import Facts
from projections.queries.standings import ruleset_ids
from projections.queries.view import Question, View
from projections.replay.containment import RuleFailure, told_with_game
from projections.replay.ladders import parse_name


@contextmanager
def failures_told(facts: Facts, connection: Connection) -> Iterator[None]:
    """A ladder that cannot be replayed becomes a refusal."""
    try:
        yield
    except RuleFailure as problem:
        raise click.ClickException(told_with_game(problem, facts, connection)) from None


def view_of(ledger: Ledger, as_of: str | None, known_at: str | None, rules: str | None) -> View:
    """A ledger at the coordinates that were typed; what is odd is printed."""
    return View(ledger, as_of, known_at, rules, note=print_note, decode=decoded)


@contextmanager
def reading_of(
    ledger: Ledger, ladder: str, as_of: str | None, known_at: str | None, rules: str | None
) -> Iterator[Question]:
    """The ladders at coordinates in one ladder's zone; unknown names are usage errors, a failing rule a refusal."""
    with view_of(ledger, as_of, known_at, rules).asking(ladder) as asked:
        yield asked


def ladder_second(ledger: Ledger, one: str, other: str) -> tuple[str, str]:
    """A player or game and a ladder, in whichever order they were given."""
    with ledger.reading() as connection:
        known = ruleset_ids(connection)
    if parse_name(other).ruleset_id in known:
        return one, other
    swapped = parse_name(one).ruleset_id in known or ("/" in one and "/" not in other)
    return (other, one) if swapped else (one, other)

"""The ladder that a command asks for, at its coordinates; and what to say if there is none."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import click
from sqlalchemy import Connection

from cli.arguments.facts import decoded
from cli.arguments.moments import known_position, note_future, played_instant
from cli.output import render
from cli.output.times import Times, times_of
from ledger.rejections import did_you_mean, shown
from ledger.store.opening import Ledger
from projections.admission.new_ladders import labelled, slip
from projections.facts.columns import Facts
from projections.facts.players import known_players
from projections.queries.explanation import UnknownGame
from projections.queries.standings import (
    Coordinates,
    Ladders,
    UnknownLadder,
    date_zone,
    ruleset_ids,
    versions_of,
)
from projections.replay.containment import RuleFailure, told_with_game
from projections.replay.ladders import parse_name


class Reading(NamedTuple):
    """An opened ledger with its ladders at the coordinates asked for."""

    connection: Connection
    ladders: Ladders
    coordinates: Coordinates
    times: Times


@contextmanager
def failures_told(facts: Facts, connection: Connection) -> Iterator[None]:
    """A ladder that cannot be replayed becomes a refusal."""
    try:
        yield
    except RuleFailure as problem:
        raise click.ClickException(told_with_game(problem, facts, connection)) from None


@contextmanager
def failures_noted(facts: Facts, connection: Connection) -> Iterator[None]:
    """A ladder that cannot be replayed is noted, and the others continue."""
    try:
        yield
    except RuleFailure as problem:
        render.note(f"ratings: {told_with_game(problem, facts, connection)}")


def note_unusable(facts: Facts) -> None:
    """Say which rulesets do not run here."""
    for unusable in facts.unusable.values():
        render.note(f"ratings: {unusable.reason}")


@contextmanager
def reading_of(
    ledger: Ledger, ladder: str, as_of: str | None, known_at: str | None, rules: str | None
) -> Iterator[Reading]:
    """The ladders at coordinates in one ladder's zone; unknown names are usage errors, a failing rule a refusal."""
    with ledger.reading() as connection:
        try:
            times, zone = times_of(connection), date_zone(connection, ladder)
            facts = decoded(connection, known_position(connection, known_at, zone))
            versions_of(facts, ladder, rules)
            coordinates = Coordinates(played_instant(as_of, zone), facts.position, rules).of(facts)
            found = Ladders(facts, coordinates.as_of, rules)
            note_future(as_of, zone)
            with failures_told(facts, connection):
                _note_idle(found, ladder, times)
                yield Reading(connection, found, coordinates, times)
        except UnknownLadder as problem:
            raise click.UsageError(str(problem)) from None
        except UnknownGame as problem:
            raise click.ClickException(str(problem)) from None


def refuse_unknown(facts: Facts, player: str) -> None:
    """Raises `click.ClickException` (player-unknown) for somebody the facts know nothing about."""
    if not facts.knows(player):
        hint = did_you_mean(player, known_players(facts))
        raise click.ClickException(f"player-unknown: nothing is recorded about {shown(player)}{hint}")


def ladder_second(ledger: Ledger, one: str, other: str) -> tuple[str, str]:
    """A player or game and a ladder, in whichever order they were given."""
    with ledger.reading() as connection:
        known = ruleset_ids(connection)
    if parse_name(other).ruleset_id in known:
        return one, other
    swapped = parse_name(one).ruleset_id in known or ("/" in one and "/" not in other)
    return (other, one) if swapped else (one, other)


def note_other_ladder(facts: Facts, ladder: str) -> None:
    """Say which ladder was probably meant instead of one without a game: one with a similar label."""
    name = parse_name(ladder)
    known = facts.rulesets.get(name.ruleset_id, [])
    if known and (found := slip(name, known, labelled(facts, known))) is not None:
        part, label = known[0].ruleset.partition.by[found[0]], name.values[found[0]]
        render.note(f"note: {ladder} never had a game; {part} {label}; did you mean {found[1]}?")


def _note_idle(ladders: Ladders, ladder: str, times: Times) -> None:
    """If nothing had been played on a ladder by then, say when it began, or which other was probably meant."""
    if ladders.first(ladder) is not None:
        return
    if ladders.as_of is not None and (first := Ladders(ladders.facts, None, ladders.rules).first(ladder)):
        instant, what = first
        render.note(f"note: the first {what} on {ladder} was at {times.second(instant)}")
    else:
        note_other_ladder(ladders.facts, ladder)

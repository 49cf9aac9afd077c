"""Aliases: names in tables for players whom the ledger calls otherwise, as somebody said.

    ana = anna
    Schmidt, A. = Anna Schmidt
    Jon = Jon

A table's names are replaced before anything else sees them. A name that stands for itself is somebody of their own,
however close to another name it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.canonical import parse_object
from ratings_ledger.ledger.events.fields import read_player, to_nfc
from ratings_ledger.ledger.rejections import Refused, Rejection, quote

MEMBERS = ("player", "replaces", "referee")


class Alias(NamedTuple):
    """A name, the player who is meant, and where that is said."""

    name: str
    player: str
    file: str
    line: int | None


def alias_of(name: str, player: str, file: str, line: int | None) -> Alias:
    """Return a name and a player as they were written. Raises `Refused` (bad-alias) if they cannot be that."""
    name = to_nfc(name.strip())
    if not name:
        raise Refused("bad-alias", "the name is missing: write NAME = PLAYER")
    try:
        return Alias(name, read_player(player.strip()), file, line)
    except Refused as problem:
        raise Refused("bad-alias", f"{quote(name)} stands for no player: {problem.message}") from None


def aliases_in(lines: Iterable[tuple[int, bytes]], file: str) -> Iterator[Alias | Rejection]:
    """Yield the aliases in the numbered lines of a file, and what is wrong with others."""
    for number, line in lines:
        try:
            name, equals, player = line.decode().partition("=")
            if not equals or "=" in player:
                raise Refused("bad-alias", f"{quote(line.decode())} is not NAME = PLAYER")
            yield alias_of(name, player, file, number)
        except UnicodeDecodeError:
            yield Rejection("bad-alias", "the line is not UTF-8; save the file as UTF-8", file, number)
        except Refused as problem:
            yield problem.rejection(file, number)


def agreed(aliases: Iterable[Alias | Rejection]) -> tuple[dict[str, str], list[Rejection]]:
    """Return the players by name, and what is wrong. Of two files that name one player differently, the later one
    decides.
    """
    known, problems = dict[str, Alias](), list[Rejection]()
    for alias in aliases:
        if isinstance(alias, Rejection):
            problems.append(alias)
            continue
        before = known.get(alias.name)
        if before is not None and before.file == alias.file and before.player != alias.player:
            told = f"{quote(alias.name)} is {quote(before.player)}{_in(before)} and {quote(alias.player)}; choose one"
            problems.append(Rejection("bad-alias", told, alias.file, alias.line))
        known[alias.name] = alias
    for alias in known.values():
        if (further := known.get(alias.player)) is not None and further.player != further.name:
            told = f"{quote(alias.player)} is itself an alias, of {quote(further.player)}{_in(further)}"
            end = _end(alias, known)
            right = f"write {alias.name} = {end}" if end else "they lead back to each other"
            problems.append(Rejection("bad-alias", f"{told}; {right}", alias.file, alias.line))
    problems.sort(key=lambda problem: problem.line or 0)
    return {alias.name: alias.player for alias in known.values()}, problems


def of_their_own(aliases: Mapping[str, str]) -> frozenset[str]:
    """Return the names that stand for themselves."""
    return frozenset(name for name, player in aliases.items() if name == player)


def with_answers(aliases: Mapping[str, str], answers: Mapping[str, str]) -> dict[str, str]:
    """Aliases with answers about names, some of which they stand for; none leads to another.

    >>> with_answers({"annie": "ana"}, {"ana": "anna"})
    {'annie': 'anna', 'ana': 'anna'}
    """
    return {name: answers.get(player, player) for name, player in aliases.items()} | {**answers}


def _in(alias: Alias) -> str:
    return "" if alias.line is None else f" (line {alias.line})"


def _end(alias: Alias, known: Mapping[str, Alias]) -> str | None:
    """Return whom a chain of aliases leads to, or None for a circle."""
    seen = {alias.name}
    while (further := known.get(alias.player)) is not None and further.player != further.name:
        if further.name in seen:
            return None
        seen.add(further.name)
        alias = further
    return alias.player


def under_aliases(event: Any, aliases: Mapping[str, str], used: dict[str, str]) -> Any:
    """Return an event of a table with players in the place of names; `used` gets those that occur.

    What is no event is left as it is: whoever reads it says what is wrong. Is a `Refused` if a game has one player
    twice only by an alias.
    """
    if isinstance(event, bytes):
        try:
            event = parse_object(event)
        except Refused:
            return event
    data = event.get("data") if isinstance(event, dict) else None
    if not isinstance(data, dict):
        return event
    participants = data.get("participants")
    named = [one for one in participants if isinstance(one, dict)] if isinstance(participants, list) else []
    names = dict[str, str]()
    for holder in (data, *named):
        for member in MEMBERS:
            if not isinstance(written := holder.get(member), str):
                continue
            name = to_nfc(written)
            if (player := aliases.get(name)) and player != name:
                holder[member] = used[name] = player
            if holder is not data and member == "player":
                other = names.setdefault(holder[member], name)
                if other != name:
                    return Refused("player-twice", _both(other, name, holder[member]))
    return event


def _both(one: str, other: str, player: str) -> str:
    """Return what is wrong if two names of one game are one player."""
    if player in (one, other):
        alias = other if player == one else one
        return f"{quote(alias)} is an alias of {quote(player)}, who takes part in the game as well"
    return f"{quote(one)} and {quote(other)} are both aliases of {quote(player)}, and take part in one game"

"""Read and apply aliases: names in tables for players with another id in the ledger.

    ana = anna
    Schmidt, A. = Anna Schmidt
    Jon = Jon

The names in a table are replaced before any other check. A name that is its own alias is a separate player, even if it
is close to another name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.canonical import parse_object
from ratings_ledger.ledger.events.fields import read_player, to_nfc
from ratings_ledger.ledger.rejections import Refused, Rejection, quote

MEMBERS = ("player", "replaces", "referee")


class Alias(NamedTuple):
    """A name, its player, and the file and line of the definition (None for a line that is unknown)."""

    name: str
    player: str
    file: str
    line: int | None


def parse_alias(name: str, player: str, file: str, line: int | None) -> Alias:
    """Parse a name and a player as written. Raises `Refused` (bad-alias) if they are invalid."""
    name = to_nfc(name.strip())
    if not name:
        raise Refused("bad-alias", "the name is missing; write NAME = PLAYER")
    try:
        return Alias(name, read_player(player.strip()), file, line)
    except Refused as problem:
        raise Refused("bad-alias", f"the player of {quote(name)} is not valid: {problem.message}") from None


def read_aliases(lines: Iterable[tuple[int, bytes]], file: str) -> Iterator[Alias | Rejection]:
    """Read aliases from the numbered lines of a file, and yield refusals of invalid lines."""
    for number, line in lines:
        try:
            name, equals, player = line.decode().partition("=")
            if not equals or "=" in player:
                raise Refused("bad-alias", f"{quote(line.decode())} is not an alias; write NAME = PLAYER")
            yield parse_alias(name, player, file, number)
        except UnicodeDecodeError:
            yield Rejection("bad-alias", "the line is not UTF-8; save the file as UTF-8", file, number)
        except Refused as problem:
            yield problem.to_rejection(file, number)


def merge_aliases(aliases: Iterable[Alias | Rejection]) -> tuple[dict[str, str], list[Rejection]]:
    """Merge aliases into a dictionary of players by name; also return all refusals.

    If two files define a name, the later one counts.
    """
    known, problems = dict[str, Alias](), list[Rejection]()
    for alias in aliases:
        if isinstance(alias, Rejection):
            problems.append(alias)
            continue
        earlier = known.get(alias.name)
        if earlier is not None and earlier.file == alias.file and earlier.player != alias.player:
            first = f"{quote(earlier.player)}{_describe_line(earlier)}"
            message = f"{quote(alias.name)} is {first} and {quote(alias.player)}; choose one"
            problems.append(Rejection("bad-alias", message, alias.file, alias.line))
        known[alias.name] = alias
    for alias in known.values():
        if (next_alias := known.get(alias.player)) is not None and next_alias.player != next_alias.name:
            message = (
                f"{quote(alias.player)} is itself an alias, of {quote(next_alias.player)}{_describe_line(next_alias)}"
            )
            end = _find_end(alias, known)
            remedy = f"write {alias.name} = {end}" if end else "delete one of these aliases, because they form a circle"
            problems.append(Rejection("bad-alias", f"{message}; {remedy}", alias.file, alias.line))
    problems.sort(key=lambda problem: problem.line or 0)
    return {alias.name: alias.player for alias in known.values()}, problems


def list_own_aliases(aliases: Mapping[str, str]) -> frozenset[str]:
    """Return the names that are their own aliases."""
    return frozenset(name for name, player in aliases.items() if name == player)


def add_answers(aliases: Mapping[str, str], answers: Mapping[str, str]) -> dict[str, str]:
    """Add answers (players by name) to aliases; also replace players who are names in answers, so that no chain arises.

    >>> add_answers({"annie": "ana"}, {"ana": "anna"})
    {'annie': 'anna', 'ana': 'anna'}
    """
    return {name: answers.get(player, player) for name, player in aliases.items()} | {**answers}


def _describe_line(alias: Alias) -> str:
    return "" if alias.line is None else f" (line {alias.line})"


def _find_end(alias: Alias, known: Mapping[str, Alias]) -> str | None:
    """Find the player at the end of a chain of aliases; None for a circle."""
    visited = {alias.name}
    while (next_alias := known.get(alias.player)) is not None and next_alias.player != next_alias.name:
        if next_alias.name in visited:
            return None
        visited.add(next_alias.name)
        alias = next_alias
    return alias.player


def apply_aliases(event: Any, aliases: Mapping[str, str], used: dict[str, str]) -> Any:
    """Replace names in an event of a table by their players, and add the replaced names with their players to `used`.

    Invalid events are returned unchanged, because later code refuses them. Returns a `Refused` if an alias makes one
    player take part in a game twice.
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
    holders = (
        [participant for participant in participants if isinstance(participant, dict)]
        if isinstance(participants, list)
        else []
    )
    names = dict[str, str]()
    for holder in (data, *holders):
        for member in MEMBERS:
            if not isinstance(typed := holder.get(member), str):
                continue
            name = to_nfc(typed)
            if (player := aliases.get(name)) and player != name:
                holder[member] = used[name] = player
            if holder is not data and member == "player":
                first_name = names.setdefault(holder[member], name)
                if first_name != name:
                    return Refused("player-twice", _describe_conflict(first_name, name, holder[member]))
    return event


def _describe_conflict(first: str, second: str, player: str) -> str:
    """Describe the conflict of two names in one game that stand for one player."""
    if player in (first, second):
        alias = second if player == first else first
        return f"{quote(alias)} is an alias of {quote(player)}, who takes part in the game as well; correct one of them"
    message = f"{quote(first)} and {quote(second)} take part in one game, but are both aliases of {quote(player)}"
    return f"{message}; correct an alias or a name"

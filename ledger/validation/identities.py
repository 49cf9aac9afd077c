"""Who is who: the ids that live renames make one person, and what renames and games may not do to them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from sqlalchemy import Connection

from ratings_ledger.ledger.events.revisions import EventLookup, KnownEvent, live_games
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store.log import head, read_live

Name = TypeVar("Name")


def resolve_renames(renames: Iterable[tuple[Name, Name]]) -> tuple[dict[Name, Name], list[int]]:
    """Return what each id is renamed to, and which renames, by index, would form a circle and so do not count.

    >>> resolve_renames([("a", "b"), ("b", "c"), ("c", "a")])
    ({'a': 'b', 'b': 'c'}, [2])
    """
    found: dict[Name, Name] = {}
    circular = []
    for index, (player, new_player) in enumerate(renames):
        name = new_player
        while name in found and name != player:
            name = found[name]
        if name == player:
            circular.append(index)
        else:
            found[player] = new_player
    return found, circular


class Identities:
    """The live renames. Chains lead to the current id; each id is renamed at most once, and never in a circle."""

    def __init__(self, renames: Iterable[tuple[str, str]] = ()) -> None:
        self._next, _ = resolve_renames(renames)

    def current(self, player: str) -> str:
        """Return the id that a player now has."""
        while player in self._next:
            player = self._next[player]
        return player

    def ids(self, player: str) -> set[str]:
        """Return all ids of the person with this one."""
        person = self.current(player)
        return {person} | {old for old in self._next if self.current(old) == person}

    def list_ids(self, player: str) -> list[str]:
        """Return all ids of a person: the one that is asked for, then the others."""
        return [player, *sorted(self.ids(player) - {player})]

    def present(self, game: dict[str, Any]) -> dict[str, Any]:
        """Return a game's data with its players under their current ids."""
        if not self._next:
            return game
        renamed = [
            {name: self.current(value) if name in ("player", "replaces") else value for name, value in one.items()}
            for one in game["participants"]
        ]
        return {**game, "participants": renamed}

    def __bool__(self) -> bool:
        return bool(self._next)

    def add(self, player: str, new_player: str) -> None:
        """Add a rename."""
        self._next[player] = new_player

    def remove(self, player: str) -> None:
        """Remove the rename of an id."""
        del self._next[player]

    def refuse_game(self, game: Mapping[str, Any]) -> None:
        """Raises `Refused` (player-twice) if one person would take part in a game under two ids."""
        seen: dict[str, str] = {}
        for participant in game["participants"] if self._next else ():
            name = participant["player"]
            other = seen.setdefault(self.current(name), name)
            if other != name:
                raise Refused("player-twice", f"{quote(other)} and {quote(name)} are one person since a rename")

    def refuse_rename(
        self, player: str, new_player: str, position_of: Callable[[str], int | None] = lambda _: None
    ) -> None:
        """Raises `Refused` (renamed-already, rename-loop) if a rename does not fit the others. `position_of` says where
        the live rename of an id is recorded, if it is.
        """
        if player in self._next:
            there = self._next[player]
            remedy = f"rename {quote(self.current(player))}, or {_withdraw(position_of(player))}"
            raise Refused("renamed-already", f"{quote(player)} is already renamed to {quote(there)}; {remedy}")
        if player == new_player:
            raise Refused("rename-loop", f"{quote(player)} is the same id; a rename needs another one")
        if self.current(new_player) == player:
            way = f"{_withdraw(position_of(new_player))}; if anything is recorded under {quote(player)}, rename it then"
            raise Refused("rename-loop", f"{quote(new_player)} already leads to {quote(player)}; to go back, {way}")


def _withdraw(position: int | None) -> str:
    """Return how a rename at this position is withdrawn."""
    if position is None:
        return "leave out that rename, or withdraw it first"
    return f"withdraw that rename first: ratings void --event {position} --reason WHY"


def identities(connection: Connection, until: int | None = None) -> Identities:
    """Return who is who after the events up to a position (default: the head)."""
    last = head(connection).position if until is None else until
    renames = read_live(connection, until=last, type_name="player.renamed")
    return Identities((event.data["player"], event.data["new_player"]) for event in renames)


def club_identities(connection: Connection, until: int) -> Identities:
    """Return which club is which after the events up to a position."""
    renames = read_live(connection, until=until, type_name="club.renamed")
    return Identities((event.data["club"], event.data["new_club"]) for event in renames)


def players_of(event: KnownEvent) -> set[str]:
    """Return the ids of the players that an event is about: its own, or those of its game's participants."""
    data = event.data["game"] if event.type == "game.corrected" else event.data
    participants = data.get("participants", ()) if event.type.startswith("game.") else ()
    named = {data.get("player"), data.get("new_player"), *(participant["player"] for participant in participants)}
    return named - {None}


def clubs_of(event: KnownEvent) -> set[str]:
    """Return the clubs that an event is about: those it renames, or those of its game's participants."""
    data = event.data["game"] if event.type == "game.corrected" else event.data
    if event.type == "club.renamed":
        return {data["club"], data["new_club"]}
    participants = data.get("participants", ()) if event.type.startswith("game.") else ()
    return {participant["club"] for participant in participants if "club" in participant}


def find_meeting(candidates: Iterable[KnownEvent], events: EventLookup, some: set[str], others: set[str]) -> str | None:
    """Return the id of a live game in which one of `some` met one of `others`, or None.

    `candidates` are all events that may be about one; `events` says how the game stands after all corrections.
    """
    fitting = (event for event in candidates if (players := players_of(event)) & some and players & others)
    for game in live_games(fitting, events):
        players = {participant["player"] for participant in game.data["participants"]}
        if players & some and players & others:
            return str(game.data["game_id"])
    return None


def finished_games(candidates: Iterable[KnownEvent], events: EventLookup, ids: set[str]) -> list[int]:
    """Return when the live games that a player finished ended, in order; `candidates` are all events that may be about
    one.
    """
    return sorted(
        game.occurred_at
        for game in live_games(candidates, events)
        if not game.data.get("aborted", False)
        for participant in game.data["participants"]
        if participant["player"] in ids and participant.get("status", "finished") == "finished"
    )

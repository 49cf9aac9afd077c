"""Identities: the ids that live renames join to one person, and the renames and games that would contradict them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from sqlalchemy import Connection

from ratings_ledger.ledger.events.revisions import EventLookup, KnownEvent, live_games
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store.log import read_live

Name = TypeVar("Name")


def resolve_renames(renames: Iterable[tuple[Name, Name]]) -> tuple[dict[Name, Name], list[int]]:
    """Return the new id of each renamed id, and the indices of renames that would form a circle and do not count.

    >>> resolve_renames([("a", "b"), ("b", "c"), ("c", "a")])
    ({'a': 'b', 'b': 'c'}, [2])
    """
    next_names: dict[Name, Name] = {}
    circular = []
    for index, (player, new_player) in enumerate(renames):
        name = new_player
        while name in next_names and name != player:
            name = next_names[name]
        if name == player:
            circular.append(index)
        else:
            next_names[player] = new_player
    return next_names, circular


class Identities:
    """The live renames. Chains lead to the current id; each id is renamed at most once, and never in a circle."""

    def __init__(self, renames: Iterable[tuple[str, str]] = ()) -> None:
        self._next, _ = resolve_renames(renames)

    def current(self, player: str) -> str:
        """Return the current id of a player."""
        while player in self._next:
            player = self._next[player]
        return player

    def ids(self, player: str) -> set[str]:
        """Return all ids of the person with this one."""
        person = self.current(player)
        return {person} | {old for old in self._next if self.current(old) == person}

    def list_ids(self, player: str) -> list[str]:
        """List all ids of a person: the given one first, then the others."""
        return [player, *sorted(self.ids(player) - {player})]

    def present(self, game: dict[str, Any]) -> dict[str, Any]:
        """Return a game's data with its players under their current ids."""
        if not self._next:
            return game
        renamed = [
            {
                name: self.current(value) if name in ("player", "replaces") else value
                for name, value in participant.items()
            }
            for participant in game["participants"]
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
        """Raise `Refused` (player-twice) if one person would take part in a game under two ids."""
        id_of_person: dict[str, str] = {}
        for participant in game["participants"] if self._next else ():
            name = participant["player"]
            first_id = id_of_person.setdefault(self.current(name), name)
            if first_id != name:
                raise Refused("player-twice", f"{quote(first_id)} and {quote(name)} are one person since a rename")

    def refuse_rename(
        self, player: str, new_player: str, position_of: Callable[[str], int | None] = lambda _: None
    ) -> None:
        """Raise `Refused` (renamed-already, rename-loop) if a rename contradicts the others.

        `position_of` returns the position of the live rename of an id, or None.
        """
        if player in self._next:
            new_id = self._next[player]
            remedy = f"rename {quote(self.current(player))}, or {_describe_withdrawal(position_of(player))}"
            raise Refused("renamed-already", f"{quote(player)} is already renamed to {quote(new_id)}; {remedy}")
        if player == new_player:
            raise Refused("rename-loop", f"the new id is also {quote(player)}; a rename needs a different one")
        if self.current(new_player) == player:
            way_back = _describe_withdrawal(position_of(new_player))
            way_back += f"; if anything is recorded under {quote(player)}, rename it then"
            raise Refused(
                "rename-loop", f"{quote(new_player)} already leads to {quote(player)}; to go back, {way_back}"
            )


def _describe_withdrawal(position: int | None) -> str:
    """Describe how to withdraw a rename at this position."""
    if position is None:
        return "leave out that rename, or withdraw it first"
    return f"withdraw that rename first: ratings void --event {position} --reason WHY"


def identities(connection: Connection, until: int | None = None) -> Identities:
    """Return the identities of players after the events up to a position (default: the head)."""
    renames = read_live(connection, until=until, type_name="player.renamed")
    return Identities((event.data["player"], event.data["new_player"]) for event in renames)


def club_identities(connection: Connection, until: int) -> Identities:
    """Return the identities of clubs after the events up to a position."""
    renames = read_live(connection, until=until, type_name="club.renamed")
    return Identities((event.data["club"], event.data["new_club"]) for event in renames)


def players_of(event: KnownEvent) -> set[str]:
    """Return the ids of the players in an event: its own, or those of its game's participants."""
    data = event.data["game"] if event.type == "game.corrected" else event.data
    participants = data.get("participants", ()) if event.type.startswith("game.") else ()
    names = {data.get("player"), data.get("new_player"), *(participant["player"] for participant in participants)}
    return names - {None}


def clubs_of(event: KnownEvent) -> set[str]:
    """Return the clubs in an event: those it renames, or those of its game's participants."""
    data = event.data["game"] if event.type == "game.corrected" else event.data
    if event.type == "club.renamed":
        return {data["club"], data["new_club"]}
    participants = data.get("participants", ()) if event.type.startswith("game.") else ()
    return {participant["club"] for participant in participants if "club" in participant}


def find_meeting(candidates: Iterable[KnownEvent], events: EventLookup, left: set[str], right: set[str]) -> str | None:
    """Find a live game in which a player of `left` met a player of `right`; return its id, or None.

    `candidates` are all events that may concern such a game; `events` has its revisions.
    """
    fitting = (event for event in candidates if (players := players_of(event)) & left and players & right)
    for game in live_games(fitting, events):
        players = {participant["player"] for participant in game.data["participants"]}
        if players & left and players & right:
            return str(game.data["game_id"])
    return None


def finished_games(candidates: Iterable[KnownEvent], events: EventLookup, ids: set[str]) -> list[int]:
    """Return the times at which the live games that a player finished ended, in order.

    `candidates` are all events that may concern such a game.
    """
    return sorted(
        game.occurred_at
        for game in live_games(candidates, events)
        if not game.data.get("aborted", False)
        for participant in game.data["participants"]
        if participant["player"] in ids and participant.get("status", "finished") == "finished"
    )

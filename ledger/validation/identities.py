"""Join the ids that belong to one person or club because of renames, and refuse renames and games that contradict them.

Live renames form chains. Each chain ends at the current id of a person, or the current name of a club.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar

from sqlalchemy import Connection

from ratings_ledger.ledger.events.revisions import EventLookup, KnownEvent, live_games
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store.log import read_live

Name = TypeVar("Name")


def resolve_renames(renames: Iterable[tuple[Name, Name]]) -> tuple[dict[Name, Name], list[int]]:
    """Return the next id of each renamed id, and the indices of the ignored renames, which would form a circle.

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
    """The live renames of players or clubs. Each id is renamed at most once; chains of renames end at a current id."""

    def __init__(self, renames: Iterable[tuple[str, str]] = ()) -> None:
        self._next, _ = resolve_renames(renames)

    def current(self, player: str) -> str:
        """Return the current id of a player."""
        while player in self._next:
            player = self._next[player]
        return player

    def ids(self, player: str) -> set[str]:
        """Return all ids of the person with this id."""
        person = self.current(player)
        return {person} | {old for old in self._next if self.current(old) == person}

    def list_ids(self, player: str) -> list[str]:
        """List all ids of a person: this id first, then the others, sorted."""
        return [player, *sorted(self.ids(player) - {player})]

    def use_current_ids(self, game: dict[str, Any]) -> dict[str, Any]:
        """Return a game's data with the current ids of its players."""
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
                message = f"{quote(first_id)} and {quote(name)} take part, but a rename made them one person"
                raise Refused("player-twice", f"{message}; correct one of the names")

    def refuse_rename(
        self,
        player: str,
        new_player: str,
        find_position: Callable[[str], int | None] = lambda _: None,
        noun: Literal["id", "name"] = "id",
    ) -> None:
        """Raise `Refused` (renamed-already, rename-loop) if a rename contradicts the live renames.

        `find_position` returns the position of the live rename of an id, or None. `noun` is what a message calls the
        ids: clubs have names.
        """
        if player in self._next:
            new_id = self._next[player]
            remedy = f"rename {quote(self.current(player))} instead, or {_describe_withdrawal(find_position(player))}"
            raise Refused("renamed-already", f"{quote(player)} is already renamed to {quote(new_id)}; {remedy}")
        if player == new_player:
            raise Refused("rename-loop", f"{quote(player)} cannot be renamed to itself; choose a different new {noun}")
        if self.current(new_player) == player:
            withdrawal = _describe_withdrawal(find_position(new_player))
            next_id = self._next[new_player]
            chain = quote(next_id) if next_id == player else f"{quote(next_id)}, and so to {quote(player)}"
            raise Refused(
                "rename-loop",
                f"{quote(new_player)} is already renamed to {chain}; to reverse this, {withdrawal}; then "
                f"rename {quote(player)} if anything is recorded under that {noun}",
            )


def _describe_withdrawal(position: int | None) -> str:
    """Describe how to withdraw the rename at this position; None for a rename that is not in the log."""
    if position is None:
        return "leave out that rename, or withdraw it first"
    return f"withdraw that rename first: ratings void --event {position} --reason TEXT"


def read_identities(connection: Connection, until: int | None = None) -> Identities:
    """Return the identities of players as of a position (default: the head)."""
    renames = read_live(connection, until=until, type_name="player.renamed")
    return Identities((event.data["player"], event.data["new_player"]) for event in renames)


def read_club_identities(connection: Connection, until: int) -> Identities:
    """Return the identities of clubs as of a position."""
    renames = read_live(connection, until=until, type_name="club.renamed")
    return Identities((event.data["club"], event.data["new_club"]) for event in renames)


def list_players(event: KnownEvent) -> set[str]:
    """Return the ids of the players that an event names, including the participants of its game."""
    data = event.data["game"] if event.type == "game.corrected" else event.data
    participants = data.get("participants", ()) if event.type.startswith("game.") else ()
    names = {data.get("player"), data.get("new_player"), *(participant["player"] for participant in participants)}
    return names - {None}


def list_clubs(event: KnownEvent) -> set[str]:
    """Return the clubs that an event names: the clubs of a rename, or of the participants of its game."""
    data = event.data["game"] if event.type == "game.corrected" else event.data
    if event.type == "club.renamed":
        return {data["club"], data["new_club"]}
    participants = data.get("participants", ()) if event.type.startswith("game.") else ()
    return {participant["club"] for participant in participants if "club" in participant}


def find_shared_game(
    candidates: Iterable[KnownEvent], events: EventLookup, left: set[str], right: set[str]
) -> str | None:
    """Return the id of a live game that an id of `left` and an id of `right` both played, or None.

    `candidates` are all events that may concern such a game; `events` looks up their revisions.
    """
    game_events = (event for event in candidates if (players := list_players(event)) & left and players & right)
    for game in live_games(game_events, events):
        players = {participant["player"] for participant in game.data["participants"]}
        if players & left and players & right:
            return str(game.data["game_id"])
    return None


def list_finish_times(candidates: Iterable[KnownEvent], events: EventLookup, ids: set[str]) -> list[int]:
    """List the times, in order, of the live games that the player with these ids finished.

    `candidates` are all events that may concern such a game.
    """
    return sorted(
        game.occurred_at
        for game in live_games(candidates, events)
        if not game.data.get("aborted", False)
        for participant in game.data["participants"]
        if participant["player"] in ids and participant.get("status", "finished") == "finished"
    )

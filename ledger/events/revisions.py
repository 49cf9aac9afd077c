"""Revisions: which event supersedes which, by corrections, voids and reinstatements, and what is live after them.

The events of a game form a chain of revisions, each superseding the previous one; so do the withdrawals of any other
event. The database lets only the last event of a chain be superseded: of two concurrent corrections, one fails.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from ratings_ledger.ledger.events.canonical import dump, parse_object
from ratings_ledger.ledger.events.types import Draft, corrected_game
from ratings_ledger.ledger.rejections import Refused, quote

GAME_EVENTS = frozenset({"game.recorded", "game.corrected", "game.voided", "game.reinstated"})
# the type of an unreadable event in the log: it changes nothing, but keeps its place in a chain
UNREADABLE = "unreadable"
SUPERSEDING = frozenset({"game.corrected", "game.voided", "game.reinstated", "event.voided"})
_NEVER_VOIDED = GAME_EVENTS | {UNREADABLE}


# the columns by which events are looked up
Column = Literal["subject", "event_id", "supersedes"]


class KnownEvent(NamedTuple):
    """An event that is in the log, or about to be appended to it."""

    event_id: str
    type: str
    occurred_at: int
    data: dict[str, Any]
    position: int | None = None


class EventLookup(Protocol):
    """A source of events to look up: the log, or the events that wait to be appended to it."""

    def find_by_column(self, column: Column, value: str) -> Iterable[KnownEvent]:
        """Return the events with this value in a column, in order."""

    def about(self, subject: str) -> list[KnownEvent]:
        """Return the events about a subject, in order."""
        return list(self.find_by_column("subject", subject))

    def event(self, event_id: str) -> KnownEvent | None:
        """Return the event with this id."""
        return next(iter(self.find_by_column("event_id", event_id)), None)

    def successor(self, event_id: str) -> KnownEvent | None:
        """Return the event that supersedes the one with this id."""
        return next(iter(self.find_by_column("supersedes", event_id)), None)

    def suggest_similar(self, kind: str, name: str, to_current_id: Callable[[str], str] = str) -> str:
        """Return the end of a message about an unknown game, league or player: a suggestion, or nothing."""
        return ""

    def list_league_names(self) -> list[str]:
        """Return the names of the live leagues, as far as a message may list them."""
        return []


@dataclass
class CombinedEvents(EventLookup):
    """The log together with the events that wait to be appended to it."""

    log: EventLookup
    waiting: EventLookup

    def find_by_column(self, column: Column, value: str) -> Iterator[KnownEvent]:
        """Yield the events with this value in a column, in order."""
        yield from self.log.find_by_column(column, value)
        yield from self.waiting.find_by_column(column, value)

    def suggest_similar(self, kind: str, name: str, to_current_id: Callable[[str], str] = str) -> str:
        """Return a suggestion of a game, league or player in the log, or nothing."""
        return self.log.suggest_similar(kind, name, to_current_id)

    def list_league_names(self) -> list[str]:
        """Return the names of the live leagues in the log."""
        return self.log.list_league_names()


class RevisedGame(NamedTuple):
    """A game after its revisions: data, the time it ended, whether it is voided, and the last event about it."""

    data: dict[str, Any]
    occurred_at: int
    voided: bool
    last: KnownEvent


def live_game(history: Iterable[KnownEvent]) -> RevisedGame | None:
    """Return a game after the given events about it, in order; None before it is recorded."""
    game = None
    for event in history:
        if event.type == "game.recorded":
            game = RevisedGame(event.data, event.occurred_at, False, event)
        elif game is not None and event.type == "game.corrected":
            game = RevisedGame(*corrected_game(event.data, game.occurred_at), False, event)
        elif game is not None and event.type in GAME_EVENTS:
            game = game._replace(voided=event.type == "game.voided", last=event)
        elif game is not None and event.type == UNREADABLE:
            game = game._replace(last=event)
    return game


def live_games(candidates: Iterable[KnownEvent], events: EventLookup) -> Iterator[RevisedGame]:
    """Yield the current state of the games that the candidates record or correct, without voided ones."""
    recorded = (event for event in candidates if event.type in ("game.recorded", "game.corrected"))
    for game_id in dict.fromkeys(event.data["game_id"] for event in recorded):
        game = live_game(events.about(f"game:{game_id}"))
        if game is not None and not game.voided:
            yield game


def find_superseded(
    events: EventLookup, type_name: str, data: Mapping[str, Any]
) -> tuple[str | None, RevisedGame | None]:
    """Return the id of the event that a new one supersedes, and the game before it; both None for other types.

    Raises `Refused`: game-unknown, game-voided, game-live, event-unknown, event-of-game, event-voided.
    """
    if type_name == "event.voided":
        return _find_last_revision(events, data["id"]), None
    if type_name not in SUPERSEDING:
        return None, None
    name = data["game_id"]
    game = live_game(events.about(f"game:{name}"))
    if game is None:
        hint = events.suggest_similar("game", name)
        raise Refused("game-unknown", f"no game {quote(name)} is recorded; see: ratings games{hint}")
    if game.voided and type_name != "game.reinstated":
        raise Refused(
            "game-voided", f"{quote(name)} is voided{_at(game.last)}; a voided game is reinstated before it is changed"
        )
    if not game.voided and type_name == "game.reinstated":
        raise Refused("game-live", f"{quote(name)} is not voided, so there is nothing to reinstate")
    return game.last.event_id, game


def _find_last_revision(events: EventLookup, event_id: str) -> str:
    """Return the event that an `event.voided` of this event supersedes. Raises `Refused`."""
    target = events.event(event_id)
    if target is None:
        raise Refused("event-unknown", f"no event has the id {quote(event_id)}; see: ratings log")
    if target.type == UNREADABLE:
        raise Refused("event-unknown", f"{quote(event_id)} does not count: this event is invalid; run: ratings verify")
    if target.type in GAME_EVENTS:
        raise Refused(
            "event-of-game", f"{quote(event_id)} is a {target.type}; void, reinstate or correct the game by its game_id"
        )
    root = find_root(events, target)
    if root is None:
        raise Refused("event-unknown", f"{quote(event_id)} does not count: it withdraws nothing; run: ratings verify")
    last, withdrawn = target, False
    for successor in successors(events, target):
        last, withdrawn = successor, withdrawn ^ _withdraws(events, successor, root)
        if withdrawn and target.type == "event.voided":
            break  # a withdrawn void stays withdrawn, whatever has happened to its target since
    if withdrawn:
        raise Refused("event-voided", f"{quote(event_id)} is already withdrawn, by {quote(last.event_id)}{_at(last)}")
    return last.event_id


def find_withdrawn(events: EventLookup, event_id: str) -> tuple[KnownEvent, bool]:
    """Return the event that an `event.voided` of this event ultimately concerns, and whether it is now withdrawn.

    If not, it is back in force. `find_superseded` has checked the void itself.
    """
    event = events.event(event_id)
    root = None if event is None else find_root(events, event)
    assert root is not None
    return root, is_live(events, root)


def is_live(events: EventLookup, event: KnownEvent) -> bool:
    """Tell whether an event that is neither a game's nor an `event.voided` is live, that is, not withdrawn."""
    live = True
    for successor in successors(events, event):
        live ^= _withdraws(events, successor, event)
    return live


def find_root(events: EventLookup, event: KnownEvent) -> KnownEvent | None:
    """Return the event that an `event.voided` ultimately concerns; any other event itself; None for an invalid void.

    SQL inserted an invalid void, which does not count: it voids itself, a later event, or a game's event.
    """
    while event.type == "event.voided":
        target = events.event(event.data["id"])
        if target is None or target.type in _NEVER_VOIDED or not _precedes(target, event):
            return None
        event = target
    return event


def successors(events: EventLookup, event: KnownEvent) -> Iterator[KnownEvent]:
    """Yield the chain of revisions after an event: what supersedes it, what supersedes that, and so on.

    SQL inserted an event that precedes the one it supersedes, perhaps as a circle; such an event is in no chain.
    """
    while (later := events.successor(event.event_id)) is not None and _precedes(event, later):
        yield later
        event = later


def _precedes(event: KnownEvent, later: KnownEvent) -> bool:
    # waiting events follow the log, in order
    return later.position is None or (event.position is not None and event.position < later.position)


def _withdraws(events: EventLookup, successor: KnownEvent, root: KnownEvent) -> bool:
    """Tell whether an event in the chain of another one withdraws it or puts it back in force."""
    target = find_root(events, successor) if successor.type == "event.voided" else None
    return target is not None and target.event_id == root.event_id


def refuse_stale(events: EventLookup, draft: Draft) -> None:
    """Raise `Refused` (changed-meanwhile) if the event that a draft supersedes is no longer the last of its chain.

    This is optimistic locking: the draft's subject must not have changed since it was checked.
    """
    if draft.supersedes is None:
        return
    subject, successor = draft.subject.partition(":")[2], events.successor(draft.supersedes)
    if successor is not None:
        raise Refused(
            "changed-meanwhile",
            f"{quote(subject)} was changed meanwhile by the event {quote(successor.event_id)}{_at(successor)}; "
            "look at it again: ratings log",
        )
    if events.event(draft.supersedes) is None:
        raise Refused("changed-meanwhile", f"the event about {quote(subject)} that this one changes was not recorded")


def voided_ids(voids: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the withdrawn events with the event that withdraws each, given all `event.voided` as (id, voided id).

    >>> voided_ids([("v1", "a"), ("v2", "b"), ("v3", "v1")])
    {'b': 'v2'}
    """
    roots: dict[str, str] = {}
    withdrawn: dict[str, str] = {}
    for event_id, target in voids:
        root = roots[event_id] = roots.get(target, target)
        if withdrawn.pop(root, None) is None:
            withdrawn[root] = event_id
    return withdrawn


class DraftBatch(EventLookup):
    """Drafts that will be appended to the log, in order."""

    def __init__(self) -> None:
        self._drafts: list[Draft] = []
        self._by_column: dict[tuple[str, str | None], list[Draft]] = {}

    @property
    def count(self) -> int:
        """Return the number of drafts."""
        return len(self._drafts)

    def find_events_naming(self, names: Iterable[str]) -> Iterator[KnownEvent]:
        """Return the drafts whose text holds one of these names as a whole string, in order."""
        texts = [dump(name) for name in names]
        return (to_known_event(draft) for draft in self._drafts if any(text in draft.data for text in texts))

    def add(self, draft: Draft, supersedes: str | None) -> None:
        """Append a draft."""
        self._drafts.append(draft)
        for key in (("event_id", draft.event_id), ("subject", draft.subject), ("supersedes", supersedes)):
            self._by_column.setdefault(key, []).append(draft)

    def find_by_column(self, column: Column, value: str) -> Iterator[KnownEvent]:
        """Return the drafts with this value in a column, in order."""
        return map(to_known_event, self._by_column.get((column, value), ()))


def to_known_event(draft: Draft) -> KnownEvent:
    """Return a draft as a known event."""
    return KnownEvent(draft.event_id, draft.type, draft.occurred_at, parse_object(draft.data.encode()))


def _at(event: KnownEvent) -> str:
    return "" if event.position is None else f" (position {event.position})"

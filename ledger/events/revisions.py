"""Which event replaces which: corrections, voids and reinstatements, and what is live after them.

A game's events form a chain of revisions, each superseding the previous one; so do the withdrawals of any other event.
Only the last of a chain may be superseded, which the database enforces: of two concurrent corrections, one fails.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from ratings_ledger.ledger.events.canonical import dump, parse_object
from ratings_ledger.ledger.events.types import Draft, corrected_game
from ratings_ledger.ledger.rejections import Refused, quote

GAME_EVENTS = frozenset({"game.recorded", "game.corrected", "game.voided", "game.reinstated"})
# the type of an event in the log that cannot be read: it changes nothing, but still has its place
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
    """Where events are looked up: the log, or what waits to be appended to it."""

    def where(self, column: Column, value: str) -> Iterable[KnownEvent]:
        """Return the events with this value in a column, in order."""

    def about(self, subject: str) -> list[KnownEvent]:
        """Return the events about a subject, in order."""
        return list(self.where("subject", subject))

    def event(self, event_id: str) -> KnownEvent | None:
        """Return the event with this id."""
        return next(iter(self.where("event_id", event_id)), None)

    def successor(self, event_id: str) -> KnownEvent | None:
        """Return the event that supersedes the one with this id."""
        return next(iter(self.where("supersedes", event_id)), None)

    def similar(self, kind: str, name: str) -> str:
        """Return the end of a message about an unknown game, league or player: which was probably meant, or nothing."""
        return ""


@dataclass
class CombinedEvents(EventLookup):
    """The log together with what waits to be appended to it."""

    log: EventLookup
    waiting: EventLookup

    def where(self, column: Column, value: str) -> Iterator[KnownEvent]:
        """Yield the events with this value in a column, in order."""
        yield from self.log.where(column, value)
        yield from self.waiting.where(column, value)

    def similar(self, kind: str, name: str) -> str:
        """Return which game, league or player in the log was probably meant, or nothing."""
        return self.log.similar(kind, name)


class RevisedGame(NamedTuple):
    """A game as its events leave it: data, when it ended, whether it is voided, and the last event about it."""

    data: dict[str, Any]
    occurred_at: int
    voided: bool
    last: KnownEvent


def live_game(history: Iterable[KnownEvent]) -> RevisedGame | None:
    """Return what the events about a game, in order, come to; None before it is recorded."""
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


def live_games(named: Iterable[KnownEvent], events: EventLookup) -> Iterator[RevisedGame]:
    """Yield the games that events record or correct, as they now are, leaving out voided ones."""
    for game_id in dict.fromkeys(
        one.data["game_id"] for one in named if one.type in ("game.recorded", "game.corrected")
    ):
        game = live_game(events.about(f"game:{game_id}"))
        if game is not None and not game.voided:
            yield game


def find_superseded(
    events: EventLookup, type_name: str, data: Mapping[str, Any]
) -> tuple[str | None, RevisedGame | None]:
    """Return the id of the event that a new one supersedes, and the game as it was before; both None for other types.

    Raises `Refused`: game-unknown, game-voided, game-live, event-unknown, event-of-game, event-voided.
    """
    if type_name == "event.voided":
        return _end_of_line(events, data["id"]), None
    if type_name not in SUPERSEDING:
        return None, None
    name = data["game_id"]
    game = live_game(events.about(f"game:{name}"))
    if game is None:
        hint = events.similar("game", name)
        raise Refused("game-unknown", f"no game {quote(name)} is recorded; see: ratings games{hint}")
    if game.voided and type_name != "game.reinstated":
        raise Refused(
            "game-voided", f"{quote(name)} is voided{_at(game.last)}; a voided game is reinstated before it is changed"
        )
    if not game.voided and type_name == "game.reinstated":
        raise Refused("game-live", f"{quote(name)} is not voided, so there is nothing to reinstate")
    return game.last.event_id, game


def _end_of_line(events: EventLookup, event_id: str) -> str:
    """Return the event that an `event.voided` of this event supersedes. Raises `Refused`."""
    target = events.event(event_id)
    if target is None:
        raise Refused("event-unknown", f"no event has the id {quote(event_id)}; see: ratings log")
    if target.type == UNREADABLE:
        raise Refused("event-unknown", f"{quote(event_id)} does not count: no event says this; see: ratings verify")
    if target.type in GAME_EVENTS:
        raise Refused(
            "event-of-game", f"{quote(event_id)} is a {target.type}; void, reinstate or correct the game by its game_id"
        )
    root = find_root(events, target)
    if root is None:
        raise Refused("event-unknown", f"{quote(event_id)} does not count: it withdraws nothing; see: ratings verify")
    last, withdrawn = target, False
    for successor in successors(events, target):
        last, withdrawn = successor, withdrawn ^ _withdraws(events, successor, root)
        if withdrawn and target.type == "event.voided":
            break  # a withdrawn void stays withdrawn, whatever has happened to its target since
    if withdrawn:
        raise Refused("event-voided", f"{quote(event_id)} is already withdrawn, by {quote(last.event_id)}{_at(last)}")
    return last.event_id


def find_withdrawn(events: EventLookup, event_id: str) -> tuple[KnownEvent, bool]:
    """Return what an `event.voided` of this event is ultimately about, and whether that is now withdrawn (otherwise it
    is back in force). The void itself was checked by `find_superseded`.
    """
    event = events.event(event_id)
    root = None if event is None else find_root(events, event)
    assert root is not None
    return root, is_live(events, root)


def is_live(events: EventLookup, event: KnownEvent) -> bool:
    """Tell whether an event that is neither a game's nor an `event.voided` is live, that is not withdrawn."""
    live = True
    for successor in successors(events, event):
        live ^= _withdraws(events, successor, event)
    return live


def find_root(events: EventLookup, event: KnownEvent) -> KnownEvent | None:
    """Return what an `event.voided` is ultimately about; any other event itself. None if it voids nothing that can be
    voided.

    Such a void was put in by SQL and does not count: it voids itself, a later event, or a game's event.
    """
    while event.type == "event.voided":
        target = events.event(event.data["id"])
        if target is None or target.type in _NEVER_VOIDED or not _stands_before(target, event):
            return None
        event = target
    return event


def successors(events: EventLookup, event: KnownEvent) -> Iterator[KnownEvent]:
    """Yield the chain of revisions after an event: what supersedes it, what supersedes that, and so on.

    An event that comes before the one it supersedes was put in by SQL, perhaps as a circle, and is in no chain.
    """
    while (later := events.successor(event.event_id)) is not None and _stands_before(event, later):
        yield later
        event = later


def _stands_before(event: KnownEvent, later: KnownEvent) -> bool:
    # waiting events come after the log, and are in order
    return later.position is None or (event.position is not None and event.position < later.position)


def _withdraws(events: EventLookup, successor: KnownEvent, root: KnownEvent) -> bool:
    """Tell whether an event in the chain after another withdraws that one, or puts it back in force."""
    found = find_root(events, successor) if successor.type == "event.voided" else None
    return found is not None and found.event_id == root.event_id


def refuse_stale(events: EventLookup, draft: Draft) -> None:
    """Raises `Refused` (changed-meanwhile) if what a draft was checked to supersede is no longer last in its chain."""
    if draft.supersedes is None:
        return
    what, other = draft.subject.partition(":")[2], events.successor(draft.supersedes)
    if other is not None:
        raise Refused(
            "changed-meanwhile",
            f"{quote(what)} was changed meanwhile by the event {quote(other.event_id)}{_at(other)}; look at it again: "
            "ratings log",
        )
    if events.event(draft.supersedes) is None:
        raise Refused("changed-meanwhile", f"what this changes of {quote(what)} could not be recorded itself")


def voided_ids(voids: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return which event withdraws which, given all `event.voided` in order as (id, id of the event voided).

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
    """Drafts on their way into the log, in order."""

    def __init__(self) -> None:
        self._drafts: list[Draft] = []
        self._found: dict[tuple[str, str | None], list[Draft]] = {}

    @property
    def count(self) -> int:
        """Return how many there are."""
        return len(self._drafts)

    def naming(self, names: Iterable[str]) -> Iterator[KnownEvent]:
        """Return the drafts whose text holds one of these names as a whole string, in order."""
        texts = [dump(name) for name in names]
        return (to_known_event(draft) for draft in self._drafts if any(text in draft.data for text in texts))

    def add(self, draft: Draft, supersedes: str | None) -> None:
        """Append a draft."""
        self._drafts.append(draft)
        for there in (("event_id", draft.event_id), ("subject", draft.subject), ("supersedes", supersedes)):
            self._found.setdefault(there, []).append(draft)

    def where(self, column: Column, value: str) -> Iterator[KnownEvent]:
        """Return the drafts with this value in a column, in order."""
        return map(to_known_event, self._found.get((column, value), ()))


def to_known_event(draft: Draft) -> KnownEvent:
    """Return a draft as a known event."""
    return KnownEvent(draft.event_id, draft.type, draft.occurred_at, parse_object(draft.data.encode()))


def _at(event: KnownEvent) -> str:
    return "" if event.position is None else f" (position {event.position})"

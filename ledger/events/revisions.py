"""Find the event that a correction, void or reinstatement supersedes, and what is live after all revisions.

The events of a game form a chain of revisions, in which each event supersedes the previous one. Any other event forms
such a chain with its withdrawals. The database accepts only one event that supersedes the last event of a chain, so of
two concurrent corrections one fails.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from ratings_ledger.ledger.events.canonical import dump, parse_object
from ratings_ledger.ledger.events.types import Draft, read_corrected_game
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
        """List the events about a subject, in order."""
        return list(self.find_by_column("subject", subject))

    def event(self, event_id: str) -> KnownEvent | None:
        """Return the event with this id, or None."""
        return next(iter(self.find_by_column("event_id", event_id)), None)

    def successor(self, event_id: str) -> KnownEvent | None:
        """Return the event that supersedes the event with this id, or None."""
        return next(iter(self.find_by_column("supersedes", event_id)), None)

    def suggest_similar(self, kind: str, name: str, to_current_id: Callable[[str], str] = str) -> str:
        """Return the end of a message about an unknown game, league or player: a suggestion, or an empty string.

        `kind` is game, league or player. `to_current_id` maps a player's id to their id after renames.
        """
        return ""

    def list_league_names(self) -> list[str]:
        """Return the names of the live leagues if this source knows them, for a message."""
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
        """Return a suggestion of a game, league or player in the log, or an empty string."""
        return self.log.suggest_similar(kind, name, to_current_id)

    def list_league_names(self) -> list[str]:
        """Return the names of the live leagues in the log."""
        return self.log.list_league_names()


class RevisedGame(NamedTuple):
    """A game after its revisions: the data, when it ended, whether it is voided, and the last event about it."""

    data: dict[str, Any]
    occurred_at: int
    voided: bool
    last: KnownEvent


def apply_revisions(history: Iterable[KnownEvent]) -> RevisedGame | None:
    """Apply the events about a game, in order. Return the game, or None if no event records it."""
    game = None
    for event in history:
        if event.type == "game.recorded":
            game = RevisedGame(event.data, event.occurred_at, voided=False, last=event)
        elif game is not None and event.type == "game.corrected":
            data, played_at = read_corrected_game(event.data, game.occurred_at)
            game = RevisedGame(data, played_at, voided=False, last=event)
        elif game is not None and event.type in GAME_EVENTS:
            game = game._replace(voided=event.type == "game.voided", last=event)
        elif game is not None and event.type == UNREADABLE:
            game = game._replace(last=event)
    return game


def live_games(candidates: Iterable[KnownEvent], events: EventLookup) -> Iterator[RevisedGame]:
    """Yield the current state of the games that the candidates record or correct, without voided ones."""
    recorded = (event for event in candidates if event.type in ("game.recorded", "game.corrected"))
    for game_id in dict.fromkeys(event.data["game_id"] for event in recorded):
        game = apply_revisions(events.about(f"game:{game_id}"))
        if game is not None and not game.voided:
            yield game


def find_superseded(
    events: EventLookup, type_name: str, data: Mapping[str, Any]
) -> tuple[str | None, RevisedGame | None]:
    """Return the id of the event that a new event supersedes, and the game before the new event.

    The id is None for types that supersede nothing. The game is None for types that do not concern a recorded game.
    Raises `Refused`: game-unknown, game-voided, game-live, event-unknown, event-of-game, event-voided.
    """
    if type_name == "event.voided":
        return _find_last_revision(events, data["id"]), None
    if type_name not in SUPERSEDING:
        return None, None
    game_id = data["game_id"]
    game = apply_revisions(events.about(f"game:{game_id}"))
    if game is None:
        hint = events.suggest_similar("game", game_id)
        raise Refused("game-unknown", f"no game {quote(game_id)} is recorded; see: ratings games{hint}")
    if game.voided and type_name == "game.voided":
        position = _format_position(game.last)
        raise Refused("game-voided", f"{quote(game_id)} is already voided{position}, so there is nothing to void")
    if game.voided and type_name != "game.reinstated":
        raise Refused(
            "game-voided",
            f"{quote(game_id)} is voided{_format_position(game.last)}; reinstate the game before you change it",
        )
    if not game.voided and type_name == "game.reinstated":
        raise Refused("game-live", f"{quote(game_id)} is not voided, so there is nothing to reinstate")
    return game.last.event_id, game


def _find_last_revision(events: EventLookup, event_id: str) -> str:
    """Return the id of the event that an `event.voided` of this event supersedes. Raises `Refused`."""
    target = events.event(event_id)
    if target is None:
        raise Refused("event-unknown", f"no event has the id {quote(event_id)}; see: ratings log")
    if target.type == UNREADABLE:
        message = f"the event {quote(event_id)} is invalid, so it does not count; run: ratings verify"
        raise Refused("event-unknown", message)
    if target.type in GAME_EVENTS:
        raise Refused(
            "event-of-game", f"{quote(event_id)} is a {target.type}; void, reinstate or correct the game by its game_id"
        )
    root = find_root(events, target)
    if root is None:
        message = f"the event {quote(event_id)} withdraws nothing, so it does not count; run: ratings verify"
        raise Refused("event-unknown", message)
    last, is_withdrawn = target, False
    for successor in successors(events, target):
        last, is_withdrawn = successor, is_withdrawn ^ _toggles(events, successor, root)
        if is_withdrawn and target.type == "event.voided":
            break  # a withdrawn void stays withdrawn, even if its target is changed later
    if is_withdrawn:
        problem = f"{quote(event_id)} is already withdrawn, by {quote(last.event_id)}{_format_position(last)}"
        raise Refused("event-voided", f"{problem}, so there is nothing to withdraw")
    return last.event_id


def describe_wrong_supersedes(actual: str | None, expected: str | None) -> str:
    """Describe the wrong `supersedes` of an event, as in `supersedes nothing, but must supersede 'game:g1'`."""
    texts = ("nothing" if event_id is None else quote(event_id) for event_id in (actual, expected))
    return "supersedes {}, but must supersede {}".format(*texts)


def find_voided_root(events: EventLookup, event_id: str) -> tuple[KnownEvent, bool]:
    """Return the root of the chain that a new `event.voided` of this event concerns, and whether that root is live.

    The new void withdraws a live root, and puts a withdrawn root back in force. `find_superseded` has checked the void.
    """
    event = events.event(event_id)
    root = None if event is None else find_root(events, event)
    assert root is not None
    return root, is_live(events, root)


def is_live(events: EventLookup, event: KnownEvent) -> bool:
    """Tell whether an event is live, that is, not withdrawn. It must not be an `event.voided` or about a game."""
    is_live_so_far = True
    for successor in successors(events, event):
        is_live_so_far ^= _toggles(events, successor, event)
    return is_live_so_far


def find_root(events: EventLookup, event: KnownEvent) -> KnownEvent | None:
    """Return the event at the root of a chain of voids; for an event that is not a void, the event itself.

    Return None for an invalid void: of itself, of an unknown, unreadable or later event, or of an event about a game.
    Only SQL can insert such a void, and it does not count.
    """
    while event.type == "event.voided":
        target = events.event(event.data["id"])
        if target is None or target.type in _NEVER_VOIDED or not _precedes(target, event):
            return None
        event = target
    return event


def successors(events: EventLookup, event: KnownEvent) -> Iterator[KnownEvent]:
    """Yield the chain of revisions after an event; each event in it supersedes the previous one.

    The chain ends before an event that precedes the event it supersedes. Only SQL can insert such events, which may
    even form a circle.
    """
    while (later := events.successor(event.event_id)) is not None and _precedes(event, later):
        yield later
        event = later


def _precedes(event: KnownEvent, later: KnownEvent) -> bool:
    # waiting events have no position; they follow the log, in order
    return later.position is None or (event.position is not None and event.position < later.position)


def _toggles(events: EventLookup, successor: KnownEvent, root: KnownEvent) -> bool:
    """Tell whether an event in the chain of `root` withdraws `root` or puts it back in force."""
    target = find_root(events, successor) if successor.type == "event.voided" else None
    return target is not None and target.event_id == root.event_id


def refuse_stale(events: EventLookup, draft: Draft) -> None:
    """Raise `Refused` (changed-meanwhile) if the event that a draft supersedes is no longer the last of its chain.

    This is optimistic locking: the subject must not have changed since the draft was checked.
    """
    if draft.supersedes is None:
        return
    subject, successor = draft.subject.partition(":")[2], events.successor(draft.supersedes)
    if successor is not None:
        raise Refused(
            "changed-meanwhile",
            f"{quote(subject)} was changed meanwhile by the event "
            f"{quote(successor.event_id)}{_format_position(successor)}; look at it again: ratings log",
        )
    if events.event(draft.supersedes) is None:
        message = f"the event about {quote(subject)} that this event changes was refused; correct that event first"
        raise Refused("changed-meanwhile", message)


def find_withdrawing_voids(voids: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the void that withdraws each withdrawn event, by event id, given (id, voided id) of all `event.voided`.

    >>> find_withdrawing_voids([("v1", "a"), ("v2", "b"), ("v3", "v1")])
    {'b': 'v2'}
    """
    roots: dict[str, str] = {}
    withdrawn: dict[str, str] = {}
    for event_id, target in voids:
        root = roots[event_id] = roots.get(target, target)
        if withdrawn.pop(root, None) is None:
            withdrawn[root] = event_id
    return withdrawn


class DraftIndex(EventLookup):
    """An index of drafts that will be appended to the log, in order."""

    def __init__(self) -> None:
        self._drafts: list[Draft] = []
        self._by_column: dict[tuple[str, str | None], list[Draft]] = {}

    @property
    def count(self) -> int:
        """Return the number of drafts."""
        return len(self._drafts)

    def find_events_naming(self, names: Iterable[str]) -> Iterator[KnownEvent]:
        """Return the drafts whose data contains one of these names as a string, in order."""
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
    """Convert a draft to a known event without a position."""
    return KnownEvent(draft.event_id, draft.type, draft.occurred_at, parse_object(draft.data.encode()))


def _format_position(event: KnownEvent) -> str:
    return "" if event.position is None else f" (position {event.position})"

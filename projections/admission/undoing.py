"""Taking an act back: the events that put what it changed back to what stood before.

That has to stand as the act left it: what was changed since is refused until that is taken back. A new game is voided,
any other new event withdrawn; what was voided counts again, and a correction is answered by a correction. All of it is
an act itself.
"""

from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import format_instant, parse_instant, parse_object
from ratings_ledger.ledger.events.revisions import (
    GAME_EVENTS,
    KnownEvent,
    RevisedGame,
    find_root,
    is_live,
    live_game,
    successors,
)
from ratings_ledger.ledger.events.types import meaning
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.intake import Imported
from ratings_ledger.ledger.rejections import Refused, Rejection, quote
from ratings_ledger.ledger.store.log import Log, changed_games, read_known_events, read_records, read_records_at
from ratings_ledger.projections.admission.acts import Act
from ratings_ledger.projections.admission.outcomes import Undone, head_of, refusals
from ratings_ledger.projections.diff.impact import Impact
from ratings_ledger.projections.queries.coordinates import Times, load_times, moment
from ratings_ledger.projections.queries.event_texts import words_of
from ratings_ledger.projections.queries.games_log import EventSelection, events_as_written

PAGE_EVENTS = 5_000
# how the reason of what takes an act back begins, unless somebody gives another
UNDONE = "undone: "
# what an act ends with, in the reason of what takes it back
DONE = {
    "game.recorded": "the game recorded", "game.corrected": "the correction", "game.voided": "the void",
    "game.reinstated": "the reinstatement", "event.voided": "the withdrawal", "points.adjusted": "the adjustment",
    "player.renamed": "the rename", "import.recorded": "the import", "list.published": "the list published",
    "list.scheduled": "the schedule",
    "ruleset.published": "the ruleset published", "player.seeded": "the seed", "club.renamed": "the club's new name",
}  # fmt: skip


class Undoing(NamedTuple):
    """What takes an act back: events, or why something cannot be; by subject the event that each was based on; and what
    the act says. Where somebody else did something later that stays: the position of the newest event, and by whom.
    """

    act: Act
    items: list[Item | Rejection]
    looked_at: dict[str, str]
    what: str
    times: Times
    newer: tuple[int, str] | None = None


def undoing(connection: Connection, act: Act, reason: str | None, decided_at: int) -> Undoing:
    """Return what takes an act back, in the order opposite to its own, with a reason or what it says for one.

    Raises `Refused` (undone-already).
    """
    times = load_times(connection)
    (told, *_), _ = events_as_written(connection, act.position, EventSelection(limit=1))
    what = f"position {act.position}: {words_of(told, times)}"
    reason = reason or f"{UNDONE}{DONE.get(told.event['type'], told.event['type'])} at position {act.position}"
    found = _Undoing(connection, act, reason, format_instant(decided_at))
    for first, last in reversed(act.ranges):
        for until in range(last, first - 1, -PAGE_EVENTS):
            after = max(first - 1, until - PAGE_EVENTS)
            page = [row for rows in read_records(connection, after, until) for row in rows]
            for event in reversed([*read_known_events(page)]):
                found.take_back(event)
    if not found.items:
        raise Refused("undone-already", f"position {act.position} is taken back already; see: ratings log")
    return Undoing(act, found.items, found.looked_at, what, times)


def undone(found: Undoing, told: Imported, impact: Impact, dry_run: bool) -> Undone:
    """Return what became of taking an act back."""
    act = found.act
    return Undone(
        tuple((first, last) for first, last in act.ranges), act.by, moment(parse_instant(act.recorded_at)), act.types,
        found.what, head_of(told) if told.appended else None, told.appended, told.existing, dry_run,
        refusals(told.rejected), impact, told=told, times=found.times, newer=found.newer,
    )  # fmt: skip


class _Undoing:
    """The events of an act as they are gone through, from the last to the first."""

    def __init__(self, connection: Connection, act: Act, reason: str, at: str) -> None:
        self.items: list[Item | Rejection] = []
        self.looked_at: dict[str, str] = {}
        self._connection, self._act, self._reason, self._at = connection, act, reason, at
        self._log = Log(connection)
        # games that more than their first event is about
        self._changed = changed_games(connection, act.ranges[0][0])
        self._seen: set[str] = set()

    def take_back(self, event: KnownEvent) -> None:
        """Add what puts back what an event is about, once; its parts that mean nothing alone stay as they are."""
        if event.type in GAME_EVENTS:
            subject = f"game:{event.data['game_id']}"
            if event.type == "game.recorded" and subject not in self._changed:
                self._add("game.voided", {"game_id": event.data["game_id"]}, subject, event.event_id)
            elif subject not in self._seen:
                self._game(subject)
            self._seen.add(subject)
        elif event.type != "list.rows":
            root = find_root(self._log, event)
            if root is not None and root.event_id not in self._seen:
                self._seen.add(root.event_id)
                self._other(root)

    def _add(self, type_name: str, data: dict[str, Any], subject: str, last: str) -> None:
        self.looked_at[subject] = last
        event = {"type": type_name, "occurred_at": self._at, "data": {**data, "reason": self._reason}}
        self.items.append(Item("", 0, event, None))

    def _game(self, subject: str) -> None:
        """Put a game back."""
        history = self._log.about(subject)
        own = [number for number, event in enumerate(history) if self._act.has(event.position)]
        before, after = live_game(history[: own[0]]), live_game(history[: own[-1] + 1])
        now = live_game(history)
        assert after is not None
        assert now is not None
        wanted = now._replace(voided=True) if before is None else before
        if _same(before, after) or _same(wanted, now):
            return
        if not _same(after, now):
            self._refuse(subject, history[-1])
            return
        name, last, voided = now.data["game_id"], now.last.event_id, now.voided
        differs = not _same(wanted._replace(voided=voided), now)
        if voided and (differs or not wanted.voided):
            self._add("game.reinstated", {"game_id": name}, subject, last)
            voided = False
        if differs:
            moved = {} if wanted.occurred_at == now.occurred_at else {"occurred_at": format_instant(wanted.occurred_at)}
            self._add("game.corrected", {"game_id": name, "game": {**wanted.data, **moved}}, subject, last)
        if wanted.voided and not voided:
            self._add("game.voided", {"game_id": name}, subject, last)

    def _refuse(self, subject: str, last: KnownEvent) -> None:
        (record,) = read_records_at(self._connection, [last.position or 0]).values()
        what, by = quote(subject.partition(":")[2]), quote(parse_object(record.encode())["by"])
        told = f"{what} was changed since, by {by} at position {last.position} ({last.type})"
        self.items.append(Rejection("changed-since", f"{told}; first take that back: ratings undo {last.position}"))

    def _other(self, root: KnownEvent) -> None:
        """Put an event that is not a game's back: in force, or withdrawn."""
        chain = [root, *successors(self._log, root)]
        own = [event.position or 0 for event in chain if self._act.has(event.position)]
        before = is_live(Log(self._connection, own[0] - 1), root) and not self._act.has(root.position)
        after, now = is_live(Log(self._connection, own[-1]), root), is_live(self._log, root)
        if before != after and now == after:
            # what withdrew it last is withdrawn itself
            target = root if now else chain[-1]
            self._add("event.voided", {"id": target.event_id}, f"event:{target.event_id}", chain[-1].event_id)


def _same(one: RevisedGame | None, other: RevisedGame) -> bool:
    """Tell whether a game stands the same twice."""
    return one is not None and (one.voided, _content(one)) == (other.voided, _content(other))


def _content(game: RevisedGame) -> str:
    return meaning("game.recorded", game.occurred_at, game.data)

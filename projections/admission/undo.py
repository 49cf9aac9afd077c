"""Plan the events that undo a changeset.

The changed subjects must still be as the changeset left them; a later change must be undone first. The undo voids a new
game and withdraws any other new event. It reinstates a voided game and corrects a corrected game back. The undo is
itself a changeset.
"""

from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import format_instant, parse_instant, parse_object
from ratings_ledger.ledger.events.revisions import (
    GAME_EVENTS,
    KnownEvent,
    RevisedGame,
    apply_revisions,
    find_root,
    is_live,
    successors,
)
from ratings_ledger.ledger.events.types import to_canonical_content
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.intake import IntakeResult
from ratings_ledger.ledger.rejections import Refused, Rejection, quote
from ratings_ledger.ledger.store.log import Log, find_changed_games, read_known_events, read_records, read_records_at
from ratings_ledger.projections.admission.changesets import Changeset
from ratings_ledger.projections.admission.outcomes import UndoOutcome, build_refusals, get_head_position
from ratings_ledger.projections.diff.impact import Impact
from ratings_ledger.projections.queries.coordinates import TimeFormat, load_times, to_datetime
from ratings_ledger.projections.queries.event_texts import describe_recorded_event
from ratings_ledger.projections.queries.recorded_events import EventSelection, load_events

PAGE_EVENTS = 5_000
# the prefix of the default reason of an undo
UNDO_PREFIX = "undone: "
# the nouns for the last event of a changeset, in the default reason; other types of events are named as they are
EVENT_NOUNS = {
    "game.recorded": "the game recorded",
    "game.corrected": "the correction",
    "game.voided": "the void",
    "game.reinstated": "the reinstatement",
    "event.voided": "the withdrawal",
    "points.adjusted": "the adjustment",
    "player.renamed": "the rename",
    "import.recorded": "the import",
    "list.published": "the list published",
    "list.scheduled": "the schedule",
    "ruleset.published": "the ruleset published",
    "player.seeded": "the seed",
    "club.renamed": "the club's new name",
}


class UndoPlan(NamedTuple):
    """The events that undo a changeset, or rejections of what cannot be undone.

    `last_event_ids` has the id of the last event about each subject, on which the plan is based. `what` describes the
    changeset. `newer` is the position and author of a newer event that is not undone, if any.
    """

    changeset: Changeset
    items: list[Item | Rejection]
    last_event_ids: dict[str, str]
    what: str
    times: TimeFormat
    newer: tuple[int, str] | None = None


def plan_undo(connection: Connection, changeset: Changeset, reason: str | None, decided_at: int) -> UndoPlan:
    """Plan the events that undo a changeset, last change first. The default reason describes the changeset.

    Raises `Refused` (undone-already).
    """
    times = load_times(connection)
    (last, *_), _ = load_events(connection, changeset.position, EventSelection(limit=1))
    description = f"position {changeset.position}: {describe_recorded_event(last, times)}"
    noun = EVENT_NOUNS.get(last.event["type"], last.event["type"])
    reason = reason or f"{UNDO_PREFIX}{noun} at position {changeset.position}"
    planner = _UndoPlanner(connection, changeset, reason, format_instant(decided_at))
    for first, last_position in reversed(changeset.ranges):
        for until in range(last_position, first - 1, -PAGE_EVENTS):
            after = max(first - 1, until - PAGE_EVENTS)
            page = [row for rows in read_records(connection, after, until) for row in rows]
            for event in reversed([*read_known_events(page)]):
                planner.add_undo_of(event)
    if not planner.items:
        problem = f"what was recorded at position {changeset.position} is already undone"
        raise Refused("undone-already", f"{problem}; see: ratings log")
    return UndoPlan(
        changeset=changeset, items=planner.items, last_event_ids=planner.last_event_ids, what=description, times=times
    )


def describe_undo(plan: UndoPlan, result: IntakeResult, impact: Impact, dry_run: bool) -> UndoOutcome:
    """Return the outcome of an undo."""
    changeset = plan.changeset
    return UndoOutcome(
        ranges=tuple((first, last) for first, last in changeset.ranges),
        by=changeset.by,
        recorded_at=to_datetime(parse_instant(changeset.recorded_at)),
        types=changeset.types,
        what=plan.what,
        position=get_head_position(result) if result.appended else None,
        appended=result.appended,
        existing=result.existing,
        dry_run=dry_run,
        rejected=build_refusals(result.rejected),
        impact=impact,
        intake_result=result,
        times=plan.times,
        newer=plan.newer,
    )


class _UndoPlanner:
    """A planner to which the events of a changeset are added, from the last to the first."""

    def __init__(self, connection: Connection, changeset: Changeset, reason: str, at: str) -> None:
        self.items: list[Item | Rejection] = []
        self.last_event_ids: dict[str, str] = {}
        self._connection, self._changeset, self._reason, self._at = connection, changeset, reason, at
        self._log = Log(connection)
        # the games that have more events than their first record
        self._changed_games = find_changed_games(connection, changeset.ranges[0][0])
        self._planned_subjects: set[str] = set()

    def add_undo_of(self, event: KnownEvent) -> None:
        """Add the undo of an event, once per subject. Rows of lists stay, because they have no effect by themselves."""
        if event.type in GAME_EVENTS:
            subject = f"game:{event.data['game_id']}"
            if event.type == "game.recorded" and subject not in self._changed_games:
                self._add("game.voided", {"game_id": event.data["game_id"]}, subject, event.event_id)
            elif subject not in self._planned_subjects:
                self._revert_game(subject)
            self._planned_subjects.add(subject)
        elif event.type != "list.rows":
            root = find_root(self._log, event)
            if root is not None and root.event_id not in self._planned_subjects:
                self._planned_subjects.add(root.event_id)
                self._revert_event(root)

    def _add(self, type_name: str, data: dict[str, Any], subject: str, last_id: str) -> None:
        """Add an event to the plan, based on the last event about its subject."""
        self.last_event_ids[subject] = last_id
        event = {"type": type_name, "occurred_at": self._at, "data": {**data, "reason": self._reason}}
        self.items.append(Item("", 0, event, None))

    def _revert_game(self, subject: str) -> None:
        """Add the events that return a game to its state before the changeset."""
        history = self._log.about(subject)
        own_indexes = [number for number, event in enumerate(history) if self._changeset.has(event.position)]
        before, after = apply_revisions(history[: own_indexes[0]]), apply_revisions(history[: own_indexes[-1] + 1])
        current = apply_revisions(history)
        assert after is not None
        assert current is not None
        target = current._replace(voided=True) if before is None else before
        if _is_same_game(before, after) or _is_same_game(target, current):
            return
        if not _is_same_game(after, current):
            self._refuse_later_change(subject, history[-1])
            return
        game_id, last_id, is_voided = current.data["game_id"], current.last.event_id, current.voided
        is_different = not _is_same_game(target._replace(voided=is_voided), current)
        if is_voided and (is_different or not target.voided):
            self._add("game.reinstated", {"game_id": game_id}, subject, last_id)
            is_voided = False
        if is_different:
            new_time = (
                {} if target.occurred_at == current.occurred_at else {"occurred_at": format_instant(target.occurred_at)}
            )
            self._add("game.corrected", {"game_id": game_id, "game": {**target.data, **new_time}}, subject, last_id)
        if target.voided and not is_voided:
            self._add("game.voided", {"game_id": game_id}, subject, last_id)

    def _refuse_later_change(self, subject: str, last: KnownEvent) -> None:
        """Add the rejection of an undo, because the last event changed the subject after the changeset."""
        (record,) = read_records_at(self._connection, [last.position or 0]).values()
        name, author = quote(subject.partition(":")[2]), quote(parse_object(record.encode())["by"])
        problem = f"{name} was changed later, by {author} at position {last.position} ({last.type})"
        self.items.append(Rejection("changed-since", f"{problem}; first undo that: ratings undo {last.position}"))

    def _revert_event(self, root: KnownEvent) -> None:
        """Add the event that puts a non-game event back in force or withdraws it, as it was before the changeset."""
        chain = [root, *successors(self._log, root)]
        own_positions = [event.position or 0 for event in chain if self._changeset.has(event.position)]
        was_live = is_live(Log(self._connection, own_positions[0] - 1), root) and not self._changeset.has(root.position)
        was_live_after, is_live_now = is_live(Log(self._connection, own_positions[-1]), root), is_live(self._log, root)
        if was_live != was_live_after and is_live_now == was_live_after:
            # withdrawing the last withdrawal of an event puts the event back in force
            target = root if is_live_now else chain[-1]
            self._add("event.voided", {"id": target.event_id}, f"event:{target.event_id}", chain[-1].event_id)


def _is_same_game(left: RevisedGame | None, right: RevisedGame) -> bool:
    """Tell whether two revisions have the same content, and both or neither are voided."""
    return left is not None and (left.voided, _find_meaning(left)) == (right.voided, _find_meaning(right))


def _find_meaning(game: RevisedGame) -> str:
    return to_canonical_content("game.recorded", game.occurred_at, game.data)

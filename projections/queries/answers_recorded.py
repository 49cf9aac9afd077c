"""Answers about what is recorded: games as they now stand, and events as they were written."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ledger.events.revisions import KnownEvent
from projections.queries.answers import Answer
from projections.queries.results import ABSENT, HIDDEN, SPREAD, Absent, Result


@dataclass(frozen=True, slots=True)
class RecordedGame(Result):
    """A game as it now stands: the position of its first record, when it was played, its members, whether voided."""

    position: int
    occurred_at: datetime
    data: dict[str, Any] = field(metadata=SPREAD)
    voided: bool | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class RecordedGames(Answer):
    """Games by the time they were played; there are so many `older` ones that match.

    `game_id` is the one game that was asked for, `hint` whom else may be meant if there is none of a player; `left_out`
    are the records that no event can have, by position, with the reason.
    """

    rows: tuple[RecordedGame, ...]
    older: int = field(default=0, metadata=HIDDEN, kw_only=True)
    game_id: str | None = field(default=None, metadata=HIDDEN, kw_only=True)
    hint: str = field(default="", metadata=HIDDEN, kw_only=True)
    left_out: dict[int, str] = field(default_factory=dict, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class RecordedEvent(Result):
    """An event as in its record; of an invalid record only its names, its text as `record`, and in `unreadable` why.

    `withdrawn` tells whether it is, `target` is the event that an `event.voided` names.
    """

    event: dict[str, Any] = field(metadata=SPREAD)
    withdrawn: bool = field(default=False, metadata=HIDDEN, kw_only=True)
    target: KnownEvent | None = field(default=None, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class RecordedEvents(Answer):
    """Events in the order of the log; there are so many `older` ones that match.

    `subject` is what they are about, `narrowed` tells whether anything else was asked of them.
    """

    rows: tuple[RecordedEvent, ...]
    older: int = field(default=0, metadata=HIDDEN, kw_only=True)
    subject: str | None = field(default=None, metadata=HIDDEN, kw_only=True)
    narrowed: bool = field(default=False, metadata=HIDDEN, kw_only=True)

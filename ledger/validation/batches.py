"""Batches in the log: a batch is the set of events that an import recorded from one file."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.batches import strip_copy_marks
from ratings_ledger.ledger.events.canonical import parse_object
from ratings_ledger.ledger.rejections import Refused, did_you_mean, quote
from ratings_ledger.ledger.store.log import (
    find_withdrawn_ids,
    head,
    read_events_of_type,
    read_matching_records,
    read_records_at,
)


class Batch(NamedTuple):
    """A batch: an `import.recorded` with its position, time and recorder. `ranges` are [first, last] positions."""

    position: int
    event_id: str
    recorded_at: str
    by: str
    name: str
    source: str
    sha256: str
    ranges: list[list[int]]
    sheet: str | None = None
    aliases: Mapping[str, str] = {}

    @property
    def positions(self) -> list[int]:
        """Return the positions of the batch's events, in order."""
        return [position for first, last in self.ranges for position in range(first, last + 1)]

    def has_position(self, position: int) -> bool:
        """Tell whether the event at a position comes from the file, or is the `import.recorded` itself."""
        return position == self.position or any(first <= position <= last for first, last in self.ranges)


def read_batches(
    connection: Connection, name: str | None = None, until: int | None = None, *, withdrawn: bool = False
) -> list[Batch]:
    """Return the batches up to a position (default: the head), in log order; `name` selects the batches of that name.

    Withdrawn batches are included only with `withdrawn`.
    """
    until = head(connection).position if until is None else until
    subject = None if name is None else f"import:{name}"
    rows = read_matching_records(connection, until=until, type_name="import.recorded", subject=subject)
    batch_events = read_events_of_type("import.recorded", rows)
    if batch_events and not withdrawn:
        withdrawn_ids = find_withdrawn_ids(connection, until)
        batch_events = [event for event in batch_events if event.event_id not in withdrawn_ids]
    records = read_records_at(connection, [event.position or 0 for event in batch_events])
    return [
        Batch(position, event.event_id, record["recorded_at"], record["by"], **event.data)
        for event, position in zip(batch_events, sorted(records), strict=True)
        for record in [parse_object(records[position].encode())]
    ]


def find_imported_name(connection: Connection, name: str) -> str:
    """Return the latest imported name that differs from `name` only by the marks of a copy.

    Return `name` itself if it was imported, or if there is no such name.
    """
    names = [batch.name for batch in reversed(read_batches(connection))]
    if name in names:
        return name
    return next((known for known in names if strip_copy_marks(known) == strip_copy_marks(name)), name)


def recall_answers(connection: Connection, name: str) -> dict[str, str]:
    """Return the player for each typo in a file, as answered in earlier imports of that file.

    Later answers replace earlier answers.
    """
    batches = read_batches(connection, find_imported_name(connection, name))
    return {typo: player for batch in batches for typo, player in batch.aliases.items()}


def find_batches(connection: Connection, name: str, until: int | None = None) -> list[Batch]:
    """Return the batches of this name or, if there are none, the batch whose position is `name`.

    Withdrawn batches are included. Raises `Refused` (batch-unknown).
    """
    batches = read_batches(connection, name, until, withdrawn=True)
    if not batches:
        all_batches = read_batches(connection, until=until, withdrawn=True)
        batches = [batch for batch in all_batches if str(batch.position) == name]
        if not batches:
            hint = did_you_mean(name, {batch.name for batch in all_batches})
            hint = hint or "; run `ratings log --type import.recorded` to list the imports"
            raise Refused("batch-unknown", f"no import is recorded under the name {quote(name)}{hint}")
    return batches


def refuse_misplaced_batch(stated_position: int | None, data: dict[str, Any], position: int) -> None:
    """Raise `Refused` (bad-batch) if a batch does not state its position, or covers one that is not earlier.

    `stated_position` is the position in the batch's record, `position` the position that the batch would get.
    """
    if stated_position != position:
        raise Refused(
            "bad-batch",
            "only an import can record a batch, because the positions in a batch are valid in one ledger only; remove "
            "the event import.recorded",
        )
    if (last := data["ranges"][-1][1]) >= position:
        raise Refused(
            "bad-batch",
            f"the batch at position {position} covers position {last}, which is not earlier; correct its ranges, or "
            "remove the event import.recorded",
        )

"""Batches in the log: what each import took from one file."""

from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import parse_object
from ratings_ledger.ledger.rejections import Refused, did_you_mean, quote
from ratings_ledger.ledger.store.log import head, read_events_of_type, read_records_at, read_where, withdrawn_ids


class Batch(NamedTuple):
    """An `import.recorded`, with its place in the log, when and by whom it was recorded; ranges include their ends."""

    position: int
    event_id: str
    recorded_at: str
    by: str
    name: str
    source: str
    sha256: str
    ranges: list[list[int]]
    sheet: str | None = None

    @property
    def positions(self) -> list[int]:
        """Return where the log has what was taken, in order."""
        return [position for first, last in self.ranges for position in range(first, last + 1)]

    def has(self, position: int) -> bool:
        """Tell whether the event at a position was taken from the file, or says so."""
        return position == self.position or any(first <= position <= last for first, last in self.ranges)


def recorded_batches(
    connection: Connection, name: str | None = None, until: int | None = None, *, withdrawn: bool = False
) -> list[Batch]:
    """Return the batches up to a position (default: the head), or those of one name, in log order; those that are taken
    back only if `withdrawn`.
    """
    until = head(connection).position if until is None else until
    subject = None if name is None else f"import:{name}"
    rows = read_where(connection, until=until, type_name="import.recorded", subject=subject)
    found = read_events_of_type("import.recorded", rows)
    if found and not withdrawn:
        gone = withdrawn_ids(connection, until)
        found = [event for event in found if event.event_id not in gone]
    records = read_records_at(connection, [event.position or 0 for event in found])
    return [
        Batch(position, event.event_id, told["recorded_at"], told["by"], **event.data)
        for event, position in zip(found, sorted(records), strict=True)
        for told in [parse_object(records[position].encode())]
    ]


def named_batches(connection: Connection, name: str, until: int | None = None) -> list[Batch]:
    """Return the batches of a name, or the one recorded at a position; also those that are taken back.

    Raises `Refused` (batch-unknown).
    """
    found = recorded_batches(connection, name, until, withdrawn=True)
    if not found:
        every = recorded_batches(connection, until=until, withdrawn=True)
        found = [one for one in every if str(one.position) == name]
        if not found:
            hint = did_you_mean(name, {one.name for one in every}) or "; see: ratings log --type import.recorded"
            raise Refused("batch-unknown", f"no import is recorded under the name {quote(name)}{hint}")
    return found


def refuse_batch(position_there: int | None, data: dict[str, Any], position: int) -> None:
    """Raises `Refused` (bad-batch) unless a batch stands at a position where its line says, behind what it names."""
    if position_there != position:
        raise Refused("bad-batch", "only an import records a batch: it names positions of its own ledger")
    if data["ranges"][-1][1] >= position:
        last = data["ranges"][-1][1]
        raise Refused("bad-batch", f"the batch names position {last}, which is not before its own {position}")

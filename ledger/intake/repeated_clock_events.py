"""Events of a clock that an input holds twice in one millisecond: without ids they count once, which a note says."""

from typing import Any

from ratings_ledger.ledger.events.types import Draft, default_id
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.rejections import shown


class RepeatedClockEvents:
    """Watches the clock events of an input, in order, for repetitions."""

    def __init__(self) -> None:
        # by game: the latest millisecond, and its events by id; a server's time never decreases
        self._latest: dict[str, tuple[int, dict[str, Item]]] = {}
        self._first = ""
        self._count = 0

    def watch(self, item: Item, draft: Draft, data: dict[str, Any]) -> None:
        """Compare an event with those of its game in the same millisecond."""
        at, items = self._latest.get(data["game_id"], (-1, {}))
        if at != data["at"]:
            items = {}
            self._latest[data["game_id"]] = data["at"], items
        earlier = items.setdefault(draft.event_id, item)
        if earlier is not item and draft.event_id == default_id(draft.type, draft.occurred_at, data):
            self._count += 1
            where = f"{item.file}:{item.line}: " if item.file else ""
            what = f"line {earlier.line} of {earlier.file}" if item.file else "an earlier one"
            self._first = self._first or (
                f"{where}this {draft.type} of {shown(data['player'])} in {shown(data['game_id'])} says what {what} "
                f"says, also at {data['at']} ms, so both count as one event"
            )

    def notes(self) -> list[str]:
        """Return what to tell about the repetitions."""
        more = f" ({self._count - 1:,} more like this)" if self._count > 1 else ""
        return [f"{self._first}; if both happened, give each an id of its own{more}"] if self._count else []

"""Instants as people see them: in the ledger's home zone, or in UTC where it has none.

2024-12-31T23:30:00Z  in a ledger at home in Europe/Berlin:  2025-01-01 00:30, in a column "played (Berlin)"
"""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from ledger.events.canonical import format_instant, record_instant
from ledger.events.zones import local_time
from ledger.store.log import home_zone


class Times(NamedTuple):
    """How a ledger's instants are shown, and in which zone requested days end. `home` is a zone's name."""

    home: str | None = None

    @property
    def zone(self) -> str:
        """The name of the zone that times are shown in."""
        return self.home or "UTC"

    def column(self, word: str) -> str:
        """The header of a column of times, with a short form of their zone."""
        return f"{word} ({self.zone.rpartition('/')[2].replace('_', ' ')})"

    def minute(self, instant: int | str | datetime) -> str:
        """An instant, in microseconds, as records have it or as a time: the day and the minute."""
        return self._local(instant)[:16]

    def second(self, instant: int | str | datetime) -> str:
        """The same to the second, with the zone."""
        return f"{self._local(instant)[:19]} {self.zone}"

    def stated(self, instant: int | str | datetime) -> str:
        """The same to the minute, with the zone."""
        return f"{self.minute(instant)} {self.zone}"

    def _local(self, instant: int | str | datetime) -> str:
        if isinstance(instant, datetime):
            instant = instant.isoformat(timespec="microseconds").replace("+00:00", "Z")
        if self.home is None:
            text = instant if isinstance(instant, str) else format_instant(instant)
        else:
            text = local_time(record_instant(instant) if isinstance(instant, str) else instant, self.home).isoformat()
        return text.replace("T", " ")


def times_of(connection: Connection) -> Times:
    """The times of a ledger, in its home zone at the head of the log."""
    return Times(home_zone(connection))

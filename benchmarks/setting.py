"""Define the options of a run of the benchmarks: its size, its repetitions, and its folder."""

from pathlib import Path
from typing import NamedTuple

from benchmarks.stores import SqliteStore


class Setting(NamedTuple):
    """The options of a run. `games_max` limits the number of games in every row; None means full size."""

    folder: Path
    repetitions: int = 5
    games_max: int | None = None

    def games(self, full: int) -> int:
        """Return the number of games of a row that has `full` games at full size."""
        return full if self.games_max is None else min(full, self.games_max)

    def events(self, full: int) -> int:
        """Return the number of events of a row that waits for the disk at every event: a tenth of the limit."""
        return full if self.games_max is None else max(1, min(full, self.games_max // 10))

    @property
    def sqlite(self) -> SqliteStore:
        """Return the store that keeps its files in the folder."""
        return SqliteStore(self.folder)

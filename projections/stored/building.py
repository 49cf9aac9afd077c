"""A generation while it is written next to the live one, with its history for SQL if that is kept."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from ratings_ledger.ledger.clock import Clock
from ratings_ledger.ledger.errors import LedgerError
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.stored import generations, sql_history
from ratings_ledger.projections.stored.computing import Built
from ratings_ledger.projections.stored.rebuild_lock import RebuildLock
from ratings_ledger.projections.stored.sql_history import Keeping

# how far a rebuild has got: a word, and the numbers that go with it
Tell = Callable[[str, dict[str, Any]], None]


class HistoryPlan(NamedTuple):
    """What becomes of the history for SQL.

    is_kept: whether the new generation has one
    source:  the live generation, if its history can be copied
    is_new:  whether all parts are written anew, even those that are stored already
    pointer: the generation whose history is kept without the new one, if any
    """

    is_kept: bool
    source: int | None
    is_new: bool
    pointer: int | None


class NewGeneration:
    """A generation that is being written: its number, and how many ladders, standings and changes it has so far."""

    def __init__(self, lock: RebuildLock, number: int, facts: Facts, clock: Clock, history: HistoryPlan) -> None:
        self.number, self.facts, self.history = number, facts, history
        self.keeping: Keeping | None = None
        if history.is_kept:
            self.keeping = sql_history.begin_keeping(lock.ledger, number, reuse=not history.is_new)
        self.ladders = set[str]()
        self.rows = self.changes = 0
        self.is_promoted = False
        self._lock, self._clock = lock, clock
        self._waiting: list[Built] = []
        self._waiting_rows = 0

    def write(self, built: Built) -> bool:
        """Store a ladder; returns whether all that was written so far is in the store, and not waiting for more."""
        self.ladders.add(built.ladder)
        self._waiting.append(built)
        self._waiting_rows += len(built.rows) + 1 + sum(len(block[1]) for block in built.changes or ())
        if is_due := self._waiting_rows >= generations.TRANSACTION_ROWS:
            self.flush()
        return is_due

    def flush(self) -> None:
        """Store whatever is waiting."""
        generations.write(self._lock.ledger, self.facts, self.number, self._waiting, self._clock())
        self.changes += sql_history.write_changes(self.keeping, self._waiting) if self.keeping else 0
        self.rows += sum(len(built.rows) for built in self._waiting)
        self._waiting, self._waiting_rows = [], 0

    def renew(self, ladders: Sequence[Row[Any]]) -> None:
        """Take over ladders of the live generation that nothing changed since: they are as they are now."""
        now = {"position": self.facts.position, "chain_hash": self.facts.chain_hash, "built_at": self._clock()}
        generations.copy_rows(self._lock.ledger, self.number, ladders, **now)
        self.ladders |= {row.ladder for row in ladders}
        self.rows += sum(row.players for row in ladders)
        self.changes += self._copy_history([row.ladder for row in ladders])

    def leave(self, ladders: Sequence[Row[Any]], games: bool) -> None:
        """Take over ladders of the live generation as they were when they were built; and the games, if need be."""
        generations.copy_rows(self._lock.ledger, self.number, ladders)
        self._copy_history([*(row.ladder for row in ladders), *([sql_history.GAMES] if games else [])])

    def _copy_history(self, names: list[str]) -> int:
        source = self.history.source
        return 0 if self.keeping is None or source is None else sql_history.copy(self.keeping, source, names)

    def promote(self, live: int | None) -> None:
        """Show readers this generation in place of the one that was live when it was begun. Raises `LockLost`."""
        ledger, pointer = self._lock.ledger, self.number if self.keeping else self.history.pointer

        def point(connection: Connection) -> None:
            sql_history.point_to(connection, pointer)

        sql_history.refuse_short(ledger, self.number)
        generations.promote(self._lock, self.number, self._clock, live, point)
        self.is_promoted = True


@contextmanager
def building(
    lock: RebuildLock, facts: Facts, clock: Clock, history: HistoryPlan, *, covers: tuple[int, bytes], keep: int
) -> Iterator[NewGeneration]:
    """Provide a new generation; sweep up what is no longer of use before, and afterwards, whatever became of it.

    Args:
        lock: the rebuild lock, held.
        facts: what its ladders are computed from.
        clock: tells when they are.
        history: what becomes of the history for SQL.
        covers: the position and chain hash up to which all ladders are rebuilt together.
        keep: how many generations stay once it is promoted.
    """
    ledger = lock.ledger
    number = generations.begin_generation(lock, *covers, clock)
    sql_history.sweep_history(ledger, number, building=True)
    try:
        generation = NewGeneration(lock, number, facts, clock, history)
        yield generation
    except Exception:
        # what was written is no longer of use, and appends may need the room
        with suppress(LedgerError):
            generations.forget_generation(ledger, number)
            sql_history.sweep_history(ledger, number)
        raise
    generations.sweep_generations(lock, number, keep if generation.is_promoted else None)
    sql_history.sweep_history(ledger, number)

"""Write a new generation next to the live generation, with its SQL history if requested."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from ratings_ledger.ledger.clock import Clock
from ratings_ledger.ledger.errors import LedgerError
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.stored import generations, sql_history
from ratings_ledger.projections.stored.computing import BuiltLadder
from ratings_ledger.projections.stored.rebuild_lock import RebuildLock
from ratings_ledger.projections.stored.sql_history import HistoryWriter

# (stage that a rebuild has reached, its numbers) -> None
ReportProgress = Callable[[str, dict[str, Any]], None]


class HistoryPlan(NamedTuple):
    """The plan of a rebuild for the SQL history.

    is_kept:       whether the new generation has a history
    source:        the live generation, if its history can be reused
    writes_all:    whether all parts are written again, even if equal parts are stored
    fallback:      the generation whose history stays published if the new generation has no history
    """

    is_kept: bool
    source: int | None
    writes_all: bool
    fallback: int | None


class NewGeneration:
    """A generation under construction.

    It has a `number`, the names of the `ladders` written so far, and the numbers of their standings (`rows`) and
    `changes`. Stale ladders are left out.
    """

    def __init__(self, lock: RebuildLock, number: int, facts: Facts, clock: Clock, history: HistoryPlan) -> None:
        self.number, self.facts, self.history = number, facts, history
        self.history_writer: HistoryWriter | None = None
        if history.is_kept:
            self.history_writer = sql_history.open_history_writer(lock.ledger, number, reuse=not history.writes_all)
        self.ladders = set[str]()
        self.rows = self.changes = 0
        self.is_promoted = False
        self._lock, self._clock = lock, clock
        self._waiting: list[BuiltLadder] = []
        self._waiting_rows = 0

    def write(self, built: BuiltLadder) -> bool:
        """Add a ladder; return True if all ladders added so far are now stored."""
        self.ladders.add(built.ladder)
        self._waiting.append(built)
        self._waiting_rows += len(built.rows) + 1 + sum(len(block[1]) for block in built.changes or ())
        if is_due := self._waiting_rows >= generations.TRANSACTION_ROWS:
            self.flush()
        return is_due

    def flush(self) -> None:
        """Store the ladders that wait for a transaction."""
        generations.write_ladders(self._lock.ledger, self.facts, self.number, self._waiting, self._clock())
        self.changes += sql_history.write_changes(self.history_writer, self._waiting) if self.history_writer else 0
        self.rows += sum(len(built.rows) for built in self._waiting)
        self._waiting, self._waiting_rows = [], 0

    def write_games(self, connection: Connection, facts: Facts) -> None:
        """Store the current games for SQL. The generation must have a history."""
        assert self.history_writer is not None
        sql_history.write_games(self.history_writer, connection, facts)

    def take_over_unchanged(self, ladders: Sequence[Row[Any]]) -> None:
        """Reuse live ladders that no event has changed; their rows get the current position."""
        current_state = {
            "position": self.facts.position,
            "chain_hash": self.facts.chain_hash,
            "built_at": self._clock(),
        }
        generations.copy_ladder_rows(self._lock.ledger, self.number, ladders, **current_state)
        self.ladders |= {row.ladder for row in ladders}
        self.rows += sum(row.players for row in ladders)
        self.changes += self._copy_history([row.ladder for row in ladders])

    def take_over_stale(self, ladders: Sequence[Row[Any]], games: bool) -> None:
        """Reuse live ladders that were not rebuilt, at their old positions; with `games`, also reuse the games."""
        generations.copy_ladder_rows(self._lock.ledger, self.number, ladders)
        self._copy_history([*(row.ladder for row in ladders), *([sql_history.GAMES] if games else [])])

    def _copy_history(self, names: list[str]) -> int:
        if self.history_writer is None or self.history.source is None:
            return 0
        return sql_history.reuse_parts(self.history_writer, self.history.source, names)

    def promote(self, live: int | None) -> None:
        """Make this generation live in place of generation `live`. Raises `LockLost`."""
        ledger, history_generation = self._lock.ledger, self.number if self.history_writer else self.history.fallback

        def publish_history(connection: Connection) -> None:
            sql_history.set_history_generation(connection, history_generation)

        sql_history.check_row_count(ledger, self.number)
        generations.promote(self._lock, self.number, self._clock, live, publish_history)
        self.is_promoted = True


@contextmanager
def build_generation(
    lock: RebuildLock, facts: Facts, clock: Clock, history: HistoryPlan, *, covers: tuple[int, bytes], keep: int
) -> Iterator[NewGeneration]:
    """Provide a new generation. Delete unused generations and history before and after, or this one after a failure.

    Args:
        lock: The rebuild lock, which the caller holds.
        facts: The facts from which the ladders are computed.
        clock: The source of build times.
        history: The plan for the SQL history.
        covers: The position and chain hash up to which all ladders are rebuilt together.
        keep: The number of generations to keep after this generation is promoted.
    """
    ledger = lock.ledger
    number = generations.begin_generation(lock, *covers, clock)
    sql_history.sweep_history(ledger, number)  # the new generation has no history yet
    try:
        generation = NewGeneration(lock, number, facts, clock, history)
        yield generation
    except Exception:
        # free the space immediately, because appends may need it
        with suppress(LedgerError):
            generations.forget_generation(ledger, number)
            sql_history.sweep_history(ledger, number)
        raise
    generations.sweep_generations(lock, number, keep if generation.is_promoted else None)
    sql_history.sweep_history(ledger, number)

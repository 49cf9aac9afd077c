"""Plan a rebuild: read the log and the stored ladders, and find the ladders to build and to reuse."""

from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from ratings_ledger.ledger.events.records import ZERO
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode, decode_to_store, read_rulesets_at
from ratings_ledger.projections.queries.coordinates import find_versions
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.stored import generations, sql_history
from ratings_ledger.projections.stored.building import HistoryPlan
from ratings_ledger.projections.stored.changed_ladders import find_changed_since_build
from ratings_ledger.projections.stored.computing import is_named
from ratings_ledger.projections.stored.rule_processes import RULE_SECONDS
from ratings_ledger.projections.stored.work import Work, WorkAt, create_local_work

# the live generation and the previous generation, which readers may still be using
GENERATIONS_KEPT = 2


class HistoryMissing(ValueError):
    """A rebuild of some ladders is to keep a history, but the other ladders have none."""


@dataclass(frozen=True, slots=True)
class RebuildOptions:
    """The options of a rebuild.

    check:        whether to replay everything a second time, interpreted and without the cache, before promoting
    keep:         the number of generations to keep, including the live one
    keep_history: whether to store changes and games for SQL; None: as last requested (at first, no)
    rule_seconds: the processor time that a third-party rule may take for a ladder, in a separate process
    cores:        the number of processes that replay; None: one per processor
    """

    check: bool = False
    keep: int = GENERATIONS_KEPT
    keep_history: bool | None = None
    rule_seconds: float = RULE_SECONDS
    cores: int | None = None


DEFAULT_OPTIONS = RebuildOptions()


class RebuildPlan(NamedTuple):
    """The plan of a rebuild: the inputs, the ladders to build, and the ladders to reuse.

    requested: the requested ladders and rulesets; all if empty
    options:   the options of the rebuild
    facts:     the facts at the position of the rebuild
    work:      the replay
    live:      the row of the live generation, if there is one
    stored:    the ladder rows of the live generation
    unchanged: the rows of `stored` that no event can have changed; empty if this is not known
    changed:   the ladders and rulesets that events may have changed; None if all requested ladders are to be replayed
    history:   the plan for the SQL history
    """

    requested: Collection[str]
    options: RebuildOptions
    facts: Facts
    work: Work
    live: Row[Any] | None
    stored: list[Row[Any]]
    unchanged: list[Row[Any]]
    changed: set[str] | None
    history: HistoryPlan

    @property
    def covers(self) -> tuple[int, bytes]:
        """Return the position and chain hash up to which all ladders of the generation are rebuilt."""
        if not self.requested:
            return self.facts.position, self.facts.chain_hash
        return (0, ZERO) if self.live is None else (self.live.position, bytes(self.live.chain_hash))

    def load_games(self, connection: Connection) -> Facts:
        """Return facts with all games.

        Decode the games again if workers hold them, or for a check, which must not use the cache.
        """
        has_all_games = len(self.facts.first_position) == self.work.games and not self.options.check
        return self.facts if has_all_games else decode(connection, self.facts.position, cached=False)

    @property
    def requested_stored(self) -> list[str]:
        """Return the requested ladders that are stored; ladders that lost all games are stored as empty ladders."""
        return [row.ladder for row in self.stored if is_named(row.ladder, self.requested)]


def plan_rebuild(
    stack: ExitStack, ledger: Ledger, requested: Collection[str], options: RebuildOptions, work_at: WorkAt | None
) -> RebuildPlan:
    """Read the log and the stored ladders, and plan the rebuild. Raises `UnknownLadder`, `HistoryMissing`."""
    with ledger.reading() as connection:
        live = generations.read_live_generation(connection)
        history_generation = sql_history.read_history_generation(connection)
        source = history_generation if live is not None and live.generation == history_generation else None
        position = head(connection).position
        _check_names(connection, position, requested)
        if requested and options.keep_history and source is None:
            raise HistoryMissing("the other ladders have no history; first run: ratings rebuild --history")
        is_kept = history_generation is not None if options.keep_history is None else options.keep_history
        # a rebuild of some ladders cannot start a history, and must not withdraw an earlier request for a history
        history = HistoryPlan(
            is_kept=is_kept and (source is not None or not requested),
            source=source,
            writes_all=options.check,
            fallback=history_generation if is_kept else None,
        )
        remote_work = None if work_at is None else stack.enter_context(work_at(connection, position))
        facts = decode_to_store(connection) if remote_work is None else remote_work.facts
        stored = [] if live is None else generations.list_ladder_rows(connection, live.generation)
        changed = None
        if not requested and remote_work is None and live is not None and not (history.is_kept and source is None):
            changed = find_changed_since_build(ledger, connection, facts, live, stored)
    unchanged = [] if changed is None else [row for row in stored if not is_named(row.ladder, changed)]
    # for a check, replay from the first game, without cached traces
    work = remote_work or create_local_work(
        replace(facts, cache=None) if options.check else facts, options.rule_seconds, options.cores
    )
    changed = None if options.check else changed
    return RebuildPlan(requested, options, facts, work, live, stored, unchanged, changed, history)


def _check_names(connection: Connection, position: int, requested: Collection[str]) -> None:
    """Raise `UnknownLadder` for a name that is neither a ruleset nor a possible ladder of a ruleset."""
    facts = read_rulesets_at(connection, position)
    for name in requested:
        ruleset_ids = facts.rulesets.keys() | facts.unusable.keys()
        if name not in ruleset_ids and parse_name(name).ruleset_id not in facts.unusable:
            find_versions(facts, name)

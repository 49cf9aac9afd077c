"""Verify stored standings: compare the ladders of a generation, and their SQL history, with a replay."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import Any

from sqlalchemy import Connection, Row

from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.store.log import read_chain_hash
from ratings_ledger.ledger.verification import Finding
from ratings_ledger.projections.facts.decoding import decode, read_rulesets_at
from ratings_ledger.projections.stored import sql_history
from ratings_ledger.projections.stored.computing import BuiltLadder, LadderFailure, is_named
from ratings_ledger.projections.stored.generations import (
    check_live_pointer,
    describe_standing_differences,
    find_build_conflicts,
    list_ladder_rows,
    list_ladders_built_before,
    read_live_generation,
)
from ratings_ledger.projections.stored.rule_processes import RULE_SECONDS
from ratings_ledger.projections.stored.work import WorkAt, create_local_work_at


def verify_standings(
    connection: Connection,
    stored_generation: Row[Any] | None = None,
    rule_seconds: float = RULE_SECONDS,
    work_at: WorkAt | None = None,
    since: int = 0,
) -> Generator[Finding, None, int]:
    """Yield a finding for each ladder of a generation that differs from a replay. Return the number of ladders.

    A ladder that was built at an earlier position than its generation is replayed up to that position. Third-party
    rules run in separate processes.

    Args:
        connection: A connection to the ledger.
        stored_generation: The row of the generation; by default, the live generation.
        rule_seconds: The processor time that a third-party rule may take for a ladder.
        work_at: Provides the work at a position; by default, this machine does it, without the cache.
        since: A position; ladders computed before it are not compared or counted.
    """
    generation = stored_generation or read_live_generation(connection)
    for message in check_live_pointer(connection) if stored_generation is None else ():
        yield Finding("standings", None, message)
    if generation is None:
        return 0
    if problem := _find_unreadable_value(generation, list_ladder_rows(connection, generation.generation)):
        yield Finding("standings", None, problem)
        return 0
    for name in find_build_conflicts(connection, generation.generation):
        yield Finding(
            "standings", None, f"{name}: the ladder row contradicts an earlier row of its build, or names a later build"
        )
    comparison = _Comparison(connection, generation, work_at or create_local_work_at(rule_seconds), since)
    if since:
        yield from comparison.find_unusable_rulesets()
    for position in comparison.list_positions():
        yield from comparison.compare_at(position)
    history_findings = comparison.list_history_findings()
    if history_findings and not _has_history(connection, generation):
        # only the live generation has a history, and a newer generation has become live meanwhile
        return (yield from verify_standings(connection, None, rule_seconds, work_at, since))
    yield from sorted(history_findings, key=lambda finding: finding.message)
    return len(comparison.rows)


class _Comparison:
    """A comparison of a generation with replays; with `since`, without the ladders computed before that position."""

    def __init__(self, connection: Connection, generation: Row[Any], work_at: WorkAt, since: int) -> None:
        self.connection, self.generation, self.work_at, self.since = connection, generation, work_at, since
        self.stored = {row.ladder: row for row in list_ladder_rows(connection, generation.generation)}
        earlier = list_ladders_built_before(connection, generation.generation, since) if since else ()
        # the rows of the ladders to compare
        self.rows = {name: row for name, row in self.stored.items() if name not in earlier}
        has_history = _has_history(connection, generation)
        # the parts of the SQL history that were not compared yet, by ladder; None without a history
        self.parts = sql_history.list_parts(connection, generation.generation) if has_history else None
        # the ladders and rulesets that failed, and the ladders that could not be compared
        self._failed, self._uncompared = set[str](), set[str]()
        self._history_messages: list[str | None] = []

    def find_unusable_rulesets(self) -> Iterator[Finding]:
        """Yield a finding for each unusable ruleset; a full comparison finds these rulesets during the replay."""
        for name, version in sorted(read_rulesets_at(self.connection, self.generation.position).unusable.items()):
            self._failed.add(name)
            yield Finding("rule", version.position, f"{name}: {version.reason}")

    def list_positions(self) -> list[int]:
        """Return the positions at which to replay, newest first."""
        positions = {row.position for row in self.rows.values()} | (
            {self.generation.position} if not self.since else set()
        )
        return sorted(positions, reverse=True)

    def compare_at(self, position: int) -> Iterator[Finding]:
        """Yield a finding for each difference between the ladders that were built at a position and a replay."""
        remaining = {name: row for name, row in self.rows.items() if row.position == position}
        replays_all = position == self.generation.position and not self.since
        hashes = {bytes(row.chain_hash) for row in remaining.values()}
        hashes |= {bytes(self.generation.chain_hash)} if replays_all else set()
        if hashes != {read_chain_hash(self.connection, position)}:
            yield Finding("standings", position, "the stored standings were computed from a different history")
            self._uncompared |= {*remaining, *([sql_history.GAMES] if replays_all else [])}
            return
        requested = () if replays_all else tuple(remaining)
        findings: list[Finding] = []
        with self.work_at(self.connection, position) as work:
            with closing(work.compute(requested, requested, self.parts is not None)[1]) as results:
                for result in results:
                    findings += self._compare(result, remaining)
            findings += [Finding("standings", None, f"{name} is missing from a replay") for name in remaining]
            if self.parts is not None and replays_all:
                has_all_games = len(work.facts.first_position) == work.games
                facts = work.facts if has_all_games else decode(self.connection, position, cached=False)
                games = self.parts.pop(sql_history.GAMES, [])
                self._history_messages.append(sql_history.find_game_difference(self.connection, games, facts))
        yield from sorted(findings, key=lambda finding: (finding.position or 0, finding.message))

    def _compare(self, result: BuiltLadder | LadderFailure, remaining: dict[str, Row[Any]]) -> Iterator[Finding]:
        """Yield a finding for each difference of a replayed ladder, and remove the ladder from `remaining`."""
        if isinstance(result, LadderFailure):
            for name in [name for name in remaining if is_named(name, [result.ladder])]:
                del remaining[name]
            if result.ladder not in self._failed:
                yield Finding("rule", result.position, f"{result.ladder}: {result.message}")
            self._failed.add(result.ladder)
        elif row := remaining.pop(result.ladder, None):
            yield from map(_build_finding, describe_standing_differences(self.connection, row, result))
            if self.parts is not None:
                parts, is_older = self.parts.pop(result.ladder, []), row.position < self.generation.position
                self._history_messages += (
                    []
                    if is_older and not parts
                    else [sql_history.find_change_difference(self.connection, parts, result)]
                )
        elif result.ladder not in self.stored:
            yield Finding("standings", None, f"{result.ladder} is missing from the stored generation")

    def list_history_findings(self) -> list[Finding]:
        """Return a finding for each error of the SQL history; only a full comparison reports superfluous parts."""
        superfluous = [
            f"{name}: changes are stored that a replay does not have"
            for name in (self.parts or () if not self.since else ())
            if name not in self._uncompared and not is_named(name, self._failed)
        ]
        messages = (*self._history_messages, *superfluous)
        return [_build_finding(message) for message in messages if message is not None]


def _has_history(connection: Connection, generation: Row[Any]) -> bool:
    """Tell whether a generation is live and has an SQL history."""
    live = read_live_generation(connection)
    return live is not None and generation.generation == live.generation == sql_history.read_history_generation(
        connection
    )


def _build_finding(message: str) -> Finding:
    return Finding("standings", None, message)


def _find_unreadable_value(generation: Row[Any], ladders: Sequence[Row[Any]]) -> str | None:
    """Describe a value in the rows of a generation that no rebuild would write; return None if there is none."""
    for row in (generation, *ladders):
        location = f"generation {generation.generation}" if row is generation else quote(str(row.ladder))
        for name, value in row._mapping.items():
            expected: Any = bytes if name == "chain_hash" else str if name in ("ladder", "ruleset", "digest") else int
            value = bytes(value) if isinstance(value, memoryview) else value
            if name == "built_at" and value is None:
                continue
            if not isinstance(value, expected) or (expected is int and not 0 <= value < 2**62):
                return f"{location}: {name} is stored as {quote(str(value)[:40])}"
    return None

"""Verify projections: compare published lists and stored standings with replays at the same coordinates."""

import shlex
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, Row
from sqlalchemy.exc import DBAPIError

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import RulesetUnusable, StoreDamaged, WorkerLost
from ratings_ledger.ledger.events.records import ZERO
from ratings_ledger.ledger.processes.forking import TimeLimitExceeded
from ratings_ledger.ledger.rejections import count, quote
from ratings_ledger.ledger.store.exports import ChainHead, parse_chain_head
from ratings_ledger.ledger.store.log import head, read_chain_hash, read_matching_records
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.runs import DONE, RUNNING, list_runs, record_run
from ratings_ledger.ledger.validation.published_lists import PublishedList, read_published_lists
from ratings_ledger.ledger.verification import Finding, VerifiedCounts, verify_log, verify_order
from ratings_ledger.projections.admission.ladder_checks import RecordedChecks
from ratings_ledger.projections.facts.column_files import TRACES, list_files
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.facts.decoding import decode, extend, read_rulesets_at, replay_clock_of
from ratings_ledger.projections.game_clock.state import settle_completely
from ratings_ledger.projections.queries.coordinates import UnknownLadder
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.published_lists import load_published_list
from ratings_ledger.projections.queries.results import HIDDEN, Result
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.replay.trace_cache import find_wrong_traces
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
from ratings_ledger.projections.stored.rule_processes import (
    RULE_SECONDS,
    compute_ladder,
    describe_lost_process,
    preload_rules,
)
from ratings_ledger.projections.stored.work import WorkAt, create_local_work_at


def verify_clocks(connection: Connection, after: int = 0) -> Generator[Finding, None, None]:
    """Yield a finding for each contradiction between a game's result and its clock about the removal of a player.

    Only games with an event after the position `after` are checked.
    """
    until = head(connection).position
    if not read_matching_records(connection, until=until, type_name="clock.started"):
        return
    facts = decode(connection, until, cached=bool(after))
    for game_id, events in facts.recorded.clocks.items():
        clock, row = replay_clock_of(facts, game_id), facts.rows.get(game_id, NONE)
        if clock is None or row == NONE or row in facts.voided:
            continue
        if max(facts.live_position[row], *(event[0] for event in events)) <= after:
            continue
        surely_removed = {name for name, player_clock in clock.players.items() if player_clock.removed_at is not None}
        # the log of a clock may end before a removal that was still due
        settle_completely(clock)
        maybe_removed = {name for name, player_clock in clock.players.items() if player_clock.removed_at is not None}
        for slot in range(facts.start[row], facts.start[row] + facts.count[row]):
            names = {name for name in clock.players if _is_participant(facts, name, slot)}
            status = facts.status_of(slot)
            removed_names = maybe_removed if status == "removed" else surely_removed
            if names and (status == "removed") != bool(names & removed_names):
                removals = [instant for name in names if (instant := clock.players[name].removed_at) is not None]
                clock_note = f"removed them at {removals[0]} ms" if removals else "never removed them"
                yield Finding(
                    "clock",
                    facts.live_position[row],
                    f"{game_id}: {facts.name_of(slot)} is {status} in the result, but the game's clock {clock_note}; "
                    f"see: ratings clock show {shlex.quote(game_id)}",
                )


def verify_traces(connection: Connection) -> Generator[Finding, None, None]:
    """Yield a finding for each cached trace that differs from a replay from the first game, and delete the trace."""
    facts = decode(connection)
    if facts.cache is None or not any(list_files(facts.cache / TRACES)):
        return
    for ladder, path in find_wrong_traces(facts, decode(connection, facts.position, cached=False)):
        yield Finding("trace", None, f"{path} differs from a replay of {ladder}; it is deleted")


def _is_participant(facts: Facts, player: str, slot: int) -> bool:
    """Tell whether an id belongs to the participant in a slot."""
    number = facts.player_numbers.get(player)
    return number is not None and facts.person[number] == facts.person_of(slot)


def verify_published(
    connection: Connection, rule_seconds: float = RULE_SECONDS, after: int = 0
) -> Generator[Finding, None, int]:
    """Yield a finding for each published list after a position that differs from a replay.

    Return the number of lists checked. A third-party rule runs in a separate process, for at most `rule_seconds` per
    list; if the rule returns no result, the other lists of its ruleset are not computed.
    """
    published = read_published_lists(connection, head(connection).position)
    lists = sorted((entry for entry in published if entry.position > after), key=lambda entry: entry.known_at)
    if not lists:
        return 0
    # a single pass through the log that stops where each list was computed
    facts = decode(connection, 0, ahead=lists[-1].known_at, cached=False)
    lost: dict[str, str] = {}
    for entry in lists:
        description = f"{entry.ladder}, published by {entry.event_id}"
        if entry.known_at >= entry.position:
            yield Finding(
                "published",
                entry.position,
                f"{description}, names the position {entry.known_at}, which is not earlier than the list's own",
            )
            continue
        if facts.position < entry.known_at:
            extend(facts, connection, entry.known_at)
        recomputed = _recompute_list(facts, entry, rule_seconds, lost)
        if isinstance(recomputed, str):
            yield Finding("published", entry.position, f"{description}, cannot be computed: {recomputed}")
            continue
        if (problem := _find_list_problem(connection, entry)) is not None:
            yield Finding("published", entry.position, f"{description}: {problem}")
        if (recomputed.digest, recomputed.games) != (entry.digest, entry.games):
            difference = _describe_difference(entry, recomputed)
            message = f"{description}, differs from a replay at position {entry.known_at}: {difference}"
            yield Finding("published", entry.position, message)
    return len(lists)


def _recompute_list(
    facts: Facts, published: PublishedList, rule_seconds: float, lost: dict[str, str]
) -> BuiltLadder | str:
    """Compute a list from the facts, or return the reason why that fails.

    `lost` collects the rulesets whose rules returned no result, with the reason.
    """
    ruleset_id = parse_name(published.ladder).ruleset_id
    if ruleset_id in lost:
        return lost[ruleset_id]
    try:
        built = compute_ladder(Ladders(facts, published.as_of), published.ladder, rule_seconds)
    except (TimeLimitExceeded, WorkerLost) as error:
        lost[ruleset_id] = describe_lost_process(error)
        return lost[ruleset_id]
    except (UnknownLadder, RulesetUnusable) as problem:
        return str(problem)
    return built.message if isinstance(built, LadderFailure) else built


def _find_list_problem(connection: Connection, published: PublishedList) -> str | None:
    """Describe the error in a list's recorded rows, or return None."""
    try:
        ranking = load_published_list(connection, published)
    except StoreDamaged as problem:
        return str(problem)
    return None if ranking.digest == published.digest else "the digest does not match the rows"


def _describe_difference(published: PublishedList, built: BuiltLadder) -> str:
    if built.ruleset != published.ruleset:
        return f"the replay is ranked under {built.ruleset}, not {published.ruleset}"
    if len(built.rows) != published.row_count:
        return f"the replay has {count(len(built.rows), 'row')}, not {published.row_count:,}"
    if built.digest == published.digest:
        return f"the replay counts {count(built.games, 'game')}, not {published.games:,}"
    return f"the replay has the digest {built.digest}"


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
        since: A position; ladders computed before it are not compared.
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
        yield Finding("standings", None, f"{name}: the row contradicts the row of the generation that built the ladder")
    comparison = _Comparison(connection, generation, work_at or create_local_work_at(rule_seconds), since)
    if since:
        yield from comparison.find_unusable_rulesets()
    for position in comparison.list_positions():
        yield from comparison.compare_at(position)
    differing = comparison.list_history_findings()
    if differing and not _has_history(connection, generation):
        # only the live generation has a history, and a newer generation has become live meanwhile
        return (yield from verify_standings(connection, None, rule_seconds, work_at, since))
    yield from sorted(differing, key=lambda finding: finding.message)
    return len(comparison.rows)


class _Comparison:
    """A comparison of a generation with replays; with `since`, only of the ladders computed after that position."""

    def __init__(self, connection: Connection, generation: Row[Any], work_at: WorkAt, since: int) -> None:
        self.connection, self.generation, self.work_at, self.since = connection, generation, work_at, since
        self.stored = {row.ladder: row for row in list_ladder_rows(connection, generation.generation)}
        earlier = list_ladders_built_before(connection, generation.generation, since) if since else ()
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
        is_newest = position == self.generation.position and not self.since
        hashes = {bytes(row.chain_hash) for row in remaining.values()}
        hashes |= {bytes(self.generation.chain_hash)} if is_newest else set()
        if hashes != {read_chain_hash(self.connection, position)}:
            yield Finding("standings", position, "the stored standings were computed from a different history")
            self._uncompared |= {*remaining, *([sql_history.GAMES] if is_newest else [])}
            return
        requested = () if is_newest else tuple(remaining)
        findings: list[Finding] = []
        with self.work_at(self.connection, position) as work:
            with closing(work.compute(requested, requested, self.parts is not None)[1]) as results:
                for result in results:
                    findings += self._compare(result, remaining)
            findings += [Finding("standings", None, f"{name} is missing from a replay") for name in remaining]
            if self.parts is not None and is_newest:
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


@dataclass(frozen=True, slots=True)
class Verification(Result):
    """The findings of a verification, and the numbers of checked objects.

    With `since`, only data recorded or computed after that head was checked.
    """

    findings: tuple[Finding, ...]
    checked: VerifiedCounts
    since: ChainHead | None = field(metadata=HIDDEN)


# the codes of findings with which a log can still be replayed
REPLAYABLE_CODES = ("guard", "schema", "head", "meaning", "not-a-record")
T = TypeVar("T")


def verify_all(
    ledger: Ledger,
    expected: ChainHead | None = None,
    rule_seconds: float = RULE_SECONDS,
    on_finding: Callable[[Finding], None] = lambda finding: None,
    work_at: WorkAt | None = None,
    since: ChainHead | None = None,
    only_new: bool = False,
) -> Verification:
    """Verify the log and everything computed from it, and report each finding immediately. The run is recorded.

    Args:
        ledger: The opened ledger.
        expected: A head that the log must contain.
        rule_seconds: The processor time that a third-party rule may take for a ladder, in a separate process.
        on_finding: Receives each finding.
        work_at: Provides the work of replaying the stored standings at a position; by default, this machine does it.
        since: A head that was verified before; only data recorded or computed after it is checked.
        only_new: Whether to use the last verified head as `since`. If the last run had findings, everything is checked
            instead, and the log must contain that head.

    Raises:
        StoreUnavailable: The store could not be read.
    """
    findings: list[Finding] = []

    def collect(check: Generator[Finding, None, T]) -> T:
        while True:
            try:
                finding = next(check)
            except StopIteration as end:
                result: T = end.value
                return result
            findings.append(finding)
            on_finding(finding)

    with record_run(ledger, "verify", clock.now, only_after_success=True) as run:
        with ledger.reading() as connection:
            last_head, is_clean = LastVerification(None, False)
            if only_new or since:
                last_head, is_clean = find_last_verification(ledger, connection)
            if only_new:
                expected, since = (None, last_head) if is_clean else (last_head, None)
            after = 0 if since is None else since.position
            checked = collect(verify_log(ledger, connection, expected, since))
            # an unreadable or incomplete log cannot confirm or refute the data computed from it
            if checked.guards and all(finding.code in REPLAYABLE_CODES for finding in findings):
                computed = _ProjectionChecks(ledger, connection, rule_seconds, work_at, after)
                checked = collect(computed.verify(checked, findings))
            run.position = after + checked.events
            # record the verified head only if no unverified gap precedes this part
            if not findings and (since is None or (last_head is not None and after <= last_head.position)):
                run.details["head"] = str(ChainHead(run.position, read_chain_hash(connection, run.position) or ZERO))
        run.details |= {"checked": checked._asdict(), "findings": len(findings)}
        run.details |= {"without_cache": work_at is None} if since is None else {"since": str(since)}
        if findings:
            run.fail(f"{count(len(findings), 'finding')}; the first is {findings[0]}")
    return Verification(tuple(findings), checked, since)


class LastVerification(NamedTuple):
    """The last head up to which a verification had no findings, and whether the latest verification had none."""

    head: ChainHead | None
    is_clean: bool


def find_last_verification(ledger: Ledger, connection: Connection) -> LastVerification:
    """Return the last verified head from the recorded runs; the head is None if the runs cannot be read."""
    try:
        runs_by_time = list_runs(ledger, connection, clock.now())
    except DBAPIError:
        return LastVerification(None, False)
    runs = [run for run in runs_by_time if run.kind == "verify" and run.result != RUNNING]
    texts = [run.details.get("head") for run in runs if run.result == DONE]
    heads = (parse_chain_head(text) for text in texts if isinstance(text, str))
    return LastVerification(next(filter(None, heads), None), bool(runs) and runs[0].result == DONE)


class _ProjectionChecks(NamedTuple):
    """The checks of all data computed from a log, or only of the data after the position `after`."""

    ledger: Ledger
    connection: Connection
    rule_seconds: float
    work_at: WorkAt | None
    after: int

    def verify(self, checked: VerifiedCounts, findings: Sequence[Finding]) -> Generator[Finding, None, VerifiedCounts]:
        """Yield the findings, which the caller appends to `findings`; return the numbers of checked objects."""
        ledger, connection, rule_seconds, work_at, after = self
        try:
            preload_rules(ledger, rule_seconds)
            yield from verify_clocks(connection, after)
            checked = checked._replace(lists=(yield from verify_published(connection, rule_seconds, after)))
            if not after:
                yield from verify_order(connection, RecordedChecks, {finding.position for finding in findings})
            standings = verify_standings(connection, None, rule_seconds, work_at, after)
            checked = checked._replace(ladders=(yield from standings))
            if not after:
                yield from verify_traces(connection)
        except (StoreDamaged, RulesetUnusable) as problem:
            yield Finding("rule", None, f"the log cannot be replayed: {problem}")
        except DBAPIError as error:
            if not ledger.dialect.is_damage(error.orig or error):
                raise
            yield Finding("standings", None, f"the stored standings cannot be read: {str(error.orig).splitlines()[0]}")
        return checked

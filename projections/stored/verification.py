"""`verify` for the projections: published lists and stored standings against a replay where they were computed."""

import shlex
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, Row
from sqlalchemy.exc import DBAPIError

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import RulesetUnusable, StoreDamaged, WorkerLost
from ratings_ledger.ledger.events.games import STATUSES
from ratings_ledger.ledger.events.records import ZERO
from ratings_ledger.ledger.processes.forking import TimeLimitExceeded
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.store.exports import Place, parse_place
from ratings_ledger.ledger.store.log import chain_hash_at, head, read_where
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.runs import DONE, RUNNING, all_runs, record_run
from ratings_ledger.ledger.validation.published_lists import PublishedList, published_lists
from ratings_ledger.ledger.verification import Finding, VerifiedCounts, verify_log, verify_order
from ratings_ledger.projections.admission.events import RecordedChecks
from ratings_ledger.projections.facts.column_files import TRACES, files_in
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.facts.decoding import decode, extend, read_rulesets_at, replay_clock_of
from ratings_ledger.projections.game_clock.state import run_out
from ratings_ledger.projections.queries.coordinates import UnknownLadder
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.published import as_published
from ratings_ledger.projections.queries.results import HIDDEN, Result
from ratings_ledger.projections.replay.ladders import parse_name
from ratings_ledger.projections.replay.trace_cache import find_wrong_traces
from ratings_ledger.projections.stored import sql_history
from ratings_ledger.projections.stored.computing import Built, LadderFailure, is_named
from ratings_ledger.projections.stored.generations import (
    built_before,
    built_otherwise,
    ladders_of,
    live,
    pointer_findings,
    standings_differing,
)
from ratings_ledger.projections.stored.rule_processes import RULE_SECONDS, one_ladder, try_to_load, why_lost
from ratings_ledger.projections.stored.work import WorkAt, work_here_at


def verify_clocks(connection: Connection, after: int = 0) -> Generator[Finding, None, None]:
    """Results that contradict the game's clock about a player's removal, of games with events behind a position."""
    until = head(connection).position
    if not read_where(connection, until=until, type_name="clock.started"):
        return
    facts = decode(connection, until, cached=bool(after))
    for game_id, events in facts.recorded.clocks.items():
        clock, row = replay_clock_of(facts, game_id), facts.rows.get(game_id, NONE)
        if clock is None or row == NONE or row in facts.voided:
            continue
        if max(facts.live_position[row], *(event[0] for event in events)) <= after:
            continue
        sure = {name for name, player_clock in clock.players.items() if player_clock.removed_at is not None}
        # a log may end with something still due: the server had no more to say
        run_out(clock)
        possible = {name for name, player_clock in clock.players.items() if player_clock.removed_at is not None}
        for p in range(facts.start[row], facts.start[row] + facts.count[row]):
            names = {name for name in clock.players if _is(facts, name, p)}
            status = STATUSES[facts.status[p]]
            if names and (status == "removed") != bool(names & (possible if status == "removed" else sure)):
                ended = [at for name in names if (at := clock.players[name].removed_at) is not None]
                removed = f"removed them at {ended[0]} ms" if ended else "never removed them"
                yield Finding(
                    "clock",
                    facts.live_position[row],
                    f"{game_id}: {facts.name_of(p)} is {status} in the result, but its clock {removed}; see: "
                    f"ratings clock show {shlex.quote(game_id)}",
                )


def verify_traces(connection: Connection) -> Generator[Finding, None, None]:
    """Traces in the cache that a replay from the first game does not confirm; they are deleted."""
    facts = decode(connection)
    if facts.cache is None or not any(files_in(facts.cache / TRACES)):
        return
    for ladder, path in find_wrong_traces(facts, decode(connection, facts.position, cached=False)):
        yield Finding("trace", None, f"{path} says something else about {ladder} than a replay; it is deleted")


def _is(facts: Facts, player: str, participant: int) -> bool:
    """Tell whether an id is that of a participant."""
    number = facts.player_numbers.get(player)
    return number is not None and facts.person[number] == facts.person_of(participant)


def verify_published(
    connection: Connection, rule_seconds: float = RULE_SECONDS, after: int = 0
) -> Generator[Finding, None, int]:
    """Published lists that a replay at their coordinates does not give: what was known, and what had been played.
    Returns how many lists there are behind a position.

    The rule of a package runs in a process of its own, each list for at most `rule_seconds`; if it gives no result, the
    other lists of its ruleset are not tried.
    """
    published = published_lists(connection, head(connection).position)
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
                "published", entry.position, f"{description}, names position {entry.known_at}, which is not before it"
            )
            continue
        if facts.position < entry.known_at:
            extend(facts, connection, entry.known_at)
        recomputed = _recomputed(facts, entry, rule_seconds, lost)
        if isinstance(recomputed, str):
            yield Finding("published", entry.position, f"{description}, cannot be computed: {recomputed}")
            continue
        if (wrong := _why_not_whole(connection, entry)) is not None:
            yield Finding("published", entry.position, f"{description}: {wrong}")
        if (recomputed.digest, recomputed.games) != (entry.digest, entry.games):
            yield Finding(
                "published",
                entry.position,
                f"{description}, does not come out of position {entry.known_at}: {_why(entry, recomputed)}",
            )
    return len(lists)


def _recomputed(facts: Facts, published: PublishedList, rule_seconds: float, lost: dict[str, str]) -> Built | str:
    """Return a list as computed from the facts, or why it cannot be; `lost`: the rulesets that gave no result."""
    ruleset_id = parse_name(published.ladder).ruleset_id
    if ruleset_id in lost:
        return lost[ruleset_id]
    try:
        built = one_ladder(Ladders(facts, published.as_of), published.ladder, rule_seconds)
    except (TimeLimitExceeded, WorkerLost) as error:
        lost[ruleset_id] = why_lost(error)
        return lost[ruleset_id]
    except (UnknownLadder, RulesetUnusable) as problem:
        return str(problem)
    return built.message if isinstance(built, LadderFailure) else built


def _why_not_whole(connection: Connection, published: PublishedList) -> str | None:
    """Return what is wrong with the recorded rows, or None."""
    try:
        ranking = as_published(connection, published)
    except StoreDamaged as problem:
        return str(problem)
    return None if ranking.digest == published.digest else "its rows do not have its digest"


def _why(published: PublishedList, built: Built) -> str:
    if built.ruleset != published.ruleset:
        return f"it is ranked under {built.ruleset}, not {published.ruleset}"
    if len(built.rows) != published.row_count:
        return f"it has {len(built.rows)} rows, not {published.row_count}"
    if built.digest == published.digest:
        return f"it counts {built.games} games, not {published.games}"
    return f"a replay has the digest {built.digest}"


def verify_standings(
    connection: Connection,
    kept: Row[Any] | None = None,
    rule_seconds: float = RULE_SECONDS,
    at: WorkAt | None = None,
    since: int = 0,
) -> Generator[Finding, None, int]:
    """Ladders of the live generation, or of a kept one, that a replay does not confirm; none before the first rebuild.
    Returns how many ladders were compared; those whose rows were computed before the position `since` are not.

    Those built at a different position from the generation's are replayed there; the work is that `at` a position, by
    default done here, from the log alone. The rules of packages run in processes of their own, each ladder for at most
    `rule_seconds`.
    """
    generation = kept or live(connection)
    for message in pointer_findings(connection) if kept is None else ():
        yield Finding("standings", None, message)
    if generation is None:
        return 0
    if wrong := _why_unreadable(generation, ladders_of(connection, generation.generation)):
        yield Finding("standings", None, wrong)
        return 0
    for name in built_otherwise(connection, generation.generation):
        yield Finding("standings", None, f"{name}: another generation built it, and says something else about it")
    comparison = _Comparison(connection, generation, at or work_here_at(rule_seconds), since)
    if since:
        yield from comparison.unusable_findings()
    for position in comparison.positions():
        yield from comparison.compare_at(position)
    differing = comparison.history_findings()
    if differing and not _has_history(connection, generation):
        # it is kept only for the live generation, which has changed meanwhile
        return (yield from verify_standings(connection, None, rule_seconds, at, since))
    yield from sorted(differing, key=lambda finding: finding.message)
    return len(comparison.rows)


class _Comparison:
    """The comparison of a generation with a replay; of the ladders computed since a position, if there is one."""

    def __init__(self, connection: Connection, generation: Row[Any], at: WorkAt, since: int) -> None:
        self.connection, self.generation, self.at, self.since = connection, generation, at, since
        self.stored = {row.ladder: row for row in ladders_of(connection, generation.generation)}
        earlier = built_before(connection, generation.generation, since) if since else ()
        self.rows = {name: row for name, row in self.stored.items() if name not in earlier}
        has_history = _has_history(connection, generation)
        # what is kept for SQL and was not compared yet, by ladder
        self.parts = sql_history.kept_parts(connection, generation.generation) if has_history else None
        self._failed, self._unseen = set[str](), set[str]()
        self._history: list[str | None] = []

    def unusable_findings(self) -> Iterator[Finding]:
        """Yield which rulesets cannot be used; a whole comparison meets them by itself."""
        for name, version in sorted(read_rulesets_at(self.connection, self.generation.position).unusable.items()):
            self._failed.add(name)
            yield Finding("rule", version.position, f"{name}: {version.reason}")

    def positions(self) -> list[int]:
        """Return where there is something to replay, the newest first."""
        every = {row.position for row in self.rows.values()} | ({self.generation.position} if not self.since else set())
        return sorted(every, reverse=True)

    def compare_at(self, position: int) -> Iterator[Finding]:
        """Yield how the ladders that were built at a position differ from a replay."""
        here = {name: row for name, row in self.rows.items() if row.position == position}
        is_newest = position == self.generation.position and not self.since
        hashes = {bytes(row.chain_hash) for row in here.values()}
        hashes |= {bytes(self.generation.chain_hash)} if is_newest else set()
        if hashes != {chain_hash_at(self.connection, position)}:
            yield Finding("standings", position, "the live generation was computed from a different history")
            self._unseen |= {*here, *([sql_history.GAMES] if is_newest else [])}
            return
        asked = () if is_newest else tuple(here)
        findings: list[Finding] = []
        with self.at(self.connection, position) as work:
            with closing(work.compute(asked, asked, self.parts is not None)[1]) as results:
                for result in results:
                    findings += self._compare(result, here)
            findings += [Finding("standings", None, f"{name} is missing from a replay") for name in here]
            if self.parts is not None and is_newest:
                is_whole = len(work.facts.first_position) == work.games
                facts = work.facts if is_whole else decode(self.connection, position, cached=False)
                games = self.parts.pop(sql_history.GAMES, [])
                self._history.append(sql_history.games_differing(self.connection, games, facts))
        yield from sorted(findings, key=lambda finding: (finding.position or 0, finding.message))

    def _compare(self, result: Built | LadderFailure, here: dict[str, Row[Any]]) -> Iterator[Finding]:
        """Yield how a ladder differs from what is stored, and take it out of those still to be compared `here`."""
        if isinstance(result, LadderFailure):
            for name in [name for name in here if is_named(name, [result.ladder])]:
                del here[name]
            if result.ladder not in self._failed:
                yield Finding("rule", result.position, f"{result.ladder}: {result.message}")
            self._failed.add(result.ladder)
        elif row := here.pop(result.ladder, None):
            yield from map(_standings, standings_differing(self.connection, row, result))
            if self.parts is not None:
                parts, is_older = self.parts.pop(result.ladder, []), row.position < self.generation.position
                self._history += (
                    [] if is_older and not parts else [sql_history.differing(self.connection, parts, result)]
                )
        elif result.ladder not in self.stored:
            yield Finding("standings", None, f"{result.ladder} is missing from the stored generation")

    def history_findings(self) -> list[Finding]:
        """Return what is wrong with what is kept for SQL; only a whole comparison knows what should not be there."""
        extra = [
            f"{name}: it has stored changes that a replay does not have"
            for name in (self.parts or () if not self.since else ())
            if name not in self._unseen and not is_named(name, self._failed)
        ]
        return [_standings(message) for message in (*self._history, *extra) if message is not None]


def _has_history(connection: Connection, generation: Row[Any]) -> bool:
    """Tell whether a generation is the live one, and its changes and games are kept."""
    now = live(connection)
    return now is not None and generation.generation == now.generation == sql_history.pointer(connection)


def _standings(message: str) -> Finding:
    return Finding("standings", None, message)


def _why_unreadable(generation: Row[Any], ladders: Sequence[Row[Any]]) -> str | None:
    """Return what in the rows of a generation has a different type from what is written, or None."""
    for row in (generation, *ladders):
        what = f"generation {generation.generation}" if row is generation else quote(str(row.ladder))
        for name, value in row._mapping.items():
            wanted: Any = bytes if name == "chain_hash" else str if name in ("ladder", "ruleset", "digest") else int
            value = bytes(value) if isinstance(value, memoryview) else value
            if name == "built_at" and value is None:
                continue
            if not isinstance(value, wanted) or (wanted is int and not -1 <= value < 2**62):
                return f"{what}: {name} is stored as {quote(str(value)[:40])}"
    return None


@dataclass(frozen=True, slots=True)
class Verification(Result):
    """What is wrong with what is stored, or was recorded or computed `since`; how much of each kind was looked at."""

    findings: tuple[Finding, ...]
    checked: VerifiedCounts
    since: Place | None = field(metadata=HIDDEN)


# a log with these findings can be replayed all the same
REPLAYED = ("guard", "schema", "head", "meaning", "not-a-record")
T = TypeVar("T")


def verify_all(
    ledger: Ledger,
    expected: Place | None = None,
    rule_seconds: float = RULE_SECONDS,
    tell: Callable[[Finding], None] = lambda finding: None,
    at: WorkAt | None = None,
    since: Place | None = None,
    only_new: bool = False,
) -> Verification:
    """Check everything that is stored, and tell each finding at once. It leaves a run.

    Args:
        expected: a place that the log must contain.
        rule_seconds: how long the rule of a package may take for each ladder, in a process of its own.
        tell: is told each finding.
        at: the work of replaying the stored standings at a position, by default done here.
        since: a place that was verified before: only what was recorded, and computed, since is checked.
        only_new: whether that is the last verified place; after a finding everything is checked until all is well, and
            that place must be in the log.

    Raises:
        StoreUnavailable: something kept it from checking.
    """
    findings: list[Finding] = []

    def take(found: Generator[Finding, None, T]) -> T:
        while True:
            try:
                finding = next(found)
            except StopIteration as end:
                result: T = end.value
                return result
            findings.append(finding)
            tell(finding)

    with record_run(ledger, "verify", clock.now, only_if_well=True) as run:
        with ledger.reading() as connection:
            known, is_well = last_verified(ledger, connection) if only_new or since else LastVerified(None, False)
            if only_new:
                expected, since = (None, known) if is_well else (known, None)
            after = 0 if since is None else since.position
            checked = take(verify_log(ledger, connection, expected, since))
            # a log that is unreadable or incomplete says nothing about what is computed from it
            if checked.guards and all(finding.code in REPLAYED for finding in findings):
                computed = _Computed(ledger, connection, rule_seconds, at, after)
                checked = take(computed.verify(checked, findings))
            run.position = after + checked.events
            # what lies between two verified parts is not verified
            if not findings and (since is None or (known is not None and after <= known.position)):
                run.details["head"] = str(Place(run.position, chain_hash_at(connection, run.position) or ZERO))
        run.details |= {"checked": checked._asdict(), "findings": len(findings)}
        run.details |= {"without_cache": at is None} if since is None else {"since": str(since)}
        if findings:
            summary = "1 finding" if len(findings) == 1 else f"{len(findings):,} findings"
            run.fail(f"{summary}; the first is {findings[0]}")
    return Verification(tuple(findings), checked, since)


class LastVerified(NamedTuple):
    """The last place up to which a ledger was found well, and whether no `verify` has failed since."""

    place: Place | None
    is_well: bool


def last_verified(ledger: Ledger, connection: Connection) -> LastVerified:
    """Return how far `verify` last got, as its runs tell; if they cannot be read, it got nowhere."""
    try:
        every = all_runs(ledger, connection, clock.now())
    except DBAPIError:
        return LastVerified(None, False)
    runs = [run for run in every if run.kind == "verify" and run.result != RUNNING]
    heads = [run.details.get("head") for run in runs if run.result == DONE]
    places = (parse_place(head) for head in heads if isinstance(head, str))
    return LastVerified(next(filter(None, places), None), bool(runs) and runs[0].result == DONE)


class _Computed(NamedTuple):
    """What is computed from a log, as far as it is checked: all, or what was recorded or computed after a position."""

    ledger: Ledger
    connection: Connection
    rule_seconds: float
    at: WorkAt | None
    after: int

    def verify(self, checked: VerifiedCounts, findings: Sequence[Finding]) -> Generator[Finding, None, VerifiedCounts]:
        """Yield what is wrong; `findings` are those so far, extended by what is yielded."""
        ledger, connection, rule_seconds, at, after = self
        try:
            try_to_load(ledger, rule_seconds)
            yield from verify_clocks(connection, after)
            checked = checked._replace(lists=(yield from verify_published(connection, rule_seconds, after)))
            if not after:
                yield from verify_order(connection, RecordedChecks, {finding.position for finding in findings})
            standings = verify_standings(connection, None, rule_seconds, at, after)
            checked = checked._replace(ladders=(yield from standings))
            if not after:
                yield from verify_traces(connection)
        except (StoreDamaged, RulesetUnusable) as problem:
            yield Finding("rule", None, f"the log cannot be replayed: {problem}")
        except DBAPIError as error:
            if not ledger.dialect.is_damage(error.orig or error):
                raise
            yield Finding("standings", None, f"what is stored cannot be read: {str(error.orig).splitlines()[0]}")
        return checked

"""`verify` for the projections: published lists and stored standings against a replay where they were computed."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from shlex import quote
from typing import Any, TypeVar

from sqlalchemy import Connection, Row
from sqlalchemy.exc import DBAPIError

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import RulesetUnusable, StoreDamaged, WorkerLost
from ratings_ledger.ledger.events.games import STATUSES
from ratings_ledger.ledger.processes.forking import TooSlow
from ratings_ledger.ledger.rejections import shown
from ratings_ledger.ledger.store.log import chain_hash_at, head, read_where
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.runs import running
from ratings_ledger.ledger.validation.published_lists import PublishedList, published_lists
from ratings_ledger.ledger.verification import Finding, Verified, verify_log, verify_order
from ratings_ledger.projections.admission.events import RecordedChecks
from ratings_ledger.projections.facts.column_files import TRACES, files_in
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.facts.decoding import clock_of, decode, extend
from ratings_ledger.projections.game_clock.state import run_out
from ratings_ledger.projections.queries.coordinates import UnknownLadder
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.published import as_published
from ratings_ledger.projections.queries.results import Result
from ratings_ledger.projections.replay.kept_traces import wrong_traces
from ratings_ledger.projections.replay.ladders import parse_name
from ratings_ledger.projections.stored import sql_history
from ratings_ledger.projections.stored.computing import Built, LadderFailure, is_named
from ratings_ledger.projections.stored.generations import (
    built_otherwise,
    ladders_of,
    live,
    pointer_findings,
    standings_differing,
)
from ratings_ledger.projections.stored.rule_processes import RULE_SECONDS, one_ladder, try_to_load, why_lost
from ratings_ledger.projections.stored.work import WorkAt, work_here_at


def verify_clocks(connection: Connection) -> Generator[Finding, None, None]:
    """Results that contradict the game's clock about a player's removal."""
    until = head(connection).position
    if not read_where(connection, until=until, type_name="clock.started"):
        return
    facts = decode(connection, until, cached=False)
    for game_id in facts.recorded.clocks:
        clock, row = clock_of(facts, game_id), facts.rows.get(game_id, NONE)
        if clock is None or row == NONE or row in facts.voided:
            continue
        sure = {name for name, one in clock.players.items() if one.removed_at is not None}
        # a log may end with something still due: the server had no more to say
        run_out(clock)
        possible = {name for name, one in clock.players.items() if one.removed_at is not None}
        for p in range(facts.start[row], facts.start[row] + facts.count[row]):
            names = {name for name in clock.players if _is(facts, name, p)}
            status = STATUSES[facts.status[p]]
            if names and (status == "removed") != bool(names & (possible if status == "removed" else sure)):
                ended = [at for name in names if (at := clock.players[name].removed_at) is not None]
                removed = f"removed them at {ended[0]} ms" if ended else "never removed them"
                yield Finding(
                    "clock", facts.live_position[row],
                    f"{game_id}: {facts.name_of(p)} is {status} in the result, but its clock {removed}; see: "
                    f"ratings clock show {quote(game_id)}",
                )  # fmt: skip


def verify_traces(connection: Connection) -> Generator[Finding, None, None]:
    """Traces in the cache that a replay from the first game does not confirm; they are deleted."""
    facts = decode(connection)
    if facts.cache is None or not any(files_in(facts.cache / TRACES)):
        return
    for ladder, path in wrong_traces(facts, decode(connection, facts.position, cached=False)):
        yield Finding("trace", None, f"{path} says something else about {ladder} than a replay; it is deleted")


def _is(facts: Facts, player: str, participant: int) -> bool:
    """Tell whether an id is that of a participant."""
    number = facts.player_numbers.get(player)
    return number is not None and facts.person[number] == facts.person_of(participant)


def verify_published(connection: Connection, rule_seconds: float = RULE_SECONDS) -> Generator[Finding, None, int]:
    """Published lists that a replay at their coordinates does not give: what was known, and what had been played.
    Returns how many lists there are.

    The rule of a package runs in a process of its own, each list for at most `rule_seconds`; if it gives no result, the
    other lists of its ruleset are not tried.
    """
    lists = sorted(published_lists(connection, head(connection).position), key=lambda one: one.known_at)
    if not lists:
        return 0
    # a single pass through the log that stops where each list was computed
    facts = decode(connection, 0, ahead=lists[-1].known_at, cached=False)
    lost: dict[str, str] = {}
    for one in lists:
        told = f"{one.ladder}, published by {one.event_id}"
        if one.known_at >= one.position:
            yield Finding("published", one.position, f"{told}, names position {one.known_at}, which is not before it")
            continue
        if facts.position < one.known_at:
            extend(facts, connection, one.known_at)
        found = _recomputed(facts, one, rule_seconds, lost)
        if isinstance(found, str):
            yield Finding("published", one.position, f"{told}, cannot be computed: {found}")
            continue
        if (wrong := _why_not_whole(connection, one)) is not None:
            yield Finding("published", one.position, f"{told}: {wrong}")
        if (found.digest, found.games) != (one.digest, one.games):
            yield Finding(
                "published", one.position, f"{told}, does not come out of position {one.known_at}: {_why(one, found)}"
            )
    return len(lists)


def _recomputed(facts: Facts, one: PublishedList, rule_seconds: float, lost: dict[str, str]) -> Built | str:
    """Return a list as computed from the facts, or why it cannot be; `lost`: the rulesets that gave no result."""
    ruleset_id = parse_name(one.ladder).ruleset_id
    if ruleset_id in lost:
        return lost[ruleset_id]
    try:
        found = one_ladder(Ladders(facts, one.as_of), one.ladder, rule_seconds)
    except (TooSlow, WorkerLost) as error:
        lost[ruleset_id] = why_lost(error)
        return lost[ruleset_id]
    except (UnknownLadder, RulesetUnusable) as problem:
        return str(problem)
    return found.message if isinstance(found, LadderFailure) else found


def _why_not_whole(connection: Connection, one: PublishedList) -> str | None:
    """Return what is wrong with the recorded rows, or None."""
    try:
        found = as_published(connection, one)
    except StoreDamaged as problem:
        return str(problem)
    return None if found.digest == one.digest else "its rows do not have its digest"


def _why(one: PublishedList, found: Built) -> str:
    if found.ruleset != one.ruleset:
        return f"it is ranked under {found.ruleset}, not {one.ruleset}"
    if len(found.rows) != one.row_count:
        return f"it has {len(found.rows)} rows, not {one.row_count}"
    if found.digest == one.digest:
        return f"it counts {found.games} games, not {one.games}"
    return f"a replay has the digest {found.digest}"


def verify_standings(
    connection: Connection, kept: Row[Any] | None = None, rule_seconds: float = RULE_SECONDS, at: WorkAt | None = None
) -> Generator[Finding, None, int]:
    """Ladders of the live generation, or of a kept one, that a replay does not confirm; none before the first rebuild.
    Returns how many ladders there are.

    Those built at a different position from the generation's are replayed there; the work is that `at` a position, by
    default done here, from the log alone. The rules of packages run in processes of their own, each ladder for at most
    `rule_seconds`.
    """
    generation = kept or live(connection)
    for message in pointer_findings(connection) if kept is None else ():
        yield Finding("standings", None, message)
    if generation is None:
        return 0
    parts = sql_history.kept_parts(connection, generation.generation) if _has_history(connection, generation) else None
    differing, unseen = list[Finding](), set[str]()
    if wrong := _why_unreadable(generation, ladders_of(connection, generation.generation)):
        yield Finding("standings", None, wrong)
        return 0
    stored = {row.ladder: row for row in ladders_of(connection, generation.generation)}
    for name in built_otherwise(connection, generation.generation):
        yield Finding("standings", None, f"{name}: another generation built it, and says something else about it")
    told: set[str] = set()
    for position in sorted({generation.position, *(row.position for row in stored.values())}, reverse=True):
        here = {name: row for name, row in stored.items() if row.position == position}
        named = {bytes(row.chain_hash) for row in here.values()}
        named |= {bytes(generation.chain_hash)} if position == generation.position else set()
        if named != {chain_hash_at(connection, position)}:
            yield Finding("standings", position, "the live generation was computed from a different history")
            unseen |= {*here, *([sql_history.GAMES] if position == generation.position else [])}
            continue
        asked = () if position == generation.position else tuple(here)
        found: list[Finding] = []
        replaying = (at or work_here_at(rule_seconds))(connection, position)
        with replaying as work, closing(work.compute(asked, asked, parts is not None)[1]) as results:
            for result in results:
                if isinstance(result, LadderFailure):
                    here = {name: row for name, row in here.items() if not is_named(name, [result.ladder])}
                    if result.ladder not in told:
                        found.append(Finding("rule", result.position, f"{result.ladder}: {result.message}"))
                    told.add(result.ladder)
                elif result.ladder in here:
                    found += map(_standings, standings_differing(connection, here[result.ladder], result))
                    if parts is not None:
                        own, older = parts.pop(result.ladder, []), here[result.ladder].position < generation.position
                        differing += [] if older and not own else _of(sql_history.differing(connection, own, result))
                    del here[result.ladder]
                elif result.ladder not in stored:
                    found.append(Finding("standings", None, f"{result.ladder} is missing from the stored generation"))
        found += [Finding("standings", None, f"{name} is missing from a replay") for name in here]
        if parts is not None and position == generation.position:
            facts = (
                work.facts
                if len(work.facts.first_position) == work.games
                else decode(connection, position, cached=False)
            )
            differing += _of(sql_history.games_differing(connection, parts.pop(sql_history.GAMES, []), facts))
        yield from sorted(found, key=lambda finding: (finding.position or 0, finding.message))
    differing += [Finding("standings", None, f"{name}: it has stored changes that a replay does not have")
                  for name in parts or () if name not in unseen and not is_named(name, told)]  # fmt: skip
    if differing and not _has_history(connection, generation):
        # it is kept only for the live generation, which has changed meanwhile
        return (yield from verify_standings(connection, None, rule_seconds, at))
    yield from sorted(differing, key=lambda finding: finding.message)
    return len(stored)


def _has_history(connection: Connection, generation: Row[Any]) -> bool:
    """Tell whether a generation is the live one, and its changes and games are kept."""
    now = live(connection)
    return now is not None and generation.generation == now.generation == sql_history.pointer(connection)


def _standings(message: str) -> Finding:
    return Finding("standings", None, message)


def _of(message: str | None) -> list[Finding]:
    return [] if message is None else [_standings(message)]


def _why_unreadable(generation: Row[Any], ladders: Sequence[Row[Any]]) -> str | None:
    """Return what in the rows of a generation has a different type from what is written, or None."""
    for row in (generation, *ladders):
        what = f"generation {generation.generation}" if row is generation else shown(str(row.ladder))
        for name, value in row._mapping.items():
            wanted: Any = bytes if name == "chain_hash" else str if name in ("ladder", "ruleset", "digest") else int
            value = bytes(value) if isinstance(value, memoryview) else value
            if name == "built_at" and value is None:
                continue
            if not isinstance(value, wanted) or (wanted is int and not -1 <= value < 2**62):
                return f"{what}: {name} is stored as {shown(str(value)[:40])}"
    return None


@dataclass(frozen=True, slots=True)
class Verification(Result):
    """What is wrong with what is stored, and how much of each kind was looked at."""

    findings: tuple[Finding, ...]
    checked: Verified


# a log with these findings can be replayed all the same
REPLAYED = ("guard", "schema", "head", "meaning", "not-a-record")
T = TypeVar("T")


def verify_all(
    ledger: Ledger, expected: tuple[int, bytes] | None = None, rule_seconds: float = RULE_SECONDS,
    tell: Callable[[Finding], None] = lambda finding: None, at: WorkAt | None = None,
) -> Verification:  # fmt: skip
    """Check everything that is stored, and tell each finding at once. It leaves a run.

    `expected` is a position and chain hash that the log must contain. The rules of packages run in processes of their
    own, each ladder for at most `rule_seconds`. The work of replaying the stored standings is that
    `at` a position, by default done here. Raises `StoreUnavailable` if something kept it from checking.
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

    with running(ledger, "verify", clock.now, only_if_well=True) as run:
        with ledger.reading() as connection:
            checked = take(verify_log(ledger, connection, expected))
            # a log that is unreadable or incomplete says nothing about what is computed from it
            if checked.guards and all(finding.code in REPLAYED for finding in findings):
                checked = take(_computed(ledger, connection, checked, findings, rule_seconds, at))
        run.position, run.details = checked.events, {
            "checked": checked._asdict(), "findings": len(findings), "without_cache": at is None,
        }  # fmt: skip
        if findings:
            told = "1 finding" if len(findings) == 1 else f"{len(findings):,} findings"
            run.fail(f"{told}; the first is {findings[0]}")
    return Verification(tuple(findings), checked)


def _computed(
    ledger: Ledger, connection: Connection, checked: Verified, findings: Sequence[Finding], rule_seconds: float,
    at: WorkAt | None,
) -> Generator[Finding, None, Verified]:  # fmt: skip
    """Yield what is wrong with anything computed from the log; `findings` are those so far, extended by what is
    yielded.
    """
    try:
        try_to_load(ledger, rule_seconds)
        yield from verify_clocks(connection)
        checked = checked._replace(lists=(yield from verify_published(connection, rule_seconds)))
        yield from verify_order(connection, RecordedChecks, {finding.position for finding in findings})
        checked = checked._replace(ladders=(yield from verify_standings(connection, rule_seconds=rule_seconds, at=at)))
        yield from verify_traces(connection)
    except (StoreDamaged, RulesetUnusable) as problem:
        yield Finding("rule", None, f"the log cannot be replayed: {problem}")
    except DBAPIError as error:
        if not ledger.dialect.is_damage(error.orig or error):
            raise
        yield Finding("standings", None, f"what is stored cannot be read: {str(error.orig).splitlines()[0]}")
    return checked

"""Import: everything is validated before anything is appended, then appended in chunks, each a transaction.

A single refusal means that nothing is appended, unless `keep_going`; a crash leaves whole chunks, and running the same
import again completes the rest, because events already there are recognised.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import Connection

from ledger.clock import Clock
from ledger.events.canonical import parse_object
from ledger.events.records import build, surely_fits
from ledger.events.types import Draft
from ledger.intake.files import Far, Item
from ledger.intake.parsing import Block, ParsedItem, read_blocks
from ledger.intake.spool import Spool, WaitingDraft
from ledger.processes.memory import rarely_collecting
from ledger.rejections import Refused, Rejection, shown
from ledger.store.appending import append, game_exists, lookup, next_recorded_at, same_drafts
from ledger.store.log import Head, Log, head
from ledger.store.opening import Ledger
from ledger.validation.identities import Identities, identities
from ledger.validation.new_names import First, Newcomers, names_of
from ledger.validation.repeated_games import resent
from ledger.validation.validator import LadderChecks, NoLadderChecks, Validator

CHUNK_EVENTS = 50_000
REJECTIONS_MAX = 10_000

# called with every refusal and the input that it is about
Reject = Callable[[Rejection, Any], None]
# called with the line of every event that ends up in the log, its id, and whether this import appended it
Settled = Callable[[int, str, bool], None]


@dataclass
class Imported:
    """What an import did; `rejected` holds the first `REJECTIONS_MAX` refusals, `rejected_count` counts all."""

    appended: int = 0
    existing: int = 0
    would_append: int = 0
    rejected: list[Rejection] = field(default_factory=list)
    rejected_count: int = 0
    head: Head | None = None
    # the players the ledger did not know, and the names that theirs are close to
    new_players: list[str] = field(default_factory=list)
    close: dict[str, list[str]] = field(default_factory=dict)
    alike: dict[str, list[str]] = field(default_factory=dict)
    # what is wrong with the files of a restore that takes them all the same
    passed: list[str] = field(default_factory=list)
    # the ladders that begin, and the names that theirs are close to; filled in by whoever knows about ladders
    new_ladders: list[str] = field(default_factory=list)
    close_ladders: dict[str, str] = field(default_factory=dict)


@dataclass
class _Intake:
    """The state of one validation pass."""

    connection: Connection
    spool: Spool
    validator: Validator
    reject: Reject
    settled: Settled
    by: str
    keep_going: bool
    result: Imported
    position: int
    recorded_at: int
    newcomers: Newcomers | None
    people: Callable[[], Identities]
    rejected_games: set[tuple[str, str | None]] = field(default_factory=set)


def import_items(
    ledger: Ledger,
    items: Iterable[Item | Rejection | Far],
    *,
    by: str,
    clock: Clock,
    ladders: Callable[[Connection], LadderChecks] = lambda connection: NoLadderChecks(),
    reject: Reject = lambda rejection, source: None,
    settled: Settled = lambda line, event_id, appended: None,
    keep_going: bool = False,
    dry_run: bool = False,
    ignore_clock: bool = False,
    reading: Callable[[Far], None] = lambda far: None,
    progress: Callable[[int], None] = lambda appended: None,
    checked: Callable[[Iterator[Draft]], None] = lambda drafts: None,
    newcomers: Newcomers | None = None,
    any_date: bool = False,
    cores: int = 1,
) -> Imported:
    """Validate all items, then append the new ones, which `checked` gets first. `newcomers` says who is new.

    With more than one of `cores` a long input is read by a forked process. Raises `ClockBehind`, `StoreUnavailable`,
    `WorkerLost`.
    """
    result = Imported()
    with rarely_collecting(), closing(Spool()) as spool:
        with ledger.reading() as connection:
            result.head = head(connection)
            recorded_at = next_recorded_at(result.head, clock, ignore_clock)
            validator = Validator(connection, spool, ladders, None if any_date else clock())
            intake = _Intake(
                connection,
                spool,
                validator,
                reject,
                settled,
                by,
                keep_going,
                result,
                result.head.position,
                recorded_at,
                newcomers,
                cache(lambda: identities(connection)),
            )
            with closing(read_blocks(items, keep_going, cores)) as blocks:
                for block in blocks:
                    _validate(intake, block, reading)
                    if result.rejected_count >= REJECTIONS_MAX and not keep_going:
                        break
            if newcomers is not None:
                _introduce(intake, newcomers)
        if result.rejected_count and not keep_going:
            return result
        result.would_append = spool.count
        checked(waiting.draft for chunk in spool.chunks(CHUNK_EVENTS) for waiting in chunk)
        if dry_run:
            return result
        # the head when the drafts were looked up, as long as nobody else appends
        absent_at: int | None = validator.seen
        for chunk in spool.chunks(CHUNK_EVENTS):
            rest = chunk
            while True:
                done = append(
                    ledger, [waiting.draft for waiting in rest], by=by, clock=clock, ignore_clock=ignore_clock,
                    recheck=validator.recheck, absent_at=absent_at,
                )  # fmt: skip
                if not done.refused:
                    break
                # somebody else recorded something since it was checked
                for index, rejection in done.refused:
                    _note(intake, rejection, rest[index].file, rest[index].line, rest[index].rows)
                if not keep_going:
                    return result
                taken = {index for index, _ in done.refused}
                rest = [waiting for index, waiting in enumerate(rest) if index not in taken]
            for index, waiting in enumerate(rest):
                settled(waiting.line, waiting.draft.event_id, index not in done.known)
            absent_at = done.head.position if absent_at == done.head.position - done.appended else None
            validator.seen = done.head.position
            result.appended += done.appended
            result.existing += done.existing
            result.head = done.head
            progress(result.appended)
    return result


def _validate(intake: _Intake, block: Block, reading: Callable[[Far], None]) -> None:
    drafts = [entry.outcome[0] for entry in block if isinstance(entry, ParsedItem) and isinstance(entry.outcome, tuple)]
    known = _known_one_by_one(lookup(intake.connection, drafts, intake.spool), len(drafts))
    intake.spool.look_ahead(drafts)
    for item in block:
        if not isinstance(item, ParsedItem):
            if isinstance(item, Far):
                reading(item)
            else:
                _note(intake, item, item.file, item.line, None)
            continue
        outcome = item.outcome
        problem = outcome.rejection() if isinstance(outcome, Refused) else _take(intake, item, *outcome, next(known))
        if problem is not None and item.rows_of is not None:
            problem = _refuse_rows(intake, item, item.rows_of, problem)
        if problem is not None:
            _note(intake, problem, item.file, item.line, item.source)
            if intake.newcomers is not None:
                named = item.names if isinstance(outcome, Refused) else names_of(outcome[0].type, outcome[1])
                intake.newcomers.mention(named)


def _known_one_by_one(known: dict[int, Rejection | None], count: int) -> Iterator[tuple[bool, Rejection | None]]:
    """What `lookup` found, one by one: (whether the log has it, the refusal)."""
    return ((index in known, known.get(index)) for index in range(count))


def _take(
    intake: _Intake, item: ParsedItem, draft: Draft, data: dict[str, Any], known: tuple[bool, Rejection | None]
) -> Rejection | None:
    """Add a draft to the spool, count it as existing, or say why it is refused."""
    if (item.file, item.rows_of) in intake.rejected_games:
        return _rows_apart(draft.subject)
    if known[0]:
        problem = known[1]
        if problem is not None and item.table:
            problem = resent(Log(intake.connection), intake.people(), draft, problem)
        if problem is None:
            _settle_existing(intake, item, draft)
        return problem
    if (waiting := intake.spool.find(draft)) is not None:
        return _against_waiting(intake, item, draft, waiting)
    try:
        if not surely_fits(draft, intake.by):
            _build(intake, draft)
        if (supersedes := intake.validator.validate(draft, data)) is not None:
            draft = draft._replace(supersedes=supersedes)
            _build(intake, draft)
    except Refused as problem:
        return problem.rejection()
    intake.spool.add(draft, item.file, item.line, item.source if item.table else None)
    if intake.newcomers is not None:
        place = First(item.file, item.line, item.table, item.rows_of is not None)
        intake.newcomers.meet(draft.type, data, place)
    return None


def _introduce(intake: _Intake, newcomers: Newcomers) -> None:
    """Say who is new. Refused names are reported with each game that has them."""
    result, refused = intake.result, newcomers.refusals(intake.connection)
    result.new_players, result.alike = newcomers.names, newcomers.alike
    if refused:
        named: set[str] = set()
        for waiting in [waiting for chunk in intake.spool.chunks(CHUNK_EVENTS) for waiting in chunk]:
            names = names_of(waiting.draft.type, parse_object(waiting.draft.data.encode()))
            wrong = [name for name in names if newcomers.is_refused(name, refused, waiting.file)]
            if not wrong:
                named.update(names)
            elif intake.keep_going:
                intake.spool.remove(waiting.draft.event_id)
                _note(intake, refused[wrong[0]], waiting.file, waiting.line, waiting.rows)
            else:
                for name in dict.fromkeys(wrong):
                    _note(intake, refused[name], waiting.file, waiting.line, None)
        if intake.keep_going:
            result.new_players = [name for name in result.new_players if name in named]
    result.close = {name: newcomers.close[name] for name in result.new_players if name in newcomers.close}
    files = {rejection.file: None for rejection in result.rejected}
    order = {file: number for number, file in enumerate(files)}
    result.rejected.sort(key=lambda rejection: (order[rejection.file], rejection.line or 0))


def _build(intake: _Intake, draft: Draft) -> None:
    """Build the record that a draft would have, only to see whether that is possible. Raises `Refused`."""
    place = intake.position + intake.spool.count + 1
    build(draft, place, intake.recorded_at, draft.by or intake.by, draft.supersedes)


def _against_waiting(intake: _Intake, item: ParsedItem, draft: Draft, waiting: WaitingDraft) -> Rejection | None:
    if waiting.draft.event_id != draft.event_id:
        return game_exists(draft, waiting.draft.event_id)
    if item.rows_of is not None and waiting.rows is not None and waiting.file == item.file:
        return _rows_apart(draft.subject)
    if same_drafts(waiting.draft, draft):
        _settle_existing(intake, item, draft)
        return None
    return Rejection(
        "id-conflict",
        f"the id {shown(draft.event_id)} stands for another content at line {waiting.line} of {waiting.file}",
    )


def _settle_existing(intake: _Intake, item: ParsedItem, draft: Draft) -> None:
    intake.result.existing += 1
    intake.settled(item.line, draft.event_id, False)


def _rows_apart(subject: str) -> Rejection:
    game_id = subject.removeprefix("game:")
    return Rejection("rows-apart", f"the rows of {shown(game_id)} are not together; sort the file by game_id")


def _refuse_rows(intake: _Intake, item: ParsedItem, game_id: str, problem: Rejection) -> Rejection:
    """A game of several rows is refused as a whole: rows of it that were already taken are refused, too."""
    apart = isinstance(item.source, list)  # a block of rows; otherwise a single one that could not be read
    again = (item.file, game_id) in intake.rejected_games
    intake.rejected_games.add((item.file, game_id))
    waiting = intake.spool.find_id(f"game:{game_id}")
    if waiting is not None and waiting.rows is not None and waiting.file == item.file:
        again = True
        intake.spool.remove(waiting.draft.event_id)
        incomplete = Rejection("bad-csv", f"the row at line {item.line}, which was refused, may belong to this game")
        if intake.keep_going:
            # otherwise nothing is appended anyway, and one refusal is enough
            found = _rows_apart(waiting.draft.subject) if apart else incomplete
            _note(intake, found, waiting.file, waiting.line, waiting.rows)
    return _rows_apart(game_id) if apart and again and problem.code != "bad-csv" else problem


def _note(intake: _Intake, rejection: Rejection, file: str | None, line: int | None, source: Any) -> None:
    placed = rejection._replace(file=file, line=line)
    intake.result.rejected_count += 1
    if len(intake.result.rejected) < REJECTIONS_MAX:
        intake.result.rejected.append(placed)
    intake.reject(placed, source)

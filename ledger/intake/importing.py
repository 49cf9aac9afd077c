"""Import: everything is checked before anything is appended, then appended in chunks, each a transaction.

A single refusal means that nothing is appended, unless `keep_going`; a crash leaves whole chunks, and running the same
import again completes the rest, because events already there are recognised.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger import clock as system_clock
from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.batches import batch_events
from ratings_ledger.ledger.events.canonical import format_instant, parse_object
from ratings_ledger.ledger.events.game_clocks import COUNTED_CLOCK_TYPES
from ratings_ledger.ledger.events.records import build, surely_fits
from ratings_ledger.ledger.events.revisions import KnownEvent, live_game
from ratings_ledger.ledger.events.types import TYPES, Draft, read_event
from ratings_ledger.ledger.intake.columns import TableOptions
from ratings_ledger.ledger.intake.day_numbers import DayNumbers, is_by_day
from ratings_ledger.ledger.intake.files import STDIN, Entry, Far, Hashed, Item, Noted
from ratings_ledger.ledger.intake.parsing import Block, ParsedItem, read_blocks
from ratings_ledger.ledger.intake.repeated_clock_events import RepeatedClockEvents
from ratings_ledger.ledger.intake.spool import Spool, WaitingDraft
from ratings_ledger.ledger.intake.tables_read import TableRead
from ratings_ledger.ledger.processes.memory import rarely_collecting
from ratings_ledger.ledger.rejections import Refused, Rejection, count, shown
from ratings_ledger.ledger.store.appending import (
    Appended,
    Fresh,
    append,
    game_exists,
    lookup,
    next_recorded_at,
    same_drafts,
)
from ratings_ledger.ledger.store.log import Head, Log, changed_games, head
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.identities import Identities, identities
from ratings_ledger.ledger.validation.new_names import CloseName, First, Newcomers, Refusing
from ratings_ledger.ledger.validation.repeated_games import is_of_another_day, resent, way_back, ways_out
from ratings_ledger.ledger.validation.validator import LadderChecks, NoLadderChecks, Validator

CHUNK_EVENTS = 50_000
REJECTIONS_MAX = 10_000

# called with every refusal and the input that it is about
Reject = Callable[[Rejection, Any], None]
# called with the line of every event that ends up in the log, its id, and whether this import appended it
Settled = Callable[[int, str, bool], None]
# raises `Refused` (changed-meanwhile) if what the events were based on is no longer so
Still = Callable[[Connection], None]


class Terms(NamedTuple):
    """On what terms events are taken: who records them, and what is taken all the same.

    ignore_clock:    events after a last one that is dated ahead of this machine's time
    any_date:        games dated more than a day ahead, or before 1900
    allow_uncounted: games that a ladder's rule cannot score
    refusing:        where new names are refused that are close to others
    strict:          whether all new names are refused there, and games that begin a ladder
    keep_going:      whether what is good is appended although something is refused
    accepted:        new names that are taken although they are close to others
    close_told:      whether names that are close to others are only told, not refused
    """

    by: str
    ignore_clock: bool = False
    any_date: bool = False
    allow_uncounted: bool = False
    refusing: Refusing = ""
    strict: bool = False
    keep_going: bool = False
    accepted: frozenset[str] = frozenset()
    close_told: bool = False


@dataclass
class Imported:
    """What an import did; `rejected` holds the first `REJECTIONS_MAX` refusals, `rejected_count` counts all."""

    appended: int = 0
    existing: int = 0
    would_append: int = 0
    rejected: list[Rejection] = field(default_factory=list)
    rejected_count: int = 0
    head: Head | None = None
    # the players the ledger did not know, and which of them are close to others
    new_players: list[str] = field(default_factory=list)
    close: dict[str, CloseName] = field(default_factory=dict)
    alike: dict[str, list[str]] = field(default_factory=dict)
    # what was recognised in tables, and left out of them, in words and by file; and the options to read the next one
    # like the last
    notes: list[str] = field(default_factory=list)
    tables: dict[str, TableRead] = field(default_factory=dict)
    read_as: TableOptions | None = None
    # what is wrong with the files of a restore that takes them all the same
    passed: list[str] = field(default_factory=list)
    # the ladders that begin, and the names that theirs are close to
    new_ladders: list[str] = field(default_factory=list)
    close_ladders: dict[str, str] = field(default_factory=dict)
    # a game for each reason why games are on no ladder, and what is said of leagues
    homeless: dict[str, str] = field(default_factory=dict)
    leagues: list[str] = field(default_factory=list)
    # what voids the games that are already there but do not count, by game_id, and what is said of them
    voided: dict[str, KnownEvent] = field(default_factory=dict)
    voided_told: list[str] = field(default_factory=list)

    @classmethod
    def refused(cls, problem: Refused, head: Head | None = None) -> "Imported":
        """What becomes of an event that was refused before it was made."""
        return cls(rejected=[problem.rejection()], rejected_count=1, head=head)


class Intake:
    """Items that were checked, and wait to be appended; `result` says what has become of them."""

    def __init__(
        self,
        ledger: Ledger,
        items: Iterable[Entry],
        terms: Terms,
        *,
        ladders: Callable[[Connection], LadderChecks] = lambda connection: NoLadderChecks(),
        newcomers: Newcomers | None = None,
        based_on: Mapping[str, str | int] | None = None,
        still: Still = lambda connection: None,
        clock: system_clock.Clock | None = None,
        reject: Reject = lambda rejection, source: None,
        settled: Settled | None = None,
        understood: Callable[[ParsedItem], None] = lambda entry: None,
        reading: Callable[[Far], None] = lambda far: None,
        cores: int = 1,
        batches: bool = False,
        whole: bool = False,
        compared: str | None = None,
    ) -> None:
        """Check all items. `newcomers` says who is new.

        With `batches` they are whole files, and what each brings is recorded as a batch after the last of it. If it is
        `whole`, it is appended in one transaction, however many they are. With `compared` it is what a sheet says
        beside what it gave before, under that name.

        `understood` gets each item with what it says, before it is compared with the log.

        What somebody decided holds only if nobody decided otherwise meanwhile: `based_on` has by subject the event, its
        id or position, that was the last one about it when they looked; `still` is asked again under the lock. With
        more than one of `cores` a long input is read by a forked process. Raises `ClockBehind`, `StoreUnavailable`,
        `WorkerLost`.
        """
        self.ledger = ledger
        self.terms = terms
        self.result = Imported()
        self._clock = clock = clock or system_clock.now
        self._still, self._reject, self._settled, self._understood = still, reject, settled, understood
        self._newcomers = newcomers or Newcomers(lambda connection: (), "")
        self._based_on = {} if based_on is None else based_on
        self._rejected_games: set[tuple[str, str | None]] = set()
        # with batches: the hashes of the files, where the log has what was taken from each, and the ids of the batches
        # of other ledgers that are left out, and of what withdraws them
        self._batches, self._hashes = batches, dict[str, tuple[str, str | None]]()
        self._whole, self._compared = whole, compared
        self._told_ways = set[tuple[str, str]]()
        self._ranges: dict[str, list[list[int]]] = {}
        self._left_out: set[str] = set()
        self._spool, self._is_closed = Spool(), False
        with rarely_collecting(), ledger.reading() as self._connection:
            self.result.head = head(self._connection)
            self._recorded_at = next_recorded_at(self.result.head, clock, terms.ignore_clock)
            now = None if terms.any_date else clock()
            self._validator = Validator(self._connection, self._spool, ladders, now)
            self._numbers = DayNumbers(self._connection)
            self._clock_events = RepeatedClockEvents()
            with closing(read_blocks(items, terms.keep_going, cores)) as blocks:
                for block in blocks:
                    self._validate(block, reading)
                    if self.result.rejected_count >= REJECTIONS_MAX and not terms.keep_going:
                        break
            if self._left_out:
                told = f"{count(len(self._left_out), 'event')} about batches of another ledger, whose positions do not "
                self.result.notes.append(f"{told}hold here, left out")
            self.result.notes += [*self._numbers.notes(), *self._clock_events.notes()]
            self._introduce(self._newcomers)
            if not self.is_refused:
                self.result.would_append = self._spool.count
            if self._spool.count and not self.result.rejected_count:
                try:
                    still(self._connection)
                except Refused as problem:
                    self.refuse(problem)

    @property
    def is_refused(self) -> bool:
        """Whether nothing will be appended, because something was refused."""
        return bool(self.result.rejected_count) and not self.terms.keep_going

    def drafts(self) -> Iterator[Draft]:
        """What would be appended, in order. Raises `BadArgument` once it is."""
        self._refuse_closed()
        return (waiting.draft for chunk in self._spool.chunks(CHUNK_EVENTS) for waiting in chunk)

    def close(self) -> None:
        """Give back what waits."""
        self._is_closed = True
        self._spool.close()

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise BadArgument("these events were appended or given back; propose them again")

    def append(self, progress: Callable[[int], None] = lambda appended: None) -> Imported:
        """Append what was checked, unless it is refused, in transactions of at most `CHUNK_EVENTS` if it is not whole.

        Raises `BadArgument` the second time, `ClockBehind`, `StoreUnavailable`.
        """
        self._refuse_closed()
        with rarely_collecting():
            # the head when the drafts were looked up, as long as nobody else appends
            absent_at: int | None = self._validator.seen
            left = self._spool.count
            size = left if self._whole else CHUNK_EVENTS
            for chunk in () if self.is_refused else self._spool.chunks(size):
                left -= len(chunk)
                absent_at = self._append_chunk(chunk, absent_at, is_last=not left)
                if self.is_refused:
                    break
                progress(self.result.appended)
            if self._ranges:  # the last chunk is refused, but others were appended
                self._append([], is_last=True)
        self.close()
        return self.result

    def _append_chunk(self, chunk: Sequence[WaitingDraft], absent_at: int | None, is_last: bool) -> int | None:
        """Append a chunk; returns where the next one is surely absent from the log, if that is known."""
        while True:
            done = self._append(chunk, is_last, absent_at)
            if not done.refused:
                break
            # somebody else recorded something since it was checked
            for index, rejection in done.refused:
                self._note(rejection, chunk[index].file, chunk[index].line, chunk[index].rows)
            if self.is_refused:
                return None
            taken = {index for index, _ in done.refused}
            chunk = [waiting for index, waiting in enumerate(chunk) if index not in taken]
        if self._settled is not None:
            for index, waiting in enumerate(chunk):
                self._settled(waiting.line, waiting.draft.event_id, index not in done.known)
        self._validator.seen = done.head.position
        self.result.appended += done.appended
        self.result.existing += done.existing
        self.result.head = done.head
        return done.head.position if absent_at == done.head.position - done.appended else None

    def _append(self, chunk: Sequence[WaitingDraft], is_last: bool, absent_at: int | None = None) -> Appended:
        """Append a chunk, unless something of it is refused, and with the last one what tells of the batches."""
        done = append(
            self.ledger, [waiting.draft for waiting in chunk], by=self.terms.by, clock=self._clock,
            ignore_clock=self.terms.ignore_clock, recheck=self._recheck, absent_at=absent_at,
            closing=partial(self._batch_drafts, chunk) if is_last and self._batches else None,
        )  # fmt: skip
        if self._batches and not done.refused:
            fresh = [index for index in range(len(chunk)) if index not in done.known]
            first = done.head.position - done.appended + 1
            self._ranges = {} if is_last else self._brought(chunk, first, fresh)
        self.result.head = done.head
        return done

    def _brought(self, chunk: Sequence[WaitingDraft], first: int, fresh: Sequence[int]) -> dict[str, list[list[int]]]:
        """Where the log has what each file brought, with those of a chunk's drafts that stand from a position on."""
        found = {file: [*map(list, ranges)] for file, ranges in self._ranges.items()}
        for position, index in enumerate(fresh, first):
            ranges = found.setdefault(chunk[index].file, [])
            if ranges and ranges[-1][1] == position - 1:
                ranges[-1][1] = position
            else:
                ranges.append([position, position])
        return found

    def _batch_drafts(
        self, chunk: Sequence[WaitingDraft], first: int, fresh: Sequence[int], recorded_at: int
    ) -> list[Draft]:
        """The events that tell what each file brought, once the last chunk is appended."""
        at = format_instant(recorded_at)
        return [
            read_event({"type": "import.recorded", "occurred_at": at, "data": data})[0]
            for file, ranges in self._brought(chunk, first, fresh).items()
            for data in batch_events(file, *self._hashes[file], ranges, self._compared)
        ]

    def _recheck(self, connection: Connection, before: Head, fresh: Fresh) -> list[tuple[int, Rejection]]:
        """Under the lock: which drafts must be refused, since others appended after what was seen."""
        if before.position != self._validator.seen:
            try:
                self._still(connection)
            except Refused as problem:
                return [(fresh[0][0], problem.rejection())]
        return self._validator.recheck(connection, before, fresh)

    def refuse(self, problem: Refused, file: str = "", line: int = 0) -> None:
        """Refuse what was checked, for a reason that whoever proposes it knows."""
        self._note(problem.rejection(), file, line, None)
        self.result.would_append = 0

    @cached_property
    def _people(self) -> Identities:
        return identities(self._connection)

    @cached_property
    def _changed(self) -> set[str]:
        """The subjects of games that more than their first event is about."""
        return changed_games(self._connection, 0)

    def _validate(self, block: Block, reading: Callable[[Far], None]) -> None:
        for noted in block:
            if isinstance(noted, Noted) and noted.read is not None:
                self._numbers.read_from(noted.file, noted.read.sheet)
        block = self._numbers.numbered(block)
        parsed = [entry for entry in block if isinstance(entry, ParsedItem)]
        drafts = [entry.outcome[0] for entry in parsed if isinstance(entry.outcome, tuple)]
        found = lookup(self._connection, drafts, self._spool)
        # whether the log has each of them, and the refusal
        known = ((index in found, found.get(index)) for index in range(len(drafts)))
        self._spool.look_ahead(drafts)
        for entry in block:
            if not isinstance(entry, ParsedItem):
                if isinstance(entry, Far):
                    reading(entry)
                elif isinstance(entry, Hashed):
                    self._hashes[entry.file] = entry.sha256, entry.sheet
                elif isinstance(entry, Noted):
                    self.result.notes += [f"{entry.file}: {entry.told}"] if entry.told else []
                    self.result.read_as = entry.options or self.result.read_as
                    if entry.read is not None:
                        self.result.tables[entry.file] = entry.read
                else:
                    self._note(entry, entry.file, entry.line, None)
                continue
            self._understood(entry)
            item, names, outcome = entry
            problem = outcome.rejection() if isinstance(outcome, Refused) else self._take(item, *outcome, next(known))
            if problem is not None and item.rows_of is not None:
                problem = self._refuse_rows(item, item.rows_of, problem)
            if problem is not None:
                self._note(problem, item.file, item.line, item.source)
                brought = names if isinstance(outcome, Refused) else TYPES[outcome[0].type].brings(outcome[1])
                self._newcomers.mention(brought)

    def _take(
        self, item: Item, draft: Draft, data: dict[str, Any], known: tuple[bool, Rejection | None]
    ) -> Rejection | None:
        """Add a draft to the spool, count it as existing, or say why it is refused."""
        if (item.file, item.rows_of) in self._rejected_games:
            return rows_apart(draft.subject)
        if self.result.voided and draft.type != "game.recorded":
            # what becomes of the game is said here, too
            self.result.voided.pop(draft.subject.removeprefix("game:"), None)
        if draft.type in COUNTED_CLOCK_TYPES:
            self._clock_events.watch(item, draft, data)
        if known[0]:
            problem = known[1]
            if problem is not None and (item.table or self._void_of(draft) is not None):
                problem = self._with_ways_out(resent(Log(self._connection), self._people, draft, problem), draft, item)
            if problem is None:
                self._settle_existing(item, draft)
            return problem
        if (waiting := self._spool.find(draft)) is not None:
            problem = self._against_waiting(item, draft, waiting)
            return self._with_ways_out(problem, draft, item) if item.is_numbered else problem
        if self._batches and self._is_left_out(draft, data):
            self._left_out.add(draft.event_id)
            return None
        if draft.type == "import.recorded" and not self._batches:
            draft = draft._replace(position=None)  # whatever it says: it comes from no file
        try:
            if not surely_fits(draft, self.terms.by):
                self._build(draft)
            if (supersedes := self._validator.validate(draft, data)) is not None:
                self._refuse_other(draft, supersedes)
                draft = draft._replace(supersedes=supersedes)
                self._build(draft)
        except Refused as problem:
            return problem.rejection()
        self._spool.add(draft, item.file, item.line, item.source if item.table else None)
        self._newcomers.meet(draft.type, data, First(item.file, item.line, item.table, item.rows_of is not None))
        return None

    def _is_left_out(self, draft: Draft, data: dict[str, Any]) -> bool:
        """Whether an event is about a batch of another ledger: the log would have it at another position."""
        if draft.type != "import.recorded":
            return draft.type == "event.voided" and data["id"] in self._left_out
        return bool(self._left_out) or draft.position != self._validator.seen + self._spool.count + 1

    def _refuse_other(self, draft: Draft, supersedes: str) -> None:
        """Raises `Refused` (changed-meanwhile) if a draft supersedes another event than somebody looked at."""
        last = Log(self._connection).event(supersedes) if draft.subject in self._based_on else None
        if last is not None and self._based_on[draft.subject] not in (last.event_id, last.position):
            what = draft.subject.partition(":")[2]
            raise Refused(
                "changed-meanwhile", f"{shown(what)} was last changed at position {last.position}; look at it again"
            )

    def _introduce(self, newcomers: Newcomers) -> None:
        """Say who is new. Refused names are reported with each game that has them."""
        result, refused = self.result, newcomers.refusals(self._connection)
        result.new_players, result.alike = newcomers.names, newcomers.alike
        new_ids, opponents = newcomers.new_ids, dict[str, set[str]]()
        if refused:
            named: set[str] = set()
            for waiting in [waiting for chunk in self._spool.chunks(CHUNK_EVENTS) for waiting in chunk]:
                names = TYPES[waiting.draft.type].brings(parse_object(waiting.draft.data.encode()))
                wrong = [name for name in names if newcomers.is_refused(name, refused, waiting.file)]
                for name in wrong:
                    opponents.setdefault(name, set()).update(other for other in names if other != name)
                if not wrong:
                    named.update(names)
                elif self.terms.keep_going:
                    self._spool.remove(waiting.draft.event_id)
                    self._note(refused[wrong[0]], waiting.file, waiting.line, waiting.rows)
                else:
                    for name in dict.fromkeys(wrong):
                        self._note(refused[name], waiting.file, waiting.line, None)
            if self.terms.keep_going:
                result.new_players = [name for name in result.new_players if name in named]
                new_ids = [name for name in new_ids if name in named]
        result.close = {
            name: newcomers.close[name]._replace(opponents=frozenset(opponents.get(name, ())))
            for name in (*result.new_players, *new_ids)
            if name in newcomers.close
        }
        files = {rejection.file: None for rejection in result.rejected}
        order = {file: number for number, file in enumerate(files)}
        result.rejected.sort(key=lambda rejection: (order[rejection.file], rejection.line or 0))

    def _build(self, draft: Draft) -> None:
        """Build the record that a draft would have, only to see whether that is possible. Raises `Refused`."""
        assert self.result.head is not None
        position = self.result.head.position + self._spool.count + 1
        build(draft, position, self._recorded_at, draft.by or self.terms.by, draft.supersedes)

    def _against_waiting(self, item: Item, draft: Draft, waiting: WaitingDraft) -> Rejection | None:
        if waiting.draft.event_id != draft.event_id:
            return game_exists(draft, waiting.draft.event_id)
        if item.rows_of is not None and waiting.rows is not None and waiting.file == item.file:
            return rows_apart(draft.subject)
        if same_drafts(waiting.draft, draft):
            self._settle_existing(item, draft)
            return None
        return Rejection(
            "id-conflict",
            f"the id {shown(draft.event_id)} stands for another content at line {waiting.line} of {waiting.file}",
        )

    def _with_ways_out(self, problem: Rejection | None, draft: Draft, item: Item) -> Rejection | None:
        """A refusal of a table's game that has the id of another, with what to do, once for each file."""
        if problem is None or problem.code != "id-conflict":
            return problem
        game_id = draft.subject.partition(":")[2]
        is_given = item.file not in ("", STDIN) and self._numbers.gave(item.file, game_id)
        if (void := self._void_of(draft)) is not None:
            file = "" if item.file == STDIN or not item.table else item.file
            told, kind = way_back(void, file, is_given), "voided"
        else:
            told = kind = self._way_out(draft, game_id, item, is_given)
        if (item.file, kind) in self._told_ways:
            return problem
        self._told_ways.add((item.file, kind))
        return problem._replace(message=f"{problem.message}; {told}")

    def _way_out(self, draft: Draft, game_id: str, item: Item, is_given: bool) -> str:
        """What to do about a table's game that has the id of another that counts."""
        columns = self.result.tables[item.file].columns if item.file in self.result.tables else {}
        column = next((theirs for theirs, ours in columns.items() if ours == "game_id"), None)
        is_moved = is_of_another_day(Log(self._connection), draft)
        return ways_out(is_by_day(game_id), is_given and not self._compared, is_moved, column)

    def _void_of(self, draft: Draft) -> KnownEvent | None:
        """What voids the game that a draft records again, if it is voided."""
        if draft.type != "game.recorded" or draft.subject not in self._changed:
            return None
        game = live_game(Log(self._connection).about(draft.subject))
        return game.last if game is not None and game.voided else None

    def _settle_existing(self, item: Item, draft: Draft) -> None:
        self.result.existing += 1
        if (void := self._void_of(draft)) is not None:
            self.result.voided[void.data["game_id"]] = void
        if self._settled is not None:
            self._settled(item.line, draft.event_id, False)

    def _refuse_rows(self, item: Item, game_id: str, problem: Rejection) -> Rejection:
        """A game of several rows is refused as a whole: rows of it that were already taken are refused, too."""
        apart = isinstance(item.source, list)  # a block of rows; otherwise a single one that could not be read
        again = (item.file, game_id) in self._rejected_games
        self._rejected_games.add((item.file, game_id))
        waiting = self._spool.find_id(f"game:{game_id}")
        if waiting is not None and waiting.rows is not None and waiting.file == item.file:
            again = True
            self._spool.remove(waiting.draft.event_id)
            told = f"the row at line {item.line}, which was refused, may belong to this game"
            if self.terms.keep_going:
                # otherwise nothing is appended anyway, and one refusal is enough
                found = rows_apart(waiting.draft.subject) if apart else Rejection("game-incomplete", told)
                self._note(found, waiting.file, waiting.line, waiting.rows)
        return rows_apart(game_id) if apart and again and problem.code != "game-incomplete" else problem

    def _note(self, rejection: Rejection, file: str | None, line: int | None, source: Any) -> None:
        placed = rejection._replace(file=file or None, line=(line or None) if file else None)
        self.result.rejected_count += 1
        if len(self.result.rejected) < REJECTIONS_MAX:
            self.result.rejected.append(placed)
        self._reject(placed, source)


def rows_apart(subject: str) -> Rejection:
    """The refusal of a game whose rows are not together."""
    game_id = subject.removeprefix("game:")
    return Rejection("rows-apart", f"the rows of {shown(game_id)} are not together; sort the file by game_id")

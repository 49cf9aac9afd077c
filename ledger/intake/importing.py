"""Import: everything is checked before anything is appended, then appended in chunks, each a transaction.

A single refusal means that nothing is appended, unless `keep_going`; a crash leaves whole chunks, and running the same
import again completes the rest, because events already there are recognised.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from typing import Any

from ratings_ledger.ledger.events.batches import build_batch_events
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.types import Draft, read_event
from ratings_ledger.ledger.intake.files import STDIN, Entry, FileDigest, FileNote, Item, Progress
from ratings_ledger.ledger.intake.intake import (
    REJECTIONS_MAX,
    ImportPolicy,
    Intake,
    IntakeResult,
    WaitingDraft,
    first_occurrence,
)
from ratings_ledger.ledger.intake.matching import DayNumbers, is_by_day
from ratings_ledger.ledger.intake.parsing import ALONE_BLOCKS, BlockEntry, ParsedItem, read_blocks
from ratings_ledger.ledger.intake.spool import Spool
from ratings_ledger.ledger.processes.memory import collect_rarely, require_memory
from ratings_ledger.ledger.rejections import Rejection, count, csv_item, quote
from ratings_ledger.ledger.store.appending import AppendResult, BuildLastDrafts
from ratings_ledger.ledger.store.log import Log
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.repeated_games import (
    are_of_one_day,
    describe_counting_column,
    describe_way_back,
    describe_ways_out,
    is_of_another_day,
)

CHUNK_EVENTS = 50_000

Ranges = dict[str, list[list[int]]]

# what a block of events needs at the most
ROOM_BYTES = 8 << 20


class FileIntake(Intake):
    """The events of files, however many they are."""

    # hooks of single callers, by keyword
    def __init__(
        self,
        ledger: Ledger,
        items: Iterable[Entry],
        policy: ImportPolicy,
        *,
        understood: Callable[[ParsedItem], None] = lambda entry: None,
        reading: Callable[[Progress], None] = lambda progress: None,
        cores: int = 1,
        batches: bool = False,
        whole: bool = False,
        compared: str | None = None,
        **hooks: Any,
    ) -> None:
        """Check all items.

        Args:
            ledger: where the events will be appended.
            items: what was read of the files.
            policy: who records them, and which checks are waived.
            understood: is called with each item and what it says, before that is compared with the log.
            reading: is called with how much of a file has been read.
            cores: with more than one a forked process reads a long input.
            batches: whether the items are whole files; what each brings is then recorded as a batch after the last.
            whole: append in one transaction.
            compared: the name of a sheet, if the events are what it says beside what it gave before.
            hooks: those of `Intake`.

        Raises:
            ClockBehind, StoreUnavailable, WorkerLost.
        """
        self._understood, self._reading = understood, reading
        self._has_batches, self._whole, self._compared = batches, whole, compared
        self._answers = dict[str, Mapping[str, str]]()
        self._rejected_games: set[tuple[str, str | None]] = set()
        # the refused files of whose games too little is known to check more than their names
        self._unsaid = set[str]()
        # the hashes of the files, where the log has what was taken from each, and the ids of the batches of other
        # ledgers that are left out, and of what withdraws them
        self._hashes = dict[str, tuple[str, str | None]]()
        self._ranges: Ranges = {}
        self._left_out: set[str] = set()
        self._is_last = False
        self._spool = Spool()
        with collect_rarely(), closing(read_blocks(items, policy.keep_going, cores)) as blocks:
            # the process that reads ahead starts before a connection is opened, which it must not inherit
            first = [*islice(blocks, ALONE_BLOCKS + 1)]
            self._blocks = chain(first, blocks)
            super().__init__(ledger, (), policy, waiting=self._spool, **hooks)

    def _check(self, items: Iterable[Item | Rejection]) -> None:
        self._numbers = DayNumbers(self._connection)
        for block in self._blocks:
            # raises MemoryError in time: the library that checks events ends the process where it gets none
            require_memory(ROOM_BYTES)
            self._check_block(block)
            if self.result.rejected_count >= REJECTIONS_MAX and not self.policy.keep_going:
                break
        if self._left_out:
            events = count(len(self._left_out), "event")
            self.result.notes.append(
                f"{events} about batches of another ledger, whose positions do not hold here, left out"
            )
        self.result.notes += self._numbers.notes()

    def _check_block(self, block: Sequence[BlockEntry]) -> None:
        for entry in block:
            if isinstance(entry, FileNote) and entry.read is not None:
                self._numbers.set_sheet(entry.file, entry.read.sheet)
        block = self._numbers.assign_numbers([*block])
        outcomes = (entry.outcome for entry in block if isinstance(entry, ParsedItem))
        self._spool.look_ahead(outcome[0] for outcome in outcomes if isinstance(outcome, tuple))
        super()._check_block(block)

    def _process_note(self, entry: BlockEntry) -> None:
        if isinstance(entry, Progress):
            self._reading(entry)
        elif isinstance(entry, FileDigest):
            self._hashes[entry.file] = entry.sha256, entry.sheet
        elif isinstance(entry, FileNote):
            if entry.read is not None and entry.read.unsaid:
                self._unsaid.add(entry.file)
            self.result.notes += [f"{entry.file}: {entry.told}"] if entry.told else []
            self.result.read_as = entry.options or self.result.read_as
            if entry.answers:
                self._answers[entry.file] = entry.answers
            if entry.read is not None:
                self.result.tables[entry.file] = entry.read
        else:
            super()._process_note(entry)

    def _process_item(self, entry: ParsedItem, known: Iterator[tuple[bool, Rejection | None]]) -> None:
        if entry.item.file not in self._unsaid:
            self._understood(entry)
        super()._process_item(entry, known)

    def _refuse_item(self, entry: ParsedItem, problem: Rejection, names: Iterable[str]) -> None:
        if (game_id := entry.item.rows_of) is not None:
            problem = self._refuse_rows(entry.item, game_id, problem)
        super()._refuse_item(entry, problem, names)

    def _admit_draft(
        self, item: Item, draft: Draft, data: dict[str, Any], known: tuple[bool, Rejection | None]
    ) -> Rejection | None:
        if (item.file, item.rows_of) in self._rejected_games:
            return rows_apart_rejection(draft.subject)
        if item.file in self._unsaid:
            self._newcomers.meet(draft.type, data, first_occurrence(item))
            return None
        return super()._admit_draft(item, draft, data, known)

    def _is_left_out(self, draft: Draft, data: dict[str, Any]) -> bool:
        """Tell whether an event is about a batch of another ledger: the log would have it at another position."""
        if not self._has_batches:
            return False
        if draft.type != "import.recorded":
            is_left_out = draft.type == "event.voided" and data["id"] in self._left_out
        else:
            is_left_out = bool(self._left_out) or draft.position != self._validator.seen + self._spool.count + 1
        if is_left_out:
            self._left_out.add(draft.event_id)
        return is_left_out

    def _compare_with_waiting(self, item: Item, draft: Draft, waiting: WaitingDraft) -> Rejection | None:
        is_same_id = waiting.draft.event_id == draft.event_id
        if is_same_id and item.rows_of is not None and waiting.rows is not None and waiting.file == item.file:
            problem: Rejection | None = rows_apart_rejection(draft.subject)
        elif (
            is_same_id
            and item.file == waiting.file
            and not are_of_one_day(draft, waiting.draft)
            and (column := self._find_id_column(item))
        ):
            self.result.counting.add(item.file)
            return Rejection("id-conflict", describe_counting_column(column))
        else:
            problem = super()._compare_with_waiting(item, draft, waiting)
        return self._add_remedy(problem, draft, item) if item.is_numbered else problem

    def _find_remedy(self, draft: Draft, item: Item) -> tuple[str, str]:
        game_id = draft.subject.partition(":")[2]
        is_given = item.file not in ("", STDIN) and self._numbers.has_imported(item.file, game_id)
        if (void := self._void_of(draft)) is not None:
            return describe_way_back(
                void, "" if item.file == STDIN or not item.table else item.file, is_given
            ), "voided"
        is_of_program = item.table and item.file not in self.result.tables and not is_by_day(game_id)
        giver = self._numbers.find_giver(game_id) if is_of_program and not self._compared else None
        if giver is not None:
            # the other program gave the id, so it is the same game, edited there
            rename = "" if is_given else f"give the file the name {csv_item(giver)}, and "
            message = f"it was edited since: {rename}--sync shows the difference, and corrects it"
            return message, message
        column = self._find_id_column(item)
        is_moved = is_of_another_day(Log(self._connection), draft)
        message = describe_ways_out(is_by_day(game_id), is_given and not self._compared, is_moved, column)
        return message, message

    def _find_id_column(self, item: Item) -> str | None:
        """Return the name of the column in which a table has the ids of its games."""
        columns = self.result.tables[item.file].columns if item.file in self.result.tables else {}
        return next((theirs for theirs, ours in columns.items() if ours == "game_id"), None)

    def _refuse_rows(self, item: Item, game_id: str, problem: Rejection) -> Rejection:
        """Refuse a game of several rows as a whole: refuse rows of it that were already taken, too."""
        is_block = isinstance(item.source, list)  # otherwise a single row that could not be read
        again = (item.file, game_id) in self._rejected_games
        self._rejected_games.add((item.file, game_id))
        waiting = self._spool.find_id(f"game:{game_id}")
        if waiting is not None and waiting.rows is not None and waiting.file == item.file:
            again = True
            self._spool.remove(waiting.draft.event_id)
            message = f"the row at line {item.line}, which was refused, may belong to this game"
            if self.policy.keep_going:
                # otherwise nothing is appended anyway, and one refusal is enough
                apart = (
                    rows_apart_rejection(waiting.draft.subject) if is_block else Rejection("game-incomplete", message)
                )
                self._note(apart, waiting.file, waiting.line, waiting.rows)
        return rows_apart_rejection(game_id) if is_block and again and problem.code != "game-incomplete" else problem

    def append(self, progress: Callable[[int], None] = lambda appended: None) -> IntakeResult:
        """Append what was checked, unless it is refused, in transactions of at most `CHUNK_EVENTS` if it is not whole.

        Raises `BadArgument` the second time, `ClockBehind`, `StoreUnavailable`.
        """
        self._refuse_closed()
        with collect_rarely():
            # the head when the drafts were looked up, as long as nobody else appends
            absent_at: int | None = self._validator.seen
            left = self._spool.count
            size = left if self._whole else CHUNK_EVENTS
            for chunk in () if self.is_refused else self._spool.chunks(size):
                left -= len(chunk)
                self._is_last = not left
                absent_at = self._append_chunk(chunk, absent_at)
                if self.is_refused:
                    break
                progress(self.result.appended)
            if self._ranges:  # the last chunk is refused, but others were appended
                self._is_last = True
                self._append_chunk([], None)
        self.close()
        return self.result

    def _prepare_last_drafts(self, chunk: Sequence[WaitingDraft]) -> BuildLastDrafts | None:
        return partial(self._batch_drafts, chunk) if self._is_last and self._has_batches else None

    def _count_stored(self, chunk: Sequence[WaitingDraft], done: AppendResult) -> None:
        super()._count_stored(chunk, done)
        if self._has_batches:
            fresh = [index for index in range(len(chunk)) if index not in done.known]
            first = done.head.position - done.appended + 1
            self._ranges = {} if self._is_last else self._ranges_with(chunk, first, fresh)

    def _ranges_with(self, chunk: Sequence[WaitingDraft], first: int, fresh: Sequence[int]) -> Ranges:
        """Return where the log has what each file brought, with those of a chunk's drafts from a position on."""
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
        """Return the events that tell what each file brought, once the last chunk is appended."""
        at = format_instant(recorded_at)
        return [
            read_event({"type": "import.recorded", "occurred_at": at, "data": data})[0]
            for file, ranges in self._ranges_with(chunk, first, fresh).items()
            for data in build_batch_events(
                file, self._hashes[file], ranges, name=self._compared, aliases=self._answers.get(file)
            )
        ]


def rows_apart_rejection(subject: str) -> Rejection:
    """Return the refusal of a game whose rows are not together."""
    game_id = subject.removeprefix("game:")
    return Rejection("rows-apart", f"the rows of {quote(game_id)} are not together; sort the file by game_id")

"""Import events from files: check all of them, then append them in chunks, each in a transaction.

If the check refuses an event, nothing is appended, unless `keep_going` is set. After a crash the log contains whole
chunks. The same import then appends the other chunks, because it skips the events in the log.
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
    build_first_occurrence,
)
from ratings_ledger.ledger.intake.matching import DayNumbers, is_by_day
from ratings_ledger.ledger.intake.parsing import ALONE_BLOCKS, BlockEntry, ParsedItem, read_blocks
from ratings_ledger.ledger.intake.spool import Spool
from ratings_ledger.ledger.processes.memory import collect_rarely, require_memory
from ratings_ledger.ledger.rejections import Rejection, count, csv_item, quote
from ratings_ledger.ledger.store.appending import AppendResult, BuildLastDrafts
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.repeated_games import (
    are_on_same_day,
    describe_counting_column,
    describe_reinstatement,
    describe_remedies,
)

CHUNK_EVENTS = 50_000

# [first, last] positions of the events from each file, by file
RangesByFile = dict[str, list[list[int]]]

# the most memory that a block of events needs
BLOCK_BYTES_MAX = 8 << 20


class FileIntake(Intake):
    """An intake of the events in files; there may be more events than fit into memory."""

    # more than seven parameters, because each caller uses different keyword-only options
    def __init__(
        self,
        ledger: Ledger,
        entries: Iterable[Entry],
        policy: ImportPolicy,
        *,
        on_parsed: Callable[[ParsedItem], None] = lambda entry: None,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        cores: int = 1,
        batches: bool = False,
        single_transaction: bool = False,
        synced_name: str | None = None,
        **hooks: Any,
    ) -> None:
        """Check all events.

        Args:
            ledger: The ledger to which the events will be appended.
            entries: The entries of the files.
            policy: The recorder, and the checks that are waived.
            on_parsed: Called with each item before it is accepted or refused; not with items of incomplete tables.
            on_progress: Called with the progress of reading a file.
            cores: The number of cores; with more than one, a forked process reads a long input.
            batches: Whether to record a batch of the events of each file; then `entries` must hold whole files.
            single_transaction: Whether to append in one transaction instead of chunks.
            synced_name: The name of a sheet, if the events are its differences from earlier imports.
            hooks: The keyword arguments of `Intake`.

        Raises:
            ClockBehind: The clock is far behind the last event.
            OSError: A file cannot be read.
            StoreUnavailable: The ledger cannot be read.
            WorkerLost: The process that reads ahead ended early.
        """
        self._on_parsed, self._on_progress = on_parsed, on_progress
        self._has_batches, self._single_transaction, self._synced_name = batches, single_transaction, synced_name
        self._answers = dict[str, Mapping[str, str]]()
        # (file, game_id) of the games with a refused row
        self._rejected_games: set[tuple[str, str | None]] = set()
        # the files whose games lack members, so that only their names are checked
        self._incomplete_files = set[str]()
        self._digests = dict[str, FileDigest]()
        self._ranges: RangesByFile = {}
        # the ids of the left-out batches of other ledgers, and of their voids
        self._left_out: set[str] = set()
        self._is_last_chunk = False
        self._spool = Spool()
        with collect_rarely(), closing(read_blocks(entries, policy.keep_going, cores)) as blocks:
            # start the process that reads ahead before the connection is open, so that the process does not inherit it
            first = [*islice(blocks, ALONE_BLOCKS + 1)]
            self._blocks = chain(first, blocks)
            super().__init__(ledger, (), policy, waiting=self._spool, **hooks)

    def _check(self, items: Iterable[Item | Rejection]) -> None:
        self._numbers = DayNumbers(self._connection)
        for block in self._blocks:
            # raise MemoryError early, because pydantic aborts the process if memory runs out
            require_memory(BLOCK_BYTES_MAX)
            self._check_block(block)
            if self.result.rejected_count >= REJECTIONS_MAX and not self.policy.keep_going:
                break
        if self._left_out:
            events = count(len(self._left_out), "event")
            self.result.notes.append(
                f"left out {events} about batches of another ledger, because their positions are wrong in this ledger"
            )
        self.result.notes += self._numbers.describe()

    def _check_block(self, block: Sequence[BlockEntry]) -> None:
        for entry in block:
            if isinstance(entry, FileNote) and entry.table_read is not None:
                self._numbers.set_sheet(entry.file, entry.table_read.sheet)
        block = self._numbers.assign_numbers([*block])
        results = (entry.result for entry in block if isinstance(entry, ParsedItem))
        self._spool.look_ahead(result[0] for result in results if isinstance(result, tuple))
        super()._check_block(block)

    def _process_other_entry(self, entry: BlockEntry) -> None:
        if isinstance(entry, Progress):
            self._on_progress(entry)
        elif isinstance(entry, FileDigest):
            self._digests[entry.file] = entry
        elif isinstance(entry, FileNote):
            if entry.table_read is not None and entry.table_read.missing_members:
                self._incomplete_files.add(entry.file)
            self.result.notes += [f"{entry.file}: {entry.sentence}"] if entry.sentence else []
            self.result.read_as = entry.options or self.result.read_as
            if entry.answers:
                self._answers[entry.file] = entry.answers
            if entry.table_read is not None:
                self.result.tables[entry.file] = entry.table_read
        else:
            super()._process_other_entry(entry)

    def _process_item(self, entry: ParsedItem, lookups: Iterator[tuple[bool, Rejection | None]]) -> None:
        if entry.item.file not in self._incomplete_files:
            self._on_parsed(entry)
        super()._process_item(entry, lookups)

    def _refuse_item(self, entry: ParsedItem, problem: Rejection, names: Iterable[str]) -> None:
        if (game_id := entry.item.rows_of) is not None:
            problem = self._refuse_rows(entry.item, game_id, problem)
        super()._refuse_item(entry, problem, names)

    def _admit_draft(
        self, item: Item, draft: Draft, data: dict[str, Any], lookup: tuple[bool, Rejection | None]
    ) -> Rejection | None:
        if (item.file, item.rows_of) in self._rejected_games:
            return build_rows_apart_rejection(draft.subject.removeprefix("game:"))
        if item.file in self._incomplete_files:
            self._newcomers.collect_names(draft.type, data, build_first_occurrence(item))
            return None
        return super()._admit_draft(item, draft, data, lookup)

    def _should_leave_out(self, draft: Draft, data: dict[str, Any]) -> bool:
        """Tell whether an event is a batch of another ledger, or the void of one.

        A batch belongs to this ledger if it states the position at which it will be appended. After the first batch
        that is left out, all later ones are, too, because their positions have shifted. Without batches to record,
        nothing is left out.
        """
        if not self._has_batches:
            return False
        if draft.type != "import.recorded":
            is_left_out = draft.type == "event.voided" and data["id"] in self._left_out
        else:
            is_left_out = bool(self._left_out) or draft.position != self._validator.checked_head + self._spool.count + 1
        if is_left_out:
            self._left_out.add(draft.event_id)
        return is_left_out

    def _compare_with_waiting(self, item: Item, draft: Draft, waiting: WaitingDraft) -> Rejection | None:
        is_same_id = waiting.draft.event_id == draft.event_id
        if is_same_id and item.rows_of is not None and waiting.rows is not None and waiting.file == item.file:
            problem: Rejection | None = build_rows_apart_rejection(item.rows_of)
        elif (
            is_same_id
            and item.file == waiting.file
            and not are_on_same_day(draft, waiting.draft)
            and (column := self._find_id_column(item))
        ):
            self.result.files_counting_by_day.add(item.file)
            return Rejection("id-conflict", describe_counting_column(column))
        else:
            problem = super()._compare_with_waiting(item, draft, waiting)
        return self._add_remedy(problem, draft, item) if item.is_numbered else problem

    def _find_remedy(self, draft: Draft, item: Item) -> tuple[str, str]:
        game_id = draft.subject.partition(":")[2]
        is_same_table = item.file not in ("", STDIN) and self._numbers.has_imported(item.file, game_id)
        if (void := self._repeats.find_void(draft)) is not None:
            file = "" if item.file == STDIN or not item.table else item.file
            return describe_reinstatement(void, file, is_same_table), "voided"
        is_from_program = item.table and item.file not in self.result.tables and not is_by_day(game_id)
        source = self._numbers.find_source(game_id) if is_from_program and not self._synced_name else None
        if source is not None:
            # ids from another program are unique, so this is the same game, edited in that program
            rename = "" if is_same_table else f"rename the file to {csv_item(source)}, and "
            message = f"if the game has been edited since its import, {rename}pass --sync to correct it"
            return message, message
        message = describe_remedies(
            is_by_day=is_by_day(game_id),
            is_edited=is_same_table and not self._synced_name,
            is_on_other_day=self._repeats.is_on_other_day(draft),
            column=self._find_id_column(item),
        )
        return message, message

    def _find_id_column(self, item: Item) -> str | None:
        """Return the name of the column with the ids of a table's games, or None."""
        columns = self.result.tables[item.file].columns if item.file in self.result.tables else {}
        return next((theirs for theirs, ours in columns.items() if ours == "game_id"), None)

    def _refuse_rows(self, item: Item, game_id: str, problem: Rejection) -> Rejection:
        """Return the refusal of a game's rows, and refuse its waiting rows, too, so that no part of it is recorded."""
        has_all_rows = isinstance(item.source, list)  # otherwise the item is a single unreadable row
        has_other_rows = (item.file, game_id) in self._rejected_games
        self._rejected_games.add((item.file, game_id))
        waiting = self._spool.find_id(f"game:{game_id}")
        if waiting is not None and waiting.rows is not None and waiting.file == item.file:
            has_other_rows = True
            self._spool.remove(waiting.draft.event_id)
            # without `keep_going`, nothing is appended, and one refusal is enough
            if self.policy.keep_going:
                message = f"the refused row in line {item.line} may belong to this game; correct that row"
                refusal = build_rows_apart_rejection(game_id) if has_all_rows else Rejection("game-incomplete", message)
                self._add_refusal(refusal, waiting.file, waiting.line, waiting.rows)
        is_apart = has_all_rows and has_other_rows and problem.code != "game-incomplete"
        return build_rows_apart_rejection(game_id) if is_apart else problem

    def append(self, progress: Callable[[int], None] = lambda appended: None) -> IntakeResult:
        """Append the checked events, unless they are refused.

        With `single_transaction`, they are appended in one transaction, otherwise in transactions of at most
        `CHUNK_EVENTS` events.

        `progress` is called after each transaction with the number of events appended so far. Raises `BadArgument` if
        called twice, `ClockBehind`, `StoreUnavailable`.
        """
        self._refuse_closed()
        with collect_rarely():
            # a position of the head at which none of the remaining drafts was in the log
            absent_at: int | None = self._validator.checked_head
            remaining = self._spool.count
            size = remaining if self._single_transaction else CHUNK_EVENTS
            for chunk in () if self.is_refused else self._spool.read_chunks(size):
                remaining -= len(chunk)
                self._is_last_chunk = not remaining
                absent_at = self._append_chunk(chunk, absent_at)
                if self.is_refused:
                    break
                progress(self.result.appended)
            if self._ranges:  # a chunk was refused, but earlier chunks were appended and need their batches
                self._is_last_chunk = True
                self._append_chunk([], None)
        self.close()
        return self.result

    def _prepare_last_drafts(self, chunk: Sequence[WaitingDraft]) -> BuildLastDrafts | None:
        return partial(self._build_batches, chunk) if self._is_last_chunk and self._has_batches else None

    def _count_stored(self, chunk: Sequence[WaitingDraft], appended: AppendResult) -> None:
        super()._count_stored(chunk, appended)
        if self._has_batches:
            fresh = [index for index in range(len(chunk)) if index not in appended.existing_indices]
            first = appended.head.position - appended.appended + 1
            self._ranges = {} if self._is_last_chunk else self._extend_ranges(chunk, first, fresh)

    def _extend_ranges(self, chunk: Sequence[WaitingDraft], first: int, fresh: Sequence[int]) -> RangesByFile:
        """Return the ranges of each file, extended by a chunk.

        `fresh` are the indexes of its appended drafts, at the positions from `first` on.
        """
        extended = {file: [*map(list, ranges)] for file, ranges in self._ranges.items()}
        for position, index in enumerate(fresh, first):
            ranges = extended.setdefault(chunk[index].file, [])
            if ranges and ranges[-1][1] == position - 1:
                ranges[-1][1] = position
            else:
                ranges.append([position, position])
        return extended

    def _build_batches(
        self, chunk: Sequence[WaitingDraft], first: int, fresh: Sequence[int], recorded_at: int
    ) -> list[Draft]:
        """Build the batches of all files, to be appended after the last chunk."""
        at = format_instant(recorded_at)
        return [
            read_event({"type": "import.recorded", "occurred_at": at, "data": data})[0]
            for file, ranges in self._extend_ranges(chunk, first, fresh).items()
            for data in build_batch_events(
                file,
                ranges,
                sha256=self._digests[file].sha256,
                sheet=self._digests[file].sheet,
                name=self._synced_name,
                aliases=self._answers.get(file),
            )
        ]


def build_rows_apart_rejection(game_id: str) -> Rejection:
    """Build the refusal of a game whose rows are not together."""
    return Rejection("rows-apart", f"the rows of {quote(game_id)} are not together; sort the file by game_id")

"""Check events against the log and the ladders, hold the valid ones, and append all or none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Connection

from ratings_ledger.ledger import clock as system_clock
from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.revisions import Column, DraftIndex, EventLookup, KnownEvent
from ratings_ledger.ledger.events.types import TYPES, Draft
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.parsing import BLOCK_ITEMS, BlockEntry, ParsedItem, parse_entry
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.intake.tables.recognition import TableRead
from ratings_ledger.ledger.rejections import Refused, Rejection, quote
from ratings_ledger.ledger.store.appending import (
    AppendResult,
    BuildLastDrafts,
    FreshDrafts,
    append,
    are_equal_drafts,
    find_existing,
    refuse_large_record,
)
from ratings_ledger.ledger.store.log import Head, Log, head
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.new_names import (
    REFUSED_NAME_CODES,
    CloseName,
    FirstOccurrence,
    NameCollector,
    RefusalScope,
)
from ratings_ledger.ledger.validation.repeated_games import (
    RepeatedClockEvents,
    RepeatedGameChecks,
    describe_reinstatement,
)
from ratings_ledger.ledger.validation.validator import LadderChecksAt, Validator, skip_ladder_checks

REJECTIONS_MAX = 10_000
# called with (refusal, refused input) for every refusal
OnRejected = Callable[[Rejection, Any], None]
# called with (line, event id, whether this intake appended the event) for each event of the input that the log holds
OnStored = Callable[[int, str, bool], None]
# raises `Refused` (changed-meanwhile) if the state on which the events were based has changed
Precondition = Callable[[Connection], None]


class ImportPolicy(NamedTuple):
    """Who records events, and which checks are waived.

    by:              the recorder
    ignore_clock:    append events although this machine's clock is behind the last event
    any_date:        accept games dated more than a day ahead, or before 1900
    allow_uncounted: accept games that a ladder's rule cannot score
    refusal_scope:   the input in which to refuse new names that are close to others
    strict:          refuse all new names in that input, and games that begin a ladder
    keep_going:      append the valid events although others are refused
    accepted:        new names to accept although they are close to others
    report_close:    report names that are close to others, but accept them
    new_game:        accept games in tables although no ruleset scores games of their name
    """

    by: str
    ignore_clock: bool = False
    any_date: bool = False
    allow_uncounted: bool = False
    refusal_scope: RefusalScope = ""
    strict: bool = False
    keep_going: bool = False
    accepted: frozenset[str] = frozenset()
    report_close: bool = False
    new_game: bool = False


class UnrankedGames(NamedTuple):
    """The games that are on no ladder for the same reason: the id of the first one, and their number."""

    first: str
    number: int


@dataclass
class IntakeResult:
    """The result of an intake. `rejected` has the first `REJECTIONS_MAX` refusals; `rejected_count` counts all."""

    appended: int = 0
    existing: int = 0
    would_append: int = 0
    rejected: list[Rejection] = field(default_factory=list)
    rejected_count: int = 0
    head: Head | None = None
    # the files in which the numbers in the column of ids start again each day
    files_counting_by_day: set[str] = field(default_factory=set)
    # the number of valid events if others are refused
    valid: int = 0
    # the name of the game, such as catan, in the first recorded game to append
    game: str | None = None
    # the players who are new to the ledger
    new_players: list[str] = field(default_factory=list)
    # the new names that are close to others; and similar names of each of the first new names that are not close
    close: dict[str, CloseName] = field(default_factory=dict)
    similar_names: dict[str, list[str]] = field(default_factory=dict)
    # sentences about files
    notes: list[str] = field(default_factory=list)
    # the interpretation of each file's table
    tables: dict[str, TableRead] = field(default_factory=dict)
    # options to read the next table in the same way
    read_as: TableOptions | None = None
    # the defects of files that a restore accepted
    accepted_defects: list[str] = field(default_factory=list)
    # the new ladders; and the name of a similar ladder, existing or new, for each of them that has one
    new_ladders: list[str] = field(default_factory=list)
    close_ladders: dict[str, str] = field(default_factory=dict)
    # the games that are not on any ladder, by reason
    unranked: dict[str, UnrankedGames] = field(default_factory=dict)
    # sentences about leagues
    leagues: list[str] = field(default_factory=list)
    # the voids of recorded games that the input records again, by game_id; and sentences about these games
    voided: dict[str, KnownEvent] = field(default_factory=dict)
    voided_notes: list[str] = field(default_factory=list)

    @classmethod
    def refused(cls, problem: Refused, head: Head | None = None) -> IntakeResult:
        """Build the result for input that was refused as a whole."""
        return cls(rejected=[problem.to_rejection()], rejected_count=1, head=head)


class WaitingDraft(NamedTuple):
    """A waiting draft with its origin; `rows` are the rows of the table from which it was composed, or None."""

    draft: Draft
    file: str
    line: int
    rows: Any


class WaitingDrafts(EventLookup, Protocol):
    """Checked drafts in order. They can be looked up by id, by game and by the event that they supersede."""

    @property
    def count(self) -> int:
        """Return the number of waiting drafts."""

    def __iter__(self) -> Iterator[WaitingDraft]: ...

    def add(self, draft: Draft, file: str, line: int, rows: Any) -> None:
        """Append a draft."""

    def find_id(self, event_id: str) -> WaitingDraft | None:
        """Return the draft with this id, or None."""

    def find(self, draft: Draft) -> WaitingDraft | None:
        """Return the waiting draft with the same id or game, or None."""

    def find_events_naming(self, names: Iterable[str]) -> Iterator[KnownEvent]:
        """Yield the drafts whose data contains one of these names as a string, in order."""

    def remove(self, event_id: str) -> None:
        """Remove a draft."""

    def close(self) -> None:
        """Release the storage of the drafts."""


class DraftList(WaitingDrafts):
    """Waiting drafts in memory. The drafts of imported files wait in a `Spool`."""

    def __init__(self) -> None:
        self._waiting: dict[str, WaitingDraft] = {}
        self._index = DraftIndex()
        self._recording_ids: dict[str, str] = {}  # the event ids of recorded games, by subject

    @property
    def count(self) -> int:
        """Return the number of waiting drafts."""
        return len(self._waiting)

    def __iter__(self) -> Iterator[WaitingDraft]:
        return iter(self._waiting.values())

    def add(self, draft: Draft, file: str, line: int, rows: Any) -> None:
        """Append a draft."""
        self._waiting[draft.event_id] = WaitingDraft(draft, file, line, rows)
        self._index.add(draft, draft.supersedes)
        if draft.type == "game.recorded":
            self._recording_ids[draft.subject] = draft.event_id

    def find_id(self, event_id: str) -> WaitingDraft | None:
        """Return the draft with this id, or None."""
        return self._waiting.get(event_id)

    def find(self, draft: Draft) -> WaitingDraft | None:
        """Return the waiting draft with the same id or game, or None."""
        waiting = self.find_id(draft.event_id)
        if waiting is None and draft.type == "game.recorded":
            return self.find_id(self._recording_ids.get(draft.subject, ""))
        return waiting

    def find_by_column(self, column: Column, value: str) -> Iterator[KnownEvent]:
        """Yield the drafts with this value in a column, in order."""
        return self._select_waiting(self._index.find_by_column(column, value))

    def find_events_naming(self, names: Iterable[str]) -> Iterator[KnownEvent]:
        """Yield the drafts whose data contains one of these names as a string, in order."""
        return self._select_waiting(self._index.find_events_naming(names))

    def _select_waiting(self, events: Iterable[KnownEvent]) -> Iterator[KnownEvent]:
        return (event for event in events if event.event_id in self._waiting)

    def remove(self, event_id: str) -> None:
        """Remove a draft."""
        self._waiting.pop(event_id, None)

    def close(self) -> None:
        """Remove all drafts."""
        self.__init__()  # type: ignore[misc]


class Intake:
    """Checked events that wait to be appended in one transaction. `result` reports the outcome."""

    # whether each input file is recorded as a batch
    _has_batches = False

    # more than seven parameters, because each keyword-only hook serves another caller
    def __init__(
        self,
        ledger: Ledger,
        items: Iterable[Item | Rejection],
        policy: ImportPolicy,
        *,
        ladders: LadderChecksAt = skip_ladder_checks,
        newcomers: NameCollector | None = None,
        based_on: Mapping[str, str | int] | None = None,
        precondition: Precondition = lambda connection: None,
        clock: system_clock.Clock | None = None,
        reject: OnRejected = lambda rejection, source: None,
        on_stored: OnStored = lambda line, event_id, appended: None,
        phrase: Callable[[str], str] = lambda message: message,
        waiting: WaitingDrafts | None = None,
        has_event_numbers: bool = False,
    ) -> None:
        """Check all items.

        Args:
            ledger: The ledger to which the events will be appended.
            items: The events.
            policy: The recorder, and the checks that are waived.
            ladders: Creates the checks of the ladders.
            newcomers: Collects the new names, and refuses some of them.
            based_on: For optimistic locking, the id or position of the last event that the writer read, by subject.
            precondition: A check that runs now, and again under the lock if other writers have appended.
            clock: Returns the current time in microseconds.
            reject: Called for every refusal.
            on_stored: Called for each event that the log holds, or holds after the append.
            phrase: Adapts the message of every refusal to the front end.
            waiting: The storage of waiting drafts, by default in memory.
            has_event_numbers: Whether each refusal gets the number of its event as its line if there is no file.

        Raises:
            ClockBehind: The clock is far behind the last event.
            StoreUnavailable: The ledger cannot be read.
        """
        self.ledger = ledger
        self.policy = policy
        self.result = IntakeResult()
        self._clock = clock = clock or system_clock.now
        self._precondition, self._reject, self._on_stored, self._phrase = precondition, reject, on_stored, phrase
        self._newcomers = newcomers or NameCollector(lambda connection: (), "")
        self._based_on = {} if based_on is None else based_on
        self._clock_events: RepeatedClockEvents | None = None
        self._reported_remedies = set[tuple[str, str]]()
        # the names in games whose places have a gap, by (file, line)
        self._names_of_gaps: dict[tuple[str, int], frozenset[str]] = {}
        # the only name that differs from the recorded game, and the recorded name, by (file, line)
        self._slips: dict[tuple[str, int], tuple[str, str]] = {}
        self.waiting: WaitingDrafts = DraftList() if waiting is None else waiting
        self._is_closed = False
        self._has_event_numbers = has_event_numbers
        with ledger.reading() as self._connection:
            self.result.head = head(self._connection)
            self._recorded_at = system_clock.choose_recorded_at(
                self.result.head.recorded_at, clock, policy.ignore_clock
            )
            now = None if policy.any_date else clock()
            self._validator = Validator(self._connection, self.waiting, ladders, self.result.head.position, now)
            self._check_all(items)

    @property
    def is_refused(self) -> bool:
        """Tell whether nothing will be appended because of a refusal."""
        return bool(self.result.rejected_count) and not self.policy.keep_going

    def drafts(self) -> Iterator[Draft]:
        """Return the waiting drafts in order. Raises `BadArgument` once they are appended or closed."""
        self._refuse_closed()
        return (waiting.draft for waiting in self.waiting)

    def close(self) -> None:
        """Release the waiting drafts."""
        self._is_closed = True
        self.waiting.close()

    def refuse(self, problem: Refused, file: str = "", line: int = 0) -> None:
        """Refuse all checked events because of a problem that the caller found."""
        self._add_refusal(problem.to_rejection(), file, line, None)
        self.result.would_append = 0

    def append(self, progress: Callable[[int], None] = lambda appended: None) -> IntakeResult:
        """Append the checked events in one transaction, unless they are refused.

        `progress` is called with the number of appended events. Raises `BadArgument` if called twice, `ClockBehind`,
        `StoreUnavailable`.
        """
        self._refuse_closed()
        if not self.is_refused and self.waiting.count:
            self._append_chunk([*self.waiting], self._validator.checked_head)
            progress(self.result.appended)
        self.close()
        return self.result

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise BadArgument("this proposal is already committed or closed; propose the events again")

    # checking

    def _check_all(self, items: Iterable[Item | Rejection]) -> None:
        self._check(items)
        if self._clock_events is not None:
            self.result.notes += self._clock_events.describe()
        self._report_new_names(self._newcomers)
        if not self.is_refused:
            self.result.would_append = self.waiting.count
        if self.waiting.count and not self.result.rejected_count:
            try:
                self._precondition(self._connection)
            except Refused as problem:
                self.refuse(problem)

    def _check(self, items: Iterable[Item | Rejection]) -> None:
        entries = (parse_entry(item, self.policy.keep_going) for item in items)
        while block := [*islice(entries, BLOCK_ITEMS)]:
            self._check_block(block)

    def _check_block(self, block: Sequence[BlockEntry]) -> None:
        drafts = [
            entry.result[0] for entry in block if isinstance(entry, ParsedItem) and isinstance(entry.result, tuple)
        ]
        existing = find_existing(self._connection, drafts, self.waiting)
        lookups = ((index in existing, existing.get(index)) for index in range(len(drafts)))
        for entry in block:
            if isinstance(entry, ParsedItem):
                self._process_item(entry, lookups)
            else:
                self._process_other_entry(entry)

    def _process_other_entry(self, entry: BlockEntry) -> None:
        """Process an entry of a file that is not an event."""
        if isinstance(entry, Rejection):
            self._add_refusal(entry, entry.file, entry.line, None)

    def _process_item(self, entry: ParsedItem, lookups: Iterator[tuple[bool, Rejection | None]]) -> None:
        """Accept or refuse an item.

        For each draft, `lookups` yields whether the log has it, and the refusal if the log's content differs.
        """
        if isinstance(entry.result, Refused):
            self._refuse_item(entry, entry.result.to_rejection(), entry.names)
        elif (problem := self._admit_draft(entry.item, *entry.result, next(lookups))) is not None:
            draft, data = entry.result
            self._refuse_item(entry, problem, TYPES[draft.type].list_named_players(data))

    def _refuse_item(self, entry: ParsedItem, problem: Rejection, names: Iterable[str]) -> None:
        item = entry.item
        self._add_refusal(problem, item.file, item.line, item.source)
        self._newcomers.collect_mentions(names)
        # an import reports problems with the names of a refused game, too
        if not self.policy.keep_going and problem.code not in REFUSED_NAME_CODES:
            self._newcomers.collect_names_of_refused(names, build_first_occurrence(item))
            if problem.code == "place-gap" and len(self.result.rejected) < REJECTIONS_MAX:
                self._names_of_gaps[item.file, item.line] = frozenset(names)

    def _admit_draft(
        self, item: Item, draft: Draft, data: dict[str, Any], lookup: tuple[bool, Rejection | None]
    ) -> Rejection | None:
        """Add a draft to the waiting drafts, count it as existing, or leave it out; return None, or its refusal."""
        if self.result.voided and draft.type != "game.recorded":
            # the input may reinstate the voided game
            self.result.voided.pop(draft.subject.removeprefix("game:"), None)
        if draft.type.startswith("clock."):
            self._clock_events = self._clock_events or RepeatedClockEvents()
            self._clock_events.watch(draft, data, item.file, item.line)
        is_known, problem = lookup
        if is_known:
            if problem is not None and (item.table or self._repeats.find_void(draft) is not None):
                problem = self._repeats.compare(draft, problem)
                if problem is not None and item.table and not self.policy.keep_going:
                    self._record_slip(problem, draft, item)
                problem = self._add_remedy(problem, draft, item)
            if problem is None:
                self._count_existing(item, draft)
            return problem
        if (waiting := self.waiting.find(draft)) is not None:
            return self._compare_with_waiting(item, draft, waiting)
        if self._should_leave_out(draft, data):
            return None
        if draft.type == "import.recorded" and not self._has_batches:
            draft = draft._replace(position=None)  # the position matters only for a batch from a file
        try:
            if item.table and not self.policy.new_game and draft.type == "game.recorded":
                self._validator.refuse_unknown_game(data)
            self._refuse_large_record(draft)
            if (supersedes := self._validator.validate(draft, data)) is not None:
                self._refuse_stale_base(draft, supersedes)
                draft = draft._replace(supersedes=supersedes)
                self._refuse_large_record(draft)
        except Refused as problem:
            return problem.to_rejection()
        self.waiting.add(draft, item.file, item.line, item.source if item.table else None)
        if self.result.game is None and draft.type == "game.recorded":
            self.result.game = data["game"]
        self._newcomers.collect_names(draft.type, data, build_first_occurrence(item))
        return None

    def _should_leave_out(self, draft: Draft, data: dict[str, Any]) -> bool:
        """Tell whether to leave out an event that belongs to another ledger."""
        return False

    def _refuse_stale_base(self, draft: Draft, supersedes: str) -> None:
        """Raise `Refused` (changed-meanwhile) if the writer did not read the event that a draft supersedes."""
        last = Log(self._connection).event(supersedes) if draft.subject in self._based_on else None
        if last is not None and self._based_on[draft.subject] not in (last.event_id, last.position):
            name = draft.subject.partition(":")[2]
            raise Refused(
                "changed-meanwhile",
                f"{quote(name)} was last changed at position {last.position}, not by the event that you read; "
                "read it again, then decide",
            )

    def _refuse_large_record(self, draft: Draft) -> None:
        """Raise `Refused` (record-too-large) if the record of a draft would be too large."""
        assert self.result.head is not None
        position = self.result.head.position + self.waiting.count + 1
        refuse_large_record(draft, position, self._recorded_at, self.policy.by, draft.supersedes)

    def _compare_with_waiting(self, item: Item, draft: Draft, waiting: WaitingDraft) -> Rejection | None:
        """Compare a draft with the waiting draft of the same id or game; return None, or a refusal if they differ."""
        game_id, origin = draft.subject.removeprefix("game:"), _describe_origin(waiting)
        if waiting.draft.event_id != draft.event_id:
            return Rejection("game-exists", f"{quote(game_id)} is also in {origin}; leave out one of the two")
        if are_equal_drafts(waiting.draft, draft):
            self._count_existing(item, draft)
            return None
        is_game = draft.type == "game.recorded" and draft.event_id == draft.subject
        name = f"the game {quote(game_id)}" if is_game else f"the id {quote(draft.event_id)}"
        # a game without an id in its file gets another remedy (`_add_remedy`)
        remedy = "" if item.is_numbered else f"; use another {'game_id' if is_game else 'id'}"
        return Rejection("id-conflict", f"{name} has different content in {origin}{remedy}")

    def _add_remedy(self, problem: Rejection | None, draft: Draft, item: Item) -> Rejection | None:
        """Add a remedy to the refusal of a game whose id has different content; each kind of remedy once per file."""
        if problem is None or problem.code != "id-conflict":
            return problem
        remedy, kind = self._find_remedy(draft, item)
        if (item.file, kind) in self._reported_remedies:
            return problem
        self._reported_remedies.add((item.file, kind))
        return problem._replace(message=f"{problem.message}; {remedy}")

    def _find_remedy(self, draft: Draft, item: Item) -> tuple[str, str]:
        """Return a remedy for a game whose id has different content, and the kind of remedy."""
        void = self._repeats.find_void(draft)
        assert void is not None
        return describe_reinstatement(void, file="", is_compared=False), "voided"

    def _record_slip(self, problem: Rejection, draft: Draft, item: Item) -> None:
        """Remember the player's name by which a refused game differs from the recorded one, if nothing else differs."""
        is_conflict = problem.code == "id-conflict" and draft.type == "game.recorded"
        if is_conflict and len(self._slips) < REJECTIONS_MAX and (slip := self._repeats.find_slip(draft)) is not None:
            self._slips[item.file, item.line] = slip

    def _count_existing(self, item: Item, draft: Draft) -> None:
        self.result.existing += 1
        if (void := self._repeats.find_void(draft)) is not None:
            self.result.voided[void.data["game_id"]] = void
        self._on_stored(item.line, draft.event_id, False)

    @cached_property
    def _repeats(self) -> RepeatedGameChecks:
        return RepeatedGameChecks(self._connection)

    def _report_new_names(self, newcomers: NameCollector) -> None:
        """Add the new names to the result, and refuse each game with a refused name."""
        result, refused = self.result, newcomers.find_refusals(self._connection)
        valid = 0 if refused else self.waiting.count
        result.new_players, result.similar_names = newcomers.names, newcomers.similar_names
        new_ids, opponents = newcomers.new_ids, dict[str, set[str]]()
        if refused:
            accepted_names, reported = set[str](), self._replace_consequences(refused)
            for waiting in [*self.waiting]:
                names = waiting.draft.list_named_players()
                refused_names = [name for name in names if newcomers.is_refused(name, refused, waiting.file)]
                for name in refused_names:
                    opponents.setdefault(name, set()).update(opponent for opponent in names if opponent != name)
                if not refused_names:
                    valid += 1
                    accepted_names.update(names)
                elif self.policy.keep_going:
                    self.waiting.remove(waiting.draft.event_id)
                    self._add_refusal(refused[refused_names[0]], waiting.file, waiting.line, waiting.rows)
                else:
                    for name in dict.fromkeys(refused_names):
                        self._add_refusal(refused[name], waiting.file, waiting.line, None)
                        reported.add(name)
            for name in refused.keys() - reported if not self.policy.keep_going else ():
                self._add_refusal(refused[name], refused[name].file, refused[name].line, None)
            if self.policy.keep_going:
                result.new_players = [name for name in result.new_players if name in accepted_names]
                new_ids = [name for name in new_ids if name in accepted_names]
        result.close = {
            name: newcomers.close[name]._replace(opponents=frozenset(opponents.get(name, ())))
            for name in (*result.new_players, *new_ids)
            if name in newcomers.close
        }
        result.valid = valid if result.rejected_count else 0
        files = {rejection.file: None for rejection in result.rejected}
        order = {file: number for number, file in enumerate(files)}
        result.rejected.sort(key=lambda rejection: (order[rejection.file], rejection.line or 0))

    def _replace_consequences(self, refused: dict[str, Rejection]) -> set[str]:
        """Replace refusals that follow from a refused name by the refusal of that name; return these names.

        A cell with several players leaves a gap in the places, and a misspelt name makes a game differ from the
        recorded game.
        """
        causes = set[str]()
        for index, rejection in enumerate(self.result.rejected if self._names_of_gaps or self._slips else ()):
            origin = rejection.file or "", rejection.line or 0
            names = self._names_of_gaps.get(origin, frozenset()) if rejection.code == "place-gap" else ()
            name = min((name for name in names if name in refused and refused[name].code == "tied-players"), default="")
            if rejection.code == "id-conflict" and origin in self._slips:
                slip, player = self._slips[origin]
                is_close = slip in refused and refused[slip].code == "close-name"
                name = slip if is_close and player in self._newcomers.close[slip].others else ""
            if name:
                self.result.rejected[index] = refused[name]._replace(file=rejection.file, line=rejection.line)
                causes.add(name)
        return causes

    def _add_refusal(self, rejection: Rejection, file: str | None, line: int | None, source: Any) -> None:
        """Add a refusal to the result, with its file and line, and in the words of the front end."""
        located = rejection._replace(
            message=self._phrase(rejection.message),
            file=file or None,
            line=(line or None) if file or self._has_event_numbers else None,
        )
        self.result.rejected_count += 1
        if len(self.result.rejected) < REJECTIONS_MAX:
            self.result.rejected.append(located)
        self._reject(located, source)

    # appending

    def _append_chunk(self, chunk: Sequence[WaitingDraft], absent_at: int | None) -> int | None:
        """Append drafts in one transaction; with `keep_going`, skip drafts that other writers have made invalid.

        `absent_at` is a position of the head at which the log did not contain the drafts, or None if it is unknown.
        Returns such a position for the next chunk.
        """
        while True:
            result = append(
                self.ledger,
                [waiting.draft for waiting in chunk],
                by=self.policy.by,
                clock=self._clock,
                ignore_clock=self.policy.ignore_clock,
                recheck=self._recheck,
                absent_at=absent_at,
                build_last=self._prepare_last_drafts(chunk),
            )
            if not result.refused:
                break
            # other writers have appended events that contradict these drafts
            for index, rejection in result.refused:
                self._add_refusal(rejection, chunk[index].file, chunk[index].line, chunk[index].rows)
            if self.is_refused:
                self.result.head = result.head
                return None
            refused = {index for index, _ in result.refused}
            chunk = [waiting for index, waiting in enumerate(chunk) if index not in refused]
        self._count_stored(chunk, result)
        return result.head.position if absent_at == result.head.position - result.appended else None

    def _prepare_last_drafts(self, chunk: Sequence[WaitingDraft]) -> BuildLastDrafts | None:
        """Return a function that builds the last drafts of a chunk's transaction, or None."""
        return None

    def _count_stored(self, chunk: Sequence[WaitingDraft], appended: AppendResult) -> None:
        """Count the events of a chunk that the log holds now."""
        for index, waiting in enumerate(chunk):
            self._on_stored(waiting.line, waiting.draft.event_id, index not in appended.existing_indices)
        self._validator.checked_head = appended.head.position
        self.result.appended += appended.appended
        self.result.existing += appended.existing
        self.result.head = appended.head

    def _recheck(self, connection: Connection, current_head: Head, fresh: FreshDrafts) -> list[tuple[int, Rejection]]:
        """Check drafts again under the lock if other writers appended; return (index, refusal) of refused drafts."""
        if current_head.position != self._validator.checked_head:
            try:
                self._precondition(connection)
            except Refused as problem:
                return [(fresh[0][0], problem.to_rejection())]
        return self._validator.recheck(connection, current_head, fresh)


def build_first_occurrence(item: Item) -> FirstOccurrence:
    """Describe where the names of an item occur. Names of online accounts are exact, so they do not count as typed."""
    return FirstOccurrence(item.file, item.line, item.table and not item.accounts, item.form)


def _describe_origin(waiting: WaitingDraft) -> str:
    """Describe the origin of a waiting event: a line of a file, or the number of an event in a program's list."""
    return f"line {waiting.line} of {waiting.file}" if waiting.file else f"event {waiting.line} of this list"

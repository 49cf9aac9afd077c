"""Intake: check events against the log and the ladders, let them wait, and append all or none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Connection

from ratings_ledger.ledger import clock as system_clock
from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.canonical import parse_object
from ratings_ledger.ledger.events.game_clocks import COUNTED_CLOCK_TYPES
from ratings_ledger.ledger.events.records import build_record, is_surely_small
from ratings_ledger.ledger.events.revisions import Column, DraftBatch, EventLookup, KnownEvent, live_game
from ratings_ledger.ledger.events.types import TYPES, Draft, default_id
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.parsing import BLOCK_ITEMS, BlockEntry, ParsedItem, parse_entry
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.intake.tables.recognition import TableRead
from ratings_ledger.ledger.rejections import Refused, Rejection, quote
from ratings_ledger.ledger.store.appending import (
    AppendResult,
    BuildLastDrafts,
    Fresh,
    append,
    are_same_drafts,
    find_existing,
    game_exists_rejection,
    next_recorded_at,
)
from ratings_ledger.ledger.store.log import Head, Log, changed_games, head
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.identities import Identities, identities
from ratings_ledger.ledger.validation.new_names import REFUSED_NAMES, CloseName, FirstOccurrence, Newcomers, Refusing
from ratings_ledger.ledger.validation.repeated_games import check_repeated_game, describe_way_back, find_slip
from ratings_ledger.ledger.validation.validator import LadderChecksAt, Validator, skip_ladder_checks

REJECTIONS_MAX = 10_000
# called with every refusal and its input
Reject = Callable[[Rejection, Any], None]
# called with the line and the id of every event that is then in the log, and whether this intake appended it
OnStored = Callable[[int, str, bool], None]
# raises `Refused` (changed-meanwhile) if the state on which the events were based has changed
Precondition = Callable[[Connection], None]


class ImportPolicy(NamedTuple):
    """Who records events, and which checks are waived.

    ignore_clock:    append events although the last one was recorded after this machine's time
    any_date:        accept games dated more than a day ahead, or before 1900
    allow_uncounted: accept games that a ladder's rule cannot score
    refusing:        where to refuse new names that are close to others
    strict:          refuse all new names there, and games that begin a ladder
    keep_going:      append the valid events although others are refused
    accepted:        new names to accept although they are close to others
    report_close:    report names that are close to others, but accept them
    new_game:        accept games of tables that no ruleset scores
    """

    by: str
    ignore_clock: bool = False
    any_date: bool = False
    allow_uncounted: bool = False
    refusing: Refusing = ""
    strict: bool = False
    keep_going: bool = False
    accepted: frozenset[str] = frozenset()
    report_close: bool = False
    new_game: bool = False


class GamesOfReason(NamedTuple):
    """The games that one sentence is about: the first one's id, and how many there are."""

    first: str
    number: int


@dataclass
class IntakeResult:
    """The result of an intake; `rejected` has the first `REJECTIONS_MAX` refusals, `rejected_count` counts all."""

    appended: int = 0
    existing: int = 0
    would_append: int = 0
    rejected: list[Rejection] = field(default_factory=list)
    rejected_count: int = 0
    head: Head | None = None
    # files with a column of ids that numbers the games of each day anew
    counting: set[str] = field(default_factory=set)
    # if the input is refused, the number of its valid events; and the game of the first event to append
    valid: int = 0
    game: str | None = None
    # the players new to the ledger, and those of them close to others
    new_players: list[str] = field(default_factory=list)
    close: dict[str, CloseName] = field(default_factory=dict)
    alike: dict[str, list[str]] = field(default_factory=dict)
    # sentences about tables, how each file's table was read, and the options that read the next one the same way
    notes: list[str] = field(default_factory=list)
    tables: dict[str, TableRead] = field(default_factory=dict)
    read_as: TableOptions | None = None
    # the defects of files that a restore accepted
    accepted_defects: list[str] = field(default_factory=list)
    # the new ladders, and the existing names that theirs resemble
    new_ladders: list[str] = field(default_factory=list)
    close_ladders: dict[str, str] = field(default_factory=dict)
    # for each reason why games are on no ladder, those games; and sentences about leagues
    unranked: dict[str, GamesOfReason] = field(default_factory=dict)
    leagues: list[str] = field(default_factory=list)
    # the voids of games that are already recorded but do not count, by game_id, and sentences about them
    voided: dict[str, KnownEvent] = field(default_factory=dict)
    voided_notes: list[str] = field(default_factory=list)

    @classmethod
    def refused(cls, problem: Refused, head: Head | None = None) -> IntakeResult:
        """Return the result for an event that was refused before it was created."""
        return cls(rejected=[problem.rejection()], rejected_count=1, head=head)


class WaitingDraft(NamedTuple):
    """A waiting draft, with its origin."""

    draft: Draft
    file: str
    line: int
    rows: Any  # the rows of a table that it was composed of, else None


class WaitingDrafts(EventLookup, Protocol):
    """Checked drafts in order, looked up by id, by game and by the event they supersede."""

    @property
    def count(self) -> int:
        """Return the number of waiting drafts."""

    def __iter__(self) -> Iterator[WaitingDraft]: ...

    def add(self, draft: Draft, file: str, line: int, rows: Any) -> None:
        """Append a draft."""

    def find_id(self, event_id: str) -> WaitingDraft | None:
        """Return the draft with this id, or None."""

    def find(self, draft: Draft) -> WaitingDraft | None:
        """Return the draft with the same id, or of the same game, or None."""

    def naming(self, names: Iterable[str]) -> Iterator[KnownEvent]:
        """Yield the drafts whose text contains one of these names as a whole string, in order."""

    def remove(self, event_id: str) -> None:
        """Remove a draft."""

    def close(self) -> None:
        """Release the storage of the drafts."""


class DraftList(WaitingDrafts):
    """Waiting drafts in memory. Those of a file wait in a `Spool`."""

    def __init__(self) -> None:
        self._waiting: dict[str, WaitingDraft] = {}
        self._batch = DraftBatch()
        self._recorded: dict[str, str] = {}

    @property
    def count(self) -> int:
        """Return the number of waiting drafts."""
        return len(self._waiting)

    def __iter__(self) -> Iterator[WaitingDraft]:
        return iter(self._waiting.values())

    def add(self, draft: Draft, file: str, line: int, rows: Any) -> None:
        """Append a draft."""
        self._waiting[draft.event_id] = WaitingDraft(draft, file, line, rows)
        self._batch.add(draft, draft.supersedes)
        if draft.type == "game.recorded":
            self._recorded[draft.subject] = draft.event_id

    def find_id(self, event_id: str) -> WaitingDraft | None:
        """Return the draft with this id, or None."""
        return self._waiting.get(event_id)

    def find(self, draft: Draft) -> WaitingDraft | None:
        """Return the draft with the same id, or of the same game, or None."""
        waiting = self.find_id(draft.event_id)
        is_game = waiting is None and draft.type == "game.recorded"
        return self.find_id(self._recorded.get(draft.subject, "")) if is_game else waiting

    def where(self, column: Column, value: str) -> Iterator[KnownEvent]:
        """Yield the drafts with this value in a column, in order."""
        return self._still_waiting(self._batch.where(column, value))

    def naming(self, names: Iterable[str]) -> Iterator[KnownEvent]:
        """Yield the drafts whose text contains one of these names as a whole string, in order."""
        return self._still_waiting(self._batch.naming(names))

    def _still_waiting(self, events: Iterable[KnownEvent]) -> Iterator[KnownEvent]:
        return (event for event in events if event.event_id in self._waiting)

    def remove(self, event_id: str) -> None:
        """Remove a draft."""
        self._waiting.pop(event_id, None)

    def close(self) -> None:
        """Forget the drafts."""
        self.__init__()  # type: ignore[misc]


class Intake:
    """Checked events that wait to be appended in one transaction; `result` reports their outcome."""

    # whether each input file is recorded as a batch
    _has_batches = False

    # each hook has one caller, so all are keyword-only
    def __init__(
        self,
        ledger: Ledger,
        items: Iterable[Item | Rejection],
        policy: ImportPolicy,
        *,
        ladders: LadderChecksAt = skip_ladder_checks,
        newcomers: Newcomers | None = None,
        based_on: Mapping[str, str | int] | None = None,
        precondition: Precondition = lambda connection: None,
        clock: system_clock.Clock | None = None,
        reject: Reject = lambda rejection, source: None,
        on_stored: OnStored = lambda line, event_id, appended: None,
        phrase: Callable[[str], str] = lambda message: message,
        waiting: WaitingDrafts | None = None,
        numbered: bool = False,
    ) -> None:
        """Check all items.

        Args:
            ledger: The ledger to which the events will be appended.
            items: The events.
            policy: The recorder, and the checks that are waived.
            ladders: Creates the checks of the ladders.
            newcomers: Determines the new names, and which of them are refused.
            based_on: For optimistic locking: the id or position of the last event that the writer saw, by subject.
            precondition: A check that runs now, and again under the lock if others appended.
            clock: Returns the current time.
            reject: Called with every refusal.
            on_stored: Called with every event that is then in the log.
            phrase: Adapts the message of every refusal to the front end.
            waiting: The storage of waiting drafts, by default in memory.
            numbered: Number refusals by their event if there is no file.

        Raises:
            ClockBehind, StoreUnavailable.
        """
        self.ledger = ledger
        self.policy = policy
        self.result = IntakeResult()
        self._clock = clock = clock or system_clock.now
        self._precondition, self._reject, self._on_stored, self._phrase = precondition, reject, on_stored, phrase
        self._newcomers = newcomers or Newcomers(lambda connection: (), "")
        self._based_on = {} if based_on is None else based_on
        self._clock_events: RepeatedClockEvents | None = None
        self._reported_remedies = set[tuple[str, str]]()
        # by file and line, the names of games whose places have a gap
        self._names_of_gaps: dict[tuple[str, int], frozenset[str]] = {}
        # by file and line, the name by which alone a game differs from the recorded one, and the name there
        self._slips: dict[tuple[str, int], tuple[str, str]] = {}
        self.waiting: WaitingDrafts = DraftList() if waiting is None else waiting
        self._is_closed = False
        self._is_numbered = numbered
        with ledger.reading() as self._connection:
            self.result.head = head(self._connection)
            self._recorded_at = next_recorded_at(self.result.head, clock, policy.ignore_clock)
            now = None if policy.any_date else clock()
            self._validator = Validator(self._connection, self.waiting, ladders, self.result.head.position, now)
            self._check_all(items)

    @property
    def is_refused(self) -> bool:
        """Tell whether a refusal prevents the append."""
        return bool(self.result.rejected_count) and not self.policy.keep_going

    def drafts(self) -> Iterator[Draft]:
        """Return the drafts that would be appended, in order. Raises `BadArgument` after the append."""
        self._refuse_closed()
        return (waiting.draft for waiting in self.waiting)

    def close(self) -> None:
        """Release the waiting drafts."""
        self._is_closed = True
        self.waiting.close()

    def refuse(self, problem: Refused, file: str = "", line: int = 0) -> None:
        """Refuse the checked events for a reason that the caller found."""
        self._note(problem.rejection(), file, line, None)
        self.result.would_append = 0

    def append(self, progress: Callable[[int], None] = lambda appended: None) -> IntakeResult:
        """Append the checked events in one transaction, unless they are refused.

        Raises `BadArgument` if called twice, `ClockBehind`, `StoreUnavailable`.
        """
        self._refuse_closed()
        if not self.is_refused and self.waiting.count:
            self._append_chunk([*self.waiting], self._validator.seen)
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
            self.result.notes += self._clock_events.notes()
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
            entry.outcome[0] for entry in block if isinstance(entry, ParsedItem) and isinstance(entry.outcome, tuple)
        ]
        found = find_existing(self._connection, drafts, self.waiting)
        known = ((index in found, found.get(index)) for index in range(len(drafts)))
        for entry in block:
            if isinstance(entry, ParsedItem):
                self._process_item(entry, known)
            else:
                self._process_note(entry)

    def _process_note(self, entry: BlockEntry) -> None:
        """Handle an entry of a file that is not an event."""
        if isinstance(entry, Rejection):
            self._note(entry, entry.file, entry.line, None)

    def _process_item(self, entry: ParsedItem, known: Iterator[tuple[bool, Rejection | None]]) -> None:
        """Accept or refuse an item; `known` yields whether the log has the draft, and the refusal if it differs."""
        if isinstance(entry.outcome, Refused):
            self._refuse_item(entry, entry.outcome.rejection(), entry.names)
        elif (problem := self._admit_draft(entry.item, *entry.outcome, next(known))) is not None:
            draft, data = entry.outcome
            self._refuse_item(entry, problem, TYPES[draft.type].brings(data))

    def _refuse_item(self, entry: ParsedItem, problem: Rejection, names: Iterable[str]) -> None:
        item = entry.item
        self._note(problem, item.file, item.line, item.source)
        self._newcomers.mention(names)
        # problems with its names are reported separately
        if not self.policy.keep_going and problem.code not in REFUSED_NAMES:
            self._newcomers.meet_refused(names, first_occurrence(item))
            if problem.code == "place-gap" and len(self.result.rejected) < REJECTIONS_MAX:
                self._names_of_gaps[item.file, item.line] = frozenset(names)

    def _admit_draft(
        self, item: Item, draft: Draft, data: dict[str, Any], known: tuple[bool, Rejection | None]
    ) -> Rejection | None:
        """Let a draft wait, or count it as existing; return its refusal if it is refused."""
        if self.result.voided and draft.type != "game.recorded":
            # the input itself changes the voided game
            self.result.voided.pop(draft.subject.removeprefix("game:"), None)
        if draft.type in COUNTED_CLOCK_TYPES:
            self._clock_events = self._clock_events or RepeatedClockEvents()
            self._clock_events.watch(item, draft, data)
        if known[0]:
            problem = known[1]
            if problem is not None and (item.table or self._void_of(draft) is not None):
                problem = check_repeated_game(Log(self._connection), self._people, draft, problem)
                if problem is not None and item.table and not self.policy.keep_going:
                    self._find_slip(problem, draft, item)
                problem = self._add_remedy(problem, draft, item)
            if problem is None:
                self._count_existing(item, draft)
            return problem
        if (waiting := self.waiting.find(draft)) is not None:
            return self._compare_with_waiting(item, draft, waiting)
        if self._is_left_out(draft, data):
            return None
        if draft.type == "import.recorded" and not self._has_batches:
            draft = draft._replace(position=None)  # ignored, because the event does not come from a file
        try:
            if item.table and not self.policy.new_game and draft.type == "game.recorded":
                self._validator.refuse_unknown_game(data)
            if not is_surely_small(draft, self.policy.by):
                self._build(draft)
            if (supersedes := self._validator.validate(draft, data)) is not None:
                self._refuse_stale_base(draft, supersedes)
                draft = draft._replace(supersedes=supersedes)
                self._build(draft)
        except Refused as problem:
            return problem.rejection()
        self.waiting.add(draft, item.file, item.line, item.source if item.table else None)
        if self.result.game is None and draft.type == "game.recorded":
            self.result.game = data["game"]
        self._newcomers.meet(draft.type, data, first_occurrence(item))
        return None

    def _is_left_out(self, draft: Draft, data: dict[str, Any]) -> bool:
        """Tell whether an event is left out because it is not valid in this ledger."""
        return False

    def _refuse_stale_base(self, draft: Draft, supersedes: str) -> None:
        """Raise `Refused` (changed-meanwhile) if a draft supersedes an event that the writer did not know."""
        last = Log(self._connection).event(supersedes) if draft.subject in self._based_on else None
        if last is not None and self._based_on[draft.subject] not in (last.event_id, last.position):
            what = draft.subject.partition(":")[2]
            raise Refused(
                "changed-meanwhile",
                f"{quote(what)} changed at position {last.position} since you read it; read it and decide again",
            )

    def _build(self, draft: Draft) -> None:
        """Check that a record can be built from a draft. Raises `Refused`."""
        assert self.result.head is not None
        position = self.result.head.position + self.waiting.count + 1
        build_record(draft, position, self._recorded_at, draft.by or self.policy.by, draft.supersedes)

    def _compare_with_waiting(self, item: Item, draft: Draft, waiting: WaitingDraft) -> Rejection | None:
        """Compare a draft with the waiting one of the same id or game; return the refusal if they differ."""
        if waiting.draft.event_id != draft.event_id:
            return game_exists_rejection(draft, waiting.draft.event_id)
        if are_same_drafts(waiting.draft, draft):
            self._count_existing(item, draft)
            return None
        return Rejection(
            "id-conflict",
            f"the id {quote(draft.event_id)} has different content at {_describe_place(waiting)}",
        )

    def _add_remedy(self, problem: Rejection | None, draft: Draft, item: Item) -> Rejection | None:
        """Add a remedy to the refusal of a game with the id of another one, once per file."""
        if problem is None or problem.code != "id-conflict":
            return problem
        remedy, kind = self._find_remedy(draft, item)
        if (item.file, kind) in self._reported_remedies:
            return problem
        self._reported_remedies.add((item.file, kind))
        return problem._replace(message=f"{problem.message}; {remedy}")

    def _find_remedy(self, draft: Draft, item: Item) -> tuple[str, str]:
        """Return a remedy for a game with the id of another one, and the kind of remedy."""
        void = self._void_of(draft)
        assert void is not None
        return describe_way_back(void, "", False), "voided"

    def _find_slip(self, problem: Rejection, draft: Draft, item: Item) -> None:
        """Note whether a game conflicts with the recorded one only by a name."""
        if problem.code == "id-conflict" and draft.type == "game.recorded" and len(self._slips) < REJECTIONS_MAX:
            slip = find_slip(Log(self._connection), self._people, draft)
            if slip is not None:
                self._slips[item.file, item.line] = slip

    def _void_of(self, draft: Draft) -> KnownEvent | None:
        """Find the void of the game that a draft records again, if it is voided."""
        if draft.type != "game.recorded" or draft.subject not in self._changed:
            return None
        game = live_game(Log(self._connection).about(draft.subject))
        return game.last if game is not None and game.voided else None

    def _count_existing(self, item: Item, draft: Draft) -> None:
        self.result.existing += 1
        if (void := self._void_of(draft)) is not None:
            self.result.voided[void.data["game_id"]] = void
        self._on_stored(item.line, draft.event_id, False)

    @cached_property
    def _people(self) -> Identities:
        return identities(self._connection)

    @cached_property
    def _changed(self) -> set[str]:
        """Return the subjects of games with more than their first event."""
        return changed_games(self._connection, 0)

    def _report_new_names(self, newcomers: Newcomers) -> None:
        """Report the new names, and refuse each game with a refused one."""
        result, refused = self.result, newcomers.refusals(self._connection)
        valid = 0 if refused else self.waiting.count
        result.new_players, result.alike = newcomers.names, newcomers.alike
        new_ids, opponents = newcomers.new_ids, dict[str, set[str]]()
        if refused:
            accepted_names, reported = set[str](), self._blame_names(refused)
            for waiting in [*self.waiting]:
                names = TYPES[waiting.draft.type].brings(parse_object(waiting.draft.data.encode()))
                refused_names = [name for name in names if newcomers.is_refused(name, refused, waiting.file)]
                for name in refused_names:
                    opponents.setdefault(name, set()).update(other for other in names if other != name)
                if not refused_names:
                    valid += 1
                    accepted_names.update(names)
                elif self.policy.keep_going:
                    self.waiting.remove(waiting.draft.event_id)
                    self._note(refused[refused_names[0]], waiting.file, waiting.line, waiting.rows)
                else:
                    for name in dict.fromkeys(refused_names):
                        self._note(refused[name], waiting.file, waiting.line, None)
                        reported.add(name)
            for name in refused.keys() - reported if not self.policy.keep_going else ():
                self._note(refused[name], refused[name].file, refused[name].line, None)
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

    def _blame_names(self, refused: dict[str, Rejection]) -> set[str]:
        """Report names instead of what they cause; return these names.

        A name of several players leaves a gap in places, and a slip makes a recorded game another one.
        """
        blamed = set[str]()
        for index, rejection in enumerate(self.result.rejected if self._names_of_gaps or self._slips else ()):
            place = rejection.file or "", rejection.line or 0
            names = self._names_of_gaps.get(place, frozenset()) if rejection.code == "place-gap" else ()
            name = min((name for name in names if name in refused and refused[name].code == "tied-players"), default="")
            if rejection.code == "id-conflict" and place in self._slips:
                slip, player = self._slips[place]
                is_close = slip in refused and refused[slip].code == "close-name"
                name = slip if is_close and player in self._newcomers.close[slip].others else ""
            if name:
                self.result.rejected[index] = refused[name]._replace(file=rejection.file, line=rejection.line)
                blamed.add(name)
        return blamed

    def _note(self, rejection: Rejection, file: str | None, line: int | None, source: Any) -> None:
        placed = rejection._replace(
            message=self._phrase(rejection.message),
            file=file or None,
            line=(line or None) if file or self._is_numbered else None,
        )
        self.result.rejected_count += 1
        if len(self.result.rejected) < REJECTIONS_MAX:
            self.result.rejected.append(placed)
        self._reject(placed, source)

    # appending

    def _append_chunk(self, chunk: Sequence[WaitingDraft], absent_at: int | None) -> int | None:
        """Append drafts in one transaction; with `keep_going`, skip those that other writers have made invalid.

        The log up to the position `absent_at`, if known, does not contain them. Return that position for the next one.
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
            # another writer appended events since the check
            for index, rejection in result.refused:
                self._note(rejection, chunk[index].file, chunk[index].line, chunk[index].rows)
            if self.is_refused:
                self.result.head = result.head
                return None
            refused = {index for index, _ in result.refused}
            chunk = [waiting for index, waiting in enumerate(chunk) if index not in refused]
        self._count_stored(chunk, result)
        return result.head.position if absent_at == result.head.position - result.appended else None

    def _prepare_last_drafts(self, chunk: Sequence[WaitingDraft]) -> BuildLastDrafts | None:
        """Return a function that creates the last events of a chunk's transaction."""
        return None

    def _count_stored(self, chunk: Sequence[WaitingDraft], done: AppendResult) -> None:
        """Count the appended events."""
        for index, waiting in enumerate(chunk):
            self._on_stored(waiting.line, waiting.draft.event_id, index not in done.known)
        self._validator.seen = done.head.position
        self.result.appended += done.appended
        self.result.existing += done.existing
        self.result.head = done.head

    def _recheck(self, connection: Connection, before: Head, fresh: Fresh) -> list[tuple[int, Rejection]]:
        """Check drafts again under the lock, if others appended meanwhile; return the refused ones."""
        if before.position != self._validator.seen:
            try:
                self._precondition(connection)
            except Refused as problem:
                return [(fresh[0][0], problem.rejection())]
        return self._validator.recheck(connection, before, fresh)


def first_occurrence(item: Item) -> FirstOccurrence:
    """Return the occurrence of an item's names. Account names are unique, so close ones are not compared."""
    return FirstOccurrence(item.file, item.line, item.table and not item.accounts, item.form)


def _describe_place(waiting: WaitingDraft) -> str:
    """Describe where a waiting event comes from: a line of a file, or its number among those of a program."""
    return f"line {waiting.line} of {waiting.file}" if waiting.file else f"event {waiting.line} of these"


class RepeatedClockEvents:
    """A detector of repeated clock events in an input."""

    def __init__(self) -> None:
        # by game: the latest millisecond, and its events by id; the times of a server never decrease
        self._latest: dict[str, tuple[int, dict[str, Item]]] = {}
        self._first = ""
        self._count = 0

    def watch(self, item: Item, draft: Draft, data: dict[str, Any]) -> None:
        """Compare an event with those of its game in the same millisecond."""
        at, items = self._latest.get(data["game_id"], (-1, {}))
        if at != data["at"]:
            items = {}
            self._latest[data["game_id"]] = data["at"], items
        earlier = items.setdefault(draft.event_id, item)
        if earlier is not item and draft.event_id == default_id(draft.type, draft.occurred_at, data):
            self._count += 1
            place = f"{item.file}:{item.line}: " if item.file else ""
            original = f"line {earlier.line} of {earlier.file}" if item.file else "an earlier one"
            self._first = self._first or (
                f"{place}this {draft.type} of {quote(data['player'])} in {quote(data['game_id'])} repeats {original}, "
                f"also at {data['at']} ms, so both count as one event"
            )

    def notes(self) -> list[str]:
        """Return the sentences about the repetitions."""
        more = f" ({self._count - 1:,} more like this)" if self._count > 1 else ""
        return [f"{self._first}; if both happened, give each an id of its own{more}"] if self._count else []

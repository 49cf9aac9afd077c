"""Intake: events are checked against the log and the ladders, then wait, and are appended all or none."""

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
    Closing,
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
from ratings_ledger.ledger.validation.repeated_games import check_repeated_game, describe_way_back
from ratings_ledger.ledger.validation.validator import LadderChecksAt, Validator, skip_ladder_checks

REJECTIONS_MAX = 10_000
# called with every refusal and the input that it is about
Reject = Callable[[Rejection, Any], None]
# called with the line of every event that ends up in the log, its id, and whether this intake appended it
OnStored = Callable[[int, str, bool], None]
# raises `Refused` (changed-meanwhile) if what the events were based on is no longer so
Precondition = Callable[[Connection], None]


class ImportPolicy(NamedTuple):
    """Who records events, and which checks are waived.

    ignore_clock:    append events although the last one is dated ahead of this machine's time
    any_date:        take games dated more than a day ahead, or before 1900
    allow_uncounted: take games that a ladder's rule cannot score
    refusing:        where to refuse new names that are close to others
    strict:          refuse all new names there, and games that begin a ladder
    keep_going:      append the valid events although others are refused
    accepted:        new names to take although they are close to others
    close_told:      report names that are close to others, but take them
    new_game:        take games of tables that no ruleset scores
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
    new_game: bool = False


@dataclass
class Imported:
    """What an intake did; `rejected` holds the first `REJECTIONS_MAX` refusals, `rejected_count` counts all."""

    appended: int = 0
    existing: int = 0
    would_append: int = 0
    rejected: list[Rejection] = field(default_factory=list)
    rejected_count: int = 0
    head: Head | None = None
    # of a refused input, how many events have nothing wrong; and the game of the first that is to be appended
    sound: int = 0
    game: str | None = None
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
    def refused(cls, problem: Refused, head: Head | None = None) -> Imported:
        """Return the result for an event that was refused before it was made."""
        return cls(rejected=[problem.rejection()], rejected_count=1, head=head)


class WaitingDraft(NamedTuple):
    """A waiting draft, and where it came from."""

    draft: Draft
    file: str
    line: int
    rows: Any  # the CSV rows that it was put together from, else None


class WaitingDrafts(EventLookup, Protocol):
    """Checked drafts in order, looked up by id, by game and by what they supersede."""

    @property
    def count(self) -> int:
        """Return how many drafts wait."""

    def __iter__(self) -> Iterator[WaitingDraft]: ...

    def add(self, draft: Draft, file: str, line: int, rows: Any) -> None:
        """Append a draft."""

    def find_id(self, event_id: str) -> WaitingDraft | None:
        """Return the draft with this id, or None."""

    def find(self, draft: Draft) -> WaitingDraft | None:
        """Return the draft with the same id, or of the same game, or None."""

    def naming(self, names: Iterable[str]) -> Iterator[KnownEvent]:
        """Yield the drafts whose text holds one of these names as a whole string, in order."""

    def remove(self, event_id: str) -> None:
        """Remove a draft."""

    def close(self) -> None:
        """Release what holds the drafts."""


class DraftList(WaitingDrafts):
    """Waiting drafts in memory. Those of a file wait in a `Spool`."""

    def __init__(self) -> None:
        self._waiting: dict[str, WaitingDraft] = {}
        self._batch = DraftBatch()
        self._recorded: dict[str, str] = {}

    @property
    def count(self) -> int:
        """Return how many drafts wait."""
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
        """Yield the drafts whose text holds one of these names as a whole string, in order."""
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
    """Events that were checked, and wait to be appended in one transaction; `result` reports what became of them."""

    # whether the events are those of whole files, each of which is recorded as a batch
    _has_batches = False

    # hooks of single callers, by keyword
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
        waiting: WaitingDrafts | None = None,
    ) -> None:
        """Check all items.

        Args:
            ledger: where the events will be appended.
            items: the events.
            policy: who records them, and which checks are waived.
            ladders: what the ladders say about events.
            newcomers: decides who is new, and which new names are refused.
            based_on: by subject the id or position of the event that was the last one about it when the writer
                looked; what was changed since is refused.
            precondition: is checked now, and again under the lock if others appended.
            clock: what tells the time.
            reject: is called with every refusal.
            on_stored: is called with every event that ends up in the log.
            waiting: where drafts wait, by default in memory.

        Raises:
            ClockBehind, StoreUnavailable.
        """
        self.ledger = ledger
        self.policy = policy
        self.result = Imported()
        self._clock = clock = clock or system_clock.now
        self._precondition, self._reject, self._on_stored = precondition, reject, on_stored
        self._newcomers = newcomers or Newcomers(lambda connection: (), "")
        self._based_on = {} if based_on is None else based_on
        self._clock_events: RepeatedClockEvents | None = None
        self._told_ways = set[tuple[str, str]]()
        self.waiting: WaitingDrafts = DraftList() if waiting is None else waiting
        self._is_closed = False
        with ledger.reading() as self._connection:
            self.result.head = head(self._connection)
            self._recorded_at = next_recorded_at(self.result.head, clock, policy.ignore_clock)
            now = None if policy.any_date else clock()
            self._validator = Validator(self._connection, self.waiting, ladders, self.result.head.position, now)
            self._check_all(items)

    @property
    def is_refused(self) -> bool:
        """Tell whether nothing will be appended, because something was refused."""
        return bool(self.result.rejected_count) and not self.policy.keep_going

    def drafts(self) -> Iterator[Draft]:
        """Return what would be appended, in order. Raises `BadArgument` once it is."""
        self._refuse_closed()
        return (waiting.draft for waiting in self.waiting)

    def close(self) -> None:
        """Release what waits."""
        self._is_closed = True
        self.waiting.close()

    def refuse(self, problem: Refused, file: str = "", line: int = 0) -> None:
        """Refuse what was checked, for a reason that the caller knows."""
        self._note(problem.rejection(), file, line, None)
        self.result.would_append = 0

    def append(self, progress: Callable[[int], None] = lambda appended: None) -> Imported:
        """Append what was checked in one transaction, unless it is refused.

        Raises `BadArgument` the second time, `ClockBehind`, `StoreUnavailable`.
        """
        self._refuse_closed()
        if not self.is_refused and self.waiting.count:
            self._append_chunk([*self.waiting], self._validator.seen)
            progress(self.result.appended)
        self.close()
        return self.result

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise BadArgument("these events were appended or given back; propose them again")

    # checking

    def _check_all(self, items: Iterable[Item | Rejection]) -> None:
        self._check(items)
        if self._clock_events is not None:
            self.result.notes += self._clock_events.notes()
        self._introduce(self._newcomers)
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
                self._take_item(entry, known)
            else:
                self._take_note(entry)

    def _take_note(self, entry: BlockEntry) -> None:
        """Take what a file says besides its events."""
        if isinstance(entry, Rejection):
            self._note(entry, entry.file, entry.line, None)

    def _take_item(self, entry: ParsedItem, known: Iterator[tuple[bool, Rejection | None]]) -> None:
        """Take or refuse an item; `known` says of each draft whether the log has it, and the refusal if it differs."""
        if isinstance(entry.outcome, Refused):
            self._refuse_item(entry, entry.outcome.rejection(), entry.names)
        elif (problem := self._take(entry.item, *entry.outcome, next(known))) is not None:
            draft, data = entry.outcome
            self._refuse_item(entry, problem, TYPES[draft.type].brings(data))

    def _refuse_item(self, entry: ParsedItem, problem: Rejection, names: Iterable[str]) -> None:
        item = entry.item
        self._note(problem, item.file, item.line, item.source)
        self._newcomers.mention(names)
        # what is wrong with its names is told already, or told with everything else
        if not self.policy.keep_going and problem.code not in REFUSED_NAMES:
            self._newcomers.meet_refused(names, first_occurrence(item))

    def _take(
        self, item: Item, draft: Draft, data: dict[str, Any], known: tuple[bool, Rejection | None]
    ) -> Rejection | None:
        """Let a draft wait, count it as existing, or say why it is refused."""
        if self.result.voided and draft.type != "game.recorded":
            # what becomes of the game is said here, too
            self.result.voided.pop(draft.subject.removeprefix("game:"), None)
        if draft.type in COUNTED_CLOCK_TYPES:
            self._clock_events = self._clock_events or RepeatedClockEvents()
            self._clock_events.watch(item, draft, data)
        if known[0]:
            problem = known[1]
            if problem is not None and (item.table or self._void_of(draft) is not None):
                problem = self._with_way_out(
                    check_repeated_game(Log(self._connection), self._people, draft, problem), draft, item
                )
            if problem is None:
                self._count_existing(item, draft)
            return problem
        if (waiting := self.waiting.find(draft)) is not None:
            return self._against_waiting(item, draft, waiting)
        if self._is_left_out(draft, data):
            return None
        if draft.type == "import.recorded" and not self._has_batches:
            draft = draft._replace(position=None)  # whatever it says: it comes from no file
        try:
            if item.table and not self.policy.new_game and draft.type == "game.recorded":
                self._validator.refuse_unknown_game(data["game"])
            if not is_surely_small(draft, self.policy.by):
                self._build(draft)
            if (supersedes := self._validator.validate(draft, data)) is not None:
                self._refuse_other(draft, supersedes)
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
        """Tell whether an event does not hold in this ledger."""
        return False

    def _refuse_other(self, draft: Draft, supersedes: str) -> None:
        """Raise `Refused` (changed-meanwhile) if a draft supersedes another event than the writer looked at."""
        last = Log(self._connection).event(supersedes) if draft.subject in self._based_on else None
        if last is not None and self._based_on[draft.subject] not in (last.event_id, last.position):
            what = draft.subject.partition(":")[2]
            raise Refused(
                "changed-meanwhile", f"{quote(what)} was last changed at position {last.position}; look at it again"
            )

    def _build(self, draft: Draft) -> None:
        """Build the record that a draft would have, only to see whether that is possible. Raises `Refused`."""
        assert self.result.head is not None
        position = self.result.head.position + self.waiting.count + 1
        build_record(draft, position, self._recorded_at, draft.by or self.policy.by, draft.supersedes)

    def _against_waiting(self, item: Item, draft: Draft, waiting: WaitingDraft) -> Rejection | None:
        """Compare a draft with the one that waits under its id, or for its game."""
        if waiting.draft.event_id != draft.event_id:
            return game_exists_rejection(draft, waiting.draft.event_id)
        if are_same_drafts(waiting.draft, draft):
            self._count_existing(item, draft)
            return None
        return Rejection(
            "id-conflict",
            f"the id {quote(draft.event_id)} stands for another content at line {waiting.line} of {waiting.file}",
        )

    def _with_way_out(self, problem: Rejection | None, draft: Draft, item: Item) -> Rejection | None:
        """Add to the refusal of a game that has the id of another what to do about it, once for each file."""
        if problem is None or problem.code != "id-conflict":
            return problem
        told, kind = self._way_out(draft, item)
        if (item.file, kind) in self._told_ways:
            return problem
        self._told_ways.add((item.file, kind))
        return problem._replace(message=f"{problem.message}; {told}")

    def _way_out(self, draft: Draft, item: Item) -> tuple[str, str]:
        """Return what to do about a game that has the id of another, and what kind of remedy that is."""
        void = self._void_of(draft)
        assert void is not None
        return describe_way_back(void, "", False), "voided"

    def _void_of(self, draft: Draft) -> KnownEvent | None:
        """Return what voids the game that a draft records again, if it is voided."""
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
        """Return the subjects of games that more than their first event is about."""
        return changed_games(self._connection, 0)

    def _introduce(self, newcomers: Newcomers) -> None:
        """Say who is new. Refused names are reported with each game that has them."""
        result, refused = self.result, newcomers.refusals(self._connection)
        sound = 0 if refused else self.waiting.count
        result.new_players, result.alike = newcomers.names, newcomers.alike
        new_ids, opponents = newcomers.new_ids, dict[str, set[str]]()
        if refused:
            named, told = set[str](), set[str]()
            for waiting in [*self.waiting]:
                names = TYPES[waiting.draft.type].brings(parse_object(waiting.draft.data.encode()))
                wrong = [name for name in names if newcomers.is_refused(name, refused, waiting.file)]
                for name in wrong:
                    opponents.setdefault(name, set()).update(other for other in names if other != name)
                if not wrong:
                    sound += 1
                    named.update(names)
                elif self.policy.keep_going:
                    self.waiting.remove(waiting.draft.event_id)
                    self._note(refused[wrong[0]], waiting.file, waiting.line, waiting.rows)
                else:
                    for name in dict.fromkeys(wrong):
                        self._note(refused[name], waiting.file, waiting.line, None)
                        told.add(name)
            for name in refused.keys() - told if not self.policy.keep_going else ():
                self._note(refused[name], refused[name].file, refused[name].line, None)
            if self.policy.keep_going:
                result.new_players = [name for name in result.new_players if name in named]
                new_ids = [name for name in new_ids if name in named]
        result.close = {
            name: newcomers.close[name]._replace(opponents=frozenset(opponents.get(name, ())))
            for name in (*result.new_players, *new_ids)
            if name in newcomers.close
        }
        result.sound = sound if result.rejected_count else 0
        files = {rejection.file: None for rejection in result.rejected}
        order = {file: number for number, file in enumerate(files)}
        result.rejected.sort(key=lambda rejection: (order[rejection.file], rejection.line or 0))

    def _note(self, rejection: Rejection, file: str | None, line: int | None, source: Any) -> None:
        placed = rejection._replace(file=file or None, line=(line or None) if file else None)
        self.result.rejected_count += 1
        if len(self.result.rejected) < REJECTIONS_MAX:
            self.result.rejected.append(placed)
        self._reject(placed, source)

    # appending

    def _append_chunk(self, chunk: Sequence[WaitingDraft], absent_at: int | None) -> int | None:
        """Append drafts in one transaction, without those that others have made wrong if the policy is to keep going.

        They are absent from the log up to the position `absent_at`, if that is known. Returns the same of the next.
        """
        while True:
            done = append(
                self.ledger,
                [waiting.draft for waiting in chunk],
                by=self.policy.by,
                clock=self._clock,
                ignore_clock=self.policy.ignore_clock,
                recheck=self._recheck,
                absent_at=absent_at,
                closing=self._closing(chunk),
            )
            if not done.refused:
                break
            # somebody else recorded something since it was checked
            for index, rejection in done.refused:
                self._note(rejection, chunk[index].file, chunk[index].line, chunk[index].rows)
            if self.is_refused:
                self.result.head = done.head
                return None
            refused = {index for index, _ in done.refused}
            chunk = [waiting for index, waiting in enumerate(chunk) if index not in refused]
        self._take_stored(chunk, done)
        return done.head.position if absent_at == done.head.position - done.appended else None

    def _closing(self, chunk: Sequence[WaitingDraft]) -> Closing | None:
        """Return what makes the events that are appended after a chunk in the same transaction."""
        return None

    def _take_stored(self, chunk: Sequence[WaitingDraft], done: AppendResult) -> None:
        """Count what was appended."""
        for index, waiting in enumerate(chunk):
            self._on_stored(waiting.line, waiting.draft.event_id, index not in done.known)
        self._validator.seen = done.head.position
        self.result.appended += done.appended
        self.result.existing += done.existing
        self.result.head = done.head

    def _recheck(self, connection: Connection, before: Head, fresh: Fresh) -> list[tuple[int, Rejection]]:
        """Return, under the lock, which drafts must be refused, since others appended after what was seen."""
        if before.position != self._validator.seen:
            try:
                self._precondition(connection)
            except Refused as problem:
                return [(fresh[0][0], problem.rejection())]
        return self._validator.recheck(connection, before, fresh)


def first_occurrence(item: Item) -> FirstOccurrence:
    """Return where names of an item occur. Those of accounts are as distinct as the ids of events."""
    return FirstOccurrence(item.file, item.line, item.table and not item.accounts, item.form)


class RepeatedClockEvents:
    """Watches the clock events of an input, in order, for repetitions."""

    def __init__(self) -> None:
        # by game: the latest millisecond, and its events by id; a server's time never decreases
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
            where = f"{item.file}:{item.line}: " if item.file else ""
            what = f"line {earlier.line} of {earlier.file}" if item.file else "an earlier one"
            self._first = self._first or (
                f"{where}this {draft.type} of {quote(data['player'])} in {quote(data['game_id'])} says what {what} "
                f"says, also at {data['at']} ms, so both count as one event"
            )

    def notes(self) -> list[str]:
        """Return what to tell about the repetitions."""
        more = f" ({self._count - 1:,} more like this)" if self._count > 1 else ""
        return [f"{self._first}; if both happened, give each an id of its own{more}"] if self._count else []

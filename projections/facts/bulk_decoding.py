"""The log into columns, page by page: plain games by the compiled scanner, everything else one by one, in log order.

Without the extra `fast` everything is taken one by one. So is the rest of the log from the first page that holds an
impossible name, or anything but one record for each position: somebody wrote to the database directly.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import StoreDamaged
from ratings_ledger.ledger.events.fields import GameId, Label, PlayerId, Slug, are_canonical
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.store.log import read_page
from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import MISSING, OPTIONAL_COLUMNS
from ratings_ledger.projections.facts import record_scanner
from ratings_ledger.projections.facts.columns import LABELS, Facts
from ratings_ledger.projections.facts.games import number_cell, number_player

# two megabytes: of pages of ten, PostgreSQL gives a third as many bytes in the same time
PAGE_EVENTS = 5_000
CELLS_FIRST = 64
PAGE_BYTES = 10_000_000  # of a text
LANES = 2
PAGES_AHEAD, PAGES_FIRST = 8, 80
COLUMNS = {
    "occurred_at": "q",
    "size": "q",
    "in_cell": "i",
    "player": "i",
    "place": "i",
    "status": "b",
    "seat": "i",
    "seconds_played": "i",
    "score": "q",
}
OF_GAMES = ("occurred_at", "size", "in_cell")

Take = Callable[[Facts, int, str], None]


class ScannedPage(NamedTuple):
    """Records, one per line, and the columns of the plain games among them, as `record_scanner.scan` leaves them.

    `names` and `cells` are the new ones; the columns refer to them by codes that continue from page to page. `sound`
    says whether an event can have all these names, labels and game ids.
    """

    text: bytes
    after: int
    line: Any
    plain: Any
    columns: dict[str, Any]
    game_id: Any
    name_game: list[int]
    names: list[str]
    cells: list[tuple[Any, ...]]
    sound: bool


class _Texts:
    """The distinct texts of all pages by code: their bytes, where each begins and ends, and a hash table."""

    def __init__(self) -> None:
        self.known = 0
        self.table = np.zeros(1, dtype=np.int32)
        self.pool = np.empty(0, dtype=np.uint8)
        self.begins, self.ends = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

    def make_room(self, more: int, size: int) -> None:
        """For `more` more texts, and for `size` more bytes."""
        used = int(self.ends[self.known - 1]) if self.known else 0
        if used + size > len(self.pool):
            self.pool = _longer(self.pool, used + size)
        if self.known + more > len(self.begins):
            self.begins, self.ends = (_longer(column, self.known + more) for column in (self.begins, self.ends))
            self.table = np.zeros(_table_size(len(self.begins)), dtype=np.int32)
            compiling.compile_loop(record_scanner.file_texts)(self.known, self.table, self.pool, self.begins, self.ends)

    def told(self, first: int) -> list[str]:
        """Return the texts from a code onwards."""
        begins, ends = (column[first : self.known].tolist() for column in (self.begins, self.ends))
        if not begins:
            return []
        whole = self.pool[begins[0] : ends[-1]].tobytes()
        return [_decoded(whole[begin - begins[0] : end - begins[0]]) for begin, end in zip(begins, ends, strict=True)]


def _table_size(items: int) -> int:
    """Return how long a hash table is that has so many items: a power of two, at most half of it full."""
    return 1 << (2 * items).bit_length()


def _longer(column: Any, least: int) -> Any:
    """Return the same numbers in an array with room for at least `least`."""
    longer = np.empty((max(least, 2 * len(column)), *column.shape[1:]), dtype=column.dtype)
    longer[: len(column)] = column
    return longer


class Scanner:
    """Scans one page after another; what they name is numbered across pages."""

    def __init__(self) -> None:
        self.names, self.labels = _Texts(), _Texts()
        self.cells, self.cells_known = np.empty((0, record_scanner.CELL), dtype=np.int64), 0
        self.cell_table = np.zeros(1, dtype=np.int32)
        self.label: list[str | None] = []
        # for the page in work, as fresh memory takes longer than what is done in it
        self.scratch = np.empty((3, 0), dtype=np.int64)
        self.is_end = np.empty(0, dtype=bool)

    # long, because it names every array of the compiled scanner
    def scan(self, text: bytes, after: int) -> ScannedPage:
        """Return a page of records, each ended by a newline, the first of which comes after the position `after`.

        Raises `StoreDamaged` if it is not UTF-8.
        """
        if not text.isascii():
            _decoded(text)
        seen = np.frombuffer(text, dtype=np.uint8)
        slots = len(text) // record_scanner.PARTICIPANT_BYTES + 1
        keys, merits, name_game = self._scratch(slots)
        line = self._lines(seen)
        records = len(line) - 1
        room = {
            name: np.empty(records if name in OF_GAMES else slots, dtype=np.dtype(code))
            for name, code in COLUMNS.items()
        }
        plain, game_id = np.empty(records, dtype=np.int8), np.empty((records, 2), dtype=np.int64)
        names, labels = self.names, self.labels
        before = names.known, labels.known, self.cells_known
        found = np.array([0, *before, 0, 0, names.known], dtype=np.int64)
        words, word_from = _words()
        told, cell = np.empty(12, dtype=np.int64), np.empty(record_scanner.CELL, dtype=np.int64)
        games = used = read = 0
        while read < records:
            self._make_room()
            compiling.compile_loop(record_scanner.scan)(
                seen,
                after,
                TYPES["game.recorded"].schema_version,
                np.frombuffer(words, dtype=np.uint8),
                arrays.as_numpy(word_from),
                line,
                plain,
                told,
                cell,
                keys,
                merits,
                room["occurred_at"],
                room["size"],
                room["in_cell"],
                game_id,
                room["player"],
                room["place"],
                room["status"],
                room["seat"],
                room["seconds_played"],
                room["score"],
                names.table,
                names.pool,
                names.begins,
                names.ends,
                name_game,
                labels.table,
                labels.pool,
                labels.begins,
                labels.ends,
                self.cell_table,
                self.cells,
                found,
            )
            used, names.known, labels.known, self.cells_known, games, read, _ = found.tolist()
        self.label.extend(labels.told(before[1]))
        new_names, new_cells = names.told(before[0]), self._new_cells(before[2])
        unsure = game_id[:games][plain[plain != 0] == record_scanner.LOOKED_AT].tolist()
        sound = (
            are_canonical(PlayerId, new_names)
            and all(_is_cell(cell) for cell in new_cells)
            and are_canonical(GameId, [_decoded(text[begin:end]) for begin, end in unsure])
        )
        return ScannedPage(
            text,
            after,
            line,
            plain != 0,
            {name: column[: games if name in OF_GAMES else used] for name, column in room.items()},
            game_id[:games],
            name_game[: names.known - before[0]].tolist(),
            new_names,
            new_cells,
            sound,
        )

    def _lines(self, seen: Any) -> Any:
        """Return where each line begins, and where the last ends."""
        if len(seen) > len(self.is_end):
            self.is_end = np.empty(len(seen) + len(seen) // 8, dtype=bool)
        ends = np.flatnonzero(np.equal(seen, record_scanner.NEWLINE, out=self.is_end[: len(seen)]))
        return np.concatenate(([0], ends + 1))

    def _scratch(self, slots: int) -> Any:
        """Three columns for so many participants."""
        if slots > self.scratch.shape[1]:
            self.scratch = np.empty((3, slots + slots // 8), dtype=np.int64)
        return self.scratch

    def _make_room(self) -> None:
        """For what any record may name that the scanner does not know."""
        self.names.make_room(record_scanner.NAMES_MAX, record_scanner.RECORD_MAX)
        self.labels.make_room(record_scanner.LABELS, record_scanner.RECORD_MAX)
        if self.cells_known == len(self.cells):
            self.cells = _longer(self.cells, CELLS_FIRST)
            self.cell_table = np.zeros(_table_size(len(self.cells)), dtype=np.int32)
            compiling.compile_loop(record_scanner.file_cells)(self.cells_known, self.cell_table, self.cells)

    def _new_cells(self, first: int) -> list[tuple[Any, ...]]:
        """Return the cells from a code onwards, with their labels as texts."""
        label = [*self.label, None]  # -1 is the last
        return [
            (*(label[code] for code in cell[: len(LABELS)]), *cell[len(LABELS) :])
            for cell in self.cells[first : self.cells_known].tolist()
        ]


class Numbers:
    """What a scanner's codes correspond to in some facts."""

    def __init__(self) -> None:
        self.players, self.cells = array("i"), array("i")


class Lane(NamedTuple):
    """Scans some of the pages, one after another."""

    thread: ThreadPoolExecutor
    scanner: Scanner
    numbers: Numbers


def take_pages(facts: Facts, connection: Connection, until: int, take: Take) -> int:
    """Take what was recorded after the facts up to a position; one thread reads pages while others scan them.

    Returns the position up to which everything is taken: the given one, or the last before a page that has to be
    taken one by one. Lanes scan in turn; their pages are taken in log order. Many are read before the first is taken
    if its scan has to wait for the libraries to load.
    """
    after, scanned = facts.position, deque[tuple[Future[ScannedPage], int, Numbers]]()
    ahead = PAGES_AHEAD if "numba" in sys.modules else PAGES_FIRST
    with ExitStack() as threads:
        reader = threads.enter_context(ThreadPoolExecutor(1))
        lanes = deque(Lane(threads.enter_context(ThreadPoolExecutor(1)), Scanner(), Numbers()) for _ in range(LANES))
        while after < until or scanned:
            if after < until and len(scanned) < ahead:
                upto = min(until, after + PAGE_EVENTS)
                lane, text = lanes[0], reader.submit(read_page, connection, after, upto)
                scanned.append((lane.thread.submit(_scanned, lane.scanner, text, after), upto - after, lane.numbers))
                lanes.rotate(-1)
                after = upto
            else:
                future, records, numbers = scanned.popleft()
                page = future.result()
                if not page.sound or len(page.plain) != records:
                    return page.after
                take_page(facts, page, take, numbers)
                ahead = PAGES_AHEAD
    return until


def _scanned(scanner: Scanner, text: Future[bytes], after: int) -> ScannedPage:
    """Return a page that is still being read."""
    return scanner.scan(text.result(), after)


def take_text(facts: Facts, text: Any, take: Take) -> None:
    """Take what was recorded after the facts from a text, one record a line, without gaps; on one thread."""
    take_contents(facts, pages_of(text), facts.position, take)


def take_contents(facts: Facts, contents: Iterable[bytes], after: int, take: Take) -> None:
    """Take the records after a position from pages of text, one record a line, without gaps; on one thread."""
    scanner, numbers, sound = Scanner(), Numbers(), True
    for content in contents:
        page = scanner.scan(content, after) if sound else None
        sound = page is not None and page.sound
        if page is not None and sound:
            take_page(facts, page, take, numbers)
        else:
            for position, record in enumerate(content.split(b"\n")[:-1], after + 1):
                take(facts, position, _decoded(record))
        after += content.count(b"\n")


def pages_of(text: Any, size: int = PAGE_BYTES) -> Iterator[bytes]:
    """Yield a long text of lines, some whole lines at a time, in `size` bytes or as many as a line has."""
    begin, most = 0, size
    while begin < len(text):
        content = bytes(text[begin : begin + most])
        end = content.rfind(b"\n") + 1 or len(content) * (begin + most >= len(text))
        if end:
            yield content[:end]
            begin, most = begin + end, size
        else:
            most *= 2


def _is_cell(cell: tuple[Any, ...]) -> bool:
    """Tell whether an event can have the labels of a cell."""
    game, _, *labels = cell[: len(LABELS)]
    return are_canonical(Slug, [game]) and are_canonical(Label, [label for label in labels if label is not None])


@cache
def _words() -> tuple[Any, Any]:
    """Return the words of the scanner, end to end, and where each begins."""
    begins = array("q", [0])
    for word in record_scanner.WORDS:
        begins.append(begins[-1] + len(word))
    return "".join(record_scanner.WORDS).encode(), begins


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise StoreDamaged(f"{text[:60]!r} in a record is not UTF-8; see: ratings verify") from None


def take_page(facts: Facts, page: ScannedPage, take: Take, numbers: Numbers) -> None:
    """Take a page, its plain games in whole stretches."""
    cuts = [0, *(np.flatnonzero(page.plain[1:] != page.plain[:-1]) + 1).tolist(), len(page.plain)]
    starts = np.concatenate(([0], np.cumsum(page.columns["size"])))
    game = named = celled = 0
    cell_from = len(numbers.cells)
    for first, last in pairwise(cuts):
        if not page.plain[first]:
            for index in range(first, last):
                record = _decoded(page.text[page.line[index] : page.line[index + 1] - 1])
                take(facts, page.after + 1 + index, record)
            continue
        games = slice(game, game + last - first)
        while named < len(page.names) and page.name_game[named] < games.stop:
            # anybody new in a record that was not plain is added there
            numbers.players.append(number_player(facts, page.names[named]))
            at = page.after + 1 + first + max(page.name_game[named] - game, 0)
            facts.players_at.extend([at] * (len(facts.players) - len(facts.players_at)))
            named += 1
        newest = int(page.columns["in_cell"][games].max()) + 1
        while cell_from + celled < newest:
            numbers.cells.append(_cell(facts, page.cells[celled]))
            celled += 1
        slots = slice(int(starts[game]), int(starts[games.stop]))
        _take_games(facts, page, games, slots, page.after + 1 + first, numbers)
        game = games.stop
    # from records that were not plain
    numbers.players.extend(number_player(facts, name) for name in page.names[named:])


def _take_games(facts: Facts, page: ScannedPage, games: slice, slots: slice, position: int, numbers: Numbers) -> None:
    """Append a stretch of plain games, recorded from a position onwards."""
    base_rows, base_slots = (facts.base.rows, facts.base.slots) if facts.base else (0, 0)
    if facts.rows:
        _name_rows(facts, page, games, base_rows + len(facts.first_position))
    sizes = page.columns["size"][games]
    at = np.arange(len(sizes), dtype=np.int64) + position
    starts = np.cumsum(sizes) - sizes + (base_slots + len(facts.player))
    optional = [*OPTIONAL_COLUMNS, *(["score"] if (page.columns["score"][slots] != MISSING).any() else [])]
    for name in optional:
        facts.extend_optional(name, len(facts.player), ())
    players, cells = (np.array(codes, dtype=np.int32) for codes in (numbers.players, numbers.cells))
    in_cell = page.columns["in_cell"][games]
    for column, values in (
        (facts.first_position, at),
        (facts.live_position, at),
        (facts.occurred_at, page.columns["occurred_at"][games]),
        (facts.start, starts),
        (facts.count, sizes),
        (facts.cell, cells[in_cell]),
        (facts.kind_start, np.zeros(len(at))),
        (facts.player, players[page.columns["player"][slots]]),
        (facts.place, page.columns["place"][slots]),
        (facts.status, page.columns["status"][slots]),
        (facts.replaced, np.zeros(slots.stop - slots.start)),
        *((facts.optional[name], page.columns[name][slots]) for name in optional),
    ):
        column.frombytes(np.ascontiguousarray(values, dtype=np.dtype(column.typecode)).data.cast("B"))


def _cell(facts: Facts, told: tuple[Any, ...]) -> int:
    labels = dict(zip(LABELS, told, strict=False))
    labels["kind"] = labels["kind"] or "placing"
    return number_cell(facts, labels.values(), *told[len(LABELS) :])


def _name_rows(facts: Facts, page: ScannedPage, games: slice, row: int) -> None:
    """Note the rows of those games about which more is recorded."""
    for begin, end in page.game_id[games].tolist():
        game_id = _decoded(page.text[begin:end])
        if game_id in facts.rows:
            facts.rows[game_id] = row
        row += 1

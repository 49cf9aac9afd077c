"""Decode the log into columns page by page: plain games with the compiled scanner, all other records one by one.

Needs the extra `fast`. If a page has an invalid name, or not exactly one record for each position, another program has
written to the database. From this page on, all records are decoded one by one.
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
from ratings_ledger.projections.facts.applying import number_cell, number_player
from ratings_ledger.projections.facts.columns import LABELS, Facts

# a page of about two megabytes; PostgreSQL sends pages of ten megabytes at a third of the speed
PAGE_EVENTS = 5_000
CELLS_MIN = 64  # the number of cells for which a scanner first makes room; the room doubles whenever it is full
PAGE_BYTES = 10_000_000  # the length of the pages into which a text is split
LANES = 2  # threads that scan
PAGES_AHEAD, PAGES_FIRST = 8, 80  # how many pages are read ahead: usually, and while the libraries are loading
COLUMN_CODES = {
    "occurred_at": "q",
    "size": "q",
    "cell_of_game": "i",
    "player": "i",
    "place": "i",
    "status": "b",
    "seat": "i",
    "seconds_played": "i",
    "score": "q",
}
GAME_COLUMNS = ("occurred_at", "size", "cell_of_game")

ApplyRecord = Callable[[Facts, int, str], None]


class ScannedPage(NamedTuple):
    """A page of records and the columns of its plain games; see `record_scanner.scan`.

    text:         the records, one per line
    after:        the position before the first record
    line_starts:  the start of each line, and the end of the last one
    is_plain:     by record, whether it is a plain game
    columns:      by name; the columns of players and cells hold codes, which continue from page to page
    game_id_spans: by plain game, the begin and end of its id in `text`
    names, game_of_name: the new names; for each, the number of plain games before the record where it first occurs
    cells:        the new cells: labels, seats and flags
    has_valid_names: whether all new names, labels and game ids are valid
    """

    text: bytes
    after: int
    line_starts: Any
    is_plain: Any
    columns: dict[str, Any]
    game_id_spans: Any
    game_of_name: list[int]
    names: list[str]
    cells: list[tuple[Any, ...]]
    has_valid_names: bool


class _Texts:
    """The distinct texts of all pages by code: their bytes, their bounds, and a hash table."""

    def __init__(self) -> None:
        self.count = 0
        self.table = np.zeros(1, dtype=np.int32)
        self.pool = np.empty(0, dtype=np.uint8)
        self.begins, self.ends = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

    def make_room(self, added: int, added_bytes: int) -> None:
        """Make room for more texts and more bytes."""
        used_bytes = int(self.ends[self.count - 1]) if self.count else 0
        if used_bytes + added_bytes > len(self.pool):
            self.pool = _grow(self.pool, used_bytes + added_bytes)
        if self.count + added > len(self.begins):
            self.begins, self.ends = (_grow(column, self.count + added) for column in (self.begins, self.ends))
            self.table = np.zeros(_choose_table_length(len(self.begins)), dtype=np.int32)
            compiling.compile_loop(record_scanner.rebuild_text_table)(
                self.count, self.table, self.pool, self.begins, self.ends
            )

    def list_texts(self, first: int) -> list[str]:
        """Return the texts from a code on."""
        begins, ends = (column[first : self.count].tolist() for column in (self.begins, self.ends))
        if not begins:
            return []
        text = self.pool[begins[0] : ends[-1]].tobytes()
        return [
            _decode_text(text[begin - begins[0] : end - begins[0]]) for begin, end in zip(begins, ends, strict=True)
        ]


def _choose_table_length(items: int) -> int:
    """Return the length of a hash table for a number of items: a power of two of which at least half stays empty."""
    return 1 << (2 * items).bit_length()


def _grow(column: Any, length_min: int) -> Any:
    """Copy a column into a longer array with room for at least `length_min` numbers."""
    grown = np.empty((max(length_min, 2 * len(column)), *column.shape[1:]), dtype=column.dtype)
    grown[: len(column)] = column
    return grown


class Scanner:
    """A scanner of pages in log order. Names, labels and cells are numbered across its pages."""

    def __init__(self) -> None:
        self.names, self.labels = _Texts(), _Texts()
        self.cells, self.cell_count = np.empty((0, record_scanner.CELL_LENGTH), dtype=np.int64), 0
        self.cell_table = np.zeros(1, dtype=np.int32)
        self.label_texts: list[str | None] = []
        # work space for a page, kept because allocating it takes longer than using it
        self.work_columns = np.empty((3, 0), dtype=np.int64)
        self.is_end = np.empty(0, dtype=bool)

    # long, because it names every array of the compiled scanner
    def scan(self, text: bytes, after: int) -> ScannedPage:
        """Scan a page of records, one per line. `after` is the position before the first record.

        Raises `StoreDamaged` if the text is not UTF-8.
        """
        if not text.isascii():
            _decode_text(text)
        text_bytes = np.frombuffer(text, dtype=np.uint8)
        slots_max = len(text) // record_scanner.PARTICIPANT_BYTES + 1
        keys, score_keys, game_of_name = self._get_work_columns(slots_max)
        line_starts = self._find_line_starts(text_bytes)
        record_count = len(line_starts) - 1
        columns = {
            name: np.empty(record_count if name in GAME_COLUMNS else slots_max, dtype=np.dtype(code))
            for name, code in COLUMN_CODES.items()
        }
        is_plain, game_id_spans = np.empty(record_count, dtype=np.int8), np.empty((record_count, 2), dtype=np.int64)
        names, labels = self.names, self.labels
        counts_before = names.count, labels.count, self.cell_count
        counts = np.array([0, *counts_before, 0, 0, names.count], dtype=np.int64)
        words, word_from = _join_words()
        values, cell = np.empty(12, dtype=np.int64), np.empty(record_scanner.CELL_LENGTH, dtype=np.int64)
        game_count = slot_count = records_read = 0
        while records_read < record_count:
            self._make_room()
            compiling.compile_loop(record_scanner.scan)(
                text_bytes,
                after,
                TYPES["game.recorded"].schema_version,
                np.frombuffer(words, dtype=np.uint8),
                arrays.as_numpy(word_from),
                line_starts,
                is_plain,
                values,
                cell,
                keys,
                score_keys,
                columns["occurred_at"],
                columns["size"],
                columns["cell_of_game"],
                game_id_spans,
                columns["player"],
                columns["place"],
                columns["status"],
                columns["seat"],
                columns["seconds_played"],
                columns["score"],
                names.table,
                names.pool,
                names.begins,
                names.ends,
                game_of_name,
                labels.table,
                labels.pool,
                labels.begins,
                labels.ends,
                self.cell_table,
                self.cells,
                counts,
            )
            slot_count, names.count, labels.count, self.cell_count, game_count, records_read, _ = counts.tolist()
        self.label_texts.extend(labels.list_texts(counts_before[1]))
        new_names, new_cells = names.list_texts(counts_before[0]), self._list_cells(counts_before[2])
        unchecked_id_spans = game_id_spans[:game_count][
            is_plain[is_plain != 0] == record_scanner.PLAIN_IF_GAME_ID_IS_VALID
        ].tolist()
        has_valid_names = (
            are_canonical(PlayerId, new_names)
            and all(_is_valid_cell(cell) for cell in new_cells)
            and are_canonical(GameId, [_decode_text(text[begin:end]) for begin, end in unchecked_id_spans])
        )
        return ScannedPage(
            text=text,
            after=after,
            line_starts=line_starts,
            is_plain=is_plain != 0,
            columns={
                name: column[: game_count if name in GAME_COLUMNS else slot_count] for name, column in columns.items()
            },
            game_id_spans=game_id_spans[:game_count],
            game_of_name=game_of_name[: names.count - counts_before[0]].tolist(),
            names=new_names,
            cells=new_cells,
            has_valid_names=has_valid_names,
        )

    def _find_line_starts(self, text_bytes: Any) -> Any:
        """Return the start of each line, and the end of the last line."""
        if len(text_bytes) > len(self.is_end):
            self.is_end = np.empty(len(text_bytes) + len(text_bytes) // 8, dtype=bool)
        ends = np.flatnonzero(np.equal(text_bytes, record_scanner.NEWLINE, out=self.is_end[: len(text_bytes)]))
        return np.concatenate(([0], ends + 1))

    def _get_work_columns(self, slots_max: int) -> Any:
        """Return three columns of work space for at least `slots_max` participants."""
        if slots_max > self.work_columns.shape[1]:
            self.work_columns = np.empty((3, slots_max + slots_max // 8), dtype=np.int64)
        return self.work_columns

    def _make_room(self) -> None:
        """Make room for the new names, labels and cell of a record of any length."""
        self.names.make_room(record_scanner.NAMES_MAX, record_scanner.RECORD_MAX)
        self.labels.make_room(record_scanner.LABEL_COUNT, record_scanner.RECORD_MAX)
        if self.cell_count == len(self.cells):
            self.cells = _grow(self.cells, CELLS_MIN)
            self.cell_table = np.zeros(_choose_table_length(len(self.cells)), dtype=np.int32)
            compiling.compile_loop(record_scanner.rebuild_cell_table)(self.cell_count, self.cell_table, self.cells)

    def _list_cells(self, first: int) -> list[tuple[Any, ...]]:
        """Return the cells from a code on, with their labels as texts."""
        label_texts = [*self.label_texts, None]  # code -1, no label, indexes the last entry
        return [
            (*(label_texts[code] for code in cell[: len(LABELS)]), *cell[len(LABELS) :])
            for cell in self.cells[first : self.cell_count].tolist()
        ]


class FactNumbers:
    """The facts' numbers of names and cells, by the codes that a scanner gave them."""

    def __init__(self) -> None:
        self.players, self.cells = array("i"), array("i")


class Lane(NamedTuple):
    """A thread that scans every second page, with its scanner and the numbers of the scanner's codes."""

    thread: ThreadPoolExecutor
    scanner: Scanner
    numbers: FactNumbers


def decode_pages(facts: Facts, connection: Connection, until: int, apply_record: ApplyRecord) -> int:
    """Decode the events after the facts up to a position. Return the last position decoded.

    Decoding stops before the first page whose records must be decoded one by one. A thread reads pages while other
    threads scan pages in turn; the results are applied in log order. While the libraries are loading, more pages are
    read ahead.

    `apply_record` applies a record that is not a plain game.
    """
    after, pending_pages = facts.position, deque[tuple[Future[ScannedPage], int, FactNumbers]]()
    pages_max = PAGES_AHEAD if "numba" in sys.modules else PAGES_FIRST
    with ExitStack() as threads:
        reader = threads.enter_context(ThreadPoolExecutor(1))
        lanes = deque(
            Lane(threads.enter_context(ThreadPoolExecutor(1)), Scanner(), FactNumbers()) for _ in range(LANES)
        )
        while after < until or pending_pages:
            if after < until and len(pending_pages) < pages_max:
                page_end = min(until, after + PAGE_EVENTS)
                lane, text = lanes[0], reader.submit(read_page, connection, after, page_end)
                pending_pages.append(
                    (lane.thread.submit(_scan_when_read, lane.scanner, text, after), page_end - after, lane.numbers)
                )
                lanes.rotate(-1)
                after = page_end
            else:
                future, records, numbers = pending_pages.popleft()
                page = future.result()
                if not page.has_valid_names or len(page.is_plain) != records:
                    return page.after
                decode_page(facts, page, apply_record, numbers)
                pages_max = PAGES_AHEAD
    return until


def _scan_when_read(scanner: Scanner, text: Future[bytes], after: int) -> ScannedPage:
    """Scan a page as soon as it has been read."""
    return scanner.scan(text.result(), after)


def decode_lines(facts: Facts, text: Any, apply_record: ApplyRecord) -> None:
    """Decode the events after the facts, on one thread, from a text with one record per line, without gaps."""
    decode_contents(facts, split_into_pages(text), facts.position, apply_record)


def decode_contents(facts: Facts, contents: Iterable[bytes], after: int, apply_record: ApplyRecord) -> None:
    """Decode the events after a position, on one thread, from pages with one record per line, without gaps."""
    scanner, numbers, is_scannable = Scanner(), FactNumbers(), True
    for content in contents:
        page = scanner.scan(content, after) if is_scannable else None
        is_scannable = page is not None and page.has_valid_names
        if page is not None and is_scannable:
            decode_page(facts, page, apply_record, numbers)
        else:
            for position, record in enumerate(content.split(b"\n")[:-1], after + 1):
                apply_record(facts, position, _decode_text(record))
        after += content.count(b"\n")


def split_into_pages(text: Any, size: int = PAGE_BYTES) -> Iterator[bytes]:
    """Yield a text in pages of whole lines. A page has at most `size` bytes, unless a line is longer."""
    begin, length = 0, size
    while begin < len(text):
        content = bytes(text[begin : begin + length])
        end = content.rfind(b"\n") + 1 or len(content) * (begin + length >= len(text))
        if end:
            yield content[:end]
            begin, length = begin + end, size
        else:
            length *= 2


def _is_valid_cell(cell: tuple[Any, ...]) -> bool:
    """Tell whether the labels of a cell are valid."""
    game, _, *labels = cell[: len(LABELS)]
    return are_canonical(Slug, [game]) and are_canonical(Label, [label for label in labels if label is not None])


@cache
def _join_words() -> tuple[Any, Any]:
    """Return the words of the scanner as joined bytes, and their bounds."""
    begins = array("q", [0])
    for word in record_scanner.WORDS:
        begins.append(begins[-1] + len(word))
    return "".join(record_scanner.WORDS).encode(), begins


def _decode_text(text: bytes) -> str:
    """Decode a text, or a page of texts, one per line. Raises `StoreDamaged` if it is not UTF-8."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        begin = text.rfind(b"\n", 0, error.start) + 1
        raise StoreDamaged(f"a record is not UTF-8: {text[begin : begin + 60]!r}; run: ratings verify") from None


def decode_page(facts: Facts, page: ScannedPage, apply_record: ApplyRecord, numbers: FactNumbers) -> None:
    """Apply the records of a page in order. Runs of plain games are appended together."""
    run_bounds = [0, *(np.flatnonzero(page.is_plain[1:] != page.is_plain[:-1]) + 1).tolist(), len(page.is_plain)]
    starts = np.concatenate(([0], np.cumsum(page.columns["size"])))
    game = name_index = cell_index = 0
    first_cell = len(numbers.cells)
    for first, last in pairwise(run_bounds):
        if not page.is_plain[first]:
            for index in range(first, last):
                record = _decode_text(page.text[page.line_starts[index] : page.line_starts[index + 1] - 1])
                apply_record(facts, page.after + 1 + index, record)
            continue
        games = slice(game, game + last - first)
        while name_index < len(page.names) and page.game_of_name[name_index] < games.stop:
            # names of records that are not plain may have been numbered already
            numbers.players.append(number_player(facts, page.names[name_index]))
            position = page.after + 1 + first + max(page.game_of_name[name_index] - game, 0)
            facts.players_at.extend([position] * (len(facts.players) - len(facts.players_at)))
            name_index += 1
        cells_needed = int(page.columns["cell_of_game"][games].max()) + 1
        while first_cell + cell_index < cells_needed:
            numbers.cells.append(_number_cell(facts, page.cells[cell_index]))
            cell_index += 1
        slots = slice(int(starts[game]), int(starts[games.stop]))
        _append_games(facts, page, games, slots, page.after + 1 + first, numbers)
        game = games.stop
    # names that occur only in records that are not plain
    numbers.players.extend(number_player(facts, name) for name in page.names[name_index:])


def _append_games(
    facts: Facts, page: ScannedPage, games: slice, slots: slice, position: int, numbers: FactNumbers
) -> None:
    """Append a run of plain games to the facts. `position` is the position of the first of them."""
    base_rows, base_slots = (facts.base.rows, facts.base.slots) if facts.base else (0, 0)
    if facts.rows:
        _set_rows(facts, page, games, base_rows + len(facts.first_position))
    sizes = page.columns["size"][games]
    positions = np.arange(len(sizes), dtype=np.int64) + position
    starts = np.cumsum(sizes) - sizes + (base_slots + len(facts.player))
    optional = [*OPTIONAL_COLUMNS, *(["score"] if (page.columns["score"][slots] != MISSING).any() else [])]
    for name in optional:
        facts.extend_optional(name, len(facts.player), ())
    players, cells = (np.array(codes, dtype=np.int32) for codes in (numbers.players, numbers.cells))
    cell_codes = page.columns["cell_of_game"][games]
    for column, values in (
        (facts.first_position, positions),
        (facts.live_position, positions),
        (facts.occurred_at, page.columns["occurred_at"][games]),
        (facts.start, starts),
        (facts.count, sizes),
        (facts.cell, cells[cell_codes]),
        (facts.kind_start, np.zeros(len(positions))),
        (facts.player, players[page.columns["player"][slots]]),
        (facts.place, page.columns["place"][slots]),
        (facts.status, page.columns["status"][slots]),
        (facts.replaced, np.zeros(slots.stop - slots.start)),
        *((facts.optional[name], page.columns[name][slots]) for name in optional),
    ):
        column.frombytes(np.ascontiguousarray(values, dtype=np.dtype(column.typecode)).data.cast("B"))


def _number_cell(facts: Facts, cell: tuple[Any, ...]) -> int:
    labels = dict(zip(LABELS, cell, strict=False))
    labels["kind"] = labels["kind"] or "placing"
    return number_cell(facts, labels.values(), *cell[len(LABELS) :])


def _set_rows(facts: Facts, page: ScannedPage, games: slice, row: int) -> None:
    """Set the rows of games that are in `facts.rows`. `row` is the row of the first of the games."""
    for begin, end in page.game_id_spans[games].tolist():
        game_id = _decode_text(page.text[begin:end])
        if game_id in facts.rows:
            facts.rows[game_id] = row
        row += 1

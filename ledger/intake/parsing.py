"""What can be said about each event by itself: from items to drafts, block by block.

For a long input another process reads ahead of this one, which meanwhile checks how the events fit together. A line of
JSON becomes a draft over there. The game of a table becomes a draft here: to read its rows takes as long as all checks,
so both processes have half of the work.
"""

import marshal
import pickle
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import closing, suppress
from itertools import islice
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.canonical import parse_object
from ratings_ledger.ledger.events.fields import composed
from ratings_ledger.ledger.events.types import TYPES, Draft, read_event
from ratings_ledger.ledger.intake.files import Entry, FileDigest, FileNote, Item, Progress
from ratings_ledger.ledger.intake.tables.table_games import TIE, participants_of, split_partners
from ratings_ledger.ledger.processes.forking import ahead
from ratings_ledger.ledger.rejections import Refused, Rejection
from ratings_ledger.ledger.validation.names import is_nobody
from ratings_ledger.ledger.validation.new_names import First, nobody_refusal, tied_parts, tied_refusal

BLOCK_ITEMS = 250
# shorter inputs are read faster than another process is started
ALONE_BLOCKS = 16

Outcome = tuple[Draft, dict[str, Any]] | Refused


class ParsedItem(NamedTuple):
    """An item without what was there, and what that is: a draft with its data, or a refusal.

    The item's source is what was read: the text of a line, or the rows of a table, which are kept only if wanted.
    `names` are the players of a refused game from a table.
    """

    item: Item
    names: tuple[str, ...]
    outcome: Outcome


BlockEntry = ParsedItem | Rejection | Progress | FileDigest | FileNote
Block = list[BlockEntry]


def read_blocks(items: Iterable[Entry], sources_wanted: bool, cores: int = 1) -> Generator[Block]:
    """Yield the items in blocks, in order. Close the iterator if it is not read to the end. Raises `WorkerLost`."""
    # each is parsed as it is read, as what was read takes more memory than what it says
    entries = iter(items)
    blocks = iter(lambda: [parsed(entry, sources_wanted) for entry in islice(entries, BLOCK_ITEMS)], [])
    for number, block in enumerate(blocks, 1):
        yield block
        if cores > 1 and number == ALONE_BLOCKS:
            break
    else:
        return
    with closing(ahead(packed_blocks(entries, sources_wanted))) as messages:
        yield from map(unpacked_block, messages)


def parsed(entry: Entry, source_wanted: bool) -> BlockEntry:
    """Return an entry of a file, if it is an item, with what that says."""
    return parsed_item(entry, source_wanted) if isinstance(entry, Item) else entry


def parsed_item(item: Item, source_wanted: bool) -> ParsedItem:
    """Return an item of a file with what it says."""
    file, line, _, _, rows_of, table, is_numbered = item
    source, names, outcome = _read(item, source_wanted)
    return ParsedItem(Item(file, line, b"", source, rows_of, table, is_numbered), names, outcome)


def packed_blocks(entries: Iterator[Entry], sources_wanted: bool) -> Iterator[bytes]:
    """Yield blocks of entries as bytes for another process of this program."""
    while block := [_pack(entry, sources_wanted) for entry in islice(entries, BLOCK_ITEMS)]:
        yield marshal.dumps(block)


def unpacked_block(message: bytes) -> Block:
    """Return the parsed entries that `packed_blocks` was given."""
    return list(map(_unpack, marshal.loads(message)))


# an item travels as a flat tuple of plain values: half the work of packing the objects


def _pack(entry: Entry, source_wanted: bool) -> bytes:
    with suppress(ValueError):  # of a value that is not of a plain type
        if isinstance(entry, Item) and isinstance(entry.event, dict):
            source = entry.source if source_wanted else _without_rows(entry.source)
            raw: tuple[Any, ...] = entry._replace(source=source)
            return marshal.dumps(tuple(raw))
        if isinstance(entry, Item) and isinstance(entry.event, bytes):
            item, names, outcome = parsed_item(entry, source_wanted)
            if isinstance(outcome, tuple):
                flat: tuple[Any, ...] = (*item, names, *outcome[0], outcome[1])
                return marshal.dumps(flat)
    return marshal.dumps(pickle.dumps(parsed(entry, source_wanted)))


def _unpack(packed: bytes) -> BlockEntry:
    flat = marshal.loads(packed)
    if isinstance(flat, bytes):
        entry: BlockEntry = pickle.loads(flat)
        return entry
    item = Item._make(flat[:_NAMES])
    if len(flat) == _NAMES:
        return parsed_item(item, source_wanted=True)
    names, draft, data = flat[_NAMES], flat[_NAMES + 1 : -1], flat[-1]
    return ParsedItem(item, names, (Draft._make(draft), data))


_NAMES = len(Item._fields)  # where a flat tuple has the names, if what the item says was read


def _without_rows(source: Any) -> list[Any] | None:
    """Return what is kept of a source that is not wanted: a list says that there were rows."""
    return [] if isinstance(source, list) else None


def _read(item: Item, source_wanted: bool) -> tuple[Any, tuple[str, ...], Outcome]:
    """Return the source of an item, if it is wanted, the names of a refused game, and what the item says."""
    file, line, event, source, rows_of, table, _ = item
    if not source_wanted:
        source = _without_rows(source)
    elif isinstance(event, bytes):
        source = event.decode("utf-8", "backslashreplace")
    outcome = event if isinstance(event, Refused) else _outcome(event)
    if table and isinstance(outcome, Refused) and isinstance(event, dict):
        names = tuple(_names(event))
        return source, names, _of_two(outcome, names, First(file, line, table, rows_of is not None))
    return source, (), outcome


def read_written(event: bytes | dict[str, Any]) -> tuple[Draft, dict[str, Any]]:
    """Return what a line of JSON, or an event that was put together, says. Raises `Refused`."""
    return read_event(parse_object(event) if isinstance(event, bytes) else event)


def _outcome(event: bytes | dict[str, Any]) -> Outcome:
    try:
        return read_written(event)
    except Refused as problem:
        return problem


def _names(event: dict[str, Any]) -> Iterator[str]:
    """Yield the names in a refused event, as far as it has the form of an event."""
    with suppress(LookupError, TypeError, AttributeError):
        yield from (composed(name) for name in TYPES[event["type"]].brings(event["data"]) if isinstance(name, str))


def _of_two(problem: Refused, names: Iterable[str], first: First) -> Refused:
    """Return a refusal that says so if a name cannot be an id because it is two names, as in Anna/Ben, or none, as in
    n/a.
    """
    if problem.code == "bad-identifier":
        for name in names:
            if "/" in name and is_nobody(name):
                return Refused("nobody", nobody_refusal(name).message)
            if "/" in name and (parts := tied_parts(name)):
                rejection = tied_refusal(name, parts, first)
                return Refused(rejection.code, rejection.message)
    return problem


class Joints(NamedTuple):
    """What joins players in one cell as it is typed: tied ones by =, and those of one side by a text, if by any.

    Ids in `whole` hold that text themselves and are not taken apart.
    """

    partners: str | None = None
    whole: Collection[str] = ()

    def split(self, cell: str) -> list[list[str]]:
        """Return the players of a cell, side by side. Raises `Refused` if a name is missing beside a partner."""
        texts = [text.strip() for text in cell.split(TIE)]
        joint = self.partners
        return [[text] if joint is None else split_partners(text, joint, self.whole) for text in texts]

    def join(self, sides: Iterable[Iterable[str]]) -> str:
        """Return the cell that is split into these sides."""
        return TIE.join((self.partners or "").join(players) for players in sides)

    def participants(self, cells: Iterable[str]) -> list[dict[str, Any]]:
        """Return the participants of a game, given the cells in the order of their places. Raises `Refused`."""
        sides: list[tuple[int, list[str]]] = []
        for cell in cells:
            place = sum(len(players) for _, players in sides) + 1
            sides += [(place, players) for players in self.split(cell)]
        return participants_of(sides)

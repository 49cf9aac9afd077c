"""What can be said about each event by itself: from items to drafts, block by block.

For a long input another process does this, ahead of this one, which meanwhile checks how the events fit together.
"""

import marshal
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from itertools import islice
from typing import Any, NamedTuple

from ledger.events.canonical import load
from ledger.events.types import TYPES, Draft, read_event
from ledger.intake.files import Far, Item
from ledger.intake.json_lines import read_line
from ledger.processes.forking import ahead
from ledger.rejections import Refused, Rejection
from ledger.validation.new_names import tied_parts, tied_refusal

BLOCK_ITEMS = 250
# shorter inputs are read faster than another process is started
ALONE_BLOCKS = 16


class ParsedItem(NamedTuple):
    """An item, and what it is: a draft with its data, or a refusal.

    The source is what was read: the text of a line, or the rows of a table, which are kept only if wanted. `names` are
    the players of a refused game from a table.
    """

    file: str
    line: int
    source: Any
    rows_of: str | None
    table: bool
    names: tuple[str, ...]
    outcome: tuple[Draft, dict[str, Any]] | Refused


Block = list[ParsedItem | Rejection | Far]


def read_blocks(items: Iterable[Item | Rejection | Far], sources_wanted: bool, cores: int = 1) -> Generator[Block]:
    """The items in blocks, in order. Close the iterator if it is not read to the end. Raises `WorkerLost`."""
    blocks = _blocks(items, sources_wanted)
    if cores == 1:
        yield from blocks
        return
    for number, block in enumerate(blocks, 1):
        yield block
        if number == ALONE_BLOCKS:
            break
    else:
        return
    with closing(ahead(map(_packed, blocks))) as packed:
        yield from map(_unpacked, packed)


def _blocks(items: Iterable[Item | Rejection | Far], sources_wanted: bool) -> Iterator[Block]:
    found = (_checked(item, sources_wanted) if isinstance(item, Item) else item for item in items)
    while block := list(islice(found, BLOCK_ITEMS)):
        yield block


def _checked(item: Item, source_wanted: bool) -> ParsedItem:
    file, line, event, source, rows_of, table = item
    if not source_wanted:
        source = [] if isinstance(source, list) or callable(source) else None  # a list says that there were rows
    elif callable(source):
        source = source()
    elif isinstance(event, bytes):
        source = event.decode("utf-8", "backslashreplace")
    outcome = event if isinstance(event, Refused) else _outcome(event)
    names: tuple[str, ...] = ()
    if table and isinstance(outcome, Refused) and isinstance(event, dict):
        names = tuple(_names(event))
        outcome = _of_two(outcome, names, rows_of is not None)
    return ParsedItem(file, line, source, rows_of, table, names, outcome)


def _outcome(event: bytes | dict[str, Any]) -> tuple[Draft, dict[str, Any]] | Refused:
    try:
        return read_line(event) if isinstance(event, bytes) else read_event(event)
    except Refused as problem:
        return problem


def _names(event: dict[str, Any]) -> Iterator[str]:
    """The names in a refused event, as far as it has the form of an event."""
    with suppress(LookupError, TypeError, AttributeError):
        yield from (name for name in TYPES[event["type"]].brings(event["data"]) if isinstance(name, str))


def _of_two(problem: Refused, names: Iterable[str], long: bool) -> Refused:
    """A refusal that says so if a name cannot be an id because it is two names, as in Anna/Ben."""
    if problem.code == "bad-identifier":
        for name in names:
            if "/" in name and (parts := tied_parts(name)):
                rejection = tied_refusal(name, parts, long)
                return Refused(rejection.code, rejection.message)
    return problem


def _packed(block: Block) -> bytes:
    """A block as bytes, made of plain values only: what an entry is, and its members."""
    return marshal.dumps([_plain(entry) for entry in block])


def _plain(entry: ParsedItem | Rejection | Far) -> tuple[Any, ...]:
    if isinstance(entry, ParsedItem):
        outcome = entry.outcome
        if isinstance(outcome, Refused):
            return "refused", entry[:6], (outcome.code, outcome.message, outcome.line)
        # the draft already has the data, as text
        return "draft", entry[:6], tuple(outcome[0])
    return "far" if isinstance(entry, Far) else "rejection", tuple(entry)


def _unpacked(packed: bytes) -> Block:
    return [_entry(*values) for values in marshal.loads(packed)]


def _entry(what: str, members: tuple[Any, ...], outcome: tuple[Any, ...] = ()) -> ParsedItem | Rejection | Far:
    if what == "draft":
        draft = Draft._make(outcome)
        return ParsedItem._make((*members, (draft, load(draft.data))))
    if what == "refused":
        return ParsedItem._make((*members, Refused(*outcome)))
    return Far(*members) if what == "far" else Rejection(*members)

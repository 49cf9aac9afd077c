"""What can be said about each event by itself: from items to drafts, block by block.

For a long input another process does this, ahead of this one, which meanwhile checks how the events fit together.
"""

import marshal
import pickle
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from pydantic_core import SchemaValidator, ValidationError, core_schema

from ratings_ledger.ledger.events.canonical import dump_in_order, parse_object
from ratings_ledger.ledger.events.fast_models import STRICT, schema
from ratings_ledger.ledger.events.fields import composed
from ratings_ledger.ledger.events.game_types import GAME_TYPES
from ratings_ledger.ledger.events.types import TYPES, Draft, NormalisedGame, read_event, read_normalised
from ratings_ledger.ledger.intake.files import Entry, FileDigest, FileNote, Item, Progress
from ratings_ledger.ledger.processes.forking import ahead
from ratings_ledger.ledger.rejections import Refused, Rejection
from ratings_ledger.ledger.validation.new_names import First, nobody_refusal, tied_parts, tied_refusal
from ratings_ledger.ledger.validation.nobodies import is_nobody

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
    """The items in blocks, in order. Close the iterator if it is not read to the end. Raises `WorkerLost`."""
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
    """An entry of a file, if it is an item, with what that says."""
    if not isinstance(entry, Item):
        return entry
    source, names, outcome = _read(entry, source_wanted)
    return ParsedItem(entry._replace(event=b"", source=source), names, outcome)


# an event goes from one process to the other as a flat tuple of plain values: half the work of packing the objects


def packed_blocks(entries: Iterator[Entry], sources_wanted: bool) -> Iterator[bytes]:
    """Blocks of entries, parsed, as bytes for another process of this program."""
    while flat := [_flat(entry, sources_wanted) for entry in islice(entries, BLOCK_ITEMS)]:
        try:
            yield marshal.dumps(flat)
        except ValueError:  # a value that is not of a plain type
            yield marshal.dumps([pickle.dumps(_from_flat(one)) for one in flat])


def unpacked_block(message: bytes) -> Block:
    """The parsed entries that `packed_blocks` was given."""
    return list(map(_from_flat, marshal.loads(message)))


def _flat(entry: Entry, source_wanted: bool) -> tuple[Any, ...] | bytes:
    if isinstance(entry, Item):
        source, names, outcome = _read(entry, source_wanted)
        if isinstance(outcome, tuple):
            file, line, _, _, rows_of, table, is_numbered = entry
            draft, data = outcome
            return (file, line, b"", source, rows_of, table, is_numbered, names, *draft, data)
        return pickle.dumps(ParsedItem(entry._replace(event=b"", source=source), names, outcome))
    return pickle.dumps(entry)


def _from_flat(flat: tuple[Any, ...] | bytes) -> BlockEntry:
    if isinstance(flat, bytes):
        entry: BlockEntry = pickle.loads(flat)
        return entry
    item, names, draft, data = flat[:_NAMES], flat[_NAMES], flat[_NAMES + 1 : -1], flat[-1]
    return ParsedItem(Item._make(item), names, (Draft._make(draft), data))


_NAMES = len(Item._fields)  # where a flat tuple has the names


def _read(item: Item, source_wanted: bool) -> tuple[Any, tuple[str, ...], Outcome]:
    """The source of an item, if it is wanted, the names of a refused game, and what the item says."""
    file, line, event, source, rows_of, table, _ = item
    if not source_wanted:
        source = [] if isinstance(source, list) or callable(source) else None  # a list says that there were rows
    elif callable(source):
        source = source()
    elif isinstance(event, bytes):
        source = event.decode("utf-8", "backslashreplace")
    outcome = event if isinstance(event, Refused) else _outcome(event)
    if table and isinstance(outcome, Refused) and isinstance(event, dict):
        names = tuple(_names(event))
        return source, names, _of_two(outcome, names, First(file, line, table, rows_of is not None))
    return source, (), outcome


def _outcome(event: bytes | dict[str, Any]) -> Outcome:
    try:
        if isinstance(event, NormalisedGame):
            return read_normalised(event)
        return read_line(event) if isinstance(event, bytes) else read_event(event)
    except Refused as problem:
        return problem


def _names(event: dict[str, Any]) -> Iterator[str]:
    """The names in a refused event, as far as it has the form of an event."""
    with suppress(LookupError, TypeError, AttributeError):
        yield from (composed(name) for name in TYPES[event["type"]].brings(event["data"]) if isinstance(name, str))


def _of_two(problem: Refused, names: Iterable[str], first: First) -> Refused:
    """A refusal that says so if a name cannot be an id because it is two names, as in Anna/Ben, or none, as in n/a."""
    if problem.code == "bad-identifier":
        for name in names:
            if "/" in name and is_nobody(name):
                return Refused("nobody", nobody_refusal(name).message)
            if "/" in name and (parts := tied_parts(name)):
                rejection = tied_refusal(name, parts, first)
                return Refused(rejection.code, rejection.message)
    return problem


# from a line of JSON to a draft: a plain game in one step, anything else parsed and then read member by member; as in
# `ledger.events.fast_models`, the short way need not know everything that is valid, and has no messages of its own

GAME = "game.recorded"
KIND = "placing"  # of a game that names none


def read_line(line: bytes) -> tuple[Draft, dict[str, Any]]:
    """A written event as a draft and its normalised data. Raises `Refused` just as the step-by-step way does.

    That is `canonical.parse_object`, then `events.read_event`.
    """
    if b'"game.recorded"' in line and b"\\" not in line:
        try:
            found = _plain_game(line)
        except (ValidationError, Refused):
            found = None
        if found is not None:
            return found
    return read_event(parse_object(line))


def _plain_game(line: bytes) -> tuple[Draft, dict[str, Any]] | None:
    """A line without backslashes, if it is a game with nothing that needs a closer look; else None.

    Raises `Refused`, `ValidationError`; their messages are not shown to people.
    """
    event: dict[str, Any] = _validator().validate_json(line)
    data = event["data"]
    text = dump_in_order(data)
    # this parser keeps the last of two members with one name: then the line has more texts than what was read from it
    if line.count(b'"') != text.count('"') + 4 * len(event) - 2 or data.get("kind", KIND) != KIND:
        return None
    return read_normalised(event, text)


@cache
def _validator() -> SchemaValidator:
    members: dict[str, tuple[core_schema.CoreSchema, bool]] = {
        "type": (core_schema.literal_schema([GAME]), True),
        "occurred_at": (core_schema.str_schema(), True),
        "data": (schema(GAME_TYPES[KIND].model), True),
        "id": (core_schema.str_schema(), False),
        "by": (core_schema.str_schema(), False),
    }
    fields = {name: core_schema.typed_dict_field(one, required=needed) for name, (one, needed) in members.items()}
    return SchemaValidator(core_schema.typed_dict_schema(fields, extra_behavior="forbid", config=STRICT))

"""What can be said about each event by itself: from items to drafts, block by block.

For a long input another process does this, ahead of this one, which meanwhile checks how the events fit together. Where
it lacks memory, it ends without a word, and this one says so.
"""

import marshal
import pickle
import re
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import closing, suppress
from decimal import Decimal
from itertools import islice, pairwise
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.canonical import parse_object
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.events.types import TYPES, Draft, read_event
from ratings_ledger.ledger.intake.files import Entry, FileDigest, FileNote, Item, Progress
from ratings_ledger.ledger.intake.tables.partners import split_partners
from ratings_ledger.ledger.intake.tables.table_games import TIE, participants_of
from ratings_ledger.ledger.processes.forking import run_ahead
from ratings_ledger.ledger.rejections import Refused, Rejection, quote
from ratings_ledger.ledger.validation.names import is_nobody
from ratings_ledger.ledger.validation.new_names import FirstOccurrence, nobody_refusal, split_tied_names, tied_refusal

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
    blocks = iter(lambda: [parse_entry(entry, sources_wanted) for entry in islice(entries, BLOCK_ITEMS)], [])
    for number, block in enumerate(blocks, 1):
        yield block
        if cores > 1 and number == ALONE_BLOCKS:
            break
    else:
        return
    with closing(run_ahead(pack_blocks(entries, sources_wanted))) as messages:
        yield from map(unpack_block, messages)


def parse_entry(entry: Entry, source_wanted: bool) -> BlockEntry:
    """Return an entry of a file, if it is an item, with what that says."""
    return parse_item(entry, source_wanted) if isinstance(entry, Item) else entry


def parse_item(item: Item, source_wanted: bool) -> ParsedItem:
    """Return an item of a file with what it says."""
    file, line, _, _, rows_of, table, is_numbered, accounts, form = item
    source, names, outcome = _read(item, source_wanted)
    return ParsedItem(Item(file, line, b"", source, rows_of, table, is_numbered, accounts, form), names, outcome)


def pack_blocks(entries: Iterator[Entry], sources_wanted: bool) -> Iterator[bytes]:
    """Yield blocks of entries as bytes for another process of this program."""
    while block := [_pack(entry, sources_wanted) for entry in islice(entries, BLOCK_ITEMS)]:
        yield marshal.dumps(block)


def unpack_block(message: bytes) -> Block:
    """Return the parsed entries that `pack_blocks` was given."""
    return list(map(_unpack, marshal.loads(message)))


# an item travels as a flat tuple of plain values: half the work of packing the objects


def _pack(entry: Entry, source_wanted: bool) -> bytes:
    with suppress(ValueError):  # of a value that is not of a plain type
        if isinstance(entry, Item):
            item, names, outcome = parse_item(entry, source_wanted)
            if isinstance(outcome, tuple):
                flat: tuple[Any, ...] = (*item, names, *outcome[0], outcome[1])
                return marshal.dumps(flat)
    return marshal.dumps(pickle.dumps(parse_entry(entry, source_wanted)))


def _unpack(packed: bytes) -> BlockEntry:
    flat = marshal.loads(packed)
    if isinstance(flat, bytes):
        entry: BlockEntry = pickle.loads(flat)
        return entry
    item = Item._make(flat[:_NAMES])
    names, draft, data = flat[_NAMES], flat[_NAMES + 1 : -1], flat[-1]
    return ParsedItem(item, names, (Draft._make(draft), data))


_NAMES = len(Item._fields)  # where a flat tuple has the names


def _without_rows(source: Any) -> list[Any] | None:
    """Return what is kept of a source that is not wanted: a list says that there were rows."""
    return [] if isinstance(source, list) else None


def _read(item: Item, source_wanted: bool) -> tuple[Any, tuple[str, ...], Outcome]:
    """Return the source of an item, if it is wanted, the names of a refused game, and what the item says."""
    file, line, event, source, _, table, *_ = item
    if not source_wanted:
        source = _without_rows(source)
    elif isinstance(event, bytes):
        source = event.decode("utf-8", "backslashreplace")
    if isinstance(event, Refused):
        return source, event.names, event
    outcome = _outcome(event)
    if table and isinstance(outcome, Refused) and isinstance(event, dict):
        names = tuple(_names(event))
        return source, names, _of_two(outcome, names, FirstOccurrence(file, line, table, item.form))
    return source, (), outcome


def read_draft(event: bytes | dict[str, Any]) -> tuple[Draft, dict[str, Any]]:
    """Return what a line of JSON, or an event that was put together, says. Raises `Refused`."""
    return read_event(parse_object(event) if isinstance(event, bytes) else event)


def _outcome(event: bytes | dict[str, Any]) -> Outcome:
    try:
        return read_draft(event)
    except Refused as problem:
        return problem


def _names(event: dict[str, Any]) -> Iterator[str]:
    """Yield the names in a refused event, as far as it has the form of an event."""
    with suppress(LookupError, TypeError, AttributeError):
        yield from (to_nfc(name) for name in TYPES[event["type"]].brings(event["data"]) if isinstance(name, str))


def _of_two(problem: Refused, names: Iterable[str], first: FirstOccurrence) -> Refused:
    """Return a refusal that says so if a name cannot be an id because it is two names, as in Anna/Ben, or none, as in
    n/a.
    """
    if problem.code == "bad-identifier":
        for name in names:
            if "/" in name and is_nobody(name):
                return Refused("nobody", nobody_refusal(name).message)
            if "/" in name and (parts := split_tied_names(name)):
                rejection = tied_refusal(name, parts, first)
                return Refused(rejection.code, rejection.message)
    return problem


# a number behind the last colon of a cell is a score
_SCORED = re.compile(r"(.*\S)\s*:\s*([-+]?[0-9]+(?:[.,][0-9]+)?)", re.DOTALL)


def has_score(text: str) -> bool:
    """Tell whether a text, read as a player with a score, has one.

    >>> ends_in_score("anna:3"), ends_in_score("anna: 2,5"), ends_in_score("anna"), ends_in_score(":3")
    (True, True, False, False)
    """
    return _SCORED.fullmatch(text) is not None


class TypedSide(NamedTuple):
    """The players of one side as they were typed, and their score, if they have one."""

    players: list[str]
    score: str | None = None


class CellSyntax(NamedTuple):
    """What joins players in one cell as it is typed: tied ones by =, and those of one side by a text, if by any; the
    first of several joins them again. A side's score stands behind a colon: anna:3.

    Ids in `whole` hold that text, or end in a score, themselves and are not taken apart.
    """

    partners: tuple[str, ...] = ()
    whole: Collection[str] = ()

    def split(self, cell: str) -> list[TypedSide]:
        """Return the sides of a cell. Raises `Refused` if a name is missing beside a partner, or has two scores."""
        return [self._side(text.strip()) for text in cell.split(TIE)]

    def _side(self, text: str) -> TypedSide:
        players, score = self._players(text), None
        scored = _SCORED.fullmatch(text)
        if scored is not None and to_nfc(players[-1]) not in self.whole:
            players, score = self._players(scored[1]), scored[2]
            if has_score(players[-1]) and to_nfc(players[-1]) not in self.whole:
                told = f"{quote(text)} has two scores; no new id ends in a colon and a number"
                raise Refused("bad-identifier", told)
        return TypedSide(players, score)

    def _players(self, text: str) -> list[str]:
        return split_partners(text, self.partners, self.whole) if self.partners else [text]

    def join(self, sides: Iterable[TypedSide]) -> str:
        """Return the cell that is split into these sides."""
        joint = self.partners[0] if self.partners else ""
        texts = (joint.join(side.players) + (f":{side.score}" if side.score else "") for side in sides)
        return TIE.join(texts)

    def participants(self, cells: Iterable[str], *, low: bool = False) -> list[dict[str, Any]]:
        """Return the participants of a game, given the cells in the order of their places.

        Args:
            cells: tied sides share a cell.
            low: the lower score is the better one.

        Raises:
            Refused: some sides alone have scores, or these contradict the places.
        """
        cells = list(cells)
        split = [self.split(cell) for cell in cells]
        _refuse_scores(cells, split, low)
        sides: list[tuple[int, list[str]]] = []
        scores: dict[str, int | str] = {}
        for cell in split:
            place = sum(len(players) for _, players in sides) + 1
            sides += [(place, side.players) for side in cell]
            scores |= {name: _number(side.score) for side in cell if side.score for name in side.players}
        found = participants_of(sides)
        return [{**one, "score": scores[one["player"]]} for one in found] if scores else found


def _number(score: str) -> int | str:
    """Return a score as a game has it."""
    is_short = len(score) <= 15 and score.lstrip("+-").isdigit()
    return int(score) if is_short else score.replace(",", ".")


def _refuse_scores(cells: list[str], split: list[list[TypedSide]], low: bool) -> None:
    """Raises `Refused` (score-missing, score-contradicts-place) for scores that do not fit the order of the cells."""
    scores = [side.score for sides in split for side in sides]
    if not any(scores):
        return
    if None in scores:
        cell = next(cell for cell, sides in zip(cells, split, strict=True) if any(not side.score for side in sides))
        told = f"{quote(cell)} has no score; write it behind a colon, such as {_scored(cell)}, or give nobody one"
        raise Refused("score-missing", told)
    merits = [[Decimal(str(_number(side.score or ""))) * (-1 if low else 1) for side in sides] for sides in split]
    for cell, tied in zip(cells, merits, strict=True):
        if len({*tied}) > 1:
            raise Refused("score-contradicts-place", f"{quote(cell)} ties players whose scores differ")
    for (cell, (merit, *_)), (other, (worse, *_)) in pairwise(zip(cells, merits, strict=True)):
        if worse > merit:
            told = f"{quote(other)} stands behind {quote(cell)} but has the better score; write the winner first"
            raise Refused("score-contradicts-place", told)
        if worse == merit:
            told = f"{quote(cell)} and {quote(other)} have the same score; tied players are joined by ="
            decided = "if something else decided, give the places without scores, or both as JSON"
            raise Refused("score-contradicts-place", f"{told}: {cell}{TIE}{other}; {decided}")


def _scored(cell: str) -> str:
    """Return a cell with a score behind each side that lacks one, as an example."""
    return TIE.join(text if has_score(text) else f"{text}:1" for text in cell.split(TIE))

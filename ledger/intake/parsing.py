"""Parse the items of files into drafts, block by block, without comparing events with each other.

A second process parses a long input ahead, while this process validates the events. If the second process runs out of
memory, it ends silently, and this process reports it.
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
from ratings_ledger.ledger.events.games import build_participants
from ratings_ledger.ledger.events.types import TYPES, Draft, read_event
from ratings_ledger.ledger.intake.files import Entry, FileDigest, FileNote, Item, Progress
from ratings_ledger.ledger.intake.tables.partners import split_partners
from ratings_ledger.ledger.intake.tables.table_games import TIE
from ratings_ledger.ledger.processes.forking import run_ahead
from ratings_ledger.ledger.rejections import Refused, Rejection, quote
from ratings_ledger.ledger.validation.close_names import is_nobody
from ratings_ledger.ledger.validation.new_names import (
    FirstOccurrence,
    build_nobody_rejection,
    build_tied_rejection,
    split_tied_names,
)

BLOCK_ITEMS = 250
# this process parses the first blocks alone, because a second process pays off only for a longer input
ALONE_BLOCKS = 8

ParseResult = tuple[Draft, dict[str, Any]] | Refused


class ParsedItem(NamedTuple):
    """A parsed item.

    item:    the item without its event; with its source (a line or rows of a table) only if requested
    names:   the players of a refused game from a table
    result:  a draft with its data, or a refusal
    """

    item: Item
    names: tuple[str, ...]
    result: ParseResult


BlockEntry = ParsedItem | Rejection | Progress | FileDigest | FileNote
Block = list[BlockEntry]


def read_blocks(items: Iterable[Entry], keep_sources: bool, cores: int = 1) -> Generator[Block]:
    """Yield the parsed items in blocks, in order. A caller that stops early must close the generator.

    With more than one core, a second process parses all but the first blocks. Raises `WorkerLost`.
    """
    # each entry is parsed when it is read, because its text takes more memory than its draft
    entries = iter(items)
    blocks = iter(lambda: [parse_entry(entry, keep_sources) for entry in islice(entries, BLOCK_ITEMS)], [])
    for number, block in enumerate(blocks, 1):
        yield block
        if cores > 1 and number == ALONE_BLOCKS:
            break
    else:
        return
    with closing(run_ahead(pack_blocks(entries, keep_sources))) as messages:
        yield from map(unpack_block, messages)


def parse_entry(entry: Entry, keep_source: bool) -> BlockEntry:
    """Parse an entry of a file if it is an item; return other entries unchanged."""
    return parse_item(entry, keep_source) if isinstance(entry, Item) else entry


def parse_item(item: Item, keep_source: bool) -> ParsedItem:
    """Parse an item of a file."""
    return _build_parsed_item(item, *_parse_event(item, keep_source))


def _build_parsed_item(item: Item, source: Any, names: tuple[str, ...], result: ParseResult) -> ParsedItem:
    return ParsedItem(item._replace(event=b"", source=source), names, result)


def pack_blocks(entries: Iterator[Entry], keep_sources: bool) -> Iterator[bytes]:
    """Yield blocks of parsed entries as bytes, to be sent to another process of this program."""
    while block := [_flatten(entry, keep_sources) for entry in islice(entries, BLOCK_ITEMS)]:
        try:
            yield marshal.dumps(block)
        except ValueError:  # `marshal` cannot pack the type of a value
            yield marshal.dumps([*map(_pickle_if_needed, block)])


def unpack_block(message: bytes) -> Block:
    """Unpack a block from a message of `pack_blocks`."""
    return list(map(_unpack, marshal.loads(message)))


# items are packed as flat tuples of plain values; pickling the objects would take twice the time


def _flatten(entry: Entry, keep_source: bool) -> tuple[Any, ...] | bytes:
    """Return an item with a draft as a flat tuple, and any other entry as bytes."""
    if isinstance(entry, Item):
        source, names, result = _parse_event(entry, keep_source)
        if isinstance(result, tuple):
            return entry.file, entry.line, b"", source, *entry[_AFTER_SOURCE:], names, *result[0], result[1]
        return pickle.dumps(_build_parsed_item(entry, source, names, result))
    return pickle.dumps(entry)


def _pickle_if_needed(flat: tuple[Any, ...] | bytes) -> tuple[Any, ...] | bytes:
    """Return a flat item as bytes if `marshal` cannot pack one of its values, else unchanged."""
    with suppress(ValueError):
        marshal.dumps(flat)
        return flat
    return pickle.dumps(_unpack(flat))


def _unpack(packed: tuple[Any, ...] | bytes) -> BlockEntry:
    if isinstance(packed, bytes):
        entry: BlockEntry = pickle.loads(packed)
        return entry
    item = Item._make(packed[:_NAMES_INDEX])
    names, draft, data = packed[_NAMES_INDEX], packed[_NAMES_INDEX + 1 : -1], packed[-1]
    return ParsedItem(item, names, (Draft._make(draft), data))


_NAMES_INDEX = len(Item._fields)  # the index of the names in a flat tuple
_AFTER_SOURCE = Item._fields.index("source") + 1


def _parse_event(item: Item, keep_source: bool) -> tuple[Any, tuple[str, ...], ParseResult]:
    """Return the source of an item, the names of a refused game, and the result.

    Without `keep_source` the source is None, or an empty list if it consists of rows.
    """
    event, source = item.event, item.source
    if not keep_source:
        source = [] if isinstance(source, list) else None
    elif isinstance(event, bytes):
        source = event.decode("utf-8", "backslashreplace")
    if isinstance(event, Refused):
        return source, event.names, event
    result = _try_read_draft(event)
    if item.table and isinstance(result, Refused) and isinstance(event, dict):
        names = tuple(_iterate_names(event))
        first = FirstOccurrence(item.file, item.line, item.table, item.form)
        return source, names, _explain_joined_name(result, names, first)
    return source, (), result


def read_draft(event: bytes | dict[str, Any]) -> tuple[Draft, dict[str, Any]]:
    """Read a line of JSON, or an event that a reader composed, as a draft. Raises `Refused`."""
    return read_event(parse_object(event) if isinstance(event, bytes) else event)


def _try_read_draft(event: bytes | dict[str, Any]) -> ParseResult:
    try:
        return read_draft(event)
    except Refused as problem:
        return problem


def _iterate_names(event: dict[str, Any]) -> Iterator[str]:
    """Yield the names in a refused event, whose structure may be incomplete."""
    with suppress(LookupError, TypeError, AttributeError):
        yield from (
            to_nfc(name) for name in TYPES[event["type"]].list_named_players(event["data"]) if isinstance(name, str)
        )


def _explain_joined_name(problem: Refused, names: Iterable[str], first: FirstOccurrence) -> Refused:
    """Explain the refusal of an id that consists of two names, such as Anna/Ben, or stands for no player, such as n/a.

    Other refusals are returned unchanged.
    """
    if problem.code == "bad-identifier":
        for name in names:
            if "/" in name and is_nobody(name):
                return Refused("nobody", build_nobody_rejection(name, first).message)
            if "/" in name and (parts := split_tied_names(name)):
                rejection = build_tied_rejection(name, parts, first)
                return Refused(rejection.code, rejection.message)
    return problem


# a number after the last colon of a cell is a score
_SCORED = re.compile(r"(.*\S)\s*:\s*([-+]?[0-9]+(?:[.,][0-9]+)?)", re.DOTALL)


def has_score(text: str) -> bool:
    """Tell whether the text of a side ends in a score.

    >>> has_score("anna:3"), has_score("anna: 2,5"), has_score("anna"), has_score(":3")
    (True, True, False, False)
    """
    return _SCORED.fullmatch(text) is not None


class TypedSide(NamedTuple):
    """The players of one side as typed, with their score if there is one."""

    players: list[str]
    score: str | None = None


class CellSyntax(NamedTuple):
    """The syntax of a typed cell: = joins tied sides, a separator joins partners, a score follows a colon (anna:3).

    partners:    the separators of partners; `join` uses the first
    unsplit_ids: ids that are not split, although they contain a separator or end like a score
    """

    partners: tuple[str, ...] = ()
    unsplit_ids: Collection[str] = ()

    def split(self, cell: str) -> list[TypedSide]:
        """Split a cell into sides. Raises `Refused` if a partner has no name, or a side has two scores."""
        return [self._parse_side(text.strip()) for text in cell.split(TIE)]

    def _parse_side(self, text: str) -> TypedSide:
        players, score = self._split_players(text), None
        scored = _SCORED.fullmatch(text)
        if scored is not None and to_nfc(players[-1]) not in self.unsplit_ids:
            players, score = self._split_players(scored[1]), scored[2]
            if has_score(players[-1]) and to_nfc(players[-1]) not in self.unsplit_ids:
                message = f"{quote(text)} has two scores; leave out one (a new id cannot end in a colon and a number)"
                raise Refused("bad-identifier", message)
        return TypedSide(players, score)

    def _split_players(self, text: str) -> list[str]:
        return split_partners(text, self.partners, self.unsplit_ids) if self.partners else [text]

    def join(self, sides: Iterable[TypedSide]) -> str:
        """Join sides into a cell, the inverse of `split`."""
        separator = self.partners[0] if self.partners else ""
        texts = (separator.join(side.players) + (f":{side.score}" if side.score else "") for side in sides)
        return TIE.join(texts)

    def parse_participants(self, cells: Iterable[str], *, low: bool = False) -> list[dict[str, Any]]:
        """Build the participants of a game from cells in the order of their places.

        Args:
            cells: The cells; tied sides share a cell.
            low: Whether a lower score is better.

        Raises:
            Refused: A cell cannot be split, only some sides have scores, or the scores contradict the places.
        """
        cells = list(cells)
        split = [self.split(cell) for cell in cells]
        _check_scores(cells, split, low)
        sides: list[tuple[int, list[str]]] = []
        scores: dict[str, int | str] = {}
        for cell in split:
            place = sum(len(players) for _, players in sides) + 1
            sides += [(place, side.players) for side in cell]
            scores |= {name: _parse_score(side.score) for side in cell if side.score for name in side.players}
        participants = build_participants(sides)
        if not scores:
            return participants
        return [{**participant, "score": scores[participant["player"]]} for participant in participants]


def _parse_score(score: str) -> int | str:
    """Convert a score to the form that events have: an integer or a decimal string."""
    is_short = len(score) <= 15 and score.lstrip("+-").isdigit()
    return int(score) if is_short else score.replace(",", ".")


def _check_scores(cells: list[str], split: list[list[TypedSide]], low: bool) -> None:
    """Raise `Refused` if only some sides have scores, or scores contradict the order of the cells."""
    scores = [side.score for sides in split for side in sides]
    if not any(scores):
        return
    if None in scores:
        cell, sides = next(
            (cell, sides) for cell, sides in zip(cells, split, strict=True) if any(not side.score for side in sides)
        )
        unscored = next(text for text, side in zip(cell.split(TIE), sides, strict=True) if not side.score)
        example = _add_example_scores(cell, sides)
        message = f"{quote(unscored.strip())} has no score; write it after a colon, such as {example}"
        raise Refused("score-missing", f"{message}, or omit all scores")
    signed_scores = [
        [Decimal(str(_parse_score(side.score or ""))) * (-1 if low else 1) for side in sides] for sides in split
    ]
    for cell, tied in zip(cells, signed_scores, strict=True):
        if len({*tied}) > 1:
            message = f"{quote(cell)} ties players whose scores differ; list them separately, the better score first"
            raise Refused("score-contradicts-place", message)
    for (cell, (signed, *_)), (next_cell, (next_signed, *_)) in pairwise(zip(cells, signed_scores, strict=True)):
        if next_signed > signed:
            message = f"{quote(next_cell)} comes after {quote(cell)} but has the better score"
            raise Refused("score-contradicts-place", f"{message}; write the better one first")
        if next_signed == signed:
            message = f"{quote(cell)} and {quote(next_cell)} have the same score; if they tied, write "
            remedy = "if a tie-break decided, leave out the scores, or record places and scores as JSON"
            raise Refused("score-contradicts-place", f"{message}{cell}{TIE}{next_cell}; {remedy}")


def _add_example_scores(cell: str, sides: Iterable[TypedSide]) -> str:
    """Add an example score to each side without a score in the text of a cell."""
    return TIE.join(text if side.score else f"{text}:1" for text, side in zip(cell.split(TIE), sides, strict=True))

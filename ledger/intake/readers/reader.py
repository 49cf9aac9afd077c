"""The interface of a reader of files, and the entries that it yields."""

from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.intake.tables.recognition import TableRead
from ratings_ledger.ledger.rejections import Refused


class ReadAs(NamedTuple):
    """A note on how a file of another program is read, and whether its games are numbered by day from here on."""

    told: str
    is_numbered: bool = False


# an event: (line, event or refusal, its source, the game id if it was composed of rows); a sentence about the file; how
# a table or a file of another program was read; the options to read the next file alike; or None for a line that is no
# event, but allows a file without events
Read = tuple[int, bytes | dict[str, Any] | Refused, Any, str | None] | str | TableRead | ReadAs | TableOptions | None


class Opened(NamedTuple):
    """An opened file: its name, its uncompressed content, and its path if the file is not compressed."""

    name: str
    content: IO[bytes]
    path: str | None


class Reader(NamedTuple):
    """A reader of one kind of file, which recognises it by its name and first bytes, and yields its entries.

    A reader of tables yields names that people typed: the import asks about names close to others, unless they are
    names of `accounts`, which a program keeps distinct.
    """

    name: str
    is_of: Callable[[str, bytes], bool]
    read: Callable[[Opened, TableOptions], Iterator[Read]]
    tables: bool
    accounts: bool = False

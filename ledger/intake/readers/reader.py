"""What a reader of files is, and what it yields."""

from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.intake.tables.recognition import TableRead
from ratings_ledger.ledger.rejections import Refused


class ReadAs(NamedTuple):
    """How a file of another program is read, in words, and whether its games are numbered by day from here on."""

    told: str
    is_numbered: bool = False


# (line, event or refusal, its source, the game id if it was put together from rows); a sentence about the file; how a
# table or a file of another program was read, and the options to read the next one alike; or None for a line that is no
# event, but means that there may be none
Read = tuple[int, bytes | dict[str, Any] | Refused, Any, str | None] | str | TableRead | ReadAs | TableOptions | None


class Opened(NamedTuple):
    """A file: its name, its content, uncompressed, and its path if that is the content itself."""

    name: str
    content: IO[bytes]
    path: str | None


class Reader(NamedTuple):
    """What reads a kind of file: whether a file is of that kind, by its name and how it begins; and what is in it.

    A reader of tables has names typed by people: those that are close to others are asked about, unless they are names
    of `accounts`, which a program keeps apart.
    """

    name: str
    is_of: Callable[[str, bytes], bool]
    read: Callable[[Opened, TableOptions], Iterator[Read]]
    tables: bool
    accounts: bool = False

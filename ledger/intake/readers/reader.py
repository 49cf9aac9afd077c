"""Define the interface of readers of files, and the entries that they yield."""

from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.intake.tables.recognition import TableRead
from ratings_ledger.ledger.rejections import Refused


class ReadAs(NamedTuple):
    """A sentence about how a file of another program is read, and whether the games after it are numbered by day."""

    sentence: str
    is_numbered: bool = False


# An event is (line, event or refusal, source, id of the game if several rows may belong to it). A string is a sentence
# about the file. TableRead and ReadAs say how the file was read, TableOptions how to read the next such file. None is
# yielded for the last line of an export; a file with this line may have no events.
Read = tuple[int, bytes | dict[str, Any] | Refused, Any, str | None] | str | TableRead | ReadAs | TableOptions | None


class Opened(NamedTuple):
    """An open file: its name, its uncompressed content, and its path; None if it is compressed or no regular file."""

    name: str
    content: IO[bytes]
    path: str | None


class Reader(NamedTuple):
    """A reader of one kind of file. It recognises a file by its name and first bytes, and yields its entries.

    name:     the kind of file
    is_of:    tells from a file's name, without .gz, and its first bytes whether this reader reads it
    read:     yields the entries of a file
    tables:   whether names are typed by people; the import asks about names that are close to others
    accounts: whether names are those of accounts, which another program keeps distinct; the import does not ask
    """

    name: str
    is_of: Callable[[str, bytes], bool]
    read: Callable[[Opened, TableOptions], Iterator[Read]]
    tables: bool
    accounts: bool = False

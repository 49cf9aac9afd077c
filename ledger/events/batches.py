"""The event that describes a batch: the positions of the events that an import recorded from one file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice, pairwise
from pathlib import PurePath
from typing import Annotated, Any

from pydantic import Field, model_validator

from ratings_ledger.ledger.events.fields import BatchName, Members, PlayerId, Text, build_error, must_match, to_nfc
from ratings_ledger.ledger.rejections import escape_unprintable

NAME_MAX, SOURCE_MAX = 256, 2_000  # characters
# how many ranges fit in a record; an import has several ranges only if others append between its chunks
RANGES_MAX = 1_000
# how many aliases fit in a record with one range
ALIASES_MAX = 100
# the name of a batch from standard input
NAMELESS = "-"

Position = Annotated[int, Field(ge=1)]


class ImportRecorded(Members):
    """A batch: the events that an import recorded from one file, as ranges of (first, last) position.

    name      the name of the file without its folder; - for standard input
    source    the path as the user gave it; - for standard input
    sha256    the hash of the file's bytes
    sheet     the sheet that was read, for a spreadsheet
    aliases   the user's answers about possible slips in names: for each slip, the player that it stands for
    """

    name: BatchName
    ranges: Annotated[
        list[Annotated[list[Position], Field(min_length=2, max_length=2)]], Field(min_length=1, max_length=RANGES_MAX)
    ]
    source: Text
    sha256: Annotated[
        str, must_match(r"[0-9a-f]{64}", "{} is not a SHA-256; write 64 hexadecimal digits in lower case")
    ]
    sheet: Text | None = None
    aliases: Annotated[dict[PlayerId, PlayerId], Field(min_length=1, max_length=ALIASES_MAX)] | None = None

    @model_validator(mode="after")
    def _check_order(self) -> ImportRecorded:
        has_overlap = any(last >= first for (_, last), (first, _) in pairwise(self.ranges))
        if has_overlap or any(first > last for first, last in self.ranges):
            message = "ranges must be pairs of a first and a last position, in ascending order and without overlaps"
            raise build_error("out-of-range", message)
        return self


def make_batch_name(file: str) -> str:
    """Return the name of the batch of a file: the file's name without its folder."""
    return to_nfc(escape_unprintable(PurePath(file).name))[-NAME_MAX:].strip() or NAMELESS


# the texts that browsers and file managers add to the name of a copy
_COPY_OF = re.compile(r"(?:copy of|kopie von|copie de|copia de|kopia|kopi av)\s+", re.IGNORECASE)
_COPIED = re.compile(r"(?:\s*\(\d{1,3}\)|[\s_-]+(?:copy|kopie|copie|copia|kopia|kopi)(?:\s*\d{1,3})?)$", re.IGNORECASE)


def strip_copy_marks(name: str) -> str:
    """Return the name of a file without the text that a download or a copy adds to it.

    >>> strip_copy_marks("League Results (1).csv"), strip_copy_marks("Copy of Ergebnisse 2024 Kopie.xlsx")
    ('League Results.csv', 'Ergebnisse 2024.xlsx')
    """
    stem, dot, ending = name.partition(".") if name.endswith(".gz") else name.rpartition(".")
    previous, stem = None, stem if dot else name
    while stem != previous:
        previous = stem
        stem = _COPIED.sub("", _COPY_OF.sub("", stem) if _COPY_OF.match(stem) else stem).strip() or previous
    return f"{stem}.{ending}" if dot else stem


def build_batch_events(
    file: str,
    ranges: list[list[int]],
    *,
    sha256: str,
    sheet: str | None,
    name: str | None = None,
    aliases: Mapping[str, str] | None = None,
) -> Iterable[dict[str, Any]]:
    """Yield the data of the events that record a batch: one event, or several if its ranges do not fit in one record.

    Args:
        file: The file as the user named it.
        ranges: The [first, last] positions of the events from the file.
        sha256: The hash of the file's bytes.
        sheet: The name of the sheet that was read, if the file is a spreadsheet.
        name: The name of the batch, by default the file's.
        aliases: The user's answers about names in the file; only the first `ALIASES_MAX` are recorded.
    """
    first_aliases = dict(islice((aliases or {}).items(), ALIASES_MAX))
    # a record with aliases has room for one range
    starts = [0, *range(1 if first_aliases else RANGES_MAX, len(ranges), RANGES_MAX), len(ranges)]
    for start, end in pairwise(starts):
        yield {
            "name": name or make_batch_name(file),
            "ranges": ranges[start:end],
            "source": escape_unprintable(file)[-SOURCE_MAX:],
            "sha256": sha256,
            "sheet": sheet,
            "aliases": (first_aliases or None) if start == 0 else None,
        }


def describe_ranges(ranges: Iterable[Iterable[int]]) -> str:
    """Describe ranges of positions, as in `positions 3 to 92, 95`."""
    parts = [str(first) if first == last else f"{first} to {last}" for first, last in ranges]
    return f"position{'' if parts[0].isdigit() and len(parts) == 1 else 's'} {', '.join(parts)}"

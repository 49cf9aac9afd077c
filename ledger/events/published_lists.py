"""The events of a published list: `list.rows` for each part of its rows, then `list.published` with their digest."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from ratings_ledger.ledger.events.canonical import dump, format_instant, parse_instant
from ratings_ledger.ledger.events.fields import (
    STATE_MAX,
    ColumnName,
    LadderText,
    Members,
    PlayerId,
    Text,
    build_error,
    must_match,
)
from ratings_ledger.ledger.rejections import Refused, quote

# how many bytes of canonical JSON the rows of one part may have; a record has at most 65,535 bytes
PART_BYTES = 60_000
PARTS_MAX = 100_000


def _check_exact(text: str) -> str:
    has_form = len(text) <= 200 and re.fullmatch(r"-?\d+(/[1-9]\d*)?", text, re.ASCII)
    if not has_form or str(Fraction(text)) != text:
        raise build_error(
            "bad-value", f'{quote(text)} is not a whole number or a reduced fraction such as "1008" or "20/3"'
        )
    return text


def _normalise_instant(text: str) -> str:
    try:
        return format_instant(parse_instant(text))
    except Refused as problem:
        raise build_error(problem.code, problem.message) from None


Exact = Annotated[str, AfterValidator(_check_exact)]
Digest = Annotated[
    str, must_match(r"sha256:[0-9a-f]{64}", "{} is not a digest; write sha256: and 64 hexadecimal digits in lower case")
]
Count = Annotated[int, Field(ge=0)]
PositiveNumber = Annotated[int, Field(ge=1)]
PartNumber = Annotated[int, Field(ge=1, le=PARTS_MAX)]


class ListedRow(Members):
    """A row of standings as printed in JSON; `rank` is absent for a player without a rank.

    `state` has the numbers that a rule keeps about a player, by name, if the rule keeps more than the points.
    """

    rank: PositiveNumber | None = None
    player: PlayerId
    points: Exact
    games: Count
    qualified: bool
    gold: Count | None = None
    places: list[PositiveNumber] | None = None
    state: Annotated[dict[ColumnName, Exact], Field(min_length=2, max_length=STATE_MAX)] | None = None


class ListRows(Members):
    """Rows of a published list: part `part` of `parts`, counted from 1."""

    ladder: LadderText
    digest: Digest
    part: PartNumber
    parts: PartNumber
    rows: Annotated[list[ListedRow], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_part(self) -> ListRows:
        if self.part > self.parts:
            raise build_error(
                "out-of-range", f"part is {self.part} and parts is {self.parts}; part must not be greater than parts"
            )
        return self


class ListPublished(Members):
    """A published list: a ladder's standings at the log position `known_at`, from the games up to `as_of`.

    `digest` covers `ruleset` and all rows. The rows are in `parts` earlier events.
    """

    ladder: LadderText
    as_of: Annotated[str, AfterValidator(_normalise_instant)] | None = None
    known_at: PositiveNumber
    ruleset: Text
    digest: Digest
    row_count: PositiveNumber
    parts: PartNumber
    games: Count = 0


class ListScheduled(Members):
    """A schedule by which a ladder is published at the end of every month. No ladder depends on it."""

    ladder: LadderText
    every: Literal["month"]


def compute_digest(ruleset: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Compute the digest of a list: the SHA-256 of a ruleset's name and the rows in canonical JSON.

    The digest is the same on every machine and for every store.
    """
    return compute_text_digest(dump({"ruleset": ruleset, "rows": list(rows)}))


def compute_text_digest(content: str) -> str:
    """Compute the digest of a list, given the canonical JSON of the ruleset's name and the rows."""
    return f"sha256:{hashlib.sha256(content.encode()).hexdigest()}"


def split_rows(rows: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Split rows into parts of at most `PART_BYTES`."""
    parts: list[list[Mapping[str, Any]]] = []
    size = PART_BYTES
    for row in rows:
        length = len(dump(row).encode()) + 1
        if size + length > PART_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(row)
        size += length
    return parts

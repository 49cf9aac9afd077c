"""Parse, check and shorten the names of ladders.

A ladder's name is the ruleset's id and a value for each member of the partition, such as `club-catan-elo/3-4`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.rejections import did_you_mean, quote
from ratings_ledger.projections.facts.columns import LABELS


class LadderName(NamedTuple):
    """A parsed ladder name."""

    ruleset_id: str
    values: tuple[str, ...]


def parse_name(name: str) -> LadderName:
    """Split the name of a ladder into the ruleset's id and the partition values. The ruleset need not exist."""
    ruleset_id, *values = name.split("/")
    return LadderName(ruleset_id, tuple(values))


def find_label_indexes(by: Sequence[str]) -> list[int]:
    """Return the indexes of the partition members (`by`) that are labels of games, such as group and city."""
    return [index for index, part in enumerate(by) if part in LABELS]


# the band of all games of a ruleset; in the name of its ladder the band may be left out: elo-chess is elo-chess/all
ALL = "all"


def short_name(ladder: str) -> str:
    """Return the short name of a ladder for display. Events, JSON, CSV and digests use the full name.

    >>> short_name("elo-chess/all"), short_name("elo-chess/2"), short_name("catan-monthly/7/all")
    ('elo-chess', 'elo-chess/2', 'catan-monthly/7/all')
    """
    ruleset_id, _, value = ladder.partition("/")
    return ruleset_id if value == ALL else ladder


class LadderItem(Protocol):
    """A dataclass about one ladder, such as a row of a table."""

    @property
    def ladder(self) -> str:
        """Return the full name of the ladder."""


Row = TypeVar("Row", bound=LadderItem)


def drop_duplicate_ladders(rows: Iterable[Row]) -> list[Row]:
    """Drop the rows of each ladder of a band, such as elo-chess/2, if they equal the rows of elo-chess/all."""
    rows, contents = [*rows], defaultdict[str, list[Any]](list)
    for row in rows:
        contents[row.ladder].append(replace(cast("Any", row), ladder=""))

    def is_duplicate(ladder: str) -> bool:
        ruleset_id, values = parse_name(ladder)
        all_games_ladder = f"{ruleset_id}/{ALL}"
        is_players_band = len(values) == 1 and re.fullmatch(r"\d+(-\d+)?", values[0], re.ASCII) is not None
        return is_players_band and all_games_ladder in contents and contents[all_games_ladder] == contents[ladder]

    duplicates = {ladder for ladder in contents if is_duplicate(ladder)}
    return [row for row in rows if row.ladder not in duplicates]


def distinct_ladders(*tables: Iterable[LadderItem]) -> set[str]:
    """Drop duplicate ladders from each of several tables. Return the ladders that remain in at least one of them."""
    return {row.ladder for table in tables for row in drop_duplicate_ladders(table)}


_VALUE_FORMS = {"month": r"\d{4}-(0[1-9]|1[0-2])", "year": r"\d{4}", "players": r"[1-9]\d*"}


def find_ladder_name_problem(name: LadderName, ruleset: Ruleset) -> str | None:
    """Return a message if a ladder name does not fit the partition of its ruleset; None if it fits."""
    members, bands = ruleset.partition.by, ruleset.partition.bands
    pattern = "/".join(
        [ruleset.id, *({"month": "YYYY-MM", "year": "YYYY"}.get(member, member.upper()) for member in members)]
    )
    if name.values and not members:
        return f"{ruleset.id} has only one ladder, which is named {pattern}"
    if len(name.values) != len(members) or not all(name.values):
        return f"the ladders of {ruleset.id} are named {pattern}" + (
            f", where PLAYERS is {' or '.join(bands)}" if bands else ""
        )
    for member, value in zip(members, name.values, strict=True):
        if member == "players" and bands and value not in bands:
            return f"{quote(value)} is not a band; write {' or '.join(bands)}{did_you_mean(value, bands)}"
        if not (member == "players" and bands) and not re.fullmatch(_VALUE_FORMS.get(member, ".+"), value, re.ASCII):
            requirement = "number of players" if member == "players" else member
            return f"{quote(value)} is not a {requirement}; the ladders are named {pattern}"
    return None

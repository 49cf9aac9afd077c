"""`whatif` on the workers of an engine: the ladders of a pack as they are, beside those under another ruleset."""

from __future__ import annotations

import json
import marshal
from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.validation.published_lists import PublishedList
from ratings_ledger.projections.cluster.base import SharedBase
from ratings_ledger.projections.cluster.columnar import as_bytes, object_bytes
from ratings_ledger.projections.cluster.objects import Bytes
from ratings_ledger.projections.cluster.packs import family_of
from ratings_ledger.projections.diff.comparison import DifferingList, Effect, Gain, ImpactSummary
from ratings_ledger.projections.diff.impact import RecordedBeside
from ratings_ledger.projections.diff.predictions import Predicted, Quality
from ratings_ledger.projections.diff.what_if import SimulatedLadder, ladders_beside, under
from ratings_ledger.projections.lists.contract import RankedRow
from ratings_ledger.projections.queries.ladders_at import Ladders, Ranking
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.replay.ladders import parse_name
from ratings_ledger.projections.stored.computing import REPEATABLE

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS: dict[str, Any] = {
    kind.__name__: kind for kind in (DifferingList, Effect, Gain, Predicted, Quality, ImpactSummary, SimulatedLadder)
}


def compared_pack(base: SharedBase, told: dict[str, Any], makes: str) -> Iterator[Bytes]:
    """Yield the bytes of the object `makes` with a pack's ladders under another ruleset. Raises `DamagedObject`."""
    cells = [(number, tuple(cell)) for number, cell in told["cells"]]
    ruleset, as_of, families = Ruleset.model_validate(told["under"]), told["as_of"], {*map(tuple, told["families"])}
    now = Ladders(base.facts(cells, told["games"]), as_of)
    then, failed = under(now.facts, ruleset, as_of), list[str]()
    every = [one.every(told["ruleset"]) if told["ruleset"] in one.facts.rulesets else {} for one in (now, then)]
    versions = [version for one in (now, then) for version in one.facts.rulesets.get(told["ruleset"], ())]
    here = {name for streams in every for name in streams if family_of(versions, parse_name(name).values) in families}
    names = {name for name in here if not told["asked"] or name in told["asked"]}
    recorded = _recorded(told["lists"])
    found, published = ladders_beside(recorded, now, then, ruleset.id, names, failed) if names else ([], ())
    content = [
        as_plain(tuple(found)),
        as_plain(published),
        failed,
        *(sorted(here & streams.keys()) for streams in every),
    ]
    yield from object_bytes([], {"compared": as_bytes(marshal.dumps(content, REPEATABLE))}, {"name": makes})


def _recorded(lists: Sequence[Sequence[Any]]) -> RecordedBeside:
    """Return what a plan says of published lists."""
    rows: dict[int, list[RankedRow]] = {position: [*map(_row, told)] for position, *_, told in lists}

    def as_listed(one: PublishedList) -> Ranking:
        return Ranking(one.ladder, one.ruleset, 1, rows[one.position], one.games, 0, 0, 0, 0, 0)

    told = [PublishedList(*one[:-1]) for one in lists]
    return RecordedBeside(lambda: told, as_listed, lambda failure, facts: failure.told(facts))


def _row(told: Sequence[Any]) -> RankedRow:
    row = RankedRow._make(told)
    return row if row.places is None else row._replace(places=tuple(row.places))


def comparing_plan(
    code: str, base: str, pack: Any, cells: Sequence[Any], asked: Collection[str], ruleset: Ruleset, as_of: int | None,
    lists: Sequence[tuple[PublishedList, Sequence[RankedRow]]],
) -> str:  # fmt: skip
    """Return the plan to compare the ladders of a pack."""
    return json.dumps({
        "task": "compare", "code": code, "base": base, "ruleset": pack.ruleset_id, "families": pack.families,
        "cells": [[number, cell] for number, cell in zip(pack.cells, cells, strict=True)], "games": pack.games,
        "asked": sorted(asked), "under": ruleset.model_dump(mode="json", exclude_unset=True), "as_of": as_of,
        "lists": [[*one, [[*row] for row in rows]] for one, rows in lists],
    }, sort_keys=True)  # fmt: skip


def comparison_in(content: bytes) -> list[Any]:
    """Return what `compared_pack` found: ladders, lists, failures, the ladders now, and those then."""
    found, published, *others = marshal.loads(content)
    return [from_plain(found), from_plain(published), *others]


def as_plain(value: Any) -> Any:
    """Return a part of an answer as plain values; `from_plain` gives it back."""
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, [as_plain(getattr(value, member.name)) for member in fields(value)]
    if isinstance(value, Fraction):
        return "Fraction", [value.numerator, value.denominator]
    if isinstance(value, datetime):
        return "datetime", [(value - _EPOCH) // timedelta(microseconds=1)]
    if isinstance(value, tuple):
        return "tuple", [*map(as_plain, value)]
    return ("ABSENT", []) if value is ABSENT else value


def from_plain(value: Any) -> Any:
    """Return what `as_plain` was given."""
    if not isinstance(value, tuple):
        return value
    kind, parts = value[0], [*map(from_plain, value[1])]
    if kind == "tuple":
        return tuple(parts)
    if kind == "datetime":
        return _EPOCH + timedelta(microseconds=parts[0])
    return ABSENT if kind == "ABSENT" else Fraction(*parts) if kind == "Fraction" else _KINDS[kind](*parts)

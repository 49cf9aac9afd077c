"""Compare the ladders of a pack under two rulesets in a worker, and pass the results to the coordinator."""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.validation.published_lists import PublishedList
from ratings_ledger.projections.cluster.base import SharedBase
from ratings_ledger.projections.cluster.packs import find_family
from ratings_ledger.projections.diff.comparison import DifferingList, Effect, ImpactSummary, PointsChange
from ratings_ledger.projections.diff.impact import LogLookups
from ratings_ledger.projections.diff.predictions import Quality, QualityPair
from ratings_ledger.projections.diff.what_if import SimulatedLadder, apply_ruleset, compare_simulated_ladders
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.lists.contract import RankedRow
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.published_lists import build_published_ranking
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.stored.computing import MARSHAL_VERSION

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# the dataclasses that `from_plain` restores, by name
_RESULT_TYPES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (DifferingList, Effect, PointsChange, QualityPair, Quality, ImpactSummary, SimulatedLadder)
}


def compare_pack(base: SharedBase, plan: dict[str, Any]) -> bytes:
    """Compare the ladders of a pack with the same ladders under another ruleset. Raises `DamagedObject`.

    The results are in the form that `parse_comparison` reads.
    """
    ruleset, as_of, ruleset_id = Ruleset.model_validate(plan["under"]), plan["as_of"], plan["ruleset"]
    current = Ladders(base.load_facts(plan["cells"], plan["games"]), as_of)
    hypothetical, failed = apply_ruleset(current.facts, ruleset, as_of), list[str]()
    streams_by_side = [
        ladders.streams(ruleset_id) if ruleset_id in ladders.facts.rulesets else {}
        for ladders in (current, hypothetical)
    ]
    versions = [
        version for ladders in (current, hypothetical) for version in ladders.facts.rulesets.get(ruleset_id, ())
    ]
    pack_ladders = {
        name
        for streams in streams_by_side
        for name in streams
        if find_family(versions, parse_name(name).values) in plan["families"]
    }
    requested_ladders = {name for name in pack_ladders if not plan["requested"] or name in plan["requested"]}
    compared, published = (
        compare_simulated_ladders(
            _build_lookups(plan["lists"]), current, hypothetical, ruleset.id, requested_ladders, failed
        )
        if requested_ladders
        else ([], ())
    )
    pack_ladders_by_side = [sorted(pack_ladders & streams.keys()) for streams in streams_by_side]
    results = [to_plain(tuple(compared)), to_plain(published), failed, *pack_ladders_by_side]
    return marshal.dumps(results, MARSHAL_VERSION)


def _build_lookups(lists: Sequence[Sequence[Any]]) -> LogLookups:
    """Build lookups from the published lists in a plan."""
    rows_by_position: dict[int, list[RankedRow]] = {position: [*map(_parse_row, rows)] for position, *_, rows in lists}
    published_lists = [PublishedList(*values[:-1]) for values in lists]
    return LogLookups(
        lambda: published_lists,
        lambda published: build_published_ranking(published, rows_by_position[published.position]),
        lambda failure, facts: failure.describe(facts),
    )


def _parse_row(values: Sequence[Any]) -> RankedRow:
    row = RankedRow(*values)
    return row if row.places is None else row._replace(places=tuple(row.places))


def parse_comparison(result: bytes) -> list[Any]:
    """Parse the result of `compare_pack`: ladders, lists, failures, and the names of the ladders before and after."""
    compared, published, *failures_and_names = marshal.loads(result)
    return [from_plain(compared), from_plain(published), *failures_and_names]


def to_plain(value: Any) -> Any:
    """Convert a part of an answer to plain values for `from_plain`."""
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, [to_plain(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Fraction):
        return "Fraction", [value.numerator, value.denominator]
    if isinstance(value, datetime):
        return "datetime", [(value - _EPOCH) // timedelta(microseconds=1)]
    if isinstance(value, tuple):
        return "tuple", [*map(to_plain, value)]
    return ("ABSENT", []) if value is ABSENT else value


def from_plain(value: Any) -> Any:
    """Restore a value from the plain values of `to_plain`."""
    if not isinstance(value, tuple):
        return value
    kind, parts = value[0], [*map(from_plain, value[1])]
    if kind == "tuple":
        return tuple(parts)
    if kind == "datetime":
        return _EPOCH + timedelta(microseconds=parts[0])
    return ABSENT if kind == "ABSENT" else ExactNumber(*parts) if kind == "Fraction" else _RESULT_TYPES[kind](*parts)

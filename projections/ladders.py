"""Ladders: their names, which games are on which, and the stream of games and adjustments that each replays.

club-catan-elo/3-4      the ruleset's id, then a value for each member of its partition
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import product
from typing import NamedTuple

from ledger.events import Ruleset
from ledger.rejections import shown
from projections.contract import Rule
from projections.facts import LABELS, NONE, Adjustment, Facts
from projections.periods import local_time
from projections.rulesets import Version, band_range, in_force, oldest
from projections.scope import counted, league_starts, why_not_scored, why_out_of_scope


class Inserted(NamedTuple):
    """An adjustment at its place in a stream: before the game of index `game`, `units` are added.

    `version` indexes the version whose start value somebody new has at that moment.
    """

    game: int
    player: int
    units: int
    version: int
    position: int
    occurred_at: int


@dataclass
class Stream:
    """What a ladder replays: its counted games in order, with their counted participants, and its adjustments.

    The players are numbered for the ladder alone; game `g` has the participants `offsets[g]` up to `offsets[g + 1]`,
    sorted by id. `version[g]` indexes `versions`; `row[g]` leads back to the facts. `previous` is the same ladder of
    the season before, where a ruleset carries points over.
    """

    ladder: str
    rule: Rule
    versions: list[Version]
    names: list[str] = field(default_factory=list)
    offsets: array[int] = field(default_factory=lambda: array("q", [0]))
    players: array[int] = field(default_factory=lambda: array("i"))
    columns: list[array[int]] = field(default_factory=list)
    version: array[int] = field(default_factory=lambda: array("h"))
    row: array[int] = field(default_factory=lambda: array("q"))
    adjustments: list[Inserted] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)
    previous: Stream | None = None

    def number(self, facts: Facts, person: int) -> int:
        """The person's number on this ladder, given on first use."""
        number = self.numbers.get(person)
        if number is None:
            number = self.numbers[person] = len(self.names)
            self.names.append(facts.players[person])
        return number


class LadderName(NamedTuple):
    """A parsed ladder name."""

    ruleset_id: str
    values: tuple[str, ...]


def parse_name(name: str) -> LadderName:
    """Split a ladder's name; whether its ruleset exists is another question."""
    ruleset_id, *values = name.split("/")
    return LadderName(ruleset_id, tuple(values))


_VALUE_FORMS = {"month": r"\d{4}-(0[1-9]|1[0-2])", "year": r"\d{4}", "players": r"[1-9]\d*"}


def refuse_name(name: LadderName, ruleset: Ruleset) -> str | None:
    """Why a ladder name does not fit the partition of its ruleset, or None."""
    by, bands = ruleset.partition.by, ruleset.partition.bands
    form = "/".join([ruleset.id, *({"month": "YYYY-MM", "year": "YYYY"}.get(part, part.upper()) for part in by)])
    if len(name.values) != len(by) or not all(name.values):
        return f"the ladders of {ruleset.id} are named {form}" + (
            f", {by[-1].upper()} one of {', '.join(bands)}" if bands else ""
        )
    for part, value in zip(by, name.values, strict=True):
        if part == "players" and bands and value not in bands:
            return f"{shown(value)} is none of the bands {', '.join(bands)}"
        if not (part == "players" and bands) and not re.fullmatch(_VALUE_FORMS.get(part, ".+"), value, re.ASCII):
            return f"{shown(value)} is no {part}; the ladders are named {form}"
    return None


def partition_values(facts: Facts, row: int, ruleset: Ruleset) -> Iterator[tuple[str, ...]]:
    """The partition values of the ladders that a game is on: none, one, or several where bands overlap."""
    choices: list[Sequence[str]] = []
    for part in ruleset.partition.by:
        if part == "players":
            seats = facts.seats[row]
            bands = ruleset.partition.bands
            choices.append(
                [b for b in bands if band_range(b)[0] <= seats <= band_range(b)[1]] if bands else [str(seats)]
            )
        elif part in ("month", "year"):
            local = local_time(facts.occurred_at[row], ruleset.time_zone)
            choices.append([f"{local.year:04d}-{local.month:02d}" if part == "month" else f"{local.year:04d}"])
        else:
            label = facts.label(part, row)
            choices.append([] if label is None else [label])
    return product(*choices)


def order(facts: Facts, as_of: int | None = None) -> list[int]:
    """The rows of the games that occurred up to an instant, in replay order: by time, then by first position."""
    rows: Iterable[int] = range(len(facts.occurred_at))
    if as_of is not None:
        rows = (row for row in rows if facts.occurred_at[row] <= as_of)
    # rows stand in the order of their first positions, and sorting is stable
    return sorted(rows, key=facts.occurred_at.__getitem__)


def streams(
    facts: Facts,
    versions: Sequence[Version],
    *,
    only: tuple[str, ...] | None = None,
    as_of: int | None = None,
    ordered: Sequence[int] | None = None,
) -> dict[str, Stream]:
    """The streams of all ladders of a ruleset, or of the one with the partition values `only`, by name."""
    ruleset = versions[0].ruleset
    if only is not None and any(version.params.carry_over for version in versions):
        every = streams(facts, versions, as_of=as_of, ordered=ordered)
        return {name: stream for name, stream in every.items() if parse_name(name).values == only}
    found: dict[tuple[str, ...], Stream] = {}
    since, version_since = _timeline(versions)
    starts = league_starts(facts, versions) if ruleset.freeze == "league-start" else {}
    slugs = {facts.text_numbers.get(name, NONE - 1) for version in versions for name in version.ruleset.scope.game}
    slug, partition_labels = (
        facts.labels["game"],
        [facts.labels[name] for name in ruleset.partition.by if name in LABELS],
    )
    by_time = any(part in ("month", "year") for part in ruleset.partition.by)
    # games that agree in all that scope and partition look at share their answers
    in_scope: dict[tuple[int, ...], bool] = {}
    ladders: dict[tuple[int, ...], list[tuple[str, ...]]] = {}

    def stream(values: tuple[str, ...]) -> Stream:
        if values not in found:
            widest = max((version.rule.columns for version in versions), key=len)
            name = "/".join([ruleset.id, *values])
            found[values] = Stream(name, versions[0].rule, list(versions), columns=[array("i") for _ in widest])
        return found[values]

    for row in order(facts, as_of) if ordered is None else ordered:
        if slug[row] not in slugs:
            continue
        instant = starts.get(facts.labels["league"][row], facts.occurred_at[row])
        index = version_since[bisect_right(since, instant) - 1]
        if index == NONE:
            continue
        version, seats = versions[index], facts.seats[row]
        kinds = (index, slug[row], facts.labels["kind"][row], facts.labels["group"][row], facts.flags[row], seats)
        if kinds not in in_scope:
            in_scope[kinds] = why_out_of_scope(facts, row, version.ruleset) is None
        if not in_scope[kinds]:
            continue
        cell = (seats, *[label[row] for label in partition_labels], *([row] if by_time else []))
        if cell not in ladders:
            ladders[cell] = [v for v in partition_values(facts, row, ruleset) if only is None or v == only]
        if not ladders[cell]:
            continue
        participants = counted(facts, row, version)
        if why_not_scored(facts, row, version, participants) is None:
            for values in ladders[cell]:
                _add_game(stream(values), facts, row, index, participants)
    for adjustment in sorted(facts.adjustments):
        name = parse_name(adjustment.ladder)
        late = as_of is not None and adjustment.occurred_at > as_of
        if name.ruleset_id == ruleset.id and not late and only in (None, name.values):
            league = dict(zip(ruleset.partition.by, name.values, strict=True)).get("league", "")
            instant = starts.get(facts.text_numbers.get(league, NONE), adjustment.occurred_at)
            _add_adjustment(stream(name.values), facts, adjustment, instant)
    if any(version.params.carry_over for version in versions):
        _chain_seasons(found, ruleset.partition.by.index("season"))
    return {stream.ladder: stream for stream in found.values()}


def _chain_seasons(found: dict[tuple[str, ...], Stream], part: int) -> None:
    """Let each season's ladder know the one before it; seasons follow each other in the order of their ids."""
    before: dict[tuple[str, ...], Stream] = {}
    for values in sorted(found, key=lambda values: values[part]):
        others = values[:part] + values[part + 1 :]
        found[values].previous = before.get(others)
        before[others] = found[values]


def _timeline(versions: Sequence[Version]) -> tuple[list[int], list[int]]:
    """Instants in order, and the index of the version in force from each on; NONE before the first."""
    instants = sorted({version.effective_from for version in versions if version.effective_from is not None})
    chosen = [in_force(versions, instant) for instant in instants]
    indices = {id(version): index for index, version in enumerate(versions)}
    return [-(2**63), *instants], [NONE, *(indices[id(version)] for version in chosen)]


def _add_game(stream: Stream, facts: Facts, row: int, version: int, participants: Sequence[int]) -> None:
    stream.players.extend([stream.number(facts, facts.person_of(p)) for p in participants])
    columns = stream.versions[version].rule.columns
    for name, column in zip(columns, stream.columns, strict=False):
        column.extend(facts.column(name, row, participants))
    for column in stream.columns[len(columns) :]:
        column.extend([NONE] * len(participants))
    stream.offsets.append(len(stream.players))
    stream.version.append(version)
    stream.row.append(row)


def games_before(stream: Stream, facts: Facts, moment: tuple[int, int]) -> int:
    """How many of a stream's games come before a (time, position); games and adjustments share one order."""
    return bisect_left(stream.row, moment, key=lambda row: (facts.occurred_at[row], facts.first_position[row]))


def _add_adjustment(stream: Stream, facts: Facts, adjustment: Adjustment, instant: int) -> None:
    """Put an adjustment in its place; the version in force at `instant`, or the first that comes into force behind it,
    says what somebody new begins with."""
    game = games_before(stream, facts, (adjustment.occurred_at, adjustment.position))
    units = int(Decimal(adjustment.points) * stream.rule.scale)
    version = in_force(stream.versions, instant) or oldest(stream.versions)
    index = next(index for index, other in enumerate(stream.versions) if other is version)
    number = stream.number(facts, adjustment.player)
    stream.adjustments.append(Inserted(game, number, units, index, adjustment.position, adjustment.occurred_at))

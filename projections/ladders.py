"""Ladders: their names, which games are on which, and the stream of games and adjustments that each replays.

    club-catan-elo/3-4      the ruleset's id, then a value for each member of its partition
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import NamedTuple

from ledger.canonical import EPOCH
from ledger.events import Ruleset
from ledger.games import STATUSES
from ledger.rejections import shown
from ledger.zones import zone
from projections.contract import Rule
from projections.facts import ABORTED, NONE, UNRATED, Facts
from projections.rulesets import Version, band_range, in_force


class Start(NamedTuple):
    """An adjustment at its place in a stream: before the game of index `game`, `units` are added."""

    game: int
    player: int
    units: int
    position: int
    occurred_at: int


@dataclass
class Stream:
    """What a ladder replays: its counted games in order, with their counted participants, and its adjustments.

    The players are numbered for the ladder alone; game `g` has the participants `offsets[g]` up to `offsets[g + 1]`,
    sorted by id. `version[g]` indexes `versions`; `row[g]` leads back to the facts.
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
    adjustments: list[Start] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)

    def number(self, facts: Facts, player: int) -> int:
        """The player's number on this ladder, given on first use."""
        number = self.numbers.setdefault(player, len(self.names))
        if number == len(self.names):
            self.names.append(facts.players[player])
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
    form = "/".join([ruleset.id, *(part.upper() for part in by)])
    if len(name.values) != len(by) or not all(name.values):
        return f"the ladders of {ruleset.id} are named {form}" + (f", {by[-1].upper()} one of {', '.join(bands)}" if bands else "")
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
            choices.append([b for b in bands if band_range(b)[0] <= seats <= band_range(b)[1]] if bands else [str(seats)])
        elif part in ("month", "year"):
            local = _local(facts.occurred_at[row], ruleset.time_zone)
            choices.append([f"{local.year:04d}-{local.month:02d}" if part == "month" else f"{local.year:04d}"])
        else:
            label = facts.label(part, row)
            choices.append([] if label is None else [label])
    return product(*choices)


def _local(instant: int, time_zone: str) -> datetime:
    return (EPOCH + timedelta(microseconds=instant)).astimezone(zone(time_zone))


def why_out_of_scope(facts: Facts, row: int, ruleset: Ruleset) -> str | None:
    """Why the ruleset does not score the game at all, or None."""
    scope = ruleset.scope
    game, kind = facts.label("game", row), facts.label("kind", row)
    if game not in scope.game:
        return f"{ruleset.id} scores games of {', '.join(scope.game)}, this is {game}"
    if kind not in scope.kind:
        return f"{ruleset.name} scores games of kind {', '.join(scope.kind)}, this is of kind {kind}"
    if facts.flags[row] & ABORTED:
        return "the game was ended by agreement (aborted)"
    if facts.flags[row] & UNRATED:
        return "the game was not rated"
    if facts.label("group", row) in scope.exclude_group:
        return f"{ruleset.name} leaves out the group {facts.label('group', row)}"
    seats = facts.seats[row]
    if seats < scope.players_min or (scope.players_max is not None and seats > scope.players_max):
        most = "" if scope.players_max is None else f" to {scope.players_max}"
        return f"{ruleset.name} scores games of {scope.players_min}{most or ' or more'} players, this has {seats}"
    return None


def why_left_out(facts: Facts, row: int, participant: int, ruleset: Ruleset) -> str | None:
    """Why a participant does not count although his game may, or None. `participant` indexes the participants' arrays."""
    status = STATUSES[facts.status[participant]]
    if status in ruleset.scope.exclude_status:
        return f"{ruleset.name} leaves out players with the status {status}"
    if ruleset.scope.exclude_accounts:
        account = facts.account(facts.player[participant], facts.occurred_at[row])
        if account in ruleset.scope.exclude_accounts:
            return f"{ruleset.name} leaves out players with a {account} account"
    return None


def counted(facts: Facts, row: int, version: Version) -> list[int]:
    """The counted participants of a game in the order of their ids, as indices of the participants' arrays."""
    first = facts.start[row]
    everybody = range(first, first + facts.count[row])
    return sorted(
        (p for p in everybody if why_left_out(facts, row, p, version.ruleset) is None),
        key=lambda p: facts.players[facts.player[p]],
    )


def why_not_counted(facts: Facts, row: int, versions: Sequence[Version]) -> tuple[Version | None, list[int], str | None]:
    """The version that scores a game, its counted participants, and why the game does not count after all, or None."""
    version = in_force(versions, facts.occurred_at[row])
    if version is None:
        first = min((v.ruleset.effective_from for v in versions if v.ruleset.effective_from), default=None)
        return None, [], f"no version of {versions[0].ruleset.id} was in force then" + (f" (the first from {first})" if first else "")
    if reason := why_out_of_scope(facts, row, version.ruleset):
        return version, [], reason
    participants = counted(facts, row, version)
    if len(participants) < 2:
        return version, participants, "fewer than two counted players"
    columns = [[facts.column(name)[p] for p in participants] for name in version.rule.columns]
    return version, participants, version.rule.check(len(participants), columns, version.params)


def order(facts: Facts, as_of: int | None = None) -> list[int]:
    """The rows of the games that occurred up to an instant, in replay order: by time, then by first position."""
    rows = range(len(facts.occurred_at))
    if as_of is not None:
        rows = [row for row in rows if facts.occurred_at[row] <= as_of]  # type: ignore[assignment]
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
    first = versions[0]
    found: dict[str, Stream] = {}
    games = {facts.text_numbers.get(name, NONE - 1) for version in versions for name in version.ruleset.scope.game}
    game_label = facts.labels["game"]

    def stream(values: tuple[str, ...]) -> Stream:
        name = "/".join([first.ruleset.id, *values])
        if name not in found:
            found[name] = Stream(name, first.rule, list(versions), columns=[array("i") for _ in _widest(versions)])
        return found[name]

    for row in order(facts, as_of) if ordered is None else ordered:
        if game_label[row] not in games:
            continue
        ladders = [values for values in partition_values(facts, row, first.ruleset) if only is None or values == only]
        if not ladders:
            continue
        version, participants, reason = why_not_counted(facts, row, versions)
        if version is None or reason is not None:
            continue
        for values in ladders:
            _add_game(stream(values), facts, row, version, participants)
    for adjustment in sorted(facts.adjustments):
        name = parse_name(adjustment.ladder)
        late = as_of is not None and adjustment.occurred_at > as_of
        if name.ruleset_id == first.ruleset.id and not late and only in (None, name.values):
            _add_adjustment(stream(name.values), facts, adjustment.player, adjustment.points,
                            adjustment.position, adjustment.occurred_at)  # fmt: skip
    return found


def _widest(versions: Sequence[Version]) -> tuple[str, ...]:
    return max((version.rule.columns for version in versions), key=len)


def _add_game(stream: Stream, facts: Facts, row: int, version: Version, participants: list[int]) -> None:
    stream.players.extend(stream.number(facts, facts.player[p]) for p in participants)
    for name, column in zip(version.rule.columns, stream.columns, strict=False):
        source = facts.column(name)
        column.extend(source[p] for p in participants)
    for column in stream.columns[len(version.rule.columns) :]:
        column.extend(NONE for _ in participants)
    stream.offsets.append(len(stream.players))
    stream.version.append(stream.versions.index(version))
    stream.row.append(row)


def _add_adjustment(stream: Stream, facts: Facts, player: int, points: str, position: int, occurred_at: int) -> None:
    # behind every game that comes before it in replay order; games and adjustments share one order
    low, high = 0, len(stream.row)
    while low < high:
        middle = (low + high) // 2
        row = stream.row[middle]
        earlier = (facts.occurred_at[row], facts.first_position[row]) < (occurred_at, position)
        low, high = (middle + 1, high) if earlier else (low, middle)
    units = int(Decimal(points) * stream.rule.scale)
    stream.adjustments.append(Start(low, stream.number(facts, player), units, position, occurred_at))

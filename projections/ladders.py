"""Ladders: their names, which games are on which, and the stream of games and adjustments that each replays.

club-catan-elo/3-4      the ruleset's id, then a value for each member of its partition
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
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
from projections.facts import ABORTED, LABELS, NONE, UNRATED, VOIDED, Adjustment, Facts, RuleFailure
from projections.rulesets import Version, band_range, in_force


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
    form = "/".join([ruleset.id, *(part.upper() for part in by)])
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
            local = _local(facts.occurred_at[row], ruleset.time_zone)
            choices.append([f"{local.year:04d}-{local.month:02d}" if part == "month" else f"{local.year:04d}"])
        else:
            label = facts.label(part, row)
            choices.append([] if label is None else [label])
    return product(*choices)


_B5_SEASON = re.compile(r"(\d{4})-([123])", re.ASCII)


def why_out_of_season(facts: Facts, row: int, ruleset: Ruleset) -> str | None:
    """Why a game is dated outside its Babylon 5 season, or None: 2010-1, -2, -3 begin in January, May, September."""
    season = _B5_SEASON.fullmatch(facts.label("season", row) or "")
    if season is None or "season" not in ruleset.partition.by or facts.label("kind", row) != "b5":
        return None
    local = _local(facts.occurred_at[row], ruleset.time_zone)
    year, first = int(season[1]), 4 * int(season[2]) - 3
    if local.year == year and first <= local.month < first + 4:
        return None
    months = f"{year}-{first:02d} to {year}-{first + 3:02d}"
    return f"{local.date()} is not in the season {season[0]}, which runs from {months} ({ruleset.time_zone})"


def _local(instant: int, time_zone: str) -> datetime:
    moment = EPOCH + timedelta(microseconds=instant)
    try:
        return moment.astimezone(zone(time_zone))
    except OverflowError:
        return moment  # on the first and the last day of all, where the zone's own date has no year


def why_out_of_scope(facts: Facts, row: int, ruleset: Ruleset) -> str | None:
    """Why the ruleset does not score the game at all, or None."""
    scope = ruleset.scope
    game, kind = facts.label("game", row), facts.label("kind", row)
    if facts.flags[row] & VOIDED:
        return "the game is voided"
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
    """Why a participant (an index of the participants' arrays) does not count although his game may, or None."""
    status = STATUSES[facts.status[participant]]
    if status in ruleset.scope.exclude_status:
        return f"{ruleset.name} leaves out players with the status {status}"
    if ruleset.scope.exclude_accounts:
        account = facts.account(facts.person_of(participant), facts.occurred_at[row])
        if account in ruleset.scope.exclude_accounts:
            return f"{ruleset.name} leaves out players with a {account} account"
    return None


def counted(facts: Facts, row: int, version: Version) -> list[int]:
    """The counted participants of a game in the order of their ids, as indices of the participants' arrays."""
    participants = sorted(range(facts.start[row], facts.start[row] + facts.count[row]), key=facts.name_of)
    scope = version.ruleset.scope
    if not (scope.exclude_status or scope.exclude_accounts):
        return participants
    return [p for p in participants if why_left_out(facts, row, p, version.ruleset) is None]


def why_not_scored(facts: Facts, row: int, version: Version, participants: Sequence[int]) -> str | None:
    """Why the rule does not score a game in scope with these counted participants, or None."""
    if len(participants) < 2:
        return "fewer than two counted players"
    if facts.renamed and len({facts.person_of(p) for p in participants}) < len(participants):
        return "one person takes part under two ids"
    if reason := why_out_of_season(facts, row, version.ruleset):
        return reason
    if version.rule.check is None:
        return None
    columns = [facts.column(name, row, participants) for name in version.rule.columns]
    try:
        return version.rule.check(len(participants), columns, version.params)
    except Exception as error:
        raise RuleFailure(version.ruleset.id, f"{type(error).__name__}: {error}", row) from error


def why_not_counted(
    facts: Facts, row: int, versions: Sequence[Version]
) -> tuple[Version | None, list[int], str | None]:
    """The version that scores a game, its counted participants, and why the game does not count after all, or None."""
    version = in_force(versions, facts.occurred_at[row])
    if version is None:
        first = min((v.ruleset.effective_from for v in versions if v.ruleset.effective_from), default=None)
        since = f" (the first from {first})" if first else ""
        return None, [], f"no version of {versions[0].ruleset.id} was in force then{since}"
    if reason := why_out_of_scope(facts, row, version.ruleset):
        return version, [], reason
    participants = counted(facts, row, version)
    return version, participants, why_not_scored(facts, row, version, participants)


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
        index = version_since[bisect_right(since, facts.occurred_at[row]) - 1] if slug[row] in slugs else NONE
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
            _add_adjustment(stream(name.values), facts, adjustment)
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


def _add_adjustment(stream: Stream, facts: Facts, adjustment: Adjustment) -> None:
    game = games_before(stream, facts, (adjustment.occurred_at, adjustment.position))
    units = int(Decimal(adjustment.points) * stream.rule.scale)
    version = in_force(stream.versions, adjustment.occurred_at) or stream.versions[0]
    index = next(index for index, other in enumerate(stream.versions) if other is version)
    number = stream.number(facts, adjustment.player)
    stream.adjustments.append(Inserted(game, number, units, index, adjustment.position, adjustment.occurred_at))

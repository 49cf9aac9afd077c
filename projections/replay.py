"""Replay: drive a stream through its rule, from the beginning. There is no other way to points.

Interpreted; the loop touches arrays and integers only, so that it can be compiled as it stands.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from projections.contract import UNITS_MAX
from projections.facts import RuleFailure
from projections.ladders import Stream
from projections.rulesets import Version


class Step(NamedTuple):
    """What one game or adjustment did to one player. Of an adjustment, `game` is None and `position` its own."""

    game: int | None
    before: int
    change: int
    position: int | None = None


@dataclass
class Outcome:
    """Points after a replay, by the stream's player numbers; a player with `seen` 0 is not on the ladder yet.

    `carried` are the points by player id with which somebody would begin who was on the ladder of an earlier season;
    `started` is the sum of what everybody on the ladder began with. `changes` are those of every participant of every
    game, in the order of the stream.
    """

    points: array[int]
    games: array[int]
    seen: array[int]
    carried: dict[str, int]
    changes: array[int]
    started: int = 0
    minted: int = 0
    burned: int = 0
    adjusted: int = 0
    last_version: int | None = None


def start_of(player: str, version: Version, carried: dict[str, int]) -> int:
    """The points, in units, with which a player comes onto a ladder."""
    return carried.get(player, version.start) if version.params.carry_over else version.start


def _carried(stream: Stream) -> dict[str, int]:
    """What everybody had at the end of the last of the earlier seasons that he was in, by player id."""
    seasons: list[Stream] = []
    before = stream.previous
    while before is not None:
        seasons.append(before)
        before = before.previous
    carried: dict[str, int] = {}
    for season in reversed(seasons):
        # each looks back no further: what it needs of the seasons before is carried already
        outcome, _ = replay(season, carried=carried)
        carried |= {name: outcome.points[n] for n, name in enumerate(season.names) if outcome.seen[n]}
    return carried


def replay(
    stream: Stream, *, stop: int | None = None, watch: int | None = None, carried: dict[str, int] | None = None
) -> tuple[Outcome, list[Step]]:
    """The points after all games, or before the game of index `stop`; with the steps of the player `watch`.

    `carried` is replayed from the seasons before unless it is given. Raises `RuleFailure`.
    """
    players = len(stream.names)
    zeros = bytes(8 * players)
    carried = _carried(stream) if carried is None else carried
    outcome = Outcome(array("q", zeros), array("q", zeros), array("b", bytes(players)), carried, array("q"))
    points, games, seen = outcome.points, outcome.games, outcome.seen
    steps: list[Step] = []
    scoring = [(v.rule.score, v.constants, v.rule.table(), v) for v in stream.versions]
    last = len(stream.row) if stop is None else stop
    widest = max((stream.offsets[g + 1] - stream.offsets[g] for g in range(last)), default=0)
    change = array("q", bytes(8 * widest))
    adjustments = iter(stream.adjustments)
    adjustment = next(adjustments, None)
    offsets, everybody = stream.offsets, stream.players

    for game in range(last + 1):
        while adjustment is not None and adjustment.game == game:
            player = adjustment.player
            if not seen[player]:
                seen[player] = 1
                points[player] = start_of(stream.names[player], stream.versions[adjustment.version], carried)
                outcome.started += points[player]
            if player == watch:
                steps.append(Step(None, points[player], adjustment.units, adjustment.position))
            if abs(points[player] + adjustment.units) > UNITS_MAX:
                raise RuleFailure(stream.ladder, "the points grow out of bounds", position=adjustment.position)
            points[player] += adjustment.units
            outcome.adjusted += adjustment.units
            adjustment = next(adjustments, None)
        if game == last:
            break
        low, high = offsets[game], offsets[game + 1]
        n = high - low
        participants = everybody[low:high]
        score, constants, table, version = scoring[stream.version[game]]
        for player in participants:
            if not seen[player]:
                seen[player] = 1
                points[player] = start_of(stream.names[player], version, carried)
                outcome.started += points[player]
        before = [points[player] for player in participants]
        columns = [column[low:high] for column in stream.columns]
        try:
            minted = score(n, before, columns, constants, table, change)
        except Exception as error:
            raise RuleFailure(stream.ladder, f"{type(error).__name__}: {error}", stream.row[game]) from error
        total = 0
        for i in range(n):
            player = participants[i]
            points[player] = before[i] + change[i]
            games[player] += 1
            total += change[i]
            if player == watch:
                steps.append(Step(game, before[i], change[i]))
        outcome.changes.extend(change[:n])
        if minted < total:
            raise RuleFailure(stream.ladder, "the books do not balance", stream.row[game])
        outcome.minted += minted
        outcome.burned += minted - total
    if last:
        outcome.last_version = stream.version[last - 1]
    return outcome, steps


def course(stream: Stream, outcome: Outcome) -> Iterator[tuple[int, Sequence[int], list[int]]]:
    """(game, participants, their points before it) of every game of a stream that was replayed to its end."""
    points: dict[int, int] = {}

    def on_ladder(player: int, version: int) -> int:
        return points.setdefault(player, start_of(stream.names[player], stream.versions[version], outcome.carried))

    adjustments = iter([*stream.adjustments, None])
    adjustment = next(adjustments)
    for game in range(len(stream.row)):
        while adjustment is not None and adjustment.game == game:
            points[adjustment.player] = on_ladder(adjustment.player, adjustment.version) + adjustment.units
            adjustment = next(adjustments)
        low, high = stream.offsets[game], stream.offsets[game + 1]
        participants = stream.players[low:high]
        before = [on_ladder(player, stream.version[game]) for player in participants]
        yield game, participants, before
        for i, player in enumerate(participants):
            points[player] = before[i] + outcome.changes[low + i]

"""A ladder at some coordinates as it concerns one player: his points, his games, and what everybody had before each.

A world outlives changes of the facts that it was made from.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from projections.queries.standings import Ladders
from projections.replay.containment import score
from projections.replay.ladders import Inserted, Stream, parse_name
from projections.replay.replay import replay, start_of
from projections.rulesets.versions import Version

Moment = tuple[int, int]  # when a game ended, and the position of its first record


class Played(NamedTuple):
    """What a rule gets to see of a game, but for the points, and what the game gave the player."""

    version: Version
    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    change: int
    row: int


class World:
    """A ladder replayed, and the one of `candidates` (ids in order of preference) who is on it.

    Nobody is on it where its ruleset is not published.
    """

    def __init__(self, ladders: Ladders, stream: Stream, candidates: Iterable[str]) -> None:
        """Raises `RuleFailure`."""
        facts = ladders.facts
        self.stream = stream
        self.candidates = list(candidates)
        self.outcome, _ = replay(stream)
        had = self._had(ladders)
        self.player = next((name for name in self.candidates if name in had), None)
        self.points = None if self.player is None else had[self.player]
        self.moments: list[Moment] = [(facts.occurred_at[row], facts.first_position[row]) for row in stream.row]

    def _had(self, ladders: Ladders) -> Mapping[str, Fraction]:
        """The points of those candidates who are on the ladder."""
        if parse_name(self.stream.ladder).ruleset_id not in ladders.facts.rulesets:
            return {}
        scale = self.stream.rule.scale
        if self.stream.rule.ranking == "points":
            there = [name for name in self.candidates if name in self._numbers]
            return {name: Fraction(self.outcome.points[self._numbers[name]], scale) for name in there}
        rows = ladders.ranked(self.stream, self.outcome)[0].rows
        return {row.player: row.value(scale) for row in rows}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.stream.names)}

    @cached_property
    def _slots(self) -> dict[int, list[int]]:
        """For everybody where he takes part, as indices of the stream's participants."""
        found: dict[int, list[int]] = {}
        for slot, player in enumerate(self.stream.players):
            found.setdefault(player, []).append(slot)
        return found

    def _games_of(self, name: str | None) -> Iterator[tuple[int, int]]:
        """(game, slot) of somebody's games, in order."""
        for slot in self._slots.get(self._numbers.get(name or "", -1), ()):
            yield bisect_right(self.stream.offsets, slot) - 1, slot

    @cached_property
    def played(self) -> dict[Moment, Played]:
        """The player's games."""
        stream, found = self.stream, {}
        for game, slot in self._games_of(self.player):
            low, high = stream.offsets[game], stream.offsets[game + 1]
            names = tuple(stream.names[number] for number in stream.players[low:high])
            columns = tuple(tuple(column[low:high]) for column in stream.columns)
            version = stream.versions[stream.version[game]]
            found[self.moments[game]] = Played(version, names, columns, self.outcome.changes[slot], stream.row[game])
        return found

    @cached_property
    def adjusted(self) -> list[Inserted]:
        """The player's adjustments."""
        return self._adjusted_of(self.player)

    def _adjusted_of(self, name: str | None) -> list[Inserted]:
        return [a for a in self.stream.adjustments if self.stream.names[a.player] == name]

    def points_before(self, name: str, moment: Moment, version: Version) -> int:
        """What somebody had just before a moment, in units; what he begins with before he is on the ladder."""
        if name not in self._courses:
            self._courses[name] = self._course_of(name)
        moments, values = self._courses[name]
        index = bisect_left(moments, moment)
        return values[index - 1] if index else start_of(name, version, self.outcome.carried)

    @cached_property
    def _courses(self) -> dict[str, tuple[list[Moment], list[int]]]:
        return {}

    def _course_of(self, name: str) -> tuple[list[Moment], list[int]]:
        """The moments at which somebody's points changed, and what he had from each on."""
        changes = [
            (self.moments[game], self.outcome.changes[slot], self.stream.version[game])
            for game, slot in self._games_of(name)
        ]
        changes += [((a.occurred_at, a.position), a.units, a.version) for a in self._adjusted_of(name)]
        moments: list[Moment] = []
        values: list[int] = []
        for moment, units, version in sorted(changes):
            had = values[-1] if values else start_of(name, self.stream.versions[version], self.outcome.carried)
            moments.append(moment)
            values.append(had + units)
        return moments, values


def own_part(old: World, new: World) -> Fraction:
    """What the player's games and adjustments give otherwise in `new`, each with everybody's points as in `old`."""
    units = sum(a.units for a in new.adjusted) - sum(a.units for a in old.adjusted)
    for moment in old.played.keys() | new.played.keys():
        was, now = old.played.get(moment), new.played.get(moment)
        if was is not None and now is not None and was[:3] == now[:3]:
            continue
        if was is not None:
            units -= was.change
        if now is not None:
            units += _scored(old, now, moment, str(new.player))
    return Fraction(units, new.stream.rule.scale)


def _scored(world: World, played: Played, moment: Moment, player: str) -> int:
    """What a game would give a player if everybody came to it with the points that he has in a world."""
    version = played.version
    points = [world.points_before(name, moment, version) for name in played.names]
    _, change = score(version, world.stream.ladder, played.row, points, played.columns)
    return change[played.names.index(player)]

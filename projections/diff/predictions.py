"""Measure the quality of predictions from ratings, over all pairs of counted players in all counted games.

    Brier score  the mean of (expected - scored)^2                              (G. Brier, 1950)
    log loss     the mean of -(scored ln expected + (1 - scored) ln(1 - expected))
    accuracy     the share of pairs without a tie in which the favourite placed better; equal favourites count half

`expected` is the rule's expected score from the states before the game; `scored` is 1 for the better place, 1/2 for a
tie and 0 for the worse place. The favourite is the player with more points or, under a rule with state, with the higher
expected score.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.contract import MISSING
from ratings_ledger.projections.expected_scores import ONE
from ratings_ledger.projections.facts.columns import Column, Facts
from ratings_ledger.projections.queries.results import ABSENT, Absent, Result
from ratings_ledger.projections.replay import loops, rule_calls
from ratings_ledger.projections.replay.period_slots import PeriodSlots
from ratings_ledger.projections.replay.replay import build_rule_arrays, read_gap_rows, read_rule_columns, replay
from ratings_ledger.projections.replay.rule_calls import bring_to_game
from ratings_ledger.projections.replay.streams import Stream
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.rule_errors import is_built_in
from ratings_ledger.projections.rulesets.versions import Version


@dataclass(frozen=True, slots=True)
class Quality(Result):
    """The quality of the predictions for `pairs` pairs of players, of which `decided` did not tie.

    `log_loss` and `brier` are None without pairs, `accuracy` without decided pairs. `unplaced` counts the games without
    places, which have no predictions.
    """

    pairs: int
    decided: int
    log_loss: float | None
    brier: float | None
    accuracy: float | None
    unplaced: int | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class QualityPair(Result):
    """The prediction quality of both sides of a comparison, None for a side whose rule cannot predict."""

    before: Quality | None
    after: Quality | None


def measure_quality(facts: Facts, stream: Stream) -> Quality | None:
    """Return the quality of predictions from the points of a ladder; None if one of its rules cannot predict.

    Raises `RuleFailure`.
    """
    if any(version.rule.chance is None for version in stream.versions):
        return None
    trace = replay(stream)
    keeps_only_points = not any(version.rule.state for version in stream.versions)
    is_long = compiling.is_worthwhile(len(stream.rows))
    quality = _measure_compiled(stream, trace.points_before) if is_long and keeps_only_points else None
    return quality or _measure_interpreted(facts, trace)


def _measure_compiled(stream: Stream, before: Column) -> Quality | None:
    """Measure a long ladder with compiled code; None if a rule cannot be compiled or fails.

    `_measure_interpreted` then measures the ladder, or reports the game at which the rule fails.
    """
    rules = {version.rule for version in stream.versions}
    place_indexes = {rule.columns.index("place") if "place" in rule.columns else None for rule in rules}
    place_index = place_indexes.pop()
    if place_indexes or place_index is None or any(not is_built_in(rule) for rule in rules):
        return None
    place, counts, sums = stream.columns[place_index], array("q", bytes(32)), array("d", bytes(32))
    columns = [*map(arrays.as_numpy, (stream.offsets, place, before, counts, sums))]
    for first, last in pairwise([*arrays.change_indices(stream.version_indices), len(stream.rows)]):
        version = stream.versions[stream.version_indices[first]]
        predict = compiling.compile_with_rule(loops.predict, version.rule, (("chance", version.rule.chance),))
        if predict(*build_rule_arrays(version), first, last, *columns) != loops.OK:
            return None
    return _build_quality(counts, sums[0] + sums[1], sums[2] + sums[3])


def _measure_interpreted(facts: Facts, trace: Trace) -> Quality:
    """Measure a ladder that is short, or whose rules keep a state or cannot be compiled. Raises `RuleFailure`.

    Two players of the same side are not a pair.
    """
    stream, reader = trace.stream, _StateReader(trace)
    squares: list[float] = []
    losses: list[float] = []
    decided = doubled_hits = unplaced = 0  # an equal favourite is half a hit
    for game, (low, high) in enumerate(pairwise(stream.offsets)):
        version, row = stream.versions[stream.version_indices[game]], stream.rows[game]
        places = _read_places(facts, row, [stream.persons[player] for player in stream.players[low:high]])
        if not all(places):
            unplaced += 1
            continue
        points, states, columns = reader.read_game(version, row, low, high)
        sides = columns[version.rule.columns.index("team")] if "team" in version.rule.columns else []
        for left, right in combinations(range(len(points)), 2):
            if sides and sides[left] == sides[right] != MISSING:
                continue
            expected = (
                rule_calls.compute_expected_score(version, stream.ladder, row, left, right, states, columns) / ONE
            )
            scored = 1.0 if places[left] < places[right] else 0.0 if places[left] > places[right] else 0.5
            squares.append((expected - scored) ** 2)
            losses.append(-scored * math.log(expected) - (1 - scored) * math.log(1 - expected))
            if scored != 0.5:
                decided += 1
                lead = points[left] - points[right] if not version.rule.state else expected - 0.5
                doubled_hits += 1 if lead == 0 else 2 * ((lead > 0) == (scored == 1.0))
    counts = (len(squares), decided, doubled_hits, unplaced)
    return _build_quality(counts, math.fsum(squares), math.fsum(losses))


class _StateReader:
    """A reader of the games of a replayed ladder: the players' points and states before each game, and its columns."""

    def __init__(self, trace: Trace) -> None:
        self.trace, self.stream = trace, trace.stream
        self.gaps: Any = None
        self.columns = self.stream.columns
        if any(version.rule.state for version in self.stream.versions):
            self.columns = read_rule_columns(self.stream, trace.gaps)
            self.gaps = read_gap_rows(trace.gaps)
            if self.stream.periods is not None:
                slots = PeriodSlots(self.stream, trace.gaps)
                self.gaps = slots.gaps[:, slots.entry]

    def read_game(self, version: Version, row: int, low: int, high: int) -> tuple[list[int], Any, list[list[int]]]:
        """Return the points and the states of a game's participants, and the game's columns. Raises `RuleFailure`.

        The game has the slots from `low` to before `high`. For a rule without state, the states are the points.
        """
        columns = [column[low:high].tolist() for column in self.columns[: len(version.rule.columns)]]
        points = self.trace.points_before[low:high].tolist()
        if not version.rule.state:
            return points, points, columns
        stored = zip(*(before[low:high] for before in self.trace.states_before[: version.rule.width]), strict=True)
        gaps = zip(*self.gaps[:, low:high].tolist(), strict=True)
        states = [
            bring_to_game(version, self.stream.ladder, row, tuple(map(int, state)), *gap)
            for state, gap in zip(stored, gaps, strict=True)
        ]
        return points, [[*column] for column in zip(*states, strict=True)], columns


def _build_quality(counts: Sequence[int], squares: float, losses: float) -> Quality:
    """Build the quality from the counts of `loops.predict` and the sums of squared errors and losses."""
    pairs, decided, doubled_hits, unplaced = counts
    return Quality(
        pairs=pairs,
        decided=decided,
        log_loss=losses / pairs if pairs else None,
        brier=squares / pairs if pairs else None,
        accuracy=doubled_hits / (2 * decided) if decided else None,
        unplaced=unplaced or ABSENT,
    )


def _read_places(facts: Facts, row: int, persons: Sequence[int]) -> list[int]:
    """Return the places of these persons in a game, 0 in a game without places."""
    first = facts.start[row]
    places = {facts.person_of(slot): facts.place[slot] for slot in range(first, first + facts.count[row])}
    return [places[person] for person in persons]

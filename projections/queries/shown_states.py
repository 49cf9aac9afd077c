"""What people see of rules that keep several numbers about a player: aged to a day, by name, and exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol

from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import MISSING, StateValues, decimal, exact
from ratings_ledger.projections.contract import State as StateColumn
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.local_days import local_days
from ratings_ledger.projections.replay.periods import number_day
from ratings_ledger.projections.replay.rule_calls import age_state, is_provisional
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.versions import Version

# the number that stands behind the rating it is about
DEVIATION = "deviation"


@dataclass(frozen=True, slots=True)
class ShownState:
    """A player's numbers by name, those that people see: as decimals, and exactly; and whether they are provisional."""

    decimals: dict[str, str]
    exact: dict[str, str]
    provisional: bool


class StatesSeen(Protocol):
    """What people see of the players of a list."""

    def of(self, player: str) -> ShownState:
        """Return what people see of a player. Raises `RuleFailure`."""


class ShownStates:
    """What people see of everybody on a ladder, computed for whom they ask about.

    States are aged to `as_of`, without it to the last counted game of the ladder: the time of the question decides
    nothing.
    """

    def __init__(self, facts: Facts, trace: Trace, version: Version, as_of: int | None) -> None:
        self._facts, self._trace, self._version, self._as_of = facts, trace, version, as_of

    @cached_property
    def _day(self) -> int:
        """Return the day to which states are aged; `MISSING` on a ladder without games."""
        zone, last = self._version.ruleset.time_zone, self._trace.last_row
        if self._as_of is None and last is None:
            return MISSING
        instant = self._facts.occurred_at[last] if self._as_of is None else self._as_of
        return int(local_days(np.array([instant]), zone)[0])

    def aged(self, player: str) -> StateValues:
        """Return the numbers of a player on the ladder on the day. Raises `RuleFailure`."""
        trace, number = self._trace, self._number(player)
        state, elapsed = trace.state(number)[: self._version.rule.width], self._elapsed(number)
        return age_state(self._version, trace.stream.ladder, None, state, elapsed) if elapsed > 0 else state

    def _number(self, player: str) -> int:
        """Return the number of a player on the ladder."""
        return self._trace.stream.numbers[self._facts.person[self._facts.player_numbers[player]]]

    def _elapsed(self, number: int) -> int:
        """Return how much time passed since a player's last game: days, or rating periods."""
        if self._day == MISSING:
            return 0
        if self._trace.stream.periods is None:
            last = self._trace.gaps.last_day[number]
            return 0 if last == MISSING else self._day - last
        period = self._trace.last_period_of(number)
        return 0 if period is None else number_day(self._day, self._version.ruleset.period) - period

    def of(self, player: str) -> ShownState:
        """Return what people see of a player. Raises `RuleFailure`."""
        return show_state_after(
            self._version, self._trace.stream.ladder, self.aged(player), self._trace.gaps.played[self._number(player)]
        )


def mark_rating(rating: str, state: Mapping[str, str], *, is_provisional: bool) -> str:
    """Return a rating as people write it: with its deviation, and a question mark while it is not reliable.

    >>> mark_rating("1638", {"deviation": "110"}, is_provisional=True), mark_rating("1500", {}, is_provisional=False)
    ('1638 ± 110?', '1500')
    """
    deviation, mark = state.get(DEVIATION), "?" if is_provisional else ""
    return f"{rating} ± {deviation}{mark}" if deviation else f"{rating}{mark}"


def show_state_after(version: Version, ladder: str, state: StateValues, games: int) -> ShownState:
    """Return what people see of a state after so many games: those on the ladder, and those that count as played
    before it. Nothing else decides which ratings are provisional. Raises `RuleFailure`.
    """
    return show_state(version, state, is_provisional(version, ladder, state, games))


def show_state(version: Version, state: StateValues, provisional: bool = False) -> ShownState:
    """Return what people see of some numbers."""
    rule = version.rule
    seen = [(rule.state[index], state[index]) for index in rule.shown_columns]
    return ShownState(
        {column.name: decimal(units, column.scale, column.decimals) for column, units in seen},
        {column.name: exact(units, column.scale) for column, units in seen},
        provisional,
    )


def exact_states(columns: Sequence[StateColumn], state: StateValues) -> dict[str, str]:
    """Return all numbers of a state by name, as exact reduced strings."""
    return {column.name: str(Fraction(units, column.scale)) for column, units in zip(columns, state, strict=True)}

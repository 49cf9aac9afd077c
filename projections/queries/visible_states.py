"""Build the visible part of a player's state if the rule keeps several numbers: aged to a day, rounded and exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol

from ratings_ledger.projections.arrays import local_days, np
from ratings_ledger.projections.contract import MISSING, StateValues, decimal, exact
from ratings_ledger.projections.contract import State as StateColumn
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.replay.periods import find_period_number
from ratings_ledger.projections.replay.rule_calls import age_state, is_provisional
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.versions import Version

# the state column that follows the rating in text, as in 1638 ± 110
DEVIATION = "deviation"


@dataclass(frozen=True, slots=True)
class VisibleState:
    """A player's visible numbers by name, as decimals and exactly, and whether they are provisional."""

    decimals: dict[str, str]
    exact: dict[str, str]
    provisional: bool


class VisibleStates(Protocol):
    """The visible states of the players on a list."""

    def of(self, player: str) -> VisibleState:
        """Return the visible state of a player. Raises `RuleFailure`."""


class LadderStates:
    """The visible states of the players on a ladder, computed on demand.

    States are aged to `as_of` or, without it, to the ladder's last counted game. So they do not depend on the current
    time.
    """

    def __init__(self, facts: Facts, trace: Trace, version: Version, as_of: int | None) -> None:
        self._facts, self._trace, self._version, self._as_of = facts, trace, version, as_of

    @cached_property
    def _day(self) -> int:
        """Return the day to which states are aged; `MISSING` without `as_of` on a ladder without games."""
        zone, last = self._version.ruleset.time_zone, self._trace.last_row
        if self._as_of is None and last is None:
            return MISSING
        instant = self._facts.occurred_at[last] if self._as_of is None else self._as_of
        return int(local_days(np.array([instant]), zone)[0])

    def age(self, player: str) -> StateValues:
        """Return a player's state aged to the day. Raises `RuleFailure`."""
        trace, number = self._trace, self._find_number(player)
        state, elapsed = trace.state(number)[: self._version.rule.width], self._count_elapsed(number)
        return age_state(self._version, trace.stream.ladder, None, state, elapsed) if elapsed > 0 else state

    def _find_number(self, player: str) -> int:
        """Return a player's number on the ladder."""
        return self._trace.stream.numbers[self._facts.person[self._facts.player_numbers[player]]]

    def _count_elapsed(self, number: int) -> int:
        """Return the number of days, or rating periods, since a player's last game."""
        if self._day == MISSING:
            return 0
        if self._trace.stream.periods is None:
            last = self._trace.gaps.last_day[number]
            return 0 if last == MISSING else self._day - last
        period = self._trace.last_period_of(number)
        return 0 if period is None else find_period_number(self._day, self._version.ruleset.period) - period

    def of(self, player: str) -> VisibleState:
        """Return the visible state of a player. Raises `RuleFailure`."""
        games = self._trace.gaps.games_played[self._find_number(player)]
        return build_visible_state_after(self._version, self._trace.stream.ladder, self.age(player), games)


def format_rating(rating: str, state: Mapping[str, str], *, is_provisional: bool) -> str:
    """Return a rating with its deviation, and with a question mark while it is provisional.

    >>> format_rating("1638", {"deviation": "110"}, is_provisional=True)
    '1638 ± 110?'
    >>> format_rating("1500", {}, is_provisional=False)
    '1500'
    """
    deviation, mark = state.get(DEVIATION), "?" if is_provisional else ""
    return f"{rating} ± {deviation}{mark}" if deviation else f"{rating}{mark}"


def build_visible_state_after(version: Version, ladder: str, state: StateValues, games: int) -> VisibleState:
    """Return the visible part of a state after `games` games, which decide whether it is provisional.

    `games` counts the games on the ladder and the earlier games in a seed. Raises `RuleFailure`.
    """
    return build_visible_state(version, state, is_provisional(version, ladder, state, games))


def build_visible_state(version: Version, state: StateValues, provisional: bool = False) -> VisibleState:
    """Return the visible part of a state."""
    rule = version.rule
    visible = [(rule.state[index], state[index]) for index in rule.shown_columns]
    return VisibleState(
        {column.name: decimal(units, column.scale, column.decimals) for column, units in visible},
        {column.name: exact(units, column.scale) for column, units in visible},
        provisional,
    )


def format_exact_state(columns: Sequence[StateColumn], state: StateValues) -> dict[str, str]:
    """Return all numbers of a state by name, as reduced fractions."""
    return {column.name: str(Fraction(units, column.scale)) for column, units in zip(columns, state, strict=True)}

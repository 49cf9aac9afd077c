"""What players bring to one game: their states as the last games left them, brought forward to the day of the game.

The loop does the same for all games at once. Here it is done for a game that is explained, tried, or not yet played.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import NamedTuple

from ratings_ledger.projections.contract import HISTORY_COLUMNS, MISSING, Columns
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.replay.gaps import Joining, State, read_calendar
from ratings_ledger.projections.replay.periods import number_day
from ratings_ledger.projections.replay.replay import starting_state
from ratings_ledger.projections.replay.rule_calls import bring_to_game, score_states
from ratings_ledger.projections.replay.trace import Before
from ratings_ledger.projections.rulesets.versions import Version


class When(NamedTuple):
    """The day of a game, and the number of its season, as in a `Calendar`."""

    day: int = 0
    season: int = 0


class Arrival(NamedTuple):
    """What a player brings to a game.

    stored:       the state that their last game left
    state:        the same after a new season, if one begins, and the time since; what the rule scores
    games_before: how many games they have played on the ladder
    days_since:   the days since the last one, `MISSING` before the first
    first_of_season: whether it is their first game of a season
    is_new:       whether they join the ladder with it
    """

    stored: State
    state: State
    games_before: int
    days_since: int
    first_of_season: int
    is_new: bool


def read_when(facts: Facts, row: int, version: Version) -> When:
    """Return when a game was played, as far as a rule with state asks; no other does."""
    if not version.rule.state:
        return When()
    calendar = read_calendar(facts, array("q", [row]), version.ruleset)
    return When(calendar.day[0], calendar.season[0])


def find_arrivals(
    facts: Facts,
    before: Before,
    version: Version,
    when: When,
    players: Iterable[tuple[int | None, str]],
    row: int | None = None,
) -> list[Arrival]:
    """Return what players, as persons with their ids, bring to a game; a person is None for somebody whom the ladder
    does not know.

    Raises `RuleFailure`, which names the game if it has a row.
    """
    return [_arrive(facts, before, version, (row, when), person, name) for person, name in players]


def _arrive(
    facts: Facts, before: Before, version: Version, game: tuple[int | None, When], person: int | None, name: str
) -> Arrival:
    at, when = game
    known = None if person is None else before.state_of(person)
    known = known and known[: version.rule.width]
    stream, joining = before.trace.stream, before.trace.joining.get(name)
    if joining is None or joining.begin(version) is None:
        joining = Joining(version.start_state)
    begun = starting_state(stream, name, version, before.trace.joining) if known is None else known
    stored = begun if known is None else known
    if not version.rule.state:
        return Arrival(stored, stored, 0, MISSING, 0, known is None)
    ladder = before.trace.stream.ladder
    games, row = (0, None) if person is None else before.last_game_of(person)
    last = When(joining.last_day, joining.last_season) if row is None else read_when(facts, row, version)
    is_first = last.season != when.season
    days = MISSING if last.day == MISSING else max(when.day - last.day, 0)
    elapsed, period = max(days, 0), version.ruleset.period
    if period != "game" and last.day != MISSING:
        # of this trace nothing comes later: what is scored by periods is not explained game by game
        played = None if person is None or row is None else stream.numbers[person]
        since = None if played is None else before.trace.last_period_of(played)
        elapsed = number_day(when.day, period) - (number_day(last.day, period) if since is None else since)
    state = bring_to_game(version, ladder, at, stored, int(is_first and last.season != MISSING), elapsed)
    return Arrival(stored, state, joining.games + games, days, int(is_first), known is None)


class Scored(NamedTuple):
    """A game as its rule scored it: what everybody brought, what the rule read, and by state column the states before
    and after.
    """

    arrivals: list[Arrival]
    columns: list[list[int]]
    before: list[list[int]]
    after: list[list[int]]
    minted: int


def score_at(
    facts: Facts,
    before: Before,
    version: Version,
    game: tuple[int, When],
    columns: Columns,
    players: Iterable[tuple[int | None, str]],
) -> Scored:
    """Return what the rule makes of a game, its row and when it was played, for the players as `find_arrivals` takes
    them.

    `columns` are what it reads of the game itself. Raises `RuleFailure`.
    """
    row, when = game
    arrivals = find_arrivals(facts, before, version, when, players, row)
    read = [
        [getattr(arrival, name) for arrival in arrivals] if name in HISTORY_COLUMNS else [*column]
        for name, column in zip(version.rule.columns, columns, strict=True)
    ]
    states = [[*column] for column in zip(*(arrival.state for arrival in arrivals), strict=True)]
    minted, after = score_states(version, before.trace.stream.ladder, row, states, read)
    return Scored(arrivals, read, states, after, minted)

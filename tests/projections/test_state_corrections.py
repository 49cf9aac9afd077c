"""Corrections long after: what came before stays, what comes after is as if the game had been recorded rightly at once,
other ladders stay, and what the correction did to everybody is explained to the last unit.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from state_systems import SYSTEMS, correct_game, draw_history
from time_ledgers import enter

from ratings_ledger.ledger.events.canonical import parse_instant
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections.diff.causes import attribute_difference
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.coordinates import Coordinates
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.streams import Stream
from tests.builders import Event

PERIODS_BACK = 3
# those that the tests in a hurry try: months, days, events and seasons
NAMED = ("glicko-months", "fide", "egf", "riichi", "club-elo")
CASES = [name if name in NAMED else pytest.param(name, marks=pytest.mark.slow) for name in SYSTEMS]
Ratings = Callable[..., Any]


class Corrected(NamedTuple):
    """A ledger before and after a correction, and one where the game was recorded rightly at once.

    `game` is what was played, and `begin` the first instant of the period, or of the game, that was corrected.
    """

    url: str
    ladder: str
    game: str
    known_at: int
    begin: int
    before: Ladders
    after: Ladders
    right: Ladders


@pytest.fixture(scope="module")
def log() -> list[Event]:
    """The history to which corrections are added."""
    return draw_history(6, 22)


@pytest.fixture(scope="module")
def template(log: list[Event], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with this history, to be copied."""
    path: Path = tmp_path_factory.mktemp("template") / "ratings.db"
    record(path, log, log)
    return path


def record(path: Path, log: list[Event], events: list[Event]) -> Ledger:
    """Record events in a ledger, a second after the last of a whole history."""
    upgrade(str(path))
    ledger, now = open_ledger(str(path)), max(parse_instant(one["occurred_at"]) for one in log) + 1_000_000
    assert enter(ledger, events, lambda: now).rejected == []
    return ledger


def ladders_of(ledger: Ledger, position: int | None = None) -> Ladders:
    """Return the ladders as they are known at a position."""
    with ledger.reading() as connection:
        return Ladders(decode(connection, position, cached=False))


def choose_game(log: list[Event], ladders: Ladders, name: str) -> tuple[str, int, int]:
    """Return a ladder of a ruleset, the first instant of a period three before its last one, and the number in the log
    of a game in it; of rules without periods, a game from the first half. Nothing was recorded about it again.
    """
    again = [one["data"]["game_id"] for one in log if one["type"] != "game.recorded" and "game_id" in one["data"]]
    for ladder, stream in sorted(ladders.streams(name).items(), key=lambda item: -len(item[1].row)):
        for begin, game in _candidates(ladders, stream):
            number = ladders.facts.first_position[stream.rows[game]] - 1
            one = log[number]
            if one["data"]["game_id"] not in again and correct_game(one, "")["data"]["game"] != one["data"]:
                return ladder, begin, number
    raise AssertionError(f"no game of {name} can be corrected")


def _candidates(ladders: Ladders, stream: Stream) -> Iterator[tuple[int, int]]:
    periods = stream.periods
    if periods is None:
        for game in range(len(stream.rows) // 3, len(stream.rows)):
            yield ladders.facts.occurred_at[stream.rows[game]], game
        return
    for period in range(len(periods.begin) - 1 - PERIODS_BACK, 0, -1):
        for game in range(periods.offsets[period], periods.offsets[period + 1]):
            yield int(periods.begin[period]), game


def correct(name: str, log: list[Event], template: Path, folder: Path) -> Corrected:
    """Correct a game of a ruleset in a copy of the ledger."""
    shutil.copyfile(template, folder / "corrected.db")
    before = ladders_of(open_ledger(str(folder / "corrected.db")))
    ladder, begin, number = choose_game(log, before, name)
    correction = correct_game(log[number], log[-1]["occurred_at"])
    ledger = record(folder / "corrected.db", log, [correction])
    right = [*log[:number], {**log[number], "data": correction["data"]["game"]}, *log[number + 1 :]]
    at_once = record(folder / "right.db", log, right)
    return Corrected(
        str(folder / "corrected.db"), ladder, log[number]["data"]["game"], len(log), begin, before,
        ladders_of(ledger), ladders_of(at_once),
    )  # fmt: skip


def digests_of(name: str, ladders: Ladders) -> dict[str, str]:
    """Return the digests of the ladders of a ruleset."""
    return {ladder: ladders.rank_stream(stream).digest for ladder, stream in ladders.streams(name).items()}


@pytest.mark.parametrize("name", CASES)
def test_correction_three_periods_back_changes_what_it_must_and_nothing_else(
    name: str, log: list[Event], template: Path, tmp_path: Path
) -> None:
    """Earlier periods and ladders of other games stay; the ladder is as if the game had been recorded rightly."""
    one = correct(name, log, template, tmp_path)
    own, right = one.after.trace(one.ladder), one.right.trace(one.ladder)
    assert one.after.standings(one.ladder).digest != one.before.standings(one.ladder).digest
    assert own.has_same_results(right)
    # before the period, or the game, nothing changed
    early = [ladders.at(one.begin - 1) for ladders in (one.before, one.after)]
    assert len({ladders.standings(one.ladder).digest for ladders in early}) == 1
    old = one.before.trace(one.ladder)
    games, adjustments = own.count_before(one.after.facts, (one.begin, 0))
    assert games > 0
    assert own.truncate(games, adjustments).has_same_results(old.truncate(games, adjustments))
    for other, (_, games_of_other, _) in SYSTEMS.items():
        if one.game not in games_of_other:
            assert digests_of(other, one.after) == digests_of(other, one.before), other


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", CASES)
def test_causes_of_corrections_sum_exactly(
    name: str, log: list[Event], template: Path, tmp_path: Path, ratings: Ratings
) -> None:
    """For everybody on the ladder the causes between two positions, forward and back, at several times, sum to what
    the standings there differ by; so does what `explain --change` prints.
    """
    one, moved, owned = correct(name, log, template, tmp_path), 0, 0
    middle = one.begin + (max(one.after.facts.occurred_at) - one.begin) // 2
    with open_ledger(one.url).reading() as connection:
        for player in one.after.trace(one.ladder).stream.names:
            for left, right in ((None, None), (middle, middle), (middle, None)):
                sides = Coordinates(left, one.known_at, None), Coordinates(right, one.known_at + 1, None)
                for before, after in (sides, sides[::-1]):
                    found = attribute_difference(connection, one.ladder, player, before, after)
                    assert sum(cause.own + cause.ripple for cause in found.causes) == found.change
                    for at, points in ((before, found.before), (after, found.after)):
                        ladders = one.before if at.known_at == one.known_at else one.after
                        assert points == _points_of(ladders.at(at.as_of), one.ladder, player), (player, at)
                    moved += found.change != 0
                    owned += any(cause.kind == "corrected" and cause.own for cause in found.causes)
    assert moved > 3
    assert owned > 1
    player = one.after.trace(one.ladder).stream.names[0]
    told = ratings("explain", "--change", player, one.ladder, "--from", f"known-at={one.known_at}", "--format", "json",
                   db=one.url)  # fmt: skip
    result = json.loads(told.stdout)
    causes = [Fraction(part["own"]) + Fraction(part["ripple"]) for part in result["causes"]]
    assert sum(causes) == Fraction(result["change"])


def _points_of(ladders: Ladders, ladder: str, player: str) -> Fraction | None:
    """Return what a player has; None for somebody who is not on the ladder."""
    standings = ladders.standings(ladder)
    return next((row.value(standings.scale) for row in standings.rows if row.player == player), None)

"""Late corrections: earlier states and other ladders stay, and later states equal those of a game recorded correctly
the first time.

The causes of the changes sum exactly.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from histories import attribute_change, enter, load_ladders
from state_systems import SYSTEMS, correct_game, draw_history

from ratings_ledger.ledger.events.canonical import parse_instant
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from tests.builders import Event

PERIODS_BACK = 3
# systems of the quick tests: months, days, events and seasons
QUICK_SYSTEMS = ("glicko-months", "fide", "egf", "riichi", "club-elo")
CASES = [name if name in QUICK_SYSTEMS else pytest.param(name, marks=pytest.mark.slow) for name in SYSTEMS]
Ratings = Callable[..., Any]


class CorrectedLedger(NamedTuple):
    """A ledger before and after a correction, and one where the game was recorded correctly the first time.

    `game` is the name of the game, and `begin` the first instant of the corrected period, or of the corrected game.
    """

    url: str
    ladder: str
    game: str
    known_at: int
    begin: int
    before: Any
    after: Any
    expected: Any


@pytest.fixture(scope="module")
def log() -> list[Event]:
    """Return the history to which corrections are added."""
    return draw_history(6, 22)


@pytest.fixture(scope="module")
def template(log: list[Event], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a ledger with this history."""
    path: Path = tmp_path_factory.mktemp("template") / "ratings.db"
    record(path, log, log)
    return path


def record(path: Path, log: list[Event], events: list[Event]) -> Ledger:
    """Record events in a ledger, a second after the last event of the whole history."""
    upgrade(str(path))
    ledger, now = open_ledger(str(path)), max(parse_instant(event["occurred_at"]) for event in log) + 1_000_000
    assert enter(ledger, events, lambda: now).rejected == []
    return ledger


def choose_game(log: list[Event], ladders: Any, name: str) -> tuple[str, int, int]:
    """Return a ladder, the first instant of one of its periods, and the index in the log of a game in that period.

    At least three periods follow. Without periods, the instant is that of the game, after the first third of the games.
    No other event is about the game.
    """
    changed_ids = {
        event["data"]["game_id"] for event in log if event["type"] != "game.recorded" and "game_id" in event["data"]
    }
    for ladder, stream in sorted(ladders.streams(name).items(), key=lambda item: -len(item[1].rows)):
        for begin, game in _iterate_candidates(ladders, stream):
            number = ladders.facts.first_position[stream.rows[game]] - 1
            recorded = log[number]
            if (
                recorded["data"]["game_id"] not in changed_ids
                and correct_game(recorded, "")["data"]["game"] != recorded["data"]
            ):
                return ladder, begin, number
    raise AssertionError(f"no game of {name} can be corrected")


def _iterate_candidates(ladders: Any, stream: Any) -> Iterator[tuple[int, int]]:
    periods = stream.periods
    if periods is None:
        for game in range(len(stream.rows) // 3, len(stream.rows)):
            yield ladders.facts.occurred_at[stream.rows[game]], game
        return
    for period in range(len(periods.begin) - 1 - PERIODS_BACK, 0, -1):
        for game in range(periods.offsets[period], periods.offsets[period + 1]):
            yield int(periods.begin[period]), game


def correct_game_of(name: str, log: list[Event], template: Path, folder: Path) -> CorrectedLedger:
    """Correct a game of a ruleset in a copy of the ledger, and record it correctly in another ledger."""
    shutil.copyfile(template, folder / "corrected.db")
    before = load_ladders(str(folder / "corrected.db"), cached=False)
    ladder, begin, number = choose_game(log, before, name)
    correction = correct_game(log[number], log[-1]["occurred_at"])
    ledger = record(folder / "corrected.db", log, [correction])
    expected_log = [*log[:number], {**log[number], "data": correction["data"]["game"]}, *log[number + 1 :]]
    expected_ledger = record(folder / "expected.db", log, expected_log)
    return CorrectedLedger(
        str(folder / "corrected.db"),
        ladder,
        log[number]["data"]["game"],
        len(log),
        begin,
        before,
        load_ladders(ledger, cached=False),
        load_ladders(expected_ledger, cached=False),
    )


def compute_digests(name: str, ladders: Any) -> dict[str, str]:
    """Return the digests of the ladders of a ruleset."""
    return {ladder: ladders.rank_stream(stream).digest for ladder, stream in ladders.streams(name).items()}


@pytest.mark.parametrize("name", CASES)
def test_late_correction_changes_only_later_states(name: str, log: list[Event], template: Path, tmp_path: Path) -> None:
    """Earlier periods and ladders of other games stay; the corrected ladder equals one where the game was recorded
    correctly the first time.
    """
    corrected = correct_game_of(name, log, template, tmp_path)
    trace, expected = (ladders.trace(corrected.ladder) for ladders in (corrected.after, corrected.expected))
    assert corrected.after.standings(corrected.ladder).digest != corrected.before.standings(corrected.ladder).digest
    assert trace.has_same_results(expected)
    # before the period, or the game, nothing changed
    early = [ladders.at(corrected.begin - 1) for ladders in (corrected.before, corrected.after)]
    assert len({ladders.standings(corrected.ladder).digest for ladders in early}) == 1
    original = corrected.before.trace(corrected.ladder)
    games, adjustments = trace.count_before(corrected.after.facts, (corrected.begin, 0))
    assert games > 0
    assert trace.truncate(games, adjustments).has_same_results(original.truncate(games, adjustments))
    for system, (_, games_of_system, _) in SYSTEMS.items():
        if corrected.game not in games_of_system:
            assert compute_digests(system, corrected.after) == compute_digests(system, corrected.before), system


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", CASES)
def test_causes_of_corrections_sum_exactly(
    name: str, log: list[Event], template: Path, tmp_path: Path, ratings: Ratings
) -> None:
    """For every player, the causes between two positions sum to the difference of the standings.

    This holds in both directions, at several times, and in the output of `explain --change`.
    """
    corrected, change_count, own_count = correct_game_of(name, log, template, tmp_path), 0, 0
    middle = corrected.begin + (max(corrected.after.facts.occurred_at) - corrected.begin) // 2
    with open_ledger(corrected.url).reading() as connection:
        for player in corrected.after.trace(corrected.ladder).stream.names:
            for left, right in ((None, None), (middle, middle), (middle, None)):
                sides = (left, corrected.known_at, None), (right, corrected.known_at + 1, None)
                for before, after in (sides, sides[::-1]):
                    attribution = attribute_change(connection, corrected.ladder, player, before, after)
                    assert sum(cause.own + cause.ripple for cause in attribution.causes) == attribution.change
                    for (as_of, known_at, _), points in ((before, attribution.before), (after, attribution.after)):
                        ladders = corrected.before if known_at == corrected.known_at else corrected.after
                        assert points == _find_points(ladders.at(as_of), corrected.ladder, player), (player, as_of)
                    change_count += attribution.change != 0
                    own_count += any(cause.kind == "corrected" and cause.own for cause in attribution.causes)
    assert change_count > 3
    assert own_count > 1
    player = corrected.after.trace(corrected.ladder).stream.names[0]
    command = ("explain", "--change", player, corrected.ladder, "--from", f"known-at={corrected.known_at}")
    printed = ratings(*command, "--format", "json", db=corrected.url)
    result = json.loads(printed.stdout)
    causes = [Fraction(part["own"]) + Fraction(part["ripple"]) for part in result["causes"]]
    assert sum(causes) == Fraction(result["change"])


def _find_points(ladders: Any, ladder: str, player: str) -> Fraction | None:
    """Return a player's points, or None for a player who is not on the ladder."""
    standings = ladders.standings(ladder)
    return next((row.exact_points(standings.scale) for row in standings.rows if row.player == player), None)

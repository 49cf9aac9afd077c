"""Rating periods: their bounds in every zone, their games, and the rows of results, compared with plain loops."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from ratings_ledger.ledger.events.canonical import INSTANT_MAX, INSTANT_MIN, to_microseconds
from ratings_ledger.ledger.events.zones import day_start
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.replay.periods import (
    LadderSlots,
    Periods,
    ResultRows,
    build_results,
    divide_into_periods,
    number_tournaments,
)
from ratings_ledger.rules import MISSING

KINDS = ("day", "week", "month")
ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "America/Sao_Paulo", "Asia/Gaza")


def to_instant(text: str) -> int:
    """Return the microseconds since 1970 of a time with an offset."""
    return to_microseconds(datetime.fromisoformat(text))


def to_array(*values: int) -> Any:
    """Return an array of 64-bit integers."""
    return np.array(values, dtype=np.int64)


def list_bounds(periods: Periods) -> list[tuple[str, str]]:
    """Return the first instant of every period, and the first one after it, in UTC."""
    return [
        tuple((datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(at))).isoformat() for at in pair)
        for pair in zip(periods.begin, periods.end, strict=True)
    ]  # type: ignore[return-value]


def test_months_begin_at_midnight_of_the_zone() -> None:
    """A month lasts from one midnight in its zone to another, across changes of clocks."""
    games = to_array(
        to_instant("2024-03-01T00:30+01:00"), to_instant("2024-03-31T22:00Z") - 1, to_instant("2024-03-31T22:00Z")
    )
    periods = divide_into_periods(games, "month", "Europe/Berlin")
    assert list_bounds(periods) == [
        ("2024-02-29T23:00:00+00:00", "2024-03-31T22:00:00+00:00"),
        ("2024-03-31T22:00:00+00:00", "2024-04-30T22:00:00+00:00"),
    ]
    assert periods.of_game.tolist() == [0, 0, 1]
    assert periods.first_number.tolist() == [(2024 - 1970) * 12 + 2, (2024 - 1970) * 12 + 3]
    assert divide_into_periods(games, "month", "UTC").of_game.tolist() == [0, 1, 1]


def test_weeks_begin_on_monday() -> None:
    """Sunday ends a week and Monday begins one, also before 1970."""
    days = ["1969-12-28", "1969-12-29", "1970-01-04", "1970-01-05", "2024-03-03", "2024-03-04"]
    games = to_array(*(to_instant(f"{day}T12:00Z") for day in days))
    periods = divide_into_periods(games, "week", "UTC")
    assert periods.first_number.tolist() == [-1, 0, 1, 2826, 2827]
    assert periods.of_game.tolist() == [0, 1, 1, 2, 3, 4]
    assert list_bounds(periods)[1] == ("1969-12-29T00:00:00+00:00", "1970-01-05T00:00:00+00:00")


def test_clocks_back_over_midnight_keep_periods_in_order() -> None:
    """If clocks go back over midnight, a day begins at the first midnight, so that games stay in order."""
    # St. John's, 2010-11-07: 0:01 daylight time was followed by 23:01 standard time
    midnight = to_instant("2010-11-07T02:30Z")
    games = to_array(midnight - 1, midnight, midnight + 60_000_000, midnight + 30 * 60_000_000)
    periods = divide_into_periods(games, "day", "America/St_Johns")
    assert periods.of_game.tolist() == [0, 1, 1, 1]
    assert periods.begin.tolist()[1] == midnight


def test_periods_reach_both_ends_of_time() -> None:
    """The first and the last possible instant have periods within the bounds of time."""
    for kind in KINDS:
        for zone in ZONES:
            periods = divide_into_periods(to_array(INSTANT_MIN, INSTANT_MAX), kind, zone)
            assert periods.of_game.tolist() == [0, 1]
            assert (int(periods.begin[0]), int(periods.end[1])) == (INSTANT_MIN, INSTANT_MAX + 1)
    assert len(divide_into_periods(to_array(), "month", "UTC").begin) == 0


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("kind", KINDS)
def test_random_games_fall_into_their_periods(kind: str, zone: str) -> None:
    """Every game is in the period around it; periods follow each other without overlap and begin at midnight."""
    chance = random.Random(f"{kind} {zone}")
    span = (to_instant("1965-01-01T00:00Z"), to_instant("2030-01-01T00:00Z"))
    games = to_array(*sorted(chance.randint(*span) for _ in range(400)))
    periods = divide_into_periods(games, kind, zone)
    assert (periods.begin[periods.of_game] <= games).all()
    assert (games < periods.end[periods.of_game]).all()
    assert (periods.end[:-1] <= periods.begin[1:]).all()
    assert periods.games.tolist() == [*range(len(games))]
    columns = (column.tolist() for column in (periods.begin, periods.end, periods.first_number))
    for begin, end, number in zip(*columns, strict=True):
        opens, closes = find_days(kind, number)
        assert (begin, end) == (day_start(opens, zone), day_start(closes, zone))
    assert periods.last_number.tolist() == periods.first_number.tolist()


def find_days(kind: str, number: int) -> tuple[date, date]:
    """Return the first day of the period with this number, and that of the next period."""
    if kind == "month":
        months = [1970 * 12 + number + later for later in (0, 1)]
        return date(months[0] // 12, months[0] % 12 + 1, 1), date(months[1] // 12, months[1] % 12 + 1, 1)
    first = date(1970, 1, 1) + timedelta(days=number) if kind == "day" else date(1969, 12, 29) + timedelta(weeks=number)
    return first, first + timedelta(days=1 if kind == "day" else 7)


def test_period_is_closed_by_its_last_microsecond() -> None:
    """A period is closed at its last microsecond, and open a microsecond earlier."""
    games = to_array(to_instant("2024-01-10T12:00Z"), to_instant("2024-03-10T12:00Z"), to_instant("2024-03-11T12:00Z"))
    periods = divide_into_periods(games, "month", "UTC")
    january, march = to_instant("2024-02-01T00:00Z") - 1, to_instant("2024-04-01T00:00Z") - 1
    assert [periods.count_closed(at) for at in (january - 1, january, march - 1, march)] == [0, 1, 1, 2]
    assert [periods.find_last_instant(closed) for closed in (0, 1, 2)] == [None, january, march]
    assert [periods.count_complete(games) for games in (0, 1, 2, 3)] == [0, 1, 1, 2]
    # February has no games but counts as elapsed
    assert periods.first_number[1] - periods.last_number[0] == 2


def test_periods_closed_early_come_after_finished_ones() -> None:
    """Periods closed early come after finished ones, even if their last game is earlier; ends never descend."""
    games = to_array(*(to_instant(f"2024-01-0{day}T12:00Z") for day in (1, 2, 3)))
    all_periods = divide_into_periods(games, "event", "UTC", to_array(7, 8, 7))
    scored, finished = all_periods.order_games(1)
    early, last = divide_into_periods(games[:1], "event", "UTC", to_array(7)).order_games(1)
    joined = finished.append(last)
    assert (scored.tolist(), early.tolist()) == ([1], [0])
    assert joined.end.tolist() == [games[1] + 1] * 2
    assert (joined.offsets.tolist(), joined.of_game.tolist(), joined.games.tolist()) == ([0, 1, 2], [0, 1], [0, 1])


def test_events_are_scored_after_their_last_games() -> None:
    """Of overlapping events, the one that ends first is scored first; a game without a label is an event of its own."""
    days = [1, 2, 3, 5, 9, 9]
    games = to_array(*(to_instant(f"2024-01-0{day}T12:00Z") for day in days))
    labels = number_tournaments(to_array(7, 4, 4, 7, MISSING, MISSING))
    periods = divide_into_periods(games, "event", "UTC", labels)
    assert periods.of_game.tolist() == [1, 0, 0, 1, 2, 3]
    assert periods.games.tolist() == [1, 2, 0, 3, 4, 5]
    assert periods.offsets.tolist() == [0, 2, 4, 5, 6]
    assert periods.begin.tolist() == [games[1], games[0], games[4], games[5]]
    assert periods.end.tolist() == [games[2] + 1, games[3] + 1, games[4] + 1, games[5] + 1]
    assert [periods.count_closed(int(at)) for at in (games[2] - 1, games[2], games[3], games[5])] == [0, 1, 2, 4]
    # from the 5th to the 9th; the first two overlap
    assert (periods.first_number[1:] - periods.last_number[:-1]).tolist() == [-2, 4, 0]


def list_results_plainly(
    periods: Periods, slots: LadderSlots, index: int
) -> tuple[list[int], list[list[tuple[int, ...]]]]:
    """Return the players of a period by number, and the rows of each player, by loops over its games."""
    games = periods.games[periods.offsets[index] : periods.offsets[index + 1]].tolist()
    members = [[*range(slots.offsets[game], slots.offsets[game + 1])] for game in games]
    period_players = sorted({int(slots.players[slot]) for game_slots in members for slot in game_slots})
    rows: list[list[tuple[int, ...]]] = [[] for _ in period_players]
    for number, game_slots in enumerate(members):
        for own in game_slots:
            for opponent in game_slots:
                sides = None if slots.team is None else (slots.team[own], slots.team[opponent])
                if own == opponent or (sides and sides[0] == sides[1] != MISSING):
                    continue
                columns = [int(column[slot]) for slot in (own, opponent) for column in slots.columns]
                row = (period_players.index(slots.players[opponent]), number, *columns)
                rows[period_players.index(slots.players[own])].append(row)
    return period_players, rows


def to_lists(results: ResultRows, index: int) -> tuple[list[int], list[list[tuple[int, ...]]]]:
    """Return the built results of a period in the form of `list_results_plainly`."""
    period_players, offsets, rows = results.select_period(index)
    assert len(offsets) == len(period_players) + 1
    spans = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    return period_players.tolist(), [[tuple(row) for row in rows[:, low:high].T.tolist()] for low, high in spans]


@pytest.mark.parametrize("sides", [False, True], ids=["alone", "in sides"])
@pytest.mark.parametrize("kind", [*KINDS, "event"])
def test_random_results_agree_with_plain_loops(kind: str, sides: bool) -> None:
    """The results of all periods equal those of plain loops over their games."""
    chance = random.Random(f"{kind} {sides}")
    for _ in range(20):
        games = chance.choice([0, 1, 30])
        sizes = [chance.choice([2, 2, 2, 3, 5]) for _ in range(games)]
        instants = to_array(*sorted(chance.randint(0, 10**14) for _ in range(games)))
        players = [player for size in sizes for player in chance.sample(range(9), size)]
        columns = np.array([[chance.randint(-5, 5) for _ in players] for _ in range(3)]).reshape(3, len(players))
        teams = [team for size in sizes for team in ([MISSING] * size if size == 3 else [at % 2 for at in range(size)])]
        slots = LadderSlots(
            to_array(0, *np.cumsum(sizes).tolist()), to_array(*players), columns, to_array(*teams) if sides else None
        )
        labels = number_tournaments(to_array(*(chance.choice([MISSING, 0, 1, 2]) for _ in range(games))))
        periods = divide_into_periods(instants, kind, "Europe/Berlin", labels)
        results = build_results(periods, slots)
        expected = [list_results_plainly(periods, slots, index) for index in range(len(periods.begin))]
        assert [to_lists(results, index) for index in range(len(periods.begin))] == expected


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_long_ladder_is_laid_out_whole(kind: str) -> None:
    """Each of 625,848 games of two over fifty years gives two results, in ascending periods, for any kind of period."""
    generator = np.random.default_rng(5)
    games = 625_848
    instants = np.sort(generator.integers(0, 50 * 365 * 86_400 * 1_000_000, games))
    players = generator.integers(0, 15_000, 2 * games)
    periods = divide_into_periods(instants, kind, "Europe/Berlin")
    results = build_results(periods, LadderSlots(np.arange(games + 1) * 2, players, np.zeros((2, 2 * games), np.int32)))

    assert len(results.rows[0]) == results.rows_from[-1] == 2 * games
    assert (np.diff(periods.of_game) >= 0).all()
    assert (np.diff(results.rows_from) > 0).all()
    assert periods.offsets[-1] == games

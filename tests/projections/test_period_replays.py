"""Replays by rating periods against an oracle: closed, cut, compiled, adjusted, and explained."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import ratings_ledger as rl
from ratings_ledger.ledger.events.canonical import parse_instant
from ratings_ledger.projections import compiling
from ratings_ledger.projections.diff.causes import attribute_difference
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.coordinates import Coordinates
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.rules import expected_scores
from tests import own_rules
from tests.builders import build_draft, build_event, build_game_data, build_game_draft
from tests.ledgers import append_drafts, create_ledger, open_for_reading, run_command
from tests.projections.state_rules import BY_PERIOD, new_season

TEXT = """
id = "by-period"
version = "1"
rule = "own-k-period/1"
effective_from = 1900-01-01
time_zone = "Europe/Berlin"
period = "PERIOD"
scope = {game = ["chess"], kind = ["placing"], players_min = 2}
params = {start = 1500, k = 40, k_min = 10, back = 1}
"""
PLAYERS = ["anna", "ben", "cleo", "dora", "emil"]
CONSTANTS = (1_500_000_000, 40_000_000, 10_000_000, 1_000_000)
Games = list[tuple[datetime, list[str]]]
States = dict[str, tuple[int, int]]


def draw_games(random: Random, count: int) -> Games:
    """Draw games of two to four players: some on one day, some after weeks, clocks changing in between."""
    games, at = [], datetime(2010, 2, 1, 23, 30)
    for _ in range(count):
        at += timedelta(minutes=random.choice([10, 90, 1440, 1440 * 9, 1440 * 40]))
        games.append((at, random.sample(PLAYERS, random.randint(2, 4))))
    return games


def local(at: datetime) -> date:
    """Return the day of a time in UTC as people in Berlin see it."""
    return at.replace(tzinfo=ZoneInfo("UTC")).astimezone(ZoneInfo("Europe/Berlin")).date()


def number(day: date, period: str) -> int:
    """Return a number that is one more for every following period."""
    monday = day - timedelta(days=day.weekday())
    return {"day": day.toordinal(), "week": monday.toordinal() // 7, "month": day.year * 12 + day.month}[period]


def score_plainly(games: Games, period: str, until: date, adjusted: tuple[date, int] | None = None) -> States:
    """Return everybody's rating and K after all periods closed before a day, without any code of the replay.

    `adjusted` is a day on which anna gets so many units, counted at the close of that day's period.
    """
    states: States = {}
    last: dict[str, int] = {}
    numbers = sorted({number(local(at), period) for at, _ in games})
    for one in [one for one in numbers if one < number(until, period)]:
        played = [players for at, players in games if number(local(at), period) == one]
        names = sorted({name for players in played for name in players})
        before = []
        for name in names:
            rating, k = states.get(name, CONSTANTS[:2])
            elapsed = one - last[name] if name in last else 0
            before.append((rating, min(CONSTANTS[1], k + elapsed * CONSTANTS[3])))
        results: dict[str, list[tuple[int, int, int, int]]] = {name: [] for name in names}
        for game, players in enumerate(played):
            for name in players:
                for other in sorted(set(players) - {name}):
                    row = names.index(other), game, players.index(name) + 1, players.index(other) + 1
                    results[name].append(row)
        rows = [row for name in names for row in results[name]]
        offsets = [sum(len(results[name]) for name in names[:index]) for index in range(len(names) + 1)]
        state = [[*column] for column in zip(*before, strict=True)]
        after = [[*column] for column in state]
        columns = [[*column] for column in zip(*rows, strict=True)]
        BY_PERIOD.score_period(len(names), state, offsets, columns, CONSTANTS, expected_scores(), after)
        states |= {name: (after[0][i], after[1][i]) for i, name in enumerate(names)}
        last |= dict.fromkeys(names, one)
        if adjusted is not None and number(adjusted[0], period) == one and "anna" in states:
            states["anna"] = (states["anna"][0] + adjusted[1], states["anna"][1])
    return states


@pytest.fixture(params=["day", "week", "month"])
def played(request: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Games, str]]:
    """A ledger of 150 drawn games under the rule, these games, and the period."""
    own_rules.offer_rule(monkeypatch, BY_PERIOD)
    games = draw_games(Random(7), 150)
    name = create_ledger(f"sqlite:///{tmp_path}/periods.db")
    own_rules.publish_untried(name, TEXT.replace("PERIOD", request.param))
    append_drafts(
        name,
        *(
            build_game_draft(f"g{n}", *who, at=f"{at:%Y-%m-%dT%H:%M:%SZ}", game="chess")
            for n, (at, who) in enumerate(games)
        ),
    )
    return name, games, request.param


def end_of(day: date) -> int:
    """Return the last microsecond before a day in Berlin."""
    start = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo("Europe/Berlin"))
    return int(start.timestamp()) * 1_000_000 - 1


def trace_of(name: str, day: date | None = None, close_now: bool = False) -> Trace:
    """Return the trace of the ladder at the first instant of a day in Berlin, or now; or as if periods closed then."""
    with open_for_reading(name) as connection:
        as_of = None if day is None else end_of(day)
        return Ladders(decode(connection), as_of, close_now=close_now).trace("by-period")


def states_of(trace: Trace) -> States:
    """Return everybody's state at the end of a trace."""
    return {player: trace.state(index) for index, player in enumerate(trace.stream.names)}  # type: ignore[misc]


@pytest.mark.slow_cases
def test_states_are_those_of_the_oracle_at_the_end_of_every_period(played: tuple[str, Games, str]) -> None:
    """At 30 days, closed periods count and no others; so does a cut of what was replayed to the end."""
    name, games, period = played
    whole, seen = trace_of(name), set()
    assert states_of(whole) == score_plainly(games, period, date(2100, 1, 1))
    assert whole.start_total + whole.minted + whole.adjusted - whole.burned == sum(whole.points)
    for day in Random(3).sample([local(at) + timedelta(days=extra) for at, _ in games for extra in (0, 1)], 30):
        expected = score_plainly(games, period, day)
        trace = trace_of(name, day)
        assert states_of(trace) == expected
        cut = whole.truncate(len(trace.stream.rows), 0)
        assert states_of(cut) == expected
        assert cut.start_total + cut.minted + cut.adjusted - cut.burned == sum(cut.points)
        seen.add(len(trace.stream.rows))
    assert len(seen) > 10


@pytest.mark.slow_cases
def test_open_periods_close_now_with_the_games_played_so_far(played: tuple[str, Games, str]) -> None:
    """At 12 days the states are the oracle's of the games before, with the last period closed; the books balance."""
    name, games, period = played
    assert states_of(trace_of(name, close_now=True)) == score_plainly(games, period, date(2100, 1, 1))
    waited = 0
    for day in Random(4).sample([local(at) + timedelta(days=1) for at, _ in games], 12):
        before = [(at, who) for at, who in games if local(at) < day]
        trace = trace_of(name, day, close_now=True)
        assert states_of(trace) == score_plainly(before, period, date(2100, 1, 1))
        assert trace.start_total + trace.minted + trace.adjusted - trace.burned == sum(trace.points)
        with rl.open(name) as ledger:
            as_of = f"{day - timedelta(days=1)}"
            asked, closed = ledger.at(as_of).standings("by-period"), ledger.at(as_of, close_now=True)
            assert (asked.games, closed.standings("by-period").games) == (
                len(before) - asked.period.open_games, len(before),
            )  # fmt: skip
            assert closed.standings("by-period").period == replace(asked.period, closed_now=True)
            assert sum(row.change for row in closed.history("by-period", "anna").rows) + 1500 == next(
                (row.points for row in closed.standings("by-period").rows if row.player == "anna"), 1500
            )
        waited += asked.period.open_games
    assert waited > 0 or period == "day"


@pytest.mark.slow_cases
def test_states_shown_on_a_day_are_aged_by_whole_periods(played: tuple[str, Games, str]) -> None:
    """K grows by one for every period since that of a player's last game: 30 days."""
    name, games, period = played
    with open_for_reading(name) as connection:
        whole = Ladders(decode(connection))
        for day in Random(5).sample([local(at) + timedelta(days=extra) for at, _ in games for extra in (1, 9, 40)], 30):
            ranking, stored = whole.at(end_of(day)).standings("by-period"), score_plainly(games, period, day)
            assert len(ranking.rows) == len(stored)
            for player, (_, k) in stored.items():
                numbers = [number(local(at), period) for at, who in games if player in who]
                last = max(one for one in numbers if one < number(day, period))
                today = number(day - timedelta(days=1), period)
                assert ranking.visible_states.age(player)[1] == min(CONSTANTS[1], k + (today - last) * CONSTANTS[3])


@pytest.mark.slow_cases
def test_compiled_and_interpreted_periods_are_equal(
    played: tuple[str, Games, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled code leaves the same states before every game as the interpreter."""
    pytest.importorskip("numba")
    name, _, _ = played
    with compiling.force_interpreted():
        interpreted = trace_of(name)
    monkeypatch.setattr(compiling, "COMPILED_GAMES", 1)
    monkeypatch.setattr(compiling, "can_compile", lambda rule: True)
    monkeypatch.setattr("ratings_ledger.projections.replay.replay._make_checked_period_loop", None)
    compiled = trace_of(name)
    assert compiled.has_same_results(interpreted)


def test_adjustment_within_a_period_counts_at_its_close(played: tuple[str, Games, str]) -> None:
    """It changes nothing within the period, and the rating right after it."""
    name, games, period = played
    at = games[70][0]
    when = f"{at + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"
    append_drafts(
        name,
        build_draft(build_event("points.adjusted", when, ladder="by-period", player="anna", points="-40", reason="x")),
    )
    adjusted = local(at + timedelta(minutes=1)), -40_000_000
    for day in (local(at), local(at) + timedelta(days=1), local(at) + timedelta(days=45), date(2100, 1, 1)):
        assert states_of(trace_of(name, day)) == score_plainly(games, period, day, adjusted)


@pytest.mark.slow_cases
def test_history_and_explanations_sum_to_the_change_of_the_period(played: tuple[str, Games, str]) -> None:
    """Rows of games change nothing, those of periods all; terms name their games, those of the explained one first."""
    name, games, _ = played
    with rl.open(name) as ledger:
        snapshot = ledger.at()
        rows = snapshot.history("by-period", "anna").rows
        assert [row.after for row in rows[:-1]] == [row.before for row in rows[1:]]
        assert all(row.change == 0 for row in rows if row.game_id is not None)
        closes = [row for row in rows if row.cause == "period"]
        assert sum(row.change for row in closes) == rows[-1].after - rows[0].before
        others = 0
        for index, (_, who) in enumerate(games):
            explanation = snapshot.explain("by-period", f"g{index}")
            assert [one.player for one in explanation.players] == who
            for one in explanation.players:
                assert sum(term.amount or 0 for term in one.terms) == one.change
                named = [term.game_id for term in one.terms]
                own = named.count(f"g{index}")
                assert own == len(who) - 1
                assert set(named[:own]) == {f"g{index}"}
                others += len(named) - own
        assert others > 0


def test_correction_three_periods_back_changes_what_follows_alone(played: tuple[str, Games, str]) -> None:
    """The states before the corrected period stay, those after it are the oracle's; a whole verify agrees."""
    name, games, period = played
    assert run_command("rebuild", db=name) == 0
    at, who = games[-12]
    assert run_command("correct", f"g{len(games) - 12}", *reversed(who), "--reason", "wrong", db=name) == 0
    corrected = [*games[:-12], (at, who[::-1]), *games[-11:]]
    assert states_of(trace_of(name, local(at))) == score_plainly(games, period, local(at))
    assert states_of(trace_of(name)) == score_plainly(corrected, period, date(2100, 1, 1))
    assert run_command("rebuild", db=name) == 0
    assert run_command("verify", db=name) == 0


def test_game_that_moves_to_the_next_period_moves_points(played: tuple[str, Games, str]) -> None:
    """Where the order of games stays, but their periods do not, a comparison says who moved, as lists do."""
    name, games, period = played
    pairs = enumerate(pairwise(games))
    number_of_game, at = next(
        (n, at + timedelta(days=39)) for n, ((at, _), (then, _)) in pairs if n > 20 and (then - at).days == 40
    )
    moved_to = f"{at:%Y-%m-%dT%H:%MZ}"
    assert number(local(at), period) != number(local(games[number_of_game][0]), period)
    assert run_command("correct", f"g{number_of_game}", "--at", moved_to, "--reason", "wrong day", db=name) == 0
    position = len(games) + 2
    with rl.open(name) as ledger:
        earlier, now = (ledger.at(known_at=at) for at in (position - 1, None))
        before, after = ({row.player: row.points for row in one.standings("by-period").rows} for one in (earlier, now))
        effects = {one.player: one.change for one in now.event_impact(position).rows if one.change}
    moved = {player: after[player] - before[player] for player in before if after[player] != before[player]}
    assert moved != {}
    assert effects == moved


@pytest.mark.slow_cases
def test_causes_of_a_change_sum_exactly(played: tuple[str, Games, str]) -> None:
    """Between two instants and between two positions, own parts and ripples sum to what changed: 12 pairs."""
    name, games, _ = played
    at, who = games[-30]
    assert run_command("correct", f"g{len(games) - 30}", *reversed(who), "--reason", "wrong", db=name) == 0
    middle, moved = int(games[75][0].timestamp()) * 1_000_000, 0
    pairs = [((middle, 152), (None, 152)), ((None, 152), (middle, 152)), ((None, 151), (None, 152)),
             ((None, 60), (None, 152)), ((middle, 100), (None, 152))]  # fmt: skip
    with open_for_reading(name) as connection:
        for player in ("anna", "ben", "cleo"):
            for sides in pairs:
                before, after = (Coordinates(as_of, known_at, None) for as_of, known_at in sides)
                found = attribute_difference(connection, "by-period", player, before, after)
                assert sum(cause.own + cause.ripple for cause in found.causes) == found.change
                for at, points in ((before, found.before), (after, found.after)):
                    trace = Ladders(decode(connection, at.known_at), at.as_of).trace("by-period")
                    names = trace.stream.names
                    state = trace.state(names.index(player)) if player in names else None
                    assert points == (None if state is None else Fraction(state[0], 1_000_000))
                moved += found.change != 0
    assert moved > 9


@pytest.mark.slow_cases
def test_own_part_of_a_correction_is_the_change_of_its_period(played: tuple[str, Games, str]) -> None:
    """Of a corrected game, own is what the period gives its players more than before; to all others it is a ripple."""
    name, games, period = played
    at, who = games[20]
    assert run_command("correct", "g20", *reversed(who), "--reason", "wrong", db=name) == 0
    corrected = [*games[:20], (at, who[::-1]), *games[21:]]
    days = (local(at) + timedelta(days=days) for days in range(40))
    ends = local(at), next(day for day in days if number(day, period) > number(local(at), period))

    old, new = ([score_plainly(played, period, day) for day in ends] for played in (games, corrected))

    def gain_in_period(ends: list[States], player: str) -> int:
        before, after = (states.get(player, CONSTANTS)[0] for states in ends)
        return after - before

    owned = 0
    with open_for_reading(name) as connection:
        for player in (who[0], who[-1], next(name for name in PLAYERS if name not in who)):
            before, after = (Coordinates(None, position, None) for position in (151, 152))
            found = attribute_difference(connection, "by-period", player, before, after)
            own = gain_in_period(new, player) - gain_in_period(old, player)
            assert sum(cause.own for cause in found.causes) == Fraction(own, 1_000_000)
            assert own == 0 or player in who
            owned += own != 0
    assert owned > 1


def test_new_season_begins_with_the_first_period_in_it(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between seasons ratings go halfway back to the start, before the first period that somebody plays in the next."""
    own_rules.offer_rule(monkeypatch, BY_PERIOD._replace(new_season=new_season))
    name = create_ledger(f"sqlite:///{tmp_path}/seasons.db")
    own_rules.publish_untried(name, TEXT.replace('"PERIOD"', '"month"\nseason_by = [7]'))
    for month in (5, 6, 8, 9):
        append_drafts(
            name, build_game_draft(f"g{month}", "anna", "ben", at=f"2010-0{month}-10T12:00:00Z", game="chess")
        )
    with rl.open(name) as ledger:
        rows = ledger.at().history("by-period", "anna").rows
    periods = [row for row in rows if row.cause == "period"]
    assert [row.before for row in periods[1:]] == [row.after for row in periods[:-1]]
    # half of a lead of 36.38 to anna's start is lost; against ben, who is as far below it, the rest is one of 36.38
    won, lost = 35.3 * (1 - 1 / (1 + 10 ** (-36.37947 / 400))), 36.37947 / 2
    assert [float(row.change) for row in periods[:3]] == pytest.approx([20, 16.37947, won - lost], abs=1e-4)


def test_events_are_scored_after_their_last_games(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two leagues that overlap, and a game without one: the league that ends first is scored first, the others wait."""
    own_rules.offer_rule(monkeypatch, BY_PERIOD)
    name = create_ledger(f"sqlite:///{tmp_path}/events.db")
    own_rules.publish_untried(name, TEXT.replace('"PERIOD"', '"event"\nperiod_by = "league"'))
    leagues = ["open", "club", "open", None]
    for day, league in enumerate(leagues, 1):
        members = {} if league is None else {"league": league}
        append_drafts(
            name, build_game_draft(f"g{day}", "anna", "ben", at=f"2010-03-0{day}T12:00:00Z", game="chess", **members)
        )
    assert [*trace_of(name).stream.rows] == [1, 0, 2, 3]
    # K shrinks twice by a tenth, and does not grow between two events that overlap
    assert states_of(trace_of(name, date(2010, 3, 4)))["anna"][1] == 32_400_000
    assert [len(trace_of(name, date(2010, 3, day)).stream.rows) for day in (2, 3, 4, 5)] == [0, 1, 3, 4]
    with rl.open(name) as ledger:
        found, then = ledger.at(as_of="2010-03-02").standings("by-period"), ledger.at("2010-03-02", close_now=True)
        assert (found.period.open_games, found.period.closes_at) == (1, datetime(2010, 3, 3, 12, tzinfo=UTC))
        assert ledger.at().standings("by-period").period.open_games == 0
        open_one = ledger.at(as_of="2010-03-02").explain("by-period", "g1")
        assert (open_one.counted, open_one.period.closed, open_one.period.to) == (False, False, found.period.closes_at)
        early = then.explain("by-period", "g1")
        assert (early.counted, early.period) == (True, replace(open_one.period, closed_now=True))
        assert [row.game_id for row in then.history("by-period", "anna").rows if row.game_id] == ["g2", "g1"]


def test_decisions_leave_what_a_close_did_to_the_games(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day closes while somebody corrects a game of the day before: each has its part, and parts sum to the change."""
    own_rules.offer_rule(monkeypatch, BY_PERIOD)
    times = {day: parse_instant(f"2010-03-0{day}T13:00:00Z") for day in (1, 2, 3)}
    monkeypatch.setattr("ratings_ledger.ledger.clock.now", lambda: times[1])
    name = create_ledger(f"sqlite:///{tmp_path}/closes.db")
    own_rules.publish_untried(name, TEXT.replace("PERIOD", "day"))
    corrected = build_game_data("g1", "ben", "anna", game="chess") | {"kind": "placing"}
    correction = build_event(
        "game.corrected",
        "2010-03-01T12:00:00Z",
        game_id="g1",
        reason="wrong",
        game=corrected,
    )
    for day, one in [
        (1, build_game_draft("g1", "anna", "ben", at="2010-03-01T12:00:00Z", game="chess")),
        (2, build_game_draft("g2", "anna", "ben", at="2010-03-02T12:00:00Z", game="chess")),
        (3, build_draft(correction)),
    ]:
        monkeypatch.setattr("ratings_ledger.ledger.clock.now", lambda at=times[day]: at)
        append_drafts(name, one)
    with rl.open(name) as ledger:
        known = [ledger.at(known_at=position) for position in (3, 4)]
        before, after = ({row.player: row.points for row in one.standings("by-period").rows} for one in known)
        shares = {one.player: one for one in known[1].decisions(3).shares}
    assert {player: one.after for player, one in shares.items()} == after
    assert {player: one.before for player, one in shares.items()} == before
    assert all(sum(one.amounts.values()) == one.change for one in shares.values())
    assert [one.amounts.keys() for one in shares.values()] == [{0, None}] * 2

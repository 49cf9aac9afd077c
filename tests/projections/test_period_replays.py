"""Replays by rating period against an oracle: closed, cut, compiled, adjusted and explained periods."""

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
from ratings_ledger.rules import expected_scores
from tests import own_rules
from tests.builders import build_draft, build_event, build_game_data, build_game_draft
from tests.ledgers import append_drafts, create_ledger, open_for_reading, run_command
from tests.projections.histories import attribute_change, load_interpreted_trace, load_ladders
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


def to_local_day(at: datetime) -> date:
    """Return the day in Berlin of a time in UTC."""
    return at.replace(tzinfo=ZoneInfo("UTC")).astimezone(ZoneInfo("Europe/Berlin")).date()


def number_period(day: date, period: str) -> int:
    """Return the number of a day's period; each following period has the next number."""
    monday = day - timedelta(days=day.weekday())
    return {"day": day.toordinal(), "week": monday.toordinal() // 7, "month": day.year * 12 + day.month}[period]


def score_plainly(games: Games, period: str, until: date, adjusted: tuple[date, int] | None = None) -> States:
    """Return every player's rating and K after all periods closed before a day, without any code of the replay.

    `adjusted` is (a day, anna's adjustment in units), which counts at the close of that day's period.
    """
    states: States = {}
    last: dict[str, int] = {}
    numbers = sorted({number_period(to_local_day(at), period) for at, _ in games})
    for current in [candidate for candidate in numbers if candidate < number_period(until, period)]:
        games_of_period = [players for at, players in games if number_period(to_local_day(at), period) == current]
        names = sorted({name for players in games_of_period for name in players})
        before = []
        for name in names:
            rating, k = states.get(name, CONSTANTS[:2])
            elapsed = current - last[name] if name in last else 0
            before.append((rating, min(CONSTANTS[1], k + elapsed * CONSTANTS[3])))
        results: dict[str, list[tuple[int, int, int, int]]] = {name: [] for name in names}
        for game, players in enumerate(games_of_period):
            for name in players:
                for opponent in sorted(set(players) - {name}):
                    row = names.index(opponent), game, players.index(name) + 1, players.index(opponent) + 1
                    results[name].append(row)
        rows = [row for name in names for row in results[name]]
        offsets = [sum(len(results[name]) for name in names[:index]) for index in range(len(names) + 1)]
        state = [[*column] for column in zip(*before, strict=True)]
        after = [[*column] for column in state]
        columns = [[*column] for column in zip(*rows, strict=True)]
        BY_PERIOD.score_period(len(names), state, offsets, columns, CONSTANTS, expected_scores(), after)
        states |= {name: (after[0][i], after[1][i]) for i, name in enumerate(names)}
        last |= dict.fromkeys(names, current)
        if adjusted is not None and number_period(adjusted[0], period) == current and "anna" in states:
            states["anna"] = (states["anna"][0] + adjusted[1], states["anna"][1])
    return states


@pytest.fixture(params=["day", "week", "month"])
def period_ledger(request: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Games, str]:
    """Return a ledger of 150 random games under the rule, with these games and the period."""
    own_rules.substitute_rule(monkeypatch, BY_PERIOD)
    games = draw_games(Random(7), 150)
    name = create_ledger(f"sqlite:///{tmp_path}/periods.db")
    own_rules.publish_without_trial(name, TEXT.replace("PERIOD", request.param))
    append_drafts(
        name,
        *(
            build_game_draft(f"g{n}", *players, at=f"{at:%Y-%m-%dT%H:%M:%SZ}", game="chess")
            for n, (at, players) in enumerate(games)
        ),
    )
    return name, games, request.param


def find_end_before(day: date) -> int:
    """Return the last microsecond before a day in Berlin."""
    start = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo("Europe/Berlin"))
    return int(start.timestamp()) * 1_000_000 - 1


def load_trace(name: str, day: date | None = None, close_now: bool = False) -> Any:
    """Return the trace of the ladder at the first instant of a day in Berlin, or now; open periods may be closed."""
    as_of = None if day is None else find_end_before(day)
    return load_ladders(name, as_of, close_now=close_now).trace("by-period")


def list_states(trace: Any) -> States:
    """Return every player's state at the end of a trace."""
    return {player: trace.state(index) for index, player in enumerate(trace.stream.names)}  # type: ignore[misc]


@pytest.mark.slow_cases
def test_states_match_the_oracle_at_period_ends(period_ledger: tuple[str, Games, str]) -> None:
    """On 30 days, exactly the closed periods count; a cut of the whole replay has the same states."""
    name, games, period = period_ledger
    whole, game_counts = load_trace(name), set()
    assert list_states(whole) == score_plainly(games, period, date(2100, 1, 1))
    assert whole.start_total + whole.minted + whole.adjusted - whole.burned == sum(whole.points)
    for day in Random(3).sample([to_local_day(at) + timedelta(days=extra) for at, _ in games for extra in (0, 1)], 30):
        expected = score_plainly(games, period, day)
        trace = load_trace(name, day)
        assert list_states(trace) == expected
        cut = whole.truncate(len(trace.stream.rows), 0)
        assert list_states(cut) == expected
        assert cut.start_total + cut.minted + cut.adjusted - cut.burned == sum(cut.points)
        game_counts.add(len(trace.stream.rows))
    assert len(game_counts) > 10


@pytest.mark.slow_cases
def test_open_periods_close_now_with_the_games_played_so_far(period_ledger: tuple[str, Games, str]) -> None:
    """On 12 days, states with the open period closed equal the oracle's for the games so far, and the books balance."""
    name, games, period = period_ledger
    assert list_states(load_trace(name, close_now=True)) == score_plainly(games, period, date(2100, 1, 1))
    open_games = 0
    for day in Random(4).sample([to_local_day(at) + timedelta(days=1) for at, _ in games], 12):
        before = [(at, players) for at, players in games if to_local_day(at) < day]
        trace = load_trace(name, day, close_now=True)
        assert list_states(trace) == score_plainly(before, period, date(2100, 1, 1))
        assert trace.start_total + trace.minted + trace.adjusted - trace.burned == sum(trace.points)
        with rl.open(name) as ledger:
            as_of = f"{day - timedelta(days=1)}"
            standings, closed = ledger.at(as_of).standings("by-period"), ledger.at(as_of, close_now=True)
            assert (standings.games, closed.standings("by-period").games) == (
                len(before) - standings.period.open_games,
                len(before),
            )
            assert closed.standings("by-period").period == replace(standings.period, closed_now=True)
            assert sum(row.change for row in closed.history("by-period", "anna").rows) + 1500 == next(
                (row.points for row in closed.standings("by-period").rows if row.player == "anna"), 1500
            )
        open_games += standings.period.open_games
    assert open_games > 0 or period == "day"


@pytest.mark.slow_cases
def test_shown_states_age_by_whole_periods(period_ledger: tuple[str, Games, str]) -> None:
    """On 30 days, K has grown by one, up to its start, for every period since the player's last game."""
    name, games, period = period_ledger
    with open_for_reading(name) as connection:
        whole = load_ladders(connection)
        for day in Random(5).sample(
            [to_local_day(at) + timedelta(days=extra) for at, _ in games for extra in (1, 9, 40)], 30
        ):
            ranking, stored = whole.at(find_end_before(day)).standings("by-period"), score_plainly(games, period, day)
            assert len(ranking.rows) == len(stored)
            for player, (_, k) in stored.items():
                numbers = [number_period(to_local_day(at), period) for at, players in games if player in players]
                last = max(number for number in numbers if number < number_period(day, period))
                today = number_period(day - timedelta(days=1), period)
                assert ranking.visible_states.age(player)[1] == min(CONSTANTS[1], k + (today - last) * CONSTANTS[3])


@pytest.mark.slow_cases
def test_compiled_and_interpreted_periods_are_equal(
    period_ledger: tuple[str, Games, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled and interpreted replays have the same states before every game."""
    pytest.importorskip("numba")
    name, _, _ = period_ledger
    interpreted = load_interpreted_trace(name, "by-period")
    own_rules.compile_every_rule(monkeypatch)
    compiled = load_trace(name)
    assert compiled.has_same_results(interpreted)


def test_adjustment_within_a_period_counts_at_its_close(period_ledger: tuple[str, Games, str]) -> None:
    """An adjustment changes nothing within its period, and the rating right at its close."""
    name, games, period = period_ledger
    at = games[70][0]
    instant = f"{at + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"
    append_drafts(
        name,
        build_draft(
            build_event("points.adjusted", instant, ladder="by-period", player="anna", points="-40", reason="x")
        ),
    )
    adjusted = to_local_day(at + timedelta(minutes=1)), -40_000_000
    for day in (
        to_local_day(at),
        to_local_day(at) + timedelta(days=1),
        to_local_day(at) + timedelta(days=45),
        date(2100, 1, 1),
    ):
        assert list_states(load_trace(name, day)) == score_plainly(games, period, day, adjusted)


@pytest.mark.slow_cases
def test_history_and_explanations_sum_to_the_change_of_the_period(period_ledger: tuple[str, Games, str]) -> None:
    """In a history only the rows of periods have changes; the terms of an explanation sum to the change, those of the
    explained game first.
    """
    name, games, _ = period_ledger
    with rl.open(name) as ledger:
        snapshot = ledger.at()
        rows = snapshot.history("by-period", "anna").rows
        assert [row.after for row in rows[:-1]] == [row.before for row in rows[1:]]
        assert all(row.change == 0 for row in rows if row.game_id is not None)
        closes = [row for row in rows if row.cause == "period"]
        assert sum(row.change for row in closes) == rows[-1].after - rows[0].before
        other_game_terms = 0
        for index, (_, players) in enumerate(games):
            explanation = snapshot.explain("by-period", f"g{index}")
            assert [player_row.player for player_row in explanation.players] == players
            for player_row in explanation.players:
                assert sum(term.amount or 0 for term in player_row.terms) == player_row.change
                named = [term.game_id for term in player_row.terms]
                own_terms = named.count(f"g{index}")
                assert own_terms == len(players) - 1
                assert set(named[:own_terms]) == {f"g{index}"}
                other_game_terms += len(named) - own_terms
        assert other_game_terms > 0


def test_correction_changes_only_its_period_and_later_ones(period_ledger: tuple[str, Games, str]) -> None:
    """The states before the corrected period stay, those after it equal the oracle's, and a rebuild verifies."""
    name, games, period = period_ledger
    assert run_command("rebuild", db=name) == 0
    at, players = games[-12]
    assert run_command("correct", f"g{len(games) - 12}", *reversed(players), "--reason", "wrong", db=name) == 0
    corrected = [*games[:-12], (at, players[::-1]), *games[-11:]]
    assert list_states(load_trace(name, to_local_day(at))) == score_plainly(games, period, to_local_day(at))
    assert list_states(load_trace(name)) == score_plainly(corrected, period, date(2100, 1, 1))
    assert run_command("rebuild", db=name) == 0
    assert run_command("verify", db=name) == 0


def test_game_that_moves_to_the_next_period_moves_points(period_ledger: tuple[str, Games, str]) -> None:
    """A correction that moves a game to another period, in the same order, has the impact that standings show."""
    name, games, period = period_ledger
    pairs = enumerate(pairwise(games))
    number_of_game, at = next(
        (n, at + timedelta(days=39)) for n, ((at, _), (following, _)) in pairs if n > 20 and (following - at).days == 40
    )
    moved_to = f"{at:%Y-%m-%dT%H:%MZ}"
    assert number_period(to_local_day(at), period) != number_period(to_local_day(games[number_of_game][0]), period)
    assert run_command("correct", f"g{number_of_game}", "--at", moved_to, "--reason", "wrong day", db=name) == 0
    position = len(games) + 2
    with rl.open(name) as ledger:
        earlier, now = (ledger.at(known_at=at) for at in (position - 1, None))
        before, after = (
            {row.player: row.points for row in view.standings("by-period").rows} for view in (earlier, now)
        )
        effects = {row.player: row.change for row in now.event_impact(position).rows if row.change}
    moved = {player: after[player] - before[player] for player in before if after[player] != before[player]}
    assert moved != {}
    assert effects == moved


@pytest.mark.slow_cases
def test_causes_of_a_change_sum_exactly(period_ledger: tuple[str, Games, str]) -> None:
    """Own parts and ripples sum to the change, between two instants and between two positions."""
    name, games, _ = period_ledger
    _, players = games[-30]
    assert run_command("correct", f"g{len(games) - 30}", *reversed(players), "--reason", "wrong", db=name) == 0
    middle, change_count = int(games[75][0].timestamp()) * 1_000_000, 0
    pairs = [
        ((middle, 152), (None, 152)),
        ((None, 152), (middle, 152)),
        ((None, 151), (None, 152)),
        ((None, 60), (None, 152)),
        ((middle, 100), (None, 152)),
    ]
    with open_for_reading(name) as connection:
        for player in ("anna", "ben", "cleo"):
            for sides in pairs:
                before, after = ((as_of, known_at, None) for as_of, known_at in sides)
                attribution = attribute_change(connection, "by-period", player, before, after)
                assert sum(cause.own + cause.ripple for cause in attribution.causes) == attribution.change
                for (as_of, known_at), points in zip(sides, (attribution.before, attribution.after), strict=True):
                    trace = load_ladders(connection, as_of, known_at=known_at).trace("by-period")
                    names = trace.stream.names
                    state = trace.state(names.index(player)) if player in names else None
                    assert points == (None if state is None else Fraction(state[0], 1_000_000))
                change_count += attribution.change != 0
    assert change_count > 9


@pytest.mark.slow_cases
def test_own_part_of_a_correction_is_the_change_of_its_period(period_ledger: tuple[str, Games, str]) -> None:
    """The own part of a correction is the difference that the period itself makes; for other players it is 0."""
    name, games, period = period_ledger
    at, players = games[20]
    assert run_command("correct", "g20", *reversed(players), "--reason", "wrong", db=name) == 0
    corrected = [*games[:20], (at, players[::-1]), *games[21:]]
    days = (to_local_day(at) + timedelta(days=days) for days in range(40))
    ends = (
        to_local_day(at),
        next(day for day in days if number_period(day, period) > number_period(to_local_day(at), period)),
    )

    old, new = ([score_plainly(played_games, period, day) for day in ends] for played_games in (games, corrected))

    def compute_gain(ends: list[States], player: str) -> int:
        before, after = (states.get(player, CONSTANTS)[0] for states in ends)
        return after - before

    own_count = 0
    with open_for_reading(name) as connection:
        for player in (players[0], players[-1], next(name for name in PLAYERS if name not in players)):
            before, after = ((None, position, None) for position in (151, 152))
            attribution = attribute_change(connection, "by-period", player, before, after)
            own = compute_gain(new, player) - compute_gain(old, player)
            assert sum(cause.own for cause in attribution.causes) == Fraction(own, 1_000_000)
            assert own == 0 or player in players
            own_count += own != 0
    assert own_count > 1


def test_new_season_begins_with_the_first_period_in_it(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between seasons ratings move halfway back to the start, before a player's first period of the new season."""
    own_rules.substitute_rule(monkeypatch, BY_PERIOD._replace(new_season=new_season))
    name = create_ledger(f"sqlite:///{tmp_path}/seasons.db")
    own_rules.publish_without_trial(name, TEXT.replace('"PERIOD"', '"month"\nseason_by = [7]'))
    for month in (5, 6, 8, 9):
        append_drafts(
            name, build_game_draft(f"g{month}", "anna", "ben", at=f"2010-0{month}-10T12:00:00Z", game="chess")
        )
    with rl.open(name) as ledger:
        rows = ledger.at().history("by-period", "anna").rows
    periods = [row for row in rows if row.cause == "period"]
    assert [row.before for row in periods[1:]] == [row.after for row in periods[:-1]]
    # anna loses half of her lead of 36.38 over the start; ben is as far below it, so that she leads ben by 36.38
    won, lost = 35.3 * (1 - 1 / (1 + 10 ** (-36.37947 / 400))), 36.37947 / 2
    assert [float(row.change) for row in periods[:3]] == pytest.approx([20, 16.37947, won - lost], abs=1e-4)


def test_months_are_explained_under_versions_with_different_columns(tmp_path: Any) -> None:
    """A month under Glicko-1 is explained although a later version, Glicko-2, keeps a third number of each player."""
    name = create_ledger(f"sqlite:///{tmp_path}/versions.db")
    text = TEXT.partition("params")[0].replace("PERIOD", "month")
    own_rules.publish_without_trial(name, text.replace("own-k-period/1", "glicko-1/1"))
    later_text = text.replace('version = "1"', 'version = "2"').replace("1900-01-01", "2010-06-01")
    own_rules.publish_without_trial(name, later_text.replace("own-k-period/1", "glicko-2/1"))
    months = (1, 2, 7, 8)
    for month in months:
        append_drafts(
            name, build_game_draft(f"g{month}", "anna", "ben", at=f"2010-0{month}-10T12:00:00Z", game="chess")
        )
    with rl.open(name) as ledger:
        explanations = [ledger.at().explain("by-period", f"g{month}").players for month in months]
    starts = [{row.player: row.before for row in rows} for rows in explanations]
    ends = [{row.player: row.after for row in rows} for rows in explanations]
    assert starts == [{"anna": 1500, "ben": 1500}, *ends[:-1]]
    assert ends[0]["anna"] > 1500


def test_leagues_are_scored_at_their_last_games(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two overlapping leagues, the one that ends first is scored first; the games of the other stay open until its
    end.
    """
    own_rules.substitute_rule(monkeypatch, BY_PERIOD)
    name = create_ledger(f"sqlite:///{tmp_path}/events.db")
    own_rules.publish_without_trial(name, TEXT.replace('"PERIOD"', '"event"\nperiod_by = "league"'))
    leagues = ["open", "club", "open", None]
    for day, league in enumerate(leagues, 1):
        members = {} if league is None else {"league": league}
        append_drafts(
            name, build_game_draft(f"g{day}", "anna", "ben", at=f"2010-03-0{day}T12:00:00Z", game="chess", **members)
        )
    assert [*load_trace(name).stream.rows] == [1, 0, 2, 3]
    # K shrinks twice by a tenth, and does not grow between two events that overlap
    assert list_states(load_trace(name, date(2010, 3, 4)))["anna"][1] == 32_400_000
    assert [len(load_trace(name, date(2010, 3, day)).stream.rows) for day in (2, 3, 4, 5)] == [0, 1, 3, 4]
    with rl.open(name) as ledger:
        standings, closed_view = (
            ledger.at(as_of="2010-03-02").standings("by-period"),
            ledger.at("2010-03-02", close_now=True),
        )
        assert (standings.period.open_games, standings.period.closes_at) == (1, datetime(2010, 3, 3, 12, tzinfo=UTC))
        assert ledger.at().standings("by-period").period.open_games == 0
        open_explanation = ledger.at(as_of="2010-03-02").explain("by-period", "g1")
        assert (open_explanation.counted, open_explanation.period.closed, open_explanation.period.to) == (
            False,
            False,
            standings.period.closes_at,
        )
        closed_explanation = closed_view.explain("by-period", "g1")
        assert (closed_explanation.counted, closed_explanation.period) == (
            True,
            replace(open_explanation.period, closed_now=True),
        )
        assert [row.game_id for row in closed_view.history("by-period", "anna").rows if row.game_id] == ["g2", "g1"]


def test_decisions_and_period_close_have_separate_shares(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a day closes and a game of the day before is corrected, each has its own share, and the shares sum to the
    change.
    """
    own_rules.substitute_rule(monkeypatch, BY_PERIOD)
    times = {day: parse_instant(f"2010-03-0{day}T13:00:00Z") for day in (1, 2, 3)}
    monkeypatch.setattr("ratings_ledger.ledger.clock.now", lambda: times[1])
    name = create_ledger(f"sqlite:///{tmp_path}/closes.db")
    own_rules.publish_without_trial(name, TEXT.replace("PERIOD", "day"))
    corrected = build_game_data("g1", "ben", "anna", game="chess") | {"kind": "placing"}
    correction = build_event(
        "game.corrected",
        "2010-03-01T12:00:00Z",
        game_id="g1",
        reason="wrong",
        game=corrected,
    )
    for day, recorded in [
        (1, build_game_draft("g1", "anna", "ben", at="2010-03-01T12:00:00Z", game="chess")),
        (2, build_game_draft("g2", "anna", "ben", at="2010-03-02T12:00:00Z", game="chess")),
        (3, build_draft(correction)),
    ]:
        monkeypatch.setattr("ratings_ledger.ledger.clock.now", lambda at=times[day]: at)
        append_drafts(name, recorded)
    with rl.open(name) as ledger:
        views = [ledger.at(known_at=position) for position in (3, 4)]
        before, after = ({row.player: row.points for row in view.standings("by-period").rows} for view in views)
        shares = {share.player: share for share in views[1].decisions(3).shares}
    assert {player: share.after for player, share in shares.items()} == after
    assert {player: share.before for player, share in shares.items()} == before
    assert all(sum(share.amounts.values()) == share.change for share in shares.values())
    assert [share.amounts.keys() for share in shares.values()] == [{0, None}] * 2


def test_months_and_first_game_of_overlapping_leagues_follow_the_order_of_play(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note before all games and the numbers of games by month follow the order of play, not that of scoring."""
    own_rules.substitute_rule(monkeypatch, BY_PERIOD)
    name = create_ledger(f"sqlite:///{tmp_path}/events.db")
    own_rules.publish_without_trial(name, TEXT.replace('"PERIOD"', '"event"\nperiod_by = "league"'))
    for month, league in ((1, "open"), (3, "club"), (4, "club"), (6, "open")):
        when = f"2010-0{month}-01T12:00:00Z"
        append_drafts(name, build_game_draft(f"g{month}", "anna", "ben", at=when, game="chess", league=league))
    with rl.open(name) as ledger:
        assert ledger.at().standings("by-period").games == 4
        assert [row.months for row in ledger.at().ladders().rows] == [(1, 0, 1, 1, 0, 1)]
        early = ledger.at(as_of="2009-12-01")
        assert early.standings("by-period").rows == ()
        assert early.notes == ["the first game on by-period was at 2010-01-01 13:00:00 Europe/Berlin"]

"""Replays of rules with state against an oracle: whole, compiled, truncated, adjusted, corrected and explained."""

from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import combinations, pairwise
from math import log
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text

import ratings_ledger as rl
from ratings_ledger.rules import decimal, expected_scores
from tests import own_rules
from tests.builders import build_draft, build_event, build_game_draft
from tests.ledgers import append_drafts, create_ledger, open_for_reading, open_for_writing, run_command
from tests.projections.histories import load_interpreted_trace, load_ladders
from tests.projections.state_rules import BY_GAME
from tests.thresholds import set_thresholds

TEXT = """
id = "own-k"
version = "1"
rule = "own-k/1"
effective_from = 1900-01-01
time_zone = "Europe/Berlin"
season_by = [7]
scope = {game = ["chess"], kind = ["placing"], players_min = 2}
params = {start = 1500, k = 40, k_min = 10, back = 1}
"""
PLAYERS = ["anna", "ben", "cleo", "dora", "emil"]
START = datetime(2010, 2, 1, 23, 30)
Games = list[tuple[datetime, list[str]]]


def draw_games(random: Random, count: int) -> Games:
    """Draw games of two to four players: some on one day, some after weeks, with clock changes in between."""
    games, at = [], START
    for _ in range(count):
        at += timedelta(minutes=random.choice([10, 90, 1440, 1440 * 30]))
        games.append((at, random.sample(PLAYERS, random.randint(2, 4))))
    return games


def to_local_day(at: datetime) -> date:
    """Return the day in Berlin of a time in UTC."""
    return at.replace(tzinfo=ZoneInfo("UTC")).astimezone(ZoneInfo("Europe/Berlin")).date()


def find_season(at: datetime) -> int:
    """Return the year in which the season of a time began, in July."""
    return to_local_day(at).year - (to_local_day(at).month < 7)


def score_plainly(games: Games) -> Iterator[dict[str, tuple[int, int]]]:
    """Yield every player's rating and K after each game.

    The rule's `score` is called; gaps, seasons and the growth of K are computed here, without the replay.
    """
    states: dict[str, tuple[int, int]] = {}
    last: dict[str, datetime] = {}
    for at, players in games:
        before = {}
        for name in players:
            rating, k = states.get(name, (1_500_000_000, 40_000_000))
            gap = (to_local_day(at) - to_local_day(last[name])).days if name in last else 0
            if name in last and find_season(last[name]) != find_season(at):
                rating = (1_500_000_000 + rating) // 2
            before[name] = (rating, min(40_000_000, k + gap * 1_000_000))
        ordered = sorted(players)
        columns = [[players.index(name) + 1 for name in ordered]]
        state = [[before[name][column] for name in ordered] for column in range(2)]
        after = [[*column] for column in state]
        constants = (1_500_000_000, 40_000_000, 10_000_000, 1_000_000)
        BY_GAME.score(len(ordered), state, columns, constants, expected_scores(), after)
        states |= {name: (after[0][i], after[1][i]) for i, name in enumerate(ordered)}
        last |= dict.fromkeys(players, at)
        yield dict(states)


@pytest.fixture
def game_ledger(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Games]:
    """Return a ledger of 200 random games under the rule, with these games."""
    own_rules.substitute_rule(monkeypatch, BY_GAME)
    games = draw_games(Random(5), 200)
    location = create_ledger(f"sqlite:///{tmp_path}/state.db")
    own_rules.publish_without_trial(location, TEXT)
    append_drafts(
        location,
        *(
            build_game_draft(f"g{n}", *players, at=f"{at:%Y-%m-%dT%H:%M:%SZ}", game="chess")
            for n, (at, players) in enumerate(games)
        ),
    )
    return location, games


def load_trace(location: str, **options: Any) -> Any:
    """Return the trace of the ladder."""
    return load_ladders(location, **options).trace("own-k")


def list_states(trace: Any) -> dict[str, tuple[int, ...]]:
    """Return every player's state at the end of a trace."""
    return {name: trace.state(number) for number, name in enumerate(trace.stream.names)}


def test_states_match_the_oracle_after_every_game(game_ledger: tuple[str, Games]) -> None:
    """Cut after any game, a trace has the oracle's rating and K, and its books balance."""
    location, games = game_ledger
    trace = load_trace(location)
    for count, expected in enumerate(score_plainly(games), 1):
        cut = trace.truncate(count, 0)
        assert list_states(cut) == expected
        assert cut.start_total + cut.minted + cut.adjusted - cut.burned == sum(cut.points)
        for person in trace.stream.persons[:3]:
            state = trace.state_of(person, count, 0)
            assert state is None or state == expected[trace.stream.names[trace.stream.numbers[person]]]


def test_slots_sorted_in_parts_equal_slots_sorted_at_once(
    game_ledger: tuple[str, Games], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sorting the slots of a trace by player in chunks gives the same order as sorting them all at once."""
    trace = load_trace(game_ledger[0])
    counts = {}
    for slots_max in (1, 300, 10_000):
        set_thresholds(monkeypatch, sorted_slots=slots_max)
        parts = [*trace.sort_slots_in_chunks(trace.find_slot_bounds())]
        assert [slot for part in parts for slot in part] == [*trace.slots.order]
        counts[slots_max] = len(parts)
    assert (counts[1], counts[10_000]) == (len(PLAYERS), 1)
    assert 1 < counts[300] < len(PLAYERS)


def test_compiled_and_interpreted_states_are_equal(
    game_ledger: tuple[str, Games], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled and interpreted replays have the same states before every game."""
    pytest.importorskip("numba")
    location, _ = game_ledger
    interpreted = load_interpreted_trace(location, "own-k")
    own_rules.compile_every_rule(monkeypatch)
    compiled = load_trace(location)
    assert compiled.has_same_results(interpreted)
    assert [*compiled.states_before[1]] == [*interpreted.states_before[1]]


@pytest.mark.slow_cases
def test_games_are_explained_from_the_states_before_them(game_ledger: tuple[str, Games]) -> None:
    """The explanation of each of 200 games has the oracle's points, and says who is provisional."""
    location, games = game_ledger
    after = [*score_plainly(games)]
    with rl.open(location) as ledger:
        view = ledger.at()
        for number in range(len(games)):
            explanation = view.explain("own-k", f"g{number}")
            points = {player.player: player.after for player in explanation.players}
            # a player is provisional before the fifth game
            game_counts = Counter(player for _, players in games[: number + 1] for player in players)
            assert all(row.provisional == (game_counts[row.player] < 5) for row in explanation.players)
            assert {player: int(value * 1_000_000) for player, value in points.items()} == {
                player: after[number][player][0] for player in points
            }


def test_adjustments_leave_other_columns_alone(game_ledger: tuple[str, Games]) -> None:
    """An adjustment changes the rating at its time, and no K."""
    location, games = game_ledger
    adjusted = build_event(
        "points.adjusted", "2010-06-01T12:00:00Z", ladder="own-k", player="anna", points="-40", reason="x"
    )
    before = load_trace(location)
    append_drafts(location, build_draft(adjusted))
    trace = load_trace(location)
    games_before = sum(at < datetime(2010, 6, 1, 12) for at, _ in games)
    anna = trace.stream.persons[trace.stream.names.index("anna")]
    state_before, state_after = (trace.state_of(anna, games_before, count) for count in (0, 1))
    assert state_before is not None
    assert state_after is not None
    assert (state_after[0] - state_before[0], state_after[1]) == (-40_000_000, state_before[1])
    assert state_before == before.state_of(anna, games_before, 0)


def test_game_moved_to_another_day_changes_later_points(game_ledger: tuple[str, Games]) -> None:
    """A game moved to another day without changing the order changes points: standings, impact and decisions agree."""
    location, games = game_ledger
    number = next(
        n for n, ((at, _), (next_time, _)) in enumerate(pairwise(games)) if n > 20 and (next_time - at).days == 30
    )
    day = f"{games[number][0] + timedelta(days=9):%Y-%m-%dT%H:%MZ}"
    assert run_command("correct", f"g{number}", "--at", day, "--reason", "wrong day", db=location) == 0
    position = len(games) + 2
    with rl.open(location) as ledger:
        earlier, now = (ledger.at(known_at=at) for at in (position - 1, None))
        before, after = ({row.player: row.points for row in view.standings("own-k").rows} for view in (earlier, now))
        moved = {player: after[player] - before[player] for player in before if after[player] != before[player]}
        effects = {row.player: row.change for row in now.event_impact(position).rows if row.change}
        shares = {share.player: sum(share.amounts.values()) for share in now.decisions(position - 1).shares}
    assert len(moved) > 2
    assert effects == shares == moved


def test_history_is_a_chain_with_rows_for_seasons(game_ledger: tuple[str, Games]) -> None:
    """The rows of a history form a chain; a new season has a row of its own, with a reason and without a game."""
    location, games = game_ledger
    after = [*score_plainly(games)]
    with rl.open(location) as ledger:
        rows = ledger.at().history("own-k", "anna").rows
    assert [row.after for row in rows[:-1]] == [row.before for row in rows[1:]]
    seasons = [row for row in rows if row.cause == "season"]
    assert len(seasons) >= 3
    assert all(row.game_id is None and row.reason == "a new season" for row in seasons)
    assert all(row.place is None and row.game is None for row in seasons)
    states_after_games = [row.state_exact for row in rows if row.game_id is not None]
    own = [states["anna"] for states, (_, players) in zip(after, games, strict=True) if "anna" in players]
    assert states_after_games == [{"rating": str(Fraction(rating, 1_000_000))} for rating, _ in own]


def test_standings_rank_by_stored_states_at_any_time(game_ledger: tuple[str, Games]) -> None:
    """Ranks follow the stored rating minus the stored K, even as of a later time, and points are the stored ratings."""
    location, games = game_ledger
    final = [*score_plainly(games)][-1]
    with rl.open(location) as ledger:
        snapshot, later = ledger.at(), ledger.at(as_of="2090-01-01")
        rows = snapshot.standings("own-k").rows
        digests = {view.standings("own-k").digest for view in (snapshot, later)}
        ranked = [*later.standings("own-k").rows]
    expected = sorted(final, key=lambda player: (final[player][1] - final[player][0], player))
    assert [row.player for row in rows] == expected == [row.player for row in ranked]
    assert [row.points for row in rows] == [Fraction(final[player][0], 1_000_000) for player in expected]
    assert all(row.state == {"rating": decimal(final[row.player][0], 1_000_000, 0)} for row in rows)
    assert len(digests) == 1
    assert not any(row.provisional for row in rows)


def test_stored_standings_have_the_states(game_ledger: tuple[str, Games]) -> None:
    """A rebuild stores all numbers of the rule, SQL reads them, and `verify` compares them with a replay."""
    location, games = game_ledger
    final = [*score_plainly(games)][-1]
    assert run_command("rebuild", db=location) == 0
    with open_for_reading(location) as connection:
        rows = connection.execute(text("SELECT player, state FROM live_standings WHERE ladder = 'own-k'")).all()
    assert {row.player: tuple(map(int, row.state.split(","))) for row in rows} == final
    assert run_command("verify", db=location) == 0
    with open_for_writing(location) as connection:
        connection.execute(text("UPDATE generation_standings SET state = '1,2' WHERE player = 'anna'"))
    assert run_command("verify", db=location) == 1


def test_prediction_quality_uses_states_after_new_season(game_ledger: tuple[str, Games]) -> None:
    """The prediction quality of a rule with state uses ratings as moved by a new season, and equals naive means."""
    location, games = game_ledger
    states: dict[str, tuple[int, int]] = {}
    last: dict[str, datetime] = {}
    losses, squares, hits = list[float](), list[float](), list[float]()
    for (at, players), after in zip(games, score_plainly(games), strict=True):
        ratings = {}
        for player in players:
            rating = states.get(player, (1_500_000_000, 0))[0]
            is_new_season = player in last and find_season(last[player]) != find_season(at)
            ratings[player] = (1_500_000_000 + rating) // 2 if is_new_season else rating
        for first, second in combinations(players, 2):
            pair = [[ratings[first], ratings[second]], [0, 0]]
            expected = BY_GAME.chance(0, 1, pair, [], (), expected_scores()) / 2**32  # type: ignore[misc]
            losses.append(-log(expected))
            squares.append((1 - expected) ** 2)
            hits.append(1.0 if expected > 0.5 else 0.5 if expected == 0.5 else 0.0)
        states, last = after, last | dict.fromkeys(players, at)
    with rl.open(location) as ledger:
        (difference,) = ledger.compare(ledger.at(), ledger.at(), ["own-k"], predictions=True)
    quality = difference.quality.after
    assert quality.pairs == len(losses) > 500
    assert quality.log_loss == pytest.approx(sum(losses) / len(losses), rel=1e-12)
    assert quality.brier == pytest.approx(sum(squares) / len(squares), rel=1e-12)
    assert quality.accuracy == pytest.approx(sum(hits) / len(hits), rel=1e-12)

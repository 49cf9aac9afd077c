"""Replays of rules with state against an oracle: whole, compiled, cut, continued, and explained."""

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
from ratings_ledger.projections import compiling
from ratings_ledger.projections.diff.predictions import measure_quality
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.explain import explain_game
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay import replay as replaying
from ratings_ledger.projections.replay import trace as tracing
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.rules import decimal, expected_scores
from tests import own_rules
from tests.builders import build_draft, build_event, build_game_draft
from tests.ledgers import append_drafts, create_ledger, open_for_reading, open_for_writing, run_command
from tests.projections.state_rules import BY_GAME

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
    """Draw games of two to four players: some on one day, some after weeks, clocks changing in between."""
    games, at = [], START
    for _ in range(count):
        at += timedelta(minutes=random.choice([10, 90, 1440, 1440 * 30]))
        games.append((at, random.sample(PLAYERS, random.randint(2, 4))))
    return games


def local(at: datetime) -> date:
    """Return the day of a time in UTC as people in Berlin see it."""
    return at.replace(tzinfo=ZoneInfo("UTC")).astimezone(ZoneInfo("Europe/Berlin")).date()


def season(at: datetime) -> int:
    """Return the year in which the season of a time began, in July."""
    return local(at).year - (local(at).month < 7)


def score_plainly(games: Games) -> Iterator[dict[str, tuple[int, int]]]:
    """Yield everybody's rating and K after each game, as the rule's text says, without any code of the replay."""
    states: dict[str, tuple[int, int]] = {}
    last: dict[str, datetime] = {}
    for at, players in games:
        before = {}
        for name in players:
            rating, k = states.get(name, (1_500_000_000, 40_000_000))
            gap = (local(at) - local(last[name])).days if name in last else 0
            if name in last and season(last[name]) != season(at):
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
def played(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Games]]:
    """A ledger of 200 drawn games under the rule, and these games."""
    own_rules.offer_rule(monkeypatch, BY_GAME)
    games = draw_games(Random(5), 200)
    name = create_ledger(f"sqlite:///{tmp_path}/state.db")
    own_rules.publish_untried(name, TEXT)
    append_drafts(
        name,
        *(
            build_game_draft(f"g{n}", *who, at=f"{at:%Y-%m-%dT%H:%M:%SZ}", game="chess")
            for n, (at, who) in enumerate(games)
        ),
    )
    return name, games


def traces(name: str, **options: Any) -> Trace:
    """Return the trace of the ladder."""
    with open_for_reading(name) as connection:
        return Ladders(decode(connection), **options).trace("own-k")


def states_of(trace: Trace) -> dict[str, tuple[int, ...]]:
    """Return everybody's state at the end of a trace."""
    return {name: trace.state(number) for number, name in enumerate(trace.stream.names)}


def test_states_are_those_of_the_oracle_after_every_game(played: tuple[str, Games]) -> None:
    """Cut after any game, a trace has the rating and the K of the oracle; the books balance there."""
    name, games = played
    trace = traces(name)
    for count, expected in enumerate(score_plainly(games), 1):
        cut = trace.truncate(count, 0)
        assert states_of(cut) == expected
        assert cut.start_total + cut.minted + cut.adjusted - cut.burned == sum(cut.points)
        for person in trace.stream.persons[:3]:
            state = trace.state_of(person, count, 0)
            assert state is None or state == expected[trace.stream.names[trace.stream.numbers[person]]]


def test_slots_sorted_in_parts_are_those_sorted_at_once(
    played: tuple[str, Games], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sorted by player, some players at a time, the slots of a trace are those that are sorted together."""
    trace = traces(played[0])
    counts = {}
    for counts_max in (1, 300, 10_000):
        monkeypatch.setattr(tracing, "SORT_CHUNK_SLOTS", counts_max)
        parts = [*trace.sort_slots_in_chunks(trace.find_slot_bounds())]
        assert [slot for part in parts for slot in part] == [*trace.slots.order]
        counts[counts_max] = len(parts)
    assert (counts[1], counts[10_000]) == (len(PLAYERS), 1)
    assert 1 < counts[300] < len(PLAYERS)


def test_compiled_and_interpreted_states_are_equal(played: tuple[str, Games], monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code leaves the same states before every game as the interpreter."""
    pytest.importorskip("numba")
    name, _ = played
    with compiling.force_interpreted():
        interpreted = traces(name)
    monkeypatch.setattr(compiling, "COMPILED_GAMES", 1)
    monkeypatch.setattr(compiling, "can_compile", lambda rule: True)
    monkeypatch.setattr(replaying, "replay_interpreted", None)
    compiled = traces(name)
    assert compiled.has_same_results(interpreted)
    assert [*compiled.states_before[1]] == [*interpreted.states_before[1]]


@pytest.mark.slow_cases
def test_games_are_explained_from_the_states_before_them(played: tuple[str, Games]) -> None:
    """What explains a game scores it from the trace, and gets what the replay got: 200 games, all players."""
    name, games = played
    after = [*score_plainly(games)]
    with open_for_reading(name) as connection:
        ladders = Ladders(decode(connection))
        for row in range(len(games)):
            explanation = explain_game(ladders, "own-k", f"g{row}", row)
            points = {one.player: one.after for one in explanation.players}
            # it is provisional before the fifth game
            played = Counter(player for _, players in games[: row + 1] for player in players)
            assert all(one.provisional == (played[one.player] < 5) for one in explanation.players)
            assert {player: int(value * 1_000_000) for player, value in points.items()} == {
                player: after[row][player][0] for player in points
            }


def test_adjustments_leave_other_columns_alone(played: tuple[str, Games]) -> None:
    """An adjustment changes the rating at its place, and no K."""
    name, games = played
    adjusted = build_event(
        "points.adjusted", "2010-06-01T12:00:00Z", ladder="own-k", player="anna", points="-40", reason="x"
    )
    before = traces(name)
    append_drafts(name, build_draft(adjusted))
    trace = traces(name)
    games_before = sum(at < datetime(2010, 6, 1, 12) for at, _ in games)
    anna = trace.stream.persons[trace.stream.names.index("anna")]
    had, has = (trace.state_of(anna, games_before, count) for count in (0, 1))
    assert had is not None
    assert has is not None
    assert (has[0] - had[0], has[1]) == (-40_000_000, had[1])
    assert had == before.state_of(anna, games_before, 0)


def test_new_day_of_a_game_moves_what_follows(played: tuple[str, Games]) -> None:
    """A game that is moved to another day, in its order, changes points: every comparison says which, as lists do."""
    name, games = played
    number = next(n for n, ((at, _), (then, _)) in enumerate(pairwise(games)) if n > 20 and (then - at).days == 30)
    day = f"{games[number][0] + timedelta(days=9):%Y-%m-%dT%H:%MZ}"
    assert run_command("correct", f"g{number}", "--at", day, "--reason", "wrong day", db=name) == 0
    position = len(games) + 2
    with rl.open(name) as ledger:
        earlier, now = (ledger.at(known_at=at) for at in (position - 1, None))
        before, after = ({row.player: row.points for row in one.standings("own-k").rows} for one in (earlier, now))
        moved = {player: after[player] - before[player] for player in before if after[player] != before[player]}
        effects = {one.player: one.change for one in now.event_impact(position).rows if one.change}
        shares = {one.player: sum(one.amounts.values()) for one in now.decisions(position - 1).shares}
    assert len(moved) > 2
    assert effects == shares == moved


def test_history_is_a_chain_in_which_seasons_have_rows_of_their_own(played: tuple[str, Games]) -> None:
    """What one row leaves is what the next one begins with; a new season's row names no game and says why."""
    name, games = played
    after = [*score_plainly(games)]
    with rl.open(name) as ledger:
        rows = ledger.at().history("own-k", "anna").rows
    assert [row.after for row in rows[:-1]] == [row.before for row in rows[1:]]
    seasons = [row for row in rows if row.cause == "season"]
    assert len(seasons) >= 3
    assert all(row.game_id is None and row.reason == "a new season" for row in seasons)
    assert all(row.place is None and row.game is None for row in seasons)
    ks = [row.state_exact for row in rows if row.game_id is not None]
    own = [states["anna"] for states, (_, who) in zip(after, games, strict=True) if "anna" in who]
    assert ks == [{"rating": str(Fraction(rating, 1_000_000))} for rating, _ in own]


def test_standings_show_aged_states_and_rank_by_what_the_rule_says(played: tuple[str, Games]) -> None:
    """States are aged to the day asked for; ranks follow rating minus K as stored, whenever somebody asks."""
    name, games = played
    final = [*score_plainly(games)][-1]
    with rl.open(name) as ledger:
        snapshot, later = ledger.at(), ledger.at(as_of="2090-01-01")
        rows = snapshot.standings("own-k").rows
        digests = {found.standings("own-k").digest for found in (snapshot, later)}
        ranked = [*later.standings("own-k").rows]
    expected = sorted(final, key=lambda player: (final[player][1] - final[player][0], player))
    assert [row.player for row in rows] == expected == [row.player for row in ranked]
    assert [row.points for row in rows] == [Fraction(final[player][0], 1_000_000) for player in expected]
    assert all(row.state == {"rating": decimal(final[row.player][0], 1_000_000, 0)} for row in rows)
    assert len(digests) == 1
    assert not any(row.provisional for row in rows)


def test_stored_standings_have_the_states(played: tuple[str, Games]) -> None:
    """A rebuild stores all numbers of the rule, SQL reads them, and a whole verify finds them equal to a replay."""
    name, games = played
    final = [*score_plainly(games)][-1]
    assert run_command("rebuild", db=name) == 0
    with open_for_reading(name) as connection:
        rows = connection.execute(text("SELECT player, state FROM live_standings WHERE ladder = 'own-k'")).all()
    assert {row.player: tuple(map(int, row.state.split(","))) for row in rows} == final
    assert run_command("verify", db=name) == 0
    with open_for_writing(name) as connection:
        connection.execute(text("UPDATE generation_standings SET state = '1,2' WHERE player = 'anna'"))
    assert run_command("verify", db=name) == 1


def test_predictions_are_made_from_the_states_brought_to_games(played: tuple[str, Games]) -> None:
    """How well a rule with state predicts, by its chance of every pair from ratings after a new season: plain sums."""
    name, games = played
    states: dict[str, tuple[int, int]] = {}
    last: dict[str, datetime] = {}
    losses, squares, foreseen = list[float](), list[float](), list[float]()
    for (at, players), after in zip(games, score_plainly(games), strict=True):
        ratings = {}
        for player in players:
            rating = states.get(player, (1_500_000_000, 0))[0]
            moved = player in last and season(last[player]) != season(at)
            ratings[player] = (1_500_000_000 + rating) // 2 if moved else rating
        for first, second in combinations(players, 2):
            pair = [[ratings[first], ratings[second]], [0, 0]]
            expected = BY_GAME.chance(0, 1, pair, [], (), expected_scores()) / 2**32  # type: ignore[misc]
            losses.append(-log(expected))
            squares.append((1 - expected) ** 2)
            foreseen.append(1.0 if expected > 0.5 else 0.5 if expected == 0.5 else 0.0)
        states, last = after, last | dict.fromkeys(players, at)
    with open_for_reading(name) as connection:
        facts = decode(connection)
        found = measure_quality(facts, Ladders(facts).stream("own-k"))
    assert found is not None
    assert found.pairs == len(losses) > 500
    assert found.log_loss == pytest.approx(sum(losses) / len(losses), rel=1e-12)
    assert found.brier == pytest.approx(sum(squares) / len(squares), rel=1e-12)
    assert found.accuracy == pytest.approx(sum(foreseen) / len(foreseen), rel=1e-12)

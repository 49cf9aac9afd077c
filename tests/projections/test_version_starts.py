"""What versions do to ratings when they take effect, against an oracle that lifts everybody at once, game by game."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import ratings_ledger as rl
from ratings_ledger.ledger.store.log import read_records_at
from ratings_ledger.projections import compiling
from ratings_ledger.projections.diff.causes import attribute_difference
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.coordinates import Coordinates
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay import replay as replaying
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets import registry
from ratings_ledger.rules import Numbers, State, StateValues, expected_scores
from tests import own_rules
from tests.builders import build_draft, build_event, build_game_draft
from tests.ledgers import append_drafts, create_ledger, open_for_reading
from tests.projections.state_rules import BY_GAME, BY_PERIOD, SCALE, score

BERLIN, UTC = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")
TEXT = """
id = "lifting"
version = "VERSION"
rule = "RULE"
effective_from = SINCE
time_zone = "Europe/Berlin"
period = "PERIOD"
scope = {game = ["chess"], kind = ["placing"], players_min = 2}
params = {start = START, k = 40, k_min = 10, back = 1}
"""
PLAYERS = ["anna", "ben", "cleo", "dora", "emil", "finn"]
# the first changes nothing; two take effect without a game between them, the last one after all games
VERSIONS = [("1", 1500, "1900-01-01"), ("2", 1600, "2011-03-01"), ("3", 1400, "2011-03-02"), ("4", 1700, "2012-01-01")]
LATE = ("5", 1300, "2090-01-01")
GAP = datetime(2011, 2, 27), datetime(2011, 3, 4)
Games = list[tuple[datetime, list[str]]]
States = dict[str, tuple[int, int]]


def lift(state: StateValues, constants: Numbers) -> StateValues:
    """Bring a rating halfway to the start of the new version, and K back to that of a new player."""
    return ((state[0] + constants[0]) // 2, constants[1])


def score_wider(n: int, before: Any, columns: Numbers, constants: Numbers, table: Numbers, after: Any) -> int:
    """Score with K in the third column, and count the games in the second one."""
    for i in range(n):
        after[1][i] = before[1][i] + 1
    return score(n, [before[0], before[2]], columns, constants, table, [after[0], after[2]])


LIFTING = BY_GAME._replace(name="lifting", enter=lift, new_season=None, rank_by=None)
# keeps another number between the two, and has no function of its own for the day on which it takes effect
WIDER = LIFTING._replace(
    name="wider", score=score_wider, enter=None, state=(State("points", SCALE), State("wins", 1), State("k", SCALE)),
    start=lambda params: (params.start * SCALE, 7, params.k * SCALE), shown=(), draw=None, chance=None,
    age=lambda state, elapsed, constants: (state[0], state[1], min(constants[1], state[2] + elapsed * constants[3])),
)  # fmt: skip
LIFTING_BY_PERIOD = BY_PERIOD._replace(name="lifting-period", enter=lift, rank_by=None)


def begin(day: str) -> datetime:
    """Return the first instant of a day in Berlin, as a time in UTC."""
    return datetime.fromisoformat(day).replace(tzinfo=BERLIN).astimezone(UTC).replace(tzinfo=None)


def draw_games(random: Random) -> Games:
    """Draw 160 games, none around the two versions of March; finn joins after them, one game is at an exact start."""
    games, at = [], datetime(2010, 2, 1, 23, 30)
    while len(games) < 160:
        at += timedelta(minutes=random.choice([10, 90, 1440, 1440 * 9, 1440 * 20]))
        if not GAP[0] <= at <= GAP[1]:
            games.append((at, random.sample(PLAYERS if at > GAP[1] else PLAYERS[:5], random.randint(2, 4))))
    return sorted([*games, (begin("2012-01-01"), ["anna", "ben"])])


def constants_of(start: int) -> tuple[int, int, int, int]:
    """Return the constants of a version."""
    return start * 1_000_000, 40_000_000, 10_000_000, 1_000_000


def score_plainly(
    games: Games, until: datetime, versions: Sequence[tuple[str, int, str]], adjusted: Sequence[Any] = ()
) -> States:
    """Return everybody's rating and K at an instant, every version lifting all at once, without any code of the replay.

    `adjusted` are times, players and units.
    """
    states: States = {}
    last: dict[str, datetime] = {}
    constants = constants_of(versions[0][1])
    moments = [(begin(since), 0, start, None) for _, start, since in versions[1:]]
    moments += [(at, 1, players, None) for at, players in games] + [(at, 2, who, units) for at, who, units in adjusted]
    for at, kind, what, units in sorted(moments, key=lambda one: one[:2]):
        if at > until:
            break
        if kind == 0:
            constants = constants_of(what)
            states = {name: ((rating + constants[0]) // 2, constants[1]) for name, (rating, _) in states.items()}
        elif kind == 2:
            rating, k = states[what]
            states[what] = (rating + units, k)
        else:
            _score_game(states, last, at, what, constants)
    return states


def _score_game(states: States, last: dict[str, datetime], at: datetime, players: list[str], constants: Any) -> None:
    names = sorted(players)
    before = []
    for name in names:
        rating, k = states.get(name, constants[:2])
        local = [one.replace(tzinfo=UTC).astimezone(BERLIN).date() for one in (at, last.get(name, at))]
        before.append((rating, min(constants[1], k + (local[0] - local[1]).days * constants[3])))
    state = [[*column] for column in zip(*before, strict=True)]
    after = [[*column] for column in state]
    BY_GAME.score(len(names), state, [[players.index(name) + 1 for name in names]], constants, expected_scores(), after)
    states |= {name: (after[0][i], after[1][i]) for i, name in enumerate(names)}
    last |= dict.fromkeys(names, at)


def publish(name: str, versions: Sequence[tuple[str, int, str]], rule: str = "lifting/1", period: str = "game") -> None:
    """Publish versions of the ruleset."""
    for version, start, since in versions:
        text = TEXT.replace("VERSION", version).replace("START", str(start)).replace("SINCE", since)
        own_rules.publish_untried(name, text.replace("RULE", rule).replace("PERIOD", period))


def record(name: str, games: Games, first: int = 0) -> None:
    """Record games, numbered from `first` on."""
    numbered = enumerate(games, first)
    append_drafts(
        name,
        *(build_game_draft(f"g{n}", *who, at=f"{at:%Y-%m-%dT%H:%M:%SZ}", game="chess") for n, (at, who) in numbered),
    )


@pytest.fixture
def ledger(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty ledger that knows the rule."""
    own_rules.offer_rule(monkeypatch, LIFTING)
    return create_ledger(f"sqlite:///{tmp_path}/versions.db")


@pytest.fixture
def played(ledger: str) -> Iterator[tuple[str, Games]]:
    """A ledger of 161 drawn games under all versions, and these games."""
    games = draw_games(Random(11))
    publish(ledger, [*VERSIONS, LATE])
    record(ledger, games)
    return ledger, games  # type: ignore[return-value]


def instant(at: datetime) -> int:
    """Return a time in microseconds."""
    return (at - datetime(1970, 1, 1)) // timedelta(microseconds=1)


def trace_of(name: str, at: datetime | None = None, **options: Any) -> Trace:
    """Return the trace of the ladder at a time, by default with its last game."""
    with open_for_reading(name) as connection:
        return Ladders(decode(connection), None if at is None else instant(at), **options).trace("lifting")


def states_of(trace: Trace) -> States:
    """Return everybody's state at the end of a trace."""
    return {player: trace.state(number) for number, player in enumerate(trace.stream.names)}  # type: ignore[misc]


def balances(trace: Trace) -> bool:
    """Tell whether the accounts of a trace sum to what everybody has."""
    return trace.start_total + trace.minted + trace.adjusted - trace.burned == sum(trace.points)


@pytest.mark.slow_cases
def test_everybody_is_lifted_when_a_version_takes_effect(played: tuple[str, Games]) -> None:
    """At every game, around every version's first instant, and long after the last game: the oracle's states."""
    name, games = played
    starts = [begin(since) for _, _, since in [*VERSIONS, LATE]]
    times = [at for at, _ in games] + [at + timedelta(seconds=s) for at in starts[1:] for s in (-1, 0, 1)]
    whole, lifted = trace_of(name), 0
    assert states_of(whole) == score_plainly(games, games[-1][0], VERSIONS)
    for at in times:
        expected = score_plainly(games, at, [*VERSIONS, LATE])
        trace = trace_of(name, at)
        assert states_of(trace) == expected
        assert balances(trace)
        cut = whole.truncate(*whole.count_before(_facts(name), (instant(at) + 1, 0))).apply_versions_until(instant(at))
        assert states_of(cut) == expected
        assert balances(cut)
        lifted += sum(one.is_version_entry for one in trace.stream.adjustments)
    assert lifted > 1000


def _facts(name: str) -> Any:
    with open_for_reading(name) as connection:
        return decode(connection)


def test_one_version_alone_lifts_nobody(played: tuple[str, Games]) -> None:
    """Under one version for all games, and with only the first ever in force, ratings run on."""
    name, games = played
    alone = trace_of(name, rules="lifting@2")
    assert states_of(alone) == score_plainly(games, games[-1][0], VERSIONS[1:2])
    assert not any(one.is_version_entry for one in alone.stream.adjustments)


def test_withdrawn_version_lifts_nobody(played: tuple[str, Games]) -> None:
    """A version that is withdrawn was never in force, at every position behind that."""
    name, games = played
    position = next(one.position for one in _facts(name).rulesets["lifting"] if one.ruleset.version == "3")
    with open_for_reading(name) as connection:
        published = json.loads(read_records_at(connection, [position])[position])["id"]
    append_drafts(
        name, build_draft(build_event("event.voided", "2013-01-01T12:00:00Z", id=published, reason="a mistake"))
    )
    left = [one for one in VERSIONS if one[0] != "3"]
    assert states_of(trace_of(name)) == score_plainly(games, games[-1][0], left)


def test_adjustments_change_lifted_ratings(played: tuple[str, Games]) -> None:
    """Adjustments before, between and after versions that take effect, and behind the last game, are in order."""
    name, games = played
    adjusted = [
        (begin("2011-03-01") - timedelta(seconds=1), "anna", 10_000_001),
        (begin("2011-03-01"), "ben", 7_000_000),
        (begin("2011-03-01") + timedelta(hours=3), "anna", -3_000_000),
        (begin("2090-06-01"), "cleo", 5_000_000),
    ]
    for at, who, units in adjusted:
        points = str(Fraction(units, 1_000_000).limit_denominator()) if units % 1_000_000 == 0 else "10.000001"
        append_drafts(
            name,
            build_draft(
                build_event(
                    "points.adjusted",
                    f"{at:%Y-%m-%dT%H:%M:%SZ}",
                    ladder="lifting",
                    player=who,
                    points=points,
                    reason="x",
                )
            ),
        )
    for at in (adjusted[0][0], adjusted[1][0], adjusted[2][0], begin("2011-03-02"), games[-1][0], begin("2091-01-01")):
        trace = trace_of(name, at)
        assert states_of(trace) == score_plainly(games, at, [*VERSIONS, LATE], adjusted)
        assert balances(trace)
    # the last adjustment lies behind the last version
    assert states_of(trace_of(name)) == score_plainly(games, begin("2091-01-01"), [*VERSIONS, LATE], adjusted)


@pytest.mark.slow
def test_compiled_and_interpreted_lifts_are_equal(played: tuple[str, Games], monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code leaves the same states before every game and entry as the interpreter."""
    pytest.importorskip("numba")
    name, _ = played
    with compiling.force_interpreted():
        interpreted = trace_of(name)
    monkeypatch.setattr(compiling, "COMPILED_GAMES", 1)
    monkeypatch.setattr(compiling, "can_compile", lambda rule: True)
    monkeypatch.setattr(replaying, "replay_interpreted", None)
    assert trace_of(name).has_same_results(interpreted)


def test_open_ledger_goes_on_across_versions(ledger: str) -> None:
    """A ledger that stays open continues its trace over every version's start and ends like one opened anew."""
    games = draw_games(Random(4))
    publish(ledger, [*VERSIONS, LATE])
    with rl.open(ledger) as opened:
        for first in range(0, len(games), 7):
            record(ledger, games[first : first + 7], first)
            rows = opened.at().standings("lifting").rows
            states = score_plainly(games[: first + 7], games[min(first + 6, len(games) - 1)][0], VERSIONS)
            assert {row.player: row.points * 1_000_000 for row in rows} == {
                player: rating for player, (rating, _) in states.items()
            }


@pytest.mark.slow_cases
@pytest.mark.parametrize("period", ["day", "month"])
def test_period_ladders_lift_between_periods(ledger: str, period: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that takes effect as a period begins lifts before it is scored, one within a period at its close:
    interpreted, compiled, and cut.
    """
    own_rules.offer_rule(monkeypatch, LIFTING_BY_PERIOD)
    games = draw_games(Random(12))
    publish(ledger, [*VERSIONS, LATE], "lifting-period/1", period)
    record(ledger, games)
    with compiling.force_interpreted():
        whole = trace_of(ledger)
    entries = [one for one in whole.stream.adjustments if one.is_version_entry]
    assert {one.version for one in entries} == {1, 2, 3}
    assert balances(whole)
    # within a month, version 3 waits for April
    moments = [("2", "2011-03-01"), ("3", "2011-03-02" if period == "day" else "2011-04-01"), ("4", "2012-01-01")]
    for version, at in [(version, begin(day)) for version, day in moments]:
        before, after = (trace_of(ledger, at + timedelta(microseconds=one)) for one in (-1, 0))
        start = next(start for name, start, _ in VERSIONS if name == version)
        assert states_of(after) == {
            player: ((rating + start * 1_000_000) // 2, 40_000_000) for player, (rating, _) in states_of(before).items()
        }
        assert balances(after)
        cut = whole.truncate(*whole.count_before(_facts(ledger), (instant(at) + 1, 0))).apply_versions_until(
            instant(at)
        )
        assert states_of(cut) == states_of(after)
    monkeypatch.setattr(compiling, "COMPILED_GAMES", 1)
    monkeypatch.setattr(compiling, "can_compile", lambda rule: True)
    assert trace_of(ledger).has_same_results(whole)


def test_history_has_a_row_for_every_version(played: tuple[str, Games]) -> None:
    """What one row leaves is what the next one begins with; a version's row names no game, says why, and shows K."""
    name, _ = played
    with rl.open(name) as ledger:
        rows = ledger.at().history("lifting", "anna").rows
        late = ledger.at(as_of="2091-01-01").history("lifting", "anna").rows
    assert [row.after for row in rows[:-1]] == [row.before for row in rows[1:]]
    lifted = [row for row in rows if row.cause == "version"]
    assert len(lifted) == 3
    assert len(late) == len(rows) + 1
    for row, (_, start, since) in zip(lifted, VERSIONS[1:], strict=True):
        assert row.game_id is None
        assert row.reason == "a version of the ruleset took effect"
        assert row.occurred_at.replace(tzinfo=None) == begin(since)
        assert row.after == Fraction((int(row.before * 1_000_000) + start * 1_000_000) // 2, 1_000_000)


def test_causes_of_a_change_sum_exactly_across_versions(played: tuple[str, Games]) -> None:
    """From before all versions to after, in the log, in time and under one version, nothing is left over."""
    name, _ = played
    with rl.open(name) as ledger:
        head = ledger.head.position

    def at(day: str) -> Coordinates:
        return Coordinates(instant(begin(day)), head, None)

    ways = [
        (Coordinates(None, head - 60, None), Coordinates(None, head, None)),
        (at("2010-12-01"), at("2091-01-01")),
        (Coordinates(None, head, "lifting@1"), Coordinates(None, head, None)),
    ]  # fmt: skip
    for before, after in ways:
        with open_for_reading(name) as connection:
            found = attribute_difference(connection, "lifting", "anna", before, after)
        assert found.change == sum(one.own + one.ripple for one in found.causes)
        assert found.after != found.before


@pytest.mark.slow_cases
def test_numbers_carry_over_by_name_to_a_rule_that_keeps_others(
    ledger: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """From two numbers to three and back: points go on, K is carried, what is new begins with its start; cut at every
    game, with entries and adjustments, and shown with the numbers that each version keeps.
    """
    rules = {"lifting/1": LIFTING, "wider/1": WIDER}
    monkeypatch.setattr(own_rules.versions, "find_rule", lambda wanted: rules.get(wanted) or registry.find_rule(wanted))
    games = draw_games(Random(11))
    turns = [("lifting/1", VERSIONS[0]), ("wider/1", VERSIONS[1]), ("lifting/1", VERSIONS[3])]
    for rule, version in turns:
        publish(ledger, [version], rule)
    record(ledger, games)
    adjusted = build_event(
        "points.adjusted", "2011-06-01T12:00:00Z", ladder="lifting", player="ben", points="5", reason="x"
    )
    append_drafts(ledger, build_draft(adjusted))
    whole, wide = trace_of(ledger), 0
    for at, _ in games:
        trace = trace_of(ledger, at)
        expected = _score_in_turns(games, at)
        assert {name: state[: len(expected[name])] for name, state in states_of(trace).items()} == expected
        assert balances(trace)
        cut = whole.truncate(*whole.count_before(_facts(ledger), (instant(at) + 1, 0))).apply_versions_until(
            instant(at)
        )
        assert states_of(cut) == states_of(trace)
        wide += len(next(iter(expected.values()))) == 3
    assert 20 < wide < len(games) - 20
    with rl.open(ledger) as opened:
        for number, (at, _) in enumerate(games):
            states = _score_in_turns(games, at)
            explained = opened.at().explain("lifting", f"g{number}").players
            assert {one.player: one.after * SCALE for one in explained} == {
                one.player: states[one.player][0] for one in explained
            }
        rows = opened.at().history("lifting", "ben").rows
        assert [row.after for row in rows[:-1]] == [row.before for row in rows[1:]]
        assert {tuple(row.state_exact) for row in rows} == {("rating",), ("points", "wins", "k")}
        assert {*opened.at(as_of="2011-06-02").standings("lifting").rows[0].state} == {"points", "wins", "k"}
        assert {*opened.at().standings("lifting").rows[0].state} == {"rating"}


def _score_in_turns(games: Games, until: datetime) -> dict[str, tuple[int, ...]]:
    """Return what the versions of the test above leave: the second one counts games, the third one lifts."""
    states: dict[str, tuple[int, int]] = {}
    last: dict[str, datetime] = {}
    counts: dict[str, int] = {}
    moments: list[Any] = [(begin(since), 0, turn) for turn, (_, _, since) in enumerate(VERSIONS[1::2], 1)]
    moments += [(at, 1, players) for at, players in games] + [(datetime(2011, 6, 1, 12), 2, "ben")]
    turn, constants = 0, constants_of(VERSIONS[0][1])
    for at, kind, what in sorted(moments, key=lambda one: one[:2]):
        if at > until:
            break
        if kind == 0:
            turn, constants = what, constants_of(VERSIONS[1][1] if what == 1 else VERSIONS[3][1])
            counts = dict.fromkeys(states, 7)
            if turn == 2:
                states = {name: lift(state, constants) for name, state in states.items()}  # type: ignore[misc]
        elif kind == 2:
            states[what] = (states[what][0] + 5_000_000, states[what][1])
        else:
            _score_game(states, last, at, what, constants)
            counts |= {name: counts.get(name, 7) + 1 for name in what}
    if turn != 1:
        return {**states}
    return {name: (rating, counts[name], k) for name, (rating, k) in states.items()}

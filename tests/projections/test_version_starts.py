"""Versions change ratings when they take effect, as in an oracle that goes through the games one by one and lifts all
players at once.
"""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import ratings_ledger as rl
from ratings_ledger.ledger.store.log import read_records_at
from ratings_ledger.rules import Numbers, State, StateValues, expected_scores
from tests import own_rules
from tests.builders import build_draft, build_event, build_game_draft
from tests.ledgers import append_drafts, create_ledger, open_for_reading
from tests.projections.histories import Axes, attribute_change, load_facts, load_interpreted_trace, load_ladders
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
# the first lifts nobody, and no game is between the second and the third; `LATE` takes effect after all games
VERSIONS = [("1", 1500, "1900-01-01"), ("2", 1600, "2011-03-01"), ("3", 1400, "2011-03-02"), ("4", 1700, "2012-01-01")]
LATE = ("5", 1300, "2090-01-01")
GAP = datetime(2011, 2, 27), datetime(2011, 3, 4)
Games = list[tuple[datetime, list[str]]]
States = dict[str, tuple[int, int]]


def lift_state(state: StateValues, constants: Numbers) -> StateValues:
    """Return a rating halfway to the start of the new version, and the K of a new player."""
    return ((state[0] + constants[0]) // 2, constants[1])


def score_wider(n: int, before: Any, columns: Numbers, constants: Numbers, table: Numbers, after: Any) -> int:
    """Score with K in the third column, and count the games in the second one, named `count`."""
    for i in range(n):
        after[1][i] = before[1][i] + 1
    return score(n, [before[0], before[2]], columns, constants, table, [after[0], after[2]])


LIFTING = BY_GAME._replace(name="lifting", enter=lift_state, new_season=None, rank_by=None)
# keeps another number between the two, and has no `enter` function
WIDER = LIFTING._replace(
    name="wider",
    score=score_wider,
    enter=None,
    state=(State("points", SCALE), State("count", 1), State("k", SCALE)),
    start=lambda params: (params.start * SCALE, 7, params.k * SCALE),
    shown=(),
    draw=None,
    chance=None,
    age=lambda state, elapsed, constants: (state[0], state[1], min(constants[1], state[2] + elapsed * constants[3])),
)
LIFTING_BY_PERIOD = BY_PERIOD._replace(name="lifting-period", enter=lift_state, rank_by=None)


def begin(day: str) -> datetime:
    """Return the first instant of a day in Berlin, as a time in UTC."""
    return datetime.fromisoformat(day).replace(tzinfo=BERLIN).astimezone(UTC).replace(tzinfo=None)


def draw_games(random: Random) -> Games:
    """Draw 160 games, none around the two versions of March, and add one at the first instant of the version of 2012.

    finn joins after March's versions.
    """
    games, at = [], datetime(2010, 2, 1, 23, 30)
    while len(games) < 160:
        at += timedelta(minutes=random.choice([10, 90, 1440, 1440 * 9, 1440 * 20]))
        if not GAP[0] <= at <= GAP[1]:
            games.append((at, random.sample(PLAYERS if at > GAP[1] else PLAYERS[:5], random.randint(2, 4))))
    return sorted([*games, (begin("2012-01-01"), ["anna", "ben"])])


def build_constants(start: int) -> tuple[int, int, int, int]:
    """Return the constants of a version."""
    return start * 1_000_000, 40_000_000, 10_000_000, 1_000_000


def score_plainly(
    games: Games, until: datetime, versions: Sequence[tuple[str, int, str]], adjusted: Sequence[Any] = ()
) -> States:
    """Return every player's rating and K at an instant; each version lifts all players at once, without code of the
    replay.

    `adjusted` are (time, player, units).
    """
    states: States = {}
    last: dict[str, datetime] = {}
    constants = build_constants(versions[0][1])
    moments = [(begin(since), 0, start, None) for _, start, since in versions[1:]]
    moments += [(at, 1, players, None) for at, players in games] + [
        (at, 2, player, units) for at, player, units in adjusted
    ]
    for at, kind, subject, units in sorted(moments, key=lambda moment: moment[:2]):
        if at > until:
            break
        if kind == 0:
            constants = build_constants(subject)
            states = {name: ((rating + constants[0]) // 2, constants[1]) for name, (rating, _) in states.items()}
        elif kind == 2:
            rating, k = states[subject]
            states[subject] = (rating + units, k)
        else:
            _score_game(states, last, at, subject, constants)
    return states


def _score_game(states: States, last: dict[str, datetime], at: datetime, players: list[str], constants: Any) -> None:
    names = sorted(players)
    before = []
    for name in names:
        rating, k = states.get(name, constants[:2])
        local_days = [moment.replace(tzinfo=UTC).astimezone(BERLIN).date() for moment in (at, last.get(name, at))]
        before.append((rating, min(constants[1], k + (local_days[0] - local_days[1]).days * constants[3])))
    state = [[*column] for column in zip(*before, strict=True)]
    after = [[*column] for column in state]
    BY_GAME.score(len(names), state, [[players.index(name) + 1 for name in names]], constants, expected_scores(), after)
    states |= {name: (after[0][i], after[1][i]) for i, name in enumerate(names)}
    last |= dict.fromkeys(names, at)


def publish(name: str, versions: Sequence[tuple[str, int, str]], rule: str = "lifting/1", period: str = "game") -> None:
    """Publish versions of the ruleset."""
    for version, start, since in versions:
        text = TEXT.replace("VERSION", version).replace("START", str(start)).replace("SINCE", since)
        own_rules.publish_without_trial(name, text.replace("RULE", rule).replace("PERIOD", period))


def record(name: str, games: Games, first: int = 0) -> None:
    """Record games, numbered from `first` on."""
    numbered = enumerate(games, first)
    append_drafts(
        name,
        *(
            build_game_draft(f"g{n}", *players, at=f"{at:%Y-%m-%dT%H:%M:%SZ}", game="chess")
            for n, (at, players) in numbered
        ),
    )


@pytest.fixture
def ledger(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return an empty ledger that offers the rule."""
    own_rules.substitute_rule(monkeypatch, LIFTING)
    return create_ledger(f"sqlite:///{tmp_path}/versions.db")


@pytest.fixture
def game_ledger(ledger: str) -> tuple[str, Games]:
    """Return a ledger of 161 random games under all versions, with these games."""
    games = draw_games(Random(11))
    publish(ledger, [*VERSIONS, LATE])
    record(ledger, games)
    return ledger, games


def to_microseconds(at: datetime) -> int:
    """Return a time in microseconds."""
    return (at - datetime(1970, 1, 1)) // timedelta(microseconds=1)


def load_trace(name: str, at: datetime | None = None, **options: Any) -> Any:
    """Return the trace of the ladder at a time; by default after its last game or adjustment."""
    return load_ladders(name, None if at is None else to_microseconds(at), **options).trace("lifting")


def list_states(trace: Any) -> States:
    """Return every player's state at the end of a trace."""
    return {player: trace.state(number) for number, player in enumerate(trace.stream.names)}  # type: ignore[misc]


def is_balanced(trace: Any) -> bool:
    """Tell whether the accounts of a trace sum to the points of all players."""
    return trace.start_total + trace.minted + trace.adjusted - trace.burned == sum(trace.points)


@pytest.mark.slow_cases
def test_all_players_are_lifted_when_a_version_takes_effect(game_ledger: tuple[str, Games]) -> None:
    """At every game, around every version's first instant, and after the last game, states equal the oracle's."""
    name, games = game_ledger
    starts = [begin(since) for _, _, since in [*VERSIONS, LATE]]
    times = [at for at, _ in games] + [at + timedelta(seconds=s) for at in starts[1:] for s in (-1, 0, 1)]
    whole, lift_count = load_trace(name), 0
    assert list_states(whole) == score_plainly(games, games[-1][0], VERSIONS)
    for at in times:
        expected = score_plainly(games, at, [*VERSIONS, LATE])
        trace = load_trace(name, at)
        assert list_states(trace) == expected
        assert is_balanced(trace)
        cut = whole.truncate(*whole.count_before(load_facts(name), (to_microseconds(at) + 1, 0))).apply_versions_until(
            to_microseconds(at)
        )
        assert list_states(cut) == expected
        assert is_balanced(cut)
        lift_count += sum(adjustment.is_version_entry for adjustment in trace.stream.adjustments)
    assert lift_count > 1000


def test_simulated_version_lifts_no_player(game_ledger: tuple[str, Games]) -> None:
    """If one version scores all games, ratings continue without a lift."""
    name, games = game_ledger
    simulated = load_trace(name, rules="lifting@2")
    assert list_states(simulated) == score_plainly(games, games[-1][0], VERSIONS[1:2])
    assert not any(adjustment.is_version_entry for adjustment in simulated.stream.adjustments)


def test_withdrawn_version_lifts_no_player(game_ledger: tuple[str, Games]) -> None:
    """Once a version is withdrawn, it was never in force."""
    name, games = game_ledger
    position = next(bound.position for bound in load_facts(name).rulesets["lifting"] if bound.ruleset.version == "3")
    with open_for_reading(name) as connection:
        event_id = json.loads(read_records_at(connection, [position])[position])["id"]
    append_drafts(
        name, build_draft(build_event("event.voided", "2013-01-01T12:00:00Z", id=event_id, reason="a mistake"))
    )
    remaining = [version for version in VERSIONS if version[0] != "3"]
    assert list_states(load_trace(name)) == score_plainly(games, games[-1][0], remaining)


def test_adjustments_change_lifted_ratings(game_ledger: tuple[str, Games]) -> None:
    """Adjustments before, between and after versions, and after the last game, apply in order of time."""
    name, games = game_ledger
    adjusted = [
        (begin("2011-03-01") - timedelta(seconds=1), "anna", 10_000_001),
        (begin("2011-03-01"), "ben", 7_000_000),
        (begin("2011-03-01") + timedelta(hours=3), "anna", -3_000_000),
        (begin("2090-06-01"), "cleo", 5_000_000),
    ]
    for at, player, units in adjusted:
        points = str(Fraction(units, 1_000_000).limit_denominator()) if units % 1_000_000 == 0 else "10.000001"
        append_drafts(
            name,
            build_draft(
                build_event(
                    "points.adjusted",
                    f"{at:%Y-%m-%dT%H:%M:%SZ}",
                    ladder="lifting",
                    player=player,
                    points=points,
                    reason="x",
                )
            ),
        )
    for at in (adjusted[0][0], adjusted[1][0], adjusted[2][0], begin("2011-03-02"), games[-1][0], begin("2091-01-01")):
        trace = load_trace(name, at)
        assert list_states(trace) == score_plainly(games, at, [*VERSIONS, LATE], adjusted)
        assert is_balanced(trace)
    # the last adjustment comes after the last version
    assert list_states(load_trace(name)) == score_plainly(games, begin("2091-01-01"), [*VERSIONS, LATE], adjusted)


@pytest.mark.slow
def test_compiled_and_interpreted_lifts_are_equal(
    game_ledger: tuple[str, Games], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled and interpreted replays have the same states before every game and every version."""
    pytest.importorskip("numba")
    name, _ = game_ledger
    interpreted = load_interpreted_trace(name, "lifting")
    own_rules.compile_every_rule(monkeypatch)
    assert load_trace(name).has_same_results(interpreted)


def test_open_ledger_follows_games_across_versions(ledger: str) -> None:
    """In a ledger that stays open while games are recorded, ratings equal the oracle's across versions."""
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
    """A version that starts with a period lifts before that period is scored; a version within a period lifts at its
    close.

    The same holds for interpreted, compiled and truncated traces.
    """
    own_rules.substitute_rule(monkeypatch, LIFTING_BY_PERIOD)
    games = draw_games(Random(12))
    publish(ledger, [*VERSIONS, LATE], "lifting-period/1", period)
    record(ledger, games)
    whole = load_interpreted_trace(ledger, "lifting")
    entries = [adjustment for adjustment in whole.stream.adjustments if adjustment.is_version_entry]
    assert {entry.version for entry in entries} == {1, 2, 3}
    assert is_balanced(whole)
    # within a month, version 3 waits for April
    moments = [("2", "2011-03-01"), ("3", "2011-03-02" if period == "day" else "2011-04-01"), ("4", "2012-01-01")]
    for version, at in [(version, begin(day)) for version, day in moments]:
        before, after = (load_trace(ledger, at + timedelta(microseconds=offset)) for offset in (-1, 0))
        start = next(start for name, start, _ in VERSIONS if name == version)
        assert list_states(after) == {
            player: ((rating + start * 1_000_000) // 2, 40_000_000)
            for player, (rating, _) in list_states(before).items()
        }
        assert is_balanced(after)
        cut = whole.truncate(
            *whole.count_before(load_facts(ledger), (to_microseconds(at) + 1, 0))
        ).apply_versions_until(to_microseconds(at))
        assert list_states(cut) == list_states(after)
    own_rules.compile_every_rule(monkeypatch)
    assert load_trace(ledger).has_same_results(whole)


def test_history_has_a_row_for_every_version(game_ledger: tuple[str, Games]) -> None:
    """Rows of a history are a chain; a version's row has no game, and has the reason and the lifted points."""
    name, _ = game_ledger
    with rl.open(name) as ledger:
        rows = ledger.at().history("lifting", "anna").rows
        rows_with_last_version = ledger.at(as_of="2091-01-01").history("lifting", "anna").rows
    assert [row.after for row in rows[:-1]] == [row.before for row in rows[1:]]
    lifted = [row for row in rows if row.cause == "version"]
    assert len(lifted) == 3
    assert len(rows_with_last_version) == len(rows) + 1
    for row, (_, start, since) in zip(lifted, VERSIONS[1:], strict=True):
        assert row.game_id is None
        assert row.reason == "a version of the ruleset took effect"
        assert row.occurred_at.replace(tzinfo=None) == begin(since)
        assert row.after == Fraction((int(row.before * 1_000_000) + start * 1_000_000) // 2, 1_000_000)


def test_causes_of_a_change_sum_exactly_across_versions(game_ledger: tuple[str, Games]) -> None:
    """Causes sum exactly to a change across versions: between positions or instants, or from a simulated version."""
    name, _ = game_ledger
    with rl.open(name) as ledger:
        head = ledger.head.position

    def to_axes(day: str) -> Axes:
        return to_microseconds(begin(day)), head, None

    sides = [
        ((None, head - 60, None), (None, head, None)),
        (to_axes("2010-12-01"), to_axes("2091-01-01")),
        ((None, head, "lifting@1"), (None, head, None)),
    ]
    for before, after in sides:
        attribution = attribute_change(name, "lifting", "anna", before, after)
        assert attribution.change == sum(cause.own + cause.ripple for cause in attribution.causes)
        assert attribution.after != attribution.before


@pytest.mark.slow_cases
def test_numbers_carry_over_by_name_between_rules(ledger: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """From two numbers to three and back, the points continue, K is carried, and a new number begins with its start.

    The same holds for a trace truncated at any game; standings show the numbers of the version in force.
    """
    rules = {"lifting/1": LIFTING, "wider/1": WIDER}
    own_rules.substitute_rules(monkeypatch, rules)
    games = draw_games(Random(11))
    turns = [("lifting/1", VERSIONS[0]), ("wider/1", VERSIONS[1]), ("lifting/1", VERSIONS[3])]
    for rule, version in turns:
        publish(ledger, [version], rule)
    record(ledger, games)
    adjusted = build_event(
        "points.adjusted", "2011-06-01T12:00:00Z", ladder="lifting", player="ben", points="5", reason="x"
    )
    append_drafts(ledger, build_draft(adjusted))
    whole, wide_count = load_trace(ledger), 0
    for at, _ in games:
        trace = load_trace(ledger, at)
        expected = _score_in_turns(games, at)
        assert {name: state[: len(expected[name])] for name, state in list_states(trace).items()} == expected
        assert is_balanced(trace)
        cut = whole.truncate(
            *whole.count_before(load_facts(ledger), (to_microseconds(at) + 1, 0))
        ).apply_versions_until(to_microseconds(at))
        assert list_states(cut) == list_states(trace)
        wide_count += len(next(iter(expected.values()))) == 3
    assert 20 < wide_count < len(games) - 20
    with rl.open(ledger) as opened:
        for number, (at, _) in enumerate(games):
            states = _score_in_turns(games, at)
            players = opened.at().explain("lifting", f"g{number}").players
            assert {row.player: row.after * SCALE for row in players} == {
                row.player: states[row.player][0] for row in players
            }
        rows = opened.at().history("lifting", "ben").rows
        assert [row.after for row in rows[:-1]] == [row.before for row in rows[1:]]
        assert {tuple(row.state_exact) for row in rows} == {("rating",), ("points", "count", "k")}
        assert {*opened.at(as_of="2011-06-02").standings("lifting").rows[0].state} == {"points", "count", "k"}
        assert {*opened.at().standings("lifting").rows[0].state} == {"rating"}


def _score_in_turns(games: Games, until: datetime) -> dict[str, tuple[int, ...]]:
    """Return the states under the versions of the test above: the second counts games, and the third lifts players."""
    states: dict[str, tuple[int, int]] = {}
    last: dict[str, datetime] = {}
    counts: dict[str, int] = {}
    moments: list[Any] = [(begin(since), 0, turn) for turn, (_, _, since) in enumerate(VERSIONS[1::2], 1)]
    moments += [(at, 1, players) for at, players in games] + [(datetime(2011, 6, 1, 12), 2, "ben")]
    turn, constants = 0, build_constants(VERSIONS[0][1])
    for at, kind, subject in sorted(moments, key=lambda moment: moment[:2]):
        if at > until:
            break
        if kind == 0:
            turn, constants = subject, build_constants(VERSIONS[1][1] if subject == 1 else VERSIONS[3][1])
            counts = dict.fromkeys(states, 7)
            if turn == 2:
                states = {name: lift_state(state, constants) for name, state in states.items()}  # type: ignore[misc]
        elif kind == 2:
            states[subject] = (states[subject][0] + 5_000_000, states[subject][1])
        else:
            _score_game(states, last, at, subject, constants)
            counts |= {name: counts.get(name, 7) + 1 for name in subject}
    if turn != 1:
        return {**states}
    return {name: (rating, counts[name], k) for name, (rating, k) in states.items()}


def test_failing_entry_into_a_version_names_the_version(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the code that lifts players fails, the error names the position of the version that took effect."""

    def fail_to_lift(state: StateValues, constants: Numbers) -> StateValues:
        raise ZeroDivisionError("of the lift")

    own_rules.substitute_rule(monkeypatch, LIFTING._replace(enter=fail_to_lift))
    name = create_ledger(f"sqlite:///{tmp_path}/failing.db")
    publish(name, VERSIONS[:2])
    record(name, [(datetime(2011, 2, 1), ["anna", "ben"]), (datetime(2011, 4, 1), ["anna", "ben"])])
    message = r"the rule failed at position 2: .*of the lift"
    with rl.open(name) as ledger, pytest.raises(rl.RuleFailed, match=message):
        ledger.at().standings("lifting")

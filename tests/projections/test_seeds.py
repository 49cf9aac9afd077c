"""Seeds: the states with which players begin on a ladder, as facts."""

from fractions import Fraction
from random import Random
from typing import Any

import pytest

from ratings_ledger import Refused, Ruleset
from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.events.types import STATE_MAX, read_data
from ratings_ledger.projections.facts.applying import apply, settle_facts
from ratings_ledger.projections.facts.columns import Facts, Seed
from ratings_ledger.projections.facts.lookups import known_players
from ratings_ledger.projections.replay.continuation import read_trace_inputs
from ratings_ledger.projections.replay.replay import replay, replay_compiled, replay_interpreted
from ratings_ledger.projections.replay.streams import build_streams, compute_seeded_state, find_seeds, state_columns
from ratings_ledger.projections.rulesets.versions import Version, bind
from ratings_ledger.rules import STATE_COLUMNS_MAX, UNITS_MAX, State

LADDERS = ("elo-x/all", "elo-x/b")
PLAYERS = ("anna", "ben", "cleo", "dora")
MILLION = 1_000_000


class TwoColumns(Version):
    """A version whose rule also keeps a deviation; players begin with 1500 and 350."""

    @property
    def start_state(self) -> tuple[int, ...]:
        return 1500 * MILLION, 350 * MILLION


def build_elo(name: str = "1", **members: Any) -> Version:
    """Return a version of Elo."""
    scope = {"game": ["x"]}
    params = {"start": 1000, "k_total": 32}
    data = {"id": "elo-x", "version": name, "rule": "pairwise-elo/1", "effective_from": "2000-01-01",
            "scope": scope, "params": params, **members}  # fmt: skip
    version, problems = bind(Ruleset.model_validate(data), 1)
    assert version is not None, problems
    return version


def build_two_column_version() -> Version:
    """Return a version whose rule keeps a rating and a deviation."""
    version = build_elo("2")
    state = (State("rating", MILLION), State("deviation", MILLION))
    return TwoColumns(*version._replace(rule=version.rule._replace(state=state)))


def build_seed(state: dict[str, str], games: int = 0) -> Seed:
    """Return a seed with this state."""
    return Seed(1, LADDERS[0], 0, state, games)


def resolve_id(log: list[KnownEvent], withdrawn_ids: set[str], player: str) -> str:
    """Return the current id of a player after the live renames; a rename that closes a circle does not count."""
    next_ids: dict[str, str] = {}
    for event in log:
        if event.type == "player.renamed" and event.event_id not in withdrawn_ids:
            name = event.data["new_player"]
            while name in next_ids and name != event.data["player"]:
                name = next_ids[name]
            if name != event.data["player"]:
                next_ids[event.data["player"]] = event.data["new_player"]
    while player in next_ids:
        player = next_ids[player]
    return player


def find_withdrawn(log: list[KnownEvent]) -> set[str]:
    """Return the ids of withdrawn events; each void toggles the event at the end of its chain."""
    withdrawn_ids: set[str] = set()
    for event in log:
        if event.type == "event.voided":
            target = event
            while target.type == "event.voided":
                target = next(candidate for candidate in log if candidate.event_id == target.data["id"])
            withdrawn_ids ^= {target.event_id}
    return withdrawn_ids


def draw_event(chance: Random, number: int, log: list[KnownEvent]) -> KnownEvent:
    """Draw a seed, a rename or a void."""
    kind = chance.choice(("seed", "seed", "seed", "rename", "void"))
    if kind == "void" and log:
        return KnownEvent(f"e{number}", "event.voided", 0, {"id": chance.choice(log).event_id, "reason": "r"})
    if kind == "rename":
        player, new_player = chance.sample(PLAYERS, 2)
        if not any(event.type == "player.renamed" and event.data["player"] == player for event in log):
            data = {"player": player, "new_player": new_player}
            return KnownEvent(f"e{number}", "player.renamed", 0, data)
    state = {"rating": str(chance.randint(1, 9))}
    data = {"ladder": chance.choice(LADDERS), "player": chance.choice(PLAYERS), "state": state}
    if chance.random() < 0.5:
        data["games"] = chance.randint(0, 5)
    return KnownEvent(f"e{number}", "player.seeded", chance.randint(-9, 9), data)


@pytest.mark.parametrize("number", range(40))
def test_seeds_match_a_plain_reading_of_the_log(number: int) -> None:
    """The first live seed of each person counts, after any renames and voids, and in any order of occurrence."""
    chance, log, facts = Random(number), list[KnownEvent](), Facts(0, b"")
    for position in range(1, 30):
        log.append(draw_event(chance, position, log))
        apply(facts, position, log[-1])
        settle_facts(facts)
        withdrawn_ids = find_withdrawn(log)
        for ladder in LADDERS:
            expected: dict[str, tuple[Any, int, int]] = {}
            for at, event in enumerate(log, 1):
                if (
                    event.type == "player.seeded"
                    and event.event_id not in withdrawn_ids
                    and event.data["ladder"] == ladder
                ):
                    expected_seed = event.data["state"], event.data.get("games", 0), at
                    expected.setdefault(resolve_id(log, withdrawn_ids, event.data["player"]), expected_seed)
            seeds = find_seeds(facts, ladder)
            assert expected == {
                facts.players[person]: (seed.state, seed.games, seed.position) for person, seed in seeds.items()
            }
            assert all(seed.player == person for person, seed in seeds.items())
            seeded_players = {
                event.data["player"]
                for event in log
                if event.type == "player.seeded" and event.event_id not in withdrawn_ids
            }
            assert seeded_players <= known_players(facts)
            trace_inputs = read_trace_inputs(facts, ladder, [build_elo()])
            assert trace_inputs.seeds == sorted([name, state, games] for name, (state, games, _) in expected.items())


@pytest.mark.parametrize("number", range(20))
def test_clubs_follow_chains_of_renames(number: int) -> None:
    """Every old name of a club leads to its newest name; a rename in a circle does not count, and is reported."""
    chance, log, facts = Random(number), list[KnownEvent](), Facts(0, b"")
    for position in range(1, 20):
        club, new_club = chance.sample(PLAYERS, 2)
        if log and chance.random() < 0.3:
            event = KnownEvent(f"e{position}", "event.voided", 0, {"id": chance.choice(log).event_id, "reason": "r"})
        elif any(event.type == "club.renamed" and event.data["club"] == club for event in log):
            continue
        else:
            event = KnownEvent(f"e{position}", "club.renamed", 0, {"club": club, "new_club": new_club})
        log.append(event)
        apply(facts, position, event)
        settle_facts(facts)
        as_players = [
            logged._replace(
                type="player.renamed", data={"player": logged.data["club"], "new_player": logged.data["new_club"]}
            )
            if logged.type == "club.renamed" else logged
            for logged in log
        ]  # fmt: skip
        withdrawn_ids = find_withdrawn(log)
        assert {club: facts.current_club(club) for club in PLAYERS} == {
            club: resolve_id(as_players, withdrawn_ids, club) for club in PLAYERS
        }
        live = [logged for logged in log if logged.type == "club.renamed" and logged.event_id not in withdrawn_ids]
        assert len(facts.circular) == len(live) - len(facts.clubs)
        assert read_trace_inputs(facts, LADDERS[0], [build_elo()]).clubs == [
            list(logged) for logged in sorted(facts.clubs.items())
        ]


def test_seeded_state_has_units_and_defaults_of_each_column() -> None:
    """Columns missing in a seed have their defaults; the first column is found by any name that it ever had."""
    points_version, rating_version = build_elo(), build_two_column_version()
    both = [points_version, rating_version]
    assert [column.name for column in state_columns(points_version.rule)] == ["points"]
    assert compute_seeded_state(build_seed({"rating": "1650.5", "deviation": "80"}), rating_version, both) == (
        1650_500_000,
        80 * MILLION,
    )
    assert compute_seeded_state(build_seed({"rating": "1650"}), rating_version, both) == (1650 * MILLION, 350 * MILLION)
    assert compute_seeded_state(build_seed({"deviation": "80"}), rating_version, both) == (1500 * MILLION, 80 * MILLION)
    assert compute_seeded_state(build_seed({"points": "1650"}), points_version, [points_version]) == (
        1650 * points_version.rule.scale,
    )
    # the rule changed
    assert compute_seeded_state(build_seed({"points": "-3"}), rating_version, both) == (-3 * MILLION, 350 * MILLION)
    assert compute_seeded_state(build_seed({"rating": "-3", "deviation": "80"}), points_version, both) == (
        -3 * points_version.rule.scale,
    )
    assert compute_seeded_state(build_seed({"deviation": "80"}), points_version, both) == points_version.start_state
    # values written by SQL stay out of bounds, and within 64 bits
    beyond = build_seed({"rating": "999999999999999", "deviation": "-999999999999999"})
    assert compute_seeded_state(beyond, rating_version, both) == (UNITS_MAX + 1, -UNITS_MAX - 1)


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"state": {}}, "bad-value"),
        ({"state": {f"c{number}": "1" for number in range(7)}}, "bad-value"),
        ({"state": {"Rating": "1"}}, "bad-value"),
        ({"state": {"": "1"}}, "bad-value"),
        ({"state": {"größe": "1"}}, "bad-value"),
        ({"state": {"a" * 33: "1"}}, "bad-value"),
        ({"state": {"rating": 1650}}, "wrong-type"),
        ({"state": {"rating": "1e3"}}, "bad-decimal"),
        ({"state": {"rating": "nan"}}, "bad-decimal"),
        ({"state": {"rating": "1/3"}}, "bad-decimal"),
        ({"state": [["rating", "1"]]}, "wrong-type"),
        ({"state": None}, "wrong-type"),
        ({"games": -1}, "out-of-range"),
        ({"games": 1_000_001}, "out-of-range"),
        ({"games": "3"}, "not-an-integer"),
        ({"games": True}, "not-an-integer"),
        ({"points": "1"}, "unknown-member"),
        ({"player": "a/b"}, "bad-identifier"),
        ({"reason": ""}, "bad-text"),
    ],
)
def test_malformed_seeds_are_rejected(members: dict[str, Any], code: str) -> None:
    """A seed that no ladder could accept is rejected with the code of its error."""
    data = {"ladder": "elo-x/all", "player": "anna", "state": {"rating": "1650"}, **members}
    with pytest.raises(Refused) as rejection:
        read_data("player.seeded", data)
    assert rejection.value.code == code, rejection.value.message


def test_seeds_are_recorded_in_plain_decimals() -> None:
    """Redundant signs and zeros are removed, so that equal seeds have equal ids; column names stay as they are."""
    data = {"ladder": "elo-x/all", "player": "anna", "state": {"rating": "+01650.50"}, "games": 7, "reason": None}
    assert read_data("player.seeded", data) == {
        "ladder": "elo-x/all", "player": "anna", "state": {"rating": "1650.5"}, "games": 7
    }  # fmt: skip
    assert Fraction(read_data("player.seeded", data)["state"]["rating"]) == Fraction(3301, 2)


@pytest.mark.parametrize("number", range(12))
def test_seed_equals_adjustment_before_all_games(number: int) -> None:
    """Players seeded with points have them before the first game, interpreted and compiled.

    Their points are those of a ledger in which the difference was adjusted before all games, and nothing is booked as
    adjusted.
    """
    chance, seeded_facts, adjusted_facts = Random(number), Facts(0, b""), Facts(0, b"")
    players = [f"p{player}" for player in range(chance.randint(2, 9))]
    start = build_elo().start
    events = []
    for player in chance.sample(players, chance.randint(1, len(players))):
        points = chance.randint(-2_000, 3_000)
        members = {"ladder": LADDERS[0], "player": player}
        seed_data = {**members, "state": {"points": str(points)}, "games": 3}
        # the seed occurs after all games
        events.append((KnownEvent(f"s-{player}", "player.seeded", 3 * 10**15, seed_data), KnownEvent(
            f"s-{player}", "points.adjusted", -1, {**members, "points": str(points - start // MILLION)}
        )))  # fmt: skip
    for game in range(chance.randint(1, 40)):
        seats = chance.sample(players, 2)
        participants = [{"player": name, "place": place} for place, name in enumerate(seats, 1)]
        data = {"game_id": f"g-{game}", "game": "x", "participants": participants}
        events.append((KnownEvent(f"g-{game}", "game.recorded", 2 * 10**15 + chance.randint(0, 99), data),) * 2)
    for position, (left, right) in enumerate(events, 1):
        apply(seeded_facts, position, left)
        apply(adjusted_facts, position, right)
    settle_facts(seeded_facts)
    settle_facts(adjusted_facts)
    ladder = build_elo(partition={"by": ["players"], "bands": ["all"]})
    (seeded_stream,), (adjusted_stream,) = (
        build_streams(facts, [ladder]).values() for facts in (seeded_facts, adjusted_facts)
    )
    expected = replay_interpreted(adjusted_stream, {})
    for result in (
        replay(seeded_stream),
        replay_interpreted(seeded_stream, dict(seeded_stream.seeds)),
        replay_compiled(seeded_stream, dict(seeded_stream.seeds)),
    ):
        assert result is not None
        points_by_player = {name: result.points[player] for player, name in enumerate(result.stream.names)}
        assert points_by_player == {
            name: expected.points[player] for player, name in enumerate(adjusted_stream.names) if expected.games[player]
        }
        assert result.adjusted == 0
        assert result.start_total == sum(
            seeded_stream.seeds[name].seeded[ladder.ruleset.name][0] if name in seeded_stream.seeds else start
            for name in result.stream.names
        )


def test_seed_and_rule_allow_equal_numbers_of_columns() -> None:
    """The ledger, which knows no rules, limits the columns of a seed to the same number as rules."""
    assert STATE_MAX == STATE_COLUMNS_MAX

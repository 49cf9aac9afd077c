"""Seeds: the states with which players begin on a ladder, as facts."""

from fractions import Fraction
from random import Random
from typing import Any

import pytest

from ratings_ledger import Refused, Ruleset
from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.events.types import STATE_MAX, read_data
from ratings_ledger.projections.facts.columns import Facts, Seed
from ratings_ledger.projections.facts.decoding import apply, settle_facts
from ratings_ledger.projections.facts.players import known_players
from ratings_ledger.projections.replay.continuation import read_trace_inputs
from ratings_ledger.projections.replay.replay import replay, replay_compiled, replay_interpreted
from ratings_ledger.projections.replay.streams import build_streams, compute_seeded_state, find_seeds, state_columns
from ratings_ledger.projections.rulesets.versions import Version, bind
from ratings_ledger.rules import STATE_COLUMNS_MAX, UNITS_MAX, State

LADDERS = ("elo-x/all", "elo-x/b")
PLAYERS = ("anna", "ben", "cleo", "dora")
MILLION = 1_000_000


class TwoColumns(Version):
    """A version whose rule keeps a deviation besides; players begin with 1500 and 350."""

    @property
    def start_state(self) -> tuple[int, ...]:
        return 1500 * MILLION, 350 * MILLION


def elo(name: str = "1", **members: Any) -> Version:
    scope = {"game": ["x"]}
    params = {"start": 1000, "k_total": 32}
    data = {"id": "elo-x", "version": name, "rule": "pairwise-elo/1", "effective_from": "2000-01-01",
            "scope": scope, "params": params, **members}  # fmt: skip
    version, problems = bind(Ruleset.model_validate(data), 1)
    assert version is not None, problems
    return version


def glicko() -> Version:
    version = elo("2")
    state = (State("rating", MILLION), State("deviation", MILLION))
    return TwoColumns(*version._replace(rule=version.rule._replace(state=state)))


def seed(state: dict[str, str], games: int = 0) -> Seed:
    return Seed(1, LADDERS[0], 0, state, games)


def current(log: list[KnownEvent], gone: set[str], player: str) -> str:
    """The id of a player after the live renames; where they lead in a circle, the later ones do not count."""
    following: dict[str, str] = {}
    for event in log:
        if event.type == "player.renamed" and event.event_id not in gone:
            name = event.data["new_player"]
            while name in following and name != event.data["player"]:
                name = following[name]
            if name != event.data["player"]:
                following[event.data["player"]] = event.data["new_player"]
    while player in following:
        player = following[player]
    return player


def withdrawn(log: list[KnownEvent]) -> set[str]:
    """The ids of the events that are withdrawn: each withdrawal turns over what it leads to."""
    gone: set[str] = set()
    for event in log:
        if event.type == "event.voided":
            target = event
            while target.type == "event.voided":
                target = next(one for one in log if one.event_id == target.data["id"])
            gone ^= {target.event_id}
    return gone


def random_event(chance: Random, number: int, log: list[KnownEvent]) -> KnownEvent:
    what = chance.choice(("seed", "seed", "seed", "rename", "void"))
    if what == "void" and log:
        return KnownEvent(f"e{number}", "event.voided", 0, {"id": chance.choice(log).event_id, "reason": "r"})
    if what == "rename":
        player, new_player = chance.sample(PLAYERS, 2)
        if not any(one.type == "player.renamed" and one.data["player"] == player for one in log):
            data = {"player": player, "new_player": new_player}
            return KnownEvent(f"e{number}", "player.renamed", 0, data)
    state = {"rating": str(chance.randint(1, 9))}
    data = {"ladder": chance.choice(LADDERS), "player": chance.choice(PLAYERS), "state": state}
    if chance.random() < 0.5:
        data["games"] = chance.randint(0, 5)
    return KnownEvent(f"e{number}", "player.seeded", chance.randint(-9, 9), data)


@pytest.mark.parametrize("number", range(40))
def test_seeds_are_those_of_a_plain_reading_of_the_log(number: int) -> None:
    """Live seeds by person, the first of several, whatever is renamed and withdrawn, and whenever they occurred."""
    chance, log, facts = Random(number), list[KnownEvent](), Facts(0, b"")
    for position in range(1, 30):
        log.append(random_event(chance, position, log))
        apply(facts, position, log[-1])
        settle_facts(facts)
        gone = withdrawn(log)
        for ladder in LADDERS:
            expected: dict[str, tuple[Any, int, int]] = {}
            for at, event in enumerate(log, 1):
                if event.type == "player.seeded" and event.event_id not in gone and event.data["ladder"] == ladder:
                    about = event.data["state"], event.data.get("games", 0), at
                    expected.setdefault(current(log, gone, event.data["player"]), about)
            found = find_seeds(facts, ladder)
            assert expected == {
                facts.players[person]: (one.state, one.games, one.position) for person, one in found.items()
            }
            assert all(one.player == person for person, one in found.items())
            live = {
                event.data["player"] for event in log if event.type == "player.seeded" and event.event_id not in gone
            }
            assert live <= known_players(facts)
            replayed = read_trace_inputs(facts, ladder, [elo()])
            assert replayed.seeds == sorted([name, one[0], one[1]] for name, one in expected.items())


@pytest.mark.parametrize("number", range(20))
def test_clubs_follow_chains_of_renames(number: int) -> None:
    """A club has its newest name under every old one; a rename in a circle does not count, and is reported."""
    chance, log, facts = Random(number), list[KnownEvent](), Facts(0, b"")
    for position in range(1, 20):
        club, new_club = chance.sample(PLAYERS, 2)
        if log and chance.random() < 0.3:
            event = KnownEvent(f"e{position}", "event.voided", 0, {"id": chance.choice(log).event_id, "reason": "r"})
        elif any(one.type == "club.renamed" and one.data["club"] == club for one in log):
            continue
        else:
            event = KnownEvent(f"e{position}", "club.renamed", 0, {"club": club, "new_club": new_club})
        log.append(event)
        apply(facts, position, event)
        settle_facts(facts)
        as_players = [
            one._replace(type="player.renamed", data={"player": one.data["club"], "new_player": one.data["new_club"]})
            if one.type == "club.renamed" else one
            for one in log
        ]  # fmt: skip
        gone = withdrawn(log)
        assert {club: facts.current_club(club) for club in PLAYERS} == {
            club: current(as_players, gone, club) for club in PLAYERS
        }
        live = [one for one in log if one.type == "club.renamed" and one.event_id not in gone]
        assert len(facts.circular) == len(live) - len(facts.clubs)
        assert read_trace_inputs(facts, LADDERS[0], [elo()]).clubs == [list(one) for one in sorted(facts.clubs.items())]


def test_seeded_state_is_in_units_of_each_column() -> None:
    """Columns that a seed does not name begin as usual; the first column is found under any name it ever had."""
    one, two = elo(), glicko()
    both = [one, two]
    assert [column.name for column in state_columns(one.rule)] == ["points"]
    assert compute_seeded_state(seed({"rating": "1650.5", "deviation": "80"}), two, both) == (
        1650_500_000,
        80 * MILLION,
    )
    assert compute_seeded_state(seed({"rating": "1650"}), two, both) == (1650 * MILLION, 350 * MILLION)
    assert compute_seeded_state(seed({"deviation": "80"}), two, both) == (1500 * MILLION, 80 * MILLION)
    assert compute_seeded_state(seed({"points": "1650"}), one, [one]) == (1650 * one.rule.scale,)
    # the rule changed
    assert compute_seeded_state(seed({"points": "-3"}), two, both) == (-3 * MILLION, 350 * MILLION)
    assert compute_seeded_state(seed({"rating": "-3", "deviation": "80"}), one, both) == (-3 * one.rule.scale,)
    assert compute_seeded_state(seed({"deviation": "80"}), one, both) == one.start_state
    # what was written by SQL stays out of bounds, and within 64 bits
    beyond = seed({"rating": "999999999999999", "deviation": "-999999999999999"})
    assert compute_seeded_state(beyond, two, both) == (UNITS_MAX + 1, -UNITS_MAX - 1)


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
def test_ill_formed_seeds_are_refused(members: dict[str, Any], code: str) -> None:
    """What is no seed whatever the ladder is has a code of its own."""
    given = {"ladder": "elo-x/all", "player": "anna", "state": {"rating": "1650"}, **members}
    with pytest.raises(Refused) as refused:
        read_data("player.seeded", given)
    assert refused.value.code == code, refused.value.message


def test_seeds_are_recorded_in_plain_decimals() -> None:
    """Values lose what says nothing, so that the same seed has the same id; names of columns stay as they are."""
    given = {"ladder": "elo-x/all", "player": "anna", "state": {"rating": "+01650.50"}, "games": 7, "reason": None}
    assert read_data("player.seeded", given) == {
        "ladder": "elo-x/all", "player": "anna", "state": {"rating": "1650.5"}, "games": 7
    }  # fmt: skip
    assert Fraction(read_data("player.seeded", given)["state"]["rating"]) == Fraction(3301, 2)


@pytest.mark.parametrize("number", range(12))
def test_a_seed_is_a_start_and_nothing_else(number: int) -> None:
    """Whoever is seeded with so many points has them before the first game, interpreted and compiled: the points are
    those of a ledger in which they were added before all games, and nothing is booked as added.
    """
    chance, seeded_facts, adjusted_facts = Random(number), Facts(0, b""), Facts(0, b"")
    everybody = [f"p{player}" for player in range(chance.randint(2, 9))]
    start = elo().start
    events = []
    for player in chance.sample(everybody, chance.randint(1, len(everybody))):
        points = chance.randint(-2_000, 3_000)
        about = {"ladder": LADDERS[0], "player": player}
        seed_data = {**about, "state": {"points": str(points)}, "games": 3}
        # it occurs after all games
        events.append((KnownEvent(f"s-{player}", "player.seeded", 3 * 10**15, seed_data), KnownEvent(
            f"s-{player}", "points.adjusted", -1, {**about, "points": str(points - start // MILLION)}
        )))  # fmt: skip
    for game in range(chance.randint(1, 40)):
        seats = chance.sample(everybody, 2)
        participants = [{"player": name, "place": place} for place, name in enumerate(seats, 1)]
        data = {"game_id": f"g-{game}", "game": "x", "participants": participants}
        events.append((KnownEvent(f"g-{game}", "game.recorded", 2 * 10**15 + chance.randint(0, 99), data),) * 2)
    for position, (left, right) in enumerate(events, 1):
        apply(seeded_facts, position, left)
        apply(adjusted_facts, position, right)
    settle_facts(seeded_facts)
    settle_facts(adjusted_facts)
    ladder = elo(partition={"by": ["players"], "bands": ["all"]})
    (one,), (other,) = (build_streams(facts, [ladder]).values() for facts in (seeded_facts, adjusted_facts))
    expected = replay_interpreted(other, {})
    for found in (replay(one), replay_interpreted(one, dict(one.seeds)), replay_compiled(one, dict(one.seeds))):
        assert found is not None
        played = {name: found.points[player] for player, name in enumerate(found.stream.names)}
        assert played == {
            name: expected.points[player] for player, name in enumerate(other.names) if expected.games[player]
        }
        assert found.adjusted == 0
        assert found.start_total == sum(
            (one.seeds[name].find_state(ladder) or [0])[0] if name in one.seeds else start
            for name in found.stream.names
        )


def test_a_seed_has_as_many_columns_as_a_rule() -> None:
    """The ledger, which knows no rules, has the same limit."""
    assert STATE_MAX == STATE_COLUMNS_MAX

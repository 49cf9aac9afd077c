"""Random ledgers under rules with state, asked on all three axes after each step, against a naive replay.

`state_histories` makes the steps, `oracle.states` says which are taken and what stands where. The comparison is exact.
"""

import shutil
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from random import Random

import pytest
from counting_rules import RULES
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from oracle.log import Log, games, identities, live
from oracle.rulesets import versions_of
from oracle.states import RULESETS, StateLadder
from oracle.times import end_of
from state_histories import UNTIL, WEIGHTS, base_log, faults, propose
from time_histories import World
from time_ledgers import enter

from ratings_ledger.ledger.events.canonical import to_microseconds
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections.diff.causes import attribute_difference
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.coordinates import Coordinates
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.rulesets import registry, versions

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

SEEDS = st.integers(0, 2**32 - 1)
DONE: Counter[str] = Counter()
# what must have occurred in the end, or the comparison was about less than it says
WANTED = [
    *(f"season on {name}" for name in ("by-game", "by-label")), "season on by-event",
    *(f"aged on {name}" for name in RULESETS), *(f"rows on {name}" for name in RULESETS), "joined by a seed", "entered",
    "adjusted", "seed withdrawn", "seeded again", "merged with a seed", "game of sides", "game at home",
    "game with numbers of participants", "game with its own number", "game with clubs", "club renamed", "late game",
    "game corrected", "version withdrawn", "question with all three axes", "open period", "causes of a change",
    "refused: seed-late", "refused: seed-exists",
]  # fmt: skip
# what a short run may miss
WANTED_AT_LENGTH = ["refused: seeds-differ", "refused: players-met", "season on by-month", "season on by-week"]


class StateMachine(RuleBasedStateMachine):
    """A ledger and the plain list of its events; each step is taken or refused as the naive replay says."""

    template: Path
    folder: Path

    @initialize()
    def start(self) -> None:
        path = self.folder / "ratings.db"
        shutil.copyfile(self.template, path)
        self.ledger = open_ledger(str(path))
        self.log: Log = base_log()

    @rule(what=st.sampled_from([what for what, weight in WEIGHTS.items() for _ in range(weight)]), seed=SEEDS)
    def act(self, what: str, seed: int) -> None:
        """One rule for all: of several, Hypothesis leaves out some in each run."""
        event = propose(World(Random(f"{seed} {len(self.log)}"), self.log), what)
        allowed, done = faults(self.log, event), enter(self.ledger, [event])
        codes = {rejection.code for rejection in done.rejected}
        assert bool(codes) == bool(allowed), (event, done.rejected, allowed)
        assert codes <= allowed, (event, done.rejected, allowed)
        DONE.update(f"refused: {code}" for code in codes)
        DONE["steps"] += 1
        if done.appended:
            self.log = [*self.log, {**event, "position": len(self.log) + 1}]

    @invariant()
    def both_say_the_same(self) -> None:
        """At the head or at any position before, at any time, under the timeline or one version."""
        if not hasattr(self, "log"):
            return
        last = len(self.log)
        chance = Random(f"{last} {self.log[-1]}")
        known_at = chance.choice([last, chance.randint(len(RULESETS), last)])
        with self.ledger.reading() as connection:
            facts = decode(connection, known_at)
            for name in chance.sample(list(RULESETS), 3):
                as_of = chance.choice(UNTIL) if chance.randrange(3) else None
                log = self.log[:known_at]
                there = [one.name for one in versions_of(log, name)]
                rules = chance.choice(there) if not chance.randrange(3) else None
                ladder = StateLadder(log, name, as_of and end_of(as_of), rules)
                upto = None if as_of is None else to_microseconds(end_of(as_of))
                standings = Ladders(facts, upto, rules).standings(name)
                found = {row.player: (row.points, row.games, row.state) for row in standings.rows}
                assert found == {**ladder.rows}, (name, known_at, as_of, rules)
                self._note(ladder, known_at, rules)
            if not chance.randrange(3):
                self._attribute(connection, chance)

    def _note(self, ladder: StateLadder, known_at: int, rules: str | None) -> None:
        DONE.update({*ladder.cases})
        DONE[f"rows on {ladder.name}"] += bool(ladder.rows)
        DONE["question with all three axes"] += bool(known_at < len(self.log) and ladder.upto and rules and ladder.rows)
        DONE["open period"] += ladder.period != "game" and len(ladder.groups()) < len(ladder.every_group())

    def _attribute(self, connection: object, chance: Random) -> None:
        """What causes sum to is what the naive ladders differ by."""
        name, last = chance.choice(list(RULESETS)), len(self.log)
        sides = [(chance.choice([None, *UNTIL]), chance.randint(len(RULESETS), last)) for _ in range(2)]
        ladders = [StateLadder(self.log[:known_at], name, as_of and end_of(as_of), None) for as_of, known_at in sides]
        players = sorted({*ladders[0].rows} & {*ladders[1].rows})
        if not players:
            return
        player = chance.choice(players)
        before, after = (
            Coordinates(None if as_of is None else to_microseconds(end_of(as_of)), known_at, None)
            for as_of, known_at in sides
        )
        found = attribute_difference(connection, name, player, before, after)  # type: ignore[arg-type]
        points = [ladder.rows[player].rating for ladder in ladders]
        assert found.change * 10 == points[1] - points[0], (name, player, sides)
        assert sum(cause.own + cause.ripple for cause in found.causes) == found.change, (name, player, sides)
        DONE["causes of a change"] += found.change != 0

    def teardown(self) -> None:
        if hasattr(self, "log"):
            DONE.update(cases(self.log))
            self.ledger.engine.dispose()


def cases(log: Log) -> Counter[str]:
    """How often what is interesting occurred in a log."""
    found: Counter[str] = Counter()
    types = {event["id"]: event["type"] for event in log}
    seeds = [event for event in log if event["type"] == "player.seeded"]
    alive, current = {event["id"] for event in live(log, "player.seeded")}, identities(log)
    for event in log:
        data = event["data"]
        found["seed withdrawn"] += event["type"] == "event.voided" and types[data["id"]] == "player.seeded"
        found["version withdrawn"] += event["type"] == "event.voided" and types[data["id"]] == "ruleset.published"
        found["club renamed"] += event["type"] == "club.renamed"
        found["game corrected"] += event["type"] == "game.corrected"
    beginnings = Counter((event["data"]["ladder"], event["data"]["player"]) for event in seeds)
    found["seeded again"] += sum(count > 1 for count in beginnings.values())
    found["merged with a seed"] += sum(
        event["id"] in alive and current(event["data"]["player"]) != event["data"]["player"] for event in seeds
    )
    ended = [game.at for game in sorted(games(log).values(), key=lambda game: game.first)]
    found["late game"] += sum(at < max(ended[:number]) for number, at in enumerate(ended) if number)
    for game in games(log).values():
        members = set().union(*game.data["participants"])
        found["game of sides"] += "team" in members
        found["game at home"] += "home" in members
        found["game with clubs"] += "club" in members
        found["game with numbers of participants"] += "numbers" in members
        found["game with its own number"] += "numbers" in game.data
    return found


@pytest.fixture
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger with the rulesets that every history begins with, to be copied."""
    monkeypatch.setattr(versions, "find_rule", lambda wanted: RULES.get(wanted) or registry.find_rule(wanted))
    path = tmp_path / "template.db"
    upgrade(str(path))
    assert enter(open_ledger(str(path)), base_log()).rejected == []
    return path


def test_rules_with_state_agree_with_the_naive_replay(
    template: Path, tmp_path: Path, at_length: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """For any history and any coordinates, ratings, games and whole states are those of the naive replay."""
    DONE.clear()
    StateMachine.template, StateMachine.folder = template, tmp_path
    run_state_machine_as_test(
        StateMachine,
        settings=settings(
            max_examples=400 if at_length else 12, stateful_step_count=50, derandomize=not at_length, database=None,
            deadline=None, phases=[Phase.generate, Phase.shrink] if at_length else [Phase.generate],
            suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
        ),
    )  # fmt: skip
    with capsys.disabled() if at_length else nullcontext():
        print("", *(f"{count:7} {name}" for name, count in sorted(DONE.items())), sep="\n")  # noqa: T201
    assert DONE["steps"] >= (15_000 if at_length else 500)
    wanted = [*WANTED, *WANTED_AT_LENGTH] if at_length else WANTED
    assert [name for name in wanted if not DONE[name]] == []

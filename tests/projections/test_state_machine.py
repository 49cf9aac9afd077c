"""Compare random ledgers under rules with state with a naive replay, at random coordinates after each step.

`state_histories` proposes the steps and predicts which are refused, and `oracle.states` predicts the answers. The
comparison is exact.
"""

import shutil
from collections import Counter
from contextlib import nullcontext
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from counting_rules import RULES
from histories import enter
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from ledgers import create_ledger
from oracle.log import Log, build_id_lookup, derive_games, select_live
from oracle.rulesets import list_versions
from oracle.states import RULESETS, StateLadder
from oracle.times import find_last_instant
from own_rules import substitute_rules
from state_histories import UNTIL, WEIGHTS, build_base_log, collect_refusals, propose
from time_histories import World

import ratings_ledger as rl
from ratings_ledger.ledger.store.opening import open_ledger

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

SEEDS = st.integers(0, 2**32 - 1)
CASE_COUNTS: Counter[str] = Counter()
# cases that a run must have had; otherwise the comparison covers less than it claims
REQUIRED_CASES = [
    *(f"season on {name}" for name in ("by-game", "by-label")), "season on by-event",
    *(f"aged on {name}" for name in RULESETS), *(f"rows on {name}" for name in RULESETS), "joined by a seed", "entered",
    "adjusted", "seed withdrawn", "seeded again", "merged with a seed", "game of sides", "game at home",
    "game with numbers of participants", "game with its own number", "game with clubs", "club renamed", "late game",
    "game corrected", "version withdrawn", "question with all three axes", "open period", "causes of a change",
    "refused: seed-late", "refused: seed-exists",
]  # fmt: skip
# cases that a short run may miss
REQUIRED_CASES_OF_LONG_RUNS = [
    "refused: seeds-differ",
    "refused: players-met",
    "season on by-month",
    "season on by-week",
]


# Hypothesis derives the histories from the source of this class, so any edit changes them
class StateMachine(RuleBasedStateMachine):
    """A ledger and the plain list of its events; each step is accepted or rejected as the naive replay says."""

    template: Path
    folder: Path

    @initialize()
    def start(self) -> None:
        """Begin with a ledger that has the rulesets."""
        path = self.folder / "ratings.db"
        shutil.copyfile(self.template, path)
        self.store, self.ledger = open_ledger(str(path)), rl.open(path)
        self.log: Log = build_base_log()

    @rule(action=st.sampled_from([action for action, weight in WEIGHTS.items() for _ in range(weight)]), seed=SEEDS)
    def act(self, action: str, seed: int) -> None:
        """Do one action. A single rule does all of them, because Hypothesis leaves some rules out of each run."""
        event = propose(World(Random(f"{seed} {len(self.log)}"), self.log), action)
        allowed, result = collect_refusals(self.log, event), enter(self.store, [event])
        codes = {rejection.code for rejection in result.rejected}
        assert bool(codes) == bool(allowed), (event, result.rejected, allowed)
        assert codes <= allowed, (event, result.rejected, allowed)
        CASE_COUNTS.update(f"refused: {code}" for code in codes)
        CASE_COUNTS["steps"] += 1
        if result.appended:
            self.log = [*self.log, {**event, "position": len(self.log) + 1}]

    @invariant()
    def answers_agree_with_naive_replay(self) -> None:
        """Check that three rulesets have the naive standings, at any position, any time, and under any version."""
        if not hasattr(self, "log"):
            return
        last = len(self.log)
        chance = Random(f"{last} {self.log[-1]}")
        known_at = chance.choice([last, chance.randint(len(RULESETS), last)])
        for name in chance.sample(list(RULESETS), 3):
            as_of = chance.choice(UNTIL) if chance.randrange(3) else None
            log = self.log[:known_at]
            version_names = [version.name for version in list_versions(log, name)]
            rules = chance.choice(version_names) if not chance.randrange(3) else None
            upto = as_of and find_last_instant(as_of)
            ladder = StateLadder(log, name, upto, rules)
            standings = self.ledger.at(upto, known_at, rules).standings(name)
            # `ranking` has the states after the last games, and the rows have those of the day
            rows = {row.player: (row.points, row.games, row.state) for row in standings.ranking.rows}
            assert rows == {**ladder.rows}, (name, known_at, as_of, rules)
            points = {row.player: row.points for row in standings}
            assert points == {player: Fraction(row.rating, 10) for player, row in ladder.rows.items()}
            self._count_cases(ladder, known_at, rules)
        if not chance.randrange(3):
            self._check_attribution(chance)

    def _count_cases(self, ladder: StateLadder, known_at: int, rules: str | None) -> None:
        CASE_COUNTS.update({*ladder.cases})
        CASE_COUNTS[f"rows on {ladder.name}"] += bool(ladder.rows)
        CASE_COUNTS["question with all three axes"] += bool(
            known_at < len(self.log) and ladder.upto and rules and ladder.rows
        )
        CASE_COUNTS["open period"] += ladder.period != "game" and len(ladder.groups()) < len(ladder.every_group())

    def _check_attribution(self, chance: Random) -> None:
        """Check that the causes of a change sum to the difference of the naive ladders."""
        name, last = chance.choice(list(RULESETS)), len(self.log)
        sides = [(chance.choice([None, *UNTIL]), chance.randint(len(RULESETS), last)) for _ in range(2)]
        ends: list[tuple[datetime | None, int]] = [
            (as_of and find_last_instant(as_of), known_at) for as_of, known_at in sides
        ]
        ladders = [StateLadder(self.log[:known_at], name, upto, None) for upto, known_at in ends]
        players = sorted({*ladders[0].rows} & {*ladders[1].rows})
        if not players:
            return
        player = chance.choice(players)
        before, after = (self.ledger.at(upto, known_at) for upto, known_at in ends)
        attributed = self.ledger.attribute(name, player, before, after)
        points = [ladder.rows[player].rating for ladder in ladders]
        assert attributed.change * 10 == points[1] - points[0], (name, player, sides)
        assert sum(cause.own + cause.ripple for cause in attributed) == attributed.change, (name, player, sides)
        CASE_COUNTS["causes of a change"] += attributed.change != 0

    def teardown(self) -> None:
        """Count the cases of the history."""
        if hasattr(self, "log"):
            CASE_COUNTS.update(count_cases(self.log))
            self.ledger.close()
            self.store.close()


def count_cases(log: Log) -> Counter[str]:
    """Return how often the interesting cases occurred in a log."""
    counts: Counter[str] = Counter()
    types = {event["id"]: event["type"] for event in log}
    seeds = [event for event in log if event["type"] == "player.seeded"]
    alive, current = {event["id"] for event in select_live(log, "player.seeded")}, build_id_lookup(log)
    for event in log:
        data = event["data"]
        counts["seed withdrawn"] += event["type"] == "event.voided" and types[data["id"]] == "player.seeded"
        counts["version withdrawn"] += event["type"] == "event.voided" and types[data["id"]] == "ruleset.published"
        counts["club renamed"] += event["type"] == "club.renamed"
        counts["game corrected"] += event["type"] == "game.corrected"
    beginnings = Counter((event["data"]["ladder"], event["data"]["player"]) for event in seeds)
    counts["seeded again"] += sum(count > 1 for count in beginnings.values())
    counts["merged with a seed"] += sum(
        event["id"] in alive and current(event["data"]["player"]) != event["data"]["player"] for event in seeds
    )
    ended = [game.at for game in sorted(derive_games(log).values(), key=lambda game: game.first)]
    counts["late game"] += sum(at < max(ended[:number]) for number, at in enumerate(ended) if number)
    for game in derive_games(log).values():
        members = set().union(*game.data["participants"])
        counts["game of sides"] += "team" in members
        counts["game at home"] += "home" in members
        counts["game with clubs"] += "club" in members
        counts["game with numbers of participants"] += "numbers" in members
        counts["game with its own number"] += "numbers" in game.data
    return counts


@pytest.fixture
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a template ledger with the rulesets that every history begins with."""
    substitute_rules(monkeypatch, RULES)
    path = create_ledger(str(tmp_path / "template.db"))
    assert enter(path, build_base_log()).rejected == []
    return Path(path)


def test_rules_with_state_agree_with_naive_replay(
    template: Path, tmp_path: Path, at_length: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """For any history and any coordinates, ratings, games and whole states equal those of the naive replay."""
    CASE_COUNTS.clear()
    StateMachine.template, StateMachine.folder = template, tmp_path
    run_state_machine_as_test(
        StateMachine,
        settings=settings(
            max_examples=400 if at_length else 16, stateful_step_count=50, derandomize=not at_length, database=None,
            deadline=None, phases=[Phase.generate, Phase.shrink] if at_length else [Phase.generate],
            suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
        ),
    )  # fmt: skip
    with capsys.disabled() if at_length else nullcontext():
        print("", *(f"{count:7} {name}" for name, count in sorted(CASE_COUNTS.items())), sep="\n")  # noqa: T201
    assert CASE_COUNTS["steps"] >= (15_000 if at_length else 500)
    required_cases = [*REQUIRED_CASES, *REQUIRED_CASES_OF_LONG_RUNS] if at_length else REQUIRED_CASES
    assert [name for name in required_cases if not CASE_COUNTS[name]] == []

"""Random ledgers, questioned at all coordinates after each step, against a naive ledger that replays with fractions.

`time_histories` makes the steps, and `oracle` says which are accepted and what the answers are. The comparison is
exact.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

import pytest
from histories import enter
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from oracle.ladders import ask
from oracle.log import Log, select_live
from oracle.questions import Answer, Question
from time_cases import count_cases
from time_histories import (
    LADDERS,
    WEIGHTS,
    World,
    append_to_log,
    build_base_log,
    draw_question,
    find_period_end,
    is_existing,
    is_over,
    list_refusals,
    propose,
)
from time_ledgers import PublishedList, check_json_standings, compute_answers

from ratings_ledger.ledger.store.log import read_records
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

ACTIONS = {**WEIGHTS, "publish": 10, "wrong": 8, "publish a list": 14, "ask by command": 10, "ask everything": 4}
SEEDS = st.integers(0, 2**32 - 1)
CASES: Counter[str] = Counter()
# cases that a run must have had; otherwise the comparison covers less than it claims
REQUIRED_CASES = [
    "late game", "tie in played time", "corrected twice", "date corrected", "corrected to another ladder",
    "void of a corrected game", "reinstated after a correction", "void of a void", "rename that merges",
    "adjustment withdrawn", "retroactive version", "prospective version", "equal effective dates",
    "rule change mid-period", "rule version withdrawn", "question with all three axes",
    "question about a ruleset that is not published yet", "rows with gold", "rows with places", "rows without rank",
    "list published", "list published again after a change", "list withdrawn", "refused: list-empty",
    "refused: list-exists", "as published, shown", "as published, nothing to show",
]  # fmt: skip
# cases that a short run may miss
REQUIRED_CASES_OF_LONG_RUNS = [
    "published again under the name of one withdrawn",
    "refused: still-needed",
    "refused: version-exists",
    "refused: event-voided",
    "refused: players-met",
]


class TimeMachine(RuleBasedStateMachine):
    """A ledger and the plain list of its events; each step is accepted or rejected as the naive ledger says."""

    template: Path
    folder: Path
    ratings: Callable[..., Any]

    @initialize()
    def start(self) -> None:
        """Begin with a ledger that has the rulesets."""
        path = self.folder / "ratings.db"
        shutil.copyfile(self.template, path)
        self.ledger = open_ledger(str(path))
        self.log: Log = build_base_log(0)
        self.lists: list[PublishedList] = []
        CASES["examples"] += 1

    @rule(action=st.sampled_from([action for action, weight in ACTIONS.items() for _ in range(weight)]), seed=SEEDS)
    def act(self, action: str, seed: int) -> None:
        """Do one action. A single rule does all of them, because Hypothesis leaves some rules out of each run, and rare
        cases need many actions together.
        """
        chance = Random(f"{seed} {len(self.log)}")
        match action:
            case "publish a list":
                self._publish_some_list(chance)
            case "ask by command":
                self._ask_by_command(draw_question(World(chance, self.log), chance.randint(1, len(self.log))))
                self._check_as_published(chance)
                CASES["steps"] += 1
            case "ask everything":
                known_at = chance.choice([len(self.log), chance.randint(1, len(self.log))])
                question = draw_question(World(chance, self.log), known_at)
                self._check_answers([question._replace(ladder=ladder, rules=None) for ladder in dict.fromkeys(LADDERS)])
                CASES["steps"] += 1
            case _:
                self._apply(action, chance)

    @invariant()
    def answers_agree_with_oracle(self) -> None:
        """Check that three random questions, at the head or an earlier position, have the oracle's answers."""
        if not hasattr(self, "log"):
            return
        last = len(self.log)
        chance = Random(f"{last} {self.log[-1]}")
        known_at = chance.choice([last, chance.randint(1, last)])
        self._check_answers([draw_question(World(chance, self.log), known_at) for _ in range(3)])

    def teardown(self) -> None:
        """Count the cases of the history."""
        if hasattr(self, "log"):
            CASES.update(count_cases(self.log))
            self.ledger.engine.dispose()

    def _apply(self, kind: str, chance: Random) -> None:
        """Propose an event, and check that it is accepted, existing, or rejected with a code that fits."""
        event = propose(World(chance, self.log), kind)
        result = enter(self.ledger, [event])
        codes, allowed = {rejection.code for rejection in result.rejected}, list_refusals(self.log, event)
        existing = not allowed and is_existing(self.log, event)
        outcome = (result.appended, result.existing, len(codes))
        assert outcome == (not allowed and not existing, existing, bool(allowed)), (event, result.rejected, allowed)
        assert codes <= allowed, (event, result.rejected)
        if result.appended:
            self.log = append_to_log(self.log, event)
            assert result.head is not None
            assert result.head.position == len(self.log)
        CASES.update(f"refused: {code}" for code in codes)
        CASES["steps"] += 1

    def _check_answers(self, questions: list[Question]) -> None:
        for question, answer in zip(questions, compute_answers(self.ledger, questions), strict=True):
            expected = ask(self.log, question)
            assert answer == expected, question
            self._count_cases(question, expected)

    def _count_cases(self, question: Question, answer: Answer | None) -> None:
        rows = answer.rows if answer else []
        CASES["questions"] += 1
        CASES["question about a ruleset that is not published yet"] += answer is None
        CASES["rows with gold"] += any(row.gold for row in rows)
        CASES["rows with places"] += any(row.places for row in rows)
        CASES["rows without rank"] += any(row.rank is None for row in rows)
        all_axes = question.known_at < len(self.log) and question.as_of is not None and question.rules is not None
        CASES["question with all three axes"] += all_axes and bool(rows)

    def _run_command(self, *arguments: object) -> Any:
        return self.ratings(*arguments, "--format", "json", db=self.ledger.location)

    def _ask_by_command(self, question: Question) -> None:
        """Ask the same question through the command line, with written coordinates."""
        coordinates = {"--known-at": question.known_at, "--as-of": question.as_of, "--rules": question.rules}
        options = [text for name, value in coordinates.items() if value is not None for text in (name, value)]
        result, expected = self._run_command("standings", question.ladder, *options), ask(self.log, question)
        assert result.exit_code == (2 if expected is None else 0), (question, result.stderr)
        if expected is not None:
            check_json_standings(json.loads(result.stdout), expected, question)
        CASES["questions to the command line"] += 1
        self._count_cases(question, expected)

    # -- published lists

    def _list_live_lists(self, known_at: int) -> list[PublishedList]:
        live_ids = {event["id"] for event in select_live(self.log[:known_at], "list.published")}
        return [published for published in self.lists if published.event_id in live_ids]

    def _publish_some_list(self, chance: Random) -> None:
        """Publish a list, most often one that was published before."""
        ladder, as_of = chance.choice(LADDERS), chance.choice([None, None, "2010-12-31", "2012-01-01"])
        if self.lists and chance.randrange(3):
            ladder, as_of = chance.choice([(published.ladder, published.as_of) for published in self.lists])
        # the period of a list must be over at `as_of`
        self._publish_list(ladder, as_of if is_over(ladder, as_of) else None)

    def _publish_list(self, ladder: str, as_of: str | None) -> None:
        """Publish a list, and check that it is appended as a whole, or rejected because it is empty or already
        published.
        """
        known_at = len(self.log)
        expected = ask(self.log, Question(ladder, known_at, as_of))
        result = self._run_command("publish", ladder, "--by", "test", *(["--as-of", as_of] if as_of else []))
        CASES["steps"] += 1
        before = [
            published
            for published in self._list_live_lists(known_at)
            if published.ladder == ladder and published.is_as_of(as_of)
        ]
        code = "list-empty" if expected and not expected.rows else None
        if expected and before and before[-1].answer.digest == expected.digest:
            code = "list-exists"
        if expected is None or code:
            assert result.exit_code == (1 if code else 2), (ladder, as_of, result)
            assert (code or "") in result.stdout + result.stderr
            CASES[f"refused: {code or 'unknown ladder'}"] += 1
            return
        assert result.exit_code == 0, (ladder, as_of, result)
        self._read_published_list(
            json.loads(result.stdout), PublishedList(ladder, as_of, known_at, expected, 0, "", None)
        )
        CASES["list published again after a change"] += bool(before)
        CASES["list published"] += 1

    def _read_published_list(self, printed: dict[str, Any], expected: PublishedList) -> None:
        """Read the events of a list from the log; compare them with the oracle's rows and the command's output."""
        with self.ledger.reading() as connection:
            records = [json.loads(record) for page in read_records(connection) for _, record in page]
        *parts, last = new_events = records[expected.known_at :]
        self.log = [*self.log, *({name: event[name] for name in self.log[0]} for event in new_events)]
        assert {event["type"] for event in parts} == {"list.rows"}
        assert [event["data"]["part"] for event in parts] == list(range(1, len(parts) + 1))
        # in a record null is absent
        assert [{"rank": None, **row} for event in parts for row in event["data"]["rows"]] == expected.answer.to_json()
        members = {
            "ladder": expected.ladder,
            "known_at": expected.known_at,
            "ruleset": expected.answer.ruleset,
            "digest": expected.answer.digest,
            "row_count": len(expected.answer.rows),
        }
        assert members.items() <= printed.items()
        assert members.items() | {("parts", len(parts)), ("games", expected.answer.games)} <= last["data"].items()
        assert (last["type"], last["position"], printed["position"]) == ("list.published", len(self.log), len(self.log))
        assert printed["as_of"] == last["data"].get("as_of")
        is_of_an_instant = expected.as_of is None and not find_period_end(expected.ladder)
        assert (printed["as_of"] == last["occurred_at"]) == is_of_an_instant
        stated = {"position": last["position"], "event_id": last["id"], "stated": printed["as_of"]}
        self.lists.append(expected._replace(**stated))

    def _check_as_published(self, chance: Random) -> None:
        """Check that a published list keeps its rows after later events, and that a withdrawn list is gone."""
        if not self.lists:
            return
        published, known_at = (
            chance.choice(self.lists),
            chance.choice([len(self.log), chance.randint(1, len(self.log))]),
        )
        as_of = chance.choice([None, published.as_of])
        live_lists = [
            candidate for candidate in self._list_live_lists(known_at) if candidate.is_of(published.ladder, as_of)
        ]
        options = ["--known-at", known_at, *(["--as-of", as_of] if as_of else [])]
        result = self._run_command("standings", published.ladder, "--as-published", *options)
        assert (result.exit_code == 0) == bool(live_lists), (published, known_at, result)
        if live_lists:
            question = Question(published.ladder, live_lists[-1].known_at, live_lists[-1].as_of)
            standings = json.loads(result.stdout)
            # it is an instant if no time was requested and the list has no period
            assert standings["as_of"] == live_lists[-1].stated
            check_json_standings(
                standings if live_lists[-1].as_of else {**standings, "as_of": None}, live_lists[-1].answer, question
            )
        CASES["as published, shown" if live_lists else "as published, nothing to show"] += 1


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a template ledger with the rulesets that every history begins with."""
    path: Path = tmp_path_factory.mktemp("template") / "ratings.db"
    upgrade(str(path))
    log = build_base_log(0)
    assert enter(open_ledger(str(path)), log).appended == len(log)
    return path


def test_random_ledger_answers_like_naive_ledger(
    template: Path,
    tmp_path: Path,
    ratings: Callable[..., Any],
    at_length: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """For any history and any coordinates, the ledger answers like a naive ledger that replays it.

    After each step, random ladders at random coordinates have equal rows, ruleset and number of games.
    """
    CASES.clear()
    TimeMachine.template, TimeMachine.folder, TimeMachine.ratings = template, tmp_path, staticmethod(ratings)
    run_state_machine_as_test(
        TimeMachine,
        settings=settings(
            max_examples=1_250 if at_length else 12,
            stateful_step_count=50,
            derandomize=not at_length,
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink] if at_length else [Phase.generate],
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        ),
    )
    with capsys.disabled() if at_length else nullcontext():
        print("", *(f"{count:7} {name}" for name, count in sorted(CASES.items())), sep="\n")  # noqa: T201
    assert CASES["steps"] >= (50_000 if at_length else 500)
    required_cases = [*REQUIRED_CASES, *REQUIRED_CASES_OF_LONG_RUNS] if at_length else REQUIRED_CASES
    assert [name for name in required_cases if not CASES[name]] == []

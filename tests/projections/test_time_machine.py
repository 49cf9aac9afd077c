"""Random ledgers, asked on all three axes after each step, against a naive one that replays with fractions.

`time_histories` makes the steps, `oracle` says which are taken and what stands where. The comparison is exact.
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
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from oracle.ladders import ask
from oracle.log import Log, live
from oracle.questions import Answer, Question
from time_cases import cases
from time_histories import (
    LADDERS,
    WEIGHTS,
    World,
    already,
    base_log,
    over,
    period_of,
    proposed,
    question,
    refusals,
    taken,
)
from time_ledgers import PublishedList, agree_with_json, enter, found_at

from ratings_ledger.ledger.store.log import read_records
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

ACTIONS = {**WEIGHTS, "publish": 10, "wrong": 8, "publish a list": 14, "ask by command": 10, "ask everything": 4}
SEEDS = st.integers(0, 2**32 - 1)
DONE: Counter[str] = Counter()
# what must have occurred in the end, or the comparison was about less than it says
WANTED = [
    "late game", "tie in played time", "corrected twice", "date corrected", "corrected to another ladder",
    "void of a corrected game", "reinstated after a correction", "void of a void", "rename that merges",
    "adjustment withdrawn", "retroactive version", "prospective version", "equal effective dates",
    "rule change mid-period", "rule version withdrawn", "question with all three axes",
    "question about a ruleset that is not published yet", "rows with gold", "rows with places", "rows without rank",
    "list published", "list published again after a change", "list withdrawn", "refused: list-empty",
    "refused: list-exists", "as published, shown", "as published, nothing to show",
]  # fmt: skip
# what a short run may miss
WANTED_AT_LENGTH = [
    "published again under the name of one withdrawn", "refused: still-needed", "refused: version-exists",
    "refused: event-voided", "refused: players-met",
]  # fmt: skip


class TimeMachine(RuleBasedStateMachine):
    """A ledger and the plain list of its events; each step is taken or refused as the naive ledger says."""

    template: Path
    folder: Path
    ratings: Callable[..., Any]

    @initialize()
    def start(self) -> None:
        path = self.folder / "ratings.db"
        shutil.copyfile(self.template, path)
        self.ledger = open_ledger(str(path))
        self.log: Log = base_log(0)
        self.lists: list[PublishedList] = []
        DONE["examples"] += 1

    @rule(what=st.sampled_from([what for what, weight in ACTIONS.items() for _ in range(weight)]), seed=SEEDS)
    def act(self, what: str, seed: int) -> None:
        """One rule for all: of several, Hypothesis leaves out some in each run, and rare cases need many together."""
        chance = Random(f"{seed} {len(self.log)}")
        match what:
            case "publish a list":
                self._publish_some_list(chance)
            case "ask by command":
                self._asked_by_command(question(World(chance, self.log), chance.randint(1, len(self.log))))
                self._show_as_published(chance)
                DONE["steps"] += 1
            case "ask everything":
                known_at = chance.choice([len(self.log), chance.randint(1, len(self.log))])
                asked = question(World(chance, self.log), known_at)
                self._agree([asked._replace(ladder=ladder, rules=None) for ladder in dict.fromkeys(LADDERS)])
                DONE["steps"] += 1
            case _:
                self._take(what, chance)

    @invariant()
    def both_say_the_same(self) -> None:
        """At the head or at any position before."""
        if not hasattr(self, "log"):
            return
        last = len(self.log)
        chance = Random(f"{last} {self.log[-1]}")
        known_at = chance.choice([last, chance.randint(1, last)])
        self._agree([question(World(chance, self.log), known_at) for _ in range(3)])

    def teardown(self) -> None:
        if hasattr(self, "log"):
            DONE.update(cases(self.log))
            self.ledger.engine.dispose()

    def _take(self, kind: str, chance: Random) -> None:
        """Propose an event; it is taken, there already, or refused with a code that fits."""
        event = proposed(World(chance, self.log), kind)
        result = enter(self.ledger, [event])
        codes, allowed = {rejection.code for rejection in result.rejected}, refusals(self.log, event)
        existing = not allowed and already(self.log, event)
        found = (result.appended, result.existing, len(codes))
        assert found == (not allowed and not existing, existing, bool(allowed)), (event, result.rejected, allowed)
        assert codes <= allowed, (event, result.rejected)
        if result.appended:
            self.log = taken(self.log, event)
            assert result.head is not None
            assert result.head.position == len(self.log)
        DONE.update(f"refused: {code}" for code in codes)
        DONE["steps"] += 1

    def _agree(self, questions: list[Question]) -> None:
        for asked, found in zip(questions, found_at(self.ledger, questions), strict=True):
            wanted = ask(self.log, asked)
            assert found == wanted, asked
            self._note(asked, wanted)

    def _note(self, asked: Question, wanted: Answer | None) -> None:
        rows = wanted.rows if wanted else []
        DONE["questions"] += 1
        DONE["question about a ruleset that is not published yet"] += wanted is None
        DONE["rows with gold"] += any(row.gold for row in rows)
        DONE["rows with places"] += any(row.places for row in rows)
        DONE["rows without rank"] += any(row.rank is None for row in rows)
        all_axes = asked.known_at < len(self.log) and asked.as_of is not None and asked.rules is not None
        DONE["question with all three axes"] += all_axes and bool(rows)

    def _command(self, *arguments: object) -> Any:
        return self.ratings(*arguments, "--format", "json", db=self.ledger.location)

    def _asked_by_command(self, asked: Question) -> None:
        """The same through the command line, where coordinates are written out."""
        given = {"--known-at": asked.known_at, "--as-of": asked.as_of, "--rules": asked.rules}
        options = [text for name, value in given.items() if value is not None for text in (name, value)]
        result, wanted = self._command("standings", asked.ladder, *options), ask(self.log, asked)
        assert result.exit_code == (2 if wanted is None else 0), (asked, result.stderr)
        if wanted is not None:
            agree_with_json(json.loads(result.stdout), wanted, asked)
        DONE["questions to the command line"] += 1
        self._note(asked, wanted)

    # -- published lists

    def _live_lists(self, known_at: int) -> list[PublishedList]:
        there = {event["id"] for event in live(self.log[:known_at], "list.published")}
        return [one for one in self.lists if one.event_id in there]

    def _publish_some_list(self, chance: Random) -> None:
        """Most often one that was published before."""
        ladder, as_of = chance.choice(LADDERS), chance.choice([None, None, "2010-12-31", "2012-01-01"])
        if self.lists and chance.randrange(3):
            ladder, as_of = chance.choice([(one.ladder, one.as_of) for one in self.lists])
        # a list that was not over at that time is not asked for
        self._publish_list(ladder, as_of if over(ladder, as_of) else None)

    def _publish_list(self, ladder: str, as_of: str | None) -> None:
        """It is appended in one go, or refused: there is nobody on it, or it is published as it is."""
        known_at = len(self.log)
        wanted = ask(self.log, Question(ladder, known_at, as_of))
        result = self._command("publish", ladder, "--by", "test", *(["--as-of", as_of] if as_of else []))
        DONE["steps"] += 1
        before = [one for one in self._live_lists(known_at) if one.ladder == ladder and one.is_as_of(as_of)]
        code = "list-empty" if wanted and not wanted.rows else None
        if wanted and before and before[-1].answer.digest == wanted.digest:
            code = "list-exists"
        if wanted is None or code:
            assert result.exit_code == (1 if code else 2), (ladder, as_of, result)
            assert (code or "") in result.stdout + result.stderr
            DONE[f"refused: {code or 'unknown ladder'}"] += 1
            return
        assert result.exit_code == 0, (ladder, as_of, result)
        self._take_in_list(json.loads(result.stdout), PublishedList(ladder, as_of, known_at, wanted, 0, "", None))
        DONE["list published again after a change"] += bool(before)
        DONE["list published"] += 1

    def _take_in_list(self, told: dict[str, Any], wanted: PublishedList) -> None:
        """Read the events of a list from the log; they hold the rows, and what the command printed."""
        with self.ledger.reading() as connection:
            records = [json.loads(record) for page in read_records(connection) for _, record in page]
        *parts, last = new = records[wanted.known_at :]
        self.log = [*self.log, *({name: event[name] for name in self.log[0]} for event in new)]
        assert {event["type"] for event in parts} == {"list.rows"}
        assert [event["data"]["part"] for event in parts] == list(range(1, len(parts) + 1))
        # in a record null is absent
        assert [{"rank": None, **row} for event in parts for row in event["data"]["rows"]] == wanted.answer.as_json()
        said = {
            "ladder": wanted.ladder, "known_at": wanted.known_at, "ruleset": wanted.answer.ruleset,
            "digest": wanted.answer.digest, "row_count": len(wanted.answer.rows),
        }  # fmt: skip
        assert said.items() <= told.items()
        assert said.items() | {("parts", len(parts)), ("games", wanted.answer.games)} <= last["data"].items()
        assert (last["type"], last["position"], told["position"]) == ("list.published", len(self.log), len(self.log))
        assert told["as_of"] == last["data"].get("as_of")
        of_a_moment = wanted.as_of is None and not period_of(wanted.ladder)
        assert (told["as_of"] == last["occurred_at"]) == of_a_moment
        stated = {"position": last["position"], "event_id": last["id"], "stated": told["as_of"]}
        self.lists.append(wanted._replace(**stated))

    def _show_as_published(self, chance: Random) -> None:
        """A list stays as it was computed when it was published, whatever came later; one withdrawn is gone."""
        if not self.lists:
            return
        one, known_at = chance.choice(self.lists), chance.choice([len(self.log), chance.randint(1, len(self.log))])
        as_of = chance.choice([None, one.as_of])
        there = [other for other in self._live_lists(known_at) if other.is_of(one.ladder, as_of)]
        options = ["--known-at", known_at, *(["--as-of", as_of] if as_of else [])]
        result = self._command("standings", one.ladder, "--as-published", *options)
        assert (result.exit_code == 0) == bool(there), (one, known_at, result)
        if there:
            asked = Question(one.ladder, there[-1].known_at, there[-1].as_of)
            found = json.loads(result.stdout)
            # of a moment where nobody asked for a time, and the list is not that of a whole period
            assert found["as_of"] == there[-1].stated
            agree_with_json(found if there[-1].as_of else {**found, "as_of": None}, there[-1].answer, asked)
        DONE["as published, shown" if there else "as published, nothing to show"] += 1


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with the rulesets that every history begins with, to be copied."""
    path: Path = tmp_path_factory.mktemp("template") / "ratings.db"
    upgrade(str(path))
    log = base_log(0)
    assert enter(open_ledger(str(path)), log).appended == len(log)
    return path


def test_ledger_agrees_with_the_naive_one(
    template: Path,
    tmp_path: Path,
    ratings: Callable[..., Any],
    at_length: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """For any history and any coordinates, the ledger answers like a naive one that replays it.

    After each step random ladders are asked at random coordinates: rows, ruleset and number of games
    are equal.
    """
    DONE.clear()
    TimeMachine.template, TimeMachine.folder, TimeMachine.ratings = template, tmp_path, staticmethod(ratings)
    run_state_machine_as_test(
        TimeMachine,
        settings=settings(
            max_examples=1_250 if at_length else 12, stateful_step_count=50, derandomize=not at_length, database=None,
            deadline=None, phases=[Phase.generate, Phase.shrink] if at_length else [Phase.generate],
            suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
        ),
    )  # fmt: skip
    with capsys.disabled() if at_length else nullcontext():
        print("", *(f"{count:7} {name}" for name, count in sorted(DONE.items())), sep="\n")  # noqa: T201
    assert DONE["steps"] >= (50_000 if at_length else 500)
    wanted = [*WANTED, *WANTED_AT_LENGTH] if at_length else WANTED
    assert [name for name in wanted if not DONE[name]] == []

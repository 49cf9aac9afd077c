"""Random games of a clock, with valid and invalid events, compared with a naive ticking clock after each step."""

from collections import Counter

import hypothesis.strategies as st
import pytest
from clock_logs import apply_event, build_event, explain, load_state, replay
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from oracle.clock import NaiveClock

from ratings_ledger import Rejection
from ratings_ledger.ledger.events.game_clocks import CLOCK_TYPES

pytestmark = pytest.mark.slow

NAMES = ["anna", "ben", "cleo", "dora", "emil"]
CHOICES = ["roll-dice", "auction-or-pass", "fortune", "sell-houses", "choose-character"]
# short enough for a ticking clock, and for many events in one millisecond
VALUES = {
    "main_ms": st.sampled_from([1, 9, 20, 40, 60, 120]), "roll_dice_ms": st.integers(0, 4),
    "auction_or_pass_ms": st.integers(0, 7), "fortune_ms": st.integers(0, 6), "sell_houses_ms": st.integers(0, 12),
    "choose_character_first_ms": st.integers(0, 15), "choose_character_ms": st.integers(0, 7),
    "auction_cost_ms": st.sampled_from([1, 3, 10, 20]), "unresponsive_ms": st.integers(1, 60),
    "pause_answer_ms": st.integers(1, 15), "pause_ms": st.integers(0, 20),
}  # fmt: skip
EVENTS = [
    "offered", "decided", "auction_started", "heartbeat", "pause_asked", "pause_answered", "resume_asked",
]  # fmt: skip
PLAYER_NUMBERS = st.integers(0, 59)
REQUIRED_CASES = {
    "removed", "disconnected", "connected again", "decided in time", "decided late", "decided in the last millisecond",
    "auction", "auction too dear", "auction with the last millisecond", "question ran out", "no", "no after yes",
    "yes again", "granted by asking", "granted by an answer", "granted by a removal", "granted by leaving", "paused",
    "paused with an open choice", "resumed by all", "resumed after the pause time", "resumed by leaving", "looked back",
    "two removals at once",
    *(f"refused: {code}" for code in (
        "clock-started-twice", "clock-stopped", "clock-time-backwards", "clock-paused", "clock-player-unknown",
        "clock-player-out", "clock-choice-open", "clock-choice-missing", "clock-time-short", "clock-pause-open",
        "clock-no-question", "clock-not-paused",
    )),
}  # fmt: skip
# cases that even a short run must have
REQUIRED_IN_SHORT_RUNS = {
    "removed",
    "disconnected",
    "connected again",
    "decided in time",
    "auction",
    "paused",
    "looked back",
}
CASE_COUNTS: Counter[str] = Counter()


class ClockMachine(RuleBasedStateMachine):
    """One game; `screens` has the last state of the naive clock at each instant."""

    @initialize(count=st.integers(2, 5), at=st.integers(0, 3), values=st.fixed_dictionaries(VALUES))
    def start(self, count, at, values):
        self.names = NAMES[:count]
        self.naive = NaiveClock(self.names, {**values, "pause_yes": 3}, at)
        self.events = [build_event("clock.started", at=at, players=self.names, timers=values)]
        self.clock = replay(self.events)
        self.screens = {at: self.naive.describe_state()}

    @rule(ms=st.integers(0, 9))
    def wait(self, ms):
        self._wait(ms)

    @rule(which=st.sampled_from([0, 0, 0, 1, 1, 2, 3, 4, 5]), off=st.sampled_from([-1, -1, 0, 0, 1]))
    def wait_for_something(self, which, off):
        waits = sorted(self.naive.list_waits())
        if waits:
            self._wait(max(waits[which % len(waits)] + off, 0))

    @rule(who=PLAYER_NUMBERS, choice=st.sampled_from(CHOICES))
    def offer(self, who, choice):
        self._apply_to_fitting_player(lambda player: player.choice is None, who, "offered", choice)

    @rule(choice=st.sampled_from(["auction-or-pass", "choose-character"]))
    def offer_to_all(self, choice):
        for player in self.naive.list_playing():
            if player.choice is None:
                self._apply("offered", player.name, choice)

    @rule(who=PLAYER_NUMBERS, named=st.booleans())
    def decide(self, who, named):
        self._apply_to_fitting_player(lambda player: player.choice is not None, who, "decided", named)

    @rule(who=PLAYER_NUMBERS, costly=st.booleans())
    def start_auction(self, who, costly):
        cost = self.naive.values["auction_cost_ms"]
        self._apply_to_fitting_player(lambda player: (player.main <= cost) == costly, who, "auction_started")

    @rule(who=PLAYER_NUMBERS)
    def beat(self, who):
        self._apply_to_fitting_player(lambda player: True, who, "heartbeat")

    @rule(who=PLAYER_NUMBERS)
    def ask_for_a_pause(self, who):
        self._apply_to_fitting_player(lambda player: self.naive.paused_at is None, who, "pause_asked")

    @precondition(lambda self: self.naive.requester is not None)
    @rule(
        who=PLAYER_NUMBERS,
        answer=st.sampled_from(["yes", "no", "yes", "yes"]),
        again=st.sampled_from([False, False, True]),
    )
    def answer(self, who, answer, again):
        self._apply_to_fitting_player(
            lambda player: (player.name in self.naive.yes) == again, who, "pause_answered", answer
        )

    @rule()
    def end_the_turn(self):
        self._apply("turn_ended", None, None)

    @precondition(lambda self: self.naive.paused_at is not None)
    @rule(last=st.sampled_from(["silent", "leaves", "asks"]))
    def ask_to_resume(self, last):
        """Let all players but one ask to resume; the last one asks, leaves or stays silent."""
        for player in self.naive.list_playing()[1:]:
            self._apply("resume_asked", player.name, None)
        if self.naive.paused_at is not None and last != "silent" and self.naive.list_playing():
            last_player = self.naive.list_playing()[0].name
            self._apply("player_left" if last == "leaves" else "resume_asked", last_player, None)

    @precondition(lambda self: self.naive.stopped_at is None and self.naive.paused_at is None)
    @rule(who=PLAYER_NUMBERS, ms=st.sampled_from([1, 2, 5, 15]))
    def agree_shortly_before_a_removal(self, who, ms):
        """Let all players but one say yes shortly before that one is removed."""
        playing = self.naive.list_playing()
        slow = playing[who % len(playing)] if playing else None
        if slow is None or slow.choice is None:
            return
        self._wait(max(slow.auxiliary + slow.main - ms, 0))
        for player in self.naive.list_playing():
            if player is not slow:
                is_asked = self.naive.requester is not None
                self._apply("pause_answered" if is_asked else "pause_asked", player.name, "yes" if is_asked else None)
        self._wait(ms)

    @rule(who=PLAYER_NUMBERS, urgent=st.sampled_from([False, False, False, True]))
    def leave(self, who, urgent):
        """Let a player leave, most often while the others wait for that player's answer."""
        answered = (
            self.naive.yes
            if self.naive.requester
            else self.naive.wants_resume
            if self.naive.paused_at is not None
            else None
        )
        if len(self.naive.list_playing()) > 1 and (urgent or answered):
            self._apply_to_fitting_player(lambda player: player.name not in (answered or []), who, "player_left")

    @rule(what=st.sampled_from(EVENTS), who=PLAYER_NUMBERS, choice=st.sampled_from(CHOICES), yes=st.booleans())
    def do_anything(self, what, who, choice, yes):
        words = {"offered": choice, "decided": choice, "pause_answered": "yes" if yes else "no"}
        names = [player.name for player in self.naive.list_playing()] if who < 40 else [*self.names, "zoe"]
        if names:
            self._apply(what, names[who % len(names)], words.get(what))

    @rule(error=st.sampled_from(["nothing", "backwards", "a second start", "a stop"]), number=st.integers(1, 40))
    def do_an_error(self, error, number):
        if error == "backwards" and number < 9:
            self._apply("heartbeat", self.names[0], None, at=self.naive.last - number)
        elif error == "a second start" and number < 9:
            result = apply_event(self.clock, self.events[0])
            self._check_rejection("started", result, self.naive.apply_event("started", self.naive.t))
        elif error == "a stop" and number > 36:
            self._apply("stopped", None, None)

    @precondition(lambda self: len(self.screens) > 1)
    @rule(chance=st.integers(0, 1_000_000))
    def look_back(self, chance):
        at = sorted(self.screens)[chance % len(self.screens)]
        assert self._describe_screen(at) == self.screens[at] | {"recorded_until": self._find_last_instant(at)}
        CASE_COUNTS["looked back"] += 1

    @invariant()
    def clocks_agree(self):
        if not hasattr(self, "naive"):
            return
        CASE_COUNTS["steps"] += 1
        screen = self.naive.describe_state()
        assert self._describe_screen(self.naive.t) == screen
        self.screens[self.naive.t] = screen

    def teardown(self):
        if hasattr(self, "naive"):
            CASE_COUNTS["games"] += 1
            assert replay(self.events) == self.clock
            for player in self.naive.players:
                self._check_explanation(player)

    def _check_explanation(self, player):
        """Check that the lines sum to the main timer and end in the removal, if there is one."""
        lines = explain(self.events, player.name, self.naive.t).model_dump()["lines"]
        assert sum(line["change_ms"] for line in lines) == player.main
        removals = [line["at"] for line in lines if line["what"] == "removed"]
        assert removals == ([] if player.removed_at is None else [player.removed_at])
        assert lines[-1]["what"] == "removed" or not removals

    def _wait(self, ms):
        self.screens[self.naive.t] = self.naive.describe_state()
        self._count_cases(lambda: self.naive.wait(ms))

    def _apply_to_fitting_player(self, fits, who, what, word=None):
        """Apply an event of a player in the game whom it fits, if there is one."""
        fitting = [player for player in self.naive.list_playing() if fits(player)]
        if fitting:
            player = fitting[who % len(fitting)]
            self._apply(what, player.name, (player.choice if word else None) if what == "decided" else word)

    def _apply(self, what, name, word, at=None):
        at = self.naive.t if at is None else at
        members = {"player": name, {"pause_answered": "answer"}.get(what, "choice"): word}
        event = build_event(
            f"clock.{what}", at=at, **{member: value for member, value in members.items() if value is not None}
        )
        result = apply_event(self.clock, event)
        code = self._count_cases(lambda: self.naive.apply_event(what, at, name, word))
        if code is not None:
            self._check_rejection(what, result, code)
            return
        assert not isinstance(result, Rejection), result
        CLOCK_TYPES[event["type"]].model_validate(event["data"])
        self.clock = result
        self.events.append(event)

    def _check_rejection(self, what, result, code):
        assert isinstance(result, Rejection), (what, code)
        assert result.code == code
        CASE_COUNTS[f"refused: {code}"] += 1

    def _count_cases(self, action):
        self.naive.cases.clear()
        result = action()
        CASE_COUNTS.update(self.naive.cases)
        return result

    def _find_last_instant(self, at):
        return max(event["data"]["at"] for event in self.events if event["data"]["at"] <= at)

    def _describe_screen(self, at):
        """Return the state of the program's clock in the form of the naive clock."""
        state = load_state(self.events, at).model_dump()
        question = state["pause_asked"]
        members = ("at", "recorded_until", "started_at", "stopped_at", "pause_granted_at", "paused_at")
        player = ("player", "main_ms", "choice", "auxiliary_ms", "removed_at", "left_at", "disconnected_at")
        return {
            **{member: state[member] for member in members},
            "asked": question and (question["asked_by"], question["left_ms"]),
            "players": [tuple(row[member] for member in player) for row in state["players"]],
        }


def test_clock_agrees_with_the_naive_clock(at_length, capsys):
    """At any instant of random games, the clock has the state of a naive ticking clock."""
    CASE_COUNTS.clear()
    run_state_machine_as_test(
        ClockMachine,
        settings=settings(
            max_examples=900 if at_length else 30, stateful_step_count=50, derandomize=True, database=None,
            deadline=None, phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip
    required_cases = REQUIRED_CASES if at_length else REQUIRED_IN_SHORT_RUNS
    if at_length:
        with capsys.disabled():
            print(*(f"\n{CASE_COUNTS[name]:7} {name}" for name in ("games", "steps", *sorted(REQUIRED_CASES))))  # noqa: T201
        assert CASE_COUNTS["steps"] >= 20_000
    assert [name for name in sorted(required_cases) if not CASE_COUNTS[name]] == []

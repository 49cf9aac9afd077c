"""Random games of a clock, good and bad events, against the naive clock that ticks, after each step."""

from collections import Counter

import hypothesis.strategies as st
import pytest
from clock_logs import event
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
from ratings_ledger.projections.game_clock import apply_clock_event, replay_clock
from ratings_ledger.projections.queries.clocks import build_clock_state, explain_clock

pytestmark = pytest.mark.slow

NAMES = ["anna", "ben", "cleo", "dora", "emil"]
CHOICES = ["roll-dice", "auction-or-pass", "fortune", "sell-houses", "choose-character"]
# short enough for a clock that ticks, and for many things to fall on one millisecond
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
WHO = st.integers(0, 59)
WANTED = {
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
# what even a short run cannot miss
WANTED_ALWAYS = {"removed", "disconnected", "connected again", "decided in time", "auction", "paused", "looked back"}
cases: Counter[str] = Counter()


class ClockMachine(RuleBasedStateMachine):
    """One game; `screens` are what the naive clock showed at each instant last."""

    @initialize(count=st.integers(2, 5), at=st.integers(0, 3), values=st.fixed_dictionaries(VALUES))
    def start(self, count, at, values):
        self.names = NAMES[:count]
        self.naive = NaiveClock(self.names, {**values, "pause_yes": 3}, at)
        self.events = [event("clock.started", at=at, players=self.names, timers=values)]
        self.clock = replay_clock(self.events)
        self.screens = {at: self.naive.screen()}

    @rule(ms=st.integers(0, 9))
    def wait(self, ms):
        self._wait(ms)

    @rule(which=st.sampled_from([0, 0, 0, 1, 1, 2, 3, 4, 5]), off=st.sampled_from([-1, -1, 0, 0, 1]))
    def wait_for_something(self, which, off):
        waits = sorted(self.naive.waits())
        if waits:
            self._wait(max(waits[which % len(waits)] + off, 0))

    @rule(who=WHO, choice=st.sampled_from(CHOICES))
    def offer(self, who, choice):
        self._give_one_of(lambda player: player.choice is None, who, "offered", choice)

    @rule(choice=st.sampled_from(["auction-or-pass", "choose-character"]))
    def offer_to_all(self, choice):
        for player in self.naive.playing():
            if player.choice is None:
                self._give("offered", player.name, choice)

    @rule(who=WHO, named=st.booleans())
    def decide(self, who, named):
        self._give_one_of(lambda player: player.choice is not None, who, "decided", named)

    @rule(who=WHO, costly=st.booleans())
    def start_auction(self, who, costly):
        cost = self.naive.values["auction_cost_ms"]
        self._give_one_of(lambda player: (player.main <= cost) == costly, who, "auction_started")

    @rule(who=WHO)
    def beat(self, who):
        self._give_one_of(lambda player: True, who, "heartbeat")

    @rule(who=WHO)
    def ask_for_a_pause(self, who):
        self._give_one_of(lambda player: self.naive.paused_at is None, who, "pause_asked")

    @precondition(lambda self: self.naive.asker is not None)
    @rule(who=WHO, answer=st.sampled_from(["yes", "no", "yes", "yes"]), again=st.sampled_from([False, False, True]))
    def answer(self, who, answer, again):
        self._give_one_of(lambda player: (player.name in self.naive.yes) == again, who, "pause_answered", answer)

    @rule()
    def end_the_turn(self):
        self._give("turn_ended", None, None)

    @precondition(lambda self: self.naive.paused_at is not None)
    @rule(last=st.sampled_from(["silent", "leaves", "asks"]))
    def ask_to_resume(self, last):
        """All but one ask; the last one, too, or he leaves."""
        for player in self.naive.playing()[1:]:
            self._give("resume_asked", player.name, None)
        if self.naive.paused_at is not None and last != "silent" and self.naive.playing():
            one = self.naive.playing()[0].name
            self._give("player_left" if last == "leaves" else "resume_asked", one, None)

    @precondition(lambda self: self.naive.stopped_at is None and self.naive.paused_at is None)
    @rule(who=WHO, ms=st.sampled_from([1, 2, 5, 15]))
    def agree_but_for_one_who_runs_out(self, who, ms):
        """All but one say yes shortly before that one is removed."""
        playing = self.naive.playing()
        slow = playing[who % len(playing)] if playing else None
        if slow is None or slow.choice is None:
            return
        self._wait(max(slow.auxiliary + slow.main - ms, 0))
        for player in self.naive.playing():
            if player is not slow:
                asked = self.naive.asker is not None
                self._give("pause_answered" if asked else "pause_asked", player.name, "yes" if asked else None)
        self._wait(ms)

    @rule(who=WHO, urgent=st.sampled_from([False, False, False, True]))
    def leave(self, who, urgent):
        """Most often while the others wait for his word."""
        said = self.naive.yes if self.naive.asker else self.naive.wants_on if self.naive.paused_at is not None else None
        if len(self.naive.playing()) > 1 and (urgent or said):
            self._give_one_of(lambda player: player.name not in (said or []), who, "player_left")

    @rule(what=st.sampled_from(EVENTS), who=WHO, choice=st.sampled_from(CHOICES), yes=st.booleans())
    def do_anything(self, what, who, choice, yes):
        words = {"offered": choice, "decided": choice, "pause_answered": "yes" if yes else "no"}
        names = [player.name for player in self.naive.playing()] if who < 40 else [*self.names, "zoe"]
        if names:
            self._give(what, names[who % len(names)], words.get(what))

    @rule(wrong=st.sampled_from(["nothing", "backwards", "a second start", "a stop"]), much=st.integers(1, 40))
    def do_what_is_wrong(self, wrong, much):
        if wrong == "backwards" and much < 9:
            self._give("heartbeat", self.names[0], None, at=self.naive.last - much)
        elif wrong == "a second start" and much < 9:
            found = apply_clock_event(self.clock, "clock.started", self.events[0]["data"])
            self._refused("started", found, self.naive.event("started", self.naive.t))
        elif wrong == "a stop" and much > 36:
            self._give("stopped", None, None)

    @precondition(lambda self: len(self.screens) > 1)
    @rule(chance=st.integers(0, 1_000_000))
    def look_back(self, chance):
        at = sorted(self.screens)[chance % len(self.screens)]
        assert self._screen(at) == self.screens[at] | {"recorded_until": self._last(at)}
        cases["looked back"] += 1

    @invariant()
    def both_show_the_same(self):
        if not hasattr(self, "naive"):
            return
        cases["steps"] += 1
        screen = self.naive.screen()
        assert self._screen(self.naive.t) == screen
        self.screens[self.naive.t] = screen

    def teardown(self):
        if hasattr(self, "naive"):
            cases["games"] += 1
            assert replay_clock(self.events) == self.clock
            for player in self.naive.players:
                self._explained(player)

    def _explained(self, player):
        """The lines sum to the main timer and end in the removal, if there is one."""
        found = explain_clock(self.events, player.name, self.naive.t).model_dump()["lines"]
        assert sum(line["change_ms"] for line in found) == player.main
        removals = [line["at"] for line in found if line["what"] == "removed"]
        assert removals == ([] if player.removed_at is None else [player.removed_at])
        assert found[-1]["what"] == "removed" or not removals

    def _wait(self, ms):
        self.screens[self.naive.t] = self.naive.screen()
        self._look(lambda: self.naive.wait(ms))

    def _give_one_of(self, fits, who, what, word=None):
        """An event of one of those in the game whom it fits, if there is one."""
        fitting = [player for player in self.naive.playing() if fits(player)]
        if fitting:
            player = fitting[who % len(fitting)]
            self._give(what, player.name, (player.choice if word else None) if what == "decided" else word)

    def _give(self, what, name, word, at=None):
        at = self.naive.t if at is None else at
        given = {"player": name, {"pause_answered": "answer"}.get(what, "choice"): word}
        one = event(f"clock.{what}", at=at, **{member: value for member, value in given.items() if value is not None})
        found = apply_clock_event(self.clock, one["type"], one["data"])
        code = self._look(lambda: self.naive.event(what, at, name, word))
        if code is not None:
            self._refused(what, found, code)
            return
        assert not isinstance(found, Rejection), found
        CLOCK_TYPES[one["type"]].model_validate(one["data"])
        self.clock = found
        self.events.append(one)

    def _refused(self, what, found, code):
        assert isinstance(found, Rejection), (what, code)
        assert found.code == code
        cases[f"refused: {code}"] += 1

    def _look(self, action):
        self.naive.seen.clear()
        result = action()
        cases.update(self.naive.seen)
        return result

    def _last(self, at):
        return max(one["data"]["at"] for one in self.events if one["data"]["at"] <= at)

    def _screen(self, at):
        """What the program shows, as the naive clock does."""
        shown = build_clock_state(self.events, at).model_dump()
        asked = shown["pause_asked"]
        members = ("at", "recorded_until", "started_at", "stopped_at", "pause_granted_at", "paused_at")
        player = ("player", "main_ms", "choice", "auxiliary_ms", "removed_at", "left_at", "disconnected_at")
        return {
            **{member: shown[member] for member in members},
            "asked": asked and (asked["asked_by"], asked["left_ms"]),
            "players": [tuple(one[member] for member in player) for one in shown["players"]],
        }


def test_clock_agrees_with_the_naive_clock(at_length, capsys):
    """At any instant of random games, the clock shows what a naive ticking clock shows."""
    cases.clear()
    run_state_machine_as_test(
        ClockMachine,
        settings=settings(
            max_examples=900 if at_length else 30, stateful_step_count=50, derandomize=True, database=None,
            deadline=None, phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip
    wanted = WANTED if at_length else WANTED_ALWAYS
    if at_length:
        with capsys.disabled():
            print(*(f"\n{cases[name]:7} {name}" for name in ("games", "steps", *sorted(WANTED))))  # noqa: T201
        assert cases["steps"] >= 20_000
    assert [name for name in sorted(wanted) if not cases[name]] == []

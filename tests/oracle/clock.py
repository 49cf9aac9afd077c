"""The clock of a game, kept millisecond by millisecond as with stopwatches, without computing ahead."""

# events without a player
TABLE_EVENTS = ("stopped", "turn_ended")

AUXILIARY = {
    "roll-dice": "roll_dice_ms",
    "auction-or-pass": "auction_or_pass_ms",
    "fortune": "fortune_ms",
    "sell-houses": "sell_houses_ms",
}


class NaivePlayer:
    """The state of a player's timers."""

    def __init__(self, name, main):
        self.name = name
        self.main = main
        self.choice = None
        self.auxiliary = None
        self.silence = 0
        self.out = False
        self.removed_at = self.left_at = self.disconnected_at = None


class NaiveClock:
    """A table with stopwatches. The method `apply_EVENT` applies an event of a player, and returns None or a code."""

    def __init__(self, names, values, at):
        self.values = values
        self.t = at
        self.last = at
        self.started_at = at
        self.players = [NaivePlayer(name, values["main_ms"]) for name in names]
        self.requester = None
        self.yes = []
        self.question_ms = 0
        self.granted_at = self.paused_at = self.stopped_at = None
        self.wants_resume = []
        self.cases = set()

    def list_playing(self):
        """Return the players who are still in the game."""
        return [player for player in self.players if not player.out]

    def wait(self, ms):
        """Let milliseconds pass, one by one."""
        for _ in range(ms):
            self.t += 1
            if self.stopped_at is None and self.paused_at is None:
                self.tick()

    def tick(self):
        """Advance every running timer by a millisecond."""
        if self.requester is not None:
            self.question_ms -= 1
            if self.question_ms == 0:
                self.requester = None
                self.cases.add("question ran out")
        for player in self.players:
            if not player.out and player.choice is not None:
                if player.auxiliary > 0:
                    player.auxiliary -= 1
                else:
                    player.main -= 1
                    self.remove_at_zero(player)
        for player in self.players:
            if not player.out:
                player.silence += 1
                if player.silence == self.values["unresponsive_ms"]:
                    player.disconnected_at = self.t
                    self.cases.add("disconnected")

    def remove_at_zero(self, player):
        """Remove a player whose main timer is at 0."""
        if player.main == 0:
            player.out = True
            player.removed_at = self.t
            player.choice = player.auxiliary = None
            self.cases.add("removed")
            if [other_player.removed_at for other_player in self.players].count(self.t) == 2:
                self.cases.add("two removals at once")
            self.count_answers("granted by a removal")

    def count_answers(self, case):
        """Grant a requested pause if enough players agree."""
        playing = self.list_playing()
        if self.requester is None or not playing:
            return
        yes = [player for player in playing if player.name in self.yes]
        if (len(yes) >= 3 and self.values["pause_yes"] >= 3) or len(yes) == len(playing):
            self.requester = None
            self.granted_at = self.t
            self.cases.add(case)

    def resume_if_all_want(self, case):
        if self.paused_at is not None and all(player.name in self.wants_resume for player in self.list_playing()):
            self.resume(case)

    def resume(self, case):
        self.paused_at = None
        self.wants_resume = []
        self.cases.add(case)

    def apply_event(self, what, at, name=None, word=None):
        """Apply an event at a time that is not before the current one; return the code of a refusal, or None."""
        code = self.find_general_refusal(what, at) or (
            self.apply_player_event(what, name, word) if what not in TABLE_EVENTS else None
        )
        if code is not None:
            return code
        self.last = at
        if what == "stopped":
            self.stopped_at = at
        if what == "turn_ended" and self.granted_at is not None:
            self.paused_at = at
            self.granted_at = None
            self.cases.add("paused")
            if any(player.choice for player in self.list_playing()):
                self.cases.add("paused with an open choice")
        return None

    def find_general_refusal(self, what, at):
        """Return the code with which an event is refused because of the state of the whole table, or None."""
        if what == "started":
            return "clock-started-twice"
        if self.stopped_at is not None:
            return "clock-stopped"
        if at < self.last:
            return "clock-time-backwards"
        if self.paused_at is not None and what not in ("heartbeat", "resume_asked", "player_left", "stopped"):
            return "clock-paused"
        return None

    def apply_player_event(self, what, name, word):
        """Apply an event of a player, and return the code of a refusal or None."""
        matching = [player for player in self.players if player.name == name]
        if not matching:
            return "clock-player-unknown"
        if matching[0].out:
            return "clock-player-out"
        code = getattr(self, f"apply_{what}")(matching[0], word)
        if code is None and what not in ("offered", "player_left"):
            matching[0].silence = 0
            if matching[0].disconnected_at is not None:
                matching[0].disconnected_at = None
                self.cases.add("connected again")
        return code

    def apply_offered(self, player, word):
        if player.choice is not None:
            return "clock-choice-open"
        player.choice = word
        if word == "choose-character":
            name = "choose_character_first_ms" if player is self.players[0] else "choose_character_ms"
        else:
            name = AUXILIARY[word]
        player.auxiliary = self.values[name]
        return None

    def apply_decided(self, player, word):
        if player.choice is None or word not in (None, player.choice):
            return "clock-choice-missing"
        case = {0: "late", 1: "in the last millisecond"}.get(player.auxiliary, "in time")
        self.cases.add(f"decided {case}")
        while player.auxiliary >= 2:  # one of every two milliseconds
            player.auxiliary -= 2
            player.main += 1
        player.choice = player.auxiliary = None
        return None

    def apply_auction_started(self, player, word):
        if player.main < self.values["auction_cost_ms"]:
            self.cases.add("auction too dear")
            return "clock-time-short"
        player.main -= self.values["auction_cost_ms"]
        self.cases.add("auction")
        if player.main == 0:
            self.cases.add("auction with the last millisecond")
        self.remove_at_zero(player)
        return None

    def apply_heartbeat(self, player, word):
        return None

    def apply_pause_asked(self, player, word):
        if self.requester is not None or self.granted_at is not None:
            return "clock-pause-open"
        self.requester = player.name
        self.yes = [player.name]
        self.question_ms = self.values["pause_answer_ms"]
        self.count_answers("granted by asking")
        return None

    def apply_pause_answered(self, player, word):
        if self.requester is None:
            return "clock-no-question"
        if word == "no":
            self.requester = None
            self.cases.add("no after yes" if player.name in self.yes else "no")
        else:
            if player.name in self.yes:
                self.cases.add("yes again")
            self.yes = [*self.yes, player.name]
            self.count_answers("granted by an answer")
        return None

    def apply_resume_asked(self, player, word):
        if self.paused_at is None:
            return "clock-not-paused"
        if player.name not in self.wants_resume:
            self.wants_resume.append(player.name)
        if self.t - self.paused_at >= self.values["pause_ms"]:
            self.resume("resumed after the pause time")
        else:
            self.resume_if_all_want("resumed by all")
        return None

    def apply_player_left(self, player, word):
        player.out = True
        player.left_at = self.t
        player.choice = player.auxiliary = None
        self.count_answers("granted by leaving")
        self.resume_if_all_want("resumed by leaving")

    def list_waits(self):
        """Return the milliseconds until each timer may run out."""
        waits = [self.question_ms] if self.requester is not None else []
        if self.paused_at is not None:
            waits.append(self.paused_at + self.values["pause_ms"] - self.t)
        for player in self.list_playing():
            waits.append(self.values["unresponsive_ms"] - player.silence)
            if player.choice is not None:
                waits += [player.auxiliary, player.auxiliary + player.main]
        return [ms for ms in waits if ms >= 0]

    def describe_state(self):
        """Return the whole visible state of the clock."""
        return {
            "at": self.t,
            "recorded_until": self.last,
            "started_at": self.started_at,
            "stopped_at": self.stopped_at,
            "asked": None if self.requester is None else (self.requester, self.question_ms),
            "pause_granted_at": self.granted_at,
            "paused_at": self.paused_at,
            "players": [
                (p.name, p.main, p.choice, p.auxiliary, p.removed_at, p.left_at, p.disconnected_at)
                for p in self.players
            ],
        }

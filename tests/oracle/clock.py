"""The clock of a game, as people would keep it with stopwatches: millisecond by millisecond, without computing ahead.

`NaiveClock.event` returns the code of a refusal, or None.
"""

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
    """A table with stopwatches."""

    def __init__(self, names, values, at):
        self.values = values
        self.t = at
        self.last = at
        self.started_at = at
        self.players = [NaivePlayer(name, values["main_ms"]) for name in names]
        self.asker = None
        self.yes = []
        self.question_ms = 0
        self.granted_at = self.paused_at = self.stopped_at = None
        self.wants_on = []
        self.seen = set()

    def playing(self):
        return [player for player in self.players if not player.out]

    def wait(self, ms):
        for _ in range(ms):
            self.t += 1
            if self.stopped_at is None and self.paused_at is None:
                self.tick()

    def tick(self):
        if self.asker is not None:
            self.question_ms -= 1
            if self.question_ms == 0:
                self.asker = None
                self.seen.add("question ran out")
        for player in self.players:
            if not player.out and player.choice is not None:
                if player.auxiliary > 0:
                    player.auxiliary -= 1
                else:
                    player.main -= 1
                    self.die_at_zero(player)
        for player in self.players:
            if not player.out:
                player.silence += 1
                if player.silence == self.values["unresponsive_ms"]:
                    player.disconnected_at = self.t
                    self.seen.add("disconnected")

    def die_at_zero(self, player):
        if player.main == 0:
            player.out = True
            player.removed_at = self.t
            player.choice = player.auxiliary = None
            self.seen.add("removed")
            if [any_player.removed_at for any_player in self.players].count(self.t) == 2:
                self.seen.add("two removals at once")
            self.count("granted by a removal")

    def count(self, case):
        playing = self.playing()
        if self.asker is None or not playing:
            return
        yes = [player for player in playing if player.name in self.yes]
        if (len(yes) >= 3 and self.values["pause_yes"] >= 3) or len(yes) == len(playing):
            self.asker = None
            self.granted_at = self.t
            self.seen.add(case)

    def all_want_on(self, case):
        if self.paused_at is not None and all(player.name in self.wants_on for player in self.playing()):
            self.go_on(case)

    def go_on(self, case):
        self.paused_at = None
        self.wants_on = []
        self.seen.add(case)

    def event(self, what, at, name=None, word=None):
        """Apply an event at a time that is not before the current one; return the code of a refusal, or None."""
        code = self.refused_to_all(what, at) or (self.by_player(what, name, word) if what not in TABLE_EVENTS else None)
        if code is not None:
            return code
        self.last = at
        if what == "stopped":
            self.stopped_at = at
        if what == "turn_ended" and self.granted_at is not None:
            self.paused_at = at
            self.granted_at = None
            self.seen.add("paused")
            if any(player.choice for player in self.playing()):
                self.seen.add("paused with an open choice")
        return None

    def refused_to_all(self, what, at):
        if what == "started":
            return "clock-started-twice"
        if self.stopped_at is not None:
            return "clock-stopped"
        if at < self.last:
            return "clock-time-backwards"
        if self.paused_at is not None and what not in ("heartbeat", "resume_asked", "player_left", "stopped"):
            return "clock-paused"
        return None

    def by_player(self, what, name, word):
        matching = [player for player in self.players if player.name == name]
        if not matching:
            return "clock-player-unknown"
        if matching[0].out:
            return "clock-player-out"
        code = getattr(self, what)(matching[0], word)
        if code is None and what not in ("offered", "player_left"):
            matching[0].silence = 0
            if matching[0].disconnected_at is not None:
                matching[0].disconnected_at = None
                self.seen.add("connected again")
        return code

    def offered(self, player, word):
        if player.choice is not None:
            return "clock-choice-open"
        player.choice = word
        if word == "choose-character":
            name = "choose_character_first_ms" if player is self.players[0] else "choose_character_ms"
        else:
            name = AUXILIARY[word]
        player.auxiliary = self.values[name]
        return None

    def decided(self, player, word):
        if player.choice is None or word not in (None, player.choice):
            return "clock-choice-missing"
        case = {0: "late", 1: "in the last millisecond"}.get(player.auxiliary, "in time")
        self.seen.add(f"decided {case}")
        while player.auxiliary >= 2:  # one of every two milliseconds
            player.auxiliary -= 2
            player.main += 1
        player.choice = player.auxiliary = None
        return None

    def auction_started(self, player, word):
        if player.main < self.values["auction_cost_ms"]:
            self.seen.add("auction too dear")
            return "clock-time-short"
        player.main -= self.values["auction_cost_ms"]
        self.seen.add("auction")
        if player.main == 0:
            self.seen.add("auction with the last millisecond")
        self.die_at_zero(player)
        return None

    def heartbeat(self, player, word):
        return None

    def pause_asked(self, player, word):
        if self.asker is not None or self.granted_at is not None:
            return "clock-pause-open"
        self.asker = player.name
        self.yes = [player.name]
        self.question_ms = self.values["pause_answer_ms"]
        self.count("granted by asking")
        return None

    def pause_answered(self, player, word):
        if self.asker is None:
            return "clock-no-question"
        if word == "no":
            self.asker = None
            self.seen.add("no after yes" if player.name in self.yes else "no")
        else:
            if player.name in self.yes:
                self.seen.add("yes again")
            self.yes = [*self.yes, player.name]
            self.count("granted by an answer")
        return None

    def resume_asked(self, player, word):
        if self.paused_at is None:
            return "clock-not-paused"
        if player.name not in self.wants_on:
            self.wants_on.append(player.name)
        if self.t - self.paused_at >= self.values["pause_ms"]:
            self.go_on("resumed after the pause time")
        else:
            self.all_want_on("resumed by all")
        return None

    def player_left(self, player, word):
        player.out = True
        player.left_at = self.t
        player.choice = player.auxiliary = None
        self.count("granted by leaving")
        self.all_want_on("resumed by leaving")

    def waits(self):
        """Return the milliseconds until each timer may run out."""
        waits = [self.question_ms] if self.asker is not None else []
        if self.paused_at is not None:
            waits.append(self.paused_at + self.values["pause_ms"] - self.t)
        for player in self.playing():
            waits.append(self.values["unresponsive_ms"] - player.silence)
            if player.choice is not None:
                waits += [player.auxiliary, player.auxiliary + player.main]
        return [ms for ms in waits if ms >= 0]

    def screen(self):
        """Return the whole visible state of the clock."""
        return {
            "at": self.t,
            "recorded_until": self.last,
            "started_at": self.started_at,
            "stopped_at": self.stopped_at,
            "asked": None if self.asker is None else (self.asker, self.question_ms),
            "pause_granted_at": self.granted_at,
            "paused_at": self.paused_at,
            "players": [
                (p.name, p.main, p.choice, p.auxiliary, p.removed_at, p.left_at, p.disconnected_at)
                for p in self.players
            ],
        }

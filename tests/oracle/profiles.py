"""What a ladder says of its players over time: wins, streaks, opponents, ranks after every step, and what has moved."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from oracle.counting import Counted, View
from oracle.ladders import LISTS, ask
from oracle.lists import month_of
from oracle.log import Game, Log, places, seats
from oracle.questions import Answer, Question, Row
from oracle.rulesets import ruleset_of, versions_of
from oracle.running import Ladder
from oracle.scores import catan_points
from oracle.times import berlin, end_of

# a streak: how many games, the first and the last of them
Streak = tuple[int, str, str] | None


class Step(NamedTuple):
    """A game, by its id, or an adjustment (None) of a player: the place, the points after it."""

    game: str | None
    place: int | None
    after: Fraction


class Profile(NamedTuple):
    """A player on a ladder; streaks are the longest and the current one, opponents games, better, equal and worse."""

    row: Row | None
    ranked: int
    players: int
    course: list[Step]
    wins: int
    won: tuple[Streak, Streak]
    not_won: tuple[Streak, Streak]
    places: list[tuple[int, int]]
    opponents: list[tuple[str, int, int, int, int]]


class Moved(NamedTuple):
    """A row of an overview: the standing, change of points and rank, when they last played, their last points."""

    row: Row
    change: Fraction | None
    rank_change: int | None
    last_played: datetime | None
    last_points: list[Fraction]


class Course:
    """A ladder at coordinates without a version of their own."""

    def __init__(self, log: Log, question: Question) -> None:
        self.log, self.question = log, question
        known = [event for event in log if event["position"] <= question.known_at]
        self.view, self.versions = View(known, question.upto), versions_of(known, ruleset_of(question.ladder))
        self.rule = self.versions[0].rule
        self.counted = self.view.on(self.versions).get(question.ladder, [])

    def standings(self, as_of: str | None = None) -> Answer:
        """The standings, or those at an earlier time."""
        earlier = as_of is not None and (self.question.upto is None or end_of(as_of) < self.question.upto)
        found = ask(self.log, self.question._replace(as_of=as_of) if earlier else self.question)
        assert found is not None
        return found

    # -- games

    def games_of(self, player: str) -> list[Counted]:
        """The games that count for somebody; an annual list has none of its own."""
        annual = self.rule == "annual-places/1"
        return [] if annual else [one for one in self.counted if player in map(self.view.current, one.who)]

    def place_in(self, one: Counted, player: str) -> int:
        found = {self.view.current(recorded): place for recorded, place in places(one.game.data).items()}
        return found[player]

    def has_won(self, one: Counted, player: str) -> bool:
        """Whether nobody on another seat has place 1, too."""
        first = [seat for seat in seats(one.game.data) if places(one.game.data)[seat.last["player"]] == 1]
        return self.place_in(one, player) == 1 and len(first) == 1

    def course(self, player: str) -> list[Step]:
        """The steps of somebody; on lists the points are sums."""
        if self.rule not in LISTS:
            steps = self.ladder.history.get(player, [])
            return [Step(game, place, before + change) for game, place, before, change in steps]
        own = self.games_of(player)
        given = [
            sum(amount for who, amount in catan_points(one.game.data, one.version.params)
                if self.view.current(who) == player) for one in own
        ]  # fmt: skip
        return [
            Step(one.game.data["game_id"], self.place_in(one, player), Fraction(after))
            for one, after in zip(own, accumulate(given), strict=True)
        ]

    @cached_property
    def ladder(self) -> Ladder:
        empty = Ladder(self.question.ladder, self.view, self.versions)
        return [empty, *(ladder for ladder, *_ in self.steps())][-1]

    def steps(self) -> Iterator[tuple[Ladder, datetime, str | None]]:
        """The ladder of running points after every game (its id) and adjustment (None) that changed it."""
        found = Ladder(self.question.ladder, self.view, self.versions)
        for at, _, fact in self.view.facts:
            if isinstance(fact, Game):
                found.play(fact)
                if found.played[fact.data["game_id"]].counted:
                    yield found, at, fact.data["game_id"]
            elif fact["ladder"] == found.name and not self.view.late(at):
                found.adjust(self.view.current(fact["player"]), at, Fraction(fact["points"]))
                yield found, at, None

    def profile(self, player: str) -> Profile:
        own, rows = self.games_of(player), self.standings().rows
        outcomes = "".join("W" if self.has_won(one, player) else "-" for one in own)
        ids = [one.game.data["game_id"] for one in own]
        met: dict[str, Counter[str]] = {}
        for one in own:
            mine = self.place_in(one, player)
            for other in {*map(self.view.current, one.who)} - {player}:
                theirs = self.place_in(one, other)
                counts = met.setdefault(other, Counter())
                counts.update(["games", "better" if mine < theirs else "worse" if mine > theirs else "equal"])
        return Profile(
            next((row for row in rows if row.player == player), None), sum(row.rank is not None for row in rows),
            len(rows), self.course(player), outcomes.count("W"), streaks(outcomes, "W", ids),
            streaks(outcomes, "-", ids), sorted(Counter(self.place_in(one, player) for one in own).items()),
            sorted(((name, *(counts[what] for what in ("games", "better", "equal", "worse"))) for name, counts
                    in met.items()), key=lambda one: (-one[1], one[0])),
        )  # fmt: skip

    # -- ranks

    @cached_property
    def ranks(self) -> tuple[str, list[tuple[datetime, str | None, Answer]]]:
        """After every what there is a look at the standings; when, after which game, what stood there."""
        if self.rule not in LISTS:
            return "step", [(at, game, ladder.answer()) for ladder, at, game in self.steps()]
        if self.rule == "annual-places/1":
            year = self.question.ladder[-4:]
            ends = [f"{year}-{month:02d}" for month in range(1, 13)]
            return "month", [(self.until(end), None, self.standings(end)) for end in ends]
        played = [(one.game.at, one.game.data["game_id"], self.counted[: n + 1]) for n, one in enumerate(self.counted)]
        if all(version.params["score"] == "sum" for version in self.versions):
            return "step", [(at, game, month_of(self.view, games, self.versions)) for at, game, games in played]
        at_ends = {self.until(f"{berlin(at):%Y-%m-%d}"): games for at, _, games in played}
        return "day", [(at, None, month_of(self.view, games, self.versions)) for at, games in at_ends.items()]

    def end(self, text: str) -> datetime:
        return end_of(text)

    def until(self, end: str) -> datetime:
        return end_of(end) if self.question.upto is None else min(end_of(end), self.question.upto)

    def ranks_of(self, player: str) -> list[tuple[datetime, str | None, int | None, int]]:
        """When a rank was another than before, after which game, the rank, and the games by then."""
        found, known = [], None
        for at, game, answer in self.ranks[1]:
            row = next((row for row in answer.rows if row.player == player), None)
            if (row and row.rank) != known:
                known = row and row.rank
                found.append((at, game, known, row.games if row else 0))
        return found

    # -- what has moved

    def since(self) -> str | None:
        """The month before that of the last game."""
        if not self.counted:
            return None
        first = berlin(self.counted[-1].game.at).replace(day=1)
        return f"{first - timedelta(days=1):%Y-%m}"

    def overview(self, since: str | None, last: int) -> list[Moved]:
        """All rows, with so many `last` points."""
        since = self.since() if since is None else since
        then = {} if since is None else {row.player: row for row in self.standings(since).rows}
        found = []
        for row in self.standings().rows:
            before, own = then.get(row.player), self.games_of(row.player)
            ranks = (before.rank if before else None, row.rank)
            found.append(Moved(
                row, row.points - before.points if before else None,
                None if None in ranks else ranks[0] - ranks[1],  # type: ignore[operator]
                own[-1].game.at if own else None, [step.after for step in self.course(row.player)][-last:],
            ))  # fmt: skip
        return found


def streaks(outcomes: str, one: str, games: list[str]) -> tuple[Streak, Streak]:
    """The longest streak of an outcome, the first of several, and the one at the end."""
    runs = [(len(run[0]), games[run.start()], games[run.end() - 1]) for run in re.finditer(f"{one}+", outcomes)]
    longest = max(runs, key=lambda run: run[0], default=None)
    return longest, runs[-1] if outcomes.endswith(one) else None

"""Compute players' profiles on a ladder, the ranks after every step, and the overview of changes."""

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
from oracle.ladders import LIST_BUILDERS, ask
from oracle.lists import compute_month
from oracle.log import Game, Log, compute_places, list_seats
from oracle.questions import Answer, Question, Row
from oracle.rulesets import get_ruleset_id, list_versions
from oracle.running import Ladder
from oracle.scores import score_catan
from oracle.times import find_last_instant, to_berlin

# the number of games of a streak, its first and its last game
Streak = tuple[int, str, str] | None


class Step(NamedTuple):
    """A game (by id) or an adjustment (None) of a player, with the place and the points after it."""

    game: str | None
    place: int | None
    after: Fraction


class Profile(NamedTuple):
    """A player on a ladder; streaks are the longest and the current, opponents have games, better, equal and worse."""

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
    """A row of an overview: the standing, the change of points and rank, the last game's time, and the last points."""

    row: Row
    change: Fraction | None
    rank_change: int | None
    last_played: datetime | None
    last_points: list[Fraction]


class Course:
    """A ladder at coordinates without `rules`, over time."""

    def __init__(self, log: Log, question: Question) -> None:
        self.log, self.question = log, question
        known = [event for event in log if event["position"] <= question.known_at]
        self.view, self.versions = View(known, question.upto), list_versions(known, get_ruleset_id(question.ladder))
        self.rule = self.versions[0].rule
        self.counted = self.view.group_counted_games(self.versions).get(question.ladder, [])

    def compute_standings(self, as_of: str | None = None) -> Answer:
        """Return the standings, or those at an earlier time."""
        earlier = as_of is not None and (self.question.upto is None or find_last_instant(as_of) < self.question.upto)
        answer = ask(self.log, self.question._replace(as_of=as_of) if earlier else self.question)
        assert answer is not None
        return answer

    # -- games

    def list_games(self, player: str) -> list[Counted]:
        """Return the games that count for a player; an annual list has none of its own."""
        annual = self.rule == "annual-places/1"
        return [] if annual else [counted for counted in self.counted if player in map(self.view.current, counted.who)]

    def find_place(self, counted: Counted, player: str) -> int:
        place_by_player = {
            self.view.current(recorded): place for recorded, place in compute_places(counted.game.data).items()
        }
        return place_by_player[player]

    def has_won(self, counted: Counted, player: str) -> bool:
        """Tell whether the player is the only one, besides their own seat, with place 1."""
        first = [
            seat
            for seat in list_seats(counted.game.data)
            if compute_places(counted.game.data)[seat.last["player"]] == 1
        ]
        return self.find_place(counted, player) == 1 and len(first) == 1

    def list_steps(self, player: str) -> list[Step]:
        """Return the steps of a player; on lists the points are sums."""
        if self.rule not in LIST_BUILDERS:
            steps = self.ladder.history.get(player, [])
            return [Step(game, place, before + change) for game, place, before, change in steps]
        own_games = self.list_games(player)
        points_per_game = [
            sum(
                amount
                for who, amount in score_catan(counted.game.data, counted.version.params)
                if self.view.current(who) == player
            )
            for counted in own_games
        ]
        return [
            Step(counted.game.data["game_id"], self.find_place(counted, player), Fraction(after))
            for counted, after in zip(own_games, accumulate(points_per_game), strict=True)
        ]

    @cached_property
    def ladder(self) -> Ladder:
        empty = Ladder(self.question.ladder, self.view, self.versions)
        return [empty, *(ladder for ladder, *_ in self.replay_steps())][-1]

    def replay_steps(self) -> Iterator[tuple[Ladder, datetime, str | None]]:
        """Yield the ladder of running points after every game (id) and adjustment (None) that changed it."""
        ladder = Ladder(self.question.ladder, self.view, self.versions)
        for at, _, fact in self.view.facts:
            if isinstance(fact, Game):
                ladder.play(fact)
                if ladder.played[fact.data["game_id"]].counted:
                    yield ladder, at, fact.data["game_id"]
            elif fact["ladder"] == ladder.name and not self.view.is_late(at):
                ladder.adjust(self.view.current(fact["player"]), at, Fraction(fact["points"]))
                yield ladder, at, None

    def compute_profile(self, player: str) -> Profile:
        own_games, rows = self.list_games(player), self.compute_standings().rows
        outcomes = "".join("W" if self.has_won(counted, player) else "-" for counted in own_games)
        ids = [counted.game.data["game_id"] for counted in own_games]
        counts_by_opponent: dict[str, Counter[str]] = {}
        for counted in own_games:
            own_place = self.find_place(counted, player)
            for opponent in {*map(self.view.current, counted.who)} - {player}:
                opponent_place = self.find_place(counted, opponent)
                counts = counts_by_opponent.setdefault(opponent, Counter())
                counts.update(
                    [
                        "games",
                        "better" if own_place < opponent_place else "worse" if own_place > opponent_place else "equal",
                    ]
                )
        return Profile(
            next((row for row in rows if row.player == player), None), sum(row.rank is not None for row in rows),
            len(rows), self.list_steps(player), outcomes.count("W"), find_streaks(outcomes, "W", ids),
            find_streaks(outcomes, "-", ids),
            sorted(Counter(self.find_place(counted, player) for counted in own_games).items()),
            sorted(((name, *(counts[what] for what in ("games", "better", "equal", "worse"))) for name, counts
                    in counts_by_opponent.items()), key=lambda row: (-row[1], row[0])),
        )  # fmt: skip

    # -- ranks

    @cached_property
    def ranks(self) -> tuple[str, list[tuple[datetime, str | None, Answer]]]:
        """The unit between the states of the standings, and each state's time, game and standings."""
        if self.rule not in LIST_BUILDERS:
            return "step", [(at, game, ladder.build_answer()) for ladder, at, game in self.replay_steps()]
        if self.rule == "annual-places/1":
            year = self.question.ladder[-4:]
            ends = [f"{year}-{month:02d}" for month in range(1, 13)]
            return "month", [(self.find_end(end), None, self.compute_standings(end)) for end in ends]
        played = [
            (counted.game.at, counted.game.data["game_id"], self.counted[: index + 1])
            for index, counted in enumerate(self.counted)
        ]
        if all(version.params["score"] == "sum" for version in self.versions):
            return "step", [(at, game, compute_month(self.view, games, self.versions)) for at, game, games in played]
        at_ends = {self.find_end(f"{to_berlin(at):%Y-%m-%d}"): games for at, _, games in played}
        return "day", [(at, None, compute_month(self.view, games, self.versions)) for at, games in at_ends.items()]

    def find_end(self, end: str) -> datetime:
        return find_last_instant(end) if self.question.upto is None else min(find_last_instant(end), self.question.upto)

    def list_rank_changes(self, player: str) -> list[tuple[datetime, str | None, int | None, int]]:
        """Return the changes of a player's rank: the time, the game, the new rank, and the number of games."""
        changes, last_rank = [], None
        for at, game, answer in self.ranks[1]:
            row = next((row for row in answer.rows if row.player == player), None)
            if (row and row.rank) != last_rank:
                last_rank = row and row.rank
                changes.append((at, game, last_rank, row.games if row else 0))
        return changes

    # -- the overview

    def find_since(self) -> str | None:
        """Return the month before that of the last game."""
        if not self.counted:
            return None
        first = to_berlin(self.counted[-1].game.at).replace(day=1)
        return f"{first - timedelta(days=1):%Y-%m}"

    def compute_overview(self, since: str | None, last: int) -> list[Moved]:
        """Return all rows of the overview, each with the `last` points of the player."""
        since = self.find_since() if since is None else since
        earlier_rows = {} if since is None else {row.player: row for row in self.compute_standings(since).rows}
        overview = []
        for row in self.compute_standings().rows:
            earlier_row, own_games = earlier_rows.get(row.player), self.list_games(row.player)
            ranks = (earlier_row.rank if earlier_row else None, row.rank)
            overview.append(
                Moved(
                    row,
                    row.points - earlier_row.points if earlier_row else None,
                    None if None in ranks else ranks[0] - ranks[1],  # type: ignore[operator]
                    own_games[-1].game.at if own_games else None,
                    [step.after for step in self.list_steps(row.player)][-last:],
                )
            )
        return overview


def find_streaks(outcomes: str, outcome: str, games: list[str]) -> tuple[Streak, Streak]:
    """Return the longest streak of an outcome (the first of equal ones), and the current one."""
    runs = [(len(run[0]), games[run.start()], games[run.end() - 1]) for run in re.finditer(f"{outcome}+", outcomes)]
    longest = max(runs, key=lambda run: run[0], default=None)
    return longest, runs[-1] if outcomes.endswith(outcome) else None

"""Replay a ladder of running points, game by game, through all versions of its ruleset."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import NamedTuple

from oracle.cases import count_ladder_cases
from oracle.counting import View
from oracle.log import Game, compute_places, list_seats
from oracle.questions import Answer, Row, compute_ranks, sort_rows
from oracle.rulesets import Version, find_ladder_name, find_newest_version, find_start, find_version
from oracle.scores import SCORES, Points


class Played(NamedTuple):
    """The effect of a game on a ladder, by current ids, with the minted and burned points."""

    game: Game
    counted: bool
    before: Points
    place: dict[str, int]
    change: Points
    minted: Fraction
    burned: Fraction


@dataclass
class Ladder:
    """A ladder after all its games and adjustments.

    `played` has the effect of every game, and `history` has each player's steps: the game and the place (None for an
    adjustment), the points before, and the change.
    """

    name: str
    view: View
    versions: list[Version]
    last: Version | None = None
    points: Points = field(default_factory=dict)
    games: Counter[str] = field(default_factory=Counter)
    started: Fraction = Fraction(0)
    minted: Fraction = Fraction(0)
    burned: Fraction = Fraction(0)
    adjusted: Fraction = Fraction(0)
    played: dict[str, Played] = field(default_factory=dict)
    history: dict[str, list[tuple[str | None, int | None, Fraction, Fraction]]] = field(default_factory=dict)

    def get_points(self, player: str, at: datetime) -> Fraction:
        """Return the points of a player, or the start of a new player at an instant."""
        return self.points[player] if player in self.points else find_start(self.versions, at)

    def record_step(self, player: str, at: datetime, change: Fraction, game: str | None, place: int | None) -> None:
        before = self.get_points(player, at)
        self.started += before if player not in self.points else 0
        self.history.setdefault(player, []).append((game, place, before, change))
        self.points[player] = before + change

    def adjust(self, player: str, at: datetime, change: Fraction) -> None:
        self.record_step(player, at, change, None, None)
        self.adjusted += change

    def play(self, game: Game) -> None:
        """Play one game; a game that does not count here changes no points."""
        name, current = game.data["game_id"], self.view.current
        before = {player: self.get_points(player, game.at) for player in map(current, game.players)}
        version = find_version(self.versions, game.at)
        counted_players = (
            self.view.list_counted_players(version, game)
            if version and find_ladder_name(version, game) == self.name
            else []
        )
        if version is None or not counted_players:
            self.played[name] = Played(game, False, before, {}, {}, Fraction(0), Fraction(0))
            return
        place = {
            current(player): rank for player, rank in compute_places(game.data).items() if player in counted_players
        }
        participants = {current(participant["player"]): participant for participant in game.data["participants"]}
        change, minted = SCORES[version.rule](
            {player: before[player] for player in place},
            place,
            participants,
            len(list_seats(game.data)),
            version.params,
        )
        played = Played(game, True, before, place, change, minted, minted - sum(change.values()))
        self.apply(name, version, played)

    def apply(self, name: str, version: Version, played: Played) -> None:
        self.last, self.played[name] = version, played
        self.minted, self.burned = self.minted + played.minted, self.burned + played.burned
        for player, change in played.change.items():
            self.record_step(player, played.game.at, change, name, played.place[player])
        self.games.update(played.change.keys())

    @property
    def ranking(self) -> Version:
        """The version that scored the last game; before the first game, the newest."""
        return self.last or find_newest_version(self.versions)

    def rank_rows(self) -> list[Row]:
        min_games = self.ranking.params.get("min_games", 0)
        rank = compute_ranks(self.points, [player for player in self.points if self.games[player] >= min_games])
        return sort_rows(
            Row(rank.get(player), player, points, self.games[player], player in rank)
            for player, points in self.points.items()
        )

    @property
    def cases(self) -> Counter[str]:
        """The number of occurrences of each interesting case on the ladder."""
        return count_ladder_cases(self)

    def build_answer(self) -> Answer:
        return Answer(self.ranking.name, sum(played.counted for played in self.played.values()), self.rank_rows())


def replay(view: View, name: str, versions: list[Version]) -> Ladder:
    """Return the ladder with this name after all games and adjustments."""
    ladder = Ladder(name, view, versions)
    for at, _, fact in view.facts:
        if isinstance(fact, Game):
            ladder.play(fact)
        elif fact["ladder"] == name and not view.is_late(at):
            ladder.adjust(view.current(fact["player"]), at, Fraction(fact["points"]))
    return ladder

"""Points that run on from game to game, and from version to version: a ladder with all that happened on it."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import NamedTuple

from oracle.cases import cases_of_ladder
from oracle.counting import View
from oracle.log import Game, places, seats
from oracle.questions import Answer, Row, in_order, ranks
from oracle.rulesets import Version, cell, in_force, newest, start_at
from oracle.scores import SCORES, Points


class Played(NamedTuple):
    """What a game did to the points of a ladder, by current ids; what it minted, and what it burned."""

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

    `played` tells of every game whether and how it counted here, `history` of every player the game and their place
    (None: adjustment), the points before and the change, step by step.
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

    def points_of(self, player: str, at: datetime) -> Fraction:
        """The points of somebody, or what they would begin with at an instant."""
        return self.points[player] if player in self.points else start_at(self.versions, at)

    def move(self, player: str, at: datetime, change: Fraction, game: str | None, place: int | None) -> None:
        before = self.points_of(player, at)
        self.started += before if player not in self.points else 0
        self.history.setdefault(player, []).append((game, place, before, change))
        self.points[player] = before + change

    def adjust(self, player: str, at: datetime, change: Fraction) -> None:
        self.move(player, at, change, None, None)
        self.adjusted += change

    def play(self, game: Game) -> None:
        """Take in one game; one that does not count here leaves everything as it is."""
        name, current = game.data["game_id"], self.view.current
        before = {player: self.points_of(player, game.at) for player in map(current, game.players)}
        version = in_force(self.versions, game.at)
        who = self.view.counted(version, game) if version and cell(version, game) == self.name else []
        if version is None or not who:
            self.played[name] = Played(game, False, before, {}, {}, Fraction(0), Fraction(0))
            return
        place = {current(player): rank for player, rank in places(game.data).items() if player in who}
        told = {current(participant["player"]): participant for participant in game.data["participants"]}
        change, minted = SCORES[version.rule](
            {player: before[player] for player in place}, place, told, len(seats(game.data)), version.params
        )
        played = Played(game, True, before, place, change, minted, minted - sum(change.values()))
        self.take_in(name, version, played)

    def take_in(self, name: str, version: Version, played: Played) -> None:
        self.last, self.played[name] = version, played
        self.minted, self.burned = self.minted + played.minted, self.burned + played.burned
        for player, change in played.change.items():
            self.move(player, played.game.at, change, name, played.place[player])
        self.games.update(played.change.keys())

    @property
    def ranking(self) -> Version:
        """The version that scored the last game; before the first the newest."""
        return self.last or newest(self.versions)

    def rows(self) -> list[Row]:
        least = self.ranking.params.get("min_games", 0)
        rank = ranks(self.points, [player for player in self.points if self.games[player] >= least])
        return in_order(
            Row(rank.get(player), player, points, self.games[player], player in rank)
            for player, points in self.points.items()
        )

    @property
    def cases(self) -> Counter[str]:
        """How often what is interesting occurred on the ladder."""
        return cases_of_ladder(self)

    def answer(self) -> Answer:
        return Answer(self.ranking.name, sum(played.counted for played in self.played.values()), self.rows())


def replay(view: View, name: str, versions: list[Version]) -> Ladder:
    """The ladder of that name."""
    found = Ladder(name, view, versions)
    for at, _, fact in view.facts:
        if isinstance(fact, Game):
            found.play(fact)
        elif fact["ladder"] == name and not view.late(at):
            found.adjust(view.current(fact["player"]), at, Fraction(fact["points"]))
    return found

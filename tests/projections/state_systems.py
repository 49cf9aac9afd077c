"""A history for all rules with state: a ruleset or two for each rule, and random games, seeds and corrections."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from tests.builders import Event, build_event

PLAYERS = ["anna", "ben", "cleo", "dora", "Émile", "fritz", "ζωή", "hugo"]
CLUBS = ["Rot-Weiß", "Blau", "Grün"]
POWERS = ["Austria", "England", "France", "Germany", "Italy", "Russia", "Turkey"]
WHY = {"reason": "it was wrong"}
PLAYER_BANDS = {"by": ["players"], "bands": ["3", "4"]}

# by id: the rule, the games, and further members of its ruleset
SYSTEMS: dict[str, tuple[str, list[str], Event]] = {
    "glicko": ("glicko-1/1", ["table"], {}),
    "glicko-months": ("glicko-1/1", ["table", "chess"], {"period": "month"}),
    "glicko-2": ("glicko-2/1", ["table"], {}),
    "glicko-2-weeks": ("glicko-2/1", ["table", "go"], {"period": "week"}),
    "weng-lin": ("weng-lin-pl/1", ["table", "doubles"], {}),
    "weng-lin-bt": ("weng-lin-btf/1", ["table", "doubles"], {}),
    "club-elo": ("pairwise-elo/2", ["football"], {
        "season_by": [2, 7, 10], "score_decimals": 1, "params": {
            "margin": "ln", "margin_unit": 10, "home": 65, "reversion": "1/3", "reversion_to": 1505,
            "k": [{"below": 5, "k": 40}, {"k": 20}]}}),
    "doubles-elo": ("pairwise-elo/2", ["doubles"], {
        "season_by": "season", "params": {
            "margin": "power", "teams": "sum", "reversion": "1/4",
            "k": {"numerator": 250, "offset": 5, "power": "0.4"}}}),
    "riichi": ("tenhou/1", ["riichi"], {"period": "day", "partition": PLAYER_BANDS}),
    "egf": ("egf-gor/1", ["go"], {"period": "event", "period_by": "league"}),
    "fide": ("fide-elo/1", ["chess"], {"period": "month", "params": {"start": 0, "floor": 1000}}),
    "fide-games": ("fide-elo/1", ["chess"], {"params": {"start": 0, "floor": 1000}}),
    "c-diplo": ("c-diplo/1", ["diplomacy"], {"partition": {"by": ["league"]}}),
    "squares": ("sum-of-squares/1", ["diplomacy"], {"partition": {"by": ["league"]}}),
    "championship": ("placement-points/2", ["race"], {
        "partition": {"by": ["season"]}, "params": {
            "points": [9, 6, 4, 3, 2, 1], "bonus": {"fastest_lap": 1}, "parts": [{"rounds": 4, "best": 3}, {"best": 2}],
            "tie_breaks": ["places", "last game"]}}),
}  # fmt: skip
# later versions: the effective date, and the changed members
LATER: dict[str, tuple[str, Event]] = {
    "glicko": ("2010-09-10", {"params": {"c": 20, "start_deviation": 300}}),
    "glicko-months": ("2010-09-10", {"params": {"c": 40}}),
    "club-elo": ("2010-09-10", {"params": {"k": 25, "home": 80}}),
    "fide": ("2010-09-10", {"params": {"start": 0, "lift": 40}}),  # it lifts existing ratings
    "fide-games": ("2010-09-10", {"params": {"start": 0, "lift": 40}}),
}
SEEDS = {
    "glicko": {"rating": "1800", "deviation": "60.5"},
    "glicko-2": {"rating": "1200.5"},
    "weng-lin": {"rating": "31"},
    "club-elo": {"rating": "1700"},
    "riichi/4": {"rating": "1850"},
    "egf": {"rating": "2100"},
    "glicko-2-weeks": {"rating": "1650", "volatility": "0.07"},
    "fide": {"rating": "1800", "born": "1995"},
    "fide-games": {"rating": "1700"},
}


def build_rulesets() -> list[Event]:
    """Return the events that publish all versions of all rulesets."""
    versions = [describe_version(name) for name in SYSTEMS]
    versions += [describe_version(name, "2", since, **changes) for name, (since, changes) in LATER.items()]
    return [build_event("ruleset.published", "2010-01-01T00:00:00Z", **version) for version in versions]


def describe_version(name: str, version: str = "1", since: str = "1900-01-01", **members: Any) -> Event:
    """Return the data of a version of a ruleset."""
    rule, games, more = SYSTEMS[name]
    kind = "diplomacy" if "diplomacy" in games else "placing"
    scope = {"game": games, "kind": [kind], "players_min": 3 if name == "riichi" else 2}
    return {"id": name, "version": version, "rule": rule, "effective_from": since, "scope": scope, **more, **members}


def correct_game(recorded: Event, at: str) -> Event:
    """Return a correction in which the first and the last participant of a game, or their sides, exchange results."""
    old = recorded["data"]
    participants = [{**participant} for participant in old["participants"]]
    pairs = [(participants[0], participants[-1])]
    if "team" in participants[0]:
        pairs.append((participants[1], participants[2]))
    for left, right in pairs:
        for name in {"place", "score", "power"} & left.keys():
            left[name], right[name] = right[name], left[name]
    return build_event("game.corrected", at, game_id=old["game_id"], game={**old, "participants": participants}, **WHY)


class HistoryDrawer:
    """Draws the games of all systems, day after day, and other events between them."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.at = datetime(2010, 6, 20, 17, tzinfo=UTC)
        self.played: list[Event] = []
        self.number = 0

    def draw(self, rounds: int) -> Iterator[Event]:
        """Yield the events of these rounds: a game of each kind, and now and then a seed, a correction or another
        event.
        """
        yield from self._draw_seeds()
        for _ in range(rounds):
            self.at += timedelta(hours=self.chance.choice([1, 5, 7, 24 * 3, 24 * 25]))
            for draw in (
                self._draw_table,
                self._draw_chess,
                self._draw_go,
                self._draw_football,
                self._draw_doubles,
                self._draw_riichi,
                self._draw_diplomacy,
                self._draw_race,
            ):
                yield self._draw_game(**draw())
            yield from self._draw_other_event()

    def correct(self, back: int) -> Event:
        """Return a correction of the game recorded `back` games ago."""
        return correct_game(self.played[-back], self.now())

    def now(self) -> str:
        """Return the time of the last round."""
        return self.at.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _draw_game(self, **data: Any) -> Event:
        late = self.chance.random() < 0.1
        at = self.at - timedelta(days=self.chance.choice([1, 20, 45])) if late else self.at
        self.number += 1
        drawn = build_event("game.recorded", at.strftime("%Y-%m-%dT%H:%M:%SZ"), game_id=f"g{self.number}", **data)
        self.played.append(drawn)
        return drawn

    def _draw_seeds(self) -> Iterator[Event]:
        for ladder, state in SEEDS.items():
            # under FIDE's rule, a player without a seed is unrated
            for index, player in enumerate(PLAYERS[: 7 if ladder.startswith("fide") else 4]):
                name = next(iter(state))
                points = f"{float(state[name]) - index:g}"
                yield build_event(
                    "player.seeded",
                    "2010-01-02T00:00:00Z",
                    f"seed {ladder} {player}",
                    ladder=ladder,
                    player=player,
                    state={**state, name: points},
                    games=7 * index,
                )

    def _draw_other_event(self) -> Iterator[Event]:
        match self.chance.randrange(6):
            case 0 if len(self.played) > 60:
                yield self.correct(self.chance.randint(20, 60))
            case 1:
                name = self.chance.choice(["glicko", "glicko-months", "club-elo", "riichi/3", "egf", "weng-lin"])
                player = self.chance.choice(PLAYERS)
                points = self.chance.choice(["10", "-7.25"])
                yield build_event(
                    "points.adjusted",
                    self.now(),
                    f"adjustment {self.number}",
                    ladder=name,
                    player=player,
                    points=points,
                    **WHY,
                )
            case 2 if len(self.played) > 60:
                yield build_event(
                    "game.voided",
                    self.now(),
                    game_id=self.played.pop(-self.chance.randint(20, 60))["data"]["game_id"],
                    **WHY,
                )
            case _:
                pass

    def _draw_places(self, players: int) -> list[int]:
        ranks = [self.chance.randint(1, players) for _ in range(players)]
        return [1 + sum(better < rank for better in ranks) for rank in ranks]

    def _draw_participants(self, players: int) -> list[Event]:
        chosen = self.chance.sample(PLAYERS, players)
        return [
            {"player": name, "place": place} for name, place in zip(chosen, self._draw_places(players), strict=True)
        ]

    def _draw_table(self) -> Event:
        return {"game": "table", "participants": self._draw_participants(self.chance.randint(2, 5))}

    def _draw_chess(self) -> Event:
        league = {"league": self.chance.choice(["open", "masters"])} if self.chance.random() < 0.5 else {}
        return {"game": "chess", "participants": self._draw_participants(2), **league}

    def _draw_go(self) -> Event:
        participants = self._draw_participants(2)
        if self.chance.random() < 0.4:
            participants[0]["numbers"] = {"handicap": self.chance.randint(1, 6)}
        event_name = f"congress {self.number // 24}"
        weight = {"numbers": {"weight": 75}} if self.chance.random() < 0.3 else {}
        return {"game": "go", "participants": participants, "league": event_name, **weight}

    def _draw_football(self) -> Event:
        participants = self._draw_participants(2)
        goals = sorted((self.chance.randint(0, 40) for _ in range(2)), reverse=True)
        is_draw = participants[0]["place"] == participants[1]["place"]
        for participant in participants:
            score = goals[0] if is_draw else goals[participant["place"] - 1]
            participant["score"] = f"{score / 10:g}"
            participant["club"] = self.chance.choice(CLUBS)
        if self.chance.random() < 0.8:
            participants[0]["home"] = True
        return {"game": "football", "participants": participants}

    def _draw_doubles(self) -> Event:
        chosen, (left, right) = self.chance.sample(PLAYERS, 4), self._draw_places(2)
        goals = sorted((self.chance.randint(0, 21) for _ in range(2)), reverse=True)
        participants = [
            {"player": name, "place": place, "team": team, "score": goals[place - 1] if left != right else 5}
            for name, team, place in zip(chosen, (1, 1, 2, 2), (left, left, right, right), strict=True)
        ]
        return {"game": "doubles", "participants": participants, "season": f"{self.at:%Y}"}

    def _draw_riichi(self) -> Event:
        return {"game": "riichi", "participants": self._draw_participants(self.chance.choice([3, 4, 4]))}

    def _draw_diplomacy(self) -> Event:
        powers = self.chance.sample(POWERS, 7)
        chosen = zip(self.chance.sample(PLAYERS, 7), powers, strict=True)
        owners = [self.chance.choice(powers) for _ in range(self.chance.randint(20, 34))]
        centres = {power: owners.count(power) for power in powers if power in owners}
        participants = [{"player": name, "power": power} for name, power in chosen]
        return {
            "game": "diplomacy",
            "kind": "diplomacy",
            "participants": participants,
            "centres": {"1901": centres},
            "league": f"{self.at:%Y}",
        }

    def _draw_race(self) -> Event:
        participants = self._draw_participants(self.chance.randint(3, 8))
        participants[0]["numbers"] = {"fastest_lap": 1}
        return {"game": "race", "participants": participants, "season": f"{self.at:%Y}"}


def draw_history(seed: int, rounds: int) -> list[Event]:
    """Return the rulesets, and a history of `rounds` rounds under them.

    At the end come a correction, voids of two seeds, a new seed for one of these players, and renames of a player and a
    club.
    """
    drawing = HistoryDrawer(seed)
    log = [*build_rulesets(), *drawing.draw(rounds)]
    at = drawing.now()
    log.append(drawing.correct(30))
    log.append(build_event("event.voided", at, id="seed glicko dora", **WHY))
    log.append(
        build_event("player.seeded", at, ladder="glicko", player="dora", state={"rating": "1500", "deviation": "90"})
    )
    log.append(build_event("event.voided", at, id="seed egf cleo", **WHY))
    log.append(build_event("player.renamed", at, player="anna", new_player="anna the elder"))
    log.append(build_event("club.renamed", at, club="Blau", new_club="Himmelblau"))
    return log

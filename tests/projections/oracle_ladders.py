"""Standings by the book: the contribution pool, the ante pool and the Catan lists, in fractions and long decimals.

The other half of `oracle`, and as naive. It counts what it meets on its way, so that a test can tell what it tried.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from oracle import Game, Log, games, identities, instant, ladder_of, live, places, season_bounds, seats, uncountable

START = {"galactic-points": 1000, "b5-league": 100, "catan-elo": 1000}
LEAST_GAMES = {"galactic-points": 0, "b5-league": 5, "catan-elo": 0}
ALWAYS = instant("0001-01-01T00:00:00Z")
IN_FORCE = {"galactic-points": ALWAYS, "b5-league": ALWAYS, "catan-elo": instant("2009-01-31T00:00:00+01:00")}
CONTRIBUTIONS = {2: [0, 16], 3: [0, 13, 20], 4: [0, 11, 17, 24], 5: [0, 10, 16, 22, 28]}
SHARES = {3: [50, 30, 20], 4: [40, 30, 20, 10]}

Points = dict[str, Fraction]


class Row(NamedTuple):
    """A row of the standings."""

    rank: int | None
    player: str
    points: Fraction
    games: int
    qualified: bool


class Played(NamedTuple):
    """What a game did to the points of a ladder, by current ids; what it minted, and what it burned."""

    counted: bool
    before: Points
    change: Points
    minted: Fraction
    burned: Fraction


class Seen(NamedTuple):
    """What is known at the coordinates of a question."""

    log: Log
    as_of: datetime | None
    current: Callable[[str], str]

    def late(self, at: datetime) -> bool:
        return self.as_of is not None and at > self.as_of


@dataclass
class Ladder:
    """A ladder after all its games and adjustments.

    `played` tells of every game whether and how it counted here, `history` of every player the game and his place
    (None: adjustment), the points before and the change, step by step.
    """

    name: str
    points: Points = field(default_factory=dict)
    games: Counter[str] = field(default_factory=Counter)
    minted: Fraction = Fraction(0)
    burned: Fraction = Fraction(0)
    adjusted: Fraction = Fraction(0)
    played: dict[str, Played] = field(default_factory=dict)
    history: dict[str, list[tuple[str | None, int | None, Fraction, Fraction]]] = field(default_factory=dict)
    cases: Counter[str] = field(default_factory=Counter)

    @property
    def ruleset(self) -> str:
        return self.name.split("/")[0]

    @property
    def started(self) -> Fraction:
        return Fraction(START[self.ruleset] * len(self.points))

    def points_of(self, player: str) -> Fraction:
        return self.points.get(player, Fraction(START[self.ruleset]))

    def rows(self) -> list[Row]:
        """Who qualifies by points, ties sharing a rank and standing by id; the others behind, without a rank."""
        qualified = [player for player in self.points if self.games[player] >= LEAST_GAMES[self.ruleset]]
        found = []
        for player, points in self.points.items():
            rank = 1 + sum(self.points[other] > points for other in qualified) if player in qualified else None
            found.append(Row(rank, player, points, self.games[player], rank is not None))
        return sorted(found, key=lambda row: (not row.qualified, -row.points, row.player))


def ladders(log: Log, as_of: datetime | None = None) -> dict[str, Ladder]:
    """All ladders that a game or an adjustment belongs to, by name; those on which nothing counts are empty."""
    rulesets = [event["data"]["id"] for event in live(log, "ruleset.published")]
    names = {ladder_of(game.data) for game in games(log).values()}
    names |= {event["data"]["ladder"] for event in live(log, "points.adjusted")}
    return {name: ladder(log, name, as_of) for name in names - {None} if name.split("/")[0] in rulesets}


def ladder(log: Log, name: str, as_of: datetime | None = None) -> Ladder:
    """The ladder of that name from everything in the log, or from what occurred up to an instant."""
    found, seen = Ladder(name), Seen(log, as_of, identities(log))
    facts: list[tuple[datetime, int, Any]] = [(game.at, game.first, game) for game in games(log).values()]
    facts += [(instant(e["occurred_at"]), e["position"], e["data"]) for e in live(log, "points.adjusted")]
    for at, _, fact in sorted(facts, key=lambda fact: fact[:2]):
        if isinstance(fact, Game):
            play(found, seen, fact)
        elif fact["ladder"] == name and not seen.late(at):
            adjust(found, seen.current(fact["player"]), Fraction(fact["points"]))
    return found


def adjust(found: Ladder, player: str, delta: Fraction) -> None:
    found.cases["adjustment before any game"] += player not in found.points
    move(found, (None, None), player, delta)
    found.adjusted += delta


def move(found: Ladder, cause: tuple[str | None, int | None], player: str, change: Fraction) -> None:
    before = found.points_of(player)
    found.history.setdefault(player, []).append((*cause, before, change))
    found.points[player] = before + change


def play(found: Ladder, seen: Seen, game: Game) -> None:
    """Take in one game; one that does not count here leaves everything as it is."""
    name = game.data["game_id"]
    before = {seen.current(player): found.points_of(seen.current(player)) for player in game.players}
    who = [] if seen.late(game.at) or ladder_of(game.data) != found.name else counted(found, seen, game)
    if not who:
        found.played[name] = Played(False, before, {}, Fraction(0), Fraction(0))
        return
    place = {seen.current(player): rank for player, rank in places(game.data).items() if player in who}
    change, minted = SCORES[found.ruleset](
        {player: before[player] for player in place}, place, by_player(seen, game), game, found.cases
    )
    burned = minted - sum(change.values())
    found.played[name] = Played(True, before, change, Fraction(minted), burned)
    found.minted, found.burned = found.minted + minted, found.burned + burned
    for player, delta in change.items():
        move(found, (name, place[player]), player, delta)
        found.games[player] += 1
    note_game(found, game, place)


def by_player(seen: Seen, game: Game) -> dict[str, dict[str, Any]]:
    return {seen.current(participant["player"]): participant for participant in game.data["participants"]}


def note_game(found: Ladder, game: Game, place: dict[str, int]) -> None:
    statuses = {participant.get("status") for participant in game.data["participants"]} - {None, "finished"}
    found.cases["counted game"] += 1
    found.cases["tie"] += len(set(place.values())) < len(place)
    found.cases["leaver"] += bool(statuses - {"substitute"})
    found.cases["substitute"] += "substitute" in statuses
    if bounds := season_bounds(game.data.get("season") or ""):
        found.cases["season edge"] += found.ruleset == "b5-league" and (
            game.at == bounds[0] or (bounds[1] - game.at).total_seconds() < 1
        )


def counted(found: Ladder, seen: Seen, game: Game) -> list[str]:
    """The ids, as recorded, of those who count in a game of this ladder; nobody if it is not counted."""
    if game.voided or game.data.get("aborted") or game.data.get("rated") is False:
        found.cases["unrated or aborted"] += not game.voided
        return []
    if uncountable(game.data, game.at) or game.at < IN_FORCE[found.ruleset]:
        found.cases["recorded, but not countable"] += uncountable(game.data, game.at)
        found.cases["game before its ruleset"] += game.at < IN_FORCE[found.ruleset]
        return []
    if found.ruleset != "catan-elo":
        return game.players
    who = []
    for participant in game.data["participants"]:
        if participant.get("status") in ("abandoned", "substitute"):
            found.cases[f"{participant['status']} left out"] += 1
        elif account(seen, participant["player"], game.at) == "free":
            found.cases["free account left out"] += 1
        else:
            who.append(participant["player"])
    found.cases["fewer than two counted players"] += len(who) < 2
    return who if len(who) > 1 else []


def account(seen: Seen, player: str, at: datetime) -> str:
    """The latest account of a person, under whichever of his ids, not after an instant; else premium."""
    known = [(ALWAYS, 0, "premium")]
    for event in live(seen.log, "player.registered", "player.account_changed"):
        when, data = instant(event["occurred_at"]), event["data"]
        if seen.current(data["player"]) == seen.current(player) and when <= at and not seen.late(when):
            known.append((when, event["position"], data.get("account") or "premium"))
    return max(known)[2]


# -- the rules. Each: points before, places, participants, the game, cases -> changes, and what is minted


Score = Callable[[Points, dict[str, int], dict[str, dict[str, Any]], Game, Counter[str]], tuple[Points, int]]


def contribution_pool(
    before: Points, place: dict[str, int], who: dict[str, dict[str, Any]], game: Game, cases: Counter[str]
) -> tuple[Points, int]:
    percent = {player: CONTRIBUTIONS[len(seats(game.data))][place[player] - 1] for player in before}
    better = {player: sum(other < place[player] for other in place.values()) for player in before}
    change = {player: -Fraction(before[player] * percent[player] // 100) for player in before}
    for giver in before:
        for taker in before:
            if place[taker] < place[giver]:
                change[taker] += before[giver] * percent[giver] // (better[giver] * 100)
    cases["dust burned"] += sum(change.values()) < 0
    minted = 0
    for player in before:
        if (seconds := who[player].get("seconds_played")) is not None:
            cases["no bonus at 600 seconds"] += seconds == 600
            minted += 100 * (seconds > 600)
            change[player] += 100 * (seconds > 600)
    cases["bonus minted"] += minted > 0
    return change, minted


def ante_pool(
    before: Points, place: dict[str, int], who: dict[str, dict[str, Any]], game: Game, cases: Counter[str]
) -> tuple[Points, int]:
    ante = {player: points // 10 if points >= 10 else 0 for player, points in before.items()}
    pot, n = sum(ante.values()), len(seats(game.data))
    shares = SHARES.get(n, SHARES[4])
    change = {}
    for player in before:
        tied = sum(other == place[player] for other in place.values())
        places_taken = range(place[player], place[player] + tied)
        share = sum(shares[at - 1] for at in places_taken if at <= len(shares))
        change[player] = Fraction(pot * share // (100 * tied) - ante[player] + (who[player].get("vp") or 0))
        cases["tie over several places of the pot"] += tied > 1 and place[player] <= len(shares)
    minted = sum(participant.get("vp") or 0 for participant in who.values())
    victories = [participant.get("victory") for participant in who.values()]
    cases["several winners"] += len(victories) - victories.count(None) > 1
    cases["major and standard victory"] += {"major", "standard"} <= set(victories)
    cases["rest of the pot burned"] += sum(change.values()) < minted
    return change, minted


def catan_elo(
    before: Points, place: dict[str, int], who: dict[str, dict[str, Any]], game: Game, cases: Counter[str]
) -> tuple[Points, int]:
    change = {
        player: sum(
            (pair(before[player] - before[other], (place[player] < place[other]) - (place[player] > place[other]))
             for other in before if other != player), Fraction(0),
        )
        for player in before
    }  # fmt: skip
    assert sum(change.values()) == 0, "each pair is zero-sum"
    return change, 0


@cache
def pair(gap: Fraction, outcome: int) -> Fraction:
    """Whole points for a player so far above his opponent who won (1), tied (0) or lost (-1), half away from zero."""
    with localcontext() as context:
        context.prec = 60
        expected = 1 / (1 + Decimal(10) ** (-Decimal(gap.numerator) / gap.denominator / 400))
        return Fraction((8 * (Decimal(outcome + 1) / 2 - expected)).quantize(Decimal(1), rounding=ROUND_HALF_UP))


SCORES: dict[str, Score] = {
    "galactic-points": contribution_pool,
    "b5-league": ante_pool,
    "catan-elo": catan_elo,
}

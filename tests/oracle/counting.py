"""Which games count where, and who counts in them, by what is known and was played up to an instant."""

from collections import defaultdict
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from oracle.log import Game, Log, games, identities, live, seats
from oracle.rulesets import Version, cell, in_force, in_scope, unscorable
from oracle.scores import catan_points
from oracle.times import ALWAYS, instant

# of the lists; on any other ladder a game needs two who count
LEAST = {"catan-points/1": 1, "annual-places/1": 1}


class Counted(NamedTuple):
    """A game that counts on a ladder, the version that it counts by, and who of it does, by the ids as recorded."""

    game: Game
    version: Version
    who: list[str]


class View:
    """A log as far as it is known, with the games, adjustments and accounts up to an instant."""

    def __init__(self, log: Log, upto: datetime | None = None) -> None:
        self.log = log
        self.upto = upto
        self.current = identities(log)
        self._on: dict[tuple[Any, ...], dict[str, list[Counted]]] = {}

    def late(self, at: datetime) -> bool:
        return self.upto is not None and at > self.upto

    @cached_property
    def facts(self) -> list[tuple[datetime, int, Any]]:
        """All games and live adjustments, late ones too, in the order in which they are replayed."""
        found: list[tuple[datetime, int, Any]] = [(game.at, game.first, game) for game in games(self.log).values()]
        found += [(instant(e["occurred_at"]), e["position"], e["data"]) for e in live(self.log, "points.adjusted")]
        return sorted(found, key=lambda fact: fact[:2])

    @cached_property
    def accounts(self) -> list[tuple[str, datetime, int, str]]:
        """Whose account was which since when; of the same time the one recorded last holds."""
        found = []
        for event in live(self.log, "player.registered", "player.account_changed"):
            since, data = instant(event["occurred_at"]), event["data"]
            if not self.late(since):
                kind = data.get("account") or "premium"
                found.append((self.current(data["player"]), since, event["position"], kind))
        return found

    def account(self, player: str, at: datetime) -> str:
        """The latest account of a person, under whichever id, not after an instant; else premium."""
        person = self.current(player)
        known = [(since, position, kind) for who, since, position, kind in self.accounts if who == person]
        return max([(ALWAYS, 0, "premium"), *(one for one in known if one[0] <= at)])[2]

    def who(self, version: Version, game: Game) -> list[str]:
        """Who of a game in its scope a version takes into account, by the ids as recorded."""
        if version.rule == "catan-points/1":
            return [player for player, _ in catan_points(game.data, version.params)]
        if version.rule == "annual-places/1":
            return [seat.first["player"] for seat in seats(game.data) if not seat.changed_hands]
        scope = version.data["scope"]
        statuses, accounts = scope.get("exclude_status", ()), scope.get("exclude_accounts", ())
        return [
            participant["player"] for participant in game.data["participants"]
            if (participant.get("status") or "finished") not in statuses
            and not (accounts and self.account(participant["player"], game.at) in accounts)
        ]  # fmt: skip

    def counted(self, version: Version, game: Game) -> list[str]:
        """Who counts in a game; nobody if it does not count."""
        if not game.may_count or self.late(game.at) or not in_scope(version, game) or unscorable(version, game):
            return []
        who = self.who(version, game)
        return who if len(who) >= LEAST.get(version.rule, 2) else []

    def on(self, versions: list[Version]) -> dict[str, list[Counted]]:
        """The games that count on each ladder of a ruleset, in the order played; looked up once for all ladders."""
        key = tuple((version.position, version.since) for version in versions)
        if key not in self._on:
            self._on[key] = defaultdict(list)
            for at, _, fact in self.facts:
                version = in_force(versions, at)
                name = cell(version, fact) if version and isinstance(fact, Game) else None
                if version and name and (who := self.counted(version, fact)):
                    self._on[key][name].append(Counted(fact, version, who))
        return self._on[key]

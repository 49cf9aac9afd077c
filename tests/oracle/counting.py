"""Decide which games count on which ladder, and which players count in them, at given coordinates."""

from collections import defaultdict
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from oracle.log import Game, Log, build_id_lookup, derive_games, list_seats, select_live
from oracle.rulesets import Version, find_ladder_name, find_version, is_in_scope, is_unscorable
from oracle.scores import score_catan
from oracle.times import ALWAYS, parse_instant

# the minimum number of counted players of lists; any other ladder needs two
PLAYERS_MIN = {"catan-points/1": 1, "annual-places/1": 1}


class Counted(NamedTuple):
    """A game that counts on a ladder, the version that scores it, and the players who count, by recorded ids."""

    game: Game
    version: Version
    who: list[str]


class View:
    """A known log, with the games, adjustments and accounts up to an instant."""

    def __init__(self, log: Log, upto: datetime | None = None) -> None:
        self.log = log
        self.upto = upto
        self.current = build_id_lookup(log)
        self._on: dict[tuple[Any, ...], dict[str, list[Counted]]] = {}

    def is_late(self, at: datetime) -> bool:
        return self.upto is not None and at > self.upto

    @cached_property
    def facts(self) -> list[tuple[datetime, int, Any]]:
        """All games and live adjustments in the order of replay, including those after `upto`."""
        facts: list[tuple[datetime, int, Any]] = [
            (game.at, game.first, game) for game in derive_games(self.log).values()
        ]
        facts += [
            (parse_instant(e["occurred_at"]), e["position"], e["data"])
            for e in select_live(self.log, "points.adjusted")
        ]
        return sorted(facts, key=lambda fact: fact[:2])

    @cached_property
    def accounts(self) -> list[tuple[str, datetime, int, str]]:
        """The accounts, each as (player, start, position, kind)."""
        accounts = []
        for event in select_live(self.log, "player.registered", "player.account_changed"):
            since, data = parse_instant(event["occurred_at"]), event["data"]
            if not self.is_late(since):
                kind = data.get("account") or "premium"
                accounts.append((self.current(data["player"]), since, event["position"], kind))
        return accounts

    def find_account(self, player: str, at: datetime) -> str:
        """Return a person's account at an instant, under any of their ids, or premium if no account is recorded.

        Of accounts of the same time, the one recorded last decides.
        """
        person = self.current(player)
        accounts_of_person = [
            (since, position, kind)
            for account_person, since, position, kind in self.accounts
            if account_person == person
        ]
        return max([(ALWAYS, 0, "premium"), *(account for account in accounts_of_person if account[0] <= at)])[2]

    def list_eligible_players(self, version: Version, game: Game) -> list[str]:
        """Return the players of a game in its scope whom a version counts, by recorded ids."""
        if version.rule == "catan-points/1":
            return [player for player, _ in score_catan(game.data, version.params)]
        if version.rule == "annual-places/1":
            return [seat.first["player"] for seat in list_seats(game.data) if not seat.changed_hands]
        scope = version.data["scope"]
        statuses, accounts = scope.get("exclude_status", ()), scope.get("exclude_accounts", ())
        return [
            participant["player"]
            for participant in game.data["participants"]
            if (participant.get("status") or "finished") not in statuses
            and not (accounts and self.find_account(participant["player"], game.at) in accounts)
        ]

    def list_counted_players(self, version: Version, game: Game) -> list[str]:
        """Return the players who count in a game; none if the game does not count."""
        if (
            not game.may_count
            or self.is_late(game.at)
            or not is_in_scope(version, game)
            or is_unscorable(version, game)
        ):
            return []
        players = self.list_eligible_players(version, game)
        return players if len(players) >= PLAYERS_MIN.get(version.rule, 2) else []

    def group_counted_games(self, versions: list[Version]) -> dict[str, list[Counted]]:
        """Return the counted games of each ladder of a ruleset, in the order of play; they are cached."""
        key = tuple((version.position, version.since) for version in versions)
        if key not in self._on:
            self._on[key] = defaultdict(list)
            for at, _, fact in self.facts:
                version = find_version(versions, at)
                name = find_ladder_name(version, fact) if version and isinstance(fact, Game) else None
                if version and name and (players := self.list_counted_players(version, fact)):
                    self._on[key][name].append(Counted(fact, version, players))
        return self._on[key]

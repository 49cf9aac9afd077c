"""Check new seeds: a player has at most one seed per ladder, recorded before the first counted game.

A seed replaces a player's initial state from the beginning of time, so a seed after a game would change published
standings. Only a seed that replaces a withdrawn one may be recorded later.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.rejections import Refused, count, did_you_mean, quote
from ratings_ledger.ledger.store.log import read_events_of_type, read_live, read_matching_records
from ratings_ledger.ledger.validation.identities import read_identities
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import decimal, joined
from ratings_ledger.projections.facts.columns import LABELS, Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.replay.eligibility import explain_kind_mismatch, explain_size_mismatch
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.replay.streams import build_stream, state_columns
from ratings_ledger.projections.rulesets.versions import Version, parse_band

SEED_TYPE = "player.seeded"
# the number of seats, and the labels; pending games with the same key belong to the same ladders
GameKey = tuple[int, tuple[str | None, ...]]


class LiveSeed(NamedTuple):
    """A seed in force; the position is None while it is pending."""

    player: str
    state: dict[str, str]
    games: int
    position: int | None

    def describe(self) -> str:
        """Describe the initial state, such as `rating 1650, deviation 80 after 12 games`."""
        after = f" after {count(self.games, 'game')}" if self.games else ""
        return ", ".join(f"{name} {value}" for name, value in self.state.items()) + after


def check_state(ladder: str, versions: Sequence[Version], state: Mapping[str, str]) -> None:
    """Raise `Refused` (seed-column, finer-than-scale, out-of-range) if a seed's state does not fit a ladder's rules."""
    known = {column.name: column for version in versions for column in state_columns(version.rule)}
    for name, text in state.items():
        if name not in known:
            hint = did_you_mean(name, known)
            raise Refused("seed-column", f"{ladder} has no column {quote(name)}; it has {joined([*known])}{hint}")
        value = Decimal(text)
        for version in versions:
            for column in state_columns(version.rule):
                if column.name != name:
                    continue
                if value * column.scale != int(value * column.scale):
                    step = "whole numbers" if column.scale == 1 else f"steps of 1/{column.scale}"
                    raise Refused("finer-than-scale", f"{text} is too fine for {ladder}, which counts {name} in {step}")
                if not column.low <= value * column.scale <= column.high:
                    low, high = (decimal(limit, column.scale, 15) for limit in (column.low, column.high))
                    raise Refused("out-of-range", f"{name} on {ladder} must be from {low} to {high}, not {text}")


class SeedChecks:
    """Checks of new events against the live seeds, recorded and pending."""

    def __init__(
        self,
        connection: Connection,
        until: int,
        load_known_facts: Callable[[Connection], Facts] | None,
        pending_players: Mapping[GameKey, set[str]],
    ) -> None:
        """Read the seeds and renames up to a position.

        Args:
            connection: the connection to the store.
            until: the last position to read.
            load_known_facts: the function that returns facts decoded earlier, as of any position, if there is one.
            pending_players: the players of the pending games, to which the caller may add.
        """
        self._connection, self._until = connection, until
        self._load_known_facts, self._pending_players = load_known_facts, pending_players
        self._people = read_identities(connection, until)
        # by ladder and current id: the seeds of a person under all of their ids
        self._live: dict[str, dict[str, list[LiveSeed]]] = {}
        live_seeds = list(read_live(connection, until=until, type_name=SEED_TYPE))
        for event in live_seeds:
            self._add_live(event.data, event.position)
        # the ladder and the player of each withdrawn seed
        live_ids = {event.event_id for event in live_seeds}
        all_seeds = read_events_of_type(SEED_TYPE, read_matching_records(connection, until=until, type_name=SEED_TYPE))
        self._withdrawn = {_build_key(event.data) for event in all_seeds if event.event_id not in live_ids}
        # the current ids of the people with counted games, by ladder
        self._people_with_games: dict[str, set[str]] = {}

    def add(self, versions: Sequence[Version], data: Mapping[str, Any]) -> None:
        """Check and add a seed. Raises `Refused`."""
        ladder, player = data["ladder"], data["player"]
        check_state(ladder, versions, data["state"])
        person = self._people.current(player)
        if seeds := self._live.get(ladder, {}).get(person):
            problem = f"{quote(player)} is already seeded on {ladder} with {seeds[0].describe()}"
            raise Refused("seed-exists", f"{problem}; {_suggest_withdrawal(seeds)}")
        if self._is_too_late(versions, ladder, player, person):
            problem = f"{quote(player)} already has a game that counts on {ladder}; a seed must precede the first game"
            command = f"ratings adjust {shlex.quote(ladder)} {shlex.quote(player)} POINTS --reason TEXT"
            raise Refused("seed-late", f"{problem}; to change the points from now on: {command}")
        self._add_live(data)

    def _add_live(self, data: Mapping[str, Any], position: int | None = None) -> None:
        """Add a seed, which is pending without a position, to the live seeds."""
        people = self._live.setdefault(data["ladder"], {})
        seed = LiveSeed(data["player"], data["state"], data.get("games", 0), position)
        people.setdefault(self._people.current(seed.player), []).append(seed)

    def release(self, data: Mapping[str, Any]) -> None:
        """Withdraw a seed. Another seed may then replace it, even after games."""
        ladder, player = data["ladder"], data["player"]
        people, person = self._live.get(ladder, {}), self._people.current(player)
        people[person] = [seed for seed in people.get(person, []) if seed.player != player]
        self._withdrawn.add(_build_key(data))

    def rename(self, player: str, new_player: str) -> None:
        """Apply a rename. Raises `Refused` (seeds-differ) if it gives a person two different seeds on a ladder."""
        person = self._people.current(new_player)
        for ladder, people in self._live.items():
            for old_seed, new_seed in zip(people.get(player, [])[:1], people.get(person, [])[:1], strict=False):
                if (old_seed.state, old_seed.games) != (new_seed.state, new_seed.games):
                    seeds = [f"{quote(seed.player)} with {seed.describe()}" for seed in (old_seed, new_seed)]
                    problem = f"{ladder} has different seeds: {joined(seeds)}"
                    remedy = _suggest_withdrawal([new_seed], f"that of {quote(new_seed.player)}")
                    raise Refused("seeds-differ", f"{problem}; {remedy}")
        self._people.add(player, new_player)
        for ids in self._people_with_games.values():
            if player in ids:
                ids.add(person)
        for people in self._live.values():
            if seeds_of_player := people.pop(player, None):
                people.setdefault(person, []).extend(seeds_of_player)

    def rename_back(self, player: str) -> None:
        """Withdraw the rename of an id."""
        person = self._people.current(player)
        self._people.remove(player)
        self._people_with_games.clear()
        for people in self._live.values():
            for seed in people.pop(person, []):
                people.setdefault(self._people.current(seed.player), []).append(seed)

    def count(self, ruleset_id: str) -> int:
        """Return the number of live seeds on a ruleset's ladders."""
        of_ruleset = (people for ladder, people in self._live.items() if parse_name(ladder).ruleset_id == ruleset_id)
        return sum(len(seeds) for people in of_ruleset for seeds in people.values())

    def _is_too_late(self, versions: Sequence[Version], ladder: str, player: str, person: str) -> bool:
        """Tell whether a person has a counted game on a ladder, and no withdrawn seed that a new one may replace.

        A pending game is regarded as counted if its labels match the ladder.
        """
        own_ids = self._people.ids(player)
        pending_players = self._find_pending_players(versions, ladder)
        if person not in self._find_people_with_games(versions, ladder) and all(
            players.isdisjoint(own_ids) for players in pending_players
        ):
            return False
        return all((ladder, name) not in self._withdrawn for name in self._people.ids(player))

    def _find_pending_players(self, versions: Sequence[Version], ladder: str) -> Iterator[set[str]]:
        """Yield the players of the pending games whose labels match a ladder, whatever the date of a game."""
        partition, values = versions[0].ruleset.partition, parse_name(ladder).values
        required_values = dict(zip(partition.by, values, strict=True))
        for (seats, labels), players in self._pending_players.items():
            game_values = dict(zip(LABELS, labels, strict=True))
            if "players" in required_values:
                low, high = parse_band(required_values["players"])
                game_values["players"] = required_values["players"] if low <= seats <= high else ""
            if all(game_values.get(name, value) == value for name, value in required_values.items()) and any(
                game_values["game"] in version.ruleset.scope.game
                and explain_kind_mismatch(version.ruleset, game_values["kind"] or "placing") is None
                and explain_size_mismatch(version.ruleset, seats) is None
                for version in versions
            ):
                yield players

    def _load_facts(self) -> Facts:
        facts = None if self._load_known_facts is None else self._load_known_facts(self._connection)
        return facts if facts is not None and facts.position == self._until else decode(self._connection, self._until)

    def _find_people_with_games(self, versions: Sequence[Version], ladder: str) -> set[str]:
        """Return the current ids of the people with a recorded, counted game on a ladder."""
        if ladder not in self._people_with_games:
            facts = self._load_facts()
            stream = build_stream(facts, versions, ladder)
            numbers = [] if stream is None else np.unique(arrays.as_numpy(stream.players)).tolist()
            names = [stream.names[number] for number in numbers] if stream else []
            self._people_with_games[ladder] = {*map(self._people.current, names)}
        return self._people_with_games[ladder]


def _build_key(data: Mapping[str, Any]) -> tuple[str, str]:
    return data["ladder"], data["player"]


def _suggest_withdrawal(seeds: Sequence[LiveSeed], phrase: str = "") -> str:
    """Return the commands that withdraw conflicting seeds; for a pending seed, the advice to leave one out.

    `phrase` names the seeds; by default, they are "it" or "them".
    """
    if any(seed.position is None for seed in seeds):
        return "leave one out"
    commands = [f"ratings void --event {seed.position} --reason TEXT" for seed in seeds]
    return f"first withdraw {phrase or ('it' if len(seeds) == 1 else 'them')}: {'; '.join(commands)}"

"""The facts that replay needs, as columns: decoded from the log once, in bulk, up to a known position.

Games are rows of parallel arrays; their participants stand in other arrays from `start` on, `count` of them. Texts
(players, games, groups ...) are interned and stand as numbers, -1 for none. A new type of event is a line in `APPLY`.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ledger.canonical import record_instant
from ledger.errors import StoreDamaged
from ledger.events import TYPES, Ruleset
from ledger.games import STATUSES, seats_of
from ledger.kinds import places
from ledger.store import chain_hash_at, head, read_records
from ledger.upcasting import upcast
from projections.rulesets import Version, bind

UNRATED, ABORTED = 1, 2
LABELS = ("game", "kind", "group", "city", "league", "season")
NONE = -1
# numbers of a participant that rules may ask for beside place, status and seats, and what stands where none is given
OPTIONAL_COLUMNS = {"seconds_played": NONE, "seat": NONE, "vp": 0}


class Adjustment(NamedTuple):
    """A `points.adjusted`: `points` is a decimal string."""

    occurred_at: int
    position: int
    ladder: str
    player: int
    points: str


class Account(NamedTuple):
    """From `occurred_at` on, the player's account is this."""

    occurred_at: int
    position: int
    account: str


def _numbers() -> array[int]:
    return array("q")


def _small_numbers() -> array[int]:
    return array("i")


@dataclass
class Facts:
    """All live facts up to `position`; `chain_hash` names the exact history that they come from."""

    position: int
    chain_hash: bytes

    # one entry a game, in the order of their first records
    first_position: array[int] = field(default_factory=_numbers)
    live_position: array[int] = field(default_factory=_numbers)
    occurred_at: array[int] = field(default_factory=_numbers)
    start: array[int] = field(default_factory=_numbers)
    count: array[int] = field(default_factory=_small_numbers)
    seats: array[int] = field(default_factory=_small_numbers)
    flags: array[int] = field(default_factory=lambda: array("b"))
    labels: dict[str, array[int]] = field(default_factory=lambda: {name: _small_numbers() for name in LABELS})

    # one entry a participant
    player: array[int] = field(default_factory=_small_numbers)
    place: array[int] = field(default_factory=_small_numbers)
    status: array[int] = field(default_factory=lambda: array("b"))
    optional: dict[str, array[int]] = field(
        default_factory=lambda: {name: _small_numbers() for name in OPTIONAL_COLUMNS}
    )

    players: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    adjustments: list[Adjustment] = field(default_factory=list)
    accounts: dict[int, list[Account]] = field(default_factory=dict)
    rulesets: dict[str, list[Version]] = field(default_factory=dict)
    # rulesets with a version that does not run here: the version's position and why
    unusable: dict[str, tuple[int, str]] = field(default_factory=dict)

    player_numbers: dict[str, int] = field(default_factory=dict)
    text_numbers: dict[str, int] = field(default_factory=dict)

    def label(self, name: str, row: int) -> str | None:
        """The text of a label of a game, or None."""
        number = self.labels[name][row]
        return None if number == NONE else self.texts[number]

    def column(self, name: str, row: int, participants: Sequence[int]) -> list[int]:
        """What a rule calls by this name, for some participants of a game; `seats` is the same for all of them."""
        if name == "seats":
            return [self.seats[row]] * len(participants)
        source = self.place if name == "place" else self.status if name == "status" else self.optional[name]
        return [source[p] for p in participants]

    def account(self, player: int, instant: int) -> str:
        """The account of a player at an instant: the latest not after it, else premium."""
        known = [entry for entry in self.accounts.get(player, ()) if entry.occurred_at <= instant]
        return max(known).account if known else "premium"

    def row_of(self, first_position: int) -> int:
        """The row of the game first recorded at a position. Raises `ValueError` if there is none."""
        row = bisect_left(self.first_position, first_position)
        if row == len(self.first_position) or self.first_position[row] != first_position:
            raise ValueError(f"no game was first recorded at position {first_position}")
        return row


def decode(connection: Connection, known_at: int | None = None) -> Facts:
    """The facts recorded up to a position (default: the head)."""
    latest = head(connection)
    if known_at is not None and known_at < latest.position:
        facts = Facts(known_at, chain_hash_at(connection, known_at) or b"")
    else:
        facts = Facts(latest.position, latest.chain_hash)
    for page in read_records(connection, until=facts.position):
        for position, record in page:
            try:
                apply(facts, position, json.loads(record))
            except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
                # every record was checked before it was stored, so this one was changed since
                raise StoreDamaged(
                    f"the event at position {position} cannot be read ({error}); see: ratings verify"
                ) from error
    return facts


def apply(facts: Facts, position: int, event: dict[str, Any]) -> None:
    """Take one event, as its record tells it, into the facts."""
    name = event["type"]
    current = TYPES[name].schema_version
    data = event["data"] if event["schema_version"] == current else upcast(
        name, event["schema_version"], current, event["data"]
    )  # fmt: skip
    APPLY[name](facts, position, record_instant(event["occurred_at"]), data)


def _player(facts: Facts, name: str) -> int:
    number = facts.player_numbers.setdefault(name, len(facts.players))
    if number == len(facts.players):
        facts.players.append(name)
    return number


def _text(facts: Facts, text: str | None) -> int:
    if text is None:
        return NONE
    number = facts.text_numbers.setdefault(text, len(facts.texts))
    if number == len(facts.texts):
        facts.texts.append(text)
    return number


def _game_recorded(facts: Facts, position: int, occurred_at: int, game: dict[str, Any]) -> None:
    participants = game["participants"]
    facts.first_position.append(position)
    facts.live_position.append(position)
    facts.occurred_at.append(occurred_at)
    facts.start.append(len(facts.player))
    facts.count.append(len(participants))
    facts.seats.append(seats_of(game))
    facts.flags.append(UNRATED * (not game.get("rated", True)) + ABORTED * game.get("aborted", False))
    for name, column in facts.labels.items():
        column.append(_text(facts, game.get(name, "placing" if name == "kind" else None)))
    facts.place.extend(places(game))
    for participant in participants:
        facts.player.append(_player(facts, participant["player"]))
        facts.status.append(STATUSES.index(participant.get("status", "finished")))
    for name, column in facts.optional.items():
        column.extend(participant.get(name, OPTIONAL_COLUMNS[name]) for participant in participants)


def _points_adjusted(facts: Facts, position: int, occurred_at: int, data: dict[str, Any]) -> None:
    player = _player(facts, data["player"])
    facts.adjustments.append(Adjustment(occurred_at, position, data["ladder"], player, data["points"]))


def _account(facts: Facts, position: int, occurred_at: int, data: dict[str, Any]) -> None:
    account = Account(occurred_at, position, data.get("account", "premium"))
    facts.accounts.setdefault(_player(facts, data["player"]), []).append(account)


def _ruleset_published(facts: Facts, position: int, occurred_at: int, data: dict[str, Any]) -> None:
    version, problems = bind(Ruleset.model_validate(data), position)
    if version is None:
        reason = f"{data['id']}@{data['version']} cannot be used here: {problems[0].key}: {problems[0].message}"
        facts.unusable.setdefault(data["id"], (position, reason))
        return
    facts.rulesets.setdefault(version.ruleset.id, []).append(version)


APPLY: dict[str, Callable[[Facts, int, int, dict[str, Any]], None]] = {
    "player.registered": _account,
    "player.account_changed": _account,
    "game.recorded": _game_recorded,
    "points.adjusted": _points_adjusted,
    "ruleset.published": _ruleset_published,
}

"""The facts that replay needs, as columns: decoded from the log once, in bulk, up to a known position.

Games are rows of parallel arrays; their participants stand in other arrays from `start` on, `count` of them. A game
that is corrected keeps its row and gets new participants. Texts (players, games, groups ...) are interned and stand as
numbers, -1 for none. Every event is applied in order; `settle` then leaves out what is taken back, and makes the ids of
one person one. A new type of event is a line in `APPLY`.
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
from ledger.events import TYPES, Ruleset, corrected_game
from ledger.games import STATUSES, seats_of
from ledger.kinds import KINDS, numbers, places
from ledger.lineage import GAME_TYPES
from ledger.store import chain_hash_at, head, read_records, read_where
from ledger.upcasting import upcast
from projections.contract import OPTIONAL_COLUMNS
from projections.rulesets import Version, bind

UNRATED, ABORTED, VOIDED = 1, 2, 4
LABELS = ("game", "kind", "group", "city", "league", "season")
NONE = -1


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
    player: int
    account: str


class Rename(NamedTuple):
    """A `player.renamed`."""

    position: int
    player: int
    new_player: int


class Unusable(NamedTuple):
    """A published version that does not run here, and why."""

    position: int
    ruleset_id: str
    reason: str


@dataclass
class Recorded:
    """What other events than games said, taken back or not."""

    adjustments: list[Adjustment] = field(default_factory=list)
    accounts: list[Account] = field(default_factory=list)
    renames: list[Rename] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)
    unusable: list[Unusable] = field(default_factory=list)
    # the positions of these events by id, what an `event.voided` is about in the end, and what is taken back now
    positions: dict[str, int] = field(default_factory=dict)
    roots: dict[int, int] = field(default_factory=dict)
    taken_back: set[int] = field(default_factory=set)


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
    kind_start: array[int] = field(default_factory=_numbers)
    labels: dict[str, array[int]] = field(default_factory=lambda: {name: _small_numbers() for name in LABELS})

    # one entry a participant
    player: array[int] = field(default_factory=_small_numbers)
    place: array[int] = field(default_factory=_small_numbers)
    status: array[int] = field(default_factory=lambda: array("b"))
    replaced: array[int] = field(default_factory=lambda: array("b"))  # 1: somebody took over his seat
    optional: dict[str, array[int]] = field(
        default_factory=lambda: {name: _small_numbers() for name in OPTIONAL_COLUMNS}
    )

    # numbers that only participants of some kind have: from `kind_start` of their game on, in the same order
    of_kind: dict[str, array[int]] = field(
        default_factory=lambda: {name: _numbers() for kind in KINDS.values() for name in kind.columns}
    )

    # ids as recorded, and for each the number of the id that the same person has now
    players: list[str] = field(default_factory=list)
    person: array[int] = field(default_factory=_small_numbers)
    texts: list[str] = field(default_factory=list)
    player_numbers: dict[str, int] = field(default_factory=dict)
    text_numbers: dict[str, int] = field(default_factory=dict)

    # games about which more than one event is recorded, with their rows
    rows: dict[str, int] = field(default_factory=dict)
    recorded: Recorded = field(default_factory=Recorded)

    # what `settle` leaves of it, by person
    adjustments: list[Adjustment] = field(default_factory=list)
    accounts: dict[int, list[Account]] = field(default_factory=dict)
    rulesets: dict[str, list[Version]] = field(default_factory=dict)
    unusable: dict[str, Unusable] = field(default_factory=dict)
    renamed: bool = False

    def label(self, name: str, row: int) -> str | None:
        """The text of a label of a game, or None."""
        number = self.labels[name][row]
        return None if number == NONE else self.texts[number]

    def column(self, name: str, row: int, participants: Sequence[int]) -> list[int]:
        """What a rule calls by this name, for some participants of a game; `seats` is the same for all of them."""
        if name == "seats":
            return [self.seats[row]] * len(participants)
        if name == "tied":
            return self._tied(row, participants)
        if name in self.of_kind:
            shift = self.kind_start[row] - self.start[row]
            return [self.of_kind[name][p + shift] for p in participants]
        source = self.place if name == "place" else self.status if name == "status" else self.optional[name]
        return [source[p] for p in participants]

    def _tied(self, row: int, participants: Sequence[int]) -> list[int]:
        """How many seats have a participant's place; a seat that changed hands counts once."""
        first = self.start[row]
        seated = [self.place[p] for p in range(first, first + self.count[row]) if not self.replaced[p]]
        return [seated.count(self.place[p]) for p in participants]

    def person_of(self, participant: int) -> int:
        """The person who is a participant (an index of the participants' arrays): the number of his current id."""
        return self.person[self.player[participant]]

    def name_of(self, participant: int) -> str:
        """The current id of a participant."""
        return self.players[self.person[self.player[participant]]]

    def account(self, person: int, instant: int) -> str:
        """The account of a person at an instant: the latest not after it, else premium."""
        known = [entry for entry in self.accounts.get(person, ()) if entry.occurred_at <= instant]
        return max(known).account if known else "premium"

    def row_of(self, first_position: int) -> int:
        """The row of the game first recorded at a position. Raises `ValueError` if there is none."""
        row = bisect_left(self.first_position, first_position)
        if row == len(self.first_position) or self.first_position[row] != first_position:
            raise ValueError(f"no game was first recorded at position {first_position}")
        return row


class RuleFailure(Exception):
    """A ladder that cannot be replayed: its rule raised or broke its contract at a game, or points ran out of bounds.

    `ladder` is its name, or that of its ruleset. `row` is the game's in the facts, or None where `position` names an
    adjustment.
    """

    def __init__(self, ladder: str, message: str, row: int | None = None, position: int | None = None) -> None:
        super().__init__(message)
        self.ladder = ladder
        self.row = row
        self.position = position

    def place(self, facts: Facts) -> int:
        """The log position of the game or adjustment."""
        return facts.live_position[self.row] if self.row is not None else self.position or 0


def decode(connection: Connection, known_at: int | None = None) -> Facts:
    """The facts recorded up to a position (default: the head)."""
    latest = head(connection)
    if known_at is not None and known_at < latest.position:
        facts = Facts(known_at, chain_hash_at(connection, known_at) or b"")
    else:
        facts = Facts(latest.position, latest.chain_hash)
    # only of these games the rows must be found again
    for name in ("game.corrected", "game.voided", "game.reinstated"):
        for _, record in read_where(connection, until=facts.position, type_name=name):
            facts.rows[json.loads(record)["data"]["game_id"]] = NONE
    for page in read_records(connection, until=facts.position):
        for position, record in page:
            try:
                apply(facts, position, json.loads(record))
            except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
                # every record was checked before it was stored, so this one was changed since
                raise StoreDamaged(
                    f"the event at position {position} cannot be read ({error}); see: ratings verify"
                ) from error
    settle(facts)
    return facts


def apply(facts: Facts, position: int, event: dict[str, Any]) -> None:
    """Take one event, as its record tells it, into the facts."""
    name = event["type"]
    current = TYPES[name].schema_version
    data = event["data"] if event["schema_version"] == current else upcast(
        name, event["schema_version"], current, event["data"]
    )  # fmt: skip
    if name not in GAME_TYPES:
        facts.recorded.positions[event["id"]] = position
    APPLY[name](facts, position, record_instant(event["occurred_at"]), data)


def settle(facts: Facts) -> None:
    """Leave out what is taken back, and give every id its person. May be called again after more events."""
    recorded = facts.recorded
    gone = recorded.taken_back
    facts.renamed = _identify(facts, [rename for rename in recorded.renames if rename.position not in gone])
    facts.adjustments = [
        entry._replace(player=facts.person[entry.player])
        for entry in recorded.adjustments
        if entry.position not in gone
    ]
    facts.accounts, facts.rulesets, facts.unusable = {}, {}, {}
    for account in recorded.accounts:
        if account.position not in gone:
            facts.accounts.setdefault(facts.person[account.player], []).append(account)
    for version in recorded.versions:
        if version.position not in gone:
            facts.rulesets.setdefault(version.ruleset.id, []).append(version)
    for unusable in recorded.unusable:
        if unusable.position not in gone:
            facts.unusable.setdefault(unusable.ruleset_id, unusable)


def _identify(facts: Facts, renames: Sequence[Rename]) -> bool:
    """Set the person of every id, along chains of renames; whether there are any."""
    following = {rename.player: rename.new_player for rename in renames}
    facts.person = array("i", range(len(facts.players)))
    for player in following:
        person, steps = player, 0
        while person in following:
            person, steps = following[person], steps + 1
            if steps > len(following):
                raise StoreDamaged(f"the renames of {facts.players[player]!r} form a circle; see: ratings verify")
        facts.person[player] = person
    return bool(following)


def _player(facts: Facts, name: str) -> int:
    number = facts.player_numbers.setdefault(name, len(facts.players))
    if number == len(facts.players):
        facts.players.append(name)
        facts.person.append(number)
    return number


def _text(facts: Facts, text: str | None) -> int:
    if text is None:
        return NONE
    number = facts.text_numbers.setdefault(text, len(facts.texts))
    if number == len(facts.texts):
        facts.texts.append(text)
    return number


def _game_recorded(facts: Facts, position: int, occurred_at: int, game: dict[str, Any]) -> None:
    row = len(facts.first_position)
    if game["game_id"] in facts.rows:
        facts.rows[game["game_id"]] = row
    facts.first_position.append(position)
    for column in (facts.live_position, facts.occurred_at, facts.start, facts.count, facts.seats, facts.flags,
                   facts.kind_start):  # fmt: skip
        column.append(0)
    for column in facts.labels.values():
        column.append(NONE)
    _set_game(facts, row, position, occurred_at, game)


def _set_game(facts: Facts, row: int, position: int, occurred_at: int, game: dict[str, Any]) -> None:
    """Let a row tell of this game, its participants behind all others."""
    participants = game["participants"]
    facts.live_position[row] = position
    facts.occurred_at[row] = occurred_at
    facts.start[row] = len(facts.player)
    facts.count[row] = len(participants)
    facts.seats[row] = seats_of(game)
    facts.flags[row] = UNRATED * (not game.get("rated", True)) + ABORTED * game.get("aborted", False)
    for name, column in facts.labels.items():
        column[row] = _text(facts, game.get(name, "placing" if name == "kind" else None))
    facts.place.extend(places(game))
    for participant in participants:
        facts.player.append(_player(facts, participant["player"]))
        facts.status.append(STATUSES.index(participant.get("status", "finished")))
        facts.replaced.append(0)
    for participant in participants:
        if "replaces" in participant:
            leaver = next(i for i, other in enumerate(participants) if other["player"] == participant["replaces"])
            facts.replaced[facts.start[row] + leaver] = 1
    for name, column in facts.optional.items():
        column.extend(participant.get(name, NONE) for participant in participants)
    for name, of_kind in numbers(game).items():
        facts.kind_start[row] = len(facts.of_kind[name])
        facts.of_kind[name].extend(of_kind)


def _row(facts: Facts, game_id: str) -> int:
    row = facts.rows[game_id]
    if row == NONE:
        raise LookupError(f"the game {game_id!r} is not recorded before")
    return row


def _game_corrected(facts: Facts, position: int, decided_at: int, data: dict[str, Any]) -> None:
    row = _row(facts, data["game_id"])
    game, played_at = corrected_game(data, facts.occurred_at[row])
    _set_game(facts, row, position, played_at, game)


def _game_voided(facts: Facts, position: int, decided_at: int, data: dict[str, Any]) -> None:
    row = _row(facts, data["game_id"])
    facts.live_position[row] = position
    facts.flags[row] |= VOIDED


def _game_reinstated(facts: Facts, position: int, decided_at: int, data: dict[str, Any]) -> None:
    row = _row(facts, data["game_id"])
    facts.live_position[row] = position
    facts.flags[row] &= ~VOIDED


def _event_voided(facts: Facts, position: int, decided_at: int, data: dict[str, Any]) -> None:
    target = facts.recorded.positions[data["id"]]
    root = facts.recorded.roots[position] = facts.recorded.roots.get(target, target)
    facts.recorded.taken_back ^= {root}


def _player_renamed(facts: Facts, position: int, decided_at: int, data: dict[str, Any]) -> None:
    rename = Rename(position, _player(facts, data["player"]), _player(facts, data["new_player"]))
    facts.recorded.renames.append(rename)


def _points_adjusted(facts: Facts, position: int, occurred_at: int, data: dict[str, Any]) -> None:
    player = _player(facts, data["player"])
    facts.recorded.adjustments.append(Adjustment(occurred_at, position, data["ladder"], player, data["points"]))


def _account(facts: Facts, position: int, occurred_at: int, data: dict[str, Any]) -> None:
    account = Account(occurred_at, position, _player(facts, data["player"]), data.get("account", "premium"))
    facts.recorded.accounts.append(account)


def _ruleset_published(facts: Facts, position: int, occurred_at: int, data: dict[str, Any]) -> None:
    version, problems = bind(Ruleset.model_validate(data), position)
    if version is None:
        reason = f"{data['id']}@{data['version']} cannot be used here: {problems[0].key}: {problems[0].message}"
        facts.recorded.unusable.append(Unusable(position, data["id"], reason))
        return
    facts.recorded.versions.append(version)


APPLY: dict[str, Callable[[Facts, int, int, dict[str, Any]], None]] = {
    "player.registered": _account,
    "player.account_changed": _account,
    "player.renamed": _player_renamed,
    "game.recorded": _game_recorded,
    "game.corrected": _game_corrected,
    "game.voided": _game_voided,
    "game.reinstated": _game_reinstated,
    "event.voided": _event_voided,
    "points.adjusted": _points_adjusted,
    "ruleset.published": _ruleset_published,
}

"""From the log to facts: every event is applied in order, in bulk, then what is taken back is settled.

`settle` leaves out what is taken back, and makes the ids of one person one. A new type of event is a line in `APPLY`.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection

from ledger.canonical import record_instant
from ledger.clock_events import CLOCK_TYPES
from ledger.errors import StoreDamaged
from ledger.events import TYPES, Ruleset, corrected_game
from ledger.games import STATUSES, seats_of
from ledger.kinds import numbers, places
from ledger.lineage import GAME_TYPES
from ledger.records import ZERO
from ledger.store import chain_hash_at, head, read_records, read_where
from ledger.upcasting import upcast
from projections.facts import ABORTED, NONE, UNRATED, VOIDED, Account, Adjustment, Facts, League, Rename, Unusable
from projections.game_clock import GameClock, replay
from projections.game_clock.logs import timed
from projections.rulesets import bind


def decode(connection: Connection, known_at: int | None = None, ahead: int = 0) -> Facts:
    """The facts recorded up to a position (default: the head); they may be extended up to the position `ahead`."""
    newest = head(connection).position
    position = newest if known_at is None else min(known_at, newest)
    facts = Facts(0, ZERO)
    # only of these games the rows must be found again
    for name in ("game.corrected", "game.voided", "game.reinstated", "clock.started"):
        for _, record in read_where(connection, until=max(position, ahead), type_name=name):
            facts.rows[json.loads(record)["data"]["game_id"]] = NONE
    extend(facts, connection, position)
    return facts


def extend(facts: Facts, connection: Connection, until: int) -> None:
    """Take what was recorded behind the facts, up to a position."""
    for page in read_records(connection, after=facts.position, until=until):
        for position, record in page:
            take(facts, position, record)
    facts.position, facts.chain_hash = until, chain_hash_at(connection, until) or ZERO
    settle(facts)


def take(facts: Facts, position: int, record: str) -> None:
    """Apply a record. Raises `StoreDamaged` if it cannot be read: it was checked before it was stored."""
    try:
        apply(facts, position, json.loads(record))
    except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        raise StoreDamaged(f"the event at position {position} cannot be read ({error}); see: ratings verify") from error


def apply(facts: Facts, position: int, event: dict[str, Any]) -> None:
    """Take one event, as its record tells it, into the facts."""
    name = event["type"]
    current = TYPES[name].schema_version
    data = event["data"] if event["schema_version"] == current else upcast(
        name, event["schema_version"], current, event["data"]
    )  # fmt: skip
    if name not in GAME_TYPES:
        facts.recorded.positions[event["id"]] = position
    if name in CLOCK_TYPES:
        instant = record_instant(event["occurred_at"])
        facts.recorded.clocks.setdefault(data["game_id"], []).append((position, instant, name, data))
    else:
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
    facts.leagues = [league for league in recorded.leagues if league.position not in gone]
    facts.accounts, facts.rulesets, facts.unusable, facts.league_starts = {}, {}, {}, {}
    for account in recorded.accounts:
        if account.position not in gone:
            facts.accounts.setdefault(facts.person[account.player], []).append(account)
    for version in recorded.versions:
        if version.position not in gone:
            facts.rulesets.setdefault(version.ruleset.id, []).append(version)
    for unusable in recorded.unusable:
        if unusable.position not in gone:
            facts.unusable.setdefault(unusable.ruleset_id, unusable)
    facts.clock_seconds = _played_by_clocks(facts)


def clock_of(facts: Facts, game_id: str) -> GameClock | None:
    """The clock of a game as far as its live events lead; None if it has none, or one that contradicts itself."""
    gone = facts.recorded.taken_back
    told = [event for event in facts.recorded.clocks.get(game_id, ()) if event[0] not in gone]
    events = [{"type": name, "data": timed(facts.rulesets, name, at, data)} for _, at, name, data in told]
    clock = replay(events)
    return clock if isinstance(clock, GameClock) else None


def _played_by_clocks(facts: Facts) -> dict[int, int]:
    """The seconds that participants played by the clocks of their games, rounded up; pauses are no playing."""
    found: dict[int, int] = {}
    for game_id in facts.recorded.clocks:
        clock, row = clock_of(facts, game_id), facts.rows.get(game_id, NONE)
        if clock is None or row == NONE:
            continue
        numbers = {facts.player_numbers.get(name, NONE): one for name, one in clock.players.items()}
        played = {facts.person[number]: one.played_ms for number, one in numbers.items() if number != NONE}
        for p in range(facts.start[row], facts.start[row] + facts.count[row]):
            if facts.person_of(p) in played:
                found[p] = -(-played[facts.person_of(p)] // 1000)
    return found


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


def _league_created(facts: Facts, position: int, occurred_at: int, data: dict[str, Any]) -> None:
    league = League(occurred_at, position, _text(facts, data["league"]), _text(facts, data["game"]))
    facts.recorded.leagues.append(league)


def _nothing(facts: Facts, position: int, occurred_at: int, data: dict[str, Any]) -> None:
    """No ladder depends on it."""


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
    "league.created": _league_created,
    "league.joined": _nothing,
    "league.scheduled": _nothing,
    "list.rows": _nothing,
    "list.published": _nothing,
}

"""Find the last change to each subject in the log: corrections, voids, withdrawals and renames.

The facts hold only the current state of a game, so earlier states are read from the log.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.games import count_seats
from ratings_ledger.ledger.events.types import read_corrected_game
from ratings_ledger.ledger.store.log import (
    find_first_positions,
    read_events_of_type,
    read_known_event,
    read_matching_records,
    read_records_at,
)
from ratings_ledger.ledger.validation.identities import resolve_renames
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.facts.columns import LABELS, NONE, Cell, Column, Facts


class GameRevision(NamedTuple):
    """A superseded revision of a game.

    `first` is the position of the game's first record, and `until` that of the correction that superseded the revision.
    `players` has the numbers of the revision's players.
    """

    first: int
    until: int
    occurred_at: int
    cell: Cell
    players: tuple[int, ...]


@dataclass
class LastChanges:
    """The positions of the last changes to each subject in the log.

    global_position: the last event that may affect every subject, 0 if there is none
    withdrawn:       by the position of an event that is not about a game: the last event that withdrew or reinstated it
    renamed:         by player number: the last rename that affects the player
    rulesets:        by ruleset id: the last event about a version
    rows:            by row: the last change to the game, its clock, or its players' identities or accounts; 0 for none
    revisions:       the superseded revisions of all corrected games
    lists:           by ladder: the last event about a published list
    """

    global_position: int
    withdrawn: dict[int, int]
    renamed: dict[int, int] = field(default_factory=dict)
    rulesets: dict[str, int] = field(default_factory=dict)
    rows: Column = field(default_factory=lambda: array("q"))
    revisions: list[GameRevision] = field(default_factory=list)
    lists: dict[str, int] = field(default_factory=dict)

    def last_change_to(self, position: int) -> int:
        """Return the last event that withdrew or reinstated the event at `position`, else `position`."""
        return self.withdrawn.get(position, position)


def find_last_changes(connection: Connection, facts: Facts) -> LastChanges:
    """Return the last change to each subject, up to the position of `facts`. Raises `DamagedFile`."""
    facts.check()
    recorded, withdrawn = facts.recorded, dict[int, int]()
    for position, root in recorded.roots.items():
        withdrawn[root] = max(position, withdrawn.get(root, 0))
    changes = LastChanges(global_position=max(facts.left_out, default=0), withdrawn=withdrawn)
    versions = [(version.ruleset.id, version.position) for version in recorded.versions]
    unusable = [(ruleset.ruleset_id, ruleset.position) for ruleset in recorded.unusable]
    for ruleset_id, position in (*versions, *unusable):
        changes.rulesets[ruleset_id] = max(changes.last_change_to(position), changes.rulesets.get(ruleset_id, 0))
    merged_numbers = _find_merged_numbers(facts)
    for rename in recorded.renames:
        for number in merged_numbers[rename.player]:
            changes.renamed[number] = max(changes.last_change_to(rename.position), changes.renamed.get(number, 0))
    _, circular = resolve_renames((rename.player, rename.new_player) for rename in recorded.renames)
    if circular:  # withdrawing any rename of a cycle can change which of the others apply
        changes.global_position = max(changes.global_position, *changes.renamed.values())
    # a club may be on any ladder
    club_changes = [changes.last_change_to(rename.position) for rename in recorded.club_renames]
    changes.global_position = max([changes.global_position, *club_changes])
    player_changes = dict(changes.renamed)
    if _has_account_filter(facts):
        for account in recorded.accounts:
            for number in merged_numbers.get(account.player, (account.player,)):
                last = changes.last_change_to(account.position)
                player_changes[number] = max(last, player_changes.get(number, 0))
    changes.rows = _find_changes_by_row(facts, player_changes, _find_last_clock_events(facts, changes))
    changes.revisions = _load_revisions(connection, facts)
    rows = read_matching_records(connection, until=facts.position, type_name="list.published")
    for event in read_events_of_type("list.published", rows):
        ladder = event.data["ladder"]
        position = recorded.positions.get(event.event_id, event.position or 0)
        changes.lists[ladder] = max(changes.last_change_to(position), changes.lists.get(ladder, 0))
    return changes


def _find_merged_numbers(facts: Facts) -> dict[int, set[int]]:
    """Return, by player number, all numbers with which any rename ever merged it, including withdrawn renames."""
    merged_numbers: dict[int, set[int]] = {}
    for rename in facts.recorded.renames:
        old_numbers, new_numbers = (
            merged_numbers.get(number, {number}) for number in (rename.player, rename.new_player)
        )
        all_numbers = old_numbers | new_numbers
        merged_numbers |= dict.fromkeys(all_numbers, all_numbers)
    return merged_numbers


def _has_account_filter(facts: Facts) -> bool:
    """Tell whether any ruleset excludes players by account type."""
    return any(
        version.ruleset.scope.exclude_accounts or getattr(version.params, "account", None)
        for versions in facts.rulesets.values()
        for version in versions
    )


def _find_last_clock_events(facts: Facts, changes: LastChanges) -> dict[int, int]:
    """Return, by row, the last event that recorded, withdrew or reinstated a clock event of the game."""
    last_events = {}
    for game_id, clock_events in facts.recorded.clocks.items():
        if (row := facts.rows.get(game_id, NONE)) != NONE:
            last_events[row] = max(changes.last_change_to(event[0]) for event in clock_events)
    return last_events


def _find_changes_by_row(facts: Facts, player_changes: dict[int, int], clock_changes: dict[int, int]) -> Column:
    """Return the last event that changed each game, its clock or its players, by row; 0 for no event."""
    first_positions, live_positions = arrays.as_numpy(facts.first_position), arrays.as_numpy(facts.live_position)
    changes = np.where(first_positions == live_positions, 0, live_positions)
    if player_changes and len(first_positions):
        change_of_player = np.zeros(len(facts.players), dtype=np.int64)
        change_of_player[[*player_changes]] = [*player_changes.values()]
        slots = arrays.as_numpy(arrays.span_indices(facts.start, facts.count))
        last_changes = np.maximum.reduceat(
            change_of_player[arrays.as_numpy(facts.player)[slots]],
            arrays.as_numpy(arrays.exclusive_cumsum(facts.count)),
        )
        changes = np.maximum(changes, np.where(last_changes > first_positions, last_changes, 0))
    column: Column = arrays.as_column(changes)
    for row, position in clock_changes.items():
        if position > facts.first_position[row]:
            column[row] = max(column[row], position)
    return column


def _load_revisions(connection: Connection, facts: Facts) -> list[GameRevision]:
    """Return the state of each corrected game before each of its corrections."""
    rows = read_matching_records(connection, until=facts.position, type_name="game.corrected")
    corrections = [event for event in read_events_of_type("game.corrected", rows) if event.position not in facts.unread]
    first_positions = find_first_positions(connection, {event.data["game_id"] for event in corrections})
    records, revisions = read_records_at(connection, [*first_positions.values()]), []
    latest = {}  # the data and the time of each game after the corrections so far
    for game_id, position in first_positions.items():
        if facts.row_of(position) != NONE:
            event = read_known_event(position, records[position])
            latest[game_id] = event.data, event.occurred_at
    for correction in corrections:
        game_id = correction.data["game_id"]
        if game_id in latest:
            game, played_at = latest[game_id]
            players = tuple(facts.player_numbers[participant["player"]] for participant in game["participants"])
            until = correction.position or 0
            cell = _build_cell(facts, game)
            revisions.append(GameRevision(first_positions[game_id], until, played_at, cell, players))
            latest[game_id] = read_corrected_game(correction.data, played_at)
    return revisions


def _build_cell(facts: Facts, game: dict[str, Any]) -> Cell:
    """Return the cell of a superseded revision, without flags."""
    labels = (game.get(member, "placing" if member == "kind" else None) for member in LABELS)
    name, kind, group, city, league, season = (NONE if label is None else facts.text_numbers[label] for label in labels)
    return Cell(name, kind, group, city, league, season, count_seats(game), flags=0)

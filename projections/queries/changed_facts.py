"""What was changed after it was recorded: the last events that put something right, in all of a log.

The facts hold how games stand; what they were before a correction is read from the log once more.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.games import count_seats
from ratings_ledger.ledger.events.types import corrected_game
from ratings_ledger.ledger.store.log import (
    first_positions,
    read_events_of_type,
    read_known_event,
    read_records_at,
    read_where,
)
from ratings_ledger.ledger.validation.identities import resolve_renames
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.facts.columns import LABELS, NONE, Cell, Column, Facts


class Former(NamedTuple):
    """A game as it was from its `first` record on, or a correction, until another one."""

    first: int
    until: int
    occurred_at: int
    cell: Cell
    players: tuple[int, ...]


@dataclass
class Changed:
    """What was changed after it was recorded, in all of the log; positions, 0 for none.

    everywhere: the last event that may concern everything
    withdrawn:  by the position of an event that is no game's, the last withdrawal of it or of that
    renamed:    by the number of an id, the last event about who that is
    rulesets:   by id, the last event about a version of it
    rows:       for every game, the last event that changed it, its clock, who its players are, or their accounts
    former:     what games were before they were corrected
    lists:      by ladder, the last event about a published list
    """

    everywhere: int
    withdrawn: dict[int, int]
    renamed: dict[int, int]
    rulesets: dict[str, int]
    rows: Column
    former: list[Former]
    lists: dict[str, int]

    def last(self, position: int) -> int:
        """Return the last event about an event of no game: itself, its withdrawal, or what put it back in force."""
        return self.withdrawn.get(position, position)


def changed_in(connection: Connection, facts: Facts) -> Changed:
    """Return what was changed up to the position of some facts. Raises `Damaged`."""
    facts.check()
    recorded, withdrawn = facts.recorded, dict[int, int]()
    for position, root in recorded.roots.items():
        withdrawn[root] = max(position, withdrawn.get(root, 0))
    found = Changed(max(facts.left_out, default=0), withdrawn, {}, {}, array("q"), [], {})
    versions = [(one.ruleset.id, one.position) for one in recorded.versions]
    for ruleset_id, position in (*versions, *((one.ruleset_id, one.position) for one in recorded.unusable)):
        found.rulesets[ruleset_id] = max(found.last(position), found.rulesets.get(ruleset_id, 0))
    ids = _ids_of_persons(facts)
    for rename in recorded.renames:
        for number in ids[rename.player]:
            found.renamed[number] = max(found.last(rename.position), found.renamed.get(number, 0))
    _, circular = resolve_renames((rename.player, rename.new_player) for rename in recorded.renames)
    if circular:  # which of them count depends on those that are withdrawn
        found.everywhere = max(found.everywhere, *found.renamed.values())
    # a club may be on any ladder
    found.everywhere = max([found.everywhere, *(found.last(rename.position) for rename in recorded.club_renames)])
    about = dict(found.renamed)
    if _looks_at_accounts(facts):
        for account in recorded.accounts:
            for number in ids.get(account.player, (account.player,)):
                about[number] = max(found.last(account.position), about.get(number, 0))
    found.rows = _changed_rows(facts, about, _clocks(facts, found))
    found.former = _former(connection, facts)
    for event in read_events_of_type(
        "list.published", read_where(connection, until=facts.position, type_name="list.published")
    ):
        ladder, at = event.data["ladder"], recorded.positions.get(event.event_id, event.position or 0)
        found.lists[ladder] = max(found.last(at), found.lists.get(ladder, 0))
    return found


def _ids_of_persons(facts: Facts) -> dict[int, set[int]]:
    """Of every id in a rename, withdrawn or not, all ids that any of them made the same person."""
    found: dict[int, set[int]] = {}
    for rename in facts.recorded.renames:
        both = [found.get(number, {number}) for number in (rename.player, rename.new_player)]
        together = both[0] | both[1]
        found |= dict.fromkeys(together, together)
    return found


def _looks_at_accounts(facts: Facts) -> bool:
    """Tell whether some ruleset leaves out players by their accounts."""
    return any(
        version.ruleset.scope.exclude_accounts or getattr(version.params, "account", None)
        for versions in facts.rulesets.values()
        for version in versions
    )


def _clocks(facts: Facts, changed: Changed) -> dict[int, int]:
    """By row, the last event of the game's clock."""
    found = {}
    for game_id, told in facts.recorded.clocks.items():
        if (row := facts.rows.get(game_id, NONE)) != NONE:
            found[row] = max(changed.last(event[0]) for event in told)
    return found


def _changed_rows(facts: Facts, about: dict[int, int], clocks: dict[int, int]) -> Column:
    """For every game the last event that changed it: about itself, its clock, or (`about` ids by number) its players.

    0 for none.
    """
    first, live = facts.first_position, facts.live_position
    begin, now = arrays.as_numpy(first), arrays.as_numpy(live)
    changes = np.where(begin == now, 0, now)
    if about and len(begin):
        of_number = np.zeros(len(facts.players), dtype=np.int64)
        of_number[[*about]] = [*about.values()]
        slots = arrays.as_numpy(arrays.span_indices(facts.start, facts.count))
        last = np.maximum.reduceat(
            of_number[arrays.as_numpy(facts.player)[slots]],
            arrays.as_numpy(arrays.exclusive_cumsum(facts.count)),
        )
        changes = np.maximum(changes, np.where(last > begin, last, 0))
    column: Column = arrays.as_column(changes)
    for row, told in clocks.items():
        if told > first[row]:
            column[row] = max(column[row], told)
    return column


def _former(connection: Connection, facts: Facts) -> list[Former]:
    """Return what the games were that have been corrected, before each correction."""
    corrections = [
        event
        for event in read_events_of_type(
            "game.corrected", read_where(connection, until=facts.position, type_name="game.corrected")
        )
        if event.position not in facts.unread
    ]
    firsts = first_positions(connection, {event.data["game_id"] for event in corrections})
    records, found = read_records_at(connection, [*firsts.values()]), []
    was = {}
    for game_id, at in firsts.items():
        if facts.row_of(at) != NONE:
            event = read_known_event(at, records[at])
            was[game_id] = event.data, event.occurred_at
    for correction in corrections:
        game_id = correction.data["game_id"]
        if game_id in was:
            game, played = was[game_id]
            players = tuple(facts.player_numbers[one["player"]] for one in game["participants"])
            until = correction.position or 0
            found.append(Former(firsts[game_id], until, played, _cell(facts, game), players))
            was[game_id] = corrected_game(correction.data, played)
    return found


def _cell(facts: Facts, game: dict[str, Any]) -> Cell:
    """Return the cell of a game that is in the facts no longer, without what only decides whether it counts."""
    labels = (game.get(name, "placing" if name == "kind" else None) for name in LABELS)
    slug, kind, group, city, league, season = (NONE if label is None else facts.text_numbers[label] for label in labels)
    return Cell(slug, kind, group, city, league, season, count_seats(game), 0)

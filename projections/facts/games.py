"""Apply events about games to the facts: a row for each game, entries for its participants, and numbers for names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.canonical import INTEGER_MAX
from ratings_ledger.ledger.events.game_types import column_values, places
from ratings_ledger.ledger.events.games import STATUSES, count_seats, number_sides
from ratings_ledger.ledger.events.types import read_corrected_game
from ratings_ledger.projections.contract import MISSING, NUMBERS, OPTIONAL_COLUMNS
from ratings_ledger.projections.facts.columns import (
    ABORTED,
    LABELS,
    NONE,
    SAME,
    TOO_FINE,
    TOO_LARGE,
    UNRATED,
    Cell,
    Facts,
    GameChange,
)
from ratings_ledger.projections.rulesets.columns import DERIVED_COLUMNS

# members of participants that few games have
_RARE_MEMBERS = frozenset({"team", "club", "home", "numbers"})
# a ruleset cannot read a score with more decimals
_DECIMALS_MAX = 6


def number_player(facts: Facts, name: str) -> int:
    """Return the number of a player's id. A new id gets the next number."""
    number = facts.player_numbers.setdefault(name, len(facts.players))
    if number == len(facts.players):
        facts.players.append(name)
        facts.person.append(number)
    return number


def number_text(facts: Facts, text: str | None) -> int:
    """Return the number of a text, -1 for None. A new text gets the next number."""
    if text is None:
        return NONE
    number = facts.text_numbers.setdefault(text, len(facts.texts))
    if number == len(facts.texts):
        facts.texts.append(text)
    return number


def number_cell(facts: Facts, labels: Iterable[str | None], seats: int, flags: int) -> int:
    """Return the number of a cell. A new cell gets the next number. `labels` are in the order of `LABELS`."""
    game, kind, group, city, league, season = (number_text(facts, label) for label in labels)
    cell = Cell(game, kind, group, city, league, season, seats, flags)
    number = facts.cell_numbers.setdefault(cell, len(facts.cells))
    if number == len(facts.cells):
        facts.cells.append(cell)
    return number


def record_game(facts: Facts, position: int, occurred_at: int, game: dict[str, Any]) -> None:
    """Append a new game as a row."""
    row = len(facts.first_position) + (facts.base.rows if facts.base else 0)
    if game["game_id"] in facts.rows:
        facts.rows[game["game_id"]] = row
    content = _append_participants(facts, game)
    facts.first_position.append(position)
    facts.live_position.append(position)
    facts.occurred_at.append(occurred_at)
    facts.start.append(content.start)
    facts.count.append(content.size)
    facts.cell.append(content.cell)
    facts.kind_start.append(content.kind_start)


class _RowContent(NamedTuple):
    """The part of a game's row that a correction replaces; see `GameChange`."""

    start: int
    size: int
    cell: int
    kind_start: int


def derive_numbers(game: dict[str, Any]) -> dict[str, Sequence[int]]:
    """Return the numbers of a validated game that are specific to its type, by column."""
    own = column_values(game)
    derived = DERIVED_COLUMNS.get(game.get("kind", "placing"), {})
    return {**own, **{column: derive(own) for column, (_, derive) in derived.items()}}


def _append_participants(facts: Facts, game: dict[str, Any]) -> _RowContent:
    """Append a game's participants. Return the content of the game's row."""
    participants = game["participants"]
    start, kind_start = len(facts.player), 0
    facts.place.extend(places(game))
    for participant in participants:
        facts.player.append(number_player(facts, participant["player"]))
        facts.status.append(STATUSES.index(participant.get("status", "finished")))
        facts.replaced.append(0)
    for participant in participants:
        if "replaces" in participant:
            leaver = next(
                index for index, entry in enumerate(participants) if entry["player"] == participant["replaces"]
            )
            facts.replaced[start + leaver] = 1
    for name in OPTIONAL_COLUMNS:
        numbers = [participant.get(name, NONE) for participant in participants]
        if numbers.count(NONE) < len(numbers):
            facts.extend_optional(name, start, numbers)
    for name, numbers in _list_rare_columns(facts, game):
        facts.extend_optional(name, start, numbers)
    for name, type_numbers in derive_numbers(game).items():
        kind_start = len(facts.of_kind[name]) + (facts.base.of_kind[name] if facts.base else 0)
        facts.of_kind[name].extend(type_numbers)
    labels = (game.get(name, "placing" if name == "kind" else None) for name in LABELS)
    flags = UNRATED * (not game.get("rated", True)) + ABORTED * game.get("aborted", False)
    cell = number_cell(facts, labels, count_seats(game), flags)
    return _RowContent(start + (facts.base.slots if facts.base else 0), len(participants), cell, kind_start)


def _list_rare_columns(facts: Facts, game: dict[str, Any]) -> Iterator[tuple[str, list[int]]]:
    """Yield the name and the numbers of each participant column that few games have."""
    participants = game["participants"]
    members = set().union(*participants)
    if "score" in members and game.get("kind", "placing") == "placing":
        scores = [_read_score(participant.get("score")) for participant in participants]
        yield "score", [score for score, _ in scores]
        if any(decimals for _, decimals in scores):
            yield "score_decimals", [decimals for _, decimals in scores]
    if "numbers" not in game and members.isdisjoint(_RARE_MEMBERS):
        return
    sides = number_sides(game)
    if "team" in members:
        yield "team", sides
    if "club" in members:
        yield "club", [number_text(facts, participant.get("club")) for participant in participants]
    if home_sides := {side for side, entry in zip(sides, participants, strict=True) if entry.get("home")}:
        yield "home", [1 if side in home_sides else -1 for side in sides]
    game_numbers = game.get("numbers", {})
    for name in sorted({*game_numbers, *(name for entry in participants for name in entry.get("numbers", ()))}):
        numbers = [entry.get("numbers", {}).get(name, game_numbers.get(name, MISSING)) for entry in participants]
        yield f"{NUMBERS}{name}", numbers


def _read_score(score: int | str | None) -> tuple[int, int]:
    """Return a score as (units, decimals); a unit is 10^-decimals.

    A score that no ruleset can read is `MISSING`, with `TOO_FINE` or `TOO_LARGE` as its decimals.
    """
    if score is None:
        return MISSING, 0
    if isinstance(score, int):
        return score, 0
    decimals = len(score.partition(".")[2])
    if decimals > _DECIMALS_MAX:
        return MISSING, TOO_FINE
    units = int(Decimal(score).scaleb(decimals))
    return (units, decimals) if abs(units) <= INTEGER_MAX else (MISSING, TOO_LARGE)


def _find_row(facts: Facts, game_id: str) -> int:
    row = facts.rows.get(game_id, NONE)
    if row == NONE:
        raise LookupError(f"no earlier event records the game {game_id!r}")
    return row


def _record_change(facts: Facts, change: GameChange) -> None:
    """Apply a later event about a game. A delta only collects the change, because the game may be in the cache."""
    if facts.base is None:
        update_row(facts, change)
    else:
        facts.changes.append(change)


def update_row(facts: Facts, change: GameChange) -> None:
    """Update the row of a game after a later change."""
    row = change.row
    facts.live_position[row] = change.position
    (facts.voided.add if change.voided else facts.voided.discard)(row)
    if change.start != NONE:
        facts.start[row], facts.count[row] = change.start, change.size
        facts.cell[row], facts.kind_start[row] = change.cell, change.kind_start
    if change.occurred_at != SAME:
        facts.occurred_at[row] = change.occurred_at


def correct_game(facts: Facts, position: int, decided_at: int, data: dict[str, Any]) -> None:
    """Replace the content of a game's row by the corrected game. The game keeps its time unless that was corrected."""
    row = _find_row(facts, data["game_id"])
    game, new_occurred_at = read_corrected_game(data, SAME)
    content = _append_participants(facts, game)
    _record_change(facts, GameChange(position, row, voided=False, occurred_at=new_occurred_at, **content._asdict()))


def void_game(facts: Facts, position: int, decided_at: int, data: dict[str, Any]) -> None:
    """Void a game, so that it does not count."""
    _record_change(facts, GameChange(position, _find_row(facts, data["game_id"]), voided=True))


def reinstate_game(facts: Facts, position: int, decided_at: int, data: dict[str, Any]) -> None:
    """Reinstate a voided game, so that it counts again."""
    _record_change(facts, GameChange(position, _find_row(facts, data["game_id"]), voided=False))

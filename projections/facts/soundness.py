"""What makes facts sound: every number refers to something that exists, since loops do not look again."""

from __future__ import annotations

from array import array

from ratings_ledger.ledger.events.game_types import GAME_TYPES
from ratings_ledger.projections import arrays
from ratings_ledger.projections.contract import PLAYERS_MAX
from ratings_ledger.projections.facts.columns import NONE, ROW_COLUMNS, SLOT_COLUMNS, Column, Facts
from ratings_ledger.projections.facts.stored_columns import check_all, pieces, within
from ratings_ledger.projections.rulesets.columns import COLUMNS_OF


def check(facts: Facts) -> None:
    """Raises `Damaged` if a number in the columns leads nowhere.

    What later events changed is `check_changes`'s matter. Columns stay in the pieces that they are in.
    """
    rows = [getattr(facts, name) for name in ROW_COLUMNS]
    slots = [getattr(facts, name) for name in SLOT_COLUMNS]
    check_all([*rows, *slots, *facts.optional.values(), *facts.of_kind.values()])
    if len({*map(len, rows)}) > 1 or len({*map(len, slots)}) > 1:
        raise _nowhere(facts)
    spans = [*zip(*map(pieces, (facts.start, facts.count)), strict=True)]
    used = max((arrays.largest(_ends(*span)) for span in spans), default=0)
    if used > len(facts.player):
        raise _nowhere(facts)
    for piece in pieces(facts.player):
        if not within(piece[: max(used, 0)], 0, len(facts.players)):
            raise _nowhere(facts)
        used -= len(piece)
    for kind, names in ((kind, names) for kind, names in COLUMNS_OF.items() if names):
        own = array("b", [facts.texts[cell.kind] == kind for cell in facts.cells])
        if any(own):
            lengths = {len(facts.of_kind[name]) for name in names}
            spans = [*zip(*map(pieces, (facts.cell, facts.kind_start, facts.count)), strict=True)]
            last = max((arrays.largest(_ends_of(own, *span)) for span in spans), default=0)
            if len(lengths) > 1 or last > min(lengths):
                raise _nowhere(facts)


def _nowhere(facts: Facts) -> Exception:
    problem: Exception = facts.start.damaged("has a number that leads nowhere")
    return problem


def check_changes(facts: Facts) -> None:
    """Raises `ValueError` unless what later events did to games can be applied."""
    slots, changed = len(facts.player), [change for change in facts.changes if change.start != NONE]
    if not (
        within(array("q", [change.row for change in facts.changes]), 0, len(facts.first_position))
        and within(array("q", [change.start for change in changed]), 0, slots + 1)
        and within(array("q", [change.size for change in changed]), 0, PLAYERS_MAX + 1)
        and within(array("q", [change.start + change.size for change in changed]), 0, slots + 1)
        and within(array("q", [change.cell for change in changed]), 0, len(facts.cells))
    ):
        raise ValueError("a correction leads nowhere")


def check_texts(facts: Facts) -> None:
    """Raises `ValueError` for names that are not text, and cells that no game can have."""
    if not {*map(type, facts.players), *map(type, facts.texts)} <= {str}:
        raise ValueError("a name is not text")
    for cell in facts.cells:
        if not all(isinstance(number, int) for number in cell):
            raise ValueError("a cell holds something other than numbers")
        if not all(NONE <= number < len(facts.texts) for number in cell[:6]) or not 0 <= cell.seats <= PLAYERS_MAX:
            raise ValueError("a cell names a text that is not there")
        if NONE in (cell.game, cell.kind) or facts.texts[cell.kind] not in GAME_TYPES:
            raise ValueError("a cell has no known game type")


def _ends(start: Column, count: Column) -> Column:
    """Return where spans end."""
    return arrays.as_column(arrays.as_numpy(start) + arrays.as_numpy(count))


def _ends_of(own: Column, cell: Column, start: Column, count: Column) -> Column:
    """Return where the spans end, for the games whose cells are `own`."""
    mine = arrays.as_numpy(own).astype(bool)[arrays.as_numpy(cell)]
    first = arrays.as_numpy(start)[mine]
    return arrays.as_column((first + arrays.as_numpy(count)[mine]) * (first >= 0) - (first < 0))

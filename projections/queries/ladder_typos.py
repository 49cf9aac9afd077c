"""Find typos in the names of ladders: labels without games that resemble labels with games."""

from __future__ import annotations

from collections.abc import Sequence

from ratings_ledger.ledger.rejections import find_closest
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.replay.eligibility import explain_ineligible_cell
from ratings_ledger.projections.replay.ladder_names import LadderName, find_label_indexes, parse_name
from ratings_ledger.projections.replay.partition import list_cell_values
from ratings_ledger.projections.rulesets.versions import Version

# the values in a ladder's name that are labels of its games, such as group and city
Labels = tuple[str, ...]


def find_played_labels(facts: Facts, versions: Sequence[Version]) -> set[Labels]:
    """Return the labels of each ladder of a ruleset that has a live game or an adjustment."""
    ruleset = versions[0].ruleset
    indexes = find_label_indexes(ruleset.partition.by)
    voided = facts.voided
    live_cells = {cell for row, cell in enumerate(facts.cell) if row not in voided} if voided else {*facts.cell}
    labels = set()
    for cell in (facts.cells[number] for number in live_cells):
        if not all(explain_ineligible_cell(facts, cell, version.ruleset) for version in versions):
            labels |= {tuple(values[index] for index in indexes) for values in list_cell_values(facts, cell, ruleset)}
    names = (parse_name(adjustment.ladder) for adjustment in facts.adjustments)
    return labels | {tuple(name.values[index] for index in indexes) for name in names if name.ruleset_id == ruleset.id}


def find_typo(name: LadderName, versions: Sequence[Version], known_labels: set[Labels]) -> tuple[int, str] | None:
    """Return the index of the part of a ladder's name that is probably a typo, and the similar label.

    All other labels must match those of a known ladder. Return None if there is no similar label, or if the ladder
    itself is known.
    """
    indexes = find_label_indexes(versions[0].ruleset.partition.by)
    labels = tuple(name.values[index] for index in indexes)
    for number, label in enumerate(labels if labels not in known_labels else ()):
        other_labels = drop_label(labels, number)
        candidates = [
            ladder_labels[number]
            for ladder_labels in sorted(known_labels)
            if drop_label(ladder_labels, number) == other_labels
        ]
        if (similar_label := find_closest(label, candidates)) is not None:
            return indexes[number], similar_label
    return None


def drop_label(labels: Labels, index: int) -> Labels:
    """Return labels without the label at an index."""
    return labels[:index] + labels[index + 1 :]

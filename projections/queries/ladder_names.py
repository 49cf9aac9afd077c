"""Ladders that are there, by the labels in their names, and which one was probably meant by another name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.rejections import closest, count
from ratings_ledger.projections.facts.columns import LABELS, Facts
from ratings_ledger.projections.replay.eligibility import why_cell_not_eligible
from ratings_ledger.projections.replay.ladders import LadderName, parse_name
from ratings_ledger.projections.replay.partition import cell_values
from ratings_ledger.projections.rulesets.versions import Version

if TYPE_CHECKING:
    from ratings_ledger.projections.queries.answers_surveyed import LadderRow

# of more ladders the rest are not named
LADDERS_TOLD = 20

Labelled = tuple[str, ...]


def label_places(by: Sequence[str]) -> list[int]:
    """Which parts of a ladder's name are labels of its games."""
    return [place for place, part in enumerate(by) if part in LABELS]


def labelled(facts: Facts, known: Sequence[Version]) -> set[Labelled]:
    """The labels in the names of a ruleset's ladders that have a live game or an adjustment."""
    ruleset = known[0].ruleset
    places = label_places(ruleset.partition.by)
    voided = facts.voided
    live = {cell for row, cell in enumerate(facts.cell) if row not in voided} if voided else {*facts.cell}
    found = set()
    for cell in (facts.cells[number] for number in live):
        if not all(why_cell_not_eligible(facts, cell, version.ruleset) for version in known):
            found |= {tuple(values[place] for place in places) for values in cell_values(facts, cell, ruleset)}
    names = (parse_name(adjustment.ladder) for adjustment in facts.adjustments)
    return found | {tuple(n.values[place] for place in places) for n in names if n.ruleset_id == ruleset.id}


def slip(name: LadderName, known: Sequence[Version], there: set[Labelled]) -> tuple[int, str] | None:
    """Which part of a ladder's name is probably a typo, and of what: the other labels are the same. None if no label is
    close to an existing one, or the ladder's own labels exist.
    """
    places = label_places(known[0].ruleset.partition.by)
    labels = tuple(name.values[place] for place in places)
    for number, label in enumerate(labels if labels not in there else ()):
        others = [one[number] for one in sorted(there) if apart(one, number) == apart(labels, number)]
        if (close := closest(label, others)) is not None:
            return places[number], close
    return None


def apart(labels: Labelled, place: int) -> Labelled:
    """The labels without the one at a place."""
    return labels[:place] + labels[place + 1 :]


def other_ladder(facts: Facts, ladder: str) -> str | None:
    """Which ladder was probably meant instead of one without a game: one with a similar label."""
    name = parse_name(ladder)
    known = facts.rulesets.get(name.ruleset_id, [])
    if not known or (found := slip(name, known, labelled(facts, known))) is None:
        return None
    part, label = known[0].ruleset.partition.by[found[0]], name.values[found[0]]
    return f"{ladder} never had a game; {part} {label}; did you mean {found[1]}?"


def only_ladder_of(there: Collection[LadderRow], which: str = "", as_of: str | None = None) -> str:
    """The ladder that is meant where none is named. Raises `BadArgument` with the ladders if there are several.

    `which` says what is special about them, behind the word "ladders"; `as_of` up to when they were played.
    """
    first, *others = sorted(there, key=lambda row: -row.games) or (None,)
    if first is None and as_of is not None:
        raise BadArgument(f"no ladder has a game played up to {as_of}", "as_of")
    if first is None:
        raise BadArgument("no ladder has a game yet; results go in with: ratings import FILE", "ladder")
    if not others:
        return first.ladder
    told = "".join(f"\n  {row.ladder} ({count(row.games, 'game')})" for row in [first, *others][:LADDERS_TOLD])
    more = len(there) - LADDERS_TOLD
    rest = f"\n  and {more:,} more; see: ratings ladders" if more > 0 else ""
    raise BadArgument(f"name one of the {len(there):,} ladders{which}:{told}{rest}", "ladder")

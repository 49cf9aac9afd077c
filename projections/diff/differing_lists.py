"""Find the published lists that come out differently after a change, or that name a player by another id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from ratings_ledger.ledger.validation.published_lists import PublishedList
from ratings_ledger.projections.diff.comparison import DifferingList, ReplayedLadder, rekey_by_current_id
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.coordinates import to_datetime
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.published_lists import find_comparison_time
from ratings_ledger.projections.queries.rankings import Ranking

# a function that returns the rows of a list as published
LoadRows: TypeAlias = Callable[[PublishedList], Ranking]


def has_results_until(published: PublishedList, ladders: Ladders) -> bool:
    """Tell whether a list has no results after the `as_of` of these ladders, so that it can be compared there."""
    versions = ladders.facts.versions_of(published.ladder)
    until = find_comparison_time(published, versions[0].ruleset) if versions else None
    return until is not None and ladders.as_of is not None and until <= ladders.as_of


def find_differing_lists(
    load_rows: LoadRows, old_ladder: ReplayedLadder, new_ladder: ReplayedLadder, lists: Iterable[PublishedList]
) -> Iterator[DifferingList]:
    """Yield the published lists that come out differently in the two states, apart from ids.

    A list is left out if the new state gives it as it was published.
    """
    stream = old_ladder.stream or new_ladder.stream
    facts = old_ladder.facts, new_ladder.facts
    for published in lists:
        as_of = published.as_of if stream is None else find_comparison_time(published, stream.versions[0].ruleset)
        old, new = (_map_rows(ladder.at(as_of).ranking) for ladder in (old_ladder, new_ladder))
        if rekey_by_current_id(old, new, *facts) == new:
            continue
        rows = _map_rows(load_rows(published))
        if rekey_by_current_id(rows, new, *facts) != new:
            differs_already = rekey_by_current_id(rows, old, old_ladder.facts, old_ladder.facts) != old
            played_until = None if published.as_of is None else to_datetime(published.as_of)
            yield DifferingList(published.ladder, played_until, published.position, already=differs_already)


def find_renamed_lists(
    load_rows: LoadRows, before: Facts, after: Facts, lists: Iterable[PublishedList]
) -> Iterator[DifferingList]:
    """Yield the published lists on which a player has another id after the change, because of the change."""
    if not (before.renamed or after.renamed):
        return
    for published in lists:
        ids = [row.player for row in load_rows(published).rows]
        if any(after.current(name) not in (name, before.current(name)) for name in ids):
            played_until = None if published.as_of is None else to_datetime(published.as_of)
            yield DifferingList(published.ladder, played_until, published.position, already=False)


def _map_rows(ranking: Ranking | None) -> dict[str, tuple[Any, ...]]:
    """Return the rows of a ranking by player, with exact points, so that rows of different scales can be compared."""
    rows, scale = ((), 1) if ranking is None else (ranking.rows, ranking.scale)
    return {
        row.player: (row.rank, row.exact_points(scale), row.games, row.qualified, row.gold, row.places) for row in rows
    }

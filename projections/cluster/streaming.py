"""A ladder that is too long for a worker's memory, replayed window by window: each goes on where the last one ended.

What is kept between two windows is everybody's points. So it can be done where these are all that decides: for ladders
of running points, without earlier seasons, whose versions are in force by the time of the games alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.cluster.base import SharedBase, Window
from ratings_ledger.projections.cluster.columnar import DamagedObject
from ratings_ledger.projections.cluster.packs import Pack
from ratings_ledger.projections.cluster.segments import NamedCell
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.lists import LISTS
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.containment import RuleFailure
from ratings_ledger.projections.replay.continuing import numbered_after
from ratings_ledger.projections.replay.ladders import streams
from ratings_ledger.projections.replay.partition import by_time
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.versions import Version
from ratings_ledger.projections.stored.computing import Built, LadderFailure, ladder_failure, stored_row

# a longer ladder is streamed, in windows of about so many games
STREAMED_GAMES, WINDOW_GAMES = 2_000_000, 1_000_000


def streamed_ladder(pack: Pack, versions: Sequence[Version], changes: bool) -> tuple[str, ...] | None:
    """Return the partition values of the ladder that a pack is, if it is to be streamed."""
    ruleset = versions[0].ruleset
    fits = (
        not changes and ruleset.freeze == "none" and not by_time(ruleset)
        and not any(version.params.carry_over for version in versions)
        and all(LISTS[version.rule.ranking].running for version in versions)
    )  # fmt: skip
    if not fits or pack.games < STREAMED_GAMES or len(pack.families) > 1:
        return None
    values = dict(member.split(" ", 1) for member in pack.families[0])
    return tuple(values[part] for part in ruleset.partition.by)


def windows(base: SharedBase, cells: Sequence[tuple[int, NamedCell]], games: int) -> Iterator[Window]:
    """Times from and to which about `games` games of some cells were played, from the first to the last."""
    found, cuts = 0.0, list[int | None]([None])
    for moment, count in sorted(base.moments(cells)):
        if found >= games and moment != cuts[-1]:
            cuts.append(moment)
            found = 0.0
        found += count
    yield from pairwise([*cuts, None])


def streamed(
    base: SharedBase, cells: Sequence[tuple[int, NamedCell]], games: int, ruleset_id: str, values: tuple[str, ...]
) -> Built | LadderFailure | None:  # fmt: skip
    """Return a ladder as `built` gives it; None if no game counts there.

    Raises `DamagedObject` if the segments have other than so many games.
    """
    ladder, earlier, read, names = "/".join([ruleset_id, *values]), None, 0, list[str]()
    for window in windows(base, cells, WINDOW_GAMES):
        facts, there = base.facts_within(cells, window, names)
        read, names = read + there, facts.players
        ladders = Ladders(facts)
        try:
            earlier = _continued(facts, ladder, ruleset_id, values, window, earlier)
        except RuleFailure as error:
            return ladder_failure(ladder, ladders, error)
    if read != games:
        raise DamagedObject(base.name, f"leads to {read:,} games instead of {games:,}")
    if earlier is None:
        return None
    found = ladders.ranked(earlier)[0]
    return Built(
        found.ladder, found.ruleset, found.digest, found.scale, found.games, [stored_row(row) for row in found.rows]
    )


def _continued(
    facts: Facts, ladder: str, ruleset_id: str, values: tuple[str, ...], window: Window, earlier: Trace | None
) -> Trace | None:
    """Return the trace at the end of a window, given that at the end of the last one; None before the ladder begins.

    Raises `RuleFailure`.
    """
    versions, (since, until) = facts.rulesets[ruleset_id], window
    there = streams(
        facts, versions, only=values, as_of=None if until is None else until - 1,
        after=None if since is None else (since, -1),
    ).get(ladder)  # fmt: skip
    if there is None:
        return earlier
    stream = replace(there, batch=None) if earlier is None else numbered_after(earlier.stream, there)
    return _light(replay(stream, keep=False, earlier=earlier))


def _light(trace: Trace) -> Trace:
    """Return a trace without its games: what another goes on from, or a list ranks."""
    stream, none = trace.stream, array("q")
    last = trace.last_version
    version: Any = np.broadcast_to(np.int16(0 if last is None else stream.versions.index(last)), trace.count)
    return replace(
        trace, earlier=None, before=none, mints=none, adjusted_before=none,
        stream=replace(stream, offsets=array("q", [0]), players=array("i"), columns=(), adjustments=[],
                       row=range(trace.count), version=version),
    )  # fmt: skip

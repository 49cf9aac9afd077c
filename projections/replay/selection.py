"""Which games a ruleset counts, and with whom: the work before any scoring, in bulk.

Whatever depends on a game's cell alone is computed once per cell; the rest is done by `loops`, compiled for long
histories.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.games import STATUSES
from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.facts.columns import NONE, SAME, Cell, Column, Facts
from ratings_ledger.projections.replay import loops
from ratings_ledger.projections.replay.containment import RuleFailure
from ratings_ledger.projections.replay.eligibility import (
    league_starts,
    needs_a_look,
    why_cell_not_eligible,
    why_not_scored,
)
from ratings_ledger.projections.replay.rule_inputs import GameSlots, bulk_columns
from ratings_ledger.projections.rulesets.versions import Version, in_force

ACCOUNTS = ("premium", "free")
PART_GAMES = 250_000  # from twice as many on, two threads select in parts
SUBSTITUTIONS = ("both", "leaver", "substitute", "none")


class Selected(NamedTuple):
    """Games with their counted participants: those of game g are `slot[offset[g]:offset[g + 1]]`, sorted by id."""

    row: Column
    version: Column
    offset: Column
    slot: Column


def rows_in_order(facts: Facts, as_of: int | None = None, since: int | None = None) -> Column:
    """The rows of the games between two instants, in replay order: by time, then by first position."""
    times = arrays.as_numpy(facts.occurred_at)
    inside = np.ones(len(times), dtype=bool) if since is None else times >= since
    if as_of is not None:
        inside &= times <= as_of
    rows = np.arange(len(times)) if inside.all() else np.flatnonzero(inside)
    own = times if len(rows) == len(times) else times[rows]
    if not (own[1:] >= own[:-1]).all():
        # rows are in the order of their first positions, and sorting is stable
        rows = rows[np.argsort(own, kind="stable")]
    return arrays.as_column(rows.astype(np.int64, copy=False))


def select(
    facts: Facts, versions: Sequence[Version], ordered: Callable[[], Column], ladders: Callable[[Cell], bool],
    failures: dict[int, RuleFailure],
) -> Selected:  # fmt: skip
    """The games of a ruleset among the `ordered` rows, from the cells that are on some ladder.

    Games at which their rule's check fails are included; `failures` gets them by row.
    """
    if facts.unchecked is not None:
        facts.check()
    admitted = _admitted(facts, versions, ladders)
    rows = ordered() if any(admitted) else array("q")
    if not len(rows):
        return Selected(array("q"), array("h"), array("q", [0]), array("i"))
    slots = sum(map(facts.count.__getitem__, rows)) if len(rows) < 1_000 else len(facts.player)
    compiled = compiling.is_worthwhile(len(rows))
    room = [
        arrays.zeros("q", len(rows)), arrays.zeros("h", len(rows)), arrays.zeros("q", len(rows) + 1),
        arrays.zeros("i" if len(facts.player) < 2**31 else "q", slots),
    ]  # fmt: skip
    rows = _live(facts, rows)
    since, version_since = timeline(versions)
    frozen = versions[0].ruleset.freeze != "none"
    starts = league_starts(facts, versions) if frozen else {}
    given = (
        facts.cell, facts.occurred_at, facts.start, facts.count, facts.player, facts.person, facts.status,
        facts.replaced, facts.ranks(), int(facts.renamed), array("q", since), array("h", version_since),
        array("q", [starts.get(cell.league, SAME) for cell in facts.cells]), int(frozen),
        admitted, len(facts.cells),
        array("q", [_bits(STATUSES, version.ruleset.scope.exclude_status) for version in versions]),
        array("q", [SUBSTITUTIONS.index(version.params.substitution) for version in versions]),
        array("q", [version.rule.counted_min for version in versions]),
        array("q", [_bits(ACCOUNTS, version.ruleset.scope.exclude_accounts) for version in versions]),
        *_accounts(facts, versions),
    )  # fmt: skip

    def select_into(some: Column, into: Sequence[Any]) -> int:
        games: int = compiling.run_loop(loops.select_slots, some, *given, *into, as_compiled=compiled)
        return games

    in_parts = compiled and len(rows) >= 2 * PART_GAMES
    games = _in_parts(facts, rows, select_into, room) if in_parts else select_into(rows, room)
    facts.let_go()
    row, version, offset, slot = (memoryview(column) for column in room)
    found = Selected(row[:games], version[:games], offset[: games + 1], slot[: offset[games]])
    return _scorable(facts, versions, found, failures)


def _in_parts(facts: Facts, rows: Column, run: Callable[[Column, Sequence[Any]], int], room: Sequence[Any]) -> int:
    """Select in two parts of the rows at a time, each into its own place; what is found then moves up to the rest.

    What was read of files is let go after each part.
    """
    row, version, offset, slot = (arrays.as_numpy(column) for column in room)
    counts, ordered = arrays.as_numpy(facts.count), arrays.as_numpy(rows)
    games = used = room_from = 0
    waiting = deque[tuple[int, int, Any, Future[int]]]()
    with ThreadPoolExecutor(2) as threads:
        for first in (*range(0, len(rows), PART_GAMES), None, None):
            if first is not None:
                some = ordered[first : first + PART_GAMES]
                ends = np.empty(len(some) + 1, dtype=np.int64)
                into = (row[first:], version[first:], ends, slot[room_from:])
                waiting.append((first, room_from, ends, threads.submit(run, arrays.as_column(some), into)))
                room_from += int(counts[some].sum())
            if len(waiting) > 2 or (first is None and waiting):
                begin, slots_from, ends, found = waiting.popleft()
                more = found.result()
                moved = int(ends[more])
                offset[games + 1 : games + 1 + more] = ends[1 : more + 1] + used
                for column, end, length, at in (
                    (row, games, more, begin), (version, games, more, begin), (slot, used, moved, slots_from)
                ):  # fmt: skip
                    if end < at:
                        column[end : end + length] = column[at : at + length]
                games, used = games + more, used + moved
                facts.let_go()
    return games


def _live(facts: Facts, rows: Column) -> Column:
    """The rows without those of voided games."""
    if not facts.voided:
        return rows
    live = np.ones(len(facts.cell), dtype=bool)
    live[list(facts.voided)] = False
    ordered = arrays.as_numpy(rows)
    return arrays.as_column(ordered[live[ordered]])


def _admitted(facts: Facts, versions: Sequence[Version], ladders: Callable[[Cell], bool]) -> Column:
    """For every version and cell, whether its games are eligible and on a ladder."""
    slugs = {facts.text_numbers.get(name) for version in versions for name in version.ruleset.scope.game}
    asked = [cell.game in slugs and ladders(cell) for cell in facts.cells]
    return array("b", [
        on_a_ladder and why_cell_not_eligible(facts, cell, version.ruleset) is None
        for version in versions
        for cell, on_a_ladder in zip(facts.cells, asked, strict=True)
    ])  # fmt: skip


def _bits(names: Sequence[str], excluded: Sequence[str]) -> int:
    return sum(1 << names.index(name) for name in set(excluded))


def _accounts(facts: Facts, versions: Sequence[Version]) -> tuple[Column, Column, Column]:
    """Where every person's accounts begin in the list of all, since when each applies, and which it is."""
    first, since, code = array("q", [0]), array("q"), array("q")
    if not any(version.ruleset.scope.exclude_accounts for version in versions):
        return first, since, code
    for person in range(len(facts.person)):
        for entry in sorted(facts.accounts.get(person, ())):
            since.append(entry.occurred_at)
            code.append(ACCOUNTS.index(entry.account))
        first.append(len(since))
    return first, since, code


def timeline(versions: Sequence[Version]) -> tuple[list[int], list[int]]:
    """Instants in order, and the index of the version in force from each on; NONE before the first."""
    instants = sorted({version.effective_from for version in versions if version.effective_from is not None})
    chosen = [in_force(versions, instant) for instant in instants]
    indices = {id(version): index for index, version in enumerate(versions)}
    return [-(2**63), *instants], [NONE, *(indices[id(version)] for version in chosen)]


def _scorable(
    facts: Facts, versions: Sequence[Version], found: Selected, failures: dict[int, RuleFailure]
) -> Selected:  # fmt: skip
    """The games without those that their rule cannot score."""
    looked_at = [needs_a_look(version) for version in versions]
    if not any(looked_at):
        return found
    alike = _alike(facts, versions, found)
    known: dict[Any, bool] = {}
    gone: list[int] = []
    for game, key in enumerate(alike):
        if not looked_at[found.version[game]]:
            continue
        out = known.get(key) if key is not None else None
        if out is None:
            row, participants = found.row[game], found.slot[found.offset[game] : found.offset[game + 1]]
            try:
                out = why_not_scored(facts, row, versions[found.version[game]], participants) is not None
            except RuleFailure as failure:
                failures[row], out = failure, False
            else:
                known[key] = out
        if out:
            gone.append(game)
    return _without(found, gone) if gone else found


def _alike(facts: Facts, versions: Sequence[Version], found: Selected) -> Iterable[Any]:
    """A key for every game, equal for games about which a rule's check says the same; None where nothing is known."""
    seasonal = any(getattr(version.params, "season_months", []) for version in versions)
    if seasonal or len({version.rule.columns for version in versions}) > 1:
        return [None] * len(found.row)
    offset = arrays.as_numpy(found.offset)
    games = GameSlots(found.row, arrays.as_column(np.diff(offset)), found.slot)
    read = np.ascontiguousarray(bulk_columns(facts, versions[0].rule.columns, games).T)
    width, raw = read.itemsize * len(versions[0].rule.columns), read.tobytes()
    ends = (offset * width).tolist()
    return ((version, raw[first:last]) for version, (first, last) in zip(found.version, pairwise(ends), strict=True))


def _without(found: Selected, gone: list[int]) -> Selected:
    row, version, offset, slot = array("q"), array("h"), array("q", [0]), array(memoryview(found.slot).format)
    for first, last in pairwise([-1, *gone, len(found.row)]):
        row.extend(found.row[first + 1 : last])
        version.extend(found.version[first + 1 : last])
        shift = len(slot) - found.offset[first + 1]
        offset.extend(found.offset[game + 1] + shift for game in range(first + 1, last))
        slot.extend(found.slot[found.offset[first + 1] : found.offset[last]])
    return Selected(row, version, offset, slot)

"""Packs: the ladders of rulesets, divided so that each part of the work reads only the games that it needs.

Ladders go by the values of their partition that no game's time decides: all months of a city are one family, and so
are all seasons where points are carried over. A family is never divided.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.lists import LISTS
from ratings_ledger.projections.replay.ladders import parse_name
from ratings_ledger.projections.replay.partition import is_partitioned_by_time, list_cell_values
from ratings_ledger.projections.rulesets.versions import Version, list_games

# a longer ladder is streamed
STREAMED_GAMES = 2_000_000


def streamed_ladder(pack: Pack, versions: Sequence[Version], changes: bool) -> tuple[str, ...] | None:
    """Return the partition values of the ladder that a pack is, if it is to be streamed."""
    ruleset = versions[0].ruleset
    fits = (
        not changes
        and ruleset.entrant == "player"
        and ruleset.freeze == "none"
        and ruleset.period == "game"
        and not is_partitioned_by_time(ruleset)
        and not any(version.params.carry_over for version in versions)
        and all(LISTS[version.rule.ranking].running for version in versions)
    )
    if not fits or pack.games < STREAMED_GAMES or len(pack.families) > 1:
        return None
    values = dict(member.split(" ", 1) for member in pack.families[0])
    return tuple(values[part] for part in ruleset.partition.by)


# what fits into a worker's memory and is worth a task
PACK_GAMES = 400_000
FAMILY_COST = 20  # in games
Family = tuple[str, ...]


class Pack(NamedTuple):
    """Some families of ladders of a ruleset, the cells whose games they need, and how many games these have.

    asked:  those of their ladders that are named; none if all are meant
    stored: those of their ladders that are there even without games
    """

    ruleset_id: str
    families: list[Family]
    cells: list[int]
    games: int
    asked: list[str]
    stored: list[str]


def family_of(versions: Sequence[Version], values: Sequence[str]) -> Family:
    """Return the family of the ladder with some partition values."""
    by = versions[0].ruleset.partition.by
    apart = {"month", "year"} | ({"season"} if any(version.params.carry_over for version in versions) else set())
    return tuple(f"{part} {value}" for part, value in sorted(zip(by, values, strict=True)) if part not in apart)


def by_family(versions: Sequence[Version], ladders: Iterable[str]) -> dict[Family, list[str]]:
    """Return those of some ladders that the ruleset of some versions may have, by family."""
    ruleset, families = versions[0].ruleset, defaultdict[Family, list[str]](list)
    for ladder in ladders:
        name = parse_name(ladder)
        if name.ruleset_id == ruleset.id and len(name.values) == len(ruleset.partition.by):
            families[family_of(versions, name.values)].append(ladder)
    return families


def packs(
    facts: Facts,
    ruleset_id: str,
    asked: Collection[str],
    stored: Iterable[str],
    games: Mapping[int, int],
    budget: int = PACK_GAMES,
) -> Iterator[Pack]:
    """Yield the packs of a usable ruleset, the largest families first; of its requested ladders alone, unless it is
    itself.

    `games` says how many games each cell has. Ladders that are `stored` are there even without games.
    """
    versions = facts.rulesets[ruleset_id]
    there = by_family(versions, stored)
    adjusted = by_family(versions, {adjustment.ladder for adjustment in facts.adjustments})
    every = _families(facts, versions, games, {*there, *adjusted})
    named = {} if ruleset_id in asked else by_family(versions, asked)
    if asked and ruleset_id not in asked:
        every = {family: cells for family, cells in every.items() if family in named}
    size = {family: sum(games[cell] for cell in cells) for family, cells in every.items()}

    def pack(families: list[Family]) -> Pack:
        cells = {cell for family in families for cell in every[family]}
        ladders = (sorted(name for family in families for name in names.get(family, ())) for names in (named, there))
        return Pack(ruleset_id, families, sorted(cells), sum(games[cell] for cell in cells), *ladders)

    families, cost = list[Family](), 0
    for family in sorted(every, key=lambda family: (-size[family], family)):
        if families and cost + size[family] + FAMILY_COST > budget:
            yield pack(families)
            families, cost = [], 0
        families.append(family)
        cost += size[family] + FAMILY_COST
    if families:
        yield pack(families)


def _families(
    facts: Facts, versions: Sequence[Version], games: Mapping[int, int], more: Collection[Family]
) -> dict[Family, set[int]]:
    """Return the cells that every family and `more` families need: of its games, and of the lists that it sums."""
    by_family: dict[Family, set[int]] = {family: set() for family in more}
    for some in [versions, *(facts.rulesets[of] for of in _summed(versions) if of in facts.rulesets)]:
        slugs = {facts.text_numbers.get(name) for name in list_games(some)}
        scored = [number for number in games if facts.cells[number].game in slugs]
        own: dict[Family, set[int]] = {family: set() for family in more}
        for number in scored:
            for values in list_cell_values(facts, facts.cells[number], some[0].ruleset):
                own.setdefault(family_of(some, values), set()).add(number)
        if any(version.ruleset.freeze != "none" for version in some):
            own = _with_leagues(facts, own, scored)
        for family, cells in own.items():
            by_family.setdefault(family, set()).update(cells)
    return by_family


def _with_leagues(facts: Facts, families: dict[Family, set[int]], scored: Sequence[int]) -> dict[Family, set[int]]:
    """Return the same with all cells of the families' leagues: the first game of a league decides which version scores
    it.
    """
    leagues: dict[int, set[int]] = {}
    for number in scored:
        leagues.setdefault(facts.cells[number].league, set()).add(number)
    found = {}
    for family, cells in families.items():
        named = {
            facts.text_numbers.get(member.removeprefix("league "), NONE) for member in family if member[:7] == "league "
        }
        own = {facts.cells[number].league for number in cells} | named
        found[family] = cells.union(*(leagues.get(league, ()) for league in own))
    return found


def _summed(versions: Sequence[Version]) -> set[str]:
    """Return the rulesets whose lists are summed."""
    return {of for version in versions if (of := getattr(version.params, "of", None)) is not None}

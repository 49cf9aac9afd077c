"""Divide the ladders of a ruleset into packs, so that each task reads only the games that it needs.

Ladders are grouped into families by the partition values that do not depend on a game's time: all months of a city are
one family, and so are all seasons if points are carried over. A family is never divided.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.lists import LISTS
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.replay.partition import list_cell_values
from ratings_ledger.projections.rulesets.versions import Version, list_games

# a ladder with at least this many games is streamed
STREAMED_GAMES = 2_000_000


def find_streamed_ladder(pack: Pack, versions: Sequence[Version], with_changes: bool) -> tuple[str, ...] | None:
    """Return the partition values of a pack's only ladder if it should be streamed (`stream_ladder`), else None.

    A pack whose changes are stored (`with_changes`) is never streamed.
    """
    ruleset = versions[0].ruleset
    can_be_streamed = (
        not with_changes
        and ruleset.entrant == "player"
        and ruleset.freeze == "none"
        and ruleset.period == "game"
        and not ruleset.partition.is_by_time
        and not any(version.params.carry_over for version in versions)
        and all(LISTS[version.rule.ranking].running for version in versions)
    )
    if not can_be_streamed or pack.games < STREAMED_GAMES or len(pack.families) > 1:
        return None
    values = dict(member.split(" ", 1) for member in pack.families[0])
    return tuple(values[part] for part in ruleset.partition.by)


# the number of games in a pack: few enough for a worker's memory, and enough to be worth a task
PACK_GAMES = 400_000
# the fixed cost of a family, in games
FAMILY_COST = 20
# the partition values that do not depend on a game's time, as in ("city Bonn", "players 3-4")
Family = tuple[str, ...]


class Pack(NamedTuple):
    """Families of a ruleset's ladders, to be replayed by one task.

    cells:     the cells whose games the families need
    games:     the number of these games
    requested: the requested ladders of the families; empty for all ladders
    stored:    those of the families' ladders that have stored standings, and so are included even without games
    """

    ruleset_id: str
    families: list[Family]
    cells: list[int]
    games: int
    requested: list[str]
    stored: list[str]


def find_family(versions: Sequence[Version], values: Sequence[str]) -> Family:
    """Return the family of the ladder with these partition values."""
    by = versions[0].ruleset.partition.by
    times = {"month", "year"} | ({"season"} if any(version.params.carry_over for version in versions) else set())
    return tuple(f"{part} {value}" for part, value in sorted(zip(by, values, strict=True)) if part not in times)


def group_by_family(versions: Sequence[Version], ladders: Iterable[str]) -> dict[Family, list[str]]:
    """Group ladders by family, leaving out ladders of other rulesets."""
    ruleset, families = versions[0].ruleset, defaultdict[Family, list[str]](list)
    for ladder in ladders:
        name = parse_name(ladder)
        if name.ruleset_id == ruleset.id and len(name.values) == len(ruleset.partition.by):
            families[find_family(versions, name.values)].append(ladder)
    return families


def build_packs(
    facts: Facts,
    ruleset_id: str,
    requested: Collection[str],
    stored: Iterable[str],
    games: Mapping[int, int],
    budget: int = PACK_GAMES,
) -> Iterator[Pack]:
    """Yield the packs of a usable ruleset, the largest families first.

    If single ladders of the ruleset are requested, only their families are packed.

    Args:
        facts: The facts with the rulesets and cells.
        ruleset_id: The ruleset.
        requested: The requested ladders and rulesets; empty for all.
        stored: The ladders with stored standings, which are included even without games.
        games: The number of games in each cell, by its number in the facts.
        budget: The largest number of games in a pack with several families.
    """
    versions = facts.rulesets[ruleset_id]
    stored_by_family = group_by_family(versions, stored)
    adjusted = group_by_family(versions, {adjustment.ladder for adjustment in facts.adjustments})
    cells_by_family = _group_cells(facts, versions, games, {*stored_by_family, *adjusted})
    requested_by_family = {} if ruleset_id in requested else group_by_family(versions, requested)
    if requested and ruleset_id not in requested:
        cells_by_family = {family: cells for family, cells in cells_by_family.items() if family in requested_by_family}
    games_by_family = {family: sum(games[cell] for cell in cells) for family, cells in cells_by_family.items()}

    def build_pack(families: list[Family]) -> Pack:
        cells = {cell for family in families for cell in cells_by_family[family]}
        ladders = (
            sorted(name for family in families for name in names.get(family, ()))
            for names in (requested_by_family, stored_by_family)
        )
        return Pack(ruleset_id, families, sorted(cells), sum(games[cell] for cell in cells), *ladders)

    families, cost = list[Family](), 0
    for family in sorted(cells_by_family, key=lambda family: (-games_by_family[family], family)):
        if families and cost + games_by_family[family] + FAMILY_COST > budget:
            yield build_pack(families)
            families, cost = [], 0
        families.append(family)
        cost += games_by_family[family] + FAMILY_COST
    if families:
        yield build_pack(families)


def _group_cells(
    facts: Facts, versions: Sequence[Version], games: Mapping[int, int], other_families: Collection[Family]
) -> dict[Family, set[int]]:
    """Return the cells that each family needs, for its own games and for the lists that it sums.

    The families in `other_families` are included even without games.
    """
    cells_by_family: dict[Family, set[int]] = {family: set() for family in other_families}
    summed_ids = [ruleset_id for ruleset_id in _list_summed_rulesets(versions) if ruleset_id in facts.rulesets]
    for source_versions in [versions, *(facts.rulesets[ruleset_id] for ruleset_id in summed_ids)]:
        game_numbers = {facts.text_numbers.get(name) for name in list_games(source_versions)}
        scored_cells = [number for number in games if facts.cells[number].game in game_numbers]
        source_cells: dict[Family, set[int]] = {family: set() for family in other_families}
        for number in scored_cells:
            for values in list_cell_values(facts, facts.cells[number], source_versions[0].ruleset):
                source_cells.setdefault(find_family(source_versions, values), set()).add(number)
        if any(version.ruleset.freeze != "none" for version in source_versions):
            source_cells = _add_league_cells(facts, source_cells, scored_cells)
        for family, cells in source_cells.items():
            cells_by_family.setdefault(family, set()).update(cells)
    return cells_by_family


def _add_league_cells(
    facts: Facts, cells_by_family: dict[Family, set[int]], scored_cells: Sequence[int]
) -> dict[Family, set[int]]:
    """Add all cells of the families' leagues, because the first game of a league decides which version scores it."""
    leagues: dict[int, set[int]] = {}
    for number in scored_cells:
        leagues.setdefault(facts.cells[number].league, set()).add(number)
    extended = {}
    for family, cells in cells_by_family.items():
        league_numbers = {
            facts.text_numbers.get(member.removeprefix("league "), NONE) for member in family if member[:7] == "league "
        }
        family_leagues = {facts.cells[number].league for number in cells} | league_numbers
        extended[family] = cells.union(*(leagues.get(league, ()) for league in family_leagues))
    return extended


def _list_summed_rulesets(versions: Sequence[Version]) -> set[str]:
    """Return the rulesets whose lists these versions sum."""
    return {source_id for version in versions if (source_id := getattr(version.params, "of", None)) is not None}

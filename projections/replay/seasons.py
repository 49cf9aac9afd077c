"""Carry states from one season to the next: the order of seasons, and the states with which players enter a ladder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import MISSING
from ratings_ledger.projections.facts.columns import Column
from ratings_ledger.projections.rulesets.versions import Version

# the state of a player: a number for each of the rule's state columns, the points first
State: TypeAlias = tuple[int, ...]


class EntryState(NamedTuple):
    """The state with which a player enters a ladder after an earlier season, or by a seed.

    games:    the number of games that the player played before
    last_day, last_season: the day and the season of the last of these games; `MISSING` if unknown
    latest_version_start: versions that started at this instant or earlier have already taken effect on the state
    seeded:   for a seed, the states by version name; `state` is then empty
    seed:     for an earlier season, the seed of this season, which counts under versions without `carry_over`
    """

    state: State
    games: int = 0
    last_day: int = MISSING
    last_season: int = MISSING
    latest_version_start: int = MISSING
    seeded: Mapping[str, State] | None = None
    seed: EntryState | None = None

    def under(self, version: Version) -> EntryState | None:
        """Return the entry that counts under a version; None if the player enters like a new player."""
        return self if self.seeded is not None or version.params.carry_over else self.seed


def add_seeds(carried: Mapping[str, EntryState], seeds: Mapping[str, EntryState]) -> dict[str, EntryState]:
    """Return the states carried from earlier seasons, and the seeds of a season, by player id."""
    return {**seeds, **{name: entry._replace(seed=seeds.get(name)) for name, entry in carried.items()}}


def find_entry_versions(
    players: Column, offsets: Column, version_indices: Column, adjustments: Sequence[tuple[int, int, int]]
) -> dict[int, int]:
    """Return, by player number, the index of the version under which the player's first game or adjustment counts.

    `adjustments` has for each, in order, the index of the game after it, the player's number, and its version.
    """
    numbers, slots = np.unique(arrays.as_numpy(players), return_index=True)
    games = np.searchsorted(arrays.as_numpy(offsets), slots, "right") - 1
    first_games = dict(zip(numbers.tolist(), games.tolist(), strict=True))
    indices = dict(zip(numbers.tolist(), arrays.as_numpy(version_indices)[games].tolist(), strict=True))
    for game, player, index in reversed(adjustments):
        if game <= first_games.get(player, game):
            indices[player] = index
    return indices


def find_previous_seasons(
    ladders: Iterable[tuple[str, ...]], season_index: int
) -> dict[tuple[str, ...], tuple[str, ...] | None]:
    """Return, for each ladder, the same ladder in the previous season, or None. Seasons are in the order of their ids.

    Ladders are given as their partition values, in which the season is at `season_index`.
    """
    previous: dict[tuple[str, ...], tuple[str, ...] | None] = {}
    latest: dict[tuple[str, ...], tuple[str, ...]] = {}
    for values in sorted(ladders, key=lambda values: values[season_index]):
        other_members = values[:season_index] + values[season_index + 1 :]
        previous[values] = latest.get(other_members)
        latest[other_members] = values
    return previous

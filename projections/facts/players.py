"""The known players of a ledger: those named by live events."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator

from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.facts.columns import NONE, Facts


class Players(Collection[str]):
    """The known players of facts, and players added since.

    A player whose first game is still live is found by that game. Only otherwise all known players are listed.
    """

    def __init__(self, facts: Facts, every: Callable[[], set[str]]) -> None:
        """Store the facts, and the function `every` that lists all their players."""
        self._facts, self._every = facts, every
        self._more: set[str] = set()

    def update(self, names: Iterable[str]) -> None:
        """Add names of new players."""
        self._more.update(names)

    def __contains__(self, name: object) -> bool:
        return name in self._more or (isinstance(name, str) and self._is_in_first_game(name)) or name in self._every()

    def __iter__(self) -> Iterator[str]:
        return iter(self._every() | self._more)

    def __len__(self) -> int:
        return len(self._every() | self._more)

    def _is_in_first_game(self, name: str) -> bool:
        facts = self._facts
        number = facts.player_numbers.get(name, NONE)
        if not 0 <= number < len(facts.players_at):
            return False
        row = facts.row_of(facts.players_at[number])
        if row == NONE or row in facts.voided:
            return False
        return number in facts.player[facts.start[row] : facts.start[row] + facts.count[row]]


def known_players(facts: Facts) -> set[str]:
    """Return the ids named by live games, accounts, adjustments, seeds and renames."""
    withdrawn = facts.recorded.withdrawn
    numbers = set(_count_participations(facts))
    numbers |= {
        adjustment.player
        for adjustment in facts.recorded.adjustments
        if adjustment.position not in withdrawn and not is_of_clubs(facts, adjustment.ladder)
    }
    numbers |= {seed.player for seed in facts.recorded.seeds if seed.position not in withdrawn}
    numbers |= {account.player for account in facts.recorded.accounts if account.position not in withdrawn}
    for rename in facts.recorded.renames:
        if rename.position not in withdrawn:
            numbers |= {rename.player, rename.new_player}
    return {facts.players[number] for number in numbers}


def is_of_clubs(facts: Facts, ladder: str) -> bool:
    """Tell whether a ladder ranks clubs, whose ids are not players' ids except in facts about clubs."""
    versions = facts.rulesets.get(ladder.partition("/")[0], ())
    return facts.club_games is None and any(version.ruleset.entrant == "club" for version in versions)


def knows_club(facts: Facts, name: str) -> bool:
    """Tell whether a player has played for a club with this name, or with a former or later name of it."""
    if name in facts.clubs or name in facts.clubs.values():
        return True
    label, labels = facts.text_numbers.get(name, NONE), arrays.as_numpy(facts.optional.get("club", array("i")))
    return label != NONE and bool((labels == label).any())


def games_played(facts: Facts, players: Collection[str]) -> dict[str, int]:
    """Return the number of live games of some players, under any of their ids; unknown players are left out."""
    played: Counter[int] = Counter()
    for number, count in _count_participations(facts).items():
        played[facts.person[number]] += count
    numbers = {name: facts.player_numbers[name] for name in players if name in facts.player_numbers}
    return {name: played[facts.person[number]] for name, number in numbers.items()}


def _count_participations(facts: Facts) -> dict[int, int]:
    """Return the players in live games by number, each with the number of games."""
    if facts.unchecked is not None:
        facts.check()
    if len(facts.start) < arrays.LONG_HISTORY:
        played: Counter[int] = Counter()
        for row, (first, size) in enumerate(zip(facts.start, facts.count, strict=True)):
            if row not in facts.voided:
                played.update(facts.player[first : first + size])
        return played
    start, count, player = map(arrays.as_numpy, (facts.start, facts.count, facts.player))
    count = count.copy()
    count[array("q", facts.voided)] = 0
    # Participants between the start and the end of a game; these ranges never overlap.
    inside = np.zeros(len(player) + 1, dtype=np.int8)
    inside[start[count > 0]] += 1
    inside[(start + count)[count > 0]] -= 1
    taking_part = np.cumsum(inside[:-1], dtype=np.int8).astype(bool)
    games = np.bincount(player[taking_part])
    present = np.flatnonzero(games)
    return dict(zip(present.tolist(), games[present].tolist(), strict=True))


def rows_with(facts: Facts, players: Collection[int]) -> list[int]:
    """Return the games of some ids, given their numbers, in log order."""
    if not players:
        return []
    if facts.unchecked is not None:
        facts.check()
    start, count, player = map(arrays.as_numpy, (facts.start, facts.count, facts.player))
    is_given = np.zeros(len(facts.players), dtype=bool)
    is_given[[*players]] = True
    before = np.zeros(len(player) + 1, dtype=np.int32)  # by participant, how many of those before are given players
    np.cumsum(is_given[player], out=before[1:])
    repeated: list[int] = np.flatnonzero(before[start + count] > before[start]).tolist()
    return repeated

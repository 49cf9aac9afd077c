"""Find the known players of a ledger, which are the players named by live events, and count and list their games."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator

from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.facts.columns import NONE, Facts


class Players(Collection[str]):
    """The known players of facts, and players added later.

    A player whose first game is live is known by that game. The search lists all players only if that fails.
    """

    def __init__(self, facts: Facts, list_all: Callable[[], set[str]]) -> None:
        """Store the facts. `list_all` returns all their known players."""
        self._facts, self._list_all = facts, list_all
        self._added: set[str] = set()

    def update(self, names: Iterable[str]) -> None:
        """Add the ids of new players."""
        self._added.update(names)

    def __contains__(self, name: object) -> bool:
        return (
            name in self._added or (isinstance(name, str) and self._is_in_first_game(name)) or name in self._list_all()
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._list_all() | self._added)

    def __len__(self) -> int:
        return len(self._list_all() | self._added)

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
    """Return the player ids in live games, accounts, adjustments, seeds and renames."""
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
    """Tell whether a player has played for a club with this name, or for one renamed from or to this name."""
    if name in facts.clubs or name in facts.clubs.values():
        return True
    text_number, club_labels = (
        facts.text_numbers.get(name, NONE),
        arrays.as_numpy(facts.optional.get("club", array("i"))),
    )
    return text_number != NONE and bool((club_labels == text_number).any())


def games_played(facts: Facts, players: Collection[str]) -> dict[str, int]:
    """Return the number of live games of each known player, under any of the player's ids. Omit unknown players."""
    games_by_person: Counter[int] = Counter()
    for number, count in _count_participations(facts).items():
        games_by_person[facts.person[number]] += count
    numbers = {name: facts.player_numbers[name] for name in players if name in facts.player_numbers}
    return {name: games_by_person[facts.person[number]] for name, number in numbers.items()}


def _count_participations(facts: Facts) -> dict[int, int]:
    """Return the number of live games by player number."""
    if facts.unchecked is not None:
        facts.check()
    if len(facts.start) < arrays.LONG_HISTORY:
        games_by_player: Counter[int] = Counter()
        for row, (first, size) in enumerate(zip(facts.start, facts.count, strict=True)):
            if row not in facts.voided:
                games_by_player.update(facts.player[first : first + size])
        return games_by_player
    start, count, player = map(arrays.as_numpy, (facts.start, facts.count, facts.player))
    count = count.copy()
    count[array("q", facts.voided)] = 0
    # the running sum is 1 for participants of live games, because the ranges of games never overlap
    steps = np.zeros(len(player) + 1, dtype=np.int8)
    steps[start[count > 0]] += 1
    steps[(start + count)[count > 0]] -= 1
    is_live = np.cumsum(steps[:-1], dtype=np.int8).astype(bool)
    games = np.bincount(player[is_live])
    players_with_games = np.flatnonzero(games)
    return dict(zip(players_with_games.tolist(), games[players_with_games].tolist(), strict=True))


def rows_with(facts: Facts, players: Collection[int]) -> list[int]:
    """Return the rows of the games of some players, given the numbers of their ids, in log order."""
    if not players:
        return []
    if facts.unchecked is not None:
        facts.check()
    start, count, player = map(arrays.as_numpy, (facts.start, facts.count, facts.player))
    is_selected = np.zeros(len(facts.players), dtype=bool)
    is_selected[[*players]] = True
    selected_before = np.zeros(len(player) + 1, dtype=np.int32)  # by participant, the number of selected players before
    np.cumsum(is_selected[player], out=selected_before[1:])
    rows: list[int] = np.flatnonzero(selected_before[start + count] > selected_before[start]).tolist()
    return rows

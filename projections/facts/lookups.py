"""Look up players and games in the facts: the known players, their games, one game by its id, and many games at once.

The known players of a ledger are those that live events name.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.rejections import did_you_mean, quote
from ratings_ledger.ledger.store.log import find_first_positions, read_matching_records
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.facts.columns import NONE, Facts


class Players(Collection[str]):
    """The known players of facts, and players added later.

    A search first looks at the player's first game: if the game is live and still has the player, the player is known.
    Otherwise, all players are listed.
    """

    def __init__(self, facts: Facts, list_all: Callable[[], set[str]]) -> None:
        """Store the facts. `list_all` returns all known players of the facts."""
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
        if adjustment.position not in withdrawn and not ranks_clubs(facts, adjustment.ladder)
    }
    numbers |= {seed.player for seed in facts.recorded.seeds if seed.position not in withdrawn}
    numbers |= {account.player for account in facts.recorded.accounts if account.position not in withdrawn}
    for rename in facts.recorded.renames:
        if rename.position not in withdrawn:
            numbers |= {rename.player, rename.new_player}
    return {facts.players[number] for number in numbers}


def ranks_clubs(facts: Facts, ladder: str) -> bool:
    """Tell whether a ladder ranks clubs, which are not players of these facts.

    False if the facts are about clubs: in them, the clubs are the players.
    """
    versions = facts.rulesets.get(ladder.partition("/")[0], ())
    return facts.club_games is None and any(version.ruleset.entrant == "club" for version in versions)


def knows_club(facts: Facts, name: str) -> bool:
    """Tell whether a club has this name: a player has played for it, or a club was renamed from or to it."""
    if name in facts.clubs or name in facts.clubs.values():
        return True
    text_number, club_labels = (
        facts.text_numbers.get(name, NONE),
        arrays.as_numpy(facts.optional.get("club", array("i"))),
    )
    return text_number != NONE and bool((club_labels == text_number).any())


def games_played(facts: Facts, players: Collection[str]) -> dict[str, int]:
    """Return the number of live games of each player, under any of the player's ids. Omit ids that no event names."""
    games_by_person: Counter[int] = Counter()
    for number, count in _count_participations(facts).items():
        games_by_person[facts.person[number]] += count
    numbers = {name: facts.player_numbers[name] for name in players if name in facts.player_numbers}
    return {name: games_by_person[facts.person[number]] for name, number in numbers.items()}


def _count_participations(facts: Facts) -> dict[int, int]:
    """Return the number of live games by player number."""
    if facts.pending_check is not None:
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
    # steps add up to 1 at participants of live games and to 0 elsewhere, because the ranges of games never overlap
    steps = np.zeros(len(player) + 1, dtype=np.int8)
    steps[start[count > 0]] += 1
    steps[(start + count)[count > 0]] -= 1
    is_live = np.cumsum(steps[:-1], dtype=np.int8).astype(bool)
    games = np.bincount(player[is_live])
    players_with_games = np.flatnonzero(games)
    return dict(zip(players_with_games.tolist(), games[players_with_games].tolist(), strict=True))


def list_rows_of(facts: Facts, players: Collection[int]) -> list[int]:
    """Return the rows of the games in which any of the players took part, in log order, including voided games.

    `players` are player numbers, one for each id of a person.
    """
    if not players:
        return []
    if facts.pending_check is not None:
        facts.check()
    start, count, player = map(arrays.as_numpy, (facts.start, facts.count, facts.player))
    is_selected = np.zeros(len(facts.players), dtype=bool)
    is_selected[[*players]] = True
    selected_before = np.zeros(len(player) + 1, dtype=np.int32)  # by participant, how many selected ones come before
    np.cumsum(is_selected[player], out=selected_before[1:])
    rows: list[int] = np.flatnonzero(selected_before[start + count] > selected_before[start]).tolist()
    return rows


def require_player(facts: Facts, player: str) -> None:
    """Check that the facts name a player. Raises `Unknown` (player-unknown)."""
    if not facts.knows(player):
        hint = did_you_mean(player, known_players(facts), facts.current)
        raise Unknown("player-unknown", f"nothing is recorded about {quote(player)}{hint}")


class GameFacts(NamedTuple):
    """A game in the facts.

    first_position, live_position: the positions of the game's first and current record
    occurred_at: when the game ended, in microseconds since 1970
    persons:  by participant, the number of the player's current id
    places:   by participant, the place
    replaced: by participant, whether a substitute took the seat over
    sides:    by participant, the number of the team; a participant without a team has a negative number of their own
    """

    first_position: int
    live_position: int
    occurred_at: int
    persons: list[int]
    places: list[int]
    replaced: list[int]
    sides: list[int]


def look_up_games(facts: Facts, rows: Iterable[int]) -> Iterator[GameFacts]:
    """Yield the games in the given rows, in the given order."""
    indices, take = array("q", rows), arrays.take
    start, count = take(facts.start, indices), take(facts.count, indices)
    slots, ends = arrays.span_indices(start, count), [0]
    for size in count:
        ends.append(ends[-1] + size)
    persons = take(facts.person, take(facts.player, slots)).tolist()
    places, replaced = take(facts.place, slots).tolist(), take(facts.replaced, slots).tolist()
    teams = facts.optional.get("team", ())  # this column may end early, after the last participant with a team
    slot_teams = ((slot, teams[slot] if slot < len(teams) else NONE) for slot in slots)
    sides = [-1 - slot if team == NONE else team for slot, team in slot_teams]
    columns = (take(column, indices) for column in (facts.first_position, facts.live_position, facts.occurred_at))
    for first, live, occurred_at, (low, high) in zip(*columns, pairwise(ends), strict=True):
        game_slots = slice(low, high)
        yield GameFacts(
            first,
            live,
            occurred_at,
            persons[game_slots],
            places[game_slots],
            replaced[game_slots],
            sides[game_slots],
        )


def find_game_row(connection: Connection, facts: Facts, game_id: str) -> int:
    """Return the row of a game in the facts.

    Raises `Unknown` (game-unknown), also for a game whose record is invalid.
    """
    recorded = read_matching_records(
        connection, until=facts.position, subject=f"game:{game_id}", type_name="game.recorded"
    )
    row = facts.row_of(recorded[0][0]) if recorded else NONE
    if row != NONE:
        return row
    if recorded:
        message = f"the record of {quote(game_id)} at position {recorded[0][0]} is invalid, so it does not count"
        raise Unknown("game-unknown", f"{message}; run: ratings verify")
    later = find_first_positions(connection, [game_id])
    hint = "".join(f" up to position {facts.position}; it was recorded at position {first}" for first in later.values())
    raise Unknown("game-unknown", f"no game {quote(game_id)} is recorded{hint}")

"""Which rows of a sheet are which games of the ledger, and when these are played so that they follow the sheet's order.

Games whose ids stand in the sheet are found by these. Others are numbered by day, and a number says nothing once a row
was inserted: they are found by what they say, first those that say the same, then those that say nearly the same.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.canonical import dump, parse_object
from ratings_ledger.ledger.events.revisions import RevisedGame
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.validation.identities import Identities
from ratings_ledger.ledger.validation.repeated_games import SECOND, is_same_time, said

DAY = 86_400_000_000  # microseconds
NEW = 2**62  # beyond all positions


class Likeness(NamedTuple):
    """What games are compared by: what they say besides their ids, when they ended, and who played."""

    says: str
    occurred_at: int
    players: frozenset[str]

    def says_as(self, there: "Likeness") -> bool:
        """Whether a sheet says what the ledger does."""
        return self.says == there.says and is_same_time(self.occurred_at, there.occurred_at)


class SheetGame(NamedTuple):
    """A game as the sheet has it."""

    item: Item
    data: dict[str, Any]
    likeness: Likeness

    @property
    def game_id(self) -> str:
        """The id that it has there."""
        return str(self.data["game_id"])

    @property
    def day(self) -> str:
        """Of an id made of a day and a number: the day."""
        return self.game_id.rpartition("-")[0]


class GivenGame(NamedTuple):
    """A game that was recorded at a position: as a sheet last gave it, what that tells, and as it is now."""

    position: int
    base: RevisedGame
    likeness: Likeness
    now: RevisedGame

    @property
    def game_id(self) -> str:
        """The id of the game."""
        return str(self.base.data["game_id"])


def likeness_of(data: dict[str, Any], occurred_at: int, people: Identities) -> Likeness:
    """What a game is compared by, its players under their current ids."""
    game = {**people.present(data), "game_id": "-"}
    players = frozenset(participant["player"] for participant in game["participants"])
    return Likeness(said(game), occurred_at, players)


Keys = Callable[[Likeness], Iterable[object]]


def _the_same(game: Likeness) -> Iterator[object]:
    yield game.says, game.occurred_at // SECOND


def _another_time(game: Likeness) -> Iterator[object]:
    yield game.says


def _another_result(game: Likeness) -> Iterator[object]:
    yield game.occurred_at // DAY, game.players


def _another_player(game: Likeness) -> Iterator[object]:
    day = game.occurred_at // DAY
    yield day, game.players
    yield from ((day, game.players - {player}) for player in sorted(game.players))


def _recorded_otherwise(game: Likeness) -> Iterator[object]:
    data = parse_object(game.says.encode())["data"]
    yield game.occurred_at // DAY, game.players, dump({**data, "participants": None})


EDITED: tuple[Keys, ...] = (_the_same, _another_time, _another_result, _another_player)
# of games that do not come from the sheet, less is enough to doubt, and nothing to decide
ELSEWHERE: tuple[Keys, ...] = (_the_same, _recorded_otherwise)


def matched(rows: Mapping[int, SheetGame], given: Iterable[GivenGame], by: Sequence[Keys]) -> dict[int, GivenGame]:
    """The games that rows are, found by one kind of key after the other.

    Of several that say nearly the same, the one with the number that the row has now comes first, then the first that
    is left. Games that have vanished before are found only by what says the same.
    """
    found: dict[int, GivenGame] = {}
    left = sorted(given, key=lambda one: (one.base.voided, one.likeness.occurred_at, one.position))
    for number, keys in enumerate(by):
        if number:
            left = [one for one in left if not one.base.voided]
        numbered = {one.game_id: one for one in left} if number else {}
        taken = set[int]()
        for index, row in rows.items():
            one = numbered.get(row.game_id) if index not in found else None
            if one is not None and not {*keys(one.likeness)}.isdisjoint(keys(row.likeness)):
                found[index] = one
                taken.add(one.position)
        waiting: dict[object, deque[GivenGame]] = defaultdict(deque)
        for one in left:
            for key in keys(one.likeness):
                waiting[key].append(one)
        for index, row in rows.items():
            if index not in found and (first := _first_left(map(waiting.get, keys(row.likeness)), taken)) is not None:
                found[index] = first
                taken.add(first.position)
        left = [one for one in left if one.position not in taken]
    return found


def _first_left(queues: Iterable[deque[GivenGame] | None], taken: Collection[int]) -> GivenGame | None:
    """The first game of the first queue that has one which is not taken; those that are leave their queues."""
    for queue in queues:
        while queue:
            one = queue.popleft()
            if one.position not in taken:
                return one
    return None


def played_in_order(
    rows: Mapping[int, SheetGame], given: Mapping[int, GivenGame], others: Mapping[int, GivenGame]
) -> dict[int, int]:
    """When each game of a sheet is played, in the order in which the sheet alone would be replayed.

    Of games at one time the first recorded comes first; one that the sheet has later is played a microsecond later, and
    what is new comes last. Games from elsewhere stay as they are.
    """
    found: dict[int, int] = {}
    last, before = -NEW, 0
    for number, index in enumerate(sorted(rows, key=lambda index: rows[index].likeness.occurred_at)):
        if index in others:
            at, position = others[index].now.occurred_at, others[index].position
        else:
            at, position = rows[index].likeness.occurred_at, given[index].position if index in given else NEW + number
            if (at, position) <= (last, before):
                at = last if position > before else last + 1
        found[index] = at
        last, before = max((last, before), (at, position))
    return found

"""What all lists have in common: their input, the rows they make, and shared ranks."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.exact_numbers import ExactNumber


class RankedRow(NamedTuple):
    """A row: its rank (None: not qualified), and points in units of 1/(scale * divisor).

    `gold` is set on lists that pay it, `places` on annual lists, and `state` under rules that keep several numbers
    about a player: all of them, in units, as the last game left them.
    """

    rank: int | None
    player: str
    points: int
    games: int
    qualified: bool
    divisor: int = 1
    gold: int | None = None
    places: tuple[int, ...] | None = None
    state: tuple[int, ...] | None = None

    def value(self, scale: int) -> Fraction:
        """Return the points as an exact number."""
        return ExactNumber(self.points, scale * self.divisor)


class RankedColumns(Sequence[RankedRow]):
    """The rows of a long list of running points, each made when somebody looks at it.

    `points`, `games` and `ranks` (0: not qualified) are arrays of numpy, by the indices of `names`; `order` has these
    indices in the order of the list. `states` are the rows' states by column, or empty.
    """

    def __init__(
        self, names: Sequence[str], points: Any, games: Any, ranks: Any, order: Any, states: Sequence[Any] = ()
    ) -> None:
        self.names, self.points, self.games, self.ranks, self.order = names, points, games, ranks, order
        self.states = states

    def of(self, players: Any) -> Iterator[RankedRow]:
        """Return the rows of some players, by their indices."""
        ranks, names = self.ranks[players], map(self.names.__getitem__, players.tolist())
        columns = (column.tolist() for column in (self.points[players], self.games[players], ranks > 0))
        rows = map(RankedRow, (rank or None for rank in ranks.tolist()), names, *columns)
        if not self.states:
            return rows
        states = zip(*(column[players].tolist() for column in self.states), strict=True)
        return (row._replace(state=state) for row, state in zip(rows, states, strict=True))

    def named(self, players: Collection[str]) -> Iterator[RankedRow]:
        """Return the rows of some players, by their ids, in any order."""
        return self.of(np.array([n for n, name in enumerate(self.names) if name in players], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: Any) -> Any:
        return [*self.of(self.order[index])] if isinstance(index, slice) else next(self.of(self.order[[index]]))

    def __iter__(self) -> Iterator[RankedRow]:
        return self.of(self.order)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]


class Results(NamedTuple):
    """What a list ranks.

    names:    the players
    points:   their points in units of 1/scale: running points, or the sum over their games
    games:    how many of their games count
    offsets:  the participants of game g are from offsets[g] up to offsets[g + 1] in the next two
    players:  indices of `names`
    changes:  what the game gave them, in units
    params:   those of the version that ranks the list
    months:   for an annual list: the rows by player of each month that has a list for its city and group
    excluded: why a player has no rank whatever their points, for those who have none
    places:   if the list asks for them: for every participant the place in the game, 0 for who was not classified
    states:   under a rule that keeps several numbers about a player, these by state column; else empty
    ranked_by: what running points are ranked by instead of the points themselves, in the same units
    more_places: by participant the other places of a club whose players all count, ascending
    ids:      if there are so many players that numpy pays: for each, where their id comes among all ids in order
    """

    names: Sequence[str]
    points: Sequence[int]
    games: Sequence[int]
    offsets: Sequence[int]
    players: Sequence[int]
    changes: Sequence[int]
    scale: int
    params: Any
    months: Mapping[str, Mapping[str, RankedRow]] = {}
    excluded: Mapping[str, str] = {}
    places: Sequence[int] = ()
    ids: Any = None
    states: Sequence[Sequence[int]] = ()
    ranked_by: Sequence[int] | None = None
    more_places: Mapping[int, Sequence[int]] = {}

    def of(self, player: int) -> Iterator[tuple[int, int]]:
        """(game, change) of a player's games, in order."""
        for game in range(len(self.offsets) - 1):
            for slot in range(self.offsets[game], self.offsets[game + 1]):
                if self.players[slot] == player:
                    yield game, self.changes[slot]


class ExplainedLine(NamedTuple):
    """One line of an explanation; `amount` is None where there is none, `assumes` as in a `Term`."""

    term: str
    amount: Fraction | None
    detail: str
    assumes: tuple[str, ...] = ()


def too_few(games: int, wanted: int) -> list[ExplainedLine]:
    """Explain that a player has too few games for a rank; empty if there are enough."""
    if games >= wanted:
        return []
    missing = wanted - games
    return [
        ExplainedLine(
            "no rank",
            None,
            f"{games} of {wanted} games; {missing} {'is' if missing == 1 else 'are'} missing",
            ("min_games",),
        )
    ]


def ranked(rows: Sequence[RankedRow], key: Callable[[RankedRow], Any]) -> list[RankedRow]:
    """Return the rows by their key, lowest first, then by id; equal keys share a rank and the next ones are skipped.

    Unqualified rows follow without a rank, and the ranks of the others are computed without them.
    """
    ordered = sorted([(not row.qualified, key(row), row.player, row) for row in rows])
    found: list[RankedRow] = []
    before = rank = None
    for index, (unqualified, its_key, _, row) in enumerate(ordered, 1):
        if unqualified:
            rank = None
        elif rank is None or its_key != before:
            before, rank = its_key, index
        found.append(RankedRow._make((rank, *row[1:])))
    return found

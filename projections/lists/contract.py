"""Define the contract of lists: their input, their rows, and how equal rows share ranks."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.exact_numbers import ExactNumber


class RankedRow(NamedTuple):
    """A row of a list: the rank (None: not qualified), and the points in units of 1/(scale * divisor).

    `gold` is set on lists that pay gold, and `places` on annual lists. Under rules with state, `state` has the state
    columns after all games and adjustments, each in units of its own scale.
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

    def exact_points(self, scale: int) -> Fraction:
        """Return the points as an exact number."""
        return ExactNumber(self.points, scale * self.divisor)


class RankedColumns(Sequence[RankedRow]):
    """The rows of a long list of running points, stored as columns; a row is built when it is read.

    names:  the ids of the players
    points: a numpy array of the points of each player, by index into `names`
    games:  a numpy array of the numbers of counted games, by index into `names`
    ranks:  a numpy array of the ranks (0: not qualified), by index into `names`
    order:  a numpy array of the indices in the order of the list
    states: an array for each state column, by index into `names`; empty without state
    """

    def __init__(
        self, names: Sequence[str], points: Any, games: Any, ranks: Any, order: Any, states: Sequence[Any] = ()
    ) -> None:
        self.names, self.points, self.games, self.ranks, self.order = names, points, games, ranks, order
        self.states = states

    def rows_at(self, players: Any) -> Iterator[RankedRow]:
        """Yield the rows of players, given a numpy array of their indices."""
        ranks, names = self.ranks[players], map(self.names.__getitem__, players.tolist())
        columns = (column.tolist() for column in (self.points[players], self.games[players], ranks > 0))
        rows = map(RankedRow, (rank or None for rank in ranks.tolist()), names, *columns)
        if not self.states:
            return rows
        states = zip(*(column[players].tolist() for column in self.states), strict=True)
        return (row._replace(state=state) for row, state in zip(rows, states, strict=True))

    def rows_named(self, players: Collection[str]) -> Iterator[RankedRow]:
        """Yield the rows of players, given their ids, in the order of `names`."""
        indices = [index for index, name in enumerate(self.names) if name in players]
        return self.rows_at(np.array(indices, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [*self.rows_at(self.order[index])]
        return next(self.rows_at(self.order[[index]]))

    def __iter__(self) -> Iterator[RankedRow]:
        return self.rows_at(self.order)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]


class RankingInput(NamedTuple):
    """The input from which a list ranks the players.

    names:    the players
    points:   their points in units of 1/scale, after all games and adjustments, including the start
    games:    the number of counted games of each player
    offsets:  the participants of game g are at offsets[g] up to offsets[g + 1] in `players` and `changes`
    players:  for each participant, an index into `names`
    changes:  for each participant, the change of points, in units of 1/scale; empty for running points
    scale:    the number of units per point
    params:   the parameters of the version that ranks the list
    months:   for an annual list, the rows by player of each month that has a list for the same city and group
    excluded: the players who have no rank whatever their points, with the reason
    places:   if the list reads places, the place of each participant in the game, 0 if not classified
    states:   under a rule with state, a sequence for each state column, by player; otherwise empty
    rank_values: the value by which each player is ranked on running points, in units of 1/scale; None: the points
    more_places: by slot, for a club that sums the points of its players: the places of its other players, ascending
    ids:      for long lists, which numpy ranks, the position of each player's id among the sorted ids
    ranked_by: a description of `rank_values`, as in `Version.ranked_by`
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
    rank_values: Sequence[int] | None = None
    more_places: Mapping[int, Sequence[int]] = {}
    ranked_by: str | None = None

    def list_changes(self, player: int) -> Iterator[tuple[int, int]]:
        """Yield (game, change) for each game of a player, in order."""
        for game in range(len(self.offsets) - 1):
            for slot in range(self.offsets[game], self.offsets[game + 1]):
                if self.players[slot] == player:
                    yield game, self.changes[slot]


class ExplainedLine(NamedTuple):
    """One line of an explanation; `amount` may be None. `assumes` names the parameters that determine the line."""

    term: str
    amount: Fraction | None
    detail: str
    assumes: tuple[str, ...] = ()


def explain_too_few(games: int, min_games: int) -> list[ExplainedLine]:
    """Explain that a player has too few games for a rank; return an empty list if the player has enough."""
    if games >= min_games:
        return []
    message = f"{games} of {min_games} games; {min_games - games} more needed"
    return [ExplainedLine("no rank", None, message, ("min_games",))]


def rank_rows(rows: Sequence[RankedRow], key: Callable[[RankedRow], Any]) -> list[RankedRow]:
    """Rank rows by key, the lowest first, then by id. Equal keys share a rank, and the following ranks are skipped.

    Unqualified rows come last, without a rank, and do not affect the ranks of the others.
    """
    ordered = sorted([(not row.qualified, key(row), row.player, row) for row in rows])
    ranked_rows: list[RankedRow] = []
    previous_key = rank = None
    for index, (unqualified, row_key, _, row) in enumerate(ordered, 1):
        if unqualified:
            rank = None
        elif rank is None or row_key != previous_key:
            previous_key, rank = row_key, index
        ranked_rows.append(RankedRow._make((rank, *row[1:])))
    return ranked_rows

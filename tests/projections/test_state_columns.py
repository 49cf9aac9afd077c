"""The loop with several state columns: the books are kept for the first; all are stored before and after each game."""

from types import FunctionType
from typing import Any

import numpy as np

from ratings_ledger.projections.replay import loops
from ratings_ledger.rules import UNITS_MAX

# three players, and the games of 0 and 1, of 1 and 2, and of 0 and 2
OFFSETS, PLAYERS = [0, 2, 4, 6], [0, 1, 1, 2, 0, 2]


def change_both_columns(n: int, before: Any, columns: Any, constants: Any, table: Any, change: Any) -> int:
    """Give the first of two players a point and a tenth of their second column, which is 100 after any game."""
    points = 1 + before[1][0] // 10
    change[0][0], change[0][1] = points, -points
    for player in range(n):
        change[1][player] = 100
    return 0


def exceed_bounds(n: int, before: Any, columns: Any, constants: Any, table: Any, change: Any) -> int:
    """Change only the second column, by more than the bound."""
    change[1][1] = UNITS_MAX + 1
    return 0


def run_loop(change_states: Any) -> tuple[int, Any, Any, list[int]]:
    """Return the loop's code, all states, those before every game, and the totals; players begin with 500 and 7."""
    loop = FunctionType(loops.run_ladder.__code__, {**vars(loops), "change_states": change_states})
    states, before, room = np.zeros((2, 3), int), np.zeros((2, 6), int), np.zeros((2, 2, 2), int)
    begin, games, totals = np.array([[500] * 3, [7] * 3]), np.zeros(3, int), [0] * 6
    # before the second game, the third player loses 40
    adjusted = [1], [2], [-40], [0], np.array([[500], [7]]), np.zeros((2, 1), int)
    code = loop((), (), 0, 3, begin, OFFSETS, PLAYERS, np.zeros((0, 6), int), 0, 0, 0, states, games, [0] * 3, totals,
                *room, np.zeros((2, 0), int), before, [], 0, *adjusted)  # fmt: skip
    assert games.tolist() == ([2, 2, 2] if code == loops.OK else [1, 1, 0])
    return code, states.tolist(), before.tolist(), totals


def test_only_first_column_is_in_the_books():
    """The second column decides changes of the first, and only the first is in the books and adjusted."""
    code, states, before, totals = run_loop(change_both_columns)
    assert code == loops.OK
    # a tenth of 7 is no point, a tenth of 107 is ten
    assert before == [[500, 500, 499, 460, 501, 449], [7, 7, 107, 7, 107, 107]]
    assert states == [[512, 510, 438], [207, 207, 207]]
    assert totals[:4] == [1500, 0, 0, -40]


def test_every_column_has_bounds():
    """A ladder fails if any state column grows out of bounds, not only the points."""
    code, states, _, _ = run_loop(exceed_bounds)
    assert code == loops.OVERFLOW
    assert states[1][1] == 7

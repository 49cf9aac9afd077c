"""Kernels of rules with state that overflow, yield NaN or divide by zero: only their ladder fails, and the error names
the game and the line, interpreted and compiled; all other ladders answer.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lengths import mark_long_values
from own_rules import needs_numba, publish_without_trial, substitute_rule
from state_rules import BY_GAME, BY_PERIOD, SCALE
from thresholds import set_thresholds

from ratings_ledger.rules import UNITS_MAX, Rule, exp, ln, real, root, units

Ratings = Callable[..., Any]
SOUND_LADDER = "elo-chess/all"
GAMES = 6
LINES = Path(__file__).read_text(encoding="utf-8").splitlines()

# the kernels fail in the game that has a place 3


def score_infinity(n, before, columns, constants, table, after):
    huge = 1e200
    for i in range(n):
        if columns[0][i] == 3:
            after[0][i] = units(huge * huge, SCALE)  # fails: infinite
    return 0


def score_nan(n, before, columns, constants, table, after):
    huge = 1e200
    for i in range(n):
        if columns[0][i] == 3:
            after[1][i] = units(huge * huge - huge * huge, SCALE)  # fails: nan
    return 0


def divide_by_zero(n, before, columns, constants, table, after):
    for i in range(n):
        if 1.0 / (3.0 - real(columns[0][i], 1)) > 2.0:  # fails: zero
            after[0][i] = before[0][i]
    return 0


def divide_integers_by_zero(n, before, columns, constants, table, after):
    for i in range(n):
        after[1][i] = before[1][i] + 0 * (1 // (3 - columns[0][i]))  # fails: whole_zero
    return 0


def take_logarithm(n, before, columns, constants, table, after):
    for i in range(n):
        after[1][i] = units(ln(3.0 - real(columns[0][i], 1)), SCALE)  # fails: logarithm
    return 0


def take_exponent(n, before, columns, constants, table, after):
    for i in range(n):
        after[1][i] = units(exp(300.0 * (real(columns[0][i], 1) - 2.9)), SCALE) * 0  # fails: exponent
    return 0


def take_square_root(n, before, columns, constants, table, after):
    for i in range(n):
        after[1][i] = units(root(2.5 - real(columns[0][i], 1)), SCALE)  # fails: square_root
    return 0


def score_inexact(n, before, columns, constants, table, after):
    for i in range(n):
        after[1][i] = units(real(before[1][i] + (columns[0][i] // 3) * 2**53, SCALE), SCALE)  # fails: too_large
    return 0


def score_out_of_bounds(n, before, columns, constants, table, after):
    for i in range(n):
        after[1][i] = UNITS_MAX * (1 + columns[0][i] // 3)
    return 0


def score_past_the_end(n, before, columns, constants, table, after):
    for i in range(n):
        after[columns[0][i] // 3 * 2][i] = before[0][i]  # fails: past_the_end
    return 0


def score_unbalanced(n, before, columns, constants, table, after):
    for i in range(n):
        after[0][i] = before[0][i] + columns[0][i] // 3
    return 0


KERNELS: dict[str, tuple[Callable[..., int], str]] = {
    "infinite": (score_infinity, "OverflowError: the result is not a number, or too large"),
    "nan": (score_nan, "OverflowError: the result is not a number, or too large"),
    "zero": (divide_by_zero, "ZeroDivisionError: "),
    "whole_zero": (divide_integers_by_zero, "ZeroDivisionError: "),
    "logarithm": (take_logarithm, "ValueError: the logarithm needs a positive number below 1e300"),
    "exponent": (take_exponent, "OverflowError: the result is not a number, or too large"),
    "square_root": (take_square_root, "ValueError: the square root needs a number of at least 0"),
    "too_large": (score_inexact, "OverflowError: a number is too large for exact arithmetic"),
    "out_of_bounds": (score_out_of_bounds, "score set k to 20,000,000,000,000,000 units, which is out of bounds"),
    "past_the_end": (score_past_the_end, "IndexError: "),
    "unbalanced": (score_unbalanced, "the books do not balance: score minted 0, and the changes sum to 1"),
}


def divide_by_zero_in_period(players, before, offsets, rows, constants, table, after):
    for row in range(offsets[players]):
        after[1][rows[0][row]] = before[1][0] // (3 - rows[2][row])  # fails: divide_by_zero_in_period
    return 0


def yield_nan_in_period(players, before, offsets, rows, constants, table, after):
    huge = 1e200
    for row in range(offsets[players]):
        if rows[2][row] == 3:
            after[1][rows[0][row]] = units(huge * huge - huge * huge, SCALE)  # fails: yield_nan_in_period
    return 0


def age_by_zero(state, elapsed, constants):
    return (state[0], state[1] // (elapsed - 3))  # fails: age_by_zero


def overflow_in_new_season(state, constants):
    return (state[0], units(1e200 * 1e200, SCALE) * state[1])  # fails: overflow_in_new_season


def make_chess_ledger(ratings: Ratings, url: str) -> None:
    """Make a ledger for chess."""
    assert ratings("init", "--for", "chess", "--zone", "UTC", db=url).exit_code == 0


pytestmark = pytest.mark.ledger(make=make_chess_ledger, store="sqlite")


def import_games(ratings: Ratings, db: str) -> None:
    """Import games of two players, one of three on day 5, and one more of two, in two seasons."""
    lines = []
    for number in range(GAMES):
        players = ["anna", "ben", "cleo"] if number == 4 else ["anna", "ben"]
        seats = [{"player": player, "place": place} for place, player in enumerate(players, 1)]
        data = {"game_id": f"g-{number}", "game": "chess", "season": "1" if number < 3 else "2", "participants": seats}
        at = f"2024-01-0{number + 1 if number < GAMES - 1 else 8}T12:00:00Z"
        lines.append(json.dumps({"type": "game.recorded", "occurred_at": at, "data": data}))
    result = ratings("import", "-", "--format", "json", db=db, input="\n".join(lines))
    assert json.loads(result.stdout)["appended"] == GAMES, result


def find_failing_line(name: str) -> int | None:
    """Return the line of this file in which a kernel fails, if it has one."""
    return next((number for number, line in enumerate(LINES, 1) if line.endswith(f"# fails: {name}")), None)


def publish(monkeypatch: pytest.MonkeyPatch, db: str, rule: Rule, members: str = "") -> None:
    """Publish a ruleset of a rule without a trial."""
    substitute_rule(monkeypatch, rule, "own/1")
    head = f'id = "own"\nversion = "1"\nrule = "own/1"\neffective_from = 2000-01-01\ntime_zone = "UTC"\n{members}\n'
    publish_without_trial(db, f'{head}[scope]\ngame = ["chess"]\n')


def check_failure(
    ratings: Ratings, db: str, *, game: str, message: str, line: int | None, is_thorough: bool = False
) -> None:
    """Check that answers about the ladder fail with this game, message and line, while other ladders answer and games
    can be recorded.
    """
    pattern = rf"own: the rule failed at position \d+ \(game {game}\): {re.escape(message)}"
    pattern += rf".*\(test_failing_kernels\.py, line {line or r'[0-9]+'}\)"
    ladder_commands = ("standings", "own"), ("history", "anna", "own"), ("books", "own"), ("explain", game, "own")
    other_commands = (("publish", "own"), ("export", "standings"), ("rebuild",), ("verify",)) if is_thorough else ()
    for command in (*ladder_commands, *other_commands):
        result = ratings(*command, db=db)
        assert result.exit_code == 1, (command, result)
        assert "this is a bug" not in result.stderr
        assert "Traceback" not in result.stderr
        if command[0] != "verify":
            assert re.search(pattern, result.stderr), (command, result.stderr)
    for command in (("standings", SOUND_LADDER), ("explain", "g-4", SOUND_LADDER)):
        assert ratings(*command, db=db).exit_code == 0, command
    ladders = json.loads(ratings("ladders", "--format", "json", db=db).stdout)["rows"]
    assert SOUND_LADDER in [row["ladder"] for row in ladders]
    result = ratings(
        "record", "--game", "chess", "--game-id", "late", "--at", "2024-02-01T12:00Z", "anna", "ben", db=db
    )
    assert result.exit_code == 0, result


@pytest.mark.parametrize("name", KERNELS)
def test_failing_kernel_is_reported_with_game_and_line(
    name: str, db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that fails in a game makes only its own ladder fail, with that game and the line of the kernel."""
    kernel, message = KERNELS[name]
    publish(monkeypatch, db, BY_GAME._replace(score=kernel))
    import_games(ratings, db)
    check_failure(ratings, db, game="g-4", message=message, line=find_failing_line(name), is_thorough=name == "nan")


@pytest.mark.slow
@needs_numba
@pytest.mark.parametrize("name", mark_long_values(["nan", "past_the_end"], KERNELS))
def test_failing_compiled_kernel_is_reported_with_game_and_line(
    name: str, db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing compiled kernel is reported with the same game and line as an interpreted one."""
    set_thresholds(monkeypatch, compiled_games=1)
    kernel, message = KERNELS[name]
    publish(monkeypatch, db, BY_GAME._replace(score=kernel))
    import_games(ratings, db)
    check_failure(ratings, db, game="g-4", message=message, line=find_failing_line(name))


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=[pytest.mark.at_length, needs_numba])])
@pytest.mark.parametrize(
    ("members", "changes", "game", "message"),
    [
        ('period = "day"', {"score_period": divide_by_zero_in_period}, "g-4", "ZeroDivisionError: "),
        # in a week, the first game is named
        ('period = "week"', {"score_period": yield_nan_in_period}, "g-0", "OverflowError: the result is not a num"),
        ("", {"age": age_by_zero}, "g-5", "ZeroDivisionError: "),
        (
            'season_by = "season"',
            {"new_season": overflow_in_new_season, "age": None},
            "g-3",
            "OverflowError: the result is",
        ),
    ],
    ids=["day", "week", "age", "season"],
)
def test_failing_period_age_and_season_are_reported_with_game_and_line(
    members: str,
    changes: dict[str, Any],
    game: str,
    message: str,
    compiled: bool,
    db: str,
    ratings: Ratings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A failure in a period, in the aging between games or in a new season is reported with a game and a line."""
    if compiled:
        set_thresholds(monkeypatch, compiled_games=1)
    rule = (BY_PERIOD if "period" in members else BY_GAME)._replace(**changes)
    publish(monkeypatch, db, rule, members)
    import_games(ratings, db)
    (function,) = [value.__name__ for value in changes.values() if value is not None]
    check_failure(ratings, db, game=game, message=message, line=find_failing_line(function), is_thorough=not compiled)

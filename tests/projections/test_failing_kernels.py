"""Kernels of rules with state that overflow, reckon with what is no number, or divide by zero: their ladder fails
alone, with the game and the line, interpreted and compiled; every other ladder answers."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lengths import mark_long_values
from own_rules import publish_without_trial, substitute_rule
from state_rules import BY_GAME, BY_PERIOD, SCALE
from thresholds import set_thresholds

from ratings_ledger.projections import compiling
from ratings_ledger.rules import UNITS_MAX, Rule, exp, ln, real, root, units

Ratings = Callable[..., Any]
SOUND = "elo-chess/all"
GAMES = 6
# in the game in which a place is 3, the kernels go wrong
LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


def infinite(n, before, columns, constants, table, after):
    huge = 1e200
    for i in range(n):
        if columns[0][i] == 3:
            after[0][i] = units(huge * huge, SCALE)  # fails: infinite
    return 0


def nan(n, before, columns, constants, table, after):
    huge = 1e200
    for i in range(n):
        if columns[0][i] == 3:
            after[1][i] = units(huge * huge - huge * huge, SCALE)  # fails: nan
    return 0


def zero(n, before, columns, constants, table, after):
    for i in range(n):
        if 1.0 / (3.0 - real(columns[0][i], 1)) > 2.0:  # fails: zero
            after[0][i] = before[0][i]
    return 0


def whole_zero(n, before, columns, constants, table, after):
    for i in range(n):
        after[1][i] = before[1][i] + 0 * (1 // (3 - columns[0][i]))  # fails: whole_zero
    return 0


def logarithm(n, before, columns, constants, table, after):
    for i in range(n):
        after[1][i] = units(ln(3.0 - real(columns[0][i], 1)), SCALE)  # fails: logarithm
    return 0


def exponent(n, before, columns, constants, table, after):
    for i in range(n):
        after[1][i] = units(exp(300.0 * (real(columns[0][i], 1) - 2.9)), SCALE) * 0  # fails: exponent
    return 0


def square_root(n, before, columns, constants, table, after):
    for i in range(n):
        after[1][i] = units(root(2.5 - real(columns[0][i], 1)), SCALE)  # fails: square_root
    return 0


def too_large(n, before, columns, constants, table, after):
    for i in range(n):
        after[1][i] = units(real(before[1][i] + (columns[0][i] // 3) * 2**53, SCALE), SCALE)  # fails: too_large
    return 0


def out_of_bounds(n, before, columns, constants, table, after):
    for i in range(n):
        after[1][i] = UNITS_MAX * (1 + columns[0][i] // 3)
    return 0


def past_the_end(n, before, columns, constants, table, after):
    for i in range(n):
        after[columns[0][i] // 3 * 2][i] = before[0][i]  # fails: past_the_end
    return 0


def unbalanced(n, before, columns, constants, table, after):
    for i in range(n):
        after[0][i] = before[0][i] + columns[0][i] // 3
    return 0


KERNELS: dict[str, tuple[Callable[..., int], str]] = {
    "infinite": (infinite, "OverflowError: the result is not a number, or too large"),
    "nan": (nan, "OverflowError: the result is not a number, or too large"),
    "zero": (zero, "ZeroDivisionError: "),
    "whole_zero": (whole_zero, "ZeroDivisionError: "),
    "logarithm": (logarithm, "ValueError: the logarithm of a number that is not positive"),
    "exponent": (exponent, "OverflowError: the result is not a number, or too large"),
    "square_root": (square_root, "ValueError: the square root of a negative number"),
    "too_large": (too_large, "OverflowError: a number is too large for exact arithmetic"),
    "out_of_bounds": (out_of_bounds, "score set k to 20,000,000,000,000,000 units, which is out of bounds"),
    "past_the_end": (past_the_end, "IndexError: "),
    "unbalanced": (unbalanced, "the books do not balance: score minted 0, but the changes sum to 1"),
}


def divides_in_period(players, before, offsets, rows, constants, table, after):
    for row in range(offsets[players]):
        after[1][rows[0][row]] = before[1][0] // (3 - rows[2][row])  # fails: divides_in_period
    return 0


def is_no_number_in_period(players, before, offsets, rows, constants, table, after):
    huge = 1e200
    for row in range(offsets[players]):
        if rows[2][row] == 3:
            after[1][rows[0][row]] = units(huge * huge - huge * huge, SCALE)  # fails: is_no_number_in_period
    return 0


def ages_wrongly(state, elapsed, constants):
    return (state[0], state[1] // (elapsed - 3))  # fails: ages_wrongly


def begins_wrongly(state, constants):
    return (state[0], units(1e200 * 1e200, SCALE) * state[1])  # fails: begins_wrongly


def club(ratings: Ratings, url: str) -> None:
    """Make a ledger for chess."""
    assert ratings("init", "--for", "chess", "--zone", "UTC", db=url).exit_code == 0


pytestmark = pytest.mark.ledger(make=club, store="sqlite")


def take_in(ratings: Ratings, db: str) -> None:
    """Record games of two players, one of three on day 5, and one more of two, in two seasons."""
    lines = []
    for number in range(GAMES):
        players = ["anna", "ben", "cleo"] if number == 4 else ["anna", "ben"]
        seats = [{"player": player, "place": place} for place, player in enumerate(players, 1)]
        data = {"game_id": f"g-{number}", "game": "chess", "season": "1" if number < 3 else "2", "participants": seats}
        at = f"2024-01-0{number + 1 if number < GAMES - 1 else 8}T12:00:00Z"
        lines.append(json.dumps({"type": "game.recorded", "occurred_at": at, "data": data}))
    told = ratings("import", "-", "--format", "json", db=db, input="\n".join(lines))
    assert json.loads(told.stdout)["appended"] == GAMES, told


def line_of(name: str) -> int | None:
    """The line of this file in which a kernel fails, if it has one."""
    return next((number for number, line in enumerate(LINES, 1) if line.endswith(f"# fails: {name}")), None)


def publish(monkeypatch: pytest.MonkeyPatch, db: str, rule: Rule, members: str = "") -> None:
    """Publish a ruleset of a rule that has not been tried."""
    substitute_rule(monkeypatch, rule, "own/1")
    head = f'id = "own"\nversion = "1"\nrule = "own/1"\neffective_from = 2000-01-01\ntime_zone = "UTC"\n{members}\n'
    publish_without_trial(db, f'{head}[scope]\ngame = ["chess"]\n')


def failing(ratings: Ratings, db: str, *, game: str, message: str, line: int | None, is_thorough: bool = False) -> None:
    """The ladder fails with its game, message and line in answers about it, or in every one; the others answer."""
    where = rf"own: the rule failed at position \d+ \(game {game}\): {re.escape(message)}"
    where += rf".*\(test_failing_kernels\.py, line {line or r'[0-9]+'}\)"
    about = ("standings", "own"), ("history", "anna", "own"), ("books", "own"), ("explain", game, "own")
    others = (("publish", "own"), ("export", "standings"), ("rebuild",), ("verify",)) if is_thorough else ()
    for command in (*about, *others):
        told = ratings(*command, db=db)
        assert told.exit_code == 1, (command, told)
        assert "this is a bug" not in told.stderr
        assert "Traceback" not in told.stderr
        if command[0] != "verify":
            assert re.search(where, told.stderr), (command, told.stderr)
    for command in (("standings", SOUND), ("explain", "g-4", SOUND)):
        assert ratings(*command, db=db).exit_code == 0, command
    ladders = json.loads(ratings("ladders", "--format", "json", db=db).stdout)["rows"]
    assert SOUND in [row["ladder"] for row in ladders]
    told = ratings("record", "--game", "chess", "--game-id", "late", "--at", "2024-02-01T12:00Z", "anna", "ben", db=db)
    assert told.exit_code == 0, told


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_that_fails_names_game_and_line(
    name: str, db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a kernel reckons wrongly in a game, its ladder fails there and nothing else does."""
    kernel, message = KERNELS[name]
    publish(monkeypatch, db, BY_GAME._replace(score=kernel))
    take_in(ratings, db)
    failing(ratings, db, game="g-4", message=message, line=line_of(name), is_thorough=name == "nan")


@pytest.mark.slow
@pytest.mark.skipif(not compiling.is_available(), reason="the extra fast is not installed")
@pytest.mark.parametrize("name", mark_long_values(["nan", "past_the_end"], KERNELS))
def test_compiled_kernel_that_fails_names_the_same(
    name: str, db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long history, whose kernels are compiled, fails at the same game and line."""
    set_thresholds(monkeypatch, compiled_games=1)
    kernel, message = KERNELS[name]
    publish(monkeypatch, db, BY_GAME._replace(score=kernel))
    take_in(ratings, db)
    failing(ratings, db, game="g-4", message=message, line=line_of(name))


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.at_length)])
@pytest.mark.parametrize(
    ("members", "changes", "game", "message"),
    [
        ('period = "day"', {"score_period": divides_in_period}, "g-4", "ZeroDivisionError: "),
        # of a week, the first game
        ('period = "week"', {"score_period": is_no_number_in_period}, "g-0", "OverflowError: the result is not a num"),
        ("", {"age": ages_wrongly}, "g-5", "ZeroDivisionError: "),
        ('season_by = "season"', {"new_season": begins_wrongly, "age": None}, "g-3", "OverflowError: the result is"),
    ],
    ids=["day", "week", "age", "season"],
)
def test_period_age_and_season_that_fail_name_game_and_line(
    members: str, changes: dict[str, Any], game: str, message: str, compiled: bool, db: str, ratings: Ratings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A period, the time between games and a new season fail at a game, like the score of one."""
    if compiled and not compiling.is_available():
        pytest.skip("the extra fast is not installed")
    if compiled:
        set_thresholds(monkeypatch, compiled_games=1)
    rule = (BY_PERIOD if "period" in members else BY_GAME)._replace(**changes)
    publish(monkeypatch, db, rule, members)
    take_in(ratings, db)
    (function,) = [value.__name__ for value in changes.values() if value is not None]
    failing(ratings, db, game=game, message=message, line=line_of(function), is_thorough=not compiled)

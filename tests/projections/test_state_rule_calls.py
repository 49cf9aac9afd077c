"""Calls into rules with state: results are checked, and an error of a rule is a failure with file and line."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from own_rules import load_built_in_rule
from state_rules import BY_GAME, BY_PERIOD, SCALE

from ratings_ledger.projections.replay import rule_calls
from ratings_ledger.projections.replay.rule_calls import PeriodResults, RuleFailure
from ratings_ledger.projections.rulesets.versions import Version
from ratings_ledger.rules import ONE, UNITS_MAX, Rule, Term, units

START = [[1500 * SCALE, 1500 * SCALE, 1900 * SCALE], [40 * SCALE, 20 * SCALE, 10 * SCALE]]
PLACES = [[1, 2, 2]]
# player 0 beats player 1 in the first game and loses to player 2 in the second
PERIOD = PeriodResults(START, [0, 2, 3, 4], [[1, 2, 0, 0], [0, 1, 0, 1], [1, 2, 2, 1], [2, 1, 1, 2]])


def bind_rule(rule: Rule, **params: Any) -> Version:
    """Return a version of a ruleset with this rule."""
    bound_params = rule.params.model_validate(params)
    return Version(None, rule, bound_params, rule.prepare(bound_params), None, 1)  # type: ignore[arg-type]


def find_failure(call: Callable[[], Any]) -> str:
    """Return the message of a failing call; the failure is of the rule of these tests, in this file."""
    with pytest.raises(RuleFailure) as failure:
        call()
    assert failure.value.ladder == "own/all"
    return str(failure.value)


def bind_variant(**members: Any) -> Version:
    """Return a version with a variant of the rule by game."""
    return bind_rule(BY_GAME._replace(**members))


def score_game(version: Version, before: Any = START) -> Any:
    """Return the minted points and the states after a game."""
    return rule_calls.score_states(version, "own/all", 7, before, PLACES)


def test_game_changes_every_column_and_mints_the_difference():
    """A game changes every column, and an unbalanced sum of changes is minted."""
    minted, after = score_game(bind_rule(BY_GAME))
    # expected score 1/2 against player 1 and 1/11 against player 2: 20 + 36.36, -10 + 8.18, and -9.09 - 4.09
    assert [value // SCALE for value in after[0]] == [1556, 1498, 1886]
    assert after[1] == [36 * SCALE, 18 * SCALE, 10 * SCALE]
    assert minted == sum(after[0]) - sum(START[0])


def test_rule_of_contract_1_has_one_column():
    """A rule without state is called with its points, and its changes become states."""
    version = bind_rule(load_built_in_rule("pairwise-elo/1"), k_per_pair=8)
    columns = [[1, 2], [2, 2]]
    minted, after = rule_calls.score_states(version, "elo/all", 0, [[1000 * SCALE] * 2], columns)
    assert (minted, after) == (0, [[1004 * SCALE, 996 * SCALE]])
    terms = rule_calls.explain_states(version, "elo/all", 0, ["a", "b"], [[1000 * SCALE] * 2], columns, after)
    assert [[term.amount for term in player_terms] for player_terms in terms] == [[4 * SCALE], [-4 * SCALE]]


def test_period_is_scored_from_the_states_at_its_start():
    """A period is scored from the states at its start, and its terms belong to rows."""
    version = bind_rule(BY_PERIOD)
    minted, after = rule_calls.score_period_states(version, "own/all", 7, PERIOD)
    # 20 - 40/11 for the first player, -10 for the second, 10/11 for the third
    gains = [Fraction(value - 1500 * SCALE, SCALE).limit_denominator(11) for value in after[0]]
    assert gains == [Fraction(180, 11), -10, 400 + Fraction(10, 11)]
    assert minted == sum(after[0]) - sum(START[0])
    names = ["anna", "ben", "cleo"]
    terms = rule_calls.explain_period(version, "own/all", 7, 0, names, PERIOD, after)
    assert [(row, term.term) for row, term in terms] == [(0, "vs ben"), (1, "vs cleo")]


def score_with_index_error(n, before, columns, constants, table, after):
    return before[0][n]


def score_infinity(n, before, columns, constants, table, after):
    after[0][0] = units(1e300 * 1e300, SCALE)
    return 0


def mint(amount: int) -> Callable[..., int]:
    """Return a function that mints this amount and changes points by 5."""

    def score(n, before, columns, constants, table, after):
        after[0][0] += 5
        return amount

    return score


def fill(column: int, value: Any) -> Callable[..., int]:
    """Return a function that sets a column of player 1 to this value."""

    def score(n, before, columns, constants, table, after):
        after[column][1] = value
        return 0

    return score


def add_row(n, before, columns, constants, table, after):
    after[1].append(0)
    return 0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (score_with_index_error, "IndexError: list index out of range (test_state_rule_calls.py, line "),
        (score_infinity, "OverflowError: the result is not a number, or too large (test_state_rule_calls.py, line "),
        (mint(4), "the books do not balance: score minted 4, but the changes sum to 5 (test_state_rule_calls.py"),
        (mint(-1), "the books do not balance: score minted -1, but the changes sum to 5 (test_state_rule_calls.py"),
        (mint(UNITS_MAX + 1), "the points grow out of bounds: score minted more than "),
        (fill(1, UNITS_MAX + 1), "score set k to 10,000,000,000,000,001 units, which is out of bounds"),
        (fill(1, 2**63), "OverflowError: "),
        (fill(0, 1.5), "TypeError: "),
        (add_row, "score filled in [3, 4] numbers by column, but it must fill in [3, 3] (test_state_rule_calls.py"),
        (lambda *arguments: None, "score returned nothing; a whole number is needed (test_state_rule_calls.py"),
    ],
)  # fmt: skip
def test_wrong_score_is_a_failure(function: Any, message: str):
    """An error in `score` fails the ladder, with the rule's file and line."""
    assert find_failure(lambda: score_game(bind_variant(score=function))).startswith(message)


@pytest.mark.parametrize("value", [UNITS_MAX, -UNITS_MAX])
def test_states_may_reach_their_bounds(value: int):
    """A state may be the largest number of units, positive or negative."""
    assert score_game(bind_variant(score=fill(1, value)))[1][1][1] == value


def test_wrong_score_of_period_is_a_failure():
    """The books of a period are checked like those of a game."""
    version = bind_rule(BY_PERIOD._replace(score_period=lambda *arguments: -1))
    message = find_failure(lambda: rule_calls.score_period_states(version, "own/all", 7, PERIOD))
    assert message.startswith("the books do not balance: score_period minted -1")


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (None, "explain returned nothing; it must return a list of terms for each of the 3 players"),
        ([[Term("x", 1, "")], [], []], "explain returned terms that sum to [1, 0, 0], but the changes are ["),
        ([["x"], [], []], "explain returned 'x'; a term must be a Term of strings and an integer"),
        ([[Term("x", 0, "", values=(("k", 1.5),))], [], []], "explain returned Term(term='x'"),
        ([[Term("x", 0, "", values=((1, 2),))], [], []], "explain returned Term(term='x'"),
    ],
)
def test_wrong_explanation_is_a_failure(terms: Any, message: str):
    """Terms must be terms, and sum to every player's change of column 0."""
    _, after = score_game(bind_rule(BY_GAME))
    version = bind_variant(explain=lambda *arguments: terms)
    names = ["anna", "ben", "cleo"]
    failure = find_failure(lambda: rule_calls.explain_states(version, "own/all", 7, names, START, PLACES, after))
    assert failure.startswith(message)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (None, "explain_period returned nothing; it must return a list of (row, Term) pairs"),
        ([(0, "x")], "explain_period returned 'x'; a term must be a Term"),
        ([(2, Term("x", 1, ""))], "explain_period returned a term for row 2, which is not the player's result"),
        ([(-1, Term("x", 1, ""))], "explain_period returned terms that sum to 1, but the change is "),
    ],
)
def test_wrong_explanation_of_period_is_a_failure(terms: Any, message: str):
    """The terms of a period belong to rows of the player, and sum to the period's change."""
    version = bind_rule(BY_PERIOD._replace(explain_period=lambda *arguments: terms))
    _, after = rule_calls.score_period_states(version, "own/all", 7, PERIOD)
    failure = find_failure(lambda: rule_calls.explain_period(version, "own/all", 7, 0, ["a", "b", "c"], PERIOD, after))
    assert failure.startswith(message)


STATE = (1600 * SCALE, 12 * SCALE)


def test_time_seasons_and_versions_change_a_state():
    """Time, seasons and versions change a state; a rule without these functions leaves it unchanged."""
    version, plain = (
        bind_rule(BY_GAME),
        bind_variant(age=None, new_season=None, enter=None, rank_by=None, provisional=None),
    )
    assert rule_calls.age_state(version, "own/all", 7, STATE, 3) == (1600 * SCALE, 15 * SCALE)
    assert rule_calls.begin_season(version, "own/all", 7, STATE) == (1550 * SCALE, 12 * SCALE)
    assert rule_calls.enter_version(version, "own/all", STATE) == (1600 * SCALE, 40 * SCALE)
    assert rule_calls.age_state(plain, "own/all", 7, STATE, 3) == STATE
    assert rule_calls.begin_season(plain, "own/all", 7, STATE) == STATE
    assert rule_calls.enter_version(plain, "own/all", STATE) == STATE
    assert rule_calls.find_rank_value(version, "own/all", STATE) == 1588 * SCALE
    assert rule_calls.find_rank_value(plain, "own/all", STATE) == 1600 * SCALE
    assert [rule_calls.is_provisional(version, "own/all", STATE, games) for games in (4, 5)] == [True, False]
    assert not rule_calls.is_provisional(plain, "own/all", STATE, 0)


@pytest.mark.parametrize(
    ("age", "message"),
    [
        (lambda state, elapsed, constants: (state[0] + 1, state[1]),
         "age changed rating from 1600000000 to 1600000001; it must not change this column"),
        (lambda state, elapsed, constants: state[:1], "age returned (1600000000,); a tuple of 2 whole numbers"),
        (lambda state, elapsed, constants: list(state), "age returned [1600000000, 12000000]; a tuple of 2 whole"),
        (lambda state, elapsed, constants: (state[0], 0.5), "age returned 0.5; a whole number is needed"),
        (lambda state, elapsed, constants: (state[0], UNITS_MAX + 1), "age returned k 10,000,000,000,000,001 units"),
        (lambda state, elapsed, constants: (state[0], state[1] // (elapsed - 3)), "ZeroDivisionError: "),
    ],
)  # fmt: skip
def test_wrong_state_is_a_failure(age: Any, message: str):
    """A function that changes a state must return a whole number within bounds for every column."""
    failure = find_failure(lambda: rule_calls.age_state(bind_variant(age=age), "own/all", 7, STATE, 3))
    assert failure.startswith(message)
    assert "(test_state_rule_calls.py, line " in failure


def test_chances_of_players_with_states():
    """Chances read the columns of states; a draw probability must leave room for both results."""
    version = bind_rule(BY_GAME)
    arguments = (version, "own/all", 7, 0, 2, START, PLACES)
    expected_score = rule_calls.compute_expected_score(*arguments)
    assert round(11 * expected_score / ONE, 6) == 1
    assert rule_calls.compute_draw_probability(*arguments) == expected_score // 2
    assert rule_calls.compute_draw_probability(bind_variant(draw=None), *arguments[1:]) == 0
    greedy = bind_variant(draw=lambda i, j, *rest: 2 * expected_score)
    assert find_failure(lambda: rule_calls.compute_draw_probability(greedy, *arguments[1:])).startswith(
        f"draw returned {2 * expected_score}, which is too high for the expected score from chance, {expected_score}"
    )


def test_wrong_verdicts_are_failures():
    """`rank_by` must return a whole number, and `provisional` True or False."""
    failure = find_failure(
        lambda: rule_calls.find_rank_value(bind_variant(rank_by=lambda state, params: 0.5), "own/all", STATE)
    )
    assert failure.startswith("rank_by returned 0.5; a whole number is needed")
    unsure = bind_variant(provisional=lambda state, games, params: 1)
    failure = find_failure(lambda: rule_calls.is_provisional(unsure, "own/all", STATE, 0))
    assert failure.startswith("provisional returned 1; it must return True or False")

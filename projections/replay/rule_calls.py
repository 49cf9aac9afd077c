"""Call rules. An error of a rule stops only its own ladder, and the message names the game and the line of the rule.

Rules from packages may have bugs: they may raise, return nothing, omit changes, print, or try to exit. None of these
may affect another ladder. This does not protect from malicious packages, which run with all rights of the program.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.store.log import read_records_at
from ratings_ledger.projections.contract import UNITS_MAX, Columns, Numbers, Rule, StateValues, Term
from ratings_ledger.projections.expected_scores import ONE
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.rulesets.rule_errors import (
    PLAYERS_ARGUMENTS,
    RULE_ERRORS,
    ContractError,
    count_arguments,
    describe_error,
    describe_value,
    read_integer,
    read_state,
    redirect_output,
    rule_table,
)
from ratings_ledger.projections.rulesets.versions import Version


class RuleFailure(Exception):
    """A ladder cannot be replayed: its rule raised or broke the contract at a game, or points went out of bounds.

    ladder:   the name of the ladder or of its ruleset
    row:      the row of the game in the facts; None if no game caused the failure
    position: the log position of the adjustment or version that caused the failure; None if neither did
    """

    def __init__(self, ladder: str, message: str, row: int | None = None, position: int | None = None) -> None:
        super().__init__(message)
        self.ladder = ladder
        self.row = row
        self.position = position

    def describe(self, facts: Facts) -> str:
        """Return a message that names the ladder, the position (if there is one) and the error."""
        position = self.find_position(facts)
        where = f" at position {position}" if position else ""
        return f"{self.ladder}: the rule failed{where}: {self}"

    def find_position(self, facts: Facts) -> int:
        """Return the log position of the game, adjustment or version that caused the failure; 0 without one."""
        return facts.live_position[self.row] if self.row is not None else self.position or 0


def describe_failure(failure: RuleFailure, facts: Facts, connection: Connection) -> str:
    """Return a message that names the ladder, the position and the game (if there are any) and the error."""
    return add_game_id(failure.describe(facts), failure.find_position(facts), connection)


def add_game_id(message: str, position: int, connection: Connection) -> str:
    """Add the id of the game at a position to a message that names the position. Other events add nothing."""
    record = read_records_at(connection, [position]).get(position)
    game_id = None if record is None else json.loads(record)["data"].get("game_id")
    where = f"at position {position}"
    return message.replace(where, f"{where} (game {game_id})" if game_id else where, 1)


def make_failure(
    ladder: str, rule: Rule, error: BaseException, row: int | None, function_name: str = "score"
) -> RuleFailure:
    """Return the failure of a ladder whose rule raised an error in a function at a game."""
    return RuleFailure(ladder, describe_error(error, getattr(rule, function_name)), row)


def _make_version_failure(version: Version, ladder: str, error: BaseException, function_name: str) -> RuleFailure:
    """Return the failure of a ladder whose rule raised an error in a function that no game called."""
    return RuleFailure(
        ladder, describe_error(error, getattr(version.rule, function_name)), position=version.position or None
    )


def check_game(version: Version, ladder: str, row: int | None, n: int, columns: Columns) -> str | None:
    """Return the reason why the rule cannot score a game, or None. Raises `RuleFailure`."""
    rule = version.rule
    if rule.check is None:
        return None
    try:
        with redirect_output(rule):
            reason = rule.check(n, columns, version.params)
        if reason is None or (isinstance(reason, str) and reason.strip()):
            return reason
        raise ContractError(f"check returned {describe_value(reason)}; it must return a message or None")
    except RULE_ERRORS as error:
        raise make_failure(ladder, rule, error, row, "check") from error


def score_game(
    version: Version, ladder: str, row: int | None, points: Numbers, columns: Columns
) -> tuple[int, list[int]]:
    """Return the points that the rule mints at a game, and the changes of all players. Raises `RuleFailure`."""
    rule, n = version.rule, len(points)
    changes = array("q", bytes(8 * n))
    try:
        with redirect_output(rule):
            minted = read_integer(rule.score(n, points, columns, version.constants, rule_table(rule), changes), "score")
        return minted, check_balance(n, minted, changes)
    except RULE_ERRORS as error:
        raise make_failure(ladder, rule, error, row) from error


def check_balance(n: int, minted: int, changes: array[int]) -> list[int]:
    """Return as a list the n changes that a rule filled in.

    Raises `ContractError` if the rule resized the array, minted too many points, or if the books do not balance.
    """
    change_list = changes.tolist()
    if len(change_list) != n:
        raise ContractError(
            f"score resized the array of changes from {n} to {len(change_list)} entries; it must only set the entries"
        )
    if minted > UNITS_MAX:
        raise ContractError(f"the points grow out of bounds: score minted more than {UNITS_MAX:,} units")
    if minted < 0 or minted < sum(change_list):
        raise ContractError(
            f"the books do not balance: score minted {minted}, and the changes sum to {sum(change_list)}; "
            "it must mint at least 0 and at least this sum"
        )
    return change_list


def explain_game(
    version: Version,
    ladder: str,
    row: int,
    names: Sequence[str],
    points: Numbers,
    columns: Columns,
    change: Sequence[int],
) -> list[list[Term]]:
    """Return, for every player, the terms that explain the change at a game.

    Raises `RuleFailure` if the rule fails or the terms do not sum to the changes.
    """
    return _call_explain(version, ladder, row, change, (len(names), names, points, columns, version.params, change))


def _call_explain(
    version: Version, ladder: str, row: int, change: Sequence[int], arguments: tuple[Any, ...]
) -> list[list[Term]]:
    """Call a rule's `explain` and check that the terms sum to the changes. Raises `RuleFailure`."""
    rule = version.rule
    try:
        with redirect_output(rule):
            terms = rule.explain(*arguments)
        _check_terms(terms, change)
    except RULE_ERRORS as error:
        raise make_failure(ladder, rule, error, row, "explain") from error
    return terms


def _check_terms(terms: Any, change: Sequence[int]) -> None:
    """Raise `ContractError` unless `terms` has a list for each change, whose terms sum to the change."""
    if (
        not isinstance(terms, list)
        or len(terms) != len(change)
        or not all(isinstance(player_terms, list) for player_terms in terms)
    ):
        raise ContractError(
            f"explain returned {describe_value(terms)}; it must return a list of terms for each of the "
            f"{len(change)} players"
        )
    for term in (term for player_terms in terms for term in player_terms):
        if not _is_term(term):
            raise ContractError(
                f"explain returned {describe_value(term)}; a term must be a Term with members of its declared types"
            )
    sums = [sum(term.amount for term in player_terms) for player_terms in terms]
    if sums != list(change):
        raise ContractError(f"explain returned terms that sum to {sums}, but the changes are {list(change)}")


def _is_term(value: Any) -> bool:
    """Tell whether a value from a rule is a `Term` whose members have the types of the contract."""
    if not isinstance(value, Term) or not all(map(isinstance, value, (str, int, str, str, tuple, tuple))):
        return False
    pair_types = ((str, Fraction), (str, int))
    return all(isinstance(pair, tuple) and (*map(type, pair),) in pair_types for pair in value.values)


def remark_on_game(version: Version, ladder: str, row: int, names: Sequence[str], columns: Columns) -> str | None:
    """Return the rule's remark on a whole game, or None if the rule has no `remark`. Raises `RuleFailure`."""
    rule = version.rule
    if rule.remark is None:
        return None
    try:
        with redirect_output(rule):
            remark = rule.remark(len(names), names, columns, version.params)
        if isinstance(remark, str):
            return remark
        raise ContractError(f"remark returned {describe_value(remark)}; it must return a string")
    except RULE_ERRORS as error:
        raise make_failure(ladder, rule, error, row, "remark") from error


def compute_expected_score(
    version: Version, ladder: str, row: int | None, i: int, j: int, points: Numbers | Columns, columns: Columns
) -> int:
    """Return the expected score of player i against player j, in units of 2^-32. The rule must have a `chance`.

    For a rule with state, `points` are its state columns. Raises `RuleFailure` if the rule fails, or if the score is
    not strictly between 0 and 1.
    """
    rule = version.rule
    assert rule.chance is not None
    try:
        arguments: tuple[Any, ...] = (i, j, points, columns)
        if not rule.state and count_arguments(rule.chance) != PLAYERS_ARGUMENTS:
            arguments = (points[i], points[j])
        with redirect_output(rule):
            expected = read_integer(rule.chance(*arguments, version.constants, rule_table(rule)), "chance")
        if not 0 < expected < ONE:
            raise ContractError(f"chance returned {expected}; it must be strictly between 0 and 2^32 = {ONE}")
        return expected
    except RULE_ERRORS as error:
        raise make_failure(ladder, rule, error, row, "chance") from error


# ------------------------------------------------------------------------------------------------ rules with state


def score_states(
    version: Version, ladder: str, row: int | None, before: Columns, columns: Columns
) -> tuple[int, list[list[int]]]:
    """Return the points that the rule mints at a game, and the states of all players after it.

    Args:
        before: by state column, the states of all players before the game; a rule of contract 1 has one column
        columns: the columns that the rule reads, in the order of `Rule.columns`

    Raises `RuleFailure`, with the rule's file and line.
    """
    rule, n = version.rule, len(before[0])
    if not rule.state:
        minted, change = score_game(version, ladder, row, before[0], columns)
        return minted, [[points + gain for points, gain in zip(before[0], change, strict=True)]]
    after = [array("q", column) for column in before]
    try:
        with redirect_output(rule):
            minted = read_integer(rule.score(n, before, columns, version.constants, rule_table(rule), after), "score")
        return minted, read_states_after(rule, before, after, minted, "score")
    except RULE_ERRORS as error:
        raise make_failure(ladder, rule, error, row) from error


class PeriodResults(NamedTuple):
    """The results of a rating period, in the form that a rule reads.

    before:  by state column, the states of all players at the start of the period
    offsets: the results of player p have the indices offsets[p] to offsets[p + 1] - 1 in each column of `rows`
    rows:    the opponents, the games, the rule's columns for the player, and its columns for the opponent
    """

    before: Columns
    offsets: Numbers
    rows: Columns


def score_period_states(
    version: Version, ladder: str, row: int | None, results: PeriodResults
) -> tuple[int, list[list[int]]]:
    """Return the points that the rule mints in a period, and the states of all players after the period, by column.

    Raises `RuleFailure`, which names the game at `row`.
    """
    rule, before = version.rule, results.before
    assert rule.score_period is not None
    after = [array("q", column) for column in before]
    try:
        with redirect_output(rule):
            minted = rule.score_period(len(before[0]), *results, version.constants, rule_table(rule), after)
        return read_integer(minted, "score_period"), read_states_after(rule, before, after, minted, "score_period")
    except RULE_ERRORS as error:
        raise make_failure(ladder, rule, error, row, "score_period") from error


def read_states_after(rule: Rule, before: Columns, after: Columns, minted: int, function_name: str) -> list[list[int]]:
    """Return as lists the states that a rule filled in, by column.

    Raises `ContractError` if the rule resized a column, if a state or `minted` is out of bounds, or if the books do not
    balance for column 0, the points.
    """
    states, n = [list(column) for column in after], len(before[0])
    if [len(column) for column in states] != [n] * rule.width:
        raise ContractError(
            f"{function_name} filled in {[len(column) for column in states]} numbers by column, "
            f"but it must fill in {[n] * rule.width}"
        )
    for column, values in zip(rule.state, states, strict=True):
        if wrong_value := next((value for value in values if abs(value) > UNITS_MAX), None):
            raise ContractError(
                f"{function_name} set {column.name} to {wrong_value:,} units, which is out of bounds ({UNITS_MAX:,})"
            )
    if minted > UNITS_MAX:
        raise ContractError(f"the points grow out of bounds: {function_name} minted more than {UNITS_MAX:,} units")
    gained = sum(states[0]) - sum(before[0])
    if minted < 0 or minted < gained:
        raise ContractError(
            f"the books do not balance: {function_name} minted {minted}, and the changes sum to {gained}; "
            "it must mint at least 0 and at least this sum"
        )
    return states


def explain_states(
    version: Version, ladder: str, row: int, names: Sequence[str], before: Columns, columns: Columns, after: Columns
) -> list[list[Term]]:
    """Return, for every player, the terms that explain the change of column 0 at a game.

    Raises `RuleFailure` if the rule fails or the terms do not sum to the changes.
    """
    change = subtract(after[0], before[0])
    if not version.rule.state:
        return explain_game(version, ladder, row, names, before[0], columns, change)
    return _call_explain(version, ladder, row, change, (len(names), names, before, columns, version.params, after))


def explain_period(
    version: Version, ladder: str, row: int, player: int, names: Sequence[str], results: PeriodResults, after: Columns
) -> list[tuple[int, Term]]:
    """Return the terms that explain a player's change of column 0 in a period, as pairs (result, term).

    The result is an index into each column of `results.rows`, or -1 for a term about the whole period.

    Raises `RuleFailure` if the rule fails or the terms do not sum to the change.
    """
    rule, offsets = version.rule, results.offsets
    change = after[0][player] - results.before[0][player]
    assert rule.explain_period is not None
    try:
        with redirect_output(rule):
            terms = rule.explain_period(player, names, *results, version.params, after)
        if not isinstance(terms, list) or not all(isinstance(term, tuple) and len(term) == 2 for term in terms):
            raise ContractError(
                f"explain_period returned {describe_value(terms)}; it must return a list of (row, Term) pairs"
            )
        player_rows = range(offsets[player], offsets[player + 1])
        for index, term in terms:
            if not _is_term(term):
                raise ContractError(
                    f"explain_period returned {describe_value(term)}; "
                    "a term must be a Term with members of its declared types"
                )
            if index != -1 and index not in player_rows:
                allowed = f"from {player_rows[0]} to {player_rows[-1]}, or -1" if player_rows else "-1"
                raise ContractError(
                    f"explain_period returned a term for row {describe_value(index)}; the row must be {allowed}"
                )
        if (total := sum(term.amount for _, term in terms)) != change:
            raise ContractError(f"explain_period returned terms that sum to {total}, but the change is {change}")
    except RULE_ERRORS as error:
        raise make_failure(ladder, rule, error, row, "explain_period") from error
    return terms


def subtract(after: Numbers, before: Numbers) -> list[int]:
    """Return the differences between two columns, number by number."""
    return [new - old for new, old in zip(after, before, strict=True)]


def age_state(version: Version, ladder: str, row: int | None, state: StateValues, elapsed: int) -> StateValues:
    """Return a player's state after `elapsed` days or periods without a counted game. Raises `RuleFailure`."""
    aged = _change_state(version, ladder, row, "age", state, elapsed)
    if aged[0] != state[0]:
        message = (
            f"age changed {version.rule.state[0].name} from {state[0]} to {aged[0]}; it must not change this column"
        )
        raise make_failure(ladder, version.rule, ContractError(message), row, "age")
    return aged


def begin_season(version: Version, ladder: str, row: int | None, state: StateValues) -> StateValues:
    """Return the state with which a player starts a new season. Raises `RuleFailure`."""
    return _change_state(version, ladder, row, "new_season", state)


def bring_to_game(
    version: Version, ladder: str, row: int | None, state: StateValues, changes_season: int, elapsed: int
) -> StateValues:
    """Return a player's state before a game, given the state after their previous game. Raises `RuleFailure`.

    A new season (if `changes_season`) is applied before the elapsed time.
    """
    if changes_season:
        state = begin_season(version, ladder, row, state)
    return age_state(version, ladder, row, state, elapsed) if elapsed > 0 else state


def enter_version(version: Version, ladder: str, state: StateValues) -> StateValues:
    """Return a player's state after this version of a ruleset takes effect. Raises `RuleFailure`."""
    return _change_state(version, ladder, None, "enter", state)


def _change_state(
    version: Version, ladder: str, row: int | None, function_name: str, state: StateValues, *arguments: int
) -> StateValues:
    """Apply a function of a rule to a state. Return the state unchanged if the rule lacks the function."""
    rule = version.rule
    function = getattr(rule, function_name)
    if function is None:
        return state
    try:
        with redirect_output(rule):
            return read_state(rule, function(state, *arguments, version.constants), function_name)
    except RULE_ERRORS as error:
        if row is None:
            raise _make_version_failure(version, ladder, error, function_name) from error
        raise make_failure(ladder, rule, error, row, function_name) from error


def find_rank_value(version: Version, ladder: str, state: StateValues) -> int:
    """Return the value by which a player with this state is ranked, in units of column 0. Raises `RuleFailure`."""
    rule = version.rule
    if rule.rank_by is None:
        return state[0]
    try:
        with redirect_output(rule):
            return read_integer(rule.rank_by(state, version.params), "rank_by")
    except RULE_ERRORS as error:
        raise _make_version_failure(version, ladder, error, "rank_by") from error


def is_provisional(version: Version, ladder: str, state: StateValues, games: int) -> bool:
    """Tell whether a rating after this number of games is provisional, according to its rule. Raises `RuleFailure`."""
    rule = version.rule
    if rule.provisional is None:
        return False
    try:
        with redirect_output(rule):
            verdict = rule.provisional(state, games, version.params)
        if not isinstance(verdict, bool):
            raise ContractError(f"provisional returned {describe_value(verdict)}; it must return True or False")
        return verdict
    except RULE_ERRORS as error:
        raise _make_version_failure(version, ladder, error, "provisional") from error


def compute_draw_probability(
    version: Version, ladder: str, row: int | None, i: int, j: int, before: Columns, columns: Columns
) -> int:
    """Return the probability that players i and j draw, in units of 2^-32; 0 if the rule has no `draw`.

    Raises `RuleFailure` if the rule fails, or if the probability is impossible with the expected score.
    """
    rule = version.rule
    if rule.draw is None:
        return 0
    expected = compute_expected_score(version, ladder, row, i, j, before, columns)
    try:
        with redirect_output(rule):
            probability = read_integer(rule.draw(i, j, before, columns, version.constants, rule_table(rule)), "draw")
        limit = 2 * min(expected, ONE - expected)
        if not 0 <= probability < limit:
            raise ContractError(
                f"draw returned {probability}; with the expected score {expected} from chance, it must be at least 0 "
                f"and less than {limit}"
            )
        return probability
    except RULE_ERRORS as error:
        raise make_failure(ladder, rule, error, row, "draw") from error

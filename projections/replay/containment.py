"""The door to rules: whatever a rule does wrong fails only its own ladder, by name, with the game and the rule's line.

A rule from a package is trusted code that may be wrong. It may raise, return nothing, leave changes out, print, or try
to end the program; none of that may affect another ladder. (It is no defence against malice: a package runs with all
rights.)
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.store.log import read_records_at
from ratings_ledger.projections.contract import UNITS_MAX, Columns, Numbers, Rule, Term
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.rulesets.faults import (
    FAULTS,
    OF_PLAYERS,
    Broken,
    argument_count,
    fault,
    quiet,
    rule_table,
    told_value,
    whole,
)
from ratings_ledger.projections.rulesets.versions import Version

# an expected score of one
CHANCES = 1 << 32


class RuleFailure(Exception):
    """A ladder that cannot be replayed: its rule raised or broke its contract at a game, or points went out of bounds.

    `ladder` is its name, or that of its ruleset. `row` is the game's row in the facts, or None if `position` is that of
    an adjustment.
    """

    def __init__(self, ladder: str, message: str, row: int | None = None, position: int | None = None) -> None:
        super().__init__(message)
        self.ladder = ladder
        self.row = row
        self.position = position

    def told(self, facts: Facts) -> str:
        """Return what failed where, in one line."""
        return f"{self.ladder}: the rule failed at position {self.place(facts)}: {self}"

    def place(self, facts: Facts) -> int:
        """Return the log position of the game or adjustment."""
        return facts.live_position[self.row] if self.row is not None else self.position or 0


def told_with_game(failure: RuleFailure, facts: Facts, connection: Connection) -> str:
    """Return what failed where, in one line, with the id of the game if there is one."""
    return with_game(failure.told(facts), failure.place(facts), connection)


def with_game(told: str, position: int, connection: Connection) -> str:
    """Return what failed at a position, with the id of the game if there is one."""
    record = read_records_at(connection, [position]).get(position)
    game_id = None if record is None else json.loads(record)["data"].get("game_id")
    where = f"at position {position}"
    return told.replace(where, f"{where} (game {game_id})" if game_id else where, 1)


def failed(ladder: str, rule: Rule, error: BaseException, row: int | None, what: str = "score") -> RuleFailure:
    """Return the failure of a ladder whose rule raised this, or broke its contract, at a game."""
    return RuleFailure(ladder, fault(error, getattr(rule, what)), row)


def check(version: Version, ladder: str, row: int, n: int, columns: Columns) -> str | None:
    """Return why the rule cannot score a game, or None. Raises `RuleFailure`."""
    rule = version.rule
    if rule.check is None:
        return None
    try:
        with quiet(rule):
            reason = rule.check(n, columns, version.params)
        if reason is None or (isinstance(reason, str) and reason.strip()):
            return reason
        raise Broken(f"check returned {told_value(reason)}; a reason in words or None is needed")
    except FAULTS as error:
        raise failed(ladder, rule, error, row, "check") from error


def score(version: Version, ladder: str, row: int, points: Numbers, columns: Columns) -> tuple[int, list[int]]:
    """Return what the rule mints at a game, and the changes of all players. Raises `RuleFailure`."""
    rule, n = version.rule, len(points)
    change = array("q", bytes(8 * n))
    try:
        with quiet(rule):
            minted = whole(rule.score(n, points, columns, version.constants, rule_table(rule), change), "score")
        return minted, balanced(n, minted, change)
    except FAULTS as error:
        raise failed(ladder, rule, error, row) from error


def balanced(n: int, minted: int, change: array[int]) -> list[int]:
    """Return the changes that a rule filled in. Raises `Broken` if the books do not balance."""
    found = change.tolist()
    if len(found) != n:
        raise Broken(f"score made {len(found)} of {n} changes")
    if minted > UNITS_MAX:
        raise Broken(f"the points grow out of bounds: score minted more than {UNITS_MAX:,} units")
    if minted < 0 or minted < sum(found):
        raise Broken(f"the books do not balance: score minted {minted}, and the changes sum to {sum(found)}")
    return found


def explain(
    version: Version, ladder: str, row: int, names: Sequence[str], points: Numbers, columns: Columns,
    change: Sequence[int],
) -> list[list[Term]]:  # fmt: skip
    """Return the rule's reasons for the changes. Raises `RuleFailure`, also if they do not sum to them."""
    rule = version.rule
    try:
        with quiet(rule):
            terms = rule.explain(len(names), names, points, columns, version.params, change)
        _look_at_terms(terms, change)
    except FAULTS as error:
        raise failed(ladder, rule, error, row, "explain") from error
    return terms


def _look_at_terms(terms: Any, change: Sequence[int]) -> None:
    """Raises `Broken` unless there is a list of terms for each change, and each sums to it."""
    if not isinstance(terms, list) or len(terms) != len(change) or not all(isinstance(mine, list) for mine in terms):
        raise Broken(
            f"explain returned {told_value(terms)}; a list of terms for each of {len(change)} players is needed"
        )
    for term in (term for mine in terms for term in mine):
        if not isinstance(term, Term) or not all(map(isinstance, term, (str, int, str, str, tuple))):
            raise Broken(f"explain returned {told_value(term)}; a Term of texts and a whole number is needed")
    sums = [sum(term.amount for term in mine) for mine in terms]
    if sums != list(change):
        raise Broken(f"explain: the terms sum to {sums}, the changes are {list(change)}")


def remark(version: Version, ladder: str, row: int, names: Sequence[str], columns: Columns) -> str | None:
    """Return what the rule says about a game as a whole, if anything. Raises `RuleFailure`."""
    rule = version.rule
    if rule.remark is None:
        return None
    try:
        with quiet(rule):
            said = rule.remark(len(names), names, columns, version.params)
        if isinstance(said, str):
            return said
        raise Broken(f"remark returned {told_value(said)}; a text is needed")
    except FAULTS as error:
        raise failed(ladder, rule, error, row, "remark") from error


def chance(version: Version, ladder: str, row: int, i: int, j: int, points: Numbers, columns: Columns) -> int:
    """Return the expected score of player i against player j, in units of 2^-32, if the rule has one. Raises
    `RuleFailure`, also for anything not strictly between 0 and 1.
    """
    rule = version.rule
    assert rule.chance is not None
    try:
        given: tuple[Any, ...] = (points[i], points[j])
        if argument_count(rule.chance) == OF_PLAYERS:
            given = (i, j, points, columns)
        with quiet(rule):
            found = whole(rule.chance(*given, version.constants, rule_table(rule)), "chance")
        if not 0 < found < CHANCES:
            raise Broken(f"chance returned {found}; it has to be strictly between 0 and 2^32 = {CHANCES}")
        return found
    except FAULTS as error:
        raise failed(ladder, rule, error, row, "chance") from error

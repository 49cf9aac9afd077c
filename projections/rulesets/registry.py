"""Find rules by name and number: the rules of this program, and rules that packages register as entry points.

A package registers a rule in the entry-point group `ratings_ledger.rules`, under its full name such as `my-rule/1`.
"""

import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from types import ModuleType

from ratings_ledger.projections.contract import STATE_COLUMNS_MAX, UNITS_MAX, Params, Rule, State
from ratings_ledger.projections.rulesets.rule_errors import (
    PLAYERS_ARGUMENTS,
    POINTS_ARGUMENTS,
    RULE_ERRORS,
    call_packages,
    count_arguments,
    describe_error,
)

# Functions of contract 2. All are optional except `start`. `score_period` and `explain_period` need each other.
STATE_FUNCTIONS = (
    "start",
    "score_period",
    "explain_period",
    "age",
    "new_season",
    "enter",
    "rank_by",
    "provisional",
    "draw",
)
DECIMALS_MAX = 16
ENTRY_POINT_GROUP = "ratings_ledger.rules"
CONTRACT, FORMER_CONTRACT = "ratings_ledger.rules", "projections.contract"

# The module of each rule. In a module with several rules, a colon and the name of the rule's constant follow.
BUILT_IN = {
    "annual-places/1": "ratings_ledger.projections.rules.annual_places",
    "ante-pool/1": "ratings_ledger.projections.rules.ante_pool",
    "blue-max/1": "ratings_ledger.projections.rules.blue_max",
    "c-diplo/1": "ratings_ledger.projections.rules.c_diplo",
    "catan-points/1": "ratings_ledger.projections.rules.catan_points",
    "contribution-pool/1": "ratings_ledger.projections.rules.contribution_pool",
    "egf-gor/1": "ratings_ledger.projections.rules.egf",
    "fide-elo/1": "ratings_ledger.projections.rules.fide_elo",
    "glicko-1/1": "ratings_ledger.projections.rules.glicko_1",
    "glicko-2/1": "ratings_ledger.projections.rules.glicko_2",
    "italia/1": "ratings_ledger.projections.rules.italia",
    "pairwise-elo/1": "ratings_ledger.projections.rules.pairwise_elo",
    "pairwise-elo/2": "ratings_ledger.projections.rules.pairwise_elo_2",
    "placement-points/1": "ratings_ledger.projections.rules.placement_points",
    "placement-points/2": "ratings_ledger.projections.rules.placement_points_2",
    "sum-of-squares/1": "ratings_ledger.projections.rules.sum_of_squares",
    "tenhou/1": "ratings_ledger.projections.rules.tenhou",
    "weng-lin-btf/1": "ratings_ledger.projections.rules.weng_lin:BRADLEY_TERRY",
    "weng-lin-pl/1": "ratings_ledger.projections.rules.weng_lin:PLACKETT_LUCE",
    "wooden-ships/1": "ratings_ledger.projections.rules.wooden_ships",
}


@cache
def find_rule(name: str) -> Rule | None:
    """Return the rule with this name and number, or None if none is registered.

    Raises `ValueError` if several packages register it, if it cannot be loaded, or if it is not a valid rule.
    """
    if name in BUILT_IN:
        module, _, member = BUILT_IN[name].partition(":")
        built_in = getattr(import_module(module), member or "RULE")
        assert isinstance(built_in, Rule)
        return built_in
    entries = list(entry_points(group=ENTRY_POINT_GROUP, name=name))
    if len(entries) > 1:
        raise ValueError(_describe_contested(name, entries))
    if not entries:
        return None
    if name in _abandoned:
        raise ValueError(_abandoned[name])
    try:
        with call_packages(name), _provide_former_names():
            loaded = entries[0].load()
    except RULE_ERRORS as error:
        raise ValueError(
            f"the rule {name} cannot be loaded from {entries[0].value}: {describe_error(error, None)}"
        ) from error
    if not isinstance(loaded, Rule) or (loaded.name, loaded.number) != tuple(_split_name(name)):
        raise ValueError(f"the entry point {name} ({entries[0].value}) does not name a rule {name}")
    if problem := next(find_malformed_members(loaded), None):
        raise ValueError(f"the rule {name} ({entries[0].value}) {problem}")
    return loaded


class _FormerContract(ModuleType):
    """The contract under its former name, with a deprecation warning."""

    def __getattr__(self, name: str) -> object:
        """Return a member of the contract by name."""
        member = getattr(import_module("ratings_ledger.projections.contract"), name)
        if not name.startswith("_"):
            message = f"{FORMER_CONTRACT} is now called {CONTRACT}: from {CONTRACT} import {name}"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
        return member


@contextmanager
def _provide_former_names() -> Iterator[None]:
    """Let old packages import the contract as `projections.contract`, its former name, while they are loaded.

    The name is not provided if an installed module has it.
    """
    ours, theirs = import_module("ratings_ledger.projections"), find_spec("projections")
    former: dict[str, ModuleType] = {FORMER_CONTRACT: _FormerContract(FORMER_CONTRACT)}
    # In a checkout, the folder itself may be importable.
    if theirs is None or os.path.realpath(theirs.origin or "") == os.path.realpath(ours.__file__ or ""):
        former["projections"] = ours
    elif find_spec(FORMER_CONTRACT) is not None:
        former = {}
    sys.modules.update(former)
    try:
        yield
    finally:
        for name in former:
            sys.modules.pop(name, None)


def _split_name(name: str) -> Iterator[str | int]:
    first, _, number = name.rpartition("/")
    yield from (first, int(number) if number.isdecimal() else number)


def find_malformed_members(rule: Rule) -> Iterator[str]:
    """Yield the problems of a rule's members. The members may be any values."""
    if not isinstance(rule.scale, int) or not 1 <= rule.scale <= UNITS_MAX:
        yield f"has the scale {rule.scale!r}; a whole number from 1 to {UNITS_MAX:,} is needed"
    if not isinstance(rule.columns, tuple) or not all(isinstance(name, str) for name in rule.columns):
        yield f"has the columns {rule.columns!r}; a tuple of names is needed, such as ('place', 'seats')"
    if not isinstance(rule.params, type) or not issubclass(rule.params, Params):
        yield f"has params that are not derived from {CONTRACT}.Params"
    if not isinstance(rule.ranking, str) or not isinstance(rule.counted_min, int) or rule.counted_min < 1:
        members = f"the ranking {rule.ranking!r} and counted_min {rule.counted_min!r}"
        yield f"has {members}; a name and a whole number from 1 on are needed"
    scores_only_periods = rule.score is None and rule.state and rule.score_period is not None
    optional = ["check", "remark", "chance", "sample", *(("score", "explain") if scores_only_periods else ())]
    for member in ("prepare", "table", "refuse_params", "check", "score", "explain", "remark", "chance", "sample"):
        function = getattr(rule, member)
        if not callable(function) and not (function is None and member in optional):
            yield f"has {function!r} for {member}; a function is needed"
    if rule.state != ():
        yield from _find_malformed_state(rule)
        return
    for member in (*STATE_FUNCTIONS, "shown"):
        if getattr(rule, member):
            yield f"has {member}, which belongs to rules with state; name the columns of its state"
    if rule.chance is not None and count_arguments(rule.chance) not in (POINTS_ARGUMENTS, PLAYERS_ARGUMENTS):
        yield "has a chance that takes neither (points, opponent_points, constants, table) nor (i, j, ..., table)"


def _find_malformed_state(rule: Rule) -> Iterator[str]:
    """Yield the problems of the members of a rule with state."""
    state = rule.state
    if not isinstance(state, tuple) or not all(isinstance(column, State) for column in state):
        yield f"has the state {state!r}; a tuple such as (State('rating', 1_000_000), State('deviation', 1)) is needed"
        return
    if len(state) > STATE_COLUMNS_MAX:
        yield f"has {len(state)} state columns; at most {STATE_COLUMNS_MAX} are possible"
    for column in state:
        if not isinstance(column.name, str) or not re.fullmatch(r"[a-z][a-z0-9_]{0,31}", column.name, re.ASCII):
            problem = f"has a state column {column.name!r}"
            yield f"{problem}; a name of at most 32 lowercase letters, digits and _, a letter first, is needed"
        elif not isinstance(column.scale, int) or not 1 <= column.scale <= UNITS_MAX:
            yield f"has the scale {column.scale!r} for {column.name}; a whole number from 1 to {UNITS_MAX:,} is needed"
        elif not isinstance(column.decimals, int) or not 0 <= column.decimals <= DECIMALS_MAX:
            yield f"shows {column.decimals!r} decimals of {column.name}; a number from 0 to {DECIMALS_MAX} is needed"
        elif not (isinstance(column.low, int) and isinstance(column.high, int) and column.low <= column.high):
            bounds = f"{column.low!r} to {column.high!r}"
            yield f"has the range {bounds} for {column.name}; whole numbers, the lower first, are needed"
    names = [column.name for column in state]
    if len(set(names)) < len(names):
        yield f"has two state columns with the same name: {', '.join(map(str, names))}"
    if state[0].scale != rule.scale:
        yield f"has the scale {rule.scale!r}, but its first column {names[0]} has {state[0].scale!r}; make them equal"
    if not isinstance(rule.shown, tuple) or not {*rule.shown} <= {*names}:
        yield f"shows {rule.shown!r}; a tuple of its state columns is needed: {', '.join(map(str, names))}"
    for member in STATE_FUNCTIONS:
        function = getattr(rule, member)
        if not callable(function) and (function is not None or member == "start"):
            yield f"has {function!r} for {member}; a function is needed"
    for member, counterpart in (
        ("score_period", "explain_period"),
        ("explain_period", "score_period"),
        ("draw", "chance"),
    ):
        if getattr(rule, member) is not None and getattr(rule, counterpart) is None:
            yield f"has {member} but no {counterpart}"
    if callable(rule.chance) and count_arguments(rule.chance) != PLAYERS_ARGUMENTS:
        yield "has a chance that does not take (i, j, before, columns, constants, table)"


def give_up_rule(name: str, reason: str) -> None:
    """Stop loading a package's rule in this process, because the rule failed in another process."""
    _abandoned[name] = reason
    find_rule.cache_clear()


_abandoned: dict[str, str] = {}


def find_contested_rules() -> dict[str, str]:
    """Return a message for each rule that several packages, or this program and a package, register.

    A rule of this program takes precedence over a package's rule.
    """
    entries_by_name: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        entries_by_name.setdefault(entry.name, []).append(entry)
    clashes = {name: entries for name, entries in entries_by_name.items() if name in BUILT_IN or len(entries) > 1}
    return {name: _describe_contested(name, entries) for name, entries in sorted(clashes.items())}


def _describe_contested(name: str, entries: Iterable[EntryPoint]) -> str:
    values = ", ".join(entry.value for entry in entries)
    if name in BUILT_IN:
        return f"the rule {name} comes with this program, so the package's rule is not used: {values}"
    return f"the rule {name} is registered by several packages: {values}; uninstall all but one of them"


def rule_names() -> list[str]:
    """Return the names of all registered rules, sorted."""
    return sorted({*BUILT_IN, *(entry.name for entry in entry_points(group=ENTRY_POINT_GROUP))})

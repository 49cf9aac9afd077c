"""Detect names passed as the wrong arguments, and show the right call.

    view.explain("wl-04", "elo-catan/all")
    # BadArgument: 'wl-04' is a game and 'elo-catan/all' is a ladder; write explain('elo-catan/all', 'wl-04')

Only failed queries are examined, so a correct query costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import permutations
from typing import Any

from ratings_ledger.ledger.errors import BadArgument, LedgerError, Unknown
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections.snapshot import Snapshot

# the kinds of name that each argument accepts
ARGUMENT_KINDS = {"ladder": ("ladder",), "player": ("player",), "game_id": ("game",), "league": ("league",)}
# the exceptions, by query and argument
SPECIAL_KINDS = {("unmet", "ladder"): ("ladder", "league"), ("league", "name"): ("league",)}
# the query to use instead, by the query that was called and the kind of name that was passed to it
ALTERNATIVES = {
    ("explain", "player"): "account",
    ("account", "game"): "explain",
    ("history", "game"): "explain",
    ("ranks", "game"): "explain",
    ("profile", "game"): "explain",
    ("statement", "game"): "explain",
}


def explain_mixup(query: str, arguments: Mapping[str, Any], error: LedgerError) -> LedgerError:
    """Return an error that says which argument of a query has a name of the wrong kind, or else `error`.

    Args:
        query: the name of the query.
        arguments: the arguments of the query by name, including `self`, the view or the ledger.
        error: the error that the query raised.
    """
    expected = {
        name: SPECIAL_KINDS.get((query, name)) or ARGUMENT_KINDS[name]
        for name, value in arguments.items()
        if isinstance(value, str) and (name in ARGUMENT_KINDS or (query, name) in SPECIAL_KINDS)
    }
    if not expected or not (isinstance(error, BadArgument | Unknown) or error.reason == "league-unknown"):
        return error
    values = {name: str(arguments[name]) for name in expected}
    try:
        subject = arguments["self"]
        view = subject if isinstance(subject, Snapshot) else subject.at()
        kinds = {value: view.kinds_of(value) for value in values.values()}
    except LedgerError:  # for example, because the coordinates are invalid
        return error
    misplaced = [name for name in expected if not kinds[values[name]] & {*expected[name]}]
    if not misplaced or not kinds[values[misplaced[0]]]:
        return error
    # one of the arguments is `self`
    ellipsis = "" if len(arguments) <= len(expected) + 1 else ", …"
    for order in permutations(values.values()):
        if all(kinds[value] & {*expected[name]} for name, value in zip(expected, order, strict=True)):
            facts = " and ".join(f"{quote(value)} is a {_choose_kind(kinds[value])}" for value in values.values())
            return BadArgument(f"{facts}; write {_format_call(query, order, ellipsis)}", misplaced[0])
    name = misplaced[0]
    message = f"{quote(values[name])} is a {_choose_kind(kinds[values[name]])}, not a {' or a '.join(expected[name])}"
    if name == "ladder":
        message += _suggest_ladder(view, query, expected, kinds, ellipsis)
    elif alternative := ALTERNATIVES.get((query, _choose_kind(kinds[values[name]]))):
        message += f"; write {_format_call(alternative, [values['ladder'], values[name]])}"
    if isinstance(error, BadArgument):
        return BadArgument(message, name)
    return Unknown(error.reason, message) if isinstance(error, Unknown) else LedgerError(message, error.reason)


def _suggest_ladder(
    view: Snapshot,
    query: str,
    expected: Mapping[str, tuple[str, ...]],
    kinds: Mapping[str, Collection[str]],
    ellipsis: str,
) -> str:
    """Return a hint that shows the query with a ladder of the player or game, or an empty string without a ladder."""
    other_arguments = [name for name in expected if name != "ladder"]
    values = [next((value for value in kinds if {*kinds[value]} & {*expected[name]}), None) for name in other_arguments]
    subject = values[0] if values else next(iter(kinds))
    ladders = [] if subject is None else _list_ladders(view, subject)
    return f"; write {_format_call(query, [ladders[0], *map(str, values)], ellipsis)}" if ladders else ""


def _list_ladders(view: Snapshot, name: str) -> list[str]:
    """Return the ladders of a game or a player; empty for other names."""
    try:
        if "game" in view.kinds_of(name):
            return [ladder.ladder for ladder in view.timeline(name).ladders if ladder.counted]
        return [row.ladder for row in sorted(view.person(name).rows, key=lambda row: -row.games)]
    except LedgerError:
        return []


def _choose_kind(kinds: Collection[str]) -> str:
    """Return the alphabetically first kind of a name, so that a message is always the same."""
    return min(kinds)


def _format_call(query: str, names: Collection[str], ellipsis: str = "") -> str:
    return f"{query}({', '.join(map(repr, names))}{ellipsis})"

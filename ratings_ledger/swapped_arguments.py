"""Detect names passed in the wrong places, and show the right call.

    view.explain("wl-04", "elo-catan/all")
    # BadArgument: 'wl-04' is a game and 'elo-catan/all' a ladder; write explain('elo-catan/all', 'wl-04')

Only failed queries are examined, so a correct query costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import permutations
from typing import Any

from ratings_ledger.ledger.errors import BadArgument, LedgerError, Unknown
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections.snapshot import Snapshot

# the kinds of name that an argument takes
ARGUMENT_KINDS = {"ladder": ("ladder",), "player": ("player",), "game_id": ("game",), "league": ("league",)}
# exceptions by query and argument
SPECIAL_KINDS = {("unmet", "ladder"): ("ladder", "league"), ("league", "name"): ("league",)}
# the query that answers for the kind of name that was passed
ALTERNATIVES = {
    ("explain", "player"): "account",
    ("account", "game"): "explain",
    ("history", "game"): "explain",
    ("ranks", "game"): "explain",
    ("profile", "game"): "explain",
    ("statement", "game"): "explain",
}


def explain_mixup(subject: Any, query: str, arguments: Mapping[str, object], error: LedgerError) -> LedgerError:
    """Return the error of a query, or one that says which of its names is of the wrong kind.

    Args:
        subject: the view or the ledger.
        query: the name of the method.
        arguments: its arguments by name.
        error: the error that it raised.
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
        view = subject if isinstance(subject, Snapshot) else subject.at()
        kinds = {value: view.kinds_of(value) for value in values.values()}
    except LedgerError:  # perhaps the coordinates are wrong
        return error
    misplaced = [name for name in expected if not kinds[values[name]] & {*expected[name]}]
    if not misplaced or not kinds[values[misplaced[0]]]:
        return error
    ellipsis = "" if len(arguments) <= len(expected) + 1 else ", …"
    for order in permutations(values.values()):
        if all(kinds[value] & {*expected[name]} for name, value in zip(expected, order, strict=True)):
            facts = " and ".join(f"{quote(value)} is a {_first(kinds[value])}" for value in values.values())
            return BadArgument(f"{facts}; write {_format_call(query, order, ellipsis)}", misplaced[0])
    name = misplaced[0]
    message = f"{quote(values[name])} is a {_first(kinds[values[name]])}, not a {expected[name][0]}"
    if name == "ladder":
        message += _suggest_ladder(view, query, expected, kinds, ellipsis)
    elif alternative := ALTERNATIVES.get((query, _first(kinds[values[name]]))):
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
    """Suggest the query with a ladder of the player or the game; empty if there is none."""
    others = [name for name in expected if name != "ladder"]
    names = [next((value for value in kinds if {*kinds[value]} & {*expected[name]}), None) for name in others]
    subject = names[0] if names else next(iter(kinds))
    ladders = [] if subject is None else _ladders_of(view, subject)
    return f"; write {_format_call(query, [ladders[0], *map(str, names)], ellipsis)}" if ladders else ""


def _ladders_of(view: Snapshot, name: str) -> list[str]:
    """Return the ladders of a game or a player; empty for other names."""
    try:
        if "game" in view.kinds_of(name):
            return [ladder.ladder for ladder in view.timeline(name).ladders if ladder.counted]
        return [row.ladder for row in sorted(view.person(name).rows, key=lambda row: -row.games)]
    except LedgerError:
        return []


def _first(kinds: Collection[str]) -> str:
    """Return the alphabetically first kind of a name."""
    return min(kinds)


def _format_call(query: str, names: Collection[str], ellipsis: str = "") -> str:
    return f"{query}({', '.join(map(repr, names))}{ellipsis})"

"""Names that a program gave in the wrong places: each kind of name is known, so the right call can be shown.

    view.explain("wl-04", "elo-catan/all")
    # BadArgument: 'wl-04' is a game and 'elo-catan/all' a ladder; write explain('elo-catan/all', 'wl-04')

Only a question that failed is looked at, so one that is asked rightly waits for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import permutations
from typing import Any

from ratings_ledger.ledger.errors import BadArgument, LedgerError, Unknown
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections.snapshot import Snapshot

# by the name of an argument the kinds of name that it takes
TAKES = {
    "ladder": ("ladder",), "player": ("player",), "game_id": ("game",), "league": ("league",),
}  # fmt: skip
# by question what else it takes, or calls a name
ALSO = {("unmet", "ladder"): ("ladder", "league"), ("league", "name"): ("league",)}
# what answers about a ladder and a name of another kind than the one that was asked for
INSTEAD = {
    ("explain", "player"): "account", ("account", "game"): "explain", ("history", "game"): "explain",
    ("ranks", "game"): "explain", ("profile", "game"): "explain", ("statement", "game"): "explain",
}  # fmt: skip


def explain_mixup(subject: Any, question: str, arguments: Mapping[str, object], problem: LedgerError) -> LedgerError:
    """Return what a question failed with, or what says which of its names is of another kind than it takes.

    Args:
        subject: the view that was asked, or the ledger.
        question: the name of the method.
        arguments: its arguments by name.
        problem: what it failed with.
    """
    wanted = {
        name: ALSO.get((question, name)) or TAKES[name]
        for name, value in arguments.items()
        if isinstance(value, str) and (name in TAKES or (question, name) in ALSO)
    }
    if not wanted or not (isinstance(problem, BadArgument | Unknown) or problem.reason == "league-unknown"):
        return problem
    given = {name: str(arguments[name]) for name in wanted}
    try:
        view = subject if isinstance(subject, Snapshot) else subject.at()
        kinds = {value: view.kinds_of(value) for value in given.values()}
    except LedgerError:  # the coordinates are what is wrong, perhaps
        return problem
    misplaced = [name for name in wanted if not kinds[given[name]] & {*wanted[name]}]
    if not misplaced or not kinds[given[misplaced[0]]]:
        return problem
    more = "" if len(arguments) <= len(wanted) + 1 else ", …"
    for order in permutations(given.values()):
        if all(kinds[value] & {*wanted[name]} for name, value in zip(wanted, order, strict=True)):
            told = " and ".join(f"{quote(value)} is a {_first(kinds[value])}" for value in given.values())
            return BadArgument(f"{told}; write {_call(question, order, more)}", misplaced[0])
    name = misplaced[0]
    message = f"{quote(given[name])} is a {_first(kinds[given[name]])}, not a {wanted[name][0]}"
    if name == "ladder":
        message += _with_ladder(view, question, wanted, kinds, more)
    elif instead := INSTEAD.get((question, _first(kinds[given[name]]))):
        message += f"; write {_call(instead, [given['ladder'], given[name]])}"
    if isinstance(problem, BadArgument):
        return BadArgument(message, name)
    return Unknown(problem.reason, message) if isinstance(problem, Unknown) else LedgerError(message, problem.reason)


def _with_ladder(
    view: Snapshot,
    question: str,
    wanted: Mapping[str, tuple[str, ...]],
    kinds: Mapping[str, Collection[str]],
    more: str,
) -> str:
    """Return the end of a message that shows the question with a ladder on which the player is, or the game counts."""
    places = [name for name in wanted if name != "ladder"]
    names = [next((value for value in kinds if {*kinds[value]} & {*wanted[name]}), None) for name in places]
    subject = names[0] if names else next(iter(kinds))
    ladders = [] if subject is None else _ladders_of(view, subject)
    return f"; write {_call(question, [ladders[0], *map(str, names)], more)}" if ladders else ""


def _ladders_of(view: Snapshot, name: str) -> list[str]:
    """Return the ladders on which a game counts or a player is, if it is one of these."""
    try:
        if "game" in view.kinds_of(name):
            return [one.ladder for one in view.story(name).ladders if one.counted]
        return [row.ladder for row in sorted(view.person(name).rows, key=lambda row: -row.games)]
    except LedgerError:
        return []


def _first(kinds: Collection[str]) -> str:
    """Return what a name is, of several kinds the first of the alphabet."""
    return min(kinds)


def _call(question: str, names: Collection[str], more: str = "") -> str:
    return f"{question}({', '.join(map(repr, names))}{more})"

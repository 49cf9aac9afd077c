"""Games that are recorded again and already there, but voided: which they are, and what makes them count again.

An undo that voided them is undone. So is any act that only voids, if it voids several; else the game is reinstated.
"""

from collections.abc import Mapping
from shlex import quote

from sqlalchemy import Connection

from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.rejections import count, csv_item
from ratings_ledger.projections.admission.acts import Act, act_of
from ratings_ledger.projections.admission.undoing import UNDONE

ACTS_TOLD, NAMES_TOLD = 3, 3
VOIDS = frozenset({"game.voided", "event.voided"})


def voided_told(connection: Connection, voided: Mapping[str, KnownEvent]) -> list[str]:
    """Return what is said of voided games, given what voids each by game_id: a note for each of the first acts that
    did.
    """
    left, told = dict(voided), list[str]()
    while left and len(told) < ACTS_TOLD:
        void = next(iter(left.values()))
        act = act_of(connection, void.position or 0)
        names = [name for name, one in left.items() if act.has(one.position)]
        for name in names:
            del left[name]
        told.append(f"{_are_voided(names)}; {_way_back(act, void, names)}")
    if left:
        are = "is" if len(left) == 1 else "are"
        told.append(f"{len(left):,} more {are} voided; ratings log GAME shows by whom and why")
    return told


def _are_voided(names: list[str]) -> str:
    if len(names) == 1:
        return f"{csv_item(names[0])} is voided, so it does not count"
    more = f" and {len(names) - NAMES_TOLD:,} more" if len(names) > NAMES_TOLD else ""
    listed = ", ".join(map(csv_item, names[:NAMES_TOLD]))
    return f"{len(names):,} games are voided, so they do not count: {listed}{more}"


def _way_back(act: Act, void: KnownEvent, names: list[str]) -> str:
    """Return what makes games count again that an act voided."""
    is_undo = str(void.data["reason"]).startswith(UNDONE)
    if is_undo or (act.types.keys() <= VOIDS and act.events > 1):
        others = act.types["game.voided"] - len(names)
        more = f", and takes back {count(others, 'other void')}" if others else ""
        return f"ratings undo {act.position} changes that{more}"
    name = quote(names[0])
    return f"ratings reinstate {name} --reason TEXT changes that" + (" for the first" if len(names) > 1 else "")

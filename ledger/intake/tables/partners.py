"""Partners in one cell: the players of a side, if an option, a profile or the name of the column allows several.

--partners +        anna + ben
Winners, Team A     anna & ben   anna + ben   anna / ben
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NoReturn

from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.rejections import Refused, quote

# texts that join partners in columns whose name shows that they hold several players
JOINTS = (" & ", " + ", " / ")


def split_team_cell(name: str, text: str, options: TableOptions) -> list[str]:
    """Split the cell of a column into the players of a side, if an option or the column's name allows several.

    Raises `Refused` if a partner has no name.
    """
    joints = options.partners or (JOINTS if name in options.team_columns else ())
    return split_partners(text, joints, options.whole)


def split_partners(text: str, joints: Iterable[str], whole: Collection[str] = ()) -> list[str]:
    """Split a cell into the players of a side, joined by one of some texts; ids in `whole` are not split.

    Raises `Refused` if a name beside such a text is missing.

    >>> split_partners("anna + ben", ["+"]), split_partners("C++ + ben / cleo", ["+", "/"], ["C++"])
    (['anna', 'ben'], ['C++', 'ben', 'cleo'])
    """
    parts = [text]
    for joint in joints:
        parts = [
            player for part in parts for player in ([part] if to_nfc(part) in whole else _split_at(part, joint, whole))
        ]
    return parts


def _split_at(text: str, joint: str, whole: Collection[str]) -> list[str]:
    parts, players = text.split(joint), list[str]()
    while parts:
        # the longest known id that begins here, or else the text up to the next joint
        ends = (end for end in range(len(parts), 1, -1) if to_nfc(joint.join(parts[:end]).strip()) in whole)
        end = next(ends, 1)
        players.append(joint.join(parts[:end]).strip())
        del parts[:end]
    if len(players) > 1 and "" in players:
        raise Refused(
            "bad-identifier", f"{quote(text)} joins a player with an empty name; {joint} stands between partners"
        )
    return players


def refuse_tied_partners(text: str) -> NoReturn:
    """Raise `Refused` (tied-players) for partners joined as tied players, who would be rated as opponents who drew."""
    message = f"{quote(text)} are partners according to the column, not opponents who tied"
    raise Refused("tied-players", f"{message}; leave --ties out, and write a & b, a + b or a / b")

"""Partners in one cell: the players of a side, where an option, a profile or the name of their column says so.

--partners +        anna + ben
Winners, Team A     anna & ben   anna + ben   anna / ben
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.rejections import Refused, quote

# what joins partners where the name of their column says that it holds some
JOINTS = (" & ", " + ", " / ")


def split_team_cell(name: str, text: str, options: TableOptions) -> list[str]:
    """Return the players of a side in a cell of a column: several only where an option or the column's name says so.

    Raises `Refused` if a name is missing beside a partner.
    """
    joints = options.partners or (JOINTS if name in options.team_columns else ())
    return split_partners(text, joints, options.whole)


def split_partners(text: str, joints: Iterable[str], whole: Collection[str] = ()) -> list[str]:
    """Return the players of a side in a cell, joined by one of some texts; ids in `whole` are not taken apart.

    Raises `Refused` if a name is missing beside such a text.

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
    parts, found = text.split(joint), list[str]()
    while parts:
        # the longest known id that begins here, or else what stands up to the next joint
        ends = (end for end in range(len(parts), 1, -1) if to_nfc(joint.join(parts[:end]).strip()) in whole)
        end = next(ends, 1)
        found.append(joint.join(parts[:end]).strip())
        del parts[:end]
    if len(found) > 1 and "" in found:
        raise Refused("bad-identifier", f"{quote(text)} joins somebody with nobody; {joint} stands between partners")
    return found


def refuse_tied_partners(text: str) -> Refused:
    """Return the refusal of partners who are joined as if they had tied: they would be rated as opponents who drew."""
    told = f"{quote(text)} are partners, as the column says, and no opponents who tied"
    return Refused("tied-players", f"{told}; leave --ties out, and write a & b, a + b or a / b")

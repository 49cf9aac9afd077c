"""Split a cell into partners, the players of one side, if an option, a profile or the column's name allows several.

--partners +        anna + ben
Winners, Team A     anna & ben   anna + ben   anna / ben
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NoReturn

from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.rejections import Refused, quote

# separators of partners in columns whose names show that they contain several players
PARTNER_SEPARATORS = (" & ", " + ", " / ")


def split_team_cell(name: str, text: str, options: TableOptions) -> list[str]:
    """Split the cell of a column into the players of a side, if an option or the column's name allows several.

    `name` is the column's meaning. Raises `Refused` (bad-identifier) if a partner has no name.
    """
    separators = options.partners or (PARTNER_SEPARATORS if name in options.team_columns else ())
    return split_partners(text, separators, options.unsplit_ids)


def split_partners(text: str, separators: Iterable[str], unsplit_ids: Collection[str] = ()) -> list[str]:
    """Split a cell into the players of a side at any of some separators, but leave ids in `unsplit_ids` whole.

    Raises `Refused` (bad-identifier) if a player has no name.

    >>> split_partners("anna + ben", ["+"]), split_partners("C++ + ben / cleo", ["+", "/"], ["C++"])
    (['anna', 'ben'], ['C++', 'ben', 'cleo'])
    """
    parts = [text]
    for separator in separators:
        parts = [
            player
            for part in parts
            for player in ([part] if to_nfc(part) in unsplit_ids else _split_at(part, separator, unsplit_ids))
        ]
    return parts


def _split_at(text: str, separator: str, unsplit_ids: Collection[str]) -> list[str]:
    parts, players = text.split(separator), list[str]()
    while parts:
        # the longest known id that begins here, else the text up to the next separator
        ends = (end for end in range(len(parts), 1, -1) if to_nfc(separator.join(parts[:end]).strip()) in unsplit_ids)
        end = next(ends, 1)
        players.append(separator.join(parts[:end]).strip())
        del parts[:end]
    if len(players) > 1 and "" in players:
        raise Refused(
            "bad-identifier", f"{quote(text)} contains an empty name; write names on both sides of {separator}"
        )
    return players


def refuse_tied_partners(text: str) -> NoReturn:
    """Raise `Refused` (tied-players) for partners joined as tied players, who would be rated as opponents who drew."""
    message = f"{quote(text)} are partners according to the column, not opponents who tied"
    raise Refused("tied-players", f"{message}; write a & b, a + b or a / b, and leave these signs out of --ties")

"""Names that the ledger does not know yet: who is new, which names may be slips, and cells that hold two players.

A name that is close to another is more often a slip of the pen than a newcomer. In a table, or where one game is
recorded by hand, it is refused; in events written by a program it is accepted, and reported.
"""

import re
import shlex
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.rejections import Rejection, count, quote
from ratings_ledger.ledger.validation.identities import Identities, identities
from ratings_ledger.ledger.validation.names import (
    find_close_names,
    find_similar_names,
    is_hidden,
    is_nobody,
    is_selector,
    list_odd_characters,
)

VIRAMA = 9
# at most this many new players are named
TOLD_MAX = 20
ACCEPT = "if it is not a slip, --new-names accept takes it"

# where new names are refused: in tables, in all events, or nowhere
Refusing = Literal["tables", "all", ""]

_NO_NAMES = ("nobody", "tied-players", "bad-identifier")  # what is refused so is no name of anybody

_TIE = re.compile(r"[&+/;＆＋／；]")
_SEPARATOR = re.compile("[&+/;,＆＋／；，]")
# what joins two names only if both are known
_AND = re.compile(r"\s*,\s*|\s+(?:and|und|u\.|et|y|e|en|og|och)\s+")


# what a player's name stands in: a row of their own, the cell of a place or of a side, or the header of a column
TableForm = Literal["rows", "places", "sides", "columns", ""]


class FirstOccurrence(NamedTuple):
    """Where a name first occurs: file and line, whether in a table, and what of that a player's name stands in."""

    file: str
    line: int
    table: bool
    form: TableForm = ""


class CloseName(NamedTuple):
    """A new name that is close to others, and where it first occurs, if that is known.

    `others` has for each of those how many games they played, or, if it is new as well, where it first occurs.
    `opponents` are the names beside it in the games that are refused for it: none of them can be the same player.
    """

    name: str
    first: FirstOccurrence | None
    others: dict[str, int | FirstOccurrence | None]
    opponents: frozenset[str] = frozenset()

    def question(self, placed: bool = True, numbered: bool = False) -> str:
        """Return what is asked about it, with its place and with numbers for the others, if so wanted.

        >>> CloseName("ana", FirstOccurrence("club.csv", 14, True), {"anna": 37}).question()
        "new: 'ana' (line 14): did you mean 'anna', 37 games?"
        """
        others = [f"{number}: {self._who(other)}" for number, other in enumerate(self.others, 1)]
        listed = ", or ".join(others if numbered else map(self._who, self.others))
        return f"{self._subject(placed)}: did you mean {listed}?"

    def question_of_opponents(self) -> str:
        """Return the question about a name whose `others` all play against it, so that none of them can be meant."""
        listed = " and ".join(map(self._who, self.others))
        return f"{self._subject()} plays against {listed}: is it a new player?"

    def _subject(self, placed: bool = True) -> str:
        """Return the name as a question begins with it, with its place if so wanted."""
        where = f" (line {self.first.line})" if placed and self.first is not None and self.first.file else ""
        return f"new: {_marked(self.name, *self.others)}{where}"

    def _who(self, other: str) -> str:
        """One of the others, with what tells who that is."""
        known, text = self.others[other], _marked(other, self.name)
        if known is None:
            return text
        if isinstance(known, int):
            return f"{text}, {count(known, 'game')}"
        beside = self.first is None or known.file == self.first.file
        return f"{text}, new in line {known.line}{'' if beside else f' of {known.file}'}"


def _marked(name: str, *others: str) -> str:
    """Return a name as it is quoted, with the characters that cannot be told from those of others by eye."""
    odd = list_odd_characters(name, *others)
    return quote(name) + (f" with {', '.join(odd)}" if odd else "")


def describe_close_names(close: Collection[Any]) -> str:
    """Return how many new names may be slips, as a preview, an import and its questions say it.

    >>> describe_close_names(["ana", "bem"])
    '2 new names close to others'
    """
    return f"{count(len(close), 'new name')} close to others"


class Newcomers:
    """The names that an import's events bring.

    `known` gives those that the ledger has, `games` how many games some of them played.
    """

    def __init__(
        self,
        known: Callable[[Connection], Collection[str]],
        refusing: Refusing,
        strict: bool = False,
        accepted: Collection[str] = (),
        games: Callable[[Connection, Collection[str]], Mapping[str, int]] = lambda connection, names: {},
        close_told: bool = False,
        ranks_club: Callable[[Connection, str, str], bool] = lambda connection, ladder, name: False,
    ) -> None:
        """With `strict` all new names are refused there, otherwise those close to others and not `accepted`, unless
        those are only told. `ranks_club` says whether a ladder ranks clubs, and somebody has played for one of a name.
        """
        self._ranks_club = ranks_club
        # the ladders of names that adjustments alone bring
        self._adjusted: dict[str, set[str]] = {}
        self._known_of = known
        self._games_of = games
        self._refusing = refusing
        self._strict = strict
        self._accepted = accepted
        self._close_told = close_told
        self._first: dict[str, FirstOccurrence] = {}
        # the ids that renames bring, each with the id before and where
        self._renamed: dict[str, tuple[str, FirstOccurrence]] = {}
        self._mentioned: set[str] = set()
        self._tables: set[str] = set()
        # who is new, in input order, the new ids of players who are not, and those close to others
        self.names: list[str] = []
        self.new_ids: list[str] = []
        self.close: dict[str, CloseName] = {}
        # for the first `TOLD_MAX` who are new and not close: other names that a slip may have turned into theirs
        self.alike: dict[str, list[str]] = {}

    def meet(self, type_name: str, data: dict[str, Any], first: FirstOccurrence) -> None:
        """Note the names of an event that occurs there."""
        if first.table:
            self._tables.add(first.file)
        if type_name == "player.renamed":
            self._renamed.setdefault(data["new_player"], (data["player"], first))
            return
        names = TYPES[type_name].brings(data)
        if type_name == "points.adjusted" or self._adjusted:
            self._meet_adjusted(type_name, names, data)
        for name in names:
            known = self._first.get(name)
            if known is None or (first.table and not known.table):
                self._first[name] = first

    def _meet_adjusted(self, type_name: str, names: Iterable[str], data: dict[str, Any]) -> None:
        """Note which names adjustments alone bring, and forget those that another event brings, too."""
        for name in names:
            if type_name != "points.adjusted":
                self._adjusted.pop(name, None)
            elif name not in self._first or name in self._adjusted:
                self._adjusted.setdefault(name, set()).add(data["ladder"])

    def mention(self, names: Iterable[str]) -> None:
        """Note the names in a refused event: they are in the input, though it adds no player."""
        self._mentioned.update(names)

    def refusals(self, connection: Connection) -> dict[str, Rejection]:
        """Work out who is new; the refusals by name, each at the name's first line."""
        known = self._known_of(connection)
        for name, ladders in self._adjusted.items():
            if all(self._ranks_club(connection, ladder, name) for ladder in ladders):
                del self._first[name]
        self._adjusted.clear()
        self.names = [name for name in self._first if name not in known]
        self.new_ids = [name for name in self._renamed if name not in known and name not in self._first]
        if not self.names and not self.new_ids:
            return {}
        self._first.update((name, self._renamed[name][1]) for name in self.new_ids)
        self.close = self._close(connection, known)
        doubtful = [name for name in self.names if name not in self.close][:TOLD_MAX]
        self.alike = find_similar_names(doubtful, [*sorted(known), *self.names])
        refused = {
            name: self._refusal(name, known) if self.refuses(self._first[name].file) else self._unseen(name)
            for name in (*self.names, *self.new_ids)
        }
        # a name that is refused anyway is not in doubt
        self.close = {
            name: close for name, close in self.close.items() if getattr(refused[name], "code", "") not in _NO_NAMES
        }
        return {name: rejection for name, rejection in refused.items() if rejection is not None}

    def _close(self, connection: Connection, known: Collection[str]) -> dict[str, CloseName]:
        candidates = [*self.names, *self.new_ids]
        found = {
            name: close for name, close in find_close_names(candidates, sorted(known)) if name not in self._accepted
        }
        # a new id is mostly close to the one before it
        for name in found.keys() & set(self.new_ids):
            own = self._ids_before(name, identities(connection))
            found[name] = [other for other in found[name] if other not in own]
        found = {name: close for name, close in found.items() if close}
        games = self._games_of(connection, {other for close in found.values() for other in close}) if found else {}
        return {
            name: CloseName(name, self._first[name], {
                other: games.get(other) if other in known else self._first[other] for other in close
            })
            for name, close in found.items()
        }  # fmt: skip

    def _ids_before(self, name: str, people: Identities) -> set[str]:
        """Return the ids that a player had before this one, in the ledger or in the input."""
        found: set[str] = set()
        while name in self._renamed and self._renamed[name][0] not in found:
            name = self._renamed[name][0]
            found |= people.ids(name)
        return found

    def refuses(self, file: str) -> bool:
        """Tell whether names in this file are refused."""
        return self._refusing == "all" or (self._refusing == "tables" and file in self._tables)

    def is_refused(self, name: str, refused: Mapping[str, Rejection], file: str) -> bool:
        """Tell whether a name in this file is among the refused ones, and refused there."""
        return name in refused and (self.refuses(file) or refused[name].code == "bad-identifier")

    def _unseen(self, name: str) -> Rejection | None:
        """Return the refusal of a name with invisible characters: two people would look like one."""
        if not (found := find_invisible(name)):
            return None
        first = self._first[name]
        message = f"{quote(name)} holds {found}, which is invisible; leave it out"
        return Rejection("bad-identifier", message, first.file, first.line)

    def _refusal(self, name: str, known: Collection[str]) -> Rejection | None:
        first = self._first[name]
        if problem := self._unseen(name):
            return problem
        is_player = name not in self.new_ids
        if is_player and name not in self._accepted and is_nobody(name):
            rejection = nobody_refusal(name)
        elif is_player and (parts := self._tied(name, known)):
            rejection = tied_refusal(name, parts, first)
        elif (close := self.close.get(name)) and (self._strict or not self._close_told):
            right = "correct it or name it with --aliases" if first.table else "correct it"
            told = f"{close.question(placed=False)} Then {right}"
            rejection = Rejection("close-name", told if self._strict else f"{told}; {ACCEPT}")
        elif is_player and self._strict:
            like = f" (like {self.alike[name][0]}?)" if name in self.alike else ""
            rejection = Rejection("new-player", f"{quote(name)} is new{like}, and --strict takes no new names")
        else:
            return None
        return rejection._replace(file=first.file, line=first.line)

    def _tied(self, name: str, known: Collection[str]) -> list[str]:
        """Return the players that a cell seems to hold, if there is more than one."""
        if parts := split_tied_names(name):
            return parts
        parts = _AND.split(name)
        there = all(part in known or part in self._first or part in self._mentioned for part in parts)
        return parts if len(parts) > 1 and there else []


def nobody_refusal(name: str) -> Rejection:
    """Return the refusal of a word for nobody in the place of a player."""
    told = f"{quote(name)} stands for nobody: leave the cell empty, or the row out if nobody played"
    return Rejection(
        "nobody", told if "/" in name else f"{told}; if a player is called so, --new-names accept takes it"
    )


def split_tied_names(name: str) -> list[str]:
    """Return the names in a cell, joined by &, +, / or ;; empty if it is one name.

    >>> split_tied_names("Anna & Ben"), split_tied_names("Anna/Ben"), split_tied_names("C++")
    (['Anna', 'Ben'], ['Anna', 'Ben'], [])
    """
    parts = list(map(str.strip, _SEPARATOR.split(name))) if _TIE.search(name) else []
    return parts if all(parts) else []


def tied_refusal(name: str, parts: Iterable[str], first: FirstOccurrence) -> Rejection:
    """Return the refusal of a cell that holds several players."""
    joint = _joint(name)
    sign = shlex.quote(joint) if joint else "TEXT, with the same text between all of them"
    partners = f"if they are partners on one side, pass --partners {sign}"
    if first.form == "rows":
        how = "write a row for each of them, with the same place, and the same team if they are partners"
    elif first.form == "columns":
        how = "give each of them a column"
    elif first.form == "sides":
        how = partners
    else:
        how = f"write {'='.join(parts)} if they tied"
        how += f", or pass --ties {sign}; {partners}" if first.table and joint else ""
    accept = "" if "/" in name else f"; {ACCEPT}"
    return Rejection("tied-players", f"{quote(name)} looks like more than one player: {how}{accept}")


def _joint(name: str) -> str:
    """Return what joins all the names of a cell; empty if that is not the same text everywhere.

    >>> _joint("Anna & Ben"), _joint("Anna und d"), _joint("A/B + C")
    ('&', ' und ', '')
    """
    separator = _SEPARATOR if split_tied_names(name) else _AND
    joints = {match.group().strip() for match in separator.finditer(name)}
    joint = joints.pop() if len(joints) == 1 else ""
    return f" {joint} " if any(map(str.isalpha, joint)) else joint


def find_invisible(name: str) -> str | None:
    """Return the first invisible character in a name, such as U+200B, or None.

    Joiners (U+200C, U+200D) are allowed where a script needs them: after a virama, or between letters of an Arabic
    script (RFC 5892, appendix A). So are the selectors that keyboards put behind an emoji or a Han letter.

    >>> [find_invisible(name) for name in ("an\\u200bna", "क्\\u200dष", "anna", "an\\u3164na", "❤\\ufe0f")]
    ['U+200B', None, None, 'U+3164', None]
    """
    for place, character in enumerate(name):
        if character in "\u200c\u200d":
            before, after = name[place - 1 : place], name[place + 1 : place + 2]
            virama = before and unicodedata.combining(before) == VIRAMA
            arabic = all(one and unicodedata.bidirectional(one) in ("AL", "NSM") for one in (before, after))
            if not (virama or (arabic and character == "\u200c")):
                return f"U+{ord(character):04X}"
        elif is_hidden(character) and not is_selector(character):
            return f"U+{ord(character):04X}"
    return None

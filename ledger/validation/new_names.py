"""Names that the ledger does not know yet: new players, possible slips, and cells that hold two players.

A name close to another is more often a slip than a new player. In a table, or in a game recorded by hand, it is
refused; in events from a program it is accepted and reported.
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
# at most this many new players are listed
TOLD_MAX = 20
ACCEPT = "if it is not a slip, --new-names accept takes it"

# where new names are refused: in tables, in all events, or nowhere
Refusing = Literal["tables", "all", ""]

REFUSED_NAMES = ("nobody", "tied-players", "bad-identifier")  # refused for these codes, a text is no name of a player

_TIE = re.compile(r"[&+/;＆＋／；]")
_SEPARATOR = re.compile("[&+/;,＆＋／；，]")
# texts that join two names only if both are known
_AND = re.compile(r"\s*,\s*|\s+(?:and|und|u\.|et|y|e|en|og|och)\s+")


# where a table has players' names: in rows of their own, in cells of places or sides, or in the headers of columns
TableForm = Literal["rows", "places", "sides", "columns", ""]


class FirstOccurrence(NamedTuple):
    """The first occurrence of a name: file and line, whether in a table, and where the table has players' names."""

    file: str
    line: int
    table: bool
    form: TableForm = ""


class CloseName(NamedTuple):
    """A new name that is close to others, with its first occurrence, if that is known.

    `others` has the number of games of each close name, or its first occurrence if it is new as well. `opponents` are
    the names in the same games: none of them can be the same player.
    """

    name: str
    first: FirstOccurrence | None
    others: dict[str, int | FirstOccurrence | None]
    opponents: frozenset[str] = frozenset()

    def question(self, placed: bool = True, numbered: bool = False) -> str:
        """Return the question about the name, optionally with its place and with numbers for the others.

        >>> CloseName("ana", FirstOccurrence("club.csv", 14, True), {"anna": 37}).question()
        "new: 'ana' (line 14): did you mean 'anna', 37 games?"
        """
        others = [f"{number}: {self._describe_other(other)}" for number, other in enumerate(self.others, 1)]
        listed = ", or ".join(others if numbered else map(self._describe_other, self.others))
        return f"{self._subject(placed)}: did you mean {listed}?"

    def question_of_opponents(self) -> str:
        """Return the question about a name whose `others` all play against it, so that none is the same player."""
        listed = " and ".join(map(self._describe_other, self.others))
        return f"{self._subject()} plays against {listed}: is it a new player?"

    def _subject(self, placed: bool = True) -> str:
        """Return the beginning of a question: the name, optionally with its place."""
        place = f" (line {self.first.line})" if placed and self.first is not None and self.first.file else ""
        return f"new: {_quote_with_odd_characters(self.name, *self.others)}{place}"

    def _describe_other(self, other: str) -> str:
        """Describe one of the others by its games or its first occurrence."""
        known, text = self.others[other], _quote_with_odd_characters(other, self.name)
        if known is None:
            return text
        if isinstance(known, int):
            return f"{text}, {count(known, 'game')}"
        is_same_file = self.first is None or known.file == self.first.file
        return f"{text}, new in line {known.line}{'' if is_same_file else f' of {known.file}'}"


def _quote_with_odd_characters(name: str, *others: str) -> str:
    """Quote a name, and list the characters that look like others' but differ."""
    odd_characters = list_odd_characters(name, *others)
    return quote(name) + (f" with {', '.join(odd_characters)}" if odd_characters else "")


def describe_close_names(close: Collection[Any]) -> str:
    """Return the phrase with the number of possible slips, for previews, imports and questions.

    >>> describe_close_names(["ana", "bem"])
    '2 new names close to others'
    """
    return f"{count(len(close), 'new name')} close to others"


class Newcomers:
    """The names in an import's events.

    `known` returns the names of the ledger, `games` the number of games of some of them.
    """

    def __init__(
        self,
        known: Callable[[Connection], Collection[str]],
        refusing: Refusing,
        strict: bool = False,
        accepted: Collection[str] = (),
        games: Callable[[Connection, Collection[str]], Mapping[str, int]] = lambda connection, names: {},
        report_close: bool = False,
        ranks_club: Callable[[Connection, str, str], bool] = lambda connection, ladder, name: False,
    ) -> None:
        """Collect names by these rules.

        With `strict` all new names are refused, otherwise those close to others and not `accepted`; with `report_close`
        these are only reported. `ranks_club` tells whether a ladder ranks clubs and a club of this name has played.
        """
        self._ranks_club = ranks_club
        # the ladders of names that only adjustments mention
        self._adjusted: dict[str, set[str]] = {}
        self._known_of = known
        self._games_of = games
        self._refusing = refusing
        self._strict = strict
        self._accepted = accepted
        self._report_close = report_close
        self._first: dict[str, FirstOccurrence] = {}
        # the new ids of renames, each with the old id and the first occurrence
        self._renamed: dict[str, tuple[str, FirstOccurrence]] = {}
        self._mentioned: set[str] = set()
        self._tables: set[str] = set()
        # the new players in input order, the new ids of known players, and the names close to others
        self.names: list[str] = []
        self.new_ids: list[str] = []
        self.close: dict[str, CloseName] = {}
        # for the first `TOLD_MAX` new names that are not close: other names that they may be slips of
        self.alike: dict[str, list[str]] = {}

    def meet(self, type_name: str, data: dict[str, Any], first: FirstOccurrence) -> None:
        """Collect the names of an event, with its place as their first occurrence."""
        if first.table:
            self._tables.add(first.file)
        if type_name == "player.renamed":
            self._renamed.setdefault(data["new_player"], (data["player"], first))
            return
        names = TYPES[type_name].brings(data)
        if type_name == "points.adjusted" or self._adjusted:
            self._meet_adjusted(type_name, names, data)
        self._meet_names(names, first)

    def meet_refused(self, names: Iterable[str], first: FirstOccurrence) -> None:
        """Note the names in a refused game of a table, so that what is wrong with them is told with everything else."""
        if first.table:
            self._tables.add(first.file)
            self._meet_names(names, first)

    def _meet_names(self, names: Iterable[str], first: FirstOccurrence) -> None:
        for name in names:
            known = self._first.get(name)
            if known is None or (first.table and not known.table):
                self._first[name] = first

    def _meet_adjusted(self, type_name: str, names: Iterable[str], data: dict[str, Any]) -> None:
        """Collect the names that only adjustments mention, and forget those that another event mentions, too."""
        for name in names:
            if type_name != "points.adjusted":
                self._adjusted.pop(name, None)
            elif name not in self._first or name in self._adjusted:
                self._adjusted.setdefault(name, set()).add(data["ladder"])

    def mention(self, names: Iterable[str]) -> None:
        """Collect the names in a refused event, which adds no player."""
        self._mentioned.update(names)

    def refusals(self, connection: Connection) -> dict[str, Rejection]:
        """Determine the new names; return the refusals by name, each at the name's first line."""
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
        self.close = self._find_close(connection, known)
        doubtful = [name for name in self.names if name not in self.close][:TOLD_MAX]
        self.alike = find_similar_names(doubtful, [*sorted(known), *self.names])
        if self.alike:
            current = identities(connection).current
            self.alike = {name: [*dict.fromkeys(map(current, others))] for name, others in self.alike.items()}
        refused = {
            name: self._find_rejection_of_name(name, known)
            if self.refuses(self._first[name].file)
            else self._refuse_invisible(name)
            for name in (*self.names, *self.new_ids)
        }
        # no question is needed about a name that is refused anyway
        self.close = {
            name: close for name, close in self.close.items() if getattr(refused[name], "code", "") not in REFUSED_NAMES
        }
        return {name: rejection for name, rejection in refused.items() if rejection is not None}

    def _find_close(self, connection: Connection, known: Collection[str]) -> dict[str, CloseName]:
        candidates = [*self.names, *self.new_ids]
        close_names = {
            name: close for name, close in find_close_names(candidates, sorted(known)) if name not in self._accepted
        }
        people = identities(connection)
        # a new id is mostly close to the id before it
        for name in close_names.keys() & set(self.new_ids):
            own_ids = self._ids_before(name, people)
            close_names[name] = [other for other in close_names[name] if other not in own_ids]
        # a former id stands for the present one
        close_names = {name: [*map(people.current, close)] for name, close in close_names.items()}
        close_names = {name: present for name, close in close_names.items() if (present := [*dict.fromkeys(close)])}
        mentioned = {other for close in close_names.values() for other in close}
        games = self._games_of(connection, mentioned) if close_names else {}
        return {
            name: CloseName(
                name,
                self._first[name],
                {other: games.get(other) if other in known else self._first[other] for other in close},
            )
            for name, close in close_names.items()
        }

    def _ids_before(self, name: str, people: Identities) -> set[str]:
        """Return the earlier ids of a player, in the ledger or in the input."""
        ids: set[str] = set()
        while name in self._renamed and self._renamed[name][0] not in ids:
            name = self._renamed[name][0]
            ids |= people.ids(name)
        return ids

    def refuses(self, file: str) -> bool:
        """Tell whether names in this file are refused."""
        return self._refusing == "all" or (self._refusing == "tables" and file in self._tables)

    def is_refused(self, name: str, refused: Mapping[str, Rejection], file: str) -> bool:
        """Tell whether a name in this file is among the refused ones, and refused there."""
        return name in refused and (self.refuses(file) or refused[name].code == "bad-identifier")

    def _refuse_invisible(self, name: str) -> Rejection | None:
        """Return the refusal of a name with an invisible character: two players would look the same."""
        if not (character := find_invisible(name)):
            return None
        first = self._first[name]
        message = f"{quote(name)} holds {character}, which is invisible; leave it out"
        return Rejection("bad-identifier", message, first.file, first.line)

    def _find_rejection_of_name(self, name: str, known: Collection[str]) -> Rejection | None:
        first = self._first[name]
        if problem := self._refuse_invisible(name):
            return problem
        is_player = name not in self.new_ids
        if is_player and name not in self._accepted and is_nobody(name):
            rejection = nobody_refusal(name)
        elif is_player and (parts := self._find_tied_names(name, known)):
            rejection = tied_refusal(name, parts, first)
        elif (close := self.close.get(name)) and (self._strict or not self._report_close):
            remedy = "correct it or name it with --aliases" if first.table else "correct it"
            message = f"{close.question(placed=False)} Then {remedy}"
            rejection = Rejection("close-name", message if self._strict else f"{message}; {ACCEPT}")
        elif is_player and self._strict:
            hint = f" (like {self.alike[name][0]}?)" if name in self.alike else ""
            rejection = Rejection("new-player", f"{quote(name)} is new{hint}, and --strict takes no new names")
        else:
            return None
        return rejection._replace(file=first.file, line=first.line)

    def _find_tied_names(self, name: str, known: Collection[str]) -> list[str]:
        """Return the players that a cell seems to hold, if there are several."""
        if parts := split_tied_names(name):
            return parts
        parts = _AND.split(name)
        are_all_known = all(part in known or part in self._first or part in self._mentioned for part in parts)
        return parts if len(parts) > 1 and are_all_known else []


def nobody_refusal(name: str) -> Rejection:
    """Return the refusal of a word such as bye in the place of a player."""
    message = f"{quote(name)} stands for nobody: leave the cell empty, or the row out if nobody played"
    return Rejection(
        "nobody", message if "/" in name else f"{message}; if a player is called so, --new-names accept takes it"
    )


def split_tied_names(name: str) -> list[str]:
    """Split a cell into names joined by &, +, / or ;; empty if it holds one name.

    >>> split_tied_names("Anna & Ben"), split_tied_names("Anna/Ben"), split_tied_names("C++")
    (['Anna', 'Ben'], ['Anna', 'Ben'], [])
    """
    parts = list(map(str.strip, _SEPARATOR.split(name))) if _TIE.search(name) else []
    return parts if all(parts) else []


def tied_refusal(name: str, parts: Iterable[str], first: FirstOccurrence) -> Rejection:
    """Return the refusal of a cell that holds several players."""
    joint = _find_joint(name)
    sign = shlex.quote(joint) if joint else "TEXT, with the same text between all of them"
    partners = f"if they are partners on one side, pass --partners {sign}"
    if first.form == "rows":
        remedy = "write a row for each of them, with the same place, and the same team if they are partners"
    elif first.form == "columns":
        remedy = "give each of them a column"
    elif first.form == "sides":
        remedy = partners
    else:
        remedy = f"write {'='.join(parts)} if they tied"
        remedy += f", or pass --ties {sign}; {partners}" if first.table and joint else ""
    accept = "" if "/" in name else f"; {ACCEPT}"
    return Rejection("tied-players", f"{quote(name)} looks like more than one player: {remedy}{accept}")


def _find_joint(name: str) -> str:
    """Find the text that joins all names of a cell; empty if the texts differ.

    >>> _find_joint("Anna & Ben"), _find_joint("Anna und d"), _find_joint("A/B + C")
    ('&', ' und ', '')
    """
    separator = _SEPARATOR if split_tied_names(name) else _AND
    joints = {match.group().strip() for match in separator.finditer(name)}
    joint = joints.pop() if len(joints) == 1 else ""
    return f" {joint} " if any(map(str.isalpha, joint)) else joint


def find_invisible(name: str) -> str | None:
    """Find the first invisible character in a name, such as U+200B; None if there is none.

    Joiners (U+200C, U+200D) are allowed where a script needs them: after a virama, or between letters of an Arabic
    script (RFC 5892, appendix A). So are the selectors that keyboards put behind an emoji or a Han letter.

    >>> [find_invisible(name) for name in ("an\\u200bna", "क्\\u200dष", "anna", "an\\u3164na", "❤\\ufe0f")]
    ['U+200B', None, None, 'U+3164', None]
    """
    for place, character in enumerate(name):
        if character in "\u200c\u200d":
            before, after = name[place - 1 : place], name[place + 1 : place + 2]
            virama = before and unicodedata.combining(before) == VIRAMA
            arabic = all(side and unicodedata.bidirectional(side) in ("AL", "NSM") for side in (before, after))
            if not (virama or (arabic and character == "\u200c")):
                return f"U+{ord(character):04X}"
        elif is_hidden(character) and not is_selector(character):
            return f"U+{ord(character):04X}"
    return None

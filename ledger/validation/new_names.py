"""Check the names that are new to the ledger: new players, possible typos, and cells that hold two players.

A new name that is close to another is more often a typo than a new player. It is refused in a table and in a game
recorded by hand; in events from a program it is accepted and reported.
"""

import re
import shlex
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.rejections import Rejection, count, quote
from ratings_ledger.ledger.validation.close_names import (
    find_close_names,
    find_similar_names,
    is_hidden,
    is_nobody,
    is_selector,
    list_odd_characters,
)
from ratings_ledger.ledger.validation.identities import Identities, read_identities

# the combining class of viramas
VIRAMA = 9
# how many new players a message lists at most
LISTED_NAMES_MAX = 20
_ACCEPT_HINT = "if the name is correct, pass --new-names accept"

# where new names are refused: in tables, in all events, or nowhere
RefusalScope = Literal["tables", "all", ""]

# the codes of refusals for texts that are not the name of one player
REFUSED_NAME_CODES = ("nobody", "tied-players", "bad-identifier")

_JOINING_SIGN = re.compile(r"[&+/;＆＋／；]")
_SEPARATOR = re.compile("[&+/;,＆＋／；，]")
# texts that join names only if all joined names are known
_AND = re.compile(r"\s*,\s*|\s+(?:and|und|u\.|et|y|e|en|og|och)\s+")


# where a table has the names of players: one per row, in cells for places or sides, or in the headers of columns
TableForm = Literal["rows", "places", "sides", "columns", ""]


class FirstOccurrence(NamedTuple):
    """The first occurrence of a name: file and line, whether the file is a table, and where the table has names."""

    file: str
    line: int
    table: bool
    form: TableForm = ""


class CloseName(NamedTuple):
    """A new name that is close to others.

    name        the new name
    first       its first occurrence, if that is known
    others      the close names, each with its number of games (None if unknown), or its first occurrence if also new
    opponents   the other names in the same games; none of them can be the same player
    """

    name: str
    first: FirstOccurrence | None
    others: dict[str, int | FirstOccurrence | None]
    opponents: frozenset[str] = frozenset()

    def format_question(self, with_line: bool = True, numbered: bool = False) -> str:
        """Format the question whether the name is a typo.

        `with_line` adds the line of the name, `numbered` numbers the close names.

        >>> CloseName("ana", FirstOccurrence("club.csv", 14, True), {"anna": 37}).format_question()
        "new: 'ana' (line 14): did you mean 'anna', 37 games?"
        """
        descriptions = [*map(self._describe_close_name, self.others)]
        if numbered:
            descriptions = [f"{number}: {text}" for number, text in enumerate(descriptions, 1)]
        return f"{self._describe_name(with_line)}: did you mean {', or '.join(descriptions)}?"

    def format_question_about_opponents(self) -> str:
        """Format the question whether the name is a new player, if all close names are opponents in the same games."""
        listed = " and ".join(map(self._describe_close_name, self.others))
        return f"{self._describe_name()} plays against {listed}: is it a new player?"

    def _describe_name(self, with_line: bool = True) -> str:
        """Return the beginning of a question: the name, and with `with_line` its line."""
        line_note = f" (line {self.first.line})" if with_line and self.first is not None and self.first.file else ""
        return f"new: {_quote_with_odd_characters(self.name, *self.others)}{line_note}"

    def _describe_close_name(self, name: str) -> str:
        """Describe one of `others` by its games or its first occurrence."""
        evidence, text = self.others[name], _quote_with_odd_characters(name, self.name)
        if evidence is None:
            return text
        if isinstance(evidence, int):
            return f"{text}, {count(evidence, 'game')}"
        is_same_file = self.first is None or evidence.file == self.first.file
        return f"{text}, new in line {evidence.line}{'' if is_same_file else f' of {evidence.file}'}"


def _quote_with_odd_characters(name: str, *other_names: str) -> str:
    """Quote a name, and list its invisible characters and those that only look like those of the other names."""
    odd_characters = list_odd_characters(name, *other_names)
    return quote(name) + (f" with {', '.join(odd_characters)}" if odd_characters else "")


def describe_close_names(close: Collection[Any]) -> str:
    """Return a phrase with the number of new names that are close to others, for previews, imports and questions.

    >>> describe_close_names(["ana", "bem"])
    '2 new names close to others'
    """
    return f"{count(len(close), 'new name')} close to others"


class NameCollector:
    """A collection of the names in an import's events. It finds the new names and refuses possible typos."""

    def __init__(
        self,
        read_known_names: Callable[[Connection], Collection[str]],
        refusal_scope: RefusalScope,
        strict: bool = False,
        accepted: Collection[str] = (),
        count_games: Callable[[Connection, Collection[str]], Mapping[str, int]] = lambda connection, names: {},
        report_close: bool = False,
        ranks_club: Callable[[Connection, str, str], bool] = lambda connection, ladder, name: False,
    ) -> None:
        """Set which names are refused.

        Args:
            read_known_names: Returns all names in the ledger.
            refusal_scope: Where new names are refused.
            strict: Refuse all new names, not only close names that are not `accepted`.
            accepted: Close names that are accepted as new players.
            count_games: Returns the number of games that each of these players has played, by name.
            report_close: Report close names instead of refusing them.
            ranks_club: Tells whether a ladder ranks clubs and a club of this name has played.
        """
        self._ranks_club = ranks_club
        # the ladders of the names that only adjustments mention
        self._adjusted: dict[str, set[str]] = {}
        self._read_known_names = read_known_names
        self._count_games = count_games
        self._refusal_scope = refusal_scope
        self._strict = strict
        self._accepted = accepted
        self._report_close = report_close
        self._first: dict[str, FirstOccurrence] = {}
        # the new ids of renames, each with the old id and the first occurrence
        self._renamed: dict[str, tuple[str, FirstOccurrence]] = {}
        self._mentioned: set[str] = set()
        self._tables: set[str] = set()
        # the new players, in the order of the input
        self.names: list[str] = []
        # the new ids of known players
        self.new_ids: list[str] = []
        # the new names that are close to others
        self.close: dict[str, CloseName] = {}
        # less similar names, as a hint, for each of the first `LISTED_NAMES_MAX` new names that are not close to others
        self.similar_names: dict[str, list[str]] = {}

    def collect_names(self, type_name: str, data: dict[str, Any], first: FirstOccurrence) -> None:
        """Collect the names in an event; `first` is the location of the event."""
        if first.table:
            self._tables.add(first.file)
        if type_name == "player.renamed":
            self._renamed.setdefault(data["new_player"], (data["player"], first))
            return
        names = TYPES[type_name].list_named_players(data)
        if type_name == "points.adjusted" or self._adjusted:
            self._collect_adjusted(type_name, names, data)
        self._record_first(names, first)

    def collect_names_of_refused(self, names: Iterable[str], first: FirstOccurrence) -> None:
        """Collect the names in a refused game of a table, so that an import reports all problems together."""
        if first.table:
            self._tables.add(first.file)
            self._record_first(names, first)

    def _record_first(self, names: Iterable[str], first: FirstOccurrence) -> None:
        for name in names:
            earlier = self._first.get(name)
            if earlier is None or (first.table and not earlier.table):
                self._first[name] = first

    def _collect_adjusted(self, type_name: str, names: Iterable[str], data: dict[str, Any]) -> None:
        """Collect the names that only adjustments mention, and drop those that another event mentions, too."""
        for name in names:
            if type_name != "points.adjusted":
                self._adjusted.pop(name, None)
            elif name not in self._first or name in self._adjusted:
                self._adjusted.setdefault(name, set()).add(data["ladder"])

    def collect_mentions(self, names: Iterable[str]) -> None:
        """Collect the names in a refused event. They help to split cells with two players, but are not new players."""
        self._mentioned.update(names)

    def find_refusals(self, connection: Connection) -> dict[str, Rejection]:
        """Find the new names; return the refusal of each refused name, located at the name's first line."""
        known = self._read_known_names(connection)
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
        other_new = [name for name in self.names if name not in self.close][:LISTED_NAMES_MAX]
        self.similar_names = find_similar_names(other_new, [*sorted(known), *self.names])
        if self.similar_names:
            to_current_id = read_identities(connection).current
            self.similar_names = {
                name: [*dict.fromkeys(map(to_current_id, similar))] for name, similar in self.similar_names.items()
            }
        rejections = {
            name: self._check_name(name, known)
            if self.refuses_names_in(self._first[name].file)
            else self._check_invisible(name)
            for name in (*self.names, *self.new_ids)
        }
        # a text that cannot be a name is not reported as a typo
        self.close = {
            name: close
            for name, close in self.close.items()
            if getattr(rejections[name], "code", "") not in REFUSED_NAME_CODES
        }
        return {name: rejection for name, rejection in rejections.items() if rejection is not None}

    def _find_close(self, connection: Connection, known: Collection[str]) -> dict[str, CloseName]:
        """Find the new names that are close to others and not accepted."""
        candidates = [*self.names, *self.new_ids]
        close_names = {
            name: close for name, close in find_close_names(candidates, sorted(known)) if name not in self._accepted
        }
        people = read_identities(connection)
        # the new id of a player may be close to their own earlier ids
        for name in close_names.keys() & set(self.new_ids):
            own_ids = self._list_earlier_ids(name, people)
            close_names[name] = [close_name for close_name in close_names[name] if close_name not in own_ids]
        # questions name the current id of a player instead of an earlier one
        current_names = {name: [*dict.fromkeys(map(people.current, close))] for name, close in close_names.items()}
        close_names = {name: current for name, current in current_names.items() if current}
        all_close = {close_name for close in close_names.values() for close_name in close}
        games = self._count_games(connection, all_close) if close_names else {}
        return {
            name: CloseName(
                name,
                self._first[name],
                {other: games.get(other) if other in known else self._first[other] for other in close},
            )
            for name, close in close_names.items()
        }

    def _list_earlier_ids(self, name: str, people: Identities) -> set[str]:
        """Return the earlier ids of a player, by the renames in the ledger and in the input."""
        ids: set[str] = set()
        while name in self._renamed and self._renamed[name][0] not in ids:
            name = self._renamed[name][0]
            ids |= people.ids(name)
        return ids

    def refuses_names_in(self, file: str) -> bool:
        """Tell whether new names in this file may be refused."""
        return self._refusal_scope == "all" or (self._refusal_scope == "tables" and file in self._tables)

    def is_refused(self, name: str, refused: Mapping[str, Rejection], file: str) -> bool:
        """Tell whether a name is refused in this file."""
        return name in refused and (self.refuses_names_in(file) or refused[name].code == "bad-identifier")

    def _check_invisible(self, name: str) -> Rejection | None:
        """Return the refusal of a name with an invisible character, which could make two players look the same."""
        if not (character := find_invisible(name)):
            return None
        first = self._first[name]
        message = f"{quote(name)} contains the invisible character {character}; leave it out"
        return Rejection("bad-identifier", message, first.file, first.line)

    def _check_name(self, name: str, known: Collection[str]) -> Rejection | None:
        """Return the refusal of a new name, or None."""
        first = self._first[name]
        if problem := self._check_invisible(name):
            return problem
        is_player = name not in self.new_ids
        if is_player and name not in self._accepted and is_nobody(name):
            rejection = build_nobody_rejection(name, first, self._strict)
        elif is_player and (parts := self._find_tied_names(name, known)):
            rejection = build_tied_rejection(name, parts, first, self._strict)
        elif (close := self.close.get(name)) and (self._strict or not self._report_close):
            remedy = "correct it or map it with --aliases" if first.table else "correct it"
            message = f"{close.format_question(with_line=False)} If so, {remedy}"
            rejection = Rejection("close-name", message if self._strict else f"{message}; {_ACCEPT_HINT}")
        elif is_player and self._strict:
            hint = f"; did you mean {quote(self.similar_names[name][0])}?" if name in self.similar_names else ""
            rejection = Rejection("new-player", f"{quote(name)} is new; to accept it, omit --strict{hint}")
        else:
            return None
        return rejection._replace(file=first.file, line=first.line)

    def _find_tied_names(self, name: str, known: Collection[str]) -> list[str]:
        """Return the names of the players that a cell seems to hold; empty if it seems to hold one player."""
        if parts := split_tied_names(name):
            return parts
        parts = _AND.split(name)
        are_all_known = all(part in known or part in self._first or part in self._mentioned for part in parts)
        return parts if len(parts) > 1 and are_all_known else []


def build_nobody_rejection(name: str, first: FirstOccurrence, strict: bool = False) -> Rejection:
    """Build the refusal of a word such as bye in the place of a player. With `strict`, no new name can be accepted."""
    cell, game = ("leave the cell empty", "omit the row") if first.table else ("leave it out", "record nothing")
    message = f"{quote(name)} does not name a player; {cell}, or {game} if there was no game"
    return Rejection(
        "nobody", message if strict or "/" in name else f"{message}; if a player has this name, pass --new-names accept"
    )


def split_tied_names(name: str) -> list[str]:
    """Split a cell into the names that &, +, / or ; join; return an empty list if the cell has none of these signs.

    >>> split_tied_names("Anna & Ben"), split_tied_names("Anna/Ben"), split_tied_names("C++")
    (['Anna', 'Ben'], ['Anna', 'Ben'], [])
    """
    parts = list(map(str.strip, _SEPARATOR.split(name))) if _JOINING_SIGN.search(name) else []
    return parts if all(parts) else []


def build_tied_rejection(name: str, parts: Iterable[str], first: FirstOccurrence, strict: bool = False) -> Rejection:
    """Build the refusal of a cell that holds several players. With `strict`, no new name can be accepted."""
    joint = _find_separator(name)
    sign = shlex.quote(joint) if joint else "TEXT, with the same text between all of them"
    partners = f"if they are partners on one side, pass --partners {sign}"
    if first.form == "rows":
        remedy = "write a row for each player, with the same place, and the same team if they are partners"
    elif first.form == "columns":
        remedy = "give each player a column"
    elif first.form == "sides":
        remedy = partners
    else:
        remedy = f"write {'='.join(parts)} if they tied"
        remedy += f", or pass --ties {sign}; {partners}" if first.table and joint else ""
    accept = "" if strict or "/" in name else f"; {_ACCEPT_HINT}"
    return Rejection("tied-players", f"{quote(name)} looks like more than one player; {remedy}{accept}")


def _find_separator(name: str) -> str:
    """Return the separator between all names of a cell, or an empty string if there are several separators.

    >>> _find_separator("Anna & Ben"), _find_separator("Anna und d"), _find_separator("A/B + C")
    ('&', ' und ', '')
    """
    separator = _SEPARATOR if split_tied_names(name) else _AND
    joints = {match.group().strip() for match in separator.finditer(name)}
    joint = joints.pop() if len(joints) == 1 else ""
    return f" {joint} " if any(map(str.isalpha, joint)) else joint


def find_invisible(name: str) -> str | None:
    """Return the first invisible character in a name, such as U+200B, or None.

    Joiners (U+200C, U+200D) are allowed where a script needs them: after a virama, and U+200C also between Arabic
    letters (RFC 5892, appendix A). Variation selectors are also allowed, because keyboards add them to an emoji or a
    Han letter.

    >>> [find_invisible(name) for name in ("an\\u200bna", "क्\\u200dष", "anna", "an\\u3164na", "❤\\ufe0f")]
    ['U+200B', None, None, 'U+3164', None]
    """
    for index, character in enumerate(name):
        if character in "\u200c\u200d":
            before, after = name[index - 1 : index], name[index + 1 : index + 2]
            is_after_virama = before and unicodedata.combining(before) == VIRAMA
            is_arabic = all(side and unicodedata.bidirectional(side) in ("AL", "NSM") for side in (before, after))
            if not (is_after_virama or (is_arabic and character == "\u200c")):
                return f"U+{ord(character):04X}"
        elif is_hidden(character) and not is_selector(character):
            return f"U+{ord(character):04X}"
    return None

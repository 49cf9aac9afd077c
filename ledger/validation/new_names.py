"""Names that the ledger does not know yet: who is new, which names may be slips, and cells that hold two players.

    Bne        is close to the known ben? No: two letters differ.      Jurgen   is close to Jürgen
    Ana Maria  is close to Anamaria                                    mira2    is not close to mira1

A name that is close to another is more often a slip of the pen than a newcomer. In a table, or where one game is
recorded by hand, it is refused; in events written by a program it is accepted, and reported.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection

from ledger.events.types import TYPES
from ledger.rejections import Rejection, shown

# names with this many letters are close if they differ by one
LETTERS_MIN = 5
# shorter names differ by one letter too often to be reported
ALIKE_MIN = 3
# combining characters of this class and above are accents; those below are parts of letters, as in kana and Devanagari
ACCENT_CLASS_MIN = 200
# Hebrew and Arabic vowel points, which are mostly left out
VOWEL_CLASSES = range(10, 36)
VIRAMA = 9
# at most this many new players are named
TOLD_MAX = 20
ACCEPT = "if it is not a slip, --new-names accept takes it"

# where new names are refused: in tables, in all events, or nowhere
Refusing = Literal["tables", "all", ""]

_TIE = re.compile(r"[&+/;＆＋／；]")
_SEPARATOR = re.compile(r"\s*[&+/;,＆＋／；，]\s*")
# what joins two names only if both are known
_AND = re.compile(r"\s*,\s*|\s+(?:and|und|u\.|et|y|e|en|og|och)\s+")


class First(NamedTuple):
    """Where a name first occurs: file and line, whether in a table, and whether that has a row per player."""

    file: str
    line: int
    table: bool
    long: bool


class Newcomers:
    """The names that an import's events bring; `known` gives those that the ledger has."""

    def __init__(
        self,
        known: Callable[[Connection], Collection[str]],
        refusing: Refusing,
        strict: bool = False,
    ) -> None:
        """With `strict` all new names are refused there, otherwise only those close to others."""
        self._known_of = known
        self._refusing = refusing
        self._strict = strict
        self._first: dict[str, First] = {}
        self._mentioned: set[str] = set()
        self._tables: set[str] = set()
        # who is new, in input order, and those close to others
        self.names: list[str] = []
        self.close: dict[str, list[str]] = {}
        # for the first `TOLD_MAX` who are new and not close: other names that a slip may have turned into theirs
        self.alike: dict[str, list[str]] = {}

    def meet(self, type_name: str, data: dict[str, Any], first: First) -> None:
        """Note the names of an event that occurs there."""
        if first.table:
            self._tables.add(first.file)
        there = self._first
        for name in TYPES[type_name].brings(data):
            if name not in there or (first.table and not there[name].table):
                there[name] = first

    def mention(self, names: Iterable[str]) -> None:
        """Note the names in a refused event: they are in the input, though it adds no player."""
        self._mentioned.update(names)

    def refusals(self, connection: Connection) -> dict[str, Rejection]:
        """Work out who is new; the refusals by name, each at the name's first line."""
        known = self._known_of(connection)
        self.names = [name for name in self._first if name not in known]
        if not self.names:
            return {}
        self.close = dict(close_names(self.names, sorted(known)))
        doubtful = [name for name in self.names if name not in self.close][:TOLD_MAX]
        self.alike = alike(doubtful, [*sorted(known), *self.names])
        refused = {
            name: self._refusal(name, known) if self.refuses(self._first[name].file) else self._unseen(name)
            for name in self.names
        }
        return {name: rejection for name, rejection in refused.items() if rejection is not None}

    def refuses(self, file: str) -> bool:
        """Whether names in this file are refused."""
        return self._refusing == "all" or (self._refusing == "tables" and file in self._tables)

    def is_refused(self, name: str, refused: Mapping[str, Rejection], file: str) -> bool:
        """Whether a name in this file is among the refused ones, and refused there."""
        return name in refused and (self.refuses(file) or refused[name].code == "bad-identifier")

    def _unseen(self, name: str) -> Rejection | None:
        """The refusal of a name with invisible characters: two people would look like one."""
        if not (found := unseen(name)):
            return None
        first = self._first[name]
        message = f"{shown(name)} holds {found}, which is invisible; leave it out"
        return Rejection("bad-identifier", message, first.file, first.line)

    def _refusal(self, name: str, known: Collection[str]) -> Rejection | None:
        first = self._first[name]
        if problem := self._unseen(name):
            return problem
        if parts := self._tied(name, known):
            rejection = tied_refusal(name, parts, first.long)
        elif others := self.close.get(name):
            told = ", ".join(f"{shown(other)}{self._where(other, first.file)}" for other in others)
            accept = "" if self._strict else f"; {ACCEPT}"
            rejection = Rejection("close-name", f"{shown(name)} is new and close to {told}{accept}")
        elif self._strict:
            like = f" (like {self.alike[name][0]}?)" if name in self.alike else ""
            rejection = Rejection("new-player", f"{shown(name)} is new{like}, and --strict takes no new names")
        else:
            return None
        return rejection._replace(file=first.file, line=first.line)

    def _tied(self, name: str, known: Collection[str]) -> list[str]:
        """The players that a cell seems to hold, if there is more than one."""
        if parts := tied_parts(name):
            return parts
        parts = _AND.split(name)
        there = all(part in known or part in self._first or part in self._mentioned for part in parts)
        return parts if len(parts) > 1 and there else []

    def _where(self, name: str, file: str) -> str:
        if name not in self._first:
            return ""
        first = self._first[name]
        return f" (line {first.line})" if first.file == file else f" (line {first.line} of {first.file})"


def tied_parts(name: str) -> list[str]:
    """The names in a cell, joined by &, +, / or ;; empty if it is one name.

    >>> tied_parts("Anna & Ben"), tied_parts("Anna/Ben"), tied_parts("C++")
    (['Anna', 'Ben'], ['Anna', 'Ben'], [])
    """
    parts = _SEPARATOR.split(name) if _TIE.search(name) else []
    return parts if all(parts) else []


def tied_refusal(name: str, parts: Iterable[str], long: bool) -> Rejection:
    """The refusal of a cell that holds several players."""
    how = "a row for each of them, with the same place" if long else "=".join(parts)
    accept = "" if "/" in name else f"; {ACCEPT}"
    return Rejection("tied-players", f"{shown(name)} looks like more than one player: write {how}{accept}")


def folded(name: str) -> str:
    """A name without what people often leave out: capitals, accents and blanks.

    >>> folded("María José") == folded("mariajose"), folded("Jürgen")
    (True, 'jurgen')
    """
    name = "".join(name.casefold().split())
    if name.isascii():
        return name
    apart = unicodedata.normalize("NFKD", name)
    kept = [character for character in apart if not _left_out(character)]
    return unicodedata.normalize("NFC", "".join(kept)).casefold()


def unseen(name: str) -> str | None:
    """The first invisible character in a name, such as U+200B, or None.

    Joiners (U+200C, U+200D) are allowed where a script needs them: after a virama, or between letters of an Arabic
    script (RFC 5892, appendix A).

    >>> unseen("an\\u200bna"), unseen("क्\\u200dष"), unseen("anna")
    ('U+200B', None, None)
    """
    for place, character in enumerate(name):
        code = ord(character)
        if character in "\u200c\u200d":
            before, after = name[place - 1 : place], name[place + 1 : place + 2]
            virama = before and unicodedata.combining(before) == VIRAMA
            arabic = all(one and unicodedata.bidirectional(one) in ("AL", "NSM") for one in (before, after))
            if not (virama or (arabic and character == "\u200c")):
                return f"U+{code:04X}"
        elif character in "\u200b\u2060\ufeff\u00ad" or 0xE0000 <= code <= 0xE007F:
            return f"U+{code:04X}"
    return None


def _left_out(character: str) -> bool:
    """Whether a character is an accent, a vowel mark or invisible."""
    mark = unicodedata.combining(character)
    return mark >= ACCENT_CLASS_MIN or mark in VOWEL_CLASSES or unicodedata.category(character) == "Cf"


def close_names(new: Collection[str], known: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """The new names that are close to known ones or to earlier new ones, each with those.

    Close: equal once `folded`; or one letter apart where both have `LETTERS_MIN` letters and no digit differs. The time
    it takes grows with the sum of both, not with their product.
    """
    found: dict[str, list[str]] = {}
    index: dict[str, list[str]] = {}
    place = {name: number for number, name in enumerate(new)}
    for name in new:
        for key in _keys(folded(name)):
            index.setdefault(key, []).append(name)
    for name in (*known, *new):
        bare = folded(name)
        for other in {other for key in _keys(bare) if key in index for other in index[key]}:
            # of two new ones, the later is reported
            if place.get(name, -1) < place[other] and _close(bare, folded(other)):
                found.setdefault(other, []).append(name)
    for name in new:
        if name in found:
            yield name, found[name]


def alike(new: Collection[str], others: Iterable[str]) -> dict[str, list[str]]:
    """The new names that may be others mistyped, though they are not close enough to be refused.

    Two letters changed places, or there is one more or one fewer, in names of at least `ALIKE_MIN` letters.
    """
    texts = {folded(name): name for name in new}
    place = {name: number for number, name in enumerate(new)}
    slips: dict[str, set[str]] = {}
    for text, name in texts.items():
        for slip in (*_swapped(text), *_shortened(text)):
            slips.setdefault(slip, set()).add(name)
    found: dict[str, list[str]] = {}
    for other in others:
        text = folded(other)
        hits = slips.get(text, set()) | {texts[shorter] for shorter in _shortened(text) if shorter in texts}
        for name in hits:
            # of two new ones, the later is reported
            if place.get(other, -1) < place[name]:
                found.setdefault(name, []).append(other)
    return found


def _swapped(name: str) -> Iterator[str]:
    """A name with two neighbouring letters swapped."""
    for place in range(len(name) - 1) if len(name) >= ALIKE_MIN else ():
        pair = name[place : place + 2]
        if pair[0] != pair[1] and not any(map(str.isdigit, pair)):
            yield name[:place] + pair[::-1] + name[place + 2 :]


def _shortened(name: str) -> Iterator[str]:
    """A name with one letter left out."""
    for place, letter in enumerate(name) if len(name) > ALIKE_MIN else ():
        if not letter.isdigit():
            yield name[:place] + name[place + 1 :]


def _keys(name: str) -> list[str]:
    """Texts of which names one letter apart share one: the name itself, and with each letter but no digit left out."""
    if len(name) < LETTERS_MIN:
        return [name]
    return [name, *(name[:place] + name[place + 1 :] for place, letter in enumerate(name) if not letter.isdigit())]


def _close(one: str, other: str) -> bool:
    if one == other:
        return True
    if min(sum(map(str.isalpha, one)), sum(map(str.isalpha, other))) < LETTERS_MIN or abs(len(one) - len(other)) > 1:
        return False
    pairs = enumerate(zip(one, other, strict=False))
    start = next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
    if len(one) == len(other):
        rest, differing = one[start + 1 :] == other[start + 1 :], one[start] + other[start]
    else:
        longer, shorter = (one, other) if len(one) > len(other) else (other, one)
        rest, differing = longer[start + 1 :] == shorter[start:], longer[start]
    return rest and not any(map(str.isdigit, differing))

"""Which names are so much alike that one may be the other, mistyped.

Bne        is close to the known ben? No: two letters differ.      Jurgen       is close to Jürgen
Ana Maria  is close to Anamaria                                    mira2        is not close to mira1
Smith, Eva is close to Eva Smith                                   Annb Schmid  is not close to Anna Schmidt
mіrа       is close to mira: і and а are Cyrillic                  мира         is not close to mira
"""

import unicodedata
from collections.abc import Collection, Iterable, Iterator

from ratings_ledger.ledger.validation.look_alikes import is_hidden, looks

# names with this many letters are close if they differ by one
LETTERS_MIN = 5
# shorter names differ by one letter too often to be reported
ALIKE_MIN = 3
# combining characters of this class and above are accents; those below are parts of letters, as in kana and Devanagari
ACCENT_CLASS_MIN = 200
# Hebrew and Arabic vowel points, which are mostly left out
VOWEL_CLASSES = range(10, 36)


def folded(name: str) -> str:
    """Return a name without what people often leave out, capitals, accents and blanks, and without what is invisible.

    >>> folded("María José") == folded("mariajose"), folded("Jürgen")
    (True, 'jurgen')
    """
    name = "".join(name.casefold().split())
    if name.isascii():
        return name
    apart = unicodedata.normalize("NFKD", name).translate(_KEPT)
    return unicodedata.normalize("NFC", apart).casefold()


class _Kept(dict[int, int | None]):
    """By code: the character itself, or None for an accent, a vowel mark and what is invisible; each looked up once."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        mark = unicodedata.combining(character)
        invisible = unicodedata.category(character) == "Cf" or is_hidden(character)
        self[code] = None if mark >= ACCENT_CLASS_MIN or mark in VOWEL_CLASSES or invisible else code
        return self[code]


_KEPT = _Kept()


def close_names(new: Collection[str], known: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the new names that are close to known ones or to earlier new ones, each with those.

    Close: equal once `folded`; alike in what they show (`looks`); one letter apart where both have `LETTERS_MIN`
    letters and no digit differs; or without digits and with the first or the last word at the other end. The time it
    takes grows with the sum of both, not with their product.
    """
    found: dict[str, list[str]] = {}
    index, halves = dict[str, list[str]](), set[str]()
    turned, looking = dict[str, list[str]](), dict[str, list[str]]()
    place = {name: number for number, name in enumerate(new)}
    for name in new:
        bare = folded(name)
        halves.update(_halves(bare))
        for key in _keys(bare):
            index.setdefault(key, []).append(name)
        for key in _turned(name):
            turned.setdefault(key, []).append(name)
        for key in looks(name):
            looking.setdefault(key, []).append(name)
    for name in (*known, *new):
        bare = folded(name)
        others = set(turned.get(bare.replace(",", ""), ()))
        for key in looks(name):
            if key in looking:
                others.update(looking[key])
        if not halves.isdisjoint(_halves(bare)):
            sharing = {other for key in _keys(bare) for other in index.get(key, ())} - {name}
            others.update(other for other in sharing if _close(bare, folded(other)))
        for other in others:
            # of two new ones, the later is reported
            if place.get(name, -1) < place[other]:
                found.setdefault(other, []).append(name)
    for name in new:
        if name in found:
            yield name, found[name]


def alike(new: Collection[str], others: Iterable[str]) -> dict[str, list[str]]:
    """Return the new names that may be others mistyped, though they are not close enough to be refused.

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
    """Yield a name with two neighbouring letters swapped."""
    for place in range(len(name) - 1) if len(name) >= ALIKE_MIN else ():
        pair = name[place : place + 2]
        if pair[0] != pair[1] and not any(map(str.isdigit, pair)):
            yield name[:place] + pair[::-1] + name[place + 2 :]


def _shortened(name: str) -> Iterator[str]:
    """Yield a name with one letter left out."""
    for place, letter in enumerate(name) if len(name) > ALIKE_MIN else ():
        if not letter.isdigit():
            yield name[:place] + name[place + 1 :]


def _halves(name: str) -> tuple[str, ...]:
    """Texts of which names that are equal or one letter apart share one: a letter changes only one half of a name.

    Most names share none with the new ones, and need no `_keys`.
    """
    size = len(name)
    start, end = size - size // 2, size - size // 2 - 1
    return f"{name[: (size - 1) // 2]}-", f"{name[: (size + 1) // 2]}-", f"-{name[start:]}", f"-{name[max(end, 0) :]}"


def _turned(name: str) -> set[str]:
    """Return a name with its last word first, and with its first word last; without blanks and commas, as in Smith,
    Eva.
    """
    words = unicodedata.normalize("NFKC", name).replace(",", " ").split()
    if len(words) < 2 or any(map(str.isdigit, name)):
        return set()
    return {folded("".join([words[-1], *words[:-1]])), folded("".join([*words[1:], words[0]]))}


def _keys(name: str) -> list[str]:
    """Texts of which names one letter apart share one: the name itself, and with each letter but no digit left out."""
    if len(name) < LETTERS_MIN:
        return [name]
    # of a letter that is repeated it does not matter which is left out
    shorter = (name[:place] + name[place + 1 :] for place, letter in enumerate(name) if not letter.isdigit())
    return [name, *dict.fromkeys(shorter)]


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

"""Which names are so much alike that one may be the other, mistyped; and which name nobody.

Bne        is close to the known ben? No: two letters differ.      Jurgen       is close to Jürgen
Ana Maria  is close to Anamaria                                    mira2        is not close to mira1
Smith, Eva is close to Eva Smith                                   Annb Schmid  is not close to Anna Schmidt
Pirya      is close to Priya: two neighbours changed places        Iav          is not close to Iva: too short
mіrа       is close to mira: і and а are Cyrillic                  мира         is not close to mira

Names look alike if their characters are hidden, or are drawn like others, as Cyrillic а is like a. Unicode Technical
Standard 39 says which characters are confusable; `look_alikes.txt` has its data.

A dash in an empty cell, or a word such as bye, stands in the place of a name and names nobody. A player called so would
be rated: whoever had nobody to play with would win against them, or lose.
"""

import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path

# the property Default_Ignorable_Code_Point of Unicode 18, reserved ranges included: they are drawn as nothing
_IGNORABLE = (
    range(0xAD, 0xAE), range(0x34F, 0x350), range(0x61C, 0x61D), range(0x115F, 0x1161), range(0x17B4, 0x17B6),
    range(0x180B, 0x1810), range(0x200B, 0x2010), range(0x202A, 0x202F), range(0x2060, 0x2070), range(0x3164, 0x3165),
    range(0xFE00, 0xFE10), range(0xFEFF, 0xFF00), range(0xFFA0, 0xFFA1), range(0xFFF0, 0xFFF9),
    range(0x1BCA0, 0x1BCA4), range(0x1D173, 0x1D17B), range(0xE0000, 0xE1000),
)  # fmt: skip
# drawn as a blank, though they are no spaces: the empty pattern of Braille, the null notehead, the filler of Khitan
_BLANK = (0x2800, 0x1D159, 0x16FE4)
# these choose a form of the character before them, of an emoji or of a Han or Mongolian letter, and are typed with it
_SELECTORS = (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))


def is_hidden(character: str) -> bool:
    """Return whether a character shows nothing, without being a space.

    >>> [is_hidden(character) for character in "\\u034f\\u3164\\u2800\\ufe0f a"]
    [True, True, True, True, False, False]
    """
    code = ord(character)
    return code > 0x7F and (code in _BLANK or any(code in codes for codes in _IGNORABLE))


def is_selector(character: str) -> bool:
    """Return whether a character chooses a form of the one before it."""
    return any(ord(character) in codes for codes in _SELECTORS)


def list_look_alike_keys(name: str) -> tuple[str, str]:
    """Return two texts of which names that look alike share one: the skeleton, and the name as Latin letters.

    The skeleton is that of UTS 39, without blanks, where capitals count. The other also finds names that differ in
    capitals and accents; it is the skeleton again if the name has a letter that is like none of the Latin ones.

    >>> keys = {*list_look_alike_keys("mira")}
    >>> sorted(keys & {*list_look_alike_keys("mіrа")}), sorted(keys & {*list_look_alike_keys("Мира")})
    (['rnira', '~mira'], [])
    """
    if name.isascii():
        skeleton = name = name.replace(" ", "")
        for character, prototype in _ascii_prototypes():
            skeleton = skeleton.replace(character, prototype)
        return skeleton, "~" + name.casefold()
    name = "".join(name.split())
    skeleton = unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).translate(_prototypes()))
    latin = unicodedata.normalize("NFKD", name).translate(_latin())
    return skeleton, skeleton if _OTHER in latin else "~" + latin


def list_odd_characters(name: str, *others: str) -> list[str]:
    """Return the characters by which a name that looks like others differs from them, as U+XXXX.

    >>> list_odd_characters("mіra", "mira"), list_odd_characters("mira\\ufe0f", "mira"), list_odd_characters("é", "e")
    (['U+0456'], ['U+FE0F'], [])
    """
    if name.isascii():
        return []
    alike = [other for other in others if not set(list_look_alike_keys(name)).isdisjoint(list_look_alike_keys(other))]
    odd = (
        character for character in unicodedata.normalize("NFC", name)
        if is_hidden(character) or (alike and _latin()[ord(character)] != _OTHER and _is_foreign(character))
    )  # fmt: skip
    return [f"U+{ord(character):04X}" for character in dict.fromkeys(odd) if not any(character in o for o in alike)]


# in place of a letter that is like no Latin one
_OTHER = "\0"
# marks of this class and above are accents
_ACCENT_CLASS_MIN = 200


class _Prototypes(dict[int, str]):
    """By code: what stands for all characters that are drawn alike; each is looked up once."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        parts = unicodedata.normalize("NFKD", character)
        self[code] = "" if is_hidden(character) else parts if parts == character else parts.translate(self)
        return self[code]


class _Latin(dict[int, str]):
    """By code: the small Latin letters, digits and signs that a character is drawn like, in small or as a capital."""

    def __missing__(self, code: int) -> str:
        self[code] = self._letters(chr(code))
        return self[code]

    def _letters(self, character: str) -> str:
        if character.isascii():
            return character.casefold()
        if is_hidden(character) or unicodedata.combining(character) >= _ACCENT_CLASS_MIN:
            return ""
        for variant in (character, character.upper(), character.lower()):
            like = variant.translate(_prototypes())
            if like.isascii():
                # these prototypes stand for I and m as well
                return "i" if like == "l" and variant.isupper() else like.replace("rn", "m").casefold()
        return _OTHER if _is_foreign(character) else character.casefold()


def _is_foreign(character: str) -> bool:
    return character.isalpha() and not unicodedata.name(character, "").startswith("LATIN ")


@cache
def _prototypes() -> _Prototypes:
    found = _Prototypes()
    for line in (Path(__file__).parent / "look_alikes.txt").read_text(encoding="utf-8").splitlines():
        prototype, _, characters = line.partition("\t")
        found.update((ord(character), prototype) for character in characters)
    return found


@cache
def _ascii_prototypes() -> list[tuple[str, str]]:
    """Return the few of ASCII characters; replacing them one by one takes less time than a translation."""
    return [
        (chr(code), prototype) for code, prototype in _prototypes().items() if code < 0x80 and prototype != chr(code)
    ]


@cache
def _latin() -> _Latin:
    return _Latin()


# names with this many letters are close if they differ by one
LETTERS_MIN = 5
# shorter names differ by one letter too often to be reported
ALIKE_MIN = 3
# combining characters of this class and above are accents; those below are parts of letters, as in kana and Devanagari
ACCENT_CLASS_MIN = 200
# Hebrew and Arabic vowel points, which are mostly left out
VOWEL_CLASSES = range(10, 36)


def fold_name(name: str) -> str:
    """Return a name without what people often leave out, capitals, accents and blanks, and without what is invisible.

    >>> fold_name("María José") == fold_name("mariajose"), fold_name("Jürgen")
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


def find_close_names(new: Collection[str], known: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the new names that are close to known ones or to earlier new ones, each with those.

    Two names are close if they are equal after `fold_name`, if they look alike (`list_look_alike_keys`), if one letter
    differs or two neighbours are swapped where both have `LETTERS_MIN` letters and no digit differs, or if they have no
    digits and the first or the last word of one is at the other end. The time grows with the sum of both lists, not
    with their product.
    """
    found: dict[str, list[str]] = {}
    index, halves = dict[str, list[str]](), set[str]()
    turned, looking = dict[str, list[str]](), dict[str, list[str]]()
    place = {name: number for number, name in enumerate(new)}
    for name in new:
        bare = fold_name(name)
        halves.update(_halves(bare))
        for key in _keys(bare):
            index.setdefault(key, []).append(name)
        for key in _turned(name):
            turned.setdefault(key, []).append(name)
        for key in list_look_alike_keys(name):
            looking.setdefault(key, []).append(name)
    for name in (*known, *new):
        bare = fold_name(name)
        others = set(turned.get(bare.replace(",", ""), ()))
        for key in list_look_alike_keys(name):
            if key in looking:
                others.update(looking[key])
        if not halves.isdisjoint(_halves(bare)):
            sharing = {other for key in _keys(bare) for other in index.get(key, ())} - {name}
            others.update(other for other in sharing if _close(bare, fold_name(other)))
        for other in others:
            # of two new ones, the later is reported
            if place.get(name, -1) < place[other]:
                found.setdefault(other, []).append(name)
    for name in new:
        if name in found:
            yield name, found[name]


def find_similar_names(new: Collection[str], others: Iterable[str]) -> dict[str, list[str]]:
    """Return the new names that may be others mistyped, though they are not close enough to be refused.

    Two letters changed places, or there is one more or one fewer, in names of at least `ALIKE_MIN` letters.
    """
    texts = {fold_name(name): name for name in new}
    place = {name: number for number, name in enumerate(new)}
    slips: dict[str, set[str]] = {}
    for text, name in texts.items():
        for slip in (*_swapped(text), *_shortened(text)):
            slips.setdefault(slip, set()).add(name)
    found: dict[str, list[str]] = {}
    for other in others:
        text = fold_name(other)
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
    """Texts of which names that are equal or one letter apart share one: a letter changes only one half of a name, and
    two neighbours that change places leave the shorter first half or the shorter last one as it was.

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
    return {fold_name("".join([words[-1], *words[:-1]])), fold_name("".join([*words[1:], words[0]]))}


def _keys(name: str) -> list[str]:
    """Texts of which names one letter apart share one: the name itself, and with each letter but no digit left out.

    Names with two neighbours swapped share the one without either of these.
    """
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
        changed = 2 if one[start : start + 2] == other[start : start + 2][::-1] else 1
        rest, differing = one[start + changed :] == other[start + changed :], one[start] + other[start]
    else:
        longer, shorter = (one, other) if len(one) > len(other) else (other, one)
        rest, differing = longer[start + 1 :] == shorter[start:], longer[start]
    return rest and not any(map(str.isdigit, differing))


# English, German, French, Spanish, Italian, Portuguese, Dutch, Polish, the Nordic languages; folded by `fold_name`
_WORDS = """bye none null nil nobody noone noopponent n/a walkover
    freilos spielfrei niemand keiner kampflos
    exempt exempte repos personne aucun
    libre descansa descanso nadie ninguno
    riposo riposa nessuno
    folga ninguem nenhum
    vrijloting geen
    pauza pauzuje nikt wolnylos
    frirunde ingen"""
NOBODIES = frozenset(_WORDS.split())
_EDGES = "()[]<>*.-–— "
# emoji are other symbols (So), and may be names
_EMPTY_KINDS = ("Sm", "Sc", "Sk", "Zs")


def is_dash(text: str) -> bool:
    """Tell whether a cell has something, but nothing that names anybody: only punctuation and signs.

    >>> [is_dash(text) for text in ("-", "–", "?", "...", "", "x", "7", "🦊", "-x-")]
    [True, True, True, True, False, False, False, False, False]
    """
    # most names begin with a letter
    if not text or text[0].isalnum():
        return False
    return all(kind[0] == "P" or kind in _EMPTY_KINDS for kind in map(unicodedata.category, text))


def is_nobody(name: str) -> bool:
    """Tell whether a name is a word for nobody, or shows nothing at all.

    >>> [is_nobody(name) for name in ("BYE", "(bye)", "no one", "\ufe0f", "Byers", "Nina")]
    [True, True, True, True, False, False]
    """
    return fold_name(name.strip(_EDGES)) in NOBODIES or not fold_name(name)

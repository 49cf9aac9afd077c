"""Comparison of names: which may be mistyped forms of others, and which stand for no player.

Bne        is close to the known ben? No: two letters differ.      Jurgen       is close to Jürgen
Ana Maria  is close to Anamaria                                    mira2        is not close to mira1
Smith, Eva is close to Eva Smith                                   Annb Schmid  is not close to Anna Schmidt
Pirya      is close to Priya: two neighbours changed places        Iav          is not close to Iva: too short
mіrа       is close to mira: і and а are Cyrillic                  мира         is not close to mira

Names look alike if their characters are hidden, or are drawn like others, as Cyrillic а is like a. Unicode Technical
Standard 39 says which characters are confusable; `look_alikes.txt` has its data.

A dash in an empty cell, or a word such as bye, stands for no player. A player with such a name would be rated: each
player without an opponent would win against them, or lose.
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
# drawn as a blank, though not spaces: the empty pattern of Braille, the null notehead, the filler of Khitan
_BLANK = (0x2800, 0x1D159, 0x16FE4)
# these choose a form of the character before them, of an emoji or of a Han or Mongolian letter, and are typed with it
_SELECTORS = (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))


def is_hidden(character: str) -> bool:
    """Tell whether a character is invisible and not a space.

    >>> [is_hidden(character) for character in "\\u034f\\u3164\\u2800\\ufe0f a"]
    [True, True, True, True, False, False]
    """
    code = ord(character)
    return code > 0x7F and (code in _BLANK or any(code in codes for codes in _IGNORABLE))


def is_selector(character: str) -> bool:
    """Tell whether a character selects a form of the one before it."""
    return any(ord(character) in codes for codes in _SELECTORS)


def list_look_alike_keys(name: str) -> tuple[str, str]:
    """List two keys of a name, its skeleton and its Latin letters; names that look alike share one of them.

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
    return skeleton, skeleton if _NO_LATIN in latin else "~" + latin


def list_odd_characters(name: str, *others: str) -> list[str]:
    """Return the characters by which a name that looks like others differs from them, as U+XXXX.

    >>> list_odd_characters("mіra", "mira"), list_odd_characters("mira\\ufe0f", "mira"), list_odd_characters("é", "e")
    (['U+0456'], ['U+FE0F'], [])
    """
    if name.isascii():
        return []
    look_alikes = [
        other for other in others if not set(list_look_alike_keys(name)).isdisjoint(list_look_alike_keys(other))
    ]
    odd_characters = (
        character for character in unicodedata.normalize("NFC", name)
        if is_hidden(character) or (look_alikes and _latin()[ord(character)] != _NO_LATIN and _is_foreign(character))
    )  # fmt: skip
    return [
        f"U+{ord(character):04X}"
        for character in dict.fromkeys(odd_characters)
        if not any(character in o for o in look_alikes)
    ]


# stands for a letter that is like no Latin one
_NO_LATIN = "\0"
# combining characters of this class and above are accents; those below are parts of letters, as in kana and Devanagari
ACCENT_CLASS_MIN = 200


class _PrototypeTable(dict[int, str]):
    """A lazy table by code: the prototype of all characters that look alike."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        parts = unicodedata.normalize("NFKD", character)
        self[code] = "" if is_hidden(character) else parts if parts == character else parts.translate(self)
        return self[code]


class _LatinTable(dict[int, str]):
    """A lazy table by code: the small Latin letters, digits and signs that a character looks like."""

    def __missing__(self, code: int) -> str:
        self[code] = self._to_latin(chr(code))
        return self[code]

    def _to_latin(self, character: str) -> str:
        if character.isascii():
            return character.casefold()
        if is_hidden(character) or unicodedata.combining(character) >= ACCENT_CLASS_MIN:
            return ""
        for variant in (character, character.upper(), character.lower()):
            like = variant.translate(_prototypes())
            if like.isascii():
                # these prototypes stand for I and m as well
                return "i" if like == "l" and variant.isupper() else like.replace("rn", "m").casefold()
        return _NO_LATIN if _is_foreign(character) else character.casefold()


def _is_foreign(character: str) -> bool:
    return character.isalpha() and not unicodedata.name(character, "").startswith("LATIN ")


@cache
def _prototypes() -> _PrototypeTable:
    table = _PrototypeTable()
    for line in (Path(__file__).parent / "look_alikes.txt").read_text(encoding="utf-8").splitlines():
        prototype, _, characters = line.partition("\t")
        table.update((ord(character), prototype) for character in characters)
    return table


@cache
def _ascii_prototypes() -> list[tuple[str, str]]:
    """Return the few prototypes of ASCII characters; replacing these one by one is faster than a translation."""
    return [
        (chr(code), prototype) for code, prototype in _prototypes().items() if code < 0x80 and prototype != chr(code)
    ]


@cache
def _latin() -> _LatinTable:
    return _LatinTable()


# names with this many letters are close if they differ by one
LETTERS_MIN = 5
# shorter names differ by one letter too often to be reported
ALIKE_MIN = 3
# Hebrew and Arabic vowel points, which are mostly left out
VOWEL_CLASSES = range(10, 36)


def fold_name(name: str) -> str:
    """Fold a name: drop capitals, accents and blanks, which people often omit, and invisible characters.

    >>> fold_name("María José") == fold_name("mariajose"), fold_name("Jürgen")
    (True, 'jurgen')
    """
    name = "".join(name.casefold().split())
    if name.isascii():
        return name
    decomposed = unicodedata.normalize("NFKD", name).translate(_FOLD_TABLE)
    return unicodedata.normalize("NFC", decomposed).casefold()


class _FoldTable(dict[int, int | None]):
    """A lazy table by code: the character itself, or None for accents, vowel marks and invisible characters."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        mark = unicodedata.combining(character)
        invisible = unicodedata.category(character) == "Cf" or is_hidden(character)
        self[code] = None if mark >= ACCENT_CLASS_MIN or mark in VOWEL_CLASSES or invisible else code
        return self[code]


_FOLD_TABLE = _FoldTable()


def find_close_names(new: Collection[str], known: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the new names that are close to known ones or to earlier new ones, each with those.

    Two names are close if they are equal after `fold_name`, if they look alike (`list_look_alike_keys`), if one letter
    differs or two neighbours are swapped where both have `LETTERS_MIN` letters and no digit differs, or if they have no
    digits and the first or the last word of one is at the other end. The time grows with the sum of both lists, not
    with their product.
    """
    close: dict[str, list[str]] = {}
    by_spelling, halves = dict[str, list[str]](), set[str]()
    by_rotation, by_look = dict[str, list[str]](), dict[str, list[str]]()
    order = {name: number for number, name in enumerate(new)}
    for name in new:
        folded = fold_name(name)
        halves.update(_half_keys(folded))
        for key in _spelling_keys(folded):
            by_spelling.setdefault(key, []).append(name)
        for key in _rotate_words(name):
            by_rotation.setdefault(key, []).append(name)
        for key in list_look_alike_keys(name):
            by_look.setdefault(key, []).append(name)
    for name in (*known, *new):
        folded = fold_name(name)
        others = set(by_rotation.get(folded.replace(",", ""), ()))
        for key in list_look_alike_keys(name):
            if key in by_look:
                others.update(by_look[key])
        if not halves.isdisjoint(_half_keys(folded)):
            sharing = {other for key in _spelling_keys(folded) for other in by_spelling.get(key, ())} - {name}
            others.update(other for other in sharing if _differ_by_one_slip(folded, fold_name(other)))
        for other in others:
            # of two new names, the later is reported
            if order.get(name, -1) < order[other]:
                close.setdefault(other, []).append(name)
    for name in new:
        if name in close:
            yield name, close[name]


def find_similar_names(new: Collection[str], others: Iterable[str]) -> dict[str, list[str]]:
    """Return the new names that may be others mistyped, though they are not close enough to be refused.

    Two letters changed places, or there is one more or one fewer, in names of at least `ALIKE_MIN` letters.
    """
    texts = {fold_name(name): name for name in new}
    order = {name: number for number, name in enumerate(new)}
    slips: dict[str, set[str]] = {}
    for text, name in texts.items():
        for slip in (*_swap_letters(text), *_drop_letters(text)):
            slips.setdefault(slip, set()).add(name)
    similar: dict[str, list[str]] = {}
    for other in others:
        text = fold_name(other)
        matches = slips.get(text, set()) | {texts[shorter] for shorter in _drop_letters(text) if shorter in texts}
        for name in matches:
            # of two new names, the later is reported
            if order.get(other, -1) < order[name]:
                similar.setdefault(name, []).append(other)
    return similar


def _swap_letters(name: str) -> Iterator[str]:
    """Yield a name with two neighbouring letters swapped."""
    for place in range(len(name) - 1) if len(name) >= ALIKE_MIN else ():
        pair = name[place : place + 2]
        if pair[0] != pair[1] and not any(map(str.isdigit, pair)):
            yield name[:place] + pair[::-1] + name[place + 2 :]


def _drop_letters(name: str) -> Iterator[str]:
    """Yield a name with one letter left out."""
    for place, letter in enumerate(name) if len(name) > ALIKE_MIN else ():
        if not letter.isdigit():
            yield name[:place] + name[place + 1 :]


def _half_keys(name: str) -> tuple[str, ...]:
    """Return keys of which equal names and names one letter apart share one: a letter changes only one half, and
    two swapped neighbours leave the shorter first half or the shorter last one unchanged.

    Most names share none with the new ones, and need no `_spelling_keys`.
    """
    size = len(name)
    start, end = size - size // 2, size - size // 2 - 1
    return f"{name[: (size - 1) // 2]}-", f"{name[: (size + 1) // 2]}-", f"-{name[start:]}", f"-{name[max(end, 0) :]}"


def _rotate_words(name: str) -> set[str]:
    """Return a name with its last word first and with its first word last, without blanks and commas (Smith, Eva)."""
    words = unicodedata.normalize("NFKC", name).replace(",", " ").split()
    if len(words) < 2 or any(map(str.isdigit, name)):
        return set()
    return {fold_name("".join([words[-1], *words[:-1]])), fold_name("".join([*words[1:], words[0]]))}


def _spelling_keys(name: str) -> list[str]:
    """Return keys of which names one letter apart share one: the name itself, and it without each of its letters.

    Names with two neighbours swapped share the one without either of these.
    """
    if len(name) < LETTERS_MIN:
        return [name]
    # omitting either of two equal neighbours gives the same key
    shorter = (name[:place] + name[place + 1 :] for place, letter in enumerate(name) if not letter.isdigit())
    return [name, *dict.fromkeys(shorter)]


def _differ_by_one_slip(left: str, right: str) -> bool:
    if left == right:
        return True
    if min(sum(map(str.isalpha, left)), sum(map(str.isalpha, right))) < LETTERS_MIN or abs(len(left) - len(right)) > 1:
        return False
    pairs = enumerate(zip(left, right, strict=False))
    start = next((place for place, (a, b) in pairs if a != b), min(len(left), len(right)))
    if len(left) == len(right):
        changed = 2 if left[start : start + 2] == right[start : start + 2][::-1] else 1
        rest, differing = left[start + changed :] == right[start + changed :], left[start] + right[start]
    else:
        longer, shorter = (left, right) if len(left) > len(right) else (right, left)
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
    """Tell whether a cell holds only punctuation and signs, which name no player.

    >>> [is_dash(text) for text in ("-", "–", "?", "...", "", "x", "7", "🦊", "-x-")]
    [True, True, True, True, False, False, False, False, False]
    """
    # most names begin with a letter
    if not text or text[0].isalnum():
        return False
    return all(kind[0] == "P" or kind in _EMPTY_KINDS for kind in map(unicodedata.category, text))


def is_nobody(name: str) -> bool:
    """Tell whether a name is a word for no player, such as bye, or invisible.

    >>> [is_nobody(name) for name in ("BYE", "(bye)", "no one", "\ufe0f", "Byers", "Nina")]
    [True, True, True, True, False, False]
    """
    return fold_name(name.strip(_EDGES)) in NOBODIES or not fold_name(name)

"""Compare names: find new names that may be slips of other names, and words that do not name a player.

Close names:                                                 Names that are not close:
Jurgen and Jürgen                                            mira2 and mira1
Ana Maria and Anamaria                                       Bne and Ben: too short
Smith, Eva and Eva Smith                                     Iav and Iva: too short
Pirya and Priya: two neighbouring letters are swapped        Annb Schmid and Anna Schmidt: two letters differ
mіrа and mira: і and а are Cyrillic                          мира and mira

Two names look alike if they differ in invisible characters, or in characters that are drawn alike, such as Cyrillic а
and Latin a. `look_alikes.txt` holds the confusable characters of Unicode Technical Standard 39.

A dash in an otherwise empty cell, or a word such as bye, does not name a player. It must not become a player, because
it would be rated as the opponent in every game without an opponent.
"""

import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path

# the invisible characters: the property Default_Ignorable_Code_Point of Unicode 18, including reserved ranges
_IGNORABLE = (
    range(0xAD, 0xAE), range(0x34F, 0x350), range(0x61C, 0x61D), range(0x115F, 0x1161), range(0x17B4, 0x17B6),
    range(0x180B, 0x1810), range(0x200B, 0x2010), range(0x202A, 0x202F), range(0x2060, 0x2070), range(0x3164, 0x3165),
    range(0xFE00, 0xFE10), range(0xFEFF, 0xFF00), range(0xFFA0, 0xFFA1), range(0xFFF0, 0xFFF9),
    range(0x1BCA0, 0x1BCA4), range(0x1D173, 0x1D17B), range(0xE0000, 0xE1000),
)  # fmt: skip
# characters that look blank but are not spaces: Braille pattern blank, null notehead, Khitan filler
_BLANK = (0x2800, 0x1D159, 0x16FE4)
# variation selectors: keyboards type them after an emoji, a Han or a Mongolian letter to select its form
_SELECTORS = (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))


def is_hidden(character: str) -> bool:
    """Tell whether a character is invisible and not a space.

    >>> [is_hidden(character) for character in "\\u034f\\u3164\\u2800\\ufe0f a"]
    [True, True, True, True, False, False]
    """
    code = ord(character)
    return code > 0x7F and (code in _BLANK or any(code in codes for codes in _IGNORABLE))


def is_selector(character: str) -> bool:
    """Tell whether a character selects a form of the character before it."""
    return any(ord(character) in codes for codes in _SELECTORS)


def list_look_alike_keys(name: str) -> tuple[str, str]:
    """Return two keys of a name, its skeleton and its Latin form; names that look alike share at least one key.

    The skeleton is defined by UTS 39, here without blanks; it depends on capitals. The Latin form does not depend on
    capitals or accents. If a letter of the name does not look like any Latin letter, the skeleton takes the place of
    the Latin form.

    >>> keys = {*list_look_alike_keys("mira")}
    >>> sorted(keys & {*list_look_alike_keys("mіrа")}), sorted(keys & {*list_look_alike_keys("Мира")})
    (['rnira', '~mira'], [])
    """
    if name.isascii():
        skeleton = name = name.replace(" ", "")
        for character, prototype in _list_ascii_prototypes():
            skeleton = skeleton.replace(character, prototype)
        return skeleton, "~" + name.casefold()
    name = "".join(name.split())
    skeleton = unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).translate(_load_prototypes()))
    latin = unicodedata.normalize("NFKD", name).translate(_load_latin_table())
    return skeleton, skeleton if _NO_LATIN in latin else "~" + latin


def list_odd_characters(name: str, *other_names: str) -> list[str]:
    """Return the confusing characters of a name, as U+XXXX: hidden ones, and ones that only look like Latin letters.

    Characters that also occur in one of the other names that look alike are left out.

    >>> list_odd_characters("mіra", "mira"), list_odd_characters("mira\\ufe0f", "mira"), list_odd_characters("é", "e")
    (['U+0456'], ['U+FE0F'], [])
    """
    if name.isascii():
        return []
    keys = {*list_look_alike_keys(name)}
    look_alikes = [other_name for other_name in other_names if not keys.isdisjoint(list_look_alike_keys(other_name))]

    def is_confusing(character: str) -> bool:
        looks_latin = (
            bool(look_alikes) and _load_latin_table()[ord(character)] != _NO_LATIN and _is_non_latin(character)
        )
        return is_hidden(character) or looks_latin

    return [
        f"U+{ord(character):04X}"
        for character in dict.fromkeys(unicodedata.normalize("NFC", name))
        if is_confusing(character) and not any(character in look_alike for look_alike in look_alikes)
    ]


# the Latin form of a letter that does not look like any Latin letter
_NO_LATIN = "\0"
# combining characters of this class and above are accents; those below are parts of letters, as in kana and Devanagari
ACCENT_CLASS_MIN = 200


class _PrototypeTable(dict[int, str]):
    """A lazy table by code: the common prototype of all characters that look alike."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        parts = unicodedata.normalize("NFKD", character)
        self[code] = "" if is_hidden(character) else parts if parts == character else parts.translate(self)
        return self[code]


class _LatinTable(dict[int, str]):
    """A lazy table by code: the lower-case Latin letters, digits and signs that a character looks like."""

    def __missing__(self, code: int) -> str:
        self[code] = self._to_latin(chr(code))
        return self[code]

    def _to_latin(self, character: str) -> str:
        if character.isascii():
            return character.casefold()
        if is_hidden(character) or unicodedata.combining(character) >= ACCENT_CLASS_MIN:
            return ""
        for variant in (character, character.upper(), character.lower()):
            prototype = variant.translate(_load_prototypes())
            if prototype.isascii():
                # l is the prototype of I, and rn the prototype of m
                return "i" if prototype == "l" and variant.isupper() else prototype.replace("rn", "m").casefold()
        return _NO_LATIN if _is_non_latin(character) else character.casefold()


def _is_non_latin(character: str) -> bool:
    return character.isalpha() and not unicodedata.name(character, "").startswith("LATIN ")


@cache
def _load_prototypes() -> _PrototypeTable:
    table = _PrototypeTable()
    for line in (Path(__file__).parent / "look_alikes.txt").read_text(encoding="utf-8").splitlines():
        prototype, _, characters = line.partition("\t")
        table.update((ord(character), prototype) for character in characters)
    return table


@cache
def _list_ascii_prototypes() -> list[tuple[str, str]]:
    """Return the (character, prototype) pairs of ASCII; replacing these few in turn is faster than a translation."""
    return [
        (chr(code), prototype)
        for code, prototype in _load_prototypes().items()
        if code < 0x80 and prototype != chr(code)
    ]


@cache
def _load_latin_table() -> _LatinTable:
    return _LatinTable()


# two names with at least this many letters are close if one letter differs or is added
CLOSE_LETTERS_MIN = 5
# two names with at least this many letters are similar if one letter is added, or two neighbouring letters are swapped;
# in shorter names this is too common
SIMILAR_LETTERS_MIN = 3
# Hebrew and Arabic vowel points, which are usually omitted
VOWEL_CLASSES = range(10, 36)


def fold_name(name: str) -> str:
    """Return a name in lower case, without accents, blanks and invisible characters.

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
        mark_class = unicodedata.combining(character)
        is_mark = mark_class >= ACCENT_CLASS_MIN or mark_class in VOWEL_CLASSES
        is_invisible = unicodedata.category(character) == "Cf" or is_hidden(character)
        self[code] = None if is_mark or is_invisible else code
        return self[code]


_FOLD_TABLE = _FoldTable()


def find_close_names(new: Collection[str], known: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each new name that is close to known or earlier new names, with these names.

    Two names are close if one of these is true:

    - they are equal after `fold_name`;
    - they look alike (`list_look_alike_keys`);
    - one letter differs or is added, or two neighbouring letters are swapped; both have at least `CLOSE_LETTERS_MIN`
      letters, and no digit differs;
    - they have no digits, and the first or last word of one name is at the other end of the other name.

    The time grows with the sum of the lengths of both lists, not with their product.
    """
    close: dict[str, list[str]] = {}
    by_spelling, halves = dict[str, list[str]](), set[str]()
    by_rotation, by_look = dict[str, list[str]](), dict[str, list[str]]()
    order = {name: number for number, name in enumerate(new)}
    for name in new:
        folded = fold_name(name)
        halves.update(_list_half_keys(folded))
        for key in _list_spelling_keys(folded):
            by_spelling.setdefault(key, []).append(name)
        for key in _rotate_words(name):
            by_rotation.setdefault(key, []).append(name)
        for key in list_look_alike_keys(name):
            by_look.setdefault(key, []).append(name)
    for name in (*known, *new):
        folded = fold_name(name)
        close_new_names = set(by_rotation.get(folded.replace(",", ""), ()))
        for key in list_look_alike_keys(name):
            if key in by_look:
                close_new_names.update(by_look[key])
        if not halves.isdisjoint(_list_half_keys(folded)):
            candidates = {new_name for key in _list_spelling_keys(folded) for new_name in by_spelling.get(key, ())} - {
                name
            }
            close_new_names.update(
                new_name for new_name in candidates if _differ_by_one_slip(folded, fold_name(new_name))
            )
        for new_name in close_new_names:
            # of two close new names, only the later is reported
            if order.get(name, -1) < order[new_name]:
                close.setdefault(new_name, []).append(name)
    for name in new:
        if name in close:
            yield name, close[name]


def find_similar_names(new: Collection[str], other_names: Iterable[str]) -> dict[str, list[str]]:
    """Return the new names that are similar to others, with these others. Such a name may be a slip, but is accepted.

    Two names of at least `SIMILAR_LETTERS_MIN` letters are similar if two neighbouring letters are swapped, or if one
    letter is added.
    """
    by_folded = {fold_name(name): name for name in new}
    order = {name: number for number, name in enumerate(new)}
    by_slip: dict[str, set[str]] = {}
    for folded, name in by_folded.items():
        for slip in (*_swap_letters(folded), *_drop_letters(folded)):
            by_slip.setdefault(slip, set()).add(name)
    similar: dict[str, list[str]] = {}
    for other_name in other_names:
        folded = fold_name(other_name)
        shorter_names = {by_folded[shorter] for shorter in _drop_letters(folded) if shorter in by_folded}
        for name in by_slip.get(folded, set()) | shorter_names:
            # of two similar new names, only the later is reported
            if order.get(other_name, -1) < order[name]:
                similar.setdefault(name, []).append(other_name)
    return similar


def _swap_letters(name: str) -> Iterator[str]:
    """Yield each variant of a name with two neighbouring letters swapped."""
    for index in range(len(name) - 1) if len(name) >= SIMILAR_LETTERS_MIN else ():
        pair = name[index : index + 2]
        if pair[0] != pair[1] and not any(map(str.isdigit, pair)):
            yield name[:index] + pair[::-1] + name[index + 2 :]


def _drop_letters(name: str) -> Iterator[str]:
    """Yield each variant of a name with one letter left out."""
    for index, letter in enumerate(name) if len(name) > SIMILAR_LETTERS_MIN else ():
        if not letter.isdigit():
            yield name[:index] + name[index + 1 :]


def _list_half_keys(name: str) -> tuple[str, ...]:
    """Return keys of the halves of a name; names that differ by one slip share at least one key.

    A changed letter leaves one half unchanged, and swapped neighbours leave the shorter first or last half unchanged.
    These keys save time: most known names share no key with a new name, and so do not need `_list_spelling_keys`.
    """
    size = len(name)
    start, end = size - size // 2, size - size // 2 - 1
    return f"{name[: (size - 1) // 2]}-", f"{name[: (size + 1) // 2]}-", f"-{name[start:]}", f"-{name[max(end, 0) :]}"


def _rotate_words(name: str) -> set[str]:
    """Return two variants of a name without blanks and commas: with the last word first, with the first word last."""
    words = unicodedata.normalize("NFKC", name).replace(",", " ").split()
    if len(words) < 2 or any(map(str.isdigit, name)):
        return set()
    return {fold_name("".join([words[-1], *words[:-1]])), fold_name("".join([*words[1:], words[0]]))}


def _list_spelling_keys(name: str) -> list[str]:
    """Return keys of a name: the name itself, and each variant without one letter. Names one slip apart share a key.

    Names with two swapped neighbours share the key without one of these letters.
    """
    if len(name) < CLOSE_LETTERS_MIN:
        return [name]
    # omitting either of two equal neighbours gives the same key
    shorter = (name[:index] + name[index + 1 :] for index, letter in enumerate(name) if not letter.isdigit())
    return [name, *dict.fromkeys(shorter)]


def _differ_by_one_slip(left: str, right: str) -> bool:
    """Tell whether two folded names are equal, or differ by one letter or two swapped neighbours, but by no digit."""
    if left == right:
        return True
    fewest_letters = min(sum(map(str.isalpha, left)), sum(map(str.isalpha, right)))
    if fewest_letters < CLOSE_LETTERS_MIN or abs(len(left) - len(right)) > 1:
        return False
    pairs = enumerate(zip(left, right, strict=False))
    start = next((index for index, (a, b) in pairs if a != b), min(len(left), len(right)))
    if len(left) == len(right):
        end = start + (2 if left[start : start + 2] == right[start : start + 2][::-1] else 1)
        is_rest_equal, differing = left[end:] == right[end:], left[start] + right[start]
    else:
        longer, shorter = (left, right) if len(left) > len(right) else (right, left)
        is_rest_equal, differing = longer[start + 1 :] == shorter[start:], longer[start]
    return is_rest_equal and not any(map(str.isdigit, differing))


# folded words that stand for no player: English, German, French, Spanish, Italian, Portuguese, Dutch, Polish, Nordic
_NO_PLAYER_TEXT = """bye none null nil nobody noone noopponent n/a walkover
    freilos spielfrei niemand keiner kampflos
    exempt exempte repos personne aucun
    libre descansa descanso nadie ninguno
    riposo riposa nessuno
    folga ninguem nenhum
    vrijloting geen
    pauza pauzuje nikt wolnylos
    frirunde ingen"""
NO_PLAYER_WORDS = frozenset(_NO_PLAYER_TEXT.split())
# characters that may surround such a word, as in (bye)
_EDGES = "()[]<>*.-–— "
# the Unicode categories of signs that do not name a player; an emoji (So) may be a name
_SIGN_CATEGORIES = ("Sm", "Sc", "Sk", "Zs")


def is_dash(text: str) -> bool:
    """Tell whether a cell holds only punctuation and signs, which do not name a player.

    >>> [is_dash(text) for text in ("-", "–", "?", "...", "", "x", "7", "🦊", "-x-")]
    [True, True, True, True, False, False, False, False, False]
    """
    # a short cut for most names, which begin with a letter
    if not text or text[0].isalnum():
        return False
    categories = map(unicodedata.category, text)
    return all(category[0] == "P" or category in _SIGN_CATEGORIES for category in categories)


def is_nobody(name: str) -> bool:
    """Tell whether a name is invisible, or a word for no player such as bye.

    >>> [is_nobody(name) for name in ("BYE", "(bye)", "no one", "\ufe0f", "Byers", "Nina")]
    [True, True, True, True, False, False]
    """
    return fold_name(name.strip(_EDGES)) in NO_PLAYER_WORDS or not fold_name(name)

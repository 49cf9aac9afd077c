"""Names that look alike: their characters are hidden, or are drawn like others, as Cyrillic а is like a.

Unicode Technical Standard 39 says which characters are confusable; `look_alikes.txt` has its data.
"""

import unicodedata
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


def looks(name: str) -> tuple[str, str]:
    """Return two texts of which names that look alike share one: the skeleton, and the name as Latin letters.

    The skeleton is that of UTS 39, without blanks, where capitals count. The other also finds names that differ in
    capitals and accents; it is the skeleton again if the name has a letter that is like none of the Latin ones.

    >>> sorted({*looks("mira")} & {*looks("mіrа")}), sorted({*looks("Мира")} & {*looks("mira")})
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
    alike = [other for other in others if not set(looks(name)).isdisjoint(looks(other))]
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

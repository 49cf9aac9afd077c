"""Names that look alike: with letters of other scripts, hidden characters, or similar letters."""

import pytest

from ratings_ledger.ledger.validation.close_names import find_close_names, is_hidden, list_odd_characters

HIDDEN = "\u00ad\u034f\u115f\u1160\u17b4\u180b\u2060\u2065\u2800\u3164\ufe00\ufe0f\uffa0\ufff0\U000e0100\U0001d173"
ALIKE = [
    ("mira", "mіra"), ("mira", "mirа"), ("olga", "οlga"), ("olga", "օlga"), ("Tom", "Τοm"), ("Tom", "Том"),
    ("Mira", "Мira"), ("mira", "Мira"), ("HANS", "НАNЅ"), ("hans", "НАNЅ"), ("Bob", "Вοb"), ("Eva", "Еvа"),
    ("Al", "АӀ"), ("Al", "А1"), ("Helga", "Ηelga"), ("Jürgen", "Jürgеn"), ("Jürgen", "jurgеn"), ("bjørn", "bјørn"),
    ("mira", "𝓶𝓲𝓻𝓪"), ("mira", "ｍira"), ("mira", "rnira"), ("Bill", "BiIl"), ("Olga", "0lga"), ("саша", "caшa"),
    ("ОКСАНА", "OKCAHA"),
]  # fmt: skip
APART = [
    ("мира", "mira"), ("Kai", "Kal"), ("KAI", "KAL"), ("Ева", "Eva"), ("anna1", "annai"), ("Нина", "Nina"),
    ("ναι", "ηαι"), ("Һади", "Нади"), ("❤️", "♠️"), ("王芳", "玉芳"), ("ム", "マ"), ("Bø", "Bö"),
]  # fmt: skip


def are_close(known: str, new: str) -> bool:
    """Tell whether a new name is close to a known one."""
    return dict(find_close_names([new], [known])) == {new: [known]}


@pytest.mark.parametrize("character", HIDDEN, ids=[f"U+{ord(character):04X}" for character in HIDDEN])
def test_hidden_characters_make_no_other_name(character: str) -> None:
    """A name with an invisible character at any position is close to the name without it."""
    assert is_hidden(character)
    for name in (character + "mira", f"mi{character}ra", "mira" + character, f"MIRA {character}"):
        assert are_close("mira", name)
        assert are_close(name, "mira")
        assert f"U+{ord(character):04X}" in list_odd_characters(name, "mira")


@pytest.mark.parametrize(("left", "right"), ALIKE)
def test_names_that_look_alike_are_close(left: str, right: str) -> None:
    """Names that look alike are close, in both directions."""
    assert are_close(left, right)
    assert are_close(right, left)


@pytest.mark.parametrize(("left", "right"), APART)
def test_names_that_look_different_are_not_close(left: str, right: str) -> None:
    """Names in two scripts with only some similar letters are not close, nor are different names in one script."""
    assert not are_close(left, right)
    assert not are_close(right, left)


@pytest.mark.parametrize(
    ("name", "other_name", "odd"),
    [
        ("mіra", "mira", ["U+0456"]),
        ("mira", "mіra", []),
        ("mira\ufe0f", "mira", ["U+FE0F"]),
        ("Jürgen", "jurgen", []),
        ("mіrа", "rnira", ["U+0456", "U+0430"]),
        ("мира", "mira", []),
        ("Johana", "Johanna", []),
    ],
)
def test_odd_characters_are_listed(name: str, other_name: str, odd: list[str]) -> None:
    """The characters that look like those of the other name are listed, and accents are not."""
    assert list_odd_characters(name, other_name) == odd

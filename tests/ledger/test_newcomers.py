"""Close names: examples, and random names compared with a naive definition; and cells with several players."""

import unicodedata
from collections import Counter

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from ratings_ledger.ledger.validation.close_names import _list_spelling_keys, find_close_names, find_similar_names
from ratings_ledger.ledger.validation.new_names import split_tied_names

CLOSE_PAIRS = [
    ("ben", "Ben"), ("Jürgen", "jurgen"), ("María José", "Maria Jose"), ("mariajose", "María José"),
    ("Åke", "ake"), ("STRASSE", "straße"), ("Сергей", "сергеи"), ("Ολγα", "όλγα"),
    ("Johanna", "Johana"), ("Johanna", "Johannas"), ("Johanna", "Johamna"), ("Łukasz", "Lukasz"), ("anna b", "annab"),
    ("Jean-Luc", "JeanLuc"), ("Müller", "Muller"), ("yusuf", "yussuf"), ("team-alpha", "team-alphb"),
    ("Anna Schmidt", "Schmidt Anna"), ("Anna Schmidt", "SCHMIDT, anna"), ("Li Na", "Na Li"),
    ("Ева Иванова", "Иванова Ева"), ("Anna Maria Groß", "Gross, Anna Maria"), ("محمد علي", "علي محمد"),
    ("김 민준", "민준 김"), ("José García", "garcia jose"), ("Jonathan", "Jonahtan"), ("Priya", "Pirya"),
    ("Clara", "lCara"), ("Clara", "Claar"),
]  # fmt: skip
DIFFERENT_PAIRS = [
    ("ben", "bea"), ("anna", "anne"), ("anna", "annas"), ("player1", "player2"), ("player1", "player"),
    ("player1", "player11"), ("player1", "playera"), ("Johanna", "Johan"), ("Iva", "Iav"),
    ("Jonathan", "Jonaahtn"),
    ("ガイド", "カイド"), ("कमल", "कामल"), ("anna1", "annai"), ("player12", "player21"), ("player1", "playe1r"),
    ("美咲", "美沙"), ("table 1 2", "table 2 1"),
    ("Anna Maria Groß", "Maria Anna Groß"), ("Anna Schmidt", "Schmid Anna"), ("12 34", "34 12"), ("Annab", "bAnna"),
]  # fmt: skip


def are_close(known: str, new: str) -> bool:
    """Tell whether a new name is close to a known one."""
    return dict(find_close_names([new], [known])) == {new: [known]}


@pytest.mark.parametrize(("left", "right"), CLOSE_PAIRS)
def test_similar_names_are_close(left: str, right: str) -> None:
    """Names that differ only slightly are close, in both directions."""
    assert are_close(left, right)
    assert are_close(right, left)


@pytest.mark.parametrize(("left", "right"), DIFFERENT_PAIRS)
def test_different_names_are_not_close(left: str, right: str) -> None:
    """Names that differ too much are not close, in both directions."""
    assert not are_close(left, right)
    assert not are_close(right, left)


def test_repeated_letter_is_left_out_once() -> None:
    """A name of one repeated letter has one shortened spelling, not one for each of its letters."""
    assert _list_spelling_keys("é" * 40) == ["é" * 40, "é" * 39]
    assert _list_spelling_keys("annas") == ["annas", "nnas", "anas", "anns", "anna"]


def test_later_new_name_is_reported() -> None:
    """Each new name is reported with the close names among the known and the earlier new ones."""
    assert list(find_close_names(["Ben", "Johanna", "ben", "Johana"], ["BEN", "dora"])) == [
        ("Ben", ["BEN"]),
        ("ben", ["BEN", "Ben"]),
        ("Johana", ["Johanna"]),
    ]


def strip_name(name: str) -> str:
    """Return a name without capitals, accents and spaces."""
    letters = ""
    for character in "".join(name.casefold().split()):
        letters += "".join(c for c in unicodedata.normalize("NFKD", character) if unicodedata.combining(c) < 200)
    return unicodedata.normalize("NFC", letters).casefold()


def split_words(name: str) -> list[str]:
    """Return the words of a name without commas."""
    return "".join(" " if c == "," else c for c in name).split()


def are_naively_close(left: str, right: str) -> bool:
    """Tell whether one change turns a name into another: moving the first or last word to the other end, swapping
    neighbours, or adding, removing or replacing a letter."""
    left_words, right_words = split_words(left), split_words(right)
    rotations = [left_words[-1:] + left_words[:-1], left_words[1:] + left_words[:1]] if len(left_words) > 1 else []
    if not any(c.isdigit() for c in left + right) and any(
        strip_name("".join(t)) == strip_name("".join(right_words)) for t in rotations
    ):
        return True
    left, right = strip_name(left), strip_name(right)
    if left == right:
        return True
    if min(sum(c.isalpha() for c in left), sum(c.isalpha() for c in right)) < 5:
        return False
    longer, shorter = sorted((left, right), key=len, reverse=True)
    for index in range(len(left) - 1) if len(left) == len(right) else ():
        pair = left[index : index + 2]
        if not any(c.isdigit() for c in pair) and left[:index] + pair[::-1] + left[index + 2 :] == right:
            return True
    for index, letter in enumerate(longer):
        if not letter.isdigit():
            if longer[:index] + longer[index + 1 :] == shorter:
                return True
            for new_letter in set(shorter):
                if not new_letter.isdigit() and longer[:index] + new_letter + longer[index + 1 :] == shorter:
                    return True
    return False


SCRIPTS = ("abAé1 ü", "ab ,", "иЙйа 2", "ολΟό ", "美咲,沙", "カガかが ", "한글ㅎ ", "शकरण ", "ربعل ", "נסשר 3")


@st.composite
def draw_names(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Draw known names in one script, and new names, which are changed known or new ones.

    A letter is added, removed or replaced, two neighbours are swapped, or words are reordered.
    """
    letters = draw(st.sampled_from(SCRIPTS))
    text = st.text(alphabet=letters, min_size=3, max_size=8)
    known = draw(st.lists(text, min_size=1, max_size=5, unique=True))
    new: list[str] = []
    for _ in range(draw(st.integers(1, 5))):
        name = draw(st.sampled_from([*known, *new]))
        change = draw(st.sampled_from(["letter", "letter", "swap", "words", "words"]))
        if change == "swap":
            index = draw(st.integers(0, max(len(name) - 1, 0)))
            new.append(name[:index] + name[index : index + 2][::-1] + name[index + 2 :])
        elif change == "letter":
            index, letter = draw(st.integers(0, len(name))), draw(st.sampled_from(["", *letters]))
            new.append(name[:index] + letter + name[index + draw(st.integers(0, 1)) :])
        else:
            new.append(draw(st.sampled_from([" ", ", "])).join(draw(st.permutations(split_words(name)))))
    return known, list(dict.fromkeys(name for name in new if name not in known))


@pytest.mark.slow
def test_close_names_match_naive_definition() -> None:
    """For random names, exactly the naively close pairs are found."""
    pair_counts: Counter[str] = Counter()

    @settings(max_examples=400)
    @given(draw_names())
    def compare(drawn: tuple[list[str], list[str]]) -> None:
        known, new = drawn
        expected = {}
        for index, name in enumerate(new):
            if close_names := [candidate for candidate in [*known, *new[:index]] if are_naively_close(name, candidate)]:
                expected[name] = sorted(close_names)
        assert {name: sorted(known_names) for name, known_names in find_close_names(new, known)} == expected
        for name, close_names in expected.items():
            same_letters = sorted(strip_name(name)) == sorted(strip_name(close_names[0]))
            kind = (
                "equal"
                if strip_name(name) == strip_name(close_names[0])
                else "turned or swapped"
                if same_letters
                else "one letter"
            )
            event(kind)
            pair_counts[kind] += 1
            pair_counts["other script"] += not name.isascii() and kind != "equal"
        pair_counts["apart"] += len(new) - len(expected)

    compare()
    assert (
        min(pair_counts[kind] for kind in ("equal", "one letter", "turned or swapped", "other script", "apart")) > 20
    ), pair_counts


@pytest.mark.parametrize(
    ("cell", "parts"),
    [
        ("Anna & Ben", ["Anna", "Ben"]),
        ("Anna+Ben", ["Anna", "Ben"]),
        ("Anna/Ben", ["Anna", "Ben"]),
        ("Anna;Ben", ["Anna", "Ben"]),
        ("Anna, Ben & Cleo", ["Anna", "Ben", "Cleo"]),
        ("C++", []),
        ("A+", []),
        ("& Co", []),
        ("Anna, Ben", []),
        ("Anna", []),
    ],
)
def test_cell_with_several_players_is_split(cell: str, parts: list[str]) -> None:
    """A cell with several players is split into their names, and any other cell is not."""
    assert split_tied_names(cell) == parts


@pytest.mark.parametrize(
    ("left", "right"),
    [("Calra", "Clara"), ("Benn", "Ben"), ("Anna", "Hanna"), ("Jonahtan", "Jonathan"), ("Bne", "Ben")],
)
def test_mistyped_names_are_alike(left: str, right: str) -> None:
    """Names that a typing error may have turned into each other are alike, in both directions."""
    assert find_similar_names([left], [right]) == {left: [right]}
    assert find_similar_names([right], [left]) == {right: [left]}


@pytest.mark.parametrize(
    ("left", "right"), [("Ben", "Len"), ("Jo", "oJ"), ("team12", "team21"), ("ben", "BEN"), ("Al", "Ali")]
)
def test_other_names_are_not_alike(left: str, right: str) -> None:
    """Names that no typing error explains are not alike."""
    assert find_similar_names([left], [right]) == {}


def test_later_alike_name_is_reported() -> None:
    """Of two new names that are alike, only the later one is reported."""
    assert find_similar_names(["Clara", "Calra"], ["Clara", "Calra"]) == {"Calra": ["Clara"]}

"""Which names are close: the definition, a naive oracle of it over drawn names, and cells that hold two players."""

import unicodedata
from collections import Counter

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from ratings_ledger.ledger.validation.names import _list_spelling_keys, find_close_names, find_similar_names
from ratings_ledger.ledger.validation.new_names import split_tied_names

CLOSE = [
    ("ben", "Ben"), ("Jürgen", "jurgen"), ("María José", "Maria Jose"), ("mariajose", "María José"),
    ("Åke", "ake"), ("STRASSE", "straße"), ("Сергей", "сергеи"), ("Ολγα", "όλγα"),
    ("Johanna", "Johana"), ("Johanna", "Johannas"), ("Johanna", "Johamna"), ("Łukasz", "Lukasz"), ("anna b", "annab"),
    ("Jean-Luc", "JeanLuc"), ("Müller", "Muller"), ("yusuf", "yussuf"), ("team-alpha", "team-alphb"),
    ("Anna Schmidt", "Schmidt Anna"), ("Anna Schmidt", "SCHMIDT, anna"), ("Li Na", "Na Li"),
    ("Ева Иванова", "Иванова Ева"), ("Anna Maria Groß", "Gross, Anna Maria"), ("محمد علي", "علي محمد"),
    ("김 민준", "민준 김"), ("José García", "garcia jose"), ("Jonathan", "Jonahtan"), ("Priya", "Pirya"),
    ("Clara", "lCara"), ("Clara", "Claar"),
]  # fmt: skip
APART = [
    ("ben", "bea"), ("anna", "anne"), ("anna", "annas"), ("player1", "player2"), ("player1", "player"),
    ("player1", "player11"), ("player1", "playera"), ("Johanna", "Johan"), ("Iva", "Iav"),
    ("Jonathan", "Jonaahtn"),
    ("ガイド", "カイド"), ("कमल", "कामल"), ("anna1", "annai"), ("player12", "player21"), ("player1", "playe1r"),
    ("美咲", "美沙"), ("table 1 2", "table 2 1"),
    ("Anna Maria Groß", "Maria Anna Groß"), ("Anna Schmidt", "Schmid Anna"), ("12 34", "34 12"), ("Annab", "bAnna"),
]  # fmt: skip


def close(one: str, other: str) -> bool:
    """Whether `other` is close to the known `one`."""
    return dict(find_close_names([other], [one])) == {other: [one]}


@pytest.mark.parametrize(("one", "other"), CLOSE)
def test_similar_names_are_close(one: str, other: str) -> None:
    """Names that differ only slightly are close, whichever of the two is known."""
    assert close(one, other)
    assert close(other, one)


@pytest.mark.parametrize(("one", "other"), APART)
def test_different_names_are_not_close(one: str, other: str) -> None:
    """Names that differ too much are not close, whichever of the two is known."""
    assert not close(one, other)
    assert not close(other, one)


def test_repeated_letters_are_looked_at_once() -> None:
    """Names of one letter many times over are compared as often as any others, not once for each of its places."""
    assert _list_spelling_keys("é" * 40) == ["é" * 40, "é" * 39]
    assert _list_spelling_keys("annas") == ["annas", "nnas", "anas", "anns", "anna"]


def test_later_new_name_is_reported() -> None:
    """Each new name is reported with the known and the earlier new names that are close to it."""
    assert list(find_close_names(["Ben", "Johanna", "ben", "Johana"], ["BEN", "dora"])) == [
        ("Ben", ["BEN"]), ("ben", ["BEN", "Ben"]), ("Johana", ["Johanna"]),
    ]  # fmt: skip


def bare(name: str) -> str:
    """A name without capitals, accents and blanks, letter by letter."""
    found = ""
    for character in "".join(name.casefold().split()):
        found += "".join(c for c in unicodedata.normalize("NFKD", character) if unicodedata.combining(c) < 200)
    return unicodedata.normalize("NFC", found).casefold()


def words(name: str) -> list[str]:
    """The words of a name, without the comma that stands behind a last name."""
    return "".join(" " if c == "," else c for c in name).split()


def naively_close(one: str, other: str) -> bool:
    """The definition: words are carried to the other end, neighbours swapped, and letters added, left out, replaced."""
    first, second = words(one), words(other)
    turned = [first[-1:] + first[:-1], first[1:] + first[:1]] if len(first) > 1 else []
    if not any(c.isdigit() for c in one + other) and any(bare("".join(t)) == bare("".join(second)) for t in turned):
        return True
    one, other = bare(one), bare(other)
    if one == other:
        return True
    if min(sum(c.isalpha() for c in one), sum(c.isalpha() for c in other)) < 5:
        return False
    longer, shorter = sorted((one, other), key=len, reverse=True)
    for place in range(len(one) - 1) if len(one) == len(other) else ():
        pair = one[place : place + 2]
        if not any(c.isdigit() for c in pair) and one[:place] + pair[::-1] + one[place + 2 :] == other:
            return True
    for place, letter in enumerate(longer):
        if not letter.isdigit():
            if longer[:place] + longer[place + 1 :] == shorter:
                return True
            for replaced in set(shorter):
                if not replaced.isdigit() and longer[:place] + replaced + longer[place + 1 :] == shorter:
                    return True
    return False


SCRIPTS = ("abAé1 ü", "ab ,", "иЙйа 2", "ολΟό ", "美咲,沙", "カガかが ", "한글ㅎ ", "शकरण ", "ربعل ", "נסשר 3")


@st.composite
def names(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Known names in one of some scripts, and new ones, most of which are another name that was changed.

    A letter is added, left out or replaced, two neighbours are swapped, or words change places.
    """
    letters = draw(st.sampled_from(SCRIPTS))
    text = st.text(alphabet=letters, min_size=3, max_size=8)
    known = draw(st.lists(text, min_size=1, max_size=5, unique=True))
    new: list[str] = []
    for _ in range(draw(st.integers(1, 5))):
        name = draw(st.sampled_from([*known, *new]))
        change = draw(st.sampled_from(["letter", "letter", "swap", "words", "words"]))
        if change == "swap":
            place = draw(st.integers(0, max(len(name) - 1, 0)))
            new.append(name[:place] + name[place : place + 2][::-1] + name[place + 2 :])
        elif change == "letter":
            place, letter = draw(st.integers(0, len(name))), draw(st.sampled_from(["", *letters]))
            new.append(name[:place] + letter + name[place + draw(st.integers(0, 1)) :])
        else:
            new.append(draw(st.sampled_from([" ", ", "])).join(draw(st.permutations(words(name)))))
    return known, list(dict.fromkeys(name for name in new if name not in known))


@pytest.mark.slow
def test_close_names_match_naive_definition() -> None:
    """For drawn names, exactly the pairs that the naive definition calls close are found."""
    seen: Counter[str] = Counter()

    @settings(max_examples=400)
    @given(names())
    def compare(drawn: tuple[list[str], list[str]]) -> None:
        known, new = drawn
        expected = {}
        for place, name in enumerate(new):
            if others := [other for other in [*known, *new[:place]] if naively_close(name, other)]:
                expected[name] = sorted(others)
        assert {name: sorted(others) for name, others in find_close_names(new, known)} == expected
        for name, others in expected.items():
            same = sorted(bare(name)) == sorted(bare(others[0]))
            kind = "equal" if bare(name) == bare(others[0]) else "turned or swapped" if same else "one letter"
            event(kind)
            seen[kind] += 1
            seen["other script"] += not name.isascii() and kind != "equal"
        seen["apart"] += len(new) - len(expected)

    compare()
    assert min(seen[kind] for kind in ("equal", "one letter", "turned or swapped", "other script", "apart")) > 20, seen


@pytest.mark.parametrize(
    ("cell", "parts"),
    [
        ("Anna & Ben", ["Anna", "Ben"]), ("Anna+Ben", ["Anna", "Ben"]), ("Anna/Ben", ["Anna", "Ben"]),
        ("Anna;Ben", ["Anna", "Ben"]), ("Anna, Ben & Cleo", ["Anna", "Ben", "Cleo"]), ("C++", []), ("A+", []),
        ("& Co", []), ("Anna, Ben", []), ("Anna", []),
    ],
)  # fmt: skip
def test_cell_with_several_players_is_split(cell: str, parts: list[str]) -> None:
    """A cell that holds several players is split into their names, and any other cell is not."""
    assert split_tied_names(cell) == parts


@pytest.mark.parametrize(
    ("one", "other"), [("Calra", "Clara"), ("Benn", "Ben"), ("Anna", "Hanna"), ("Jonahtan", "Jonathan"), ("Bne", "Ben")]
)
def test_mistyped_names_are_alike(one: str, other: str) -> None:
    """Names that a slip may have turned into each other are alike in both directions."""
    assert find_similar_names([one], [other]) == {one: [other]}
    assert find_similar_names([other], [one]) == {other: [one]}


@pytest.mark.parametrize(
    ("one", "other"), [("Ben", "Len"), ("Jo", "oJ"), ("team12", "team21"), ("ben", "BEN"), ("Al", "Ali")]
)
def test_other_names_are_not_alike(one: str, other: str) -> None:
    """Names that no slip explains are not alike."""
    assert find_similar_names([one], [other]) == {}


def test_later_alike_name_is_reported() -> None:
    """Of two new names that are alike, only the later one is reported."""
    assert find_similar_names(["Clara", "Calra"], ["Clara", "Calra"]) == {"Calra": ["Clara"]}

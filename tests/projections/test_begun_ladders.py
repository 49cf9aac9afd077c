"""Ladders that an import begins, and which others they are probably meant to be."""

from collections.abc import Sequence

import pytest

from ratings_ledger.ledger.validation import names as close_names
from ratings_ledger.projections.admission.notes import NewLadder, suggest_ladders


def begun(*names: str, places: Sequence[int] = (0,)) -> list[NewLadder]:
    """Ladders of the ruleset r, named by their values."""
    return [NewLadder("r", tuple(name.split("/")), places) for name in names]


@pytest.mark.parametrize(
    ("new", "meant"),
    [
        ("basci", "r/basic"),  # neighbours swapped
        ("Basic", "r/basic"),
        ("tuesdays", "r/tuesday"),
        ("munchen", "r/münchen"),
        ("2026", None),  # the next season is no slip
        ("table 12", None),
        ("xyz", None),
    ],
)
def test_label_is_like_one_that_is_there(new: str, meant: str | None) -> None:
    """A new label is like another one if a slip of the hand lies between them, but never if a digit does."""
    there = {("basic",), ("tuesday",), ("münchen",), ("2025",), ("table 11",)}
    assert suggest_ladders(begun(new), there).get(f"r/{new}") == meant


def test_other_labels_are_the_same() -> None:
    """A ladder is like one that differs in one label alone, the month apart; the first such label is told."""
    there = {("berlin", "basic"), ("bonn", "rivals")}
    new = begun("berlni/basic/2024-03", "berlni/rivals/2024-03", "bonn/rivlas/2024-03", places=(0, 1))
    assert suggest_ladders(new, there) == {
        "r/berlni/basic/2024-03": "r/berlin/basic/2024-03",
        "r/bonn/rivlas/2024-03": "r/bonn/rivals/2024-03",
    }


def test_later_of_two_new_ones_is_told() -> None:
    """Of two new ladders that are like one another the later is told, and only once."""
    assert suggest_ladders(begun("basic", "basci"), set()) == {"r/basci": "r/basic"}
    assert suggest_ladders(begun("basic", "basci"), {("basic",), ("basci",)}) == {"r/basci": "r/basic"}


def test_many_new_ladders_are_not_compared_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 2,000 new ladders beside 2,000 others there are compared only the two that are alike."""
    pairs: list[tuple[str, str]] = []

    def noted(one: str, other: str) -> bool:
        pairs.append((one, other))
        return close(one, other)

    close = close_names._differ_by_one_slip
    monkeypatch.setattr(close_names, "_differ_by_one_slip", noted)
    new = begun(*(f"group number {number}" for number in range(2_000)), "group nunber 7")
    there = {(f"club number {number}",) for number in range(2_000)}
    assert suggest_ladders(new, there) == {"r/group nunber 7": "r/group number 7"}
    assert sorted(pairs) == [("groupnumber7", "groupnunber7"), ("groupnunber7", "groupnumber7")]

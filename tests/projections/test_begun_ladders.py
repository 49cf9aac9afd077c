"""Ladders that an import starts, and the existing ladders that were probably meant."""

from collections.abc import Sequence

import pytest

from ratings_ledger.ledger.validation import names as close_names
from ratings_ledger.projections.admission.notes import NewLadder, suggest_ladders


def build_new_ladders(*names: str, places: Sequence[int] = (0,)) -> list[NewLadder]:
    """Return new ladders of the ruleset r, named by their values."""
    return [NewLadder("r", tuple(name.split("/")), places) for name in names]


@pytest.mark.parametrize(
    ("new", "meant"),
    [
        ("basci", "r/basic"),  # neighbours swapped
        ("Basic", "r/basic"),
        ("tuesdays", "r/tuesday"),
        ("munchen", "r/münchen"),
        ("2026", None),  # the next season is not a slip
        ("table 12", None),
        ("xyz", None),
    ],
)
def test_label_with_a_slip_is_like_an_existing_one(new: str, meant: str | None) -> None:
    """A new label is like an existing one if they differ by a typing slip, but not by a digit."""
    existing = {("basic",), ("tuesday",), ("münchen",), ("2025",), ("table 11",)}
    assert suggest_ladders(build_new_ladders(new), existing).get(f"r/{new}") == meant


def test_similar_ladders_differ_in_one_label() -> None:
    """A ladder is like one that differs in a single label, apart from the month; the first such label is suggested."""
    existing = {("berlin", "basic"), ("bonn", "rivals")}
    new = build_new_ladders("berlni/basic/2024-03", "berlni/rivals/2024-03", "bonn/rivlas/2024-03", places=(0, 1))
    assert suggest_ladders(new, existing) == {
        "r/berlni/basic/2024-03": "r/berlin/basic/2024-03",
        "r/bonn/rivlas/2024-03": "r/bonn/rivals/2024-03",
    }


def test_later_of_two_similar_new_ladders_is_reported() -> None:
    """Of two similar new ladders the later one is reported, and only once."""
    assert suggest_ladders(build_new_ladders("basic", "basci"), set()) == {"r/basci": "r/basic"}
    assert suggest_ladders(build_new_ladders("basic", "basci"), {("basic",), ("basci",)}) == {"r/basci": "r/basic"}


def test_many_new_ladders_are_not_compared_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 2,000 new ladders and 2,000 existing ones, only the two similar ones are compared."""
    pairs: list[tuple[str, str]] = []

    def compare_and_record(left: str, right: str) -> bool:
        pairs.append((left, right))
        return differ_by_one_slip(left, right)

    differ_by_one_slip = close_names._differ_by_one_slip
    monkeypatch.setattr(close_names, "_differ_by_one_slip", compare_and_record)
    new = build_new_ladders(*(f"group number {number}" for number in range(2_000)), "group nunber 7")
    existing = {(f"club number {number}",) for number in range(2_000)}
    assert suggest_ladders(new, existing) == {"r/group nunber 7": "r/group number 7"}
    assert sorted(pairs) == [("groupnumber7", "groupnunber7"), ("groupnunber7", "groupnumber7")]

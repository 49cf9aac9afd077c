"""Ladders that a proposal starts, and the existing ladders that were probably meant."""

from collections.abc import Iterator

import pytest
from builders import build_event, build_game_data

import ratings_ledger as rl
from ratings_ledger.ledger.validation import close_names

RULESET = """
id = "r"
version = "1"
rule = "pairwise-elo/1"
effective_from = 2000-01-01
time_zone = "UTC"
scope = {{game = ["catan"], players_min = 2}}
partition = {{by = {by}}}
params = {{start = 1000, k_total = 32, scale = 400}}
"""


@pytest.fixture
def ledger() -> Iterator[rl.Ledger]:
    """Yield a ledger in memory, whose ruleset r has a ladder for each group."""
    with rl.create(rulesets=[RULESET.format(by=["group"])]) as created:
        yield created


def propose_games(ledger: rl.Ledger, *labels: dict[str, str], month: str = "2024-03") -> rl.Proposal:
    """Propose a game between anna and ben in this month for each of these sets of labels."""
    first = ledger.head.position
    games = [
        build_event(
            "game.recorded", f"{month}-01T12:00:00Z", **build_game_data(f"g-{number}", "anna", "ben", **members)
        )
        for number, members in enumerate(labels, first)
    ]
    return ledger.propose(games, "test")


def propose_groups(ledger: rl.Ledger, *groups: str) -> rl.Proposal:
    """Propose a game in each of these groups."""
    return propose_games(ledger, *({"group": group} for group in groups))


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
def test_label_with_a_slip_is_like_an_existing_one(new: str, meant: str | None, ledger: rl.Ledger) -> None:
    """A new label is like an existing one if they differ by a typing slip, but not by a digit."""
    propose_groups(ledger, "basic", "tuesday", "münchen", "2025", "table 11").commit()
    result = propose_groups(ledger, new).result
    assert result.new_ladders == [f"r/{new}"]
    assert result.close_ladders.get(f"r/{new}") == meant


def test_similar_ladders_differ_in_one_label() -> None:
    """A ladder is like one that differs in a single label, apart from the month; the first such label counts."""
    existing, new = (
        [{"city": city, "group": group} for city, group in pairs]
        for pairs in (
            (("berlin", "basic"), ("bonn", "rivals"), ("hamburg", "knights"), ("hambrug", "knihgts")),
            (("berlni", "basic"), ("berlni", "rivals"), ("bonn", "rivlas"), ("hambrug", "knights")),
        )
    )
    with rl.create(rulesets=[RULESET.format(by=["city", "group", "month"])]) as ledger:
        propose_games(ledger, *existing).commit()
        for month in ("2024-03", "2024-04"):
            assert propose_games(ledger, *new, month=month).result.close_ladders == {
                f"r/berlni/basic/{month}": f"r/berlin/basic/{month}",
                f"r/bonn/rivlas/{month}": f"r/bonn/rivals/{month}",
                f"r/hambrug/knights/{month}": f"r/hamburg/knights/{month}",
            }


def test_later_of_two_similar_new_ladders_is_reported(ledger: rl.Ledger) -> None:
    """Of two similar new ladders the later one is reported, and only once."""
    result = propose_groups(ledger, "basic", "basci", "basci").result
    assert (result.new_ladders, result.close_ladders) == (["r/basic", "r/basci"], {"r/basci": "r/basic"})


def test_many_new_ladders_are_not_compared_in_pairs(ledger: rl.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 500 new ladders and 500 existing ones, only the two similar ones are compared."""
    pairs: list[tuple[str, str]] = []

    def compare_and_record(left: str, right: str) -> bool:
        pairs.append((left, right))
        return differ_by_one_slip(left, right)

    propose_groups(ledger, *(f"club number {number}" for number in range(500))).commit()
    differ_by_one_slip = close_names._differ_by_one_slip
    monkeypatch.setattr(close_names, "_differ_by_one_slip", compare_and_record)
    new = *(f"group number {number}" for number in range(500)), "group nunber 7"
    assert propose_groups(ledger, *new).result.close_ladders == {"r/group nunber 7": "r/group number 7"}
    assert sorted(pairs) == [("groupnumber7", "groupnunber7"), ("groupnunber7", "groupnumber7")]

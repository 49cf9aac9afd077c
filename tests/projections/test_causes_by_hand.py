"""Why points are not what they were, on ladders so small that a reader can work out every number.

In the pool who loses gives the winner a tenth of his points, from 1000 on; among two, K 8 gives who wins against an
equal 4 points.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from ledgers import create_ledger
from oracle.log import Event
from time_ledgers import enter

import ratings_ledger as rl
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.projections.diff.causes import Attribution, Cause, attribute_difference
from ratings_ledger.projections.queries.coordinates import Coordinates, UnknownLadder

POOL, ELO = "galactic-points", "catan-elo/basic"
FIRST, SECOND, THIRD = (f"2010-03-0{day}T12:00:00Z" for day in (1, 2, 3))


def ruleset(ruleset_id: str, version: str, rule: str, params: dict[str, Any], **more: Any) -> Event:
    """A version that is in force from the start."""
    return event(
        "ruleset.published", id=ruleset_id, version=version, rule=rule, effective_from="1900-01-01",
        params={"start": 1000, **params}, **more,
    )  # fmt: skip


def event(type_name: str, at: str = THIRD, **data: Any) -> Event:
    return {"type": type_name, "occurred_at": at, "data": data}


def pool(version: str, percent: int) -> Event:
    """Who loses gives so many percent; no bonus."""
    params = {"contributions": {"2": [0, percent]}, "bonus": 0, "bonus_seconds": 600, "dust": "burn"}
    return ruleset(POOL, version, "contribution-pool/1", params, scope={"game": ["galactic-magnate"]})


def game(game_id: str, winner: str, loser: str, at: str, slug: str = "galactic-magnate") -> Event:
    """One beats another."""
    participants = [{"player": winner, "place": 1}, {"player": loser, "place": 2}]
    labels = {"group": "basic"} if slug == "catan" else {}
    return event("game.recorded", at, game_id=game_id, game=slug, participants=participants, **labels)


def make_ledger(_: object, url: str) -> None:
    """The pool, Elo without rounding, and at position 3 a game in which ben beats anna on the second day."""
    create_ledger(url)
    elo = ruleset(
        "catan-elo", "1", "pairwise-elo/1", {"k_per_pair": 8, "scale": 400, "rounding": "none"},
        scope={"game": ["catan"]}, partition={"by": ["group"]},
    )  # fmt: skip
    add(open_ledger(url), pool("1", 10), elo, game("g", "ben", "anna", SECOND))


@pytest.fixture
def ledger(copied_file: Callable[..., str]) -> Ledger:
    """The ledger of `make_ledger`."""
    return open_ledger(copied_file(make_ledger))


def add(ledger: Ledger, *events: Event) -> int:
    """Append events, all of which are taken; the position of the last."""
    result = enter(ledger, [*events])
    assert (result.appended, result.rejected) == (len(events), [])
    assert result.head is not None
    return result.head.position


def why(ledger: Ledger, player: str, before: int, after: int, ladder: str = POOL, **axes: Any) -> Attribution:
    """What changed somebody's points between two positions; `axes` hold on the later side."""
    at = Coordinates(axes.get("as_of"), after, axes.get("rules"))
    with ledger.reading() as connection:
        return attribute_difference(connection, ladder, player, Coordinates(None, before, None), at)


def told(found: Attribution) -> tuple[Any, list[tuple[str, int | None, int, int]], Any]:
    """Points before, the causes (what, position, own part, ripple), points after."""
    assert all(part.denominator == 1 for cause in found.causes for part in (cause.own, cause.ripple))
    return (
        found.before,
        [(cause.kind, cause.position, int(cause.own), int(cause.ripple)) for cause in found.causes],
        found.after,
    )


def test_late_game_gains_and_ripples(
    ledger: Ledger,
) -> None:
    """A late game gives its winner the gain, a tenth of which ripples on to the player who beats them."""
    add(ledger, game("late", "anna", "cleo", FIRST))

    assert told(why(ledger, "anna", 3, 4)) == (900, [("late game", 4, 100, -10)], 990)
    assert told(why(ledger, "ben", 3, 4)) == (1100, [("late game", 4, 0, 10)], 1110)
    assert told(why(ledger, "cleo", 3, 4)) == (None, [("late game", 4, -100, 0)], 900)
    assert told(why(ledger, "dora", 3, 4)) == (None, [], None)


def test_games_in_order_do_not_ripple(ledger: Ledger) -> None:
    """Games recorded in played order each give what they gave, and nothing ripples."""
    add(ledger, game("h", "anna", "ben", THIRD), game("i", "cleo", "dora", THIRD))

    assert told(why(ledger, "anna", 2, 5)) == (None, [("game", 3, -100, 0), ("game", 4, 110, 0)], 1010)


def test_void_and_reinstate_cancel_out(
    ledger: Ledger,
) -> None:
    """When a game is voided and reinstated, both are causes that cancel out."""
    add(ledger, game("late", "anna", "cleo", FIRST))
    add(ledger, event("game.voided", game_id="late", reason="it never was"))
    add(ledger, event("game.reinstated", game_id="late", reason="it was"))

    assert told(why(ledger, "anna", 4, 5)) == (990, [("voided", 5, -100, 10)], 900)
    assert told(why(ledger, "anna", 4, 6)) == (990, [("voided", 5, -100, 10), ("reinstated", 6, 100, -10)], 990)
    assert told(why(ledger, "cleo", 4, 5)) == (900, [("voided", 5, 100, 0)], None)


def test_correction_counts_the_difference(ledger: Ledger) -> None:
    """The own part of a corrected game is the difference between its two results."""
    add(ledger, game("late", "anna", "cleo", FIRST))
    turned = game("late", "cleo", "anna", FIRST)["data"]
    add(ledger, event("game.corrected", game_id="late", reason="wrong way round", game=turned))

    # 1000 - 100 = 900 before ben takes a tenth: 90 instead of 110
    assert told(why(ledger, "anna", 4, 5)) == (990, [("corrected", 5, -200, 20)], 810)
    assert told(why(ledger, "ben", 4, 5)) == (1110, [("corrected", 5, 0, -20)], 1090)


def test_tenth_of_adjustment_ripples(ledger: Ledger) -> None:
    """When an adjustment before a game is made and withdrawn, a tenth of it ripples."""
    add(ledger, event("points.adjusted", FIRST, ladder=POOL, player="anna", points="50", reason="a gift") | {"id": "x"})
    add(ledger, event("event.voided", id="x", reason="no gift"))

    made, gone = ("adjustment", 4, 50, -5), ("taken back", 5, -50, 5)
    assert told(why(ledger, "anna", 3, 4)) == (900, [made], 945)
    assert told(why(ledger, "anna", 3, 5)) == (900, [made, gone], 900)
    assert told(why(ledger, "ben", 3, 4)) == (1100, [("adjustment", 4, 0, 5)], 1105)


def test_retroactive_version_starts_from_old(
    ledger: Ledger,
) -> None:
    """The own part of a retroactive version is computed from everybody's points as they were."""
    add(ledger, game("late", "anna", "cleo", FIRST))
    add(ledger, pool("2", 20))

    # with 1000 and 1100 as before: 200 - 220 instead of 100 - 110; in truth she comes to the second game with 1200,
    # and so, the other way round: 100 - 120 instead of 200 - 240
    assert told(why(ledger, "anna", 4, 5)) == (990, [("rule change", 5, -10, -20)], 960)
    assert told(why(ledger, "anna", 5, 5, rules=f"{POOL}@1")) == (960, [("rules", None, 20, 10)], 990)


def test_withdrawn_version_is_unknown(
    ledger: Ledger,
) -> None:
    """A withdrawn version is unknown at a position after its void, on either side of the question."""
    add(ledger, pool("2", 20) | {"id": "v"})
    add(ledger, event("event.voided", id="v", reason="too much"))
    early, late = Coordinates(None, 4, f"{POOL}@2"), Coordinates(None, 5, f"{POOL}@2")

    with ledger.reading() as connection:
        for places in ((early, late), (late, early)):
            with pytest.raises(UnknownLadder):
                attribute_difference(connection, POOL, "anna", *places)
        found = attribute_difference(connection, POOL, "anna", early, late._replace(rules=None))
    assert told(found) == (800, [("taken back", 5, 100, 0)], 900)


def test_rename_is_the_cause_for_both(ledger: Ledger) -> None:
    """A rename onto a player who lost is the cause of the change for both names."""
    add(ledger, game("late", "dora", "cleo", FIRST))
    add(ledger, event("player.renamed", player="dora", new_player="anna") | {"id": "r"})
    add(ledger, event("event.voided", id="r", reason="they are two"))

    # 1000 + 100 - 110
    assert told(why(ledger, "anna", 4, 5)) == (900, [("rename", 5, 90, 0)], 990)
    assert told(why(ledger, "dora", 4, 5)) == (1100, [("rename", 5, -110, 0)], 990)
    assert told(why(ledger, "ben", 4, 5)) == (1100, [("rename", 5, 0, 10)], 1110)
    assert told(why(ledger, "dora", 5, 6)) == (990, [("taken back", 6, 110, 0)], 1100)


def test_withdrawn_rename_removes_the_player(
    ledger: Ledger,
) -> None:
    """After an unneeded rename is withdrawn, the player asked for by the old id leaves the ladder."""
    add(ledger, event("player.registered", player="dora"))
    add(ledger, event("player.renamed", player="dora", new_player="anna") | {"id": "r"})
    add(ledger, event("event.voided", id="r", reason="they are two"))

    assert told(why(ledger, "dora", 3, 5)) == (900, [], 900)  # the person of today
    assert told(why(ledger, "dora", 5, 6)) == (900, [("taken back", 6, 100, 0)], None)


def test_unplayed_games_are_listed(
    ledger: Ledger,
) -> None:
    """At an earlier played time, each game not yet played is listed as a cause."""
    add(ledger, game("h", "anna", "ben", THIRD))
    found = why(ledger, "anna", 4, 4, as_of=1_267_444_800_000_000)  # noon of the first day

    assert told(found) == (1010, [("not played yet", 3, 100, 0), ("not played yet", 4, -110, 0)], None)


def test_late_elo_game_reduces_later_gain(ledger: Ledger) -> None:
    """On Elo, a late game gives 4 points, and the winner then wins less in the later game."""
    last = add(ledger, game("e", "anna", "ben", SECOND, "catan"))
    add(ledger, game("late", "anna", "cleo", FIRST, "catan"))
    found = why(ledger, "anna", last, last + 1, ELO)

    (cause,) = found.causes
    less = 8 * (1 - 1 / (1 + 10 ** (-4 / 400))) - 4
    assert (found.before, cause[:3]) == (1004, Cause("late game", last + 1, Fraction(4), Fraction(0))[:3])
    assert float(cause.ripple) == pytest.approx(less, abs=2e-6)
    assert -0.05 < cause.ripple < -0.04


# what one event, and what decisions made of the points of all


def test_impact_of_a_late_game_tells_who_moves_and_who_joins(ledger: Ledger) -> None:
    """Of a late game that anna wins over cleo, anna and ben gain points, and cleo joins without a gain or a loss."""
    last = add(ledger, game("late", "anna", "cleo", FIRST))
    with rl.open(ledger.location) as opened:
        (pool,) = opened.at().event_impact(last).ladders
    assert (pool.up, pool.stayed, pool.down, pool.joined, pool.left) == (2, 0, 0, 1, 0)
    assert [(one.player, one.before, one.change, one.after) for one in (*pool.gains, *pool.joined_or_left)] == [
        ("anna", 900, 90, 990), ("ben", 1100, 10, 1110), ("cleo", None, None, 900),
    ]  # fmt: skip


def test_impact_of_a_decision_describes_the_game_just_before_it(ledger: Ledger) -> None:
    """A void is described by the result that it takes away, also if that is the event right before it."""
    add(ledger, game("late", "anna", "cleo", FIRST))
    last = add(ledger, event("game.voided", game_id="late", reason="it never was"))
    with rl.open(ledger.location) as opened:
        assert opened.at().event_impact(last).description == "late: 1 anna, 2 cleo"


def test_timeline_has_the_names_of_its_time(ledger: Ledger) -> None:
    """After a rename a game and its story have the new name; as known before it, they have the old one."""
    last = add(ledger, event("player.renamed", player="ben", new_player="bernd"))
    with rl.open(ledger.location) as opened:
        for known_at, name in ((last - 1, "ben"), (last, "bernd")):
            timeline = opened.at(known_at=known_at).timeline("g")
            assert [one["player"] for one in timeline.data["participants"]] == [name, "anna"]
            assert [entry.result for entry in timeline.story] == [f"1 {name}, 2 anna"]


def test_changes_of_fractions_are_exact_differences(ledger: Ledger) -> None:
    """On Elo, whose points have fractions, a change is what somebody has after it minus what they had before."""
    add(ledger, game("e", "anna", "ben", SECOND, "catan"))
    last = add(ledger, game("late", "anna", "cleo", FIRST, "catan"))
    with rl.open(ledger.location) as opened:
        moved = [one for one in opened.at().event_impact(last).rows if one.change is not None]
    assert [one.player for one in moved] == ["anna", "ben"]
    assert all(one.change.denominator > 1 and one.change == one.after - one.before for one in moved)


def test_decision_tells_points_and_ranks_at_both_ends(ledger: Ledger) -> None:
    """A correction that turns the only game around turns points and ranks around."""
    turned = game("g", "anna", "ben", SECOND)["data"]
    add(ledger, event("game.corrected", game_id="g", reason="wrong way round", game=turned))
    with rl.open(ledger.location) as opened:
        shares = {one.player: (one.before, one.after, one.rank) for one in opened.at().decisions(3).shares}
    assert shares == {"anna": (900, 1100, (2, 1)), "ben": (1100, 900, (1, 2))}

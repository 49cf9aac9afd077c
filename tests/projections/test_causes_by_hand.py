"""The causes of changed points, on ladders so small that a reader can compute every number.

In the pool, the loser of a game gives the winner a tenth of the points, and players start with 1000; in the Elo with K
8, a win against an equal opponent gives 4 points.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from histories import attribute_change, enter
from ledgers import create_ledger
from oracle.log import Event

import ratings_ledger as rl
from ratings_ledger.ledger.store.opening import Ledger, open_ledger

POOL, ELO = "galactic-points", "catan-elo/basic"
FIRST, SECOND, THIRD = (f"2010-03-0{day}T12:00:00Z" for day in (1, 2, 3))


def build_ruleset(ruleset_id: str, version: str, rule: str, params: dict[str, Any], **more: Any) -> Event:
    """Return a version that is in force from the start."""
    return build_event(
        "ruleset.published",
        id=ruleset_id,
        version=version,
        rule=rule,
        effective_from="1900-01-01",
        params={"start": 1000, **params},
        **more,
    )


def build_event(type_name: str, at: str = THIRD, **data: Any) -> Event:
    """Return an event."""
    return {"type": type_name, "occurred_at": at, "data": data}


def build_pool(version: str, percent: int) -> Event:
    """Return a version in which the loser gives this percentage of the points, without bonuses."""
    params = {"contributions": {"2": [0, percent]}, "bonus": 0, "bonus_seconds": 600, "dust": "burn"}
    return build_ruleset(POOL, version, "contribution-pool/1", params, scope={"game": ["galactic-magnate"]})


def build_game(game_id: str, winner: str, loser: str, at: str, slug: str = "galactic-magnate") -> Event:
    """Return a game that the winner wins over the loser."""
    participants = [{"player": winner, "place": 1}, {"player": loser, "place": 2}]
    labels = {"group": "basic"} if slug == "catan" else {}
    return build_event("game.recorded", at, game_id=game_id, game=slug, participants=participants, **labels)


def make_ledger(_: object, url: str) -> None:
    """Create a ledger with the pool, Elo without rounding, and at position 3 a game in which ben beats anna on the
    second day.
    """
    create_ledger(url)
    elo = build_ruleset(
        "catan-elo",
        "1",
        "pairwise-elo/1",
        {"k_per_pair": 8, "scale": 400, "rounding": "none"},
        scope={"game": ["catan"]},
        partition={"by": ["group"]},
    )
    append(open_ledger(url), build_pool("1", 10), elo, build_game("g", "ben", "anna", SECOND))


@pytest.fixture
def ledger(copy_ledger_file: Callable[..., str]) -> Ledger:
    """Return the ledger of `make_ledger`."""
    return open_ledger(copy_ledger_file(make_ledger))


def append(ledger: Ledger, *events: Event) -> int:
    """Append events, all of which are accepted; return the position of the last event."""
    result = enter(ledger, [*events])
    assert (result.appended, result.rejected) == (len(events), [])
    assert result.head is not None
    return result.head.position


def find_causes(ledger: Ledger, player: str, before: int, after: int, ladder: str = POOL, **later: Any) -> Any:
    """Return the causes of a change of points between two positions; `later` are the coordinates of the later side."""
    at = later.get("as_of"), after, later.get("rules")
    return attribute_change(ledger, ladder, player, (None, before, None), at)


def summarize(attribution: Any) -> tuple[Any, list[tuple[str, int | None, int, int]], Any]:
    """Return (points before, the causes as (kind, position, own part, ripple), points after)."""
    assert all(part.denominator == 1 for cause in attribution.causes for part in (cause.own, cause.ripple))
    return (
        attribution.before,
        [(cause.kind, cause.position, int(cause.own), int(cause.ripple)) for cause in attribution.causes],
        attribution.after,
    )


def test_late_game_gains_and_ripples(
    ledger: Ledger,
) -> None:
    """A late game gives its winner the gain; a tenth of the gain goes on to the player who beats the winner."""
    append(ledger, build_game("late", "anna", "cleo", FIRST))

    assert summarize(find_causes(ledger, "anna", 3, 4)) == (900, [("late game", 4, 100, -10)], 990)
    assert summarize(find_causes(ledger, "ben", 3, 4)) == (1100, [("late game", 4, 0, 10)], 1110)
    assert summarize(find_causes(ledger, "cleo", 3, 4)) == (None, [("late game", 4, -100, 0)], 900)
    assert summarize(find_causes(ledger, "dora", 3, 4)) == (None, [], None)


def test_games_in_order_do_not_ripple(ledger: Ledger) -> None:
    """Games recorded in order of time are causes with their own change only, without ripples."""
    append(ledger, build_game("h", "anna", "ben", THIRD), build_game("i", "cleo", "dora", THIRD))

    assert summarize(find_causes(ledger, "anna", 2, 5)) == (
        None,
        [("game", 3, -100, 0), ("game", 4, 110, 0)],
        1010,
    )


def test_void_and_reinstate_cancel_out(
    ledger: Ledger,
) -> None:
    """A void and a reinstatement of a game are two causes that cancel out."""
    append(ledger, build_game("late", "anna", "cleo", FIRST))
    append(ledger, build_event("game.voided", game_id="late", reason="it never was"))
    append(ledger, build_event("game.reinstated", game_id="late", reason="it was"))

    assert summarize(find_causes(ledger, "anna", 4, 5)) == (990, [("voided", 5, -100, 10)], 900)
    assert summarize(find_causes(ledger, "anna", 4, 6)) == (
        990,
        [("voided", 5, -100, 10), ("reinstated", 6, 100, -10)],
        990,
    )
    assert summarize(find_causes(ledger, "cleo", 4, 5)) == (900, [("voided", 5, 100, 0)], None)


def test_correction_counts_the_difference(ledger: Ledger) -> None:
    """The own part of a corrected game is the difference between its two results."""
    append(ledger, build_game("late", "anna", "cleo", FIRST))
    reversed_game = build_game("late", "cleo", "anna", FIRST)["data"]
    append(ledger, build_event("game.corrected", game_id="late", reason="wrong way round", game=reversed_game))

    # 1000 - 100 = 900 before ben takes a tenth: 90 instead of 110
    assert summarize(find_causes(ledger, "anna", 4, 5)) == (990, [("corrected", 5, -200, 20)], 810)
    assert summarize(find_causes(ledger, "ben", 4, 5)) == (1110, [("corrected", 5, 0, -20)], 1090)


def test_tenth_of_adjustment_ripples(ledger: Ledger) -> None:
    """An adjustment before a game, and its void, ripple with a tenth of their points."""
    append(
        ledger,
        build_event("points.adjusted", FIRST, ladder=POOL, player="anna", points="50", reason="a gift") | {"id": "x"},
    )
    append(ledger, build_event("event.voided", id="x", reason="no gift"))

    adjustment, void = ("adjustment", 4, 50, -5), ("taken back", 5, -50, 5)
    assert summarize(find_causes(ledger, "anna", 3, 4)) == (900, [adjustment], 945)
    assert summarize(find_causes(ledger, "anna", 3, 5)) == (900, [adjustment, void], 900)
    assert summarize(find_causes(ledger, "ben", 3, 4)) == (1100, [("adjustment", 4, 0, 5)], 1105)


def test_own_part_of_retroactive_version_starts_from_earlier_points(
    ledger: Ledger,
) -> None:
    """The own part of a retroactive version is computed from the points that all players had before."""
    append(ledger, build_game("late", "anna", "cleo", FIRST))
    append(ledger, build_pool("2", 20))

    # own part, with 1000 and 1100 points as before: 200 - 220 instead of 100 - 110; anna now enters the second game
    # with 1200 points, and in the other direction: 100 - 120 instead of 200 - 240
    assert summarize(find_causes(ledger, "anna", 4, 5)) == (990, [("rule change", 5, -10, -20)], 960)
    assert summarize(find_causes(ledger, "anna", 5, 5, rules=f"{POOL}@1")) == (960, [("rules", None, 20, 10)], 990)


def test_withdrawn_version_is_unknown(
    ledger: Ledger,
) -> None:
    """A withdrawn version is unknown after its void, on either side of the comparison."""
    append(ledger, build_pool("2", 20) | {"id": "v"})
    append(ledger, build_event("event.voided", id="v", reason="too much"))
    early, late = (None, 4, f"{POOL}@2"), (None, 5, f"{POOL}@2")

    for sides in ((early, late), (late, early)):
        with pytest.raises(rl.BadArgument, match=f"{POOL}@2") as refusal:
            attribute_change(ledger, POOL, "anna", *sides)
        assert refusal.value.argument == "rules"
    attribution = attribute_change(ledger, POOL, "anna", early, (None, 5, None))
    assert summarize(attribution) == (800, [("taken back", 5, 100, 0)], 900)


def test_rename_is_the_cause_for_both_ids(ledger: Ledger) -> None:
    """A rename to a player with a loss is the cause of the change for both ids."""
    append(ledger, build_game("late", "dora", "cleo", FIRST))
    append(ledger, build_event("player.renamed", player="dora", new_player="anna") | {"id": "r"})
    append(ledger, build_event("event.voided", id="r", reason="they are two"))

    # 1000 + 100 - 110
    assert summarize(find_causes(ledger, "anna", 4, 5)) == (900, [("rename", 5, 90, 0)], 990)
    assert summarize(find_causes(ledger, "dora", 4, 5)) == (1100, [("rename", 5, -110, 0)], 990)
    assert summarize(find_causes(ledger, "ben", 4, 5)) == (1100, [("rename", 5, 0, 10)], 1110)
    assert summarize(find_causes(ledger, "dora", 5, 6)) == (990, [("taken back", 6, 110, 0)], 1100)


def test_void_of_rename_removes_player_without_games(
    ledger: Ledger,
) -> None:
    """After a void of a rename, a player without games leaves the ladder."""
    append(ledger, build_event("player.registered", player="dora"))
    append(ledger, build_event("player.renamed", player="dora", new_player="anna") | {"id": "r"})
    append(ledger, build_event("event.voided", id="r", reason="they are two"))

    assert summarize(find_causes(ledger, "dora", 3, 5)) == (900, [], 900)  # the current player of this id
    assert summarize(find_causes(ledger, "dora", 5, 6)) == (900, [("taken back", 6, 100, 0)], None)


def test_unplayed_games_are_listed(
    ledger: Ledger,
) -> None:
    """As of an earlier time, each game that is not yet played is a cause."""
    append(ledger, build_game("h", "anna", "ben", THIRD))
    attribution = find_causes(ledger, "anna", 4, 4, as_of=1_267_444_800_000_000)  # noon of the first day

    assert summarize(attribution) == (1010, [("not played yet", 3, 100, 0), ("not played yet", 4, -110, 0)], None)


def test_games_up_to_a_later_time_are_played_on_the_way_to_an_earlier_position(
    ledger: Ledger,
) -> None:
    """Forward in time and back in the log, the games are `played` first; then the later event is a cause in reverse.

    In the opposite direction, the event comes first, and the games are `not played yet`.
    """
    append(ledger, build_game("h", "anna", "ben", THIRD))
    first_noon = 1_267_444_800_000_000
    attribution = attribute_change(ledger, POOL, "anna", (first_noon, 4, None), (None, 3, None))

    causes = [("played", 4, 110, 0), ("played", 3, -100, 0), ("game", 4, -110, 0)]
    assert summarize(attribution) == (None, causes, 900)
    back = attribute_change(ledger, POOL, "anna", (None, 3, None), (first_noon, 4, None))
    opposite = [("game", 4, 110, 0), ("not played yet", 3, 100, 0), ("not played yet", 4, -110, 0)]
    assert summarize(back) == (900, opposite, None)


def test_late_elo_game_reduces_later_gain(ledger: Ledger) -> None:
    """On Elo, a late game gives its winner 4 points and a smaller gain in the later game."""
    last = append(ledger, build_game("e", "anna", "ben", SECOND, "catan"))
    append(ledger, build_game("late", "anna", "cleo", FIRST, "catan"))
    attribution = find_causes(ledger, "anna", last, last + 1, ELO)

    (cause,) = attribution.causes
    ripple = 8 * (1 - 1 / (1 + 10 ** (-4 / 400))) - 4
    assert (attribution.before, cause.kind, cause.position, cause.own) == (1004, "late game", last + 1, Fraction(4))
    assert float(cause.ripple) == pytest.approx(ripple, abs=2e-6)
    assert -0.05 < cause.ripple < -0.04


# -- the impact of one event, and of decisions, on all players


def test_impact_of_late_game_lists_moved_and_joined_players(ledger: Ledger) -> None:
    """The impact of a late game lists anna and ben with gains, and cleo as joined without a change."""
    last = append(ledger, build_game("late", "anna", "cleo", FIRST))
    with rl.open(ledger.location) as opened:
        (impact,) = opened.at().event_impact(last).ladders
    assert (impact.up, impact.stayed, impact.down, impact.joined, impact.left) == (2, 0, 0, 1, 0)
    assert [(row.player, row.before, row.change, row.after) for row in (*impact.gains, *impact.joined_or_left)] == [
        ("anna", 900, 90, 990),
        ("ben", 1100, 10, 1110),
        ("cleo", None, None, 900),
    ]


def test_impact_of_void_describes_the_voided_result(ledger: Ledger) -> None:
    """The impact of a void describes the voided result, also if the game is the event just before it."""
    append(ledger, build_game("late", "anna", "cleo", FIRST))
    last = append(ledger, build_event("game.voided", game_id="late", reason="it never was"))
    with rl.open(ledger.location) as opened:
        assert opened.at().event_impact(last).description == "late: 1 anna, 2 cleo"


def test_timeline_has_the_names_known_at_its_position(ledger: Ledger) -> None:
    """A game and its timeline have the new name after a rename, and the old name as known before it."""
    last = append(ledger, build_event("player.renamed", player="ben", new_player="bernd"))
    with rl.open(ledger.location) as opened:
        for known_at, name in ((last - 1, "ben"), (last, "bernd")):
            timeline = opened.at(known_at=known_at).timeline("g")
            assert [participant["player"] for participant in timeline.data["participants"]] == [name, "anna"]
            assert [entry.result for entry in timeline.story] == [f"1 {name}, 2 anna"]


def test_voided_game_names_both_players_who_became_one_person(ledger: Ledger) -> None:
    """A voided game keeps its recorded names if two of its players have since become one person."""
    append(ledger, build_event("game.voided", game_id="g", reason="she played against herself"))
    append(ledger, build_event("player.renamed", player="ben", new_player="anna"))
    with rl.open(ledger.location) as opened:
        timeline = opened.at().timeline("g")
    assert [participant["player"] for participant in timeline.data["participants"]] == ["ben", "anna"]


def test_fractional_changes_are_exact_differences(ledger: Ledger) -> None:
    """On Elo with fractions of points, a change is exactly the points after minus the points before."""
    append(ledger, build_game("e", "anna", "ben", SECOND, "catan"))
    last = append(ledger, build_game("late", "anna", "cleo", FIRST, "catan"))
    with rl.open(ledger.location) as opened:
        moved = [row for row in opened.at().event_impact(last).rows if row.change is not None]
    assert [row.player for row in moved] == ["anna", "ben"]
    assert all(row.change.denominator > 1 and row.change == row.after - row.before for row in moved)


def test_reversing_correction_reverses_points_and_ranks(ledger: Ledger) -> None:
    """A correction that reverses the only game reverses the points and ranks."""
    reversed_game = build_game("g", "anna", "ben", SECOND)["data"]
    append(ledger, build_event("game.corrected", game_id="g", reason="wrong way round", game=reversed_game))
    with rl.open(ledger.location) as opened:
        shares = {share.player: (share.before, share.after, share.rank) for share in opened.at().decisions(3).shares}
    assert shares == {"anna": (900, 1100, (2, 1)), "ben": (1100, 900, (1, 2))}

"""The game clock: every rule at its last millisecond, a millisecond earlier and a millisecond later."""

import pytest
from builders import NOON, build_draft
from clock_logs import (
    GRANTED_PAUSE,
    build_log,
    describe_player,
    describe_state,
    explain,
    find_refusal,
    list_lines,
    read_timers,
)

from ratings_ledger.ledger.events.types import TYPES


def test_new_clock_gives_120_seconds_each():
    """On a new clock every player has 120 seconds, and no timer runs."""
    state = describe_state("")
    assert {player["main_ms"] for player in state["players"]} == {120_000}
    assert {player["running"] for player in state["players"]} == {None}


CHOICES = [
    ("roll-dice", "anna", 4_000),
    ("auction-or-pass", "anna", 7_000),
    ("fortune", "anna", 6_000),
    ("sell-houses", "anna", 12_000),
    ("choose-character", "anna", 15_000),
    ("choose-character", "ben", 7_000),
    ("choose-character", "dora", 7_000),
    ("roll-dice", "dora", 4_000),
]


@pytest.mark.parametrize(("choice", "name", "auxiliary"), CHOICES)
def test_auxiliary_timer_runs_before_main(choice, name, auxiliary):
    """After an offer, the timer of the choice runs first, and the main timer only after it."""
    offered = f"1000 {name} offered {choice}"

    assert read_timers(offered, 1_000, name) == (120_000, auxiliary, "auxiliary")
    assert read_timers(offered, 1_000 + auxiliary - 1, name) == (120_000, 1, "auxiliary")
    assert read_timers(offered, 1_000 + auxiliary, name) == (120_000, 0, "main")
    assert read_timers(offered, 1_000 + auxiliary + 1, name) == (119_999, 0, "main")


REWARDS = [  # (time of the choice after the offer, main timer afterwards)
    (0, 122_000), (1, 121_999), (2, 121_999), (3, 121_998), (3_997, 120_001), (3_998, 120_001), (3_999, 120_000),
    (4_000, 120_000), (4_001, 119_999), (4_002, 119_998), (123_999, 1),
]  # fmt: skip


@pytest.mark.parametrize(("after", "main"), REWARDS)
def test_choice_adds_half_the_time_left(after, main):
    """A choice adds half of its remaining time to the main timer, rounded down."""
    decided = f"1000 anna offered roll-dice\n{1_000 + after} anna decided"

    assert read_timers(decided) == (main, None, None)
    assert read_timers(decided, 200_000) == (main, None, None)


def test_main_timer_does_not_run_without_a_choice():
    """The main timer does not run while no choice is open."""
    assert read_timers("", 1_000_000) == (120_000, None, None)
    assert read_timers("5000 anna offered roll-dice\n5000 anna decided roll-dice", 1_000_000, "ben") == (
        120_000,
        None,
        None,
    )


def test_timers_of_players_are_independent():
    """When one of two players decides, the timers of the other continue."""
    offers = "0 anna offered auction-or-pass\n1000 ben offered auction-or-pass\n3000 anna decided"

    assert read_timers(offers, 9_000) == (122_000, None, None)
    assert read_timers(offers, 9_000, "ben") == (119_000, 0, "main")


@pytest.mark.parametrize(("at", "main", "removed"), [(123_999, 1, None), (124_000, 0, 124_000), (900_000, 0, 124_000)])
def test_player_is_removed_at_zero(at, main, removed):
    """A player who never decides is removed when the main timer reaches 0."""
    player = describe_player("0 anna offered roll-dice", at)
    assert (player["main_ms"], player["removed_at"]) == (main, removed)
    # later events do not change the past state
    later = describe_player(f"0 anna offered roll-dice\n{at} ben heartbeat\n950000 turn_ended", at)
    assert (later["main_ms"], later["removed_at"]) == (main, removed)


AUCTIONS = [(99_999, 20_001, 1), (100_000, 20_000, 0)]  # (overtime, main timer before the auction, main timer after it)


@pytest.mark.parametrize(("overtime", "before", "after"), AUCTIONS)
def test_auction_costs_20_seconds(overtime, before, after):
    """An auction costs exactly 20 seconds, and removes a player who has only those."""
    late = f"0 anna offered roll-dice\n{4_000 + overtime} anna decided"
    assert read_timers(late)[0] == before

    player = describe_player(f"{late}\n150000 anna auction_started")
    assert (player["main_ms"], player["removed_at"]) == (after, None if after else 150_000)


def test_auction_needs_20_seconds():
    """An auction is rejected if a player has a millisecond less than 20 seconds."""
    late = "0 anna offered roll-dice\n104001 anna decided\n150000 anna auction_started"

    assert find_refusal(late) == (
        4,
        "clock-time-short",
        "'anna' has 19999 ms left on the main timer at 150000; starting an auction costs 20000 ms",
    )


def test_auction_leaves_choice_open():
    """An auction leaves a choice open, and its timers continue."""
    text = "0 anna offered roll-dice\n1000 anna auction_started"

    assert read_timers(text, 3_999) == (100_000, 1, "auxiliary")
    assert read_timers(text, 5_000) == (99_000, 0, "main")


SIGNS = ["decided", "auction_started", "heartbeat", "pause_asked", "pause_answered yes"]


@pytest.mark.parametrize("sign", SIGNS)
def test_silent_player_is_disconnected(sign):
    """A player is disconnected after 40 seconds without a sign of life."""
    before = "0 anna offered sell-houses\n1000 ben pause_asked" if sign != "pause_asked" else ""
    text = f"{before}\n10000 anna {sign}"

    assert describe_player(text, 49_999)["disconnected_at"] is None
    assert describe_player(text, 50_000)["disconnected_at"] == 50_000
    assert describe_player(text, 50_001)["disconnected_at"] == 50_000
    assert describe_player("", 39_999)["disconnected_at"] is None
    assert describe_player("", 40_000)["disconnected_at"] == 40_000


def test_offer_is_no_sign_of_life():
    """An offer to a silent player is no sign of life."""
    assert describe_player("39999 anna offered roll-dice\n39999 ben heartbeat", 40_000)["disconnected_at"] == 40_000


def test_disconnected_player_can_return():
    """A disconnected player who sends a sign of life is connected again, and the timers ran meanwhile."""
    text = "0 anna offered roll-dice\n44000 anna heartbeat"

    assert describe_player(text, 43_999)["disconnected_at"] == 40_000
    assert describe_player(text)["disconnected_at"] is None
    assert read_timers(text) == (80_000, 0, "main")
    assert describe_player(text, 84_000)["disconnected_at"] == 84_000


def test_other_timer_values_replace_defaults():
    """Other timer values replace the defaults."""
    values = {"main_ms": 10, "roll_dice_ms": 3, "reward_percent": 100, "unresponsive_ms": 5, "auction_cost_ms": 12}

    assert read_timers("0 anna offered roll-dice\n1 anna decided\n2 anna auction_started", **values) == (0, None, None)
    assert read_timers("0 anna offered roll-dice\n1 anna decided", **values) == (12, None, None)
    assert describe_player("", 5, **values)["disconnected_at"] == 5
    assert describe_player("0 anna offered roll-dice", 13, **values)["removed_at"] == 13
    assert describe_player("0 anna offered roll-dice", 4_010, main_ms=10)["removed_at"] == 4_010


def test_no_timer_runs_on_a_stopped_clock():
    """After a clock is stopped, no timer runs, and no player is disconnected."""
    text = "0 anna offered roll-dice\n5000 stopped"

    assert read_timers(text, 900_000) == (119_000, 0, None)
    assert describe_player(text, 900_000)["disconnected_at"] is None


REMOVED = """
    1000 anna offered roll-dice
    2001 anna decided
    10000 anna auction_started
    20000 anna offered fortune
    21000 anna auction_started
    27000 anna heartbeat
    30000 anna decided
    40000 anna offered sell-houses
    60000 anna auction_started
"""


def test_removal_is_explained_line_by_line():
    """The explanation of a removed player accounts for every millisecond up to the removal."""
    assert list_lines(REMOVED) == [
        (0, "started", 120_000, 120_000),
        (1_000, "offered", 0, 120_000),
        (2_001, "decided", 1_499, 121_499),
        (10_000, "auction", -20_000, 101_499),
        (20_000, "offered", 0, 101_499),
        (21_000, "auction", -20_000, 81_499),
        (30_000, "ran", -4_000, 77_499),
        (30_000, "decided", 0, 77_499),
        (40_000, "offered", 0, 77_499),
        (60_000, "ran", -8_000, 69_499),
        (60_000, "auction", -20_000, 49_499),
        (100_000, "ran", -40_000, 9_499),
        (100_000, "disconnected", 0, 9_499),
        (109_499, "ran", -9_499, 0),
        (109_499, "removed", 0, 0),
    ]
    assert explain(build_log(REMOVED), "anna").recorded_until == 60_000
    assert list_lines(REMOVED, 25_000)[-1] == (21_000, "auction", -20_000, 81_499)
    assert list_lines(REMOVED, 26_001)[-1] == (26_001, "ran", -1, 81_498)


def test_pause_in_overtime_is_explained():
    """The explanation of a pause in overtime has the main timer at its beginning and end."""
    text = "0 anna offered roll-dice\n5000 ben pause_asked\n5000 anna pause_answered yes\n6000 turn_ended"
    text += "\n700000 ben resume_asked\n700001 anna decided"

    assert list_lines(text, 700_001, players="anna ben") == [
        (0, "started", 120_000, 120_000),
        (0, "offered", 0, 120_000),
        (6_000, "ran", -2_000, 118_000),
        (6_000, "paused", 0, 118_000),
        (700_000, "resumed", 0, 118_000),
        (700_001, "ran", -1, 117_999),
        (700_001, "decided", 0, 117_999),
    ]


def test_models_accept_events_of_every_type():
    """The event models accept the logs of a removal and of a pause, which together have every type of clock event."""
    pause = f"{GRANTED_PAUSE}\n9000 turn_ended\n609000 anna resume_asked\n609001 anna decided"
    pause += "\n609002 ben player_left\n609003 stopped"
    events = [*build_log(REMOVED), *build_log(pause)]
    assert {event["type"] for event in events} == {name for name in TYPES if name.startswith("clock.")}
    for event in events:
        build_draft({"occurred_at": NOON, **event})

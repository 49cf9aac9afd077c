"""Pauses of a game clock: who has to answer, when a pause begins and ends, and that no timer runs in it."""

import pytest
from clock_logs import GRANTED, paused, player, refused, timers

YES = [  # players, who answers yes after anna has asked, whether that is enough
    ("anna ben", "", False), ("anna ben", "ben", True),
    ("anna ben cleo", "ben", False), ("anna ben cleo", "ben cleo", True),
    ("anna ben cleo dora emil", "ben", False),
    ("anna ben", "anna", False), ("anna ben cleo", "anna ben ben", False), ("anna ben", "anna ben", True),
    ("anna ben cleo dora emil", "dora emil", True),
]  # fmt: skip


@pytest.mark.parametrize(("players", "answers", "enough"), YES)
def test_given_a_question_when_both_of_two_or_three_of_more_say_yes_then_the_pause_is_granted(players, answers, enough):
    said = "".join(f"\n200 {name} pause_answered yes" for name in answers.split())

    expected = (False, 200, None) if enough else (True, None, None)
    assert paused(f"100 anna pause_asked{said}", players=players) == expected


def test_given_a_question_when_15_seconds_are_over_then_the_pause_is_denied():
    asked = "100 anna pause_asked\n200 ben pause_answered yes"

    assert paused(asked, 15_099) == (True, None, None)
    assert paused(asked, 15_100) == (False, None, None)
    assert paused(f"{asked}\n15099 cleo pause_answered yes") == (False, 15_099, None)
    for at in (15_100, 15_101):
        line, code, message = refused(f"{asked}\n{at} cleo pause_answered yes")
        assert (line, code) == (4, "clock-no-question")
        assert message.endswith(f"at {at} (the last one was denied at 15100: the time for answers was over)")


def test_given_a_question_when_one_says_no_then_the_pause_is_denied():
    assert paused("100 anna pause_asked\n200 ben pause_answered yes\n300 cleo pause_answered no") == (False, None, None)


@pytest.mark.parametrize("name", ["anna", "ben"])
def test_given_a_question_when_somebody_takes_back_his_yes_then_the_pause_is_denied(name):
    text = f"100 anna pause_asked\n200 ben pause_answered yes\n300 {name} pause_answered no"

    assert paused(text) == (False, None, None)


@pytest.mark.parametrize("out", ["8000 dora player_left\n8000 cleo player_left", "100 anna heartbeat"])
def test_given_fewer_than_three_players_in_the_game_when_all_say_yes_then_the_pause_is_granted(out):
    left = "8000" in out
    text = f"{out}\n9000 anna pause_asked\n9001 ben pause_answered yes"

    assert paused(text) == ((False, 9_001, None) if left else (True, None, None))


def test_given_a_question_when_a_removal_leaves_only_those_who_said_yes_then_the_pause_is_granted_at_that_moment():
    text = "0 cleo offered roll-dice\n110000 anna pause_asked\n110001 ben pause_answered yes"

    assert paused(text, 123_999, players="anna ben cleo") == (True, None, None)
    assert paused(text, 124_000, players="anna ben cleo") == (False, 124_000, None)


def test_given_a_question_when_somebody_leaves_then_his_yes_goes_with_him_and_the_others_may_be_all_that_are_left():
    text = "100 anna pause_asked\n200 ben pause_answered yes\n300 ben player_left\n400 cleo pause_answered yes"

    assert paused(text) == (True, None, None)
    assert paused(f"{text}\n500 dora player_left") == (False, 500, None)


def test_given_a_removal_in_the_millisecond_in_which_the_question_ends_then_the_pause_is_denied():
    text = "0 cleo offered roll-dice\n109000 anna pause_asked\n110001 ben pause_answered yes"

    assert paused(text, 124_000, players="anna ben cleo") == (False, None, None)


def test_given_a_granted_pause_when_the_turn_ends_then_it_begins_and_no_timer_runs():
    two = {"players": "anna ben"}
    assert paused(GRANTED, 9_000, **two) == (False, 2_500, None)
    assert timers(GRANTED, 9_000, **two) == (120_000, 4_000, "auxiliary")

    ended = f"{GRANTED}\n9000 turn_ended"
    assert paused(ended, 500_000, **two) == (False, None, 9_000)
    assert timers(ended, 500_000, **two) == (120_000, 4_000, None)
    assert player(ended, 500_000, **two)["disconnected_at"] is None


def test_given_an_end_of_a_turn_when_no_pause_is_granted_then_nothing_happens():
    assert paused("1000 anna pause_asked\n1500 turn_ended", 2_000) == (True, None, None)
    assert timers("1000 anna offered roll-dice\n1500 turn_ended", 2_000) == (120_000, 3_000, "auxiliary")


def test_given_a_pause_when_it_ends_then_every_timer_goes_on_where_it_stood():
    text = f"{GRANTED}\n9000 turn_ended\n100000 anna resume_asked\n100001 ben resume_asked"
    two = {"players": "anna ben"}

    assert timers(text, 104_000, **two) == (120_000, 1, "auxiliary")
    assert timers(text, 104_002, **two) == (119_999, 0, "main")
    # silent for 9000 - 2000 ms before the pause; ben asked at its end, anna a millisecond before it
    assert [player(text, at, **two)["disconnected_at"] for at in (140_000, 140_001)] == [None, 140_001]
    silent = f"{GRANTED}\n9000 turn_ended\n609000 ben resume_asked"
    assert [player(silent, at, **two)["disconnected_at"] for at in (642_499, 642_500)] == [None, 642_500]


def test_given_a_second_pause_when_resumed_then_the_requests_of_the_first_no_longer_count():
    first = f"{GRANTED}\n9000 turn_ended\n9001 anna resume_asked\n9002 ben resume_asked"
    second = f"{first}\n9003 anna pause_asked\n9004 ben pause_answered yes\n9005 turn_ended"

    assert paused(f"{second}\n9006 ben resume_asked", players="anna ben") == (False, None, 9_005)


RESUMES = [
    ("9001 anna resume_asked", 9_000),
    ("9001 anna resume_asked\n9002 ben resume_asked", None),
    ("9001 anna resume_asked\n9002 anna resume_asked", 9_000),
    ("9001 anna resume_asked\n9002 ben player_left", None),
    ("608999 anna resume_asked", 9_000),
    ("608999 anna resume_asked\n700000 ben heartbeat", 9_000),
    ("609000 anna resume_asked", None),
    ("609001 anna resume_asked", None),
    ("608999 anna resume_asked\n609000 anna resume_asked", None),
]


@pytest.mark.parametrize(("asked", "since"), RESUMES)
def test_given_a_pause_when_all_ask_or_one_after_the_pause_time_then_it_ends(asked, since):
    assert paused(f"{GRANTED}\n9000 turn_ended\n{asked}", players="anna ben")[2] == since
